# SPDX-License-Identifier: Apache-2.0
"""The flame graph as SVG: well-formed, as wide as the folded lines say, quiet about what a job calls itself."""

import re
import xml.etree.ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"

# A function whose file closes tags and starts a script; one that computes; one that sleeps.
JOB = '''
import os, threading, time

EVIL = "job</title></text><script>document.title='run'</script>.py"
space = {"sleep": time.sleep}
exec(compile("def evil():\\n    while True:\\n        sleep(0.01)\\n", EVIL, "exec"), space)

def spin():
    x = 0
    while True:
        x += 1

threading.Thread(target=space["evil"], name="<thread & 'quotes'>", daemon=True).start()
os.write(int(os.environ["READY_FD"]), b"ready\\n")
spin()
'''


class Frame:
    def __init__(self, element):
        self.start, self.weight, self.depth, self.own = map(int, element.get("data-f").split())
        self.name = element.find(f"{SVG}title").text.splitlines()[0]
        self.kind = element.find(f"{SVG}rect").get("class")[0]
        self.x, self.width = (float(element.find(f"{SVG}rect").get(key)) for key in ("x", "width"))


def frames_of(text):
    """The frames, callers first; each lies within its caller."""
    root = xml.etree.ElementTree.fromstring(text)
    assert len(root.findall(f".//{SVG}script")) == 1
    frames = [Frame(g) for g in root.find(f"./{SVG}g[@id='frames']")]
    above = []
    for frame in frames:
        del above[frame.depth:]
        assert len(above) == frame.depth, frame.name
        if above:
            caller = above[-1]
            assert caller.start <= frame.start and frame.start + frame.weight <= caller.start + caller.weight
            assert caller.x <= frame.x + 0.02 and frame.x + frame.width <= caller.x + caller.width + 0.02
        above.append(frame)
    return frames


@pytest.fixture
def job(target, ptrace):
    return target(JOB, name="svg_job.py")


def test_picture(job, probing_top, tmp_path):
    out = tmp_path / "out.svg"
    done = probing_top("--export", "svg", "--duration", "1", "--threads", "-o", str(out), str(job.pid)).ok()
    assert done.stdout == "" and done.stderr.startswith("probing-top: wrote "), done
    text = out.read_text(encoding="utf-8")
    frames = frames_of(text)
    assert frames[0].name == "all" and frames[0].weight > 0
    names = {frame.name for frame in frames}
    assert any(name.startswith("thread <thread & 'quotes'> (") for name in names)
    assert names & {f"spin (svg_job.py:{line})" for line in range(9, 14)}
    evil = [frame for frame in frames if frame.name.startswith("evil (")]
    assert evil and evil[0].kind == "o"
    assert {frame.kind for frame in frames if "(threading.py:" in frame.name} == {"l"}
    assert f"process {job.pid} on " in text and re.search(r"\d+ samples of 2 threads, each sampled [\d.]+ times a second", text)
    assert sum(frame.own for frame in frames) == pytest.approx(frames[0].weight, abs=len(frames))


def test_one_look(job, probing_top):
    text = probing_top("--export", "svg", "--once", "--by-function", str(job.pid)).ok().stdout
    frames = frames_of(text)
    assert frames[0].weight == 2 and "widths are samples of all threads" in text
    assert {"spin (svg_job.py)"} <= {frame.name for frame in frames}


def test_refused_options(probing_top):
    done = probing_top("--export", "svg", "--locals", "1")
    assert done.status == 2 and done.stderr == "probing-top: --locals is for --export json, not for svg\n"
