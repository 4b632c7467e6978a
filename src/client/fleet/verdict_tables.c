/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_tables: see verdict_tables.h. */
#include "client/fleet/verdict_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/pace.h"
#include "store/ring/ring.h"

#define VERDICT_TABLES_FRESH_NS CLOCK_NS_PER_S
#define VERDICT_TABLES_PACE_S 5.0 /* for the steps of all ranks to be read */
#define VERDICT_TABLES_RANGES 256 /* of a set of ranks in a cell */
#define VERDICT_TABLES_CELL 65536

enum {
    VERDICTS_CODE,
    VERDICTS_LEVEL,
    VERDICTS_CAUSE,
    VERDICTS_RANKS,
    VERDICTS_WAITING,
    VERDICTS_SINCE,
    VERDICTS_TEXT,
    VERDICTS_PG,
    VERDICTS_OP,
    VERDICTS_NUMBER,
    VERDICTS_FUNC,
    VERDICTS_FILE,
    VERDICTS_LINENO,
    VERDICTS_BY_STACKS,
    VERDICTS_EVIDENCE,
    VERDICTS_DENIED,
    VERDICTS_COUNT
};

static const struct ring_column_def verdict_columns[] = {
    {.name = "code",
     .type = RING_TEXT,
     .help = "MOVING, WAITING, WAITS FOR, HUNG, MISMATCH, DEADLOCK, ALL ALIKE, UNKNOWN; beside MOVING "
             "STRAGGLER or IMBALANCE"},
    {.name = "level", .type = RING_TEXT, .help = "fine, note, warning or bad"},
    {.name = "cause",
     .type = RING_TEXT,
     .help = "why a rank does not get there: DEAD, STOPPED, GIL, LOADER, ...; NULL: nobody is accused"},
    {.name = "ranks", .type = RING_TEXT, .help = "ranks for which others wait; NULL: nobody is accused"},
    {.name = "waiting", .type = RING_TEXT, .help = "ranks that wait for them"},
    {.name = "since_s", .type = RING_DOUBLE, .unit = "s", .help = "for how long they have waited"},
    {.name = "text", .type = RING_TEXT, .help = "the verdict in words"},
    {.name = "pg", .type = RING_TEXT, .help = "process group in which they wait"},
    {.name = "op", .type = RING_TEXT, .help = "collective in which they wait"},
    {.name = "number", .type = RING_INT64, .help = "of that collective in its group, counted from 1"},
    {.name = "func",
     .type = RING_TEXT,
     .help = "where the first of these ranks is: function of the job's own code"},
    {.name = "file", .type = RING_TEXT, .help = "its file"},
    {.name = "lineno", .type = RING_INT64, .help = "its line"},
    {.name = "by_stacks", .type = RING_BOOL, .help = "1: no agent has given counters"},
    {.name = "evidence", .type = RING_TEXT, .help = "what was read, a line each"},
    {.name = "denied", .type = RING_TEXT, .help = "what was checked, and is fine"},
    {.name = NULL},
};

enum {
    GROUPS_PG,
    GROUPS_DESC,
    GROUPS_SIZE,
    GROUPS_MEMBERS,
    GROUPS_ENQUEUED_MIN,
    GROUPS_ENQUEUED_MAX,
    GROUPS_COMPLETED_MIN,
    GROUPS_COMPLETED_MAX,
    GROUPS_MOVES,
    GROUPS_BEHIND,
    GROUPS_SILENT,
    GROUPS_MISMATCH,
    GROUPS_SINCE,
    GROUPS_COUNT
};

static const struct ring_column_def group_columns[] = {
    {.name = "pg", .type = RING_TEXT, .help = "name of the process group; NULL: ranks by their stacks alone"},
    {.name = "desc", .type = RING_TEXT, .help = "what the program calls it"},
    {.name = "size", .type = RING_INT64, .help = "how many ranks it has"},
    {.name = "members", .type = RING_TEXT, .help = "those that are known"},
    {.name = "enqueued_min", .type = RING_INT64, .help = "collectives that every member has entered"},
    {.name = "enqueued_max", .type = RING_INT64, .help = "collectives that some member has entered"},
    {.name = "completed_min", .type = RING_INT64, .help = "collectives that every member has completed"},
    {.name = "completed_max", .type = RING_INT64, .help = "collectives that some member has completed"},
    {.name = "moves", .type = RING_BOOL, .help = "1: the numbers grew between the two readings"},
    {.name = "behind", .type = RING_TEXT, .help = "ranks that others wait for"},
    {.name = "silent", .type = RING_TEXT, .help = "of these, ranks that gave no answer or have no process"},
    {.name = "mismatch", .type = RING_TEXT, .help = "ranks that entered another operation"},
    {.name = "since_s", .type = RING_DOUBLE, .unit = "s", .help = "the longest wait in it; NULL: none"},
    {.name = NULL},
};

