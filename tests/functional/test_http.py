# SPDX-License-Identifier: Apache-2.0
"""HTTP at the agent's TCP listener: what is answered, to whom, and what is not."""

import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import time
import xml.dom.minidom

import pytest

from agent_job import job
from agent_wire import Client
from browser import Browser
from http_client import ask, connect, parse, parse_metrics, read_all, request, send_raw
from tcp_client import STRANGER, TcpClient, owner, split
from test_tcp_listener import IS_ROOT, LEVELS, listen, methods

__all__ = ["job"]

KEPT = {"PROBING_SAMPLE_RATE": "20"}  # looks that are kept whether or not somebody asks
CODE = "Content-Type: text/x-python"
BODIES = {"/eval": b"1 + 1", "/config": b"probing.budget=1"}  # of each route that has one
FOREIGN = ["Origin: http://evil.example"]


@pytest.fixture
def door(job, wait_until):
    door = listen(job().start())
    wait_until(lambda: ask(door["address"], "/tables/python.samples").status == 200, what="tables")
    return door


def routes(source_dir):
    """(verb, path, method of the wire, forms, dotted, parameters) of each row of the one table."""
    with open(os.path.join(source_dir, "src", "agent", "server", "http", "web_routes.c"), encoding="utf-8") as file:
        table = file.read().split("web_routes[] = {", 1)[1].split("\n};", 1)[0]
    out = []
    for row in re.split(r"\n    \{", table)[1:]:
        path = re.search(r'\.path = "(.*?)"', row)[1]
        verb = re.search(r"\.verb = WEB_(\w+)", row)
        params = re.findall(r'\{\s*"(\w+)",', row) + re.findall(r"PARAM_(\w+)", row)
        out.append((verb[1] if verb else "GET", path, re.search(r"\.asks = WIRE_(\w+)", row)[1].lower(),
                    [f.lower() for f in re.findall(r"FORM\(WEB_(\w+)\)", row)], ".dotted = true" in row,
                    sorted(p.lower() for p in params)))
    assert len(out) == table.count(".path = ") >= 10
    return out


def described(door):
    answer = ask(door["address"], "/openapi.json")
    assert answer.status == 200 and answer.type == "application/json"
    return answer.json()


def rows_of(address, table):
    """Those that there are; none before the agent has made its tables."""
    answer = ask(address, f"/tables/{table}")
    assert answer.status in (200, 503)
    return answer.json()["rows"] if answer.status == 200 else []


def fill(path):
    return path.replace("{name}", "python.samples")


# --- the table, and what is made of it ----------------------------------------------------------------------------

def test_openapi_describes_every_route_and_no_other(door, source_dir):
    document = described(door)
    assert document["openapi"].startswith("3.0.") and document["info"]["title"] and document["info"]["version"]
    wanted = {}
    for verb, path, method, forms, dotted, params in routes(source_dir):
        for name in [path] + ([f"{path}.{form}" for form in forms] if dotted and verb == "GET" else []):
            wanted[name, verb.lower()] = (method, params)
    found = {}
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            names = [p["name"] for p in operation["parameters"] if p["in"] == "query"]
            assert len(names) == len(set(names))
            assert [p["name"] for p in operation["parameters"] if p["in"] == "path"] == re.findall(r"\{(\w+)\}", path)
            assert operation["summary"] and operation["responses"]["200"]["content"]
            found[path, verb] = (operation["x-method"], sorted(names))
    assert found == wanted


def test_every_get_is_answered_as_described(door):
    for path, item in described(door)["paths"].items():
        if "get" not in item:
            continue
        question = fill(path) + ("?seconds=0.2" if path.startswith("/flamegraph") else "")
        answer = ask(door["address"], question)
        assert answer.status == 200 and answer.body, (path, answer.text())
        assert answer.type in item["get"]["responses"]["200"]["content"], path
        head = ask(door["address"], question, "HEAD")
        assert head.status == 200 and head.type == answer.type
        for kind in item["get"]["responses"]["200"]["content"]:
            if "." not in path:
                wanted = ask(door["address"], question, headers=[f"Accept: text/x-none;q=1, {kind.split(';')[0]}"])
                assert wanted.type.split(";")[0] == kind.split(";")[0]


