# SPDX-License-Identifier: Apache-2.0
"""An agent and a client of different versions of the protocol: one line says so, and nothing is asked for after that."""

import pytest

from agent_job import job
from agent_wire import Client
from lying_agent import lying_process

__all__ = ["job"]

NOW, OLD = 2, 1
VERSION = 4  # the error's code
TARGET = {"pid": "@PID@", "uid": 0, "started_at": 1.0, "host": "h", "cmdline": "job", "python": "3.11.7", "rank": None, "mode": 0, "agent_version": "0"}


@pytest.mark.parametrize("version", [OLD, NOW + 1])
def test_a_client_of_another_version_is_refused(job, version):
    """It hears why; whatever it asks for then is refused, too, and the agent serves others as before."""
    endpoint = job().start()
    with Client(endpoint, hello=False) as client:
        error = client.call_error("hello", {"version": version, "client": "0.1.0"})
        assert error == {"code": VERSION, "message": f"the agent speaks version {NOW} of the protocol, the client version {version}"}
        # as version 1 has asked for a pause
        asked = {"code": b"pause_begin('127.0.0.1', 0, 60)", "name": "<probing>", "timeout_s": 10.0, "debug": True}
        assert client.call_error("eval", asked)["message"] == "the first request must be hello"
    with Client(endpoint) as client:
        assert client.call("threads")["threads"]
        assert client.call("pause", {"action": 2})["on"] is False


@pytest.mark.parametrize("verb", ["status", "pause", "catch", "debug", "eval"])
@pytest.mark.parametrize("answers", [{"error": {"code": VERSION, "message": "the agent speaks version 1 of the protocol, the client version 2"}},
                                     {"hello": {"version": OLD, "target": TARGET}}], ids=["refuses", "answers"])
def test_an_agent_of_another_version_is_not_asked(probing, verb, answers):
    with lying_process(answers) as agent:
        done = probing(str(agent.pid), verb, *(["1"] if verb == "eval" else []), timeout=60)
        assert done.status == 3 and done.stdout == "" and done.stderr.count("\n") == 1, done
        assert "version 1 of the protocol" in done.stderr, done
