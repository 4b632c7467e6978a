/* SPDX-License-Identifier: Apache-2.0 */
/* relay_to: see relay_to.h. */
#include "relay/relay_to.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/procfs.h"
#include "base/table.h"
#include "client/engine/engine_schema.h"
#include "client/jobs/job_each.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/report.h"
#include "client/fleet/stack_classes.h"
#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_process.h"
#include "client/gpu/gpu_row.h"
#include "client/output.h"
#include "relay/job_report.h"
#include "relay/rank_reader.h"
#include "relay/rank_report.h"
#include "relay/rank_states.h"
#include "relay/relay_marks.h"
#include "relay/relay_metrics.h"
#include "relay/ring_tail.h"

#define TO_NICE 10
#define TO_POLL_MS 100
#define TO_JITTER_S 0.25
#define TO_SEARCH_NS (5 * CLOCK_NS_PER_S)
#define TO_SEARCH_MS 1000U
#define TO_SEARCH_ALL_NS (30 * CLOCK_NS_PER_S)
#define TO_RINGS_NS (10 * CLOCK_NS_PER_S)
/* sooner where a larger share of a ring would be new by then; the loop turns once a second */
#define TO_RINGS_FILL 0.25
#define TO_RINGS_LEAST_NS (CLOCK_NS_PER_S / 2)
#define TO_RINGS_GROWTH 1.5
#define TO_GPU_NS (5 * CLOCK_NS_PER_S)
#define TO_STATES_NS (2 * CLOCK_NS_PER_S)
#define TO_CALM_NS (10 * CLOCK_NS_PER_S) /* without a suspect, until states are no longer written */
#define TO_CLOCK_NS (60 * CLOCK_NS_PER_S)
#define TO_LIVE_S 5.0   /* for an insert of what is seen now, */
#define TO_RINGS_S 30.0 /* of rows that wait in rings, */
#define TO_END_S 5.0    /* and of those when the relay ends */
#define TO_RETRY_NS CLOCK_NS_PER_S
#define TO_RETRY_MAX_NS (60 * CLOCK_NS_PER_S)
#define TO_BATCH ((size_t)4 << 20) /* bytes of an insert before it is packed */
#define TO_STACKS 65536            /* that are remembered of a day */
#define TO_ATTACH_TRIES 3
#define TO_ATTACH_NS (30 * CLOCK_NS_PER_S)
/* a rank may be stuck that has one stack for so long, and does not run */
#define TO_STILL_S 3.0
#define TO_SUSPECT_CPU_PCT 1.0
#define TO_STEPS_LATE_S 10.0 /* without a step, or so many times the last one */
#define TO_STEPS_LATE 5.0
#define TO_RANGES 64

/* A process that is a rank, or was one and has rows that are not written yet. */
struct to_rank {
    pid_t pid;
    uint64_t start_ticks;
    int32_t rank, local_rank;
    char job[ENGINE_ADDRESS_JOB]; /* under which it is written */
    size_t job_number;            /* in to.here.jobs; SIZE_MAX: it has ended */
    struct rank_report report;
    bool is_gone, is_blocked;
    unsigned attach_tries;
    uint64_t attach_at_ns;
    struct ring_tail *tails; /* one for each of to.tables */
};

/* A stack that was seen. */
struct to_stack {
    uint64_t key;
    bool is_written, is_in_batch;
};

/* Rows of a table on their way. */
struct to_rows {
    const struct engine_table *table;
    struct strbuf bytes;
    uint64_t n;
};

struct to {
    const struct relay_to_options *options;
    struct engine_http *http;
    char host[256], marks_path[RELAY_MARKS_PATH], state_path[RELAY_MARKS_PATH];
    uint64_t created_us, number; /* of this relay, and of its next live row */
    /* the ranks */
    struct jobs_here here;
    uint64_t processes; /* which there were when it was read last */
    int64_t found;
    struct to_rank **ranks;
    size_t n, n_listed; /* all, and those that are read: they are first */
    struct rank_source *sources;
    struct rank_reader reader;
    struct fleet_watch **watches; /* one for each of here.jobs */
    const struct engine_table **tables;
    size_t n_tables;
    struct relay_marks marks; /* of the relay before */
    int64_t round;
    double next_at;
    /* rows */
    struct to_rows live, states, groups, stacks, rings, gpus, hosts;
    double states_at;
    struct table stack_table;
    struct to_stack *stack_list;
    size_t n_stacks, cap_stacks;
    int64_t stack_day;
    /* the server */
    bool is_checked;                /* it has the schema */
    uint64_t retry_ns, retry_at_ns; /* 0: it answers */
    uint64_t written, lost, errors;
    struct err last_error;
    double last_error_at, since, clean_at; /* clean: all rows were written then */
    double clock_s;
    struct err note;                   /* about the jobs */
    uint64_t rings_every_ns, paced_ns; /* see to_pace_rings */
    /* when it was done last */
    uint64_t searched_ns, searched_all_ns, rings_ns, hosts_ns, gpus_ns, states_ns, suspect_ns, clock_ns;
    uint64_t cpu_ns, cpu_at_ns;
    double cost_pct;
    int lock, metrics; /* descriptors; -1 none */
};

static volatile sig_atomic_t to_signals;
static struct engine_http *to_http;

/* The first lets it end after what is under way, another one cancels that. */
static void to_on_signal(int number) {
    (void)number;
    if (to_signals++ && to_http)
        engine_http_cancel(to_http);
}

static bool to_is_due(uint64_t *last_ns, uint64_t every_ns) {
    uint64_t now = clock_mono_ns();
    if (*last_ns && now - *last_ns < every_ns)
        return false;
    *last_ns = now;
    return true;
}

/* ---- the server ---- */

static void to_keep_error(struct to *r, const struct err *e, bool is_new) {
    if (is_new || strcmp(r->last_error.text, e->text) != 0)
        output_say("probing: %s\n", err_text(e));
    r->last_error = *e;
    r->last_error_at = clock_epoch_s();
    r->errors++;
}

/* The server did not take what it was sent: it is left alone for a while. */
static void to_note_error(struct to *r, const struct err *e) {
    to_keep_error(r, e, !r->retry_ns);
    r->retry_ns = r->retry_ns ? r->retry_ns * 2 : TO_RETRY_NS;
    if (r->retry_ns > TO_RETRY_MAX_NS)
        r->retry_ns = TO_RETRY_MAX_NS;
    r->retry_at_ns = clock_mono_ns() + r->retry_ns;
}

