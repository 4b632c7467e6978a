# SPDX-License-Identifier: Apache-2.0
"""Gloo jobs by torchrun in which one rank skips a collective (tests/targets/training/skips.py). Import `skipping` to use it."""

import json
import os
import signal
import subprocess

import pytest

from conftest import ROOT, wait_until

SKIPS = os.path.join(ROOT, "tests", "targets", "training", "skips.py")


class SkippingJob:
    """A job; `pid` is its launcher's, `stop` the file at which rank `who` skips, with late=True, and after which it enters
    them. Rank `slow` comes later than the others to each."""

    def __init__(self, python, folder, world, who, late, slow):
        self.folder, self.world, self.who, self.stop = folder, world, who, folder / "stop"
        self.output = folder / "output"
        with open(self.output, "wb") as file:
            self.process = subprocess.Popen(
                [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world), SKIPS, folder, "--who", str(who),
                 *(["--stop", self.stop] if late else []), *(["--slow", str(slow)] if slow is not None else [])],
                stdout=file, stderr=file, env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"), start_new_session=True)
        self.pid = self.process.pid

    def written(self):
        """What each rank has written; None of one that has not."""
        assert self.process.poll() is None, self.output.read_text()
        files = [self.folder / str(rank) for rank in range(self.world)]
        return [json.loads(file.read_text()) if file.exists() else None for file in files]

    def running(self):
        return wait_until(lambda: all(self.written()) and self.written(), 180, "ranks that run", interval=0.1)

    def stuck(self):
        """Waits until the others wait for rank `who`."""
        def seen():
            ranks = self.written()
            return all(ranks) and ranks[self.who]["skips"] and all(
                r["all"][0] - r["all"][1] == 2 for i, r in enumerate(ranks) if i != self.who) and ranks
        return wait_until(seen, 180, "ranks that wait", interval=0.1)


@pytest.fixture
def skipping(torch_python, tmp_path, probing):
    """skipping(world, who, late=False, slow=None): a SkippingJob."""
    started = []

    def start(world, who, late=False, slow=None):
        folder = tmp_path / f"job{len(started)}"
        folder.mkdir()
        started.append(SkippingJob(torch_python, folder, world, who, late, slow))
        return started[-1]
    yield start
    for job in started:
        found = probing("cluster", "ranks", str(job.pid), "--json", timeout=60)
        pids = [row["pid"] for row in json.loads(found.stdout)["rows"]] if found.status == 0 else []
        for pid in [job.pid, *filter(None, pids)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.process.wait()
