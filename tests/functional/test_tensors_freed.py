# SPDX-License-Identifier: Apache-2.0
"""Tensors that the job frees while they are being looked at, again and again, from two sides: it goes on, and computes what it would."""

import json
import threading

import pytest
from agent_job import job  # noqa: F401
from agent_wire import Client
from virtual_rows import made, torch_job  # noqa: F401

# Gradients are large enough for torch to let others have the GIL while it frees them, which the worker waits for.
FREES = """
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
class Slot:
    __slots__ = ("tensor",)
slot, kept, table, going = Slot(), [], {}, []
def frees(n):
    torch.manual_seed(3)
    losses = []
    going.append(1)
    for i in range(n):
        x = torch.randn(8, 64)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        slot.tensor = torch.zeros(1000)
        table[i % 7] = [torch.zeros(50) for _ in range(20)]
        kept.append(x)
        if i % 5 == 0:
            kept.clear()
            table.clear()
            del slot.tensor
        losses.append(loss.item().hex())
        del loss, x
    return losses
"""
STEPS = 4000

# The name of the attribute is put together elsewhere: the functions do not know it.
ELSEWHERE = """
parameters = [torch.nn.Parameter(torch.ones(256, 256)) for _ in range(16)]
holder = torch.nn.ParameterList(parameters)
name = "".join(["gr", "ad"])
setter = getattr(torch.Tensor, name).__set__
def by_setattr(p, name):
    setattr(p, name, None)
def by_slot(p, name):
    object.__setattr__(p, name, None)
def by_descriptor(p, name):
    getattr(torch.Tensor, name).__set__(p, None)
def put_back(p):
    p.grad = torch.ones(256, 256)
def gives_up(seconds):
    import time
    until, n = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for by in (by_setattr, by_slot, by_descriptor):
            for p in parameters:
                put_back(p)
                by(p, name)
                n += 1
    return n
"""
SECONDS = 6


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_is_freed_meanwhile(torch_job):  # noqa: F811
    j = torch_job(FREES)
    state = "model.load_state_dict(first); optimizer.zero_grad(set_to_none=True)"
    j.run("import copy; first = copy.deepcopy(model.state_dict())")
    undisturbed = j.do(f"frees({STEPS})")
    j.run(state)
    looks = []
    endpoint = j.start()
    with Client(endpoint) as client, Client(endpoint) as other:
        j.job.tell(f"frees({STEPS})")
        answered = threading.Event()

        def look(by, table):
            while not answered.is_set():
                rows, note = made(by, table)
                looks.append((table, len(rows), note))

        threads = [threading.Thread(target=look, args=args) for args in ((client, "python.tensors"), (other, "python.tensor_growth"))]
        for thread in threads:
            thread.start()
        try:
            losses = json.loads(j.job.answers.readline() or "null")
        finally:
            answered.set()
            for thread in threads:
                thread.join()
        assert losses == undisturbed
        assert len(looks) > 20 and sum(n > 16 for _, n, _ in looks) > 10
        rows, note = made(client, "python.tensors")  # nothing is at them now
        assert note == ""
        assert {row["grad"] for row in rows if row["kind"] == "parameter"} == {False}
        j.run("model(torch.ones(2, 64)).sum().backward()")
        rows, note = made(client, "python.tensors")
        assert note == "" and sum(row["kind"] == "gradient" for row in rows) == 16
        assert {row["grad"] for row in rows if row["kind"] == "parameter"} == {True}


@pytest.mark.timeout(300)
def test_gradients_given_up_by_a_name_that_is_computed(torch_job):  # noqa: F811
    j = torch_job(ELSEWHERE)
    endpoint = j.start()
    looks, answered = [], threading.Event()
    with Client(endpoint) as client, Client(endpoint) as other:
        j.job.tell(f"gives_up({SECONDS})")

        def look(by):
            while not answered.is_set():
                looks.append(made(by, "python.tensors"))

        threads = [threading.Thread(target=look, args=(by,)) for by in (client, other)]
        for thread in threads:
            thread.start()
        try:
            n = json.loads(j.job.answers.readline() or "null")
        finally:
            answered.set()
            for thread in threads:
                thread.join()
        assert n and len(looks) > 5, (n, len(looks))
        j.run("put_back(parameters[0])")
        rows, note = made(client, "python.tensors")
        assert note == "" and sum(row["grad"] is True for row in rows if row["kind"] == "parameter") == 1
