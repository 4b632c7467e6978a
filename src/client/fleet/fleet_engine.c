/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_engine: see fleet_engine.h. */
#include "client/fleet/fleet_engine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "base/work.h"
#include "client/engine/engine_address.h"
#include "client/engine/engine_http.h"
#include "client/engine/engine_schema.h"
#include "client/fleet/engine_jobs.h"
#include "client/fleet/engine_rows.h"
#include "client/fleet/engine_states.h"
#include "client/fleet/pace.h"

#define ENGINE_RANKS_MAX ((size_t)32768)
#define ENGINE_TIMES_MAX ((size_t)1 << 18) /* of one reading */
#define ENGINE_TIMES_EACH 100000.0         /* steps that are read together, about */
#define ENGINE_TEXT_BYTES ((size_t)64 << 20)
#define ENGINE_NEXT_NS CLOCK_NS_PER_S
#define ENGINE_RETRY_MAX_NS (10 * CLOCK_NS_PER_S)
#define ENGINE_STOP_S 3
#define ENGINE_NEW_S 5.0      /* rows of ranks that are read each time: the newest */
#define ENGINE_ROUND_S 2.5    /* rows of a host that are of one moment */
#define ENGINE_SILENT_S 8.0   /* then a host has no news */
#define ENGINE_AHEAD_S 5.0    /* clocks may be ahead of the server's by so much */
#define ENGINE_HOSTS_S 3600.0 /* a host is one of the job if it was there so long ago */
#define ENGINE_HOSTS_NEXT_S 5.0
#define ENGINE_HOSTS_NEW_S 60.0
#define ENGINE_LATE_HOSTS 48 /* that are silent from the beginning, and whose last rows are read */
#define ENGINE_TIMES_NEXT_S 5.0
#define ENGINE_TIMES_RETRY_NS (5 * CLOCK_NS_PER_S)
#define ENGINE_TIMES_FIRST_S 60.0 /* of steps, at first */
#define ENGINE_TIMES_LEAST_S 0.1  /* no part of time is shorter, however many steps it has */
#define ENGINE_TIMES_LATE_S 13.0  /* they are written every ten seconds */
#define ENGINE_STACKS_KNOWN 8192
#define ENGINE_STACKS_EACH 16 /* statements about stacks, each time */
#define ENGINE_STATES_S 4.0   /* a reading of a rank that is older is not its state */
#define ENGINE_REPLAY_S 12.0  /* before a moment, to see since when ranks have stood there */
#define ENGINE_REPLAY_NEXT_S 1.0
#define ENGINE_REPLAY_MANY 1024 /* of more ranks, fewer readings, */
#define ENGINE_REPLAY_MANY_S 6.0
#define ENGINE_STATES_WAIT_NS (2 * CLOCK_NS_PER_S)
#define ENGINE_STATES_POLL_NS (250 * CLOCK_NS_PER_MS)
#define ENGINE_CLOCK_MS 20.0 /* what the clock of a host may be off, as far as it is known */

/* ---- what was read ---- */

struct engine_rank {
    uint32_t host;
    struct report_rank row;
};

struct engine_frames {
    int64_t id;
    struct model_frame *frames;
    size_t n;
};

/* Of one reading, on its way from the thread. */
struct engine_batch {
    struct arena texts;
    bool is_first; /* what was read before is of another moment */
    bool is_final; /* nothing new comes */
    double at;     /* the moment it is of, by the server's clock */
    char job[ENGINE_ADDRESS_JOB];
    char **hosts; /* names of hosts that are new, the first is number `first_host`; of the arena */
    size_t first_host, n_hosts, cap_hosts;
    struct engine_rank *ranks;
    size_t n_ranks, cap_ranks;
    struct engine_said {
        uint32_t host;
        double ts;
        struct engine_job job;
    } * jobs;
    size_t n_jobs, cap_jobs;
    struct engine_frames *stacks;
    size_t n_stacks, cap_stacks;
    struct engine_time {
        uint32_t host;
        struct report_time row;
    } * times;
    size_t n_times, cap_times;
    struct engine_states states; /* with REPORT_STATES */
    bool has_states, is_past, is_last;
    double read_s;    /* when the states were read, on the monotonic clock */
    struct err error; /* the reading failed */
    char note[256];   /* "" none */
};

static void engine_batch_free(struct engine_batch *b) {
    if (!b)
        return;
    arena_fini(&b->texts);
    free(b->hosts);
    free(b->ranks);
    free(b->jobs);
    free(b->stacks);
    free(b->times);
    engine_states_fini(&b->states);
    free(b);
}

/* What is known of a host, in one block: its ranks and their texts; or its job. */
struct engine_host {
    void *ranks, *ranks_before, *job, *job_before;
    double ts; /* of its newest row, by its clock */
    double clock_s;
};

