# SPDX-License-Identifier: Apache-2.0
"""python.tensors and python.tensor_growth against what the job says of its tensors."""

from agent_job import job  # noqa: F401
from agent_wire import Client
from conftest import wait_until
from virtual_rows import made, torch_job  # noqa: F401

TENSORS = """
class Holder:
    __slots__ = ("slot", "other")
class Cache(dict):
    pass
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
twin = torch.nn.Linear(4, 8)
twin.weight = model[0].weight
optimizer = torch.optim.Adam(list(model.parameters()) + [twin.bias], foreach=False)
(model(torch.ones(3, 4)).sum() + twin.bias.sum()).backward()
optimizer.step()
whole = torch.zeros(100, 10)
part = whole[:2]
holder = Holder()
holder.slot = [torch.zeros(5), {"deep": (torch.zeros(6),)}]
cache = Cache({i: torch.zeros(7) for i in range(3)})
numbers = list(range(200000))
def all_tensors():
    found = list(model.parameters()) + list(twin.parameters()) + list(model.buffers()) + [whole, part]
    found += [p.grad for p in found if p.is_leaf and p.grad is not None] + holder.slot[:1] + [holder.slot[1]["deep"][0]]
    for state in optimizer.state.values():
        found += state.values()
    found += cache.values()
    return list({id(t): t for t in found}.values())
def sums():
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in all_tensors()}
    return [len(all_tensors()), sum(t.numel() * t.element_size() for t in all_tensors()), sum(storages.values())]
"""


def storage_bytes(rows):
    return sum({row["storage_id"]: row["storage_bytes"] for row in rows if row["storage_id"] is not None}.values())


def names(rows, kind):
    return [row["name"] for row in rows if row["kind"] == kind]


def test_all_are_found_and_each_byte_is_counted_once(torch_job):  # noqa: F811
    j = torch_job(TENSORS)
    with Client(j.start()) as client:
        rows, note = made(client, "python.tensors")
        assert note == ""
        assert [len(rows), sum(row["bytes"] for row in rows), storage_bytes(rows)] == j.do("sums()")
        assert len({row["id"] for row in rows}) == len(rows)
        assert names(rows, "parameter") == ["model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias", "twin.bias"]
        assert names(rows, "buffer") == ["model.1.running_mean", "model.1.running_var", "model.1.num_batches_tracked"]
        assert names(rows, "gradient") == [n + ".grad" for n in names(rows, "parameter")]
        by_name = {row["name"]: row for row in rows}
        assert by_name["model.0.weight"]["module"] == "model.0" and by_name["model.0.weight"]["requires_grad"] is True
        assert by_name["optimizer.state[model.0.weight]['exp_avg']"]["kind"] == "optimizer"
        kept = {row["name"]: row["module"] for row in rows if row["kind"] == "optimizer"}
        assert kept == {f"optimizer.state[{name}]['{key}']": name.rpartition(".")[0] for name in names(rows, "parameter")
                        for key in ("step", "exp_avg", "exp_avg_sq")}
        assert all(row["module"] is None for row in rows if row["kind"] in ("attribute", "global"))
        assert by_name["holder.slot[0]"]["kind"] == "attribute" and by_name["holder.slot[1]['deep'][0]"]["shape"] == "[6]"
        assert by_name["cache[1]"]["kind"] == "global"
        assert by_name["whole"]["shared"] is True and by_name["part"]["shared"] is True
        assert by_name["part"]["bytes"] == 80 and by_name["part"]["storage_bytes"] == 4000
        assert by_name["model.0.bias"]["shared"] is False


LOCALS = """
def inner(batch):
    scaled = batch * 2
    del batch
    wait_for_ever()
def outer():
    inner(torch.zeros(11))
spawn("trainer", outer)
"""


