# SPDX-License-Identifier: Apache-2.0
"""python.loaders and python.loader_workers of real training jobs, against what the jobs write and the kernel knows."""

import bisect
import os
import subprocess

import pytest
from conftest import wait_until
from training_job import agree, training_job  # noqa: F401


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return {int(child) for child in file.read().split()}


def wait_rows(job, n, timeout=90):
    return wait_until(lambda: (lambda rows: len(rows) >= n and rows)(job.rows("python.loaders")), timeout, f"{n} rows of loaders", 0.2)


def query(job, sql):
    return job.probing(str(job.pid), "query", "--format", "json", sql, timeout=90).ok().json()["rows"]


def workers(job):
    return query(job, "SELECT * FROM python.loader_workers ORDER BY loader, worker")


@pytest.mark.timeout(300)
def test_a_slow_worker(training_job):  # noqa: F811
    job = training_job("slow_loader", "--items", "65536")  # an epoch lasts longer than the test
    rows = wait_rows(job, 8)
    seen = [workers(job) for _ in range(6)]
    truth = job.end()
    assert {row["loader"] for row in rows} == {rows[0]["loader"]}
    for row in rows:
        assert (row["workers"], row["prefetch"], row["dataset"]) == (2, 2, "Items")
        assert 0 <= row["outstanding"] <= 4 and row["sent"] - row["received"] <= 4
        assert row["ready"] is None or 0 <= row["ready"] <= row["sent"] - row["received"]
    assert sum(row["ready"] is not None for row in rows) > len(rows) / 2
    ended = [step["ended"] for step in truth.steps]
    # It was made with the first step, and not anew since.
    apart = [abs(row["received"] - bisect.bisect(ended, row["timestamp"])) for row in rows]
    assert sum(n <= 2 for n in apart) >= 0.8 * len(rows) and max(apart) < 20, apart
    # Numbers of one row are of one moment; where that was not had in a few tries, what is ready is not known.
    for before, row in zip(rows, rows[1:]):
        at_once = row["ready"] is not None and before["ready"] is not None
        assert row["batches"] is not None and abs(row["batches"] - (row["received"] - before["received"])) <= (1 if at_once else 20)
    # Wait for a batch, over all seconds between the first and the last row.
    told = [row for row in rows[1:] if row["wait_ms"] is not None]
    steps = [s for s in truth.steps if rows[0]["timestamp"] < s["ended"] <= rows[-1]["timestamp"]]
    ours = sum(row["wait_ms"] * row["batches"] for row in told) / sum(row["batches"] for row in told)
    agree([(ours, sum(s["data_s"] for s in steps) / len(steps) * 1e3)], percent=20, ms=4)
    # The workers.
    assert all([row["worker"] for row in look] == [0, 1] for look in seen), seen
    assert len({row["worker_pid"] for look in seen for row in look}) == 2
    assert all(row["alive"] == 1 and row["rss_bytes"] > 1 << 20 and row["state"] in ("R", "S", "D") for look in seen for row in look), seen
    slow = [look[1] for look in seen if look[1]["func"] is not None]
    assert sum(row["func"] == "Items.__getitem__" or row["func"] == "__getitem__" for row in slow) >= len(seen) - 2, seen
    assert all(row["file"].endswith("training.py") for row in slow if row["func"].endswith("__getitem__"))


@pytest.mark.timeout(300)
def test_several_loaders(training_job):  # noqa: F811
    job = training_job("loaders")
    wait_until(lambda: {row["dataset"] for row in job.rows("python.loaders")} >= {"Stream", "Items"}, 90, "both loaders", 0.2)
    wait_until(lambda: len({row["worker_pid"] for row in workers(job)}) == 3, 60, "all workers", 0.2)
    assert {row["worker_pid"] for row in workers(job)} <= children(job.pid)
    rows = job.rows("python.loaders")
    job.end()
    stream = [row for row in rows if row["dataset"] == "Stream"]
    items = [row for row in rows if row["dataset"] == "Items" and row["workers"] == 1]
    assert stream and items
    assert {(row["workers"], row["prefetch"]) for row in stream} == {(2, 3)}
    assert {(row["workers"], row["prefetch"]) for row in items} == {(1, 2)}
    assert len({row["loader"] for row in items}) == 1  # it stays from epoch to epoch


