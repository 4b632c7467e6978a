# SPDX-License-Identifier: Apache-2.0
"""What all ranks of a job do: their stacks merged, the tables cluster.*, and the relay that reads them, which a rank may block, a user kill,
and anybody talk to."""

import os
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from agent_wire import Unpacker, pack
from conftest import attach_in_time, wait_until
from test_cluster import claim, nodes, ranks, refused, rows, torchrun  # noqa: F401
from test_liars_targets import MAPS_SLOW, slow  # noqa: F401

pytestmark = pytest.mark.timeout(240)

STANDS = """
import os, threading
never = threading.Event()
def arrive():
    never.wait()
def fetch():
    never.wait()
def main():
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    fetch() if os.environ["RANK"] == "2" else arrive()
main()
"""
ARRIVE, FETCH, CALL = 5, 7, 10  # lines of it


@pytest.fixture
def job(claim, target):  # noqa: F811
    """Four ranks, of which one stands elsewhere; the job's name, and their processes."""
    made = [claim(rank, 4, name="train.py", source=STANDS) for rank in range(4)]
    wait_until(lambda: made and all(open(f"/proc/{one.pid}/stat").read().rsplit(") ", 1)[1][0] == "S" for one in made), 30, "ranks that wait")
    return str(made[0].pid), made


def stacks(probing, name, *more):
    return rows(probing("cluster", "stacks", name, "--json", *more, timeout=60))


def test_stacks(job, probing, tmp_path):
    name, made = job
    rare, many = stacks(probing, name)
    assert (rare["n"], rare["ranks"], rare["func"], rare["lineno"], rare["is_majority"]) == (1, "2", "fetch", FETCH, 0)
    assert (many["n"], many["ranks"], many["func"], many["lineno"], many["is_majority"]) == (3, "0-1,3", "arrive", ARRIVE, 1)
    assert rare["class_id"] != many["class_id"] and rare["since_s"] > 0
    assert many["stack"].startswith(f"<module> (train.py:11);main (train.py:{CALL});arrive (train.py:{ARRIVE})") and "Event.wait" in many["stack"]

    shown = probing("cluster", "stacks", name, timeout=60).ok().stdout.splitlines()
    assert re.fullmatch(r"job train\.py-\w+: 4 of 4 ranks, 2 samples, at \d\d:\d\d:\d\d", shown[0])
    text = "\n".join(shown)
    assert re.search(rf"^ +4  0-3 +<module> train\.py:11 > main train\.py:{CALL}$", text, re.M), text
    assert re.search(rf"^ +3  0-1,3 +\w* +> arrive train\.py:{ARRIVE} > \S*\.?wait.*\(majority\)$", text, re.M), text
    assert re.search(rf"^ +1  2 +\w* +> fetch train\.py:{FETCH} > ", text, re.M), text

    folded = probing("cluster", "stacks", name, "--format", "folded", "-d", "0s", timeout=60).ok().stdout.splitlines()
    assert len(folded) == 4 and folded[2].startswith(f"rank 2;<module> (train.py:11);main (train.py:{CALL});fetch (train.py:{FETCH});")
    assert all(line.endswith(" 1") for line in folded)
    picture = tmp_path / "stacks.svg"
    probing("cluster", "stacks", name, "--format", "svg", "-o", picture, timeout=60).ok()
    assert all(f"rank {rank}" in picture.read_text() for rank in range(4))


def test_states(job, probing):
    """A rank that is stopped keeps its stack; one that is killed has none, and is a line of its own."""
    name, made = job
    os.kill(made[1].pid, signal.SIGSTOP)
    by_rank = {row["rank"]: row for row in ranks(probing, name)}
    assert {rank: row["doing"] for rank, row in by_rank.items()} == {0: "waits", 1: "stopped", 2: "waits", 3: "waits"}
    assert by_rank[2]["where"].endswith(f" < fetch (train.py:{FETCH})") and by_rank[2]["since_s"] > 0 and by_rank[2]["step"] is None
    assert [row["ranks"] for row in stacks(probing, name, "-d", "0s")] == ["2", "0-1,3"]
    os.kill(made[1].pid, signal.SIGCONT)
    os.kill(made[3].pid, signal.SIGKILL)
    wait_until(lambda: "3" not in {row["ranks"] for row in stacks(probing, name, "-d", "0s")} and
               stacks(probing, name, "-d", "0s")[-1]["ranks"] == "0-1", 30, "the rank to be gone")
    shown = probing("cluster", "stacks", name, timeout=60).ok().stdout
    assert re.search(r"^ +1  3 +\(missing: WORLD_SIZE promises it", shown, re.M), shown
    read = rows(probing("cluster", "query", name, "--json", "SELECT rank, state, pid, host FROM cluster.ranks ORDER BY rank", timeout=60))
    assert [row["state"] for row in read] == ["waits", "waits", "waits", "missing"] and read[3]["pid"] is None and read[0]["host"]