struct fleet_engine {
    struct fleet_source source; /* first; its descriptor is the work's */
    struct work work;
    struct engine_address address;
    bool reads_states;
    struct engine_http *http;
    /* of whoever owns the source */
    struct engine_host *hosts; /* of source.hosts.items */
    size_t n_hosts, cap_hosts;
    struct engine_states states;
    bool has_states;
    char note[256];
    /* with the lock */
    struct engine_batch *batch; /* that was not taken yet */
    bool forgets;               /* stacks are to be read again */
    bool is_asked;              /* for states */
    /* of the thread */
    char job[ENGINE_ADDRESS_JOB];
    char **names; /* of hosts, by number; owned */
    size_t n_names, cap_names;
    struct table by_name;
    struct table stacks; /* numbers of `ids`, whose frames are known */
    int64_t *ids;
    size_t n_ids, cap_ids;
    double shown_at; /* the moment that is shown, if it is past: that of the address, or the job's end; NAN */
    double behind_s; /* the next states are of so long before the moment */
    double base_s;   /* that moment on the monotonic clock of the states */
    double ahead_s;  /* the server's clock is ahead of this host's */
    double hosts_at, times_at, states_at;
    uint64_t times_next_ns; /* not before that are steps asked for again, which could not be read */
    char times_note[192];   /* why; "": they could */
    double times_part;      /* of what is read together: less than 1 if ranks have many steps in a second */
    bool is_checked, has_clock, is_first;
    size_t n_ranks; /* of the newest reading */
};

static struct fleet_engine *engine_of(struct fleet_source *s) { return (struct fleet_engine *)(void *)s; }

static const struct fleet_engine *engine_of_const(const struct fleet_source *s) {
    return (const struct fleet_engine *)(const void *)s;
}

/* ---- the thread: hosts ---- */

static uint64_t engine_hash_name(const char *name) { return hash_fnv_text(HASH_FNV_START, name); }

static void engine_forget_names(struct fleet_engine *g) {
    for (size_t i = 0; i < g->n_names; i++)
        free(g->names[i]);
    g->n_names = 0;
    table_clear(&g->by_name);
}

/* The number of a host, which is new to the batch if it is not known. -1: there are too many. */
static int64_t engine_number_host(struct fleet_engine *g, struct engine_batch *b, const char *name) {
    size_t at = TABLE_BEGIN;
    uint64_t hash = engine_hash_name(name);
    for (uint32_t i; (i = table_next(&g->by_name, hash, &at)) != TABLE_NONE;)
        if (strcmp(g->names[i], name) == 0)
            return i;
    if (g->n_names == FLEET_HOSTS_MAX ||
        grow_array(&g->names, sizeof *g->names, g->n_names + 1, &g->cap_names) != 0 ||
        grow_array(&b->hosts, sizeof *b->hosts, b->n_hosts + 1, &b->cap_hosts) != 0)
        return -1;
    char *copy = strdup(name), *sent = arena_strdup(&b->texts, name);
    if (!copy || !sent || table_add(&g->by_name, hash, (uint32_t)g->n_names) != 0) {
        free(copy);
        return -1;
    }
    b->hosts[b->n_hosts++] = sent;
    g->names[g->n_names] = copy;
    return (int64_t)g->n_names++;
}

struct engine_taking {
    struct fleet_engine *engine;
    struct engine_batch *batch;
};

static int engine_take_job(void *arg, const char *host, double ts, const void *row) {
    const struct engine_taking *t = arg;
    struct engine_batch *b = t->batch;
    int64_t number = engine_number_host(t->engine, b, host);
    if (number < 0)
        return 0;
    if (grow_array(&b->jobs, sizeof *b->jobs, b->n_jobs + 1, &b->cap_jobs) != 0)
        return -1;
    b->jobs[b->n_jobs] = (struct engine_said){.host = (uint32_t)number, .ts = ts};
    memcpy(&b->jobs[b->n_jobs++].job, row, sizeof b->jobs->job);
    return 0;
}

static int engine_take_rank(void *arg, const char *host, double ts, const void *row) {
    const struct engine_taking *t = arg;
    struct engine_batch *b = t->batch;
    int64_t number = engine_number_host(t->engine, b, host);
    if (number < 0)
        return 0;
    if (b->n_ranks == ENGINE_RANKS_MAX ||
        grow_array(&b->ranks, sizeof *b->ranks, b->n_ranks + 1, &b->cap_ranks) != 0)
        return -1;
    struct engine_rank *r = &b->ranks[b->n_ranks++];
    r->host = (uint32_t)number;
    memcpy(&r->row, row, sizeof r->row);
    r->row.taken_at = ts;
    return 0;
}

static int engine_take_time(void *arg, const char *host, double ts, const void *row) {
    const struct engine_taking *t = arg;
    struct engine_batch *b = t->batch;
    int64_t number = engine_number_host(t->engine, b, host);
    if (number < 0)
        return 0;
    if (b->n_times == ENGINE_TIMES_MAX ||
        grow_array(&b->times, sizeof *b->times, b->n_times + 1, &b->cap_times) != 0)
        return -1;
    struct engine_time *to = &b->times[b->n_times++];
    to->host = (uint32_t)number;
    memcpy(&to->row, row, sizeof to->row);
    to->row.at = ts;
    return 0;
}

/* ---- the thread: a reading ---- */

static int engine_read(struct fleet_engine *g, struct engine_batch *b, const struct engine_rows *what,
                       double from, double to, const char *more, struct arena *texts, engine_rows_fn take,
                       struct err *e) {
    struct engine_taking taking = {g, b};
    struct strbuf where;
    strbuf_init(&where, 0);
    engine_rows_put_where(&where, g->job, from, to);
    strbuf_adds(&where, more);
    int rc = engine_rows_read(g->http, what, strbuf_str(&where), texts, take, &taking, e);
    strbuf_fini(&where);
    return rc;
}

/* The server's clock. It answers whole seconds: of several answers the one that was read soonest after a second
 * began shows the most. */
