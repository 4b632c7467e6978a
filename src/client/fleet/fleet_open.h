/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_open: opens the source of a fleet that a target names. A kind of source is a row in fleet_open.c. */
#ifndef CLIENT_FLEET_FLEET_OPEN_H
#define CLIENT_FLEET_FLEET_OPEN_H

#include "client/fleet/fleet_source.h"

/* Watch the job that `target` names: as jobs_here_choose understands it on its hosts ("" the only one there).
 * What stands behind a '/' is left to the caller. `reach` is not kept, apart from the script. NULL
 * with the error. Whether there is such a job shows later. */
struct fleet_source *fleet_open(const char *target, const struct fleet_reach *reach, struct err *e);

/* The same, and each host does something else than to report its ranks: REPORT_STATES, which may be asked for
 * again; of hosts that are linked REPORT_ATTACH and REPORT_DETACH, too. It is done when fleet_source_fill
 * returns. */
struct fleet_source *fleet_open_work(const char *target, const struct fleet_reach *reach, const char *work,
                                     struct err *e);

/* The '/' behind the name of a job, with the ranks that are meant: "job:NAME/0-3". NULL: all are. */
const char *fleet_open_find_ranks(const char *target);

/* The moment of the past that a target names; NAN: it is watched as it is now. */
double fleet_open_at(const char *target);

/* Append the target at another moment, NAN: now. 0, or -1 with the error: its past is not known. */
int fleet_open_put_at(const char *target, double at, struct strbuf *out, struct err *e);

/* Whether it is a job in a database: no host of it is reached, and nothing can be loaded there. */
bool fleet_open_is_database(const char *target);

/* Whether the ranks are read by others: on hosts that are named, or in a database. Else they are processes of this host. */
bool fleet_open_is_far(const char *target, const struct fleet_reach *reach);

#endif
