/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arms: what is armed in the job, for whom and until when, as its agent tells it; and what came of what was armed from here. Pure.
 *
 * A kind is a row of arm_defs: its key is an action, which arms it, or disarms what was armed from here (app_arm.h).
 */
#ifndef TUI_MODEL_ARMS_H
#define TUI_MODEL_ARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "tui/keys/action.h"

#define ARMS_TEXT 256

enum arm_kind { ARM_TRACE = 0, ARM_NAN, ARM_PROFILER, ARM_KINDS };

struct arm_def {
    const char *what; /* the agent's name of it */
    enum action action;
    int64_t steps; /* that are looked into; 0: until it is disarmed */
    bool asks;     /* what it will cost is asked of the agent first, and the key has to be pressed again */
    const char *begins, *ends; /* messages: it is armed; it is over (NULL: what the agent says of it) */
};

extern const struct arm_def arm_defs[ARM_KINDS];

struct arm {
    bool mine;      /* armed from here, and not known to be over */
    bool seen;      /* the agent has told of it since it was */
    bool trying;    /* what is armed from here is only to tell what it would cost */
    double asked_s; /* when that was, on the caller's clock */
    bool listed;    /* the agent tells of it: */
    int64_t owners, looks;
    bool by_config, armed; /* `armed`: its hooks are in the job now */
    double held_s, left_s, cost_pct;
    char note[ARMS_TEXT], file[ARMS_TEXT]; /* of the agent's */
    char said[2 * ARMS_TEXT];              /* what came of the last one from here; "" nothing yet */
};

struct arms {
    struct arm kinds[ARM_KINDS];
};

/* Which kind an action arms; ARM_KINDS: none. */
enum arm_kind arms_find(enum action action);

/* Take the agent's leases. The kinds in `over` (ARM_KINDS of them) were armed from here and are over. */
void arms_take(struct arms *a, const struct model_status *s, double now_s, bool *over);

/* Is anything armed from here, or asked for? */
bool arms_have_mine(const struct arms *a);

/* Is somebody's kind armed, or waited for? */
bool arms_is_on(const struct arms *a, enum arm_kind kind);

/* For whom it is armed, until when, and what it has seen: "from here and by 1 other client, 12 s more, 5 steps"; "" when nobody's. */
void arms_put(const struct arms *a, enum arm_kind kind, char *buf, size_t cap);

/* The names of all that are armed: "trace, nan"; "" none. */
void arms_put_names(const struct arms *a, char *buf, size_t cap);

#endif
