# SPDX-License-Identifier: Apache-2.0
"""A training job with a fault to find: its loop waits for batches most of the time.

The data set keeps its samples as lines of text, parses one whenever it is asked for it, and has no worker processes.
`probing PID verdict` names the fault and the line. It runs until it is stopped (^C or SIGTERM).
"""

import math
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_lines(count, columns, seed):
    """Samples as text: a noisy sine wave each, and how often it swings."""
    rng = random.Random(seed)
    for _ in range(count):
        swings = rng.randrange(1, 9)
        wave = (math.sin(swings * math.tau * i / columns) + rng.gauss(0, 0.3) for i in range(columns))
        yield ",".join(f"{value:.4f}" for value in wave) + f";{swings - 1}"


def parse_sample(line):
    fields, swings = line.split(";")
    values = []
    for field in fields.split(","):
        values.append(float(field))
    middle = sum(values) / len(values)
    spread = math.sqrt(sum((value - middle) ** 2 for value in values) / len(values))
    return torch.tensor([(value - middle) / spread for value in values]), int(swings)


class Waves(Dataset):
    def __init__(self, lines):
        self.lines = list(lines)

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return parse_sample(self.lines[index])


def train_step(model, optimizer, batch):
    waves, swings = batch
    loss = nn.functional.cross_entropy(model(waves), swings)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(Waves(make_lines(4096, 512, seed=1)), batch_size=64, shuffle=True)
    step, began = 0, time.monotonic()
    while True:
        for batch in loader:
            loss = train_step(model, optimizer, batch)
            step += 1
            if step == 1 or step % 50 == 0:
                print(f"step {step:6d}  loss {loss:.4f}  {step / (time.monotonic() - began):.1f} steps/s", flush=True)


if __name__ == "__main__":
    main()
