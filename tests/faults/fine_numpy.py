# SPDX-License-Identifier: Apache-2.0
"""Numbers, without torch.

fine: BUSY
needs: numpy
"""
import numpy
from fault_job import ready


def solve():
    a = numpy.random.rand(60, 60)
    return numpy.linalg.solve(a, a[0])


ready()
while True:
    solve()
