/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_agent: a session with an agent; see session.h and source.h.
 *
 * A state machine over one link at a time: connect, hello, then requests and notifications.
 * Before the first answered hello every failure is final (there is no agent); after it, a
 * failure causes a reconnect, except for a peer that breaks the protocol. The pidfd decides
 * whether the target is gone. Runs on the loop's thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/loop.h"
#include "client/session/net_link.h"
#include "client/session/session.h"
#include "client/session/source.h"
#include "client/symbols/native_worker.h"
#include "client/target/tcp.h"
#include "client/target/tunnel_reason.h"
#include "version.h"

/* ---- errors, as one line for the user ---- */

static const char *session_what(const struct target_address *addr, char *buf, size_t cap) {
    if (addr->tunnel > 0)
        snprintf(buf, cap, "the agent on %s", addr->host[0] ? addr->host : "the other host");
    else if (addr->pid > 0)
        snprintf(buf, cap, "the agent in process %d", (int)addr->pid);
    else
        snprintf(buf, cap, "the agent at %s", tcp_name(addr->path));
    return buf;
}

/* Connected, but silent. `greeted`: a hello was answered before. */
static void session_explain_silence(const struct target_address *addr, bool greeted, struct err *why) {
    struct procfs_stat st;
    struct procfs_status status;
    char what[320];
    bool stopped =
        addr->pid > 0 && procfs_read_stat(addr->pid, 0, &st) == 0 && (st.state == 'T' || st.state == 't');
    if (stopped && procfs_read_status(addr->pid, 0, &status) == 0 && status.tracer_pid > 0)
        err_set(why, ERR_ATTACH,
                "process %d is stopped by process %lld, which traces it, so its agent cannot answer: "
                "continue it there",
                (int)addr->pid, (long long)status.tracer_pid);
    else if (stopped)
        err_set(why, ERR_ATTACH,
                "process %d is stopped, so its agent cannot answer: continue it (kill -CONT %d)",
                (int)addr->pid, (int)addr->pid);
    else if (greeted || addr->tunnel > 0)
        err_set(why, greeted ? ERR_FAILED : ERR_ATTACH, "%s does not answer",
                session_what(addr, what, sizeof what));
    else
        err_set(why, ERR_ATTACH,
                "%s accepts connections but does not answer like an agent: it may be another program, or it "
                "hangs; try again, or give a pid",
                tcp_name(addr->path));
}

/* The connection could not be made, or broke: `end` and `how` come from the link. `farewell`:
 * the agent's last text; "" none. */
static void session_explain_unreachable(const struct target_address *addr, bool greeted, const char *farewell,
                                        enum net_link_end end, const char *how, struct err *why) {
    char what[320], reason[TUNNEL_REASON_MAX] = "";
    if (addr->tunnel > 0)
        tunnel_reason_get(addr->path, reason, sizeof reason);
    if (reason[0])
        err_set(why, greeted ? ERR_FAILED : ERR_ATTACH, "%s", reason);
    else if (greeted && farewell[0])
        err_set(why, ERR_FAILED, "%s has left: %s", session_what(addr, what, sizeof what), farewell);
    else if (greeted)
        err_set(why, ERR_FAILED, "the connection to %s broke", session_what(addr, what, sizeof what));
    else if (addr->tunnel > 0)
        err_set(why, ERR_ATTACH, "%s cannot be reached", session_what(addr, what, sizeof what));
    else if (tcp_is(addr->path))
        err_set(why, ERR_ATTACH,
                "no agent answers at %s: 'probing list' shows where those of this machine listen",
                tcp_name(addr->path));
    else if (end == NET_LINK_NOBODY)
        err_set(
            why, ERR_ATTACH,
            "nothing listens at %s: the process that made it has ended or its agent was ejected; give a pid",
            addr->path);
    else if (end == NET_LINK_BARRED)
        err_set(why, ERR_ATTACH, "cannot connect to %s: %s", addr->path, how);
    else
        err_set(why, ERR_ATTACH,
                "%s closes the connection without an answer: it is not an agent, or it refuses this user",
                addr->path);
}

/* The peer does not speak the protocol. */
static void session_explain_protocol(const struct target_address *addr, bool greeted, const char *how,
                                     struct err *why) {
    char what[320];
    err_set(why, greeted ? ERR_FAILED : ERR_ATTACH,
            "%s does not speak %s (%s): is it an agent of another version? Eject it and inject again",
            greeted ? session_what(addr, what, sizeof what) : tcp_name(addr->path), WIRE_PROTOCOL, how);
}

