# SPDX-License-Identifier: Apache-2.0
"""Mounting a file system (FUSE) that is served by this process, as root."""

import ctypes
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)


def mount(folder, name, options):
    """The device to be read from. Ends this program with 77 where it cannot be done."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        print(f"needs /dev/fuse: {error}")
        sys.exit(77)
    options = f"fd={device},user_id=0,group_id=0,allow_other,{options}"
    if LIBC.mount(os.fsencode(name), os.fsencode(folder), b"fuse", 6, options.encode()) != 0:  # MS_NOSUID, MS_NODEV
        print(f"needs FUSE: mount: {os.strerror(ctypes.get_errno())}")
        sys.exit(77)
    return device


def unmount(folder):
    LIBC.umount2(os.fsencode(folder), 2)  # MNT_DETACH
