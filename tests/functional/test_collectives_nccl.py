# SPDX-License-Identifier: Apache-2.0
"""python.collectives of NCCL's and XCCL's spans, without a GPU: a library makes what ProcessGroupNCCL makes at the begin of one, with
torch's own classes: a ParamCommsDebugInfo of the thread, and within it a span of that name. And what is none, or lies."""

import json
import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.timeout(300)

CPP = r'''
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <unistd.h>

struct Other : c10::DebugInfoBase { // larger than the one that belongs there
    char bytes[512] = {};
};

extern "C" void collective(const char *span, int kind, const char *op, const char *group, int rank, int world, long in, long out,
                           int dtype, long seq, int p2p, int ms) {
    std::shared_ptr<c10::DebugInfoBase> info;
    auto ours = std::make_shared<torch::ParamCommsDebugInfo>(
        std::make_tuple(std::string(group), std::string("a description of the group")), rank, std::string(op), in, out,
        static_cast<at::ScalarType>(dtype), std::vector<int64_t>{1, 2}, std::vector<int64_t>{3}, 0, 1, world);
    ours->setSequenceInfo(seq, p2p != 0);
    if (kind == 0)
        info = ours;
    else if (kind == 1)
        info = std::make_shared<Other>();
    else if (kind == 2) // nothing is there
        info = {std::shared_ptr<void>(), reinterpret_cast<c10::DebugInfoBase *>(0x10)};
    auto run = [&] {
        at::RecordFunction record(at::RecordScope::USER_SCOPE);
        if (record.isActive())
            record.before(span);
        usleep(static_cast<useconds_t>(ms) * 1000);
    };
    if (!info)
        return run();
    c10::DebugInfoGuard guard(c10::DebugInfoKind::PARAM_COMMS_INFO, info);
    run();
}
'''

JOB = r'''
import ctypes, json, os, sys, threading, time
import torch
library = ctypes.CDLL(sys.argv[1])
cases, go, log = json.load(open(sys.argv[2])), sys.argv[3], sys.argv[4]

def call(span, kind=3, op="", group="", rank=0, world=1, elements=0, made=0, dtype=6, seq=-1, p2p=False, ms=0):
    library.collective(span.encode(), kind, op.encode(), group.encode("latin-1"), rank, world, ctypes.c_long(elements), ctypes.c_long(made),
                       dtype, ctypes.c_long(seq), p2p, ms)

def work():
    os.write(int(os.environ["READY_FD"]), b"ready\n")
    while not os.path.exists(go):
        call("xccl:waits")
        time.sleep(0.05)
    for case in cases:
        call(**case)
    with open(log, "w") as file:
        print(threading.get_native_id(), file=file)
    while True:
        time.sleep(1)

threading.Thread(target=work).start()
'''

HASHED = "0123456789abcdef0123456789abcdef01234567"
# the case, and what its row has: pg, size, bytes, dtype, pg_seq
TRUE = [
    (dict(span="nccl:all_reduce", op="allreduce", group="0", rank=1, world=8, elements=1000, made=1000, seq=41), ("0", 8, 4000, "float32", 41)),
    (dict(span="nccl:_all_gather_base", op="_allgather_base", group=HASHED, rank=3, world=4, elements=10, made=40, dtype=15, seq=42),
     (HASHED, 4, 20, "bfloat16", 42)),
    (dict(span="nccl:reduce_scatter_tensor_coalesced", op="reduce_scatter_tensor_coalesced", group="17", world=2, elements=3 << 40, made=1, dtype=7,
          seq=1 << 40), ("17", 2, 24 << 40, "float64", 1 << 40)),
    (dict(span="nccl:all_to_all", op="all_to_allv", group="0", world=1, elements=0, made=7, dtype=1, seq=0), ("0", 1, 0, "int8", 0)),
    (dict(span="nccl:all_reduce_barrier", op="barrier", group="0", world=2, dtype=0, seq=43), ("0", 2, 0, "uint8", 43)),
    (dict(span="nccl:send 0->1", op="send", group="0", rank=1, world=2, elements=5, made=5, dtype=4, seq=3, p2p=True), ("0", 2, 40, "int64", 3)),
    # of XCCL no number is known; of a type that is not known, no bytes
    (dict(span="xccl:broadcast", op="broadcast", group="2", world=2, elements=8, made=8), ("2", 2, 32, "float32", None)),
    (dict(span="nccl:broadcast", op="broadcast", group="", world=2, elements=8, made=8, dtype=12, seq=9), (None, 2, None, None, 9)),
    (dict(span="nccl:reduce", op="reduce", group="0", world=2, elements=8, made=8, seq=44, ms=4000), ("0", 2, 32, "float32", 44)),
]
FALSE = [
    dict(span="nccl:all_reduce"),
    dict(span="nccl:all_reduce", kind=1),
    dict(span="nccl:all_reduce", kind=2),
    dict(span="gloo:all_reduce", op="allreduce"),
    dict(span="nccl:_broadcast_oop", op="all_gather"),
    dict(span="nccl:all_reduce", op="allreduce", rank=8, world=8),
    dict(span="nccl:all_reduce", op="allreduce", rank=-1, world=8),
    dict(span="nccl:all_reduce", op="allreduce", world=0),
    dict(span="nccl:all_reduce", op="allreduce", elements=-1),
    dict(span="nccl:all_reduce", op="allreduce", made=-5),
    dict(span="nccl:all_reduce", op="allreduce", dtype=-1),
    dict(span="nccl:all_reduce", op="allreduce", seq=-7),
    dict(span="nccl:all_reduce", op="allreduce", group="g" * 10000),
    dict(span="nccl:all_reduce", op="allreduce" + "e" * 10000),
    dict(span="nccl:all_reduce", op="allreduce", group="\x1b[31mred"),
    dict(span="nccl:all_reduce", op="allreduce\x1b[31m"),
]
KNOWN = ("pg", "size", "bytes", "dtype", "pg_seq")