static void to_note_written(struct to *r) {
    if (r->retry_ns)
        output_say("probing: the server answers again\n");
    r->retry_ns = 0;
}

static bool to_waits(const struct to *r) { return r->retry_ns && clock_mono_ns() < r->retry_at_ns; }

/* Insert rows into a table. 0, or -1 with the error. */
static int to_insert(struct to *r, const struct engine_table *t, const struct strbuf *rows, double limit_s,
                     struct err *e) {
    struct strbuf sql;
    int version = engine_http_version(r->http, e);
    strbuf_init(&sql, 0);
    if (version)
        engine_put_insert(&sql, t, engine_http_address(r->http)->database, version);
    int rc = version ? engine_http_insert(r->http, strbuf_str(&sql), rows, limit_s, e) : -1;
    strbuf_fini(&sql);
    return rc;
}

/* Has the server the tables, and may this user write? Who may not read the version of the schema is believed that it is
 * right. 0, or -1 with the error. */
static int to_check(struct to *r, struct err *e) {
    const struct strbuf none = {.len = 0};
    if (r->is_checked)
        return 0;
    if (engine_schema_check(r->http, e) != 0 && engine_http_last_code(r->http) != ENGINE_HTTP_ACCESS_DENIED)
        return -1;
    if (to_insert(r, r->live.table, &none, TO_LIVE_S, e) != 0)
        return -1;
    r->is_checked = true;
    return 0;
}

/* Insert rows, which are then forgotten. 0, or -1: the server does not have them, or may have some. */
static int to_send(struct to *r, struct to_rows *rows, double limit_s) {
    struct err e = {0};
    int rc = -1;
    if (rows->n == 0)
        return 0;
    if (!rows->bytes.failed && !to_waits(r)) {
        rc = to_check(r, &e) == 0 ? to_insert(r, rows->table, &rows->bytes, limit_s, &e) : -1;
        if (rc == 0) {
            r->written += rows->n;
            to_note_written(r);
        } else
            to_note_error(r, &e);
    }
    strbuf_clear(&rows->bytes);
    if (rows->bytes.cap > TO_BATCH / 16)
        strbuf_fit(&rows->bytes);
    rows->n = 0;
    return rc;
}

static void to_add(struct to_rows *rows, const struct row_value *row) {
    if (row_binary_put_row(&rows->bytes, rows->table->columns, rows->table->n, row) == 0)
        rows->n++;
}

/* By how much the clock of this host is ahead of the server's. */
static void to_read_clock(struct to *r) {
    struct strbuf out;
    struct err e;
    if (r->retry_ns || !r->is_checked || !to_is_due(&r->clock_ns, TO_CLOCK_NS))
        return;
    int version = engine_http_version(r->http, &e);
    bool is_fine = version >= ENGINE_HTTP_VERSION(21, 1);
    strbuf_init(&out, 256);
    double before = clock_epoch_s();
    int rc = engine_http_query(r->http,
                               is_fine ? "SELECT toUnixTimestamp64Micro(now64(6)) / 1e6 FORMAT TabSeparated"
                                       : "SELECT toUInt32(now()) + 0.5 FORMAT TabSeparated",
                               TO_LIVE_S, &out, &e);
    double there = strtod(strbuf_str(&out), NULL);
    r->clock_s = rc == 0 && there > 0 ? (before + clock_epoch_s()) / 2 - there : NAN;
    strbuf_fini(&out);
}

/* ---- the ranks ---- */

static void to_free_rank(struct to *r, struct to_rank *rank) {
    for (size_t k = 0; k < r->n_tables; k++) {
        r->lost += rank->tails[k].lost;
        ring_tail_close(&rank->tails[k]);
    }
    free(rank->tails);
    free(rank);
}

static struct to_rank *to_new_rank(const struct to *r, pid_t pid, uint64_t start_ticks, int32_t rank,
                                   const char *job) {
    struct to_rank *new = calloc(1, sizeof *new);
    if (new)
        new->tails = calloc(r->n_tables, sizeof *new->tails);
    if (!new || !new->tails) {
        free(new);
        return NULL;
    }
    new->pid = pid;
    new->start_ticks = start_ticks;
    new->rank = rank;
    new->job_number = SIZE_MAX;
    snprintf(new->job, sizeof new->job, "%s", job);
    report_clear(&REPORT_TABLE_RANK, &new->report.row);
    for (size_t k = 0; k < r->n_tables; k++) {
        new->tails[k].table = r->tables[k];
        for (size_t i = 0; i < r->marks.n; i++) {
            const struct relay_mark *m = &r->marks.list[i];
            if (m->pid == pid && m->start_ticks == start_ticks && strcmp(m->table, r->tables[k]->name) == 0)
                ring_tail_continue(&new->tails[k], m->created_us, m->next);
        }
    }
    return new;
}

static struct to_rank *to_find_rank(const struct to *r, pid_t pid, uint64_t start_ticks) {
    for (size_t i = 0; i < r->n; i++)
        if (r->ranks[i]->pid == pid && r->ranks[i]->start_ticks == start_ticks)
            return r->ranks[i];
    return NULL;
}

/* Ranks that have ended since the relay before wrote its marks: their rings may still be there. */
static void to_add_finished(struct to *r) {
    for (size_t i = 0; i < r->marks.n; i++) {
        const struct relay_mark *m = &r->marks.list[i];
        struct rings_place place;
        struct err e;
        if (to_find_rank(r, (pid_t)m->pid, m->start_ticks) || rings_find_dead(m->pid, &place, &e) != 1 ||
            place.start_ticks != m->start_ticks || place.alive)
            continue;
        struct to_rank *rank = to_new_rank(r, (pid_t)m->pid, m->start_ticks, m->rank, m->job);
        struct to_rank **more = rank ? realloc(r->ranks, (r->n + 1) * sizeof *more) : NULL;
        if (!more) {
            if (rank)
                to_free_rank(r, rank);
            return;
        }
        r->ranks = more;
        r->ranks[r->n++] = rank;
        rank->is_gone = true;
        for (size_t k = 0; k < r->n_tables; k++)
            ring_tail_open(&rank->tails[k], &place);
    }
}

