# SPDX-License-Identifier: Apache-2.0
"""What NCCL's RAS service knows is evidence of a verdict, and nothing else. A gloo job with a planted fault, whose ranks have been given the
address of a service that is made here: it answers by NCCL's protocol, in both forms, or not at all, or lies."""

import json
import os
import socket
import sys
import threading

import pytest

from conftest import ROOT, wait_until

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from ranks import Job, is_right  # noqa: E402

pytestmark = pytest.mark.timeout(300)

ASKED = ["CLIENT PROTOCOL 2", "TIMEOUT 3", "SET FORMAT json"]


def rank_of(number, pid, reduced, host="127.0.0.1"):
    return {"rank": number, "host": host, "pid": pid, "cuda_dev": number, "nvml_dev": number,
            "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False},
            "collective_counts": {"Broadcast": 3, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": reduced}}


def missing(number, pid, host="127.0.0.1", dead=True):
    return {"rank": number, "host": host, "pid": pid, "cuda_dev": 0, "nvml_dev": 0, "status": {"unresponsive": True, "considered_dead": dead}}


def as_json(ranks, gone=(), size=2):
    comm = {"hash": "0xae94423cfbb2ef4a", "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e", "size": size, "ranks_count": len(ranks),
            "missing_ranks_count": len(gone), "ranks": ranks, "missing_ranks": list(gone)}
    return json.dumps({"nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2025-12-19 13:06:53",
                       "communicators_count": 1, "communicators": [comm], "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}}, indent=2) + "\n"


def as_text(warnings):
    return ("NCCL version 2.27.3 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 12090\n\nJob summary\n===========\n\n"
            "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
            "      1          2            1          2        2\n\nCommunicators... (0.00s)\n=============\n\n"
            "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
            "    #  in group  per comm  per node  per comm  in group\n    0         1         1         2         2         2   RUNNING  MISMATCH\n"
            f"\nErrors\n======\n\nWarnings\n========\n\n{warnings}")


class Service:
    """`answer`: to STATUS; None: it accepts, and says nothing. `knows_json`: NCCL 2.28.7 or later."""

    def __init__(self):
        self.answer, self.knows_json, self.lines, self.accepted, self.open = "", True, [], 0, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while self.open:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            for line in connection.makefile("r", encoding="ascii"):
                self.lines.append(line.rstrip("\n"))
                if self.answer is None:
                    continue
                if line.startswith("CLIENT PROTOCOL "):
                    connection.sendall(b"SERVER PROTOCOL 2\n")
                elif line.startswith("TIMEOUT ") or (self.knows_json and line == "SET FORMAT json\n"):
                    connection.sendall(b"OK\n")
                elif line in ("STATUS\n", "VERBOSE STATUS\n"):
                    parts = [self.answer] if isinstance(self.answer, str) else self.answer
                    for part in parts:
                        connection.sendall(part.encode())
                    break
                else:
                    connection.sendall(b"ERROR: Unknown command " + line.encode())
        except OSError:
            pass
        finally:
            connection.close()

    def close(self):
        self.open = False
        self.listener.close()


@pytest.fixture
def service():
    one = Service()
    yield one
    one.close()


@pytest.fixture
def hung(torch_python, torch_fork, tmp_path, data_dir, service, monkeypatch):  # noqa: ARG001
    """Starts a job of two ranks of which rank 1 waits for a batch that does not come."""
    jobs = []

    def start(**env):
        for name, value in {"NCCL_RAS_ADDR": service.address, **env}.items():
            monkeypatch.setenv(name, value)
        jobs.append(Job(torch_python, tmp_path / "job", "loader_queue", 2, 1, torch_fork))
        jobs[-1].wait("ready")
        jobs[-1].begin()
        return jobs[-1]
    yield start
    for one in jobs:
        one.close()


def judge(probing, job, *options):
    done = probing("cluster", "verdict", job.target(), "--json", *options, timeout=60)
    assert done.status in (0, 1), done
    return done.json()


def evidence(document):
    """What RAS is quoted with: rank and text."""
    return [(e["rank"], e["text"]) for v in document["verdicts"] for e in v["evidence"] if e["witness"] == "ras"]


def told(probing, job, expected, *options):
    """The verdict, which is right, once it has that evidence: the second answer comes two seconds after the first."""
    last = []

    def judged():
        document = judge(probing, job, *options)
        last[:] = [is_right(job.fault, job.bad, document), evidence(document)]
        return document if last == [None, expected] else None
    try:
        return wait_until(judged, 60, "that evidence", interval=0.1)
    except pytest.fail.Exception:
        pytest.fail(f"{last}, not {expected}")


@pytest.mark.long
def test_evidence(hung, service, probing, ptrace):
    """Who is behind, in both forms, is evidence of the verdict about that rank; that all is well is none."""
    job = hung()
    pids = [job.pid(0), job.pid(1)]
    service.answer = as_json([rank_of(0, pids[0], 51), rank_of(1, pids[1], 50)])
    behind = [(1, f"its process (pid {pids[1]} on 127.0.0.1) has launched 1 fewer AllReduce than the others")]
    [v] = told(probing, job, behind)["verdicts"]
    assert v["brief"] == "HUNG RANK 1" and v["level"] == "bad"
    assert set(service.lines) == {*ASKED, "STATUS"}, service.lines
    words = probing("cluster", "verdict", job.target(), timeout=60)
    assert f"rank 1, ras: {behind[0][1]}" in words.stdout, words
    # by a relay, as on another host: the first reading asks, so that the evidence comes with a later one
    document = told(probing, job, behind, "--hosts", "here", "--via", "local")
    assert document["verdicts"][0]["brief"] == "HUNG RANK 1"

    service.answer = as_json([rank_of(0, pids[0], 51), rank_of(1, pids[1], 51)])
    for _ in range(3):
        service.lines.clear()
        told(probing, job, [])
        assert "STATUS" in service.lines  # it was asked, and has answered

    service.knows_json = False
    service.answer = as_text("#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
                             f"  Rank 0 has launched up to operation 51 -- GPU 0 managed by process {pids[0]} on node 127.0.0.1\n"
                             f"  Rank 1 has launched up to operation 50 -- GPU 1 managed by process {pids[1]} on node 127.0.0.1\n\n")
    service.lines.clear()
    told(probing, job, behind)
    assert set(service.lines) == {*ASKED, "VERBOSE STATUS"}, service.lines


@pytest.mark.long
def test_silent_and_liars(hung, service, probing, ptrace):
    """Who accepts and says nothing delays nothing. What lies accuses nobody, and harms nothing."""
    job = hung()
    pids = [job.pid(0), job.pid(1)]
    service.answer = as_json([rank_of(0, pids[0], 51), rank_of(1, pids[1], 51)])
    told(probing, job, [])
    well = judge(probing, job)
    service.answer, service.accepted = None, 0
    silent = judge(probing, job)
    assert service.accepted > 0 and is_right(job.fault, job.bad, silent) is None
    assert silent["elapsed_s"] < well["elapsed_s"] + 2, (silent["elapsed_s"], well["elapsed_s"])

    def many():
        for i in range(1_000_000):
            yield "," * bool(i) + '{"rank": %d}' % i

    def endless():
        while True:
            yield "x" * 65536
    lies = [
        # the rank that waits is dead, it says, and so are ranks that nobody has
        (as_json([rank_of(1, pids[1], 51)], [missing(0, pids[0])]), [(0, f"NCCL considers its process (pid {pids[0]} on 127.0.0.1) dead")]),
        (as_json([rank_of(0, pids[0], 51), rank_of(1, pids[1], 51)], [missing(2, 812, "10.0.0.2"), missing(1 << 30, 1)], 3), []),
        (as_json([rank_of(0, pids[0], 51)], [missing(1, 812, "\x1b[31mgpu2\n")]), []),
        # a rank twice, negative numbers, no end of brackets, a million ranks, no end at all, nothing
        (as_json([rank_of(0, pids[0], 51), rank_of(0, pids[1], -5), rank_of(1, pids[1], 2)]), []),
        ("[" * 500_000, None), (many, None), (endless, None), ("", None),
    ]
    for lie, expected in lies:
        heard = []

        def judged(lie=lie, expected=expected, heard=heard):
            """Whatever it has said by then the verdict is the same; True once it was heard."""
            service.answer = lie() if callable(lie) else lie
            document = judge(probing, job)
            assert is_right(job.fault, job.bad, document) is None, lie
            assert [(v["code"], v["ranks"]) for v in document["verdicts"]] == [("HUNG", "1")], document
            assert "\x1b" not in json.dumps(document, ensure_ascii=False)
            heard[:] = evidence(document)
            if expected is not None:
                assert heard in (expected, []), (lie, document)
                return heard == expected and "STATUS" in service.lines
            assert all(rank is None and service.address in text for rank, text in heard), document
            return bool(heard)
        service.lines.clear()
        wait_until(judged, 60, f"{expected} to be said of {str(lie)[:200]}", interval=0.1)


def test_not_asked(hung, service, probing, ptrace):
    """NCCL_RAS_ENABLE=0: there is no service, and nobody is asked."""
    job = hung(NCCL_RAS_ENABLE="0")
    told(probing, job, [(None, "not asked: NCCL_RAS_ENABLE is 0")])
    assert service.accepted == 0
