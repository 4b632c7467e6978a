# SPDX-License-Identifier: Apache-2.0
"""The memory file may not be written to."""

from lying import SEALED, lie

lie(kind=SEALED)
