/* SPDX-License-Identifier: Apache-2.0 */
/* relay: see relay.h. */
#include "relay/relay.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/procfs.h"
#include "client/hosts/byte_pipe.h"
#include "client/jobs/job_each.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/report.h"
#include "client/fleet/stack_classes.h"
#include "client/gpu/gpu_poller.h"
#include "relay/job_report.h"
#include "relay/rank_reader.h"
#include "relay/rank_report.h"
#include "relay/rank_sql.h"
#include "relay/rank_states.h"
#include "version.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define RELAY_POLL_MS 100
#define RELAY_NICE 10
#define RELAY_JITTER_S 0.25                  /* rounds begin so late in a second at most */
#define RELAY_SEARCH_NS (5 * CLOCK_NS_PER_S) /* between two searches for ranks that are gone or missing */
#define RELAY_SEARCH_MS 1000U
#define RELAY_WAIT_S 2.0                    /* for the next round */
#define RELAY_ROWS_MAX ((size_t)800 * 1024) /* bytes of an answer's rows */
#define RELAY_STACK_BYTES ((size_t)1024 * 1024)
#define RELAY_TIMES_MAX 8192 /* of a rank, that were not asked for yet */
/* Who follows ranks asks each second. One that is silent for so long has no link any longer: where its end was lost on
 * the way, nobody else would end this relay. */
#define RELAY_SILENT_NS (60 * CLOCK_NS_PER_S)

/* What is known of a rank; its number is that of its source. */
struct relay_rank {
    struct rank_report report;
    bool is_gone;
    struct rank_time *times; /* that were not asked for yet, the oldest first */
    size_t n_times, cap_times;
};

/* Seconds by which the clock is ahead, in tests. */
static double relay_ahead_s;

void relay_set_ahead(double seconds) { relay_ahead_s = seconds; }

struct relay_stack {
    int64_t id;
    struct arena arena;
    struct model_frame *frames;
    size_t n_frames;
    uint64_t round; /* the last in which a rank had it */
};

struct relay {
    int from, out;
    struct pipe_reader in;
    /* the job */
    char target[WIRE_ROWS_ARG_TEXT]; /* as it was asked for */
    struct jobs_here here;
    const struct job *job; /* NULL: none was asked for */
    char host[256];
    uint64_t searched_ns;
    int64_t found; /* how often its ranks were found */
    struct rank_source *sources;
    struct relay_rank *ranks;
    size_t n;
    struct rank_reader reader;
    uint64_t round; /* complete ones */
    double next_at; /* when the next begins, seconds since the epoch */
    struct relay_stack *stacks;
    size_t n_stacks, cap_stacks;
    bool follows;      /* the client has asked for ranks, and does so each second */
    uint64_t heard_ns; /* when it was heard last */
    /* the request that waits for a round */
    bool is_asked;
    uint32_t asked_id;
    uint64_t asked_after;
    struct fleet_watch *watch; /* what reads the ranks for a verdict; NULL: none was asked for */
    struct rank_sql *sql;      /* the tables of the ranks; NULL: none was asked for */
    int64_t sql_found;         /* the ranks that it has: r->found */
    int agent;                 /* the socket of one, which has the pipe from here on; -1: none */
    /* the cost */
    uint64_t cpu_ns, cpu_at_ns;
    double cost_pct;
};

/* ---- answers ---- */

/* Send one message. 0, or -1: the client is gone. */
static int relay_send(struct relay *r, const struct strbuf *message) {
    struct strbuf bytes;
    strbuf_init(&bytes, 0);
    int rc = message->failed || pipe_put(&bytes, message->data, message->len) != 0 ? -1 : 0;
    for (size_t at = 0; rc == 0 && at < bytes.len;) {
        ssize_t n = write(r->out, bytes.data + at, bytes.len - at);
        if (n < 0 && errno != EINTR)
            rc = -1;
        at += n > 0 ? (size_t)n : 0;
    }
    strbuf_fini(&bytes);
    return rc;
}

static int relay_refuse(struct relay *r, uint32_t id, enum wire_error code, const char *why) {
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_error(&message, id, code, why);
    int rc = relay_send(r, &message);
    strbuf_fini(&message);
    return rc;
}

/* An answer of rows, as it is made. */
struct relay_answer {
    const struct report_table *table;
    struct strbuf columns, rows;
    size_t n;
    bool is_full;
};

static void relay_answer_init(struct relay_answer *a, const struct report_table *t) {
    *a = (struct relay_answer){.table = t};
    strbuf_init(&a->columns, 0);
    strbuf_init(&a->rows, 0);
    report_put_columns(t, &a->columns);
}

