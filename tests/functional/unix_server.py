# SPDX-License-Identifier: Apache-2.0
"""A unix socket on which a test listens: what Relay and FakeAgent have in common."""

import contextlib
import os
import socket
import threading


def shut(sockets):
    """Whoever waits for them wakes up."""
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Door:
    """`with Door(path) as served:` each client that comes is handed to .talk(), on a thread of its own; .target leads there."""

    def __init__(self, path):
        self.path = str(path)
        self.target = "unix:" + self.path
        self.sockets = []  # of clients, and what else is to be closed in the end

    def __enter__(self):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        shut([self.listening, *self.sockets])
        for one in [self.listening, *self.sockets]:
            one.close()

    def serve(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            self.sockets.append(client)
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client):
        raise NotImplementedError


@contextlib.contextmanager
def served_as_agent(kind, *args):
    """A socket of this kind, where the agent of this process would listen."""
    folder = f"/tmp/probing-{os.geteuid()}"
    path = f"{folder}/{os.getpid()}.sock"
    os.umask(0o077)
    with contextlib.ExitStack() as stack:
        while True:
            os.makedirs(folder, exist_ok=True)
            # another one that leaves removes the empty folder, perhaps at this very time
            with contextlib.suppress(FileNotFoundError):
                stack.enter_context(kind(path, *args))
                break
        os.chmod(path, 0o600)
        yield
        os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
