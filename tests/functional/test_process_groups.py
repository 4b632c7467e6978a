# SPDX-License-Identifier: Apache-2.0
"""python.process_groups: the groups of real gloo jobs by torchrun, in which one rank skips a collective, against what the ranks themselves
have written; and in processes without groups, or with other things in their place."""

import pytest

from agent_wire import Client
from skipping_job import skipping
from virtual_rows import job, made, torch_job

__all__ = ["job", "skipping", "torch_job"]  # fixtures

pytestmark = pytest.mark.timeout(240)

QUERY = ("SELECT rank, pid, pg, desc, backend, size, ranks, my_rank, timeout_s, last_enqueued, last_completed, p2p, op, bytes, dtype"
         " FROM python.process_groups ORDER BY rank, size DESC, pg")


@pytest.mark.parametrize("world, who", [(2, 1), (4, 2)])
def test_a_rank_that_skips(skipping, probing, ptrace, wait_until, world, who):
    started = skipping(world, who)
    launcher, truth = started.pid, started.stuck()

    def settled():
        # a thread of torch counts an operation just after it has let the one who waited for it go
        rows = probing("-t", f"job:{launcher}", "query", "--json", QUERY, timeout=120).ok().json()["rows"]
        return rows if all(row["last_completed"] is not None for row in rows) else None

    rows = wait_until(settled, 60, "counters of all groups")
    assert len(rows) == 2 * world, rows
    for rank in range(world):
        everybody, half = [row for row in rows if row["rank"] == rank]
        entered, ended = truth[rank]["all"]
        first = 0 if rank < world // 2 else world // 2
        assert everybody["desc"] == "default_pg" and everybody["backend"] == half["backend"] == "gloo"
        assert everybody["size"] == world and everybody["ranks"] == f"0-{world - 1}" and everybody["my_rank"] == rank
        assert half["size"] == world // 2 and half["my_rank"] == rank - first
        assert half["ranks"] == (f"{first}-{first + 1}" if world == 4 else f"{first}")
        assert everybody["timeout_s"] == half["timeout_s"] == 1800
        assert (everybody["last_enqueued"], everybody["last_completed"]) == (entered, ended), (rank, everybody, truth)
        assert (half["last_enqueued"], half["last_completed"]) == tuple(truth[rank]["half"]), (rank, half, truth)
        assert half["op"] is None
        assert (everybody["op"], everybody["bytes"], everybody["dtype"]) == (
            (None, None, None) if rank == who else ("all_reduce", 3 * 5000 * 4, "float32"))
        assert everybody["p2p"] in (0, None, False)
    # the rank that has entered less than the others
    assert min(rows, key=lambda row: (row["last_enqueued"] if row["size"] == world else 10 ** 9))["rank"] == who
    # and once more: the job is as it was
    assert probing("-t", f"job:{launcher}", "query", "--json", QUERY, timeout=120).ok().json()["rows"] == rows


def test_no_groups(job):
    alone = job()
    with Client(alone.start()) as client:
        rows, note = made(client, "python.process_groups")
        assert rows == [] and note == "torch.distributed is not imported"


GROUPS = """
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
touched = []

class Trap:
    def __getattribute__(self, name):
        touched.append(name)
        raise KeyboardInterrupt
    def __hash__(self):
        touched.append("hash")
        return id(self)
    def __eq__(self, other):
        touched.append("eq")
        return self is other
    def __iter__(self):
        touched.append("iter")
        raise MemoryError

class Ours(dist.ProcessGroup):
    def rank(self):
        touched.append("rank")
        return 5
    def getRank(self):
        touched.append("rank")
        return 5
    def getSize(self):
        touched.append("size")
        return 5
"""


