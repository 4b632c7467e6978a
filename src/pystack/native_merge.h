/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_merge: native and Python frames of one thread put into the order of the calls.
 *
 * A call of the interpreter's loop, a native frame, stands for the Python frames that it runs: those up to the next
 * MODEL_FRAME_ENTRY. When there are as many of one as of the other, each such native frame is replaced by its Python frames.
 * When not, nothing is guessed: both lists remain as they are. Pure.
 */
#ifndef PYSTACK_NATIVE_MERGE_H
#define PYSTACK_NATIVE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

/* Name of the frame at the root of a collected stack whose native and Python frames were not merged. */
#define NATIVE_MERGE_APART "(native and Python frames do not fit together)"

/* What a native frame is of. */
enum native_role {
    NATIVE_ROLE_PLAIN = 0,
    NATIVE_ROLE_LOOP, /* the interpreter's loop */
    NATIVE_ROLE_LOOP_PART, /* called by it to do a part of its work: one instruction of a tail-call interpreter, code of the JIT */
    NATIVE_ROLE_EDGE, /* what the loop also calls before its Python frame is there, or when it has left */
    NATIVE_ROLE_TRUNCATED, /* not a frame: what called the last one is not known */
};

/* Role of a function by its name in the symbol table; NULL: not known. */
enum native_role native_role_of(const char *symbol);

/* Does `code`, which lies at `start`, jump to two or more places within (from, to)? A part of the loop that the compiler has put
 * elsewhere does that with the other, and no function does it with another one. */
bool native_code_jumps(const uint8_t *code, size_t size, uint64_t start, uint64_t from, uint64_t to);

/* `frames`: `n_native` native ones with their `roles`, then Python frames and entries, `n` together, innermost first. `truncated`:
 * the outermost Python frames are missing. Into `order`, which has room for `n`: the numbers of the frames to be shown. Their number;
 * `*how` is merged, apart, or unknown (there are no native frames). */
size_t native_merge(const struct model_frame *frames, size_t n, const enum native_role *roles,
                    size_t n_native, bool truncated, uint32_t *order, enum model_native *how);

#endif