static int engine_read_clock(struct fleet_engine *g, struct err *e) {
    double theirs;
    if (engine_jobs_clock(g->http, &theirs, e) != 0)
        return -1;
    double ahead_s = theirs - clock_epoch_s();
    if (!g->has_clock || ahead_s > g->ahead_s || ahead_s < g->ahead_s - 2)
        g->ahead_s = ahead_s;
    g->has_clock = true;
    return 0;
}

/* Find the job: the one that is named, or the only one; and which moment of it is shown. */
static int engine_find_job(struct fleet_engine *g, struct err *e) {
    double last;
    if (engine_schema_check(g->http, e) != 0)
        return -1;
    if (engine_jobs_choose(g->http, g->address.job, g->job, sizeof g->job, &last, e) != 0)
        return -1;
    if (engine_jobs_time_shown(g->http, g->job, last, g->address.at, clock_epoch_s() + g->ahead_s,
                               &g->shown_at, e) != 0)
        return -1;
    g->is_checked = true;
    return 0;
}

/* Hosts that have no new rows: their last ones. */
static int engine_read_late(struct fleet_engine *g, struct engine_batch *b, struct err *e) {
    struct engine_taking taking = {g, b};
    struct strbuf where;
    size_t n = 0;
    bool *has = calloc(g->n_names + 1, sizeof *has);
    double from = INFINITY, to = -INFINITY;
    if (!has)
        return err_set(e, ERR_FAILED, "out of memory for the hosts of a job");
    strbuf_init(&where, 0);
    for (size_t i = 0; i < b->n_ranks; i++)
        has[b->ranks[i].host] = true;
    for (size_t i = 0; i < b->n_jobs && n < ENGINE_LATE_HOSTS; i++) {
        const struct engine_said *j = &b->jobs[i];
        if (has[j->host])
            continue;
        strbuf_adds(&where, n++ ? " OR (host = " : " AND ((host = ");
        engine_http_put_text(&where, g->names[j->host]);
        strbuf_addf(&where, " AND ts > %.6f)", j->ts - ENGINE_HOSTS_NEW_S);
        from = fmin(from, j->ts - ENGINE_HOSTS_NEW_S);
        to = fmax(to, j->ts + ENGINE_HOSTS_NEW_S);
    }
    strbuf_adds(&where, n ? ")" : "");
    int rc = 0;
    if (n) {
        struct strbuf all;
        strbuf_init(&all, 0);
        engine_rows_put_where(&all, g->job, from, fmin(to, b->at + ENGINE_AHEAD_S));
        strbuf_adds(&all, strbuf_str(&where));
        rc = engine_rows_read(g->http, &ENGINE_ROWS_RANKS, strbuf_str(&all), &b->texts, engine_take_rank,
                              &taking, e);
        strbuf_fini(&all);
    }
    strbuf_fini(&where);
    free(has);
    return rc;
}

static bool engine_knows_stack(const struct fleet_engine *g, int64_t id) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&g->stacks, hash_mix((uint64_t)id), &at)) != TABLE_NONE;)
        if (g->ids[i] == id)
            return true;
    return false;
}

static void engine_forget_stacks(struct fleet_engine *g) {
    table_clear(&g->stacks);
    g->n_ids = 0;
}

/* Known, or asked for. False without memory. */
static bool engine_note_stack(struct fleet_engine *g, int64_t id) {
    if (grow_array(&g->ids, sizeof *g->ids, g->n_ids + 1, &g->cap_ids) != 0 ||
        table_add(&g->stacks, hash_mix((uint64_t)id), (uint32_t)g->n_ids) != 0)
        return false;
    g->ids[g->n_ids++] = id;
    return true;
}

static void engine_take_stack(void *arg, int64_t id, const struct model_frame *frames, size_t n) {
    const struct engine_taking *t = arg;
    struct engine_batch *b = t->batch;
    struct model_frame *copy = arena_calloc(&b->texts, n, sizeof *copy);
    if (!copy || engine_knows_stack(t->engine, id) ||
        grow_array(&b->stacks, sizeof *b->stacks, b->n_stacks + 1, &b->cap_stacks) != 0 ||
        !engine_note_stack(t->engine, id))
        return;
    memcpy(copy, frames, n * sizeof *copy);
    b->stacks[b->n_stacks++] = (struct engine_frames){.id = id, .frames = copy, .n = n};
}

static int engine_compare_ids(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The stacks of these ranks that are not known. One that is not written yet is asked for again. */
static int engine_read_stacks(struct fleet_engine *g, struct engine_batch *b, struct err *e) {
    struct engine_taking taking = {g, b};
    int64_t *ids = malloc((b->n_ranks + 1) * sizeof *ids);
    size_t n = 0, kept = 0;
    int rc = 0;
    if (!ids)
        return err_set(e, ERR_FAILED, "out of memory for the stacks of a job");
    if (g->n_ids >= ENGINE_STACKS_KNOWN)
        engine_forget_stacks(g);
    for (size_t i = 0; i < b->n_ranks; i++)
        if (b->ranks[i].row.stack != REPORT_NO_INT && !engine_knows_stack(g, b->ranks[i].row.stack))
            ids[n++] = b->ranks[i].row.stack;
    qsort(ids, n, sizeof *ids, engine_compare_ids);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || ids[i] != ids[i - 1])
            ids[kept++] = ids[i];
    for (size_t i = 0; rc == 0 && i < kept && i < ENGINE_STACKS_EACH * (size_t)ENGINE_ROWS_STACKS;
         i += ENGINE_ROWS_STACKS) {
        size_t some = kept - i < ENGINE_ROWS_STACKS ? kept - i : ENGINE_ROWS_STACKS;
        rc = engine_rows_read_stacks(g->http, g->job, b->at, ids + i, some, &b->texts, engine_take_stack,
                                     &taking, e);
    }
    free(ids);
    return rc;
}

