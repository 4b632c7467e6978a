# SPDX-License-Identifier: Apache-2.0
"""The screens of tensors, modules and loaders in a real terminal, on the training example: what they say is what the model is."""

import re

import pytest

from test_tui_tmux import Screen

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def training_screen(tmux, tmp_path, wait_until, training, probing_top, ptrace):
    opened = []

    class PatientScreen(Screen):
        """On a machine that does much else."""

        def wait_for(self, text, timeout=90):
            super().wait_for(text, timeout)

        def wait_match(self, pattern, what):
            try:
                wait_until(lambda: re.search(pattern, self.text(), re.M), 90, what)
            except pytest.fail.Exception as failure:
                pytest.fail(f"{failure.msg}:\n{self.text()}")
            return re.search(pattern, self.text(), re.M)

    def start(columns=160, rows=45):
        s = PatientScreen(tmux, tmp_path, columns, rows, wait_until)
        opened.append(s)
        s.shell(f"{probing_top.path} --screen threads {training.pid}")
        s.wait_for("CONNECTED")
        return s

    yield start
    for s in opened:
        s.close()


def test_modules_are_those_of_the_model(training_screen, probing, training):
    rows = probing(str(training.pid), "query", "SELECT path, parameters FROM python.modules", "--format", "json").ok().json()
    s = training_screen()
    s.keys("8")
    found = s.wait_match(r"^ *(\d+) modules +(\S+) parameters", "the modules")
    assert int(found[1]) == len(rows["rows"])
    s.wait_match(r"^. model +CharTransformer", "the model")
    s.keys("/")
    s.type("norm")
    s.keys("Enter")
    s.wait_for("/norm:")
    s.keys("Escape")
    s.wait_gone("/norm:")  # Esc and a letter at once are Alt and that letter
    s.keys("t")
    s.wait_match(r"^model\.blocks\.0\.\S+ ", "the whole paths")


def test_tensors_and_one_of_them(training_screen):
    s = training_screen()
    s.keys("7")
    s.wait_match(r"^ *\d+ tensors +\S+ \S+ in \d+ storages", "the tensors")
    s.wait_for("read in")
    s.keys("t")
    s.wait_match(r"^model\.blocks\.\d", "tensors of the model")
    s.keys("'")
    s.wait_for("GROWTH")
    s.keys("/")
    s.type("tokens.weight")
    s.keys("Enter")
    s.wait_for("/tokens.weight:")
    s.keys("Escape")
    s.wait_gone("/tokens.weight:")
    s.keys("Space")
    s.wait_for("1 tagged")
    s.keys("U")
    s.wait_gone("1 tagged")
    s.keys("v")
    s.wait_for("held by")
    s.wait_for("histogram")
    s.keys("d")
    s.wait_for("growth ")


def test_a_watched_variable(training_screen, probing, training, wait_until):
    s = training_screen()
    s.keys("Enter")  # at 160 columns the variables are open already
    s.wait_for("Locals of")
    s.keys("/")
    s.type("train_step")
    s.keys("Enter")

    def is_selected():  # a search finds nothing in a stack that has no such frame just then
        if "Locals of train_step" in s.text():
            return True
        s.keys("n")
        return False

    wait_until(is_selected, 60, "the frame")
    s.keys("o")
    s.wait_for(" Locals of train_step")
    s.keys("w")
    s.wait_for("recording ")

    def is_set():
        return "@train" in probing(str(training.pid), "config", "torch_profiling").ok().stdout

    wait_until(is_set, 60, "the setting")