LATER = """
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
class First(Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, i): return torch.ones(4)
class Second(First):
    def __getitem__(self, i):
        while sys.argv[2] == "hangs":
            time.sleep(1)
        return torch.ones(4)
def run():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    first, second = iter(DataLoader(First())), None
    os.write(int(os.environ["READY_FD"]), b"ready\\n")
    while True:
        model(next(first)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if os.path.exists(sys.argv[1]):
            second = second or iter(DataLoader(Second()))
            next(second)
        time.sleep(0.02)
run()
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["goes on", "hangs"])
def test_a_loader_that_comes_later(how, target, torch_python, probing, ptrace, tmp_path, wait_until):  # noqa: F811, ARG001
    """While the known iterators give all batches, others are searched for seldom. A batch of another one is noticed, and that none comes."""
    job = target(LATER, tmp_path / "go", how, python=torch_python, env={"OMP_NUM_THREADS": "1"})
    probing(str(job.pid), "inject").ok()

    def batches():
        """Of each loader, a row a second."""
        asked = probing(str(job.pid), "query", "--format", "json", "SELECT dataset, batches FROM python.loaders ORDER BY timestamp").ok()
        rows = asked.json()["rows"]
        return {name: [row["batches"] for row in rows if row["dataset"] == name] for name in ("First", "Second")}
    before = wait_until(lambda: (lambda seen: len(seen["First"]) >= 12 and seen)(batches()), 60, "12 rows of the first", 0.2)
    (tmp_path / "go").touch()
    seen = wait_until(lambda: (lambda seen: seen["Second"] and seen)(batches()), 90, "the second", 0.2)
    assert not before["Second"] and all(before["First"][1:])
    assert len(seen["First"]) - len(before["First"]) <= 15


@pytest.mark.timeout(300)
def test_a_loader_without_workers(training_job):  # noqa: F811
    job = training_job("transformer", "--workers", "0")
    wait_until(lambda: any(row["batches"] and row["wait_ms"] is not None for row in job.rows("python.loaders")), 90, "a wait", 0.2)
    rows = job.rows("python.loaders")
    assert workers(job) == []
    truth = job.end()
    last = rows[-1]
    assert (last["workers"], last["dataset"]) == (0, "Items")
    assert all(last[name] is None for name in ("prefetch", "outstanding", "ready", "sent", "received"))
    assert sum(row["batches"] or 0 for row in rows) <= len(truth.steps)


@pytest.mark.timeout(300)
def test_a_loader_that_hangs(training_job):  # noqa: F811
    """A loader that hangs is looked at without its help."""
    job = training_job("slow_loader", "--seconds", "100")  # its first batch of the slow worker never comes
    rows = wait_until(lambda: (lambda r: len(r) == 2 and r)(workers(job)), 60, "the workers", 0.2)
    assert all(row["alive"] == 1 for row in rows)
    assert [row["outstanding"] for row in rows][1] == 2
    # Two scans of one query: what the first has opened serves the second.
    both = wait_until(lambda: (lambda r: len(r) == 4 and all(row["func"] for row in r) and r)(query(
        job, "SELECT 1 AS look, * FROM python.loader_workers UNION ALL SELECT 2, * FROM python.loader_workers ORDER BY look, worker")),
        60, "both looks", 0.2)
    assert [row["worker_pid"] for row in both] == 2 * [row["worker_pid"] for row in rows]
    assert both[1]["func"].endswith("__getitem__") and both[3]["func"] == both[1]["func"] and both[3]["lineno"] == both[1]["lineno"]
    children_before = children(job.pid)
    assert {row["worker_pid"] for row in rows} == children_before
    os.kill(job.pid, 9)


@pytest.mark.timeout(300)
def test_by_an_address(training_job):  # noqa: F811
    """A job of this machine is the same by HOST:PORT; where it is none of the processes there are, one line says so."""
    job = training_job("slow_loader", "--seconds", "100")
    address = job.probing(str(job.pid), "listen", "127.0.0.1:0", "--json", timeout=60).ok().json()["tcp"]["address"]
    ask = "query", "--format", "json", "SELECT * FROM python.loader_workers ORDER BY worker"

    def both():
        found = workers(job), job.probing("-t", address, *ask, timeout=90).ok()
        return len(found[0]) == 2 and len(found[1].json()["rows"]) == 2 and all(row["func"] for row in found[1].json()["rows"]) and found
    here, afar = wait_until(both, 60, "the workers, both ways", 0.2)
    same = "loader", "worker", "worker_pid", "alive", "pid"
    assert [[row[key] for key in same] for row in here] == [[row[key] for key in same] for row in afar.json()["rows"]] and not afar.stderr
    inside = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", job.probing.path, "-t", address, *ask], capture_output=True, text=True)
    if "unshare" in inside.stderr:
        pytest.skip(f"needs namespaces: {inside.stderr.strip()}")
    assert inside.returncode == 0 and '"rows":[]' in inside.stdout.replace(" ", "").replace("\n", ""), inside
    assert inside.stderr == ("probing: python.loader_workers: made from /proc on the job's machine, "
                             "and the job runs on another one\n")


@pytest.mark.timeout(120)
def test_a_python_without_torch(target, build_dir, wait_until):  # noqa: F811
    job = target("import os, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\ntime.sleep(1000)\n")
    done = subprocess.run([os.path.join(build_dir, "tests", "tools", "pystack_loaders"), str(job.pid)], capture_output=True, text=True, check=True)
    assert '"found":0' in done.stdout