def test_query(job, probing):
    """The tables of the job join those of its ranks; a statement about the job alone loads no agent."""
    name, made = job
    [node] = rows(probing("cluster", "query", name, "--json", "SELECT * FROM cluster.nodes", timeout=60))
    assert node["ranks"] == "0-3" and node["world"] == 4 and node["state"] == "ok" and node["via"] == "local" and node["host"]
    joined = rows(probing("cluster", "query", name, "--json", "SELECT r.rank, s.n, s.ranks, r.pid FROM cluster.ranks r JOIN cluster.stacks s USING (class_id) "
                          "WHERE r.rank >= 2 AND r.pid > 0 ORDER BY 1", timeout=60))
    assert [(row["rank"], row["n"], row["ranks"]) for row in joined] == [(2, 1, "2"), (3, 3, "0-1,3")]
    assert [row["pid"] for row in joined] == [made[2].pid, made[3].pid]
    one = rows(probing("cluster", "query", name, "--json", "SELECT rank FROM cluster.ranks WHERE rank = 2 AND pid = " + str(made[2].pid), timeout=60))
    assert one == [{"rank": 2}]
    tree = rows(probing("cluster", "query", name, "--json", "SELECT func, lineno, n, ranks, n_here FROM cluster.tree WHERE func IN ('main', 'fetch') ORDER BY depth", timeout=60))
    assert tree == [{"func": "main", "lineno": CALL, "n": 4, "ranks": "0-3", "n_here": 0}, {"func": "fetch", "lineno": FETCH, "n": 1, "ranks": "2", "n_here": 0}]
    assert [row["agent"] for row in ranks(probing, name)] == ["no"] * 4

    both = rows(probing("cluster", "query", name, "--no-inject", "--json", "SELECT c.rank, c.state, t.func FROM cluster.ranks c JOIN python.threads t ON t.rank = c.rank "
                        "AND t.pid = c.pid ORDER BY 1", timeout=60))
    assert [row["rank"] for row in both] == [0, 1, 2, 3] and {row["state"] for row in both} == {"waits"}
    assert [row["agent"] for row in ranks(probing, name)] == ["no"] * 4
    # a part of the ranks
    some = rows(probing("cluster", "query", f"{name}/1-2", "--no-inject", "--json", "SELECT DISTINCT rank FROM python.threads", timeout=60))
    assert [row["rank"] for row in some] == [1, 2]


def test_tables(job, probing):
    name, _ = job
    listed = probing("cluster", "query", name, "--format", "csv", "\\dt", timeout=60).ok().stdout
    assert all(f"cluster.{table}" in listed for table in ("nodes", "ranks", "stacks", "tree")) and "python.steps" in listed
    # a list loads no agent; without their files it is not known how many rows they have
    listed = {row["table"]: row["rows"] for row in rows(probing("cluster", "query", name, "--json", ".tables", timeout=60))}
    assert listed["python.steps"] is None and [row["agent"] for row in ranks(probing, name)] == ["no"] * 4
    # with the rows that they have
    facts = rows(probing("cluster", "query", name, "--json", "SELECT count(*) AS n FROM probing.facts", timeout=60))[0]["n"]
    listed = {row["table"]: row for row in rows(probing("cluster", "query", name, "--json", ".tables", timeout=60))}
    assert listed["probing.facts"]["rows"] >= facts > 0 and listed["probing.facts"]["newest"] and listed["python.backtrace"]["rows"] is None, listed
    columns = rows(probing("cluster", "query", name, "--json", "\\d cluster.stacks", timeout=60))
    assert {"class_id", "n", "ranks", "since_s", "stack"} <= {str(value) for row in columns for value in row.values()}
    refused(probing("cluster", "query", name, "\\d cluster.nothing"), 2, "no table 'cluster.nothing'")


