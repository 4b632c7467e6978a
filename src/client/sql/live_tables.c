/* SPDX-License-Identifier: Apache-2.0 */
/* live_tables: see live_tables.h. Stacks and threads, from a snapshot. */
#include "client/sql/live_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/procfs.h"
#include "client/session/call.h"
#include "base/model_json.h"
#include "base/model_text.h"
#include "store/ring/ring_tables.h"

#define LIVE_INTERVAL_MS 100 /* two snapshots show which threads are on the CPU */
/* whoever on another host has not answered after this is silent, until its tables are copied again (database.c) */
#define LIVE_SILENT_NS CLOCK_NS_PER_S
#define LIVE_WAIT_MAX 4096 /* bytes of the text about what a thread waits for */
#define LIVE_LOCALS_MAX ((size_t)1024 * 1024)

static bool live_wants(uint64_t columns, int column) { return columns >> column & 1; }

static bool live_stop(void *arg) { return sql_sink_cancelled(arg); }

struct call *live_connect(struct live_target *t, struct sql_sink *sink, struct err *e) {
    if (t->silent.code != ERR_OK) {
        *e = t->silent;
        return NULL;
    }
    uint64_t began = clock_mono_ns();
    struct call *c = call_open_stoppable(&t->addr, sink ? live_stop : NULL, sink, e);
    /* Each of its tables would wait as long. */
    if (!c && t->addr.tunnel > 0 && clock_mono_ns() - began > LIVE_SILENT_NS && !(sink && live_stop(sink)))
        t->silent = *e;
    return c;
}

int live_lost(const struct live_target *t, struct err *e) {
    return err_set(e, ERR_LOST, "process %d has ended", (int)t->addr.pid);
}

/* Take one snapshot, after a first one if `measured`, with locals if `locals`. The caller owns
 * `out` on success. */
static int live_snapshot(struct live_target *t, bool measured, bool locals, struct sql_sink *sink,
                         struct model_snapshot *out, struct err *e) {
    struct wire_threads want = {.locals = locals};
    memset(out, 0, sizeof *out);
    struct call *c = live_connect(t, sink, e);
    if (!c)
        return -1;
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

/* Format variables as JSON in `text`; NULL unknown. */
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
        union ring_value row[RING_BACKTRACE_COUNT] = {
            [RING_BACKTRACE_TID].i = th->tid,
            [RING_BACKTRACE_THREAD].s = name,
            [RING_BACKTRACE_DEPTH].i = (int64_t)i,
            [RING_BACKTRACE_FUNC].s = f->func,
            [RING_BACKTRACE_FILE].s = f->file,
            [RING_BACKTRACE_LINENO].i = f->line > 0 ? f->line : RING_INT_NULL,
            [RING_BACKTRACE_KIND].i = f->kind == MODEL_FRAME_PYTHON ? 0 : 1,
            [RING_BACKTRACE_LOCALS].s = live_put_locals(text, l),
        };
        rc = sql_sink_put(sink, row);
    }
    return rc;
}

static int live_scan_backtrace(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    struct model_snapshot s;
    struct strbuf text;
    if (live_snapshot(t, false, live_wants(columns, RING_BACKTRACE_LOCALS), sink, &s, e) != 0)
        return live_failed(t, e);
    strbuf_init(&text, LIVE_LOCALS_MAX);
    for (size_t i = 0; i < s.n_threads; i++)
        if (live_put_frames(&s.threads[i], &text, sink) != 0)
            break;
    strbuf_fini(&text);
    model_snapshot_fini(&s);
    return 0;
}

/* Thread ids in the target's numbering and in ours. */
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

