# SPDX-License-Identifier: Apache-2.0
"""Four jobs whose numbers are known from elsewhere, and everything that the product says of each, taken between two looks at /proc.

    seen = number_jobs("training")     started once for all tests of a file
    seen.before, seen.after            what the kernel and the job's own log said before and after
    seen.list, seen.status, ...        what the product said in between
"""

import os
import re
import sqlite3
import time

from conftest import ROOT, inject_in_time, wait_until

TICKS = os.sysconf("SC_CLK_TCK")
STANDING = 159

READY = "import os, sys, threading, time\nos.write(int(os.environ['READY_FD']), b'ready\\n')\n"
SOURCES = {
    "idle": READY + "while True: time.sleep(0.05)\n",
    "busy": READY + """
def inner(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def outer():
    while True:
        inner(20000)
outer()
""",
    "many": f"""
import threading
never = threading.Event()
def stand():
    never.wait()
for i in range({STANDING}):
    threading.Thread(target=stand, name=f"stand-{{i}}", daemon=True).start()
""" + READY + "while True: time.sleep(0.02)\n",
}
JOBS = ("idle", "busy", "training", "many")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def kernel(pid):
    """What the kernel says of a process now."""
    stat = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    status = dict(re.findall(r"^(\w+):\s+(\d+)", read(f"/proc/{pid}/status"), re.M))
    agent_s, agent_threads = 0.0, 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            if not read(f"/proc/{pid}/task/{tid}/comm").startswith("probing-"):
                continue
            ticks = read(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        agent_threads += 1
        agent_s += (int(ticks[11]) + int(ticks[12])) / TICKS
    boot = time.time() - float(read("/proc/uptime").split()[0])
    return {"time": time.time(), "rss": int(status["VmRSS"]) * 1024, "swap": int(status["VmSwap"]) * 1024,
            "threads": int(status["Threads"]), "own_threads": int(status["Threads"]) - agent_threads,
            "agent_threads": agent_threads, "agent_s": agent_s, "ppid": int(stat[1]),
            "cpu_s": (int(stat[11]) + int(stat[12])) / TICKS, "uptime": time.time() - boot - int(stat[19]) / TICKS,
            "pss": int(re.search(r"^Pss:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.M).group(1)) * 1024}


class Seen:
    """What the product says of one job, between two looks at the kernel and at the job's log."""

    def __init__(self, name, job, probing, probing_top, folder, losses):
        self.name, self.job, self.pid, self.losses_path, self.folder = name, job, job.pid, losses, folder
        self.probing, self.probing_top = probing, probing_top

    def said(self, *args):
        return self.probing(self.pid, *args, "--json").ok().json()

    def sql(self, text):
        return self.said("query", text)["rows"]

    def losses(self):
        """Exactly what loss.item() was at each step so far."""
        return [float.fromhex(line) for line in read(self.losses_path).split("\n")[:-1]] if self.losses_path else []

    def look(self):
        self.steps_before = len(self.losses())
        self.before = kernel(self.pid)
        self.rows_before = self.count_rows()
        self.list = next(p for p in self.probing("list", "--json").ok().json()["processes"] if p["pid"] == self.pid)
        self.status = wait_until(self.status_that_knows_of_them, 20, "the agent to count its tables, as it does once a second", interval=0.2)
        self.shot = self.probing_top("--export", "json", "--once", self.pid).ok().json()
        self.tables = {t["name"]: t for t in self.said("tables")["tables"]}
        self.memory, = self.said("memory")["targets"]
        self.process, = self.sql("SELECT * FROM system.process")
        self.history = self.sql("SELECT * FROM system.process_history ORDER BY timestamp")
        self.history_memory = self.sql("SELECT * FROM python.memory ORDER BY timestamp")
        self.own = self.sql("SELECT * FROM probing.status ORDER BY timestamp")
        self.steps = self.sql("SELECT * FROM python.steps ORDER BY step")
        self.rows_after = self.count_rows()
        self.after = kernel(self.pid)
        self.steps_after = len(self.losses())
        return self

    def status_that_knows_of_them(self):
        """The agent's status, once it has counted the rows that were there before; None as long as it has not."""
        status = self.said("status")
        rows = {table["name"]: table["rows"] for table in status["tables"]}
        return status if all(rows[name] >= n for name, n in self.rows_before.items()) else None

    def record(self):
        """A recording of it, as SQLite has it, and what the verb said of it."""
        path = os.path.join(self.folder, "run.db")
        said = self.said("record", "-o", path, "--duration", "1s")
        return path, said, sqlite3.connect(path)

    def count_rows(self):
        """Of every table that is kept, by SQL."""
        names = [row["name"] for row in self.said("status")["tables"]]
        text = " UNION ALL ".join(f"SELECT '{name}' AS name, count(*) AS n FROM {name}" for name in names)
        return {row["name"]: row["n"] for row in self.sql(text)}

    def screen(self, name, *args, duration="1.5s", rows=60, cols=160):
        return self.probing_top("--export", "txt", "--screen", name, "--rows", rows, "--cols", cols, *args,
                                *(["--duration", duration] if duration else []), self.pid).ok().stdout


def start_number_job(name, start, torch_python, probing, probing_top, folder):
    losses = None
    folder = str(folder)
    if name == "training":
        losses = os.path.join(folder, "losses")
        job = start(os.path.join(ROOT, "examples", "train.py"), "--losses", losses, "--print-every", 1, python=torch_python,
                    ready=r"step +\d+ ", env={"OMP_NUM_THREADS": "1"}, timeout=120.0)
    else:
        job = start(SOURCES[name], name=f"{name}.py")
    inject_in_time(probing, job.pid)
    seen = Seen(name, job, probing, probing_top, folder, losses)
    seen.young = [probing(job.pid, verb).ok().stdout for verb in ("status", "tables", "memory", "verdict")]
    return seen


def settle(seen):
    """Until there are seconds of every table that a job of this kind fills."""
    wait_until(lambda: seen.said("status")["uptime_s"] > 4, 30, "seconds of samples", interval=0.3)
    if seen.name == "training":
        wait_until(lambda: seen.sql("SELECT count(*) AS n FROM python.steps")[0]["n"] >= 12, 60, "a dozen steps", interval=0.3)
    return seen
