# SPDX-License-Identifier: Apache-2.0
"""What the jobs of tests/faults have in common: their log, and a training loop that is small.

    began()                 from here on the fault is there: the job's own log says when
    loop = Loop()           a model, an optimizer, batches
    loop.step()             forward, backward, optimizer
    loop.go_on(2)           steps for so long
Each job says at its top what must be said of it: see tests/functional/test_faults.py.
"""

import json
import os
import time


def tell(event, **facts):
    """A line of the job's log."""
    path = os.environ.get("FAULT_LOG")
    if path:
        with open(path, "a", encoding="ascii") as log:
            log.write(json.dumps(dict(facts, event=event, at=time.time())) + "\n")


def ready():
    """It runs, and a client may attach."""
    tell("ready")
    if "READY_FD" in os.environ:
        os.write(int(os.environ["READY_FD"]), b"ready\n")
        os.close(int(os.environ.pop("READY_FD")))


def began(**facts):
    tell("fault", **facts)


def wait_for_client():
    """Where the job is to be attached to before its fault, until FAULT_GO is there; at once otherwise."""
    path = os.environ.get("FAULT_GO")
    while path and not os.path.exists(path):
        time.sleep(0.02)
        yield


class Loop:
    """Training of a Perceptron on the CPU."""

    def __init__(self, width=256, batch=64, threads=1, rate=1e-3, layers=4):
        import torch
        from torch import nn
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.torch, self.batch, self.width = torch, batch, width
        self.model = nn.Sequential(*(module for _ in range(layers) for module in (nn.Linear(width, width), nn.ReLU())), nn.Linear(width, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.criterion = nn.CrossEntropyLoss()
        self.steps = 0

    def random(self):
        return self.torch.randn(self.batch, self.width), self.torch.randint(0, 10, (self.batch,))

    def step(self, batch=None):
        inputs, classes = batch or self.random()
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(inputs), classes)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        if self.steps == 5:
            ready()
        return loss

    def go_on(self, seconds=2.0):
        """Steps for so long, and until a client that comes before the fault is there."""
        for _ in wait_for_client():
            self.step()
        until = time.monotonic() + seconds
        while time.monotonic() < until or self.steps < 20:
            self.step()


def work_until_client(seconds=1.0):
    """The same for jobs that do not train."""
    ready()
    for _ in wait_for_client():
        pass
    time.sleep(seconds)
