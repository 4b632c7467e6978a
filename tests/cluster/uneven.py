# SPDX-License-Identifier: Apache-2.0
"""A rank of a gloo job with DistributedDataParallel, in which one rank may be slower than the others.

    uneven.py FAULT RANK LOG        by torchrun, or with the variables that it sets

What a step computes is slept, so that a busy machine does not make it longer: 16 ms for the batch, 48 ms forward, 80 ms backward, in four layers
with a bucket each. It varies by 3 %. Once LOG/go is there, RANK needs more time; events are written as by training.py, and the job ends when
LOG/end is there.
"""

import json
import os
import random
import sys
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

FAULT, BAD, LOG = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAYERS, DATA_S, FORWARD_S, BACKWARD_S, NOISE = 4, 0.016, 0.048, 0.080, 0.03
OWN_S = DATA_S + FORWARD_S + BACKWARD_S
# more time for each part, in the rank that is slow
SLOW = {"data": (0.05 * OWN_S, 0, 0), "slow": (0, 0.05 * OWN_S, 0), "backward": (0, 0, 0.2 * BACKWARD_S)}
extra = (0, 0, 0)


def tell(event, **facts):
    with open(os.path.join(LOG, f"rank-{RANK}.jsonl"), "a", encoding="ascii") as log:
        log.write(json.dumps(dict(facts, event=event, at=time.time())) + "\n")


def compute(seconds):
    time.sleep(max(0, random.gauss(seconds, NOISE * seconds)))


class Work(torch.autograd.Function):
    @staticmethod
    def forward(context, inputs):  # noqa: ARG004
        compute((FORWARD_S + extra[1]) / LAYERS)
        return inputs.clone()

    @staticmethod
    def backward(context, gradients):  # noqa: ARG004
        compute((BACKWARD_S + extra[2]) / LAYERS)
        return gradients


class Layer(torch.nn.Linear):
    def forward(self, inputs):
        return Work.apply(super().forward(inputs))


class Batches(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            compute(DATA_S + extra[0])
            yield torch.randn(64)


def main():
    global extra
    torch.set_num_threads(1)
    random.seed(RANK)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(*(Layer(64, 64) for _ in range(LAYERS))), bucket_cap_mb=0.016)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    stop, began = torch.zeros(1), False
    for step, batch in enumerate(torch.utils.data.DataLoader(Batches(), batch_size=None)):
        begins = not began and os.path.exists(os.path.join(LOG, "go"))
        if begins and RANK == BAD:
            tell("fault", step=step)
        began = began or begins
        if began and FAULT == "rotating":
            extra = (0, 0.2 * OWN_S if (step // 3) % WORLD == RANK else 0, 0)
        elif began and RANK == BAD:
            extra = SLOW.get(FAULT, extra)
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        stop[0] = os.path.exists(os.path.join(LOG, "end"))
        if step == 20:
            tell("ready")
        if step % 10 == 0:
            distributed.all_reduce(stop)
            if stop[0]:
                break
    tell("end")


main()
