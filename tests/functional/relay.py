# SPDX-License-Identifier: Apache-2.0
"""A door to an agent that is elsewhere: a unix socket whose bytes are carried to the agent's and back.

What /proc says of whoever serves the socket is not of the job then, and the files of its tables are not looked for.
"""

import socket
import threading


class Relay:
    """`with Relay(endpoint, path) as relay:` the target is then unix:PATH. `most`: bytes that are carried back to a client at a time,
    each of which waits for `gate` (a threading.Event) to be set. `.carried` bytes went back so far."""

    def __init__(self, endpoint, path, most=1 << 20):
        self.endpoint = endpoint
        self.path = str(path)
        self.target = "unix:" + self.path
        self.most = most
        self.gate = threading.Event()
        self.gate.set()
        self.carried = 0
        self.connections = 0
        self.sockets = []

    def __enter__(self):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.gate.set()
        for one in [self.listening, *self.sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            agent = socket.socket(socket.AF_UNIX)
            try:
                agent.connect(self.endpoint)
            except OSError:
                client.close()
                continue
            self.connections += 1
            self.sockets += [client, agent]
            threading.Thread(target=self.carry, args=(client, agent, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(agent, client, True), daemon=True).start()

    def carry(self, source, sink, back):
        try:
            while True:
                if back:
                    self.gate.wait()
                data = source.recv(self.most if back else 1 << 16)
                if not data:
                    break
                sink.sendall(data)
                self.carried += len(data) if back else 0
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