static void relay_answer_add(struct relay_answer *a, const void *row) {
    a->is_full = a->is_full || a->rows.len > RELAY_ROWS_MAX;
    if (!a->is_full && report_put(a->table, row, &a->rows) == 0)
        a->n++;
}

static int relay_answer_send(struct relay *r, uint32_t id, struct relay_answer *a) {
    struct wire_rows rows = {.columns = a->columns.data,
                             .columns_len = a->columns.len,
                             .rows = a->rows.data,
                             .rows_len = a->rows.len,
                             .n_rows = a->n,
                             .more = a->is_full};
    struct strbuf message;
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    int rc = a->columns.failed || a->rows.failed || wire_put_rows(&message, id, &rows) != 0
                 ? relay_refuse(r, id, WIRE_E_UNAVAILABLE, "the relay is out of memory for its answer")
                 : relay_send(r, &message);
    strbuf_fini(&message);
    strbuf_fini(&a->columns);
    strbuf_fini(&a->rows);
    return rc;
}

/* ---- the ranks ---- */

static void relay_free_ranks(struct relay *r) {
    for (size_t i = 0; i < r->n; i++)
        free(r->ranks[i].times);
    free(r->sources);
    free(r->ranks);
}

static void relay_drop_sql(struct relay *r) {
    rank_sql_close(r->sql);
    r->sql = NULL;
}

static void relay_drop_job(struct relay *r) {
    relay_drop_sql(r);
    rank_states_end(&r->watch);
    rank_reader_stop(&r->reader);
    relay_free_ranks(r);
    r->sources = NULL;
    r->ranks = NULL;
    r->n = 0;
    r->job = NULL;
    jobs_here_fini(&r->here);
}

/* Make the list of ranks; what is known of a process that is still one of them stays. 0, or -1
 * without memory. */
static int relay_list_ranks(struct relay *r) {
    struct rank_source *sources = calloc(r->job->n_ranks + 1, sizeof *sources);
    struct relay_rank *ranks = calloc(r->job->n_ranks + 1, sizeof *ranks);
    if (!sources || !ranks) {
        free(sources);
        free(ranks);
        return -1;
    }
    rank_reader_stop(&r->reader);
    rank_states_keep(&r->watch, r->job);
    for (size_t i = 0; i < r->job->n_ranks; i++) {
        const struct job_member *m = &r->job->members[i];
        const struct target_process *p = jobs_here_process(&r->here, m);
        sources[i] = (struct rank_source){.pid = m->pid,
                                          .start_ticks = p->start_ticks,
                                          .rank = m->rank,
                                          .local_rank = p->env.local,
                                          .agent = p->attached};
        report_clear(&REPORT_TABLE_RANK, &ranks[i].report.row);
        ranks[i].report.row.rank = m->rank;
        ranks[i].report.row.pid = m->pid;
        for (size_t k = 0; k < r->n; k++)
            if (r->sources[k].pid == m->pid && r->sources[k].start_ticks == p->start_ticks) {
                ranks[i].report.row.stack = r->ranks[k].report.row.stack;
                ranks[i].report.row.since = r->ranks[k].report.row.since;
                sources[i].agent |= r->sources[k].agent;
            }
    }
    relay_free_ranks(r);
    r->sources = sources;
    r->ranks = ranks;
    r->n = r->job->n_ranks;
    rank_reader_init(&r->reader, r->sources, r->n);
    r->found++;
    return 0;
}

/* Find the job that was asked for. 0, or -1 with the error. */
static int relay_find(struct relay *r, const char *target, struct err *e) {
    struct rank_set ranks = {.n = 0};
    relay_drop_job(r);
    snprintf(r->target, sizeof r->target, "%s", target);
    int rc = jobs_here_read(&r->here, 0, e);
    r->job = rc == 0 ? jobs_here_choose(&r->here, target, &ranks, e) : NULL;
    rank_set_fini(&ranks);
    r->searched_ns = clock_mono_ns();
    if (r->job && relay_list_ranks(r) == 0)
        return 0;
    if (r->job)
        err_set(e, ERR_FAILED, "out of memory for the ranks of %s", r->job->name);
    relay_drop_job(r);
    return -1;
}

