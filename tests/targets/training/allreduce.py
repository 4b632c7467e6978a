# SPDX-License-Identifier: Apache-2.0
"""A rank of a gloo job, as torchrun starts it: one all_reduce after the other, 20 a second. Writes "rank N ready" when the first is done.
When the file that is named by --until is there, all of them stop that with the same one, and write "rank N idle"."""

import argparse
import os
import time

import torch
from torch import distributed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", metavar="FILE")
    args = parser.parse_args()
    distributed.init_process_group("gloo")
    over = torch.zeros(4)
    distributed.all_reduce(over)
    print(f"rank {os.environ['RANK']} ready", flush=True)
    while not over[0]:
        time.sleep(0.05)
        distributed.all_reduce(over.fill_(bool(args.until) and os.path.exists(args.until)))
    print(f"rank {os.environ['RANK']} idle", flush=True)
    while True:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
