# SPDX-License-Identifier: Apache-2.0
"""Makes cycles of objects beside a large heap, so that collections of the garbage take a good part of each step; the log has what
gc.callbacks tell of them."""

import gc
import time

import torch
import training
from torch import nn


def add_arguments(parser):
    parser.add_argument("--objects", type=int, default=100000, help="that are always there")
    parser.add_argument("--every", type=int, default=2, help="a full collection each so many steps")


class Watch:
    """Writes down each collection."""

    def __init__(self, job):
        self.job, self.began, self.total_s = job, None, 0.0
        gc.callbacks.append(self)

    def __call__(self, phase, info):
        if phase == "start":
            self.began = time.time()
        elif self.began is not None:
            self.total_s += time.time() - self.began
            self.job.did("gc", self.began, generation=info["generation"], collected=info["collected"])


def make_cycles(n):
    for _ in range(n):
        one, other = {}, {}
        one["other"], other["one"] = other, one


def main():
    job = training.Job(__doc__, add_arguments)
    heap = [[i] for i in range(job.args.objects)]
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = training.make_loader(training.Items((64,), 10))
    watch = Watch(job)
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        make_cycles(500)
        if (job.step + 1) % job.args.every == 0:
            gc.collect()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer, gc_s=watch.total_s)
        watch.total_s = 0.0
    gc.callbacks.remove(watch)
    job.finish(model, optimizer, heap=len(heap))


if __name__ == "__main__":
    main()
