# SPDX-License-Identifier: Apache-2.0
"""`probing tables` and `probing memory`: what there is to ask for, and the memory of a job."""

import os

import pytest

JOB = """
import os, time
os.write(int(os.environ["READY_FD"]), b"ready\\n")
time.sleep(3600)
"""


@pytest.fixture
def job(target):
    return target(JOB, name="job.py")


def rss_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_every_column_of_every_table_is_explained(probing):
    tables = probing("tables", "--json").ok().json()["tables"]
    names = [table["name"] for table in tables]
    assert names == sorted(names) and {"python.samples", "python.memory", "python.backtrace"} <= set(names)
    for table in tables:
        assert table["help"] and table["cost"] in ("now", "always", "steps", "probe")
        assert [column["name"] for column in table["columns"][:3]] == ["rank", "host", "pid"]
        for column in table["columns"]:
            assert column["help"] and column["type"] in ("timestamp", "integer", "double", "text", "boolean"), (table, column)


def test_a_table_is_found_by_its_other_name(probing):
    one = probing("tables", "memory_usage").ok().stdout
    assert one.startswith("python.memory, also memory_usage: ")
    assert "collected always" in one
    assert probing("tables", "--json", "memory_usage").ok().json()["tables"][0]["name"] == "python.memory"


def test_a_table_made_of_others_is_listed(probing):
    one = probing("tables", "--json", "training_logs").ok().json()["tables"][0]
    assert [column["name"] for column in one["columns"]] == ["rank", "host", "pid", "timestamp", "step", "epoch", "loss"]
    two = probing("tables", "--json", "comm_metrics").ok().json()["tables"][0]
    assert [column["name"] for column in two["columns"]] == [
        "rank", "host", "pid", "timestamp", "src_rank", "dst_rank", "op", "bytes", "latency_ms", "step", "pg"]
    assert {"training_logs", "comm_metrics"} <= set(probing("tables").ok().stdout.split())


def test_what_is_listed_can_be_read(probing, job, ptrace):
    tables = probing("-t", job.pid, "tables", "--no-inject", "--json").ok().json()["tables"]
    assert {"python.backtrace", "system.process"} <= {table["name"] for table in tables}
    text = ";".join(f"SELECT count(*) AS n FROM {table['name']}" for table in tables)
    answer = probing(job.pid, "query", "--no-inject", "--format", "csv", text).ok()
    counts = dict(zip([table["name"] for table in tables], answer.stdout.split()[1::2]))
    assert len(answer.stdout.split()) == 2 * len(tables)
    assert counts["system.process"] == "1" and counts["probing.config"] == "0"
    assert "probing.config: it needs an agent in the process" in answer.stderr


def test_an_unknown_table_suggests_one(probing):
    refused = probing("tables", "python.sample")
    assert refused.status == 2 and refused.stderr == "probing: no table 'python.sample': did you mean 'python.samples'?\n"
    assert "'probing tables' lists them" in probing("tables", "spreadsheet").stderr


def test_memory_without_an_agent_is_what_the_kernel_says(probing, job, ptrace):
    answer = probing(job.pid, "memory", "--no-inject", "--json").ok().json()
    assert answer["schema_version"] == 1
    (told,) = answer["targets"]
    assert told["pid"] == job.pid and abs(told["rss_mb"] - rss_mb(job.pid)) < 8
    assert told["trend_mb_per_min"] is None and told["gpu_allocated_mb"] is None
    text = probing(job.pid, "memory", "--no-inject").ok().stdout
    assert text.startswith(f"Process {job.pid} on ") and "unknown" in text
    assert "GPU" not in text  # of which nothing is known