def test_started_again(claim, probing):  # noqa: F811
    """Another process that is the rank of one that is gone takes its place."""
    made = [claim(rank, 2, source=STANDS) for rank in range(2)]
    relay = Relay(probing)
    [row] = relay.table("job", name=str(made[0].pid))
    first = relay.table("ranks", after=0)
    os.kill(made[1].pid, signal.SIGKILL)
    last = first

    def read_until(holds, what):
        def read():
            nonlocal last
            last = relay.table("ranks", after=last[0]["round"])
            return holds(last)
        wait_until(read, 60, what)
    read_until(lambda now: now[1]["state"] == "X", "its end")
    assert last[1]["stack"] is None and last[1]["pid"] == made[1].pid
    second = claim(1, 2, source=STANDS)
    read_until(lambda now: len(now) == 2 and now[1]["pid"] == second.pid, "the other process")
    assert last[0]["found"] > first[0]["found"] and last[0]["since"] == first[0]["since"] and last[1]["stack"] == first[1]["stack"]
    [again] = relay.table("job", name=str(made[0].pid))
    assert again["name"] == row["name"] and again["found"] == last[0]["found"] and again["missing"] is None
    assert relay.end() == (0, "")


def test_record(job, probing, tmp_path):
    """One file for all ranks."""
    name, made = job
    file = tmp_path / "job.db"
    done = probing("cluster", "record", name, "--no-inject", "-o", file, "--json", timeout=60).ok().json()
    assert done["rows"] > 0
    assert rows(probing(file, "query", "--json", "SELECT rank, pid FROM python.threads ORDER BY 1")) == [{"rank": rank, "pid": made[rank].pid} for rank in range(4)]
    refused(probing("cluster", "record", name), 2, "record needs the name of a file")
    refused(probing("cluster", "record", "nothing-like-it", "-o", file), 3, "no job is named 'nothing-like-it'")


def test_refusals(job, probing):
    name, _ = job
    refused(probing("cluster", "stacks", f"{name}/1"), 2, "leave out '/1'")
    refused(probing("cluster", "stacks", "nothing-like-it"), 3, "no job is named 'nothing-like-it'")
    refused(probing("cluster", "query", "nothing-like-it", "SELECT * FROM cluster.ranks"), 3, "no job is named 'nothing-like-it'")
    refused(probing("cluster", "query", name, "SELECT colour FROM cluster.ranks"), 1, "no such column: colour")
    refused(probing("cluster", "stacks", name, "--format", "pprof"), 2, "pprof")
    refused(probing("relay"), 2, "--to clickhouse")


def test_torchrun(torchrun, probing, ptrace, tmp_path):  # noqa: F811
    """Real ranks: one that is stopped is where the other waits for it; with agents their steps are known."""
    launcher, pids = torchrun
    os.kill(pids[1], signal.SIGSTOP)
    waiting = wait_until(lambda: [row for row in ranks(probing, launcher) if row["doing"] == "collective"], 60, "a rank in the collective")
    assert [row["rank"] for row in waiting] == [0] and "all_reduce" in waiting[0]["where"] and "allreduce.py:" in waiting[0]["where"]
    [row] = rows(probing("cluster", "query", launcher, "--json", "SELECT waits_for, class_id FROM cluster.ranks WHERE rank = 0", timeout=60))
    assert "all_reduce of torch.distributed" in row["waits_for"]
    assert {row["rank"]: row["doing"] for row in ranks(probing, launcher)}[1] == "stopped"
    assert any(one["in_collective"] for one in stacks(probing, str(launcher), "-d", "0s"))
    os.kill(pids[1], signal.SIGCONT)
    attach_in_time(probing, launcher)
    read = rows(probing("cluster", "query", launcher, "--json", "SELECT rank, agent FROM cluster.ranks", timeout=60))
    assert read == [{"rank": 0, "agent": 1}, {"rank": 1, "agent": 1}]