def test_variables_of_functions_that_run_are_found_and_not_kept(torch_job):  # noqa: F811
    j = torch_job(LOCALS)
    wait_until(lambda: j.do("'wait' in [f.f_code.co_name for f in sys._current_frames().values()]"), 30, "the thread to wait")
    j.run("import weakref, gc\nframe = [f for f in sys._current_frames().values() if f.f_code.co_name == 'wait'][0]\n"
          "while frame.f_code.co_name != 'inner': frame = frame.f_back\nframe = None")
    with Client(j.start()) as client:
        rows, _ = made(client, "python.tensors")
        assert [(row["name"], row["kind"], row["shape"]) for row in rows] == [("scaled@inner", "local", "[11]")]
        address = rows[0]["id"]
        j.run("import ctypes")
        # One reference is the variable's: nothing of ours is left, and none was put into the frame's dict of locals.
        assert j.do(f"ctypes.c_ssize_t.from_address({address}).value") == 1


def test_growth_is_said_of_what_grows(torch_job):  # noqa: F811
    j = torch_job("kept, still = [], [torch.zeros(50)]\ndef leak(n):\n    kept.extend(torch.zeros(1000) for _ in range(n))\nleak(3)")
    with Client(j.start()) as client:
        rows, _ = made(client, "python.tensor_growth")
        assert all(row["growth_bytes"] == 0 for row in rows)
        j.run("leak(40)")
        rows, _ = made(client, "python.tensor_growth")
        grown = [row for row in rows if row["growth_bytes"]]
        assert len(grown) == 1
        row = grown[0]
        assert (row["owner"], row["shape"], row["count_then"], row["count"]) == ("kept[*]", "[1000]", 3, 43)
        assert row["growth_bytes"] == 160000 and row["growth_per_step"] is None
        rows, _ = made(client, "python.tensor_growth", {"mark": 1})
        assert all(row["growth_bytes"] == 0 for row in rows)
        j.run("kept.clear()")
        rows, _ = made(client, "python.tensor_growth")
        gone = [row for row in rows if row["owner"] == "kept[*]"]
        assert [(row["count"], row["growth_bytes"]) for row in gone] == [(0, -172000)]


def test_age_begins_at_the_first_look_and_is_not_that_of_another_tensor(torch_job):  # noqa: F811
    j = torch_job("old = torch.zeros(3)")
    with Client(j.start()) as client:
        made(client, "python.tensors")
        j.run("import time; time.sleep(0.05); fresh = torch.zeros(3)")
        ages = {row["name"]: row["age_s"] for row in made(client, "python.tensors")[0]}
        assert ages["old"] >= 0.05 and ages["fresh"] == 0
        j.run("del old; old = torch.zeros(3)")  # as a rule at the same address
        ages = {row["name"]: row["age_s"] for row in made(client, "python.tensors")[0]}
        assert ages["old"] == 0


ODD = """
import warnings
warnings.simplefilter("ignore")
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
called = []
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        called.append(str(func))
        return super().__torch_function__(func, types, args, kwargs or {})
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes")
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        called.append(str(func))
        raise RuntimeError("not to be called")
    def __repr__(self):
        raise RuntimeError("not to be called")
plain = torch.ones(4)
odd = {"meta": torch.zeros(3, device="meta"), "sparse": torch.eye(4).to_sparse(), "csr": torch.eye(4).to_sparse_csr(),
       "quantised": torch.quantize_per_tensor(torch.zeros(5), 0.1, 0, torch.quint8),
       "nested": torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
       "fake": FakeTensorMode().from_tensor(torch.zeros(6)), "loud": torch.zeros(7).as_subclass(Loud),
       "wrapped": Wrapped(torch.zeros(8)), "complex": torch.zeros(2, dtype=torch.complex64), "empty": torch.zeros(0, 3),
       "expanded": torch.zeros(1).expand(1000), "lazy": torch.nn.LazyLinear(3).weight}
grads = {}
def batched(x):
    odd["batched"] = x
    return x * 2
torch.vmap(batched)(torch.zeros(3, 4))
called.clear()
"""


