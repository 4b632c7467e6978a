# SPDX-License-Identifier: Apache-2.0
"""A small, real training job to try probing-top on: a character-level transformer on CPU.

It learns sums and weekday rules written out as text that the program makes itself, with AdamW, a learning rate
schedule and a DataLoader with two worker processes. It runs until it is stopped (--steps, ^C or SIGTERM).
"""

import argparse
import atexit
import math
import multiprocessing
import os
import random
import signal
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def make_text(sentences, seed):
    """Sentences with rules a small model can learn; the same seed gives the same text."""
    rng = random.Random(seed)
    parts = []
    for _ in range(sentences):
        if rng.random() < 0.5:
            a, b = rng.randrange(50), rng.randrange(50)
            parts.append(f"{a} plus {b} is {a + b}. ")
        else:
            day = rng.randrange(7)
            parts.append(f"after {DAYS[day]} comes {DAYS[(day + 1) % 7]}. ")
    return "".join(parts)


class Vocabulary:
    """Characters to numbers and back."""

    def __init__(self, text):
        self.characters = sorted(set(text))
        self.numbers = {c: i for i, c in enumerate(self.characters)}

    def encode(self, text):
        return torch.tensor([self.numbers[c] for c in text], dtype=torch.long)

    def decode(self, numbers):
        return "".join(self.characters[i] for i in numbers)


class TextWindows(Dataset):
    """Every window of `length` characters, with the characters that follow as the answer."""

    def __init__(self, data, length):
        self.data = data
        self.length = length

    def __len__(self):
        return len(self.data) - self.length - 1

    def __getitem__(self, index):
        window = self.data[index : index + self.length + 1]
        return window[:-1], window[1:]


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.project_in(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project_out(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.contract(F.gelu(self.expand(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class CharTransformer(nn.Module):
    def __init__(self, characters, length, width=64, heads=4, layers=3):
        super().__init__()
        self.tokens = nn.Embedding(characters, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device)
        h = self.tokens(x) + self.positions(positions)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def loss_of(model, batch):
    inputs, answers = batch
    logits = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten())


def train_step(model, optimizer, scheduler, batch):
    """One optimizer step; returns the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model, batch)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, batches):
    """The mean loss on text the model was not trained on."""
    model.eval()
    losses = [loss_of(model, batch).item() for batch in batches]
    model.train()
    return sum(losses) / len(losses)


@torch.no_grad()
def complete(model, vocabulary, prompt, characters, length):
    """What the model writes after `prompt`, always taking the likeliest character."""
    model.eval()
    numbers = vocabulary.encode(prompt)
    for _ in range(characters):
        logits = model(numbers[-length:].unsqueeze(0))
        numbers = torch.cat([numbers, logits[0, -1].argmax().view(1)])
    model.train()
    return vocabulary.decode(numbers.tolist())


def learning_rate(step, warmup=50, period=2000):
    """Linear warm-up, then a cosine between 1 and 0.1 that repeats, as the job has no end."""
    if step < warmup:
        return (step + 1) / warmup
    phase = (step - warmup) % period / period
    return 0.55 + 0.45 * math.cos(math.pi * phase)


class StepCounter:
    """Keeps the number of finished steps in a file of fixed width, so that others see the job move."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644) if path else -1
        self.write(0)

    def write(self, step):
        if self.fd >= 0:
            os.pwrite(self.fd, b"%020d\n" % step, 0)


class LossLog:
    """Writes the loss of every step to a file, exactly (hexadecimal), so that two runs can be compared bit for bit."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="ascii", buffering=1) if path else None

    def write(self, loss):
        if self.file:
            self.file.write(loss.hex() + "\n")


class StopFlag:
    """Set by SIGTERM and SIGINT: the loop ends after the step that is running."""

    def __init__(self):
        self.raised = False
        signal.signal(signal.SIGTERM, self.raise_flag)
        signal.signal(signal.SIGINT, self.raise_flag)

    def raise_flag(self, signum, frame):
        self.raised = True


def start_worker(worker_id):
    """A loader worker leaves signals to the main process, which ends it; it also ends when that one is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def end_workers():
    """When the program ends: the traceback of an exception keeps the loader, and that the workers, which leave SIGTERM to us."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's own takes their end for a failure
    for worker in multiprocessing.active_children():
        worker.kill()


def make_loader(data, args):
    atexit.register(end_workers)
    order = torch.Generator().manual_seed(args.seed)
    return DataLoader(
        TextWindows(data, args.length),
        batch_size=args.batch,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        worker_init_fn=start_worker,
        generator=order,
    )


def endless(loader):
    while True:
        yield from loader


def train(model, loader, held_out, args, stop, on_evaluate):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)
    counter, losses = StepCounter(args.counter), LossLog(args.losses)
    step, tokens, since = 0, 0, time.monotonic()
    for batch in endless(loader):
        loss = train_step(model, optimizer, scheduler, batch)
        step += 1
        tokens += batch[0].numel()
        losses.write(loss)
        counter.write(step)
        if step == 1 or step % args.print_every == 0:
            now = time.monotonic()
            lr = scheduler.get_last_lr()[0]
            print(f"step {step:6d}  loss {loss:.4f}  lr {lr:.2e}  tokens/s {tokens / (now - since):8.0f}", flush=True)
            tokens, since = 0, now
        if step % args.eval_every == 0:
            print(f"step {step:6d}  held-out loss {evaluate(model, held_out):.4f}", flush=True)
            on_evaluate()
        if stop.raised or step == args.steps:
            break
    return step


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a small character-level transformer, without end by default.")
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps (default: never)")
    parser.add_argument("--batch", type=int, default=32, help="windows in a batch")
    parser.add_argument("--length", type=int, default=64, help="characters in a window")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate")
    parser.add_argument("--workers", type=int, default=2, help="DataLoader worker processes")
    parser.add_argument("--threads", type=int, default=1, help="threads torch computes with")
    parser.add_argument("--print-every", type=int, default=10, help="steps between printed losses")
    parser.add_argument("--eval-every", type=int, default=500, help="steps between evaluations")
    parser.add_argument("--seed", type=int, default=1, help="seed of the text, the model and the order")
    parser.add_argument("--counter", metavar="FILE", help="keep the number of finished steps in FILE")
    parser.add_argument("--losses", metavar="FILE", help="write the loss of every step to FILE, exactly")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    stop = StopFlag()

    text = make_text(20000, args.seed)
    vocabulary = Vocabulary(text)
    data = vocabulary.encode(text)
    cut = len(data) * 9 // 10
    loader = make_loader(data[:cut], args)
    windows = TextWindows(data[cut:], args.length)
    held_out = list(DataLoader(torch.utils.data.Subset(windows, range(0, 4096, 16)), batch_size=args.batch))
    model = CharTransformer(len(vocabulary.characters), args.length)

    size = sum(p.numel() for p in model.parameters())
    print(f"training {size} parameters on {cut} characters, pid {os.getpid()}, torch {torch.__version__}", flush=True)

    def show_sample():
        print("        " + complete(model, vocabulary, "after monday comes ", 40, args.length), flush=True)

    step = train(model, loader, held_out, args, stop, show_sample)
    print(f"stopped after {step} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