def test_parameters(door):
    """Each parameter as it is described: its bounds, what it does not take, twice, and one that there is not."""
    for path, item in described(door)["paths"].items():
        question = fill(path)
        for parameter in item.get("get", {"parameters": []})["parameters"]:
            if parameter["in"] == "path":
                continue
            name, schema = parameter["name"], parameter["schema"]
            bad = ["", "x", "1x", "nan", "%00"]
            if "enum" in schema:
                for form in schema["enum"]:
                    assert ask(door["address"], f"{question}?{name}={form}").status == 200
            else:
                bad += [str(schema["minimum"] - 1), str(schema["maximum"] * 2 + 1), "inf", "1e999", "0x10"]
                if schema["type"] == "integer":
                    bad.append("1.5")
            for value in bad:
                answer = ask(door["address"], f"{question}?{name}={value}")
                assert answer.status == 400 and name in answer.text(), (path, name, value, answer.text())
            twice = "svg" if "enum" in schema else schema["minimum"]
            assert ask(door["address"], f"{question}?{name}={twice}&{name}={twice}").status == 400
        if "get" in item:
            answer = ask(door["address"], f"{question}?nonsense=1")
            assert answer.status == 400 and "no such parameter" in answer.text()
    assert ask(door["address"], "/tables/python.samples?limit=1").status == 200
    assert ask(door["address"], "/status?" + "a" * 300 + "=1").status == 400


def test_page_names_every_route(door, source_dir):
    page, text = ask(door["address"], "/"), ask(door["address"], "/", headers=["Accept: text/plain"])
    assert page.type.startswith("text/html") and text.type.startswith("text/plain")
    for verb, path, _, _, _, params in routes(source_dir):
        assert f"{verb} {path}" in text.text() and path in page.text()
        for name in params:
            assert f"{name}=" in text.text()


def test_what_is_not_there(door):
    address = door["address"]
    for path in ("/nope", "/backtrace.svg", "/backtrace/", "/tables/", "/tables/a/b", "/tables/nonsense", "/status.exe", "/%2e%2e/etc/passwd"):
        assert ask(address, path).status == 404, path
    assert "made by the client" in ask(address, "/tables/python.backtrace").text()
    assert ask(address, "/backtrace?thread=4194304").status == 404
    answer = ask(address, "/status", "DELETE")
    assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD"
    for verb in ("POST", "PUT", "PATCH", "OPTIONS"):
        assert ask(address, "/status", verb, body=b"").status == 405, verb
    assert ask(address, "/status", "POST", body=b"x=1").status == 405
    assert ask(address, "/eval").headers["allow"] == "POST" and ask(address, "/config", "POST", body=b"").headers["allow"] == "GET, HEAD, PUT"
    for kind in ("image/png", "text/html;q=0, image/png"):
        assert ask(address, "/status", headers=[f"Accept: {kind}"]).status == 406
    for kind in ("*/*", "application/*", "image/png, */*;q=0.1"):
        assert ask(address, "/status", headers=[f"Accept: {kind}"]).status == 200


# --- what is shown -------------------------------------------------------------------------------------------------

def test_backtrace_is_true(job):
    j = job()
    address = listen(j.start())["address"]
    j.do("spawn('deep', recurse, 20)")
    document = ask(address, "/backtrace.json").json()
    thread, = [t for t in document["threads"] if t["name"] == "deep"]
    names = [f["func"] for f in thread["frames"]]
    assert names.count("recurse") == 21 and document["schema_version"] == 1 and document["target"]["pid"] == j.pid
    text = ask(address, f"/backtrace?thread={thread['tid']}").text()
    assert "deep" in text and text.count("recurse (") == 21 and text.count("\nThread ") == 1
    assert f"Thread deep ({thread['tid']})" in ask(address, "/threads").text()


