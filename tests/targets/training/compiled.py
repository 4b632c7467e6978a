# SPDX-License-Identifier: Apache-2.0
"""A model under torch.compile, --backend eager or inductor."""

import torch
import training
from torch import nn


def add_arguments(parser):
    parser.add_argument("--backend", default="eager", help="of torch.compile")


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10)
    compiled = torch.compile(model, backend=job.args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = training.make_loader(training.Items((64,), 10))
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(compiled(inputs), classes)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
