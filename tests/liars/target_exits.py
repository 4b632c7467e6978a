# SPDX-License-Identifier: Apache-2.0
"""Ends while it is attached to."""

import os

from lying import EXIT, lie

lie(act=EXIT, nth=int(os.environ.get("LIAR_NTH", os.getpid() % 7 + 1)))
