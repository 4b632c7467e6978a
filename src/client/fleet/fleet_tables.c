/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_tables: see fleet_tables.h. */
#include "client/fleet/fleet_tables.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/strbuf.h"
#include "store/ring/ring.h"

#define FLEET_TABLES_LIMIT_S 10.0
#define FLEET_TABLES_FRESH_NS CLOCK_NS_PER_S
#define FLEET_TABLES_RANGES 256 /* of a set of ranks in a cell */
#define FLEET_TABLES_CELL 65536
#define FLEET_TABLES_MIB (1024.0 * 1024.0)

/* Takes the rows of a table. 0, or -1: stop. */
struct fleet_sink {
    int (*put)(void *arg, const union ring_value *row);
    void *arg;
};

void fleet_put_stack(const struct stack_classes *c, uint32_t node, struct strbuf *out) {
    uint32_t path[STACK_CLASSES_DEPTH + 1];
    size_t n = 0;
    for (; node != STACK_CLASSES_ROOT && n < STACK_CLASSES_DEPTH; node = c->nodes[node].parent)
        path[n++] = node;
    while (n-- > 0) {
        const struct stack_node *s = &c->nodes[path[n]];
        strbuf_addf(out, "%s%s (%s", out->len ? ";" : "", s->func[0] ? s->func : "?", path_short(s->file));
        strbuf_addf(out, s->line ? ":%d)" : ")", s->line);
    }
}

static double fleet_round(double v, double to) { return isnan(v) ? NAN : round(v * to) / to; }

/* ---- hosts ---- */

enum {
    NODES_HOST,
    NODES_VIA,
    NODES_STATE,
    NODES_JOB,
    NODES_RANKS,
    NODES_MISSING,
    NODES_ELSEWHERE,
    NODES_WORLD,
    NODES_FOUND_BY,
    NODES_LAUNCHER,
    NODES_RESTARTS,
    NODES_USER,
    NODES_GPUS,
    NODES_RTT,
    NODES_CLOCK_OFFSET,
    NODES_CLOCK_ERROR,
    NODES_COST,
    NODES_LOST,
    NODES_SEEN,
    NODES_NOTE,
    NODES_COUNT
};

static const struct ring_column_def fleet_node_columns[] = {
    {.name = "host", .type = RING_TEXT, .help = "its name"},
    {.name = "via", .type = RING_TEXT, .help = "how it is reached"},
    {.name = "state", .type = RING_TEXT, .help = "ok, ranks missing, or no answer"},
    {.name = "job", .type = RING_TEXT, .help = "name of the job"},
    {.name = "ranks", .type = RING_TEXT, .help = "ranks that are processes of the host"},
    {.name = "missing", .type = RING_TEXT, .help = "ranks that were promised to it, and no process has"},
    {.name = "elsewhere", .type = RING_TEXT, .help = "the other ranks of the job"},
    {.name = "world", .type = RING_INT64, .help = "ranks of the job"},
    {.name = "found_by", .type = RING_TEXT, .help = "the launcher whose variables name the ranks"},
    {.name = "launcher", .type = RING_INT64, .help = "its process; NULL: not found"},
    {.name = "restarts", .type = RING_INT64, .help = "how often it started the ranks again"},
    {.name = "user", .type = RING_TEXT, .help = "whose job it is"},
    {.name = "gpus", .type = RING_INT64, .help = "GPUs of the host; NULL: unknown, or it has none"},
    {.name = "rtt_ms", .type = RING_DOUBLE, .unit = "ms", .help = "time of a request to its relay"},
    {.name = "clock_offset_ms",
     .type = RING_DOUBLE,
     .unit = "ms",
     .help = "its clock is ahead of this host's by so much; its times are corrected by that"},
    {.name = "clock_error_ms", .type = RING_DOUBLE, .unit = "ms", .help = "give or take"},
    {.name = "relay_cost_pct", .type = RING_DOUBLE, .unit = "%", .help = "of one core, that its relay takes"},
    {.name = "lost",
     .type = RING_INT64,
     .help = "rows of its ranks that could not be written to the database; NULL: none is written"},
    {.name = "last_seen", .type = RING_TIMESTAMP, .unit = "s", .help = "when its relay last answered"},
    {.name = "note", .type = RING_TEXT, .help = "what is wrong; NULL: nothing"},
    {.name = NULL},
};

