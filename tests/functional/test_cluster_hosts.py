# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts, which are namespaces here: a script stands in for ssh and runs the relay in one of them."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

from clickhouse import clickhouse_fixture  # noqa: F401 (a fixture)
from test_tui_tmux import screen

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "cluster"))

__all__ = ["screen"]

RANK = """
import os, time
def wait_here():
    open(f"{os.path.dirname(__file__)}/ready.{os.environ['RANK']}", "w").close()
    while True:
        time.sleep(0.2)
wait_here()
"""

STUCK = """
import os, time, torch
from torch import distributed as dist
def stuck():
    while os.path.exists(here + "/hang"):
        time.sleep(0.1)
here = os.path.dirname(os.path.abspath(__file__))
dist.init_process_group("gloo")
rank = dist.get_rank()
ones = torch.ones(4)
for i in range(10**9):
    if rank == 3:
        stuck()
    dist.all_reduce(ones)
    if i == 20:
        open(f"{here}/ready.{rank}", "w").close()
    time.sleep(0.05)
"""

SSH = """#!/bin/sh
host=$1
shift
echo "Welcome to $host"
echo "$host: all use is logged" >&2
pid=$(cat "{folder}/$host.pid") || {{ echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255; }}
PATH="{build}:$PATH" exec nsenter -t "$pid" -p -m -u -- "$@"
"""


# what schedulers and containers have instead of ssh: each takes its own words, and runs the rest on the host
LAUNCHERS = {
    "squeue": 'case "$*" in "-h -o %N -j 4711") echo "n[0-1]" ;; *) exit 9 ;; esac',
    "srun": 'case "$*" in "--jobid=4711 --overlap -N1 -n1 -w n"*) shift 5; exec {ssh} "$@" ;; *) exit 9 ;; esac',
    "kubectl": """case "$*" in
    "get pods --selector app=llama --field-selector status.phase=Running --output jsonpath={{.items[*].metadata.name}}") echo "n0 n1" ;;
    "exec -i n"[01]" -c main -- "*) host=$3; shift 6; exec {ssh} $host "$@" ;;
    "exec -i n"[01]" -- "*) host=$3; shift 4; exec {ssh} $host "$@" ;;
    *) exit 9 ;;
    esac""",
    "docker": 'case "$*" in "exec -i n"*) shift 2; exec {ssh} "$@" ;; *) exit 9 ;; esac',
    "podman": 'case "$*" in "exec -i n"*) shift 2; exec {ssh} "$@" ;; *) exit 9 ;; esac',
}

# the same, and it is known how often each host was reached; $n is the number of this time
COUNTED = """#!/bin/sh
echo >> "{folder}/$1.starts"
n=$(wc -l < "{folder}/$1.starts")
{then}
exec "{ssh}" "$@"
"""

# the same, and it ends when it is asked to load agents
CUT = """#!{python}
import os, subprocess, sys
relay = subprocess.Popen(["{ssh}", *sys.argv[1:]], stdin=subprocess.PIPE)
while data := os.read(0, 65536):
    if b"\\xa6attach" in data:
        sys.exit("the disk of " + sys.argv[1] + " is full")
    relay.stdin.write(data)
    relay.stdin.flush()
"""


