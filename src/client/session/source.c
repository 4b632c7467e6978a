/* SPDX-License-Identifier: Apache-2.0 */
/* source: see source.h. The functions of session.h call the kind of source that the address
 * names. */
#include "client/session/source.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SESSION_EVAL_S 3.0 /* for the answer, beside the time of the code */

struct session *session_new(struct loop *l, const struct target_address *addr,
                            const struct session_handler *h, void *arg, struct err *e) {
    if (addr->recorded[0])
        return session_recorded_new(l, addr, h, arg, e);
    if (addr->mode == MODEL_MODE_READONLY)
        return session_outside_new(l, addr, h, arg, e);
    return session_agent_new(l, addr, h, arg, e);
}

void session_free(struct session *s) {
    if (s)
        s->source->free(s);
}

enum session_state session_get_state(const struct session *s) { return s->source->get_state(s); }

double session_retry_in_s(const struct session *s) { return s->source->retry_in_s(s); }

int session_request(struct session *s, enum wire_method m, struct err *e) {
    return s->source->request(s, m, e);
}

void session_set_sampling(struct session *s, enum model_sampling mode) {
    if (s->source->set_sampling)
        s->source->set_sampling(s, mode);
}

void session_set_budget(struct session *s, double budget_pct) { s->source->set_budget(s, budget_pct); }

void session_set_batch(struct session *s, double batch_s) {
    if (s->source->set_batch)
        s->source->set_batch(s, batch_s);
}

/* Send a request to the agent; `without` is the error text if there is no agent. */
static int source_ask(struct session *s, enum wire_method m, const void *params, double patience_s,
                      const char *without, struct err *e) {
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "%s", without);
    return s->source->ask(s, m, params, patience_s, e);
}

int session_configure(struct session *s, const struct wire_config *c, struct err *e) {
    return source_ask(s, WIRE_CONFIG, c, 0, "changing settings needs an agent, and there is none", e);
}

int session_listen(struct session *s, const struct wire_listen *want, struct err *e) {
    return source_ask(s, WIRE_LISTEN, want, 0, "listening needs an agent, and there is none", e);
}

#define SOURCE_NOTHING_ARMS "this needs an agent in the job, and there is none"

int session_arm(struct session *s, const struct wire_arm *want, struct err *e) {
    return source_ask(s, WIRE_ARM, want, SESSION_ARM_S, SOURCE_NOTHING_ARMS, e);
}

int session_disarm(struct session *s, const struct wire_arm *want, struct err *e) {
    return source_ask(s, WIRE_DISARM, want, 0, SOURCE_NOTHING_ARMS, e);
}

int session_ask_details(struct session *s, const struct wire_threads *want, struct err *e) {
    return s->source->ask_details(s, want, e);
}

#define SOURCE_NOTHING_RUNS "running code needs an agent, and there is none in the target"

int session_eval(struct session *s, const struct wire_eval *want, struct err *e) {
    return source_ask(s, want->complete ? WIRE_COMPLETE : WIRE_EVAL, want, want->timeout_s + SESSION_EVAL_S,
                      SOURCE_NOTHING_RUNS, e);
}

int session_debug(struct session *s, enum wire_method method, const struct wire_debug *want, struct err *e) {
    return source_ask(s, method, want, want->timeout_s + SESSION_EVAL_S, SOURCE_NOTHING_RUNS, e);
}

int session_ask(struct session *s, enum wire_method m, const void *params, double patience_s, struct err *e) {
    return source_ask(s, m, params, patience_s, "tables need an agent, and there is none", e);
}

int session_interrupt(struct session *s, struct err *e) { return session_request(s, WIRE_INTERRUPT, e); }

int session_set_native(struct session *s, bool native, struct err *e) {
    return s->source->set_native(s, native, e);
}

int session_subscribe(struct session *s, enum wire_stream stream, double rate_hz, struct err *e) {
    return s->source->subscribe(s, stream, rate_hz, e);
}

int session_unsubscribe(struct session *s, enum wire_stream stream, struct err *e) {
    return s->source->unsubscribe(s, stream, e);
}

int source_watch_end(struct loop *l, pid_t pid, void (*fn)(void *arg), void *arg, int *pidfd,
                     struct loop_watch **watch, struct err *e) {
    *pidfd = -1;
    *watch = NULL;
    if (pid <= 0)
        return 0;
    *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*pidfd < 0)
        return errno == ESRCH ? err_set(e, ERR_LOST, "process %d has ended", (int)pid) : 0;
    *watch = loop_watch_fd(l, *pidfd, fn, arg, e);
    return *watch ? 0 : -1;
}