/* Read the next part of the steps. 1: read, or none is due; 0: they are too many, and the next part is shorter; -1: it
 * failed. */
static int engine_read_times_part(struct fleet_engine *g, struct engine_batch *b, bool past, struct err *e) {
    /* each once, in parts that are not too large */
    double late = b->at - (past ? 0 : ENGINE_TIMES_LATE_S);
    double most_s = fmax(1, ENGINE_TIMES_EACH / ((double)b->n_ranks + 1)), each_s = g->times_part * most_s;
    double from =
        fmax(g->times_at, late - (past ? fmin(each_s, ENGINE_TIMES_FIRST_S) : ENGINE_TIMES_FIRST_S));
    double to = fmin(late, from + each_s);
    if (late - from < (past ? 0 : ENGINE_TIMES_NEXT_S) || to <= from ||
        (!past && clock_mono_ns() < g->times_next_ns))
        return 1;
    /* Collectives are not read: relays write those that take long, and the last rank to arrive waits for nobody, so
     * that who comes late would not be known. */
    if (engine_read(g, b, &ENGINE_ROWS_STEPS, from, to, "", &b->texts, engine_take_time, e) == 0) {
        g->times_at = to;
        g->times_note[0] = '\0';
        if (b->n_times < ENGINE_TIMES_MAX / 4)
            g->times_part = fmin(1, 2 * g->times_part);
        return 1;
    }
    bool too_many = b->n_times == ENGINE_TIMES_MAX && to - from > ENGINE_TIMES_LEAST_S;
    b->n_times = 0;
    if (too_many)
        g->times_part = (to - from) / 2 / most_s;
    return too_many ? 0 : -1;
}

/* Steps that cannot be read are read later: in between the ranks are shown without. */
static void engine_read_times(struct fleet_engine *g, struct engine_batch *b, bool past) {
    struct err e = {.code = ERR_OK};
    int rc;
    while ((rc = engine_read_times_part(g, b, past, &e)) == 0)
        e.code = ERR_OK;
    if (rc < 0) {
        g->times_next_ns = clock_mono_ns() + ENGINE_TIMES_RETRY_NS;
        snprintf(g->times_note, sizeof g->times_note, "the steps of its ranks cannot be read: %.140s",
                 e.code == ERR_OK ? "the server's answer was cut off" : err_text(&e));
    }
    size_t n = strlen(b->note);
    if (g->times_note[0])
        snprintf(b->note + n, sizeof b->note - n, "%s%s", n ? "; " : "", g->times_note);
}

static int engine_compare_ranks(const void *a, const void *b) {
    const struct engine_rank *x = a, *y = b;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->row.rank > y->row.rank) - (x->row.rank < y->row.rank);
}

/* The newest round of each host: rows that are older are of ranks that it has no longer. */
static void engine_drop_old(struct engine_batch *b) {
    size_t kept = 0;
    qsort(b->ranks, b->n_ranks, sizeof *b->ranks, engine_compare_ranks);
    for (size_t from = 0, to; from < b->n_ranks; from = to) {
        double newest = b->ranks[from].row.taken_at;
        for (to = from + 1; to < b->n_ranks && b->ranks[to].host == b->ranks[from].host; to++)
            newest = fmax(newest, b->ranks[to].row.taken_at);
        for (size_t i = from; i < to; i++)
            if (b->ranks[i].row.taken_at >= newest - ENGINE_ROUND_S)
                b->ranks[kept++] = b->ranks[i];
    }
    b->n_ranks = kept;
}

static int engine_take_state(void *arg, const char *host, double ts, const void *row) {
    const struct engine_taking *t = arg;
    int64_t number = engine_number_host(t->engine, t->batch, host);
    return number < 0 ? 0 : engine_states_add(&t->batch->states, (uint32_t)number, ts, row);
}

static int engine_take_group(void *arg, const char *host, double ts, const void *row) {
    const struct engine_taking *t = arg;
    int64_t number = engine_number_host(t->engine, t->batch, host);
    return number < 0 ? 0 : engine_states_add_group(&t->batch->states, (uint32_t)number, ts, row);
}

