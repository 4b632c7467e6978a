# SPDX-License-Identifier: Apache-2.0
"""Imports take long.

verdict: STARTING
words: imports
within: 8
attach: after
"""
import os
import sys
import tempfile

from fault_job import began, ready

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "heavy_module.py"), "w", encoding="ascii") as file:
    file.write("n = 0\nwhile True:\n    n += 1\n")
sys.path.insert(0, folder)
ready()
began()
import heavy_module  # noqa: E402, F401
