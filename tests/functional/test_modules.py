# SPDX-License-Identifier: Apache-2.0
"""python.modules against what the job says of its models, and models that make it hard."""

import json
import math

from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until
from virtual_rows import made, torch_job  # noqa: F401

MODEL = """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.BatchNorm1d(8)
    def forward(self, x):
        return self.norm(self.linear(x))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), Block(), Block())
model[2].norm.eval()
def tree(m):
    def size(ts):
        return sum(t.numel() * t.element_size() for t in {id(t): t for t in ts}.values())
    return {n: [type(x).__name__, sum(p.numel() for p in x.parameters()), sum(p.numel() for p in x.parameters(False)),
                size(list(x.parameters()) + list(x.buffers())), int(x.training)] for n, x in m.named_modules()}
"""


def check_tree(rows, tree, root):
    assert len(rows) == len(tree)
    for row, (name, (kind, parameters, own, size, training)) in zip(rows, tree.items()):
        assert row["path"] == (f"{root}.{name}" if name else root)
        assert row["parent"] == (None if not name else root if "." not in name else f"{root}.{name.rpartition('.')[0]}")
        assert row["depth"] == (name.count(".") + 1 if name else 0)
        assert [row["class"], row["parameters"], row["own_parameters"], row["bytes"], int(row["training"])] == \
            [kind, parameters, own, size, training]


def test_a_tree_is_that_of_the_job(torch_job):  # noqa: F811
    j = torch_job(MODEL)
    with Client(j.start()) as client:
        rows, note = made(client, "python.modules")
        assert note == ""
        check_tree(rows, j.do("tree(model)"), "model")
        assert {(row["dtype"], row["device"], row["root"]) for row in rows} == {("float32", "cpu", "__main__")}
        assert [row["compiled"] for row in rows] == [False] * len(rows)


def test_without_torch_there_is_a_note(job):  # noqa: F811
    with Client(job().start()) as client:
        rows, note = made(client, "python.modules")
        assert rows == [] and note == "torch is not imported in this process"


def test_an_unknown_table_is_an_error(job):  # noqa: F811
    with Client(job().start()) as client:
        assert "has no table 'python.nothing'" in client.call_error("rows", {"table": "python.nothing"})["message"]
        assert client.call_error("rows", {})["code"] == 2


def test_a_gil_that_is_not_to_be_had_is_said_in_time(job):  # noqa: F811
    j = job()
    with Client(j.start()) as client:
        made(client, "python.modules")
        j.tell("keep_the_gil()")
        rows, note = wait_until(lambda: next((seen for seen in [made(client, "python.modules")] if "the GIL" in seen[1]), None),
                                timeout=60, what="the job to keep the GIL")
        assert rows == [] and "could not acquire the GIL" in note and f"thread {j.pid}" in note


HOSTILE = """
called = []
class Hostile(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(6))
        self.inner = torch.nn.Linear(2, 3)
        self.ready = True
    def no(self, *args, **kwargs):
        if self.__dict__.get("ready"):
            called.append(1)
            raise SystemExit("not to be called")
        raise AttributeError(*args)
    __call__ = __repr__ = __str__ = __eq__ = __len__ = __bool__ = __iter__ = __getattr__ = named_parameters = parameters = no
    __hash__ = object.__hash__
class Box:
    def __getattribute__(self, name):
        called.append(name)
        raise RuntimeError("not to be called")
    @property
    def __class__(self):
        called.append("class")
        raise RuntimeError("not to be called")
class Loud(dict):
    def __iter__(self): called.append("iter"); raise RuntimeError
    items = values = keys = __len__ = __getitem__ = __iter__
box = Box()
object.__getattribute__(box, "__dict__")["model"] = Hostile()
loud = Loud(a=torch.nn.Linear(1, 1))
class Recursive(torch.nn.Module): pass
recursive = Recursive()
recursive._modules["self"] = recursive
recursive.more = [recursive, {"again": recursive}]
tied = torch.nn.ModuleList([torch.nn.Linear(2, 2)] * 3)
"""


