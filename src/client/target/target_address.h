/* SPDX-License-Identifier: Apache-2.0 */
/* target_address: where a target is, as target.h finds it and session.h goes there. */
#ifndef CLIENT_TARGET_TARGET_ADDRESS_H
#define CLIENT_TARGET_TARGET_ADDRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/model.h"

/* Where the target is. `pid` > 0 lets the session notice the target's end. */
struct target_address {
    char path[256]; /* unix socket of the agent, or its TCP port (tcp.h) */
    pid_t pid;
    enum model_mode mode; /* MODEL_MODE_READONLY: read process `pid` from outside */
    bool block;           /* the same, stopping each running thread while it is read */
    char why[256];        /* the same: why it is read from outside */
    char recorded[512];   /* folder with the tables of a process that has ended; "" it lives */
};

#endif
