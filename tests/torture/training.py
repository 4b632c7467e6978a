# SPDX-License-Identifier: Apache-2.0
"""examples/train.py as a target: its steps go on, and its losses are those of an undisturbed run with the same seed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from target import HANG_SECONDS, ROOT, START_SECONDS, Harm, Process, wait_for

PROGRAM = os.path.join(ROOT, "examples", "train.py")
END_SECONDS = 120
BATCH = "/dev/shm/torch_"
LOOKS = 8
FIRST_STEPS = 20


class Training(Process):
    """A training job with two loader workers. Its descriptors and maps come and go with the batches."""

    patience = 60.0
    slack_kb = 128 * 1024  # torch's own memory moves by tens of megabytes

    def __init__(self, python, build, seed):
        del build
        self.folder = tempfile.mkdtemp(prefix="torture-")
        self.python, self.seed = python, seed
        self.losses, self.counter = (os.path.join(self.folder, name) for name in ("losses", "counter"))
        self.steps = (0, time.monotonic())
        super().__init__(self.command(self.losses, "--counter", self.counter), open(os.path.join(self.folder, "out"), "wb"))
        try:
            wait_for(self.is_ready, START_SECONDS, "the training to start")
        except Harm:
            self.end()
            raise

    def command(self, losses, *more):
        return [self.python, PROGRAM, "--seed", str(self.seed), "--batch", "8", "--losses", losses, *more]

    def is_ready(self):
        self.check_alive()
        return self.steps_done() >= FIRST_STEPS

    def steps_done(self):
        try:
            with open(self.counter, encoding="ascii") as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def check(self):
        self.check_alive()
        now, steps = time.monotonic(), self.steps_done()
        if steps != self.steps[0]:
            self.steps = (steps, now)
        elif now - self.steps[1] > HANG_SECONDS:
            raise Harm("hung", f"no step in {HANG_SECONDS} s after step {steps}")
        self.check_threads()

    def check_progress(self):
        steps = self.steps_done()

        def moved():
            self.check_alive()
            return self.steps_done() > steps + 1
        wait_for(moved, HANG_SECONDS, "the next steps")

    def single_out(self, rng):
        """No thread of it rests on request."""
        del rng
        return False

    def let_all_go(self):
        pass

    def allow_children(self, allowed):
        """Its loader's workers are always there."""

    def extra(self):
        return {}

    def look(self):
        """What stays: not the batches, which come through sockets and lie in files, not the code that torch makes as it needs it."""
        facts = self.facts([])
        links, files = set(facts.fds.values()), set(facts.files)
        for _ in range(LOOKS):
            time.sleep(0.05)
            again = self.facts([])
            links &= set(again.fds.values())
            files &= set(again.files)
        links = sorted(link for link in links if BATCH not in link)
        files = sorted(line for line in files if BATCH not in line and " rwxp " not in line)
        return facts._replace(fds=dict(enumerate(links)), files=files)

    def check_numbers(self):
        """Ends it; the number of losses that were compared."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            status = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Harm("hung", f"no end within {END_SECONDS} s after SIGTERM") from error
        if status != 0:
            raise Harm("died", f"it ended with {status}: {self.output()[-2000:]}")
        with open(self.losses, encoding="ascii") as file:
            losses = file.read().split()
        again = os.path.join(self.folder, "again")
        subprocess.run(self.command(again, "--steps", str(len(losses))), check=True, stdout=subprocess.DEVNULL)
        with open(again, encoding="ascii") as file:
            wanted = file.read().split()
        if len(wanted) != len(losses):
            raise Harm("numbers", f"{len(losses)} losses, undisturbed {len(wanted)}")
        for step, (loss, undisturbed) in enumerate(zip(losses, wanted), 1):
            if loss != undisturbed:
                raise Harm("numbers", f"the loss of step {step} is {loss}, undisturbed {undisturbed}")
        return len(losses)

    def end(self):
        super().end()
        self.out.close()
        shutil.rmtree(self.folder, ignore_errors=True)
