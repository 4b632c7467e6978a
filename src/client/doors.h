/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doors: where one comes into a job on this machine that has an agent, and who may, from the files beside the agent's socket.
 *
 * The job is not asked, so one that hangs is known as fast as any other. One row of doors_kinds is one kind of door.
 */
#ifndef CLIENT_DOORS_H
#define CLIENT_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/endpoint.h"

#define DOORS_MAX 8

enum doors_kind {
    DOORS_UNIX,
    DOORS_TCP,
    DOORS_PAUSE,
    DOORS_CATCH,
    DOORS_DEBUGPY,
    DOORS_KINDS,
};

struct doors_kind_row {
    const char *name;  /* for programs, and in the agent's file; never changes */
    const char *title; /* for people */
    bool token;        /* there is one, without which nobody gets further than to look */
    const char *who;   /* enters, for people */
};

extern const struct doors_kind_row doors_kinds[DOORS_KINDS];

struct doors_one {
    enum doors_kind kind;
    char address[ENDPOINT_PATH_MAX];
    bool looking; /* who enters may look, and neither read values nor change anything */
};

struct doors {
    struct doors_one all[DOORS_MAX];
    size_t n;
    int eval; /* code is run for clients: 1 yes, 0 no, -1 not known (and then neither whether a debugger listens) */
};

/* Of process `pid`, whose agent answers at `socket` as this process reaches it. */
void doors_read(struct doors *d, pid_t pid, const char *socket);

/* Who may enter by it, for people. */
const char *doors_who(const struct doors_one *door);

#endif
