/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exec: the interpreter itself loads the agent (PEP 768, CPython 3.14 and later).
 *
 * For targets where no thread may be borrowed but memory may be written: a script's path and a
 * flag are written into the main thread's state, and the interpreter runs the script when that
 * thread reaches a safe point. No thread is stopped. If it does not come in time, the flag is
 * cleared and the files are removed.
 */
#ifndef INJECT_REMOTE_EXEC_H
#define INJECT_REMOTE_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/agent_abi.h"
#include "base/err.h"
#include "inject/inject.h"

struct remote_exec_result {
    bool reused;                    /* a parked agent was restarted, nothing was loaded */
    struct agent_remote_exec agent; /* its answer: AGENT_STARTED or AGENT_ALREADY in `result` */
};

/* Load the agent, whose bytes these are, by `deadline_ns` (CLOCK_MONOTONIC), through `mem`
 * (mem_open_image). 0, or -1 with the reason as a clause (ERR_LOST: the target has ended).
 * `stop_asked` is called now and then; `req->find_door` is not NULL. */
int remote_exec_enter(const struct inject_request *req, const struct mem *mem, const uint8_t *bytes,
                      size_t size, uint64_t deadline_ns, bool (*stop_asked)(void),
                      struct remote_exec_result *out, struct err *e);

/*
 * ---- what the interpreter is given to run, as files that it sees ----
 *
 * A folder of random name, in the first place of the target's own file system where one can be made, with the script and the
 * agent's bytes. Everything belongs to the target's user and can be read by nobody else. The script takes all of it away as
 * the first thing it does; if it never runs, remote_exec_files_remove does.
 */

#define REMOTE_EXEC_FILES_SCRIPT_MAX 4096

struct remote_exec_files {
    int place, folder, script; /* descriptors; -1 none */
    int64_t uid, gid;          /* the user who made them and removes them */
    char name[40];             /* of the folder in the place */
    char path[96];             /* of the script, as the target sees it */
    size_t script_len;
};

/* Compose the script: for the folder `inside`, from which it loads the agent, or, if `loaded` is
 * not NULL, for the agent that the target's loader knows by that name. Returns its length, or -1
 * if it does not fit. Pure. */
ssize_t remote_exec_files_compose(char *buf, size_t cap, const char *inside, const char *loaded);

/* Make the files for process `pid`: with the agent's `bytes` and `loaded` NULL, or without bytes
 * and the name. 0, or -1 with the reason as a clause; call remote_exec_files_remove also after a
 * failure. */
int remote_exec_files_make(struct remote_exec_files *f, pid_t pid, const uint8_t *bytes, size_t size,
                           const char *loaded, struct err *e);

/* The script's output so far. Returns its length; 0 for none. */
size_t remote_exec_files_read(const struct remote_exec_files *f, char *buf, size_t cap);

/* Make a script that may still be opened do nothing. */
void remote_exec_files_disarm(const struct remote_exec_files *f);

/* Remove what is still there. */
void remote_exec_files_remove(struct remote_exec_files *f);

#endif
