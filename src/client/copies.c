/* SPDX-License-Identifier: Apache-2.0 */
/* copies: see copies.h. One request at a time; each table in turn, so that none waits for a long one. */
#include "client/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/loop.h"
#include "client/net_link.h"
#include "store/ring_sync.h"
#include "version.h"
#include "wire/wire.h"

#define COPIES_ANSWER_S 5.0 /* an agent answers within that */
#define COPIES_LOOK_US (20 * 1000ULL)

struct copies_table {
    char name[64];
    uint32_t making;
    struct ring_replica *replica;
    bool fresh;  /* nobody has taken a descriptor of it yet */
    bool behind; /* there is more, as far as is known */
};

struct copies {
    char path[256];
    struct loop *loop;
    struct loop_timer *look;
    struct net_link *link; /* NULL none */
    struct wire_assembler assembler;
    bool open, greeted;
    bool broken; /* `error` says how */
    struct err error;
    uint32_t last_id;
    struct wire_message *answer; /* to request last_id; NULL it has not come */
    uint64_t until_ns;           /* of the answer */
    bool (*stop)(void *arg);
    void *stop_arg;
    int64_t pid;
    uint64_t missing; /* of tables that were made anew since */
    struct copies_table tables[WIRE_MAX_TABLES];
    size_t n_tables;
};

/* ---- the connection ---- */

static void copies_break(struct copies *c, const char *how) {
    if (!c->broken)
        (void)err_set(&c->error, ERR_FAILED, "%s", how);
    c->broken = true;
    loop_stop(c->loop);
}

static void copies_on_open(void *arg) {
    struct copies *c = arg;
    c->open = true;
    loop_stop(c->loop);
}

static void copies_on_end(void *arg, enum net_link_end end, const char *why) {
    struct copies *c = arg;
    (void)why;
    c->link = NULL; /* freed by itself */
    copies_break(c, end == NET_LINK_CLOSED ? "its agent has closed the connection"
                                           : "its agent does not answer");
}

/* A whole message: the answer that is waited for, or nothing that matters here. */
static void copies_on_bytes(struct copies *c, const void *data, size_t len, bool whole) {
    struct err e;
    struct wire_message *m = wire_parse(data, len, &e);
    if (!m) {
        copies_break(c, e.text);
        return;
    }
    bool chunk = wire_message_notification(m) == WIRE_N_CHUNK && !whole;
    int rc = chunk ? wire_assembler_feed(&c->assembler, m, &e) : 0;
    if (wire_message_type(m) == WIRE_RESPONSE && wire_message_id(m) == c->last_id && !c->answer) {
        c->answer = m;
        loop_stop(c->loop);
        return;
    }
    wire_message_free(m);
    if (rc < 0)
        copies_break(c, e.text);
    if (rc <= 0)
        return;
    struct wire_assembler all = c->assembler;
    wire_assembler_init(&c->assembler);
    copies_on_bytes(c, all.data.data, all.data.len, true);
    wire_assembler_fini(&all);
}

static void copies_on_message(void *arg, const void *data, size_t len) {
    copies_on_bytes(arg, data, len, false);
}

static const struct net_link_handler copies_handler = {
    .on_open = copies_on_open, .on_message = copies_on_message, .on_end = copies_on_end};

static void copies_on_look(void *arg) {
    struct copies *c = arg;
    if (c->stop && c->stop(c->stop_arg))
        copies_break(c, "interrupted");
    else if (clock_mono_ns() >= c->until_ns)
        copies_break(c, "its agent does not answer");
    else
        loop_timer_set(c->look, COPIES_LOOK_US);
}

/* Until the connection is open (`answer` false) or the answer has come. 0, or -1 with the error. */
static int copies_wait(struct copies *c, bool answer, struct err *e) {
    c->until_ns = clock_mono_ns() + (uint64_t)(COPIES_ANSWER_S * 1e9);
    loop_timer_set(c->look, COPIES_LOOK_US);
    while (!c->broken && !(answer ? c->answer != NULL : c->open))
        loop_run(c->loop);
    loop_timer_cancel(c->look);
    if (!c->broken)
        return 0;
    *e = c->error;
    return -1;
}