static void to_end_watches(struct to *r) {
    for (size_t i = 0; r->watches && i < r->here.jobs.n; i++)
        rank_states_end(&r->watches[i]);
    free(r->watches);
    r->watches = NULL;
}

/* The watches for a new list of jobs: of a job that has the same ranks, or fewer, the one that it has. */
static void to_keep_watches(struct to *r, const struct jobs_here *here, struct fleet_watch **watches) {
    for (size_t i = 0; r->watches && i < r->here.jobs.n; i++)
        for (size_t j = 0; j < here->jobs.n; j++) {
            if (strcmp(r->here.jobs.items[i].name, here->jobs.items[j].name) != 0)
                continue;
            rank_states_keep(&r->watches[i], &here->jobs.items[j]);
            watches[j] = r->watches[i];
            r->watches[i] = NULL;
        }
    to_end_watches(r);
}

/* Is a job one that is written? */
static bool to_wants(const struct to *r, const struct jobs_here *here, const struct job *job) {
    struct rank_set ranks = {.n = 0};
    struct err e;
    if (geteuid() != 0 && job->uid != (int64_t)geteuid())
        return false;
    if (!r->options->target)
        return true;
    bool is_it = jobs_here_choose(here, r->options->target, &ranks, &e) == job;
    rank_set_fini(&ranks);
    return is_it;
}

/* Make the list of ranks of what is here now; those that are no longer there follow until their rows are
 * written. 0, or -1 without memory: then nothing has changed. */
static int to_list(struct to *r, struct jobs_here *here) {
    size_t cap = r->n, n = 0, n_jobs = 0;
    for (size_t j = 0; j < here->jobs.n; j++)
        cap += here->jobs.items[j].n_ranks;
    struct to_rank **list = calloc(cap + 1, sizeof *list);
    struct rank_source *sources = calloc(cap + 1, sizeof *sources);
    struct fleet_watch **watches = calloc(here->jobs.n + 1, sizeof *watches);
    if (!list || !sources || !watches) {
        free(list);
        free(sources);
        free(watches);
        return -1;
    }
    for (size_t j = 0; j < here->jobs.n; j++)
        n_jobs += to_wants(r, here, &here->jobs.items[j]);
    /* one name is not for two jobs */
    bool is_clear = !r->options->job || n_jobs < 2;
    if (is_clear)
        r->note = (struct err){.code = ERR_OK};
    else
        err_set(&r->note, ERR_USAGE, "--job names one job, and %zu are here: add one of them as job:NAME",
                n_jobs);
    rank_reader_stop(&r->reader);
    to_keep_watches(r, here, watches);
    for (size_t j = 0; is_clear && j < here->jobs.n; j++) {
        const struct job *job = &here->jobs.items[j];
        const char *name = r->options->job ? r->options->job : job->name;
        for (size_t i = 0; i < job->n_ranks && to_wants(r, here, job); i++) {
            const struct job_member *m = &job->members[i];
            const struct target_process *p = jobs_here_process(here, m);
            struct to_rank *rank = to_find_rank(r, m->pid, p->start_ticks);
            if (!rank && !(rank = to_new_rank(r, m->pid, p->start_ticks, m->rank, name)))
                continue;
            if (rank->job_number == SIZE_MAX)
                r->rings_every_ns = TO_RINGS_LEAST_NS;
            rank->job_number = j;
            rank->rank = m->rank;
            rank->local_rank = p->env.local;
            rank->is_gone = false;
            sources[n] = (struct rank_source){.pid = m->pid,
                                              .start_ticks = p->start_ticks,
                                              .rank = m->rank,
                                              .local_rank = p->env.local,
                                              .agent = p->attached};
            list[n++] = rank;
        }
    }
    r->n_listed = n;
    for (size_t i = 0; i < r->n; i++) {
        bool is_listed = false;
        for (size_t k = 0; k < r->n_listed; k++)
            is_listed |= list[k] == r->ranks[i];
        if (is_listed)
            continue;
        r->ranks[i]->is_gone = true;
        r->ranks[i]->is_blocked = false; /* its rings are files, which block nobody */
        r->ranks[i]->job_number = SIZE_MAX;
        list[n++] = r->ranks[i];
    }
    free(r->ranks);
    free(r->sources);
    jobs_here_fini(&r->here);
    r->here = *here;
    r->ranks = list;
    r->n = n;
    r->sources = sources;
    r->watches = watches;
    rank_reader_init(&r->reader, r->sources, r->n_listed);
    r->found++;
    return 0;
}

static bool to_is_same(const struct to *r, const struct jobs_here *here) {
    size_t n = 0;
    for (size_t j = 0; j < here->jobs.n; j++)
        for (size_t i = 0; i < here->jobs.items[j].n_ranks && to_wants(r, here, &here->jobs.items[j]);
             i++, n++) {
            const struct job_member *m = &here->jobs.items[j].members[i];
            const struct to_rank *rank = to_find_rank(r, m->pid, jobs_here_process(here, m)->start_ticks);
            if (!rank || rank->job_number == SIZE_MAX || rank->is_gone || rank->rank != m->rank)
                return false;
        }
    return n == r->n_listed && !r->note.text[0];
}

/* Are the ranks that live among what was found? One may block whoever reads it just now. */
static bool to_is_whole(const struct to *r, const struct jobs_here *here) {
    for (size_t i = 0; i < r->n_listed; i++) {
        const struct to_rank *rank = r->ranks[i];
        struct procfs_stat st;
        bool is_found = procfs_read_stat(rank->pid, 0, &st) != 0 || st.start_ticks != rank->start_ticks ||
                        procfs_is_gone(rank->pid);
        /* in whatever role: one from before a restart lives on beside those that have taken its place */
        for (size_t j = 0; !is_found && j < here->jobs.n; j++)
            for (size_t k = 0; k < here->jobs.items[j].n_members; k++)
                is_found |= here->jobs.items[j].members[k].pid == rank->pid;
        if (!is_found)
            return false;
    }
    return true;
}

/* Which Python processes there are, whatever they run. */
static uint64_t to_hash_processes(const struct jobs_here *here) {
    uint64_t sum = 0;
    for (size_t i = 0; i < here->n; i++)
        sum += hash_mix((uint64_t)here->list[i].pid ^ hash_mix(here->list[i].start_ticks));
    return sum;
}

