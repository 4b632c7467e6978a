# SPDX-License-Identifier: Apache-2.0
"""A rank of a job without torch: all but rank 3 stand in a collective, as their stacks have it; that one does something else."""

import os
import time

names = {}
exec(compile("def all_reduce(sleep):\n    sleep(3600)", "/opt/lib/torch/distributed/distributed_c10d.py", "exec"), names)


def feed():
    while True:
        time.sleep(0.05)


os.write(int(os.environ["READY_FD"]), b"ready\n")
if os.environ["RANK"] == "3":
    feed()
else:
    names["all_reduce"](time.sleep)