static int fleet_scan_nodes(const struct fleet *f, const struct fleet_sink *sink) {
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n_nodes; i++) {
        const struct fleet_node *n = &f->nodes[i];
        const union ring_value row[NODES_COUNT] = {
            [NODES_HOST].s = n->host,
            [NODES_VIA].s = n->via,
            [NODES_STATE].s = n->state,
            [NODES_JOB].s = n->job.name,
            [NODES_RANKS].s = n->job.ranks,
            [NODES_MISSING].s = n->job.missing,
            [NODES_ELSEWHERE].s = n->job.elsewhere,
            [NODES_WORLD].i = n->job.world,
            [NODES_FOUND_BY].s = n->job.found_by,
            [NODES_LAUNCHER].i = n->job.launcher,
            [NODES_RESTARTS].i = n->job.restarts,
            [NODES_USER].s = n->job.user,
            [NODES_GPUS].i = n->job.gpus,
            [NODES_RTT].f = fleet_round(n->rtt_ms, 1000),
            [NODES_CLOCK_OFFSET].f = fleet_round(n->clock_offset_ms, 1000),
            [NODES_CLOCK_ERROR].f = fleet_round(n->clock_error_ms, 1000),
            [NODES_COST].f = fleet_round(n->cost_pct, 1000),
            [NODES_LOST].i = n->lost,
            [NODES_SEEN].f = n->seen_at,
            [NODES_NOTE].s = n->note ? n->note : f->note,
        };
        rc = sink->put(sink->arg, row);
    }
    return rc;
}

/* ---- ranks ---- */

enum {
    RANKS_RANK,
    RANKS_HOST,
    RANKS_PID,
    RANKS_LOCAL,
    RANKS_STATE,
    RANKS_SINCE,
    RANKS_STEP,
    RANKS_STEP_MS,
    RANKS_DATA_MS,
    RANKS_GC_MS,
    RANKS_COMM_MS,
    RANKS_OWN_MS,
    RANKS_LAG_MS,
    RANKS_LAST,
    RANKS_ROLE,
    RANKS_WAITS_FOR,
    RANKS_CLASS,
    RANKS_FUNC,
    RANKS_FILE,
    RANKS_LINENO,
    RANKS_CPU,
    RANKS_THREAD_CPU,
    RANKS_RSS,
    RANKS_GPU_UTIL,
    RANKS_GPU_MEM,
    RANKS_POWER,
    RANKS_DEVICE,
    RANKS_AGENT,
    RANKS_TAKEN,
    RANKS_NOTE,
    RANKS_COUNT
};

