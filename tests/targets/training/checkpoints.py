# SPDX-License-Identifier: Apache-2.0
"""Saves its model and its optimizer each --every steps, by torch.save or torch.distributed.checkpoint (--how dcp)."""

import os
import tempfile
import time

import torch
import torch.distributed.checkpoint
import training
from torch import nn


def add_arguments(parser):
    parser.add_argument("--every", type=int, default=20, help="steps between two")
    parser.add_argument("--how", choices=("save", "dcp"), default="save", help="torch.save, or torch.distributed.checkpoint.save")
    parser.add_argument("--width", type=int, default=256, help="of the layers: the larger, the longer it takes")


def save(how, state, folder):
    if how == "dcp":
        torch.distributed.checkpoint.save(state, checkpoint_id=os.path.join(folder, "dcp"), no_dist=True)
    else:
        torch.save(state, os.path.join(folder, "checkpoint.pt"))


def main():
    job = training.Job(__doc__, add_arguments)
    model = training.Perceptron(64, 10, width=job.args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = training.make_loader(training.Items((64,), 10))
    with tempfile.TemporaryDirectory() as folder:
        for inputs, classes in job.each(loader):
            job.optimize(optimizer.zero_grad)
            loss = nn.functional.cross_entropy(model(inputs), classes)
            loss.backward()
            job.optimize(optimizer.step)
            job.stepped(loss.detach(), optimizer)
            if job.step % job.args.every == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                began = time.time()
                save(job.args.how, state, folder)
                job.did("checkpoint", began)
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
