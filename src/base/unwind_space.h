/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind_space: libunwind's remote interface over a copy of a thread's registers and stack.
 *
 * The stack comes from the copy alone; everything else is read from the process's memory through
 * a cache of pages; unwind tables are those mapped there, so no file is needed. What is mapped
 * where is for the caller to say. What a process has mapped may say anything: reads are bounded,
 * by number or by time. One thread at a time.
 */
#ifndef BASE_UNWIND_SPACE_H
#define BASE_UNWIND_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define UNWIND_SPACE_REGS                                                                                    \
    17 /* in the order of the System V psABI for x86-64, figure 3.36: rax ... r15, return address */

enum unwind_space_memory {
    /* the rest of the stack may have changed since, what is not mapped is not there */
    UNWIND_SPACE_FORBIDDEN,
    UNWIND_SPACE_CHANGING, /* may be read */
    UNWIND_SPACE_STEADY,   /* and does not change: once is enough */
};

/* The search table of a module's .eh_frame_hdr. */
struct unwind_space_table {
    uint64_t text_start, text_end;
    uint64_t header, entries, n_entries;
};

/* The process. */
struct unwind_space_target {
    struct mem *mem;
    enum unwind_space_memory (*memory)(void *arg, uint64_t addr);
    /* Of the module whose code holds `addr`; false: it has none. */
    bool (*table)(void *arg, uint64_t addr, struct unwind_space_table *out);
    void *arg;
};

/* A copy. */
struct unwind_space_copy {
    const uint64_t *regs;
    uint32_t known; /* a bit for each register */
    uint64_t stack_at;
    const uint8_t *stack;
    size_t stack_len;
};

/* 0: no limit. */
struct unwind_space_limits {
    unsigned reads, step_reads; /* words of one copy, and of one of its steps */
    uint64_t deadline_ns;       /* of clock_mono_ns */
};

struct unwind_space;

/* A cache of `pages`, and of `rules` places of which libunwind remembers how they are unwound
 * (0: as many as it wants). NULL without memory. */
struct unwind_space *unwind_space_new(const struct unwind_space_target *target, size_t pages, size_t rules);
void unwind_space_free(struct unwind_space *u);
size_t unwind_space_bytes(const struct unwind_space *u);

/* Other things may be mapped: forget all that was read. */
void unwind_space_flush(struct unwind_space *u);

/* The next stack is that of this copy, which stays the caller's, has to live as long, and may
 * change before a begin. */
void unwind_space_set(struct unwind_space *u, const struct unwind_space_copy *copy,
                      const struct unwind_space_limits *limits);

/* At the innermost frame, as the copy's registers are now. 0, or -1. */
int unwind_space_begin(struct unwind_space *u);

/* Where the frame is that was come to. 0, or -1. */
int unwind_space_get(struct unwind_space *u, uint64_t *ip, uint64_t *sp);

/* Was it interrupted by a signal, whose handler is what it calls? */
bool unwind_space_is_signal(struct unwind_space *u);

/* To its caller: more than 0, 0 at the end, less when the chain is broken. `*no_info`: a place
 * without unwind information was met, where libunwind guesses by the frame pointer. */
int unwind_space_step(struct unwind_space *u, bool *no_info);

/* Where the function of the frame begins from which the last step was taken; 0 unknown. */
uint64_t unwind_space_function(struct unwind_space *u);

/* Is the deadline over? And: was that found since unwind_space_set, here or in a read that was
 * refused then? */
bool unwind_space_is_late(struct unwind_space *u);
bool unwind_space_ran_out(const struct unwind_space *u);

/* Bytes of steady memory, through the cache. 0 or -1. */
int unwind_space_read(struct unwind_space *u, uint64_t addr, void *out, size_t len);

#endif