def test_odd_tensors_are_shown_with_what_is_known(torch_job):  # noqa: F811
    j = torch_job(ODD)
    with Client(j.start()) as client:
        rows, note = made(client, "python.tensors")
        assert note == "" and j.do("called") == []
        odd = {row["name"].split("'")[1]: row for row in rows if row["name"].startswith("odd[")}
        shown = {name: (row["type"], row["shape"], row["bytes"], row["storage_bytes"]) for name, row in odd.items() if "]." not in row["name"]}
        assert shown["meta"] == ("Tensor", "[3]", 12, None) and odd["meta"]["device"] == "meta"
        assert shown["sparse"] == ("Tensor", "[4, 4]", None, None) and shown["csr"] == ("Tensor", "[4, 4]", None, None)
        assert shown["quantised"] == ("Tensor", "[5]", 5, 5)
        assert shown["nested"][:2] == ("Tensor", None)
        assert odd["fake"]["shape"] == "[6]" and odd["fake"]["bytes"] is None and odd["fake"]["device"] == "fake cpu"
        assert shown["loud"] == ("Loud", "[7]", 28, 28)
        assert odd["complex"]["bytes"] == 16 and odd["empty"]["bytes"] == 0
        assert odd["expanded"]["bytes"] == 4000 and odd["expanded"]["storage_bytes"] == 4
        inner = [row for row in rows if row["name"] == "odd['wrapped'].inner"]
        assert [(row["shape"], row["bytes"]) for row in inner] == [("[8]", 32)]
        assert {"lazy", "batched"} <= set(odd)
        assert j.do("called") == []


SWAPS = """
torch.__future__.set_swap_module_params_on_conversion(True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
alone = torch.nn.Parameter(torch.ones(3))
def learn():
    model(torch.ones(3, 4, dtype=model[0].weight.dtype)).sum().backward()
def move():
    model.double().load_state_dict(model.state_dict())
    model.float().load_state_dict(model.state_dict())
move()
learn()
"""


def test_a_model_can_be_moved_and_loaded_after_its_tensors_were_seen(torch_job):  # noqa: F811
    """torch.utils.swap_tensors refuses tensors with weak references, so none of ours is left; their age is known all the same."""
    j = torch_job(SWAPS)
    with Client(j.start()) as client:
        for table in ("python.tensors", "python.modules", "python.tensor_growth", "python.memory_growth"):
            made(client, table)
        rows = {row["name"]: row for row in made(client, "python.tensors")[0]}
        assert rows["model.0.weight"]["age_s"] > 0 and rows["model.1.running_mean"]["age_s"] > 0
        assert rows["alone"]["age_s"] is None and rows["model.0.weight.grad"]["age_s"] is None
        statistics, note = made(client, "python.tensor_statistics", {"id": rows["model.0.weight.grad"]["id"]})
        assert len(statistics) == 1 and note == ""
        statistics, note = made(client, "python.tensor_statistics", {"id": rows["model.0.weight"]["id"]})
        assert len(statistics) == 1 and note == ""
        j.run("import weakref; counts = [weakref.getweakrefcount(t) for p in model.parameters() for t in (p, p.grad)]")
        assert set(j.do("counts")) == {0}
        j.run("move(); learn()")
        assert made(client, "python.tensors")[0]


METACLASS = """
import collections
called = []
class Meta(type):
    def __hash__(cls):
        called.append("hash")
        return 1
    def __eq__(cls, other):
        called.append("eq")
        return cls is other
    def __getattribute__(cls, name):
        called.append(name)
        return type.__getattribute__(cls, name)
class Plain(metaclass=Meta):
    pass
class List(list, metaclass=Meta):
    pass
class Dict(dict, metaclass=Meta):
    pass
class Net(torch.nn.Module, metaclass=Meta):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.kept = List([torch.zeros(5)])
class Odd:
    def __eq__(self, other):
        called.append("module")
        return False
    __hash__ = object.__hash__
plain = Plain()
plain.held = torch.zeros(3)
things = [Plain() for _ in range(600)] + [List([torch.zeros(4)]), Dict(a=torch.zeros(6))]
waiting = collections.deque(Plain() for _ in range(600))
Plain.__module__ = Odd()
net = Net()
called.clear()
"""


