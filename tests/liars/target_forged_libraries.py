# SPDX-License-Identifier: Apache-2.0
"""Rubbish goes by the names of the libraries that are looked for."""

from lying import become_nobody, forged_library, lie

become_nobody()
for name in ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "memfd:libprobing.so", "libpython3.11.so.1.0"):
    forged_library(name)
lie()