@pytest.fixture(scope="module")
def library(torch_python, tmp_path_factory):
    """CPP, built with torch's headers (5 s of a CPU)."""
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("needs g++: none installed")
    asked = "import json, torch, torch.utils.cpp_extension as e; print(json.dumps([e.include_paths(), e.library_paths(), torch._C._GLIBCXX_USE_CXX11_ABI, torch.__version__]))"
    done = subprocess.run([torch_python, "-c", asked], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        pytest.skip(f"needs torch's headers: {done.stderr.strip().splitlines()[-1]}")
    includes, libraries, abi, version = json.loads(done.stdout)
    if not any(os.path.exists(f"{path}/torch/csrc/distributed/c10d/ParamCommsUtils.hpp") for path in includes):
        pytest.skip(f"needs torch's headers: none in {includes}")
    if tuple(int(part) for part in version.split(".")[:2]) < (2, 12):
        pytest.skip(f"needs an object with a sequence number, of torch 2.12 on: this is {version}")
    folder = tmp_path_factory.mktemp("nccl")
    source, made = folder / "comm.cpp", str(folder / "comm.so")
    source.write_text(CPP, encoding="utf-8")
    subprocess.run([compiler, "-std=c++20", "-w", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}", *(f"-I{path}" for path in includes),
                    "-o", made, str(source), *(f"-L{path}" for path in libraries), "-ltorch_cpu", "-lc10"], check=True, timeout=250)
    return made


def test_what_torch_knows(library, torch_python, probing, target, ptrace, tmp_path, wait_until):
    cases, go, log = tmp_path / "cases", tmp_path / "go", tmp_path / "log"
    lies = [dict(dict(kind=0, group="0", world=2), **case) if "op" in case else case for case in FALSE]
    cases.write_text(json.dumps([dict(case, kind=0) for case, _ in TRUE] + lies), encoding="utf-8")
    job = target(JOB, library, cases, go, log, python=torch_python, timeout=120.0)
    probing("inject", job.pid, timeout=60).ok()

    def rows(text):
        return probing("-t", str(job.pid), "query", "--json", text, timeout=60).ok().json()["rows"]

    wait_until(lambda: rows("SELECT count(*) AS n FROM python.collectives")[0]["n"], 60, "spans")
    go.touch()
    wait_until(log.exists, 60, "the end of all cases")
    asked = "SELECT *, printf('%s:%s', backend, op) AS span FROM python.collectives WHERE op <> 'waits' AND state = 'done' ORDER BY seq"
    found = wait_until(lambda: len(seen := rows(asked)) == len(TRUE) + len(FALSE) and seen, 60, "rows of all")
    first = found[0]["seq"]
    assert [row["seq"] for row in found] == list(range(first, first + len(found)))
    for row, (case, known) in zip(found, TRUE):
        assert row["span"] == case["span"] and tuple(row[name] for name in KNOWN) == known, row
        assert row["source"] == "tls" and row["p2p"] == case.get("p2p", False) and row["tid"] == int(log.read_text())
        assert row["duration_ms"] is None and row["enqueue_ms"] >= case.get("ms", 0)
    for row, case in zip(found[len(TRUE):], FALSE):
        assert row["span"] == case["span"] and row["source"] == "span" and all(row[name] is None for name in KNOWN), (row, case)
    # one that has gone on for a second has another row, of the same seq; nobody looks for it within a second on a busy machine
    [going] = rows("SELECT seq, source, pg, size, bytes, dtype, pg_seq FROM python.collectives WHERE state = 'open'")
    assert going["seq"] == first + len(TRUE) - 1 and going["source"] == "tls" and tuple(going[name] for name in KNOWN) == TRUE[-1][1]
    # what is made of them has the groups, too
    [sent] = rows("SELECT pg, bytes FROM comm_metrics WHERE op = 'reduce'")
    assert sent == {"pg": "0", "bytes": 32}
    assert job.alive()
