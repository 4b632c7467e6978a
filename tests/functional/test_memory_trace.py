# SPDX-License-Identifier: Apache-2.0
"""Who allocates memory: the lease "alloc", its table and its verb, against what a job knows of itself; and that nothing of it stays."""

import hashlib
import json
import os
import re

import pytest

from agent_job import job  # noqa: F401
from agent_wire import Client, rows
from conftest import wait_until

EVERY = 16384

# Each function allocates on a line of its own, whose number is its name's.
WORK = r'''
import ctypes, os, threading, time

class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]

def allocators():
    """The bytes of the structs of the three domains."""
    found = []
    for domain in range(3):
        one = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(one))
        found.append(bytes(one).hex())
    return found

kept = []
halves = []

def keeper(n):
    kept.append(bytearray(n))

def churner(n):
    return len(bytearray(n))

def halver(n):
    halves.append(bytearray(n))

def small(n):
    return [object() for _ in range(n)]

def many(n):
    for _ in range(n // 1000):
        [object() for _ in range(1000)]
    return True

def pools(n):
    kept.extend([bytes(200) for _ in range(n)])
    return True

def work(rounds, scale=1, pause_s=0.01):
    """Of each round 10 KiB stay by keeper, 30 KiB go by churner, 20 KiB by halver of which half stays; or `scale` times as much."""
    for i in range(rounds):
        keeper(10240 * scale)
        churner(30720 * scale)
        halver(20480 * scale)
        if i % 2:
            halves.pop()
        if i % 10 == 0:
            time.sleep(pause_s)
    return True

stop = threading.Event()

def busy():
    while not stop.is_set():
        work(10)
        small(1000)
        kept.clear()
        halves.clear()

def begin_threads(n):
    for _ in range(n):
        threading.Thread(target=busy, daemon=True).start()
    return True

def end_threads():
    stop.set()
    return True

def fork():
    """A child that allocates and frees: its status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work(2000, pause_s=0)
            kept.clear()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]

def native(rounds, size):
    """Blocks of malloc, by a library's own words, and half of them freed."""
    cxx = ctypes.CDLL("libstdc++.so.6")
    cxx._Znwm.restype = ctypes.c_void_p
    cxx._Znwm.argtypes = [ctypes.c_size_t]
    cxx._ZdlPv.argtypes = [ctypes.c_void_p]
    for i in range(rounds):
        block = cxx._Znwm(size)
        if i % 2:
            cxx._ZdlPv(block)
        if i % 10 == 0:
            time.sleep(0.01)
    return True
'''


def lines_of(source):
    """The line on which each function of WORK allocates."""
    found, name = {}, None
    for number, line in enumerate(source.split("\n"), 1):
        match = re.match(r"def (\w+)", line)
        name = match.group(1) if match else name
        if "bytearray(" in line or "object() for" in line:
            found[name] = number
    return found


@pytest.fixture
def worker(job, tmp_path):  # noqa: F811
    """A factory of jobs with WORK in them, and an agent."""
    def make(python=None, **options):
        made = job(python=python, **options)
        path = tmp_path / "work.py"
        path.write_text(WORK, encoding="utf-8")
        made.do(f"exec(compile(open({str(path)!r}).read(), {str(path)!r}, 'exec'), globals())")
        made.endpoint = made.start()
        return made
    return make


def lease(client):
    """The lease, as the status has it; None if there is none."""
    status = client.call("status")
    leases = rows(status["leases"], status["strings"], ("what", "note"))
    return next((one for one in leases if one["what"] == "alloc"), None)


def is_out(client):
    now = lease(client)
    return now is None or not (now["owners"] or now["armed"])


def arm(client, every=EVERY):
    client.call("arm", {"what": "alloc", "every": every, "steps": 0, "compiled": False})


def disarm(client):
    client.call("disarm", {"what": "alloc"})
    wait_until(lambda: is_out(client), what="hooks to be out")


