# SPDX-License-Identifier: Apache-2.0
"""A convolutional network with batch normalisation, SGD with momentum, and a DataLoader without workers."""

import torch
import training
from torch import nn


def main():
    job = training.Job(__doc__)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(16 * 4 * 4, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = training.make_loader(training.Items((3, 16, 16), 10))
    for images, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
