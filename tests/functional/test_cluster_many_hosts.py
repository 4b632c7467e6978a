# SPDX-License-Identifier: Apache-2.0
"""Jobs of more hosts than there are: the relay of each answers by a script (tests/cluster/fake_relay.py)."""

import json
import os
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAKE = os.path.join(ROOT, "tests", "cluster", "fake_relay.py")
HOSTS = 16


def reach(hosts, script, began_s=100):
    """The options for such hosts, of a job that began `began_s` ago."""
    via = " ".join([sys.executable, "-SE", FAKE, "{host}", f"--hosts {hosts} --begin {time.time() - began_s}", *script])
    return ["--hosts", f"f[0-{hosts - 1}]", "--via", via]


@pytest.fixture
def job_of(probing):
    """Runs a verb of `cluster` on a job that began `began_s` ago."""
    def run(verb, *options, began_s=100, script=(), hosts=HOSTS):
        target = [] if verb == "query" else ["job:"]
        return probing("cluster", verb, *target, *reach(hosts, script, began_s), "--json", *options, timeout=60)
    return run


def test_ranks_of_all_hosts(job_of):
    found = json.loads(job_of("ranks").stdout)["rows"]
    assert [one["rank"] for one in found] == list(range(8 * HOSTS))
    assert all(one["host"] == f"f{one['rank'] // 8}" and one["state"] == "computes" and one["func"] == "forward" for one in found)


def test_the_rank_that_all_wait_for(job_of):
    """By counters of the group and by its stack, with its line."""
    done = job_of("verdict", script=["--hang 77@80"])
    worst = json.loads(done.stdout)["verdicts"][0]
    assert done.status == 1 and worst["code"] == "HUNG" and worst["ranks"] == "77" and not worst["by_stacks"], worst
    assert (worst["func"], worst["lineno"], worst["number"]) == ("fetch", 31, 81), worst


@pytest.mark.long
def test_a_host_that_is_late(job_of):
    """Longer than it is waited for at first: the rank that all wait for is there, and it is found."""
    done = job_of("verdict", script=["--hang 77@80", "--late f9@9.5"])
    worst = json.loads(done.stdout)["verdicts"][0]
    assert done.status == 1 and worst["code"] == "HUNG" and worst["ranks"] == "77" and "no news" not in done.stderr, done


@pytest.mark.long
def test_a_host_that_greets_alone(job_of):
    """The others are judged without it."""
    done = job_of("verdict", "--wait", "1", script=["--hang 77@80", "--lie f3:deaf"])
    assert "f3" in done.stderr and "f4" not in done.stderr and "77" in {one["ranks"] for one in done.json()["verdicts"]}, done


def test_verdicts_by_sql_name_no_host_that_answers(job_of):
    done = job_of("query", "SELECT code, ranks FROM cluster.verdicts", script=["--hang 77@80"])
    assert done.ok().json()["rows"][0] == {"code": "HUNG", "ranks": "77"} and done.stderr == "", done.stderr


