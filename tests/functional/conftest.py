# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the functional tests: the programs under test, Pythons to run targets with, and targets.

Nothing sleeps to synchronise: a target says that it is ready on a pipe, everything else is polled with a deadline.
A test that needs something absent is skipped with "needs CAPABILITY: why" (see tests/run).

    target(source_or_path, *args, python=..., ready=...)   starts a job, waits until it is ready, ends it after the test
    probing(*args) / probing_top(*args)                    runs a program with a time limit
    wait_until(predicate, timeout=10, what="...")          polls
    python_for("3.9"), any_python, torch_python            interpreters
"""

import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MINORS = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
DEFAULT_TEST_TIMEOUT = 90
OFTEN_S, SELDOM_S = 0.02, 0.25  # between two looks of those that wait: for a moment less than the first, for long the second
CAP_SYS_PTRACE = 19


# --- time -------------------------------------------------------------------------------------------------------

def wait_until(predicate, timeout=10.0, what="the condition", interval=0.02):
    """Polls until predicate() is true and returns what it returned; fails the test after `timeout` seconds. The longer it has waited, the more
    seldom it looks, unless it is for a moment that soon goes by: others want the processor."""
    began = time.monotonic()
    while True:
        value = predicate()
        if value:
            return value
        waited = time.monotonic() - began
        if waited >= timeout:
            pytest.fail(f"waited {timeout:g} s in vain for {what}")
        time.sleep(interval if interval < OFTEN_S else max(interval, min(waited / 10, SELDOM_S)))


@pytest.fixture(name="wait_until")
def wait_until_fixture():
    return wait_until


def long_but(short, cases):
    """Values of one parameter: those that are not among `short` are long."""
    return [pytest.param(case, marks=[] if case in short else [pytest.mark.long]) for case in cases]


def pytest_configure(config):
    config.addinivalue_line("markers", "timeout(seconds): the longest this test may take")
    config.addinivalue_line("markers", "long: many rounds or many jobs; tests/run runs it with --long only")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Ends a test that takes too long, as a failure of that test alone."""
    marker = item.get_closest_marker("timeout")
    seconds = marker.args[0] if marker else DEFAULT_TEST_TIMEOUT

    def give_up(signum, frame):
        pytest.fail(f"the test took longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


# --- what tests take ----------------------------------------------------------------------------------------------

# They take minutes (tests/run says how much at its end), and begin first, the longest at the beginning: otherwise one worker of pytest has them
# still before it when the others are done.
LONGEST = ("liars_targets", "liars_bombs", "gpu", "cluster_verdict", "relay_to", "cluster_many_hosts", "docs_pages", "cluster", "thread_timers",
           "training_steps", "faults", "training_values", "steps", "training_losses", "verdict", "docs_agent", "profiler", "gc", "liars_paths",
           "liars_silent", "memory_trace", "nonfinite", "report", "slow_steps", "numbers", "modules_trace", "torture", "pause", "catch_fatal",
           "tensors_freed", "tensors", "training_loaders", "training_screens", "training_first_look", "training_checkpoints", "training_queries",
           "training_verdicts", "inject_kill", "seed_commands", "verb_examples", "steps_screen", "timeline_screen", "liars_soak", "outside_block",
           "bench", "race", "waits")

# These wait most of their time, for time limits of the product, and compare no times: tests/run runs them beside the others.
WAITING = {f"test_{name}" for name in (
    "agent_peers", "catch", "children", "cli_bad_input", "cli_trace", "cluster", "cluster_engine", "cluster_hosts", "cluster_many_hosts",
    "cluster_ras", "cluster_stacks", "cluster_verdict", "collectives", "debug", "debug_screen", "docs_agent", "failing", "frame_vars_reuse", "gc",
    "http", "idle_threads", "inject_process", "inject_together", "liars_bombs", "liars_browser", "liars_endpoints", "liars_paths", "liars_read_only",
    "liars_silent", "liars_soak", "liars_symbols", "liars_targets", "memory_growth", "memory_screen", "memory_trace", "modules_trace", "numbers",
    "outside_read", "packages", "process_groups", "profiler", "progress", "protocol_abuse", "questions", "ranks_screen", "record", "relay_to",
    "report", "seed_commands", "slow_steps", "starting_targets", "steps_screen", "tasks", "tcp_listener", "text", "tour", "tui_others", "tui_pty",
    "verb_examples", "verdict", "waits", "ws_conformance")}


def pytest_collection_modifyitems(config, items):
    pool, passed = os.environ.get("PROBING_TEST_POOL"), os.environ.get("PROBING_TEST_EXCEPT")
    if passed:
        with open(passed, encoding="utf-8") as file:
            names = set(file.read().splitlines())
        leave_out(config, items, lambda item: f"{item.fspath.purebasename}: {item.name}" in names)
    if pool:
        leave_out(config, items, lambda item: (item.fspath.purebasename in WAITING) != (pool == "waiting"))
    place = {f"test_{name}": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.fspath.purebasename, len(place)))