def namespaces():
    try:
        return subprocess.run(["unshare", "-pfu", "--mount-proc", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not namespaces(), reason="needs root and namespaces of processes")


class Hosts:
    """Hosts n0, n1, ... with two ranks each."""

    def __init__(self, n, folder, build, python, wait_until, code=RANK, master="10.9.8.7"):
        self.folder, self.processes = folder, []
        script = folder / "rank.py"
        script.write_text(code)
        self.ssh = folder / "ssh"
        self.ssh.write_text(SSH.format(folder=folder, build=build))
        self.ssh.chmod(0o755)
        # not that of another job of this machine: by it a relay outside of the namespaces knows which job a rank is of
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        for host in range(n):
            # agents listen in /tmp by their pids, which are the same on all hosts
            sockets = f"/tmp/probing-{os.getuid()}"
            start = f"hostname n{host}; mkdir -p -m 700 {sockets}; mount -t tmpfs -o mode=700 tmpfs {sockets}; " + "".join(
                f"RANK={2 * host + i} LOCAL_RANK={i} {python} {script} & " for i in range(2)
            )
            env = {
                **os.environ,
                "WORLD_SIZE": str(2 * n),
                "LOCAL_WORLD_SIZE": "2",
                "GROUP_RANK": str(host),
                "MASTER_ADDR": master,
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "MASTER_PORT": port,
            }
            self.processes.append(
                subprocess.Popen(
                    ["unshare", "-pfu", "--mount-proc", "--kill-child", "sh", "-c", start + "wait; sleep 600"], env=env
                )
            )
        try:
            wait_until(lambda: len(list(folder.glob("ready.*"))) == 2 * n, 120)
        except BaseException:
            self.stop()
            raise
        for host, process in enumerate(self.processes):
            (folder / f"n{host}.pid").write_text(str(children_of(process.pid)[0]))
        self.via = f"{self.ssh} {{host}} {{relay}}"

    @staticmethod
    def ranks_of(process):
        """The pids of its ranks, as this namespace numbers them."""
        shell = children_of(process.pid)
        ranks = children_of(shell[0]) if shell else []
        return ranks if len(ranks) == 2 and all(is_python(pid) for pid in ranks) else []

    def counted(self, then=":"):
        """A way to the hosts that counts (starts), and first does what `then` says in the shell."""
        script = self.folder / "counted"
        script.write_text(COUNTED.format(folder=self.folder, ssh=self.ssh, then=then))
        script.chmod(0o755)
        for file in self.folder.glob("*.starts"):
            file.unlink()
        return ["--hosts", "n0,n1", "--via", f"{script} {{host}} {{relay}}"]

    def starts(self, host):
        file = self.folder / f"{host}.starts"
        return len(file.read_text()) if file.exists() else 0

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def relays(self):
        """What reaches the hosts, or runs there beside the ranks; other tests may have relays of their own."""
        spaces = {space_of(children_of(process.pid)[0]) for process in self.processes if children_of(process.pid)}
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.ssh) in line or ("relay --stdio" in line and space_of(pid) in spaces):
                found.append(line)
        return found


def space_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def sleeper(pid):
    """The `sleep` that some process below that one is."""
    for child in children_of(pid):
        if open(f"/proc/{child}/comm").read() == "sleep\n":
            return child
        if found := sleeper(child):
            return found
    return None


def children_of(pid):
    try:
        return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def is_python(pid):
    try:
        return b"rank.py" in open(f"/proc/{pid}/cmdline", "rb").read() and "python" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False


@pytest.fixture
def hosts(tmp_path, build_dir, any_python, wait_until):
    made = Hosts(2, tmp_path, build_dir, any_python, wait_until)
    yield made
    made.stop()


def rows(done):
    return done.ok().json()["rows"]


def test_nodes_and_ranks(hosts, probing, wait_until):
    """All ranks with their hosts; a host that cannot be reached is named; nothing stays behind."""
    nodes = rows(probing("cluster", "nodes", "--hosts", "n[0-1]", "--via", hosts.via, "--json"))
    assert [(r["host"], r["ranks"], r["state"], r["note"]) for r in nodes] == [
        ("n0", "0-1", "ok", None),
        ("n1", "2-3", "ok", None),
    ]
    done = probing("cluster", "ranks", "--hosts", "n0,n1,n2", "--via", hosts.via, "--json")
    assert [(r["rank"], r["host"], r["func"]) for r in rows(done)] == [
        (i, f"n{i // 2}", "wait_here") for i in range(4)
    ]
    assert "partial: no news from n2 (no relay: ssh: connect to host n2 port 22: Connection refused)" in done.stderr
    done = probing("cluster", "stacks", nodes[0]["job"], "--hosts", "n0,n1", "--via", hosts.via)
    assert done.status == 0 and "4 of 4 ranks" in done.stdout and "0-3" in done.stdout, done.stdout + done.stderr
    query = "SELECT host, count(*) AS n FROM cluster.ranks GROUP BY 1 ORDER BY 1"
    done = probing("cluster", "query", query, "--hosts", "n0,n1", "--via", hosts.via, "--json")
    assert [(r["host"], r["n"]) for r in rows(done)] == [("n0", 2), ("n1", 2)]
    wait_until(lambda: not hosts.relays(), 5)


