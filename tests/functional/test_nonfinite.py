# SPDX-License-Identifier: Apache-2.0
"""The lease "nan": the first number that is not finite, at a place that is known, in python.nonfinite and in status; hooks of the job's own,
modules that raise, tensors that cannot be looked at; that nothing is left behind, and that the job's numbers are what they are."""

import math
import os
import signal
import time

import pytest
import ring_file
from agent_job import job  # noqa: F401
from agent_wire import Client, rows
from conftest import wait_until
from test_modules_trace import MODES
from training_job import training_job  # noqa: F401

ENV = {"PROBING_SAMPLE_RATE": "20", "PROBING_MAX_MEMORY": "4MB", "OMP_NUM_THREADS": "1"}

PREPARE = """
import math, threading, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(1)

class Odd(torch.autograd.Function):
    '''A gradient of a weight that is infinite; all else is as it should be.'''
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return x * 1.0
    @staticmethod
    def backward(ctx, grad):
        weight, = ctx.saved_tensors
        bad = torch.zeros_like(weight)
        if place == "weight.grad":
            bad[1] = float("inf")
        return grad, bad

class Back(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        if place == "later":
            return torch.zeros_like(grad)  # goes no further
        return torch.full_like(grad, float("nan")) if place == "backward" else grad

class Later(torch.autograd.Function):
    '''A gradient whose memory is not what its numbers are: they are read when the search is over, as all those of a GPU are.'''
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return torch.complex(torch.zeros_like(grad), torch.full_like(grad, float("nan"))).conj().imag if place == "later" else grad

class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
    def forward(self, x):
        return Odd.apply(x, self.gain)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        return {"h": self.act(self.linear(x)), "n": None}

class Pair(nn.Module):
    def forward(self, x):
        second = x * (float("inf") if place == "output" else 1.0)
        return x, [second]

class Negative(nn.Module):
    '''Gives a tensor whose memory is not what its numbers are.'''
    def forward(self, x):
        y = torch.complex(torch.zeros_like(x), x * (float("nan") if place == "negative" else 1.0)).conj().imag
        assert y.is_neg()
        return y

class Masked(nn.Module):
    '''Is given tensors by keyword, and has changed them when it returns.'''
    def forward(self, x, mask=None, more=()):
        mask.fill_(1.0)
        return x * (float("nan") if place == "masked" else 1.0)

class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("as it does")

class Mine(torch.Tensor):
    pass

class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(str(func))
        raise RuntimeError("asked for " + str(func))

asked = []
loud = torch.zeros(7).as_subclass(Loud)
from torch._subclasses.fake_tensor import FakeTensorMode
fake = FakeTensorMode().from_tensor(torch.zeros(6))

class Strange(nn.Module):
    '''What cannot be looked at.'''
    def forward(self, x):
        return (x.as_subclass(Mine), torch.zeros(3, device="meta"), torch.zeros(2, 2).to_sparse(), torch.zeros(3, dtype=torch.complex64),
                torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), torch.arange(3), torch.zeros(0))

class Layouts(nn.Module):
    '''More of it: in, and out.'''
    def forward(self, *others):
        return list(others)

class Batched(nn.Module):
    def forward(self, x):
        return x * 1.0

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.pair, self.negative, self.extra, self.raises, self.strange = Pair(), Negative(), Extra(), Raises(), Strange()
        self.masked, self.layouts, self.batched = Masked(), Layouts(), Batched()
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)["h"]
        x = Back.apply(x)
        x, more = self.pair(x)
        x = Later.apply(x)
        x = x + 0.0 * self.negative(x)
        x = self.masked(x, mask=torch.full((2, 3), 7000.0), more=[None, torch.full((5,), float("inf") if place == "keyword" else -9000.0)])
        if place == "between":
            x = x / 0.0
        try:
            self.raises(x)
        except ValueError:
            pass
        self.strange(x)
        square = torch.eye(4)
        self.layouts(loud, fake, torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), square.to_sparse_csr(), square.to_sparse_csc())
        self.layouts(square.to_sparse_bsr((2, 2)), torch.quantize_per_channel(torch.zeros(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.qint8))
        x = x + 0.0 * torch.vmap(self.batched)(x) + 0.0 * torch.func.jvp(self.batched, (x,), (torch.ones_like(x),))[0]
        return self.head(self.extra(x))

place = None
model = Model()
other, calls_of_other = nn.Linear(8, 8), 0
good = {k: v.clone() for k, v in model.state_dict().items()}
calls = []
model.blocks[0].register_forward_hook(lambda m, a, o: calls.append("own"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
draws = []

def steps(n):
    for i in range(n):
        optimizer.zero_grad()
        if place:
            model.load_state_dict(good)  # what follows from the step before is no matter
        x = torch.randn(4, 8)
        if place == "batch":
            x[0, 0] = float("nan")
        loss = model(x).square().mean()
        for _ in range(calls_of_other):
            other(x)
        loss.backward()
        if takes_steps:
            optimizer.step()
        losses.append(loss.item().hex())

stop = False
takes_steps = True
def train_for_ever():
    while not stop:
        steps(1)
def begin():
    global thread, stop
    stop = False
    thread = threading.Thread(target=train_for_ever)
    thread.start()
def end():
    global stop
    stop = True
    thread.join()
def set_to(**values):
    globals().update(values)

# What is in each of torch's registries of hooks, but for the job's own.
def hooks():
    import torch.nn.modules.module as m, torch.optim.optimizer as o
    found = {n: len(v) for where in (m, o) for n, v in vars(where).items() if n.startswith("_global_") and "hook" in n and hasattr(v, "__len__")}
    for child in list(model.modules()) + [optimizer]:
        for n, v in vars(child).items():
            if n.endswith("_hooks"):
                found["hooks"] = found.get("hooks", 0) + len(v)
    for p in model.parameters():
        found["parameters"] = found.get("parameters", 0) + len(getattr(p, "_backward_hooks", None) or ()) + len(getattr(p, "_post_accumulate_grad_hooks", None) or ())
    return sum(found.values()) - 1

def parameters():
    return [p.detach().sum().item().hex() for p in model.parameters()] + [torch.get_rng_state().sum().item()]
"""


