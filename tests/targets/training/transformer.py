# SPDX-License-Identifier: Apache-2.0
"""A transformer that learns to classify sequences, with AdamW, a schedule of the learning rate and a DataLoader of two workers."""

import torch
import training
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=32, classes=10):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(24, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=128, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.encoder(x + self.positions).mean(dim=1))


def add_arguments(parser):
    parser.add_argument("--workers", type=int, default=2, help="DataLoader worker processes")


def main():
    job = training.Job(__doc__, add_arguments)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=500)
    loader = training.make_loader(training.Items((24, 32), 10), workers=job.args.workers, persistent_workers=job.args.workers > 0)
    for inputs, classes in job.each(loader):
        job.optimize(optimizer.zero_grad)
        loss = nn.functional.cross_entropy(model(inputs), classes)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        job.optimize(optimizer.step)
        job.stepped(loss.detach(), optimizer)
        scheduler.step()
    job.finish(model, optimizer)


if __name__ == "__main__":
    main()