static const struct ring_column_def fleet_rank_columns[] = {
    {.name = "rank", .type = RING_INT64, .help = "its number"},
    {.name = "host", .type = RING_TEXT, .help = "where its process is"},
    {.name = "pid", .type = RING_INT64, .help = "its process; NULL: missing"},
    {.name = "local_rank", .type = RING_INT64, .help = "its number on its host"},
    {.name = "state",
     .type = RING_TEXT,
     .help = "computes, collective, waits for GPU, loader, gc, checkpoint, waits, stopped, ended, missing, "
             "no news"},
    {.name = "since_s",
     .type = RING_DOUBLE,
     .unit = "s",
     .help = "for so long each sample had the same stack, at least"},
    {.name = "step", .type = RING_INT64, .help = "last training step, as its agent counts; NULL: no agent"},
    {.name = "step_ms", .type = RING_DOUBLE, .unit = "ms", .help = "duration of that"},
    {.name = "data_ms", .type = RING_DOUBLE, .unit = "ms", .help = "of that, fetching batches"},
    {.name = "gc_ms", .type = RING_DOUBLE, .unit = "ms", .help = "of that, collecting garbage"},
    {.name = "comm_ms", .type = RING_DOUBLE, .unit = "ms", .help = "of that, while a collective ran"},
    {.name = "own_ms",
     .type = RING_DOUBLE,
     .unit = "ms",
     .help = "a step without the waits for other ranks in collectives: the median of the last ones; NULL: "
             "not known, as with NCCL"},
    {.name = "lag_ms",
     .type = RING_DOUBLE,
     .unit = "ms",
     .help = "how much later than the first it comes to collectives in a step: the median of the last ones"},
    {.name = "last_pct",
     .type = RING_DOUBLE,
     .unit = "%",
     .help = "of the last steps, those in which it came last"},
    {.name = "role",
     .type = RING_INT64,
     .help = "ranks of one role end their steps together, and are compared; NULL: it fits none"},
    {.name = "waits_for", .type = RING_TEXT, .help = "what its main thread waits for, where that is known"},
    {.name = "class_id", .type = RING_INT64, .help = "its stack, as cluster.stacks numbers it"},
    {.name = "func", .type = RING_TEXT, .help = "innermost function of the job's own code"},
    {.name = "file", .type = RING_TEXT, .help = "its file"},
    {.name = "lineno", .type = RING_INT64, .help = "its line"},
    {.name = "cpu_pct",
     .type = RING_DOUBLE,
     .unit = "%",
     .help = "of one core, all threads, since the sample before"},
    {.name = "thread_cpu_pct", .type = RING_DOUBLE, .unit = "%", .help = "the main thread alone"},
    {.name = "rss_mb", .type = RING_DOUBLE, .unit = "MiB", .help = "memory in RAM"},
    {.name = "gpu_util",
     .type = RING_DOUBLE,
     .unit = "%",
     .help = "share of the time in which its GPU ran a kernel; NULL: unknown, or it has none"},
    {.name = "gpu_mem_mb",
     .type = RING_DOUBLE,
     .unit = "MiB",
     .help = "memory in use on its GPU, of all processes; NULL: unknown, or it has none"},
    {.name = "power_w",
     .type = RING_DOUBLE,
     .unit = "W",
     .help = "of its GPUs together; busy and little power: it waits in a collective"},
    {.name = "device", .type = RING_TEXT, .help = "numbers of its GPUs; NULL: unknown, or it has none"},
    {.name = "agent", .type = RING_BOOL, .help = "1: it has an agent"},
    {.name = "timestamp", .type = RING_TIMESTAMP, .unit = "s", .help = "when it was read"},
    {.name = "note", .type = RING_TEXT, .help = "why something is unknown; NULL: nothing is wrong"},
    {.name = NULL},
};

static int64_t fleet_class_id(const struct stack_classes *c, uint32_t number) {
    int64_t id = RING_INT_NULL;
    if (number != STACK_CLASSES_NONE)
        memcpy(&id, &c->nodes[c->classes[number]].id, sizeof id);
    return id;
}

