# SPDX-License-Identifier: Apache-2.0
"""A job that writes down how long the forward and the backward pass of each step took. Its steps are long, with few operations; with
--quick they are short, with many: there it costs too much that each is looked into. With --function an operation is in Python. With --ddp
and --fsdp gradients are reduced while the backward pass goes on."""

import time

import torch
import training
from torch import distributed, nn

WIDTH, OPERATIONS = 700, 150


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        width = 8 if args.quick else WIDTH
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(1 if args.quick else 8)])

    def forward(self, x):
        x = self.layers(x)
        for _ in range(OPERATIONS if self.args.quick else 0):
            x = x + 1e-6
        return (Doubled.apply(x) if self.args.function else x).square().mean()


def add_arguments(parser):
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--function", action="store_true")
    parser.add_argument("--ddp", action="store_true")
    parser.add_argument("--fsdp", action="store_true")


def main():
    job = training.Job(__doc__, add_arguments)
    torch.set_num_threads(1)
    model = Model(job.args)
    if job.args.ddp or job.args.fsdp:
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    if job.args.ddp:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    if job.args.fsdp:
        from torch.distributed.fsdp import fully_shard

        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    shape = (4, 8) if job.args.quick else (128, WIDTH)
    for inputs, _ in job.each(training.make_loader(training.Items(shape[1:], 10), batch=shape[0])):
        job.optimize(optimizer.zero_grad)
        began = time.time()
        loss = model(inputs)
        between = time.time()
        loss.backward()
        ended = time.time()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer, forward_s=between - began, backward_s=ended - between)
    job.finish(*() if job.args.fsdp else (model, optimizer))  # its parameters have no storage of their own


if __name__ == "__main__":
    main()
