/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exec: where an interpreter takes requests of debuggers from outside (PEP 768), from
 * 3.14 on.
 *
 * Reads only; another module writes there. What the interpreter publishes is foreign bytes:
 * every offset must lie within its struct. Source: Include/internal/pycore_debug_offsets.h
 * (debugger_support), Python/ceval_gil.c (_PyRunRemoteDebugger), Include/internal/pycore_ceval.h
 * (bits of eval_breaker).
 */
#ifndef PYSTACK_REMOTE_EXEC_H
#define PYSTACK_REMOTE_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pystack/offsets.h"
#include "pystack/pystack.h"

#define PYSTACK_REMOTE_EXEC_PATH_MAX                                                                         \
    4096 /* bytes of a script's path, if the interpreter has room for so many */

/* Offsets: in the interpreter, then in the thread state. */
struct pystack_remote_exec_offsets {
    uint64_t threads_main, enabled;
    uint64_t breaker, pending, path, path_size;
};

/* Addresses in the target. */
struct pystack_remote_exec {
    uint64_t path;       /* of the script to run, NUL-terminated, */
    size_t path_size;    /* so many bytes at most; */
    uint64_t pending;    /* int32, 1: run it when the main thread reaches a safe point; */
    uint64_t breaker;    /* the byte that makes it check, if */
    uint8_t breaker_set; /* this is stored there */
    int64_t tid;         /* of the main thread, in the target's numbering */
};

/* Take the offsets from the published bytes, of the version and build of `row`. 0, or -1 if this
 * version has no remote execution, or they are not valid. */
int pystack_remote_exec_parse(const uint8_t *bytes, size_t n, const struct pystack_offsets *row,
                              struct pystack_remote_exec_offsets *out);

/* True if this version has it. */
bool pystack_has_remote_exec(const struct pystack *ps);

/* Find the addresses as of now: the main thread's state may be gone a moment later, but only
 * with the interpreter. 0, or -1 with ERR_ATTACH and the reason as a clause ("its Python does
 * not ..."). */
int pystack_find_remote_exec(struct pystack *ps, struct pystack_remote_exec *out, struct err *e);

#endif
