/* SPDX-License-Identifier: Apache-2.0 */
/*
 * armed: common code of the verbs that arm something in a target. It is armed as long as the
 * verb runs, inspects training steps, and the verb reads its rows from the target's tables.
 */
#ifndef CLI_ARMED_H
#define CLI_ARMED_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "client/session/call.h"
#include "client/sql/result.h"

#define ARMED_NOTE_MAX 512

/* Options of such a verb: the first member of its own struct. */
struct armed_options {
    struct cli_options common; /* first */
    long steps;                /* 0: the verb's default */
    double duration_s;         /* 0: the verb's default */
    bool compiled;
};

struct armed {
    struct call *call;
    struct database *database;
    struct wire_arm want;
    double began_s;            /* since the epoch: rows from then on belong to this verb */
    int64_t before, looks;     /* inspected steps at the start, and since the start */
    double cost_pct;           /* overhead of the inspection; NAN unknown */
    bool cut;                  /* ^C has ended the wait */
    bool ends;                 /* set by the verb: wait until the lease ends by itself */
    bool seen;                 /* the agent's status has shown the lease */
    unsigned absent;           /* checks in a row that did not find it */
    bool over;                 /* the lease has ended by itself */
    char note[ARMED_NOTE_MAX]; /* the agent's last note about it; "" if there is none */
    char file[ARMED_NOTE_MAX]; /* the file that it has written; "" if there is none */
};

/* Reach the target, inject an agent if it has none, and arm `what` in it. 0, or -1 with the
 * error. Call armed_end also on failure. */
int armed_begin(struct armed *a, const struct cli_options *o, struct target_address *addr,
                const struct wire_arm *want, struct err *e);

/* Wait until the wanted number of steps is inspected, `is_done` (NULL: never; it is called
 * often) returns true, the lease is over, the time is over, or ^C arrives. 0, or -1 with the
 * error. */
int armed_wait(struct armed *a, double duration_s, bool (*is_done)(struct armed *a), struct err *e);

/* True if ^C has arrived since it was armed. */
bool armed_is_interrupted(void);

/* Rows of a query over the target; the caller unrefs them. NULL with the error. `text` has one
 * %.6f for the time from which rows count. */
struct result *armed_ask(struct armed *a, const char *text, struct err *e);

/* The lease is over because it belonged to another client, with its own end: arm it again for
 * `steps` more. 0, or -1 with the error. */
int armed_renew(struct armed *a, int64_t steps, struct err *e);

/* Disarm, if it is still armed, and free everything. */
void armed_end(struct armed *a);

#endif
