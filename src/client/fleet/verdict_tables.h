/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_tables: the verdicts about a job as tables of SQL, cluster.verdicts and cluster.groups.
 *
 * The first that is read takes the seconds that a verdict needs (fleet_watch_ask), and as many again if
 * ranks are started meanwhile; the other one, and the next query within a second, have the same answer. No
 * agent is loaded.
 */
#ifndef CLIENT_FLEET_VERDICT_TABLES_H
#define CLIENT_FLEET_VERDICT_TABLES_H

#include <stdint.h>

#include "client/fleet/fleet_source.h"
#include "client/fleet/fleet_watch.h"
#include "client/fleet/watch_there.h"
#include "store/sql/sql.h"

enum verdict_table { VERDICT_TABLE_VERDICTS, VERDICT_TABLE_GROUPS, VERDICT_TABLE_COUNT };

struct verdict_tables {
    const char *target; /* names the job, as fleet_open understands it */
    const struct fleet_reach *reach;
    struct fleet_watch *watch;
    struct watch_there there;    /* has the watch, if the ranks are read by others */
    struct fleet_source *source; /* NULL: steps are not read */
    struct fleet_verdicts verdicts;
    uint64_t judged_ns; /* 0: not yet */
    struct verdict_table_source {
        struct verdict_tables *owner;
        enum verdict_table table;
    } sources[VERDICT_TABLE_COUNT];
    struct sql_provider providers[VERDICT_TABLE_COUNT];
};

/* Nothing is read yet; `target` and `reach` outlive it. */
void verdict_tables_init(struct verdict_tables *t, const char *target, const struct fleet_reach *reach);

/* The ranks of the same job, for their steps; it outlives the tables. */
void verdict_tables_set_source(struct verdict_tables *t, struct fleet_source *source);

/* The next query finds the ranks again, which may be other processes by then. */
void verdict_tables_forget(struct verdict_tables *t);

void verdict_tables_fini(struct verdict_tables *t);

#endif
