/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_offsets: the offsets that CPython 3.13 and later publishes at the start of _PyRuntime.
 *
 * Layout per minor version: struct _Py_DebugOffsets in Include/internal/pycore_runtime.h (3.13)
 * and Include/internal/pycore_debug_offsets.h (3.14, 3.15). The bytes are foreign: each size
 * must be sensible and each offset lie within its struct, or everything is refused.
 */
#ifndef PYSTACK_DEBUG_OFFSETS_H
#define PYSTACK_DEBUG_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/offsets.h"

#define PYSTACK_DEBUG_COOKIE "xdebugpy"
#define PYSTACK_DEBUG_BYTES 888 /* enough for every known form */

/* True if the bytes start as published offsets do. Then `*version` is PY_VERSION_HEX and
 * `*free_threaded` is the kind of build. */
bool pystack_debug_offsets_peek(const uint8_t *bytes, size_t n, uint32_t *version, bool *free_threaded);

/* Replace values in `off`, which has the row of the same version and build, by the published
 * ones. 0, or -1 if they are not valid (then `off` is unchanged) or this version publishes none. */
int pystack_debug_offsets_apply(const uint8_t *bytes, size_t n, struct pystack_offsets *off);

#endif