static void copies_drop(struct copies *c) {
    net_link_close(c->link);
    wire_message_free(c->answer);
    wire_assembler_fini(&c->assembler);
    wire_assembler_init(&c->assembler);
    c->link = NULL;
    c->answer = NULL;
    c->open = c->greeted = c->broken = false;
}

/* Send what was written as request last_id, and wait. The answer is the caller's; NULL with the error. */
static struct wire_message *copies_ask(struct copies *c, struct strbuf *message, struct err *e) {
    int rc = message->failed || !c->link ? -1 : net_link_send(c->link, message);
    strbuf_fini(message);
    if (rc != 0) {
        (void)err_set(e, ERR_FAILED, "its agent is not connected");
        return NULL;
    }
    rc = copies_wait(c, true, e);
    struct wire_message *m = c->answer;
    c->answer = NULL;
    const char *refused = rc == 0 ? wire_message_error(m, NULL) : NULL;
    if (refused)
        rc = err_set(e, ERR_FAILED, "%s", refused);
    if (rc == 0)
        return m;
    wire_message_free(m);
    return NULL;
}

static int copies_greet(struct copies *c, struct err *e) {
    struct model_target target;
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    (void)wire_put_hello(&b, ++c->last_id, PROBING_VERSION);
    struct wire_message *m = copies_ask(c, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_target(m, &target, e);
    if (rc == 0)
        c->pid = target.pid;
    c->greeted = rc == 0;
    model_target_fini(&target);
    wire_message_free(m);
    return rc;
}

/* ---- the tables ---- */

static struct copies_table *copies_find(struct copies *c, const char *name) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (strcmp(c->tables[i].name, name) == 0)
            return &c->tables[i];
    return NULL;
}

/* Begin a copy of a table, unless there is one of the same making. */
static int copies_begin(struct copies *c, const struct wire_table *from, struct err *e) {
    uint32_t making = ring_sync_making(from->head, from->head_len);
    struct copies_table *t = copies_find(c, from->name);
    if (t && t->making == making)
        return 0;
    struct ring_replica *replica = ring_replica_create(from->head, from->head_len, e);
    if (!replica)
        return -1;
    if (t) {
        c->missing += ring_replica_missing(t->replica);
        ring_replica_close(t->replica);
    } else if (c->n_tables == WIRE_MAX_TABLES) {
        ring_replica_close(replica);
        return err_set(e, ERR_FAILED, "there are more than %d tables", WIRE_MAX_TABLES);
    } else {
        t = &c->tables[c->n_tables++];
    }
    *t = (struct copies_table){.making = making, .replica = replica, .fresh = true};
    memcpy(t->name, from->name, sizeof t->name);
    return 0;
}

