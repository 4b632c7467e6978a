/* SPDX-License-Identifier: Apache-2.0 */
/* live_tables: see live_tables.h. Stacks and threads, as a snapshot has them. */
#include "client/sql/live_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/procfs.h"
#include "client/session/call.h"
#include "base/model_json.h"
#include "store/ring/ring_tables.h"

#define LIVE_INTERVAL_MS 100 /* two looks tell what is on the CPU */
#define LIVE_LOCALS_MAX ((size_t)1024 * 1024)

enum live_backtrace_column {
    LIVE_FRAME_TID = 0,
    LIVE_FRAME_THREAD,
    LIVE_FRAME_DEPTH,
    LIVE_FRAME_FUNC,
    LIVE_FRAME_FILE,
    LIVE_FRAME_LINENO,
    LIVE_FRAME_KIND,
    LIVE_FRAME_LOCALS,
    LIVE_FRAME_COUNT
};

enum live_threads_column {
    LIVE_THREAD_TID = 0,
    LIVE_THREAD_NAME,
    LIVE_THREAD_NATIVE_NAME,
    LIVE_THREAD_STATE,
    LIVE_THREAD_ON_CPU,
    LIVE_THREAD_GIL,
    LIVE_THREAD_CPU_PCT,
    LIVE_THREAD_WCHAN,
    LIVE_THREAD_FUNC,
    LIVE_THREAD_FILE,
    LIVE_THREAD_LINENO,
    LIVE_THREAD_COUNT
};

static bool live_wants(uint64_t columns, int column) { return columns >> column & 1; }

static bool live_stop(void *arg) { return sql_sink_cancelled(arg); }

int live_lost(const struct live_target *t, struct err *e) {
    return err_set(e, ERR_LOST, "process %d has ended", (int)t->addr.pid);
}

/* One snapshot, of two looks if `measured`, with locals if `locals`. `out` is the caller's on success. */
static int live_snapshot(struct live_target *t, bool measured, bool locals, struct sql_sink *sink,
                         struct model_snapshot *out, struct err *e) {
    struct wire_threads want = {.locals = locals};
    memset(out, 0, sizeof *out);
    struct call *c = call_open(&t->addr, e);
    if (!c)
        return -1;
    call_set_stop(c, live_stop, sink);
    int rc;
    if (locals)
        rc = call_details(c, &want, out, e);
    else if (measured)
        rc = call_snapshot_measured(c, LIVE_INTERVAL_MS, out, e);
    else
        rc = call_snapshot(c, out, e);
    if (rc != 0)
        model_snapshot_fini(out);
    call_close(c);
    return rc;
}

static int live_failed(struct live_target *t, const struct err *e) {
    t->failure = *e;
    return -1;
}

/* Variables as JSON, in `text`; NULL unknown. */
static const char *live_put_locals(struct strbuf *text, const struct model_locals *l) {
    struct json j;
    if (!l)
        return NULL;
    strbuf_clear(text);
    json_init(&j, text, 0);
    model_json_put_variables(&j, l);
    return json_finish(&j) == 0 && !text->failed ? strbuf_str(text) : NULL;
}

static int live_put_frames(const struct model_thread *th, struct strbuf *text, struct sql_sink *sink) {
    const char *name = th->name ? th->name : th->native_name;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < th->n_frames; i++) {
        const struct model_frame *f = &th->frames[i];
        const struct model_locals *l = th->locals ? th->locals[i] : NULL;
        union ring_value row[LIVE_FRAME_COUNT] = {
            [LIVE_FRAME_TID].i = th->tid,
            [LIVE_FRAME_THREAD].s = name,
            [LIVE_FRAME_DEPTH].i = (int64_t)i,
            [LIVE_FRAME_FUNC].s = f->func,
            [LIVE_FRAME_FILE].s = f->file,
            [LIVE_FRAME_LINENO].i = f->line > 0 ? f->line : RING_INT_NULL,
            [LIVE_FRAME_KIND].i = f->kind == MODEL_FRAME_PYTHON ? 0 : 1,
            [LIVE_FRAME_LOCALS].s = live_put_locals(text, l),
        };
        rc = sql_sink_put(sink, row);
    }
    return rc;
}

static int live_scan_backtrace(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    struct model_snapshot s;
    struct strbuf text;
    if (live_snapshot(t, false, live_wants(columns, LIVE_FRAME_LOCALS), sink, &s, e) != 0)
        return live_failed(t, e);
    strbuf_init(&text, LIVE_LOCALS_MAX);
    for (size_t i = 0; i < s.n_threads; i++)
        if (live_put_frames(&s.threads[i], &text, sink) != 0)
            break;
    strbuf_fini(&text);
    model_snapshot_fini(&s);
    return 0;
}

/* Threads as the target numbers them and as this process does. */
struct live_tids {
    pid_t *here;
    int64_t *there;
    size_t n;
};

