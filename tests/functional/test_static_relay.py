# SPDX-License-Identifier: Apache-2.0
"""`probing-relay`: one static file that does what `probing relay --stdio` does, where nothing else is."""

import os
import re
import shutil
import subprocess

import pytest

from test_cluster import claim  # noqa: F401
from test_cluster_stacks import FETCH, Relay, job  # noqa: F401

pytestmark = pytest.mark.timeout(240)

MOST_BYTES = 8 << 20


@pytest.fixture(scope="module")
def static_relay(build_dir):
    path = os.path.join(build_dir, "probing-relay")
    if not os.path.exists(path):
        pytest.skip("needs static: the libraries to link probing-relay statically are not installed")
    return path


def readelf(option, path):
    return subprocess.run(["readelf", option, "-W", path], capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout


def test_is_one_file(static_relay, build_dir):
    if not shutil.which("readelf"):
        pytest.skip("needs readelf")
    headers = readelf("-l", static_relay)
    assert "INTERP" not in headers and not re.search(r"LOAD.* RWE ", headers)
    assert "NEEDED" not in readelf("-d", static_relay)
    assert os.path.getsize(static_relay) <= MOST_BYTES
    with open(static_relay, "rb") as relay, open(os.path.join(build_dir, "libprobing.so"), "rb") as agent:
        assert agent.read() in relay.read()


def test_says_who_it_is(static_relay, probing):
    said = subprocess.run([static_relay, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")
    ours = probing("--version").ok().stdout.split("\n")
    assert said[0].split()[1] == ours[0].split()[1] and said[1].split()[1] == ours[1].split()[1]
    for words in [], ["--stdio", "more"], ["relay", "--stdio"]:
        done = subprocess.run([static_relay, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 2 and done.stdout == "" and "probing cluster ranks" in done.stderr


def enter_bare(root, program):
    """The command that runs the program in a root that has it and /proc, and nothing else."""
    os.mkdir(root / "proc")
    shutil.copy(program, root)
    line = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" /{os.path.basename(program)} --stdio'
    return ["unshare", "--mount", "sh", "-c", line]


def test_bare_root(static_relay, probing, job, tmp_path):  # noqa: F811
    """It finds the ranks outside of its root, and reads them."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root: for a root of its own")
    root = tmp_path / "bare"
    root.mkdir()
    relay = Relay(probing, *enter_bare(root, static_relay))
    name, made = job
    error, hello = relay.ask("hello", {"version": 2, "client": "test"})
    assert error is None and hello["target"]["host"] == os.uname().nodename
    [row] = relay.table("job", name=name)
    assert row["ranks"] == "0-3" and row["world"] == 4 and row["user"] == str(os.geteuid())
    ranks = relay.table("ranks", after=0)
    assert [(one["rank"], one["pid"]) for one in ranks] == [(rank, made[rank].pid) for rank in range(4)]
    frames = relay.table("stacks", ids=f"{ranks[2]['stack'] % 2 ** 64:x}")
    assert ("fetch", FETCH) in [(frame["func"], frame["line"]) for frame in frames]
    assert relay.end() == (0, "")
    assert sorted(os.listdir(root)) == ["probing-relay", "proc"]
