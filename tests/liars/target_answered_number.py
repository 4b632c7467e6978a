# SPDX-License-Identifier: Apache-2.0
"""The memory file has a number that is not a descriptor."""

from lying import lie

lie(number=77777)
