# SPDX-License-Identifier: Apache-2.0
"""Two loaders at the same time: one of two workers over a stream without indices, one of one worker that stays from epoch to epoch; from time to time
a third without workers is run through, to evaluate."""

import time

import torch
import training
from torch import nn


def evaluate(job, model, loader):
    with torch.no_grad():
        return sum(nn.functional.cross_entropy(model(inputs), classes).item() for inputs, classes in job.each(loader, epochs=1))


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    stream = training.make_loader(training.Stream((64,), 10), workers=2, prefetch_factor=3)
    items = training.make_loader(training.Items((64,), 10, count=640), workers=1, persistent_workers=True)
    held_out = training.make_loader(training.Items((64,), 10, count=64))
    others = iter(items)
    for inputs, classes in job.each(stream):
        asked = time.time()
        other = next(others, None)
        if other is None:
            others = iter(items)
            other = next(others)
        job.data_s += time.time() - asked
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes) + nn.functional.cross_entropy(model(other[0]), other[1])
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
        if job.step % 50 == 0:
            evaluate(job, model, held_out)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
