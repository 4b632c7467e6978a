# SPDX-License-Identifier: Apache-2.0
"""A page of somebody's in the browser of the job's user tries every port of ours by all that pages can send, also after its name was made to
lead here (DNS rebinding): nothing of it is run, nothing is answered that it could read, and the listeners' own clients connect afterwards."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent_job import job as agent
from browser import Browser
from http_client import ask
from tcp_client import split
from test_catch import JOB as CATCH_JOB
from test_catch import arm, caught, in_thread
from test_debug import JOB as DEBUG_JOB
from test_debug import begin, counts_on, debugpy_for, hold_and_leave, line_of
from test_pause import JOB, Talker, is_paused, pause
from test_tcp_listener import listen

__all__ = ["agent", "debugpy_for"]

pytestmark = pytest.mark.timeout(300)

EVIL = "evil.example"
# What browsers guard by themselves one day, in one of them; here it must not be what saves us.
OPTIONS = [f"--host-resolver-rules=MAP {EVIL} 127.0.0.1",
           "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights"]

# Every way out of a page. Each ends with what the page could read; "" nothing.
ATTACK = r"""
function settled(promise) {
  return Promise.race([promise, new Promise(done => setTimeout(() => done(""), 5000))]).catch(() => "");
}

function element(kind, properties) {
  return settled(new Promise(done => {
    const it = document.createElement(kind);
    it.onload = () => { let text = ""; try { text = it.contentDocument ? it.contentDocument.documentElement.textContent : ""; } catch (e) {}
      done(kind === "iframe" ? text : "loaded"); };
    it.onerror = () => done("");
    Object.assign(it, properties);
    document.body.appendChild(it);
  }));
}

async function read(url, how) {
  const answer = await fetch(url, how);
  return await answer.text();
}

function socket(url, ...more) {
  return settled(new Promise(done => {
    const it = new WebSocket(url, ...more);
    it.onmessage = event => done("message " + event.data);
    it.onopen = () => { it.send("x"); done("open"); };
    it.onerror = it.onclose = () => done("");
  }));
}

function stream(url) {
  return settled(new Promise(done => {
    const it = new EventSource(url);
    it.onmessage = it.onopen = () => done("event");
    it.onerror = () => { it.close(); done(""); };
  }));
}

function form(url, text, kind) {
  return settled(new Promise(done => {
    const frame = document.createElement("iframe"), it = document.createElement("form"), field = document.createElement("textarea");
    frame.name = "f" + Math.random();
    document.body.appendChild(frame);
    frame.onload = () => { let text = ""; try { text = frame.contentDocument.documentElement.textContent; } catch (e) {} done(text); };
    Object.assign(it, {action: url, method: "POST", enctype: kind, target: frame.name});
    Object.assign(field, {name: text, value: text});
    it.appendChild(field);
    document.body.appendChild(it);
    it.submit();
    setTimeout(() => done(""), 1000);
  }));
}

async function attack(origin, text, paths) {
  const plain = {method: "POST", body: text, headers: {"Content-Type": "text/plain"}}, ws = origin.replace("http", "ws"), all = [];
  const tries = {
    "fetch": () => read(origin + "/eval", plain),
    "fetch no-cors": () => read(origin + "/", {...plain, mode: "no-cors"}),
    "fetch keepalive": () => read(origin + "/eval", {...plain, mode: "no-cors", keepalive: true}),
    "fetch blob": () => read(origin + "/eval", {method: "POST", mode: "no-cors", body: new Blob([text])}),
    "fetch python": () => read(origin + "/eval", {method: "POST", body: text, headers: {"Content-Type": "text/x-python"}}),
    "fetch json": () => read(origin + "/eval", {method: "POST", body: JSON.stringify({code: text}), headers: {"Content-Type": "application/json"}}),
    "fetch put": () => read(origin + "/config", {method: "PUT", body: "probing.budget=7"}),
    "fetch with a user": () => read(origin + "/", {headers: {Authorization: "Bearer " + "0".repeat(48)}}),
    "beacon": () => { navigator.sendBeacon(origin + "/eval", text); return ""; },
    "form text": () => form(origin + "/eval", text, "text/plain"),
    "form": () => form(origin + "/eval", text, "application/x-www-form-urlencoded"),
    "WebSocket": () => socket(ws + "/"),
    "WebSocket of ours": () => socket(ws + "/", "probing.v1"),
    "EventSource": () => stream(origin + "/flamegraph"),
    "img": () => element("img", {src: origin + "/flamegraph.svg?seconds=0.1"}),
    "script": () => element("script", {src: origin + "/backtrace"}),
    "script module": () => element("script", {type: "module", src: origin + "/config.json"}),
    "style": () => element("link", {rel: "stylesheet", href: origin + "/status.txt"}),
    "iframe": () => element("iframe", {src: origin + "/backtrace"}),
  };
  for (const path of paths) {
    tries["get " + path] = () => read(origin + path);
    tries["get no-cors " + path] = () => read(origin + path, {mode: "no-cors"});
  }
  for (const how in tries) all.push(settled((async () => await tries[how]())()).then(got => [how, String(got)]));
  return await Promise.all(all);
}
"""
PATHS = ["/", "/backtrace", "/status", "/tables/probing.events", "/config", "/openapi.json"]
REFUSED = "the Host of a request must be this listener's address or localhost\n"


class Server:
    """Listens, and is closed at the end."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def page_server(html):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(html)))
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_):
            pass
    return Server(ThreadingHTTPServer(("127.0.0.1", 0), Page))


