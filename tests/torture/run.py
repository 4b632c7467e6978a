#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects into a hostile target and ejects again, N times, at moments of chance, and sees whether it is harmed.

usage: run.py [--build DIR] [--cycles N] [--python PYTHON] [--seed N] [--training]

A line of JSON for every hundred cycles, and one for the whole, which says how many were harmed (died, hung, stopped, a failed
check, another number, something left behind) and how many refused (which does no harm; the reasons are counted). Exit status 1
when something was harmed, or when so much was refused that the run says little. With --training the target is examples/train.py
(PYTHON with torch), whose losses are compared with those of an undisturbed run.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "functional")]

import agent_wire  # noqa: E402
from target import Harm, Hostile, compare_facts, describe_stuck  # noqa: E402
from training import Training  # noqa: E402

REPORT_EVERY = 100
LOOK_EVERY = 500
INJECT_TIMEOUT = "2s"
MOST_REFUSED = 0.2   # of all cycles; a thread that is singled out is often one that must not be borrowed, which counts apart
SINGLED_OUT = 0.4    # of all cycles: one thread is at work, all others rest where they cannot be borrowed
TRIES_OF_EJECT = 20
START_SECONDS = 30     # an agent that is late is there or gone after that
CHILDREN_CHANGE = 10  # cycles with child processes, then as many without


def percentiles(values):
    """Median, 95th, 99th percentile and largest."""
    if not values:
        return None
    values = sorted(values)
    pick = lambda share: values[min(len(values) - 1, int(len(values) * share))]  # noqa: E731
    return {"p50": pick(0.5), "p95": pick(0.95), "p99": pick(0.99), "max": values[-1]}


