/* SPDX-License-Identifier: Apache-2.0 */
/* job_choice: see job_choice.h. */
#include "tui/job_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "client/engine/engine_schema.h"
#include "client/fleet/engine_jobs.h"
#include "client/output.h"

#define JOB_CHOICE_SHOWN 30

static void job_choice_put_time(double at, char *buf, size_t cap) {
    time_t t = (time_t)at;
    struct tm tm;
    if (!localtime_r(&t, &tm) || !strftime(buf, cap, "%d %b %H:%M", &tm))
        snprintf(buf, cap, "?");
}

static void job_choice_put(const struct engine_jobs *j) {
    output_say("  %-3s %-32s %-10s %7s %6s %-8s %-12s  %s\n", "", "JOB", "USER", "RANKS", "HOSTS", "STATE",
               "FIRST SEEN", "LAST SEEN");
    for (size_t i = 0; i < j->n && i < JOB_CHOICE_SHOWN; i++) {
        const struct engine_jobs_item *job = &j->items[i];
        char first[32], last[32], ranks[24] = "?";
        job_choice_put_time(job->first, first, sizeof first);
        job_choice_put_time(job->last, last, sizeof last);
        if (job->ranks >= 0)
            snprintf(ranks, sizeof ranks, "%lld", (long long)job->ranks);
        output_say("  %-3zu %-32.32s %-10.10s %7s %6lld %-8s %-12s  %s\n", i + 1, job->name, job->user, ranks,
                   (long long)job->hosts, job->is_running ? "running" : "ended", first, last);
    }
    if (j->n > JOB_CHOICE_SHOWN)
        output_say("  and %zu older ones: name one by ?job=NAME\n", j->n - JOB_CHOICE_SHOWN);
}

/* The number that is typed; the first without one. -1: none. */
static long job_choice_ask(const struct engine_jobs *j) {
    char answer[32];
    size_t n = j->n < JOB_CHOICE_SHOWN ? j->n : JOB_CHOICE_SHOWN;
    for (;;) {
        output_say("Which job? [1] ");
        if (!fgets(answer, sizeof answer, stdin))
            return -1;
        char *end;
        long number = strtol(answer, &end, 10);
        if (answer[0] == '\n')
            return 0;
        if (end != answer && *end == '\n' && number >= 1 && (size_t)number <= n)
            return number - 1;
        output_say("It is a number from 1 to %zu.\n", n);
    }
}

/* The address with a job. */
static int job_choice_name(const struct engine_address *a, const char *job, char *out, size_t cap,
                           struct err *e) {
    struct strbuf text;
    strbuf_init(&text, 0);
    engine_address_put_job(a, job, a->at, &text);
    int rc = text.failed || text.len >= cap ? err_set(e, ERR_USAGE, "the name of the job is too long") : 0;
    if (rc == 0)
        snprintf(out, cap, "%s", strbuf_str(&text));
    strbuf_fini(&text);
    return rc;
}

int job_choice_read(const char *address, char *out, size_t cap, struct err *e) {
    struct engine_address a;
    struct engine_jobs jobs = {.n = 0};
    double last;
    char name[ENGINE_ADDRESS_JOB];
    if (engine_address_parse(&a, address, e) != 0 || engine_address_read_password(&a, e) != 0)
        return -1;
    if (a.job[0]) {
        snprintf(out, cap, "%s", address);
        return 0;
    }
    struct engine_http *h = engine_http_open(&a, e);
    int rc = h ? engine_schema_check(h, e) : -1;
    bool asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (rc == 0 && asks)
        rc = engine_jobs_read(&jobs, h, e);
    if (rc == 0 && jobs.n > 1) {
        job_choice_put(&jobs);
        long i = job_choice_ask(&jobs);
        rc = i < 0 ? err_set(e, ERR_USAGE, "no job was chosen") : 0;
        if (rc == 0)
            rc = job_choice_name(&a, jobs.items[i].name, out, cap, e);
    } else if (rc == 0) {
        rc = engine_jobs_choose(h, "", name, sizeof name, &last, e);
        if (rc == 0)
            rc = job_choice_name(&a, name, out, cap, e);
    }
    engine_jobs_fini(&jobs);
    engine_http_close(h);
    return rc;
}
