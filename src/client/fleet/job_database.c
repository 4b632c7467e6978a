/* SPDX-License-Identifier: Apache-2.0 */
/* job_database: see job_database.h. */
#include "client/fleet/job_database.h"

#include <stdlib.h>
#include <string.h>

#include "client/fleet/engine_tables.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_tables.h"
#include "client/fleet/verdict_tables.h"

struct job_database {
    char *target;
    struct fleet_reach no_hosts;
    struct engine_tables *engine;
    struct fleet_source *source; /* NULL: nothing of all ranks is read */
    struct fleet_tables tables;
    struct verdict_tables verdicts;
    struct database *d;
};

/* The target with a fixed time: all that is read of it is of one moment, "10m" is not. NULL with the error. */
static char *job_database_fix(const char *target, struct err *e) {
    struct strbuf out;
    strbuf_init(&out, 0);
    int rc = fleet_open_put_at(target, fleet_open_at(target), &out, e);
    char *fixed = rc == 0 ? strdup(strbuf_str(&out)) : NULL;
    if (rc == 0 && !fixed)
        err_set(e, ERR_FAILED, "out of memory for the tables of a job");
    strbuf_fini(&out);
    return fixed;
}

struct job_database *job_database_open(const char *target, double limit_s, bool (*stop)(void *arg), void *arg,
                                       struct err *e) {
    struct job_database *j = calloc(1, sizeof *j);
    if (!j)
        err_set(e, ERR_FAILED, "out of memory for the tables of a job");
    if (!j || !(j->target = job_database_fix(target, e))) {
        free(j);
        return NULL;
    }
    fleet_tables_init(&j->tables, NULL);
    verdict_tables_init(&j->verdicts, j->target, &j->no_hosts);
    j->engine = engine_tables_new(j->target, limit_s, stop, arg, e);
    j->d = j->engine ? database_open(e) : NULL;
    if (j->d && database_add_tables(j->d, j->tables.providers, FLEET_TABLE_COUNT, e) == 0 &&
        database_add_tables(j->d, j->verdicts.providers, VERDICT_TABLE_COUNT, e) == 0 &&
        engine_tables_add(j->engine, j->d, e) == 0)
        return j;
    job_database_close(j);
    return NULL;
}

void job_database_close(struct job_database *j) {
    if (!j)
        return;
    job_database_end(j);
    database_close(j->d);
    engine_tables_free(j->engine);
    verdict_tables_fini(&j->verdicts);
    free(j->target);
    free(j);
}

struct database *job_database_get(struct job_database *j) {
    return j->d;
}

int job_database_begin(struct job_database *j, const char *text, struct err *e) {
    job_database_end(j);
    if (!fleet_tables_is_read(text))
        return 0;
    j->source = fleet_open(j->target, &j->no_hosts, e);
    j->tables.source = j->source;
    j->tables.read_ns = 0;
    verdict_tables_set_source(&j->verdicts, j->source);
    return j->source ? 0 : -1;
}

void job_database_end(struct job_database *j) {
    verdict_tables_set_source(&j->verdicts, NULL);
    verdict_tables_forget(&j->verdicts);
    j->tables.source = NULL;
    fleet_source_close(j->source);
    j->source = NULL;
}

struct fleet_source *job_database_source(const struct job_database *j) {
    return j->source;
}