/* Readings for a verdict: wait for newer ones than the last, within reason. */
static int engine_read_states(struct fleet_engine *g, struct engine_batch *b, bool past, struct err *e) {
    uint64_t until = clock_mono_ns() + ENGINE_STATES_WAIT_NS;
    struct arena *texts = &b->states.texts;
    for (;;) {
        double from = b->at - ENGINE_STATES_S, to = past ? b->at : b->at + ENGINE_AHEAD_S;
        engine_states_fini(&b->states);
        engine_states_init(&b->states);
        if (engine_read(g, b, &ENGINE_ROWS_STATES, from, to, "", texts, engine_take_state, e) != 0 ||
            engine_read(g, b, &ENGINE_ROWS_GROUPS, from, to, "", texts, engine_take_group, e) != 0)
            return -1;
        work_lock(&g->work);
        bool again = !past && b->states.n && b->states.newest <= g->states_at && clock_mono_ns() < until &&
                     !g->work.stop;
        if (again)
            work_wait(&g->work, clock_mono_ns() + ENGINE_STATES_POLL_NS);
        work_unlock(&g->work);
        if (!again)
            break;
        b->at = clock_epoch_s() + g->ahead_s;
    }
    g->states_at = b->states.newest;
    b->has_states = true;
    b->is_past = past;
    b->is_last = past && g->behind_s <= 0;
    b->read_s = past ? g->base_s - g->behind_s : (double)clock_mono_ns() / 1e9;
    if (past)
        g->behind_s = fmax(
            0, g->behind_s - (b->n_ranks > ENGINE_REPLAY_MANY ? ENGINE_REPLAY_MANY_S : ENGINE_REPLAY_NEXT_S));
    return 0;
}

static int engine_read_at(struct fleet_engine *g, struct engine_batch *b, struct err *e) {
    bool past = !isnan(g->shown_at);
    double to = past ? b->at : b->at + ENGINE_AHEAD_S, newest = -INFINITY;
    if (g->is_first || b->at - g->hosts_at >= ENGINE_HOSTS_NEXT_S) {
        double from = b->at - (g->is_first ? ENGINE_HOSTS_S : ENGINE_HOSTS_NEW_S);
        if (engine_read(g, b, &ENGINE_ROWS_JOBS, from, to, "", &b->texts, engine_take_job, e) != 0)
            return -1;
        g->hosts_at = b->at;
    }
    double from = b->at;
    for (size_t i = 0; g->is_first && i < b->n_jobs; i++)
        newest = fmax(newest, b->jobs[i].ts);
    /* of a job that has stopped to report, the last rows */
    if (isfinite(newest))
        from = fmin(from, newest);
    if (engine_read(g, b, &ENGINE_ROWS_RANKS, from - ENGINE_NEW_S, to, "", &b->texts, engine_take_rank, e) !=
            0 ||
        (g->is_first && engine_read_late(g, b, e) != 0))
        return -1;
    engine_drop_old(b);
    return engine_read_stacks(g, b, e);
}

static void engine_clock_text(double at, char *buf, size_t cap) {
    time_t seconds = (time_t)at;
    struct tm tm;
    if (!localtime_r(&seconds, &tm) || !strftime(buf, cap, "%d %b %H:%M:%S", &tm))
        snprintf(buf, cap, "?");
}

static int engine_read_all(struct fleet_engine *g, struct engine_batch *b, struct err *e) {
    if (engine_read_clock(g, e) != 0 || (!g->is_checked && engine_find_job(g, e) != 0))
        return -1;
    bool past = !isnan(g->shown_at);
    b->at = past ? g->shown_at - g->behind_s : clock_epoch_s() + g->ahead_s;
    if (engine_read_at(g, b, e) != 0)
        return -1;
    if (past && !b->n_ranks && g->behind_s > 0) { /* the job had not begun then */
        g->behind_s = 0;
        b->at = g->shown_at;
        if (engine_read_at(g, b, e) != 0)
            return -1;
    }
    if (past) {
        char clock[48];
        engine_clock_text(b->at, clock, sizeof clock);
        snprintf(b->note, sizeof b->note, "%s %s",
                 isnan(g->address.at) || g->shown_at < g->address.at
                     ? "no rows come any longer: the job at its last ones,"
                     : "the job at",
                 clock);
    }
    if (g->reads_states)
        return engine_read_states(g, b, past, e);
    engine_read_times(g, b, past);
    return 0;
}

/* ---- the thread ---- */

/* Give it to the owner, once the last one was taken. */
static void engine_give(struct fleet_engine *g, struct engine_batch *b) {
    work_lock(&g->work);
    while (g->batch && !g->work.stop)
        work_wait(&g->work, WORK_FOREVER);
    bool gone = g->work.stop;
    if (!gone)
        g->batch = b;
    work_unlock(&g->work);
    if (gone)
        engine_batch_free(b);
    else
        work_notify(&g->work);
}

/* Wait for the next reading. */
static void engine_rest(struct fleet_engine *g, uint64_t began, uint64_t retry_ns, bool fixed) {
    uint64_t next = began + (retry_ns ? retry_ns : ENGINE_NEXT_NS);
    bool waits = !retry_ns && (fixed || g->reads_states); /* until there is something to do */
    work_lock(&g->work);
    while (!g->work.stop && !g->is_asked && (waits || clock_mono_ns() < next))
        work_wait(&g->work, waits ? WORK_FOREVER : next);
    work_unlock(&g->work);
}