/* Is it time to find out all that can be? Jobs without a launcher are known by what is in their memory, which takes
 * long: so when processes have come or gone, and now and then, for one that loads torch later. */
static bool to_is_search_due(struct to *r) {
    struct jobs_here here;
    struct err e;
    if (!r->found)
        return true;
    int rc = jobs_here_read(&here, TO_SEARCH_MS, &e);
    uint64_t processes = to_hash_processes(&here), now = clock_mono_ns();
    bool is_due =
        rc == 0 && !here.is_cut &&
        (processes != r->processes || r->note.text[0] || now - r->searched_all_ns > TO_SEARCH_ALL_NS);
    jobs_here_fini(&here);
    if (is_due) {
        r->processes = processes;
        r->searched_all_ns = now;
    }
    return is_due;
}

static void to_search(struct to *r) {
    struct jobs_here here;
    struct err e;
    if (!to_is_due(&r->searched_ns, TO_SEARCH_NS) || !to_is_search_due(r))
        return;
    if (jobs_here_read(&here, 0, &e) != 0 || (r->found && (!to_is_whole(r, &here) || to_is_same(r, &here))) ||
        to_list(r, &here) != 0)
        jobs_here_fini(&here);
}

/* Load agents where there are none. */
static void to_attach(struct to *r) {
    struct job_task *tasks = r->options->no_inject ? NULL : calloc(r->n_listed + 1, sizeof *tasks);
    size_t n = 0;
    uint64_t now = clock_mono_ns();
    for (size_t i = 0; tasks && i < r->n_listed; i++) {
        struct to_rank *rank = r->ranks[i];
        struct rings_place place;
        if (rank->attach_tries >= TO_ATTACH_TRIES || rank->is_gone || rank->is_blocked ||
            (rank->attach_at_ns && now < rank->attach_at_ns))
            continue;
        if (rings_find(rank->pid, &place) == 1 && place.alive) {
            rank->attach_tries = TO_ATTACH_TRIES;
            continue;
        }
        tasks[n++] = (struct job_task){.pid = rank->pid, .rank = rank->rank};
    }
    if (n > 0) {
        sigset_t asks, usual;
        sigemptyset(&asks);
        sigaddset(&asks, SIGINT);
        sigaddset(&asks, SIGTERM);
        sigaddset(&asks, SIGHUP);
        sigprocmask(SIG_BLOCK, &asks, &usual);
        job_each(tasks, n, job_attach);
        sigprocmask(SIG_SETMASK, &usual, NULL);
    }
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < r->n_listed; i++) {
            struct to_rank *rank = r->ranks[i];
            if (rank->pid != tasks[k].pid)
                continue;
            rank->attach_tries = tasks[k].rc < 0 ? rank->attach_tries + 1 : TO_ATTACH_TRIES;
            rank->attach_at_ns = clock_mono_ns() + TO_ATTACH_NS;
            if (tasks[k].rc < 0)
                output_say("probing: rank %d: %s\n", rank->rank, err_text(&tasks[k].error));
        }
    free(tasks);
}

/* ---- stacks ---- */

static void to_forget_stacks(struct to *r) {
    table_clear(&r->stack_table);
    r->n_stacks = 0;
}

/* A stack whose frames are not written today: a row of them. */
static void to_add_stack(struct to *r, const struct to_rank *rank, const struct rank_reading *got,
                         uint64_t hash) {
    struct row_value func[STACK_CLASSES_DEPTH], file[STACK_CLASSES_DEPTH], line[STACK_CLASSES_DEPTH];
    struct row_value row[ENGINE_STACKS_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < got->n_frames && n < STACK_CLASSES_DEPTH; i++) {
        const struct model_frame *f = &got->frames[i];
        if (f->kind == MODEL_FRAME_ENTRY)
            continue;
        func[n] = row_text(f->func);
        file[n] = row_text(f->file);
        line[n++] = row_int(f->line > 0 ? f->line : 0);
    }
    row[ENGINE_STACKS_DAY] = row_int(r->stack_day);
    row[ENGINE_STACKS_JOB] = row_text(rank->job);
    row[ENGINE_STACKS_STACK] = row_bits(hash);
    row[ENGINE_STACKS_FUNC] = (struct row_value){.kind = ROW_LIST, .items = func, .n = n};
    row[ENGINE_STACKS_FILE] = (struct row_value){.kind = ROW_LIST, .items = file, .n = n};
    row[ENGINE_STACKS_LINE] = (struct row_value){.kind = ROW_LIST, .items = line, .n = n};
    to_add(&r->stacks, row);
}

static int64_t to_keep_stack(struct to *r, const struct to_rank *rank, const struct rank_reading *got) {
    uint64_t hash = stack_classes_hash(got->frames, got->n_frames), key;
    size_t at = TABLE_BEGIN;
    uint32_t i;
    int64_t id, day = engine_day(got->report.taken_at);
    memcpy(&id, &hash, sizeof id);
    key = hash_mix(hash ^ hash_fnv_text(HASH_FNV_START, rank->job));
    if (day != r->stack_day || r->n_stacks >= TO_STACKS)
        to_forget_stacks(r);
    r->stack_day = day;
    while ((i = table_next(&r->stack_table, key, &at)) != TABLE_NONE)
        if (r->stack_list[i].key == key)
            break;
    if (i == TABLE_NONE) {
        if (grow_array(&r->stack_list, sizeof *r->stack_list, r->n_stacks + 1, &r->cap_stacks) != 0 ||
            table_add(&r->stack_table, key, (uint32_t)r->n_stacks) != 0)
            return REPORT_NO_INT;
        i = (uint32_t)r->n_stacks++;
        r->stack_list[i] = (struct to_stack){.key = key};
    }
    if (!r->stack_list[i].is_written && !r->stack_list[i].is_in_batch && r->stacks.bytes.len < TO_BATCH) {
        to_add_stack(r, rank, got, hash);
        r->stack_list[i].is_in_batch = true;
    }
    return id;
}

static void to_write_stacks(struct to *r) {
    if (r->stacks.n == 0)
        return;
    int rc = to_send(r, &r->stacks, TO_LIVE_S);
    for (size_t i = 0; i < r->n_stacks; i++) {
        r->stack_list[i].is_written |= rc == 0 && r->stack_list[i].is_in_batch;
        r->stack_list[i].is_in_batch = false;
    }
}

/* ---- what they do ---- */