def leave_out(config, items, condition):
    """What tests/run runs elsewhere, or what has passed elsewhere (--except)."""
    out = [item for item in items if condition(item)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in set(out)]


@pytest.fixture(autouse=True)
def cpu(request):
    """tests/run tells it."""
    before = cpu_seconds()
    yield
    request.node.user_properties.append(("cpu", f"{cpu_seconds() - before:.2f}"))


def cpu_seconds():
    """What this process has taken of a processor, its children that have ended, and jobs with torch."""
    return sum(os.times()[:4]) + (torch_forks[0].cpu() if torch_forks else 0.0)


def read_all(fd):
    """What comes from a descriptor, of a terminal for example, until the other end is closed. Closes it."""
    text = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # of a terminal: the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(fd)
    return text


# --- where agents keep their tables -------------------------------------------------------------------------------

@pytest.fixture(scope="session", autouse=True)
def data_dir():
    """Tables of all jobs of the tests: jobs that are killed leave them behind."""
    path = tempfile.mkdtemp(prefix="probing-tables-")
    before = os.environ.get("PROBING_DATA_DIR")
    os.environ["PROBING_DATA_DIR"] = path
    yield path
    if before is None:
        del os.environ["PROBING_DATA_DIR"]
    else:
        os.environ["PROBING_DATA_DIR"] = before
    shutil.rmtree(path, ignore_errors=True)


# --- the programs under test ------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def source_dir():
    return ROOT


@pytest.fixture(scope="session")
def build_dir():
    return os.path.abspath(os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))


class Result:
    """How a program ended: status, stdout, stderr, seconds."""

    def __init__(self, command, status, stdout, stderr, seconds):
        self.command = command
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds

    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            pytest.fail(f"{self} printed no JSON: {error}")

    def ok(self):
        """Itself, if the program ended well."""
        assert self.status == 0, f"{self} ended with {self.status}"
        return self

    def __repr__(self):
        return f"<{' '.join(self.command)}: status {self.status}, stdout {self.stdout[:2000]!r}, stderr {self.stderr[:2000]!r}>"


def run_command(command, timeout=30.0, stdin=None, env=None, cwd=None):
    started = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(os.environ, **(env or {})),
        cwd=cwd,
    )
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"{' '.join(map(str, command))} did not end within {timeout:g} s; stdout {out!r}, stderr {err!r}")
    return Result([str(part) for part in command], process.returncode, out, err, time.monotonic() - started)


def program_runner(build_dir, name):
    path = os.path.join(build_dir, name)

    def run(*args, timeout=30.0, **options):
        if not os.path.exists(path):
            pytest.fail(f"{path} is not built")
        return run_command([path, *args], timeout, **options)

    run.path = path
    return run


@pytest.fixture(scope="session")
def probing(build_dir):
    """Runs build/probing with a time limit: probing("list", "--json").ok().json()"""
    return program_runner(build_dir, "probing")


@pytest.fixture(scope="session")
def probing_top(build_dir):
    """Runs build/probing-top with a time limit."""
    return program_runner(build_dir, "probing-top")


def processes_about(word):
    """Pids of our programs that run with this word on their command line."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]) in (b"probing", b"probing-top") and os.fsencode(str(word)) in words:
            found.append(int(number))
    return found


def inject_in_time(probing, pid):
    """What `probing PID inject --json` says. A machine that is very busy refuses for want of time, and says so: try again. So does a test elsewhere
    whose job is process 1 of a container, too."""
    answer, refused = [], []

    def tried():
        done = probing(str(pid), "inject", "--json", "--timeout", "30s", timeout=60)
        refused[:] = [done.stderr.strip()]
        assert done.status == 0 or any(why in done.stderr for why in ("overloaded", "try again", "a container with the same /tmp")), done
        answer.extend([done.json()] if done.status == 0 else [])
        return answer
    try:
        return wait_until(tried, 150, f"the agent in process {pid}")[0]
    except pytest.fail.Exception as e:
        pytest.fail(f"{e}: {refused}")


def hold_without_waits_us(pid, hold_us):
    """A longest hold of the GIL, which is measured by the clock: one of up to 20 ms without the time that its thread has waited for a CPU."""
    if 2000 < hold_us <= 20000:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as comm, open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as stat:
                if comm.read() == "probing-py\n":
                    return hold_us - int(stat.read().split()[1]) / 1000
    return hold_us


def attach_in_time(probing, *words):
    """`probing cluster attach WORDS`, until it says neither that the machine is too busy nor to try again: what it did then."""
    done = []

    def tried():
        done[:] = [probing("cluster", "attach", *words, timeout=90)]
        return done[0].status == 0 or "try again" not in done[0].stderr
    wait_until(tried, 150, f"all ranks of {words} to be attached to")
    return done[0].ok()


# --- interpreters -----------------------------------------------------------------------------------------------

def identify(path):
    """(minor version, real path) of an interpreter, or None. A shim answers for what it starts."""
    try:
        done = subprocess.run(
            [path, "-c", "import sys; print('%d.%d %s' % (sys.version_info[0], sys.version_info[1], sys.executable))"],
            capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.strip().split(" ", 1)
    return (words[0], words[1]) if done.returncode == 0 and len(words) == 2 else None


@pytest.fixture(scope="session")
def pythons():
    """Interpreters by minor version: $PROBING_TEST_PYTHONS (separated by ':'), then PATH, then pyenv's."""
    found = {}
    for path in os.environ.get("PROBING_TEST_PYTHONS", "").split(":"):
        known = identify(path) if path else None
        if known:
            found.setdefault(known[0], path)  # itself, not what it starts: that may be inside another root
    candidates = [shutil.which(f"python{minor}") for minor in MINORS]
    candidates += [shutil.which("python3"), "/usr/bin/python3"]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")))
    for path in candidates:
        known = identify(path) if path and os.path.exists(path) else None
        if known:
            found.setdefault(known[0], known[1])
    return found


