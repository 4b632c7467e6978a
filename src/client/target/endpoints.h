/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoints: where one comes into a job on this machine that has an agent, and who may, from the files beside the agent's socket.
 *
 * The job is not asked, so one that hangs is known as fast as any other. One row of endpoints_kinds is one kind of door.
 */
#ifndef CLIENT_TARGET_ENDPOINTS_H
#define CLIENT_TARGET_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/endpoint.h"

#define ENDPOINTS_MAX 8

enum endpoints_kind {
    ENDPOINTS_UNIX,
    ENDPOINTS_TCP,
    ENDPOINTS_PAUSE,
    ENDPOINTS_CATCH,
    ENDPOINTS_DEBUGPY,
    ENDPOINTS_KINDS,
};

struct endpoints_kind_row {
    const char *name;  /* for programs, and in the agent's file; never changes */
    const char *title; /* for people */
    bool token;        /* there is one, without which nobody gets further than to look */
    const char *who;   /* enters, for people */
};

extern const struct endpoints_kind_row endpoints_kinds[ENDPOINTS_KINDS];

struct endpoints_one {
    enum endpoints_kind kind;
    char address[ENDPOINT_PATH_MAX];
    bool looking; /* who enters may look, and neither read values nor change anything */
};

struct endpoints {
    struct endpoints_one all[ENDPOINTS_MAX];
    size_t n;
    int eval; /* code is run for clients: 1 yes, 0 no, -1 not known (and then neither whether a debugger listens) */
};

/* Of process `pid`, whose agent answers at `socket` as this process reaches it. */
void endpoints_read(struct endpoints *d, pid_t pid, const char *socket);

/* Who may enter by it, for people. */
const char *endpoints_who(const struct endpoints_one *door);

#endif