def test_groups_that_are_none(torch_job):
    """Classes of the job are not asked anything, whatever they put in the place of groups."""
    hostile = torch_job(GROUPS)
    with Client(hostile.start()) as client:
        rows, note = made(client, "python.process_groups")
        assert rows == [] and note == "no process group of torch.distributed was made"
        hostile.run("t = [Trap() for _ in range(6)]\n"
                    "ours = Ours(0, 2)\n"
                    "c10d._pg_map.update({t[0]: ('gloo', None), t[1]: t[1], t[2]: (), ours: ('ours', None)})\n"
                    "c10d._pg_names.update({t[0]: t[3], t[1]: 'one', t[2]: 'x' * 100000})\n"
                    "c10d._pg_group_ranks.update({t[0]: {0: 0, 2: 1, 3: 2, 7: 3}, t[1]: t[4], t[2]: {'a': 0}, ours: {t[5]: 0}})\n"
                    "c10d._pg_backend_config.update({t[1]: t[2], t[2]: 'cpu:gloo,cuda:nccl,xpu:gloo'})\n"
                    "touched.clear()")
        rows, note = made(client, "python.process_groups")
        assert hostile.do("touched") == []
        assert [(row["backend"], row["size"], row["ranks"]) for row in rows] == [
            ("gloo", 4, "0,2-3,7"), (None, None, None), ("gloo,nccl", 1, None), ("ours", 1, None)]
        assert [row["pg"] and row["pg"][:3] for row in rows] == [None, "one", "xxx", None]
        unknown = ("desc", "my_rank", "timeout_s", "last_enqueued", "last_completed", "p2p", "op", "bytes", "dtype")
        assert all(row[name] is None for row in rows for name in unknown)
        # the dicts are something else, and there are too many groups
        hostile.run("c10d._pg_names = c10d._pg_group_ranks = Trap()\nfor i in range(100000): c10d._pg_map[object()] = ('gloo', None)\n"
                    "touched.clear()")
        rows, note = made(client, "python.process_groups")
        assert len(rows) == 2048 and "only the first 2048 of 100004 process groups were read" in note and hostile.do("touched") == []


DUMPS = """
import json, time, torch, torch.distributed as dist, tempfile
from torch.distributed import distributed_c10d as c10d

def settle():
    # a thread of torch counts an operation just after it has let the one who waited for it go
    while True:
        d = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False))
        if all(e["retired"] for e in d["entries"]) and all(
                s["last_completed_collective"] == s["last_enqueued_collective"] for s in d["pg_status"].values()):
            return
        time.sleep(0.001)

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for i in range(3):
    dist.all_reduce(torch.ones(2))
settle()
real = dict(torch._C._distributed_c10d.__dict__)
"""


def test_recorders_that_lie(torch_job):
    """What stands in the place of torch's functions is called only if it is a function of C; no document is believed."""
    lying = torch_job(DUMPS)
    with Client(lying.start()) as client:
        [row], _ = made(client, "python.process_groups")
        assert (row["pg"], row["size"], row["ranks"], row["my_rank"], row["last_enqueued"], row["last_completed"]) == ("0", 1, "0", 0, 3, 3)
        lying.run("called = []\ntorch._C._distributed_c10d._dump_fr_trace_json = lambda *args: called.append(args)")
        [row], note = made(client, "python.process_groups")
        assert row["last_enqueued"] == 3 and row["last_completed"] is None and "no counters" in note and lying.do("called") == []
        for text in ("b'{'", "b''", "b'{\"pg_status\":{\"0\":{\"last_enqueued_collective\":\"1e9\"}}}'", "b'[' * 100000", "b'\\xff\\x00'",
                     "'text'", "None", "7", "b'{\"pg_status\":7,\"entries\":\"x\"}'"):
            # a function of C that takes two flags and returns what one likes
            lying.run(f"torch._C._distributed_c10d._dump_fr_trace_json = dict.fromkeys((False, True), {text}).get")
            [row], note = made(client, "python.process_groups")
            assert row["last_enqueued"] == 3 and row["last_completed"] is None, (text, row, note)
        lying.run("torch._C._distributed_c10d.__dict__.update(real)")
        [row], _ = made(client, "python.process_groups")
        assert (row["last_enqueued"], row["last_completed"]) == (3, 3)


def test_a_group_of_a_name_that_was_used(torch_job):
    """The recorder keeps the counters of a group that was destroyed; one that has entered nothing has no row there."""
    again = torch_job(DUMPS)

    def counters():
        [row] = made(client, "python.process_groups")[0]
        assert (row["pg"], row["desc"], row["backend"], row["op"]) == ("0", "default_pg", "gloo", None)
        return row["last_enqueued"], row["last_completed"], row["p2p"]
    with Client(again.start()) as client:
        assert counters() == (3, 3, 0)
        again.run("dist.destroy_process_group()\ndist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)")
        assert counters() == (0, 0, None)
        again.run("dist.barrier()\nsettle()")
        assert counters() == (1, 1, 0)