def sites(probing, made, since=0.0):
    text = ("SELECT function_name, lineno, domain, sum(allocated_bytes) AS allocated, sum(calls) AS calls, sum(freed_bytes) AS freed"
            f" FROM memory_allocations WHERE timestamp >= {since} GROUP BY 1, 2, 3")
    rows = probing(str(made.pid), "query", text, "--json").ok().json()["rows"]
    return {(row["function_name"], row["domain"]): row for row in rows}


def protected(pid):
    """What libraries have protected after their relocation, and the rights of all their pages."""
    hashes, rights = {}, []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            fields = line.split()
            if len(fields) < 6 or ".so" not in fields[5] and "python" not in fields[5]:
                continue
            rights.append(line)
            if fields[1] != "r--p":
                continue
            first, last = (int(part, 16) for part in fields[0].split("-"))
            memory.seek(first)
            hashes[fields[0]] = hashlib.sha256(memory.read(last - first)).hexdigest()
    return hashes, rights


# --- the table ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.13", None])
def test_known_sites(worker, probing, python_for, minor):
    """What is allocated where, and what of it lives, to 2 %."""
    j = worker(python=python_for(minor) if minor else None)
    with Client(j.endpoint) as client:
        arm(client)
        j.do("work(100, 60)")
        j.do("len(small(200000))")
        disarm(client)
        found = sites(probing, j)
    # Blocks of 600 KiB and more: each is a sample, also where samples are taken further apart to keep their cost down. How exact sums over
    # smaller ones are is chance: tests/unit/test_agent_alloc_samples.c, test_agent_alloc_sites.c.
    kib = 1024
    truth = {"keeper": (60000 * kib, 1.0), "churner": (180000 * kib, 0.0), "halver": (120000 * kib, 0.5)}
    for name, (allocated, lives) in truth.items():
        row = found[name, "python"]
        assert row["lineno"] == lines_of(WORK)[name]
        assert row["allocated"] == pytest.approx(allocated, rel=0.02), name
        assert 1 - row["freed"] / row["allocated"] == pytest.approx(lives, abs=0.02), name
        assert row["calls"] >= 99  # and some small ones
    small = sum(row["allocated"] for (name, _), row in found.items() if name in ("small", "<listcomp>", "small.<locals>.<listcomp>"))
    assert small > 200000 * 16


def test_stacks(worker, probing):
    """The stack of a row is in the tables of stacks."""
    j = worker()
    with Client(j.endpoint) as client:
        arm(client)
        j.do("work(1000)")
        disarm(client)
    text = "SELECT DISTINCT fold(stack_id) AS stack FROM memory_allocations WHERE function_name = 'keeper'"
    rows = probing(str(j.pid), "query", text, "--json").ok().json()["rows"]
    assert len(rows) == 1 and rows[0]["stack"].endswith("work (work.py);keeper (work.py)") or "work" in rows[0]["stack"]
    assert "keeper" in rows[0]["stack"].split(";")[-1]


def test_libraries(worker, probing):
    """Blocks of malloc by a library, with the Python line that called it; each block once."""
    j = worker()
    j.do("native(1, 1)")
    with Client(j.endpoint) as client:
        arm(client)
        j.do("native(100, 800000)")
        disarm(client)
        found = sites(probing, j)
    row = found["native", "native"]
    assert row["allocated"] == pytest.approx(100 * 800000, rel=0.02)
    assert row["freed"] == pytest.approx(row["allocated"] / 2, rel=0.02)
    # Python's own large blocks come from malloc, too, and are Python's alone
    assert all(domain == "python" or name == "native" or row["allocated"] < 2000 * 400 for (name, domain), row in found.items())


def test_libraries_loaded_later(worker, probing, source_dir):
    j = worker()
    with Client(j.endpoint) as client:
        arm(client)
        loaded = j.do("'libstdc++' in open('/proc/self/maps').read()")
        j.do("native(1, 1)")
        wait_until(lambda: j.do("native(200, 40000)") and j.do("True") and
                   sites(probing, j).get(("native", "native"), {"allocated": 0})["allocated"] > 0, 20, "the library to be noticed")
        disarm(client)
    assert not loaded


