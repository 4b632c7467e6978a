# SPDX-License-Identifier: Apache-2.0
"""Keeps a tensor of each step: [32, 256] of float32, the activations of the step, in the list History.kept."""

import time

import torch
import training
from torch import nn


class History:
    """Remembers what it is given, and forgets nothing."""

    def __init__(self):
        self.kept = []

    def remember(self, activations):
        self.kept.append(activations.detach().clone())


def add_arguments(parser):
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="in each step, as if for a device that computes")


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = training.make_loader(training.Items((64,), 10), batch=32)
    history = History()
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        activations = torch.relu(model.first(inputs))
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        job.optimize(optimizer.step)
        history.remember(activations)
        if job.args.wait:
            time.sleep(job.args.wait)
        job.stepped(loss.detach(), optimizer, kept=len(history.kept), kept_bytes=training.bytes_of(history.kept[-1:]) * len(history.kept))
    job.finish(model, optimizer, kept=len(history.kept))


if __name__ == "__main__":
    main()
