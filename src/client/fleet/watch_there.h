/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_there: reads the ranks of a job on other hosts for a verdict (fleet_watch.h), by their relays.
 *
 * A rank whose host does not answer is unknown in that reading, and is accused of nothing; one that a host which does
 * no longer has is dead. One thread.
 */
#ifndef CLIENT_FLEET_WATCH_THERE_H
#define CLIENT_FLEET_WATCH_THERE_H

#include "client/fleet/fleet_source.h"
#include "client/fleet/fleet_watch.h"
#include "client/jobs/job_find.h"

struct watch_there {
    struct fleet_source *source;
    struct fleet_watch *watch; /* of all its ranks */
    char job[JOB_NAME_MAX];
    int32_t world; /* 0 unknown */
    struct rank_set ranks, missing;
    uint32_t *owners; /* of each rank of the watch: its host */
    bool is_read;     /* the first reading was not used yet */
};

/* Find the ranks, and read them for the first time. 0, or -1 with the error; watch_there_close frees, on
 * failure too. */
int watch_there_open(struct watch_there *w, const char *job, const struct fleet_reach *reach, struct err *e);

/* Whether the last reading had processes that are ranks now and were not: then all that are ranks now are watched
 * from here on, and nothing of them was read yet. 1, 0, or -1 with the error. */
int watch_there_renew(struct watch_there *w, struct err *e);

/* fleet_watch_ask, and once more if hosts have come meanwhile that were late. */
int watch_there_ask(struct watch_there *w, double wait_s, bool (*stop)(void *arg), void *arg,
                    struct fleet_verdicts *out, struct err *e);

void watch_there_close(struct watch_there *w);

#endif
