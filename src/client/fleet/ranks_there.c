/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_there: see ranks_there.h. */
#include "client/fleet/ranks_there.h"

#include <stdio.h>
#include <string.h>

#include "client/fleet/fleet_open.h"

#define RANKS_THERE_S 30.0 /* for the ranks to be found */

/* The numbers behind the '/'; without it all that have a process. */
static int ranks_there_choose(const char *text, const struct fleet *f, struct rank_set *ranks,
                              struct err *e) {
    const char *slash = strchr(text, '/');
    if (slash)
        return rank_set_parse(ranks, slash + 1, e);
    return rank_set_join(ranks, &f->present) == 0
               ? 0
               : err_set(e, ERR_FAILED, "out of memory for a set of ranks");
}

/* Those of `ranks` in `found`. Their number, or -1 with the error. */
static ssize_t ranks_there_find(const struct fleet *f, const struct rank_set *ranks, size_t cap,
                                const struct fleet_rank **found, struct err *e) {
    size_t n = 0;
    if (rank_set_count(ranks) == 0 || (size_t)rank_set_count(ranks) > cap)
        return err_set(e, ERR_USAGE,
                       "%d ranks of other hosts are meant; from 1 to %zu can be opened: job:%s/0-3",
                       (int)rank_set_count(ranks), cap, f->job);
    for (size_t i = 0; i < ranks->n; i++)
        for (int32_t rank = ranks->ranges[i].first; rank <= ranks->ranges[i].last; rank++) {
            const struct fleet_rank *r = fleet_find(f, rank);
            if (!r || r->pid <= 0)
                return err_set(e, ERR_ATTACH, "job %s: no process of these hosts is rank %d", f->job,
                               (int)rank);
            found[n++] = r;
        }
    return (ssize_t)n;
}

ssize_t ranks_there_open(const char *text, const struct fleet_reach *reach, bool attach, pid_t owner,
                         struct rank_there *out, size_t cap, struct err *e) {
    const struct fleet_rank *found[RANKS_THERE_MAX];
    struct rank_set ranks = {.n = 0};
    struct fleet_source *l = fleet_open(text, reach, e);
    ssize_t n = l ? fleet_source_fill(l, 1, RANKS_THERE_S, NULL, NULL, e) : -1;
    cap = cap < RANKS_THERE_MAX ? cap : RANKS_THERE_MAX;
    const struct fleet *f = l ? fleet_source_get(l) : NULL;
    if (n == 0 && ranks_there_choose(text, f, &ranks, e) != 0)
        n = -1;
    if (n == 0)
        n = ranks_there_find(f, &ranks, cap, found, e);
    for (ssize_t i = 0; i < n; i++) {
        const struct relay_tunnel t = {.reach = reach,
                                       .host = f->nodes[found[i]->node].host,
                                       .pid = found[i]->pid,
                                       .attach = attach,
                                       .owner = owner};
        if (relay_tunnel_open(&t, &out[i].addr, e) != 0) {
            n = -1;
            break;
        }
        snprintf(out[i].target, sizeof out[i].target, "unix:%.*s", RELAY_TUNNEL_PATH - 1, out[i].addr.path);
    }
    rank_set_fini(&ranks);
    fleet_source_close(l);
    return n;
}
