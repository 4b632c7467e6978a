/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: what is mapped in the target, and where.
 *
 * The target's memory, opened once; a snapshot of /proc/PID/maps, the ELF images in it,
 * addresses of the libc functions that the stub calls, and which code must not be interrupted.
 * The injector's one thread uses it.
 */
#ifndef INJECT_TARGET_H
#define INJECT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/elf.h"
#include "base/err.h"
#include "base/mem.h"

/* What a code address belongs to, in rising order of reluctance to borrow a thread found there. */
enum target_place {
    TARGET_PLAIN = 0,
    TARGET_UNKNOWN_CODE, /* no unwind information: its caller cannot be determined */
    TARGET_STDIO,        /* holds at most a stream's lock, which creating a thread does not take */
    TARGET_SIGNAL,       /* in a signal handler */
    TARGET_PROCESS,      /* fork, exit: holds libc's locks */
    TARGET_THREADS,      /* creates or ends a thread */
    TARGET_ALLOCATOR,
    TARGET_LOADER,
    TARGET_PLACES
};

struct target_image {
    uint64_t base, end; /* of its mappings */
    char name[64];      /* last part of the path, cut */
    enum target_place place;
    int opened; /* 0 not tried, 1 usable, -1 not */
    struct elf_image elf;
    uint64_t unwind_table, unwind_count; /* .eh_frame_hdr's sorted table; 0 if there is none */
};

struct target_map {
    uint64_t start, end;
    bool readable, writable, executable;
    bool file; /* backed by a file (its contents do not change) or the vdso */
    int image; /* index, or -1 */
};

struct target_range {
    uint64_t start, end;
    enum target_place place;
};

#define TARGET_MAX_RANGES 160

/* Run-time addresses in the target. */
struct target_symbols {
    uint64_t pthread_create, attr_init, attr_setstacksize, attr_destroy, pthread_self, pthread_detach;
    uint64_t errno_location, munmap, dlopen, dlsym, dlerror, dlclose;
    uint64_t r_debug;
    uint64_t syscall_ret; /* a "syscall; ret" */
    uint64_t sigreturn;   /* libc's "mov $15, %rax; syscall" */
};

struct target {
    pid_t pid;
    int process; /* a descriptor of the process (pidfd_open); -1: this kernel has none */
    struct mem mem;
    struct target_map *maps;
    size_t map_count, map_cap;
    struct target_image *images;
    size_t image_count, image_cap;
    int libc, loader, libpthread, libdl; /* image indices, or -1 */
    bool musl;
    int agent; /* image of an agent that is already mapped, or -1 */
    struct target_range ranges[TARGET_MAX_RANGES];
    size_t range_count;
    struct target_symbols sym;
};

/* Take the snapshot. `mem` is the memory opened before (mem_open_image), which must outlive `t`;
 * NULL: it is opened here. 0, or -1 with the error; call target_fini also after a failure. */
int target_init(struct target *t, pid_t pid, const struct mem *mem, struct err *e);
void target_fini(struct target *t);

/* Find the functions needed. 0, or -1 with the error that says what is missing. */
int target_find_symbols(struct target *t, struct err *e);

/* Why the opened memory is gone: the process has ended, or started another program. Returns -1
 * with the error (ERR_LOST). */
int target_lost(const struct target *t, struct err *e);

/* True if the process itself may write to [at, at + len), below `sp`, on a stack. The injector
 * can write to any page, even a guard page, so it asks. */
bool target_has_stack(const struct target *t, uint64_t sp, uint64_t at, size_t len);

/* The mapping that contains `addr`, or NULL. */
const struct target_map *target_map_at(const struct target *t, uint64_t addr);

/* The image whose code contains `addr`, opened, or NULL if there is none (or it is not a usable
 * ELF). */
struct target_image *target_image_at(struct target *t, uint64_t addr);

/* What the code at `addr` belongs to. */
enum target_place target_place_at(struct target *t, uint64_t addr);

/* True if the loader's list of libraries is complete now (r_debug, r_state == RT_CONSISTENT). */
bool target_loader_is_consistent(struct target *t);

#endif