def test_hosts_that_fall_silent(job_of):
    """Their ranks have no news, they are named, and the others are shown."""
    done = job_of("ranks", script=["--silent f3@1,f9@1"])
    found = {one["rank"]: one for one in json.loads(done.stdout)["rows"]}
    assert all(found[rank]["state"] == "computes" for rank in found if rank // 8 not in (3, 9)) and len(found) >= 8 * (HOSTS - 2)
    assert all(found[rank]["state"] in ("no news", "missing") for rank in found if rank // 8 in (3, 9))
    assert "partial" in done.stderr and "f3" in done.stderr and "f9" in done.stderr and "f4" not in done.stderr


@pytest.mark.parametrize("verb, options", [
    ("ranks", ()),
    # these wait for a host that may start slowly
    pytest.param("verdict", ("--wait", "1"), marks=pytest.mark.long),
    pytest.param("query", ("SELECT rank FROM python.steps GROUP BY 1",), marks=pytest.mark.long),
])
def test_half_an_answer(job_of, verb, options):
    """The rest never comes, and the pipe stays open: that host is named, and those of the others are shown."""
    done = job_of(verb, *options, script=["--half f3@1"])
    assert done.status == 0 and "f3" in done.stderr and "f4" not in done.stderr, done.stderr
    found = done.json()
    if verb == "verdict":
        assert all(one["level"] != "bad" and not one["ranks"] for one in found["verdicts"]), found
    else:
        ranks = {one["rank"] for one in found["rows"] if one.get("state") not in ("missing", "no news")}
        assert ranks == set(range(8 * HOSTS)) - set(range(24, 32)), ranks


def mute(first, last):
    return [f"--mute {','.join(f'f{number}' for number in range(first, last + 1))}"]


@pytest.mark.long
def test_hosts_that_hang(probing_top, job_of):
    """As many as are started together, and before all others: these are read within the 20 s after which such a host is given up."""
    others = set(range(64, 8 * HOSTS))
    done = probing_top("job:", *reach(HOSTS, mute(0, 7)), "--export", "json", "--screen", "ranks", timeout=60).ok()
    assert {one["rank"] for one in done.json()["ranks"] if one["state"] == "computes"} == others
    # a query has less than half of its time for that
    done = job_of("query", "SELECT rank FROM python.steps GROUP BY 1", "--timeout", "30s", script=mute(0, 7)).ok()
    assert {one["rank"] for one in done.json()["rows"]} == others and "f7 (it did not answer in time)" in done.stderr, done.stderr


def test_hosts_whose_turn_does_not_come(job_of):
    done = job_of("query", STEPS, "--timeout", "2s", script=mute(0, 8), hosts=9)
    assert done.status == 3 and "f7 (it did not answer in time); f8 (it was not reached in time)" in done.stderr, done.stderr


@pytest.mark.long
def test_hosts_whose_turn_does_not_come_in_half_a_minute(job_of):
    done = job_of("ranks", script=mute(1, 63), hosts=64).ok()
    assert {one["rank"] for one in done.json()["rows"]} == set(range(8))
    assert "f8 (it did not answer in time)" in done.stderr or "f8 (its relay failed: it did not answer in time)" in done.stderr, done.stderr
    assert "f63 (it was not reached in time)" in done.stderr, done.stderr


def test_half_of_the_rows(job_of):
    """A host that answers, and then stays silent, takes no time from what the others have given."""
    done = job_of("query", "SELECT rank FROM python.steps GROUP BY 1", "--timeout", "10s", script=["--lie f3:half", "--late f5@1.5"]).ok()
    assert {one["rank"] for one in done.json()["rows"]} == set(range(8 * HOSTS)) - set(range(24, 32))
    assert "partial" in done.stderr and "f3 (it did not answer in time)" in done.stderr and "f4" not in done.stderr


def test_a_host_that_refuses(job_of):
    """What one host cannot do is its own: it is named with the reason, and the rows of the others are there."""
    done = job_of("query", STEPS, script=["--lie f3:refuse"]).ok()
    assert done.json()["rows"] == [{"n": 1200, "steps": 1200, "ranks": 120, "ms": 120 * 10045.0}]
    assert "f3 (the query timed out after 48 s)" in done.stderr and "f4" not in done.stderr
    done = job_of("query", STEPS, script=["--lie " + ",".join(f"f{i}:refuse" for i in range(HOSTS))])
    assert done.status == 1 and not done.stdout and ": the query timed out after 48 s" in done.stderr and len(done.stderr.splitlines()) == 1, done


STEPS = "SELECT count(*) AS n, count(step) AS steps, count(DISTINCT rank) AS ranks, sum(duration_ms) AS ms FROM python.steps"


def test_rows_of_all_hosts(job_of):
    assert job_of("query", STEPS).ok().json()["rows"] == [{"n": 1280, "steps": 1280, "ranks": 128, "ms": 128 * 10045.0}]


@pytest.mark.parametrize("lie, status, why", [("many", 2, "python.steps: would move about "), ("endless", 1, "python.steps: more rows than fit into memory"),
                                              ("heavy", 2, "python.steps: would move more than ")])
def test_more_than_may_be_moved(job_of, lie, status, why):
    """Whether a host says how much it has, or hides it: 64 MB are the most, here as there, and the way out is named."""
    done = job_of("query", STEPS, script=[f"--lie f3:{lie}"])
    assert done.status == status and not done.stdout, done
    assert why in done.stderr and ": narrow it by time" in done.stderr, done.stderr
    # what is narrow is answered, also by such a host
    assert job_of("query", "SELECT count(*) AS n FROM python.steps WHERE rank = 9", script=[f"--lie f3:{lie}"]).ok().json()["rows"] == [{"n": 10}]


def test_rows_of_others(job_of):
    """A host cannot speak for ranks of another one."""
    done = job_of("query", STEPS, script=["--lie f3:foreign"]).ok()
    assert done.json()["rows"] == [{"n": 1280, "steps": 1280, "ranks": 128, "ms": 128 * 10045.0}]
    assert "f3: rows of ranks that are not its own were left out" in done.stderr


def test_values_of_other_kinds(job_of):
    done = job_of("query", STEPS, script=["--lie f3:kinds"]).ok()
    assert done.json()["rows"] == [{"n": 1280, "steps": 1200, "ranks": 128, "ms": 120 * 10045.0 + 80 * 7}]
    assert "\x1b" not in done.stdout + done.stderr and "red" in done.stderr


@pytest.mark.parametrize("lie, why", [("columns", "other columns than it was asked for"), ("garbage", "not valid")])
def test_answers_that_are_none(job_of, lie, why):
    """The host is named with the reason, and the rows of the others are there."""
    done = job_of("query", STEPS, script=[f"--lie f3:{lie}"])
    assert done.json()["rows"] == [{"n": 1200, "steps": 1200, "ranks": 120, "ms": 120 * 10045.0}]
    assert "partial" in done.stderr and "f3" in done.stderr and why in done.stderr, done.stderr


def test_more_ranks_than_are_asked(job_of):
    """A table that is made when it is read costs each rank something."""
    done = job_of("query", "SELECT count(*) FROM python.backtrace", hosts=64)
    assert done.status == 2 and "python.backtrace asks each rank, 256 at most, and these are 512: say which" in done.stderr, done.stderr