@pytest.fixture
def trainer(job, torch_fork):  # noqa: F811
    j = job(fork=torch_fork, env=ENV)
    answer = j.do(f"exec({PREPARE!r}, globals())")
    assert answer is None, answer
    return j


def found_rows(data_dir, j):
    folders = ring_file.folders(data_dir, j.pid)
    return ring_file.read(folders[-1], "python.nonfinite") if folders else []


def traced(data_dir, j):
    """Rows of the first step whose modules were looked into, when all are there: the outermost module's last one."""
    folders = ring_file.folders(data_dir, j.pid)
    found = ring_file.read(folders[-1], "python.torch_trace") if folders else []
    first = [row for row in found if row["step"] == found[0]["step"]]
    return first if any(row["module"] == "head" and row["stage"] == "backward" for row in first) else None


def lease_of(client):
    status = client.call("status")
    of = [lease for lease in rows(status["leases"], status["strings"], ("what", "note")) if lease["what"] == "nan"]
    return of[0] if of else None


def wait_told(client):
    wait_until(lambda: client.call("status")["hooks"], timeout=60, what="torch to tell of its operations", interval=0.05)


def hunt(client, data_dir, j, timeout=60, **params):
    """Its row, and what status says of it then."""
    before = len(found_rows(data_dir, j))
    client.call("arm", dict({"what": "nan"}, **params))
    row = wait_until(lambda: found_rows(data_dir, j)[before:], timeout=timeout, what="a hunt to end", interval=0.05)[0]
    lease = wait_until(lambda: (lambda l: l if l and l["owners"] == 0 and l["note"] else None)(lease_of(client)), timeout=30, what="the lease to end", interval=0.05)
    wait_until(lambda: j.do("hooks()") == 0, timeout=60, what="the hooks to be gone", interval=0.1)
    return row, lease


def train_until_told(data_dir, j):
    """Steps until the search has its row; how many that takes depends on when its hooks are in. Returns their number."""
    n = 0
    until = time.monotonic() + 60
    while not found_rows(data_dir, j):
        assert time.monotonic() < until, f"nothing told in {n} steps"
        assert j.do("steps(5)") is None
        n += 5
    return n


# place: module, class, stage, what, numbers that are NaN and infinite, in how many
PLACES = {
    "batch": ("", "Model", "forward", "input 0", (1, 0, 32)),
    "output": ("pair", "Pair", "forward", "output 1", None),
    "between": ("raises", "Raises", "forward", "input 0", None),
    "keyword": ("masked", "Masked", "forward", "input more", (0, 5, 5)),
    "masked": ("masked", "Masked", "forward", "output 0", (32, 0, 32)),
    "negative": ("negative", "Negative", "forward", "output 0", (32, 0, 32)),
    "backward": ("blocks.2.act", "ReLU", "backward", "gradient of output 0", (32, 0, 32)),
    "weight.grad": ("extra", "Extra", "gradient", "gain.grad", (0, 1, 4)),
}