class Torturer:
    """One target, many cycles."""

    def __init__(self, target, build, seed):
        self.target = target
        self.probing = os.path.join(build, "probing")
        self.rng = random.Random(seed)
        self.cycles = self.injected = 0
        self.stopped_us, self.total_us = [], []
        self.refused, self.refused_alone = {}, {}
        self.moments, self.deeds = {}, {}
        self.first_deeds = [deed for deed, _ in self.DEEDS]  # each once, then as their weights say
        self.rng.shuffle(self.first_deeds)
        self.notes, self.longest = [], {}
        self.started = time.monotonic()
        self.before = self.first = self.last = self.last_refusal = None

    # --- the two verbs ---

    def run(self, *args, timeout=120):
        began = time.monotonic()
        try:
            return subprocess.run([self.probing, str(self.target.pid), *args], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise Harm("hung", f"probing {' '.join(args)} did not end within {timeout} s") from error
        finally:
            took = round(time.monotonic() - began, 3)
            if took > self.longest.get(args[0], (0, 0))[0]:
                self.longest[args[0]] = (took, self.cycles)

    @staticmethod
    def read(done):
        """What it printed."""
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise Harm("check", f"{' '.join(done.args)} ended with {done.returncode} and printed {done.stdout!r} {done.stderr!r}") \
                from error

    def inject(self, alone):
        """The result, or None when it was refused."""
        done = self.run("inject", "--json", "--timeout", INJECT_TIMEOUT)
        self.target.check_alive()
        if done.returncode == 0:
            result = self.read(done)
            self.stopped_us.append(result["stopped_us"])
            self.total_us.append(result["total_us"])
            moment = result["moment"] or "already there"
            self.moments[moment] = self.moments.get(moment, 0) + 1
            self.injected += 1
            return result
        self.last_refusal = f"cycle {self.cycles}: {done.stderr.strip()}"[:300]
        why = re.sub(r"\d+", "N", done.stderr.strip())[:200]
        counts = self.refused_alone if alone else self.refused
        counts[why] = counts.get(why, 0) + 1
        if "still being started" in why:
            self.take_back()
        return None

    def take_back(self):
        """It was too late to call it back: it comes, and is ejected, or it ends by itself."""
        deadline = time.monotonic() + START_SECONDS
        while self.target.odd_threads()[1]:
            self.run("eject", "--json")
            if time.monotonic() > deadline:
                raise Harm("left", f"threads of an agent that was not up in time: {self.target.odd_threads()[1]}")
            time.sleep(0.1)

    def eject(self, endpoint):
        """By the program, or by asking the agent; until it is gone."""
        if self.rng.random() < 0.3 and os.path.exists(endpoint):
            with agent_wire.Client(endpoint, timeout=60) as client:
                client.answer(client.send("eject"))
        for _ in range(TRIES_OF_EJECT):
            done = self.run("eject", "--json")
            if done.returncode == 0:
                return
            self.target.check_alive()
            self.notes.append(f"cycle {self.cycles}: {done.stderr.strip()}"[:300])
            time.sleep(0.1)
        raise Harm("left", f"the agent does not go: {done.stderr.strip()}")

    # --- between them ---

    def pause(self, longest):
        time.sleep(self.rng.random() ** 3 * longest)

    def subscribe(self, endpoint):
        client = agent_wire.Client(endpoint, timeout=60)
        if self.rng.random() < 0.3:
            client.subscribe("threads", 20)
        client.subscribe("samples", self.rng.choice((50, 200, 1000)))
        return client

    def do_nothing(self, endpoint):
        self.pause(0.02)
        self.eject(endpoint)

    def do_backtrace(self, endpoint):
        self.run("backtrace", "--json")
        self.eject(endpoint)

    def do_samples(self, endpoint):
        with self.subscribe(endpoint):
            self.pause(0.2)
        self.eject(endpoint)

    def do_eject_while_sampling(self, endpoint):
        client = self.subscribe(endpoint)
        self.pause(0.2)
        self.eject(endpoint)
        client.close()

    def do_kill_client(self, endpoint):
        child = os.fork()
        if child == 0:
            try:
                client = self.subscribe(endpoint)
                while True:
                    client.message()
            finally:
                os._exit(0)
        self.pause(0.2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.eject(endpoint)

    def do_inject_twice(self, endpoint):
        done = self.run("inject", "--json")
        if done.returncode != 0 or not self.read(done)["already"]:
            raise Harm("left", f"a second injection did not find the first: {done.stdout}{done.stderr}")
        self.run("status", "--json")
        self.eject(endpoint)

    DEEDS = ((do_nothing, 8), (do_backtrace, 3), (do_samples, 3), (do_eject_while_sampling, 3), (do_kill_client, 1),
             (do_inject_twice, 1))

    # --- cycles ---

    def cycle(self):
        if self.cycles % CHILDREN_CHANGE == 0:
            self.target.allow_children(self.cycles // CHILDREN_CHANGE % 2 == 0)
        self.cycles += 1
        alone = self.rng.random() < SINGLED_OUT and self.target.single_out(self.rng)
        self.pause(0.01)
        result = self.inject(alone)
        self.target.let_all_go()
        if result is not None:
            deed = self.first_deeds.pop() if self.first_deeds else self.rng.choices(*zip(*self.DEEDS))[0]
            self.last = (alone, result["moment"], deed.__name__[3:])
            self.deeds[deed.__name__[3:]] = self.deeds.get(deed.__name__[3:], 0) + 1
            try:
                deed(self, result["endpoint"])
            except (agent_wire.Closed, OSError) as error:
                self.target.check_alive()
                self.notes.append(f"cycle {self.cycles}: {deed.__name__}: {error!r}"[:300])
                self.eject(result["endpoint"])
        self.target.check()

    def look(self):
        deadline = time.monotonic() + self.target.patience
        while True:
            try:
                return compare_facts(self.before, self.target.look(), self.first, self.target.slack_kb)
            except Harm:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def torture(self, cycles):
        self.before = self.target.look()
        while self.cycles < cycles:
            self.cycle()
            if self.injected == 1 and self.first is None:
                self.look()
                self.first = self.target.look()
            if self.cycles % LOOK_EVERY == 0:
                self.target.check_progress()
                self.look()
            if self.cycles % REPORT_EVERY == 0 and self.cycles < cycles:
                print(json.dumps(self.summary()), flush=True)
        self.target.check_progress()
        self.look()

    def summary(self):
        refused, alone = sum(self.refused.values()), sum(self.refused_alone.values())
        return {"cycles": self.cycles, "injected": self.injected, "refused": refused, "refused_alone": alone,
                "refused_share": round((refused + alone) / max(1, self.cycles), 4), "stopped_us": percentiles(self.stopped_us),
                "total_us": percentiles(self.total_us), "seconds": round(time.monotonic() - self.started, 1), **self.target.extra()}


def torture(args, report):
    """Fills the report; raises Harm."""
    make = Training if args.training else Hostile
    target = make(args.python, args.build, args.seed)
    torturer = Torturer(target, args.build, args.seed)
    try:
        report["pid"] = target.pid
        torturer.torture(args.cycles)
        report["numbers_compared"] = target.check_numbers()
    except Harm:
        report["threads"] = describe_stuck(target.pid)
        raise
    finally:
        report.update(torturer.summary(), moments=torturer.moments, deeds=torturer.deeds, last=torturer.last, last_refusal=torturer.last_refusal,
                      reasons=torturer.refused, reasons_alone=torturer.refused_alone, notes=torturer.notes[:20], longest_s=torturer.longest)
        first, last = torturer.first, torturer.before
        if first:
            report["rss_kb"] = {"before": last.rss_kb, "first": first.rss_kb}
        target.end()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seed", type=int, default=None, help="of the moments and of the numbers (default: the time)")
    parser.add_argument("--training", action="store_true", help="examples/train.py is the target")
    args = parser.parse_args()
    args.seed = args.seed if args.seed is not None else int(time.time()) % 1000000
    args.build = os.path.abspath(args.build)
    return args


def main():
    args = parse_arguments()
    report = {"target": "training" if args.training else "hostile", "python": args.python, "seed": args.seed, "harmed": 0}
    try:
        torture(args, report)
    except Harm as harm:
        report.update(harmed=1, harm=harm.kind, what=str(harm))
    too_much = report.get("refused", 0) > MOST_REFUSED * max(1, report.get("cycles", 0))
    report["verdict"] = "harmed" if report["harmed"] else "too much refused" if too_much else "no harm"
    print(json.dumps(report), flush=True)
    return 1 if report["harmed"] or too_much else 0


if __name__ == "__main__":
    sys.exit(main())
