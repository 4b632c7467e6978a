/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: the one event loop of a client program (libwebsockets' own, hidden here).
 *
 * Everything happens on the thread that calls loop_run. It watches descriptors, fires one-shot
 * timers and serves sessions.
 */
#ifndef CLIENT_LOOP_H
#define CLIENT_LOOP_H

#include <stdint.h>

#include "base/err.h"

struct loop;
struct loop_watch;

struct loop *loop_new(struct err *e);
/* Also ends all watches. Free sessions and timers before their loop. */
void loop_free(struct loop *l);

/* Service events until loop_stop. Safe to call again afterwards. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Call `fn` whenever `fd` is readable (or hung up). The loop watches a duplicate; the caller
 * keeps owning `fd`. NULL on failure. loop_unwatch may be called from inside `fn`. */
struct loop_watch *loop_watch_fd(struct loop *l, int fd, void (*fn)(void *arg), void *arg, struct err *e);
void loop_unwatch(struct loop_watch *w);

/* A one-shot timer, embedded in its owner as an opaque block. loop_timer_set re-arms; `fn` runs
 * once after `delay_us`. */
struct loop_timer;
struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg, struct err *e);
void loop_timer_set(struct loop_timer *t, uint64_t delay_us);
void loop_timer_cancel(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

#endif
