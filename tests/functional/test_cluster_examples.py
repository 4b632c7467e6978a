# SPDX-License-Identifier: Apache-2.0
"""examples/cluster/: each starts a relay by a command that this version understands; what systemd and a shell can check of them, they do."""

import glob
import os
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import ROOT

FOLDER = os.path.join(ROOT, "examples", "cluster")
NAMES = sorted(os.path.basename(path) for path in glob.glob(os.path.join(FOLDER, "*")))


def commands(text):
    """The command lines of probing in it, whatever the form."""
    lists = re.findall(r"command: \[(probing.*)\]", text)
    lines = re.findall(r"^(?:ExecStart=/usr/bin/|srun .*?)(probing relay .*?)(?: &)?$", text, re.M)
    return [[word.strip().strip('"') for word in line.split(",")] for line in lists] + [shlex.split(line) for line in lines]


def test_there_is_one_for_each_way():
    assert NAMES == ["compose.yaml", "daemonset.yaml", "probing-relay.service", "slurm.sh"]


@pytest.mark.parametrize("name", NAMES)
def test_its_commands_are_understood(name, probing, tmp_path):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        found = commands(file.read())
    assert [words for words in found if words[1] == "relay"]
    for words in found:
        words = [word.replace("$URL", "clickhouses://writer@clickhouse.example/probing") for word in words]
        more = ["--status"] if words[1] == "relay" else ["--print"]
        done = probing(*words[1:], *more, env=dict(os.environ, XDG_STATE_HOME=str(tmp_path)))
        assert done.status == (1 if words[1] == "relay" else 0), done
        assert words[1] != "relay" or "no relay of this user writes to that server" in done.stderr, done


def test_systemd_takes_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd: systemd-analyze is not installed")
    unit = tmp_path / "probing-relay.service"
    with open(os.path.join(FOLDER, "probing-relay.service"), encoding="utf-8") as file:
        unit.write_text(file.read().replace("/usr/bin/probing", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "probing-relay.service" not in done.stderr, done.stderr


def test_bash_takes_the_script():
    subprocess.run(["bash", "-n", os.path.join(FOLDER, "slurm.sh")], check=True)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".yaml")])
def test_yaml_is_read(name):
    yaml = pytest.importorskip("yaml", reason="needs yaml: no module of that name")
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        assert yaml.safe_load(file)
