# SPDX-License-Identifier: Apache-2.0
"""python.memory_growth against what the job does, and what MEMORY CREEP says of it."""

import pytest
from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until
from virtual_rows import made, torch_job  # noqa: F401

HOLDERS = """
import collections, functools
kept, by_step, names, small = [], {}, set(), [0]
ring = collections.deque(maxlen=100)
endless = collections.deque()
class Record:
    def __init__(self):
        self.numbers = bytearray(4000)
records = []
@functools.lru_cache(maxsize=None)
def cached(i):
    return bytearray(2000)
@functools.lru_cache(maxsize=1000)
def bounded(i):
    return bytearray(2000)
class Loud:
    # Nothing of a class of the job's may be called.
    def __hash__(self):
        raise SystemExit
    def __sizeof__(self):
        raise SystemExit
    def __len__(self):
        raise SystemExit
    def __getattribute__(self, name):
        raise SystemExit
louds = []
def grow(first, last):
    for i in range(first, last):
        kept.append(bytearray(10000))
        by_step[i] = bytes(5000)
        names.add(str(i))
        ring.append(i)
        endless.append(bytearray(1000))
        records.append(Record())
        cached(i)
        bounded(i)
        louds.append(Loud())
    return True
grow(0, 40)
"""


def looks(client):
    """Rows by holder and kind; a look that comes too soon has those of the one before."""
    rows, note = made(client, "python.memory_growth")
    return {(row["holder"], row["kind"]): row for row in rows}, note


def next_look(client, age):
    """The rows of a look that is compared with the first one, at least so long after it."""
    found = {}

    def is_next():
        found.update(looks(client)[0])
        since = found[None, "all"]["since_s"]
        return since is not None and since >= age
    wait_until(is_next, 30, "another look")
    return found


@pytest.mark.parametrize("minor", ["3.8", "3.11", "3.13", None])
def test_holders(job, python_for, minor):  # noqa: F811
    """Each container with what it holds more; bounds and hits of those that have them."""
    j = job(python=python_for(minor) if minor else None)
    assert j.do(f"exec({HOLDERS!r}, globals())") is None
    with Client(j.start()) as client:
        first, note = looks(client)
        assert note == "" and first[None, "all"]["looked"] > 200 and first[None, "all"]["since_s"] is None
        assert first["kept", "list"]["count"] == 40 and first["kept", "list"]["growth"] is None
        assert j.do("grow(40, 100)")
        now = next_look(client, 0.5)
    of = {("kept", "list"): ("bytearray", 600000), ("by_step", "dict"): ("bytes", 300000), ("names", "set"): ("str", 3000),
          ("endless", "list"): ("bytearray", 60000), ("records", "list"): ("Record", 240000)}
    if j.do("'gc' in sys.modules"):
        of["cached", "lru_cache"] = ("bytearray", 120000)
    for key, (of_type, grown) in of.items():
        row = now[key]
        assert (row["count"], row["growth"], row["of"], row["room"]) == (100, 60, of_type, None), key
        assert grown <= row["growth_bytes"] <= 1.5 * grown + 10000, key
        assert row["graphs"] is False and row["growth_per_step"] is None
    assert (now["ring", "list"]["count"], now["ring", "list"]["room"]) == (100, 0)
    assert (now["bounded", "lru_cache"]["growth"], now["bounded", "lru_cache"]["room"]) == (60, 900)
    assert now["cached", "lru_cache"]["hits"] == 0
    assert now["louds", "list"]["growth"] == 60
    assert ("small", "list") not in now


def test_shrinking_is_no_growth(job):  # noqa: F811
    """What shrinks between two looks is compared from there on."""
    j = job()
    assert j.do(f"exec({HOLDERS!r}, globals())") is None
    with Client(j.start()) as client:
        looks(client)
        assert j.do("kept.clear() or kept.extend([1] * 20) or True")
        now = next_look(client, 0.5)
        assert now["kept", "list"]["count"] == 20 and not now["kept", "list"]["growth"]
        assert j.do("kept.extend([1] * 30) or True")
        later = next_look(client, now[None, "all"]["since_s"] + 0.5)
        assert later["kept", "list"]["growth"] == 30
        assert later["kept", "list"]["since_s"] < later[None, "all"]["since_s"]


def test_tensors_and_graphs(torch_job):  # noqa: F811
    """Losses with their graphs are marked, losses without are not; a tensor that grows by itself; storages count once."""
    j = torch_job("w = torch.ones(10, requires_grad=True)\nwith_graph, without, parts, whole = [], [], [], torch.zeros(1000)\n"
                  "grown = torch.zeros(1000)\n"
                  "def grow(n):\n    global grown\n    for i in range(n):\n        loss = (w * i).sum()\n        with_graph.append(loss)\n"
                  "        without.append(loss.detach())\n        parts.append(whole[i:i + 1])\n    grown = torch.cat([grown, torch.zeros(1000)])\n"
                  "grow(20)")
    with Client(j.start()) as client:
        looks(client)
        j.run("grow(50)")
        now = next_look(client, 0.5)
    assert (now["with_graph", "list"]["growth"], now["with_graph", "list"]["graphs"]) == (50, True)
    assert (now["without", "list"]["growth"], now["without", "list"]["graphs"]) == (50, False)
    assert now["with_graph", "list"]["of"] == "Tensor []" and now["parts", "list"]["of"] == "Tensor [1]"
    assert now["grown", "tensor"]["growth_bytes"] == 4000
    assert now["parts", "list"]["growth_bytes"] < 70 * 4000 / 2  # four of its newest share one storage


def test_looks_are_seldom(job):  # noqa: F811
    """However often it is asked for: looks take at most a hundredth of the time."""
    j = job()
    assert j.do(f"exec({HOLDERS!r}, globals())") is None
    with Client(j.start()) as client:
        answers = [looks(client)[0][None, "all"] for _ in range(20)]
    assert all(row["since_s"] is None for row in answers[:5])  # all of them are the first one's