/* Some ranks are gone, or were missing: they may have been started again. */
static void relay_search(struct relay *r) {
    struct jobs_here here;
    struct err e;
    uint64_t now = clock_mono_ns();
    bool whole = r->job->missing.n == 0 && !rank_states_has_gone(r->watch);
    for (size_t i = 0; i < r->n; i++) {
        r->ranks[i].is_gone |= procfs_is_gone(r->sources[i].pid);
        whole = whole && !r->ranks[i].is_gone;
    }
    if (whole || now - r->searched_ns < RELAY_SEARCH_NS)
        return;
    r->searched_ns = now;
    if (jobs_here_read(&here, RELAY_SEARCH_MS, &e) != 0) {
        jobs_here_fini(&here);
        return;
    }
    const struct job *found = NULL;
    for (size_t i = 0; i < here.jobs.n; i++)
        if (strcmp(here.jobs.items[i].name, r->job->name) == 0)
            found = &here.jobs.items[i];
    /* one that lives and is not found blocks whoever reads it, or the time was over */
    for (size_t i = 0; found && i < r->n; i++) {
        bool is_found = r->ranks[i].is_gone;
        /* in whatever role: one from before a restart lives on beside those that have taken its place */
        for (size_t k = 0; k < found->n_members; k++)
            is_found |= found->members[k].pid == r->sources[i].pid;
        found = is_found ? found : NULL;
    }
    bool changed = found && found->n_ranks != r->n;
    for (size_t i = 0; found && !changed && i < r->n; i++)
        changed = found->members[i].pid != r->sources[i].pid || found->members[i].rank != r->sources[i].rank;
    if (!changed) {
        jobs_here_fini(&here);
        return;
    }
    jobs_here_fini(&r->here);
    r->here = here;
    r->job = found;
    relay_list_ranks(r);
}

/* ---- stacks ---- */

static void relay_stack_fini(struct relay_stack *s) { arena_fini(&s->arena); }

/* Forget those that no rank had in this round and the one before. */
static void relay_drop_stacks(struct relay *r) {
    size_t kept = 0;
    for (size_t i = 0; i < r->n_stacks; i++)
        if (r->stacks[i].round + 1 >= r->round)
            r->stacks[kept++] = r->stacks[i];
        else
            relay_stack_fini(&r->stacks[i]);
    r->n_stacks = kept;
}

static const struct relay_stack *relay_stack_find(const struct relay *r, int64_t id) {
    for (size_t i = 0; i < r->n_stacks; i++)
        if (r->stacks[i].id == id)
            return &r->stacks[i];
    return NULL;
}

/* Keep the frames of a stack for this round. Its id; REPORT_NO_INT without memory. */
static int64_t relay_keep_stack(struct relay *r, const struct rank_reading *got) {
    uint64_t hash = stack_classes_hash(got->frames, got->n_frames);
    int64_t id;
    memcpy(&id, &hash, sizeof id);
    for (size_t i = 0; i < r->n_stacks; i++)
        if (r->stacks[i].id == id) {
            r->stacks[i].round = r->round + 1;
            return id;
        }
    if (r->n_stacks == r->cap_stacks) {
        size_t cap = r->cap_stacks ? 2 * r->cap_stacks : 32;
        struct relay_stack *more = realloc(r->stacks, cap * sizeof *more);
        if (!more)
            return REPORT_NO_INT;
        r->stacks = more;
        r->cap_stacks = cap;
    }
    struct relay_stack *s = &r->stacks[r->n_stacks];
    *s = (struct relay_stack){.id = id, .n_frames = got->n_frames, .round = r->round + 1};
    arena_init(&s->arena, RELAY_STACK_BYTES);
    s->frames = arena_calloc(&s->arena, s->n_frames, sizeof *s->frames);
    for (size_t i = 0; s->frames && i < s->n_frames; i++) {
        s->frames[i] = got->frames[i];
        s->frames[i].func = arena_strdup(&s->arena, got->frames[i].func);
        s->frames[i].file = arena_strdup(&s->arena, got->frames[i].file);
        s->frames[i].module = NULL;
    }
    if (s->arena.failed) {
        relay_stack_fini(s);
        return REPORT_NO_INT;
    }
    r->n_stacks++;
    return id;
}

/* ---- rounds ---- */

/* Without memory they are lost. */
static void relay_keep_times(struct relay_rank *rank, const struct rank_reading *got) {
    size_t n = got->n_times;
    if (n == 0)
        return;
    if (rank->n_times + n > RELAY_TIMES_MAX)
        rank->n_times = 0; /* nobody asks for them */
    if (grow_array(&rank->times, sizeof *rank->times, rank->n_times + n, &rank->cap_times) != 0)
        return;
    memcpy(rank->times + rank->n_times, got->times, n * sizeof *rank->times);
    rank->n_times += n;
}

