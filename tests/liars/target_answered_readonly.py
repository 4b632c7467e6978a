# SPDX-License-Identifier: Apache-2.0
"""The memory file is open for reading only."""

from lying import READ_ONLY, lie

lie(kind=READ_ONLY)