static void to_keep_reading(struct to *r, const struct rank_reading *got) {
    struct to_rank *rank = r->ranks[got->source];
    rank->is_gone = got->is_gone;
    rank->is_blocked = r->sources[got->source].is_blocked;
    rank_report_take(&rank->report, got, got->frames ? to_keep_stack(r, rank, got) : got->report.stack);
}

/* Processor time since the round before. */
static void to_measure(struct to *r) {
    uint64_t cpu = rank_reader_cpu_ns(&r->reader), now = clock_mono_ns();
    r->cost_pct = r->cpu_at_ns && cpu >= r->cpu_ns && now > r->cpu_at_ns
                      ? 100.0 * (double)(cpu - r->cpu_ns) / (double)(now - r->cpu_at_ns)
                      : NAN;
    r->cpu_ns = cpu;
    r->cpu_at_ns = now;
}

static void to_add_live(struct to *r, const struct to_rank *rank) {
    struct row_value row[ENGINE_MAX_COLUMNS];
    struct report_rank report = rank->report.row;
    report.round = r->round;
    report.found = r->found;
    report.cost_pct = r->cost_pct;
    engine_put_common(row, rank->job, rank->rank, r->host, rank->pid, r->created_us, r->number++,
                      report.taken_at);
    report_put_engine(&REPORT_TABLE_RANK, &report, r->live.table, row);
    to_add(&r->live, row);
}

/* Read the ranks once, and write what they do. */
static void to_read_round(struct to *r) {
    struct rank_reading got;
    struct err e;
    int rc = 0;
    r->round++;
    if (r->n_listed == 0 || rank_reader_begin(&r->reader, &e) != 0)
        return;
    while (rc == 0 && to_signals < 2) {
        struct pollfd fd = {.fd = rank_reader_fd(&r->reader), .events = POLLIN};
        poll(&fd, 1, TO_POLL_MS);
        while ((rc = rank_reader_take(&r->reader, &got)) == 1)
            to_keep_reading(r, &got);
    }
    to_measure(r);
    for (size_t i = 0; i < r->n_listed; i++)
        to_add_live(r, r->ranks[i]);
    to_send(r, &r->live, TO_LIVE_S);
    to_write_stacks(r);
}

/* ---- what a verdict is made of ---- */

/* May a rank be stuck, as far as the round shows? */
static bool to_is_suspect(const struct to_rank *rank) {
    const struct report_rank *now = &rank->report.row;
    double late_s = fmax(TO_STEPS_LATE_S, TO_STEPS_LATE * now->step_ms / 1000);
    if (rank->is_gone || rank->is_blocked || (now->state && strchr("TtD", now->state[0])))
        return true;
    if (now->taken_at - now->since >= TO_STILL_S && now->thread_cpu_pct < TO_SUSPECT_CPU_PCT)
        return true;
    return now->step != REPORT_NO_INT && now->taken_at - now->step_at > late_s;
}

/* A row that is added, and whose. */
struct to_verdict {
    struct to *relay;
    const struct job *job;
    const char *name;
};

static pid_t to_pid_of(const struct to_verdict *v, int64_t rank) {
    for (size_t i = 0; i < v->job->n_ranks; i++)
        if (v->job->members[i].rank == rank)
            return v->job->members[i].pid;
    return 0;
}

static void to_add_state(void *arg, const void *from) {
    const struct to_verdict *v = arg;
    const struct report_state *state = from;
    struct to *r = v->relay;
    struct row_value row[ENGINE_MAX_COLUMNS];
    engine_put_common(row, v->name, state->rank, r->host, state->pid, r->created_us, r->number++,
                      r->states_at);
    report_put_engine(&REPORT_TABLE_STATE, state, r->states.table, row);
    to_add(&r->states, row);
}

static void to_add_group(void *arg, const void *from) {
    const struct to_verdict *v = arg;
    const struct report_group *group = from;
    struct to *r = v->relay;
    struct row_value row[ENGINE_MAX_COLUMNS];
    engine_put_common(row, v->name, group->rank, r->host, to_pid_of(v, group->rank), r->created_us,
                      r->number++, r->states_at);
    report_put_engine(&REPORT_TABLE_GROUP, group, r->groups.table, row);
    to_add(&r->groups, row);
}

/* The first rank of a job that is read; NULL: it is not written. */
static const struct to_rank *to_first_of(const struct to *r, size_t job) {
    for (size_t i = 0; i < r->n_listed; i++)
        if (r->ranks[i]->job_number == job)
            return r->ranks[i];
    return NULL;
}

static void to_write_states(struct to *r) {
    struct err e;
    bool is_suspect = false;
    for (size_t i = 0; i < r->n_listed; i++)
        is_suspect |= to_is_suspect(r->ranks[i]);
    for (size_t j = 0; r->watches && j < r->here.jobs.n; j++)
        is_suspect |= rank_states_is_suspect(r->watches[j]);
    uint64_t now = clock_mono_ns();
    if (is_suspect)
        r->suspect_ns = now;
    if (!r->suspect_ns || now - r->suspect_ns > TO_CALM_NS) {
        for (size_t j = 0; r->watches && j < r->here.jobs.n; j++)
            rank_states_end(&r->watches[j]);
        return;
    }
    if (to_waits(r) || !to_is_due(&r->states_ns, TO_STATES_NS))
        return;
    for (size_t j = 0; r->watches && j < r->here.jobs.n; j++) {
        const struct to_rank *first = to_first_of(r, j);
        struct to_verdict v = {.relay = r, .job = &r->here.jobs.items[j], .name = first ? first->job : ""};
        r->states_at = clock_epoch_s();
        if (first && rank_states_read(&r->watches[j], &r->here, v.job, true, to_add_state, &v, &e) == 0)
            rank_states_groups(r->watches[j], 0, to_add_group, &v);
    }
    to_send(r, &r->states, TO_LIVE_S);
    to_send(r, &r->groups, TO_LIVE_S);
}

/* ---- GPUs ---- */

struct to_gpu {
    struct to *relay;
    const struct to_rank *rank;
};

