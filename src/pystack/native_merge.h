/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_merge: native and Python frames of one thread in the order of the calls.
 *
 * A call of the interpreter's loop, a native frame, stands for the Python frames that it runs:
 * those up to the next MODEL_FRAME_ENTRY. If the counts are equal, each such native frame is
 * replaced by its Python frames. If not, nothing is guessed: both lists stay as they are. Pure.
 */
#ifndef PYSTACK_NATIVE_MERGE_H
#define PYSTACK_NATIVE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

/* Name of the frame at the root of a collected stack whose native and Python frames were not
 * merged. */
#define NATIVE_MERGE_APART "(native and Python frames do not fit together)"

/* What a native frame belongs to. */
enum native_role {
    NATIVE_ROLE_PLAIN = 0,
    NATIVE_ROLE_LOOP, /* the interpreter's loop */
    /* does a part of the loop's work: one instruction of a tail-call interpreter, code of the
     * JIT */
    NATIVE_ROLE_LOOP_PART,
    /* called by the loop also before its Python frame exists, or after it has left */
    NATIVE_ROLE_EDGE,
    NATIVE_ROLE_TRUNCATED, /* not a frame: the caller of the last one is unknown */
};

/* Role of a function by its name in the symbol table; NULL: unknown. */
enum native_role native_role_of(const char *symbol);

/* True if `code`, which is at `start`, jumps to two or more places within (from, to). A part of
 * the loop that the compiler has placed elsewhere does that, and no other function does. */
bool native_code_jumps(const uint8_t *code, size_t size, uint64_t start, uint64_t from, uint64_t to);

/* `frames`: `n_native` native ones with their `roles`, then Python frames and entries, `n`
 * together, innermost first. `truncated`: the outermost Python frames are missing. Writes the
 * indexes of the frames to show to `order`, which has room for `n`, and returns their number.
 * `*how` is merged, apart, or unknown (there are no native frames). */
size_t native_merge(const struct model_frame *frames, size_t n, const enum native_role *roles,
                    size_t n_native, bool truncated, uint32_t *order, enum model_native *how);

#endif
