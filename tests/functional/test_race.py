# SPDX-License-Identifier: Apache-2.0
"""Threads that are born and die, code that is made and freed, garbage collected, all at the same time, at a thousand samples a second.

PROBING_RACE_SECONDS says for how long (make soak: minutes).
"""

import os
import re
import time

import pytest

from agent_job import JOB, job
from agent_wire import Client
from hostile_support import Watch, define_in, run_job

__all__ = ["job"]

SECONDS = float(os.environ.get("PROBING_RACE_SECONDS", "1.5"))

RACE = r'''
import gc, threading, time
MADE = ("one", "two", "three", "four")
# Names of files of every kind of string, and longer than what is kept of one that is gone.
PLACES = {"one": "<made>", "two": "/made/" + "x" * 400, "three": "/gemacht/größe" + "y" * 300, "four": "/作/" + "\U0001f600" * 200}
TEXT = """
def made_{name}_inner(n):
    return [made_{name}_leaf(i) for i in range(n)]
def made_{name}_leaf(i):
    return i
made_{name}_inner(5)
"""
alive = [True]
born = [0]
def make_code():
    while alive[0]:
        for name in MADE:
            space = {}
            exec(compile(TEXT.format(name=name), PLACES[name], "exec"), space)
            eval("made_%s_inner(3)" % name, space)
def collect():
    while alive[0]:
        cycle = []
        cycle.append(cycle)
        gc.collect()
def brief():
    brief_inner()
def brief_inner():
    for i in range(20):
        brief_leaf()
def brief_leaf():
    pass
def bear():
    while alive[0]:
        threads = [threading.Thread(target=brief) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        born[0] += len(threads)
def start_race():
    for work in (make_code, make_code, collect, bear, bear):
        threading.Thread(target=work, name=work.__name__, daemon=True).start()
'''

OURS = {"make_code", "collect", "bear", "start_race", "<module>", "<listcomp>"}


def names_in(source):
    return set(re.findall(r"def (\w+)", source))


def known_names(job):
    """Functions that the job has: its own, those it makes, and those of the library that start and end a thread."""
    names = OURS | names_in(JOB) | names_in(RACE)
    names |= {f"made_{name}_{part}" for name in ("one", "two", "three", "four") for part in ("inner", "leaf")}
    for module in ("threading", "_weakrefset"):
        with open(job.do(f"__import__({module!r}).__file__"), encoding="utf-8") as source:
            names |= names_in(source.read())
    return names


def impossible(names, known):
    """What is wrong with a stack: a name that no code of the job has, or a function that was made called by another's maker."""
    short = [name and name.rpartition(".")[2] for name in names]
    for inner, outer in zip(short, short[1:] + [None]):
        if inner is not None and inner not in known:
            return f"{inner} is nobody's name"
        if inner and outer and re.fullmatch("made_.*_leaf", inner) and outer not in (inner[:-4] + "inner", "<listcomp>"):
            return f"{outer} does not call {inner}"
    return None


def test_what_is_impossible_is_seen():
    known = OURS | {"made_one_leaf", "made_one_inner", "made_two_inner"}
    good = ["made_one_leaf", "<listcomp>", "made_one_inner", "<module>", "make_code"]
    assert impossible(good, known) is None and impossible([None, *good[2:]], known) is None
    assert impossible(["made_one_leaf", "made_two_inner"], known)
    assert impossible(["nobody", "make_code"], known)


@pytest.mark.long
@pytest.mark.timeout(int(SECONDS) * 2 + 110)
@pytest.mark.parametrize("minor", ["3.9", "3.12"])
def test_everything_at_once(job, python_for, build_dir, minor):
    j = job(python_for(minor))
    define_in(j, RACE)
    j.do("start_race()")
    with Client(j.start(), timeout=30) as client:
        watch = Watch(client, 1000)
        client.subscribe("threads", 10)
        known = known_names(j)
        end = time.monotonic() + SECONDS
        watch.until(lambda: time.monotonic() > end and len(watch.profile.samples) > 50, "samples", SECONDS + 40)
        status = client.call("status")
        process = client.call("threads")["process"]
        whole = [s["frames"] for s in watch.profile.samples if not s["torn"]]
        assert whole and [why for why in (impossible(names, known) for names in whole) if why] == []
        assert status["exact"] > 0
        assert process["agent_rss_bytes"] < 32 << 20
        assert j.do("born[0]") > 0
        j.do("alive.__setitem__(0, False)")
    assert j.target.alive() and j.do("1 + 1") == 2


@pytest.mark.long
@pytest.mark.timeout(int(SECONDS) * 2 + 110)
@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.13"])
def test_everything_at_once_without_a_budget(python_for, build_dir, minor):
    told = run_job(python_for(minor), build_dir, RACE + f'''
sampler = sample(1000.0)
start_race()
time.sleep({SECONDS})
until(lambda: sampler.ticks() > 200 and born[0] > 20, 40)
alive[0] = False
with open("/proc/self/status") as status:
    threads = int(next(line for line in status if line.startswith("Threads:")).split()[1])
tell(sampler, born=born[0], threads=threads)
''', timeout=SECONDS + 80)
    assert told["born"] > 0
    assert told["exact"] > 0 and told["samples"] > 0
    assert told["unknown_frames"] <= told["samples"]
