/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach: finds the target and injects the agent, in a short-lived process of its own.
 *
 * So neither ^C nor a crash of the screen can leave the target half attached: the helper is in
 * another process group, finishes what it began and ends. It is never killed. Its answer comes back
 * over a pipe.
 */
#ifndef TUI_HOST_ATTACH_H
#define TUI_HOST_ATTACH_H

#include <sys/types.h>

#include "base/err.h"
#include "client/fleet/relay_tunnel.h"
#include "client/target/target.h"

struct attach {
    pid_t helper; /* 0: none */
    int fd;       /* readable when it is done */
    int tunnel;   /* of a process of another host: it leads there until this is closed; -1 none */
};

/* Start attaching to the target that is named `target`, or to a process of another host (`there`, but for its
 * `end_fd`; NULL: it is here), with the options `how`. 0, or -1 with the error. */
int attach_start(struct attach *a, const char *target, const struct relay_tunnel *there,
                 const struct target_options *how, struct err *e);

/* The answer, waiting for it if necessary. 0 with the address, or -1 with the error. Ends the
 * attach. A process of another host is reached until `*tunnel` is closed, which is -1 for one of this host;
 * NULL: it is of this host. */
int attach_finish(struct attach *a, struct target_address *addr, int *tunnel, struct err *e);

/* Leave the helper, if there is one, to itself: nobody wants what it makes. */
void attach_abandon(struct attach *a);

#endif