static int live_put_thread(pid_t pid, const struct live_tids *tids, const struct model_snapshot *s,
                           const struct model_thread *th, struct sql_sink *sink) {
    char wchan[64] = "";
    const struct model_frame *f = NULL;
    pid_t here = live_find_tid(tids, th->tid);
    for (size_t i = 0; i < th->n_frames && !f; i++)
        if (th->frames[i].kind == MODEL_FRAME_PYTHON)
            f = &th->frames[i];
    if (here > 0)
        live_read_wchan(pid, here, wchan, sizeof wchan);
    int state = ring_state_label(th->state);
    const struct model_wait *w = &th->wait;
    struct strbuf text;
    strbuf_init(&text, LIVE_WAIT_MAX);
    model_text_put_wait(&text, s, th, false);
    union ring_value row[RING_THREADS_COUNT] = {
        [RING_THREADS_TID].i = th->tid,
        [RING_THREADS_NAME].s = th->name,
        [RING_THREADS_NATIVE_NAME].s = th->native_name,
        [RING_THREADS_STATE].i = state < 0 ? RING_INT_NULL : state,
        [RING_THREADS_ON_CPU].i = th->on_cpu == MODEL_UNKNOWN ? RING_INT_NULL : th->on_cpu,
        [RING_THREADS_GIL].i = th->gil == MODEL_GIL_UNKNOWN ? RING_INT_NULL : (int64_t)th->gil - 1,
        [RING_THREADS_CPU_PCT].f = th->cpu_pct,
        [RING_THREADS_WCHAN].s = wchan[0] ? wchan : NULL,
        [RING_THREADS_FUNC].s = f ? f->func : NULL,
        [RING_THREADS_FILE].s = f ? f->file : NULL,
        [RING_THREADS_LINENO].i = f && f->line > 0 ? f->line : RING_INT_NULL,
        [RING_THREADS_WAITS_FOR].s = text.len ? strbuf_str(&text) : NULL,
        [RING_THREADS_WAITS_KIND].s = model_wait_kind_name(w->kind),
        [RING_THREADS_WAITS_TID].i = w->tid ? (int64_t)w->tid : RING_INT_NULL,
        [RING_THREADS_WAITS_PID].i = w->pid ? (int64_t)w->pid : RING_INT_NULL,
        [RING_THREADS_WAITS_SURE].i = w->tid ? !(w->flags & MODEL_WAIT_LIKELY) : RING_INT_NULL,
        [RING_THREADS_WAITS_S].f = w->for_us ? (double)w->for_us / 1e6 : NAN,
        [RING_THREADS_DEADLOCK].i = w->kind ? (w->flags & MODEL_WAIT_DEADLOCK) != 0 : RING_INT_NULL,
    };
    int rc = sql_sink_put(sink, row);
    strbuf_fini(&text);
    return rc;
}

static int live_scan_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    struct model_snapshot s;
    struct live_tids tids = {.n = 0};
    bool measured = live_wants(columns, RING_THREADS_ON_CPU) || live_wants(columns, RING_THREADS_CPU_PCT) ||
                    live_wants(columns, RING_THREADS_WAITS_S);
    if (live_snapshot(t, measured, false, sink, &s, e) != 0)
        return live_failed(t, e);
    if (live_wants(columns, RING_THREADS_WCHAN))
        live_read_tids(t->addr.pid, &tids);
    for (size_t i = 0; i < s.n_threads; i++)
        if (s.threads[i].has_python && live_put_thread(t->addr.pid, &tids, &s, &s.threads[i], sink) != 0)
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
    live_scan *remote; /* of a job on another machine */
    const char *key;   /* column that the query must name; NULL none */
} live_tables[] = {
#define LIVE_TABLE(id, name, scan, remote, help) {RING_##id, scan, remote, NULL},
#define PYTHON_TABLE(id, name, unit, function, roots, key, help)                                             \
    {RING_##id, live_scan_virtual, live_scan_virtual, key},
#include "store/ring/tables.def"
};
#define LIVE_TABLES (sizeof live_tables / sizeof live_tables[0])
_Static_assert(LIVE_TABLES <= LIVE_TABLES_MAX, "room for the tables");

const char *live_tables_key(enum ring_table table) {
    for (size_t i = 0; i < LIVE_TABLES; i++)
        if (live_tables[i].table == table)
            return live_tables[i].key;
    return NULL;
}

size_t live_tables_fill(struct live_target *t, struct sql_provider *out) {
    for (size_t i = 0; i < LIVE_TABLES; i++)
        out[i] = (struct sql_provider){.def = &RING_TABLES[live_tables[i].table],
                                       .key = live_tables[i].key,
                                       .scan = t->addr.pid > 0 ? live_tables[i].scan : live_tables[i].remote,
                                       .arg = t};
    return LIVE_TABLES;
}
