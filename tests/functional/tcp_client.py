# SPDX-License-Identifier: Apache-2.0
"""Comes to an agent by TCP, as one user or another, with what headers one likes."""

import base64
import contextlib
import os
import socket

from agent_wire import PROTOCOL, Client, Closed, Connection

STRANGER = 54321  # a user that has nothing


@contextlib.contextmanager
def as_user(uid):
    """Sockets that are made meanwhile are that user's. Only root can do that."""
    before = os.geteuid()
    if uid is not None and uid != before:
        os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(before)


class Address(str):
    """A client of a TCP listener, with the listener's own token unless another is given."""

    token = None


def owner(door):
    """Of what `listen` has told: who comes by it has the token that may do most."""
    address = Address(door["address"])
    address.token = door["token"] or door["looking_token"]
    return address


def split(address):
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class TcpConnection(Connection):
    def __init__(self, address, timeout=10.0, uid=None):
        host, port = split(address)
        with as_user(uid):
            self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
            self.socket.settimeout(timeout)
            self.socket.connect((host, port))
        self.address = address
        self.buffer = b""

    def ask(self, headers=(), host=None, token=None, upgrade=True):
        """The status of the answer as a number; 0: the connection was closed without one."""
        lines = ["GET / HTTP/1.1", f"Host: {host or self.address}"]
        if upgrade:
            lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                      "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Protocol: " + PROTOCOL]
        if token is None:
            token = getattr(self.address, "token", None)
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        try:
            self.send(("\r\n".join([*lines, *headers]) + "\r\n\r\n").encode())
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += self.receive(1)
        except Closed:
            return 0
        return int(answer.split()[1])


class TcpClient(Client):
    """One that was let in."""

    def __init__(self, address, uid=None, token=None, timeout=10.0):
        self.connection = TcpConnection(address, timeout, uid)
        status = self.connection.ask(token=token)
        assert status == 101, status
        self.last_id = 0
        self.notifications = []
        self.chunks = {}
        self.hello = self.call("hello", {"version": 2, "client": "test"})


def status_of(address, uid=None, **request):
    """What somebody is answered who asks for a WebSocket."""
    connection = TcpConnection(address, uid=uid)
    try:
        return connection.ask(**request)
    finally:
        connection.close()