static void relay_keep_reading(struct relay *r, const struct rank_reading *got) {
    struct relay_rank *rank = &r->ranks[got->source];
    rank->is_gone = got->is_gone;
    relay_keep_times(rank, got);
    rank_report_take(&rank->report, got, got->frames ? relay_keep_stack(r, got) : got->report.stack);
}

/* Processor time of this process and its child, since the round before. */
static void relay_measure(struct relay *r) {
    uint64_t cpu = rank_reader_cpu_ns(&r->reader), now = clock_mono_ns();
    r->cost_pct = r->cpu_at_ns && cpu >= r->cpu_ns && now > r->cpu_at_ns
                      ? 100.0 * (double)(cpu - r->cpu_ns) / (double)(now - r->cpu_at_ns)
                      : NAN;
    r->cpu_ns = cpu;
    r->cpu_at_ns = now;
}

/* The next round begins early in the next second, at a place that the job and the second decide. */
static void relay_plan(struct relay *r) {
    double second = floor(clock_epoch_s()) + 1;
    uint64_t h = hash_fnv_text(HASH_FNV_START, r->job->name);
    h = hash_mix(h ^ (uint64_t)second);
    r->next_at = second + (double)(h % 1000) / 1000.0 * RELAY_JITTER_S;
}

/* Continue the round that is under way, or begin one that is due. 0, or -1: nobody can be answered. */
static int relay_work(struct relay *r) {
    struct rank_reading got;
    struct err e;
    int rc;
    if (!r->job || !r->is_asked)
        return 0;
    double wait_s = r->next_at - clock_epoch_s();
    /* longer than that only after the clock was set back */
    bool is_due = wait_s <= 0 || wait_s > RELAY_WAIT_S;
    if (!r->reader.is_reading && r->round <= r->asked_after && is_due) {
        relay_search(r);
        relay_plan(r);
        if (rank_reader_begin(&r->reader, &e) != 0) {
            r->is_asked = false;
            return relay_refuse(r, r->asked_id, WIRE_E_UNAVAILABLE, e.text);
        }
    }
    if (!r->reader.is_reading)
        return 0;
    while ((rc = rank_reader_take(&r->reader, &got)) == 1)
        relay_keep_reading(r, &got);
    if (rc == 0)
        return 0;
    r->round++;
    relay_drop_stacks(r);
    relay_measure(r);
    return 0;
}

static int relay_answer_ranks(struct relay *r) {
    struct relay_answer a;
    if (!r->is_asked || r->round <= r->asked_after || r->reader.is_reading)
        return 0;
    r->is_asked = false;
    relay_answer_init(&a, &REPORT_TABLE_RANK);
    for (size_t i = 0; i < r->n; i++) {
        struct report_rank row = r->ranks[i].report.row;
        row.round = (int64_t)r->round;
        row.found = r->found;
        row.cost_pct = r->cost_pct;
        row.taken_at += relay_ahead_s;
        row.since += relay_ahead_s;
        row.step_at += relay_ahead_s;
        relay_answer_add(&a, &row);
    }
    return relay_answer_send(r, r->asked_id, &a);
}

/* ---- requests ---- */

static const struct wire_rows_arg *relay_find_arg(const struct wire_rows_ask *ask, const char *key) {
    for (size_t i = 0; i < ask->n_args; i++)
        if (strcmp(ask->args[i].key, key) == 0)
            return &ask->args[i];
    return NULL;
}

static int relay_on_hello(struct relay *r, const struct wire_message *m) {
    struct strbuf message;
    struct err e;
    int version;
    if (wire_get_hello(m, &version, &e) != 0)
        return relay_refuse(r, wire_message_id(m), WIRE_E_BAD_PARAMS, e.text);
    if (version != WIRE_VERSION)
        return relay_refuse(r, wire_message_id(m), WIRE_E_VERSION,
                            "the relay is of another version: install the same one on both hosts");
    struct model_target t = {.pid = getpid(),
                             .uid = geteuid(),
                             .host = r->host,
                             .rank = MODEL_UNKNOWN,
                             .started_at = NAN,
                             .mode = MODEL_MODE_READONLY,
                             .agent_version = PROBING_VERSION};
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    wire_put_target(&message, wire_message_id(m), &t);
    int rc = relay_send(r, &message);
    strbuf_fini(&message);
    return rc;
}

