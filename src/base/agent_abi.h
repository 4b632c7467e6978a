/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_abi: what the injector and the agent agree on.
 *
 * The injector creates a thread in the target which loads the agent and calls probing_start on
 * itself. The struct only grows at its end; `size` says how much the caller knew.
 */
#ifndef BASE_AGENT_ABI_H
#define BASE_AGENT_ABI_H

#include <stdint.h>

#define AGENT_ABI_VERSION 1U
#define AGENT_ENTRY "probing_start" /* int probing_start(struct agent_start *) */
/* const char probing_version[]: version of the agent file */
#define AGENT_VERSION_SYMBOL "probing_version"
/* shows in /proc/PID/maps as /memfd:libprobing.so (deleted) */
#define AGENT_MEMFD_NAME "libprobing.so"

/* How an agent came into its process. */
enum agent_way {
    AGENT_WAY_UNKNOWN = 0,
    AGENT_WAY_ASLEEP,      /* injected: a thread that slept in a system call was borrowed */
    AGENT_WAY_SAFE_POINT,  /* injected: a thread that ran was caught where nothing was half done */
    AGENT_WAY_REMOTE_EXEC, /* the interpreter was asked to import it (PEP 768) */
    AGENT_WAY_PRELOADED,   /* LD_PRELOAD, 'probing launch' */
    AGENT_WAY_PTH,         /* probing.pth */
    /* the process was forked from one whose agent was to be in its children too */
    AGENT_WAY_FORKED,
    AGENT_WAYS,
};

/* The name that users see; NULL for an unknown value. */
const char *agent_way_name(uint32_t way);

struct agent_start {
    uint32_t size;        /* in: sizeof(struct agent_start) */
    uint32_t abi_version; /* in: AGENT_ABI_VERSION */
    /* in: mapping made by the injector, to be unmapped when `thread` has ended; 0 none */
    uint64_t region;
    uint64_t region_size;
    /* in: pthread_t of the calling thread, joinable: the agent joins it, then unmaps `region` */
    uint64_t thread;
    /* in: memfd the agent was loaded from, to be closed by the agent; -1 none */
    int32_t fd;
    uint32_t way;       /* in: enum agent_way */
    char error[256];    /* out: one line when probing_start returned non-zero */
    char endpoint[128]; /* out: path of the unix socket, as the target sees it */
};

/* Results of probing_start. Only with AGENT_STARTED do region, thread and fd become the agent's;
 * otherwise the caller keeps them. The caller's thread ends soon after probing_start has
 * returned, at most seconds later. */
enum agent_start_result {
    AGENT_STARTED = 0,
    AGENT_ALREADY = 1, /* it was running; endpoint is filled */
    AGENT_FAILED = 2,  /* error says why; nothing of the agent runs */
};

/* The other entry: the interpreter imports the agent as a module of this name (PyInit__probing).
 * That starts the agent on a thread of its own and returns no module. The result is in a struct
 * agent_door of this name. */
#define AGENT_REMOTE_EXEC_MODULE "_probing"
#define AGENT_REMOTE_EXEC_SYMBOL "probing_door"

struct agent_remote_exec {
    int32_t done;   /* 1: the rest is final */
    int32_t result; /* enum agent_start_result */
    struct agent_start start;
};

#endif