@pytest.fixture(scope="session")
def python_for(pythons):
    """python_for("3.9") is the path of such an interpreter; skips where there is none."""
    def find(minor):
        if minor not in pythons:
            pytest.skip(f"needs py{minor}: no such Python found")
        return pythons[minor]
    return find


@pytest.fixture(params=MINORS)
def each_python(request, python_for):
    """The test runs once for every supported minor version."""
    return python_for(request.param)


@pytest.fixture(scope="session")
def any_python(pythons):
    """Some supported interpreter: $PROBING_TEST_ANY_PYTHON, else the newest up to 3.11 if there is one, as most jobs run."""
    if os.environ.get("PROBING_TEST_ANY_PYTHON"):
        return os.environ["PROBING_TEST_ANY_PYTHON"]
    for minor in ("3.11", "3.10", "3.12", "3.13", "3.9", "3.14", "3.15", "3.8", "3.7", "3.6"):
        if minor in pythons:
            return pythons[minor]
    pytest.skip("needs python: no Python 3.6 to 3.15 found")


def is_free_threaded(path):
    """Was it built to run without a GIL?"""
    ask = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    return subprocess.run([path, "-c", ask], capture_output=True, text=True, check=True, timeout=60).stdout.strip() == "1"


def has_torch(path):
    try:
        return subprocess.run([path, "-c", "import torch"], capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.fixture(scope="session")
def torch_python():
    """An interpreter with torch: $PROBING_TEST_TORCH_PYTHON, $PYTHON or python3."""
    for path in (os.environ.get("PROBING_TEST_TORCH_PYTHON"), os.environ.get("PYTHON"), shutil.which("python3")):
        if path and has_torch(path):
            return path
    pytest.skip("needs torch: no Python with torch found")


torch_forks = []  # one, as soon as a test wants it


@pytest.fixture(scope="session")
def torch_fork(torch_python):
    """What forks jobs with torch (torch_fork.py)."""
    from torch_fork import TorchFork
    torch_forks.append(TorchFork(torch_python))
    yield torch_forks[0]
    torch_forks.pop().close()


# --- what this machine allows -----------------------------------------------------------------------------------

def effective_capabilities():
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        return int(re.search(r"^CapEff:\s*([0-9a-f]+)", status.read(), re.M).group(1), 16)


@pytest.fixture(scope="session")
def ptrace():
    """Skips where one process may not trace another of the same user."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as scope:
            level = int(scope.read())
    except OSError:
        level = 0
    if level >= 3 or (level and not effective_capabilities() & (1 << CAP_SYS_PTRACE)):
        pytest.skip(f"needs ptrace: kernel.yama.ptrace_scope is {level}")


@pytest.fixture(scope="session")
def tmux():
    path = shutil.which("tmux")
    if not path:
        pytest.skip("needs tmux: not installed")
    return path


# --- targets ----------------------------------------------------------------------------------------------------

class Target:
    """A running job of ours: pid, ready (what it wrote when it was ready), process, output()."""

    def __init__(self, process, command, out_path):
        self.process = process
        self.pid = process.pid
        self.command = command
        self.out_path = out_path
        self.ready = None

    def output(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as out:
            return out.read()

    def alive(self):
        return self.process.poll() is None

    def state(self):
        """The kernel's letter for the process (R, S, D, T, t, Z), or None when it is gone."""
        return process_state(self.pid)

    def tids(self):
        return sorted(int(tid) for tid in os.listdir(f"/proc/{self.pid}/task"))

    def thread_names(self):
        names = {}
        for tid in self.tids():
            try:
                with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as comm:
                    names[tid] = comm.read().rstrip("\n")
            except OSError:
                continue
        return names

    def fds(self):
        """What its descriptors are, by number."""
        links = {}
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                links[int(fd)] = os.readlink(f"/proc/{self.pid}/fd/{fd}")
            except OSError:
                continue
        return links

    def end(self):
        """Ends the job and what it started (it leads a process group of its own)."""
        # When it has been waited for, another process may have its number by now, unless somebody of its group is left.
        if self.process.returncode is None or not os.path.exists(f"/proc/{self.pid}"):
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def process_state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


def read_ready_line(fd, target, timeout):
    """The line a target writes to $READY_FD; fails if it ends or is silent instead."""
    deadline = time.monotonic() + timeout
    data = b""
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            pytest.fail(f"{target.command} was not ready within {timeout:g} s; it printed {target.output()!r}")
        chunk = os.read(fd, 65536)
        if not chunk:
            pytest.fail(f"{target.command} ended before it was ready; it printed {target.output()!r}")
        data += chunk
    return data.split(b"\n", 1)[0].decode("utf-8", "replace")


def wait_for_output(target, pattern, timeout):
    def look():
        if not target.alive():
            pytest.fail(f"{target.command} ended before it was ready; it printed {target.output()!r}")
        return re.search(pattern, target.output())
    return wait_until(look, timeout, f"{pattern!r} in the output of {target.command}").group(0)


def ended_by_itself(status):
    """Was it neither a good end nor one that a test brings about? A test may mean its job to: asked only of one that failed."""
    return status not in (None, 0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)


def running_targets(any_python, tmp_path, request):
    """Factory of running jobs, which end when it is asked to go on: see the fixture `target`."""
    started = []

    def start(source, *args, python=None, fork=None, ready=None, env=None, name=None, timeout=60.0, flags=()):
        script = str(source)
        if "\n" in script or not os.path.exists(script):
            script = str(tmp_path / (name or f"target_{len(started)}.py"))
            with open(script, "w", encoding="utf-8") as file:
                file.write(str(source))
        command = [python or any_python, *flags, script, *map(str, args)]
        out_path = str(tmp_path / f"output_{len(started)}.txt")
        reader, writer = os.pipe()
        try:
            with open(out_path, "wb") as out:
                env = dict(os.environ, READY_FD=str(writer), PYTHONUNBUFFERED="1", **(env or {}))
                process = fork.start([script, *args], env, out.fileno(), writer) if fork else subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(writer,), start_new_session=True, env=env)
            os.close(writer)
            writer = -1
            job = Target(process, command, out_path)
            job.script = script
            started.append(job)
            job.ready = wait_for_output(job, ready, timeout) if ready else read_ready_line(reader, job, timeout)
            return job
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)

    yield start
    for job in started:
        if not job.alive():  # what a failed test is to be told
            status = job.process.poll()
            print(f"process {job.pid} has ended: {status}; its output: {job.output()[-4000:]}")
            if ended_by_itself(status):  # tests/run then gives the test no second try
                request.node.user_properties.append(("harm", f"process {job.pid} had ended: {status}"))
        job.end()


