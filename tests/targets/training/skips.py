# SPDX-License-Identifier: Apache-2.0
"""A rank of a gloo job, as torchrun starts it: in each step two all_reduce of all ranks together, then one of a group of its half. One rank
skips them in step --at, and waits without end; or in the first step in which there is a file --stop, and enters them late, when it is gone.
Each rank writes to FOLDER/RANK, before and after each collective, how many it has entered and
how many have ended, of all ranks and of its half, and "skips" where it waits."""

import argparse
import json
import os
import time

import torch
from torch import distributed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--at", type=int, default=20)
    parser.add_argument("--stop", metavar="FILE")
    parser.add_argument("--slow", metavar="RANK", type=int, help="this rank works 30 ms longer in each step than the others")
    parser.add_argument("--who", type=int, default=1)
    args = parser.parse_args()
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    halves = [distributed.new_group(list(range(world // 2))), distributed.new_group(list(range(world // 2, world)))]
    half = halves[rank >= world // 2]
    counts = {"all": [0, 0], "half": [0, 0], "skips": False}

    def log(name, entered, ended):
        counts[name][0] += entered
        counts[name][1] += ended
        path = os.path.join(args.folder, str(rank))
        with open(path + ".new", "w", encoding="ascii") as file:
            json.dump(counts, file)
        os.replace(path + ".new", path)

    large, small = torch.zeros(3, 5000), torch.zeros(7, dtype=torch.float64)
    for step in range(10 ** 6):
        if rank == args.who and (os.path.exists(args.stop) if args.stop else step == args.at):
            counts["skips"] = True
            log("all", 0, 0)
            while not args.stop or os.path.exists(args.stop):
                time.sleep(0.02)
            counts["skips"] = False
        log("all", 2, 0)
        works = [distributed.all_reduce(large, async_op=True), distributed.all_reduce(small, async_op=True)]
        for work in works:
            work.wait()
        log("all", 0, 2)
        log("half", 1, 0)
        distributed.all_reduce(small, group=half)
        log("half", 0, 1)
        time.sleep(0.04 if rank == args.slow else 0.01)


if __name__ == "__main__":
    main()