def dupe_server(heard):
    """One that takes all that pages send, and lets them read everything: what the attack can do where nobody looks."""
    class Dupe(BaseHTTPRequestHandler):
        def answer(self):
            heard.append((self.command, self.path, self.headers.get("upgrade"), self.rfile.read(int(self.headers.get("content-length") or 0)).decode()))
            body = b"secret"
            self.send_response(200)
            for name, value in (("access-control-allow-origin", "*"), ("access-control-allow-headers", "*"), ("access-control-allow-methods", "*"),
                                ("content-type", "text/plain"), ("content-length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        do_GET = do_POST = do_PUT = do_OPTIONS = answer

        def log_message(self, *_):
            pass
    return Server(ThreadingHTTPServer(("127.0.0.1", 0), Dupe))


def payload(path):
    """In the words of each listener: a line for pdb, one for the text protocol, a message for a debugger."""
    code = f"open({str(path)!r}, 'w').close()"
    message = json.dumps({"seq": 1, "type": "request", "command": "evaluate", "arguments": {"expression": code, "context": "repl"}})
    return f"\n{code}\npy {code}\nContent-Length: {len(message)}\r\n\r\n{message}\n{code}\n"


def attack(browser, origin, text):
    return dict(browser.evaluate(f"attack({json.dumps(origin)}, {json.dumps(text)}, {json.dumps(PATHS)})"))


def nothing_is_got(browser, page, ports, tmp_path):
    """From a page of another place, by each name of this machine; then from one that has the place's own name, which leads here."""
    for name, port in ports.items():
        canary = tmp_path / f"canary.{name}"
        for host in ("127.0.0.1", "localhost"):
            browser.open(f"http://{EVIL}:{page.port}/")
            got = attack(browser, f"http://{host}:{port}", payload(canary))
            assert len(got) > 25 and not any(got.values()), (name, host, got)
            assert not canary.exists(), (name, host)
        browser.open_as(f"http://{EVIL}:{port}/page.html", f"<body><script>{ATTACK}</script>")
        got = attack(browser, f"http://{EVIL}:{port}", payload(canary))
        assert {text for text in got.values()} <= {"", REFUSED, REFUSED.strip()}, (name, got)
        assert not canary.exists(), name


@pytest.fixture
def page():
    with page_server(f"<body><script>{ATTACK}</script>") as server:
        yield server


def test_the_attack_is_one(page, tmp_path):
    """Of a server that is taken in all of it arrives: what the other tests say of ours is not the browser's doing."""
    heard = []
    with Browser(tmp_path, *OPTIONS) as browser, dupe_server(heard) as dupe:
        browser.open(f"http://{EVIL}:{page.port}/")
        got = attack(browser, f"http://127.0.0.1:{dupe.port}", payload(tmp_path / "canary"))
        assert got["get /status"] == "secret" and got["fetch"] == "secret"
        browser.open_as(f"http://{EVIL}:{dupe.port}/page.html", f"<body><script>{ATTACK}</script>")
        assert attack(browser, f"http://{EVIL}:{dupe.port}", "")["iframe"] == "secret"
    bodies = [body for method, _, _, body in heard if method == "POST"]
    assert len([body for body in bodies if "open(" in body and "\npy open(" in body.replace("\r", "")]) >= 6
    assert [one for one in heard if one[2] == "websocket"] and [one for one in heard if one[:2] == ("PUT", "/config")]


def test_no_page_gets_anything(page, agent, target, probing, wait_until, tmp_path):
    listening = agent()
    endpoint = listening.start()
    door = listen(endpoint)
    held, raised = target(JOB), target(CATCH_JOB)
    paused = pause(probing, held, "--limit", "20m")
    arm(probing, raised, "--limit", "20m")
    in_thread(probing, raised)
    kept = caught(probing, raised, wait_until)
    wait_until(lambda: ask(door["address"], "/tables/probing.events").status == 200, what="tables")
    ports = {"door": split(door["address"])[1], "pause": split(paused["address"])[1], "catch": split(kept["address"])[1]}
    with Browser(tmp_path, *OPTIONS) as browser:
        nothing_is_got(browser, page, ports, tmp_path)
        assert is_paused(probing, held)
        for document, banner in ((paused, "is held"), (kept, "it is threadthread")):
            talker = Talker(document["address"], document["token"])
            assert banner in talker.prompt() and talker.ask("p 6 * 7") == "42\n"
            talker.leave("continue")
        assert ask(door["address"], "/status").status == 200
        assert ask(door["address"], "/eval", "POST", token=door["token"], headers=["Content-Type: text/x-python"], body=b"6 * 7").json()["result"] == "42"
    settings = {row["key"]: row["value"] for row in ask(door["address"], "/config").json()["settings"]}
    assert settings["probing.budget"] != "7"


def test_no_page_speaks_to_debugpy(page, target, probing, any_python, debugpy_for, wait_until, tmp_path):
    """It may end debugpy, which has no password and does not take other messages than a debugger's well; the job continues, and debugpy starts again."""
    job, options = target(DEBUG_JOB), debugpy_for(any_python)
    port = begin(probing, job, options)
    with Browser(tmp_path, *OPTIONS) as browser:
        nothing_is_got(browser, page, {"debug": port}, tmp_path)
    counts_on(probing, job, wait_until)
    assert probing(str(job.pid), "debug", "--off", timeout=60).ok().stdout == "debugpy has ended\n"
    port = begin(probing, job, options)
    hold_and_leave(port, job.script, line_of(job.script, "# held here"), "step")
    probing(str(job.pid), "debug", "--off", timeout=60).ok()
