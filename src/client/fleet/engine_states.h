/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_states: readings of ranks for a verdict, from a database: those that relays have written while a rank
 * may be stuck, and for all others what is known of the rank itself.
 */
#ifndef CLIENT_FLEET_ENGINE_STATES_H
#define CLIENT_FLEET_ENGINE_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "client/fleet/fleet_source.h"

struct engine_states {
    struct arena texts; /* of the rows */
    double newest;      /* of the readings that were written; -INFINITY none */
    struct engine_state {
        uint32_t host;
        double ts;
        struct report_state row;
    } * items;
    size_t n, cap;
    struct engine_group {
        uint32_t host;
        double ts;
        struct report_group row;
    } * groups;
    size_t n_groups, cap_groups;
    /* sorted: the rows of each host, one after the other */
    struct report_state *states;
    struct report_group *counters;
    size_t *first_state, *first_counter; /* of each host, and the end */
    double *seen_s;
    size_t n_hosts;
};

void engine_states_init(struct engine_states *s);
void engine_states_fini(struct engine_states *s); /* a zeroed one, too */

/* Add a row of host number `host`. 0, or -1 without memory, or there are too many. */
int engine_states_add(struct engine_states *s, uint32_t host, double ts, const struct report_state *row);
int engine_states_add_group(struct engine_states *s, uint32_t host, double ts,
                            const struct report_group *row);

/* Add what is known of ranks of which there is no reading, if it is not older than `from`. */
void engine_states_add_ranks(struct engine_states *s, const struct fleet_hosts *hosts, double from);

/* Put them in order; `at`: the moment they are of, `at_s`: the same on the monotonic clock. Counters that are not of a
 * rank's newest reading are left out. */
void engine_states_sort(struct engine_states *s, size_t n_hosts, double at, double at_s);

/* Those of a host. */
void engine_states_get(const struct engine_states *s, size_t host, struct fleet_states *out);

#endif
