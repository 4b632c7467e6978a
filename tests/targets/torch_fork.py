# SPDX-License-Identifier: Apache-2.0
"""Has imported torch, and forks a job for each that is asked for: see tests/functional/torch_fork.py, which speaks to it through the socket
whose descriptor is the argument."""

import ctypes
import json
import os
import resource
import socket
import sys
import types

import torch  # noqa: F401
import torch._dynamo  # noqa: F401  a job's first optimizer imports it


def serve(door):
    """Returns in a child: the script that it is to be."""
    while True:
        data, fds, _, _ = socket.recv_fds(door, 1 << 20, 2)
        if not data:
            os._exit(0)
        asked, answer = json.loads(data), None
        if "ended" in asked:
            pid, status = os.waitpid(asked["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif "cpu" in asked:
            answer = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        else:
            answer = os.fork()
            if answer == 0:
                door.close()
                become(asked, *fds)
                return asked["argv"][0]
        for fd in fds:
            os.close(fd)
        door.sendall(json.dumps(answer).encode())


def become(asked, out, ready):
    """The rest of what an exec would have made new."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, new in ((null, 0), (out, 1), (out, 2)):
        os.dup2(fd, new)
    os.close(null)
    os.close(out)
    os.set_inheritable(ready, True)
    set_environ(dict(asked["env"], READY_FD=str(ready)))
    sys.argv = asked["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])


def set_environ(env):
    """Also where /proc/PID/environ shows it: on the stack, where strings were when the process began (see PADDING)."""
    for name in set(os.environ) - set(env):
        del os.environ[name]
    os.environ.update(env)
    with open("/proc/self/stat", "rb") as stat:
        start, end = (int(field) for field in stat.read().rpartition(b")")[2].split()[47:49])
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    if len(block) > end - start:
        raise MemoryError(f"an environment of {len(block)} bytes does not fit into {end - start}")
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


script = serve(socket.socket(fileno=int(sys.argv[1])))
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__file__ = script
with open(script, encoding="utf-8") as file:
    code = compile(file.read(), script, "exec")
exec(code, main.__dict__)