/* The hello was refused with `text`. */
static void session_explain_refusal(const struct target_address *addr, bool version, const char *text,
                                    struct err *why) {
    err_set(why, ERR_ATTACH, "%s refuses this client (version %s): %s%s", tcp_name(addr->path),
            PROBING_VERSION, text,
            version ? ": use the version that injected it, or restart the process" : "");
}

/* It is an agent, and refuses this client. */
static void session_explain_refused(const struct target_address *addr, const char *how, struct err *why) {
    err_set(why, ERR_ATTACH, "the agent at %s does not let this client in: %s", tcp_name(addr->path), how);
}

/* The agent has refused a request with `text`. */
static void session_explain_denial(enum wire_method method, enum wire_error code, const char *text,
                                   struct err *why) {
    bool runs = method == WIRE_EVAL || method == WIRE_COMPLETE || method == WIRE_DEBUG ||
                method == WIRE_PAUSE || method == WIRE_CATCH;
    bool tables = method == WIRE_TABLES || method == WIRE_PULL || method == WIRE_ROWS;
    if (tables || method == WIRE_ARM)
        err_set(why, ERR_FAILED, "%s", text);
    else if (code == WIRE_E_NOT_ALLOWED && runs)
        err_set(why, ERR_FAILED, "no code was run: %s", text);
    else
        err_set(why, ERR_FAILED, "the agent refused %s: %s", wire_method_name(method), text);
}

/* ---- names of native frames ---- */

struct session_native {
    struct loop *loop;
    pid_t pid; /* process whose files are read; 0: none */
    const struct session_handler *handler;
    void *arg;
    struct native_worker *worker; /* NULL: not started */
    struct loop_watch *watch;
    uint64_t dropped; /* samples without room */
    /* samples have native frames from the next subscription on; otherwise those that still
     * arrive are useless */
    bool wanted;
};

/* Start the thread, if it does not run. 0 or -1. */
static int session_native_start(struct session_native *n, struct err *e);
static void session_native_stop(struct session_native *n);

/* From here on samples have native frames, or not: then those that still wait for names are
 * useless. 0 or -1. */
static int session_native_follow(struct session_native *n, bool wanted, struct err *e);

/* Find the names in a received snapshot, which is moved out. */
static void session_native_snapshot(struct session_native *n, struct model_snapshot *s);
static void session_native_batch(struct session_native *n, struct model_sample_batch *b);

/* Answer "done" after all data received before. */
static void session_native_reply(struct session_native *n, enum wire_method method);

/* A new stream of samples begins. */
static void session_native_forget(struct session_native *n);

#define SESSION_PENDING_MAX 16
#define SESSION_ANSWER_TIMEOUT_NS (3 * CLOCK_NS_PER_S)
/* Each connection through a tunnel starts a relay on the other host, which may take as long as the tunnel lets it
 * (relay_tunnel.c); its reason comes then. */
#define SESSION_TUNNEL_TIMEOUT_NS ((SESSION_TUNNEL_S + 2) * CLOCK_NS_PER_S)

static const double session_backoff_s[] = {0.25, 0.5, 1.0, 2.0, 5.0};

struct session_pending {
    uint32_t id; /* 0: free */
    enum wire_method method;
    bool details; /* of threads: with locals, tasks or native frames */
    bool native;  /* of threads: with native frames */
    bool samples; /* a subscription to them */
    uint64_t deadline_ns;
};

struct session_subscription {
    bool wanted;
    double rate_hz;
};

struct session_agent {
    struct session base; /* first */
    struct loop *loop;
    struct target_address addr;
    struct session_handler handler;
    void *arg;
    enum session_state state;
    struct net_link *link;
    struct loop_timer *retry;   /* the next attempt */
    struct loop_timer *timeout; /* of the oldest unanswered request, or the handshake */
    struct loop_watch *end_watch;
    int pidfd;
    uint32_t next_id;
    struct session_pending pending[SESSION_PENDING_MAX];
    struct session_subscription streams[WIRE_STREAM_COUNT];
    enum model_sampling sampling;
    struct session_native native;
    double budget_pct, batch_s; /* 0: the other side's default */
    struct wire_assembler assembler;
    bool greeted;   /* a hello was answered once: there is an agent */
    unsigned tries; /* since the last hello */
    uint64_t retry_at_ns;
    unsigned seed;      /* of the jitter */
    char farewell[160]; /* the reason of a bye */
};

