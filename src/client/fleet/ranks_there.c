/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_there: see ranks_there.h. */
#include "client/fleet/ranks_there.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/fleet/fleet_open.h"

#define RANKS_THERE_S 30.0    /* for the ranks to be found */
#define RANKS_THERE_NOTE 4096 /* bytes */
/* connections that are made at a time to one host: sshd drops some where there are more than 10 (MaxStartups) */
#define RANKS_THERE_AT_ONCE 8

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

/* It may be on a host that has not answered. -1. */
static int ranks_there_refuse(const struct fleet_source *l, int32_t rank, struct err *e) {
    struct strbuf silent;
    strbuf_init(&silent, RANKS_THERE_NOTE);
    fleet_source_put_silent(l, &silent);
    int rc =
        err_set(e, ERR_ATTACH, "job %s: no process of these hosts is rank %d%s%s", fleet_source_get(l)->job,
                (int)rank, silent.len ? "; no news from " : "", strbuf_str(&silent));
    strbuf_fini(&silent);
    return rc;
}

/* Those of `ranks` in `found`. Their number, or -1 with the error. */
static ssize_t ranks_there_find(const struct fleet_source *l, const struct rank_set *ranks, size_t cap,
                                const struct fleet_rank **found, struct err *e) {
    const struct fleet *f = fleet_source_get(l);
    size_t n = 0;
    if (rank_set_count(ranks) == 0 || (size_t)rank_set_count(ranks) > cap)
        return err_set(e, ERR_USAGE,
                       "%d ranks of other hosts are meant; from 1 to %zu can be opened: job:%s/0-3",
                       (int)rank_set_count(ranks), cap, f->job);
    for (size_t i = 0; i < ranks->n; i++)
        for (int32_t rank = ranks->ranges[i].first; rank <= ranks->ranges[i].last; rank++) {
            const struct fleet_rank *r = fleet_find(f, rank);
            if (!r || r->pid <= 0)
                return ranks_there_refuse(l, rank, e);
            found[n++] = r;
        }
    return (ssize_t)n;
}

/* A rank whose tunnel is being made. */
struct rank_opening {
    struct relay_tunnel tunnel;
    struct relay_tunnel_start start;
    struct target_address addr;
    struct err error;
    bool is_begun, is_done; /* done: there is an address, or an error */
};

/* Begin those that may begin: a few on each host at a time. */
static void ranks_there_begin(struct rank_opening *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct rank_opening *o = &all[i];
        size_t running = 0;
        for (size_t k = 0; k < i; k++)
            running += all[k].is_begun && !all[k].is_done && all[k].tunnel.host == o->tunnel.host;
        if (o->is_begun || running >= RANKS_THERE_AT_ONCE)
            continue;
        o->is_begun = true;
        o->is_done = relay_tunnel_begin(&o->tunnel, &o->start, &o->error) != 0;
    }
}

/* Make all tunnels together, so that a host that does not answer costs its own time and no other's. */
static void ranks_there_connect(struct rank_opening *all, size_t n) {
    uint64_t until = clock_mono_ns() + RELAY_TUNNEL_S * CLOCK_NS_PER_S;
    for (bool late = false;;) {
        struct pollfd fds[RANKS_THERE_MAX];
        size_t running = 0;
        ranks_there_begin(all, late ? 0 : n);
        for (size_t i = 0; i < n; i++) {
            bool is_running = all[i].is_begun && !all[i].is_done;
            fds[i] = (struct pollfd){.fd = is_running ? all[i].start.fd : -1, .events = POLLIN};
            running += is_running;
        }
        if (!running)
            break;
        uint64_t now = clock_mono_ns();
        late = now >= until;
        if (!late && poll(fds, n, (int)((until - now) / CLOCK_NS_PER_MS) + 1) < 0)
            continue;
        for (size_t i = 0; i < n; i++) {
            struct rank_opening *o = &all[i];
            if (fds[i].fd < 0 || (!late && !fds[i].revents))
                continue;
            o->is_done = true;
            relay_tunnel_end(&o->start, 0, &o->addr, &o->error);
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!all[i].is_begun)
            err_set(&all[i].error, ERR_ATTACH, "%s: there was no time left for it", all[i].tunnel.host);
}

/* Take those that were made. If not all have to be there, the others are named in `partial`. Their number, or
 * -1 with the error. */
static ssize_t ranks_there_take(const struct rank_opening *all, const struct fleet_rank *const *found,
                                size_t n, bool need_all, struct rank_there *out, struct strbuf *partial,
                                struct err *e) {
    const struct err *why = NULL;
    size_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        if (all[i].error.code != ERR_OK) {
            why = why ? why : &all[i].error;
            strbuf_addf(partial, "%srank %d (%s)", partial->len ? "; " : "", (int)found[i]->rank,
                        err_text(&all[i].error));
            continue;
        }
        struct rank_there *r = &out[taken++];
        r->addr = all[i].addr;
        snprintf(r->target, sizeof r->target, "unix:%.*s", RELAY_TUNNEL_PATH - 1, r->addr.path);
    }
    if (!why || (taken && !need_all))
        return (ssize_t)taken;
    *e = *why;
    return -1;
}

ssize_t ranks_there_open(const char *text, const struct fleet_reach *reach, bool attach, pid_t owner,
                         struct rank_there *out, size_t cap, struct strbuf *partial, struct err *e) {
    const struct fleet_rank *found[RANKS_THERE_MAX];
    struct rank_set ranks = {.n = 0};
    struct fleet_source *l = fleet_open(text, reach, e);
    struct rank_opening *all = calloc(RANKS_THERE_MAX, sizeof *all);
    ssize_t n = l ? fleet_source_fill(l, 1, RANKS_THERE_S, NULL, NULL, e) : -1;
    cap = cap < RANKS_THERE_MAX ? cap : RANKS_THERE_MAX;
    const struct fleet *f = l ? fleet_source_get(l) : NULL;
    bool need_all = strchr(text, '/') != NULL;
    if (n == 0 && !all)
        n = err_set(e, ERR_FAILED, "out of memory for the ranks");
    if (n == 0 && ranks_there_choose(text, f, &ranks, e) != 0)
        n = -1;
    if (n == 0)
        n = ranks_there_find(l, &ranks, cap, found, e);
    if (n > 0 && !need_all)
        fleet_source_put_silent(l, partial);
    for (ssize_t i = 0; i < n; i++)
        all[i].tunnel = (struct relay_tunnel){.reach = reach,
                                              .host = f->nodes[found[i]->node].host,
                                              .pid = found[i]->pid,
                                              .attach = attach,
                                              .owner = owner,
                                              .end_fd = -1};
    if (n > 0) {
        ranks_there_connect(all, (size_t)n);
        n = ranks_there_take(all, found, (size_t)n, need_all, out, partial, e);
    }
    free(all);
    rank_set_fini(&ranks);
    fleet_source_close(l);
    return n;
}