def test_the_job_s_metaclasses_are_not_called(torch_job):  # noqa: F811
    j = torch_job(METACLASS)
    with Client(j.start()) as client:
        rows, note = made(client, "python.tensors")
        assert {"net.weight", "net.kept[0]", "things[600][0]", "things[601]['a']"} <= {row["name"] for row in rows} and note == ""
        for table, args in (("python.modules", {}), ("python.tensor_growth", {}), ("python.memory_growth", {}),
                            ("python.tensor_holders", {"id": rows[0]["id"]})):
            made(client, table, args)
        client.call("threads", {"locals": True})
        assert j.do("called") == []


LAYOUTS = """
import warnings
warnings.simplefilter("ignore")
matrix = torch.eye(4)
odd = {"csr": matrix.to_sparse_csr(), "csc": matrix.to_sparse_csc(), "bsr": matrix.to_sparse_bsr((2, 2)), "bsc": matrix.to_sparse_bsc((2, 2)),
       "channels": torch.quantize_per_channel(torch.zeros(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 0]), 0, torch.qint8)}
if torch.backends.mkldnn.is_available():
    odd["mkldnn"] = torch.ones(5).to_mkldnn()
def batched(x):
    odd["batched"] = x
    return x * 2
torch.vmap(batched)(torch.zeros(3, 4))
def graded(x):
    odd["graded"] = x
    return (x * x).sum()
torch.func.grad(graded)(torch.ones(3))
class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name, t in odd.items():
            if name not in ("batched", "graded"):
                self.register_buffer(name, t)
        self.weight = torch.nn.Parameter(torch.ones(2, 2))
model = Odd()
"""


def test_other_layouts_are_bad_for_nothing(torch_job):  # noqa: F811
    """Tensors, their values, what holds them, modules that have them: what is known of each, and nothing raises or is guessed."""
    j = torch_job(LAYOUTS)
    with Client(j.start()) as client:
        rows, note = made(client, "python.tensors")
        ids = j.do("{name: id(t) for name, t in odd.items()}")
        names, by_id = set(ids), {row["id"]: row for row in rows}
        odd = {name: by_id[ids[name]] for name in names}
        assert note == ""
        for name in names - {"channels", "batched", "graded"}:
            row = odd[name]
            assert (row["bytes"], row["storage_bytes"], row["dtype"]) == (None, None, "float32"), row
            assert row["shape"] == ("[5]" if name == "mkldnn" else "[4, 4]")
        assert odd["channels"]["bytes"] == 6 and odd["channels"]["dtype"] == "qint8"
        for name in names:
            rows, note = made(client, "python.tensor_statistics", {"id": odd[name]["id"]})
            assert rows == [] and note, (name, rows, note)
            rows, note = made(client, "python.tensor_holders", {"id": odd[name]["id"]})
            assert note == "" and f"odd['{name}']" in {row["holder"] for row in rows}, (name, rows, note)
        rows, _ = made(client, "python.modules")
        assert [(row["class"], row["parameters"]) for row in rows if row["class"].endswith("Odd")] == [("Odd", 4)]
        assert j.do("matrix.sum().item()") == 4


NUMBERS = """
torch.manual_seed(3)
tensors = {"normal": torch.randn(300, 500), "transposed": torch.randn(40, 50).t(), "half": torch.randn(1000).half(),
           "brain": torch.randn(1000).bfloat16(), "double": torch.randn(7, dtype=torch.float64) * 1e-200, "whole": torch.arange(-5, 100),
           "flags": torch.tensor([True, False, True]), "strided": torch.randn(64, 64)[::3, 1::2], "one": torch.tensor(2.5),
           "expanded": torch.tensor([1.0, 3.0])[:, None].expand(2, 50), "none": torch.zeros(0), "trained": torch.randn(9, requires_grad=True),
           "bad": torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 4.0, 0.0])}
def known(t):
    x = t.detach().double().flatten()
    finite = x[torch.isfinite(x)]
    some = finite.numel() > 0
    return {"numel": t.numel(), "nan": int(x.isnan().sum()), "inf": int(x.isinf().sum()), "zeros": int((x == 0).sum()),
            "min": finite.min().item() if some else None, "max": finite.max().item() if some else None,
            "mean": finite.mean().item() if some else None, "std": finite.std().item() if finite.numel() > 1 else None,
            "bins": [int(n) for n in torch.histc(finite, 20)] if some and finite.min() < finite.max() else None}
"""


