# SPDX-License-Identifier: Apache-2.0
"""The memory file is a socket."""

from lying import a_socket, become_nobody, lie

become_nobody()
lie(a_socket())
