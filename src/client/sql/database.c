/* SPDX-License-Identifier: Apache-2.0 */
/* database: see database.h. */
#include "client/sql/database.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/sql/table_mirror.h"
#include "client/guard.h"
#include "client/sql/comm_metrics.h"
#include "client/sql/live_tables.h"
#include "client/target/rings.h"
#include "client/target/target.h"
#include "client/symbols/symbols.h"
#include "client/sql/training_logs.h"
#include "pystack/pystack.h"
#include "store/recording/archive.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_tables.h"
#include "wire/wire.h"

#define DATABASE_COPY_S 2.0 /* limit for copying tables before a query */

/* A target that has not answered for longer than this is silent: it is left alone for a while, and for twice as
 * long each time, because the others' rows wait meanwhile. */
#define DATABASE_SILENT_NS CLOCK_NS_PER_S
#define DATABASE_PAUSE_NS (4 * CLOCK_NS_PER_S)
#define DATABASE_PAUSE_DOUBLED 4 /* at most */

/* How long a copy may take: of a silent target, of others while one is silent, and of any when no time is to be
 * lost. Otherwise each wait in it has its own limit. */
#define DATABASE_RETRY_NS (6 * CLOCK_NS_PER_S)
#define DATABASE_DOUBTFUL_NS (3 * CLOCK_NS_PER_S)
#define DATABASE_HURRIED_NS CLOCK_NS_PER_S
#define DATABASE_HURRIED_S 0.5 /* in place of DATABASE_COPY_S: who has that much to copy does answer */

#define DATABASE_FEW 8          /* targets whose tables fit the usual limit of open files */
#define DATABASE_FILES 1048576U /* enough for those of all targets */

#define DATABASE_YOUNG_S 2.0 /* a younger agent may not have made its tables yet */
#define DATABASE_POLL_NS (20 * (long)CLOCK_NS_PER_MS)

struct database_target {
    struct live_target live;
    struct sql_provider tables[LIVE_TABLES_MAX];
    struct rings_place place;
    size_t number; /* its number in the SQL session */
    bool has_place;
    char host[256];              /* "": this one's own name */
    int64_t rank;                /* RING_INT_NULL: unknown; until it is added: as its environment has it */
    bool is_of_job;              /* it is asked as that rank, perhaps the only one of its host */
    bool in_memory;              /* its tables have no files */
    struct table_mirror *copies; /* of tables whose files cannot be opened; NULL none */
    struct err uncopied;         /* why there are no copies, or no newer ones; ERR_OK */
    unsigned n_silent;           /* how often it was silent, since it was not */
    uint64_t paused_until_ns;    /* silent: then it is asked again */
};

struct database {
    struct sql *sql;
    struct database_target **targets;
    size_t n_targets;
    size_t n_living;
    bool one_clock;
    double moment; /* that now() is; NAN: the clock */
    atomic_bool cancelled, hurried;
    char note[640];
    char recording[640];    /* a note about a recording */
    const char *uncompared; /* what comm_metrics of this query does not know; NULL */
};

struct database *database_open(struct err *e) {
    struct database *d = calloc(1, sizeof *d);
    if (!d) {
        err_set(e, ERR_FAILED, "out of memory for a database");
        return NULL;
    }
    d->moment = NAN;
    d->sql = sql_open(e);
    if (!d->sql) {
        free(d);
        return NULL;
    }
    sql_set_demangle(d->sql, symbols_demangle);
    return d;
}

void database_close(struct database *d) {
    if (!d)
        return;
    sql_close(d->sql);
    for (size_t i = 0; i < d->n_targets; i++) {
        table_mirror_free(d->targets[i]->copies);
        live_loaders_free(d->targets[i]->live.loaders);
        free(d->targets[i]);
    }
    free(d->targets);
    free(d);
}

struct sql *database_sql(struct database *d) {
    return d->sql;
}

