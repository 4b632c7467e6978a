/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_reach: where the ranks of a job are, and how their hosts are reached; options that say so. */
#ifndef CLIENT_HOSTS_FLEET_REACH_H
#define CLIENT_HOSTS_FLEET_REACH_H

#include "base/err.h"
#include "base/option.h"
#include "client/hosts/host_list.h"
#include "client/hosts/relay_child.h"
#include "client/hosts/relay_via.h"

struct fleet_reach {
    relay_serve_fn serve;   /* the relay of this host */
    struct host_list hosts; /* empty: this host */
    struct relay_via via;   /* for `hosts` */
    char *script;           /* of `via`; NULL: the usual one */
};

/* As typed; NULL: not given. */
struct fleet_reach_options {
    const char *hosts, *hostfile, *slurm, *k8s, *via, *container, *relay;
    bool push;
    bool later; /* which hosts is known later, one at a time */
};

/* Rows for a struct `type` that has these options as its member. */
#define FLEET_REACH_ROWS(type, member)                                                                       \
    {"hosts",       0,                                                                                       \
     OPTION_STRING, offsetof(type, member.hosts),                                                            \
     .arg = "LIST", .help = "hosts of the job: a,b[1-4] or @group of nodeset (without: this host)"},         \
        {"hostfile",    0,                                                                                   \
         OPTION_STRING, offsetof(type, member.hostfile),                                                     \
         .arg = "FILE", .help = "hosts of the job, one a line, as MPI has them"},                            \
        {"slurm",       0,                                                                                   \
         OPTION_STRING, offsetof(type, member.slurm),                                                        \
         .arg = "JOB",  .help = "hosts of this job of Slurm, reached by srun unless --via differs"},         \
        {"k8s",           0,                                                                                 \
         OPTION_STRING,   offsetof(type, member.k8s),                                                        \
         .arg = "LABELS", .help = "running pods with these labels, by kubectl: app=llama"},                  \
        {"via",                                                                                              \
         0,                                                                                                  \
         OPTION_STRING,                                                                                      \
         offsetof(type, member.via),                                                                         \
         .arg = "COMMAND",                                                                                   \
         .help = "by ssh, srun, kubectl, docker, podman, or 'ssh login ssh {host} {relay}'",                 \
         .choice = relay_preset_name},                                                                       \
        {"container",   0,                                                                                   \
         OPTION_STRING, offsetof(type, member.container),                                                    \
         .arg = "NAME", .help = "container of the pods, for --via kubectl"},                                 \
        {"push", 0, OPTION_FLAG, offsetof(type, member.push),                                                \
         .help = "copy probing-relay to ~/.cache/probing on hosts that lack it, and run that"},              \
    {                                                                                                        \
        "relay", 0, OPTION_STRING, offsetof(type, member.relay),                                             \
            .arg = "COMMAND", .help = "the relay's command there, such as '/opt/probing relay --stdio'"      \
    }

/* True if hosts are named. */
static inline bool fleet_reach_has_hosts(const struct fleet_reach_options *o) {
    return o->hosts || o->hostfile || o->slurm || o->k8s;
}

/* Read the options; with `push` also do that, which takes a while. 0, or -1 with the error: a host or the
 * command is not valid. fleet_reach_fini frees, on failure too. The texts of the options outlive it. */
int fleet_reach_init(struct fleet_reach *r, const struct fleet_reach_options *o, relay_serve_fn serve,
                     struct err *e);
void fleet_reach_fini(struct fleet_reach *r);

/* Push our relay onto the hosts (push.h); those that refuse it are named on stderr. 0, or -1 with the error
 * if it is on none of them then. */
int fleet_reach_push(const struct fleet_reach *r, struct err *e);

#endif
