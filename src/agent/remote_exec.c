/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exec: the agent is started by the interpreter, which was asked to import it (PEP 768);
 * see src/inject/remote_exec.h.
 *
 * The import runs on a Python thread of the injector's script, with the GIL, and only makes a
 * thread, which starts the agent. No module results: nothing in the interpreter changes.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "agent/entry.h"
#include "agent/threads.h"
#include "base/agent_abi.h"

/* The result, for the injector to read. */
extern struct agent_remote_exec probing_door __attribute__((visibility("default")));

/* The function that an interpreter calls when it imports AGENT_REMOTE_EXEC_MODULE. Returns NULL,
 * without an exception, so the importer reports that there is no module. */
__attribute__((visibility("default"))) void *PyInit__probing(void);

struct agent_remote_exec probing_door;
static int remote_exec_busy; /* a start is in progress: all imports share its result */

static void remote_exec_answer(int result) {
    probing_door.result = result;
    __atomic_store_n(&probing_door.done, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&remote_exec_busy, 0, __ATOMIC_RELEASE);
}

static void *remote_exec_start(void *arg) {
    struct agent_start *start = &probing_door.start;
    (void)arg;
    threads_begin("probing-start");
    int result = entry_start(start, true);
    threads_end();
    remote_exec_answer(result);
    return NULL;
}

void *PyInit__probing(void) {
    pthread_t thread;
    struct agent_start *start = &probing_door.start;
    if (__atomic_exchange_n(&remote_exec_busy, 1, __ATOMIC_ACQ_REL))
        return NULL;
    __atomic_store_n(&probing_door.done, 0, __ATOMIC_RELEASE);
    *start = (struct agent_start){
        .size = sizeof *start, .abi_version = AGENT_ABI_VERSION, .fd = -1, .way = AGENT_WAY_REMOTE_EXEC};
    int rc = threads_create(&thread, remote_exec_start, NULL, true);
    if (rc != 0) {
        snprintf(start->error, sizeof start->error, "no thread for it: %s", strerror(rc));
        remote_exec_answer(AGENT_FAILED);
    }
    return NULL;
}
