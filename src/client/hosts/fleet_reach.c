/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_reach: see fleet_reach.h. */
#include "client/hosts/fleet_reach.h"

#include <stdlib.h>
#include <string.h>

#include "client/hosts/push.h"
#include "client/output.h"
#include "client/progress.h"

/* A host that has our relay runs that, others what is installed there. */
static int reach_read_script(struct fleet_reach *r) {
    struct push_file f;
    struct strbuf script;
    struct err none;
    strbuf_init(&script, 0);
    int rc = push_file_read(&f, &none);
    if (rc == 0) {
        push_put_start(&f, &script);
        strbuf_adds(&script, RELAY_SCRIPT);
        r->script = script.failed ? NULL : strdup(script.data);
        r->via.script = r->script;
    }
    push_file_fini(&f);
    strbuf_fini(&script);
    return rc == 0 && !r->script ? -1 : 0;
}

int fleet_reach_push(const struct fleet_reach *r, struct err *e) {
    struct push_file f;
    struct push_host *hosts = calloc(r->hosts.n + 1, sizeof *hosts);
    size_t n = 0;
    int rc = push_file_read(&f, e);
    if (!hosts)
        rc = err_set(e, ERR_FAILED, "out of memory for %zu hosts", r->hosts.n);
    for (size_t i = 0; rc == 0 && i < r->hosts.n; i++)
        hosts[i].name = r->hosts.names[i];
    if (rc == 0) {
        progress_begin("copying probing-relay to the hosts", 0, NULL);
        push_run(&f, &r->via, hosts, r->hosts.n);
        progress_end();
        for (size_t i = 0; i < r->hosts.n; i++) {
            n += hosts[i].rc == 0;
            if (hosts[i].rc != 0 && r->hosts.n > 1)
                output_say("probing: no relay is copied to %s\n", err_text(&hosts[i].error));
        }
        if (n == 0)
            rc = err_set(e, ERR_FAILED, "no relay is copied to %.400s",
                         r->hosts.n == 1 ? err_text(&hosts[0].error) : "any of the hosts");
    }
    push_file_fini(&f);
    free(hosts);
    return rc;
}

int fleet_reach_init(struct fleet_reach *r, const struct fleet_reach_options *o, relay_serve_fn serve,
                     struct err *e) {
    *r = (struct fleet_reach){.serve = serve,
                              .via = {.via = o->via   ? o->via
                                             : o->k8s ? "kubectl"
                                                      : NULL,
                                      .relay = o->relay,
                                      .slurm = o->slurm,
                                      .container = o->container}};
    if (o->hosts && host_list_add(&r->hosts, o->hosts, e) != 0)
        return -1;
    if (o->hostfile && host_list_add_file(&r->hosts, o->hostfile, e) != 0)
        return -1;
    /* with a list of its own --slurm only says which job srun joins */
    if (o->slurm && !r->hosts.n && host_list_add_slurm(&r->hosts, o->slurm, e) != 0)
        return -1;
    if (o->k8s && host_list_add_pods(&r->hosts, o->k8s, e) != 0)
        return -1;
    if ((o->hosts || o->hostfile) && !r->hosts.n)
        return err_set(e, ERR_USAGE, "--hosts names no hosts: it is a list such as a,b[1-4]");
    if ((o->via || o->container || o->relay || o->push) && !r->hosts.n && !o->later)
        return err_set(e, ERR_USAGE,
                       "%s is for other hosts: name them by --hosts, --hostfile, --slurm or --k8s",
                       o->via         ? "--via"
                       : o->container ? "--container"
                       : o->relay     ? "--relay"
                                      : "--push");
    if (o->push && o->relay)
        return err_set(e, ERR_USAGE,
                       "--push needs a shell on the hosts, and runs what it has copied: leave out --relay");
    if (!r->via.slurm)
        r->via.slurm = r->via.via ? getenv("SLURM_JOB_ID") : NULL;
    bool far = r->hosts.n > 0 || (o->later && o->via);
    struct relay_words *words = far ? malloc(sizeof *words) : NULL;
    if (far && !words)
        return err_set(e, ERR_FAILED, "out of memory for a command");
    int rc = words ? relay_via_words(&r->via, r->hosts.n ? r->hosts.names[0] : "host", words, e) : 0;
    free(words);
    if (rc == 0 && far && !o->relay && reach_read_script(r) != 0)
        rc = err_set(e, ERR_FAILED, "out of memory for a command");
    return rc == 0 && o->push ? fleet_reach_push(r, e) : rc;
}

void fleet_reach_fini(struct fleet_reach *r) {
    host_list_fini(&r->hosts);
    free(r->script);
    r->script = NULL;
}
