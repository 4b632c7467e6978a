# SPDX-License-Identifier: Apache-2.0
"""What `debug` prints is what an editor needs whose sources, or whose network, are not the job's."""

import json
import os
import subprocess
import sys

import pytest

from conftest import wait_until
from dap_client import DapClient
from test_debug import JOB, debugpy_for, line_of, value

__all__ = ["debugpy_for"]  # a fixture

pytestmark = pytest.mark.timeout(300)

HERE = os.path.dirname(os.path.abspath(__file__))
WORKSPACE = "${workspaceFolder}"

# The job sees the project where nobody else does.
INSIDE = """#!/bin/sh
exec unshare --mount sh -c 'mount --bind "$PROJECT" "$ELSEWHERE" && cd "$ELSEWHERE" && exec "$PYTHON" "$ELSEWHERE/job.py"'
"""

# An editor on another machine, that knows what was printed for it.
EDITOR = """
import json, sys
sys.path.insert(0, sys.argv[1])
from dap_client import DapClient
launch, path, line = json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
client = DapClient(launch["connect"]["port"], host=launch["connect"]["host"])
client.attach({path: [line]})
stopped = client.event("stopped")
name, at, held = client.locals(stopped["threadId"])
client.ask("disconnect", terminateDebuggee=False)
client.close()
print(json.dumps([stopped["reason"], name, at, held["doubled"] == str(2 * int(held["number"]))]))
"""


def begin(probing, job, *options):
    done = probing(str(job.pid), "debug", "--json", "--exposed", "--timeout", "90", *options, timeout=120).ok()
    assert done.json()["listening"] and not done.json()["client_attached"]
    return done


def goes_on(probing, job):
    before = value(probing, job, "count")
    wait_until(lambda: value(probing, job, "count") > before, 60, "the job to go on")


def hold_once(client, path, line, **more):
    """The frame that is held at a breakpoint there; then the client leaves."""
    client.attach({path: [line]}, **more)
    stopped = client.event("stopped")
    assert stopped["reason"] == "breakpoint"
    frame = client.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]
    client.ask("disconnect", terminateDebuggee=False)
    client.close()
    return frame


def test_sources_in_another_place(probing, target, any_python, debugpy_for, tmp_path):
    """An editor that is given the configuration, with its own folder in it, is held in its own file."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a mount namespace")
    options = debugpy_for(any_python)
    project, elsewhere, inside = tmp_path / "project", tmp_path / "elsewhere", tmp_path / "inside.sh"
    project.mkdir()
    elsewhere.mkdir()
    (project / "job.py").write_text(JOB)
    inside.write_text(INSIDE)
    inside.chmod(0o755)
    job = target(project / "job.py", python=str(inside), env={"PROJECT": str(project), "ELSEWHERE": str(elsewhere), "PYTHON": any_python})
    document = begin(probing, job, *options).json()
    launch = document["launch"]
    assert launch["pathMappings"] == [{"localRoot": WORKSPACE, "remoteRoot": str(elsewhere)}]
    text = probing(str(job.pid), "debug", "--status", timeout=60).ok().stdout
    assert json.loads(text[text.index("{"):text.rindex("}") + 1]) == launch
    mappings = [{"localRoot": m["localRoot"].replace(WORKSPACE, str(project)), "remoteRoot": m["remoteRoot"]} for m in launch["pathMappings"]]
    path, line = str(project / "job.py"), line_of(project / "job.py", "# held here")
    for _ in range(2):
        frame = hold_once(DapClient(launch["connect"]["port"]), path, line, pathMappings=mappings)
        assert (frame["name"], frame["line"], frame["source"]["path"]) == ("step", line, path)
        goes_on(probing, job)
    probing(str(job.pid), "debug", "--off", timeout=60).ok()


def test_another_address_of_this_machine(probing, target, any_python, debugpy_for):
    """Reached by what it was told to listen on, and by nothing else."""
    options = debugpy_for(any_python)
    job = target(JOB)
    line = line_of(job.script, "# held here")
    closed = begin(probing, job, *options)
    assert closed.json()["host"] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        DapClient(closed.json()["port"], host="127.0.0.2")
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
    done = begin(probing, job, *options, "0.0.0.0:0")
    document = done.json()
    assert done.stderr == "probing: anyone who can reach this address can run code in the job without a password\n"
    assert document["host"] == "0.0.0.0" and document["launch"]["connect"] == {"host": "127.0.0.1", "port": document["port"]}
    for host in ("127.0.0.2", "127.0.0.1"):
        frame = hold_once(DapClient(document["port"], host=host), job.script, line)
        assert (frame["name"], frame["line"]) == ("step", line)
        goes_on(probing, job)
    text = probing(str(job.pid), "debug", "--status", timeout=60).ok().stdout
    assert "from another machine, connect to a name or address of this one instead of 127.0.0.1\n" in text
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
    goes_on(probing, job)


@pytest.fixture
def neighbour():
    """(address of this end, command that runs in a network namespace of its own, at the other end)."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a network namespace")
    holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        ours = os.readlink("/proc/self/ns/net")
        wait_until(lambda: holder.poll() is not None or os.readlink(f"/proc/{holder.pid}/ns/net") != ours, 30, "the namespace")
        name, inside = f"pt{holder.pid}", ["nsenter", "-t", str(holder.pid), "-n"]
        here, there = (f"10.{200 + holder.pid // 65536 % 50}.{holder.pid // 256 % 256}.{4 * (holder.pid % 64) + n}" for n in (1, 2))
        for command in (["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)],
                        ["ip", "address", "add", here + "/30", "dev", name], ["ip", "link", "set", name, "up"],
                        [*inside, "ip", "address", "add", there + "/30", "dev", "eth0"], [*inside, "ip", "link", "set", "eth0", "up"]):
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except OSError as error:
                pytest.skip(f"needs namespaces: {error}")
            if done.returncode != 0:
                pytest.skip(f"needs namespaces: {' '.join(command)}: {done.stderr.strip()}")
        yield here, inside
    finally:
        holder.kill()  # and both ends are gone
        holder.wait()


def test_another_network(probing, target, any_python, debugpy_for, neighbour):
    """An editor in another network namespace attaches with what was printed; without --exposed it finds nobody."""
    address, inside = neighbour
    options = debugpy_for(any_python)
    job = target(JOB)
    line = line_of(job.script, "# held here")
    refused = probing(str(job.pid), "debug", address + ":0", *options, timeout=60)
    assert refused.status == 2 and "--exposed" in refused.stderr
    document = begin(probing, job, *options, address + ":0").json()
    assert document["launch"]["connect"] == {"host": address, "port": document["port"]}
    for _ in range(2):
        done = subprocess.run([*inside, sys.executable, "-c", EDITOR, HERE, json.dumps(document["launch"]), job.script, str(line)],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and json.loads(done.stdout) == ["breakpoint", "step", line, True], done
        goes_on(probing, job)
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
    document = begin(probing, job, *options).json()
    document["launch"]["connect"]["host"] = address
    done = subprocess.run([*inside, sys.executable, "-c", EDITOR, HERE, json.dumps(document["launch"]), job.script, str(line)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "ConnectionRefusedError" in done.stderr
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
    goes_on(probing, job)