static void session_set_state(struct session_agent *s, enum session_state state, const struct err *why) {
    if (s->state == state && state != SESSION_RECONNECTING)
        return;
    s->state = state;
    if (s->handler.on_state)
        s->handler.on_state(s->arg, state, why);
}

static bool session_is_final(const struct session_agent *s) {
    return s->state == SESSION_LOST || s->state == SESSION_FAILED;
}

/* The process that listens at the socket; 0: unknown. */
static pid_t session_listener(const struct session_agent *s) {
    return s->addr.tunnel > 0 ? s->addr.tunnel : s->addr.pid;
}

/* Drop the link and all state that belongs to it. */
static void session_drop_link(struct session_agent *s) {
    struct net_link *link = s->link;
    s->link = NULL;
    net_link_close(link);
    loop_timer_cancel(s->timeout);
    memset(s->pending, 0, sizeof s->pending);
    wire_assembler_fini(&s->assembler);
    wire_assembler_init(&s->assembler);
}

static void session_finish(struct session_agent *s, enum session_state state, const struct err *why) {
    session_drop_link(s);
    loop_timer_cancel(s->retry);
    loop_unwatch(s->end_watch);
    s->end_watch = NULL;
    session_set_state(s, state, why);
}

static void session_lost(struct session_agent *s) {
    struct err why;
    if (s->addr.tunnel > 0)
        err_set(&why, ERR_LOST, "the process on %s has ended, or what led there (process %d)",
                s->addr.host[0] ? s->addr.host : "the other host", (int)s->addr.tunnel);
    else
        err_set(&why, ERR_LOST, "process %d has ended", (int)s->addr.pid);
    session_finish(s, SESSION_LOST, &why);
}

static void session_retry_later(struct session_agent *s, const struct err *why) {
    size_t n = sizeof session_backoff_s / sizeof session_backoff_s[0];
    double delay = session_backoff_s[s->tries < n ? s->tries : n - 1];
    double spread = (double)rand_r(&s->seed) / RAND_MAX * 0.4 - 0.2;
    s->tries++;
    delay *= 1.0 + spread;
    s->retry_at_ns = clock_mono_ns() + (uint64_t)(delay * 1e9);
    loop_timer_set(s->retry, (uint64_t)(delay * 1e6));
    session_set_state(s, SESSION_RECONNECTING, why);
}

/* The connection has become useless: the session ends, or tries again. */
static void session_broken(struct session_agent *s, enum session_state default_value, const struct err *why) {
    session_drop_link(s);
    if (session_listener(s) > 0 && procfs_is_ending(session_listener(s)))
        session_lost(s);
    else if (default_value == SESSION_FAILED || !s->greeted)
        session_finish(s, SESSION_FAILED, why);
    else
        session_retry_later(s, why);
}

static void session_break_protocol(struct session_agent *s, const char *how) {
    struct err why;
    session_explain_protocol(&s->addr, s->greeted, how, &why);
    session_broken(s, SESSION_FAILED, &why);
}

static void session_break_size(struct session_agent *s) {
    char how[80];
    snprintf(how, sizeof how, "it announced a message of more than %zu bytes", WIRE_MAX_MESSAGE);
    session_break_protocol(s, how);
}

static void session_on_link_end(void *arg, enum net_link_end end, const char *how) {
    struct session_agent *s = arg;
    struct err why;
    s->link = NULL; /* the link frees itself */
    switch (end) {
    case NET_LINK_REFUSED:
        session_explain_refused(&s->addr, how, &why);
        break;
    case NET_LINK_STRANGER:
        err_set(&why, ERR_ATTACH, "%s", how);
        break;
    case NET_LINK_NOT_AGENT:
        session_break_protocol(s, how[0] ? how : "unexpected message");
        return;
    case NET_LINK_TOO_LONG:
        session_break_size(s);
        return;
    case NET_LINK_NO_MEMORY:
        err_set(&why, ERR_FAILED, "out of memory for a message");
        break;
    case NET_LINK_KEPT:
        err_set(&why, ERR_ATTACH, "%s", how);
        session_broken(s, SESSION_RECONNECTING, &why);
        return;
    case NET_LINK_CLOSED:
    case NET_LINK_UNREACHABLE:
    case NET_LINK_NOBODY:
    case NET_LINK_BARRED:
        session_explain_unreachable(&s->addr, s->greeted, s->farewell, end, how, &why);
        session_broken(s, SESSION_RECONNECTING, &why);
        return;
    }
    session_broken(s, SESSION_FAILED, &why);
}

