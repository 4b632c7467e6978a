# SPDX-License-Identifier: Apache-2.0
"""What a process and its threads have used, by the kernel's own account, and where they may run."""

import os


def threads(pid):
    """{tid: name}"""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as comm:
                found[int(tid)] = comm.read().strip()
        except OSError:
            continue
    return found


def schedstat(pid, tid):
    """Seconds on a CPU, seconds waiting for one, times it got one."""
    try:
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="utf-8") as stat:
            ran, waited, times = (int(n) for n in stat.read().split())
        return ran / 1e9, waited / 1e9, times
    except (OSError, ValueError):
        return 0.0, 0.0, 0


def switches(pid, tid):
    """How often that thread went to sleep, which is how often it woke up."""
    try:
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
    except OSError:
        return 0


def all_switches(pid):
    return sum(switches(pid, tid) for tid in threads(pid))


def is_agent(name):
    return name.startswith("probing-")


def agent_cpu(pid):
    return sum(schedstat(pid, tid)[0] for tid, name in threads(pid).items() if is_agent(name))


def all_cpu(pid):
    return sum(schedstat(pid, tid)[0] for tid in threads(pid))


def job_cpu(pid):
    return sum(schedstat(pid, tid)[0] for tid, name in threads(pid).items() if not is_agent(name))


def pin(pid, job_cpus, agent_cpus):
    for tid, name in threads(pid).items():
        try:
            os.sched_setaffinity(tid, agent_cpus if is_agent(name) else job_cpus)
        except OSError:
            continue
