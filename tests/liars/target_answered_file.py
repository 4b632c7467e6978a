# SPDX-License-Identifier: Apache-2.0
"""The memory file is a file of root's, named by a descriptor that needs no permission."""

from lying import lie, named

lie(named("secret"))
