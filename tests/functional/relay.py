# SPDX-License-Identifier: Apache-2.0
"""A relay to an agent that is elsewhere: a unix socket whose bytes are carried to the agent's and back.

What /proc says of whoever serves the socket is not of the job then, and the files of its tables are not looked for.
"""

import socket
import threading

from unix_server import Door, shut


class Relay(Door):
    """`with Relay(endpoint, path) as relay:` the target is then unix:PATH. `most`: bytes that are carried back to a client at a time,
    each of which waits for `gate` (a threading.Event) to be set. `.carried` bytes went back so far."""

    def __init__(self, endpoint, path, most=1 << 20):
        super().__init__(path)
        self.endpoint = endpoint
        self.most = most
        self.gate = threading.Event()
        self.gate.set()
        self.carried = 0
        self.connections = 0

    def __exit__(self, *ended):
        self.gate.set()
        super().__exit__(*ended)

    def talk(self, client):
        agent = socket.socket(socket.AF_UNIX)
        self.sockets.append(agent)
        try:
            agent.connect(self.endpoint)
        except OSError:
            shut([client])
            return
        self.connections += 1
        threading.Thread(target=self.carry, args=(agent, client, True), daemon=True).start()
        self.carry(client, agent, False)

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
        shut([source, sink])
