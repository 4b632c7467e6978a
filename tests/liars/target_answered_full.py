# SPDX-License-Identifier: Apache-2.0
"""The memory file is one with something in it."""

from lying import FULL, lie

lie(kind=FULL)