@pytest.mark.timeout(300)
def test_a_place_that_is_known(trainer, data_dir):
    j = trainer
    assert j.do("hooks()") == 0
    with Client(j.start()) as client:
        j.do("begin()")
        wait_told(client)
        row, lease = hunt(client, data_dir, j)
        assert row["stage"] == "none" and row["module"] is None and "nothing non-finite in 2 steps: 19 modules, 9 gradients" in row["what"], row
        assert lease["note"].startswith("nothing non-finite") and lease["looks"] == 2 and "not checked" in lease["note"]
        for place, (module, kind, stage, what, numbers) in PLACES.items():
            j.do(f"set_to(place={place!r})")
            row, lease = hunt(client, data_dir, j)
            assert (row["module"], row["class"], row["stage"], row["what"]) == (module, kind, stage, what), (place, row)
            if numbers:
                assert (row["nan"], row["inf"], row["elements"]) == numbers, (place, row)
            assert what in lease["note"] and kind in lease["note"], lease
            assert "keyword arguments" not in lease["note"], lease
            if place in ("keyword", "masked"):  # what went in by keyword, as it was before
                assert row["input_max"] == 7000 and row["input_nonfinite"] == (5 if place == "keyword" else 0), row
                assert row["input_min"] == -9000 if place == "masked" else row["input_min"] > -9000, row
            assert row["step"] is not None and row["step"] > 0
            assert "steps (<string>:" in row["stack"] and "_call_impl" not in row["stack"], row["stack"]
        j.do("end()")
        assert j.do("asked") == []  # the tensor of a class of the job's was asked for nothing


def test_odd_tensors_are_traced(trainer, job, torch_fork, data_dir):  # noqa: F811
    """Modules that take and give tensors of other layouts, kinds and classes, under vmap and jvp: nothing raises, and numbers are as they are."""
    other = job(fork=torch_fork, env=ENV)
    assert other.do(f"exec({PREPARE!r}, globals())") is None and other.do("steps(15)") is None
    j = trainer
    with Client(j.start()) as client:
        wait_told(client)
        assert j.do("steps(3)") is None
        client.call("arm", {"what": "trace", "steps": 1})
        wait_until(lambda: j.do("hooks()") >= 2, timeout=60, what="hooks to be in", interval=0.05)
        assert j.do("steps(12)") is None
        found = wait_until(lambda: traced(data_dir, j), timeout=60, what="rows of a step", interval=0.1)
        wait_until(lambda: j.do("hooks()") == 0, timeout=60, what="the hooks to be gone", interval=0.1)
    of = {(row["module"], row["stage"]): row for row in found}
    assert of["layouts", "forward"]["calls"] == 2 and of["batched", "forward"]["calls"] == 2 and of["strange", "forward"]["calls"] == 1
    assert of["layouts", "forward"]["activation_bytes"] is None  # of some it is not known
    assert j.do("asked") == [] and j.do("losses") == other.do("losses") and j.do("parameters()") == other.do("parameters()")


def test_inputs_and_a_weight(trainer, data_dir):
    """What went in is known from before an operation in place; the weight that is the cause is named."""
    j = trainer
    with Client(j.start()) as client:
        j.do("begin()")
        wait_told(client)
        j.do("end()")
        assert j.do("exec('with torch.no_grad(): model.blocks[1].linear.weight[2, 3] = math.nan')") is None
        j.do("set_to(takes_steps=False)")  # so that it stays the only one; no step ends then
        j.do("begin()")
        row, lease = hunt(client, data_dir, j)
        assert (row["module"], row["class"], row["what"], row["parameter"]) == ("blocks.1.linear", "Linear", "output 0", "weight"), row
        assert (row["nan"], row["inf"], row["elements"], row["input_nonfinite"]) == (4, 0, 32, 0)
        assert 0 <= row["input_min"] < row["input_max"] < 100  # of ReLU
        assert row["stack"].startswith("Block.forward (<string>:") or row["stack"].startswith("forward (<string>:")
        assert "its weight is not finite either" in lease["note"]
        j.do("end()")


@pytest.mark.long
def test_no_step_ends(trainer, data_dir):
    """As where a GradScaler leaves out each of them: calls of the model are counted instead."""
    j = trainer
    with Client(j.start()) as client:
        j.do("begin()")
        wait_told(client)
        j.do("end()")
        j.do("set_to(takes_steps=False)")
        j.do("begin()")
        row, lease = hunt(client, data_dir, j, steps=3)
        assert "nothing non-finite in 3 calls of a model" in row["what"], row
        j.do("set_to(place='backward')")
        row, lease = hunt(client, data_dir, j)
        assert (row["module"], row["stage"]) == ("blocks.2.act", "backward"), row
        j.do("end()")