def test_agents(hosts, probing, ptrace, wait_until):
    """Agents into all ranks, a session with one on another host, and the agents out of them."""
    at = ["--hosts", "n0,n1", "--via", hosts.via]
    done = rows(probing("cluster", "attach", *at, "--json", timeout=60))
    assert [(r["rank"], r["host"], r["agent"]) for r in done] == [(i, f"n{i // 2}", "loaded") for i in range(4)]
    done = probing(*at, "job:/3", "dump").ok()
    assert "rank 3" in done.stdout and "wait_here" in done.stdout
    assert probing(*at, "job:/2", "eval", "1 + 1").ok().stdout == "2\n"
    query = "SELECT rank, count(*) AS n FROM python.threads WHERE name = 'MainThread' GROUP BY 1 ORDER BY 1"
    assert [r["rank"] for r in rows(probing(*at, "-t", "job:/1-2", "query", query, "--json"))] == [1, 2]
    done = probing(*at, "job:/7", "dump")
    assert done.status == 3 and "no process of these hosts is rank 7" in done.stderr
    done = rows(probing("cluster", "detach", *at, "--json", timeout=60))
    assert [r["agent"] for r in done] == ["ejected"] * 4
    done = probing(*at, "--readonly", "job:/3", "dump")
    assert done.status == 3 and "has no agent" in done.stderr and "n1: " in done.stderr
    done = probing("--readonly", "cluster", "attach", *at)
    assert done.status == 2 and "--readonly" in done.stderr
    # without that it is loaded on the way
    assert "wait_here" in probing(*at, "job:/3", "dump").ok().stdout
    done = probing("cluster", "attach", "--hosts", "n0,n2", "--via", hosts.via)
    assert done.status == 3 and "nothing was done on n2 (no relay: ssh: connect" in done.stderr
    assert done.stdout.count("loaded") + done.stdout.count("started again") == 2
    wait_until(lambda: not hosts.relays(), 5)


def test_relays_of_a_session(hosts, probing, ptrace, wait_until):
    """The relay with which a rank of another host was found out to be there is that of the session; one that fails later says why."""
    at = hosts.counted()
    done = probing(*at, "job:/3", "dump").ok()
    assert "wait_here" in done.stdout and (hosts.starts("n0"), hosts.starts("n1")) == (1, 2)
    # what the kernel knows is of the rank, not of what leads there
    two = ["-t", "job:/0", "-t", "job:/3"]
    got = rows(probing(*hosts.counted(), *two, "query", "SELECT cmd FROM system.process", "--json"))
    assert len(got) == 2 and all("rank.py" in row["cmd"] for row in got), got
    # each listing takes one relay a host, and each rank one more before any of its tables is read
    at = hosts.counted('[ "$1$n" != n14 ] || { echo "the cable is loose" >&2; exit 255; }')
    done = probing(*at, *two, "query", "SELECT func FROM python.backtrace")
    assert done.status == 3 and "n1: it has ended: the cable is loose" in done.stderr, done.stderr
    wait_until(lambda: not hosts.relays(), 5)


@pytest.mark.long
def test_relays_take_long(hosts, probing, ptrace, wait_until):
    """Where ssh takes longer than an agent may take for an answer."""
    at = hosts.counted("sleep 5")
    assert "wait_here" in probing(*at, "job:/3", "dump", timeout=60).ok().stdout
    query = "SELECT count(DISTINCT pid) AS n FROM python.backtrace WHERE func = 'wait_here'"
    assert rows(probing(*at, "-t", "job:/2", "-t", "job:/3", "query", query, "--json", timeout=90)) == [{"n": 2}]
    wait_until(lambda: not hosts.relays(), 5)


def test_connections_to_a_tunnel(hosts, probing, build_dir, ptrace, tmp_path, wait_until):
    """Who looks whether anybody listens starts no relay; the relay of who leaves ends."""
    probing("cluster", "attach", "--hosts", "n0,n1", "--via", hosts.via, timeout=60).ok()
    at = hosts.counted(f'[ ! -e "{tmp_path}/mute" ] || exec sleep 600')
    with tempfile.TemporaryDirectory(dir="/tmp") as run:
        command = [f"{build_dir}/probing", *at, "job:/3", "flamegraph", "-o", str(tmp_path / "one.svg"), "--duration", "60s"]
        client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, XDG_RUNTIME_DIR=run))
        try:
            wait_until(lambda: hosts.starts("n1") == 2 and any("relay --stdio" in r for r in hosts.relays()), 30)
            (folder,) = wait_until(lambda: os.listdir(run), 10)
            time.sleep(2)  # the session has its relay
            (tmp_path / "mute").touch()

            def connect():
                one = socket.socket(socket.AF_UNIX)
                one.connect(f"{run}/{folder}/sock")
                return one

            for _ in range(20):
                connect().close()
            time.sleep(1)
            assert hosts.starts("n1") == 2
            one = connect()
            one.send(b"GET")
            wait_until(lambda: hosts.starts("n1") == 3, 10)
            pid = wait_until(lambda: sleeper(client.pid), 10)
            one.close()
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5)
        finally:
            client.send_signal(signal.SIGINT)
            client.wait(30)
        wait_until(lambda: not os.listdir(run), 5)


