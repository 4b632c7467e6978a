# SPDX-License-Identifier: Apache-2.0
"""Each so many steps it does something that takes much longer, in a function of its own: it sleeps, or computes; the log has when."""

import time

import torch
import training
from torch import nn


def add_arguments(parser):
    parser.add_argument("--every", type=int, default=30, help="steps from one slow one to the next")
    parser.add_argument("--slow", type=float, default=0.4, help="seconds that it takes more")
    parser.add_argument("--step", type=float, default=0.03, help="seconds that an ordinary step waits")
    parser.add_argument("--by", choices=["sleep", "work", "both"], default="both", help="what a slow one does")


def wait_for_storage(seconds):
    time.sleep(seconds)


def evaluate_metrics(seconds):
    end, x = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        x = (x * 31 + 7) % 1000003
    return x


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = training.make_loader(training.Items((64,), 10))
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        time.sleep(job.args.step)
        if (job.step + 1) % job.args.every == 0:
            began, number = time.time(), (job.step + 1) // job.args.every
            if job.args.by == "sleep" or (job.args.by == "both" and number % 2):
                wait_for_storage(job.args.slow)
                job.did("wait_for_storage", began)
            else:
                evaluate_metrics(job.args.slow)
                job.did("evaluate_metrics", began)
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
