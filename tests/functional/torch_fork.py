# SPDX-License-Identifier: Apache-2.0
"""Jobs with torch that begin at once. Importing it takes seconds of a processor, and some 125 tests begin so: one process of each of
pytest's workers imports it, and forks for each job (tests/targets/torch_fork.py).

Such a job is what it would be otherwise, with a session, descriptors, environment and __main__ of its own. Its command line, in /proc, is that of
the process that forked, which also has to be asked how it has ended.
"""

import json
import os
import signal
import socket
import subprocess
import time

from conftest import ROOT

PADDING = 16384  # room for the environment of a job
ENV = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore::FutureWarning", "PROBING_TEST_PADDING": "x" * PADDING}


class TorchFork:
    """The process that has imported torch."""

    def __init__(self, python):
        self.door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([python, os.path.join(ROOT, "tests", "targets", "torch_fork.py"), str(other.fileno())],
                                        stdin=subprocess.DEVNULL, pass_fds=[other.fileno()], env=dict(os.environ, **ENV), start_new_session=True)
        other.close()

    def ask(self, fds=(), **what):
        socket.send_fds(self.door, [json.dumps(what).encode()], list(fds))
        answer = self.door.recv(65536)
        assert answer, "the process that forks jobs with torch has ended"
        return json.loads(answer)

    def start(self, argv, env, out, ready):
        """A process like one of subprocess: `out` and `ready` are descriptors, env is all of it."""
        return Forked(self, self.ask([out, ready], argv=[str(a) for a in argv], env=env))

    def cpu(self):
        """Seconds of a processor that it has taken, and those that it has forked."""
        return self.ask(cpu=True)

    def close(self):
        self.door.close()
        self.process.wait()


class Forked:
    """What tests use of subprocess.Popen."""

    def __init__(self, fork, pid):
        self.fork, self.pid, self.returncode = fork, pid, None

    def poll(self):
        if self.returncode is None:
            self.returncode = self.fork.ask(ended=self.pid)
        return self.returncode

    def wait(self, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)
