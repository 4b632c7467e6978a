# SPDX-License-Identifier: Apache-2.0
"""Models within DistributedDataParallel and FullyShardedDataParallel (both of its forms), on one rank with gloo: modules keep their paths, and
parameters, gradients and bytes are those that the job counts."""

import pytest
from agent_job import job  # noqa: F401
from agent_wire import Client
from virtual_rows import made, torch_job  # noqa: F401

WRAPPED = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
ddp = torch.nn.parallel.DistributedDataParallel(net())
fsdp = FullyShardedDataParallel(net(), device_id=torch.device("cpu"), use_orig_params=True)
flat = FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
sharded = net()
for part in (sharded[0], sharded):
    fully_shard(part, mesh=init_device_mesh("cpu", (1,)))
for model in (ddp, fsdp, flat, sharded):
    model(torch.ones(2, 4)).sum().backward()
del part, model
def counts():
    return {name: [sum(p.numel() for p in m.parameters()), sum(p.numel() * p.element_size() for p in m.parameters())]
            for name, m in (("ddp", ddp), ("fsdp", fsdp), ("flat", flat), ("sharded", sharded))}
def shapes(m):
    return {n: str(list(p.shape)) for n, p in m.named_parameters()}
"""
BELOW = [("0", "Linear", 40), ("1", "ReLU", 0), ("2", "Linear", 18)]


@pytest.mark.timeout(200)
def test_wrapped_models(torch_job):  # noqa: F811
    j = torch_job(WRAPPED)
    with Client(j.start()) as client:
        rows, note = made(client, "python.modules")
        assert note == ""
        trees = {name: [(row["path"], row["class"], row["parameters"]) for row in rows if row["path"].split(".")[0] == name]
                 for name in ("ddp", "fsdp", "flat", "sharded")}
        below = {name: [(f"{name}.{child}", kind, n) for child, kind, n in BELOW] for name in trees}
        assert trees["ddp"] == [("ddp", "DistributedDataParallel", 58), ("ddp.module", "Sequential", 58), *below["ddp"]]
        assert trees["fsdp"][:2] == [("fsdp", "FullyShardedDataParallel", 58), ("fsdp._fsdp_wrapped_module", "Sequential", 58)]
        assert [path for path, *_ in trees["fsdp"][2:]] == [path for path, *_ in below["fsdp"]]
        assert trees["flat"][:2] == [("flat", "FullyShardedDataParallel", 58), ("flat._fsdp_wrapped_module", "Sequential", 58)]
        assert trees["sharded"] == [("sharded", "FSDPSequential", 58), ("sharded.0", "FSDPLinear", 40), *below["sharded"][1:]]
        of = {row["path"]: row for row in rows}
        for name, (parameters, size) in j.do("counts()").items():
            assert of[name]["parameters"] == parameters == 58
            assert of[name]["bytes"] in (size, None), of[name]  # of a tensor that is distributed the bytes here are not its own

        tensors, note = made(client, "python.tensors")
        assert note == ""
        shapes = {t["name"]: t["shape"] for t in tensors if t["kind"] == "parameter"}
        for name, prefix in (("ddp", "module."), ("fsdp", "_fsdp_wrapped_module."), ("sharded", "")):
            for path, shape in j.do(f"shapes({name})").items():
                full = f"{name}.{path[len(prefix):]}"
                assert shapes[full] == shape, (full, shapes)
        grads = {t["name"] for t in tensors if t["kind"] == "gradient"}
        assert {f"ddp.{n}.{kind}.grad" for n in (0, 2) for kind in ("weight", "bias")} <= grads
        assert {f"sharded.{n}.{kind}.grad" for n in (0, 2) for kind in ("weight", "bias")} <= grads
        assert j.do("float(ddp(torch.ones(2, 4)).sum().detach()) == float(ddp.module(torch.ones(2, 4)).sum().detach())")


DISTRIBUTED = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
called = []
dispatch = DTensor.__torch_dispatch__.__func__
def told(cls, func, types, args=(), kwargs=None):
    called.append(str(func))
    return dispatch(cls, func, types, args, kwargs)
spread = distribute_tensor(torch.arange(6.0), init_device_mesh("cpu", (1,)), [Shard(0)])
DTensor.__torch_dispatch__ = classmethod(told)
"""


def test_numbers_of_a_distributed_tensor_are_not_gathered(torch_job):  # noqa: F811
    """An operation of it may wait for all ranks: none is called, and the part that this rank has is readable by itself."""
    j = torch_job(DISTRIBUTED)
    with Client(j.start()) as client:
        ids = {row["name"]: row["id"] for row in made(client, "python.tensors")[0]}
        rows, note = made(client, "python.tensor_statistics", {"id": ids["spread"]})
        assert rows == [] and "operations of its own" in note
        rows, note = made(client, "python.tensor_statistics", {"id": ids["spread._local_tensor"]})
        assert [(row["numel"], row["min"], row["max"]) for row in rows] == [(6, 0.0, 5.0)] and note == ""
        for table in ("python.modules", "python.tensor_growth", "python.memory_growth"):
            made(client, table)
        made(client, "python.tensor_holders", {"id": ids["spread"]})
        client.call("threads", {"locals": True})
        assert j.do("called") == []