static void engine_run(void *arg) {
    struct fleet_engine *g = arg;
    uint64_t retry_ns = 0;
    g->is_first = true;
    for (;;) {
        uint64_t began = clock_mono_ns();
        work_lock(&g->work);
        bool stop = g->work.stop, forgets = g->forgets;
        g->forgets = g->is_asked = false;
        work_unlock(&g->work);
        if (stop)
            return;
        struct engine_batch *b = calloc(1, sizeof *b);
        if (!b)
            return;
        if (g->is_first) {
            engine_forget_names(g);
            g->times_at = -INFINITY;
        }
        if (g->is_first || forgets)
            engine_forget_stacks(g);
        arena_init(&b->texts, ENGINE_TEXT_BYTES);
        b->is_first = g->is_first;
        b->first_host = g->n_names;
        bool failed = engine_read_all(g, b, &b->error) != 0;
        if (failed && b->error.code == ERR_OK)
            err_set(&b->error, ERR_FAILED, "the server's answer was cut off");
        snprintf(b->job, sizeof b->job, "%s", g->job);
        if (failed) {
            /* what is half read is read again; so are names and stacks that went with it */
            g->is_first = g->is_first || b->n_hosts || b->n_stacks;
            retry_ns = retry_ns ? 2 * retry_ns : ENGINE_NEXT_NS;
            retry_ns = retry_ns < ENGINE_RETRY_MAX_NS ? retry_ns : ENGINE_RETRY_MAX_NS;
        } else {
            g->is_first = false;
            retry_ns = 0;
            g->n_ranks = b->n_ranks;
        }
        bool fixed = !failed && !isnan(g->shown_at);
        b->is_final = fixed;
        engine_give(g, b);
        engine_rest(g, began, retry_ns, fixed);
    }
}

/* ---- the owner: what was read becomes what hosts have said ---- */

static size_t engine_text_size(const char *s) { return s ? strlen(s) + 1 : 0; }

/* Bytes of the texts of a row. */
static size_t engine_texts_size(const struct report_table *t, const void *row) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->fields[i].kind == REPORT_TEXT) {
            const char *s;
            memcpy(&s, (const char *)row + t->fields[i].offset, sizeof s);
            n += engine_text_size(s);
        }
    return n;
}

/* Move the texts of a row to `*to`. */
static void engine_move_texts(const struct report_table *t, void *row, char **to) {
    for (size_t i = 0; i < t->n; i++)
        if (t->fields[i].kind == REPORT_TEXT) {
            const char *s;
            memcpy(&s, (const char *)row + t->fields[i].offset, sizeof s);
            if (!s)
                continue;
            size_t size = strlen(s) + 1;
            memcpy(*to, s, size);
            s = *to;
            *to += size;
            memcpy((char *)row + t->fields[i].offset, &s, sizeof s);
        }
}

static void engine_forget(struct fleet_engine *g) {
    for (size_t i = 0; i < g->n_hosts; i++) {
        free(g->hosts[i].ranks);
        free(g->hosts[i].ranks_before);
        free(g->hosts[i].job);
        free(g->hosts[i].job_before);
    }
    g->n_hosts = 0;
    uint64_t round = g->source.hosts.fleet.round;
    fleet_hosts_fini(&g->source.hosts);
    if (fleet_hosts_init(&g->source.hosts, 0) != 0)
        err_set(&g->source.error, ERR_FAILED, "out of memory for the ranks of a job");
    else
        pace_set_delay(g->source.hosts.pace, ENGINE_TIMES_LATE_S + ENGINE_TIMES_NEXT_S);
    g->source.hosts.fleet.round = round;
}

/* The hosts that are new. */
static bool engine_add_hosts(struct fleet_engine *g, const struct engine_batch *b) {
    for (size_t i = 0; i < b->n_hosts; i++) {
        if (b->first_host + i != g->n_hosts)
            return false;
        struct fleet_host *h = grow_array(&g->hosts, sizeof *g->hosts, g->n_hosts + 1, &g->cap_hosts) == 0
                                   ? fleet_hosts_add(&g->source.hosts)
                                   : NULL;
        if (!h)
            return false;
        g->hosts[g->n_hosts++] = (struct engine_host){.ts = NAN, .clock_s = NAN};
        snprintf(h->host, sizeof h->host, "%s", b->hosts[i]);
        snprintf(h->via, sizeof h->via, "clickhouse");
        /* a stack's number is a hash of its frames, for all hosts of the job */
        h->stacks = 0;
        h->has_job = true;
    }
    return true;
}

static void engine_put_job(struct fleet_engine *g, const struct engine_said *said) {
    struct engine_host *mine = &g->hosts[said->host];
    struct fleet_host *h = &g->source.hosts.items[said->host];
    struct engine_job *job = malloc(sizeof *job + engine_texts_size(&ENGINE_ROWS_JOB, &said->job));
    if (!job)
        return;
    *job = said->job;
    char *texts = (char *)(job + 1);
    engine_move_texts(&ENGINE_ROWS_JOB, job, &texts);
    /* what the fleet was made of stays until it is made again */
    if (mine->job_before)
        free(mine->job);
    else
        mine->job_before = mine->job;
    mine->job = job;
    mine->clock_s = job->clock_s;
    mine->ts = fmax(mine->ts, said->ts);
#define ENGINE_COPY(kind, name) h->job.name = job->name;
    REPORT_JOB_FIELDS(ENGINE_COPY)
    h->lost = job->lost;
    h->note[0] = '\0';
    if (job->note)
        snprintf(h->note, sizeof h->note, "%s", job->note);
    else if (job->lost > 0)
        snprintf(h->note, sizeof h->note,
                 "%" PRId64 " rows of its ranks were lost before they could be written", job->lost);
}

