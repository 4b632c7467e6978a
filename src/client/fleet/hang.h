/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang: who waits for whom in a job that stands still, and for whom all others wait in the end. Pure.
 *
 * The counters are those of each process group in each rank: how many collectives the rank has
 * entered (enqueued), and how many of them are over (completed). A rank with an open collective
 * waits in that group
 *
 *   - for members with fewer completed ones: they have not come as far, or do not finish;
 *   - for members with as many, and none open: they have not entered the next one;
 *   - for members that entered another operation under the same number, where most entered one;
 *   - for members that have not entered the open one, where nothing else is known of them;
 *   - for members that do not answer or are gone;
 *   - if there are none of these, for all that stand where it stands: one of them does not get to it.
 *
 * How far ahead a rank has enqueued does not count: with NCCL that is a matter of luck, and to be
 * behind the first would accuse all but one. Groups for point-to-point operations are left out, as
 * their counters differ in healthy jobs.
 *
 * The culprits are the strongly connected sinks of that graph: they wait for nobody but each other.
 * Several of them in one sink are a deadlock. A sink in which all have entered the same and nobody
 * is behind (a network, a switch) accuses nobody.
 */
#ifndef CLIENT_FLEET_HANG_H
#define CLIENT_FLEET_HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a rank has given its counters. */
enum hang_answer { HANG_ANSWERS, HANG_SILENT, HANG_GONE };

struct hang_member {
    int32_t rank;
    bool known; /* enqueued is; of a rank that answers but does not know the group it is not */
    int64_t enqueued, completed; /* completed -1: unknown */
    uint64_t what;               /* a hash of operation, size and type of the first that is open; 0 unknown */
};

struct hang_group {
    const struct hang_member *members; /* all that are expected; of several of one rank the first counts */
    size_t n;
    bool p2p;
};

/* Whether a collective is open in it, as far as is known. */
static inline bool hang_is_open(const struct hang_member *m) {
    return m->known && m->completed >= 0 && m->completed < m->enqueued;
}

/* What a member is to its group. */
enum hang_role {
    HANG_OUT,      /* nothing: it is not known, or the group does not count */
    HANG_DONE,     /* no collective is open, and nobody waits for it */
    HANG_WAITS,    /* a collective is open, and others are behind */
    HANG_ALIKE,    /* a collective is open, and nobody is behind */
    HANG_MISSING,  /* others wait for it to enter */
    HANG_STUCK,    /* it has entered, but does not finish what others have finished */
    HANG_MISMATCH, /* it has entered something else */
    HANG_NO_ANSWER,
    HANG_NO_PROCESS,
};

struct hang_culprit {
    int32_t rank;
    enum hang_role role; /* in the group by which it is accused */
    size_t group;        /* in which others wait for it: that which it has entered, else the first */
    int64_t number;      /* of the collective for which they wait, counted from 1 */
    uint32_t root;       /* equal for those of one sink */
    bool deadlock;       /* it waits for others of its sink, as they do for it */
};

/* What is found of a group. */
struct hang_group_state {
    size_t first;          /* of its members in `roles` */
    int64_t front;         /* most that an open member has completed; -1: no collective is open */
    uint32_t open, behind; /* members with an open collective; those that are waited for */
    bool split;            /* several operations under one number, and no majority */
    bool alike;            /* some wait in it, in a sink where nobody is behind */
};

struct hang {
    struct hang_culprit *culprits; /* owned; by rank */
    size_t n_culprits;
    struct hang_group_state *groups; /* owned; one for each of the input */
    uint8_t *roles;                  /* owned; enum hang_role of each member of each group */
    int32_t n_open;                  /* ranks with an open collective in some group */
    bool alike;                      /* so it is in some group: a network, or all of them */
};

/* Judge `n_ranks` ranks, whose answers are in `answers`, in `n` groups. 0, or -1 without memory;
 * hang_fini frees. */
int hang_find(const enum hang_answer *answers, int32_t n_ranks, const struct hang_group *groups, size_t n,
              struct hang *out);
void hang_fini(struct hang *h);

#endif