def test_flamegraph_of_what_runs(job):
    j = job()
    endpoint = j.start()
    address = listen(endpoint)["address"]
    j.do("spawn('hot', hot_loop)")
    folded = ask(address, "/flamegraph.folded?seconds=1").text()
    line, = [x for x in folded.splitlines() if x.rsplit(" ", 1)[0].endswith(")") and "hot_inner (" in x and "hot_loop (" in x]
    assert line.index("hot_loop") < line.index("hot_inner") and int(line.rsplit(" ", 1)[1]) >= 1
    document = ask(address, "/flamegraph.json?seconds=0.5").json()
    assert document["pid"] == j.pid and document["duration_s"] == 0.5
    assert sum(s["samples"] for s in document["stacks"]) + document["torn"] + document["without_python"] + document["left_out"] == document["samples"]
    hot = [s for s in document["stacks"] if any(f["func"] == "hot_loop" for f in s["frames"])]
    assert hot and hot[0]["frames"][-1]["func"] != "hot_inner"  # innermost first
    answer = ask(address, "/flamegraph?seconds=0.5")
    assert answer.type == "image/svg+xml" and "hot_loop" in answer.text()
    picture = xml.dom.minidom.parseString(answer.body)
    assert picture.documentElement.tagName == "svg" and not picture.getElementsByTagName("script")
    tid = next(t["tid"] for t in ask(address, "/backtrace.json").json()["threads"] if t["name"] == "MainThread")
    assert "hot_loop" not in ask(address, f"/flamegraph.folded?seconds=0.5&thread={tid}").text()


def test_names_are_escaped(job):
    j = job()
    address = listen(j.start())["address"]
    j.do("exec(compile('def bad(): wait_for_ever()', '<&\"\\';]]>\\x1b\\n.py', 'exec'), globals())")
    j.do("spawn('x', bad)")
    svg = ask(address, "/flamegraph?seconds=0.3")
    titles = [t.firstChild.data for t in xml.dom.minidom.parseString(svg.body).getElementsByTagName("title")]
    assert any("bad (" in t for t in titles)
    for line in ask(address, "/flamegraph.folded?seconds=0.3").text().splitlines():
        assert line.rsplit(" ", 1)[1].isdigit() and "\x1b" not in line


def test_sampling_ends_with_the_client(job, wait_until):
    """A flame graph holds nobody up, and is no more when who wants it hangs up; two are made at a time."""
    endpoint = job().start()
    address = listen(endpoint)["address"]

    def rate():
        with Client(endpoint) as client:
            return client.call("status")["rate_hz"]
    waiting = [connect(address) for _ in range(2)]
    for sock in waiting:
        sock.sendall(request(address, "/flamegraph?seconds=60"))
    wait_until(lambda: rate() > 0, what="sampling to begin")
    wait_until(lambda: ask(address, "/flamegraph?seconds=0.1").status == 429, what="a third to be refused")
    assert ask(address, "/flamegraph").headers["retry-after"] == "1"
    assert ask(address, "/status").status == 200  # meanwhile
    with TcpClient(address) as client:
        assert client.call("threads")["threads"]
    for sock in waiting:
        sock.close()
    wait_until(lambda: rate() == 0, what="sampling to end")
    wait_until(lambda: ask(address, "/flamegraph?seconds=0.1").status == 200, what="there to be room")


def test_tables(job, wait_until):
    endpoint = job(env=KEPT).start()
    address = listen(endpoint)["address"]
    wait_until(lambda: rows_of(address, "python.samples"), what="samples")
    names = [t["name"] for t in ask(address, "/tables").json()["tables"]]
    assert "python.samples" in names and "python.steps" in names
    assert all(name in ask(address, "/tables.txt").text() for name in names)
    document = ask(address, "/tables/python.samples?limit=1").json()
    columns = [c["name"] for c in document["columns"]]
    assert document["columns"][0] == {"name": "timestamp", "type": "timestamp"} and list(document["rows"][0]) == columns
    newest = document["rows"][-1]["timestamp"]
    wait_until(lambda: ask(address, f"/tables/python.samples?since={newest:.6f}").json()["rows"], what="newer samples")
    later = ask(address, f"/tables/python.samples?since={newest:.6f}&limit=1").json()["rows"]
    assert later and len({r["timestamp"] for r in later}) == 1 and later[0]["timestamp"] > newest
    answer = ask(address, "/tables/python.samples?format=csv&limit=3")
    table = list(csv.reader(io.StringIO(answer.body.decode(), newline="")))
    assert table[0] == columns and 1 <= len(table) - 1 and all(len(row) == len(columns) for row in table)
    lines = ask(address, "/tables/python.samples?format=ndjson&limit=3").text().splitlines()
    assert lines and all(list(json.loads(line)) == columns for line in lines)
    assert ask(address, "/tables/python.frames?since=1").status == 400  # its rows have no time
    assert ask(address, "/tables/memory_usage").status == 200  # the other name of one
    assert ask(address, f"/tables/python.samples?since={time.time() + 1000:.3f}").json()["rows"] == []


