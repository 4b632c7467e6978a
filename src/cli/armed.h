/* SPDX-License-Identifier: Apache-2.0 */
/*
 * armed: what verbs that arm something in a target have in common: it is armed as long as the verb runs, looks into training
 * steps, and its rows are read from the target's tables.
 */
#ifndef CLI_ARMED_H
#define CLI_ARMED_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "client/session/call.h"
#include "client/sql/result.h"

#define ARMED_NOTE_MAX 512

/* Options of such a verb: the first part of its own struct. */
struct armed_options {
    struct cli_options common; /* first */
    long steps;                /* 0: as the verb has it */
    double duration_s;         /* the same */
    bool compiled;
};

struct armed {
    struct call *call;
    struct database *database;
    struct wire_arm want;
    double began_s;            /* since the epoch: rows from then on are of this verb */
    int64_t before, looks;     /* steps that were looked into when it began; and since */
    double cost_pct;           /* what looking costs; NAN not known */
    bool cut;                  /* ^C has ended the waiting */
    bool ends;                 /* set by the verb: it is waited for until the lease ends by itself */
    bool seen;                 /* the lease, in the agent's status */
    unsigned absent;           /* looks in a row that did not see it */
    bool over;                 /* the lease has ended by itself */
    char note[ARMED_NOTE_MAX]; /* what the agent says of it; "" nothing */
    char file[ARMED_NOTE_MAX]; /* that it has written; "" none */
};

/* Reach the target, which gets an agent, and arm `what` in it. 0, or -1 with the error. armed_end, on failure too. */
int armed_begin(struct armed *a, const struct cli_options *o, struct target_address *addr,
                const struct wire_arm *want, struct err *e);

/* Wait until so many steps as wanted were looked into, `is_done` (NULL: nothing) says so, which is asked often, the lease is over, the
 * time is over, or ^C came. 0, or -1 with the error. */
int armed_wait(struct armed *a, double duration_s, bool (*is_done)(struct armed *a), struct err *e);

/* Has ^C come since it was armed? */
bool armed_is_interrupted(void);

/* Rows of a query over the target, for the caller to unref; NULL with the error. `text` has one %.6f for the time since when they count. */
struct result *armed_ask(struct armed *a, const char *text, struct err *e);

/* The lease is over and was another client's with an end of its own: arm it anew for `steps` more. 0, or -1 with the error. */
int armed_renew(struct armed *a, int64_t steps, struct err *e);

/* Disarm, if it is armed yet, and let go of everything. */
void armed_end(struct armed *a);

#endif
