# SPDX-License-Identifier: Apache-2.0
"""Starts the agent of probing-top in this process, if $PROBING says so. Called by probing.pth while the interpreter starts.

PROBING=1: in this process; 2: in the Python processes it starts, too; regex:PATTERN: where the command line matches; anything
else: the name of a script. Whatever fails is one line on stderr: the program goes on without the agent.
"""

import os
import sys

AGENT = "@AGENT@"  # a wheel has a path from this folder


def start():
    wish = os.environ["PROBING"]
    if wish == "1":
        del os.environ["PROBING"]  # not the processes that this one starts
    try:
        import ctypes
        here = os.path.dirname(os.path.abspath(__file__))
        agent = ctypes.CDLL(os.environ.get("PROBING_AGENT") or os.path.join(here, AGENT))
        why = ctypes.create_string_buffer(256)
        if agent.probing_autostart(os.fsencode(wish), why, ctypes.c_size_t(len(why))) < 0:
            raise RuntimeError(why.value.decode("utf-8", "replace"))
    except Exception as error:
        if sys.stderr:
            sys.stderr.write("probing: the agent was not started: %s\n" % error)


start()