def test_nothing_of_the_jobs_own_code_is_called(torch_job):  # noqa: F811
    j = torch_job(HOSTILE)
    with Client(j.start()) as client:
        rows = {row["path"]: row for row in made(client, "python.modules")[0]}
        assert rows["box.model"]["parameters"] == 6 + 2 * 3 + 3 and rows["box.model"]["own_parameters"] == 6
        assert rows["loud['a']"]["parameters"] == 2
        assert rows["recursive"]["parameters"] == 0 and rows["tied"]["parameters"] == 6
        assert [p for p in rows if p.startswith("tied")] == ["tied", "tied.0"]
        made(client, "python.tensors")
        assert j.do("called") == []


WRAPPED = """
inner = torch.nn.Sequential(torch.nn.Linear(2, 3))
model = torch.compile(inner)
del inner
averaged = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(2, 3))
"""


def test_what_wraps_a_model_is_left_out_of_paths(torch_job):  # noqa: F811
    j = torch_job(WRAPPED)
    with Client(j.start()) as client:
        rows = [(row["path"], row["class"], row["parameters"], row["compiled"]) for row in made(client, "python.modules")[0]]
        assert rows == [("model", "OptimizedModule", 9, True), ("model._orig_mod", "Sequential", 9, False), ("model.0", "Linear", 9, False),
                        ("averaged", "AveragedModel", 9, False), ("averaged.module", "Linear", 9, False)]


SHARED = """
encoder = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder
        self.heads = torch.nn.ModuleList([torch.nn.Linear(4, 2), encoder[0]])
        self.me = [self]
        self.other = torch.nn.Module()
        self.other.back = self.heads
model = Model()
model.heads.register_module("up", model)  # and round again
compiled = torch.compile(model)
def counts():
    return {name: [sum(p.numel() for p in m.parameters()), sum(p.numel() * p.element_size() for p in m.parameters())]
            for name, m in (("encoder", encoder), ("model", model), ("model.heads", model.heads), ("model.other", model.other), ("compiled", compiled))}
"""


def test_modules_that_are_in_several_count_in_each(torch_job):  # noqa: F811
    """A part that has a variable of its own, or is in two others: each row counts as Module.parameters does."""
    j = torch_job(SHARED)
    with Client(j.start()) as client:
        rows = made(client, "python.modules")[0]
        assert [row["path"] for row in rows] == ["encoder", "encoder.0", "encoder.1", "model", "model.heads", "model.heads.0", "model.other", "compiled"]
        found = {row["path"]: [row["parameters"], row["bytes"]] for row in rows}
        assert {name: found[name] for name in j.do("counts()")} == j.do("counts()") and found["model"][0] == 30
        assert {row["dtype"] for row in rows if row["path"] != "encoder.1"} == {"float32"}


WIDE = """
many = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3000))
many.append(torch.nn.Linear(2, 2))
flat = torch.nn.Module()
for i in range(3000):
    flat.register_parameter("p%d" % i, torch.nn.Parameter(torch.zeros(2)))
    flat.register_buffer("b%d" % i, torch.zeros(3))
"""


def test_wide_modules_are_walked_in_pieces(torch_job):  # noqa: F811
    """Thousands of children, or of parameters of one module: all of them are reported, and the GIL is never ours for long."""
    j = torch_job(WIDE)
    holds = []
    while len(holds) < 3 and min(holds, default=9999) > 2000:  # a hold lasts longer where the machine takes the processor from it
        holds.append(walk_wide_modules(j))
    assert min(holds) <= 2000, holds


def walk_wide_modules(j):
    """By an agent that is started for it. How long it held the GIL at most, in us."""
    with Client(j.start()) as client:
        rows = {row["path"]: row for row in made(client, "python.modules")[0]}
        assert len(rows) == 3003 and list(rows)[:3] == ["many", "many.0", "many.1"]
        assert (rows["many"]["parameters"], rows["many"]["own_parameters"]) == (6, 0)
        assert (rows["flat"]["own_parameters"], rows["flat"]["bytes"]) == (6000, 4 * 15000)
        def names():  # an answer has what there is after three seconds: on a busy machine not all of it
            found = [row["name"] for row in made(client, "python.tensors")[0]]
            return found if len(found) == 6002 else None
        assert {"flat.p2999", "flat.b2999", "many.3000.bias"} <= set(wait_until(names, timeout=90, what="all tensors"))
        held = client.call("status")["us_longest_gil_hold"]
        client.call("eject")
        return held