def test_all_rows_come_by_since(job, wait_until):
    """Read on from the last time, row by row, nothing is lost and nothing comes twice."""
    address = listen(job(env=KEPT).start())["address"]
    wait_until(lambda: len(rows_of(address, "python.samples")) >= 20, what="samples")
    rows, since = [], 0
    for _ in range(8):
        answer = ask(address, f"/tables/python.samples?since={since:.6f}&limit=1")
        piece = answer.json()["rows"]
        assert answer.json()["truncated"] == ("x-truncated" in answer.headers)
        rows += piece
        since = rows[-1]["timestamp"]
    known = [r for r in ask(address, "/tables/python.samples?since=0").json()["rows"] if r["timestamp"] <= since]
    assert rows == known


def test_metrics(job, wait_until):
    j = job()
    endpoint = j.start()
    address = listen(endpoint)["address"]
    answer = wait_until(lambda: (a := ask(address, "/metrics")) and b"probing_table_rows" in a.body and a, what="tables")
    assert answer.type == "text/plain; version=0.0.4; charset=utf-8"
    first, types = parse_metrics(answer.text())
    labels = dict(next(iter(first["probing_info"])))
    assert labels["pid"] == str(j.pid) and first["probing_info"][next(iter(first["probing_info"]))] == 1
    assert {dict(k)["table"] for k in first["probing_table_rows"]} >= {"python.samples", "python.steps"}
    assert "probing_steps_total" not in first  # no torch: that is not known, and not 0
    second, _ = parse_metrics(ask(address, "/metrics").text())
    for name, kind in types.items():
        if kind == "counter":
            assert all(second[name][k] >= v for k, v in first[name].items()), name


def test_status_and_config(job):
    j = job(env={"PROBING_BUDGET": "2"})
    address = listen(j.start())["address"]
    status = ask(address, "/status").json()
    assert status["target"]["pid"] == j.pid and status["sampler"]["budget_pct"] == 2 and status["doors"][0]["address"] == address
    assert f"{j.pid}" in ask(address, "/status.txt").text()
    settings = {s["key"]: s for s in ask(address, "/config").json()["settings"]}
    assert settings["probing.budget"]["value"] == "2" and settings["probing.budget"]["default"] == "1"
    assert "probing.budget=2\n" in ask(address, "/config.txt").text()


def test_gil_held_for_ever(job, wait_until):
    """What needs no Python is answered; what does says that it is not available now."""
    j = job()
    address = owner(listen(j.start()))
    j.tell("keep_the_gil()")
    wait_until(lambda: "keep_the_gil" in ask(address, "/backtrace").text(), what="the GIL to be held")
    answer = ask(address, "/tables/python.modules")
    assert answer.status == 503 and "GIL" in answer.text()
    wait_until(lambda: ask(address, "/tables/python.samples").status == 200, what="tables")
    for path in ("/status", "/tables", "/metrics", "/flamegraph?seconds=0.3"):
        assert ask(address, path).status == 200, path


# --- code and settings ---------------------------------------------------------------------------------------------

def run(address, code, query="", **more):
    return ask(address, "/eval" + query, "POST", body=code.encode(), headers=[CODE, *more.pop("headers", [])], **more)


def test_eval(job):
    j = job()
    address = owner(listen(j.start()))
    answer = run(address, "import os\nprint('out')\nos.getpid()")
    assert answer.status == 200 and answer.type == "application/json"
    assert answer.json()["result"] == str(j.pid) and answer.json()["output"] == "out\n" and answer.json()["error"] is None
    failed = run(address, "1 / 0").json()
    assert failed["error"]["type"] == "ZeroDivisionError" and "<http>" in failed["error"]["traceback"]
    assert run(address, "print('a'); 40 + 2", headers=["Accept: text/plain"]).text() == "a\n42\n"
    assert run(address, "1 / 0", "?format=txt").text().endswith("ZeroDivisionError: division by zero\n")
    assert run(address, "mark = 'ü'").status == 200 and j.do("mark") == "ü"  # its own __main__
    assert run(address, "x = '" + "a" * 500000 + "'; len(x)").json()["result"] == "500000"