/* The ranks of a host: `from` to `to` of the batch. */
static void engine_put_ranks(struct fleet_engine *g, const struct engine_rank *from, size_t n) {
    struct engine_host *mine = &g->hosts[from->host];
    struct fleet_host *h = &g->source.hosts.items[from->host];
    size_t bytes = n * sizeof(struct report_rank);
    for (size_t i = 0; i < n; i++)
        bytes += engine_texts_size(&REPORT_TABLE_RANK, &from[i].row);
    struct report_rank *ranks = malloc(bytes);
    if (!ranks)
        return;
    char *texts = (char *)(ranks + n);
    for (size_t i = 0; i < n; i++) {
        ranks[i] = from[i].row;
        engine_move_texts(&REPORT_TABLE_RANK, &ranks[i], &texts);
        mine->ts = fmax(mine->ts, ranks[i].taken_at);
    }
    if (mine->ranks_before)
        free(mine->ranks);
    else
        mine->ranks_before = mine->ranks;
    mine->ranks = ranks;
    h->ranks = ranks;
    h->n_ranks = n;
}

/* A host is silent if it has no new rows. */
static void engine_judge_silence(struct fleet_engine *g, double at) {
    for (size_t i = 0; i < g->n_hosts; i++) {
        struct fleet_host *h = &g->source.hosts.items[i];
        double ahead_s = isnan(g->hosts[i].clock_s) ? 0 : g->hosts[i].clock_s;
        h->silent_s = fmax(0, at - (g->hosts[i].ts - ahead_s));
        h->is_silent = h->silent_s > ENGINE_SILENT_S && h->n_ranks;
        h->seen_at = g->hosts[i].ts - ahead_s;
        h->ahead_ms = g->hosts[i].clock_s * 1e3;
        h->error_ms = isnan(g->hosts[i].clock_s) ? NAN : ENGINE_CLOCK_MS;
    }
}

static void engine_drop_before(struct fleet_engine *g) {
    for (size_t i = 0; i < g->n_hosts; i++) {
        free(g->hosts[i].ranks_before);
        free(g->hosts[i].job_before);
        g->hosts[i].ranks_before = g->hosts[i].job_before = NULL;
    }
}

/* Stacks that were forgotten here are to be read again. */
static bool engine_lacks_stacks(const struct fleet_engine *g, const struct engine_batch *b) {
    for (size_t i = 0; i < b->n_ranks; i++)
        if (b->ranks[i].row.stack != REPORT_NO_INT &&
            !fleet_hosts_find_stack(&g->source.hosts, 0, b->ranks[i].row.stack))
            return true;
    return false;
}

static void engine_build(struct fleet_engine *g, bool round) {
    struct fleet *f = &g->source.hosts.fleet;
    fleet_hosts_build(&g->source.hosts, round);
    engine_drop_before(g);
    /* a host without rows of ranks may have left the job long ago */
    for (size_t i = 0; i < f->n_nodes; i++)
        f->nodes[i].is_silent = g->source.hosts.items[i].is_silent;
    if (!f->job[0])
        snprintf(f->job, sizeof f->job, "%s", g->address.job);
    if (g->note[0])
        f->note = arena_strdup(&f->arena, g->note);
}

static void engine_apply(struct fleet_engine *g, struct engine_batch *b) {
    if (b->is_first)
        engine_forget(g);
    if (!engine_add_hosts(g, b)) {
        err_set(&g->source.error, ERR_FAILED, "out of memory for the hosts of a job");
        return;
    }
    for (size_t i = 0; i < b->n_jobs; i++)
        engine_put_job(g, &b->jobs[i]);
    for (size_t i = 0; i < b->n_stacks; i++)
        fleet_hosts_put_stack(&g->source.hosts, 0, b->stacks[i].id, b->stacks[i].frames, b->stacks[i].n);
    for (size_t from = 0, to; from < b->n_ranks; from = to) {
        for (to = from + 1; to < b->n_ranks && b->ranks[to].host == b->ranks[from].host; to++)
            ;
        engine_put_ranks(g, &b->ranks[from], to - from);
    }
    for (size_t i = 0; i < b->n_times; i++)
        fleet_hosts_add_time(&g->source.hosts, b->times[i].host, &b->times[i].row);
    engine_judge_silence(g, b->at);
    g->source.hosts.latest = b->at + ENGINE_AHEAD_S; /* none that is later was read */
    engine_build(g, true);
    if (engine_lacks_stacks(g, b)) {
        work_lock(&g->work);
        g->forgets = true;
        work_unlock(&g->work);
    }
    if (b->has_states) {
        engine_states_fini(&g->states);
        g->states = b->states;
        b->states = (struct engine_states){.n = 0};
        engine_states_add_ranks(&g->states, &g->source.hosts, b->at - ENGINE_STATES_S);
        engine_states_sort(&g->states, g->n_hosts, b->at, b->read_s);
        g->has_states = true;
        g->source.is_past = b->is_past;
        g->source.is_last = b->is_last;
        g->source.read_s = b->is_past ? b->read_s : NAN;
    }
}

static bool engine_advance(struct fleet_source *source) {
    struct fleet_engine *g = engine_of(source);
    work_clear(&g->work);
    work_lock(&g->work);
    struct engine_batch *b = g->batch;
    g->batch = NULL;
    work_wake(&g->work);
    work_unlock(&g->work);
    if (!b)
        return false;
    bool changed = true;
    if (b->error.code == ERR_OK) {
        source->error.code = ERR_OK;
        source->is_final = b->is_final && !g->reads_states;
        snprintf(g->note, sizeof g->note, "%s", b->note);
        if (!g->address.job[0])
            snprintf(g->address.job, sizeof g->address.job, "%s", b->job);
        engine_apply(g, b);
    } else if (source->hosts.fleet.n_ranks) {
        snprintf(g->note, sizeof g->note, "this is old: %.230s", err_text(&b->error));
        engine_build(g, false);
    } else {
        source->error = b->error;
        changed = false;
    }
    engine_batch_free(b);
    return changed;
}