static int relay_on_job(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *name = relay_find_arg(ask, "name");
    struct relay_answer a;
    struct job_report report;
    struct err e = {0};
    if (!name || !name->is_text)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no job is named");
    bool is_known = r->job && (strcmp(name->text, r->target) == 0 || strcmp(name->text, r->job->name) == 0);
    if (is_known)
        relay_search(r);
    else if (relay_find(r, name->text, &e) != 0)
        return relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e));
    job_report_fill(&report, r->job, r->found);
    relay_answer_init(&a, &REPORT_TABLE_JOB);
    relay_answer_add(&a, &report.row);
    int rc = relay_answer_send(r, id, &a);
    job_report_fini(&report);
    return rc;
}

static int relay_on_ranks(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *after = relay_find_arg(ask, "after");
    if (!r->job)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no job was asked for before");
    if (r->is_asked)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS,
                            "the request before this one still waits for its ranks");
    r->is_asked = r->follows = true;
    r->asked_id = id;
    r->asked_after = after && !after->is_text && after->number > 0 ? (uint64_t)after->number : 0;
    return 0;
}

static int relay_on_stacks(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *ids = relay_find_arg(ask, "ids");
    struct relay_answer a;
    relay_answer_init(&a, &REPORT_TABLE_FRAME);
    for (const char *at = ids && ids->is_text ? ids->text : ""; *at; at += *at == ',') {
        char *end;
        uint64_t hash = strtoull(at, &end, 16);
        int64_t number;
        memcpy(&number, &hash, sizeof number);
        const struct relay_stack *s = end > at ? relay_stack_find(r, number) : NULL;
        for (size_t i = 0; s && i < s->n_frames; i++) {
            struct report_frame row = {.stack = number,
                                       .func = s->frames[i].func,
                                       .file = s->frames[i].file,
                                       .line = s->frames[i].line > 0 ? s->frames[i].line : REPORT_NO_INT};
            if (s->frames[i].kind != MODEL_FRAME_ENTRY)
                relay_answer_add(&a, &row);
        }
        at = end > at ? end : at + 1;
    }
    return relay_answer_send(r, id, &a);
}

static int relay_on_times(struct relay *r, uint32_t id) {
    struct relay_answer a;
    relay_answer_init(&a, &REPORT_TABLE_TIME);
    for (size_t i = 0; i < r->n; i++) {
        struct relay_rank *rank = &r->ranks[i];
        size_t n = 0;
        for (; n < rank->n_times && a.rows.len <= RELAY_ROWS_MAX; n++) {
            const struct rank_time *t = &rank->times[n];
            struct report_time row = {.rank = rank->report.row.rank,
                                      .pid = rank->report.row.pid,
                                      .seq = t->seq,
                                      .op = t->op[0] ? t->op : NULL,
                                      .step = t->op[0] ? REPORT_NO_INT : t->step,
                                      .at = t->at + relay_ahead_s,
                                      .ms = t->ms,
                                      .data_ms = t->op[0] ? NAN : t->data_ms,
                                      .forward_ms = t->op[0] ? NAN : t->forward_ms,
                                      .backward_ms = t->op[0] ? NAN : t->backward_ms,
                                      .optimizer_ms = t->op[0] ? NAN : t->optimizer_ms,
                                      .gc_ms = t->op[0] ? NAN : t->gc_ms,
                                      .other_ms = t->op[0] ? NAN : t->other_ms};
            relay_answer_add(&a, &row);
        }
        /* the rest is for the next time */
        rank->n_times -= n;
        if (rank->n_times)
            memmove(rank->times, rank->times + n, rank->n_times * sizeof *rank->times);
    }
    return relay_answer_send(r, id, &a);
}

static int relay_on_clock(struct relay *r, uint32_t id) {
    const struct report_clock row = {.at = clock_epoch_s() + relay_ahead_s};
    struct relay_answer a;
    relay_answer_init(&a, &REPORT_TABLE_CLOCK);
    relay_answer_add(&a, &row);
    return relay_answer_send(r, id, &a);
}

/* ---- for a verdict ---- */

static void relay_add_row(void *arg, const void *row) { relay_answer_add(arg, row); }

static int relay_on_states(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *counters = relay_find_arg(ask, "counters");
    bool asks = counters && !counters->is_text && counters->number == 1;
    struct relay_answer a;
    struct err e = {0};
    if (!r->job)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no job was asked for before");
    r->follows = true;
    relay_search(r);
    relay_answer_init(&a, &REPORT_TABLE_STATE);
    if (rank_states_read(&r->watch, &r->here, r->job, asks, relay_add_row, &a, &e) == 0)
        return relay_answer_send(r, id, &a);
    strbuf_fini(&a.columns);
    strbuf_fini(&a.rows);
    return relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e));
}

