# SPDX-License-Identifier: Apache-2.0
"""A client of the Debug Adapter Protocol, as far as an editor that attaches needs it: requests, their answers, and events."""

import json
import socket


class DapClient:
    def __init__(self, port, timeout=60.0, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout)
        self.file = self.socket.makefile("rb")
        self.seq, self.answers, self.events = 0, {}, []

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, command, **arguments):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        return self.seq

    def take(self):
        """Read one message, and keep it for whoever waits for it."""
        length = None
        while True:
            line = self.file.readline()
            if not line:
                raise EOFError("the adapter has closed the connection")
            if line == b"\r\n":
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message = json.loads(self.file.read(length))
        if message["type"] == "response":
            self.answers[message["request_seq"]] = message
        elif message["type"] == "event":
            self.events.append(message)

    def answer(self, seq):
        while seq not in self.answers:
            self.take()
        answer = self.answers.pop(seq)
        assert answer["success"], answer
        return answer.get("body") or {}

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def event(self, name):
        """The body of the next event of that name."""
        while True:
            for event in self.events:
                if event["event"] == name:
                    self.events.remove(event)
                    return event.get("body") or {}
            self.take()

    def attach(self, breakpoints, **more):
        """As an editor does it: breakpoints {path: [line]} are set before the configuration is done. `more`: of its configuration."""
        self.ask("initialize", clientID="probing-tests", adapterID="debugpy", pathFormat="path", linesStartAt1=True, columnsStartAt1=True)
        attached = self.send("attach", justMyCode=False, **more)
        self.event("initialized")
        for path, lines in breakpoints.items():
            points = self.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": n} for n in lines])["breakpoints"]
            assert all(p["verified"] for p in points), points
        self.ask("configurationDone")
        self.answer(attached)

    def locals(self, thread):
        """The name of the innermost frame of a thread that is held, its line, and its local variables."""
        frame = self.ask("stackTrace", threadId=thread)["stackFrames"][0]
        scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
        reference = [s for s in scopes if s["name"] == "Locals"][0]["variablesReference"]
        variables = self.ask("variables", variablesReference=reference)["variables"]
        return frame["name"], frame["line"], {v["name"]: v["value"] for v in variables}
