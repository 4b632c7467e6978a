# SPDX-License-Identifier: Apache-2.0
"""probing PID report: a page, Markdown and JSON about a job: of a live one, from outside, of a recording and a dead one; nothing that a job calls
itself becomes markup, no secret is in it, and a browser asks nobody for anything."""

import html.parser
import json
import os
import re
import shutil
import signal
import sqlite3
import stat

import pytest

from browser import Browser
from conftest import run_command, wait_until
from training_job import training_job  # noqa: F401

SECRET = "hunter2"
# A file, a function and a thread whose names are markup of every kind, and an argument that is one.
MARKUP = "</pre></svg></title><script>document.title='run'</script><img src=x onerror=alert(1)>"
MARKDOWN = "````\n# head [x](http://evil.invalid) ![x](http://evil.invalid) @everyone #1 ~~~"
TERMINAL = "\x1b[2J\x1b]0;x\x07\u202e\x9b31m"
JOB = f'''
import os, threading, time

EVIL = {MARKUP!r} + {MARKDOWN!r} + {TERMINAL!r}
space = {{"sleep": time.sleep}}
exec(compile("def evil():\\n    while True:\\n        sleep(0.01)\\n", EVIL + ".py", "exec"), space)
space["evil"].__code__ = space["evil"].__code__.replace(co_name=EVIL)
if hasattr(space["evil"].__code__, "co_qualname"):
    space["evil"].__code__ = space["evil"].__code__.replace(co_qualname=EVIL)

def spin():
    x = 0
    while True:
        x += 1

threading.Thread(target=space["evil"], name=EVIL, daemon=True).start()
password = {SECRET!r}
os.write(int(os.environ["READY_FD"]), b"ready\\n")
spin()
'''
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LOADED = {"src", "href", "xlink:href", "action", "formaction", "data", "poster", "srcset", "background", "ping"}


