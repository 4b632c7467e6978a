#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Within a bare Debian, as root: installs the tarball, the wheel or the .deb that lies beside it, uses it on a job, removes it, and compares
which files there are before and after. Run by tools/matrix_install.sh. Any Python from 3.9 on will do."""

import glob
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import fcntl

HERE = os.path.dirname(os.path.abspath(__file__))
UID = 1000
HOME = "/home/someone"
ENV = HOME + "/env"
JOB = """
import threading, time
def wait_for_nothing():
    threading.Event().wait()
def count_in_circles():
    while True:
        sum(range(1000))
threading.Thread(target=wait_for_nothing, daemon=True).start()
print("ready", flush=True)
count_in_circles()
"""
# What the package manager keeps about what it did.
NOT_OURS = ("/proc", "/dev", "/sys", "/mnt", "/tmp", "/run", "/var/lib/dpkg", "/var/log", "/var/cache", "/etc/ld.so.cache")


class Failed(Exception):
    pass


def become(user):
    def change():
        if user:
            os.setgroups([])
            os.setgid(UID)
            os.setuid(UID)
    return change


def run(*command, user=True, check=True, timeout=120):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=become(user),
                          cwd=HOME, env=dict(os.environ, HOME=HOME), timeout=timeout, check=False)
    text = done.stdout.decode("utf-8", "replace")
    if check and done.returncode:
        raise Failed("%s: exit status %d:\n%s" % (" ".join(command), done.returncode, text))
    return text


def want(text, *words):
    for word in words:
        if word not in text:
            raise Failed("%r is not in:\n%s" % (word, text))


def files():
    found = set()
    for folder, folders, names in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in NOT_OURS]
        found.update(os.path.join(folder, name) for name in names + folders)
    return found


def tables():
    return set(glob.glob("/dev/shm/probing-%d/*" % UID))


class Job:
    def __init__(self, python, **environment):
        self.process = subprocess.Popen([python, "-c", JOB], stdout=subprocess.PIPE, preexec_fn=become(True), cwd=HOME,
                                        env=dict(os.environ, HOME=HOME, **environment))
        self.process.stdout.readline()
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def screen(program, pid, word, timeout=30):
    """The program in a terminal of its own: on the screen of threads, until the word is drawn; then q."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            become(True)()
            os.chdir(HOME)
            os.environ["HOME"] = HOME
            os.execv(program, [program, pid])
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.kill(child, signal.SIGWINCH)
    seen, end, asked, left, gone = b"", time.monotonic() + timeout, False, False, 0
    try:
        while not gone and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:  # it has closed the terminal
                    time.sleep(0.05)
            if seen and not asked:
                asked = True
                os.write(terminal, b"2")
            if word in seen and not left:
                left = True
                os.write(terminal, b"q")
            gone, status = os.waitpid(child, os.WNOHANG)
    finally:
        if not gone:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(terminal)
    if not left:
        raise Failed("the screen never showed %r:\n%r" % (word, seen[-2000:]))
    if not gone or status != 0:
        raise Failed("the screen did not end well by q: %s" % (status if gone else "it goes on"))


def relay_of(probing):
    beside = os.path.dirname(probing)
    return next(path for path in (beside + "/probing-relay", beside + "/../lib/probing/probing-relay") if os.path.exists(path))


