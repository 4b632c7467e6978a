/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: the C and C++ frames of a thread, from a copy of its registers and of the top of its
 * stack.
 *
 * Copying is done by the thread itself within a signal handler, or by whoever knows that it
 * stands still. Unwinding is done later by the owner of the struct native (base/unwind_space.h);
 * no file is opened. What comes out are addresses within modules; symbols are for others to
 * find. Nothing here is certain to end well: every step is checked, and a chain that cannot be
 * followed to its end says so.
 */
#ifndef PYSTACK_NATIVE_H
#define PYSTACK_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/model.h"

#define NATIVE_STACK_MAX ((size_t)64 * 1024)
#define NATIVE_PIECES 18      /* pages that so many bytes can span, and one more */
#define NATIVE_MAX_FRAMES 512 /* of one stack, the innermost ones */
/* in the order of the System V psABI for x86-64, figure 3.36: rax ... r15, return address */
#define NATIVE_REGS 17
#define NATIVE_RBP 6
#define NATIVE_RSP 7
#define NATIVE_RIP 16

struct native_copy {
    uint64_t regs[NATIVE_REGS];
    uint32_t known;    /* a bit for each register */
    uint64_t stack_at; /* address of stack[0] */
    size_t stack_len;
    /* hint for the next copy of the same thread: the end of its stack; 0 unknown */
    uint64_t stack_end;
    uint64_t spent_ns;                  /* for copying, within the handler */
    struct iovec pieces[NATIVE_PIECES]; /* here, and not on the stack of the thread */
    uint8_t stack[NATIVE_STACK_MAX];
};

/* Copy the interrupted state: `context` is the third argument of a signal handler.
 * Async-signal-safe; memory is read through the kernel. */
void native_copy_context(struct native_copy *c, const void *context, pid_t pid);

/* The same for the registers alone: no call of the kernel. */
void native_copy_registers(struct native_copy *c, const void *context);

/* Copy the stack of a thread that stands still, whose registers the caller has put into `c` (rsp
 * at least). */
void native_copy_stack(struct native_copy *c, pid_t pid);

/* Copy thread `tid` of process `pid` (0: this one), which sleeps in a system call. Only its
 * stack pointer and program counter can be known. 0, or -1 if it does not sleep in one. */
int native_copy_asleep(struct native_copy *c, pid_t pid, pid_t tid);

struct native;

/* For process `pid` (0: this one). NULL without memory. */
struct native *native_new(pid_t pid);
void native_free(struct native *n);

/* The same for tests and fuzzing: `mem` has one module, mapped from `base` on. */
struct mem;
struct native *native_new_memory(const struct mem *mem, uint64_t base, uint64_t size);

/* Read the list of mappings again, if it is older than `max_age_ns`. */
void native_refresh(struct native *n, uint64_t max_age_ns);

/* Unwind: frames, innermost first, with module and address. A frame with neither at the end
 * means that the chain could not be followed to its end. At most `cap` (2 or more). Modules'
 * names live as long as `n`. Returns the number of frames, 0 if nothing is known. */
size_t native_unwind(struct native *n, struct native_copy *c, struct model_frame *out, size_t cap);

/* So far. */
struct native_stats {
    uint64_t stacks, frames, cut, ns; /* unwound; ns of CPU time */
};
const struct native_stats *native_get_stats(const struct native *n);

/* Bytes in use. */
size_t native_bytes(const struct native *n);

/* The mappings as last read; for native_label. */
struct native_maps;
struct native_maps *native_get_maps(struct native *n);

/* The threads of a snapshot that get native frames. */
struct native_request {
    bool wanted;
    int64_t tid;         /* only this thread, in the target's numbering; 0: all */
    uint64_t max_age_ns; /* accepted age of the list of mappings */
};

#define NATIVE_HINTS 256 /* threads whose stack's end is remembered */
struct native_hint {
    int64_t tid;
    uint64_t stack_end; /* 0 not known */
};

struct pystack;

/* From now on snapshots have native frames before the Python frames, and MODEL_FRAME_ENTRY among
 * these; NULL turns that off. 0, or -1 without memory. */
int pystack_want_native(struct pystack *ps, const struct native_request *request);

/* Unwind a copy of the thread whose frames are being read: for an asker (pystack_set_asker) or a
 * stopper (pystack_set_stopper). */
void pystack_put_native(struct pystack *ps, struct native_copy *c);

/* True if the thread's native stack was requested. */
bool pystack_wants_native(const struct pystack *ps, int64_t tid);

/* For one thread, before its Python frames are read: they will have entries. `outer_tid`: in our
 * numbering; `asleep`: it was asleep after its CPU clock was read, or may be. True if its stack
 * was copied; the copy counts (pystack_put_native of pystack_native_copy) only if the thread has
 * not run by the time its Python frames were read. */
bool pystack_native_begin(struct pystack *ps, int64_t tid, pid_t outer_tid, bool asleep);

/* After that: no more entries. Returns the thread's native frames, valid until the next begin. */
const struct model_frame *pystack_native_end(struct pystack *ps, size_t *n);

/* Bytes in use for native frames. */
size_t pystack_native_bytes(const struct pystack *ps);

/* The module list of native frames; NULL if they were never requested. */
struct native_maps *pystack_native_maps(struct pystack *ps);

/* Memory for a copy while a thread is stopped; NULL if native frames were never requested. */
struct native_copy *pystack_native_copy(struct pystack *ps);

#endif