/* ---- requests ---- */

static void session_arm_timeout(struct session_agent *s) {
    uint64_t first = 0;
    for (size_t i = 0; i < SESSION_PENDING_MAX; i++)
        if (s->pending[i].id && (!first || s->pending[i].deadline_ns < first))
            first = s->pending[i].deadline_ns;
    uint64_t now = clock_mono_ns();
    if (first)
        loop_timer_set(s->timeout, first > now ? (first - now) / CLOCK_NS_PER_US + 1 : 1);
    else
        loop_timer_cancel(s->timeout);
}

static void session_on_timeout(void *arg) {
    struct session_agent *s = arg;
    struct err why;
    if (s->link && net_link_outstanding(s->link) > WIRE_MAX_MESSAGE) {
        session_break_size(s);
        return;
    }
    session_explain_silence(&s->addr, s->greeted, &why);
    session_broken(s, SESSION_RECONNECTING, &why);
}

/* Number of a request about to be sent, or 0 if too many wait for an answer. */
static uint32_t session_expect(struct session_agent *s, enum wire_method m, double patience_s,
                               struct err *e) {
    for (size_t i = 0; i < SESSION_PENDING_MAX; i++) {
        struct session_pending *p = &s->pending[i];
        if (p->id)
            continue;
        p->id = ++s->next_id ? s->next_id : ++s->next_id;
        p->method = m;
        p->details = p->native = p->samples = false;
        patience_s = m == WIRE_THREADS ? SESSION_SNAPSHOT_S : patience_s;
        p->deadline_ns =
            clock_mono_ns() + (patience_s > 0 ? (uint64_t)(patience_s * 1e9) : SESSION_ANSWER_TIMEOUT_NS);
        return p->id;
    }
    err_set(e, ERR_FAILED, "too many requests wait for an answer");
    return 0;
}

static struct session_pending *session_find_pending(struct session_agent *s, uint32_t id) {
    for (size_t i = 0; id && i < SESSION_PENDING_MAX; i++)
        if (s->pending[i].id == id)
            return &s->pending[i];
    return NULL;
}

static int session_send(struct session_agent *s, uint32_t id, struct strbuf *message, struct err *e) {
    bool sent = s->link && net_link_send(s->link, message) == 0;
    struct session_pending *p = sent ? NULL : session_find_pending(s, id);
    strbuf_fini(message);
    if (p)
        p->id = 0;
    if (!sent)
        return err_set(e, ERR_FAILED, "not connected");
    session_arm_timeout(s);
    return 0;
}

/* The session that callers know by its first member. */
static struct session_agent *session_of(struct session *base) { return (struct session_agent *)(void *)base; }

static int session_put(struct strbuf *out, uint32_t id, enum wire_method m, const void *params) {
    switch (m) {
    case WIRE_THREADS:
        return wire_put_threads(out, id, params);
    case WIRE_CONFIG:
        return wire_put_config(out, id, params);
    case WIRE_LISTEN:
        return wire_put_listen(out, id, params);
    case WIRE_ARM:
        return wire_put_arm(out, id, params);
    case WIRE_DISARM:
        return wire_put_disarm(out, id, params);
    case WIRE_EVAL:
    case WIRE_COMPLETE:
        return wire_put_eval(out, id, params);
    case WIRE_PULL:
        return wire_put_pull(out, id, params);
    case WIRE_ROWS:
        return wire_put_rows_ask(out, id, params);
    default:
        return params ? wire_put_debug(out, id, m, params) : wire_put_request(out, id, m);
    }
}

static int session_agent_ask(struct session *base, enum wire_method m, const void *params, double patience_s,
                             struct err *e) {
    struct session_agent *s = session_of(base);
    if (s->state != SESSION_CONNECTED)
        return err_set(e, ERR_FAILED, "not connected");
    uint32_t id = session_expect(s, m, patience_s, e);
    if (!id)
        return -1;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    session_put(&b, id, m, params);
    return session_send(s, id, &b, e);
}

static int session_agent_request(struct session *base, enum wire_method m, struct err *e) {
    const struct wire_threads plain = {.mode = session_of(base)->sampling};
    return session_agent_ask(base, m, m == WIRE_THREADS ? &plain : NULL, 0, e);
}