def test_eval_ends_in_time_and_with_its_client(job, wait_until):
    j = job()
    address = owner(listen(j.start()))
    answer = run(address, "while True: pass", "?timeout=0.3")
    assert answer.status == 504 and answer.json()["timed_out"]
    with connect(address) as sock:
        body = b"begun = True\nimport time\nwhile True: time.sleep(0.01)"
        sock.sendall(request(address, "/eval?timeout=60", "POST", headers=[CODE], body=body))
        wait_until(lambda: j.do("globals().get('begun', False)"), what="the code to run")
        assert ask(address, "/backtrace").status == 200  # meanwhile
    wait_until(lambda: run(address, "2 + 2").status == 200, 30, what="the code to be ended")


def test_eval_that_is_off(job):
    j = job(env={"PROBING_EVAL": "off"})
    address = owner(listen(j.start()))
    answer = run(address, "1")
    assert answer.status == 403 and "probing.eval is off" in answer.text()
    answer = ask(address, "/config", "PUT", body=b"probing.eval=on")
    assert answer.status == 403 and run(address, "1").status == 403


def test_eval_while_the_gil_is_held(job, wait_until):
    """It is said, and nothing is left that runs later."""
    j = job()
    address = owner(listen(j.start()))
    j.tell("ctypes.PyDLL(None).sleep(8)")
    wait_until(lambda: "GIL held" in ask(address, "/backtrace").text(), what="the GIL to be held")
    answer = run(address, "later = 1", "?timeout=0.5")
    assert answer.status in (503, 504), answer.text()
    assert j.answers.readline() and j.do("'later' in globals()") is False


def test_settings(job):
    address = owner(listen(job().start()))
    for body in (b"probing.budget=3", b"budget=3\n", b"probing.budget=3%\r\n"):
        assert ask(address, "/config", "PUT", body=body).text() == "set\n"
        assert "probing.budget=3\n" in ask(address, "/config.txt").text()
    for body in (b"", b"probing.budget", b"=3", b"probing.budget=lots", b"probing.nonsense=1", b"a=1\nb=2", b"a" * 100 + b"=1", b"probing.budget=\x00"):
        assert ask(address, "/config", "PUT", body=body).status == 400, body
    assert ask(address, "/config", "PUT", body=b"a" * 400).status == 413


