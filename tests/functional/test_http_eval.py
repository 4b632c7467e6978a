# SPDX-License-Identifier: Apache-2.0
"""POST /eval whose body is JSON: what is taken, what is said of the rest, and that it is described."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from agent_job import job
from agent_wire import Client, threads_of
from http_client import ask
from tcp_client import STRANGER, owner
from test_http import FOREIGN
from test_tcp_listener import IS_ROOT, listen

__all__ = ["job"]


def run_json(address, document, query="", **more):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return ask(address, "/eval" + query, "POST", body=body, headers=["Content-Type: application/json", *more.pop("headers", [])], **more)


def test_eval_of_json(job):
    """The same with a body of JSON, whose keys are those of the wire's method."""
    j = job()
    endpoint = j.start()
    address = owner(listen(endpoint))
    answer = run_json(address, {"code": "print('ü')\n1 + 1"})
    assert answer.status == 200 and answer.type == "application/json"
    assert answer.json()["result"] == "2" and answer.json()["output"] == "ü\n"
    assert run_json(address, {"code": "40 + 2"}, headers=["Accept: text/plain"]).text() == "42\n"
    assert run_json(address, {"code": "40 + 2"}, headers=["Accept: application/json"]).json()["result"] == "42"
    assert "<mine>" in run_json(address, {"code": "1 / 0", "name": "<mine>"}).json()["error"]["traceback"]
    late = run_json(address, {"code": "while True: pass", "timeout_s": 0.3})
    assert late.status == 504 and late.json()["timed_out"]
    cut = run_json(address, {"code": "print('a' * 1000)", "output_bytes": 10}).json()
    assert cut["truncated"] and cut["output"] == "a" * 10
    assert "b\\x00" in run_json(address, {"code": "'b\\0'"}).json()["result"]
    j.do("spawn('deep', recurse, 5)")
    name = "__import__('threading').current_thread() is __import__('threading').main_thread()"
    assert run_json(address, {"code": name, "main": False}).json()["result"] == "False"
    with Client(endpoint) as client:
        tid, = (t["tid"] for t in threads_of(client.call("threads")) if t["name"] == "deep")
    at = [f["func"] for t in ask(address, f"/backtrace.json?thread={tid}").json()["threads"] for f in t["frames"]].index("recurse")
    assert run_json(address, {"code": "n", "tid": tid, "depth": at}).json()["result"] == "0"
    assert run_json(address, {"code": "n", "tid": tid, "depth": at + 3}).json()["result"] == "3"


def test_json_that_is_wrong(job):
    """400 with a line that says what, and nothing is run."""
    j = job()
    address = owner(listen(j.start()))
    wrong = {
        b"": "a body is needed", b"{": "not a JSON object: error at byte 1 of 1", b"1 + 1": "not a JSON object", b'["code"]': "not a JSON object",
        b'{"code": "ran = 1"} {}': "not a JSON object", b'{"code": "\xff"}': "not a JSON object", b'{"code": "ran = 1",}': "not a JSON object",
        b"{" * 100000: "not a JSON object", b'{"code":' * 1000: "code must be a text",
        b"{}": "there must be code", b'{"code": ""}': "there must be code", b'{"timeout_s": 1}': "there must be code",
        b'{"code": null}': "code must be a text", b'{"code": 1}': "code must be a text", b'{"code": ["ran = 1"]}': "code must be a text",
        b'{"code": "ran = 1", "frame": 1}': "there is no such key: there are code, name, timeout_s, output_bytes, main, tid, depth",
        b'{"code": "ran = 1", "debug": true}': "no such key", b'{"code": "ran = 1", "Code": "1"}': "no such key",
        b'{"code": "ran = 1", "code": "1"}': "code is given twice",
        b'{"code": "ran = 1", "timeout_s": "1"}': "timeout_s must be a number from 0.1 to 60",
        b'{"code": "ran = 1", "timeout_s": 61}': "timeout_s must be", b'{"code": "ran = 1", "timeout_s": 1e999}': "timeout_s must be",
        b'{"code": "ran = 1", "tid": 1.5}': "tid must be a whole number", b'{"code": "ran = 1", "tid": 0}': "tid must be",
        b'{"code": "ran = 1", "depth": 0}': "it goes with tid", b'{"code": "ran = 1", "main": 1}': "main must be true or false",
        b'{"code": "ran = 1", "name": "a\\u0000b"}': "no NUL", json.dumps({"code": "ran = 1", "name": "x" * 128}).encode(): "127 bytes at most",
    }
    for body, words in wrong.items():
        answer = run_json(address, body)
        assert answer.status == 400 and words in answer.text() and answer.text().count("\n") == 1, (body[:60], answer.status, answer.text())
    answer = run_json(address, {"code": "ran = 1", "timeout_s": 1}, "?timeout=1")
    assert answer.status == 400 and "twice" in answer.text()
    answer = run_json(address, {"code": "1", "tid": 4194304})
    assert answer.status in (400, 503) and "thread" in answer.text()
    assert ask(address, "/config", "PUT", body=b'{"probing.budget": 3}', headers=["Content-Type: application/json"]).status == 400
    assert j.do("'ran' in globals()") is False


