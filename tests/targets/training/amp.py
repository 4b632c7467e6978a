# SPDX-License-Identifier: Apache-2.0
"""Mixed precision on the CPU: autocast to bfloat16, and a GradScaler, which leaves out the optimizer's step when gradients overflow: here
each seventh time, and its scale grows back between two of them."""

import torch
import training
from torch import nn

OVERFLOW_EVERY = 7


def main():
    job = training.Job(__doc__)
    model = training.Perceptron(64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", growth_interval=5)
    loader = training.make_loader(training.Items((64,), 10))
    skipped = 0
    for number, (inputs, classes) in enumerate(job.each(loader), 1):
        job.optimize(optimizer.zero_grad)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), classes)
        overflows = number % OVERFLOW_EVERY == 0
        scaler.scale(loss * (float("inf") if overflows else 1.0)).backward()
        scaler.step(optimizer)
        if overflows:
            skipped += 1
        else:
            job.stepped(loss.detach(), optimizer, skipped=skipped)
            skipped = 0
        scaler.update()
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
