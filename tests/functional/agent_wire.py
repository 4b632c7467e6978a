# SPDX-License-Identifier: Apache-2.0
"""A client of the agent in plain Python: WebSocket (RFC 6455) over the unix socket and MessagePack, from their specifications.

It shares no code with the C client, so that an error both ends of the C code make alike is seen.
"""

import base64
import os
import socket
import struct
import time

PROTOCOL = "probing.v1"
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10


# --- MessagePack ------------------------------------------------------------------------------------------------

def pack(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return struct.pack(">Bq", 0xD3, value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        data = value.encode()
        return struct.pack(">BI", 0xDB, len(data)) + data
    if isinstance(value, bytes):
        return struct.pack(">BI", 0xC6, len(value)) + value
    if isinstance(value, (list, tuple)):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(pack(v) for v in value)
    return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


class Unpacker:
    """One value of `data` after the other."""

    NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
               0xD3: ">q"}
    SIZES = {1: ">B", 2: ">H", 4: ">I"}

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, n):
        assert self.at + n <= len(self.data), "message is cut off"
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def text(self, n):
        return self.take(n).decode("utf-8", "surrogateescape")

    def array(self, n):
        return [self.value() for _ in range(n)]

    def map(self, n):
        return {self.value(): self.value() for _ in range(n)}

    def value(self):
        head = self.take(1)[0]
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head < 0x90:
            return self.map(head & 15)
        if head < 0xA0:
            return self.array(head & 15)
        if head < 0xC0:
            return self.text(head & 31)
        if head in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[head]
        if head in self.NUMBERS:
            return self.number(self.NUMBERS[head])
        if 0xC4 <= head <= 0xC6:
            return bytes(self.take(self.number(self.SIZES[1 << (head - 0xC4)])))
        if 0xD9 <= head <= 0xDB:
            return self.text(self.number(self.SIZES[1 << (head - 0xD9)]))
        if head in (0xDC, 0xDD):
            return self.array(self.number(self.SIZES[2 << (head - 0xDC)]))
        assert head in (0xDE, 0xDF), f"unexpected byte {head:#x}"
        return self.map(self.number(self.SIZES[2 << (head - 0xDE)]))


def unpack(data):
    u = Unpacker(data)
    value = u.value()
    assert u.at == len(data), "bytes after the message"
    return value


# --- WebSocket --------------------------------------------------------------------------------------------------

class Closed(Exception):
    """The other side ended the connection."""


