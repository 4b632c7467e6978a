# SPDX-License-Identifier: Apache-2.0
"""Asks an agent by HTTP, byte for byte, and reads exactly what the text format of Prometheus allows."""

import json
import math
import re
import socket
import time

from tcp_client import as_user, split


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def type(self):
        return self.headers["content-type"]

    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)


def read_all(sock):
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def parse(data):
    """One whole answer, and nothing behind it. None: the connection was closed without one."""
    if not data:
        return None
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    assert re.fullmatch(r"HTTP/1\.[01] \d{3} .*", lines[0]), lines[0]
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        assert colon and name.lower() not in headers, line
        headers[name.lower()] = value.strip()
    return Answer(int(lines[0].split()[1]), headers, body)


def connect(address, uid=None, timeout=30.0):
    with as_user(uid):
        sock = socket.socket(socket.AF_INET6 if "[" in address else socket.AF_INET)
        sock.settimeout(timeout)
        sock.connect(split(address))
    return sock


def request(address, path="/", verb="GET", host=None, token=None, headers=(), body=None):
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {host or address}", *headers]
    if token is None:
        token = getattr(address, "token", None)
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def ask(address, path="/", verb="GET", uid=None, timeout=60.0, **more):
    """The answer; what it says of its length is what came, and the connection was closed after it. Who comes too often for the
    agent to find out whose each connection is, is told to come again, and does."""
    for _ in range(200):
        with connect(address, uid, timeout) as sock:
            sock.sendall(request(address, path, verb, **more))
            answer = parse(read_all(sock))
        if not answer or answer.status != 503 or b"who they are" not in answer.body:
            break
        assert answer.headers["retry-after"] == "1"
        time.sleep(0.1)
    if answer:
        assert answer.headers["connection"] == "close"
        assert len(answer.body) == (0 if verb == "HEAD" else int(answer.headers["content-length"]))
    return answer


def send_raw(address, data, timeout=30.0):
    with connect(address, timeout=timeout) as sock:
        try:
            sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return parse(read_all(sock))


# --- Prometheus text format 0.0.4 ---------------------------------------------------------------------------------

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)")


def parse_metrics(text):
    """{name: {labels: value}}, types apart; every metric has its HELP and TYPE before it, once, and stands together."""
    assert text.endswith("\n")
    types, helps, samples, last = {}, set(), {}, None
    for line in text[:-1].split("\n"):
        if m := re.fullmatch(rf"# HELP ({NAME}) (.*)", line):
            assert m[1] not in helps and m[1] not in types
            helps.add(m[1])
        elif m := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
            assert m[1] in helps and m[1] not in types and m[1] not in samples
            types[m[1]] = m[2]
        else:
            m = SAMPLE.fullmatch(line)
            assert m, line
            name, value = m[1], float(m[m.lastindex])
            labels = tuple(sorted((k, v) for k, v in re.findall(LABEL, m[2] or "")))
            assert name in types and math.isfinite(value) and (name == last or name not in samples), line
            assert labels not in samples.setdefault(name, {})
            assert types[name] != "counter" or (value >= 0 and name.endswith("_total")), line
            samples[name][labels] = value
            last = name
    return samples, types