const struct target_address *database_agent(const struct database *d, size_t number) {
    for (size_t i = 0; i < d->n_targets; i++) {
        const struct target_address *addr = &d->targets[i]->live.addr;
        if (d->targets[i]->number == number)
            return addr->mode == MODEL_MODE_AGENT && addr->path[0] && !addr->recorded[0] ? addr : NULL;
    }
    return NULL;
}

/* Each table of each target is an open file, and the usual limit of 1,024 is for programs that use select(), which
 * this one does not. */
static void database_raise_limit(void) {
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0)
        return;
    rlim_t wanted = most.rlim_max < DATABASE_FILES ? most.rlim_max : DATABASE_FILES;
    if (most.rlim_cur < wanted)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){wanted, most.rlim_max});
}

/* If there are only recordings, now() is their end. */
static void database_set_now(struct database *d) {
    sql_set_now(d->sql, !isnan(d->moment) ? d->moment : d->n_living ? NAN : sql_newest(d->sql));
}

void database_set_time(struct database *d, double at_s) {
    d->moment = at_s;
    database_set_now(d);
}

bool database_is_recorded(const struct database *d) { return d->n_targets > 0 && d->n_living == 0; }

static int64_t database_rank(pid_t pid) {
    int32_t rank = pid > 0 ? pystack_rank_of(pid) : -1;
    return rank < 0 ? RING_INT_NULL : rank;
}

/* True if the agent has just started. */
static bool database_is_young(const struct target_address *addr) {
    struct stat st;
    if (addr->mode != MODEL_MODE_AGENT || !addr->path[0] || stat(addr->path, &st) != 0)
        return false;
    double age_s = clock_epoch_s() - (double)st.st_ctim.tv_sec - (double)st.st_ctim.tv_nsec / 1e9;
    return age_s >= 0 && age_s < DATABASE_YOUNG_S;
}

/* Facts about a living process whose memory and file system may not answer, read in a child
 * (guard.h). */
struct database_search {
    struct target_address addr;
    struct rings_place place;
    bool young, found;
    int64_t rank;
};

static void database_search(void *arg) {
    struct database_search *s = arg;
    s->young = database_is_young(&s->addr);
    s->found = rings_find(s->addr.pid, &s->place);
    s->rank = database_rank(s->addr.pid);
}

/* 0, or -1 with the error. */
static int database_inspect(const struct target_address *addr, struct database_search *s, struct err *e) {
    *s = (struct database_search){.addr = *addr};
    enum guard_end end = guard_run(database_search, s, sizeof *s, TARGET_POLL_MS);
    return end == GUARD_DONE ? 0
           : end == GUARD_NONE
               ? err_set_errno(e, ERR_FAILED, errno, "cannot start the process that reads others")
               : guard_explain_blocked(addr->pid, addr->path, TARGET_POLL_MS, e);
}

/* Find the tables of a living process, and its rank; descriptors of tables in memory go into
 * `fds` (RING_TABLE_KEPT). Returns their number, or -1 with the error. An agent makes its tables
 * after its first answer to a client: a young one gets the time for that. */
static ssize_t database_find_rings(struct database *d, struct database_target *t, int *fds, int64_t *rank,
                                   struct err *e) {
    const struct timespec pause = {.tv_nsec = DATABASE_POLL_NS};
    struct database_search s;
    for (;;) {
        if (database_inspect(&t->live.addr, &s, e) != 0)
            return -1;
        bool wait = s.young && !database_cancelled(d);
        *rank = s.rank;
        t->place = s.place;
        t->has_place = s.found;
        size_t n = t->has_place ? 0 : rings_open_memory(t->live.addr.pid, fds, RING_TABLE_KEPT);
        if (t->has_place || n || !wait)
            return (ssize_t)n;
        nanosleep(&pause, NULL);
    }
}

/* A copy that is being made. */
struct database_copying {
    struct database *d;
    uint64_t began_ns, limit_ns; /* limit 0: none */
    bool is_late;                /* it was ended by that */
};

static bool database_stop(void *arg) {
    struct database_copying *c = arg;
    bool hurried = atomic_load(&c->d->hurried);
    uint64_t limit = hurried ? DATABASE_HURRIED_NS : c->limit_ns;
    c->is_late = limit && clock_mono_ns() - c->began_ns > limit;
    return c->is_late || database_cancelled(c->d);
}