def test_numbers_are_the_same(trainer, job, torch_fork, data_dir):  # noqa: F811
    other = job(fork=torch_fork, env=ENV)
    assert other.do(f"exec({PREPARE!r}, globals())") is None
    j = trainer
    with Client(j.start()) as client:
        wait_told(client)
        client.call("arm", {"what": "nan", "steps": 20})
        n = train_until_told(data_dir, j)
        assert lease_of(client)["looks"] == 20
    assert other.do(f"steps({n})") is None
    assert j.do("losses") == other.do("losses") and len(j.do("losses")) == n
    assert j.do("parameters()") == other.do("parameters()")
    assert j.do("len(calls)") == other.do("len(calls)") == n


def test_ends_before(trainer, data_dir):
    """Disarmed, its time over, its client gone, the agent gone, while it waits for a step that does not come."""
    j = trainer
    endpoint = j.start()
    with Client(endpoint) as watcher:
        j.do("begin()")
        wait_told(watcher)
        j.do("end()")
        for ends in ("disarm", "limit_s", "gone"):
            client = Client(endpoint)
            client.call("arm", {"what": "nan", "limit_s": 2.0} if ends == "limit_s" else {"what": "nan"})
            wait_until(lambda: j.do("hooks()") == 3, timeout=60, what="hooks to be in", interval=0.05)
            if ends == "disarm":
                client.call("disarm", {"what": "nan"})
            if ends == "gone":
                client.close()
            wait_until(lambda: j.do("hooks()") == 0, timeout=60, what=f"the hooks to be gone by {ends}", interval=0.05)
            lease = wait_until(lambda: (lambda l: l if l["owners"] == 0 and "it timed out" in l["note"] else None)(lease_of(watcher)), timeout=30, what="a note", interval=0.05)
            assert "nothing non-finite in 0 " in lease["note"] and " of 2" in lease["note"], lease
            if ends != "gone":
                client.close()
        watcher.call("arm", {"what": "nan"})
        wait_until(lambda: j.do("hooks()") == 3, timeout=60, what="hooks to be in", interval=0.01)
        watcher.call("eject")
    wait_until(lambda: not j.agent_threads(), timeout=60, what="the agent to leave")
    assert j.do("hooks()") == 0
    j.do("steps(2)")


def test_bad_wishes(trainer):
    j = trainer
    with Client(j.start()) as client:
        error = client.call_error("arm", {"what": "nan", "steps": 21})
        assert "up to 20 steps, not 21" in str(error)
        error = client.call_error("arm", {"what": "nann"})
        assert "did you mean nan?" in str(error)
        assert lease_of(client) is None
    assert math.isnan(float("nan"))


def test_without_torch(job):  # noqa: F811
    j = job(env=ENV)
    with Client(j.start()) as client:
        error = client.call_error("arm", {"what": "nan"})
        assert "torch is not imported" in str(error), error


def test_no_step_after_a_gradient(trainer, data_dir):
    """A search that ends before the optimizer's step that would show whether a gradient did harm: that is said. Many calls of that model later
    it is news; calls of another model are none, and it does not matter when the gradient's numbers are read."""
    j = trainer
    with Client(j.start()) as client:
        j.do("begin()")
        wait_told(client)
        j.do("end()")
        for place, calls, of_other, stage in (("backward", 2, 0, "none"), ("backward", 20, 0, "backward"), ("backward", 3, 9, "none"),
                                              ("later", 2, 0, "none"), ("later", 20, 0, "backward")):
            before = len(found_rows(data_dir, j))
            j.do(f"set_to(place=None, takes_steps=True, calls_of_other={of_other})")
            client.call("arm", {"what": "nan", "steps": 20})
            wait_until(lambda: (lease_of(client) or {"note": ""})["note"].startswith("checks 20 steps"), timeout=60, what="the window", interval=0.05)
            assert j.do("steps(3)") is None
            j.do(f"set_to(place={place!r}, takes_steps=False)")
            assert j.do(f"steps({calls})") is None
            client.call("disarm", {"what": "nan"})
            row = wait_until(lambda: found_rows(data_dir, j)[before:], timeout=60, what="the search to end", interval=0.05)[0]
            assert row["stage"] == stage, (place, calls, of_other, row)
            assert calls == 20 or "1 intermediate gradient was not finite, with no optimizer step after it" in row["what"], row