static int session_agent_ask_details(struct session *base, const struct wire_threads *wanted, struct err *e) {
    struct session_agent *s = session_of(base);
    struct wire_threads want = *wanted;
    want.mode = s->sampling;
    if (want.native && session_native_start(&s->native, e) != 0)
        return -1;
    if (s->state != SESSION_CONNECTED)
        return err_set(e, ERR_FAILED, "not connected");
    uint32_t id = session_expect(s, WIRE_THREADS, 0, e);
    if (!id)
        return -1;
    session_find_pending(s, id)->details = true;
    session_find_pending(s, id)->native = want.native;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_threads(&b, id, &want);
    return session_send(s, id, &b, e);
}

static int session_agent_set_native(struct session *base, bool native, struct err *e) {
    return session_native_follow(&session_of(base)->native, native, e);
}

static int session_send_stream(struct session_agent *s, enum wire_stream stream, struct err *e) {
    const struct session_subscription *sub = &s->streams[stream];
    uint32_t id = session_expect(s, sub->wanted ? WIRE_SUBSCRIBE : WIRE_UNSUBSCRIBE, 0, e);
    if (!id)
        return -1;
    session_find_pending(s, id)->samples = sub->wanted && stream == WIRE_STREAM_SAMPLES;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    struct wire_subscribe ask = {
        .stream = stream, .rate_hz = sub->rate_hz, .mode = s->sampling, .budget_pct = s->budget_pct};
    ask.native = s->native.wanted && stream == WIRE_STREAM_SAMPLES;
    ask.batch_s = stream == WIRE_STREAM_SAMPLES ? s->batch_s : 0;
    if (sub->wanted && ask.native)
        session_native_forget(&s->native);
    if (sub->wanted)
        wire_put_subscribe(&b, id, &ask);
    else
        wire_put_unsubscribe(&b, id, stream);
    return session_send(s, id, &b, e);
}

static int session_agent_subscribe(struct session *base, enum wire_stream stream, double rate_hz,
                                   struct err *e) {
    struct session_agent *s = session_of(base);
    if (session_is_final(s))
        return err_set(e, ERR_FAILED, "not connected");
    s->streams[stream] = (struct session_subscription){.wanted = true, .rate_hz = rate_hz};
    return s->state == SESSION_CONNECTED ? session_send_stream(s, stream, e) : 0;
}

static void session_agent_set_sampling(struct session *base, enum model_sampling mode) {
    session_of(base)->sampling = mode;
}

static void session_agent_set_budget(struct session *base, double budget_pct) {
    session_of(base)->budget_pct = budget_pct;
}

static void session_agent_set_batch(struct session *base, double batch_s) {
    session_of(base)->batch_s = batch_s;
    net_link_set_patience(session_of(base)->link, batch_s >= 1);
}

static int session_agent_unsubscribe(struct session *base, enum wire_stream stream, struct err *e) {
    struct session_agent *s = session_of(base);
    bool had = s->streams[stream].wanted;
    s->streams[stream].wanted = false;
    return had && s->state == SESSION_CONNECTED ? session_send_stream(s, stream, e) : 0;
}

/* ---- messages ---- */

static void session_greet(struct session_agent *s, const struct wire_message *m) {
    struct model_target target;
    struct err why;
    if (wire_get_target(m, &target, &why) != 0) {
        model_target_fini(&target);
        session_break_protocol(s, why.text);
        return;
    }
    s->greeted = true;
    s->tries = 0;
    s->farewell[0] = '\0';
    if (s->handler.on_target)
        s->handler.on_target(s->arg, &target);
    model_target_fini(&target);
    session_set_state(s, SESSION_CONNECTED, NULL);
    for (int i = 0; i < WIRE_STREAM_COUNT && s->state == SESSION_CONNECTED; i++)
        if (s->streams[i].wanted)
            session_send_stream(s, (enum wire_stream)i, NULL);
}

static void session_on_threads(struct session_agent *s, const struct wire_message *m, bool details,
                               bool native) {
    void (*handler)(void *arg, struct model_snapshot *snapshot) =
        details ? s->handler.on_details : s->handler.on_snapshot;
    struct model_snapshot snapshot;
    struct err why;
    if (wire_get_snapshot(m, &snapshot, &why) != 0)
        session_break_protocol(s, why.text);
    else if (native)
        session_native_snapshot(&s->native, &snapshot);
    else if (handler)
        handler(s->arg, &snapshot);
    model_snapshot_fini(&snapshot);
}