def test_silent_hosts(hosts, probing, ptrace, tmp_path, wait_until):
    """Ranks that are left out because their hosts are silent are said to be, and that one of them may be there."""
    probing("cluster", "attach", "--hosts", "n0,n1", "--via", hosts.via, timeout=60).ok()
    at = ["--hosts", "n0,n2", "--via", hosts.via]
    reason = "no news from n2 (no relay: ssh: connect to host n2 port 22: Connection refused)"
    path = tmp_path / "part.db"
    done = probing("cluster", "record", *at, "-o", str(path), timeout=60).ok()
    assert f"probing: partial: {reason}" in done.stderr, done.stderr
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM system_process").fetchone() == (2,)
    done = probing(*at, "job:/3", "dump")
    assert done.status == 3 and f"no process of these hosts is rank 3; {reason}" in done.stderr, done.stderr
    # one that falls silent when its ranks are known
    broken = '[ "$1" != n1 ] || [ "$n" -eq 1 ] || { echo "the cable is loose" >&2; exit 255; }'
    path = tmp_path / "less.db"
    done = probing("cluster", "record", *hosts.counted(broken), "-o", str(path), timeout=60).ok()
    for rank in (2, 3):
        assert f"rank {rank} (n1: it has ended: the cable is loose)" in done.stderr, done.stderr
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM system_process").fetchone() == (2,)
    done = probing(*hosts.counted(broken), "job:/3", "dump")
    assert done.status == 3 and "n1: it has ended: the cable is loose" in done.stderr, done.stderr
    wait_until(lambda: not hosts.relays(), 5)


def record(build_dir, path, at):
    """A recording of a minute, once it has begun."""
    command = [f"{build_dir}/probing", "cluster", "record", *at, "-o", str(path), "--duration", "60s"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rows_of(path, host):
    """How many seconds of how many of its ranks are recorded."""
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*), count(DISTINCT rank) FROM system_process_history WHERE host = ?", (host,)).fetchone()
    except sqlite3.Error:
        return (0, 0)


def test_recording_to_the_end(hosts, probing, build_dir, ptrace, tmp_path, wait_until):
    """A recording of ranks on other hosts ends with them."""
    probing("cluster", "attach", "--hosts", "n0,n1", "--via", hosts.via, timeout=60).ok()
    path = tmp_path / "all.db"
    client = record(build_dir, path, ["--hosts", "n0,n1", "--via", hosts.via])
    try:
        wait_until(lambda: rows_of(path, "n0")[1] == 2 and rows_of(path, "n1")[1] == 2, 40)
        for pid in [pid for process in hosts.processes for pid in hosts.ranks_of(process)]:
            os.kill(pid, signal.SIGKILL)
        out, err = client.communicate(timeout=25)
        assert client.returncode == 0 and "to the end of the job" in out, out + err
    finally:
        client.kill()
        client.wait()


def test_recording_beside_a_silent_host(hosts, probing, build_dir, ptrace, tmp_path, wait_until):
    """What does not answer any longer keeps neither the others' rows from the recording, nor ^C."""
    probing("cluster", "attach", "--hosts", "n0,n1", "--via", hosts.via, timeout=60).ok()
    path = tmp_path / "some.db"
    at = hosts.counted(f'[ "$1" != n1 ] || [ ! -e "{tmp_path}/mute" ] || exec sleep 600')
    client = record(build_dir, path, at)
    try:
        wait_until(lambda: rows_of(path, "n0")[1] == 2 and rows_of(path, "n1")[1] == 2, 40)
        (tmp_path / "mute").touch()
        space = space_of(children_of(hosts.processes[1].pid)[0])
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if space_of(pid) == space and "relay --stdio" in open(f"/proc/{pid}/cmdline").read().replace("\0", " "):
                os.kill(int(pid), signal.SIGSTOP)
        time.sleep(15)
        began = time.monotonic()
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=60)
        took = time.monotonic() - began
        assert client.returncode == 0 and "wrote" in out, out + err
        assert "the agent on n1 does not answer" in err, err
        assert took < 15, (took, err)
        last, = sqlite3.connect(path).execute("SELECT max(timestamp) FROM system_process_history WHERE host = 'n0'").fetchone()
        assert time.time() - last < took + 5
    finally:
        client.kill()
        client.wait()


