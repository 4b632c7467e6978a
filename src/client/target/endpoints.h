/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoints: the listeners of a job with an agent on this machine, and who may connect, from the
 * files beside the agent's socket.
 *
 * The job is not asked, so a job that hangs answers as fast as any other. One row of
 * endpoints_kinds is one kind of listener.
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
    bool token;        /* there is a token; clients without it are read-only at most */
    const char *who;   /* who may connect, for users */
};

extern const struct endpoints_kind_row endpoints_kinds[ENDPOINTS_KINDS];

struct endpoints_one {
    enum endpoints_kind kind;
    char address[ENDPOINT_PATH_MAX];
    bool looking; /* its clients are read-only: they neither read values nor change anything */
};

struct endpoints {
    struct endpoints_one all[ENDPOINTS_MAX];
    size_t n;
    /* clients may run code: 1 yes, 0 no, -1 unknown (and so is whether a debugger listens) */
    int eval;
};

/* For process `pid`, whose agent answers at `socket` as this process reaches it. */
void endpoints_read(struct endpoints *d, pid_t pid, const char *socket);

/* Who may connect to it, for users. */
const char *endpoints_who(const struct endpoints_one *door);

#endif