static int relay_on_groups(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *from = relay_find_arg(ask, "from");
    struct relay_answer a;
    relay_answer_init(&a, &REPORT_TABLE_GROUP);
    rank_states_groups(r->watch, from && !from->is_text && from->number > 0 ? (size_t)from->number : 0,
                       relay_add_row, &a);
    return relay_answer_send(r, id, &a);
}

static int relay_on_ras(struct relay *r, uint32_t id) {
    struct relay_answer a;
    relay_answer_init(&a, &REPORT_TABLE_RAS);
    rank_states_ras(r->watch, relay_add_row, &a);
    return relay_answer_send(r, id, &a);
}

/* ---- work with ranks ---- */

/* Whoever asks the relay to end while it works in a rank waits until that is done. */
static void relay_defer_signals(sigset_t *usual) {
    sigset_t asks;
    sigemptyset(&asks);
    sigaddset(&asks, SIGINT);
    sigaddset(&asks, SIGTERM);
    sigaddset(&asks, SIGHUP);
    sigprocmask(SIG_BLOCK, &asks, usual);
}

static int relay_on_work(struct relay *r, uint32_t id, void (*work)(struct job_task *),
                         const char *(*done)(const struct job_task *)) {
    struct relay_answer a;
    if (!r->job)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no job was asked for before");
    struct job_task *tasks = calloc(r->job->n_ranks + 1, sizeof *tasks);
    if (!tasks)
        return relay_refuse(r, id, WIRE_E_UNAVAILABLE, "the relay is out of memory for the ranks");
    for (size_t i = 0; i < r->job->n_ranks; i++)
        tasks[i] = (struct job_task){.pid = r->job->members[i].pid, .rank = r->job->members[i].rank};
    sigset_t usual;
    relay_defer_signals(&usual);
    job_each(tasks, r->job->n_ranks, work);
    relay_answer_init(&a, &REPORT_TABLE_TASK);
    for (size_t i = 0; i < r->job->n_ranks; i++) {
        const struct inject_result *result = &tasks[i].result;
        bool ok = tasks[i].rc >= 0;
        relay_answer_add(
            &a, &(struct report_task){
                    .rank = tasks[i].rank,
                    .pid = tasks[i].pid,
                    .failed = !ok,
                    .agent = done(&tasks[i]),
                    .stopped_ms = ok && result->borrowed_tid ? (double)result->stopped_us / 1000 : NAN,
                    .total_ms = ok && result->total_us ? (double)result->total_us / 1000 : NAN,
                    .endpoint = ok && result->endpoint[0] ? result->endpoint : NULL,
                    .note = ok ? NULL : err_text(&tasks[i].error)});
    }
    free(tasks);
    int rc = relay_answer_send(r, id, &a);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    return rc;
}

/* ---- SQL ---- */

/* The tables of the ranks as they are now. 0, or -1 with the error. */
static int relay_open_sql(struct relay *r, bool attach, const char *host, struct err *e) {
    sigset_t usual;
    if (!r->job)
        return err_set(e, ERR_USAGE, "no job was asked for before");
    relay_search(r);
    if (r->sql && r->sql_found == r->found)
        return 0;
    relay_drop_sql(r);
    relay_defer_signals(&usual);
    r->sql = rank_sql_open(r->job, attach, host, r->from, e);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    r->sql_found = r->found;
    return r->sql ? 0 : -1;
}

static int relay_answer_sql(struct relay *r, uint32_t id) {
    struct strbuf columns, rows, message;
    struct err e = {0};
    struct wire_rows answer = {.note = ""};
    strbuf_init(&columns, 0);
    strbuf_init(&rows, 0);
    strbuf_init(&message, WIRE_MAX_MESSAGE);
    ssize_t n = rank_sql_take(r->sql, RELAY_ROWS_MAX, &columns, &rows, &answer.more, &e);
    answer.columns = columns.data;
    answer.columns_len = columns.len;
    answer.rows = rows.data;
    answer.rows_len = rows.len;
    answer.n_rows = (size_t)n;
    snprintf(answer.note, sizeof answer.note, "%s", rank_sql_note(r->sql));
    int rc = n < 0 ? relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e))
             : wire_put_rows(&message, id, &answer) != 0
                 ? relay_refuse(r, id, WIRE_E_UNAVAILABLE, "a row is too long to be sent")
                 : relay_send(r, &message);
    strbuf_fini(&columns);
    strbuf_fini(&rows);
    strbuf_fini(&message);
    return rc;
}

