/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_remote: see live_tables.h. The agent's facts about the process and its threads, for
 * tables that are read from /proc if the process is on this machine. Missing facts are NULL.
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/procfs.h"
#include "base/strbuf.h"
#include "client/session/call.h"
#include "client/sql/live_tables.h"
#include "store/ring/ring_tables.h"

#define LIVE_REMOTE_MIB (1024.0 * 1024.0)
/* start times may differ by this: the clock may have been set between two readings */
#define LIVE_REMOTE_CLOCK_S 1.0
#define LIVE_REMOTE_CMDLINE ((size_t)64 * 1024)
#define LIVE_REMOTE_INTERVAL_MS 100 /* between two readings of CPU clocks */

/* Open a connection and take a measured snapshot, both owned by the caller; NULL with the error. */
static struct call *live_remote_ask(struct live_target *t, struct sql_sink *sink, struct model_snapshot *s,
                                    struct err *e) {
    struct call *c = live_connect(t, sink, e);
    if (c) {
        if (call_snapshot_measured(c, LIVE_REMOTE_INTERVAL_MS, s, e) == 0)
            return c;
        model_snapshot_fini(s);
        call_close(c);
    }
    t->failure = *e;
    return NULL;
}

static int64_t live_remote_label(char state) {
    int label = ring_state_label(state);
    return label < 0 ? RING_INT_NULL : label;
}

/* True if process `pid` of this machine is the one that `m` describes. */
static bool live_remote_is_here(pid_t pid, const struct model_target *m) {
    struct utsname here;
    struct procfs_status st;
    struct strbuf cmdline;
    double started = procfs_started_at(pid);
    if (!m->host || uname(&here) != 0 || strcmp(here.nodename, m->host) != 0 ||
        procfs_read_status(pid, 0, &st) != 0 || st.ns_pid != pid ||
        !(fabs(started - m->started_at) < LIVE_REMOTE_CLOCK_S))
        return false;
    strbuf_init(&cmdline, LIVE_REMOTE_CMDLINE);
    bool same = procfs_read_cmdline(pid, &cmdline) == 0 && m->cmdline &&
                strncmp(strbuf_str(&cmdline), m->cmdline, strlen(m->cmdline)) == 0;
    strbuf_fini(&cmdline);
    return same;
}

int live_remote_find_here(struct live_target *t, pid_t *pid, struct err *e) {
    struct call *c = live_connect(t, NULL, e);
    if (!c) {
        t->failure = *e;
        return -1;
    }
    const struct model_target *m = call_get_target(c);
    bool here = m->pid > 0 && m->pid <= INT_MAX && live_remote_is_here((pid_t)m->pid, m);
    *pid = here ? (pid_t)m->pid : 0;
    call_close(c);
    return 0;
}

int live_scan_process_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct model_snapshot s;
    struct call *c = live_remote_ask(arg, sink, &s, e);
    (void)columns;
    if (!c)
        return -1;
    const struct model_process *p = &s.process;
    const char *cmd = call_get_target(c)->cmdline;
    union ring_value row[RING_PROCESS_COUNT] = {
        [RING_PROCESS_PPID].i = RING_INT_NULL,
        [RING_PROCESS_CMD].s = cmd && cmd[0] ? cmd : NULL,
        [RING_PROCESS_STATE].i = s.n_threads > 0 ? live_remote_label(s.threads[0].state) : RING_INT_NULL,
        [RING_PROCESS_CPU_PCT].f = p->cpu_pct,
        [RING_PROCESS_RSS_MB].f = p->rss_bytes < 0 ? NAN : (double)p->rss_bytes / LIVE_REMOTE_MIB,
        [RING_PROCESS_THREADS].i = p->n_threads < 0 ? RING_INT_NULL : p->n_threads,
        [RING_PROCESS_FDS].i = RING_INT_NULL,
        [RING_PROCESS_UPTIME_S].f = p->uptime_s,
    };
    sql_sink_put(sink, row);
    model_snapshot_fini(&s);
    call_close(c);
    return 0;
}

int live_scan_system_threads_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct model_snapshot s;
    struct call *c = live_remote_ask(arg, sink, &s, e);
    (void)columns;
    if (!c)
        return -1;
    for (size_t i = 0; i < s.n_threads; i++) {
        const struct model_thread *t = &s.threads[i];
        union ring_value row[RING_SYSTEM_THREADS_COUNT] = {
            [RING_SYSTEM_THREADS_TID].i = t->tid,
            [RING_SYSTEM_THREADS_NATIVE_NAME].s = t->native_name,
            [RING_SYSTEM_THREADS_STATE].i = live_remote_label(t->state),
            [RING_SYSTEM_THREADS_CPU_PCT].f = t->cpu_pct,
            [RING_SYSTEM_THREADS_WCHAN].s = NULL,
        };
        if (sql_sink_put(sink, row) != 0)
            break;
    }
    model_snapshot_fini(&s);
    call_close(c);
    return 0;
}
