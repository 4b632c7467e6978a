/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub: the code that runs in the target, and the one struct through which it and the injector
 * communicate.
 *
 * The bytes of the section inject_stub are copied into the target unchanged. They run in two
 * threads:
 * - the borrowed one, which only calls pthread_create and leaves immediately, through the frames
 *   on its own stack (sigreturn_chain.h): there it waits to be restored, and restores itself if
 *   nobody comes;
 * - the created one, which makes a memory file, waits for the agent's bytes in it, loads it and
 *   calls its entry. From its start the region belongs to it, once the borrowed one has left.
 *
 * Fields written by one side are only read by the other; every wait has an end.
 */
#ifndef INJECT_STUB_H
#define INJECT_STUB_H

#include <stdint.h>

#include "base/agent_abi.h"

#define STUB_THREAD_NAME "probing-start" /* of the created thread */

/* Progress of the created thread. */
enum stub_phase {
    STUB_NOT_BORN = 0,
    STUB_BORN,     /* runs; tid is filled */
    STUB_WAITING,  /* the memory file exists (fd); waits for `go` */
    STUB_LOADING,  /* in dlopen: the loader may be busy for someone else */
    STUB_STARTING, /* in the agent's entry */
    STUB_DONE,     /* `result` is final; waits for `ack`, then ends */
};

/* Values of `result`. */
enum stub_result {
    STUB_STARTED = 0,   /* the agent runs and owns region, thread and fd */
    STUB_ALREADY = 1,   /* another copy of the agent runs */
    STUB_REFUSED = 2,   /* the agent could not start; start.error says why */
    STUB_NO_MEMFD = 3,  /* memfd_create failed with `sys_errno` */
    STUB_CANCELLED = 4, /* the injector cancelled or did not come */
    STUB_NO_LOAD = 5,   /* dlopen failed; start.error is its text */
    STUB_NO_ENTRY = 6,  /* no entry in what was loaded */
};

/* A struct pollfd: the borrowed thread leaves the region by libc's ppoll on it, whose end clears
 * `here`. */
struct stub_out {
    int32_t fd; /* -1 */
    int16_t events;
    int16_t here; /* not 0: it may still run an instruction of the region */
};

struct stub_params {
    uint64_t region, region_size; /* the whole mapping; fixed places, stub.c's assembly uses them */
    uint64_t fn_munmap;
    uint64_t syscall_ret; /* libc's "syscall; ret" */
    uint64_t chain_time;  /* how long the borrowed thread waits to be restored */
    struct stub_out out;

    /* its stack pointer when it leaves: alone in the region, or not alone */
    uint64_t chain_release, chain_back;

    uint64_t fn_pthread_create, fn_attr_init, fn_attr_setstacksize, fn_attr_destroy;
    uint64_t fn_pthread_self, fn_pthread_detach, fn_errno_location;
    uint64_t fn_dlopen, fn_dlsym, fn_dlerror, fn_dlclose;
    uint64_t entry;      /* of an agent that is already loaded; 0: load one */
    uint64_t thread_fn;  /* address of the created thread's first instruction */
    uint64_t stack_size; /* of the created thread */
    /* how long the created thread waits for `go` and `ack` without a sign of life */
    uint64_t go_wait_ns;
    char thread_name[16];
    char file_name[32];
    char symbol[32];
    uint64_t attr[16]; /* pthread_attr_t */
    uint64_t thread;   /* pthread_t */

    /* borrowed thread -> injector */
    int32_t created; /* 1 once create_errno is final */
    int32_t create_errno;

    /* injector -> created thread */
    int32_t pulse; /* changes while the injector is alive */
    int32_t go;
    int32_t cancel;
    int32_t ack;

    /* created thread -> injector */
    int32_t phase;
    int32_t tid; /* as the target sees it */
    int32_t fd;
    int32_t result;
    int32_t sys_errno;
    char path[64];
    struct agent_start start;
};

/* Bounds of the code (made by the linker for the section) and the two first instructions, in
 * this program. */
extern const unsigned char __start_inject_stub[] __attribute__((visibility("hidden")));
extern const unsigned char __stop_inject_stub[] __attribute__((visibility("hidden")));
extern const unsigned char inject_stub_borrowed[] __attribute__((visibility("hidden")));
extern const unsigned char inject_stub_thread[] __attribute__((visibility("hidden")));

#endif
