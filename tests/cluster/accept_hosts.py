#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of torchrun over hosts that are namespaces with an sshd each (hosts.py), watched by ssh. What is measured, as JSON:

    first     how long it takes from the command to the first ranks on the screen, and to all of them
    cut       the link of one host, and of all hosts, goes down: which ranks have no news, and when
    killed    a relay, an ssh or the client is killed: the job goes on, no relay stays, and the ranks are there again

    accept_hosts.py [first] [cut] [killed] --python PYTHON-WITH-TORCH [--hosts 4] [--ranks 2] [--runs 3] [--json FILE]
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from hosts import Hosts, missing  # noqa: E402
from ranks import ROOT, SCRIPT, Job, put_figures  # noqa: E402

def wait_until(holds, limit, what):
    """Seconds until it holds."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > limit:
            raise TimeoutError(f"{what}: not within {limit} s")
        time.sleep(0.03)
    return time.monotonic() - began


class HostsJob(Job):
    """`ranks` ranks on each host, by a torchrun each; pids as this machine counts them."""

    def __init__(self, python, folder, hosts, ranks, fault="none", bad=0):
        self.folder, self.fault, self.ranks, self.bad, self.hosts = str(folder), fault, ranks * len(hosts.nodes), bad, hosts
        os.makedirs(self.folder, exist_ok=True)
        self.output = open(os.path.join(self.folder, "output.txt"), "wb")
        self.launchers = [subprocess.Popen(
            hosts.on(node.name, "env", "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0", "PYTHONUNBUFFERED=1", "PROBING_MAX_MEMORY=8MB", python, "-m",
                     "torch.distributed.run", "--nnodes", len(hosts.nodes), "--nproc-per-node", ranks, "--node-rank", number, "--master-addr",
                     hosts.nodes[0].ip, "--master-port", 29500, SCRIPT, fault, bad, self.folder),
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output) for number, node in enumerate(hosts.nodes)]

    def pids(self):
        found = {}
        for node in self.hosts.nodes:
            for pid in node.processes(os.path.basename(SCRIPT)):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    found.update((int(word[5:]), pid) for word in file.read().split(b"\0") if word.startswith(b"RANK="))
        return found

    def pid(self, rank):
        return self.pids()[rank]

    def cpu(self):
        """Ticks of a processor that each rank has taken, by its pid."""
        taken = {}
        for pid in self.pids().values():
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                taken[pid] = sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return taken

    def wait_work(self):
        """Until each rank has worked: after a cut the network takes a while to try again."""
        before = self.cpu()
        wait_until(lambda: all(now > before.get(pid, -1) for pid, now in self.cpu().items()), 180, "ranks that work")

    def close(self):
        for pid in [pid for node in self.hosts.nodes for pid in node.processes(os.path.basename(SCRIPT))]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for launcher in self.launchers:
            launcher.wait()
        self.output.close()


# ---- what is seen

class Screen:
    """Ranks of probing-top on the client's host, in a tmux of its own."""

    def __init__(self, args, hosts):
        self.name = f"probing-accept-{os.getpid()}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40",
                  *hosts.client(os.path.join(args.build, "probing-top"), "job:", "--hosts", hosts.names()))

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", self.name, *words], capture_output=True, text=True, check=True).stdout

    def rows(self):
        """(rank, host, state) of each line of the table: "no news", "all_reduce", ..."""
        text = self.tmux("capture-pane", "-p")
        return [(int(m[1]), m[2], m[3].strip()) for m in re.finditer(r"^ *(\d+) (node\d+) +(?:\S+ +){4}\S (\S+(?: \S+)?)", text, re.M)]

    def silent(self):
        return sorted({rank for rank, _, state in self.rows() if state == "no news"})

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], stderr=subprocess.DEVNULL, check=False)


def has_all(screen, job):
    return sorted(rank for rank, *_ in screen.rows()) == list(range(job.ranks)) and not screen.silent()


def relays_of(hosts):
    return [pid for node in hosts.nodes for pid in node.processes("--stdio")]


# ---- how fast

def count_first(args, hosts, job):
    first, every, listed = [], [], []
    for _ in range(args.runs):
        began, screen = time.monotonic(), Screen(args, hosts)
        try:
            wait_until(screen.rows, 60, "a rank on the screen")
            first.append(round(time.monotonic() - began, 2))
            wait_until(lambda: has_all(screen, job), 60, "all ranks on the screen")
            every.append(round(time.monotonic() - began, 2))
        finally:
            screen.close()
        began = time.monotonic()
        done = subprocess.run(hosts.client(args.probing, "cluster", "ranks", "--hosts", hosts.names(), "--json"), capture_output=True, text=True, check=False)
        rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
        complete = sorted(row["rank"] for row in rows if row["pid"]) == list(range(job.ranks))
        listed.append(round(time.monotonic() - began, 2) if complete else done.stderr)
    right = max(first) <= 2 and max(every) <= 4 and all(isinstance(s, float) for s in listed)
    return {"first_s": first, "all_s": every, "cluster_ranks_s": listed, "right": right}


# ---- the network

