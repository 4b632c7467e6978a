# SPDX-License-Identifier: Apache-2.0
"""Is stopped while it is attached to."""

import os

from lying import STOP, lie

lie(act=STOP, nth=int(os.environ.get("LIAR_NTH", os.getpid() % 7 + 1)))
