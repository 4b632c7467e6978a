/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem: the one seam through which foreign memory is read and written.
 *
 * The same readers work on this process (the agent), on another process, on a buffer (tests) and
 * on noise (fuzzers). A read never faults and installs no signal handler: live memory is read
 * with process_vm_readv, our own too, and through /proc/PID/mem where a seccomp filter refuses
 * that call. A pid names whatever runs under it at that moment. So a reader compares a
 * mem_identity before and after, and a writer opens the image (mem_open_image). One thread at a
 * time may use a mem.
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
    /* Copy `len` bytes at `addr` of the target to `buf`. 0 if all were read, otherwise -1; never
     * a part. */
    int (*read)(struct mem *m, uint64_t addr, void *buf, size_t len);
    /* The same for `n` pieces, one after the other into `buf`. Returns the bytes read, up to the
     * first piece that cannot be read, or -1. */
    ssize_t (*read_many)(struct mem *m, const struct iovec *pieces, size_t n, void *buf, size_t len);
    pid_t pid; /* live process, for mem_init_process */
    /* descriptor of /proc/PID/mem + 1; 0 not needed so far, -1 cannot be opened */
    int file;
    int error;            /* errno of the last failed read of a live process */
    bool shared;          /* the descriptor belongs to another mem */
    bool writable;        /* writing is allowed */
    const uint8_t *bytes; /* image, for mem_init_buffer */
    size_t size;
    uint64_t base;
    struct read_cache *recall; /* see read_cache.h */
    uint64_t reads;            /* successful reads so far, for cost figures */
};

/* Read the memory of process `pid` (which may be our own) with process_vm_readv. If a filter of
 * ours refuses that call, or the kernel lacks it, /proc/PID/mem is opened, and mem_fini closes
 * it. */
void mem_init_process(struct mem *m, pid_t pid);

/* Open the memory that process `pid` has now. All reads and writes use this one descriptor,
 * which stays with that image: they fail when the process ends or starts another program, and
 * when its pid is reused (mem_is_gone). Without permission they all fail with that errno.
 * mem_fini closes it. */
void mem_open_image(struct mem *m, pid_t pid);

/* Share `from`'s image and descriptor, which stays `from`'s. `from` must outlive `m`. */
void mem_share_image(struct mem *m, const struct mem *from);

/* Write all of it, or return -1 with errno (a part may be written). Only after mem_open_image.
 * The kernel also writes to pages that the process itself may not write to: the caller must know
 * what lies there. */
int mem_write(struct mem *m, uint64_t addr, const void *bytes, size_t len);

/* True if the image is gone, with the process or by execve. For an opened image the kernel is
 * asked; otherwise the last failed read decides. */
bool mem_is_gone(const struct mem *m);

/* The program that a process runs. It changes with execve, even to the same program, and when
 * the pid belongs to another process. */
struct mem_identity {
    uint64_t start_ticks;
    size_t n;
    uint8_t auxv[1024]; /* the program's layout and credentials as the kernel set them up */
};

/* Fill `out` for process `pid` as it is now. 0, or -1 with errno. */
int mem_identify(pid_t pid, struct mem_identity *out);

/* True if `pid` still runs the program of `of`. A program with the same layout, credentials and
 * start time would pass: the same program, started again without address randomisation. */
bool mem_is_same(pid_t pid, const struct mem_identity *of);

/* The same memory as `from`, our own, for a signal handler: async-signal-safe, and never through
 * a descriptor, because the handler's thread may have another descriptor table. Needs no
 * mem_fini. */
void mem_init_handler(struct mem *m, const struct mem *from);

/* Close what reading has opened. The mem may not be used afterwards. */
void mem_fini(struct mem *m);

/* True if the memory is read through /proc/PID/mem. */
bool mem_is_file(const struct mem *m);

/* True if the last read failed because the call itself was refused, whatever the address. */
bool mem_is_refused(const struct mem *m);

/* Read from `size` bytes that stand for the addresses from `base` on. The bytes stay the
 * caller's. */
void mem_init_buffer(struct mem *m, const void *bytes, size_t size, uint64_t base);

/* Read through the seam; 0 or -1. */
int mem_read(struct mem *m, uint64_t addr, void *buf, size_t len);

/* Read `n` pieces with one call, one after the other into `buf`. Returns how many of the first
 * pieces are complete. */
size_t mem_read_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf);

/* Typed reads; 0 or -1, `*out` untouched on failure. */
int mem_read_u64(struct mem *m, uint64_t addr, uint64_t *out);
int mem_read_u32(struct mem *m, uint64_t addr, uint32_t *out);

/* A C string of at most `cap - 1` bytes, cut there. Length, or -1. Reads page by page, so it may
 * end at a page's end. */
ssize_t mem_read_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap);

#endif