static void session_on_samples(struct session_agent *s, const struct wire_message *m) {
    struct model_sample_batch batch;
    struct err why;
    /* samples of an earlier subscription are ignored */
    for (size_t i = 0; i < SESSION_PENDING_MAX; i++)
        if (s->pending[i].id && s->pending[i].samples)
            return;
    if (wire_get_samples(m, &batch, &why) != 0)
        session_break_protocol(s, why.text);
    else if (s->native.wanted)
        session_native_batch(&s->native, &batch);
    else if (s->handler.on_samples)
        s->handler.on_samples(s->arg, &batch);
    model_sample_batch_fini(&batch);
}

static void session_on_status(struct session_agent *s, const struct wire_message *m) {
    struct model_status status;
    struct err why;
    if (wire_get_status(m, &status, &why) != 0)
        session_break_protocol(s, why.text);
    else if (s->handler.on_status)
        s->handler.on_status(s->arg, &status);
    model_status_fini(&status);
}

static void session_refused(struct session_agent *s, enum wire_method method, enum wire_error code,
                            const char *text) {
    struct err why;
    if (method == WIRE_HELLO) {
        session_explain_refusal(&s->addr, code == WIRE_E_VERSION, text, &why);
        session_broken(s, SESSION_FAILED, &why);
        return;
    }
    session_explain_denial(method, code, text, &why);
    if (s->handler.on_reply)
        s->handler.on_reply(s->arg, method, &why);
}

/* Pass on the agent's answer to a method with a handler of its own. 0, or -1 with the error if
 * the message is not valid. */
static int session_take_answer(struct session_agent *s, enum wire_method method, const struct wire_message *m,
                               struct err *e) {
    const struct session_handler *h = &s->handler;
    struct wire_listening listening;
    struct wire_evaluated evaluated;
    struct wire_debugger debugger;
    int rc;
    switch (method) {
    case WIRE_LISTEN:
        rc = wire_get_listening(m, &listening, e);
        if (rc == 0 && h->on_listening)
            h->on_listening(s->arg, &listening);
        return rc;
    case WIRE_EVAL:
    case WIRE_COMPLETE:
        rc = wire_get_evaluated(m, &evaluated, e);
        if (rc == 0 && h->on_evaluated)
            h->on_evaluated(s->arg, &evaluated);
        return rc;
    default:
        rc = wire_get_debugger(m, method, &debugger, e);
        if (rc == 0 && h->on_debugger)
            h->on_debugger(s->arg, method, &debugger);
        wire_debugger_fini(&debugger);
        return rc;
    }
}

/* Handle an answer. A handler may take the message; then `*answer` is NULL. */
static void session_on_response(struct session_agent *s, struct wire_message **answer) {
    const struct wire_message *m = *answer;
    struct session_pending *p = session_find_pending(s, wire_message_id(m));
    /* an unexpected answer */
    if (!p)
        return;
    enum wire_method method = p->method;
    bool details = p->details, native = p->native;
    p->id = 0;
    session_arm_timeout(s);
    struct err why;
    enum wire_error code = WIRE_E_UNAVAILABLE;
    const char *text = wire_message_error(m, &code);
    if (text) {
        session_refused(s, method, code, text);
        return;
    }
    switch (method) {
    case WIRE_HELLO:
        session_greet(s, m);
        return;
    case WIRE_THREADS:
        session_on_threads(s, m, details, native);
        return;
    case WIRE_STATUS:
        session_on_status(s, m);
        return;
    case WIRE_LISTEN:
    case WIRE_EVAL:
    case WIRE_COMPLETE:
    case WIRE_DEBUG:
    case WIRE_PAUSE:
    case WIRE_CATCH:
        if (session_take_answer(s, method, m, &why) != 0)
            session_break_protocol(s, why.text);
        return;
    case WIRE_TABLES:
    case WIRE_PULL:
    case WIRE_ROWS:
        if (s->handler.on_answer)
            s->handler.on_answer(s->arg, answer);
        return;
    default:
        session_native_reply(&s->native, method);
    }
}

