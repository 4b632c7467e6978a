# SPDX-License-Identifier: Apache-2.0
"""What hostile targets have in common.

A target is `python3 tests/liars/target_NAME.py FOLDER`, run as user 65534: it prints "ready" when it is, and ends at SIGTERM. FOLDER is
its own; FOLDER/victims (box.py) holds files of root's that nobody may be made to open, change or remove.
"""

import os
import signal
import sys
import threading

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "."


def victim(name):
    return os.path.join(FOLDER, "victims", name)


def swap(path):
    """Whatever file in memory is made in this process, by whomever, is at once the victim: by a descriptor that needs no permission on it."""
    with_no_right = os.open(path, os.O_PATH)
    free = os.dup(with_no_right)  # the number that the next descriptor gets
    os.close(free)
    while True:
        for number in range(free, free + 6):
            try:
                what = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                continue
            if what.startswith("/memfd:"):
                os.dup2(with_no_right, number)


def run(attack, *args):
    """The attack on a thread, until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    threading.Thread(target=attack, args=args, daemon=True).start()
    print("ready", flush=True)
    signal.sigwait([signal.SIGTERM])
    os._exit(0)
