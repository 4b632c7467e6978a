# SPDX-License-Identifier: Apache-2.0
"""What bench/gpu.sh checks on a machine with a GPU of NVIDIA. Each check is a function that returns (is it right, the numbers)."""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PROBING = os.path.join(os.environ["PROBING_BUILD"], "probing")

# A training on the device; its losses are the same bit by bit in each run. argv: kind, steps (0: until it is ended), file for losses.
JOB = r'''
import hashlib, os, sys, time
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
kind, steps, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
width, layers = (64, 60) if kind == "launch" else (4096, 6)
model = torch.nn.Sequential(*[part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30
    def __getitem__(self, i):
        if kind == "input":
            time.sleep(0.05)
        return torch.full((width,), (i % 97) / 97.0)

batches = iter(torch.utils.data.DataLoader(Items(), batch_size=256 if kind != "launch" else 8))
fixed = next(batches).cuda()
digest = hashlib.sha256()
out = open(path, "w")
step, began = 0, time.perf_counter()
while steps == 0 or step < steps:
    batch = next(batches).cuda() if kind == "input" else fixed
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if kind == "sync":
        for _ in range(3):
            torch.cuda.synchronize()
            time.sleep(0.002)
    if kind == "item":
        total = loss.item()  # READS THE LOSS
        used = (batch > 0.5).nonzero()  # COUNTS
        time.sleep(0.002)
    if kind == "plain" and step % 20 == 0:
        digest.update(loss.detach().cpu().numpy().tobytes())
        torch.cuda.synchronize()
        now = time.perf_counter()
        print(step, (now - began) / 20, digest.hexdigest(), torch.cuda.memory_allocated(), file=out, flush=True)
        began = now
    step += 1
'''

NCCL = r'''
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("nccl")
t = torch.ones(1 << 20, device="cuda")
dump = getattr(torch._C._distributed_c10d, "_dump_nccl_trace_json", None)  # torch 2.5 on
for step in range(1 << 62):
    dist.all_reduce(t)
    torch.cuda.synchronize()
    time.sleep(0.05)
    if dump and step % 20 == 0:
        with open(sys.argv[3] + ".new", "wb") as file:
            file.write(dump(True, False))
        os.replace(sys.argv[3] + ".new", sys.argv[3])
'''


HANG = r'''
import os, time, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
t = torch.ones(1 << 20, device="cuda")
for step in range(200):
    dist.all_reduce(t)
    torch.cuda.synchronize()
    time.sleep(0.05)
while rank == 1:
    time.sleep(1)
dist.all_reduce(t)
torch.cuda.synchronize()
'''


MATMUL = r"""
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while True:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
"""


class Job:
    """A job of JOB (or other text), until the end of the block."""

    def __init__(self, kind, steps=0, text=JOB, command=(sys.executable,)):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "losses")
        script = os.path.join(self.folder, f"{kind}.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        self.process = subprocess.Popen([*command, script, kind, str(steps), self.path], stdout=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def lines(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                return [line.split() for line in file.read().splitlines() if line.count(" ") == 3]
        except OSError:
            return []

    def wait_lines(self, n, limit=120):
        until = time.monotonic() + limit
        while len(self.lines()) < n:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the job made no {n} lines (status {self.process.poll()})")
            time.sleep(0.2)


def probing(*args, limit=120):
    return subprocess.run([PROBING, *map(str, args)], capture_output=True, text=True, timeout=limit, check=True).stdout


def rows(pid, sql):
    return json.loads(probing(pid, "query", "--format", "json", sql))["rows"]


SMI = ("utilization.gpu", "memory.used", "memory.total", "power.draw", "temperature.gpu", "clocks.sm")
OURS = ("gpu_util", "mem_used_mb", "mem_total_mb", "power_w", "temperature_c", "sm_clock_mhz")


def check_values():
    """Means of ten seconds against nvidia-smi, within 2 % (utilisation and temperature: within 2)."""
    theirs = []
    with Job("plain") as job:
        job.wait_lines(3)
        watch = subprocess.Popen([PROBING, str(job.pid), "query", "--watch", "1s", "--format", "json",
                                  f"SELECT {', '.join(f'avg({name}) AS {name}' for name in OURS)} FROM gpu_metrics WHERE device = 0"],
                                 stdout=subprocess.PIPE, text=True)
        for _ in range(10):
            text = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={','.join(SMI)}", "--format=csv,noheader,nounits"],
                                  capture_output=True, text=True, check=True).stdout
            theirs.append([float(part) for part in text.split(",")])
            time.sleep(1)
        watch.terminate()
        last = [json.loads(part) for part in re.findall(r"^\{.*\}$", watch.communicate()[0], re.M)][-1]["rows"][0]
    pairs = [(name, last[name], statistics.mean(column)) for name, column in zip(OURS, zip(*theirs))]
    right = all(ours is not None and abs(ours - smi) <= max(0.02 * smi, 2 if name in ("gpu_util", "temperature_c") else 0)
                for name, ours, smi in pairs)
    return right, ", ".join(f"{name} {ours if ours is None else round(ours, 1)} / {smi:.1f}" for name, ours, smi in pairs)


