/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_record: write the rows of targets' tables, and those that arrive for a while, into an
 * SQLite file that opens like a live job.
 *
 * The file has its name from the beginning and is consistent every few seconds. The recording
 * ends in order after its time, on ^C, or when all targets have ended.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/procfs.h"
#include "base/text.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_tables.h"
#include "client/fleet/ranks_there.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/target.h"
#include "store/recording/archive.h"

#define RECORD_SCHEMA_VERSION 1
#define RECORD_EVERY_S 2.0
#define RECORD_JOB 512

struct record_options {
    struct cli_options common; /* first */
    const char *output;
    double duration_s;
    bool no_inject;
};

static const struct option_def record_options[] = {
    {"output", 'o', OPTION_STRING, offsetof(struct record_options, output), .arg = "FILE",
     .help = "the recording: a new file, readable by you only"},
    {"duration", 'd', OPTION_SECONDS, offsetof(struct record_options, duration_s), .arg = "TIME",
     .help = "record for TIME, or until ^C or the end of the job (default: only what is there now)",
     .min = 0.001, .max = 1e7},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct record_options, no_inject),
     .help = "do not load the agent: read the process from outside"},
    {.name = NULL},
};

static volatile sig_atomic_t record_interrupted;
static struct database *record_database; /* what is recorded, while the signals are ours */

/* What is there is still taken, but nobody is waited for. */
static void record_on_signal(int number) {
    (void)number;
    record_interrupted = 1;
    database_hurry(record_database);
}

/* Wait until `end_ns` at most, or for ^C. */
static void record_wait(uint64_t end_ns) {
    uint64_t now = clock_mono_ns(), left = end_ns > now ? end_ns - now : 0;
    uint64_t most = (uint64_t)(RECORD_EVERY_S * 1e9);
    left = left < most ? left : most;
    struct timespec t = {.tv_sec = (time_t)(left / CLOCK_NS_PER_S), .tv_nsec = (long)(left % CLOCK_NS_PER_S)};
    if (!record_interrupted)
        nanosleep(&t, NULL);
}

/* A tunnel ends with the process that it leads to. */
static bool record_is_gone(const struct target_address *addr) {
    pid_t pid = addr->tunnel > 0 ? addr->tunnel : addr->pid;
    return addr->recorded[0] || (pid > 0 && procfs_is_gone(pid));
}

/* True if all targets have ended, so no more rows arrive. */
static bool record_all_gone(const struct target_address *addr, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!record_is_gone(&addr[i]))
            return false;
    return true;
}

/* The job whose ranks are recorded: its own tables are recorded at the end, with the hosts and their clocks. */
struct record_job {
    struct fleet_reach reach;
    char name[RECORD_JOB];
    struct fleet_source *source; /* from then on */
    struct fleet_tables tables;
};

/* Without them the rest is recorded. */
static void record_add_job(struct record_job *j, struct database *d) {
    struct err e = {0};
    j->source = fleet_open(j->name, &j->reach, &e);
    if (j->source) {
        fleet_tables_init(&j->tables, j->source);
        database_add_tables(d, j->tables.providers, FLEET_TABLE_COUNT, &e);
    }
    if (e.code != ERR_OK)
        output_say("probing: the tables cluster.* are not recorded: %s\n", err_text(&e));
}

/* Record the tables until the time is over. The current state is added at the end, while targets
 * can still be asked. `*ended`: all targets ended before. */
static int record_run(const struct record_options *o, const struct target_address *addr,
                      struct record_job *job, struct database *d, struct archive_writer *w, bool *ended,
                      struct err *e) {
    uint64_t end_ns = clock_mono_ns() + (uint64_t)(o->duration_s * 1e9);
    for (;;) {
        bool last = record_interrupted || clock_mono_ns() >= end_ns;
        *ended = !last && record_all_gone(addr, o->common.targets.n);
        last = last || *ended;
        if (database_refresh(d, e) != 0 || archive_append(w, database_sql(d), false, e) != 0)
            return -1;
        progress_note("%" PRIu64 " rows", archive_rows(w));
        if (last)
            break;
        record_wait(end_ns);
    }
    if (job && !*ended)
        record_add_job(job, d);
    return archive_append(w, database_sql(d), true, e);
}

