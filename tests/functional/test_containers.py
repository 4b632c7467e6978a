# SPDX-License-Identifier: Apache-2.0
"""Jobs in namespaces and roots of their own: attached to from outside as any other, or refused with the reason."""

import glob
import os
import shlex
import shutil
import signal
import subprocess

import pytest

from conftest import inject_in_time, wait_until

# The job is given as text: what it sees of the file system is made up.
JOB = """
import os, threading, time
def in_the_container():
    os.write(int(os.environ["READY_FD"]), b"%d\\n" % os.getpid())
    while True:
        time.sleep(0.01)
in_the_container()
"""

BUSY = """
import os
def in_the_container():
    os.write(int(os.environ["READY_FD"]), b"%d\\n" % os.getpid())
    while True:
        sum(range(100))
in_the_container()
"""

HIDE_TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp"
READ_ONLY = "for d in {}; do mount -t tmpfs -o ro tmpfs $d; done"

# A root made of the machine's own folders, but for those that are left out; read-only, as a container's.
NEW_ROOT = """
root={root}
mount -t tmpfs tmpfs $root
for d in /*; do
    case $d in {without}) continue;; esac
    if [ -L $d ]; then cp -P $d $root$d
    elif [ -d $d ]; then mkdir $root$d; mount --rbind $d $root$d
    fi
done
{more}
mount -o remount,ro $root
"""


# A root that is another system, with C library and Python of its own, as make matrix has them.
OTHER_SYSTEM = """
root={root}
mount --rbind $root $root
mount -t proc proc $root/proc
mount -t tmpfs tmpfs $root/dev
for d in null urandom; do touch $root/dev/$d; mount --bind /dev/$d $root/dev/$d; done
{more}
mount -o remount,bind,ro $root
"""
OWN_SHM = "mkdir $root/dev/shm; mount -t tmpfs tmpfs $root/dev/shm"
OWN_TMP = "mount -t tmpfs tmpfs $root/tmp"
NO_TMP = "mount -t tmpfs -o ro tmpfs $root/tmp"


class Container:
    """A job in namespaces of its own; pid as we see it."""

    def __init__(self, process, pid, inner_pid):
        self.process = process
        self.pid = pid
        self.inner_pid = inner_pid


