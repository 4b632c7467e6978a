/* SPDX-License-Identifier: Apache-2.0 */
/* target_address: the address of a target, found by target.h and used by session.h. */
#ifndef CLIENT_TARGET_TARGET_ADDRESS_H
#define CLIENT_TARGET_TARGET_ADDRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/model.h"

/* The address of a target. `pid` > 0 lets the session notice the target's end. */
struct target_address {
    char path[256]; /* unix socket of the agent, or its TCP port (tcp.h) */
    pid_t pid;      /* 0: not known here, /proc does not describe it */
    /* > 0: the process here that listens at `path` in place of the target, which is on another host; `pid` is 0
     * then, and its end is the target's */
    pid_t tunnel;
    char host[96];        /* with a tunnel: the name of that host */
    enum model_mode mode; /* MODEL_MODE_READONLY: read process `pid` from outside */
    bool block;           /* read-only, stopping each running thread while it is read */
    char why[256];        /* read-only: why it is read from outside */
    char recorded[512];   /* folder with the tables of an ended process; "" if it lives */
};

#endif