# --- nothing stays -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("minor", ["3.9", "3.11", "3.13", None])
def test_put_back(worker, python_for, minor):
    """Python's structs and the libraries' words are what they were, byte for byte, and pages have their rights."""
    j = worker(python=python_for(minor) if minor else None)
    j.do("native(1, 1)")
    before, pages, rights = j.do("allocators()"), *protected(j.pid)
    with Client(j.endpoint) as client:
        for _ in range(3):
            arm(client)
            within, changed, same_rights = j.do("allocators()"), *protected(j.pid)
            assert all(a != b for a, b in zip(before, within)) and len(within) == 3
            assert [one[:16] for one in within] == [one[:16] for one in before]  # ctx is that of the one below
            assert changed.keys() == pages.keys() and changed != pages and same_rights == rights
            j.do("work(100)")
            disarm(client)
            assert j.do("allocators()") == before
            assert protected(j.pid) == (pages, rights)


@pytest.mark.timeout(240)
def test_many_times(worker):
    """Two hundred times, under threads that allocate."""
    j = worker()
    before = j.do("allocators()")
    j.do("begin_threads(4)")
    with Client(j.endpoint) as client:
        for _ in range(200):
            arm(client)
            client.call("disarm", {"what": "alloc"})
        wait_until(lambda: is_out(client), what="hooks to be out")
        arm(client)
        wait_until(lambda: lease(client)["looks"] > 100, 20, "samples")
        disarm(client)
    assert j.do("end_threads()") and j.do("allocators()") == before
    assert j.target.alive()


def test_client_goes(worker):
    """The lease ends with its client."""
    j = worker()
    before = j.do("allocators()")
    with Client(j.endpoint) as client:
        arm(client)
        assert j.do("allocators()") != before
    with Client(j.endpoint) as client:
        wait_until(lambda: is_out(client), what="hooks to be out")
    assert j.do("allocators()") == before


def test_eject(worker, probing):
    j = worker()
    before, pages = j.do("allocators()"), protected(j.pid)
    j.do("begin_threads(2)")
    with Client(j.endpoint) as client:
        arm(client)
        probing(str(j.pid), "eject").ok()
    assert j.do("allocators()") == before and protected(j.pid) == pages
    assert j.do("work(100)") and j.do("end_threads()")


def test_fork(worker):
    """A child has our hooks, which do nothing there."""
    j = worker()
    j.do("begin_threads(3)")
    with Client(j.endpoint) as client:
        arm(client)
        for _ in range(20):
            assert j.do("fork()") == 0
        disarm(client)
    assert j.do("fork()") == 0 and j.do("end_threads()")


def test_another_allocator_above(worker):
    """tracemalloc that was started meanwhile stays, and ours below it; it is found there the next time, and taken out when it can be."""
    j = worker()
    before = j.do("allocators()")
    with Client(j.endpoint) as client:
        arm(client)
        j.do("exec('import tracemalloc; tracemalloc.start()', globals())")
        above = j.do("allocators()")
        client.call("disarm", {"what": "alloc"})
        wait_until(lambda: is_out(client), what="the lease to end")
        assert j.do("allocators()") == above and "another allocator" in lease(client)["note"]
        assert j.do("work(200)") and j.do("tracemalloc.get_traced_memory()[0] > 0")
        arm(client)
        assert j.do("allocators()") == above
        j.do("work(2000)")
        wait_until(lambda: lease(client)["looks"] > 0, what="samples from below it")
        j.do("exec('tracemalloc.stop()', globals())")
        disarm(client)
        assert j.do("allocators()") == before and j.do("work(200)")


