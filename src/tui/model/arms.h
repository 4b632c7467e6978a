/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arms: what is armed in the job, for whom and until when, as its agent reports it; and the outcome
 * of what was armed from here. Pure.
 *
 * A kind is a row of arm_defs: its key is an action, which arms it, or disarms what was armed from
 * here (app_arm.h).
 */
#ifndef TUI_MODEL_ARMS_H
#define TUI_MODEL_ARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "tui/keys/action.h"

#define ARMS_TEXT 256

enum arm_kind { ARM_TRACE = 0, ARM_NAN, ARM_PROFILER, ARM_ALLOC, ARM_KINDS };

struct arm_def {
    const char *what; /* the agent's name for it */
    const char *name; /* for people */
    enum action action;
    int64_t steps;      /* how many steps it covers; 0: until it is disarmed */
    bool asks;          /* the agent is asked for its cost first, and the key has to be pressed again */
    const char *counts; /* what its looks are: steps, samples */
    /* Messages: it is armed; it will end; it has ended (NULL: the agent's own words). */
    const char *begins, *leaves, *ends;
};

extern const struct arm_def arm_defs[ARM_KINDS];

struct arm {
    bool mine;      /* armed from here, and not known to have ended */
    bool seen;      /* the agent has reported it since then */
    bool trying;    /* armed only to learn what it would cost */
    double asked_s; /* when it was armed, on the caller's clock */
    bool listed;    /* the agent reports it: */
    int64_t owners, looks;
    bool by_config, armed; /* `armed`: its hooks are in the job now */
    double held_s, left_s, cost_pct;
    double begun_s; /* noted by a screen: when it was armed last, in seconds since the epoch; 0: not known */
    char note[ARMS_TEXT], file[ARMS_TEXT]; /* the agent's */
    char said[2 * ARMS_TEXT];              /* the outcome of the last one from here; "": none yet */
};

struct arms {
    struct arm kinds[ARM_KINDS];
};

/* The kind that an action arms; ARM_KINDS: none. */
enum arm_kind arms_find(enum action action);

/* Take the agent's leases. The kinds in `over` (ARM_KINDS of them) were armed from here and have
 * ended. */
void arms_take(struct arms *a, const struct model_status *s, double now_s, bool *over);

/* Is anything armed from here, or requested? */
bool arms_have_mine(const struct arms *a);

/* Is the kind armed for anybody, or requested? */
bool arms_is_on(const struct arms *a, enum arm_kind kind);

/* For whom it is armed, until when, and what it has seen: "from here and by 1 other client, 12 s
 * more, 5 steps"; "": for nobody. */
void arms_put(const struct arms *a, enum arm_kind kind, char *buf, size_t cap);

/* The names of everything that is on: "module trace, NaN search (by others)"; "": nothing. */
void arms_put_names(const struct arms *a, char *buf, size_t cap);

#endif