@pytest.mark.long
def test_a_host_that_is_silent_from_then_on(hosts, probing, ptrace, tmp_path):
    """Its ranks cost one wait, not one each."""
    probing("cluster", "attach", "--hosts", "n0,n1", "--via", hosts.via, timeout=60).ok()
    began = time.monotonic()
    at = hosts.counted('[ "$1" != n1 ] || [ "$n" -eq 1 ] || exec sleep 600')
    done = probing("cluster", "record", *at, "-o", str(tmp_path / "less.db"), timeout=90).ok()
    assert "rank 2 (n1: it did not answer in time); rank 3 (n1: it did not answer in time)" in done.stderr, done.stderr
    assert time.monotonic() - began < 55


def test_verdict(tmp_path, build_dir, torch_python, wait_until, probing, ptrace):
    """A rank of another host that hangs is named with its line; a host that cannot be reached accuses nobody."""
    made = Hosts(2, tmp_path, build_dir, torch_python, wait_until, STUCK, "127.0.0.1")
    at = ["--hosts", "n0,n1", "--via", made.via]
    try:
        done = probing("cluster", "verdict", *at, "--json", timeout=90).ok().json()
        assert done["verdicts"][0]["code"] == "MOVING" and done["ranks"] == "0-3"
        (tmp_path / "hang").touch()

        def judged():
            verdict = probing("cluster", "verdict", *at, "--wait", "20", "--json", timeout=90).json()["verdicts"][0]
            return verdict if verdict["code"] == "HUNG" else None

        verdict = wait_until(judged, 120)
        assert (verdict["ranks"], verdict["waiting"], verdict["func"]) == ("3", "0-2", "stuck")
        # the same by SQL, beside other tables
        sql = "SELECT v.code, v.ranks, r.host, g.behind FROM cluster.verdicts v JOIN cluster.ranks r ON r.rank = v.ranks JOIN cluster.groups g ON g.pg = v.pg"
        assert rows(probing("cluster", "query", sql, *at, "--json", timeout=90)) == [{"code": "HUNG", "ranks": "3", "host": "n1", "behind": "3"}]
        (tmp_path / "n1.pid").unlink()
        done = probing("cluster", "verdict", *at, "--json", timeout=90)
        assert done.status == 0 and "no news from n1" in done.stderr
        assert all(v["level"] != "bad" and not v["ranks"] for v in done.json()["verdicts"]), done.stdout
    finally:
        made.stop()


def test_verdict_without_agents(hosts, probing, tmp_path, ptrace, wait_until):
    """Where no agent can be loaded the verdict is by stacks, and a line for each host has the reason."""
    at = ["cluster", "verdict", "--hosts", "n0,n1", "--wait", "1"]

    def reasons(via):
        done = probing(*at, "--via", via, timeout=90)
        assert done.status == 0 and done.stdout, done.stdout + done.stderr
        lines = [line for line in done.stderr.splitlines() if "judged by" in line]
        assert len(lines) == 2, done.stderr
        return lines

    cut = tmp_path / "cut"
    cut.write_text(CUT.format(python=sys.executable, ssh=hosts.ssh))
    cut.chmod(0o755)
    lines = reasons(f"{cut} {{host}} {{relay}}")
    for host, line in zip(("n0", "n1"), lines):
        assert line.startswith(f"probing: {host}: no agent could be loaded, and its ranks are judged by their stacks: "), line
        assert f"the disk of {host} is full. Try: probing cluster attach job:" in line, line
        assert line.endswith(f"--hosts {host}"), line
    # a relay that has just ended is a child there for a moment
    ranks = wait_until(lambda: all(map(hosts.ranks_of, hosts.processes)) and [pid for process in hosts.processes for pid in hosts.ranks_of(process)], 10)
    assert len(ranks) == 4
    for pid in ranks:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all("T (stopped)" in open(f"/proc/{pid}/status").read() for pid in ranks))
    lines = reasons(hosts.via)
    assert all(
        line.startswith(f"probing: n{i}: 2 ranks have no agent, and are judged by their stacks: rank {2 * i}: process ") and "kill -CONT" in line
        for i, line in enumerate(lines)
    ), lines