TRAIN = """
import os, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    model(torch.rand(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.long
def test_steps(claim, probing, ptrace, torch_python):  # noqa: F811
    made = claim(0, 1, name="steps.py", source=TRAIN, python=torch_python, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", OMP_NUM_THREADS="1")
    attach_in_time(probing, made.pid)
    query = "SELECT step, step_ms, state FROM cluster.ranks"
    first = wait_until(lambda: next((row for row in rows(probing("cluster", "query", made.pid, "--json", query, timeout=60)) if row["step"] is not None), None), 60, "a step")
    assert first["step_ms"] > 0 and first["state"] in ("computes", "waits")
    wait_until(lambda: rows(probing("cluster", "query", made.pid, "--json", query, timeout=60))[0]["step"] > first["step"], 60, "a later step")
    assert ranks(probing, made.pid)[0]["step"] > first["step"]


BACKWARD = """
import os, sys, time, torch
from torch import distributed
os.write(int(os.environ["READY_FD"]), b"ready\\n")
distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
print("trains", flush=True)
while True:
    while os.environ["RANK"] == "1" and os.path.exists(sys.argv[1]):
        time.sleep(0.05)
    model(torch.rand(8, 4)).sum().backward()
    time.sleep(0.02)
"""


def test_backward(claim, probing, ptrace, torch_python, torch_fork, tmp_path):  # noqa: F811
    """A rank that waits in the collectives of its backward pass, which no frame shows, is in one by its agent's rows."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    more = {"LOCAL_WORLD_SIZE": "2", "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    started = [claim(rank, 2, name="ddp.py", source=BACKWARD, python=torch_python, fork=torch_fork, args=[tmp_path / "hold"], LOCAL_RANK=str(rank), **more) for rank in range(2)]
    name = str(started[0].pid)
    wait_until(lambda: all("trains" in one.output() for one in started), 60, "ranks that train")
    attach_in_time(probing, name)
    seen = "SELECT count(*) AS n FROM python.collectives WHERE rank = 0"
    wait_until(lambda: rows(probing("-t", f"job:{name}", "query", "--json", seen, timeout=60))[0]["n"], 60, "collectives that its agent sees")
    (tmp_path / "hold").touch()
    query = "SELECT state, waits_for FROM cluster.ranks WHERE rank = 0"
    row = wait_until(lambda: next((row for row in rows(probing("cluster", "query", name, "--json", query, timeout=60)) if row["state"] == "collective"), None), 60, "the collective")
    assert row["waits_for"] == "all_reduce of torch.distributed"
    assert "_engine_run_backward" in next(row["where"] for row in ranks(probing, name) if row["rank"] == 0)


# ---- the relay ----

