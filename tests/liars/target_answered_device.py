# SPDX-License-Identifier: Apache-2.0
"""The memory file is a device."""

from lying import lie, named

lie(named("device"))
