# SPDX-License-Identifier: Apache-2.0
"""Two ranks; the other one is stopped, and this one waits for it in a collective.

verdict: STUCK
words: train \({here}\).*all_reduce of torch\.distributed, group of 2
within: 15
attach: before
quick: yes
"""
import ctypes
import os
import signal
import subprocess
import sys
import time

import torch
from fault_job import Loop, began, wait_for_client
from torch import distributed

PR_SET_PDEATHSIG = 1


def train():
    rank = int(os.environ.get("RANK", "0"))
    meeting = os.environ["FAULT_LOG"] + ".ranks"
    other = subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=dict(os.environ, RANK="1")) if rank == 0 else None
    if rank:  # it does not stay behind
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.environ.pop("READY_FD", None)
        os.environ["FAULT_LOG"] = meeting + ".log"
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    loop, client, stops = Loop(), wait_for_client(), None
    while True:
        loss = loop.step().detach()
        if rank == 0 and loop.steps > 20 and next(client, "there") == "there":
            stops = stops or time.monotonic() + 2
            if time.monotonic() > stops:
                os.kill(other.pid, signal.SIGSTOP)
                began()
                stops = float("inf")
        distributed.all_reduce(loss)  # here


torch.set_num_threads(1)
train()
