/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: the data of one target, as they arrive, on a loop.
 *
 * From an agent: connects, says hello, keeps subscriptions across reconnects, reconnects with
 * back-off (0.25, 0.5, 1, 2, 5 s, 20 % jitter). Or from outside: a thread of ours reads the
 * target's memory. Both notice the target's end through a pidfd. Callbacks run on the loop's
 * thread and may not free the session.
 */
#ifndef CLIENT_SESSION_SESSION_H
#define CLIENT_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"
#include "client/loop.h"
#include "client/target/target_address.h"
#include "wire/wire.h"

enum session_state {
    SESSION_CONNECTING = 0,
    SESSION_CONNECTED,    /* hello was answered; from outside: the interpreter was found */
    SESSION_RECONNECTING, /* the connection broke; the next attempt is running or scheduled */
    SESSION_LOST,         /* final: the target is gone */
    SESSION_FAILED,       /* final: the other side is not an agent, or has another version */
};

struct session;

/* Any may be NULL. Data are borrowed for the call, unless taken: a handler may move a struct out
 * by copying it and zeroing the original (the arena goes with it). */
struct session_handler {
    void (*on_state)(void *arg, enum session_state state, const struct err *why);
    void (*on_target)(void *arg, struct model_target *target);
    void (*on_snapshot)(void *arg, struct model_snapshot *snapshot);
    /* The answer to session_ask_details. */
    void (*on_details)(void *arg, struct model_snapshot *snapshot);
    void (*on_samples)(void *arg, struct model_sample_batch *batch);
    void (*on_status)(void *arg, struct model_status *status);
    /* Why there is less data than was asked for: a line, not sanitised. */
    void (*on_note)(void *arg, const char *line);
    /* The answer to session_eval; its texts live as long as the call. */
    void (*on_evaluated)(void *arg, const struct wire_evaluated *what);
    /* The answer to session_debug, for that method. */
    void (*on_debugger)(void *arg, enum wire_method method, struct wire_debugger *what);
    /* the answer to session_listen */
    void (*on_listening)(void *arg, const struct wire_listening *what);
    /* The answer to session_ask; to keep it, set `*answer` to NULL. */
    void (*on_answer)(void *arg, struct wire_message **answer);
    void (*on_reply)(void *arg, enum wire_method method,
                     /* subscribe, unsubscribe, eject, config, arm, disarm */
                     const struct err *error);
};

/* Start connecting. NULL on failure. Freed by session_free, from outside callbacks. */
struct session *session_new(struct loop *l, const struct target_address *addr,
                            const struct session_handler *h, void *arg, struct err *e);
void session_free(struct session *s);

enum session_state session_get_state(const struct session *s);

/* Seconds until the next attempt while SESSION_RECONNECTING; 0 otherwise. */
double session_retry_in_s(const struct session *s);

/* Send a request; answers arrive through the handlers. Streams are requested again after a
 * reconnect. 0 or -1. */
/* threads, status, eject */
#define SESSION_SNAPSHOT_S 10.0 /* the longest wait for threads: 10,000 take seconds */
int session_request(struct session *s, enum wire_method m, struct err *e);
/* Change a setting. The answer arrives through on_reply. 0 or -1. */
int session_configure(struct session *s, const struct wire_config *c, struct err *e);
/* Arm something in the job for this client, until it disconnects or the wanted number is
 * reached; disarm uses only `what`. A broken connection ends it: it is not armed again. The
 * answer arrives through on_reply, once it is armed or cannot be. 0 or -1. */
#define SESSION_TUNNEL_S 30 /* the longest wait for a relay on another host (target_address.h) */
#define SESSION_ARM_S 10.0  /* the longest wait for an answer, which needs the GIL */
int session_arm(struct session *s, const struct wire_arm *want, struct err *e);
int session_disarm(struct session *s, const struct wire_arm *want, struct err *e);
/* Ask for the threads with the details in `want` (locals, tasks, native frames, which are then
 * named and merged; its mode is the session's), of one thread (none if it does not exist) or of
 * all (tid 0). The answer arrives through on_details, a refusal through on_reply. 0 or -1. */
int session_ask_details(struct session *s, const struct wire_threads *want, struct err *e);
/* Run code in the job, for want->timeout_s at most. The answer arrives through on_evaluated, a
 * refusal through on_reply. 0 or -1. */
int session_eval(struct session *s, const struct wire_eval *want, struct err *e);
/* Send a debugger request (debug, pause or catch), for want->timeout_s at most. The answer
 * arrives through on_debugger, a refusal through on_reply. 0 or -1. */
int session_debug(struct session *s, enum wire_method method, const struct wire_debug *want, struct err *e);
/* Interrupt the code that runs for this client; its own answer has the result. 0 or -1. */
int session_interrupt(struct session *s, struct err *e);
/* Make the agent listen at a TCP address, or nowhere. The answer arrives through on_listening, a
 * refusal through on_reply. 0 or -1. */
int session_listen(struct session *s, const struct wire_listen *want, struct err *e);
/* Ask for tables, or for rows of one: WIRE_TABLES, WIRE_PULL or WIRE_ROWS, `params` its struct of
 * wire.h. The message arrives through on_answer within `patience_s`, a refusal, in the agent's own
 * words, through on_reply. 0 or -1. */
int session_ask(struct session *s, enum wire_method m, const void *params, double patience_s, struct err *e);
int session_subscribe(struct session *s, enum wire_stream stream, double rate_hz, struct err *e);
/* How running threads are sampled, from the next subscription on. */
void session_set_sampling(struct session *s, enum model_sampling mode);
/* Stacks of samples have native frames, from the next subscription on. 0, or -1 if this source
 * has none. */
int session_set_native(struct session *s, bool native, struct err *e);
/* Upper limit of the streams' overhead, in percent of a core, from the next subscription on; 0:
 * the other side's default. */
void session_set_budget(struct session *s, double budget_pct);
/* Interval between two batches of samples, in seconds, from the next subscription on; 0: the
 * other side's default. */
void session_set_batch(struct session *s, double batch_s);
/* The answer arrives after the last data of the stream. */
int session_unsubscribe(struct session *s, enum wire_stream stream, struct err *e);

#endif
