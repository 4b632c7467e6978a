# SPDX-License-Identifier: Apache-2.0
"""The memory file and a file of root's take turns behind one number."""

from lying import lie, named

lie(exchange=named("secret"))
