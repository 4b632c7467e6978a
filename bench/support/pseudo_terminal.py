# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo terminal of its own, whose output somebody reads."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

ROWS, COLUMNS = 50, 160


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, *command):
        self.started = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execv(command[0], command)

    def read(self, seconds):
        """What is written until nothing comes for so long."""
        out = b""
        while select.select([self.fd], [], [], seconds)[0]:
            out += os.read(self.fd, 1 << 16)
        return out

    def drain(self, seconds):
        """Read on for so long: a program that cannot write stands still. How many pictures were painted meanwhile."""
        until, pictures = time.monotonic() + seconds, 0
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                pictures += os.read(self.fd, 1 << 16).count(b"\x1b[?2026h")
        return pictures

    def wait_for(self, text, seconds=30):
        """Read until a text was written; what was, up to it."""
        out, until = b"", time.monotonic() + seconds
        while text not in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", out):
            if not select.select([self.fd], [], [], max(0, until - time.monotonic()))[0]:
                raise SystemExit(f"bench: {text!r} did not come in {seconds} seconds")
            out += os.read(self.fd, 1 << 16)
        return out

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        self.type("q")
        try:
            self.drain(1)
        except OSError:  # it has ended
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)