def test_ranks_that_start_again(hosts, probing, build_dir, any_python, ptrace, tmp_path, wait_until):
    """A query that goes on has the ranks that are there now, and takes none of them for another host's."""
    gone = hosts.ranks_of(hosts.processes[1])[1]
    space = (tmp_path / "n1.pid").read_text()
    env = dict(item.split("=", 1) for item in open(f"/proc/{gone}/environ").read().split("\0") if "=" in item)
    os.kill(gone, signal.SIGKILL)
    query = "SELECT count(DISTINCT rank) AS n FROM python.backtrace WHERE func = 'wait_here'"
    command = [f"{build_dir}/probing", "cluster", "query", "--hosts", "n0,n1", "--via", hosts.via, "--watch", "1s", "--format", "csv", query]
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        client = subprocess.Popen(command, stdout=out, stderr=err)
    again = None
    try:
        wait_until(lambda: (tmp_path / "out").read_text().count("3\n") > 1, 60)
        inside = ["nsenter", "-t", space, "-p", "-m", "-u", "--", any_python, str(tmp_path / "rank.py")]
        again = subprocess.Popen(inside, env=env)
        wait_until(lambda: "4\n" in (tmp_path / "out").read_text(), 30)
        assert "not its own" not in (tmp_path / "err").read_text()
    finally:
        client.send_signal(signal.SIGINT)
        client.wait(30)
        if again:
            again.kill()
            again.wait()