static bool database_has_silent(const struct database *d) {
    for (size_t i = 0; i < d->n_targets; i++)
        if (d->targets[i]->n_silent)
            return true;
    return false;
}

/* A copy has failed after `took_ns`. */
static void database_set_silent(struct database_target *t, uint64_t took_ns) {
    if (took_ns < DATABASE_SILENT_NS) {
        t->n_silent = 0;
        return;
    }
    unsigned doubled = t->n_silent < DATABASE_PAUSE_DOUBLED ? t->n_silent : DATABASE_PAUSE_DOUBLED;
    t->n_silent++;
    t->paused_until_ns = clock_mono_ns() + (DATABASE_PAUSE_NS << doubled);
    t->live.silent = t->uncopied;
}

/* Copy the new rows. A failure is not an error of a query: the note reports it. */
static void database_copy(struct database *d, struct database_target *t) {
    struct database_copying c = {.d = d, .began_ns = clock_mono_ns()};
    c.limit_ns = t->n_silent ? DATABASE_RETRY_NS : database_has_silent(d) ? DATABASE_DOUBTFUL_NS : 0;
    t->uncopied.code = ERR_OK;
    t->live.silent.code = ERR_OK;
    if (!t->copies)
        t->copies = table_mirror_new(&t->live.addr, &t->uncopied);
    double limit_s = atomic_load(&d->hurried) ? DATABASE_HURRIED_S : DATABASE_COPY_S;
    if (t->copies && table_mirror_update(t->copies, limit_s, database_stop, &c, &t->uncopied) == 0) {
        t->uncopied.code = ERR_OK;
        t->n_silent = 0;
        return;
    }
    if (c.is_late)
        err_set(&t->uncopied, ERR_FAILED, "the agent%s%s does not answer", t->live.addr.host[0] ? " on " : "",
                t->live.addr.host);
    if (!database_cancelled(d))
        database_set_silent(t, clock_mono_ns() - c.began_ns);
}

/* Make the copies available to queries. 0, or -1 with the error. */
static int database_use_mirror(struct database *d, struct database_target *t, struct err *e) {
    int fds[WIRE_MAX_TABLES];
    size_t n = table_mirror_take(t->copies, fds, WIRE_MAX_TABLES);
    return n ? sql_add_files(d->sql, t->number, fds, n, e) : 0;
}

/* True if only the agent can provide the tables. */
static bool database_must_copy(const struct database_target *t) {
    return !t->has_place && !t->in_memory && t->live.addr.path[0] && t->live.addr.mode == MODEL_MODE_AGENT;
}

/* The listener of the socket may be a tunnel to another machine: then /proc here does not
 * describe the target. */
static void database_copy_first(struct database *d, struct database_target *t, struct sql_target *target) {
    database_copy(d, t);
    if (!t->copies || table_mirror_pid(t->copies) == 0 || table_mirror_pid(t->copies) == target->pid)
        return;
    target->pid = table_mirror_pid(t->copies);
    target->rank = RING_INT_NULL;
    target->host = NULL;
    t->live.addr.pid = 0;
}

static int database_add_living(struct database *d, struct database_target *t, struct err *e) {
    pid_t pid = t->live.addr.pid;
    struct procfs_status st;
    char host[256] = "";
    int fds[RING_TABLE_KEPT];
    struct sql_target target = {.pid = RING_INT_NULL, .rank = RING_INT_NULL, .owner = RING_ANY_UID};
    if (pid > 0) {
        ssize_t n = database_find_rings(d, t, fds, &target.rank, e);
        if (n < 0)
            return -1;
        target.n_ring_fds = (size_t)n;
        target.pid = procfs_read_status(pid, 0, &st) == 0 && st.ns_pid > 0 ? st.ns_pid : pid;
        if (t->host[0] || gethostname(host, sizeof host - 1) == 0)
            target.host = t->host[0] ? t->host : host;
        target.rank = t->rank == RING_INT_NULL ? target.rank : t->rank;
    }
    t->in_memory = target.n_ring_fds > 0;
    if (database_must_copy(t))
        database_copy_first(d, t, &target);
    t->rank = target.rank;
    target.ring_fds = fds;
    target.ring_dir = t->has_place ? t->place.path : NULL;
    target.owner = t->has_place ? t->place.owner : RING_ANY_UID;
    target.providers = t->tables;
    target.n_providers = live_tables_fill(&t->live, t->tables);
    d->n_living++;
    if (sql_add_target(d->sql, &target, e) != 0)
        return -1;
    /* The files exist and may not be opened, or not by this user. */
    if (t->has_place && t->live.addr.path[0] && !sql_has_files(d->sql, t->number))
        database_copy(d, t);
    return t->copies ? database_use_mirror(d, t, e) : 0;
}

