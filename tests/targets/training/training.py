# SPDX-License-Identifier: Apache-2.0
"""What the training jobs of the tests have in common: arguments, seeds, an end, and a log of their own truth.

    job = training.Job("what it does")
    for batch in job.each(loader):
        ...
        optimizer.step()
        job.stepped(loss, optimizer)
        if job.over:
            break
    job.finish(model, optimizer)

A job runs until SIGTERM, SIGINT or --steps, and writes its log to --log, one line of JSON each (times are those of time.time()):
  {"is": "start", "job", "pid", "rank", ...}   when the first step begins; then a line goes to $READY_FD, where there is one
  {"is": "step", "step", "began", "within", "ended", "data_s", "fetched", "optimizer_s", "loss", "lr", ...}
                                                after the last Optimizer.step of it; "began" is the "ended" of the step before, "within" is
                                                when that Optimizer.step was done and had not returned
  {"is": "event", "event", "step", "began", "ended", ...}     what else it did: a checkpoint, a collection
  {"is": "end", "steps", "parameters", "parameter_bytes", "tensor_bytes", ...}
Losses are written exactly, as hexadecimal text.
"""

import argparse
import json
import os
import random
import signal
import time

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

torch.set_num_threads(1)


def bytes_of(tensors):
    """Bytes of the storages of tensors, each counted once."""
    storages = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def tensors_of(models, optimizers):
    """Parameters, buffers, gradients and what optimizers keep."""
    for model in models:
        yield from model.parameters()
        yield from model.buffers()
        yield from (p.grad for p in model.parameters() if p.grad is not None)
    for optimizer in optimizers:
        for state in optimizer.state.values():
            yield from (value for value in state.values() if torch.is_tensor(value))


class Job:
    """Arguments, seeds, the end and the log of a job."""

    def __init__(self, description, add_arguments=None, rank=None):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--steps", type=int, default=0, help="stop after this many steps (default: never)")
        parser.add_argument("--log", metavar="FILE", help="write what it does to FILE, a line of JSON each")
        parser.add_argument("--seed", type=int, default=1, help="seed of the model and the data")
        if add_arguments:
            add_arguments(parser)
        self.args = parser.parse_args()
        self.over = False
        self.step = 0
        self.rank = rank
        self.began = None
        self.data_s, self.fetched, self.optimizer_s = 0.0, 0, 0.0
        self.log = None
        self.within = None
        register_optimizer_step_post_hook(self.optimized)
        random.seed(self.args.seed)
        torch.manual_seed(self.args.seed)
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)

    def stop(self, signum, frame):
        self.over = True

    def optimized(self, optimizer, args, kwargs):
        """Torch calls it at the end of each Optimizer.step, within it."""
        self.within = time.time()

    # ---- the log ----

    def write(self, what, **facts):
        if self.args.log and self.log is None:
            path = self.args.log if self.rank is None else f"{self.args.log}.{self.rank}"
            self.log = open(path, "w", encoding="ascii", buffering=1)
        if self.log:
            self.log.write(json.dumps(dict(facts, **{"is": what})) + "\n")

    def start(self, **facts):
        """The first step begins. Called by each() at the latest."""
        if self.began is not None:
            return
        self.write("start", job=type(self).__name__, pid=os.getpid(), rank=self.rank, torch=torch.__version__, **facts)
        self.began = time.time()
        if "READY_FD" in os.environ and not self.rank:
            os.write(int(os.environ["READY_FD"]), b"ready\n")

    def stepped(self, loss, optimizer, **facts):
        """A step is over: its last Optimizer.step has just returned."""
        ended = time.time()
        self.start()
        self.step += 1
        self.write("step", step=self.step, began=self.began, within=self.within, ended=ended, data_s=self.data_s, fetched=self.fetched,
                   optimizer_s=self.optimizer_s, loss=float(loss).hex(), lr=float(optimizer.param_groups[0]["lr"]), **facts)
        self.began = ended
        self.data_s, self.fetched, self.optimizer_s = 0.0, 0, 0.0
        self.over = self.over or self.step == self.args.steps

    def did(self, event, began, **facts):
        """Something else that took from `began` until now."""
        self.write("event", event=event, step=self.step + 1, began=began, ended=time.time(), **facts)

    def finish(self, models=(), optimizers=(), **facts):
        """The totals, and how it ended."""
        models = [models] if isinstance(models, nn.Module) else list(models)
        optimizers = [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else list(optimizers)
        parameters = [p for model in models for p in model.parameters()]
        self.write("end", steps=self.step, parameters=sum(p.numel() for p in parameters), parameter_bytes=bytes_of(parameters),
                   tensor_bytes=bytes_of(tensors_of(models, optimizers)), modules=sum(len(list(m.modules())) for m in models), **facts)
        print(f"stopped after {self.step} steps", flush=True)

    # ---- what a loop does ----

    def each(self, loader, epochs=0):
        """The batches of a loader, again and again until the job is over, with the time that fetching them takes."""
        self.start()
        epoch = 0
        while not self.over and (not epochs or epoch < epochs):
            epoch += 1
            iterator = iter(loader)
            while not self.over:
                asked = time.time()
                try:
                    batch = next(iterator)
                except StopIteration:
                    self.data_s += time.time() - asked
                    break
                self.data_s += time.time() - asked
                self.fetched += 1
                yield batch

    def optimize(self, act, *args):
        """Does an optimizer's step or zero_grad, with the time it takes."""
        asked = time.time()
        result = act(*args)
        self.optimizer_s += time.time() - asked
        return result


# ---- models and data ----

class Items(torch.utils.data.Dataset):
    """`count` pairs of random numbers and a class, the same for the same index; each takes `seconds` in the worker numbered `slow`
    (None: in all)."""

    def __init__(self, shape, classes, count=4096, seconds=0.0, slow=None):
        self.shape, self.classes, self.count, self.seconds, self.slow = shape, classes, count, seconds, slow

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        worker = torch.utils.data.get_worker_info()
        if self.seconds and (self.slow is None or (worker is not None and worker.id == self.slow)):
            time.sleep(self.seconds)
        return make_item(index, self.shape, self.classes)


def make_item(index, shape, classes):
    numbers = torch.Generator().manual_seed(index)
    return torch.randn(shape, generator=numbers), index % classes


class Stream(torch.utils.data.IterableDataset):
    """The same without indices: each worker has a part of them, without end."""

    def __init__(self, shape, classes):
        super().__init__()
        self.shape, self.classes = shape, classes

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        index, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        while True:
            yield make_item(index, self.shape, self.classes)
            index += stride


def quiet_worker(worker_id):
    """Signals are left to the main process, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def make_loader(dataset, batch=16, workers=0, seed=1, **options):
    if not isinstance(dataset, torch.utils.data.IterableDataset):
        options = dict({"shuffle": True, "drop_last": True}, **options)
    return torch.utils.data.DataLoader(dataset, batch_size=batch, num_workers=workers, worker_init_fn=quiet_worker if workers else None,
                                       generator=torch.Generator().manual_seed(seed), **options)


class Perceptron(nn.Module):
    """Layers of `width` between `inputs` numbers and `outputs`."""

    def __init__(self, inputs, outputs, width=256, layers=3):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.last = nn.Linear(width, outputs)

    def forward(self, x):
        x = torch.relu(self.first(x.flatten(1)))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)