/* ---- rows ---- */

static const char *verdict_tables_text(const char *text) { return text && text[0] ? text : NULL; }

static int64_t verdict_tables_count(int64_t n) { return n >= 0 ? n : RING_INT_NULL; }

static const char *verdict_tables_set(const struct rank_set *s, struct strbuf *text) {
    strbuf_init(text, VERDICT_TABLES_CELL);
    rank_set_put(s, VERDICT_TABLES_RANGES, text);
    return verdict_tables_text(strbuf_str(text));
}

static void verdict_tables_put_evidence(const struct fleet_verdict *v, struct strbuf *out) {
    strbuf_init(out, VERDICT_TABLES_CELL);
    for (size_t i = 0; i < v->n_evidence; i++) {
        const struct fleet_verdict_evidence *e = &v->evidence[i];
        strbuf_adds(out, i ? "\n" : "");
        if (e->rank >= 0)
            strbuf_addf(out, "rank %d, ", (int)e->rank);
        strbuf_addf(out, "%s: %s", e->witness, e->text);
    }
}

static int verdict_tables_put_verdict(const struct fleet_verdict *v, struct sql_sink *sink) {
    struct strbuf ranks, waiting, evidence;
    verdict_tables_put_evidence(v, &evidence);
    const union ring_value row[VERDICTS_COUNT] = {
        [VERDICTS_CODE].s = fleet_verdict_code_name(v->code),
        [VERDICTS_LEVEL].s = verdict_level_name(v->level),
        [VERDICTS_CAUSE].s = fleet_verdict_cause_name(v->cause),
        [VERDICTS_RANKS].s = verdict_tables_set(&v->ranks, &ranks),
        [VERDICTS_WAITING].s = verdict_tables_set(&v->waiting, &waiting),
        [VERDICTS_SINCE].f = v->since_s,
        [VERDICTS_TEXT].s = v->text,
        [VERDICTS_PG].s = verdict_tables_text(v->pg),
        [VERDICTS_OP].s = verdict_tables_text(v->op),
        [VERDICTS_NUMBER].i = v->number ? v->number : RING_INT_NULL,
        [VERDICTS_FUNC].s = verdict_tables_text(v->at.func),
        [VERDICTS_FILE].s = verdict_tables_text(v->at.file),
        [VERDICTS_LINENO].i = v->at.line > 0 ? v->at.line : RING_INT_NULL,
        [VERDICTS_BY_STACKS].i = v->by_stacks,
        [VERDICTS_EVIDENCE].s = verdict_tables_text(strbuf_str(&evidence)),
        [VERDICTS_DENIED].s = verdict_tables_text(v->denied),
    };
    int rc = sql_sink_put(sink, row);
    strbuf_fini(&ranks);
    strbuf_fini(&waiting);
    strbuf_fini(&evidence);
    return rc;
}

static int verdict_tables_put_group(const struct fleet_verdict_group *g, struct sql_sink *sink) {
    struct strbuf members, behind, silent, mismatch;
    const union ring_value row[GROUPS_COUNT] = {
        [GROUPS_PG].s = verdict_tables_text(g->pg),
        [GROUPS_DESC].s = verdict_tables_text(g->desc),
        [GROUPS_SIZE].i = verdict_tables_count(g->size),
        [GROUPS_MEMBERS].s = verdict_tables_set(&g->members, &members),
        [GROUPS_ENQUEUED_MIN].i = verdict_tables_count(g->enqueued_min),
        [GROUPS_ENQUEUED_MAX].i = verdict_tables_count(g->enqueued_max),
        [GROUPS_COMPLETED_MIN].i = verdict_tables_count(g->completed_min),
        [GROUPS_COMPLETED_MAX].i = verdict_tables_count(g->completed_max),
        [GROUPS_MOVES].i = g->moves,
        [GROUPS_BEHIND].s = verdict_tables_set(&g->behind, &behind),
        [GROUPS_SILENT].s = verdict_tables_set(&g->silent, &silent),
        [GROUPS_MISMATCH].s = verdict_tables_set(&g->mismatch, &mismatch),
        [GROUPS_SINCE].f = g->since_s,
    };
    int rc = sql_sink_put(sink, row);
    strbuf_fini(&members);
    strbuf_fini(&behind);
    strbuf_fini(&silent);
    strbuf_fini(&mismatch);
    return rc;
}

/* ---- reading ---- */

static bool verdict_tables_stop(void *arg) { return sql_sink_cancelled(arg); }

/* The ranks of hosts, or of a database: all of them, whichever the target names. */
static int verdict_tables_open_there(struct verdict_tables *t, struct err *e) {
    const char *ranks = fleet_open_find_ranks(t->target);
    char *job = strndup(t->target, ranks ? (size_t)(ranks - t->target) : strlen(t->target));
    if (!job)
        return err_set(e, ERR_FAILED, "out of memory for the verdicts");
    int rc = watch_there_open(&t->there, job, t->reach, e);
    free(job);
    if (rc != 0)
        watch_there_close(&t->there);
    t->watch = t->there.watch;
    return rc;
}