static int relay_on_sql(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *limit = relay_find_arg(ask, "limit_ms"),
                               *attach = relay_find_arg(ask, "attach"), *host = relay_find_arg(ask, "host");
    struct err e = {0};
    if (!ask->text)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "there is no statement");
    if (relay_open_sql(r, attach && !attach->is_text && attach->number == 1,
                       host && host->is_text ? host->text : r->host, &e) != 0 ||
        rank_sql_begin(r->sql, ask->text, ask->text_len, limit && !limit->is_text ? limit->number : 0, &e) !=
            0)
        return relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e));
    return relay_answer_sql(r, id);
}

static int relay_on_next(struct relay *r, uint32_t id) {
    return r->sql ? relay_answer_sql(r, id)
                  : relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no statement was asked for before");
}

static int relay_on_tables(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *name = relay_find_arg(ask, "name"), *attach = relay_find_arg(ask, "attach"),
                               *host = relay_find_arg(ask, "host");
    struct relay_answer a;
    struct report_size row;
    struct err e = {0};
    if (!name || !name->is_text)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no table is named");
    if (relay_open_sql(r, attach && !attach->is_text && attach->number == 1,
                       host && host->is_text ? host->text : r->host, &e) != 0)
        return relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e));
    rank_sql_measure(r->sql, name->text, &row);
    row.oldest += relay_ahead_s;
    row.newest += relay_ahead_s;
    relay_answer_init(&a, &REPORT_TABLE_SIZE);
    relay_answer_add(&a, &row);
    return relay_answer_send(r, id, &a);
}

/* A connection to the agent of that process; -1 with the error. */
static int relay_connect(pid_t pid, bool attach, struct err *e) {
    struct target_address addr = {.pid = pid};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    sigset_t usual;
    relay_defer_signals(&usual);
    int found = attach ? target_attach(&addr, 0, NULL, e) : target_find_endpoint(&addr, e);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    if (found < 0)
        return -1;
    if (!attach && found == 0)
        return err_set(e, ERR_ATTACH, "process %d has no agent, and none may be loaded", (int)pid);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", addr.path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        err_set_errno(e, ERR_ATTACH, errno, "the agent of process %d cannot be reached", (int)pid);
    else if (endpoint_check_peer(fd, pid, e) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* From here on the pipe is the agent's. */
static int relay_on_to(struct relay *r, uint32_t id, const struct wire_rows_ask *ask) {
    const struct wire_rows_arg *pid = relay_find_arg(ask, "pid"), *attach = relay_find_arg(ask, "attach");
    struct relay_answer a;
    struct err e = {0};
    if (!pid || pid->is_text || pid->number <= 0 || pid->number > INT32_MAX)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "no process is named");
    if (procfs_is_gone((pid_t)pid->number)) {
        char why[64];
        snprintf(why, sizeof why, "process %d has ended", (int)pid->number);
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, why);
    }
    int fd = relay_connect((pid_t)pid->number, attach && !attach->is_text && attach->number == 1, &e);
    if (fd < 0)
        return relay_refuse(r, id, WIRE_E_UNAVAILABLE, err_text(&e));
    relay_answer_init(&a, &REPORT_TABLE_TASK);
    relay_answer_add(
        &a, &(struct report_task){
                .rank = REPORT_NO_INT, .pid = pid->number, .failed = 0, .stopped_ms = NAN, .total_ms = NAN});
    r->agent = fd;
    return relay_answer_send(r, id, &a);
}

static int relay_on_rows(struct relay *r, const struct wire_message *m) {
    struct wire_rows_ask ask;
    struct err e;
    uint32_t id = wire_message_id(m);
    if (wire_get_rows_ask(m, &ask, &e) != 0)
        return relay_refuse(r, id, WIRE_E_BAD_PARAMS, e.text);
    if (strcmp(ask.table, REPORT_JOB) == 0)
        return relay_on_job(r, id, &ask);
    if (strcmp(ask.table, REPORT_RANKS) == 0)
        return relay_on_ranks(r, id, &ask);
    if (strcmp(ask.table, REPORT_STACKS) == 0)
        return relay_on_stacks(r, id, &ask);
    if (strcmp(ask.table, REPORT_TIMES) == 0)
        return relay_on_times(r, id);
    if (strcmp(ask.table, REPORT_STATES) == 0)
        return relay_on_states(r, id, &ask);
    if (strcmp(ask.table, REPORT_GROUPS) == 0)
        return relay_on_groups(r, id, &ask);
    if (strcmp(ask.table, REPORT_RAS) == 0)
        return relay_on_ras(r, id);
    if (strcmp(ask.table, REPORT_ATTACH) == 0)
        return relay_on_work(r, id, job_attach, job_attached);
    if (strcmp(ask.table, REPORT_DETACH) == 0)
        return relay_on_work(r, id, job_detach, job_detached);
    if (strcmp(ask.table, REPORT_TO) == 0)
        return relay_on_to(r, id, &ask);
    if (strcmp(ask.table, REPORT_TABLES) == 0)
        return relay_on_tables(r, id, &ask);
    if (strcmp(ask.table, REPORT_SQL) == 0)
        return relay_on_sql(r, id, &ask);
    if (strcmp(ask.table, REPORT_NEXT) == 0)
        return relay_on_next(r, id);
    if (strcmp(ask.table, REPORT_CLOCK) == 0)
        return relay_on_clock(r, id);
    return relay_refuse(r, id, WIRE_E_BAD_PARAMS, "a relay has no such table");
}