static void live_read_tids(pid_t pid, struct live_tids *out) {
    *out = (struct live_tids){.n = 0};
    size_t n;
    out->here = live_list_tids(pid, &n);
    out->there = out->here ? calloc(n, sizeof *out->there) : NULL;
    for (size_t i = 0; out->there && i < n; i++) {
        struct procfs_status st;
        bool known = procfs_read_status(pid, out->here[i], &st) == 0;
        out->there[out->n] = known && st.ns_pid > 0 ? st.ns_pid : out->here[i];
        out->here[out->n++] = out->here[i];
    }
}

static pid_t live_find_tid(const struct live_tids *t, int64_t there) {
    for (size_t i = 0; i < t->n; i++)
        if (t->there[i] == there)
            return t->here[i];
    return 0;
}

static int live_put_thread(pid_t pid, const struct live_tids *tids, const struct model_thread *th,
                           struct sql_sink *sink) {
    char wchan[64] = "";
    const struct model_frame *f = NULL;
    pid_t here = live_find_tid(tids, th->tid);
    for (size_t i = 0; i < th->n_frames && !f; i++)
        if (th->frames[i].kind == MODEL_FRAME_PYTHON)
            f = &th->frames[i];
    if (here > 0)
        live_read_wchan(pid, here, wchan, sizeof wchan);
    int state = ring_state_label(th->state);
    union ring_value row[LIVE_THREAD_COUNT] = {
        [LIVE_THREAD_TID].i = th->tid,
        [LIVE_THREAD_NAME].s = th->name,
        [LIVE_THREAD_NATIVE_NAME].s = th->native_name,
        [LIVE_THREAD_STATE].i = state < 0 ? RING_INT_NULL : state,
        [LIVE_THREAD_ON_CPU].i = th->on_cpu == MODEL_UNKNOWN ? RING_INT_NULL : th->on_cpu,
        [LIVE_THREAD_GIL].i = th->gil == MODEL_GIL_UNKNOWN ? RING_INT_NULL : (int64_t)th->gil - 1,
        [LIVE_THREAD_CPU_PCT].f = th->cpu_pct,
        [LIVE_THREAD_WCHAN].s = wchan[0] ? wchan : NULL,
        [LIVE_THREAD_FUNC].s = f ? f->func : NULL,
        [LIVE_THREAD_FILE].s = f ? f->file : NULL,
        [LIVE_THREAD_LINENO].i = f && f->line > 0 ? f->line : RING_INT_NULL,
    };
    return sql_sink_put(sink, row);
}

static int live_scan_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    struct model_snapshot s;
    struct live_tids tids = {.n = 0};
    bool measured = live_wants(columns, LIVE_THREAD_ON_CPU) || live_wants(columns, LIVE_THREAD_CPU_PCT);
    if (live_snapshot(t, measured, false, sink, &s, e) != 0)
        return live_failed(t, e);
    if (live_wants(columns, LIVE_THREAD_WCHAN))
        live_read_tids(t->addr.pid, &tids);
    for (size_t i = 0; i < s.n_threads; i++)
        if (s.threads[i].has_python && live_put_thread(t->addr.pid, &tids, &s.threads[i], sink) != 0)
            break;
    free(tids.here);
    free(tids.there);
    model_snapshot_fini(&s);
    return 0;
}

typedef int live_scan(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

static const struct {
    enum ring_table table;
    live_scan *scan;
    live_scan *afar; /* of a job that is no process of this machine */
    const char *key; /* column that the query must say; NULL none */
} live_tables[] = {
    {RING_BACKTRACE, live_scan_backtrace, live_scan_backtrace, NULL},
    {RING_THREADS, live_scan_threads, live_scan_threads, NULL},
    {RING_PROCESS, live_scan_process, live_scan_process_remote, NULL},
    {RING_SYSTEM_THREADS, live_scan_system_threads, live_scan_system_threads_remote, NULL},
    {RING_MODULES, live_scan_virtual, live_scan_virtual, NULL},
    {RING_TENSORS, live_scan_virtual, live_scan_virtual, NULL},
    {RING_TENSOR_GROWTH, live_scan_virtual, live_scan_virtual, NULL},
    {RING_TENSOR_STATISTICS, live_scan_virtual, live_scan_virtual, "id"},
    {RING_TENSOR_HOLDERS, live_scan_virtual, live_scan_virtual, "id"},
    {RING_LOADER_WORKERS, live_scan_loader_workers, live_scan_loader_workers_remote, NULL},
};
#define LIVE_TABLES (sizeof live_tables / sizeof live_tables[0])
_Static_assert(LIVE_TABLES <= LIVE_TABLES_MAX, "room for the tables");

size_t live_tables_fill(struct live_target *t, struct sql_provider *out) {
    for (size_t i = 0; i < LIVE_TABLES; i++) {
        out[i] = (struct sql_provider){.def = &RING_TABLES[live_tables[i].table],
                                       .key = live_tables[i].key,
                                       .scan = t->addr.pid > 0 ? live_tables[i].scan : live_tables[i].afar,
                                       .arg = t};
    }
    return LIVE_TABLES;
}

bool live_tables_have(const struct ring_table_def *def) {
    for (size_t i = 0; i < LIVE_TABLES; i++)
        if (&RING_TABLES[live_tables[i].table] == def)
            return true;
    return false;
}