def check_sm_active():
    """The share of multiprocessors that work, ten seconds of it: above 50 % while large matrices are multiplied, below 5 % while nothing runs."""
    found = {}
    for kind, text in (("matmul", MATMUL), ("idle", "import time\ntime.sleep(1e6)\n")):
        with Job(kind, text=text) as job:
            time.sleep(15)  # torch is imported, and the load of the job before is gone
            watch = subprocess.Popen([PROBING, str(job.pid), "query", "--no-inject", "--watch", "1s", "--format", "json",
                                      "SELECT avg(sm_active) AS sm, avg(tensor_active) AS tensor, avg(dram_active) AS dram, avg(gpu_util) AS util "
                                      "FROM gpu_metrics WHERE device = 0 AND slice IS NULL"], stdout=subprocess.PIPE, text=True)
            time.sleep(10)
            watch.terminate()
            found[kind] = [json.loads(part) for part in re.findall(r"^\{.*\}$", watch.communicate()[0], re.M)][-1]["rows"][0]
    if found["matmul"]["sm"] is None:
        return True, f"not supported by this device, by its driver, or not for this user: {found}"
    return found["matmul"]["sm"] > 50 and found["idle"]["sm"] is not None and found["idle"]["sm"] < 5, str(found)


def check_recording():
    """A recording of ten seconds has each device once a second, and its load as nvidia-smi saw it meanwhile, within 5."""
    with Job("plain") as job, tempfile.TemporaryDirectory() as folder:
        job.wait_lines(3)
        path = os.path.join(folder, "run.db")
        record = subprocess.Popen([PROBING, str(job.pid), "record", "-o", path, "--duration", "10s"], stdout=subprocess.DEVNULL)
        theirs = []
        while record.poll() is None:
            text = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
                                  capture_output=True, text=True, check=True).stdout
            theirs.append(float(text))
            time.sleep(1)
        done = probing("-t", path, "query", "--format", "json", "SELECT count(*) AS n, count(DISTINCT timestamp) AS times, avg(gpu_util) AS util "
                       "FROM gpu_metrics WHERE device = 0")
        row = json.loads(done)["rows"][0]
    right = 8 <= row["n"] == row["times"] and row["util"] is not None and abs(row["util"] - statistics.mean(theirs)) <= 5
    return right, f"{row} / {statistics.mean(theirs):.1f} %"