@pytest.fixture
def target(any_python, tmp_path, request):
    """Factory of running jobs.

    target(source, *args): source is a path to a script, or Python text, which is written to a file. The job writes a
    line to the descriptor in $READY_FD when it is ready: os.write(int(os.environ["READY_FD"]), b"ready\\n"); the line is
    in .ready. For a program that knows nothing of this, ready="step +10 " waits for a pattern in its output instead.
    Options: python=PATH, fork=torch_fork (torch is there at once), env={...}, name=FILE-NAME of the written script, timeout=SECONDS,
    flags=[interpreter options].
    """
    yield from running_targets(any_python, tmp_path, request)


@pytest.fixture
def training(target, torch_python, tmp_path):
    """The example training job, running; .counter() is the number of steps it has finished."""
    counter = tmp_path / "steps"
    job = target(os.path.join(ROOT, "examples", "train.py"), "--counter", counter, python=torch_python,
                 ready=r"step +\d+ ", timeout=120.0)
    job.counter = lambda: read_counter(counter)
    return job


@pytest.fixture
def plain_training(target, tmp_path):
    """The training job without torch, running; .counter() as above."""
    counter = tmp_path / "plain_steps"
    job = target(os.path.join(ROOT, "examples", "train_plain.py"), "--counter", counter, ready=r"step +\d+ ")
    job.counter = lambda: read_counter(counter)
    return job


def read_counter(path):
    with open(path, encoding="ascii") as file:
        return int(file.read())
