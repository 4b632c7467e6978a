# SPDX-License-Identifier: Apache-2.0
"""Numbers without torch: by numpy, where it is installed, else in Python.

fine: BUSY
"""
import random

from fault_job import ready

try:
    import numpy
except ImportError:
    numpy = None


def solve():
    if numpy:
        a = numpy.random.rand(60, 60)
        return numpy.linalg.solve(a, a[0])
    return sum(random.random() * k for k in range(10000))


ready()
while True:
    solve()
