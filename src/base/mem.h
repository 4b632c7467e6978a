/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem: the one seam through which foreign memory is read.
 *
 * The same readers work on this process (the agent), on another process, on a buffer (tests) and on noise (fuzzers).
 * A read never faults and installs no signal handler: live memory goes through process_vm_readv, on ourselves too.
 * A mem may be used by one thread at a time.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mem {
    /* Copy `len` bytes at `addr` of the target to `buf`. 0 when all were read, else -1; never a part. */
    int (*read)(struct mem *m, uint64_t addr, void *buf, size_t len);
    pid_t pid;            /* live process, for mem_init_process */
    const uint8_t *bytes; /* image, for mem_init_buffer */
    size_t size;
    uint64_t base;
    uint64_t reads; /* successful reads so far, for cost figures */
};

/* Read the memory of process `pid` (which may be our own) with process_vm_readv. */
void mem_init_process(struct mem *m, pid_t pid);

/* Read from `size` bytes that stand for the addresses from `base` on. The bytes stay the caller's. */
void mem_init_buffer(struct mem *m, const void *bytes, size_t size, uint64_t base);

/* Read through the seam; 0 or -1. */
int mem_read(struct mem *m, uint64_t addr, void *buf, size_t len);

/* Typed reads; 0 or -1, `*out` untouched on failure. */
int mem_read_u64(struct mem *m, uint64_t addr, uint64_t *out);
int mem_read_u32(struct mem *m, uint64_t addr, uint32_t *out);

/* A C string of at most `cap - 1` bytes, cut there. Length, or -1. Reads page by page, so it may end at a page's end. */
ssize_t mem_read_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap);

#endif