def test_tracemalloc_below(worker, probing):
    """And one that was there before: both see the same."""
    j = worker()
    j.do("exec('import tracemalloc; tracemalloc.start()', globals())")
    before = j.do("allocators()")
    with Client(j.endpoint) as client:
        arm(client)
        j.do("work(100, 60)")  # see test_known_sites
        disarm(client)
        found = sites(probing, j)
    assert j.do("allocators()") == before
    kept = j.do("sum(t.size for t in tracemalloc.take_snapshot().traces if t.traceback[0].filename.endswith('work.py') and "
                f"t.traceback[0].lineno == {lines_of(WORK)['keeper']})")
    row = found["keeper", "python"]
    assert row["allocated"] - row["freed"] == pytest.approx(kept, rel=0.02)


def test_eject_below_another_allocator(worker, probing):
    """tracemalloc above ours cannot be lifted: the agent goes, what stays passes calls on, and the job does not notice."""
    j = worker()
    with Client(j.endpoint) as client:
        arm(client)
        j.do("exec('import tracemalloc; tracemalloc.start()', globals())")
        above = j.do("allocators()")
        left = probing(str(j.pid), "eject")
        assert left.status == 0 or len(left.stderr.splitlines()) == 1
    assert j.do("allocators()") == above
    assert j.do("work(200)") and j.do("tracemalloc.get_traced_memory()[0] > 0")
    j.do("exec('tracemalloc.stop()', globals())")
    assert j.do("work(200)") and j.target.alive()


# --- jobs that are hard to follow --------------------------------------------------------------------------------

def test_millions_of_small_objects(worker, probing):
    """Samples are taken further apart where there are too many, a line says so, and no byte is missing from the sums."""
    j = worker()
    with Client(j.endpoint) as client:
        arm(client, 1024)
        for _ in range(40):  # a machine that is busy takes its time to measure
            assert j.do("many(1000000)")
            if "instead of" in (lease(client)["note"] or ""):
                break
        note = lease(client)["note"]
        rounds = j.do("many(1)")
        assert rounds and "instead of 1.00 KiB" in note
        before = sum(row["allocated"] for row in sites(probing, j).values())
        assert j.do("many(3000000)")
        disarm(client)
        allocated = sum(row["allocated"] for row in sites(probing, j).values()) - before
    assert allocated == pytest.approx(3000000 * 16, rel=0.2) or allocated > 3000000 * 16
    assert j.target.alive()


def test_arenas_that_are_given_back(worker, probing):
    """Pools whose arenas go back to the kernel, and come again at the same addresses for others, leave nothing alive."""
    j = worker()
    with Client(j.endpoint) as client:
        arm(client, 65536)
        for _ in range(3):
            assert j.do("pools(200000)")
            assert j.do("kept.clear() or work(100) and kept.clear() or True")
        disarm(client)
        found = sites(probing, j)
    mine = [row for (name, _), row in found.items() if name in ("pools", "<listcomp>", "pools.<locals>.<listcomp>")]
    allocated, freed = (sum(row[what] for row in mine) for what in ("allocated", "freed"))
    assert allocated > 3 * 200000 * 200
    assert freed == pytest.approx(allocated, rel=0.02)


def jemalloc():
    """Where it is installed; None."""
    return next((path for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
                 for path in (os.path.join(folder, "libjemalloc.so.2"),) if os.path.exists(path)), None)


def test_preloaded_allocator(worker, probing):
    """A malloc of the job's own is what libraries go on to call, and what is seen; its own memory is left alone."""
    path = jemalloc()
    if not path:
        pytest.skip("needs libjemalloc2")
    j = worker(env={"LD_PRELOAD": path})
    assert path in open(f"/proc/{j.pid}/maps", encoding="utf-8").read()
    j.do("native(2, 1)")  # its words are bound at their first calls: the program began with the library
    before, pages, rights = j.do("allocators()"), *protected(j.pid)
    with Client(j.endpoint) as client:
        arm(client)
        j.do("work(100, 60)")
        j.do("native(100, 800000)")
        disarm(client)
        found = sites(probing, j)
    assert found["keeper", "python"]["allocated"] == pytest.approx(60000 * 1024, rel=0.02)
    assert found["native", "native"]["allocated"] == pytest.approx(100 * 800000, rel=0.02)
    assert found["native", "native"]["freed"] == pytest.approx(found["native", "native"]["allocated"] / 2, rel=0.02)
    assert j.do("allocators()") == before and protected(j.pid) == (pages, rights)
    assert j.do("work(200)") and j.target.alive()


