# SPDX-License-Identifier: Apache-2.0
"""Epochs of 20 steps in a plain loop. What is done to each batch before it goes into the model is named by the job itself. When its steps are
done it stays, and does nothing, until it is ended."""

import itertools
import signal
import time

import torch
import training
from torch import nn


def rss_mb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = training.make_loader(training.Items((64,), 10, count=320))
    for epoch in itertools.count():
        for inputs, classes in job.each(loader, epochs=1):
            before = time.time()
            with torch.profiler.record_function("augment"):
                began = time.time()
                inputs = inputs + 0.01 * torch.randn_like(inputs)
                time.sleep(0.002)
                ended = time.time()
            augment = [before, began, ended, time.time()]
            job.optimize(optimizer.zero_grad)
            loss = nn.functional.cross_entropy(model(inputs), classes)
            loss.backward()
            job.optimize(optimizer.step)
            job.stepped(loss.detach(), optimizer, epoch=epoch, augment=augment, rss_mb=rss_mb())
        if job.over:
            break
    over = job.step
    job.finish(model, optimizer, classes=[type(m).__name__ for m in model.modules()])
    if over == job.args.steps:
        signal.pause()


if __name__ == "__main__":
    main()
