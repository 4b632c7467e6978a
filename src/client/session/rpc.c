/* SPDX-License-Identifier: Apache-2.0 */
/* rpc: see rpc.h. */
#include "client/session/rpc.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/model.h"
#include "client/loop.h"
#include "client/session/net_link.h"
#include "version.h"

#define RPC_ANSWER_S 5.0 /* an agent answers within this time */
#define RPC_POLL_US (20 * 1000ULL)

struct rpc {
    char path[256];
    struct loop *loop;
    struct loop_timer *look;
    struct net_link *link; /* NULL: none */
    struct wire_assembler assembler;
    bool open;
    bool broken; /* `error` has the reason */
    struct err error;
    uint32_t last_id;
    struct wire_message *answer; /* to request last_id; NULL: not here yet */
    uint64_t until_ns;           /* deadline of the answer */
    bool (*stop)(void *arg);
    void *stop_arg;
    pid_t target; /* the process that has to listen; 0 any */
    int64_t pid;
};

static void rpc_break(struct rpc *a, const char *how) {
    if (!a->broken)
        err_set(&a->error, ERR_FAILED, "%s", how);
    a->broken = true;
    loop_stop(a->loop);
}

static void rpc_on_open(void *arg) {
    struct rpc *a = arg;
    a->open = true;
    loop_stop(a->loop);
}

static void rpc_on_end(void *arg, enum net_link_end end, const char *why) {
    struct rpc *a = arg;
    a->link = NULL; /* it frees itself */
    rpc_break(a, end == NET_LINK_STRANGER || end == NET_LINK_KEPT ? why
                 : end == NET_LINK_CLOSED                         ? "its agent has closed the connection"
                                                                  : "its agent does not answer");
}

/* Receive a whole message: the awaited answer; all others are ignored. */
static void rpc_on_bytes(struct rpc *a, const void *data, size_t len, bool whole) {
    struct err e;
    struct wire_message *m = wire_parse(data, len, &e);
    if (!m) {
        rpc_break(a, e.text);
        return;
    }
    bool chunk = wire_message_notification(m) == WIRE_N_CHUNK && !whole;
    int rc = chunk ? wire_assembler_feed(&a->assembler, m, &e) : 0;
    if (wire_message_type(m) == WIRE_RESPONSE && wire_message_id(m) == a->last_id && !a->answer) {
        a->answer = m;
        loop_stop(a->loop);
        return;
    }
    wire_message_free(m);
    if (rc < 0)
        rpc_break(a, e.text);
    if (rc <= 0)
        return;
    struct wire_assembler all = a->assembler;
    wire_assembler_init(&a->assembler);
    rpc_on_bytes(a, all.data.data, all.data.len, true);
    wire_assembler_fini(&all);
}

static void rpc_on_message(void *arg, const void *data, size_t len) { rpc_on_bytes(arg, data, len, false); }

static const struct net_link_handler rpc_handler = {
    .on_open = rpc_on_open, .on_message = rpc_on_message, .on_end = rpc_on_end};

static void rpc_on_poll(void *arg) {
    struct rpc *a = arg;
    if (a->stop && a->stop(a->stop_arg))
        rpc_break(a, "interrupted");
    else if (clock_mono_ns() >= a->until_ns)
        rpc_break(a, "its agent does not answer");
    else
        loop_timer_set(a->look, RPC_POLL_US);
}

/* Wait until the connection is open (`answer` false) or the answer has arrived. 0, or -1 with
 * the error. */
static int rpc_wait(struct rpc *a, bool answer, struct err *e) {
    a->until_ns = clock_mono_ns() + (uint64_t)(RPC_ANSWER_S * 1e9);
    loop_timer_set(a->look, RPC_POLL_US);
    while (!a->broken && !(answer ? a->answer != NULL : a->open))
        loop_run(a->loop);
    loop_timer_cancel(a->look);
    if (!a->broken)
        return 0;
    *e = a->error;
    return -1;
}

void rpc_drop(struct rpc *a) {
    net_link_close(a->link);
    wire_message_free(a->answer);
    wire_assembler_fini(&a->assembler);
    wire_assembler_init(&a->assembler);
    a->link = NULL;
    a->answer = NULL;
    a->open = a->broken = false;
}

/* Send the message as request last_id, and wait. The caller owns the answer; NULL with the
 * error. */
struct wire_message *rpc_ask(struct rpc *a, struct strbuf *message, struct err *e) {
    int rc = message->failed || !a->link ? -1 : net_link_send(a->link, message);
    strbuf_fini(message);
    if (rc != 0) {
        err_set(e, ERR_FAILED, "its agent is not connected");
        return NULL;
    }
    rc = rpc_wait(a, true, e);
    struct wire_message *m = a->answer;
    a->answer = NULL;
    const char *refused = rc == 0 ? wire_message_error(m, NULL) : NULL;
    if (refused)
        rc = err_set(e, ERR_FAILED, "%s", refused);
    if (rc == 0)
        return m;
    wire_message_free(m);
    return NULL;
}

static int rpc_greet(struct rpc *a, struct err *e) {
    struct model_target target;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_hello(&b, ++a->last_id, PROBING_VERSION);
    struct wire_message *m = rpc_ask(a, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_target(m, &target, e);
    if (rc == 0)
        a->pid = target.pid;
    model_target_fini(&target);
    wire_message_free(m);
    return rc;
}

int rpc_connect(struct rpc *a, struct err *e) {
    a->link = net_link_open(a->loop, a->path, a->target, &rpc_handler, a, e);
    return a->link && rpc_wait(a, false, e) == 0 ? rpc_greet(a, e) : -1;
}

bool rpc_is_connected(const struct rpc *a) { return a->link != NULL; }

uint32_t rpc_next_id(struct rpc *a) { return ++a->last_id; }

int64_t rpc_pid(const struct rpc *a) { return a->pid; }

void rpc_set_stop(struct rpc *a, bool (*stop)(void *arg), void *arg) {
    a->stop = stop;
    a->stop_arg = arg;
}

struct rpc *rpc_new(const char *path, pid_t pid, struct err *e) {
    struct rpc *a = calloc(1, sizeof *a);
    if (!a) {
        err_set(e, ERR_FAILED, "out of memory for a connection");
        return NULL;
    }
    snprintf(a->path, sizeof a->path, "%s", path);
    a->target = pid;
    wire_assembler_init(&a->assembler);
    a->loop = loop_new(e);
    a->look = a->loop ? loop_timer_new(a->loop, rpc_on_poll, a, e) : NULL;
    if (a->look)
        return a;
    rpc_free(a);
    return NULL;
}

void rpc_free(struct rpc *a) {
    if (!a)
        return;
    rpc_drop(a);
    wire_assembler_fini(&a->assembler);
    if (a->look)
        loop_timer_free(a->look);
    if (a->loop)
        loop_free(a->loop);
    free(a);
}