/* A recording may have several targets; it is one of ours, and is read only once. */
static int database_add_recording(struct database *d, struct database_target *t, struct err *e) {
    int fds[RING_MAX_COLUMNS * 4];
    database_raise_limit();
    struct archive *a = archive_open(t->live.addr.recorded, e);
    int rc = a ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < archive_targets(a); i++) {
        struct sql_target target = {
            .pid = RING_INT_NULL, .rank = RING_INT_NULL, .owner = RING_ANY_UID, .is_recorded = true};
        target.n_ring_fds = archive_take_rings(a, i, fds, sizeof fds / sizeof fds[0]);
        target.ring_fds = fds;
        rc = sql_add_target(d->sql, &target, e);
    }
    if (rc == 0 && archive_note(a)[0])
        snprintf(d->recording, sizeof d->recording, "%s", archive_note(a));
    t->in_memory = true;
    archive_close(a);
    return rc;
}

static int database_add_recorded(struct database *d, struct database_target *t, struct err *e) {
    if (archive_is_one(t->live.addr.recorded))
        return database_add_recording(d, t, e);
    int there = rings_inspect(t->live.addr.recorded, &t->place, e);
    if (there <= 0)
        return there < 0 ? -1
                         : err_set(e, ERR_ATTACH, "%s: there are no tables of a process in it",
                                   t->live.addr.recorded);
    t->has_place = true;
    struct sql_target target = {.pid = RING_INT_NULL,
                                .rank = RING_INT_NULL,
                                .ring_dir = t->place.path,
                                .owner = t->place.owner,
                                .is_recorded = true};
    if (sql_add_target(d->sql, &target, e) != 0)
        return -1;
    /* Partial damage is a note, total damage is an error. */
    if (!sql_has_files(d->sql, t->number))
        return err_set(e, ERR_FAILED, "%s", sql_note(d->sql));
    if (t->place.owner != geteuid()) {
        char user[64];
        target_user_name(t->place.owner, user, sizeof user);
        snprintf(d->recording, sizeof d->recording,
                 "tables of user %s: they are only as trustworthy as that user", user);
    }
    return 0;
}

int database_add(struct database *d, const struct target_address *addr, struct err *e) {
    return database_add_rank(d, addr, "", RING_INT_NULL, e);
}

int database_add_rank(struct database *d, const struct target_address *addr, const char *host, int64_t rank,
                      struct err *e) {
    struct database_target **more = realloc(d->targets, (d->n_targets + 1) * sizeof *more);
    if (more)
        d->targets = more;
    struct database_target *t = calloc(1, sizeof *t);
    if (!more || !t) {
        free(t);
        return err_set(e, ERR_FAILED, "out of memory for a target");
    }
    /* Kept in any case: SQL may refer to it. */
    d->targets[d->n_targets++] = t;
    t->live.addr = *addr;
    snprintf(t->host, sizeof t->host, "%s", host);
    t->rank = rank;
    t->is_of_job = rank != RING_INT_NULL;
    t->number = sql_target_count(d->sql);
    if (d->n_targets > DATABASE_FEW)
        database_raise_limit();
    int rc = addr->recorded[0] ? database_add_recorded(d, t, e) : database_add_living(d, t, e);
    if (rc == 0)
        database_set_now(d);
    return rc;
}

