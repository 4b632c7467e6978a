# SPDX-License-Identifier: Apache-2.0
"""Two DataLoader workers, one of which (number 1) takes --seconds for each item: every second batch is waited for."""

import torch
import training
from torch import nn

SLOW = 1


def add_arguments(parser):
    parser.add_argument("--seconds", type=float, default=0.004, help="what an item takes in the slow worker")
    parser.add_argument("--batch", type=int, default=16, help="items in a batch")
    parser.add_argument("--items", type=int, default=4096, help="in an epoch")


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    items = training.Items((64,), 10, job.args.items, seconds=job.args.seconds, slow=SLOW)
    loader = training.make_loader(items, batch=job.args.batch, workers=2)
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer, slow_worker=SLOW)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
