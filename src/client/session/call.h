/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: a session for callers that wait: one question, one answer, a deadline.
 *
 * A loop and a session of its own behind blocking functions. One thread; one call at a time.
 * After an error the call can only be closed by call_close, unless call_is_lost returns false.
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

/* Connect and exchange hellos. NULL with the error: ERR_ATTACH there is no agent, ERR_LOST the
 * target has ended. */
struct call *call_open(const struct target_address *addr, struct err *e);
/* The same, and `stop` ends this wait, too; see call_set_stop. */
struct call *call_open_stoppable(const struct target_address *addr, bool (*stop)(void *arg), void *arg,
                                 struct err *e);
void call_close(struct call *c);

/* From here on every wait ends when `stop`, which is called often, returns true; NULL: no wait
 * does. The error is ERR_FAILED then. */
void call_set_stop(struct call *c, bool (*stop)(void *arg), void *arg);

/* The agent's description of its target; owned by the call. */
const struct model_target *call_get_target(const struct call *c);

/* Get one snapshot, the status. `out` is initialised here and owned by the caller (…_fini), on
 * failure too. 0 or -1. */
int call_snapshot(struct call *c, struct model_snapshot *out, struct err *e);
int call_status(struct call *c, struct model_status *out, struct err *e);

/* Get one snapshot with the details in `want`; as call_snapshot. */
int call_details(struct call *c, const struct wire_threads *want, struct model_snapshot *out, struct err *e);

/* Take two snapshots `interval_ms` apart and return the second, which therefore shows which
 * threads were on the CPU. */
int call_snapshot_measured(struct call *c, unsigned interval_ms, struct model_snapshot *out, struct err *e);

/* The same, the second with the details in `want`. */
int call_details_measured(struct call *c, const struct wire_threads *want, unsigned interval_ms,
                          struct model_snapshot *out, struct err *e);

/* Samples have native frames. 0, or -1 if this target has none. */
int call_set_native(struct call *c, bool native, struct err *e);

/* Change a setting of the agent. 0, or -1 with the error. */
int call_configure(struct call *c, const struct wire_config *config, struct err *e);

/* Arm something in the job as long as this call is open, or disarm it. 0 if it is armed, or will
 * be when the GIL is available; or -1 with the error. */
int call_arm(struct call *c, const struct wire_arm *want, struct err *e);
int call_disarm(struct call *c, const struct wire_arm *want, struct err *e);

/* Wait for that time, and serve the connection. 0, or -1 with the error. */
int call_rest(struct call *c, double seconds, struct err *e);

/* Run code in the job, within want->timeout_s. The texts of `*out` are copied into `keep`, which
 * the caller initialises and frees. 0, or -1 with the error: the code was not run. */
int call_eval(struct call *c, const struct wire_eval *want, struct strbuf *keep, struct wire_evaluated *out,
              struct err *e);

/* Send a debugger request, within want->timeout_s; free `out` by wire_debugger_fini, on failure
 * too. 0, or -1 with the error: it was not done. */
int call_debug(struct call *c, enum wire_method method, const struct wire_debug *want,
               struct wire_debugger *out, struct err *e);

/* Interrupt the code that call_eval waits for: from its `stop`. 0 or -1. */
int call_interrupt(struct call *c, struct err *e);

/* After an error: true if the connection is gone. Otherwise, and only after call_eval or call_ask, the call
 * can be used as before. */
bool call_is_lost(const struct call *c);

/* True if the connection has ended, whatever the error says: another one may be better. */
bool call_is_disconnected(const struct call *c);

/* Make the agent listen at a TCP address, or nowhere. 0, or -1 with the error. */
int call_listen(struct call *c, const struct wire_listen *want, struct wire_listening *out, struct err *e);

/* Ask for tables, or for rows of one: WIRE_TABLES, WIRE_PULL or WIRE_ROWS, `params` its struct of
 * wire.h. The caller owns the answer; NULL with the error, a refusal in the agent's own words. */
struct wire_message *call_ask(struct call *c, enum wire_method method, const void *params, struct err *e);

/* Ask the agent to leave. 0 if it agreed, or -1. */
int call_eject(struct call *c, struct err *e);

/* How running threads are sampled; the default is exact. */
void call_set_sampling(struct call *c, enum model_sampling mode);

/* Upper limit of the sampling overhead, in percent of a core; 0: the agent's default. */
void call_set_budget(struct call *c, double budget_pct);

/* Take samples at `rate_hz` for `duration_s` and pass each batch to `fn` (which does not own it)
 * until it returns non-zero. `*elapsed_s` is the time over which samples arrived. 0, or -1 with
 * the error (ERR_LOST: the target ended; earlier batches were passed on). */
int call_sample(struct call *c, double rate_hz, double duration_s,
                int (*fn)(void *arg, struct model_sample_batch *batch), void *arg, double *elapsed_s,
                struct err *e);

#endif