def test_launchers(hosts, probing, tmp_path, monkeypatch):
    """Each name that --via takes starts the relay by its program's own words; Slurm and Kubernetes know the hosts."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in LAUNCHERS.items():
        (programs / name).write_text("#!/bin/sh\n" + text.format(ssh=hosts.ssh) + "\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for words in (
        ["--slurm", "4711"],
        ["--k8s", "app=llama"],
        ["--k8s", "app=llama", "--container", "main"],
        ["--hosts", "n[0-1]", "--via", "kubectl"],
        ["--hosts", "n[0-1]", "--via", "docker"],
        ["--hosts", "n[0-1]", "--via", "podman"],
    ):
        done = probing("cluster", "ranks", *words, "--json")
        found = [(r["rank"], r["host"], r["func"]) for r in rows(done)]
        assert found == [(i, f"n{i // 2}", "wait_here") for i in range(4)], (words, done.stderr)


def test_hostfile(hosts, probing, tmp_path):
    (tmp_path / "hosts").write_text("# both\nn0 slots=2\nn1:2\n")
    nodes = rows(probing("cluster", "nodes", "--hostfile", str(tmp_path / "hosts"), "--via", hosts.via, "--json"))
    assert [r["host"] for r in nodes] == ["n0", "n1"]


def test_refusals(hosts, probing):
    def refused(text, *words, status=2):
        done = probing("cluster", "nodes", *words)
        assert done.status == status and text in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1

    refused("letters, digits", "--hosts", "a;b")
    refused("a ']' is missing", "--hosts", "a[1")
    refused("begins with a letter", "--hosts=-oProxyCommand=x")
    refused("cannot read the hosts of /none", "--hostfile", "/none")
    refused("has no {host}", "--hosts", "a", "--via", "shh")
    refused("give --slurm JOB", "--hosts", "a", "--via", "srun")
    refused("--k8s takes the labels of the job's pods", "--k8s", "")
    refused("--via is for other hosts", "--via", "ssh")
    refused("no such program", "--hosts", "a", "--via", "/none/ssh {host} {relay}", status=3)
    refused("not a process of a job on this host", "job:1", "--hosts", "a", "--via", hosts.via)
    refused("no job is named 'other.py'", "job:other.py", "--hosts", "n0,n1", "--via", hosts.via, status=3)


def test_killed(hosts, probing, wait_until, build_dir):
    """Whoever is killed, client, link or relay: no relay stays, and the ranks do not notice."""
    command = [f"{build_dir}/probing", "cluster", "stacks", "--hosts", "n0,n1", "--via", hosts.via, "-d", "600"]
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len([r for r in hosts.relays() if "relay --stdio" in r]) >= 2, 30)
        before = [hosts.ranks_of(p) for p in hosts.processes]
        client.send_signal(signal.SIGKILL)
        client.wait()
        wait_until(lambda: not hosts.relays(), 5)
        wait_until(lambda: [hosts.ranks_of(p) for p in hosts.processes] == before, 10)  # one that starts a child has it for a moment
    finally:
        client.kill()
        client.wait()


def test_screen(hosts, probing_top):
    done = probing_top("--export", "txt", "--screen", "ranks", "--hosts", "n0,n1", "--via", hosts.via)
    assert done.status == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "wait_here" in line and " n" in line]
    assert sorted((line[0], line[1]) for line in lines) == [(str(i), f"n{i // 2}") for i in range(4)], done.stdout


def test_screen_without_a_host(hosts, probing_top):
    """One that has never answered is named with the reason, in the picture and beside it."""
    why = "no relay: ssh: connect to host n2 port 22: Connection refused"
    for format, screen in (("txt", "ranks"), ("json", "ranks"), ("json", "stacks")):
        done = probing_top("--export", format, "--screen", screen, "--hosts", "n0,n1,n2", "--via", hosts.via).ok()
        assert f"probing-top: partial: no news from n2 ({why})" in done.stderr, done.stderr
        if format == "json":
            assert done.json()["silent_hosts"] == [{"host": "n2", "reason": why}]
        else:
            assert f"no news from n2: {why}" in done.stdout and "2/3 hosts" in done.stdout, done.stdout


def test_open_on_the_screen(hosts, screen, probing_top, ptrace, wait_until):
    """A rank of another host opens in the screens, and the ones after it; what led to the one before ends then, and with the program all."""
    s = screen(120, 30)
    with tempfile.TemporaryDirectory(dir="/tmp") as run:
        s.shell(f"XDG_RUNTIME_DIR={run} {probing_top.path} job: --hosts n0,n1 --via '{hosts.via}'; echo status=$?")
        s.wait_for("4/4 ranks")
        s.keys("End", "Enter")
        s.wait_for("Stack of MainThread")
        s.wait_for("wait_here")
        (first,) = os.listdir(run)
        s.type("[")
        s.wait_for("rank 2 of 4")
        s.type("[")
        s.wait_for("rank 1 of 4")
        wait_until(lambda: first not in os.listdir(run) and len(os.listdir(run)) == 1, 10)
        s.type("q")
        s.type("q")
        s.wait_for("status=0")
        wait_until(lambda: not hosts.relays() and not os.listdir(run), 10)


@pytest.fixture
def writers(hosts, build_dir, tmp_path):
    """Starts a relay on each host that writes to a server."""
    started = []

    def start(url, job):
        for name in ("n0", "n1"):
            pid = (hosts.folder / f"{name}.pid").read_text()
            words = ["nsenter", "-t", pid, "-p", "-m", "-u", "--", f"{build_dir}/probing", "relay", "--to", url, "--job", job]
            env = dict(os.environ, XDG_STATE_HOME=str(tmp_path / name))  # the state of a relay belongs to its host
            started.append(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    yield start
    for one in started:
        one.kill()
        one.wait()


def test_a_rank_of_a_database_opens(hosts, writers, clickhouse, screen, probing, probing_top, ptrace, wait_until):
    """The ranks come from a server, and the one that is opened by a link to its host."""
    probing("cluster", "init", clickhouse.url()).ok()
    writers(clickhouse.url(), "far")
    wait_until(lambda: clickhouse.ask("SELECT uniqExact(rank) FROM probing.ranks WHERE job = 'far'") == [["4"]], 60)
    s = screen(120, 30)
    s.shell(f"{probing_top.path} '{clickhouse.url(job='far')}' --via '{hosts.via}'; echo status=$?")
    s.wait_for("4/4 ranks")
    s.keys("End", "Enter")
    s.wait_for("Stack of MainThread", timeout=30)
    s.wait_for("wait_here")
    s.type("[")
    s.wait_for("rank 2 of 4")
    s.type("[")
    s.wait_for("rank 1 of 4")
    s.type("p")
    s.wait_for("4/4 ranks")
    s.type("q")
    s.wait_for("status=0")
