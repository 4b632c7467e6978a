# SPDX-License-Identifier: Apache-2.0
"""Forward and backward of every step: where that costs next to nothing, and where somebody looks at steps; against the job's own log."""

import agent_wire
import pytest
from conftest import wait_until
from test_steps_screen import PATIENCE, screen_of  # noqa: F401
from training_job import agree, took_ms, training_job  # noqa: F401

pytestmark = pytest.mark.timeout(300)
STEPS = 40
BUDGET_PCT = 0.1


def phased(row):
    return row["forward_ms"] is not None and row["backward_ms"] is not None


def wait_phased(job, steps=STEPS):
    """Until the newest so many steps all have phases. Their rows."""
    def newest():
        rows = job.rows("python.steps")[-steps:]
        return rows if len(rows) == steps and all(map(phased, rows)) else None
    wait_until(newest, 120, f"phases of {steps} steps in turn", interval=0.3)
    return newest()


def lease(job):
    return next((one for one in job.status()["leases"] if one["what"] == "phases"), None)


@pytest.mark.parametrize("options", [(), ("--function",), ("--ddp",), ("--fsdp",)], ids=["plain", "function", "ddp", "fsdp"])
def test_of_every_step_where_it_costs_nothing(training_job, options):  # noqa: F811
    job = training_job("phases", *options)
    wait_phased(job)
    def is_cheap():
        steps = job.status()["steps"]
        return steps["phases_on"] and 0 < steps["phases_pct"] < BUDGET_PCT
    # on a busy machine a node in Python may wait for the GIL for milliseconds, and then it costs too much for a second
    wait_until(is_cheap, 60, "phases that cost next to nothing", interval=0.2)
    assert not lease(job)
    rows = job.rows("python.steps")
    pairs = job.end().match(rows)[1:]
    pairs = [pair for pair in pairs if phased(pair[0])]
    assert len(pairs) >= STEPS - 1
    # DistributedDataParallel copies gradients back after the last operation, 5 % here: that is in other_ms
    percent = 5 if options in ((), ("--function",)) else 20
    agree([(row["backward_ms"], step["backward_s"] * 1e3) for row, step in pairs], percent=percent)
    agree([(row["forward_ms"] + row["backward_ms"], (step["forward_s"] + step["backward_s"]) * 1e3) for row, step in pairs], percent=percent)
    assert all(row["other_ms"] >= 0 for row, _ in pairs), [row["other_ms"] for row, _ in pairs]
    # the CPU may be taken away between the job's look at its clock and ours
    longer = [(row["duration_ms"], took_ms(step)) for row, step in pairs if row["duration_ms"] > took_ms(step) + 5]
    assert len(longer) <= len(pairs) // 10, longer


def test_of_every_step_while_somebody_looks(training_job):  # noqa: F811
    job = training_job("phases", "--quick")
    job.wait_steps(500)
    # now and then without anybody who looks
    wait_until(lambda: 0 < sum(map(phased, rows := job.rows("python.steps"))) < len(rows) / 2, 60, "phases of some steps", interval=0.2)
    with agent_wire.Client(job.status()["endpoint"]) as client:
        client.call("arm", {"what": "phases", "steps": 0, "compiled": False})
        # by then the newest steps could have phases without it
        wait_until(lambda: lease(job)["hooks_in"], 30, "it to begin", interval=0.2)
        wait_phased(job)
        seen = lease(job)
        assert seen["clients"] == 1 and seen["hooks_in"] and seen["looks"] > 0, seen
        wait_until(lambda: (lease(job)["overhead_pct"] or 0) > BUDGET_PCT, 30, "the cost to be known")
        client.call("disarm", {"what": "phases"})
        wait_until(lambda: not job.status()["steps"]["phases_on"], 30, "it to end", interval=0.2)
        client.call("arm", {"what": "phases", "steps": 0, "compiled": False})
        wait_until(lambda: lease(job)["hooks_in"], 30, "it to begin again", interval=0.2)
    # The client has gone.
    wait_until(lambda: not lease(job) and not job.status()["steps"]["phases_on"], 30, "it to end", interval=0.2)
    # without it they are read for a moment, now and then, and that may be just now
    before = job.rows("python.steps")[-1]["step"]
    wait_until(lambda: sum(not phased(row) for row in job.rows("python.steps") if row["step"] > before) > STEPS, 60, "steps without phases", interval=0.2)
    truth = job.end()
    pairs = [(row, step) for row, step in truth.match(job.rows("python.steps"))[1:] if phased(row)]
    agree([(row["backward_ms"], step["backward_s"] * 1e3) for row, step in pairs], percent=10)


def test_the_screen_asks_for_them(training_job, screen_of):  # noqa: F811
    job = training_job("phases", "--quick")
    s = screen_of(job, 160, 40)
    assert lease(job) is None
    s.type("6")
    s.wait_for("[6 Steps]", PATIENCE)
    wait_until(lambda: lease(job), PATIENCE, "the screen to ask", interval=0.2)
    assert lease(job)["clients"] == 1
    s.type("2")
    s.wait_for("[2 Threads]", PATIENCE)
    wait_until(lambda: not lease(job), PATIENCE, "it to end with the screen", interval=0.2)
    s.type("6")
    wait_until(lambda: lease(job), PATIENCE, "the screen to ask again", interval=0.2)
    s.type("q")
    s.wait_for("status=0", PATIENCE)
    wait_until(lambda: not lease(job), PATIENCE, "it to end with the program", interval=0.2)