class Verdict:
    """`cluster verdict --watch`, and what it prints."""

    def __init__(self, args, hosts, folder):
        self.path = os.path.join(folder, f"verdict.{time.monotonic_ns()}")
        with open(self.path, "wb") as file:
            self.process = subprocess.Popen(hosts.client(args.probing, "cluster", "verdict", "--watch", "--hosts", hosts.names()),
                                            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return "".join(line for line in file if not line.startswith("probing: "))

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)  # what enters the namespaces passes nothing on
        self.process.wait()


def count_cut(args, hosts, job):
    """Ranks of hosts that are cut off have no news, and no others; with the link back they have. The verdict names a host that is cut
    off, and with all hosts cut off nobody is accused."""
    figures = {"right": True}
    screen = Screen(args, hosts)
    try:
        for what, cut in (("one", hosts.nodes[-1:]), ("all", hosts.nodes)):
            wait_until(lambda: has_all(screen, job), 60, "all ranks on the screen")
            lost = [rank for rank, host, _ in screen.rows() if host in [node.name for node in cut]]
            verdict = Verdict(args, hosts, job.folder)
            wait_until(lambda: "MOVING" in verdict.text(), 60, "a verdict")
            said = len(verdict.text())
            for node in cut:
                hosts.cut(node.name)
            began = time.monotonic()
            named = wait_until(screen.silent, 60, "silent ranks")
            wait_until(lambda: all(node.name in verdict.text()[said:] for node in cut), 60, "a verdict with the hosts")
            judged = time.monotonic() - began
            time.sleep(args.seconds)
            seen = screen.silent()
            accused = re.findall("(?:HUNG|WAITS FOR|DEADLOCK|MISMATCH) RANK.*", verdict.text()[said:])
            verdict.close()
            for node in cut:
                hosts.mend(node.name)
            back = wait_until(lambda: has_all(screen, job), 60, "news of all ranks")
            figures[what] = {"named_s": round(named, 1), "named": seen, "cut": sorted(lost), "back_s": round(back, 1),
                             "verdict_s": round(judged, 1), "accused": accused}
            # of one host: it is that one that the others wait for
            fine = all(node.name in line for line in accused for node in cut) if what == "one" else not accused
            figures["right"] &= named <= 13 and judged <= 13 and seen == sorted(lost) and fine
    finally:
        screen.close()
    return figures


# ---- who is killed

def count_killed(args, hosts, job):
    """Each in turn, while the job is watched: it goes on, no relay stays, each rank has one row again."""
    # those whose link was cut may not have been told of its end
    figures = {"right": True, "cut_gone_s": round(wait_until(lambda: not relays_of(hosts), 90, "relays of links that were cut to end"), 1)}
    for what in "relay", "ssh", "client":
        job.wait_work()
        before, screen = job.cpu(), Screen(args, hosts)
        try:
            wait_until(lambda: has_all(screen, job), 60, "all ranks on the screen")
            old = hosts.nodes[1].processes("--stdio")
            victims = {"relay": old[:1], "ssh": hosts.hub.processes("ssh", hosts.nodes[1].name), "client": hosts.hub.processes("probing-top")}[what]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            if what == "client":
                took = wait_until(lambda: not relays_of(hosts), 60, "relays to end")
            else:
                took = wait_until(lambda: has_another(hosts.nodes[1], old) and has_all(screen, job), 60, "another relay, and all ranks")
        finally:
            screen.close()
        left = wait_until(lambda: not relays_of(hosts), 60, "relays to end")
        job.wait_work()
        untouched = before.keys() == job.cpu().keys()
        figures[what] = {"killed": len(victims), "again_s": round(took, 1), "relays_gone_s": round(left, 1), "job_untouched": untouched}
        figures["right"] &= bool(victims) and untouched and took <= 5 and left <= 5
    return figures


def has_another(node, old):
    """A relay that reads, and none of those."""
    now = node.processes("--stdio")
    return len(now) > 1 and not set(now) & set(old)


COUNTS = {"first": count_first, "cut": count_cut, "killed": count_killed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[[], *COUNTS], default=[])
    parser.add_argument("--build", default=os.environ.get("PROBING_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--python", default=os.environ.get("PROBING_TEST_TORCH_PYTHON", sys.executable), help="one with torch")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2, help="of each host")
    parser.add_argument("--runs", type=int, default=3, help="of `first`")
    parser.add_argument("--seconds", type=float, default=20, help="for which the network is cut")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    args.probing = os.path.join(args.build, "probing")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if missing():
        sys.exit(f"accept_hosts: {missing()}")
    figures = {"hosts": args.hosts, "ranks": args.hosts * args.ranks}
    with tempfile.TemporaryDirectory() as folder, Hosts(folder, args.hosts, args.build) as hosts:
        job = HostsJob(args.python, os.path.join(folder, "job"), hosts, args.ranks)
        try:
            job.wait("ready", limit=300)
            for what in args.what or COUNTS:
                figures[what] = COUNTS[what](args, hosts, job)
        finally:
            job.close()
    put_figures(figures, args.json)
    return 0 if all(figures[what]["right"] for what in args.what or COUNTS) else 1


if __name__ == "__main__":
    sys.exit(main())
