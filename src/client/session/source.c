/* SPDX-License-Identifier: Apache-2.0 */
/* source: see source.h. The functions of session.h: what is asked goes to the kind of source that the address names. */
#include "client/session/source.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SESSION_EVAL_S 3.0 /* beside the time of the code, for its answer */

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

int source_put_threads(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_threads(out, id, params);
}

static int source_put_config(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_config(out, id, params);
}

int session_configure(struct session *s, const struct wire_config *c, struct err *e) {
    const struct source_question q = {.method = WIRE_CONFIG, .put = source_put_config, .params = c};
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "there is no agent whose settings could be changed");
    return s->source->ask(s, &q, e);
}

static int source_put_listen(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_listen(out, id, params);
}

int session_listen(struct session *s, const struct wire_listen *want, struct err *e) {
    const struct source_question q = {.method = WIRE_LISTEN, .put = source_put_listen, .params = want};
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "there is no agent that could listen");
    return s->source->ask(s, &q, e);
}

static int source_take_listening(const struct session_handler *h, void *arg, const struct wire_message *m,
                                 struct err *e) {
    struct wire_listening got;
    if (wire_get_listening(m, &got, e) != 0)
        return -1;
    if (h->on_listening)
        h->on_listening(arg, &got);
    return 0;
}

static int source_put_arm(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_arm(out, id, params);
}

static int source_put_disarm(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_disarm(out, id, params);
}

static int source_arm(struct session *s, const struct source_question *q, struct err *e) {
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "there is no agent in the job that could arm anything in it");
    return s->source->ask(s, q, e);
}

int session_arm(struct session *s, const struct wire_arm *want, struct err *e) {
    return source_arm(
        s,
        &(struct source_question){
            .method = WIRE_ARM, .put = source_put_arm, .params = want, .patience_s = SESSION_ARM_S},
        e);
}

int session_disarm(struct session *s, const struct wire_arm *want, struct err *e) {
    return source_arm(
        s, &(struct source_question){.method = WIRE_DISARM, .put = source_put_disarm, .params = want}, e);
}

int session_ask_details(struct session *s, const struct wire_threads *want, struct err *e) {
    return s->source->ask_details(s, want, e);
}

static int source_put_eval(struct strbuf *out, uint32_t id, const void *params) {
    return wire_put_eval(out, id, params);
}

int session_eval(struct session *s, const struct wire_eval *want, struct err *e) {
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "code is run by an agent, and there is none in the target");
    return s->source->ask(s,
                          &(struct source_question){.method = want->complete ? WIRE_COMPLETE : WIRE_EVAL,
                                                    .put = source_put_eval,
                                                    .params = want,
                                                    .patience_s = want->timeout_s + SESSION_EVAL_S},
                          e);
}

struct source_debug {
    enum wire_method method;
    const struct wire_debug *want;
};

static int source_put_debug(struct strbuf *out, uint32_t id, const void *params) {
    const struct source_debug *d = params;
    return wire_put_debug(out, id, d->method, d->want);
}

int session_debug(struct session *s, enum wire_method method, const struct wire_debug *want, struct err *e) {
    const struct source_debug params = {.method = method, .want = want};
    if (!s->source->ask)
        return err_set(e, ERR_FAILED, "code is run by an agent, and there is none in the target");
    return s->source->ask(s,
                          &(struct source_question){.method = method,
                                                    .put = source_put_debug,
                                                    .params = &params,
                                                    .patience_s = want->timeout_s + SESSION_EVAL_S},
                          e);
}

int session_interrupt(struct session *s, struct err *e) { return session_request(s, WIRE_INTERRUPT, e); }

static int source_take_evaluated(const struct session_handler *h, void *arg, const struct wire_message *m,
                                 struct err *e) {
    struct wire_evaluated what;
    if (wire_get_evaluated(m, &what, e) != 0)
        return -1;
    if (h->on_evaluated)
        h->on_evaluated(arg, &what);
    return 0;
}

static int source_take_debugger(const struct session_handler *h, void *arg, enum wire_method method,
                                const struct wire_message *m, struct err *e) {
    struct wire_debugger what;
    int rc = wire_get_debugger(m, method, &what, e);
    if (rc == 0 && h->on_debugger)
        h->on_debugger(arg, method, &what);
    wire_debugger_fini(&what);
    return rc;
}

int source_take_answer(const struct session_handler *h, void *arg, enum wire_method method,
                       const struct wire_message *m, struct err *e) {
    return method == WIRE_LISTEN                            ? source_take_listening(h, arg, m, e)
           : method == WIRE_EVAL || method == WIRE_COMPLETE ? source_take_evaluated(h, arg, m, e)
                                                            : source_take_debugger(h, arg, method, m, e);
}

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
