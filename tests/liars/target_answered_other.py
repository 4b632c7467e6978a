# SPDX-License-Identifier: Apache-2.0
"""The memory file is another one."""

from lying import lie, memory_file

lie(memory_file("other"))