static void session_on_bytes(struct session_agent *s, const void *data, size_t len);
static void session_on_chunk(struct session_agent *s, const struct wire_message *m) {
    struct err why;
    int rc = wire_assembler_feed(&s->assembler, m, &why);
    if (rc < 0) {
        session_break_protocol(s, why.text);
        return;
    }
    if (rc == 0)
        return;
    /* Moved out first: handling it may end the link, which resets the assembler. */
    struct wire_assembler whole = s->assembler;
    wire_assembler_init(&s->assembler);
    session_on_bytes(s, whole.data.data, whole.data.len);
    wire_assembler_fini(&whole);
}

static void session_on_notification(struct session_agent *s, const struct wire_message *m, bool assembled) {
    switch (wire_message_notification(m)) {
    case WIRE_N_THREADS:
        session_on_threads(s, m, false, false);
        return;
    case WIRE_N_SAMPLES:
        session_on_samples(s, m);
        return;
    case WIRE_N_BYE:
        if (wire_get_bye(m, s->farewell, sizeof s->farewell) != 0)
            s->farewell[0] = '\0';
        return;
    case WIRE_N_CHUNK:
        if (!assembled)
            session_on_chunk(s, m);
        return;
    default:
        return; /* of a newer agent */
    }
}

static void session_handle(struct session_agent *s, const void *data, size_t len, bool assembled) {
    struct err why;
    struct wire_message *m = wire_parse(data, len, &why);
    if (!m) {
        session_break_protocol(s, why.text);
        return;
    }
    switch (wire_message_type(m)) {
    case WIRE_RESPONSE:
        session_on_response(s, &m);
        break;
    case WIRE_NOTIFY:
        session_on_notification(s, m, assembled);
        break;
    case WIRE_REQUEST:
        break; /* a client serves no requests */
    }
    wire_message_free(m);
}

static void session_on_bytes(struct session_agent *s, const void *data, size_t len) {
    session_handle(s, data, len, true);
}

static void session_on_link_message(void *arg, const void *data, size_t len) {
    session_handle(arg, data, len, false);
}

static void session_on_link_open(void *arg) {
    struct session_agent *s = arg;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    uint32_t id = session_expect(s, WIRE_HELLO, 0, NULL);
    wire_put_hello(&b, id, PROBING_VERSION);
    session_send(s, id, &b, NULL);
}

/* ---- life ---- */

static const struct net_link_handler session_link_handler = {
    .on_open = session_on_link_open,
    .on_message = session_on_link_message,
    .on_end = session_on_link_end,
};

static int session_connect(struct session_agent *s, struct err *e) {
    s->link = net_link_open(s->loop, s->addr.path, session_listener(s), &session_link_handler, s, e);
    if (!s->link)
        return -1;
    uint64_t limit_ns = s->addr.tunnel > 0 ? SESSION_TUNNEL_TIMEOUT_NS : SESSION_ANSWER_TIMEOUT_NS;
    loop_timer_set(s->timeout, limit_ns / CLOCK_NS_PER_US);
    return 0;
}

static void session_on_retry(void *arg) {
    struct session_agent *s = arg;
    struct err why;
    s->retry_at_ns = 0;
    if (session_connect(s, &why) != 0)
        session_broken(s, SESSION_RECONNECTING, &why);
}

static void session_on_target_end(void *arg) { session_lost(arg); }

static void session_agent_free(struct session *base) {
    struct session_agent *s = session_of(base);
    net_link_close(s->link);
    loop_unwatch(s->end_watch);
    loop_timer_free(s->retry);
    loop_timer_free(s->timeout);
    session_native_stop(&s->native);
    if (s->pidfd >= 0)
        close(s->pidfd);
    wire_assembler_fini(&s->assembler);
    free(s);
}

static enum session_state session_agent_get_state(const struct session *base) {
    return ((const struct session_agent *)(const void *)base)->state;
}

static double session_agent_retry_in_s(const struct session *base) {
    const struct session_agent *s = (const struct session_agent *)(const void *)base;
    uint64_t now = clock_mono_ns();
    if (s->state != SESSION_RECONNECTING || s->retry_at_ns <= now)
        return 0;
    return (double)(s->retry_at_ns - now) / 1e9;
}

static const struct source session_agent_source = {
    .free = session_agent_free,
    .get_state = session_agent_get_state,
    .retry_in_s = session_agent_retry_in_s,
    .request = session_agent_request,
    .set_sampling = session_agent_set_sampling,
    .ask_details = session_agent_ask_details,
    .set_budget = session_agent_set_budget,
    .set_batch = session_agent_set_batch,
    .ask = session_agent_ask,
    .set_native = session_agent_set_native,
    .subscribe = session_agent_subscribe,
    .unsubscribe = session_agent_unsubscribe,
};