class Relay:
    """`probing relay --stdio`, or another command, spoken to."""

    def __init__(self, probing, *command):
        self.process = subprocess.Popen(command or [probing.path, "relay", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.banner = b""
        while not (line := self.process.stdout.readline()) == b"probing.v1 relay\n":
            assert line, self.process.stderr.read().decode()
            self.banner += line
        self.id = 0

    def send(self, message):
        self.process.stdin.write(struct.pack(">I", len(message)) + message)
        self.process.stdin.flush()

    def ask(self, method, params):
        self.id += 1
        self.send(pack([0, self.id, method, params]))
        size, = struct.unpack(">I", self.process.stdout.read(4))
        kind, number, error, result = Unpacker(self.process.stdout.read(size)).value()
        assert (kind, number) == (1, self.id)
        return error, result

    def table(self, table, **args):
        error, result = self.ask("rows", {"table": table, "args": args})
        assert error is None, error
        return [dict(zip(result["columns"], row)) for row in result["rows"]]

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=20)
        said = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, said


@pytest.mark.long
@pytest.mark.parametrize("table", ["ranks", "states"])
def test_a_client_whose_end_got_lost(job, probing, table):
    """A link that is cut tells nobody: who followed ranks and asks no more for a minute is gone. One who never did may think for longer."""
    name, _ = job
    relay, thinks = Relay(probing), Relay(probing)
    for one in relay, thinks:
        assert one.ask("hello", {"version": 2, "client": "test"})[0] is None
        one.table("job", name=name)
    relay.table(table)
    began = time.monotonic()
    assert relay.process.wait(timeout=180) == 0 and time.monotonic() - began > 50
    assert thinks.process.poll() is None
    for one in relay, thinks:
        assert one.end()[0] == 0


def test_protocol(job, probing):
    """Rounds count up, frames are asked for by number, once; what is not asked well is refused, and the relay stays."""
    name, made = job
    relay = Relay(probing)
    assert relay.ask("hello", {"version": 1, "client": "old"})[0]["code"] == 4
    error, hello = relay.ask("hello", {"version": 2, "client": "test"})
    assert error is None and hello["target"]["host"] and hello["target"]["mode"] == 1
    assert relay.ask("rows", {"table": "ranks", "args": {}})[0]["message"] == "no job was asked for before"
    assert "no job is named 'x'" in relay.ask("rows", {"table": "job", "args": {"name": "x"}})[0]["message"]
    assert relay.ask("rows", {"table": "other", "args": {}})[0]["code"] == 2
    for method in ("eval", "eject", "threads", "nothing"):
        assert relay.ask(method, {})[0]["code"] == 1
    [row] = relay.table("job", name=name)
    assert row["ranks"] == "0-3" and row["missing"] is None and row["world"] == 4
    first = relay.table("ranks", after=0)
    assert [(row["rank"], row["pid"], row["round"]) for row in first] == [(rank, made[rank].pid, 1) for rank in range(4)]
    second = relay.table("ranks", after=1)
    assert {row["round"] for row in second} == {2} and [row["stack"] for row in second] == [row["stack"] for row in first]
    assert all(row["taken_at"] > before["taken_at"] and row["since"] == before["since"] for row, before in zip(second, first))
    frames = relay.table("stacks", ids=f"{second[2]['stack'] % 2 ** 64:x},zz,0,")
    assert [frame["func"] for frame in frames[-3:]] == ["fetch", "main", "<module>"] and {frame["stack"] for frame in frames} == {second[2]["stack"]}
    assert relay.table("stacks", ids="") == [] == relay.table("stacks")
    assert relay.end() == (0, "")


@pytest.mark.parametrize("message", [b"\xff" * 20, pack([1, 1, None, {}]), pack({}), b"\xc1"])
def test_bad_requests(message, probing):
    """What is not a request ends it, with one line."""
    relay = Relay(probing)
    relay.send(message)
    status, said = relay.end()
    assert status == 1 and said == "probing: the client sent what is not valid, or is gone\n"


def test_bad_length(probing):
    relay = Relay(probing)
    relay.process.stdin.write(b"\x7f\xff\xff\xff")
    relay.process.stdin.flush()
    assert relay.process.wait(timeout=20) == 1
    relay.end()


def children_of(pid):
    return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def test_killed(job, probing):
    """Killed, it is started again, and nothing is left of it afterwards."""
    name, _ = job
    watch = subprocess.Popen([probing.path, "cluster", "stacks", name, "--json", "-d", "3s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    relay = wait_until(lambda: children_of(watch.pid), 20, "the relay")[0]
    reader = wait_until(lambda: children_of(relay), 20, "its reader")[0]
    os.kill(relay, signal.SIGKILL)
    again = wait_until(lambda: [child for child in children_of(watch.pid) if child != relay], 20, "another relay")[0]
    out, err = watch.communicate(timeout=60)
    assert watch.returncode == 0 and err == "" and '"ranks":"0-1,3"' in out
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in (relay, reader, again)), 20, "all of them to be gone")


def test_client_killed(job, probing):
    name, _ = job
    watch = subprocess.Popen([probing.path, "cluster", "stacks", name, "-d", "60s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    relay = wait_until(lambda: children_of(watch.pid), 20, "the relay")[0]
    reader = wait_until(lambda: children_of(relay), 20, "its reader")[0]
    watch.kill()
    watch.wait()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in (relay, reader)), 20, "the relay to be gone")


def test_unreadable(claim, probing, build_dir, ptrace):  # noqa: F811
    """Where the memory of the ranks may not be read their agents are asked; without one a rank says why it is not known."""
    made = [claim(rank, 3, source=STANDS) for rank in range(3)]
    for one in made[:2]:
        probing(one.pid, "inject").ok()
    refuses = dict(os.environ, LD_PRELOAD=os.path.join(build_dir, "tests", "targets", "unreadable.so"))
    read = rows(probing("cluster", "query", made[0].pid, "--json", "SELECT rank, state, func, note FROM cluster.ranks", timeout=60, env=refuses))
    assert [(row["rank"], row["func"]) for row in read] == [(0, "arrive"), (1, "arrive"), (2, None)], read
    assert read[0]["state"] == "waits" and read[0]["note"] is None and read[2]["state"] == "no news" and "may not be read" in read[2]["note"]


LATER = """
import os, sys, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], *sys.argv[3:]])
"""


def test_blocked(slow, claim, probing, tmp_path):  # noqa: F811
    """A rank that blocks whoever reads its memory, once it was found, costs its own news, not those of the others."""
    folder, end = slow
    blocks = MAPS_SLOW.replace('os.write(int(os.environ["READY_FD"]), b"ready\\n")', "")
    made = [claim(0, 3, source=STANDS), claim(1, 3, source=LATER, args=[tmp_path / "go", blocks, folder / "libpython3.11.so.1.0"]), claim(2, 3, source=STANDS)]
    relay = Relay(probing)
    relay.table("job", name=str(made[0].pid))
    last = relay.table("ranks", after=0)
    assert all(row["stack"] for row in last), last
    (tmp_path / "go").touch()

    def blocked():
        nonlocal last
        last = relay.table("ranks", after=last[0]["round"])
        return last[1]["note"] and "does not answer" in last[1]["note"]
    wait_until(blocked, 60, "a rank that blocks")
    for _ in range(2):
        assert last[0]["stack"] and last[2]["stack"] and last[1]["stack"] is None and last[1]["state"] and last[1]["pid"] == made[1].pid
        last = relay.table("ranks", after=last[0]["round"])
    assert "did not answer" in last[1]["note"], last[1]
    end()
    assert relay.end() == (0, "")
    assert all(one.alive() for one in made)


@pytest.mark.parametrize("address, missing", [("127.0.0.1", "1"), ("10.9.8.7", None)], ids=["promised", "not promised"])
def test_a_rank_that_ends(address, missing, claim, probing):  # noqa: F811
    """A rank that has ended is in each reading for a verdict from then on, after the relay has listed those that are left, too."""
    made = [claim(rank, 2, MASTER_ADDR=address) for rank in range(2)]
    relay = Relay(probing)
    relay.table("job", name=str(made[0].pid))
    assert [row["gone"] for row in relay.table("states", counters=0)] == [0, 0]
    os.kill(made[1].pid, signal.SIGKILL)
    made[1].process.wait()

    def is_listed():
        assert [(row["rank"], row["pid"], row["gone"]) for row in relay.table("states", counters=0)] == [(0, made[0].pid, 0), (1, made[1].pid, 1)]
        [row] = relay.table("job", name=str(made[0].pid))
        return row["ranks"] == "0" and row["missing"] == missing
    wait_until(is_listed, 30, "a search after its end")
    is_listed()
    # one that is started in its place is read instead of it
    again = claim(1, 2, MASTER_ADDR=address)

    def is_read():
        return [(row["rank"], row["pid"], row["gone"]) for row in relay.table("states", counters=0)] == [(0, made[0].pid, 0), (1, again.pid, 0)]
    wait_until(is_read, 30, "the rank that was started in its place")
    assert relay.end() == (0, "")


def test_an_old_rank_that_lives_on(claim, probing):  # noqa: F811
    """Ranks that are started again take the place of the old ones, though one of those does not end."""
    old = [claim(rank, 2) for rank in range(2)]
    relay = Relay(probing)
    relay.table("job", name=str(old[0].pid))
    last = relay.table("ranks", after=0)
    assert [row["pid"] for row in last] == [one.pid for one in old]
    new = [claim(rank, 2, TORCHELASTIC_RESTART_COUNT="1") for rank in range(2)]
    os.kill(old[0].pid, signal.SIGKILL)
    old[0].process.wait()

    def are_read():
        nonlocal last
        last = relay.table("ranks", after=last[0]["round"])
        return [row["pid"] for row in last] == [one.pid for one in new]
    wait_until(are_read, 30, "the new ranks")
    assert old[1].alive() and relay.end() == (0, "")
