# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts, which are namespaces with an sshd each (tests/cluster/hosts.py): the relay of each through ssh."""

import os
import subprocess
import sys

import pytest

from conftest import ROOT, wait_until
from test_cluster_stacks import Relay

sys.path.append(os.path.join(ROOT, "tests", "cluster"))
from hosts import Hosts, missing  # noqa: E402

pytestmark = pytest.mark.timeout(240)

WAITS = """
import os, threading
def arrive():
    threading.Event().wait()
def main():
    os.write(1, b"ready\\n")
    arrive()
main()
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory, build_dir):
    """Two, each with a rank of one job; `ranks` are their processes as this machine counts them. node1 greets who logs in."""
    why = missing()
    if why:
        pytest.skip(why)
    with Hosts(tmp_path_factory.mktemp("hosts"), 2, build_dir, rc={"node1": "echo Welcome to node1\n"}) as made:
        script = os.path.join(made.folder, "train.py")
        with open(script, "w", encoding="ascii") as file:
            file.write(WAITS)
        started = []
        for rank, node in enumerate(made.nodes):
            env = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": rank, "MASTER_ADDR": made.nodes[0].ip, "MASTER_PORT": 29500}
            started.append(subprocess.Popen(made.on(node.name, "env", *(f"{name}={value}" for name, value in env.items()), sys.executable, script),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        assert [process.stdout.readline() for process in started] == [b"ready\n"] * 2
        made.ranks = [node.processes("train.py")[0] for node in made.nodes]
        yield made
    for process in started:
        process.wait(30)
        process.stdout.close()


def test_relay_by_ssh(hosts, probing):
    """Each host has its own ranks; what a login shell prints comes before the relay's first line; with ssh the relay ends."""
    for rank, node in enumerate(hosts.nodes):
        relay = Relay(probing, *hosts.client("ssh", "-oBatchMode=yes", node.name, "probing relay --stdio"))
        assert relay.banner == (b"Welcome to node1\n" if rank else b"")
        error, hello = relay.ask("hello", {"version": 2, "client": "test"})
        assert error is None and hello["target"]["host"] == node.name
        [row] = relay.table("job", name="")
        assert (row["ranks"], row["elsewhere"], row["missing"], row["world"]) == (str(rank), str(1 - rank), None, 2)
        [one] = relay.table("ranks", after=0)
        assert one["rank"] == rank and one["pid"] != hosts.ranks[rank]
        frames = relay.table("stacks", ids=f"{one['stack'] % 2 ** 64:x}")
        assert ["arrive", "main"] == [frame["func"] for frame in frames if frame["file"].endswith("train.py")][:2]
        assert node.processes("relay", "--stdio")
        if rank == 0:
            assert relay.end() == (0, "")
        else:  # as the kernel ends it when the client is killed
            relay.process.kill()
            relay.end()
        wait_until(lambda node=node: not node.processes("relay", "--stdio"), 30, "the relay to end")