struct session *session_agent_new(struct loop *l, const struct target_address *addr,
                                  const struct session_handler *h, void *arg, struct err *e) {
    struct session_agent *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "out of memory for a session");
        return NULL;
    }
    s->base.source = &session_agent_source;
    s->loop = l;
    s->addr = *addr;
    s->handler = *h;
    s->arg = arg;
    s->pidfd = -1;
    s->native = (struct session_native){.loop = l, .pid = addr->pid, .handler = &s->handler, .arg = arg};
    s->seed = (unsigned)clock_mono_ns() ^ (unsigned)getpid();
    wire_assembler_init(&s->assembler);
    s->retry = loop_timer_new(l, session_on_retry, s, e);
    s->timeout = s->retry ? loop_timer_new(l, session_on_timeout, s, e) : NULL;
    if (!s->timeout ||
        source_watch_end(l, session_listener(s), session_on_target_end, s, &s->pidfd, &s->end_watch, e) !=
            0 ||
        session_connect(s, e) != 0) {
        session_agent_free(&s->base);
        return NULL;
    }
    return &s->base;
}

/* ---- session native ---- */

static void session_native_refuse(struct session_native *n) {
    struct err why;
    err_set(&why, ERR_FAILED, "too many answers wait for the names of native frames");
    if (n->handler->on_reply)
        n->handler->on_reply(n->arg, WIRE_THREADS, &why);
}

static void session_native_handle(struct session_native *n, struct native_work *work) {
    const struct session_handler *h = n->handler;
    const char *note = work->kind == NATIVE_WORK_SNAPSHOT ? work->snapshot.native_note
                       : work->kind == NATIVE_WORK_BATCH  ? work->batch.native_note
                                                          : NULL;
    if (note && h->on_note)
        h->on_note(n->arg, note);
    switch (work->kind) {
    case NATIVE_WORK_SNAPSHOT:
        if (h->on_details)
            h->on_details(n->arg, &work->snapshot);
        return;
    case NATIVE_WORK_BATCH:
        if (!n->wanted)
            return;
        n->dropped += work->failed ? work->batch.n_samples : 0;
        work->batch.dropped += n->dropped;
        if (h->on_samples && !work->failed)
            h->on_samples(n->arg, &work->batch);
        return;
    case NATIVE_WORK_REPLY:
        if (h->on_reply)
            h->on_reply(n->arg, work->method, NULL);
        return;
    }
}

static void session_native_on_results(void *arg) {
    struct session_native *n = arg;
    for (struct native_work *work = native_worker_take(n->worker); work;) {
        struct native_work *next = work->next;
        session_native_handle(n, work);
        native_work_free(work);
        work = next;
    }
}

static int session_native_start(struct session_native *n, struct err *e) {
    if (n->worker)
        return 0;
    n->worker = native_worker_start(n->pid, e);
    if (!n->worker)
        return -1;
    n->watch = loop_watch_fd(n->loop, native_worker_fd(n->worker), session_native_on_results, n, e);
    if (n->watch)
        return 0;
    session_native_stop(n);
    return -1;
}

static void session_native_stop(struct session_native *n) {
    loop_unwatch(n->watch);
    native_worker_stop(n->worker);
    n->watch = NULL;
    n->worker = NULL;
}

static int session_native_follow(struct session_native *n, bool wanted, struct err *e) {
    n->wanted = wanted && session_native_start(n, e) == 0;
    return n->wanted == wanted ? 0 : -1;
}

static void session_native_snapshot(struct session_native *n, struct model_snapshot *s) {
    if (!n->worker || native_worker_put_snapshot(n->worker, s) != 0)
        session_native_refuse(n);
}

static void session_native_batch(struct session_native *n, struct model_sample_batch *b) {
    size_t samples = b->n_samples;
    if (!n->worker || native_worker_put_batch(n->worker, b) != 0)
        n->dropped += samples;
}

static void session_native_reply(struct session_native *n, enum wire_method method) {
    if (n->worker && native_worker_put_reply(n->worker, method) == 0)
        return;
    if (n->handler->on_reply)
        n->handler->on_reply(n->arg, method, NULL);
}

static void session_native_forget(struct session_native *n) {
    n->dropped = 0;
    if (n->worker)
        native_worker_forget(n->worker);
}
