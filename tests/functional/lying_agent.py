# SPDX-License-Identifier: Apache-2.0
"""An agent that lies: what it says is what a test gives it, whatever is asked. It is a process of its own, of another user where the test
is root, and listens where its agent would: so `probing PID` takes it for one.

    LyingAgent(path, answers)                 in this process: answers is a dict by method
    with lying_process(answers, env) as job:  as a process: job.pid, job.endpoint, job.uid; @PID@ in a text is its pid"""

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import threading

import pytest

from agent_wire import BINARY, PING, PONG, pack, unpack
from fake_agent import FakeAgent
from unix_server import Door, served_as_agent

NOBODY = 65534
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"


class LyingAgent(FakeAgent):
    def __init__(self, path, answers):
        Door.__init__(self, path)  # there is nothing of the other's to be sent
        self.answers = {"subscribe": {}, "unsubscribe": {}, "arm": {}, "disarm": {}, **answers}
        self.asked = []

    def talk(self, client):
        try:
            stream, lock = client.makefile("rb"), threading.Lock()
            self.handshake(client, stream)
            while True:
                opcode, payload = self.frame(stream)
                if opcode == PING:
                    self.send(client, lock, payload, PONG)
                if opcode == BINARY:
                    self.answer(client, lock, *unpack(payload)[1:4])
        except (OSError, ValueError, struct.error):
            pass

    def answer(self, client, lock, number, method, params):
        self.asked.append(method)
        result = self.answers.get(method)
        error = self.answers.get("error", {"code": 3, "message": "no"}) if result is None else None
        self.send(client, lock, pack([1, number, error, result]))


def as_nobody(command):
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, command)]


class LyingProcess:
    def __init__(self, process, uid):
        self.process, self.pid, self.uid = process, process.pid, uid
        self.endpoint = f"/tmp/probing-{uid}/{process.pid}.sock"


@contextlib.contextmanager
def lying_process(answers, env=None):
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv: not installed")
    if not os.path.exists(PYTHON) or subprocess.run(as_nobody([PYTHON, __file__, "--version"]), capture_output=True, check=False).returncode:
        pytest.skip("needs systempython: there is no python3 that nobody may run here")
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    with subprocess.Popen(as_nobody([PYTHON, __file__]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                          env=dict(os.environ, **(env or {}))) as process:
        try:
            process.stdin.write(json.dumps(answers) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
            yield LyingProcess(process, uid)
        finally:
            process.stdin.close()  # its end is the sign to leave
            process.wait(timeout=30)


def main():
    if sys.argv[1:] == ["--version"]:
        return
    answers = json.loads(sys.stdin.readline().replace("@PID@", str(os.getpid())))
    with served_as_agent(LyingAgent, answers):
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    main()
