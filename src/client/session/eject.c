/* SPDX-License-Identifier: Apache-2.0 */
/* eject: see eject.h. */
#include "client/session/eject.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/session/call.h"
#include "client/target/target.h"
#include "client/target/tcp.h"

#define EJECT_DEADLINE_NS (5 * CLOCK_NS_PER_S)
#define EJECT_POLL_NS (10 * CLOCK_NS_PER_MS)
#define EJECT_MAX_TIDS 65536
#define EJECT_THREAD_PREFIX "probing" /* the agent's threads have names with this prefix */

/* The number of threads of `pid` that belong to the agent. */
static size_t eject_count_threads(pid_t pid) {
    static pid_t tids[EJECT_MAX_TIDS];
    ssize_t n = procfs_list_tids(pid, tids, EJECT_MAX_TIDS);
    size_t found = 0;
    for (ssize_t i = 0; i < n && i < EJECT_MAX_TIDS; i++) {
        char comm[32];
        if (tids[i] != pid && procfs_read_comm(pid, tids[i], comm, sizeof comm) == 0 &&
            strncmp(comm, EJECT_THREAD_PREFIX, strlen(EJECT_THREAD_PREFIX)) == 0)
            found++;
    }
    return found;
}

static int eject_wait_gone(const struct target_address *addr, struct err *e) {
    uint64_t deadline = clock_mono_ns() + EJECT_DEADLINE_NS;
    for (;;) {
        struct target_address again = *addr;
        /* Nothing here shows whether an agent listens at a TCP port, or on another host: its answer has to be
         * enough. */
        bool listens = !tcp_is(addr->path) && addr->tunnel <= 0 && target_find_endpoint(&again, NULL) == 1;
        size_t threads = addr->pid > 0 ? eject_count_threads(addr->pid) : 0;
        if (!listens && threads == 0)
            return 0;
        if (clock_mono_ns() > deadline)
            return err_set(e, ERR_FAILED,
                           "the agent in process %d agreed to leave but %s after 5 s: try again",
                           (int)addr->pid, listens ? "still listens" : "still has threads");
        struct timespec pause = {.tv_nsec = (long)EJECT_POLL_NS};
        nanosleep(&pause, NULL);
    }
}

int eject_agent(struct target_address *addr, struct err *e) {
    int there = target_find_endpoint(addr, e);
    if (there <= 0)
        return there;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    int rc = call_eject(c, e);
    call_close(c);
    return rc != 0 || eject_wait_gone(addr, e) != 0 ? -1 : 1;
}