def test_statistics_are_those_of_torch(torch_job):  # noqa: F811
    j = torch_job(NUMBERS)
    state = "torch.get_rng_state().sum().item()"
    with Client(j.start()) as client:
        ids = {row["name"]: row["id"] for row in made(client, "python.tensors")[0]}
        before = j.do(state)
        for name in j.do("list(tensors)"):
            rows, note = made(client, "python.tensor_statistics", {"id": ids[f"tensors['{name}']"]})
            assert len(rows) == 1 and note == "", (name, note)
            row, known = rows[0], j.do(f"known(tensors[{name!r}])")
            for key in ("numel", "nan", "inf", "zeros", "min", "max"):
                assert row[key] == known[key], (name, key)
            for key in ("mean", "std"):
                assert row[key] == known[key] or abs(row[key] - known[key]) <= 1e-9 * abs(known["max"] - known["min"]), (name, key)
            if known["bins"]:
                assert [int(n) for n in row["histogram"].split()] == known["bins"], name
        assert j.do(state) == before


def test_what_has_no_statistics_says_why(torch_job):  # noqa: F811
    j = torch_job(ODD)
    with Client(j.start()) as client:
        ids = {row["name"].split("'")[1]: row["id"] for row in made(client, "python.tensors")[0] if "odd[" in row["name"] and "." not in row["name"]}
        for name, word in (("meta", "no numbers"), ("sparse", "laid out"), ("wrapped", "laid out"), ("nested", "laid out"),
                           ("quantised", "quint8"), ("complex", "complex64"), ("fake", "laid out")):
            rows, note = made(client, "python.tensor_statistics", {"id": ids[name]})
            assert rows == [] and word in note, (name, note)
        rows, note = made(client, "python.tensor_statistics", {"id": 12345})
        assert rows == [] and "no tensor with this id" in note
        assert j.do("called") == []


def test_holders_are_named(torch_job):  # noqa: F811
    j = torch_job("class Box:\n    pass\nt = torch.zeros(3)\nbox = Box()\nbox.inner = {'a': [t]}\nmodel = torch.nn.Linear(2, 2)\nmodel.kept = (t,)")
    with Client(j.start()) as client:
        ids = {row["name"]: row["id"] for row in made(client, "python.tensors")[0]}
        rows, note = made(client, "python.tensor_holders", {"id": ids["t"]})
        assert {(row["holder"], row["kind"]) for row in rows} == \
            {("t", "global"), ("box.inner['a'][0]", "attribute"), ("model.kept[0]", "attribute")} and note == ""
        rows, _ = made(client, "python.tensor_holders", {"id": ids["model.weight"]})
        assert [(row["holder"], row["kind"]) for row in rows] == [("model.weight", "parameter")]


def test_sql_asks_for_one_tensor(torch_job, probing):  # noqa: F811
    j = torch_job("t = torch.tensor([1.0, 2.0, 6.0])")
    j.start()
    done = probing(str(j.pid), "query", "--format", "json",
                   "SELECT s.mean, s.max, h.holder FROM python.tensors t JOIN python.tensor_statistics s ON s.id = t.id"
                   " JOIN python.tensor_holders h ON h.id = t.id WHERE t.name = 't'").ok()
    assert done.json()["rows"] == [{"mean": 3.0, "max": 6.0, "holder": "t"}], done.stderr + probing(
        str(j.pid), "query", "SELECT * FROM python.tensors").stdout
    failed = probing(str(j.pid), "query", "SELECT * FROM python.tensor_statistics")
    assert failed.status != 0 and "WHERE id = " in failed.stderr
