# SPDX-License-Identifier: Apache-2.0
"""A rank of a gloo job: some milliseconds of work and an all_reduce a step; the time of each is added to the file that is named, a line."""

import sys
import time

import torch
from torch import distributed


def step(a, gradient):
    for _ in range(4):
        a = torch.tanh(a @ a)
    gradient.copy_(a.flatten()[:4096])
    distributed.all_reduce(gradient)


def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    a, gradient = torch.randn(192, 192), torch.zeros(4096)
    with open(f"{sys.argv[1]}.{distributed.get_rank()}", "w", encoding="ascii", buffering=1) as times:
        while True:
            step(a, gradient)
            times.write(f"{time.monotonic()}\n")
            time.sleep(0.01)


if __name__ == "__main__":
    main()
