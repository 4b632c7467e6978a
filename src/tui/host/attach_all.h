/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_all: the targets of the command line, each attached to by a helper of its own, all at the
 * same time.
 */
#ifndef TUI_HOST_ATTACH_ALL_H
#define TUI_HOST_ATTACH_ALL_H

#include "base/err.h"
#include "client/target/target.h"
#include "tui/core/targets.h"

/* Targets as they were typed; a name that several processes have is replaced by the pids of all of
 * them. */
struct attach_all {
    char texts[TARGETS_MAX][512];
    const char *names[TARGETS_MAX];
    struct target_address addrs[TARGETS_MAX]; /* before attaching: what the name says */
    int n;
};

/* Read what was typed; a process that is named twice is one target. 0, or -1 with the error: there
 * are more than TARGETS_MAX, or one of several is not a target. */
int attach_all_read(struct attach_all *all, const char *const *typed, int n, struct err *e);

/* Attach to all of them. 0 with the addresses, or -1 with the error of the first one that
 * failed. */
int attach_all_run(struct attach_all *all, const struct target_options *how, struct err *e);

#endif