def test_settings_as_json(job):
    """A row of what GET /config says, changed, is what PUT takes."""
    address = owner(listen(job().start()))

    def put(value):
        return ask(address, "/config", "PUT", headers=["Content-Type: application/json"], body=json.dumps(value).encode())

    row = next(row for row in ask(address, "/config").json()["settings"] if row["key"] == "probing.budget")
    assert put({"key": row["key"], "value": "4"}).text() == "set\n"
    assert "probing.budget=4\n" in ask(address, "/config.txt").text()
    for wrong, why in (({"key": "probing.budget"}, "a key and a value"), ({"value": "1"}, "a key and a value"), ([], "object"), ({"key": "probing.budget", "value": 5}, "value"),
                       ({"key": "probing.budget", "value": "5", "more": 1}, "no such key"), ({"key": "probing.budget", "value": "5\n"}, "one line"),
                       ({"key": "a" * 64, "value": "5"}, "key"), ({"key": "probing.budget", "value": "5\0"}, "one line"), ({"key": "probing.nonsense", "value": "5"}, "nonsense")):
        answer = put(wrong)
        assert answer.status == 400 and why in answer.text(), (wrong, answer.text())
    assert "probing.budget=4\n" in ask(address, "/config.txt").text()
    body = ask(address, "/openapi.json").json()["paths"]["/config"]["put"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["required"] == ["key", "value"]


@pytest.mark.long
def test_bodies(job):
    """None but those that a page cannot send unasked, with their length, not too long, in time."""
    address = owner(listen(job().start()))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/x-pythonic", ""):
        assert ask(address, "/eval", "POST", body=b"1", headers=[f"Content-Type: {kind}"] if kind else []).status == 415, kind
    assert ask(address, "/eval", "POST", body=b"1", headers=["Content-Type: text/x-python; charset=utf-8"]).status == 200
    assert run(address, "").status == 400
    for headers in (FOREIGN, ["Origin: null"], ["Sec-Fetch-Site: cross-site"]):
        assert run(address, "1", headers=headers).status == 403
    assert ask(address, "/eval", "POST", headers=[CODE]).status == 411
    for length in ("2000000", "99999999999999999999"):
        assert send_raw(address, request(address, "/eval", "POST", headers=[CODE, f"Content-Length: {length}"])).status == 413
    assert send_raw(address, request(address, "/eval", "POST", headers=[CODE, "Content-Length: 100"]) + b"1") is None  # it was waited for
    whole = request(address, "/eval", "POST", headers=[CODE], body=b"print(1)")
    answer = send_raw(address, whole + request(address, "/eval", "POST", headers=[CODE], body=b"print(2)"))
    assert answer is None or answer.json()["output"] == "1\n"


# --- who is answered -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("looking", [False, True])
def test_who_may_ask_what(job, source_dir, wait_until, looking):
    """Who, through which listener, which route: what a route does is what its method does, from the two tables."""
    door = listen(job().start(), looking=looking)
    wait_until(lambda: ask(door["address"], "/tables/python.samples").status == 200, what="tables")
    needs = dict(methods(source_dir))
    visitors = [("WIRE_READ_ONLY", {}), ("WIRE_READ_ONLY", {"token": door["looking_token"]}), ("WIRE_NOTHING", {"token": "0" * 48}),
                ("WIRE_NOTHING", {"headers": FOREIGN}), ("WIRE_NOTHING", {"host": "evil.example"})]
    if IS_ROOT:
        visitors += [("WIRE_NOTHING", {"uid": STRANGER}), ("WIRE_READ_ONLY", {"uid": STRANGER + 1, "token": door["looking_token"]})]
        if not looking:
            visitors.append(("WIRE_CHANGES", {"token": door["token"]}))
            visitors.append(("WIRE_CHANGES", {"uid": STRANGER + 2, "token": door["token"]}))
    for level, who in visitors:
        for verb, path, method, *_ in routes(source_dir):
            more = dict(who)
            if verb != "GET":
                more |= {"body": BODIES[path], "headers": [*who.get("headers", []), CODE]}
            answer = ask(door["address"], fill(path) + ("?seconds=0.1" if path == "/flamegraph" else ""), verb, **more)
            allowed = LEVELS.index(level) >= LEVELS.index(needs[method])
            if level == "WIRE_NOTHING":
                assert answer.status in (401, 403, 429), (path, who)
            else:
                assert answer.status == (200 if allowed else 403), (path, who, answer.text())


def test_tables_that_hold_values_are_no_looks(job):
    door = listen(job().start())
    assert ask(door["address"], "/tables/python.modules", token=door["looking_token"]).status == 403
    assert ask(door["address"], "/tables/python.modules").status == 403
    assert ask(door["address"], "/tables/python.modules", token=door["token"]).status == 200


def test_a_stranger_is_told_what_is_needed(job):
    if not IS_ROOT:
        pytest.skip("needs root: to be another user")
    door = listen(job().start())
    answer = ask(door["address"], "/status", uid=STRANGER)
    assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert ask(door["address"], "/status", uid=STRANGER + 1, token=door["token"]).status == 200
    seen = [ask(door["address"], "/status", uid=STRANGER + 2, token="wrong").status for _ in range(10)]
    assert seen[0] == 401 and 429 in seen and 200 not in seen


def test_pages_are_not_answered(door):
    address = door["address"]
    for headers in (FOREIGN, ["Origin: null"], [f"Origin: http://{address}.evil.example"], ["Sec-Fetch-Site: cross-site"],
                    ["Sec-Fetch-Site: same-site"], ["Sec-Fetch-Site: " + "x" * 500]):
        for path in ("/", "/status", "/flamegraph"):
            assert ask(address, path, headers=headers).status in (400, 403), headers
        assert ask(address, "/", headers=headers, token=door["token"]).status in (400, 403)
    for host in ("evil.example", f"evil.example:{split(address)[1]}", "127.0.0.1.evil.example", "x" * 300):
        assert ask(address, "/status", host=host).status == 403
    for headers in (["Sec-Fetch-Site: none"], [f"Origin: http://{address}", "Sec-Fetch-Site: same-origin"]):
        answer = ask(address, "/status", headers=headers)
        assert answer.status == 200 and "access-control-allow-origin" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cross-origin-resource-policy"] == "same-origin"


# --- bytes that mean harm ------------------------------------------------------------------------------------------

def test_one_request_a_connection(door):
    """What stands behind a request is never taken for another."""
    address = door["address"]
    second = request(address, "/backtrace")
    for first in (request(address, "/metrics"), request(address, "/metrics", headers=["Connection: keep-alive"]),
                  request(address, "/metrics", headers=[f"Content-Length: {len(second)}"]),
                  request(address, "/metrics", headers=["Content-Length: 0", "Transfer-Encoding: chunked"]),
                  request(address, "/metrics", headers=["Content-Length: 0", "Content-Length: 5"]),
                  request(address, "/metrics", headers=["Transfer-Encoding: chunked"]) + b"0\r\n\r\n",
                  request(address, "/metrics", "POST", headers=["Content-Length: 4", "Transfer-Encoding: chunked"])):
        with connect(address) as sock:
            sock.sendall(first + second)
            data = read_all(sock)
        assert data.count(b"HTTP/1.") <= 1, first
        answer = parse(data)
        if b"ontent-Length" in first or b"Transfer" in first:
            assert answer is None or answer.status in (400, 405), first


def test_bad_requests(door):
    address = door["address"]
    for data in (b"GET /status HTTP/1.1\r\n\r\n", b"GET /status\r\n\r\n", b"GET http://evil/ HTTP/1.1\r\nHost: " + address.encode() + b"\r\n\r\n",
                 request(address, "/" + "a" * 20000), request(address, "/", headers=["X: " + "y" * 100000]),
                 request(address, "/", headers=[f"X{i}: y" for i in range(5000)]), request(address, "/?" + "&".join(f"a{i}=1" for i in range(100))),
                 request(address, "/status", headers=["Content-Length: -1"]), request(address, "/status", headers=["Content-Length: 1e3"]),
                 b"\r\n\r\n" + b"\x00" * 100, b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        answer = send_raw(address, data)
        assert answer is None or 400 <= answer.status < 500, data[:60]
    assert ask(address, "/status").status == 200


def test_too_many_at_a_time(job, wait_until):
    """A reader that does not read costs only its connection."""
    endpoint = job().start()
    address = listen(endpoint)["address"]
    slow = [connect(address) for _ in range(12)]
    for sock in slow:
        sock.sendall(request(address, "/flamegraph?seconds=1"))
    with Client(endpoint) as client:  # by the unix socket all goes on
        assert client.call("threads")["threads"]
    for sock in slow:
        sock.close()
    wait_until(lambda: ask(address, "/status").status == 200, what="room")


def test_the_unix_socket_answers_too(job):
    endpoint = job().start()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30)
        sock.connect(endpoint)
        sock.sendall(request("localhost", "/status"))
        assert parse(read_all(sock)).json()["endpoint"] == endpoint


def test_eject_with_requests_under_way(job, wait_until):
    j = job()
    before = j.do("look()")
    endpoint = j.start()
    address = listen(endpoint)["address"]
    with connect(address) as sock:
        sock.sendall(request(address, "/flamegraph?seconds=60"))
        wait_until(lambda: Client(endpoint).call("status")["rate_hz"] > 0, what="sampling to begin")
        with Client(endpoint) as client:
            client.call("eject")
        wait_until(lambda: not j.agent_threads(), what="the threads to go")
    assert j.do("look()")["fds"] == before["fds"]


# --- with what people have -----------------------------------------------------------------------------------------

def test_curl(door, tmp_path):
    """The line of docs/remote.md."""
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    out = tmp_path / "flamegraph.svg"
    with open(out, "wb") as file:
        done = subprocess.run(["curl", "-sS", f"http://{door['address']}/flamegraph"], stdout=file, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr
    assert xml.dom.minidom.parse(str(out)).documentElement.tagName == "svg"
    done = subprocess.run(["curl", "-sS", "-f", f"http://{door['address']}/nope"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 22


def test_a_browser(door, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open(f"http://{door['address']}/")
        assert "/flamegraph" in browser.evaluate("document.body.textContent")
        assert browser.evaluate("document.querySelectorAll('a').length") >= 8
        browser.open(f"http://{door['address']}/flamegraph?seconds=0.3")
        assert browser.evaluate("document.documentElement.tagName") == "svg"