static void record_put(const struct record_options *o, uint64_t rows, double seconds, bool ended,
                       struct strbuf *out) {
    struct json j;
    if (!o->common.json) {
        strbuf_addf(out,
                    "wrote %s (%" PRIu64 " rows, %.1f s%s); 'probing-top %s' opens it, as does sqlite3\n",
                    o->output, rows, seconds, ended ? ", to the end of the job" : "", o->output);
        return;
    }
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", RECORD_SCHEMA_VERSION);
    json_kv_string(&j, "file", o->output);
    json_kv_uint(&j, "rows", rows);
    json_kv_number(&j, "duration_s", seconds, 3);
    json_kv_bool(&j, "ended", ended);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

/* `job` NULL: they are processes by themselves. */
static int record_targets(const struct cli_options *o, struct target_address *addr, struct record_job *job,
                          struct strbuf *out, struct err *e) {
    const struct record_options *mine = (const struct record_options *)(const void *)o;
    struct sigaction action = {.sa_handler = record_on_signal, .sa_flags = (int)SA_RESETHAND};
    struct database *d;
    if (!mine->output || output_is_stdout(mine->output))
        return err_set(e, ERR_USAGE, "record needs the name of a file: -o run.db");
    size_t n = strlen(mine->output);
    if (n > 4 && strcmp(mine->output + n - 4, ".svg") == 0)
        return err_set(e, ERR_USAGE,
                       "record writes an SQLite file; for a flame graph: probing %s flamegraph -o %s",
                       o->targets.items[0], mine->output);
    if (output_check(mine->output, e) != 0 || cli_open_database(o, addr, mine->no_inject, &d, e) != 0)
        return -1;
    /* From here on, before the file exists, ^C ends the recording in order. */
    record_database = d;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct archive_writer *w = archive_create(mine->output, e);
    uint64_t began = clock_mono_ns(), rows = 0;
    char missing[512] = "", unread[512] = "";
    bool ended = false;
    progress_begin("recording", mine->duration_s, mine->duration_s > 0 ? "^C ends it" : NULL);
    int rc = w ? record_run(mine, addr, job, d, w, &ended, e) : -1;
    if (w) {
        struct err late;
        rows = archive_rows(w);
        text_sanitize(missing, sizeof missing, archive_missing(w));
        /* of a job that has ended nothing more can be read */
        text_sanitize(unread, sizeof unread, ended ? "" : archive_unread(w));
        int closed = archive_finish(w, rc == 0 ? e : &late);
        rc = rc == 0 ? closed : rc;
    }
    progress_end();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (rc == 0) {
        record_put(mine, rows, (double)(clock_mono_ns() - began) / 1e9, ended, out);
        cli_note_database(d);
        if (missing[0])
            output_say("probing: %s\n", missing);
        if (unread[0])
            output_say("probing: %s\n", unread);
    }
    database_close(d);
    return rc;
}

static int record_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    return record_targets(o, addr, NULL, out, e);
}

const struct cli_verb verb_record = {
    .name = "record",
    .group = "Profile",
    .help = "record TARGET's tables to an SQLite file",
    .example = "probing 4242 record --duration 2s --output run.db",
    .needs_target = true,
    .many_targets = true,
    .options = record_options,
    .options_size = sizeof(struct record_options),
    .exec = record_exec,
};

/* Ranks on other hosts: each is reached by a connection of its own. */
static int record_there(const struct record_options *o, struct record_job *j, struct strbuf *out,
                        struct err *e) {
    struct record_options mine = *o;
    struct rank_there *there = calloc(RANKS_THERE_MAX, sizeof *there);
    struct target_address *addr = calloc(RANKS_THERE_MAX, sizeof *addr);
    char text[RECORD_JOB + sizeof "job:"];
    bool attach = !o->no_inject && !o->common.readonly;
    ssize_t n = -1;
    snprintf(text, sizeof text, "job:%s", j->name);
    if (there && addr)
        n = cli_open_there(text, &j->reach, attach, there, RANKS_THERE_MAX, e);
    else
        err_set(e, ERR_FAILED, "out of memory for the ranks");
    int rc = n < 0 ? -1 : 0;
    mine.common.targets.n = 0;
    for (ssize_t i = 0; i < n; i++) {
        mine.common.targets.items[mine.common.targets.n++] = there[i].target;
        addr[i] = there[i].addr;
    }
    if (rc == 0)
        rc = record_targets(&mine.common, addr, j, out, e);
    free(there);
    free(addr);
    return rc;
}

static int cluster_record_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                               struct err *e) {
    struct record_options mine = *(const struct record_options *)(const void *)o;
    struct record_job j = {.source = NULL};
    struct cli_ranks ranks = {.addr = NULL};
    (void)addr;
    int rc = cli_read_reach(o, &j.reach, j.name, sizeof j.name, e);
    if (rc == 0 && j.reach.hosts.n)
        rc = record_there(&mine, &j, out, e);
    else if (rc == 0) {
        rc = cli_find_ranks(&ranks, o->targets.n ? o->targets.items[0] : "", e);
        mine.common.targets = ranks.targets;
        if (rc == 0)
            rc = record_targets(&mine.common, ranks.addr, &j, out, e);
    }
    fleet_source_close(j.source);
    fleet_reach_fini(&j.reach);
    cli_ranks_fini(&ranks);
    return rc;
}

const struct cli_verb verb_cluster_record = {
    .name = "cluster record",
    .noun = "cluster",
    .group = "Cluster",
    .help = "record the tables of all ranks of a job to one SQLite file",
    .example = "probing cluster record job:4242 --duration 2s --output job.db",
    .takes_job = true,
    .takes_hosts = true,
    .options = record_options,
    .options_size = sizeof(struct record_options),
    .exec = cluster_record_exec,
};
