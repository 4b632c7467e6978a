# SPDX-License-Identifier: Apache-2.0
"""A real browser without a window, told what to do over its own debugging pipe; nothing but the standard library.

    with Browser(tmp_path) as browser:
        browser.open("file:///...")
        browser.evaluate("document.title")
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEADLINE_S = 60.0
# Becomes the browser, with what it was given as 3 and 4.
PLUMB = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"


def find_browser():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Chromium speaks JSON messages, each ended by a NUL, on descriptors 3 (to it) and 4 (from it)."""

    def __init__(self, folder, *more):
        """`more`: options of its command line."""
        program = find_browser()
        if not program:
            pytest.skip("needs browser: no chromium")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # Out of the way of 3 and 4, which PLUMB makes of them.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to_read, back_write)]
        arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--disable-extensions", "--window-size=1240,800", f"--user-data-dir={folder}/browser",
                     "--remote-debugging-pipe", *more, "about:blank"]
        self.log = open(f"{folder}/browser.log", "w+b")
        self.process = subprocess.Popen([sys.executable, "-c", PLUMB, *map(str, theirs), *arguments],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=theirs,
                                        start_new_session=True, env=dict(os.environ, HOME=str(folder)))
        for fd in (to_read, back_write, *theirs):
            os.close(fd)
        self.rest = b""
        self.messages = 0
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for fd in (self.to, self.back):
            os.close(fd)
        self.log.close()

    def receive(self, deadline):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(self.back, 1 << 16) if ready else b""
            if not more:
                self.log.seek(0)
                pytest.fail(f"the browser {'ended' if ready else 'does not answer'}: {self.log.read()[-2000:]!r}")
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.messages += 1
        message = {"id": self.messages, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.messages:
                assert "error" not in answer, answer
                return answer["result"]

    def send(self, method, **params):
        """Without waiting for its answer; the number of that."""
        self.messages += 1
        os.write(self.to, json.dumps({"id": self.messages, "method": method, "params": params, "sessionId": self.session}).encode() + b"\0")
        return self.messages

    def open_as(self, url, html):
        """Open a page of ours as if it had come from there: nothing is asked of that place."""
        self.call("Fetch.enable", patterns=[{"urlPattern": url}])
        waits = {self.send("Page.navigate", url=url)}
        deadline = time.monotonic() + DEADLINE_S
        while waits:
            message = self.receive(deadline)
            if message.get("method") == "Fetch.requestPaused":
                waits.add(self.send("Fetch.fulfillRequest", requestId=message["params"]["requestId"], responseCode=200, body=base64.b64encode(html.encode()).decode(),
                                    responseHeaders=[{"name": "content-type", "value": "text/html"}]))
            assert "error" not in message, message
            waits.discard(message.get("id"))
        self.call("Fetch.disable")
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}", url)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression, what):
        deadline = time.monotonic() + DEADLINE_S
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.05)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}", url)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def key(self, key, ctrl=False, code=None):
        event = {"key": key, "code": code or key, "modifiers": 2 if ctrl else 0}
        if len(key) == 1 and not ctrl:
            event["text"] = key
        if key == "Enter":
            event.update(text="\r", windowsVirtualKeyCode=13)
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        self.call("Input.insertText", text=text)