/* ---- for the owner ---- */

static void engine_close(struct fleet_source *source) {
    struct fleet_engine *g = engine_of(source);
    if (g->http)
        engine_http_cancel(g->http);
    if (!work_stop(&g->work, ENGINE_STOP_S))
        return;
    engine_http_close(g->http);
    engine_batch_free(g->batch);
    for (size_t i = 0; i < g->n_hosts; i++) {
        free(g->hosts[i].ranks);
        free(g->hosts[i].ranks_before);
        free(g->hosts[i].job);
        free(g->hosts[i].job_before);
    }
    free(g->hosts);
    engine_states_fini(&g->states);
    fleet_hosts_fini(&source->hosts);
    engine_forget_names(g);
    free(g->names);
    table_fini(&g->by_name);
    table_fini(&g->stacks);
    free(g->ids);
    free(g);
}

static struct fleet_source *engine_open(const char *target, const struct fleet_reach *reach, const char *work,
                                        struct err *e) {
    (void)reach;
    if (work && strcmp(work, REPORT_STATES) != 0) {
        err_set(e, ERR_USAGE, "'%s' works on hosts, and a database has none: name them by --hosts", work);
        return NULL;
    }
    struct fleet_engine *g = calloc(1, sizeof *g);
    if (!g || fleet_hosts_init(&g->source.hosts, 0) != 0 || work_init(&g->work) != 0) {
        if (g)
            fleet_hosts_fini(&g->source.hosts);
        free(g);
        err_set(e, ERR_FAILED, "out of memory for the ranks of a job");
        return NULL;
    }
    g->source.kind = &fleet_engine_kind;
    g->source.fd = g->work.fd;
    g->reads_states = work != NULL;
    g->shown_at = g->source.read_s = NAN;
    g->behind_s = g->reads_states ? ENGINE_REPLAY_S : 0;
    g->base_s = (double)clock_mono_ns() / 1e9;
    g->states_at = g->times_at = -INFINITY;
    g->times_part = 1;
    if (engine_address_parse(&g->address, target, e) == 0 &&
        engine_address_read_password(&g->address, e) == 0 && (g->http = engine_http_open(&g->address, e))) {
        int rc = work_start(&g->work, engine_run, g);
        if (rc == 0)
            return &g->source;
        err_set_errno(e, ERR_FAILED, rc, "cannot read the ranks of the job");
    }
    engine_close(&g->source);
    return NULL;
}

static double engine_target_at(const char *target) {
    struct engine_address a;
    struct err e;
    return engine_address_parse(&a, target, &e) == 0 ? a.at : NAN;
}

static int engine_put_at(const char *target, double at, struct strbuf *out, struct err *e) {
    struct engine_address a;
    if (engine_address_parse(&a, target, e) != 0)
        return -1;
    engine_address_put_job(&a, a.job, at, out);
    return 0;
}

static int engine_settle(struct fleet_source *s, struct err *e) {
    const struct fleet_engine *g = engine_of_const(s);
    if (s->hosts.fleet.n_ranks > 0 || g->has_states)
        return 0;
    char when[48] = "";
    if (!isnan(g->address.at))
        engine_clock_text(g->address.at, when, sizeof when);
    return err_set(e, ERR_ATTACH, "clickhouse: no rows of ranks of job '%.200s' are there%s%s",
                   g->address.job[0] ? g->address.job : "", *when ? " at " : "", when);
}

static void engine_put_silent(const struct fleet_source *s, struct strbuf *out) {
    size_t silent = 0;
    for (size_t i = 0; i < s->hosts.n; i++) {
        const struct fleet_host *h = &s->hosts.items[i];
        if (h->is_silent && silent++ < 16)
            strbuf_addf(out, "%s%s (no rows for %.0f s)", out->len ? "; " : "", h->host, h->silent_s);
    }
    if (silent > 16)
        strbuf_addf(out, "; and %zu more", silent - 16);
}

static void engine_ask_states(struct fleet_source *s, bool counters) {
    struct fleet_engine *g = engine_of(s);
    (void)counters; /* the relays have asked */
    g->has_states = false;
    work_lock(&g->work);
    g->is_asked = true;
    work_wake(&g->work);
    work_unlock(&g->work);
}

static bool engine_get_states(const struct fleet_source *s, size_t i, struct fleet_states *out) {
    const struct fleet_engine *g = engine_of_const(s);
    *out = (struct fleet_states){.n = 0};
    if (i >= g->n_hosts)
        return false;
    if (g->has_states) {
        engine_states_get(&g->states, i, out);
        out->job = &s->hosts.items[i].job;
    }
    return true;
}

const struct fleet_source_kind fleet_engine_kind = {
    .takes = engine_address_is,
    .is_database = true,
    .at = engine_target_at,
    .put_at = engine_put_at,
    .open = engine_open,
    .close = engine_close,
    .advance = engine_advance,
    .settle = engine_settle,
    .put_silent = engine_put_silent,
    .ask_states = engine_ask_states,
    .states = engine_get_states,
};
