# SPDX-License-Identifier: Apache-2.0
"""An agent that is none: it answers as a real one did, and then sends snapshots as fast as it is told to, whatever was asked for."""

import base64
import hashlib
import struct
import threading
import time

from agent_wire import BINARY, PING, PONG, PROTOCOL, Client, pack, unpack
from unix_server import Door

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3


def observe(endpoint):
    """(answer to hello, a notification of the stream of threads) of a real agent."""
    with Client(endpoint) as client:
        client.subscribe("threads", 20)
        return client.hello, client.notification("threads")


class FakeAgent(Door):
    """`with FakeAgent(path, hello, snapshot) as agent:` the target is then unix:PATH. `agent.rate` bytes a second are sent to each client;
    `agent.sent` were, so far."""

    def __init__(self, path, hello, snapshot):
        super().__init__(path)
        self.hello = hello
        self.notification = pack([2, "threads", snapshot])
        self.rate = 0
        self.sent = 0

    def talk(self, client):
        try:
            stream = client.makefile("rb")
            self.handshake(client, stream)
            lock, flooded = threading.Lock(), False  # of what is written
            while True:
                opcode, payload = self.frame(stream)
                if opcode == PING:
                    self.send(client, lock, payload, PONG)
                if opcode == BINARY:
                    _, number, method, asked = unpack(payload)
                    known = {"hello": self.hello, "subscribe": {}, "unsubscribe": {}}
                    error = None if method in known else {"code": 3, "message": "this agent has only threads"}
                    self.send(client, lock, pack([1, number, error, known.get(method)]))
                    if method == "subscribe" and asked["stream"] == "threads" and not flooded:
                        flooded = True
                        threading.Thread(target=self.flood, args=(client, lock), daemon=True).start()
        except (OSError, ValueError, struct.error):
            pass

    @staticmethod
    def handshake(client, stream):
        key = b""
        while (line := stream.readline().strip()):
            if line.lower().startswith(b"sec-websocket-key:"):
                key = line.split(b":", 1)[1].strip()
        accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}",
                 f"Sec-WebSocket-Protocol: {PROTOCOL}"]
        client.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())

    @staticmethod
    def frame(stream):
        first, second = stream.read(2)
        n = second & 127
        if n >= 126:
            n = struct.unpack(">H" if n == 126 else ">Q", stream.read(2 if n == 126 else 8))[0]
        mask = stream.read(4)
        data = stream.read(n)
        return first & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(data))

    @staticmethod
    def send(client, lock, payload, opcode=BINARY):
        n = len(payload)
        head = struct.pack(">BBH", 0x80 | opcode, 126, n) if n < 1 << 16 else struct.pack(">BBQ", 0x80 | opcode, 127, n)
        if n < 126:
            head = struct.pack(">BB", 0x80 | opcode, n)
        with lock:
            client.sendall(head + payload)

    def flood(self, client, lock):
        """As many notifications as the rate says; a client that does not read holds this up, and `sent` stands still."""
        at, given = time.monotonic(), 0.0
        try:
            while True:
                now = time.monotonic()
                if not self.rate:
                    given = 0.0
                given = min(given + (now - at) * self.rate, 4.0 * len(self.notification) + self.rate / 10)
                at = now
                while given >= len(self.notification):
                    self.send(client, lock, self.notification)
                    given -= len(self.notification)
                    self.sent += len(self.notification)
                time.sleep(0.01)
        except OSError:
            pass
