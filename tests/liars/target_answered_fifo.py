# SPDX-License-Identifier: Apache-2.0
"""The memory file is a FIFO, which waits for its other end."""

from lying import lie, named

lie(named("fifo"))