static int relay_on_message(struct relay *r, const void *data, size_t len) {
    struct err e;
    struct wire_message *m = wire_parse(data, len, &e);
    int rc = -1;
    if (m && wire_message_type(m) == WIRE_REQUEST)
        switch (wire_message_method(m)) {
        case WIRE_HELLO:
            rc = relay_on_hello(r, m);
            break;
        case WIRE_ROWS:
            rc = relay_on_rows(r, m);
            break;
        default:
            rc = relay_refuse(r, wire_message_id(m), WIRE_E_UNKNOWN_METHOD, "a relay has no such method");
        }
    wire_message_free(m);
    return rc;
}

/* ---- the loop ---- */

/* Read what is there. 1; 0 at the end of the input; -1: it is not valid. */
static int relay_read(struct relay *r, int in) {
    char data[16384];
    const void *message;
    size_t len;
    struct err e;
    ssize_t n = read(in, data, sizeof data);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN) ? 1 : 0;
    int rc = pipe_reader_add(&r->in, data, (size_t)n);
    while (rc == 0 && r->agent < 0 && (rc = pipe_reader_next(&r->in, &message, &len, &e)) == 1)
        rc = relay_on_message(r, message, len);
    return rc == 0 ? 1 : -1;
}

static int relay_wait_ms(const struct relay *r) {
    if (!r->job || !r->is_asked)
        return r->follows ? (int)(RELAY_SILENT_NS / CLOCK_NS_PER_MS) : -1;
    if (r->reader.is_reading)
        return RELAY_POLL_MS;
    double left_s = r->next_at - clock_epoch_s();
    return left_s <= 0 ? 0 : left_s > RELAY_WAIT_S ? RELAY_POLL_MS : (int)(left_s * 1000) + 1;
}

static int relay_loop(struct relay *r, int in) {
    for (;;) {
        struct pollfd fds[] = {
            {.fd = in, .events = POLLIN},
            {.fd = r->reader.is_reading ? rank_reader_fd(&r->reader) : -1, .events = POLLIN}};
        if (poll(fds, 2, relay_wait_ms(r)) < 0 && errno != EINTR)
            return -1;
        if (fds[0].revents) {
            int rc = relay_read(r, in);
            r->heard_ns = clock_mono_ns();
            if (rc <= 0)
                return rc;
            if (r->agent >= 0) {
                byte_pipe_run((struct byte_end){in, r->out}, (struct byte_end){r->agent, r->agent}, -1);
                return 0;
            }
        }
        if (relay_work(r) != 0 || relay_answer_ranks(r) != 0)
            return -1;
        if (r->follows && !r->is_asked && clock_mono_ns() - r->heard_ns >= RELAY_SILENT_NS)
            return 0;
    }
}

int relay_serve(int in, int out) {
    static const char magic[] = PIPE_MAGIC;
    struct relay *r = calloc(1, sizeof *r);
    if (!r || write(out, magic, sizeof magic - 1) != (ssize_t)sizeof magic - 1) {
        free(r);
        return -1;
    }
    setpriority(PRIO_PROCESS, 0, RELAY_NICE);
    gpu_poller_keep(); /* a driver takes a while to begin */
    r->from = in;
    r->out = out;
    r->agent = -1;
    pipe_reader_init(&r->in, true);
    if (gethostname(r->host, sizeof r->host - 1) != 0)
        r->host[0] = '\0';
    int rc = relay_loop(r, in);
    relay_drop_job(r);
    if (r->agent >= 0)
        close(r->agent);
    for (size_t i = 0; i < r->n_stacks; i++)
        relay_stack_fini(&r->stacks[i]);
    free(r->stacks);
    pipe_reader_fini(&r->in);
    free(r);
    return rc;
}
