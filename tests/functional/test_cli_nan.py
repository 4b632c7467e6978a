# SPDX-License-Identifier: Apache-2.0
"""probing PID nan: what is found in a job with NaN in it, and that nothing is in one without."""

import pytest
from training_job import training_job  # noqa: F401


@pytest.mark.timeout(300)
def test_found(training_job):  # noqa: F811
    job = training_job("nan", "--at", "5")
    job.wait_steps(10)
    document = job.probing(str(job.pid), "nan", "--json", timeout=120).ok().json()
    assert document["found"] is True and document["stage"] == "forward" and document["nan"] > 0
    assert document["class"] == "Linear" and document["parameter"] == "weight" and document["step"] >= 1
    assert document["input_nonfinite"] == 0 and document["input_min"] <= document["input_max"]
    assert "nan.py:" in document["stack"]
    lines = job.probing(str(job.pid), "nan", "--steps", "1", timeout=120).ok().stdout.splitlines()
    assert lines[0].startswith("step ") and "NaN" in lines[0] and lines[1].startswith("inputs from ")
    assert any(line.startswith("    ") and "nan.py:" in line for line in lines[2:])
    assert [lease for lease in job.status()["leases"] if lease["clients"] or lease["hooks_in"]] == []


@pytest.mark.timeout(300)
def test_nothing(training_job):  # noqa: F811
    job = training_job("cnn")
    job.wait_steps(5)
    document = job.probing(str(job.pid), "nan", "--json", timeout=120).ok().json()
    assert document["found"] is False and document["stage"] == "none" and document["module"] is None
    assert document["text"].startswith("nothing non-finite")
    bad = job.probing(str(job.pid), "nan", "--steps", "21")
    assert bad.status == 2 and "--steps" in bad.stderr
