# SPDX-License-Identifier: Apache-2.0
"""Code, dicts, names and types that take the place of others in memory, over and over: no variable is reported with the value of another."""

import pytest
from agent_job import job  # noqa: F401
from conftest import wait_until

ROUNDS, STEPS = 12, 150

PREPARE = """
import random, torch
random.seed(1)
parameter = torch.nn.Parameter(torch.zeros(1))
parameter.grad = torch.zeros(1)
optimizer = torch.optim.SGD([parameter], lr=0.0)
places = {}
again = {"train": 0, "<module>": 0}
i = 0

def source(kind):
    '''Statements in an order that is another each time; now and then without those that are asked for.'''
    global i
    i += 1
    lines = ["loss = %d.5" % i, "number = 'right'", "other = 'wrong'", "more = -1.0", "logs = {''.join(['key', str(i % 2)]): i % 2}",
             "made = type('Made', (float if i % 3 else str,), {})(7)"]
    random.shuffle(lines)
    del lines[random.randrange(2, 7):]
    if kind == "<module>":
        return "\\n".join(lines + ["optimizer.step()"])
    return "def train():\\n    " + "\\n    ".join(lines + ["optimizer.step()"])

def met(code, kind, names):
    if places.get(id(code), names) != names:
        again[kind] += 1  # it lies where other code has lain
    places[id(code)] = names

def run(code, kind, names):
    space = {"optimizer": optimizer, "i": i}
    if kind == "<module>":
        met(code, kind, names)
    exec(code, space)
    if kind == "train":
        met(space["train"].__code__, kind, names)
        space.pop("train")()

def steps(n):
    for _ in range(n):
        kind = ("train", "<module>")[i // 7 % 2]
        text = source(kind)
        run(compile(text, "<string>", "exec"), kind, text.replace(str(i), ""))
    return again
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_lies_where_other_things_have_lain(job, torch_fork, probing):  # noqa: F811
    j = job(fork=torch_fork, env={"OMP_NUM_THREADS": "1", "PROBING_LOOK_SHARE": "100", "PROBING_MAX_MEMORY": "8MB",
                                      "PROBING_TORCH_PROFILING": "exprs=number,other,logs['key1'],made"})
    assert j.do(f"exec({PREPARE!r}, globals())") is None
    j.start()
    pid = str(j.pid)

    def looks():
        """Collections of garbage may be reported before torch's operations: a step that nobody reports is not done again."""
        hooks = probing(pid, "status", "--json").ok().json()["hooks"]
        return "variables at Optimizer.step" in [hook["name"] for hook in hooks]
    wait_until(looks, timeout=60, what="the agent to look at steps", interval=0.1)
    values, losses = {}, {}
    for _ in range(ROUNDS):
        before = max(losses, default=0)
        again = j.do(f"steps({STEPS})")
        seen = []
        def told(before=before, seen=seen):
            """Rows of this round, when no further ones come. Its first steps may have come before the agent was quite there."""
            rows = probing(pid, "query", "--format", "json", "--limit", "0", "SELECT step, loss FROM python.steps").ok().json()["rows"]
            seen.append(max([row["step"] for row in rows], default=0))
            return rows if len(seen) > 1 and before < seen[-1] == seen[-2] else None
        for row in wait_until(told, timeout=60, what="steps", interval=0.3):
            losses[row["step"]] = row["loss"]
        for row in probing(pid, "query", "--format", "json", "--limit", "0", "SELECT * FROM python.variables").ok().json()["rows"]:
            values.setdefault(row["name"], set()).add(row["text"])
    assert min(again.values()) > 20, again
    assert values["number"] == {"right"} and values["other"] == {"wrong"}, values
    assert values["logs['key1']"] == {"1"} and values["made"] <= {None, "7", "7.0"}, values
    told = [loss for loss in losses.values() if loss is not None]
    assert len(told) > ROUNDS * STEPS / 8 and all(loss > 0 and loss % 1 == 0.5 for loss in told), losses
