# SPDX-License-Identifier: Apache-2.0
"""`probing cluster`: the ranks of a job on this machine, found by what their launcher wrote into their environment; the agent into all of
them and out again; targets that name a job. With real torchrun, and with plain processes that claim to be ranks."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import uuid

import pytest

from conftest import ROOT, attach_in_time, long_but
from lying_agent import as_nobody

pytestmark = pytest.mark.timeout(240)

RANK = os.path.join(ROOT, "tests", "targets", "training", "allreduce.py")
IDLE = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.1)
"""


def rows(done):
    return done.ok().json()["rows"]


def nodes(probing, job=None):
    return rows(probing("cluster", "nodes", *([str(job)] if job else []), "--json", timeout=60))


def ranks(probing, job):
    return rows(probing("cluster", "ranks", str(job), "--json", timeout=60))


@pytest.fixture
def claim(target):
    """Starts a process that says it is a rank; the job's name in the environment is its own in each test."""
    key = uuid.uuid4().hex

    def start(rank, world, name="claimed.py", source=IDLE, python=None, fork=None, args=(), **more):
        env = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": key}
        env.update(more)
        return target(source, *args, name=name, python=python, fork=fork, env={name: value for name, value in env.items() if value is not None})
    return start


@pytest.fixture
def torchrun(torch_python, tmp_path, wait_until, probing):
    """Two ranks by torchrun: its process and theirs, by rank."""
    output = tmp_path / "torchrun.txt"
    with open(output, "wb") as file:
        launcher = subprocess.Popen(
            [torch_python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", RANK, "--until", tmp_path / "over"], stdout=file, stderr=file,
            env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"), start_new_session=True)
    found = []
    try:
        wait_until(lambda: len(re.findall(r"rank \d ready", output.read_text())) == 2 or launcher.poll() is not None, 180, "two ranks",
                   interval=0.1)
        assert launcher.poll() is None, output.read_text()
        found = [row["pid"] for row in ranks(probing, launcher.pid)]
        yield launcher.pid, found
    finally:
        for pid in [launcher.pid, *found]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        launcher.wait()


def test_torchrun(torchrun, probing, ptrace, wait_until, tmp_path):
    launcher, pids = torchrun
    [node] = nodes(probing, launcher)
    assert len(pids) == 2 and node["ranks"] == "0-1" and node["missing"] is None and node["elsewhere"] is None, node
    assert node["state"] == "ok" and node["world"] == 2 and node["found_by"] == "torchrun" and node["launcher"] == launcher
    assert re.fullmatch(r"allreduce\.py-[a-f][0-9a-f]{3,}", node["job"])
    job = node["job"]
    assert [(row["rank"], row["local_rank"], row["agent"], row["state"]) for row in ranks(probing, job)] == [
        (0, 0, "no", "alive"), (1, 1, "no", "alive")]

    attached = rows(probing("cluster", "attach", job, "--json", timeout=60))
    assert [(row["rank"], row["pid"], row["agent"], row["note"]) for row in attached] == [
        (0, pids[0], "loaded", None), (1, pids[1], "loaded", None)]
    assert all(row["total_ms"] > 0 and os.path.exists(row["endpoint"]) for row in attached)
    again = rows(probing("cluster", "attach", f"job:{job}", "--json", timeout=60))
    assert [row["agent"] for row in again] == ["already loaded"] * 2
    assert [row["agent"] for row in ranks(probing, pids[1])] == ["yes"] * 2

    # each verb accepts the job, or one rank of it
    counted = rows(probing("-t", f"job:{job}", "query", "--json", "SELECT rank, count(*) AS n FROM python.threads GROUP BY rank", timeout=60))
    assert [row["rank"] for row in counted] == [0, 1] and all(row["n"] >= 1 for row in counted)
    one = probing(f"job:{job}/1", "backtrace", "--json", timeout=60).ok().json()
    assert one["target"]["pid"] == pids[1] and one["target"]["rank"] == 1

    # without one of its processes the rank is missing; no other waits for it, and torchrun, which would end them, is stopped
    (tmp_path / "over").touch()
    wait_until(lambda: (tmp_path / "torchrun.txt").read_text().count(" idle") == 2, 60, "idle ranks")
    os.kill(launcher, signal.SIGSTOP)
    os.kill(pids[1], signal.SIGKILL)
    wait_until(lambda: nodes(probing, pids[0])[0]["missing"] == "1", 30, "the missing rank")
    assert nodes(probing, job)[0]["state"] == "ranks missing"
    missing = attach_in_time(probing, job)
    assert "has no process here for rank 1 of 2" in missing.stderr and "already loaded" in missing.stdout
    assert [(row["rank"], row["pid"], row["state"]) for row in ranks(probing, job)] == [(0, pids[0], "alive"), (1, None, "missing")]

    gone = rows(probing("cluster", "detach", job, "--json", timeout=60))
    assert [(row["rank"], row["agent"]) for row in gone] == [(0, "ejected"), (1, "missing")]
    assert ranks(probing, job)[0]["agent"] == "no"
    assert [row["agent"] for row in rows(probing("cluster", "detach", job, "--json", timeout=60))] == ["none there", "missing"]


SOURCES = {
    "slurm": lambda rank: {"SLURM_PROCID": rank, "SLURM_NTASKS": "2", "SLURM_JOB_ID": "71", "SLURM_STEP_ID": "0", "SLURM_LOCALID": rank,
                           "SLURM_TASKS_PER_NODE": "2", "SLURM_JOB_NAME": "big llama"},
    "openmpi": lambda rank: {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": rank,
                             "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
    "pmi": lambda rank: {"PMI_RANK": rank, "PMI_SIZE": "2", "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": "2"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_other_launchers(source, claim, probing, ptrace):
    """Their ranks are found, and the column rank is theirs: read from outside, and by the agent."""
    jobs = [claim("no", "no", **{"RANK": None, "WORLD_SIZE": None}, **SOURCES[source](str(rank))) for rank in (1, 0)]
    [node] = nodes(probing, jobs[0].pid)
    assert node["found_by"] == source and node["ranks"] == "0-1" and node["missing"] is None and node["launcher"] is None, node
    assert node["job"].startswith("big_llama-" if source == "slurm" else "claimed.py-")
    query = "SELECT DISTINCT rank, pid FROM python.threads ORDER BY rank"
    expected = [{"rank": 0, "pid": jobs[1].pid}, {"rank": 1, "pid": jobs[0].pid}]
    assert rows(probing("-t", f"job:{node['job']}", "query", "--no-inject", "--json", query)) == expected
    attach_in_time(probing, node["job"])
    assert rows(probing("-t", f"job:{node['job']}", "query", "--json", query)) == expected


def test_one_refuses(claim, probing, ptrace):
    """The others have their agent, the rows say which is which, and the exit status is that of a process that cannot be attached to."""
    jobs = [claim(rank, 2) for rank in range(2)]
    os.kill(jobs[0].pid, signal.SIGSTOP)
    done = probing("cluster", "attach", str(jobs[1].pid), "--json", timeout=60)
    os.kill(jobs[0].pid, signal.SIGCONT)
    assert done.status == 3 and "1 of 2 ranks could not be attached to: rank 0: " in done.stderr, done
    assert "stopped" in done.stderr and len(done.stderr.splitlines()) == 1
    assert [(row["rank"], row["agent"]) for row in done.json()["rows"]] == [(0, "failed"), (1, "loaded")]
    assert "stopped" in done.json()["rows"][0]["note"]


def refused(done, status, text):
    assert done.status == status and text in done.stderr and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1


def test_refusals(claim, target, probing):
    jobs = [claim(rank, 3) for rank in range(2)]
    other = target(IDLE)
    name = nodes(probing, jobs[0].pid)[0]["job"]
    refused(probing("cluster", "attach", str(other.pid)), 3, f"process {other.pid} is not a rank of a job")
    refused(probing("cluster", "ranks", "nothing-like-it"), 3, "no job is named 'nothing-like-it'")
    refused(probing("cluster", "ranks", name + "x"), 3, f"did you mean '{name}'?")
    refused(probing("cluster", "ranks", f"{name}/2"), 3, f"job {name}: no process of this machine is rank 2")
    refused(probing("cluster", "ranks", f"{name}/0-"), 2, "'0-' is not a rank or a range of ranks")
    refused(probing("-t", f"job:{name}", "dump"), 2, f"job:{name} means 2 processes: give one rank, as in job:{name}/0")
    refused(probing("-t", "job:nothing-like-it", "query", "SELECT 1"), 3, "no job is named 'nothing-like-it'")
    assert [row["rank"] for row in ranks(probing, f"{name}/1")] == [1]


def test_hostile_environment(claim, probing):
    """Whoever starts a process may write anything there: what is shown is safe for a terminal, and bounded."""
    job = claim(0, 1048576, LOCAL_RANK="0", LOCAL_WORLD_SIZE="1048576", SLURM_JOB_NAME="\x1b[2J\x07" + "n" * 5000)
    claim("0\x1b[31m", 2)
    claim(9, 2)
    for verb in ("nodes", "ranks"):
        for form in ("table", "json", "csv"):
            done = probing("cluster", verb, str(job.pid), "--format", form, timeout=60).ok()
            assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stdout
            assert len(done.stdout) < 512 * 1024
    [node] = nodes(probing, job.pid)
    assert node["ranks"] == "0" and node["missing"] == "1-1048575" and node["world"] == 1048576


def test_restart_and_double(claim, probing):
    """torchrun's ranks from before a restart are not ranks of the job; who claims a rank that another is, is not that rank."""
    old = claim(1, 2, MASTER_PORT="7")
    jobs = [claim(rank, 2, TORCHELASTIC_RESTART_COUNT="1") for rank in range(2)]
    second = claim(0, 2, TORCHELASTIC_RESTART_COUNT="1")
    [node] = nodes(probing, jobs[0].pid)
    assert node["restarts"] == 1 and node["ranks"] == "0-1", node
    assert f"process {old.pid} is rank 1 from before the restart" in node["note"]
    assert f"process {second.pid} claims rank 0, too" in node["note"]
    assert {row["pid"]: row["state"] for row in ranks(probing, node["job"])} == {
        jobs[0].pid: "alive", jobs[1].pid: "alive", old.pid: "old rank", second.pid: "second claim"}


@pytest.mark.parametrize("where", long_but([[]], [[], ["--hosts", "here", "--via", "env RELAY_OF={host} {relay}"]]), ids=["here", "hosts"])
def test_restart_while_it_is_watched(where, claim, probing, wait_until, ptrace):
    """Ranks that are started again are other processes: they are watched in place of the old ones."""
    old = [claim(rank, 2) for rank in range(2)]
    relay = ["--relay", f"{probing.path} relay --stdio"] if where else []
    job = nodes(probing, old[0].pid)[0]["job"]
    with subprocess.Popen([probing.path, "cluster", "verdict", job, "--watch", "--json", "--no-inject", *where, *relay], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as watcher:
        try:
            assert json.loads(watcher.stdout.readline())["ranks"] == "0-1"
            new = [claim(rank, 2, TORCHELASTIC_RESTART_COUNT="1") for rank in range(2)]
            for one in old:
                os.kill(one.pid, signal.SIGKILL)
            wait_until(lambda: not any(one.alive() for one in old), 30, "the end of the old ranks")
            for one in new:
                os.kill(one.pid, signal.SIGSTOP)
            for line in watcher.stdout:
                if "all ranks are stopped by a signal" in line:
                    break
            assert "all ranks are stopped by a signal" in line, line
            for one in new:
                os.kill(one.pid, signal.SIGKILL)
            # 1 if it is still known that they were killed: who started them may have collected that already
            said = watcher.communicate(timeout=60)[1]
            assert watcher.returncode == int("ended: killed by " in said), said
        finally:
            watcher.kill()


def test_other_user(claim, probing, tmp_path):
    """A user who may not read the environment of others finds no ranks there, and attaches to none."""
    if os.geteuid() != 0:
        pytest.skip("needs root: to be another user")
    job = claim(0, 1)
    for command in (["cluster", "nodes", str(job.pid)], ["cluster", "attach", str(job.pid)]):
        done = subprocess.run(as_nobody([probing.path, *command]), capture_output=True, text=True, timeout=60, check=False, cwd="/")
        assert done.returncode == 3 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done


def test_screens(claim, probing_top, probing, ptrace):
    """probing-top accepts the job, too; an export is of one process."""
    jobs = [claim(rank, 2) for rank in range(2)]
    job = f"job:{jobs[0].pid}"
    shown = probing_top(f"{job}/1", "--export", "json", "--once", timeout=60).ok().json()
    assert shown["target"]["pid"] == jobs[1].pid and shown["target"]["rank"] == 1
    refused(probing_top(job, "--export", "json", "--once"), 2, f"{job} means 2 processes: give one rank, as in {job}/0")
    refused(probing_top(job), 2, "not a terminal")
    refused(probing_top("job:nothing-like-it"), 3, "no job is named 'nothing-like-it'")


def test_only_job(probing, any_python, tmp_path, ptrace):
    """`probing cluster attach` as people type it, where there is one job with several ranks: in a pid namespace of its own."""
    script = tmp_path / "only.py"
    script.write_text("import time\nwhile True:\n    time.sleep(0.1)\n")
    line = (f'for rank in 0 1; do RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 {any_python} {script} & done; RANK=0 WORLD_SIZE=1 {any_python} {script} &\n'
            f'until [ "$({probing.path} cluster ranks --format csv | grep -c only)" = 3 ]; do sleep 0.1; done\n'
            f"{probing.path} cluster attach && {probing.path} -t job: query --format csv 'SELECT DISTINCT rank FROM python.threads'")
    done = in_namespace(line)
    assert done.returncode == 0 and done.stdout.count(" loaded ") == 2 and done.stdout.splitlines()[-2:] == ["0", "1"], done


def in_namespace(line):
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", line], capture_output=True, text=True,
                          timeout=180, check=False)
    if "unshare" in done.stderr:
        pytest.skip(f"needs unshare: {done.stderr.strip()}")
    return done


def test_job_of_one(probing, torch_python, tmp_path, ptrace):
    """A training process that no launcher started is a job of one rank, and what it forks are its workers. What it starts by other ways may be
    ranks, of which the environment says nothing: then it is none."""
    script, ready = tmp_path / "lone.py", tmp_path / "ready"
    script.write_text("import multiprocessing, pathlib, sys, time, torch\n"
                      "def work():\n    import torch\n    pathlib.Path(sys.argv[2]).touch()\n    time.sleep(600)\n"
                      "if __name__ == '__main__':\n    multiprocessing.get_context(sys.argv[1]).Process(target=work, daemon=True).start()\n    work()\n")
    begin = f"{torch_python} {script} %s {ready} & until [ -e {ready} ]; do sleep 0.1; done; "
    done = in_namespace(begin % "fork" + f"{probing.path} cluster attach && {probing.path} cluster nodes --format csv && "
                        f"{probing.path} -t job:lone.py/0 query --format csv 'SELECT count(*) > 0 FROM python.threads'")
    assert done.returncode == 0 and done.stdout.count(" loaded ") == 1, done
    assert ",alone," in done.stdout and done.stdout.splitlines()[-1] == "1", done
    ready.unlink()
    # both have torch by then
    done = in_namespace(begin % "spawn" + f"until [ $({probing.path} list --json | grep -c '\"torch\": *\"') = 2 ]; do sleep 0.1; done; "
                        f"{probing.path} cluster attach")
    assert done.returncode == 3 and "no job with ranks was found" in done.stderr, done


SPAWNED = """import os, pathlib, sys, time, torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, world, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    dist.new_group(list(range(world))[::-1])
    dist.new_group([0, world - 1])
    if rank == 1 and os.fork() == 0:  # as a DataLoader's worker
        time.sleep(600)
    pathlib.Path(folder, f"ready{rank}").touch()
    time.sleep(600)

if __name__ == "__main__":
    if len(sys.argv) > 2:  # started one by one: python ranks.py FOLDER RANK
        work(int(sys.argv[2]), 3, sys.argv[1])
    elif os.environ.get("LIKE_LIGHTNING"):  # the first rank starts the others
        for rank in (1, 2):
            mp.get_context("spawn").Process(target=work, args=(rank, 3, sys.argv[1]), daemon=True).start()
        work(0, 3, sys.argv[1])
    else:
        mp.spawn(work, (3, sys.argv[1]), 3)
"""


# what all processes of `srun -n1` have
STEP = "export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0; "


@pytest.mark.parametrize("how", long_but(["spawn", "lightning", "one by one", "spawn in a step"],
                                         ["spawn", "lightning", "one by one", "spawn in a step", "lightning in a step", "one by one in a step"]))
def test_ranks_that_python_made(how, probing, torch_python, tmp_path):
    """Ranks whose environment does not have their number, or that of a step of Slurm which is one task: it is in the memory of Python, and who
    started whom says which are one job."""
    script = tmp_path / "ranks.py"
    script.write_text(SPAWNED)
    start = {"spawn": f"{torch_python} {script} {tmp_path} &", "lightning": f"LIKE_LIGHTNING=1 {torch_python} {script} {tmp_path} &",
             "one by one": f"for r in 0 1 2; do {torch_python} {script} {tmp_path} $r & done;"}[how.split(" in ")[0]]
    step = STEP if how.endswith("in a step") else ""
    done = in_namespace(f"unset RANK WORLD_SIZE; {step}{start} until [ $(ls {tmp_path} | grep -c ready) = 3 ]; do sleep 0.1; done; "
                        f"{probing.path} cluster nodes --format csv && echo -- && {probing.path} cluster ranks job: --format csv && "
                        f"{probing.path} cluster attach > {tmp_path}/log && echo -- && "
                        f"{probing.path} -t job: query --format csv 'SELECT DISTINCT rank FROM python.threads ORDER BY 1' && "
                        f"{probing.path} -t job:/2 status --json")
    assert done.returncode == 0, done
    nodes, ranks, answers = done.stdout.split("--\n")
    assert answers.startswith("rank\n0\n1\n2\n{") and re.search(r'"rank": *2\b', answers), done
    nodes, ranks = [list(csv.DictReader(io.StringIO(part))) for part in (nodes, ranks)]
    assert len(nodes) == 1, done
    node = nodes[0]
    assert (node["ranks"], node["world"], node["found_by"], node["missing"]) == ("0-2", "3", "python", ""), node
    assert (node["launcher"] != "") == how.startswith("spawn"), node
    assert [row["rank"] for row in ranks if row["state"] == "alive"] == ["0", "1", "2"], ranks


def test_a_job_that_lies_about_its_rank(probing, torch_python, tmp_path, ptrace):
    """What only Python's list of ranks says, or is not a group, is not believed."""
    script = tmp_path / "liar.py"
    script.write_text("import pathlib, sys, time, torch.distributed.distributed_c10d as d\n"
                      "class Group:\n    pass\n"
                      "d._pg_group_ranks.update({5: {0: 0, 1: 1}, Group(): dict.fromkeys(range(70000)), 'x' * 100: {0: 0}, (1, 2): 7})\n"
                      "pathlib.Path(sys.argv[1], 'ready').touch()\ntime.sleep(600)\n")
    done = in_namespace(f"{torch_python} {script} {tmp_path} & until [ -e {tmp_path}/ready ]; do sleep 0.1; done; "
                        f"{probing.path} cluster nodes --format csv && {probing.path} cluster attach")
    assert done.returncode == 0 and ",alone," in done.stdout and " loaded " in done.stdout, done


LEFT = """
import os, pathlib, subprocess, sys, time
rank, folder = os.environ.get("RANK"), pathlib.Path(sys.argv[1])
if rank is None:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], start_new_session=True, env=dict(
        os.environ, RANK=str(n), LOCAL_RANK=str(n), WORLD_SIZE="3", LOCAL_WORLD_SIZE="3", MASTER_ADDR="127.0.0.1")) for n in range(3)]
    while len(list(folder.glob("ready*"))) < 3:
        time.sleep(0.1)
    ranks[1].kill()
    ranks[1].wait()
    (folder / "killed").touch()
elif rank != "1" or os.fork() == 0:  # rank 1 has a worker
    (folder / f"ready{rank}").touch()
time.sleep(600)
"""


def test_worker_of_a_dead_rank(probing, any_python, tmp_path):
    """It lives on with its rank's environment, and is not the rank."""
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    done = in_namespace(f"unset RANK WORLD_SIZE; {any_python} {script} {tmp_path} & until [ -e {tmp_path}/killed ]; do sleep 0.1; done; "
                        f"{probing.path} cluster nodes --format csv")
    [node] = csv.DictReader(io.StringIO(done.stdout))
    assert (node["ranks"], node["missing"], node["launcher"] != "") == ("0,2", "1", True), done


def test_localhost_of_another_host(probing, any_python, tmp_path):
    """The first network namespace has one number on many hosts: a job that meets at localhost has another name on each of them."""
    script, boot = tmp_path / "local.py", tmp_path / "boot_id"
    script.write_text("import time\ntime.sleep(600)\n")
    boot.write_text(f"{uuid.uuid4()}\n")
    name = f"{probing.path} cluster nodes --format csv | grep -o '{{}}.py-[0-9a-f]*'"
    line = (f"cp {script} {tmp_path}/apart.py; export RANK=0 WORLD_SIZE=1; MASTER_ADDR=127.0.0.1 {any_python} {script} & "
            f"MASTER_ADDR=node1 {any_python} {tmp_path}/apart.py & "
            f"until [ $({probing.path} cluster nodes --format csv | grep -c '\\.py-') = 2 ]; do sleep 0.1; done; "
            f"{name.format('local')}; {name.format('local')}; {name.format('apart')}; "
            f"mount --bind {boot} /proc/sys/kernel/random/boot_id && {name.format('local')}; {name.format('apart')}")
    done = in_namespace(line)
    here, again, apart, there, still_apart = done.stdout.split()
    assert here == again != there and apart == still_apart, done


def test_completion(claim, probing):
    jobs = [claim(rank, 2) for rank in range(2)]
    name = nodes(probing, jobs[0].pid)[0]["job"]

    def offered(*words):
        return [line.split("\t")[0] for line in probing("__complete", *words).ok().stdout.splitlines()]
    assert offered("clus") == ["cluster"]
    verbs = offered("cluster", "")
    assert verbs[:2] == ["nodes", "ranks"] and {"stacks", "query", "attach", "detach"} <= set(verbs)
    assert offered("cluster", "ranks", name[:8]) == [name]
    assert "--format" in offered("cluster", "ranks", name, "--")