# --- the verb ----------------------------------------------------------------------------------------------------

def test_verb(worker, probing):
    j = worker()
    j.do("begin_threads(1)")
    document = probing(str(j.pid), "memory", "--trace", "--seconds", "2", "--every", "16K", "--json", timeout=60).ok().json()
    assert document["samples"] > 0 and document["overhead_pct"] >= 0 and document["seconds"] >= 2
    found = {site["function"]: site for site in document["sites"]}
    assert found["churner"]["line"] == lines_of(WORK)["churner"] and found["churner"]["file"].endswith("work.py")
    assert found["churner"]["domain"] == "python" and found["churner"]["allocated_bytes"] > found["keeper"]["allocated_bytes"]
    lines = probing(str(j.pid), "memory", "--trace", "--seconds", "1", timeout=60).ok().stdout.splitlines()
    assert re.match(r"\S+ \S+ allocated in \d+\.\d s, of which .* live; tracing cost \d+\.\d+ % of a core", lines[0])
    assert any("churner (work.py:" in line for line in lines)
    with Client(j.endpoint) as client:
        assert is_out(client)
    bad = probing(str(j.pid), "memory", "--every", "16K")
    assert bad.status == 2 and "--trace" in bad.stderr
    j.do("end_threads()")


def test_untraced(worker, probing):
    """The table of a job in which nothing is traced is empty, and one line says how to change that."""
    j = worker()
    answer = probing(str(j.pid), "query", "SELECT * FROM memory_allocations", "--json").ok()
    assert answer.json()["rows"] == []
    assert len(answer.stderr.splitlines()) == 1 and "memory --trace" in answer.stderr
    with Client(j.endpoint) as client:
        arm(client)
        j.do("work(1000)")
        disarm(client)
    seed = ("SELECT function_name, sum(allocated_bytes) as total_alloc FROM memory_allocations WHERE timestamp > now() - interval '1 hour'"
            " GROUP BY function_name ORDER BY total_alloc DESC")
    answer = probing(str(j.pid), "query", seed, "--json").ok()
    assert answer.stderr == "" and answer.json()["rows"][0]["function_name"] == "churner"


def test_by_configuration(worker, probing):
    j = worker()
    before = j.do("allocators()")
    probing(str(j.pid), "config", "memory_every=16K").ok()
    probing(str(j.pid), "config", "memory_trace=on").ok()
    wait_until(lambda: j.do("allocators()") != before, what="hooks")
    wait_until(lambda: j.do("work(500)") and ("keeper", "python") in sites(probing, j), what="rows")
    probing(str(j.pid), "config", "memory_trace=off").ok()
    wait_until(lambda: j.do("allocators()") == before, what="hooks to be out")


def test_refused(worker):
    j = worker()
    with Client(j.endpoint) as client:
        assert "1 KiB" in json.dumps(client.call_error("arm", {"what": "alloc", "every": 10, "steps": 0, "compiled": False}))
        assert is_out(client)


@pytest.mark.timeout(240)
def test_torch(training, probing):
    """Tensors on the CPU are torch's, with the line of the job that made them."""
    document = probing(str(training.pid), "memory", "--trace", "--seconds", "3", "--every", "64K", "--json", timeout=120).ok().json()
    torch = [site for site in document["sites"] if site["domain"] == "torch"]
    assert torch and sum(site["allocated_bytes"] for site in torch) > 1 << 20
    assert any(site["line"] for site in torch)
    assert training.alive() and os.path.exists(f"/proc/{training.pid}")