NCCL = """
entry = {"collective_seq_id": 8, "input_dtypes": ["BFloat16"], "input_sizes": [[4, 1024]], "is_p2p": False, "op_id": 8, "pg_id": 0,
         "process_group": ["0", "default_pg"], "profiling_name": "nccl:_all_gather_base", "retired": False, "state": "started", "timeout_ms": 600000}
status = {"version": "2.5", "pg_status": {"0": {"last_enqueued_collective": "9", "last_started_collective": "8", "last_completed_collective": "7"}}}
documents = {False: json.dumps(status).encode(), True: json.dumps(dict(status, entries=[
    dict(entry, collective_seq_id=7, state="completed", retired=True), entry, dict(entry, collective_seq_id=9, state="scheduled")])).encode()}
torch._C._distributed_c10d._dump_nccl_trace_json = documents.get
"""


def test_sends_of_nccl(torch_job):
    """They have a count of their own, which may be above the sequence of a group that is there."""
    sends = torch_job(DUMPS)
    sends.run("torch._C._distributed_c10d.__dict__.pop('_get_handler_names')\n" + NCCL)
    sends.run("""del torch._C._distributed_c10d._dump_fr_trace_json
c10d._pg_backend_config[dist.group.WORLD] = 'nccl'
def put(number, p2p):
    status = {"pg_status": {number: {"last_enqueued_collective": 9, "last_completed_collective": 9}}}
    documents[False] = json.dumps(status).encode()
    documents[True] = json.dumps(dict(status, entries=[dict(entry, pg_id=number, state="completed", is_p2p=p2p)])).encode()""")
    with Client(sends.start()) as client:
        for number, p2p, counters in (1, False, (3, None, None)), (2, True, (9, 9, 1)):
            sends.run(f"put({number}, {p2p})")
            [row], _ = made(client, "python.process_groups")
            assert (row["last_enqueued"], row["last_completed"], row["p2p"]) == counters


def test_older_torch(torch_job):
    """Without the handlers entries are read once, for the names, and while the job stands still; a group of two backends has a row for each, by
    the recorder of each."""
    older = torch_job(DUMPS)
    older.run("torch._C._distributed_c10d.__dict__.pop('_get_handler_names')\n"
              "import io\nclock = io.BytesIO()\ntime.monotonic = clock.tell")
    with Client(older.start()) as client:
        for _ in range(2):
            [row], _ = made(client, "python.process_groups")
            assert (row["pg"], row["backend"], row["desc"], row["last_enqueued"], row["last_completed"]) == ("0", "gloo", "default_pg", 3, 3)
        older.run(NCCL)
        older.run("c10d._pg_backend_config[dist.group.WORLD] = 'cpu:gloo,cuda:nccl'")
        rows, _ = made(client, "python.process_groups")
        assert [(row["pg"], row["backend"], row["last_enqueued"], row["last_completed"]) for row in rows] == [("0", "gloo", 3, 3), ("0", "nccl", 9, 7)]
        # the first time its names were read, with what is open; later only the counters
        assert [(row["op"], row["bytes"], row["dtype"]) for row in rows] == [(None,) * 3, ("_all_gather_base", 4 * 1024 * 2, "bfloat16")]
        closed = [rows[0], dict(rows[1], op=None, bytes=None, dtype=None)]
        assert made(client, "python.process_groups")[0] == closed
        # a second later with the same counters: the job stands still
        older.run("clock.seek(1)")
        assert [made(client, "python.process_groups")[0] for _ in range(2)] == [rows, rows]
        older.run("called = []\ntime.monotonic = lambda: called.append(1) or 9")
        assert made(client, "python.process_groups")[0] == closed and older.do("called") == []
        older.run("time.monotonic = clock.tell")
        # a group whose entries the recorder has no longer: they are read again only when it goes on
        older.run("""document = documents[False]
def quiet(n):
    documents[False] = document.replace(b'"0": {', b'"4": {"last_enqueued_collective": "%d", "last_completed_collective": "%d"}, "0": {' % (n, n))
quiet(3)""")

        def opened():
            return [row["op"] for row in made(client, "python.process_groups")[0]]
        assert [opened(), opened()] == [[None, "_all_gather_base"], [None, None]]
        older.run("quiet(4)")
        assert [opened(), opened()] == [[None, "_all_gather_base"], [None, None]]
        older.run("documents[False] = document")
        # what the environment has made too large is not asked for
        older.run("import os; os.environ['TORCH_FR_BUFFER_SIZE'] = '1000000'\n"
                  "documents[False] = documents[False].replace(b'\"0\": {', b'\"5\": {')")
        rows, note = made(client, "python.process_groups")
        assert "keeps more than 20000 entries" in note and [row["last_completed"] for row in rows] == [3]
