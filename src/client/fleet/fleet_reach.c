/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_reach: see fleet_reach.h. */
#include "client/fleet/fleet_reach.h"

#include <stdlib.h>

int fleet_reach_init(struct fleet_reach *r, const struct fleet_reach_options *o, relay_serve_fn serve,
                     struct err *e) {
    *r = (struct fleet_reach){
        .serve = serve,
        .via = {.via = o->via, .relay = o->relay, .slurm = o->slurm, .container = o->container}};
    if (o->hosts && host_list_add(&r->hosts, o->hosts, e) != 0)
        return -1;
    if (o->hostfile && host_list_add_file(&r->hosts, o->hostfile, e) != 0)
        return -1;
    /* with a list of its own --slurm only says which job srun joins */
    if (o->slurm && !r->hosts.n && host_list_add_slurm(&r->hosts, o->slurm, e) != 0)
        return -1;
    if ((o->hosts || o->hostfile) && !r->hosts.n)
        return err_set(e, ERR_USAGE, "--hosts names no hosts: it is a list such as a,b[1-4]");
    if ((o->via || o->container || o->relay) && !r->hosts.n)
        return err_set(e, ERR_USAGE, "%s is for other hosts: name them by --hosts, --hostfile or --slurm",
                       o->via         ? "--via"
                       : o->container ? "--container"
                                      : "--relay");
    if (!r->via.slurm)
        r->via.slurm = r->via.via ? getenv("SLURM_JOB_ID") : NULL;
    struct relay_words *words = r->hosts.n ? malloc(sizeof *words) : NULL;
    if (r->hosts.n && !words)
        return err_set(e, ERR_FAILED, "out of memory for a command");
    int rc = words ? relay_via_words(&r->via, r->hosts.names[0], words, e) : 0;
    free(words);
    return rc;
}

void fleet_reach_fini(struct fleet_reach *r) { host_list_fini(&r->hosts); }
