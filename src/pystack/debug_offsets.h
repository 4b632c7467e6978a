/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_offsets: the offsets that CPython 3.13 and later publishes at the start of _PyRuntime.
 *
 * Layout per minor version: struct _Py_DebugOffsets in Include/internal/pycore_runtime.h (3.13) and
 * Include/internal/pycore_debug_offsets.h (3.14, 3.15). The bytes are foreign: each size must be sensible and each offset
 * lie within its struct, or the whole is refused.
 */
#ifndef PYSTACK_DEBUG_OFFSETS_H
#define PYSTACK_DEBUG_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/offsets.h"

#define PYSTACK_DEBUG_COOKIE "xdebugpy"
#define PYSTACK_DEBUG_BYTES 888 /* bytes to read to have the whole of every known form */

/* Do the bytes start as published offsets do? Then `*version` is PY_VERSION_HEX and `*free_threaded` says how it was built. */
bool pystack_debug_offsets_peek(const uint8_t *bytes, size_t n, uint32_t *version, bool *free_threaded);

/* Replace in `off`, which holds the row of the same version and build, what the bytes say. 0, or -1 when they make no sense
 * (then `off` is unchanged) or this version publishes none. */
int pystack_debug_offsets_apply(const uint8_t *bytes, size_t n, struct pystack_offsets *off);

#endif