def child_of(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    if not os.path.exists(path):
        pytest.skip("needs children: the kernel does not list them in /proc")
    return lambda: [int(word) for word in open(path, encoding="ascii").read().split()]


@pytest.fixture
def container(any_python, tmp_path):
    """container(options, setup, root=None): a job under `unshare OPTIONS`, after the shell commands of `setup`."""
    started = []
    unshare = shutil.which("unshare")

    def start(options, setup="", root=None, uid=None, job_python=None, source=JOB):
        options = options.split()
        if not unshare or subprocess.run([unshare, *options, "true"], capture_output=True).returncode != 0:
            pytest.skip(f"needs namespaces: unshare {' '.join(options)} is not allowed")
        python = " ".join(map(shlex.quote, (job_python or any_python, "-c", source)))
        where = f"chroot {root} " if root else ""
        script = f"set -e\n{setup}\ncd /\nexec {where}{python}\n"
        reader, writer = os.pipe()
        with open(tmp_path / "output.txt", "wb") as out:
            process = subprocess.Popen([unshare, *options, "sh", "-c", script], pass_fds=(writer,), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out, start_new_session=True, user=uid,
                                       env=dict(os.environ, READY_FD=str(writer), PYTHONDONTWRITEBYTECODE="1"))
        started.append(process)
        os.close(writer)
        with os.fdopen(reader) as answer:
            line = answer.readline()
        if not line:
            said = (tmp_path / "output.txt").read_text(encoding="utf-8", errors="replace")
            if "mount:" in said or "permission denied" in said.lower():
                pytest.skip(f"needs mounts: {said.strip().splitlines()[-1]}")
            pytest.fail(said)
        pid = process.pid
        if "-f" in options:
            pid = wait_until(child_of(process.pid), 10, "the process in its pid namespace")[0]
        return Container(process, pid, int(line))

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def check_all(probing, job):
    """Injected, listed, looked at, ejected, and injected again."""
    injected = inject_in_time(probing, job.pid)
    assert not injected["already"]
    rows = {row["pid"]: row for row in probing("list", "--json").ok().json()["processes"]}
    assert rows[job.pid]["agent"] is True
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "agent" and document["target"]["pid"] == job.inner_pid
    main = document["threads"][0]
    assert main["tid"] == job.inner_pid
    assert any(frame["func"] == "in_the_container" for frame in main["frames"])
    outside = probing(str(job.pid), "backtrace", "--json", "--no-inject").ok().json()
    assert outside["target"]["mode"] == "readonly" and outside["threads"][0]["tid"] == job.inner_pid
    probing(str(job.pid), "eject").ok()
    wait_until(lambda: not any(thread.startswith("probing-") for thread in names(job.pid)), 10, "the agent to leave")
    assert inject_in_time(probing, job.pid)["reused"]
    assert job.process.poll() is None
    folder = os.path.dirname(injected["endpoint"])
    probing(str(job.pid), "eject").ok()
    wait_until(lambda: not os.path.exists(injected["endpoint"]), 10, f"the socket in {folder} to be gone")
    return injected


def names(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as comm:
                found.append(comm.read().strip())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("options, setup", [
    ("-m", HIDE_TMP),
    ("-n", ""),
    ("-i -u", ""),
    ("-p -f --mount-proc", ""),
    ("-m -n -p -f --mount-proc", HIDE_TMP),
    ("-U -r", ""),
    ("-U -r -m -n -p -f --mount-proc", HIDE_TMP),
], ids=["mount", "network", "ipc", "pid", "all-but-user", "user", "all"])
def test_namespaces(container, probing, ptrace, options, setup):
    job = container(options, setup)
    if "-p" in options.split():
        assert job.inner_pid != job.pid
    check_all(probing, job)


def test_from_inside_and_from_outside(container, probing, ptrace):
    """Whoever puts it in from inside the container has other numbers there, for the job and for itself; outside it is found."""
    nsenter = shutil.which("nsenter")
    if not nsenter:
        pytest.skip("needs nsenter: not installed")
    job = container("-m -n -p -f --mount-proc")
    enter = [nsenter, "-t", str(job.pid), "-m", "-n", "-p", probing.path]
    answers = []

    def inside(*args):
        return subprocess.run([*enter, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    def injected():
        answers.append(inside(str(job.inner_pid), "inject", "--timeout", "30s"))
        assert answers[-1].returncode == 0 or "overloaded" in answers[-1].stderr or "try again" in answers[-1].stderr, answers
        return answers[-1].returncode == 0
    wait_until(injected, 60, "the agent")
    seen = inside(str(job.inner_pid), "backtrace")
    assert seen.returncode == 0 and "in_the_container" in seen.stdout, seen
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    assert (document["target"]["mode"], document["target"]["pid"]) == ("agent", job.inner_pid)
    assert inject_in_time(probing, job.pid)["already"]
    probing(str(job.pid), "eject").ok()
    wait_until(lambda: not any(thread.startswith("probing-") for thread in names(job.pid)), 10, "the agent to leave")
    assert job.process.poll() is None


def test_a_user_namespace_of_another_user(container, probing, ptrace, any_python):
    """Rootless: root in there is nobody out here, and we are root."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a job of another user")
    nobody = 65534
    for python in (any_python, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        try:
            if python and subprocess.run([python, "-c", "pass"], user=nobody, capture_output=True).returncode == 0:
                break
        except OSError:
            continue
    else:
        pytest.skip("needs python: one that other users may run")
    job = container("-U -r", uid=nobody, job_python=python)
    number = os.stat(f"/proc/{job.pid}/ns/user").st_ino
    check_all(probing, job)
    # Its user 0 is not root: what it makes where they share a /tmp and a /dev/shm bears another name than what root's jobs make there.
    assert not [path for path in ("/tmp/probing-0", "/dev/shm/probing-0") if os.path.exists(path) and os.stat(path).st_uid == nobody]
    inject_in_time(probing, job.pid)
    asked = [str(job.pid), "query", "SELECT key, value FROM probing.facts", "--format", "csv"]
    wait_until(lambda: "agent," in probing(*asked).ok().stdout, 10, "the agent's facts")
    while_alive = probing(*asked).ok().stdout
    rings = [path for path in (f"/dev/shm/probing-0-{number}", f"/tmp/probing-0-{number}") if os.path.exists(path)]
    assert len(while_alive.splitlines()) > 2 and rings
    os.kill(job.pid, signal.SIGKILL)
    job.process.wait()
    try:
        assert probing(*asked).ok().stdout == while_alive, "the tables of a dead job"
    finally:
        for left in (*rings, *glob.glob(f"/tmp/probing-0-{number}-*")):
            shutil.rmtree(left)


def test_another_root(container, probing, ptrace, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    job = container("-m", NEW_ROOT.format(root=root, without="/tmp", more="mkdir $root/tmp; mount -t tmpfs tmpfs $root/tmp"), root)
    injected = check_all(probing, job)
    assert "/root/tmp/probing-" in injected["endpoint"]


def test_no_tmp_and_a_read_only_root(container, probing, ptrace, tmp_path):
    """The agent listens in the next place that can be written to."""
    root = tmp_path / "root"
    root.mkdir()
    job = container("-m", NEW_ROOT.format(root=root, without="/tmp", more=""), root)
    injected = check_all(probing, job)
    assert "/root/dev/shm/probing-" in injected["endpoint"]


def test_no_dev_shm(container, probing, ptrace, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    more = "mkdir $root/dev $root/tmp; cp -a /dev/null /dev/urandom $root/dev/; mount -t tmpfs tmpfs $root/tmp"
    check_all(probing, container("-m", NEW_ROOT.format(root=root, without="/tmp|/dev", more=more), root))


def test_nowhere_to_listen(container, probing, ptrace):
    """Nothing can be made anywhere: the agent is refused, and the job is read from outside."""
    job = container("-m", READ_ONLY.format("/tmp /dev/shm /var/tmp /run"))
    done = probing(str(job.pid), "inject", "--timeout", "20s", timeout=60)
    assert done.status == 3 and done.stderr.count("\n") == 1
    assert "the agent could not start" in done.stderr and "Read-only file system" in done.stderr
    wait_until(lambda: not any(name.startswith("probing-") for name in names(job.pid)), 10, "our threads to be gone")
    document = probing(str(job.pid), "backtrace", "--json").ok().json()
    assert document["target"]["mode"] == "readonly" and "Read-only" in document["target"]["mode_reason"]
    assert job.process.poll() is None


def other_systems():
    """(root, path of a Python in it): $PROBING_TEST_ROOTS is ROOT=PYTHON:ROOT=PYTHON (make matrix)"""
    return [tuple(entry.split("=")) for entry in os.environ.get("PROBING_TEST_ROOTS", "").split(":") if entry]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("options", ["-m -n -p -f", "-U -r -m -n -p -f"], ids=["root", "user"])
@pytest.mark.parametrize("more, place", [(OWN_TMP, "/tmp/"), (NO_TMP + "\n" + OWN_SHM, "/dev/shm/"), (OWN_SHM + "\n" + OWN_TMP, "/tmp/")],
                         ids=["no-dev-shm", "no-tmp", "both"])
def test_another_system(container, probing, ptrace, options, more, place):
    """Another C library, older or newer than ours, in all namespaces; what of it can be written to differs."""
    if not other_systems():
        pytest.skip("needs roots: PROBING_TEST_ROOTS names none")
    for root, python in other_systems():
        job = container(options, OTHER_SYSTEM.format(root=root, more=more), root, job_python=python)
        assert job.inner_pid != job.pid
        injected = check_all(probing, job)
        assert f"/root{place}probing-" in injected["endpoint"]


def test_samples_of_another_system(container, probing, probing_top, ptrace):
    """A thread that computes is asked for its stack, in that C library."""
    if not other_systems():
        pytest.skip("needs roots: PROBING_TEST_ROOTS names none")
    for root, python in other_systems():
        job = container("-m -n -p -f", OTHER_SYSTEM.format(root=root, more=OWN_TMP), root, job_python=python, source=BUSY)
        inject_in_time(probing, job.pid)
        folded = probing_top("--export", "folded", "--duration", "500ms", str(job.pid)).ok().stdout
        assert "in_the_container (" in folded
        assert probing(str(job.pid), "status", "--json").ok().json()["sampler"]["signals_sent"] > 0
        probing(str(job.pid), "eject").ok()
        assert job.process.poll() is None
