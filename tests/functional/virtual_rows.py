# SPDX-License-Identifier: Apache-2.0
"""Jobs with torch that take commands, and tables that Python makes in them, asked for over the wire."""

import pytest
from agent_job import job  # noqa: F401

ENV = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore::FutureWarning"}


def made(client, table, args=None):
    """(rows as dicts, note) of the agent's answer."""
    answer = client.call("rows", {"table": table, "args": args or {}})
    return [dict(zip(answer["columns"], row)) for row in answer["rows"]], answer["note"]


class TorchJob:
    """A job; `run` gives it source to execute, `do` an expression to evaluate."""

    def __init__(self, made_job):
        self.job = made_job
        self.pid = made_job.pid

    def run(self, source):
        answer = self.job.do(f"exec({source!r}, globals())")
        assert answer is None, answer

    def do(self, expression):
        return self.job.do(expression)

    def start(self):
        return self.job.start()


@pytest.fixture
def torch_job(job, torch_fork):  # noqa: F811
    """A factory: torch_job(source) is a job that has run it."""
    def make(source=""):
        j = TorchJob(job(fork=torch_fork, env=ENV))
        j.run("import torch\ntorch.set_num_threads(1)\n" + source)
        return j
    return make
