# SPDX-License-Identifier: Apache-2.0
"""The header says that somebody else is connected to the agent, and what they have armed; several connections of one process are one."""

import subprocess
import sys

import pytest

from agent_wire import Client
from test_repl import JOB
from test_sql_screen import PatientScreen

pytestmark = pytest.mark.timeout(300)

# Connects as another process, until its standard input ends.
OTHER = "import sys; sys.path.insert(0, sys.argv[1]); from agent_wire import Client; c = Client(sys.argv[2]); print('in', flush=True); sys.stdin.read()"


def test_processes_are_counted(target, ptrace, probing, wait_until):
    job = target(JOB)
    endpoint = probing(str(job.pid), "inject").ok().stdout.split("unix:")[1].split()[0]
    with Client(endpoint) as one, Client(endpoint):
        def told():
            status = one.call("status")
            return status["clients"], status["client_processes"]
        wait_until(lambda: told() == (2, 1), 60, "those of this process alone")  # the injector may still be leaving
        assert "clients        3, of 2 processes" in probing(str(job.pid), "status").ok().stdout


def test_the_header_says_who_else_is_there(target, ptrace, probing, probing_top, tmux, tmp_path, wait_until):
    job = target(JOB)
    endpoint = probing(str(job.pid), "inject").ok().stdout.split("unix:")[1].split()[0]
    s = PatientScreen(tmux, tmp_path, 100, 24, wait_until)
    try:
        s.shell(f"XDG_STATE_HOME={tmp_path} XDG_CONFIG_HOME={tmp_path} {probing_top.path} --screen threads {job.pid}; echo status=$?")
        s.wait_for("Stack of MainThread")
        with subprocess.Popen([sys.executable, "-c", OTHER, __file__.rpartition("/")[0], endpoint], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "in\n"
            s.wait_for("others 1")
            s.type("L")
            s.wait_for("other clients of the agent: 1 process")
            other.communicate()
        s.wait_gone("others 1")
        s.wait_for("no other client is connected to the agent")
    finally:
        s.close()