class Page(html.parser.HTMLParser):
    """Its elements, text and headings; it may load and run nothing."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.heads, self.policy = [], [], [], [], None
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            assert name not in LOADED and not name.startswith("on"), (tag, name, value)
            assert "url(" not in (value or ""), (tag, name, value)
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            assert "url(" not in data and "@import" not in data
            return
        self.text.append(data)
        if self.open and self.open[-1] == "h2":
            self.heads.append(data)


def check_page(text):
    page = Page(text)
    assert set(page.tags) <= {"html", "head", "meta", "title", "style", "body", "header", "footer", "h1", "h2", "h3", "p", "b", "div", "table", "tr", "th",
                              "td", "svg", "g", "rect", "text", "line", "path", "pre", "span", "ul", "li"}
    assert page.policy.startswith("default-src 'none';") and "script-src" not in page.policy
    assert not OBEYED.search(text) and SECRET not in text
    assert page.heads[:5] == ["Verdict", "Facts", "Steps", "Where its time goes", "Stacks of all threads"]
    return page, "".join(page.text)


def outside_blocks(text):
    """The lines of Markdown that are not in code blocks."""
    fence, left = None, []
    for line in text.splitlines():
        found = re.match(r"(`{3,})(\w*)$", line)
        if fence is None and found:
            fence = found[1]
        elif fence is not None and line == fence:
            fence = None
        elif fence is None:
            left.append(line)
    assert fence is None
    return left


def check_markdown(text):
    assert not OBEYED.search(text) and SECRET not in text
    for line in outside_blocks(text):
        assert re.fullmatch(r"|#{2,3} [\w ,:]+|Made [-\d: ]+ UTC by probing-top [\d.]+\.", line), line
    return text


@pytest.fixture
def job(target, ptrace):
    return target(JOB, "--api-key", SECRET, "--name=" + MARKUP, "`" * 5, f"https://ada:{SECRET}@host/", name="report_job.py")


def test_a_liar(job, probing, tmp_path):
    out = tmp_path / "report.html"
    done = probing(job.pid, "report", "--duration", "0.5", "-o", out).ok()
    assert done.stdout == "" and re.fullmatch(rf"probing: wrote {re.escape(str(out))} \([\d.]+ [KM]iB; \d+ samples, 0\.\d s\)\n", done.stderr)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    page, text = check_page(out.read_text(encoding="utf-8"))
    assert "script" not in page.tags and "img" not in page.tags
    assert "<script>document.title='run'</script>" in text and "--api-key ***" in text and "https://***@host/" in text
    assert "spin (report_job.py" in text and "no optimizer step was seen" in text

    # It has the file's name that it should, and is replaced.
    for _ in range(2):
        named = run_command([probing.path, str(job.pid), "report", "--seconds", "0.2"], cwd=tmp_path).ok()
        assert f"wrote probing-report-{job.pid}.html (" in named.stderr
    assert "Verdict" in (tmp_path / f"probing-report-{job.pid}.html").read_text(encoding="utf-8")

    markdown = check_markdown(probing(job.pid, "report", "--duration", "0.5", "--format", "md").ok().stdout)
    assert "--api-key ***" in markdown and "evil.invalid" in markdown and "spin (report_job.py" in markdown
    assert len(markdown) < 40_000

    document = probing(job.pid, "report", "--duration", "0.5", "--json").ok().json()
    assert document["schema_version"] == 1 and SECRET not in json.dumps(document)
    assert "--api-key ***" in document["backtrace"]["target"]["cmdline"]
    assert {thread["frames"][0]["func"] for thread in document["backtrace"]["threads"] if thread["frames"]} >= {"spin"}
    assert document["functions"][0]["function"].startswith("spin (") and document["functions_by_cpu"]
    assert document["sampling"]["samples"] > 0 and document["steps"] == [] and document["settings"] and document["overhead"]
    assert document["errors"] == {} or set(document["errors"]) == {"loader_workers"}


def test_no_values_and_no_environment(target, probing, ptrace, tmp_path):
    """Neither what was run in it, nor its variables, nor its environment."""
    job = target(JOB, name="report_job.py", env={"PLACE": SECRET, "PROBING_ENV_ALLOW": "PLACE"})
    probing(job.pid, "eval", f"len('{SECRET}')").ok()
    for form in ("html", "md", "json"):
        text = probing(job.pid, "report", "--duration", "0.2", "--format", form, "-o", "-").ok().stdout
        assert SECRET not in text, form
        assert form != "json" or any(event["kind"] == "eval" for event in json.loads(text)["events"])


def test_from_outside(job, probing):
    """Nothing is put into it."""
    with open(f"/proc/{job.pid}/maps", encoding="utf-8") as maps:
        before = len(maps.read().splitlines())
    _, text = check_page(probing(job.pid, "--readonly", "report", "--duration", "0.5", "-o", "-").ok().stdout)
    assert "read from outside" in text and "spin (report_job.py" in text and "there is no agent" in text
    check_markdown(probing(job.pid, "report", "--no-inject", "--duration", "0.3", "--format", "md").ok().stdout)
    with open(f"/proc/{job.pid}/maps", encoding="utf-8") as maps:
        assert "probing" not in maps.read() or before
    assert probing("list", "--json").ok().json() and job.alive()


def test_refusals(probing, tmp_path):
    done = probing(str(os.getpid()), "report", "--format", "pdf")
    assert done.status == 2 and done.stderr == "probing: unknown format 'pdf' of a report: give html, md or json\n"
    done = probing(str(os.getpid()), "report", "--json", "--format", "md")
    assert done.status == 2 and "exclude each other" in done.stderr
    done = probing(str(os.getpid()), "report", "-o", tmp_path)
    assert done.status == 1 and "is a folder" in done.stderr


def bars(text):
    return re.findall(r"<title>step (\d+): ([\d.]+) ms", text)


@pytest.mark.timeout(300)
def test_a_training_job_alive_recorded_and_dead(training_job, tmp_path):  # noqa: F811
    job = training_job("slow_loader")
    job.wait_steps(60)
    wait_until(lambda: len(job.rows("python.loaders")) > 2, 60, "the loader to be seen", interval=0.2)

    def report(*args, target=job.pid):
        return job.probing(str(target), "report", *args, timeout=90).ok()
    out = tmp_path / "live.html"
    report("--duration", "2", "-o", out)
    page, text = check_page(out.read_text(encoding="utf-8"))
    assert page.tags.count("svg") >= 4  # steps, main thread, all threads, memory
    assert "INPUT-BOUND" in text and "Workers of data loaders" in text and "more workers" in text
    drawn = bars(out.read_text(encoding="utf-8"))
    document = report("--duration", "1", "--format", "json").json()
    rows = {row["step"]: row for row in document["steps"]}
    assert len(drawn) > 20 and all(float(ms) == pytest.approx(rows[int(step)]["duration_ms"], abs=0.01) for step, ms in drawn if int(step) in rows)
    assert {verdict["code"] for verdict in document["verdicts"]} >= {"INPUT-BOUND"}
    assert document["memory"][0]["rss_mb"] > 10 and document["loaders"][0]["workers"] == 2 and len(document["loader_workers"]) == 2
    assert document["step_figures"][0]["steps"] == len(document["steps"])

    recording = tmp_path / "run.db"
    job.probing(str(job.pid), "record", "-o", recording).ok()
    with open(f"/proc/{job.pid}/task/{job.pid}/children", encoding="ascii") as file:
        workers = [int(pid) for pid in file.read().split()]
    os.kill(job.pid, signal.SIGKILL)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not job.target.alive(), 60, "its end")

    for ended in (recording, job.pid):
        _, text = check_page(report("-o", "-", target=ended).stdout)
        assert "this is its last known state" in text and "INPUT-BOUND" in text
        document = report("--json", target=ended).json()
        assert document["sampling"]["samples"] > 10 and document["steps"] and document["functions"]
        assert document["backtrace"]["target"]["mode"] == "recorded" and document["backtrace"]["threads"]
        markdown = check_markdown(report("--format", "md", target=ended).stdout)
        assert "INPUT-BOUND" in markdown and "median_ms" in markdown
    # Of a recording the same each time but for when it was made.
    first, again = (re.sub("Made [-0-9: ]+ UTC|newest rows are \\d[^:]+ old", "", report("--format", "md", target=recording).stdout) for _ in range(2))
    assert first == again


KEEPS = '''
import os, time
kept = []

def keep():
    kept.append(bytearray(4 << 20))

os.write(int(os.environ["READY_FD"]), b"ready\\n")
while True:
    time.sleep(0.05)
    if len(kept) < 100:
        keep()
'''


@pytest.mark.timeout(120)
def test_who_allocated(target, probing, ptrace):
    """Where allocations are traced."""
    job = target(KEEPS, name="keeps_job.py")
    probing(job.pid, "memory", "--trace", "--seconds", "4s", timeout=60).ok()
    document = probing(job.pid, "report", "--duration", "0.2", "--json").ok().json()
    most = document["allocations"][0]
    assert most["function_name"] == "keep" and most["file"].endswith("keeps_job.py") and most["lineno"] == 6 and most["live_mb"] > 20, most
    _, text = check_page(probing(job.pid, "report", "--duration", "0.2", "-o", "-").ok().stdout)
    assert "Memory by the line that allocated it" in text


@pytest.mark.timeout(200)
def test_a_recording_that_lies(job, probing, tmp_path, wait_until):
    """Every text of every table is markup, every number is none that fits."""
    probing(job.pid, "inject").ok()
    wait_until(lambda: probing(job.pid, "query", "SELECT count(*) AS n FROM python.samples", "--json").ok().json()["rows"][0]["n"] > 20, 60, "samples",
               interval=0.3)
    honest, lying = tmp_path / "run.db", tmp_path / "lying.db"
    probing(job.pid, "record", "-o", honest).ok()
    shutil.copy(honest, lying)
    with sqlite3.connect(lying) as db:
        columns = db.execute("SELECT table_name, name, type FROM probing_columns").fetchall()
        for table, column, _ in columns:
            stored = table.replace(".", "_")
            kind = {row[1]: row[2] for row in db.execute(f'PRAGMA table_info("{stored}")')}.get(column)
            if kind == "TEXT" and column not in ("key", "state", "gil", "stage"):
                db.execute(f'UPDATE "{stored}" SET "{column}" = ?', (MARKUP + MARKDOWN + TERMINAL,))
            elif kind in ("REAL", "INTEGER") and column not in ("timestamp", "stack_id", "parent_id", "frame_id", "tid", "depth"):
                db.execute(f'UPDATE "{stored}" SET "{column}" = ?', (1e308 if kind == "REAL" else -(1 << 62),))
        for step in range(300):
            db.execute("INSERT INTO python_steps(rank, host, pid, timestamp, step, duration_ms, data_ms, gc_ms, nonfinite) SELECT rank, host, pid, max(timestamp) + ?, "
                       "?, ?, ?, ?, ? FROM python_samples", (step / 100, step, (1e308, -5.0, 1e-300, 10.0)[step % 4], 1e300, -1e300, MARKUP))
    for recording in (honest, lying):
        check_page(probing(recording, "report", "-o", "-").ok().stdout)
        check_markdown(probing(recording, "report", "--format", "md").ok().stdout)
        probing(recording, "report", "--json").ok().json()


class Watched(Browser):
    """Keeps what the page asks for, and what it complains about."""

    def __init__(self, folder, *more):
        self.events = []
        super().__init__(folder, *more)
        self.call("Network.enable")
        self.call("Log.enable")

    def receive(self, deadline):
        message = super().receive(deadline)
        if "method" in message:
            self.events.append(message)
        return message

    def of(self, method):
        return [event["params"] for event in self.events if event["method"] == method]


@pytest.mark.timeout(300)
def test_in_a_browser(job, probing, tmp_path):
    out = tmp_path / "report.html"
    probing(job.pid, "report", "--duration", "0.5", "-o", out).ok()
    with Watched(tmp_path) as browser:
        browser.open(out.as_uri())
        assert browser.evaluate("document.title") == f"probing report: process {job.pid}"
        asked = [params["request"]["url"] for params in browser.of("Network.requestWillBeSent") if params["request"]["url"] != "about:blank"]
        assert asked == [out.as_uri()]
        assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
        for method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            assert not browser.of(method), browser.of(method)
        assert browser.evaluate("document.querySelectorAll('script, img, iframe, link, object').length") == 0
        assert browser.evaluate("document.querySelectorAll('svg').length") >= 3
        # A frame has the place and width that it should, also within HTML, and nothing is wider than the page.
        widths = browser.evaluate("[...document.querySelectorAll('.frames > g:first-child rect')].map(r => r.getBoundingClientRect().width)")
        assert widths and all(width > 900 for width in widths)
        assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        # Light and dark.
        colours = []
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            colours.append(browser.evaluate("getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color"))
        assert colours == ["rgb(255, 255, 255)rgb(22, 24, 29)", "rgb(22, 24, 29)rgb(240, 241, 243)"]
        # The policy holds: what somebody adds to it does not run.
        browser.evaluate("document.body.appendChild(Object.assign(document.createElement('script'), {textContent: 'document.title = 1'})); 0")
        assert browser.evaluate("document.title") == f"probing report: process {job.pid}"


def test_it_prints(job, probing, tmp_path):
    """As PDF: all stacks are in it."""
    out = tmp_path / "report.html"
    probing(job.pid, "report", "--duration", "0.5", "-o", out).ok()
    with Browser(tmp_path) as browser:
        browser.open(out.as_uri())
        pdf = browser.call("Page.printToPDF")["data"]
    assert len(pdf) > 10_000
    if shutil.which("pdftotext"):
        import base64
        (tmp_path / "report.pdf").write_bytes(base64.b64decode(pdf))
        text = run_command(["pdftotext", "-layout", str(tmp_path / "report.pdf"), "-"]).ok().stdout
        assert "Stacks of all threads" in text and "MainThread" in text
