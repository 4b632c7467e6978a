/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: where a session's data come from: an agent in the target, or a reader outside it. The
 * common part.
 *
 * Screens, calls and exports know only session.h. A kind of source is one table of functions and
 * one function that makes a session of its kind; session_new chooses by the address. Everything
 * runs on the loop's thread.
 */
#ifndef CLIENT_SESSION_SOURCE_H
#define CLIENT_SESSION_SOURCE_H

#include "client/session/outside.h"
#include "client/session/session.h"

/* The meaning and errors of each function: session.h. */
struct source {
    void (*free)(struct session *s);
    enum session_state (*get_state)(const struct session *s);
    double (*retry_in_s)(const struct session *s);
    int (*request)(struct session *s, enum wire_method m, struct err *e);
    /* NULL: there is no choice */
    void (*set_sampling)(struct session *s, enum model_sampling mode);
    int (*ask_details)(struct session *s, const struct wire_threads *want, struct err *e);
    void (*set_budget)(struct session *s, double budget_pct);
    /* Send a request to the agent: params are the method's struct of wire.h (NULL: it has none),
     * the answer may take `patience_s` (0: as any). It arrives through on_reply, unless the
     * method has a handler of its own. NULL: there is no agent. */
    int (*ask)(struct session *s, enum wire_method m, const void *params, double patience_s, struct err *e);
    void (*set_batch)(struct session *s, double batch_s); /* NULL: batches cost nothing */
    int (*set_native)(struct session *s, bool native, struct err *e);
    int (*subscribe)(struct session *s, enum wire_stream stream, double rate_hz, struct err *e);
    int (*unsubscribe)(struct session *s, enum wire_stream stream, struct err *e);
};

/* The first member of a session of any kind. */
struct session {
    const struct source *source;
};

/* Sessions of each kind; as session_new. */
struct session *session_agent_new(struct loop *l, const struct target_address *addr,
                                  const struct session_handler *h, void *arg, struct err *e);
struct session *session_outside_new(struct loop *l, const struct target_address *addr,
                                    const struct session_handler *h, void *arg, struct err *e);

struct session *session_recorded_new(struct loop *l, const struct target_address *addr,
                                     const struct session_handler *h, void *arg, struct err *e);

/* A session with a target that `reader` reads; its close is called in any case. */
struct session *session_outside_with(struct loop *l, const struct target_address *addr,
                                     const struct outside_reader *reader, void *reader_arg,
                                     const struct session_handler *h, void *arg, struct err *e);

/* Call `fn` when process `pid` has ended; `pid` 0 watches nothing. Kernels without pidfd_open
 * (before 5.3) do without. The caller owns `*pidfd` (-1: none) and `*watch` (NULL: none) from
 * here on. 0, or -1 with the error (ERR_LOST: it has ended already). */
int source_watch_end(struct loop *l, pid_t pid, void (*fn)(void *arg), void *arg, int *pidfd,
                     struct loop_watch **watch, struct err *e);

#endif
