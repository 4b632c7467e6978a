# SPDX-License-Identifier: Apache-2.0
"""The flame graph in a real browser: zoom, search and keys, what its script says against the file's own numbers; names that
would run a script do not."""

import pytest

from browser import Browser
from test_export_svg import JOB, frames_of

HOSTILE = JOB.replace('"job</title>', '"job]]></title><img src=x onerror=alert(1)>')
SHOWN = "[...document.querySelectorAll('#frames > g')].filter(g => g.style.display !== 'none')"
NAME = "g.querySelector('title').textContent.split('\\n')[0]"


def box(browser, name):
    """Place of the frame whose name begins so."""
    return browser.evaluate(f"(() => {{ const g = {SHOWN}.find(g => {NAME}.startsWith({name!r})); "
                            "const r = g.querySelector('rect').getBoundingClientRect(); "
                            "return {x: r.x + r.width / 2, y: r.y + r.height / 2, left: r.x, width: r.width, top: r.y}; })()")


def shown(browser):
    return set(browser.evaluate(f"{SHOWN}.map(g => {NAME})"))


def text(browser, element):
    return browser.evaluate(f"document.getElementById('{element}').textContent")


@pytest.fixture
def page(target, ptrace, probing, tmp_path):
    """A browser with the picture of a job, and the picture's frames."""
    job = target(HOSTILE, name="svg_job.py")
    out = tmp_path / "flame.svg"
    probing(job.pid, "flamegraph", "--duration", "0.5", "--by-function", "-o", out).ok()
    with Browser(tmp_path) as browser:
        browser.open(out.as_uri())
        yield browser, frames_of(out.read_text(encoding="utf-8"))


@pytest.mark.timeout(300)
def test_in_a_browser(page):
    check_nothing_runs_and_nothing_is_loaded(*page)
    check_zoom_and_search(*page)
    check_keys_alone(*page)


def check_zoom_and_search(browser, frames):
    browser.key("Home")
    total = frames[0].weight
    spin = next(frame for frame in frames if frame.name.startswith("spin "))
    everything = shown(browser)
    assert everything == {frame.name for frame in frames}
    # Each frame as wide as its share.
    whole = box(browser, "all")
    assert box(browser, "spin ")["width"] == pytest.approx(whole["width"] * spin.weight / total, abs=2)

    # The pointer tells.
    at = box(browser, "spin ")
    browser.hover(at["x"], at["y"])
    browser.wait_for("document.getElementById('details').textContent.startsWith('spin ')", "what is below the pointer")
    assert f"{100 * spin.weight / total:.2f} % of all" in text(browser, "details")

    # A click gives the frame the whole width; its callers stay, all others go.
    browser.click(at["x"], at["y"])
    browser.wait_for("document.getElementById('reset').style.display === ''", "the zoom")
    assert box(browser, "spin ")["width"] == pytest.approx(whole["width"], abs=1)
    callers = {f.name for f in frames if f.start <= spin.start and f.start + f.weight >= spin.start + spin.weight and f.depth <= spin.depth}
    assert shown(browser) == callers

    # So does the button, back again.
    reset = browser.evaluate("(r => ({x: r.x + r.width / 2, y: r.y + r.height / 2}))(document.getElementById('reset').getBoundingClientRect())")
    browser.click(reset["x"], reset["y"])
    browser.wait_for("document.getElementById('reset').style.display === 'none'", "everything")
    assert shown(browser) == everything

    # ctrl-F, a regular expression, how much it covers: below a hit nothing counts twice.
    browser.key("f", ctrl=True, code="KeyF")
    assert browser.evaluate("document.activeElement.id") == "search"
    browser.type("^spin |^<module>")
    module = next(frame for frame in frames if frame.name.startswith("<module> "))
    assert text(browser, "matched") == f"matched {100 * module.weight / total:.2f} %, 2 frames"
    assert browser.evaluate("document.querySelectorAll('#frames > g.hit').length") == 2
    browser.key("Enter")
    assert browser.evaluate("document.activeElement.classList.contains('hit')")
    browser.key("Escape")
    assert browser.evaluate("document.querySelectorAll('#frames > g.hit').length") == 0 and text(browser, "matched") == ""
    browser.key("/")
    browser.type("(")
    assert text(browser, "matched") == "no regular expression"


def check_keys_alone(browser, frames):
    browser.key("Escape")
    browser.key("Home")
    browser.key("ArrowDown")
    assert browser.evaluate(f"(g => {NAME})(document.activeElement)") in {f.name for f in frames if f.depth == 1}
    browser.key("ArrowRight")
    browser.key("ArrowLeft")
    browser.key("Enter")
    assert browser.evaluate("document.getElementById('reset').style.display") == ""
    before = box(browser, "all")["top"]
    browser.key("i")
    assert box(browser, "all")["top"] > before
    browser.key("Home")
    assert shown(browser) == {f.name for f in frames}
    assert browser.evaluate("document.getElementById('frames').getAttribute('role')") == "tree"


def check_nothing_runs_and_nothing_is_loaded(browser, frames):
    hostile = [f for f in frames if f.name.startswith("evil ")]
    assert hostile
    at = box(browser, "evil ")
    browser.hover(at["x"], at["y"])
    browser.click(at["x"], at["y"])
    browser.wait_for("document.getElementById('details').textContent.startsWith('evil ')", "the hostile frame")
    assert browser.evaluate("document.title").startswith("probing-top: ")
    assert browser.evaluate("document.querySelectorAll('script').length") == 1
    assert browser.evaluate("document.querySelectorAll('img, image, a, link, iframe').length") == 0
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