def test_the_schema_of_that_body_is_what_is_taken(job):
    """The description is held to by trying each of its bounds."""
    address = owner(listen(job().start()))
    body = ask(address, "/openapi.json").json()["paths"]["/eval"]["post"]["requestBody"]["content"]
    assert set(body) == {"text/x-python", "application/json"}
    schema = body["application/json"]["schema"]
    assert schema["type"] == "object" and schema["required"] == ["code"] and schema["additionalProperties"] is False
    bad = {"string": [1, None, []], "number": ["1", None, True], "integer": [1.5, "1", False], "boolean": [0, "true", None]}
    for name, of in schema["properties"].items():
        more = {"tid": 1} if name == "depth" else {}
        values = bad[of["type"]] + [of[bound] + step for bound, step in (("minimum", -1), ("maximum", 1)) if bound in of]
        for value in values:
            answer = run_json(address, {"code": "1", **more, name: value})
            assert answer.status == 400 and name in answer.text(), (name, value, answer.text())
    assert run_json(address, {"code": "1", "timeout_s": schema["properties"]["timeout_s"]["minimum"]}).status in (200, 503, 504)
    assert run_json(address, {"code": "1", "timeout_s": schema["properties"]["timeout_s"]["maximum"]}).status == 200


def test_who_may_not(job):
    """No page, no stranger without the token, nobody who may only look."""
    j = job()
    door = listen(j.start())
    for headers in (FOREIGN, ["Origin: null"], ["Sec-Fetch-Site: cross-site"]):
        assert run_json(door["address"], {"code": "ran = 1"}, headers=headers).status == 403
    assert run_json(door["address"], {"code": "ran = 1"}, host="evil.example").status == 403
    for more in ({"token": door["looking_token"]}, {}):
        answer = run_json(door["address"], {"code": "ran = 1"}, **more)
        assert answer.status == 403 and "this client is read-only" in answer.text()
    if IS_ROOT:
        assert run_json(door["address"], {"code": "ran = 1"}, uid=STRANGER).status == 401
    answer = ask(door["address"], "/eval", "OPTIONS", headers=["Access-Control-Request-Headers: content-type"])
    assert answer.status == 405 and not any(name.startswith("access-control") for name in answer.headers)  # so no browser lets a page try
    assert j.do("'ran' in globals()") is False


@pytest.mark.parametrize("document", [os.path.join("docs", "remote.md"), os.path.join("docs", "dev", "reaching.md")])
def test_the_examples_of_the_documents(job, source_dir, document):
    """Each line of curl in them that runs code, typed as it stands there but for the address and what the job has."""
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    j = job()
    door = listen(j.start())
    j.do("globals().__setitem__('model', [1, 2, 3])")
    with open(os.path.join(source_dir, document), encoding="utf-8") as file:
        found = re.findall(r"`(curl [^`]*/eval)`", file.read())
    assert found
    for line in found:
        words = shlex.split(line.replace("127.0.0.1:3344", door["address"]).replace("@FILE", "@" + door["file"].replace(".door", ".curl")))
        done = subprocess.run([words[0], "-sS", *words[1:]], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and json.loads(done.stdout)["result"] == "3", (line, done)
