/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem: the one seam through which foreign memory is read, and written to.
 *
 * The same readers work on this process (the agent), on another process, on a buffer (tests) and on noise (fuzzers).
 * A read never faults and installs no signal handler: live memory goes through process_vm_readv, on ourselves too, and
 * through /proc/PID/mem where a seccomp filter refuses that call. A number names whatever runs under it at that moment: who
 * only reads compares a mem_identity before and after; who writes opens the image (mem_open_image). A mem may be used by
 * one thread at a time.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct read_cache;

struct mem {
    /* Copy `len` bytes at `addr` of the target to `buf`. 0 when all were read, else -1; never a part. */
    int (*read)(struct mem *m, uint64_t addr, void *buf, size_t len);
    /* The same of `n` pieces, one after the other to `buf`: bytes read, up to the first that cannot be, or -1. */
    ssize_t (*read_many)(struct mem *m, const struct iovec *pieces, size_t n, void *buf, size_t len);
    pid_t pid;            /* live process, for mem_init_process */
    int file;             /* descriptor of /proc/PID/mem + 1; 0 not needed so far, -1 cannot be opened */
    int error;            /* errno of the last read of a live process that failed */
    bool shared;          /* the descriptor is another mem's */
    bool writable;        /* it may be written to */
    const uint8_t *bytes; /* image, for mem_init_buffer */
    size_t size;
    uint64_t base;
    struct read_cache *recall; /* see read_cache.h */
    uint64_t reads;            /* successful reads so far, for cost figures */
};

/* Read the memory of process `pid` (which may be our own) with process_vm_readv. When that call is refused, by a filter of ours or
 * because there is no such call, /proc/PID/mem is opened, which mem_fini closes. */
void mem_init_process(struct mem *m, pid_t pid);

/* Open the memory that process `pid` has now. All reads and writes go through this one descriptor, which stays with that image:
 * when the process ends or begins another program, and when its number is used again, they fail (mem_is_gone). Not permitted,
 * they all fail with the errno of that. mem_fini closes it. */
void mem_open_image(struct mem *m, pid_t pid);

/* The same image through the same descriptor, which stays `from`'s and must outlive `m`. */
void mem_share_image(struct mem *m, const struct mem *from);

/* Write all of it, or -1 with errno (part of it may be written). Only where mem_open_image has opened the memory. The kernel writes
 * to pages that the process itself may not write to, too: the caller knows what lies there. */
int mem_write(struct mem *m, uint64_t addr, const void *bytes, size_t len);

/* Has the image gone, with the process or by execve? Of one that was opened the kernel is asked; of others it is what the last read that
 * failed has said. */
bool mem_is_gone(const struct mem *m);

/* Which program a process runs: it changes with execve, whatever runs then, and when the number belongs to another process. */
struct mem_identity {
    uint64_t start_ticks;
    size_t n;
    uint8_t auxv[1024]; /* where the kernel has laid the program out, and with whose rights it runs */
};

/* That of process `pid` at this moment. 0, or -1 with errno. */
int mem_identify(pid_t pid, struct mem_identity *out);

/* Does `pid` still run the program that `of` is about? Another one with the same layout, rights and time of start would pass: it
 * would be the same program, begun again without address randomisation. */
bool mem_is_same(pid_t pid, const struct mem_identity *of);

/* The same memory as `from`, our own, for a signal handler: async-signal-safe, and never through a descriptor, because the
 * thread the handler runs on may have another table of them. Needs no mem_fini. */
void mem_init_handler(struct mem *m, const struct mem *from);

/* Close what reading has opened. The mem may not be used any more. */
void mem_fini(struct mem *m);

/* Is the memory read through /proc/PID/mem? */
bool mem_is_file(const struct mem *m);

/* Did the last read fail because the call itself was refused, whatever the address? */
bool mem_is_refused(const struct mem *m);

/* Read from `size` bytes that stand for the addresses from `base` on. The bytes stay the caller's. */
void mem_init_buffer(struct mem *m, const void *bytes, size_t size, uint64_t base);

/* Read through the seam; 0 or -1. */
int mem_read(struct mem *m, uint64_t addr, void *buf, size_t len);

/* Read `n` pieces with one call, one after the other to `buf`. How many of the first ones came whole. */
size_t mem_read_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf);

/* Typed reads; 0 or -1, `*out` untouched on failure. */
int mem_read_u64(struct mem *m, uint64_t addr, uint64_t *out);
int mem_read_u32(struct mem *m, uint64_t addr, uint32_t *out);

/* A C string of at most `cap - 1` bytes, cut there. Length, or -1. Reads page by page, so it may end at a page's end. */
ssize_t mem_read_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap);

#endif