static int copies_list(struct copies *c, struct err *e) {
    struct wire_table tables[WIRE_MAX_TABLES];
    struct strbuf b;
    size_t n = 0;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    (void)wire_put_request(&b, ++c->last_id, WIRE_TABLES);
    struct wire_message *m = copies_ask(c, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_tables(m, tables, WIRE_MAX_TABLES, &n, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = copies_begin(c, &tables[i], e);
    wire_message_free(m);
    return rc;
}

/* One request for rows. `*anew` is set when the table is another one by now. */
static int copies_pull(struct copies *c, struct copies_table *t, bool *anew, struct err *e) {
    struct wire_pull want = {.making = t->making};
    struct wire_pulled got;
    struct ring_mark have;
    struct strbuf b;
    ring_replica_mark(t->replica, &have);
    memcpy(want.table, t->name, sizeof want.table);
    want.first_seq = have.first_seq;
    want.rows = have.rows;
    want.heap_used = have.heap_used;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    (void)wire_put_pull(&b, ++c->last_id, &want);
    struct wire_message *m = copies_ask(c, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_pulled(m, &got, e);
    if (rc == 0)
        rc = ring_replica_apply(t->replica, got.pieces, got.len, e);
    if (rc == 0) {
        t->behind = got.more && got.len > 0;
        *anew = *anew || got.anew;
    }
    wire_message_free(m);
    return rc;
}

static int copies_connect(struct copies *c, struct err *e) {
    c->link = net_link_open(c->loop, c->path, &copies_handler, c, e);
    return c->link && copies_wait(c, false, e) == 0 && copies_greet(c, e) == 0 ? copies_list(c, e) : -1;
}

/* All tables in turn, until none has more or the time is up. */
static int copies_pull_all(struct copies *c, uint64_t until_ns, struct err *e) {
    bool more = true, anew = false;
    for (size_t i = 0; i < c->n_tables; i++)
        c->tables[i].behind = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < c->n_tables; i++) {
            struct copies_table *t = &c->tables[i];
            if (!t->behind)
                continue;
            if (clock_mono_ns() >= until_ns)
                return 0;
            if (copies_pull(c, t, &anew, e) != 0)
                return -1;
            more = more || t->behind;
        }
        /* Those that were made anew are behind from here on; the next call takes them in. */
        if (anew)
            return copies_list(c, e);
    }
    return 0;
}

/* ---- for those who use it ---- */

struct copies *copies_new(const char *path, struct err *e) {
    struct copies *c = calloc(1, sizeof *c);
    if (!c) {
        (void)err_set(e, ERR_FAILED, "out of memory for copies of tables");
        return NULL;
    }
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    wire_assembler_init(&c->assembler);
    c->loop = loop_new(e);
    c->look = c->loop ? loop_timer_new(c->loop, copies_on_look, c, e) : NULL;
    if (c->look)
        return c;
    copies_free(c);
    return NULL;
}

void copies_free(struct copies *c) {
    if (!c)
        return;
    copies_drop(c);
    wire_assembler_fini(&c->assembler);
    if (c->look)
        loop_timer_free(c->look);
    if (c->loop)
        loop_free(c->loop);
    for (size_t i = 0; i < c->n_tables; i++)
        ring_replica_close(c->tables[i].replica);
    free(c);
}

int copies_update(struct copies *c, double limit_s, bool (*stop)(void *arg), void *arg, struct err *e) {
    uint64_t until_ns = clock_mono_ns() + (uint64_t)(limit_s * 1e9);
    bool had = c->link != NULL;
    c->stop = stop;
    c->stop_arg = arg;
    int rc = had || copies_connect(c, e) == 0 ? copies_pull_all(c, until_ns, e) : -1;
    bool stopped = stop && stop(arg);
    if (rc != 0) {
        bool gone = had && !c->link; /* while nobody looked */
        copies_drop(c);
        if (gone && !stopped)
            rc = copies_connect(c, e) == 0 ? copies_pull_all(c, until_ns, e) : -1;
        if (rc != 0)
            copies_drop(c);
    }
    c->stop = NULL;
    return rc;
}

int64_t copies_pid(const struct copies *c) { return c->pid; }

size_t copies_take(struct copies *c, int *fds, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_tables && n < cap; i++) {
        int fd = c->tables[i].fresh ? ring_replica_open(c->tables[i].replica) : -1;
        if (fd < 0)
            continue;
        c->tables[i].fresh = false;
        fds[n++] = fd;
    }
    return n;
}

bool copies_behind(const struct copies *c) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (c->tables[i].behind)
            return true;
    return false;
}

uint64_t copies_missing(const struct copies *c) {
    uint64_t n = c->missing;
    for (size_t i = 0; i < c->n_tables; i++)
        n += ring_replica_missing(c->tables[i].replica);
    return n;
}
