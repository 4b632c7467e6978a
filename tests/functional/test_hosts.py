# SPDX-License-Identifier: Apache-2.0
"""Ranks on several hosts, which are namespaces with an sshd each (tests/cluster/hosts.py): one greets who logs in, one has nothing of ours and
one wants a password."""

import hashlib
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import ROOT, read_all, run_command, wait_until
from test_cluster_stacks import Relay
from test_tui_tmux import screen  # noqa: F401

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
    """Three, each with a rank of one job. node0 greets who logs in, node1 lacks our programs, node2 wants a password."""
    why = missing()
    if why:
        pytest.skip(why)
    with Hosts(tmp_path_factory.mktemp("hosts"), 3, build_dir, bare=["node1"], closed=["node2"], rc={"node0": "echo Welcome to node0\n"}) as made:
        script = os.path.join(made.folder, "train.py")
        with open(script, "w", encoding="ascii") as file:
            file.write(WAITS)
        started = []
        for rank, node in enumerate(made.nodes):
            env = {"RANK": rank, "WORLD_SIZE": 3, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": rank, "MASTER_ADDR": made.nodes[0].ip, "MASTER_PORT": 29500}
            started.append(subprocess.Popen(made.on(node.name, "env", *(f"{name}={value}" for name, value in env.items()), sys.executable, script),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        assert [process.stdout.readline() for process in started] == [b"ready\n"] * 3
        yield made
    for process in started:
        process.wait(30)
        process.stdout.close()


@pytest.fixture
def asked(hosts, probing):
    """asked("ranks", ...): `probing cluster ranks --hosts ...` on the client's host."""
    def ask(verb, *options, names="node[0-1]", **how):
        return run_command(hosts.client(probing.path, "cluster", verb, "--hosts", names, *options), 60, **how)
    return ask


def pushed(hosts):
    """What lies below ~/.cache of the host without our programs: paths and modes."""
    home = hosts.node("node1").home
    return {os.path.relpath(os.path.join(folder, name), home): os.stat(os.path.join(folder, name)).st_mode & 0o777
            for folder, folders, names in os.walk(os.path.join(home, ".cache")) for name in names + folders}


def test_relay_by_ssh(hosts, probing):
    """What a login shell prints comes before the relay's first line; with ssh the relay ends."""
    node = hosts.node("node0")
    for killed in False, True:
        relay = Relay(probing, *hosts.client("ssh", "-oBatchMode=yes", node.name, "probing relay --stdio"))
        assert relay.banner == b"Welcome to node0\n"
        error, hello = relay.ask("hello", {"version": 2, "client": "test"})
        assert error is None and hello["target"]["host"] == node.name
        [row] = relay.table("job", name="")
        assert (row["ranks"], row["elsewhere"], row["missing"], row["world"]) == ("0", "1-2", None, 3)
        [one] = relay.table("ranks", after=0)
        frames = relay.table("stacks", ids=f"{one['stack'] % 2 ** 64:x}")
        assert ["arrive", "main"] == [frame["func"] for frame in frames if frame["file"].endswith("train.py")][:2]
        assert node.processes("relay", "--stdio")
        if killed:
            for pid in hosts.hub.processes("ssh", node.name):
                os.kill(pid, signal.SIGKILL)
        relay.end()
        wait_until(lambda: not node.processes("--stdio"), 30, "the relay to end")


def test_hosts_that_do_not_answer(hosts, asked):
    """The others do; nobody is asked for a password; the reasons stand there."""
    shown = asked("ranks", "--json", names=hosts.names()).ok()
    assert [(row["rank"], row["host"]) for row in shown.json()["rows"]] == [(0, "node0")]
    assert "node1 (no relay: " in shown.stderr and "not found: install probing there, or copy it by --push" in shown.stderr
    assert "node2 (no relay: " in shown.stderr and "Permission denied" in shown.stderr
    nodes = {row["host"]: row for row in asked("nodes", "--json", names=hosts.names()).ok().json()["rows"]}
    assert {name: (row["state"], row["via"]) for name, row in nodes.items()} == {
        "node0": ("ok", "ssh"), "node1": ("no answer", "ssh"), "node2": ("no answer", "ssh")}
    assert asked("nodes", names="node1").status == 3 and pushed(hosts) == {}


def test_screen_while_hosts_come_and_go(hosts, screen, probing_top):  # noqa: F811
    """A relay or an ssh that is killed is started again; who is cut off has no news, the others have; with the client all of it ends."""
    node = hosts.node("node0")

    def relays():
        return node.processes("--stdio")
    s = screen(110, 30)
    s.shell(shlex.join(map(str, hosts.client(probing_top.path, "--hosts", "node0"))))
    s.wait_for("w waits ", 60)
    for victims in (relays, lambda: hosts.hub.processes("ssh", "node0")):
        old = wait_until(relays, 60, "a relay")
        os.kill(wait_until(victims, 60, "what is to be killed")[0], signal.SIGKILL)
        wait_until(lambda old=old: relays() and not set(relays()) & set(old), 60, "another relay")
    s.wait_for("w waits ", 60)
    hosts.cut("node0")
    s.wait_for("? no news", 60)
    hosts.mend("node0")
    s.wait_gone("? no news", 120)
    [client] = hosts.hub.processes("probing-top")
    os.kill(client, signal.SIGKILL)
    wait_until(lambda: not relays() and not hosts.hub.processes("ssh", "node0"), 60, "the end of the relay")


def test_push(hosts, asked, build_dir):
    """Only when it is asked for; then it stays, is found, and is not sent again; other hosts do not keep it from that."""
    if not os.path.exists(os.path.join(build_dir, "probing-relay")):
        pytest.skip("needs static: the libraries to link probing-relay statically are not installed")
    shown = asked("ranks", "--push", "--json", names=hosts.names()).ok()
    assert [(row["rank"], row["host"]) for row in shown.json()["rows"]] == [(0, "node0"), (1, "node1")]
    assert re.search(r"no relay is copied to node2: .*Permission denied", shown.stderr)
    with open(os.path.join(build_dir, "probing-relay"), "rb") as file:
        folder = ".cache/probing/" + hashlib.sha256(file.read()).hexdigest()[:16]
    assert pushed(hosts) == {".cache/probing": 0o700, folder: 0o700, folder + "/probing-relay": 0o700}
    path = os.path.join(hosts.node("node1").home, folder, "probing-relay")
    before = os.stat(path)
    assert [row["rank"] for row in asked("ranks", "--push", "--json").ok().json()["rows"]] == [0, 1]
    assert [row["rank"] for row in asked("ranks", "--json").ok().json()["rows"]] == [0, 1]
    assert os.stat(path).st_ino == before.st_ino
    assert hosts.node("node1").processes("--stdio") == []
    # the agent comes out of that file
    # where the machine stood still, a try that was given up may have loaded it, which the next one finds
    for verb, results in ("attach", ("loaded", "already loaded")), ("detach", ("ejected",)):
        rows = asked(verb, "--json").ok().json()["rows"]
        assert [(row["rank"], row["host"]) for row in rows] == [(0, "node0"), (1, "node1")]
        assert all(row["agent"] in results for row in rows), rows
    for options, why in (["--push", "--relay", "probing relay --stdio"], "leave out --relay"), (["--push"], "--push is for other hosts"):
        refused = asked("ranks", *options) if len(options) > 1 else run_command(hosts.client(probing_of(build_dir), "cluster", "ranks", *options), 60)
        assert refused.status == 2 and why in refused.stderr


def probing_of(build_dir):
    return os.path.join(build_dir, "probing")


def test_asked_at_a_terminal(hosts, build_dir):
    if not os.path.exists(os.path.join(build_dir, "probing-relay")):
        pytest.skip("needs static: the libraries to link probing-relay statically are not installed")
    shutil.rmtree(os.path.join(hosts.node("node1").home, ".cache"), ignore_errors=True)
    for answer, says in (b"n\n", None), (b"y\n", b"copied; type the command again"):
        child, terminal = pty.fork()
        if child == 0:
            os.execvp("nsenter", hosts.client(probing_of(build_dir), "cluster", "ranks", "--hosts", "node1"))
        text = b""
        while b"[y/N] " not in text:
            text += os.read(terminal, 4096)
        assert b"1 of 1 hosts have no probing" in text
        os.write(terminal, answer)
        text = read_all(terminal)
        os.waitpid(child, 0)
        assert (says in text) if says else pushed(hosts) == {}
    assert len(pushed(hosts)) == 3


def test_another_user(hosts, probing, build_dir):
    """A relay of a user who may not read the rank does not see it, and nothing is guessed."""
    if not os.path.exists(os.path.join(build_dir, "probing-relay")):
        pytest.skip("needs static: the libraries to link probing-relay statically are not installed")
    shutil.copy(os.path.join(build_dir, "probing-relay"), hosts.folder)
    done = run_command(hosts.client(probing.path, "cluster", "ranks", "--json", "--hosts", "node0", "--via", "ssh -oBatchMode=yes me@{host} {relay}",
                                    "--relay", os.path.join(hosts.folder, "probing-relay") + " --stdio"), 60)
    assert done.status == 3 and "node0: no job with ranks was found" in done.stderr
