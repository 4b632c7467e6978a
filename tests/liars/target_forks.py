# SPDX-License-Identifier: Apache-2.0
"""Forks at a call of its injector."""

import os

from lying import FORK, lie

lie(act=FORK, nth=int(os.environ.get("LIAR_NTH", os.getpid() % 7 + 1)))