void database_set_one_clock(struct database *d) { d->one_clock = true; }

int database_add_tables(struct database *d, const struct sql_provider *list, size_t n, struct err *e) {
    const struct sql_target target = {.pid = RING_INT_NULL,
                                      .rank = RING_INT_NULL,
                                      .owner = RING_ANY_UID,
                                      .providers = list,
                                      .n_providers = n};
    d->n_living++; /* they are of now */
    if (sql_add_target(d->sql, &target, e) != 0)
        return -1;
    database_set_now(d);
    return 0;
}

/* Add tables that a target has now and did not have before: an agent was injected, or started
 * again elsewhere. */
static int database_refresh_tables(struct database *d, struct database_target *t, struct err *e) {
    struct database_search s;
    /* while its writer lives, the process has no other folder */
    bool is_written = t->has_place && ring_dir_alive(t->place.path) == 1;
    if (t->live.addr.recorded[0] || t->live.addr.pid <= 0 || is_written)
        return 0;
    if (database_inspect(&t->live.addr, &s, e) != 0)
        return -1;
    if (!s.found || (t->has_place && strcmp(s.place.path, t->place.path) == 0))
        return 0;
    t->has_place = true;
    t->in_memory = false;
    t->place = s.place;
    table_mirror_free(t->copies);
    t->copies = NULL;
    return sql_set_ring_dir(d->sql, t->number, s.place.path, s.place.owner, e);
}

/* True if it is to be asked now: of those that were silent one each time. */
static bool database_may_copy(const struct database_target *t, bool *has_tried) {
    if (!t->n_silent)
        return true;
    if (*has_tried || clock_mono_ns() < t->paused_until_ns)
        return false;
    *has_tried = true;
    return true;
}

int database_refresh(struct database *d, struct err *e) {
    bool has_tried = false;
    for (size_t i = 0; i < d->n_targets; i++) {
        struct database_target *t = d->targets[i];
        if (database_refresh_tables(d, t, e) != 0)
            return -1;
        if ((t->copies || database_must_copy(t)) && database_may_copy(t, &has_tried))
            database_copy(d, t);
        if (t->copies && database_use_mirror(d, t, e) != 0)
            return -1;
    }
    if (sql_refresh(d->sql, e) != 0)
        return -1;
    database_set_now(d);
    return 0;
}

/* Add the missing parts of a target's tables to the note. True if there are any. */
static bool database_note_target(struct database *d, const struct database_target *t) {
    bool files = sql_has_files(d->sql, t->number);
    int64_t pid = t->live.addr.pid > 0 || !t->copies ? t->live.addr.pid : table_mirror_pid(t->copies);
    if (t->copies && files) {
        if (t->uncopied.code != ERR_OK)
            snprintf(d->note, sizeof d->note, "process %lld: newer rows could not be copied: %s",
                     (long long)pid, t->uncopied.text);
        else if (table_mirror_behind(t->copies))
            snprintf(d->note, sizeof d->note,
                     "process %lld: not all of its tables have been copied yet: try again", (long long)pid);
        else if (table_mirror_missing(t->copies) > 0)
            snprintf(d->note, sizeof d->note,
                     "process %lld: %llu rows were overwritten before they could be copied", (long long)pid,
                     (unsigned long long)table_mirror_missing(t->copies));
        else
            return false;
        return true;
    }
    if (t->has_place || t->in_memory)
        return false;
    const char *why =
        t->live.addr.mode == MODEL_MODE_READONLY ? "no agent collects it"
        : t->uncopied.code != ERR_OK
            ? t->uncopied.text
            : "its agent keeps no tables, or they cannot be reached ('probing status' says more)";
    snprintf(d->note, sizeof d->note, "no history of process %lld: %s; live tables can be read",
             (long long)pid, why);
    return true;
}