GRADIENTS = """
import threading, time
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8, dtype=torch.float32), torch.nn.Linear(8, 4)))
half = torch.nn.Linear(4, 4, dtype=torch.bfloat16)
frozen, unused = torch.nn.Linear(2, 2).requires_grad_(False), torch.nn.Linear(2, 2)
def backward():
    model(torch.randn(16, 8)).square().sum().backward()
    half(torch.ones(2, 4, dtype=torch.bfloat16)).sum().backward()
def norm(*modules):
    return sum(p.grad.double().square().sum().item() for m in modules for p in m.parameters()) ** 0.5
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
def train_until_told():
    while not told:
        optimizer.zero_grad()
        backward()
        optimizer.step()
        time.sleep(0.002)  # as it fetches a batch
told = False
"""


def test_gradients_that_there_are_have_norms(torch_job):  # noqa: F811
    """As torch has them; unknown where there are none; what is not finite is said, and of what holds it."""
    j = torch_job(GRADIENTS)
    with Client(j.start()) as client:
        def rows():
            return {row["path"]: row for row in made(client, "python.modules")[0]}
        assert {(row["grad_norm"], row["nan"]) for row in rows().values()} == {(None, None)}
        j.run("backward()")
        seen = rows()
        for path, of in (("model", "model"), ("model.0", "model[0]"), ("model.1", "model[1]"), ("model.1.1", "model[1][1]"), ("half", "half")):
            assert math.isclose(seen[path]["grad_norm"], j.do(f"norm({of})"), rel_tol=1e-9) and seen[path]["nan"] is None
        assert seen["frozen"]["grad_norm"] is None and seen["unused"]["grad_norm"] is None
        j.run("model[1][0].weight.grad[3, 3] = float('nan')")
        seen = rows()
        assert [(path, row["nan"], row["grad_norm"] is None) for path, row in seen.items() if row["nan"]] == \
            [("model", "gradient below", True), ("model.1", "gradient below", True), ("model.1.0", "gradient", True)]
        assert seen["model.1.1"]["grad_norm"] > 0
        assert j.job.longest_hold_us(client) <= 2000


def test_gradients_of_a_job_that_drops_them_are_waited_for(torch_job):  # noqa: F811
    """A loop in which they are there for a part of each step only: sometimes all of them are found, and then all are of one moment."""
    j = torch_job(GRADIENTS + "torch.manual_seed(3)\nmodel.requires_grad_(True)\n")
    with Client(j.start()) as client:
        j.run("thread = threading.Thread(target=train_until_told)\nthread.start()")
        seen = wait_until(lambda: next((r for r in [{row["path"]: row for row in made(client, "python.modules")[0]}] if r["model"]["grad_norm"]), None),
                          timeout=60, what="gradients of a step")
        parts = [seen[path]["grad_norm"] for path in ("model.0", "model.1.0", "model.1.1")]
        assert math.isclose(math.hypot(*parts), seen["model"]["grad_norm"], rel_tol=1e-9)
        j.run("told = True\nthread.join()")


LOSSES = """
def losses(n):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    out = []
    for i in range(n):
        loss = model(torch.randn(32, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item().hex())
    return out
"""


def test_losses_are_the_same_to_the_bit_while_walks_run(torch_job):  # noqa: F811
    j = torch_job(LOSSES)
    undisturbed = j.do("losses(400)")
    with Client(j.start()) as client:
        j.job.tell("losses(400)")
        asked = 0
        while asked < 12:
            for table in ("python.modules", "python.tensors", "python.tensor_growth"):
                rows, _ = made(client, table)
                asked += 1
            for row in rows[:1]:
                made(client, "python.tensor_statistics", {"id": row.get("id", 0)})

        assert json.loads(j.job.answers.readline()) == undisturbed
