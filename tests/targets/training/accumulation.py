# SPDX-License-Identifier: Apache-2.0
"""Gradients of four batches are added up before each optimizer step."""

import torch
import training
from torch import nn

BATCHES = 4


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = training.make_loader(training.Items((64,), 10))
    total = 0.0
    for number, (inputs, classes) in enumerate(job.each(loader), 1):
        loss = nn.functional.cross_entropy(model(inputs), classes) / BATCHES
        loss.backward()
        total += loss.item()
        if number % BATCHES == 0:
            job.optimize(optimizer.step)
            job.stepped(total, optimizer, batches=BATCHES)
            total = 0.0
            optimizer.zero_grad()
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
