# SPDX-License-Identifier: Apache-2.0
"""The shape of a training job without torch: loader threads, a model in pure Python, a loss that falls.

A bigram character model is trained by gradient descent on text that the program makes itself. Two threads prepare
batches and hand them over in a queue. It runs until it is stopped (--steps, ^C or SIGTERM).
"""

import argparse
import math
import os
import queue
import random
import signal
import sys
import threading
import time

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def make_text(sentences, seed):
    """Sentences with rules that can be learnt; the same seed gives the same text."""
    rng = random.Random(seed)
    parts = []
    for _ in range(sentences):
        day = rng.randrange(7)
        parts.append(f"after {DAYS[day]} comes {DAYS[(day + 1) % 7]}. ")
    return "".join(parts)


class Vocabulary:
    """Characters to numbers."""

    def __init__(self, text):
        self.characters = sorted(set(text))
        self.numbers = {c: i for i, c in enumerate(self.characters)}

    def encode(self, text):
        return [self.numbers[c] for c in text]


class Loader:
    """Two threads that cut batches of (character, next character) pairs out of the text."""

    def __init__(self, data, args):
        self.data = data
        self.batch = args.batch
        self.batches = queue.Queue(maxsize=4)
        self.ended = threading.Event()
        self.threads = [
            threading.Thread(target=self.load, args=(args.seed + i,), name=f"loader-{i}", daemon=True)
            for i in range(args.workers)
        ]

    def start(self):
        for thread in self.threads:
            thread.start()

    def load(self, seed):
        rng = random.Random(seed)
        while not self.ended.is_set():
            self.hand_over(self.cut_batch(rng))

    def cut_batch(self, rng):
        starts = [rng.randrange(len(self.data) - 1) for _ in range(self.batch)]
        return [(self.data[i], self.data[i + 1]) for i in starts]

    def hand_over(self, batch):
        while not self.ended.is_set():
            try:
                self.batches.put(batch, timeout=0.2)
                return
            except queue.Full:
                continue

    def next_batch(self):
        return self.batches.get()

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


class BigramModel:
    """A table of logits: which character follows which."""

    def __init__(self, characters):
        self.logits = [[0.0] * characters for _ in range(characters)]

    def forward(self, number):
        row = self.logits[number]
        top = max(row)
        weights = [math.exp(x - top) for x in row]
        total = sum(weights)
        return [w / total for w in weights]

    def backward(self, number, probabilities, answer, rate):
        row = self.logits[number]
        for i, p in enumerate(probabilities):
            row[i] -= rate * (p - (1.0 if i == answer else 0.0))


def train_step(model, batch, rate):
    """One pass over a batch; returns the mean loss."""
    loss = 0.0
    for number, answer in batch:
        probabilities = model.forward(number)
        loss -= math.log(max(probabilities[answer], 1e-12))
        model.backward(number, probabilities, answer, rate)
    return loss / len(batch)


def learning_rate(step, highest, warmup=20, period=2000):
    """Linear warm-up, then a cosine that repeats, as the job has no end."""
    if step < warmup:
        return highest * (step + 1) / warmup
    phase = (step - warmup) % period / period
    return highest * (0.55 + 0.45 * math.cos(math.pi * phase))


class StepCounter:
    """Keeps the number of finished steps in a file of fixed width, so that others see the job move."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644) if path else -1
        self.write(0)

    def write(self, step):
        if self.fd >= 0:
            os.pwrite(self.fd, b"%020d\n" % step, 0)


class StopFlag:
    """Set by SIGTERM and SIGINT: the loop ends after the step that is running."""

    def __init__(self):
        self.raised = False
        signal.signal(signal.SIGTERM, self.raise_flag)
        signal.signal(signal.SIGINT, self.raise_flag)

    def raise_flag(self, signum, frame):
        self.raised = True


def train(model, loader, args, stop):
    counter = StepCounter(args.counter)
    step, pairs, since = 0, 0, time.monotonic()
    while True:
        batch = loader.next_batch()
        rate = learning_rate(step, args.lr)
        loss = train_step(model, batch, rate)
        step += 1
        pairs += len(batch)
        counter.write(step)
        if step == 1 or step % args.print_every == 0:
            now = time.monotonic()
            print(f"step {step:6d}  loss {loss:.4f}  lr {rate:.2e}  tokens/s {pairs / (now - since):8.0f}", flush=True)
            pairs, since = 0, now
        if stop.raised or step == args.steps:
            return step


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a bigram model in pure Python, without end by default.")
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps (default: never)")
    parser.add_argument("--batch", type=int, default=512, help="pairs in a batch")
    parser.add_argument("--lr", type=float, default=0.05, help="highest learning rate")
    parser.add_argument("--workers", type=int, default=2, help="loader threads")
    parser.add_argument("--print-every", type=int, default=50, help="steps between printed losses")
    parser.add_argument("--seed", type=int, default=1, help="seed of the text and the order")
    parser.add_argument("--counter", metavar="FILE", help="keep the number of finished steps in FILE")
    return parser.parse_args()


def main():
    args = parse_arguments()
    stop = StopFlag()
    text = make_text(5000, args.seed)
    vocabulary = Vocabulary(text)
    loader = Loader(vocabulary.encode(text), args)
    model = BigramModel(len(vocabulary.characters))
    print(f"training on {len(text)} characters, pid {os.getpid()}, Python {sys.version.split()[0]}", flush=True)
    loader.start()
    step = train(model, loader, args, stop)
    loader.end()
    print(f"stopped after {step} steps", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