static int verdict_tables_open(struct verdict_tables *t, struct err *e) {
    if (fleet_open_is_far(t->target, t->reach))
        return verdict_tables_open_there(t, e);
    t->watch = fleet_watch_open(t->target, e);
    return t->watch ? 0 : -1;
}

static int verdict_tables_ask_watch(struct verdict_tables *t, struct sql_sink *sink, struct err *e) {
    fleet_verdicts_fini(&t->verdicts);
    return fleet_watch_ask(t->watch, FLEET_WATCH_WAIT_S, verdict_tables_stop, sink, &t->verdicts, e);
}

/* As watch_there_ask of other hosts: once more if ranks were started meanwhile. */
static int verdict_tables_ask_here(struct verdict_tables *t, struct sql_sink *sink, struct err *e) {
    if (fleet_watch_renew(&t->watch, t->target, e) < 0 || verdict_tables_ask_watch(t, sink, e) != 0)
        return -1;
    int more = verdict_tables_stop(sink) ? 0 : fleet_watch_renew(&t->watch, t->target, e);
    return more > 0 ? verdict_tables_ask_watch(t, sink, e) : more;
}

static int verdict_tables_judge(struct verdict_tables *t, struct sql_sink *sink, struct err *e) {
    if (t->judged_ns && clock_mono_ns() - t->judged_ns < VERDICT_TABLES_FRESH_NS)
        return 0;
    if (!t->watch && verdict_tables_open(t, e) != 0)
        return -1;
    fleet_verdicts_fini(&t->verdicts);
    int rc = t->there.source
                 ? watch_there_ask(&t->there, FLEET_WATCH_WAIT_S, verdict_tables_stop, sink, &t->verdicts, e)
                 : verdict_tables_ask_here(t, sink, e);
    t->watch = t->there.source ? t->there.watch : t->watch;
    if (rc != 0)
        return -1;
    struct fleet_verdicts *v = &t->verdicts;
    if (t->source && v->n && v->items[0].code == FLEET_CODE_MOVING) {
        if (fleet_source_fill(t->source, 1, VERDICT_TABLES_PACE_S, verdict_tables_stop, sink, e) != 0)
            return -1;
        if (pace_put_verdicts(fleet_source_get(t->source), v) != 0)
            return err_set(e, ERR_FAILED, "out of memory for the verdicts");
    }
    t->judged_ns = clock_mono_ns();
    return 0;
}

static int verdict_tables_scan(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    const struct verdict_table_source *source = arg;
    struct verdict_tables *t = source->owner;
    int rc = 0;
    (void)columns;
    if (verdict_tables_judge(t, sink, e) != 0)
        return -1;
    const struct fleet_verdicts *v = &t->verdicts;
    if (source->table == VERDICT_TABLE_VERDICTS)
        for (size_t i = 0; rc == 0 && i < v->n; i++)
            rc = verdict_tables_put_verdict(&v->items[i], sink);
    else
        for (size_t i = 0; rc == 0 && i < v->n_groups; i++)
            rc = verdict_tables_put_group(&v->groups[i], sink);
    return 0;
}

static const struct ring_table_def verdict_tables_defs[VERDICT_TABLE_COUNT] = {
    [VERDICT_TABLE_VERDICTS] = {.name = "cluster.verdicts",
                                .help = "what keeps a job from going on, or makes it slow, and which rank",
                                .columns = verdict_columns},
    [VERDICT_TABLE_GROUPS] = {.name = "cluster.groups",
                              .help = "a process group of the job, in all its ranks together",
                              .columns = group_columns},
};

void verdict_tables_init(struct verdict_tables *t, const char *target, const struct fleet_reach *reach) {
    *t = (struct verdict_tables){.target = target, .reach = reach};
    for (size_t i = 0; i < VERDICT_TABLE_COUNT; i++) {
        t->sources[i] = (struct verdict_table_source){.owner = t, .table = (enum verdict_table)i};
        t->providers[i] = (struct sql_provider){
            .def = &verdict_tables_defs[i], .scan = verdict_tables_scan, .arg = &t->sources[i]};
    }
}

void verdict_tables_set_source(struct verdict_tables *t, struct fleet_source *source) { t->source = source; }

void verdict_tables_forget(struct verdict_tables *t) {
    fleet_verdicts_fini(&t->verdicts);
    if (t->there.source)
        watch_there_close(&t->there);
    else
        fleet_watch_free(t->watch);
    t->watch = NULL;
    t->judged_ns = 0;
}

void verdict_tables_fini(struct verdict_tables *t) {
    verdict_tables_forget(t);
    *t = (struct verdict_tables){.target = NULL};
}
