# SPDX-License-Identifier: Apache-2.0
"""A generator and a discriminator with an optimizer each: both take a step with each batch. With --no-loader the batches are made in the
loop."""

import torch
import training
from torch import nn


def add_arguments(parser):
    parser.add_argument("--no-loader", action="store_true", help="make batches without a DataLoader")


def made(job):
    job.start()
    while not job.over:
        yield torch.randn(16, 64), None


def main():
    job = training.Job(__doc__, add_arguments)
    generator, discriminator = training.Perceptron(16, 64), training.Perceptron(64, 1)
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-4)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
    judge = nn.functional.binary_cross_entropy_with_logits
    batches = made(job) if job.args.no_loader else job.each(training.make_loader(training.Items((64,), 2)))
    for real, _ in batches:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = generator(torch.randn(len(real), 16))
        job.optimize(optimizer_d.zero_grad)
        loss_d = judge(discriminator(real), ones) + judge(discriminator(fake.detach()), zeros)
        loss_d.backward()
        job.optimize(optimizer_d.step)
        job.optimize(optimizer_g.zero_grad)
        loss_g = judge(discriminator(fake), ones)
        loss_g.backward()
        job.optimize(optimizer_g.step)
        job.stepped((loss_d + loss_g).detach(), optimizer_g, optimizers=2)
    job.finish([generator, discriminator], [optimizer_d, optimizer_g])


if __name__ == "__main__":
    main()