static void to_add_gpu(void *arg, const struct gpu_device *device, bool is_assumed) {
    const struct to_gpu *g = arg;
    struct to *r = g->relay;
    struct row_value row[ENGINE_MAX_COLUMNS];
    union ring_value values[RING_GPU_COUNT];
    char reasons[GPU_ROW_REASONS];
    double at = device->newest.timestamp > 0 ? device->newest.timestamp : clock_epoch_s();
    gpu_row_fill(values, &device->facts, &device->newest, is_assumed, reasons);
    engine_put_common(row, g->rank->job, g->rank->rank, r->host, g->rank->pid, r->created_us, r->number++,
                      at);
    engine_put_ring(r->gpus.table, values, row);
    to_add(&r->gpus, row);
}

static void to_write_gpus(struct to *r) {
    if (to_waits(r) || !to_is_due(&r->gpus_ns, TO_GPU_NS))
        return;
    for (size_t i = 0; i < r->n_listed; i++)
        gpu_process_each(r->ranks[i]->pid, to_add_gpu, &(struct to_gpu){r, r->ranks[i]});
    to_send(r, &r->gpus, TO_LIVE_S);
}

/* ---- the rings ---- */

/* True if there are new ones. */
static bool to_open_rings(struct to *r) {
    struct rings_place place;
    bool any = false;
    for (size_t i = 0; i < r->n_listed; i++) {
        struct to_rank *rank = r->ranks[i];
        if (rank->is_gone || rank->is_blocked || rings_find(rank->pid, &place) != 1)
            continue;
        for (size_t k = 0; k < r->n_tables; k++)
            any |= ring_tail_open(&rank->tails[k], &place);
    }
    return any;
}

/* Write the new rows of a table. 0, or -1: the server does not have all. */
static int to_write_table(struct to *r, size_t k, double limit_s, bool *is_changed) {
    bool more = true;
    while (more && to_signals < 2) {
        more = false;
        r->rings.table = r->tables[k];
        for (size_t i = 0; i < r->n; i++) {
            const struct to_rank *rank = r->ranks[i];
            struct ring_tail_owner owner = {
                .job = rank->job, .host = r->host, .rank = rank->rank, .pid = rank->pid};
            if (!rank->is_blocked)
                more |= ring_tail_take(&rank->tails[k], &owner, &r->rings.bytes, TO_BATCH, &r->rings.n);
        }
        if (to_send(r, &r->rings, limit_s) != 0)
            return -1;
        for (size_t i = 0; i < r->n; i++)
            if (!r->ranks[i]->is_blocked)
                *is_changed |= ring_tail_pass(&r->ranks[i]->tails[k]);
    }
    return 0;
}

static uint64_t to_count_lost(const struct to *r) {
    uint64_t lost = r->lost;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->n_tables; k++)
            lost += r->ranks[i]->tails[k].lost;
    return lost;
}

/* A gap is counted where it is passed: the number of rows that are lost and the place in the ring stay together. */
static void to_write_marks(struct to *r) {
    struct relay_marks marks = {.lost = to_count_lost(r)};
    struct relay_mark *m;
    struct err e;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->n_tables; k++) {
            const struct ring_tail *t = &r->ranks[i]->tails[k];
            if (!t->created_us || !t->is_continued || !(m = relay_marks_add(&marks)))
                continue;
            *m = (struct relay_mark){.pid = r->ranks[i]->pid,
                                     .start_ticks = r->ranks[i]->start_ticks,
                                     .rank = r->ranks[i]->rank,
                                     .created_us = t->created_us,
                                     .next = t->next};
            memcpy(m->job, r->ranks[i]->job, sizeof m->job);
            snprintf(m->table, sizeof m->table, "%s", r->tables[k]->name);
        }
    if (relay_marks_write(&marks, r->marks_path, &e) != 0)
        to_keep_error(r, &e, false);
    relay_marks_fini(&marks);
}

/* Forget ranks that have ended, whose rows are written. True if there were any. */
static bool to_drop_finished(struct to *r) {
    size_t kept = r->n_listed;
    for (size_t i = r->n_listed; i < r->n; i++)
        to_free_rank(r, r->ranks[i]);
    bool any = r->n > kept;
    r->n = kept;
    return any;
}

/* When rings are read again. A small ring of a job with short steps is overwritten within seconds; how fast is not
 * known of new ranks, which are read often at first. */
static void to_pace_rings(struct to *r) {
    uint64_t now = clock_mono_ns(), since_ns = r->paced_ns ? now - r->paced_ns : TO_RINGS_LEAST_NS;
    double fill = 0, every_ns = fmin((double)TO_RINGS_NS, (double)since_ns * TO_RINGS_GROWTH);
    r->paced_ns = now;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->n_tables; k++) {
            struct ring_tail *t = &r->ranks[i]->tails[k];
            fill = t->fill > fill ? t->fill : fill;
            t->fill = 0;
        }
    if (fill > 0)
        every_ns = fmin(every_ns, (double)since_ns * TO_RINGS_FILL / fill);
    r->rings_every_ns = (uint64_t)fmax(every_ns, (double)TO_RINGS_LEAST_NS);
}

/* 0, or -1: the server does not have all of them. */
static int to_write_rings(struct to *r, double limit_s) {
    bool is_changed = false;
    /* before the first row: a rank that ends while no relay or no server runs is known to the next relay */
    if (to_open_rings(r))
        to_write_marks(r);
    int rc = to_waits(r) ? -1 : 0;
    for (size_t k = 0; k < r->n_tables && rc == 0; k++)
        rc = to_write_table(r, k, limit_s, &is_changed);
    if (rc == 0) {
        r->clean_at = clock_epoch_s();
        is_changed |= to_drop_finished(r);
    }
    if (is_changed)
        to_write_marks(r);
    return rc;
}

/* ---- the host ---- */

static double to_lag_s(const struct to *r) { return r->retry_ns ? clock_epoch_s() - r->clean_at : 0; }

static void to_write_hosts(struct to *r) {
    struct row_value row[ENGINE_MAX_COLUMNS];
    for (size_t j = 0; j < r->here.jobs.n; j++) {
        const struct to_rank *first = to_first_of(r, j);
        struct job_report report;
        if (!first)
            continue;
        job_report_fill(&report, &r->here.jobs.items[j], r->found);
        engine_put_common(row, first->job, -1, r->host, getpid(), r->created_us, r->number++,
                          clock_epoch_s());
        report_put_engine(&REPORT_TABLE_JOB, &report.row, r->hosts.table, row);
        struct row_value *own = row + r->hosts.table->n - ENGINE_HOSTS_COUNT;
        own[ENGINE_HOSTS_VIA] = row_text(NULL);
        own[ENGINE_HOSTS_COST_PCT] = row_real(r->cost_pct);
        own[ENGINE_HOSTS_WRITTEN] = row_int((int64_t)r->written);
        own[ENGINE_HOSTS_LOST] = row_int((int64_t)to_count_lost(r));
        own[ENGINE_HOSTS_LAG_S] = row_real(to_lag_s(r));
        own[ENGINE_HOSTS_CLOCK_S] = row_real(r->clock_s);
        to_add(&r->hosts, row);
        job_report_fini(&report);
    }
    to_send(r, &r->hosts, TO_LIVE_S);
}