const char *database_note(struct database *d) {
    if (sql_note(d->sql)[0])
        return sql_note(d->sql);
    for (size_t i = 0; i < d->n_targets; i++)
        if (d->targets[i]->live.note[0])
            return d->targets[i]->live.note;
    if (d->uncompared)
        return d->uncompared;
    for (size_t i = 0; i < d->n_targets; i++)
        if (database_note_target(d, d->targets[i]))
            return d->note;
    return d->recording;
}

void database_arm(struct database *d) { atomic_store(&d->cancelled, false); }

void database_cancel(struct database *d) {
    atomic_store(&d->cancelled, true);
    sql_interrupt(d->sql);
}

void database_hurry(struct database *d) { atomic_store(&d->hurried, true); }

bool database_cancelled(const struct database *d) { return atomic_load(&d->cancelled); }

/* If the query asks for tables that this client may not read, the note names them: their rows
 * are unknown. */
static void database_note_withheld(struct database_target *t, const char *text) {
    static const char values[] = "python.variables", logs[] = "training_logs"; /* made of them */
    const char *name;
    for (size_t i = 0; t->copies && (name = table_mirror_withheld(t->copies, i)) != NULL; i++)
        if (strcasestr(text, name) || (strcmp(name, values) == 0 && strcasestr(text, logs)))
            live_virtual_note(&t->live, name, "not for read-only clients: it needs the full-access token");
}

/* Allocations are traced only where somebody has asked for it: an empty table says how to. */
static void database_note_untraced(struct database *d, const char *text) {
    static const char table[] = "memory_allocations";
    static const struct sql_query one = {.max_rows = 1};
    struct err e = {0};
    if (d->n_targets == 0 || !strcasestr(text, table))
        return;
    struct sql_result *r =
        sql_begin(d->sql, "SELECT 1 FROM memory_allocations LIMIT 1", &one, NULL, NULL, &e);
    if (r && sql_next(r, &e) == 0)
        live_virtual_note(&d->targets[0]->live, table,
                          "nothing was traced so far: 'probing TARGET memory --trace' traces for a while, "
                          "'probing TARGET config memory_trace=on' until it is off");
    sql_end(r);
}

struct sql_result *database_begin(struct database *d, const char *text, const struct sql_query *q,
                                  const char **tail, struct sql_error *where, struct err *e) {
    for (size_t i = 0; i < d->n_targets; i++) {
        d->targets[i]->live.failure.code = ERR_OK;
        d->targets[i]->live.note[0] = '\0';
        database_note_withheld(d->targets[i], text);
    }
    training_logs_make(d->sql, text);
    bool recorded = database_is_recorded(d);
    d->uncompared = comm_metrics_make(d->sql, text, recorded ? 0 : d->n_targets,
                                      d->one_clock ? COMM_CLOCKS_ONE
                                      : recorded   ? COMM_CLOCKS_RECORDED
                                                   : COMM_CLOCKS_OF_HOST,
                                      COMM_METRICS_MOST);
    database_note_untraced(d, text);
    struct sql_result *r = sql_begin(d->sql, text, q, tail, where, e);
    /* sql_begin clears a cancel that came before it. */
    if (atomic_load(&d->cancelled))
        sql_interrupt(d->sql);
    return r;
}

struct result *database_take(struct database *d, const char *text, const struct sql_query *q,
                             size_t max_bytes, struct err *e) {
    e->code = ERR_OK;
    struct sql_result *r = database_begin(d, text, q, NULL, NULL, e);
    struct result *rows = r ? result_take(r, max_bytes, e) : NULL;
    sql_end(r);
    if (!rows && e->code != ERR_OK)
        database_explain(d, e);
    return rows;
}

void database_explain(const struct database *d, struct err *e) {
    for (size_t i = 0; i < d->n_targets; i++) {
        const struct database_target *t = d->targets[i];
        const struct err *why = &t->live.failure;
        if (why->code == ERR_OK || strcmp(why->text, e->text) != 0)
            continue;
        e->code = why->code;
        if ((d->n_targets > 1 || t->is_of_job) && t->rank != RING_INT_NULL)
            err_set(e, why->code, "rank %lld: %s", (long long)t->rank, why->text);
        return;
    }
}
