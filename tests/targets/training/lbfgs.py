# SPDX-License-Identifier: Apache-2.0
"""LBFGS, whose step calls the closure, with its forward and backward passes, several times."""

import torch
import training
from torch import nn


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(16, 4, width=64, layers=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    loader = training.make_loader(training.Items((16,), 4), batch=64)
    for inputs, classes in job.each(loader):
        calls = 0

        def closure():
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), classes)
            loss.backward()
            return loss

        loss = job.optimize(optimizer.step, closure)
        job.stepped(loss.detach(), optimizer, closures=calls)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