/* ---- its state ---- */

static void to_put_state(const struct to *r, struct strbuf *out) {
    struct strbuf url;
    struct json j;
    strbuf_init(&url, 0);
    engine_address_put(engine_http_address(r->http), &url);
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_string(&j, "to", strbuf_str(&url));
    json_kv_string(&j, "host", r->host);
    json_kv_int(&j, "pid", getpid());
    json_kv_number(&j, "at", clock_epoch_s(), 3);
    json_kv_number(&j, "since", r->since, 3);
    json_kv_bool(&j, "writing", !r->retry_ns && r->is_checked && !r->note.text[0]);
    json_kv_int(&j, "ranks", (int64_t)r->n_listed);
    json_kv_uint(&j, "rows_written", r->written);
    json_kv_uint(&j, "rows_lost", to_count_lost(r));
    json_kv_number(&j, "lag_s", to_lag_s(r), 1);
    json_kv_number(&j, "cost_pct", r->cost_pct, 2);
    json_kv_number(&j, "clock_s", r->clock_s, 3);
    json_kv_string(&j, "error",
                   r->note.text[0]         ? r->note.text
                   : r->last_error.text[0] ? r->last_error.text
                                           : NULL);
    json_kv_number(&j, "error_at", r->last_error_at, 3);
    json_key(&j, "jobs");
    json_array_begin(&j);
    for (size_t k = 0; k < r->here.jobs.n; k++)
        if (to_first_of(r, k))
            json_string(&j, to_first_of(r, k)->job);
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    strbuf_fini(&url);
}

static void to_write_state(const struct to *r) {
    struct strbuf out;
    struct err e;
    strbuf_init(&out, 0);
    to_put_state(r, &out);
    output_write(r->state_path, &out, &e);
    strbuf_fini(&out);
}

/* Metrics of a rank, and of the relay. */

static double to_metric_of(int64_t v) { return v == REPORT_NO_INT ? NAN : (double)v; }

static void to_put_metrics(const struct to *r, struct strbuf *out) {
    static const char *const names[] = {
        "rank_alive",        "rank_step",         "rank_step_seconds",     "rank_step_age_seconds",
        "rank_data_seconds", "rank_comm_seconds", "rank_gc_seconds",       "rank_cpu_ratio",
        "rank_rss_bytes",    "rank_gpu_ratio",    "rank_gpu_memory_bytes", "rank_stack_age_seconds"};
    for (size_t m = 0; m < sizeof names / sizeof names[0]; m++) {
        relay_metrics_put_type(out, names[m], "gauge");
        for (size_t i = 0; i < r->n_listed; i++) {
            const struct to_rank *rank = r->ranks[i];
            const struct report_rank *v = &rank->report.row;
            const double values[] = {!rank->is_gone,
                                     to_metric_of(v->step),
                                     v->step_ms / 1000,
                                     v->taken_at - v->step_at,
                                     v->data_ms / 1000,
                                     v->comm_ms / 1000,
                                     v->gc_ms / 1000,
                                     v->cpu_pct / 100,
                                     to_metric_of(v->rss_bytes),
                                     v->gpu_util / 100,
                                     v->gpu_mem_mb * 1024 * 1024,
                                     v->taken_at - v->since};
            relay_metrics_put(out, names[m], rank->job, rank->rank, values[m]);
        }
    }
    relay_metrics_put_type(out, "relay_writing", "gauge");
    relay_metrics_put(out, "relay_writing", NULL, 0, !r->retry_ns && r->is_checked);
    relay_metrics_put_type(out, "relay_lag_seconds", "gauge");
    relay_metrics_put(out, "relay_lag_seconds", NULL, 0, to_lag_s(r));
    relay_metrics_put_type(out, "relay_rows_written_total", "counter");
    relay_metrics_put(out, "relay_rows_written_total", NULL, 0, (double)r->written);
    relay_metrics_put_type(out, "relay_rows_lost_total", "counter");
    relay_metrics_put(out, "relay_rows_lost_total", NULL, 0, (double)to_count_lost(r));
    relay_metrics_put_type(out, "relay_errors_total", "counter");
    relay_metrics_put(out, "relay_errors_total", NULL, 0, (double)r->errors);
}

static void to_serve_metrics(struct to *r) {
    struct strbuf out;
    strbuf_init(&out, 0);
    to_put_metrics(r, &out);
    relay_metrics_answer(r->metrics, &out);
    strbuf_fini(&out);
}

/* ---- the loop ---- */

/* The next round begins early in the next second, on all hosts of a job at the same place in it. */
static void to_plan(struct to *r) {
    double second = floor(clock_epoch_s()) + 1;
    uint64_t h = hash_mix(HASH_FNV_START ^ (uint64_t)second);
    r->next_at = second + (double)(h % 1000) / 1000.0 * TO_JITTER_S;
}

static void to_wait(struct to *r) {
    while (!to_signals) {
        double left_s = r->next_at - clock_epoch_s();
        struct pollfd fd = {.fd = r->metrics, .events = POLLIN};
        /* the clock was set back */
        if (left_s <= 0 || left_s > 2)
            return;
        if (poll(&fd, 1, (int)(left_s * 1000) + 1) > 0 && fd.revents)
            to_serve_metrics(r);
    }
}

static void to_loop(struct to *r) {
    bool has_gone;
    while (!to_signals) {
        to_search(r);
        to_attach(r);
        to_read_round(r);
        to_write_states(r);
        to_write_gpus(r);
        has_gone = r->n > r->n_listed;
        bool ends = has_gone && !r->retry_ns;
        if (to_is_due(&r->rings_ns, ends ? 0 : r->rings_every_ns) && to_write_rings(r, TO_RINGS_S) == 0)
            to_pace_rings(r);
        if (to_is_due(&r->hosts_ns, ends ? 0 : TO_RINGS_NS)) {
            to_read_clock(r);
            to_write_hosts(r);
            to_write_state(r);
        }
        to_plan(r);
        to_wait(r);
    }
    r->retry_at_ns = 0;
    (void)to_write_rings(r, TO_END_S);
    to_write_hosts(r);
    to_write_state(r);
}

