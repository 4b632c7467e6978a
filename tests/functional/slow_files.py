# SPDX-License-Identifier: Apache-2.0
"""A file system (FUSE) with files of any name that can be opened and mapped, and whose first byte never comes.

    python3 slow_files.py FOLDER       as root; prints "ready" when it is mounted there, until SIGTERM
Exit status 77: it cannot be done here.
"""

import os
import signal
import struct
import sys

from fuse_mount import mount, unmount

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 27, 29, 42
ENOSYS = 38
SIZE = 1 << 20


def attributes(node):
    directory = node == 1
    return struct.pack("<6Q10I", node, 0 if directory else SIZE, 0, 0, 0, 0, 0, 0, 0, 0o040755 if directory else 0o100755, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """Bytes, or an error, or None: none at all."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 16, 12, 4096, 1, 0, 0, *([0] * 8))
    if opcode == LOOKUP:
        return struct.pack("<4Q2I", 2, 0, 1000, 1000, 0, 0) + attributes(2)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 1000, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<Q2I", 1, 2, 0)
    if opcode in (FLUSH, RELEASE, RELEASEDIR):
        return b""
    if opcode in (FORGET, BATCH_FORGET, READ):
        return None
    return ENOSYS


def serve(device):
    while True:
        try:
            data = os.read(device, 1 << 17)
        except OSError:
            return
        _, opcode, unique, node = struct.unpack_from("<IIQQ", data)
        reply = answer(opcode, node, data[40:])
        if reply is None:
            continue
        error, body = (-reply, b"") if isinstance(reply, int) else (0, reply)
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        except OSError:
            pass


def main():
    folder = sys.argv[1]
    device = mount(folder, "slow", "rootmode=40755")

    def end(*_):
        os.close(device)  # whoever waits gets an error
        unmount(folder)
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    serve(device)
    end()


main()
