# SPDX-License-Identifier: Apache-2.0
"""A second thread computes in Python all the time, so that the training waits for the GIL again and again."""

import threading

import torch
import training
from torch import nn


def compute(job):
    total = 0
    while not job.over:
        for i in range(100000):
            total ^= i * i
    return total


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = training.make_loader(training.Items((64,), 10))
    threading.Thread(target=compute, args=(job,), name="hog", daemon=True).start()
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
