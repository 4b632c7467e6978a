/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_source: where a fleet comes from: relays on the hosts of the job (fleet_links.h). fleet_open.h opens
 * one.
 *
 * For a screen: poll the descriptor, call fleet_source_advance when it is readable, draw fleet_source_get.
 * It never waits. For a verb: fleet_source_fill. One thread.
 */
#ifndef CLIENT_FLEET_FLEET_SOURCE_H
#define CLIENT_FLEET_FLEET_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/fleet/fleet_hosts.h"
#include "client/hosts/fleet_reach.h"

/* Readings of the ranks of a host, for a verdict (watch_there.h). */
struct fleet_states {
    const struct report_state *states;
    size_t n;
    const struct report_group *groups;
    size_t n_groups;
    const struct report_ras *ras;
    size_t n_ras;
    const struct report_job *job; /* NULL without an answer */
    double seen_s;                /* when it came, on the monotonic clock */
};

struct fleet_source;

/* What a kind of source does; see the functions below for each. */
struct fleet_source_kind {
    bool (*takes)(const char *target); /* it is for that target */
    bool is_database;                  /* no host is reached */
    /* The time in a target (NAN: none), and the target at another (NAN: now). NULL: it knows no past. */
    double (*at)(const char *target);
    int (*put_at)(const char *target, double at, struct strbuf *out, struct err *e);
    struct fleet_source *(*open)(const char *target, const struct fleet_reach *reach, const char *work,
                                 struct err *e);
    void (*close)(struct fleet_source *s);
    bool (*advance)(struct fleet_source *s);
    /* The time is over: make the fleet of what there is. 0, or -1 with the error: that is nothing. */
    int (*settle)(struct fleet_source *s, struct err *e);
    void (*put_silent)(const struct fleet_source *s, struct strbuf *out);
    void (*ask_states)(struct fleet_source *s, bool counters);
    bool (*states)(const struct fleet_source *s, size_t i, struct fleet_states *out);
};

/* The first member of what a kind opens. */
struct fleet_source {
    const struct fleet_source_kind *kind;
    struct fleet_hosts hosts;
    struct err error; /* why there is no fleet */
    bool is_final;    /* the fleet stays as it is: no round follows */
    int fd;
    /* Of the readings of ranks (fleet_source_states) of a moment that is past: they begin some seconds before it, and
     * each time that they are asked for they are of a later time, up to the moment. */
    bool is_past, is_last;
    double read_s; /* when they were made, on the monotonic clock; NAN: just now */
};

void fleet_source_close(struct fleet_source *s); /* may be NULL; waits a second at most */

/* Readable when there is something to do. */
int fleet_source_fd(const struct fleet_source *s);

/* Do it. True: the fleet has changed; what it was made of is gone. */
bool fleet_source_advance(struct fleet_source *s);

/* The fleet, until the next fleet_source_advance. */
const struct fleet *fleet_source_get(const struct fleet_source *s);

/* Why there is no fleet (yet): ERR_ATTACH with the reason if there is no such job; ERR_OK: it is being
 * asked for. */
const struct err *fleet_source_error(const struct fleet_source *s);

/* Append which hosts gave no news, and why, each in a clause; nothing: all did. */
void fleet_source_put_silent(const struct fleet_source *s, struct strbuf *out);

/* Wait until `rounds` rounds were read, which are a second apart, for `limit_s` at most. A round is read
 * once every host has answered that answers at all. `stop` (NULL: none) ends it early when it returns true.
 * 0, also if there was time for only some of them; -1 with the error: there is no such job, or nothing is
 * known of it by then. */
int fleet_source_fill(struct fleet_source *s, unsigned rounds, double limit_s, bool (*stop)(void *arg),
                      void *arg, struct err *e);

/* With REPORT_STATES: what host `i` has answered since it was asked last; nothing (n 0) if it has not. False:
 * `i` is not below the number of hosts. Valid until the source advances. */
bool fleet_source_states(const struct fleet_source *s, size_t i, struct fleet_states *out);

/* Ask all hosts again; `counters`: their agents, too. */
void fleet_source_ask_states(struct fleet_source *s, bool counters);

#endif