def use(top, probing, python):
    want(run(top, "--version"), "probing-top ", "commit ", "glibc 2.17")
    want(run(probing, "--version"), "probing ", "SQLite")
    want(run(relay_of(probing), "--stdio"), "probing.v1 relay")
    with Job(python) as job:
        want(run(probing, job.pid, "inject"), "")
        want(run(probing, job.pid, "backtrace"), "count_in_circles", "wait_for_nothing")
        want(run(probing, job.pid, "backtrace", "--native"), "count_in_circles")
        screen(top, job.pid, b"count_in_circles")
        want(run(top, "--export", "txt", "--once", job.pid), "count_in_circles")
        want(run(top, "--info"), "nord", "themes")
        run(top, "--export", "folded", "--duration", "1s", "-o", HOME + "/out.folded", job.pid)
        with open(HOME + "/out.folded", encoding="utf-8") as file:
            want(file.read(), "count_in_circles")
        os.unlink(HOME + "/out.folded")
        want(run(probing, job.pid, "query", "SELECT count(*) AS n, sqrt(16.0) AS root FROM python.backtrace"), "4")
        want(run(probing, job.pid, "eval", "print(6 * 7)"), "42")
        run(probing, job.pid, "eject")
        with open("/proc/%s/task/%s/status" % (job.pid, job.pid), encoding="utf-8") as file:
            want(file.read(), "State:\tR")
        if job.process.poll() is not None:
            raise Failed("the job has ended")
    with Job(python) as job:
        want(run(probing, job.pid, "backtrace", "--no-inject"), "count_in_circles")


def use_from_the_start(probing, python):
    with Job(python, PROBING="1") as job:
        want(run(probing, job.pid, "status"), "loaded by", "probing.pth")
        run(probing, job.pid, "eject")


def only(pattern):
    found = glob.glob(os.path.join(HERE, pattern))
    if len(found) != 1:
        raise Failed("%s: %d files" % (pattern, len(found)))
    return found[0]


def tarball():
    run("tar", "-xf", only("*-linux.tar.gz"))
    folder = glob.glob(HOME + "/probing-top-*")[0]
    use(folder + "/probing-top", folder + "/probing", "/usr/bin/python3")
    run("rm", "-r", folder)


def wheel():
    """In a virtual environment, or in the conda-like Python at the same place."""
    run(ENV + "/bin/python3", "-m", "pip", "-q", "--no-cache-dir", "--disable-pip-version-check", "install", "--no-index",
        only("*.whl"))
    try:
        use(ENV + "/bin/probing-top", ENV + "/bin/probing", ENV + "/bin/python3")
        use_from_the_start(ENV + "/bin/probing", ENV + "/bin/python3")
    finally:
        run(ENV + "/bin/python3", "-m", "pip", "-q", "--disable-pip-version-check", "uninstall", "-y", "probing-top")


def deb():
    run("dpkg", "-i", only("*.deb"), user=False)
    try:
        use("/usr/bin/probing-top", "/usr/bin/probing", "/usr/bin/python3")
    finally:
        run("dpkg", "--purge", "probing-top", user=False)


def main():
    kind = sys.argv[1]
    shutil.rmtree(HOME, ignore_errors=True)
    os.makedirs(HOME)
    os.chown(HOME, UID, UID)
    with open("/etc/passwd", encoding="utf-8") as file:
        known = "someone:" in file.read()
    if not known:
        with open("/etc/passwd", "a", encoding="utf-8") as file:
            file.write("someone:x:%d:%d::%s:/bin/sh\n" % (UID, UID, HOME))
    if kind == "wheel":
        run("/usr/bin/python3", "-m", "venv", ENV)
    elif kind == "conda":
        run("cp", "-r", os.path.join(HERE, "conda"), ENV)
    if kind in ("wheel", "conda"):
        run(ENV + "/bin/python3", "-m", "pip", "--version")
    before = files()
    before_tables = tables()
    try:
        {"tarball": tarball, "wheel": wheel, "conda": wheel, "deb": deb}[kind]()
        left = sorted(files() - before)
        # pip and python write what they compiled of themselves when they first run.
        left = [path for path in left if "__pycache__" not in path or "probing" in path]
        if left:
            raise Failed("%d files are left: %s" % (len(left), " ".join(left[:20])))
    except Failed as failed:
        print("matrix-install: %s: %s" % (kind, failed))
        return 1
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
    with open("/etc/os-release", encoding="utf-8") as file:
        system = [line.split("=")[1].strip().strip('"') for line in file if line.startswith("PRETTY_NAME")]
    print("matrix-install: %s: the %s installed, used and removed; tables left in /dev/shm: %d"
          % (system[0], {"conda": "wheel in a conda-like Python"}.get(kind, kind), len(tables() - before_tables)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