def check_spinning():
    """Two ranks, of which one does not come to a collective: the other's GPU is always busy at a power that does not change, and the verdict has both
    GPUs as evidence. It needs two devices."""
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    if listed.count("GPU ") < 2:
        return True, "skipped: there is one device"
    with Job("hang", text=HANG, command=(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")) as job:
        time.sleep(40)
        done = subprocess.run([PROBING, "cluster", "verdict", str(job.pid), "--json"], capture_output=True, text=True, timeout=120, check=False)
        found = json.loads(done.stdout)["verdicts"][0]
    said = [one["text"] for one in found.get("evidence", []) if one["witness"] == "gpu"]
    return bool(said) and "100 % busy" in said[0], f"{found['text']}; {said}"


def check_processes():
    """Two jobs, a process each on the device: their memory as nvidia-smi has it, within 2 %, and which of them is the target."""
    with Job("plain") as job, Job("plain") as other:
        job.wait_lines(3)
        other.wait_lines(3)
        ours = {row["process_pid"]: row for row in rows(job.pid, "SELECT * FROM gpu_processes WHERE device = 0")}
        text = subprocess.run(["nvidia-smi", "-i", "0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
    theirs = {int(pid): mb.strip() for pid, mb in (line.split(",") for line in text.splitlines())}
    right = bool(ours) and set(theirs) <= set(ours)
    for pid in set(theirs) & set(ours):
        is_known = theirs[pid].isdigit()
        right = right and (abs(ours[pid]["mem_used_mb"] - int(theirs[pid])) <= max(1, 0.02 * int(theirs[pid])) if is_known
                           else ours[pid]["mem_used_mb"] is None)
    if os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC:  # else the driver may number them otherwise
        right = right and {job.pid, other.pid} <= set(ours) and [pid for pid in ours if ours[pid]["own"]] == [job.pid]
    return right, f"{ {pid: (ours[pid]['mem_used_mb'], theirs.get(pid)) for pid in ours} }"


def check_poll_cost():
    """CPU time of the process that asks the driver: at most 1 % of a core."""
    with Job("plain") as job:
        job.wait_lines(1)
        watch = subprocess.Popen([PROBING, str(job.pid), "query", "--watch", "1s", "SELECT count(*) FROM gpu_metrics"], stdout=subprocess.DEVNULL)
        time.sleep(5)
        with open(f"/proc/{watch.pid}/task/{watch.pid}/children", encoding="ascii") as file:
            children = file.read().split()

        def ticks():
            total = 0
            for child in children:
                with open(f"/proc/{child}/stat", encoding="ascii") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                total += int(fields[11]) + int(fields[12])
            return total
        before = ticks()
        time.sleep(30)
        pct = (ticks() - before) / os.sysconf("SC_CLK_TCK") / 30 * 100
        watch.terminate()
        watch.wait()
    return bool(children) and pct <= 1, f"{pct:.2f} % of a core, {len(children)} process(es)"


def check_attach():
    """In and out 200 times: the job lives, and its losses are those of a job that was left alone."""
    with Job("plain", steps=2001) as alone:
        alone.process.wait(timeout=600)
        expected = alone.lines()[-1][2]
    with Job("plain", steps=2001) as job:
        job.wait_lines(1)
        times = 0
        while times < 200 and job.process.poll() is None:
            probing(job.pid, "inject")
            probing(job.pid, "eject")
            times += 1
        status = job.process.wait(timeout=600)
        got = job.lines()[-1][2]
    return status == 0 and got == expected and times == 200, f"{times} times, status {status}, losses {'equal' if got == expected else 'differ'}"


def check_slow_down():
    """A step with an agent and a client that reads GPUs, against one without, in turn: at most 0.3 % longer."""
    pairs = []
    with Job("plain") as job:
        job.wait_lines(3)
        for _ in range(12):
            medians = []
            for watched in (False, True):
                watch = None
                if watched:
                    probing(job.pid, "inject")
                    watch = subprocess.Popen([PROBING, str(job.pid), "query", "--watch", "1s",
                                              "SELECT * FROM gpu_metrics; SELECT * FROM python.gpu_memory"], stdout=subprocess.DEVNULL)
                n = len(job.lines())
                job.wait_lines(n + 12)
                medians.append(statistics.median(float(line[1]) for line in job.lines()[n + 2:]))
                if watch:
                    watch.terminate()
                    watch.wait()
                    probing(job.pid, "eject")
            pairs.append(medians[1] / medians[0] - 1)
    pct = 100 * statistics.median(pairs)
    return pct <= 0.3, f"{pct:+.2f} % (median of {len(pairs)} pairs, {100 * min(pairs):+.2f} to {100 * max(pairs):+.2f})"


def verdict_of(kind, code):
    with Job(kind) as job:
        time.sleep(15)
        probing(job.pid, "inject")
        time.sleep(25)
        said = json.loads(probing(job.pid, "verdict", "--json", "--wait", "20s"))["verdicts"]
    texts = [f"{one['code']}: {one['text']}" for one in said]
    return any(one["code"] == code for one in said), "; ".join(texts)


def check_sync():
    """A job that calls torch.cuda.synchronize in each step."""
    return verdict_of("sync", "SYNC")


def check_sync_lines():
    """A job that calls .item() and nonzero in each step: SYNC names both lines, and what they call."""
    _, text = verdict_of("item", "SYNC")
    lines = {mark: next(i for i, line in enumerate(JOB.splitlines(), 1) if line.endswith(f"# {mark}")) for mark in ("READS THE LOSS", "COUNTS")}
    return "SYNC" in text and "in item" in text and all(f"item.py:{line})" in text for line in lines.values()), text


def check_input_bound():
    """A job whose loader is slow."""
    return verdict_of("input", "INPUT-BOUND")


def check_launch_bound():
    """A job of many small operations."""
    return verdict_of("launch", "LAUNCH-BOUND")


def check_allocator():
    """torch's allocator against torch.cuda.memory_allocated, within 30 %, as it moves in a step; the GIL for at most 2 ms."""
    with Job("plain") as job:
        job.wait_lines(3)
        probing(job.pid, "inject")
        ours = rows(job.pid, "SELECT device, uuid, allocated_mb FROM python.gpu_memory")
        torch_mb = int(job.lines()[-1][3]) / 1048576
        uuids = rows(job.pid, "SELECT DISTINCT uuid FROM gpu_metrics")
        hold_us = json.loads(probing(job.pid, "status", "--json"))["gil"]["us_longest_hold"]
    near = len(ours) == 1 and abs(ours[0]["allocated_mb"] - torch_mb) <= 0.3 * torch_mb  # the step goes on meanwhile
    same = bool(ours) and {"uuid": ours[0]["uuid"]} in uuids
    return near and same and hold_us <= 2000, f"{ours} / {torch_mb:.1f} MiB, uuid {'known' if same else 'not in gpu_metrics'}, GIL {hold_us:.0f} us"


def check_blocks():
    """Blocks of torch's allocator: their sum is the allocator's within 30 %; the step's line is among the stacks once they are recorded."""
    with Job("plain") as job:
        job.wait_lines(3)
        probing(job.pid, "eval", 'import os, torch; os.environ["TORCH_SYMBOLIZE_MODE"] = "dladdr"\n'
                'torch.cuda.memory._record_memory_history("state", context="state", stacks="python", max_entries=1)')
        job.wait_lines(6)
        places = json.loads(probing(job.pid, "memory", "--gpu", "--json"))["places"]
        hold_us = json.loads(probing(job.pid, "status", "--json"))["gil"]["us_longest_hold"]
        probing(job.pid, "eval", "import torch; torch.cuda.memory._record_memory_history(None)")
        torch_mb = int(job.lines()[-1][3]) / 1048576
    used_mb = sum(place["bytes"] for place in places if place["state"] != "inactive") / 1048576
    known = sorted({place["function_name"] for place in places if place["function_name"]})
    return (abs(used_mb - torch_mb) <= 0.3 * torch_mb and bool(known),
            f"{used_mb:.1f} MiB in {sum(place['blocks'] for place in places)} blocks / {torch_mb:.1f} MiB, by {known[:5]}, GIL {hold_us:.0f} us")


def check_profiler():
    """torch.profiler for three steps: kernels are in its trace, and the GPU was at work for a part of each step."""
    with Job("plain") as job, tempfile.TemporaryDirectory() as folder:
        job.wait_lines(3)
        path = os.path.join(folder, "trace.json")
        probing(job.pid, "profile", "--yes", "-o", path, limit=300)
        with open(path, encoding="utf-8") as file:
            kernels = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "kernel"]
        work = rows(job.pid, "SELECT g.duration_ms AS gpu_ms, s.duration_ms AS step_ms FROM profiling_data g JOIN python.steps s ON s.step = g.step "
                    "WHERE g.kind = 'gpu'")
        alive = job.process.poll() is None
    shares = [round(row["gpu_ms"] / row["step_ms"], 2) for row in work]
    right = bool(kernels) and alive and len(shares) == 3 and all(0.3 < share < 1.1 for share in shares)
    return right, f"{len(kernels)} kernels, at work for {shares} of the steps, the job {'lives' if alive else 'has ended'}"


def check_nccl():
    """NCCL in a world of one: collectives with their group, bytes and number, as the flight recorder has them; their durations are unknown, because they are not the host's."""
    with Job("nccl", text=NCCL, command=(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1")) as job:
        time.sleep(20)
        with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as file:
            pid = int(file.read().split()[0])
        probing(pid, "inject")
        time.sleep(5)
        found = rows(pid, "SELECT op, pg, size, bytes, dtype, seq, pg_seq, duration_ms FROM python.collectives ORDER BY timestamp DESC LIMIT 3")
        [facts] = rows(pid, "SELECT value FROM probing.facts WHERE key = 'torch' ORDER BY timestamp DESC LIMIT 1")
        time.sleep(3)  # these are in the next document, too
        entries = []
        if os.path.exists(job.path):
            with open(job.path, encoding="utf-8") as file:
                entries = json.load(file).get("entries", [])
    version = tuple(int(part) for part in facts["value"].split(".")[:2])
    right = bool(found) and all((row["op"], row["size"], row["bytes"], row["dtype"], row["duration_ms"]) == ("all_reduce", 1, 4 << 20, "float32", None)
                                for row in found)
    right = right and all((row["pg"] is not None) == (version >= (2, 4)) and (row["pg_seq"] is not None) == (version >= (2, 12)) for row in found)
    recorded = {(entry["process_group"][0], entry["collective_seq_id"]) for entry in entries if entry["profiling_name"] == "nccl:all_reduce"}
    compared = [(row["pg"], row["pg_seq"]) in recorded for row in found if recorded and row["pg_seq"] is not None]
    return right and all(compared), f"torch {facts['value']}: {found}; {sum(compared)} of {len(compared)} are among {len(recorded)} of the flight recorder"


CHECKS = {name[6:].replace("_", "-"): function for name, function in list(globals().items()) if name.startswith("check_")}


def missing():
    """Why there is nothing to check; None: there is a device."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"nvidia-smi: {e}"
    if done.returncode != 0 or "GPU 0" not in done.stdout:
        return (done.stdout + done.stderr).strip() or "nvidia-smi lists none"
    print(done.stdout.strip())
    done = subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available(), 'torch.cuda is not available'; "
                           "print(torch.__version__, torch.version.cuda)"], capture_output=True, text=True)
    print(done.stdout.strip())
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def main():
    if "--list" in sys.argv:
        for name, function in CHECKS.items():
            print(f"{name:14} {function.__doc__}")
        return 0
    why = missing()
    if why:
        print(f"no device: {why}")
        return 0
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else list(CHECKS)
    failed = 0
    for name in only:
        try:
            right, numbers = CHECKS[name]()
            word = "ok" if right else "FAILED"
        except Exception as e:  # one check does not keep the others from being made
            right, word, numbers = False, "FAILED", f"{type(e).__name__}: {getattr(e, 'stderr', None) or e}"
        failed += not right
        print(f"{word:7} {name:14} {numbers}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