/* ---- beginning and end ---- */

static int to_add_table(struct to *r, const struct engine_table *t) {
    for (size_t i = 0; i < r->n_tables; i++)
        if (r->tables[i] == t)
            return 0;
    const struct engine_table **more = realloc(r->tables, (r->n_tables + 1) * sizeof *more);
    if (!more)
        return -1;
    r->tables = more;
    r->tables[r->n_tables++] = t;
    return 0;
}

/* The tables that are asked for, and those that are always written. */
static int to_choose_tables(struct to *r, struct err *e) {
    static const enum ring_table always[] = {RING_STEPS, RING_COLLECTIVES, RING_MEMORY, RING_PROCESS_HISTORY};
    const char *text = r->options->tables;
    int rc = 0;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        rc |= to_add_table(r, engine_table_find(RING_TABLES[always[i]].name));
    for (size_t i = 0; text && strcmp(text, "all") == 0 && i < RING_TABLE_KEPT; i++)
        rc |= to_add_table(r, engine_table_find(RING_TABLES[i].name));
    for (const char *at = text && strcmp(text, "all") != 0 ? text : ""; *at && rc == 0;) {
        char name[RING_MAX_NAME];
        size_t len = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        const struct engine_table *t = engine_table_find(name);
        if (!t || !t->ring || t->ring - RING_TABLES >= RING_TABLE_KEPT)
            return err_set(e, ERR_USAGE, "there is no table '%s' to be recorded. 'probing tables' lists them",
                           name);
        rc = to_add_table(r, t);
        at += len + (at[len] == ',');
    }
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the tables");
}

static void to_begin_rows(struct to_rows *rows, const char *table) {
    rows->table = table ? engine_table_find(table) : NULL;
    strbuf_init(&rows->bytes, 0);
}

/* Can the server be written to? One that does not answer is waited for; that it refuses us is an error. */
static int to_begin_server(struct to *r, struct err *e) {
    if (to_check(r, e) == 0)
        return 0;
    if (!engine_http_may_recover(r->http))
        return -1;
    to_note_error(r, e);
    return 0;
}

static void to_listen_for_signals(void) {
    struct sigaction action = {.sa_handler = to_on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void to_fini(struct to *r) {
    struct to_rows *all[] = {&r->live, &r->states, &r->groups, &r->stacks, &r->rings, &r->gpus, &r->hosts};
    rank_reader_stop(&r->reader);
    to_end_watches(r);
    for (size_t i = 0; i < r->n; i++)
        to_free_rank(r, r->ranks[i]);
    free(r->ranks);
    free(r->sources);
    free(r->tables);
    jobs_here_fini(&r->here);
    relay_marks_fini(&r->marks);
    table_fini(&r->stack_table);
    free(r->stack_list);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        strbuf_fini(&all[i]->bytes);
    if (r->metrics >= 0)
        close(r->metrics);
    if (r->lock >= 0)
        close(r->lock);
    to_http = NULL;
    engine_http_close(r->http);
}

static int to_begin(struct to *r, struct err *e) {
    struct engine_address a;
    if (engine_address_parse(&a, r->options->url, e) != 0 || engine_address_read_password(&a, e) != 0 ||
        to_choose_tables(r, e) != 0)
        return -1;
    if (r->options->job && !engine_address_name_ok(r->options->job, ENGINE_ADDRESS_JOB))
        return err_set(e, ERR_USAGE, "the name of the job is empty, too long, or not valid");
    if (!(r->http = engine_http_open(&a, e)) || relay_marks_where(&a, ".marks", r->marks_path, e) != 0 ||
        relay_marks_where(&a, ".status", r->state_path, e) != 0 || (r->lock = relay_marks_lock(&a, e)) < 0 ||
        relay_marks_read(&r->marks, r->marks_path, e) != 0)
        return -1;
    r->lost = r->marks.lost;
    if (r->options->metrics && (r->metrics = relay_metrics_listen(r->options->metrics, e)) < 0)
        return -1;
    to_http = r->http;
    to_listen_for_signals();
    return to_begin_server(r, e);
}

int relay_to_run(const struct relay_to_options *o, struct err *e) {
    struct to *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, ERR_FAILED, "out of memory for a relay");
    r->options = o;
    r->lock = r->metrics = -1;
    r->clock_s = r->cost_pct = NAN;
    r->last_error_at = NAN;
    r->since = r->clean_at = clock_epoch_s();
    r->created_us = (uint64_t)llround(r->since * 1e6);
    if (gethostname(r->host, sizeof r->host - 1) != 0 || !r->host[0])
        snprintf(r->host, sizeof r->host, "localhost");
    to_begin_rows(&r->live, "ranks");
    to_begin_rows(&r->states, "states");
    to_begin_rows(&r->groups, "groups");
    to_begin_rows(&r->stacks, "stacks");
    to_begin_rows(&r->gpus, "gpu_metrics");
    to_begin_rows(&r->hosts, "hosts");
    to_begin_rows(&r->rings, NULL);
    int rc = to_begin(r, e);
    if (rc == 0) {
        setpriority(PRIO_PROCESS, 0, TO_NICE);
        gpu_poller_keep(); /* a driver takes a while to begin */
        to_add_finished(r);
        to_loop(r);
    }
    to_fini(r);
    free(r);
    return rc;
}

int relay_to_put_state(const char *url, struct strbuf *out, struct err *e) {
    struct engine_address a;
    char path[RELAY_MARKS_PATH];
    if (engine_address_parse(&a, url, e) != 0 || relay_marks_where(&a, ".status", path, e) != 0)
        return -1;
    int lock = relay_marks_lock(&a, e);
    if (lock >= 0) {
        close(lock);
        return err_set(e, ERR_FAILED, "no relay of this user writes to that server from this host");
    }
    out->limit = 0;
    if (strbuf_read_file(out, path) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    return strstr(strbuf_str(out), "\"writing\": true") != NULL;
}
