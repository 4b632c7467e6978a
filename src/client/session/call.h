/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: a session for those who wait: one question, one answer, a deadline.
 *
 * A loop and a session of its own behind blocking functions. One thread; one call at a time. After an error the call
 * is only good for call_close, unless call_is_lost says that it is not.
 */
#ifndef CLIENT_SESSION_CALL_H
#define CLIENT_SESSION_CALL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/session/session.h"

#define CALL_TIMEOUT_MS 5000U

struct call;

/* Connect and exchange hellos. NULL with the error: ERR_ATTACH no agent there, ERR_LOST the target ended. */
struct call *call_open(const struct target_address *addr, struct err *e);
void call_close(struct call *c);

/* From here on, whoever waits gives up when `stop` says so; it is asked often, and may be given NULL. The error is ERR_FAILED then. */
void call_set_stop(struct call *c, bool (*stop)(void *arg), void *arg);

/* What the agent said of its target; owned by the call. */
const struct model_target *call_get_target(const struct call *c);

/* One snapshot, the status. `out` is initialised here and owned by the caller (…_fini), on failure too. 0 or -1. */
int call_snapshot(struct call *c, struct model_snapshot *out, struct err *e);
int call_status(struct call *c, struct model_status *out, struct err *e);

/* One snapshot with what `want` says; as call_snapshot. */
int call_details(struct call *c, const struct wire_threads *want, struct model_snapshot *out, struct err *e);

/* Two looks `interval_ms` apart; the second is returned, which therefore knows what was on the CPU. */
int call_snapshot_measured(struct call *c, unsigned interval_ms, struct model_snapshot *out, struct err *e);

/* The same, the second with what `want` says. */
int call_details_measured(struct call *c, const struct wire_threads *want, unsigned interval_ms,
                          struct model_snapshot *out, struct err *e);

/* Samples have native frames. 0, or -1: they are not to be had. */
int call_set_native(struct call *c, bool native, struct err *e);

/* Set something of the agent's. 0, or -1 with the error. */
int call_configure(struct call *c, const struct wire_config *config, struct err *e);

/* Have something armed in the job as long as this call is open, or no longer. 0 when it is armed, or wanted while the GIL is not had;
 * or -1 with the error. */
int call_arm(struct call *c, const struct wire_arm *want, struct err *e);
int call_disarm(struct call *c, const struct wire_arm *want, struct err *e);

/* Let time go by, with the connection alive. 0, or -1 with the error. */
int call_rest(struct call *c, double seconds, struct err *e);

/* Have code run in the job, within want->timeout_s. The texts of `*out` are copied into `keep`, which the caller has begun and frees. 0,
 * or -1 with the error: it was not run. */
int call_eval(struct call *c, const struct wire_eval *want, struct strbuf *keep, struct wire_evaluated *out,
              struct err *e);

/* Ask for a debugger, within want->timeout_s; `out` is for wire_debugger_fini, on failure too. 0, or -1 with the error: it was not done. */
int call_debug(struct call *c, enum wire_method method, const struct wire_debug *want,
               struct wire_debugger *out, struct err *e);

/* Have the code ended for which call_eval waits: from its `stop`. 0 or -1. */
int call_interrupt(struct call *c, struct err *e);

/* After an error: is the connection gone? Else, and that only of call_eval, the call is as good as before. */
bool call_is_lost(const struct call *c);

/* Have the agent listen at a TCP address, or nowhere. 0, or -1 with the error. */
int call_listen(struct call *c, const struct wire_listen *want, struct wire_listening *out, struct err *e);

/* Tell the agent to leave. 0 when it agreed, or -1. */
int call_eject(struct call *c, struct err *e);

/* How running threads are looked at; exact unless told. */
void call_set_sampling(struct call *c, enum model_sampling mode);

/* What sampling may cost at most, in percent of a core; 0: as the agent has it. */
void call_set_budget(struct call *c, double budget_pct);

/* Take samples at `rate_hz` for `duration_s` and hand each batch to `fn` (which does not own it) until it returns non-zero.
 * `*elapsed_s` is how long samples came. 0, or -1 with the error (ERR_LOST: the target ended; batches so far were handed
 * over). */
int call_sample(struct call *c, double rate_hz, double duration_s,
                int (*fn)(void *arg, struct model_sample_batch *batch), void *arg, double *elapsed_s,
                struct err *e);

#endif
