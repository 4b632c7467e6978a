# SPDX-License-Identifier: Apache-2.0
"""probing-top on a pseudo terminal: every way it can end gives the terminal back and leaves the job alone."""

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import termios
import threading
import time

import pytest


class Terminal:
    """probing-top as the child of a pseudo terminal; what it writes is collected when asked for."""

    def __init__(self, command, env=None, rows=24, columns=80):
        self.output = b""
        self.ended = None
        gate, opened = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for name in ("NO_COLOR", "LINES", "COLUMNS"):
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})})
            # The settings a shell would have left behind, and the size, before the program starts.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.read(gate, 1)  # until the settings have been looked at
            os.execv(command[0], command)
        self.before = termios.tcgetattr(self.fd)
        os.write(opened, b"x")
        os.close(gate)
        os.close(opened)

    def read(self, timeout=0.05):
        if select.select([self.fd], [], [], timeout)[0]:
            try:
                self.output += os.read(self.fd, 65536)
            except OSError:  # the other end is closed
                return False
        return True

    def wait_until(self, holds, what, timeout=20, paints=False):
        """`paints`: the whole screen, now and then: of a text that is like what was there before only the other letters are written."""
        deadline, paint = time.monotonic() + timeout, time.monotonic() + 3
        while not holds():
            if paints and time.monotonic() > paint:
                self.type("\x0c")
                paint += 3
            assert time.monotonic() < deadline, f"{what} did not come; there was {self.output[-2000:]!r}"
            if not self.read():
                assert holds(), f"it ended without {what}: {self.output[-2000:]!r}"

    def wait_for(self, text, timeout=20, after=0, paints=False):
        self.wait_until(lambda: text.encode() in self.output[after:], repr(text), timeout, paints)

    def wait_for_stack(self, thread="MainThread", timeout=20):
        """Threads is shown with the stack of that thread ("": of any)."""
        self.wait_for(f"Stack of {thread}", timeout, paints=True)

    def type(self, text):
        os.write(self.fd, text.encode())

    def poll(self):
        if self.ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.ended = status if pid else None
        return self.ended

    def wait(self, timeout=20, reading=True):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            assert time.monotonic() < deadline, "it did not end"
            if reading:
                self.read(0.02)
            else:
                time.sleep(0.02)
        while reading and select.select([self.fd], [], [], 0)[0] and self.read(0):
            pass
        return self.ended

    def assert_restored(self):
        """The last word about every mode is off, and the settings are those from before."""
        for on, off in ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[?2026h", b"\x1b[?2026l")):
            assert self.output.rfind(off) > self.output.rfind(on) >= 0, (on, self.output[-300:])
        assert self.output.rfind(b"1000l") > self.output.rfind(b"1000h")
        assert self.output.rfind(b"\x1b[?25h") > self.output.rfind(b"\x1b[?25l")
        assert termios.tcgetattr(self.fd) == self.before

    def close(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def terminal(probing_top):
    opened = []

    def start(*args, **options):
        opened.append(Terminal([probing_top.path, "--screen", "threads", *map(str, args)], **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_quit(terminal, plain_training, ptrace):
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    t.type("q")
    assert os.WEXITSTATUS(t.wait()) == 0
    t.assert_restored()
    assert plain_training.state() in "RSD"


@pytest.mark.parametrize("term", ["vt100", "linux"])
def test_quit_without_a_second_screen(terminal, plain_training, ptrace, term):
    """What follows does not begin in the line with our keys."""
    t = terminal(plain_training.pid, env={"TERM": term})
    t.wait_for_stack()
    t.type("q")
    assert os.WEXITSTATUS(t.wait()) == 0
    assert b"\x1b[?1049" not in t.output and b"\r\n" in t.output[t.output.rfind(b"\x1b[24;1H"):], t.output[-200:]
    assert termios.tcgetattr(t.fd) == t.before


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_that_end(terminal, plain_training, ptrace, sig):
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    os.kill(t.pid, sig)
    assert os.WEXITSTATUS(t.wait()) == 0
    t.assert_restored()
    assert plain_training.state() in "RSD"


@pytest.mark.parametrize("sig", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGQUIT])
def test_crashes(terminal, plain_training, ptrace, sig):
    """A crash restores the terminal, says so, and is still seen as that crash by the parent."""
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    os.kill(t.pid, sig)
    status = t.wait()
    t.assert_restored()
    assert b"it crashed; the terminal is restored" in t.output
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == sig
    step = plain_training.counter()
    deadline = time.monotonic() + 20
    while plain_training.counter() == step:
        assert time.monotonic() < deadline, "the training stopped"
        time.sleep(0.05)


def test_keyboard_interrupt_is_a_key(terminal, plain_training, ptrace):
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    t.type("/abc")
    t.wait_for("Search:")
    t.type("\x03")  # cancels the search
    t.wait_for("Threads ")
    t.type("?")
    t.wait_for("shows all keys")
    assert t.poll() is None
    t.type("\x03")
    assert os.WEXITSTATUS(t.wait()) == 0
    t.assert_restored()


def test_terminal_that_reads_nothing(terminal, plain_training, ptrace):
    """Nobody reads for a while: it goes on, takes SIGTERM at once, and the job does not notice."""
    t = terminal(plain_training.pid, "-d", "50ms", rows=50, columns=200)
    t.wait_for_stack()
    step = plain_training.counter()
    deadline = time.monotonic() + 30
    while plain_training.counter() < step + 20:  # the terminal is not read meanwhile
        assert time.monotonic() < deadline
        t.type("w")
        time.sleep(0.05)
    assert t.poll() is None
    os.kill(t.pid, signal.SIGTERM)
    assert os.WEXITSTATUS(t.wait(reading=False)) == 0


def test_terminal_that_goes_away(terminal, plain_training, ptrace, wait_until):
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    master = t.fd
    t.fd = os.open("/dev/null", os.O_RDWR)
    os.close(master)
    wait_until(lambda: t.poll() is not None, 20, "the end after a hang-up")
    assert plain_training.state() in "RSD"


def test_killed(terminal, plain_training, ptrace, wait_until):
    """Even SIGKILL leaves the job running, and the next one connects."""
    t = terminal(plain_training.pid)
    t.wait_for_stack()
    os.kill(t.pid, signal.SIGKILL)
    t.wait()
    step = plain_training.counter()
    wait_until(lambda: plain_training.counter() > step, 20, "a further step")
    again = terminal(plain_training.pid)
    again.wait_for_stack()


def test_no_colour(terminal, plain_training, ptrace):
    """NO_COLOR: not one colour is asked for. --color wins over it."""
    plain = terminal(plain_training.pid, env={"NO_COLOR": "1"})
    plain.wait_for_stack()
    assert b"\x1b[38;5;" not in plain.output and b"\x1b[3" + b"1m" not in plain.output and b"\x1b[48;5;" not in plain.output
    coloured = terminal(plain_training.pid, "--color=always", env={"NO_COLOR": "1"})
    coloured.wait_for_stack()
    assert b"\x1b[38;5;" in coloured.output


def test_ascii(terminal, plain_training, ptrace):
    for t in (terminal(plain_training.pid, "--ascii"), terminal(plain_training.pid, env={"LC_ALL": "C"})):
        t.wait_for_stack()
        assert all(byte < 0x80 for byte in t.output)


def test_theme_with_mistakes(terminal, plain_training, tmp_path, ptrace):
    """What is wrong in a theme is said with its line, and the screen opens all the same."""
    theme = tmp_path / "mine.theme"
    theme.write_text("inherit = light\n[roles]\nno.such.role = red\ntext = #zzz\n")
    t = terminal("--theme", theme, plain_training.pid)
    t.wait_for_stack()
    assert f"{theme}:3: unknown role 'no.such.role'".encode() in t.output
    assert f"{theme}:4: bad colour '#zzz'".encode() in t.output


def test_user_theme_by_name(terminal, plain_training, tmp_path, ptrace):
    folder = tmp_path / "probing-top" / "themes"
    folder.mkdir(parents=True)
    (folder / "mine.theme").write_text("[roles]\nfooter.label = 201 202\n")
    t = terminal("--theme", "mine", plain_training.pid, env={"XDG_CONFIG_HOME": str(tmp_path)})
    t.wait_for("Quit")
    t.wait_for_stack()
    assert b"48;5;202m" in t.output


@pytest.mark.parametrize("env, args, status, text", [
    ({"TERM": "dumb"}, ["--no-mouse"], 1, "cannot place the cursor"),
    ({"TERM": "no-such-type"}, [], 1, "not known here"),
    ({"TERM": ""}, [], 1, "TERM is not set"),
    ({}, ["--theme", "no-such-theme"], 2, "no theme 'no-such-theme'"),
    ({}, ["--color", "pink"], 2, "--color takes"),
    ({}, ["-d", "soon"], 2, "--delay takes"),
    ({}, ["4194399"], 3, "4194399"),
])
def test_refusals(terminal, env, args, status, text):
    """One line, the right exit status, and not one byte to the terminal but that."""
    t = terminal(*args, env=env)
    assert os.WEXITSTATUS(t.wait()) == status
    assert t.output.startswith(b"probing-top: ") and t.output.count(b"\n") == 1, t.output
    assert text in t.output.decode()
    assert b"\x1b" not in t.output


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n" * 50, None], ids=["nothing", "garbage", "closes"])
def test_something_else_listens(terminal, tmp_path, answer):
    """A socket that is not an agent's: the terminal comes back with one line."""
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(8)

        def serve():
            held = []
            while True:
                try:
                    peer = server.accept()[0]
                except OSError:
                    return
                if answer is None:
                    peer.close()
                    continue
                try:
                    peer.sendall(answer)
                except OSError:
                    pass
                held.append(peer)

        threading.Thread(target=serve, daemon=True).start()
        t = terminal(f"unix:{path}")
        assert os.WEXITSTATUS(t.wait()) in (1, 3)
        last = t.output.split(b"\x1b[0m")[-1].rsplit(b"probing-top: ", 1)
        assert len(last) == 2 and str(path).encode() in last[1] and last[1].count(b"\n") == 1, t.output[-500:]
        assert termios.tcgetattr(t.fd) == t.before
        server.shutdown(socket.SHUT_RDWR)