static int fleet_scan_ranks(const struct fleet *f, const struct fleet_sink *sink) {
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n_ranks; i++) {
        const struct fleet_rank *r = &f->ranks[i];
        const union ring_value row[RANKS_COUNT] = {
            [RANKS_RANK].i = r->rank,
            [RANKS_HOST].s = r->pid ? f->nodes[r->node].host : NULL,
            [RANKS_PID].i = r->pid ? r->pid : RING_INT_NULL,
            [RANKS_LOCAL].i = r->local_rank >= 0 ? r->local_rank : RING_INT_NULL,
            [RANKS_STATE].s = fleet_state_word(r->state),
            [RANKS_SINCE].f = fleet_round(fleet_age_s(f, r->since), 10),
            [RANKS_STEP].i = r->step,
            [RANKS_STEP_MS].f = fleet_round(r->step_ms, 1000),
            [RANKS_DATA_MS].f = fleet_round(r->data_ms, 1000),
            [RANKS_GC_MS].f = fleet_round(r->gc_ms, 1000),
            [RANKS_COMM_MS].f = fleet_round(r->comm_ms, 1000),
            [RANKS_OWN_MS].f = fleet_round(r->own_ms, 1000),
            [RANKS_LAG_MS].f = fleet_round(r->lag_ms, 1000),
            [RANKS_LAST].f = fleet_round(100 * r->last, 10),
            [RANKS_ROLE].i = r->role >= 0 ? r->role : RING_INT_NULL,
            [RANKS_WAITS_FOR].s = r->wait_what,
            [RANKS_CLASS].i = fleet_class_id(&f->stacks, r->class_number),
            [RANKS_FUNC].s = r->at ? r->at->func : NULL,
            [RANKS_FILE].s = r->at ? r->at->file : NULL,
            [RANKS_LINENO].i = r->at && r->at->line > 0 ? r->at->line : RING_INT_NULL,
            [RANKS_CPU].f = fleet_round(r->cpu_pct, 10),
            [RANKS_THREAD_CPU].f = fleet_round(r->thread_cpu_pct, 10),
            [RANKS_RSS].f = r->rss_bytes == REPORT_NO_INT
                                ? NAN
                                : fleet_round((double)r->rss_bytes / FLEET_TABLES_MIB, 10),
            [RANKS_GPU_UTIL].f = fleet_round(r->gpu_util, 10),
            [RANKS_GPU_MEM].f = fleet_round(r->gpu_mem_mb, 10),
            [RANKS_POWER].f = fleet_round(r->gpu_power_w, 10),
            [RANKS_DEVICE].s = r->gpu_devices,
            [RANKS_AGENT].i = r->pid ? r->agent : RING_INT_NULL,
            [RANKS_TAKEN].f = r->taken_at,
            [RANKS_NOTE].s = r->note,
        };
        rc = sink->put(sink->arg, row);
    }
    return rc;
}

/* ---- stacks ---- */

enum {
    STACKS_CLASS,
    STACKS_N,
    STACKS_RANKS,
    STACKS_SINCE,
    STACKS_MAJORITY,
    STACKS_COLLECTIVE,
    STACKS_FUNC,
    STACKS_FILE,
    STACKS_LINENO,
    STACKS_STACK,
    STACKS_COUNT
};

static const struct ring_column_def fleet_stack_columns[] = {
    {.name = "class_id", .type = RING_INT64, .help = "number of the stack, the same on all hosts"},
    {.name = "n", .type = RING_INT64, .help = "ranks that stand there"},
    {.name = "ranks", .type = RING_TEXT, .help = "which they are: 0-16,18-411"},
    {.name = "since_s", .type = RING_DOUBLE, .unit = "s", .help = "for so long all of them, at least"},
    {.name = "is_majority", .type = RING_BOOL, .help = "1: more than half of the ranks"},
    {.name = "in_collective", .type = RING_BOOL, .help = "1: most of them are in one"},
    {.name = "func", .type = RING_TEXT, .help = "innermost function of the job's own code"},
    {.name = "file", .type = RING_TEXT, .help = "its file"},
    {.name = "lineno", .type = RING_INT64, .help = "its line"},
    {.name = "stack", .type = RING_TEXT, .help = "all frames, from the outermost inwards"},
    {.name = NULL},
};

static void fleet_put_ranks(const struct stack_classes *c, uint32_t node, bool here, struct strbuf *text) {
    struct rank_set set = {.n = 0};
    strbuf_clear(text);
    if (stack_classes_ranks(c, node, here, &set) == 0)
        rank_set_put(&set, FLEET_TABLES_RANGES, text);
    rank_set_fini(&set);
}

