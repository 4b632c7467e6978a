/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_native: the part of a session that waits for names of native frames. Private to sessions.
 *
 * The thread that looks for them is started when native frames are asked for the first time. Answers come to the session's handler
 * as if they had come at once. Runs on the loop's thread.
 */
#ifndef CLIENT_SESSION_SESSION_NATIVE_H
#define CLIENT_SESSION_SESSION_NATIVE_H

#include "client/loop.h"
#include "client/symbols/native_worker.h"
#include "client/session/session.h"

struct session_native {
    struct loop *loop;
    pid_t pid; /* whose files are read; 0: none */
    const struct session_handler *handler;
    void *arg;
    struct native_worker *worker; /* NULL: not started */
    struct loop_watch *watch;
    uint64_t dropped; /* samples that found no room */
    bool
        wanted; /* samples have native frames from the next subscription on; else those that still come are of no use */
};

/* Have the thread running. 0 or -1. */
int session_native_start(struct session_native *n, struct err *e);
void session_native_stop(struct session_native *n);

/* Samples come with native frames from here on, or without: then those that wait for names still are of no use. 0 or -1. */
int session_native_follow(struct session_native *n, bool wanted, struct err *e);

/* Find the names in what was received; it is moved out. */
void session_native_snapshot(struct session_native *n, struct model_snapshot *s);
void session_native_batch(struct session_native *n, struct model_sample_batch *b);

/* Answer "done" after all that was received before. */
void session_native_reply(struct session_native *n, enum wire_method method);

/* A new stream of samples begins. */
void session_native_forget(struct session_native *n);

#endif