def test_late_gradients_without_effect(trainer, data_dir):
    """Gradients that were not finite on their way, whose numbers were read when the search was over, and after which the optimizer's step showed that
    the parameters' are finite: they are passed, and what came after them is found."""
    j = trainer
    with Client(j.start()) as client:
        j.do("begin()")
        wait_told(client)
        j.do("end()")
        for then, found in ((None, (None, "none")), ("backward", ("blocks.2.act", "backward")), ("weight.grad", ("extra", "gradient"))):
            before = len(found_rows(data_dir, j))
            j.do("set_to(place='nowhere')")  # weights are as they were at the beginning
            client.call("arm", {"what": "nan", "steps": 20})
            wait_until(lambda: (lease_of(client) or {"note": ""})["note"].startswith("checks 20 steps"), timeout=60, what="the window", interval=0.05)
            assert j.do("steps(2)") is None
            j.do("set_to(place='later')")
            assert j.do("steps(3)") is None
            j.do(f"set_to(place={then!r})")
            assert j.do("steps(2)") is None
            if not then:
                client.call("disarm", {"what": "nan"})
            row = wait_until(lambda: found_rows(data_dir, j)[before:], timeout=60, what="the search to end", interval=0.05)[0]
            assert (row["module"], row["stage"]) == found, (then, row)
            if not then:
                assert "3 intermediate gradients were not finite, and reached no parameter" in row["what"], row


def test_armed_before_torch_reports(trainer, data_dir):
    """Optimizers' steps are waited for, although none was reported yet when the search was armed."""
    j = trainer
    j.do("begin()")
    with Client(j.start()) as client:
        row, _ = hunt(client, data_dir, j, steps=3)
        assert "nothing non-finite in 3 steps" in row["what"], row
        j.do("end()")


@pytest.mark.timeout(300)
def test_a_scaler_that_leaves_out_steps(training_job):  # noqa: F811
    """A job that is fine: gradients overflow now and then on their way, and the GradScaler sees to it. Nothing is found, and that is said."""
    job = training_job("amp")
    job.wait_steps(20)
    with Client(job.status()["endpoint"]) as client:
        client.call("arm", {"what": "nan", "steps": 20})
        row = wait_until(lambda: job.rows("python.nonfinite"), timeout=120, what="the hunt to end", interval=0.1)[0]
    assert row["stage"] == "none", str(row)
    assert "nothing non-finite in 20 steps" in row["what"], str(row)
    assert "not finite, and reached no parameter" in row["what"], row
    assert job.end().totals["steps"] > 20


def test_modes_of_the_job_see_nothing(trainer, job, torch_fork, data_dir):  # noqa: F811
    """What the job has itself told of every function and operation of torch is the same, and so is what it counts of its hooks."""
    runs = []
    for j, armed in ((trainer, True), (job(fork=torch_fork, env=ENV), False)):
        if not armed:
            assert j.do(f"exec({PREPARE!r}, globals())") is None
        assert j.do(f"exec({MODES!r}, globals())") is None
        if armed:
            with Client(j.start()) as client:
                wait_told(client)
                client.call("arm", {"what": "nan", "steps": 4})
                wait_until(lambda j=j: j.do("hooks()") == 3, timeout=60, what="hooks to be in", interval=0.05)
                runs.append(j.do("steps_in_modes(8)"))
                row = wait_until(lambda j=j: found_rows(data_dir, j), timeout=60, what="the hunt to end", interval=0.05)[0]
                assert "nothing non-finite in 4 steps: 19 modules, 9 gradients" in row["what"], row
        else:
            runs.append(j.do("steps_in_modes(8)"))
    import difflib
    assert len(runs[0]) > 200 and runs[0] == runs[1], " ".join([l for l in difflib.unified_diff(runs[1], runs[0], n=1, lineterm="")][:60])


CHILD = """
def child():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(start()).encode() + b"\\n")
            until = time.monotonic() + 100
            while time.monotonic() < until:
                steps(1)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return [pid] + json.loads(answer.readline())
"""


def test_a_child_that_was_forked_during_a_search(trainer):
    """Hooks of the parent's search are in its modules too: its own agent finds what it is asked for all the same."""
    assert trainer.do(f"exec({CHILD!r}, globals())") is None
    with Client(trainer.start()) as client:
        client.call("arm", {"what": "nan"})
        wait_until(lambda: trainer.do("hooks()") > 0, timeout=60, what="the hooks to be in")
        assert trainer.do("set_to(place='batch')") is None
        pid, result, error, endpoint = trainer.do("child()")
        try:
            assert result == 0, error
            with Client(endpoint) as other:
                other.call("arm", {"what": "nan"})

                def told():
                    lease = lease_of(other)
                    return lease["note"] if lease and not lease["owners"] else None
                assert "input 0 of" in wait_until(told, timeout=60, what="the search to end")
        finally:
            os.kill(pid, signal.SIGKILL)
