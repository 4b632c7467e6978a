# SPDX-License-Identifier: Apache-2.0
"""Two ranks of DistributedDataParallel with gloo on the loopback; rank 1 comes --late seconds late to each backward pass, for which rank 0
waits in its collective. Without RANK this process starts rank 1 and becomes rank 0; each has a log of its own (FILE.0, FILE.1)."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta

import torch
import training
from torch import distributed, nn


class Job(training.Job):
    """Who is asked to end tells the other rank first."""

    is_asked = False

    def stop(self, signum, frame):
        self.is_asked = True


def add_arguments(parser):
    parser.add_argument("--late", type=float, default=0.02, help="seconds that rank 1 is late in each step")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def become_ranks():
    """With the environment that torchrun gives, from the beginning on."""
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo")
    command = [sys.executable, *sys.argv]
    subprocess.Popen(command, env=dict(env, RANK="1", LOCAL_RANK="1"))
    os.execve(sys.executable, command, dict(env, RANK="0", LOCAL_RANK="0"))


def main():
    if "RANK" not in os.environ:
        become_ranks()
    rank = int(os.environ["RANK"])
    job = Job(__doc__, add_arguments, rank=rank)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = training.Perceptron(64, 10)
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = training.make_loader(training.Items((64,), 10), seed=1 + rank)
    stop = torch.zeros(1)
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(wrapped(inputs), classes)
        if rank == 1:
            time.sleep(job.args.late)
        loss.backward()
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer, late_s=job.args.late if rank == 1 else 0.0)
        stop.fill_(job.over or job.is_asked)
        distributed.broadcast(stop, 0)  # both end with the same step
        job.over = bool(stop.item())
    job.finish(model, optimizer)
    distributed.destroy_process_group()
    if rank == 0:
        os.wait()


if __name__ == "__main__":
    main()
