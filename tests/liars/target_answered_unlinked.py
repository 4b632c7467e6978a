# SPDX-License-Identifier: Apache-2.0
"""The memory file is a file without a name on a file system."""

from lying import become_nobody, lie, unlinked

become_nobody()
lie(unlinked())