static int fleet_scan_stacks(const struct fleet *f, const struct fleet_sink *sink) {
    struct strbuf ranks, stack;
    int rc = 0;
    strbuf_init(&ranks, FLEET_TABLES_CELL);
    strbuf_init(&stack, FLEET_TABLES_CELL);
    for (size_t i = 0; rc == 0 && i < f->stacks.n_classes; i++) {
        uint32_t node = f->stacks.classes[i];
        const struct stack_node *own = &f->stacks.nodes[stack_classes_own(&f->stacks, node)];
        fleet_put_ranks(&f->stacks, node, true, &ranks);
        strbuf_clear(&stack);
        fleet_put_stack(&f->stacks, node, &stack);
        const union ring_value row[STACKS_COUNT] = {
            [STACKS_CLASS].i = fleet_class_id(&f->stacks, (uint32_t)i),
            [STACKS_N].i = f->stacks.nodes[node].n_here,
            [STACKS_RANKS].s = strbuf_str(&ranks),
            [STACKS_SINCE].f = fleet_round(fleet_age_s(f, f->classes[i].since), 10),
            [STACKS_MAJORITY].i = f->classes[i].is_majority,
            [STACKS_COLLECTIVE].i = f->classes[i].in_collective,
            [STACKS_FUNC].s = own->func[0] ? own->func : NULL,
            [STACKS_FILE].s = own->file[0] ? own->file : NULL,
            [STACKS_LINENO].i = own->line ? own->line : RING_INT_NULL,
            [STACKS_STACK].s = strbuf_str(&stack),
        };
        rc = sink->put(sink->arg, row);
    }
    strbuf_fini(&ranks);
    strbuf_fini(&stack);
    return rc;
}

enum {
    TREE_NODE,
    TREE_PARENT,
    TREE_DEPTH,
    TREE_FUNC,
    TREE_FILE,
    TREE_LINENO,
    TREE_N,
    TREE_N_HERE,
    TREE_RANKS,
    TREE_COUNT
};

static const struct ring_column_def fleet_tree_columns[] = {
    {.name = "node", .type = RING_INT64, .help = "number of a frame below its caller, in this answer"},
    {.name = "parent", .type = RING_INT64, .help = "its caller; NULL for an outermost one"},
    {.name = "depth", .type = RING_INT64, .help = "1 for an outermost one"},
    {.name = "func", .type = RING_TEXT, .help = "function"},
    {.name = "file", .type = RING_TEXT, .help = "the part of its path that is the same on all hosts"},
    {.name = "lineno", .type = RING_INT64, .help = "line, in the job's own code"},
    {.name = "n", .type = RING_INT64, .help = "ranks that are in it"},
    {.name = "n_here", .type = RING_INT64, .help = "of those, ranks whose stack ends there"},
    {.name = "ranks", .type = RING_TEXT, .help = "which ranks are in it"},
    {.name = NULL},
};

static int fleet_scan_tree(const struct fleet *f, const struct fleet_sink *sink) {
    const struct stack_classes *c = &f->stacks;
    struct strbuf ranks;
    int rc = 0;
    strbuf_init(&ranks, FLEET_TABLES_CELL);
    for (uint32_t i = c->n_nodes ? stack_classes_walk(c, STACK_CLASSES_ROOT, false) : STACK_CLASSES_NONE;
         rc == 0 && i != STACK_CLASSES_NONE; i = stack_classes_walk(c, i, false)) {
        const struct stack_node *s = &c->nodes[i];
        fleet_put_ranks(c, i, false, &ranks);
        const union ring_value row[TREE_COUNT] = {
            [TREE_NODE].i = i,
            [TREE_PARENT].i = s->parent == STACK_CLASSES_ROOT ? RING_INT_NULL : s->parent,
            [TREE_DEPTH].i = s->depth,
            [TREE_FUNC].s = s->func[0] ? s->func : NULL,
            [TREE_FILE].s = s->file[0] ? s->file : NULL,
            [TREE_LINENO].i = s->line ? s->line : RING_INT_NULL,
            [TREE_N].i = s->n,
            [TREE_N_HERE].i = s->n_here,
            [TREE_RANKS].s = strbuf_str(&ranks),
        };
        rc = sink->put(sink->arg, row);
    }
    strbuf_fini(&ranks);
    return rc;
}

/* ---- all of them ---- */