class Connection:
    """A raw connection: bytes, handshake, frames."""

    def __init__(self, path, timeout=10.0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = b""

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from error

    def receive(self, n):
        while len(self.buffer) < n:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionResetError as error:
                raise Closed(str(error)) from error
            if not data:
                raise Closed("end of the stream")
            self.buffer += data
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def handshake(self, protocol=PROTOCOL):
        """The status line of the answer."""
        lines = ["GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode()]
        if protocol:
            lines.append("Sec-WebSocket-Protocol: " + protocol)
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.receive(1)
        return answer.split(b"\r\n", 1)[0].decode()

    def send_frame(self, opcode, payload, final=True, length=None):
        """A masked frame; `length` lies about how long it is."""
        n = len(payload) if length is None else length
        mask = os.urandom(4)
        head = bytes([(0x80 if final else 0) | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, n)
        else:
            head += struct.pack(">BQ", 0x80 | 127, n)
        key = (mask * (len(payload) // 4 + 1))[:len(payload)]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(len(payload), "big")
        self.send(head + mask + masked)

    def receive_frame(self):
        """(opcode, payload) of a message; the agent cuts those for who may only look into fragments."""
        opcode, payload, final = self.receive_fragment()
        while not final:
            following, more, final = self.receive_fragment()
            assert following == 0 and len(more) <= 1 << 16
            payload += more
        return opcode, payload

    def receive_fragment(self):
        first, second = self.receive(2)
        n = second & 127
        if n == 126:
            n = struct.unpack(">H", self.receive(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.receive(8))[0]
        assert not first & 0x70 and not second & 0x80
        return first & 15, self.receive(n), bool(first & 0x80)


class Client:
    """Requests and notifications."""

    def __init__(self, path, timeout=10.0, hello=True):
        self.connection = Connection(path, timeout)
        status = self.connection.handshake()
        assert " 101 " in status, status
        self.last_id = 0
        self.notifications = []
        self.chunks = {}
        self.hello = self.call("hello", {"version": 2, "client": "test"}) if hello else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def send(self, method, params=None):
        self.last_id += 1
        self.connection.send_frame(BINARY, pack([0, self.last_id, method, params or {}]))
        return self.last_id

    def message(self):
        """The next whole message."""
        while True:
            opcode, payload = self.connection.receive_frame()
            if opcode == PING:
                self.connection.send_frame(PONG, payload)
            elif opcode == CLOSE:
                raise Closed("close frame")
            elif opcode == BINARY:
                assert len(payload) <= 1 << 20
                message = unpack(payload)
                if message[:2] != [2, "chunk"]:
                    return message
                whole = self.assemble(message[2])
                if whole is not None:
                    return unpack(whole)

    def assemble(self, chunk):
        parts = self.chunks.setdefault(chunk["message"], [])
        assert chunk["index"] == len(parts)
        parts.append(chunk["data"])
        data = b"".join(parts)
        if len(data) < chunk["total"]:
            return None
        del self.chunks[chunk["message"]]
        assert len(data) == chunk["total"]
        return data

    def answer(self, wanted):
        """(error, result) of a request; notifications that come before it are kept."""
        while True:
            message = self.message()
            if message[0] == 2:
                self.notifications.append(message)
                continue
            assert message[0] == 1 and message[1] == wanted, message
            return message[2], message[3]

    def call(self, method, params=None):
        error, result = self.answer(self.send(method, params))
        assert error is None, error
        return result

    def call_error(self, method, params=None):
        error, result = self.answer(self.send(method, params))
        assert error is not None and result is None
        return error

    def subscribe(self, stream, rate_hz):
        return self.call("subscribe", {"stream": stream, "rate_hz": float(rate_hz)})

    def notification(self, method):
        """The params of the next notification of that name; others are dropped."""
        while True:
            message = self.notifications.pop(0) if self.notifications else self.message()
            if message[:2] == [2, method]:
                return message[2]


# --- what messages mean -----------------------------------------------------------------------------------------

def column(written):
    """A column's values: an array, or in turn so many new ones and so many that are as `lag` rows before."""
    if isinstance(written, list):
        return written
    out, fresh = [], iter(written["values"])
    for i, n in enumerate(written["runs"]):
        for _ in range(n):
            out.append(out[-written["lag"]] if i % 2 else next(fresh))
    assert next(fresh, None) is None
    return out


def rows(columns, strings=(), text=()):
    """A map of columns as a list of dicts; those named in `text` are numbers of strings."""
    names = list(columns)
    columns = {name: column(written) for name, written in columns.items()}
    out = [dict(zip(names, values)) for values in zip(*(columns[name] for name in names))]
    for row in out:
        for name in text:
            row[name] = None if row[name] is None else strings[row[name]]
    return out


def threads_of(snapshot):
    """Threads of a snapshot as dicts, with frames (innermost first) as dicts."""
    strings = snapshot["strings"]
    frames = rows(snapshot["frames"], strings, ("func", "file"))
    threads = rows(snapshot["threads"], strings, ("name", "native_name"))
    for thread in threads:
        thread["frames"] = [frames[i] for i in thread.pop("stack")]
    return threads


class Profile:
    """Puts batches of samples together, checking that every number used was defined before."""

    def __init__(self):
        self.epoch = None
        self.samples = []
        self.dropped = 0
        self.forget()

    def forget(self):
        self.frames = {}
        self.stacks = {}
        self.threads = {}

    def feed(self, batch):
        if batch["epoch"] != self.epoch:
            self.epoch = batch["epoch"]
            self.forget()
        self.dropped = batch["dropped"]
        strings = batch["strings"]
        for frame in rows(batch["frames"], strings, ("func", "file")):
            self.frames[frame["id"]] = frame
        for stack in rows(batch["stacks"]):
            assert stack["parent"] == 0 or stack["parent"] in self.stacks
            assert stack["parent"] < stack["id"] and stack["frame"] in self.frames
            self.stacks[stack["id"]] = stack
        for thread in rows(batch["threads"], strings, ("name", "native_name")):
            self.threads[thread["tid"]] = thread
        for sample in rows(batch["samples"]):
            assert sample["stack"] == 0 or sample["stack"] in self.stacks
            assert sample["tid"] in self.threads
            self.samples.append(dict(sample, thread=self.threads[sample["tid"]]["name"], frames=self.frames_of(sample)))

    def frames_of(self, sample):
        """Names of the functions, innermost first."""
        names = []
        stack = sample["stack"]
        while stack:
            names.append(self.frames[self.stacks[stack]["frame"]]["func"])
            stack = self.stacks[stack]["parent"]
        return names


def wait_closed(connection, timeout=10.0):
    """Does the other side end the connection within the time? Whatever it sends before is read away."""
    deadline = time.monotonic() + timeout
    connection.socket.settimeout(timeout)
    try:
        while time.monotonic() < deadline:
            connection.receive(1)
    except Closed:
        return True
    except socket.timeout:
        pass
    return False