static const struct {
    struct ring_table_def def;
    int (*scan)(const struct fleet *f, const struct fleet_sink *sink);
} fleet_tables[FLEET_TABLE_COUNT] = {
    [FLEET_TABLE_NODES] = {{.name = "cluster.nodes",
                            .help = "a host of the job",
                            .columns = fleet_node_columns},
                           fleet_scan_nodes},
    [FLEET_TABLE_RANKS] = {{.name = "cluster.ranks",
                            .help = "a rank of the job",
                            .columns = fleet_rank_columns},
                           fleet_scan_ranks},
    [FLEET_TABLE_STACKS] = {{.name = "cluster.stacks",
                             .help = "ranks whose main threads have the same stack",
                             .columns = fleet_stack_columns},
                            fleet_scan_stacks},
    [FLEET_TABLE_TREE] = {{.name = "cluster.tree",
                           .help = "a frame below its caller, in the merged stacks of all ranks",
                           .columns = fleet_tree_columns},
                          fleet_scan_tree},
};

/* ---- rows for programs ---- */

struct fleet_result {
    struct result *result;
    const struct ring_column_def *columns;
};

static int fleet_put_row(void *arg, const union ring_value *row) {
    const struct fleet_result *r = arg;
    if (result_add_row(r->result) != 0)
        return -1;
    for (size_t i = 0; r->columns[i].name; i++)
        switch (r->columns[i].type) {
        case RING_TIMESTAMP:
        case RING_DOUBLE:
            result_put_real(r->result, i, row[i].f);
            break;
        case RING_TEXT:
            if (row[i].s && row[i].s[0] &&
                result_put_text(r->result, i, SQL_TEXT, row[i].s, strlen(row[i].s)) != 0)
                return -1;
            break;
        default:
            if (row[i].i != RING_INT_NULL)
                result_put_int(r->result, i, row[i].i);
        }
    return 0;
}

static const char *fleet_type_name(enum ring_type t) {
    return t == RING_TIMESTAMP ? "timestamp"
           : t == RING_DOUBLE  ? "real"
           : t == RING_TEXT    ? "text"
                               : "integer";
}

struct result *fleet_table_rows(const struct fleet *f, enum fleet_table table) {
    struct fleet_result r = {.columns = fleet_tables[table].def.columns};
    size_t n = 0;
    int rc = 0;
    while (r.columns[n].name)
        n++;
    r.result = result_new(n, SIZE_MAX, RESULT_BYTES);
    for (size_t i = 0; r.result && i < n; i++)
        rc |= result_name_column(r.result, i, r.columns[i].name, fleet_type_name(r.columns[i].type));
    if (r.result && rc == 0) {
        const struct fleet_sink sink = {.put = fleet_put_row, .arg = &r};
        r.result->truncated = fleet_tables[table].scan(f, &sink) != 0;
        return r.result;
    }
    result_unref(r.result);
    return NULL;
}

/* ---- tables of SQL ---- */

static int fleet_sink_put(void *arg, const union ring_value *row) { return sql_sink_put(arg, row); }

static bool fleet_sink_stop(void *arg) { return sql_sink_cancelled(arg); }

static int fleet_scan(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    const struct fleet_table_source *source = arg;
    struct fleet_tables *t = source->owner;
    const struct fleet_sink to = {.put = fleet_sink_put, .arg = sink};
    uint64_t now = clock_mono_ns();
    (void)columns;
    if (!t->source)
        return err_set(e, ERR_FAILED, "name %s in the statement itself",
                       fleet_tables[source->table].def.name);
    if (!t->read_ns || now - t->read_ns > FLEET_TABLES_FRESH_NS) {
        if (fleet_source_fill(t->source, 1, FLEET_TABLES_LIMIT_S, fleet_sink_stop, sink, e) != 0)
            return -1;
        t->read_ns = clock_mono_ns();
    }
    fleet_tables[source->table].scan(fleet_source_get(t->source), &to);
    return 0;
}

void fleet_tables_init(struct fleet_tables *t, struct fleet_source *source) {
    *t = (struct fleet_tables){.source = source};
    for (size_t i = 0; i < FLEET_TABLE_COUNT; i++) {
        t->sources[i].owner = t;
        t->sources[i].table = (enum fleet_table)i;
        t->providers[i] =
            (struct sql_provider){.def = &fleet_tables[i].def, .scan = fleet_scan, .arg = &t->sources[i]};
    }
}

bool fleet_tables_is_read(const char *sql) { return strcasestr(sql, "cluster.") != NULL; }
