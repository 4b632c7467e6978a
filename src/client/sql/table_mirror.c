/* SPDX-License-Identifier: Apache-2.0 */
/* table_mirror: see table_mirror.h. One request at a time, the tables in turn, so that none
 * waits for a long one. */
#include "client/sql/table_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/session/call.h"
#include "store/ring/ring_sync.h"
#include "wire/wire.h"

/* of all copies: four times the default size of an agent's tables */
#define TABLE_MIRROR_BYTES ((size_t)128 * 1024 * 1024)

struct table_mirror_table {
    char name[64];
    size_t bytes; /* size of its copy */
    uint32_t making;
    struct ring_replica *replica;
    bool fresh;  /* its descriptor was not taken yet */
    bool behind; /* there are more rows, as far as is known */
};

struct table_mirror {
    struct target_address addr; /* of the agent */
    struct call *call;          /* NULL: not connected */
    int64_t pid;                /* in the agent's numbering; 0 unknown */
    uint64_t missing;           /* rows of tables that were replaced since */
    struct table_mirror_table tables[WIRE_MAX_TABLES];
    size_t n_tables;
    char withheld[WIRE_MAX_TABLES][64];
    size_t n_withheld;
};

/* ---- the tables ---- */

static struct table_mirror_table *table_mirror_find(struct table_mirror *c, const char *name) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (strcmp(c->tables[i].name, name) == 0)
            return &c->tables[i];
    return NULL;
}

/* Begin a copy of a table, unless there is one of the same instance. */
static int table_mirror_begin(struct table_mirror *c, const struct wire_table *from, struct err *e) {
    uint32_t making = ring_sync_making(from->head, from->head_len);
    struct table_mirror_table *t = table_mirror_find(c, from->name);
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
    *t = (struct table_mirror_table){.making = making, .replica = replica, .fresh = true};
    memcpy(t->name, from->name, sizeof t->name);
    return 0;
}

static int table_mirror_list(struct table_mirror *c, struct err *e) {
    struct wire_table tables[WIRE_MAX_TABLES];
    size_t n = 0;
    struct wire_message *m = call_ask(c->call, WIRE_TABLES, NULL, e);
    if (!m)
        return -1;
    int rc = wire_get_tables(m, tables, WIRE_MAX_TABLES, &n, e);
    c->n_withheld = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (tables[i].head)
            rc = table_mirror_begin(c, &tables[i], e);
        else
            memcpy(c->withheld[c->n_withheld++], tables[i].name, sizeof c->withheld[0]);
    wire_message_free(m);
    return rc;
}

/* Memory of a copy: the part of its file that was written. */
static size_t table_mirror_measure(const struct ring_replica *r) {
    struct stat st;
    int fd = ring_replica_open(r);
    size_t n = fd >= 0 && fstat(fd, &st) == 0 ? (size_t)st.st_blocks * 512 : 0;
    if (fd >= 0)
        close(fd);
    return n;
}

static bool table_mirror_fits(const struct table_mirror *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_tables; i++)
        n += c->tables[i].bytes;
    return n <= TABLE_MIRROR_BYTES;
}

/* Send one request for rows. Sets `*anew` if the table has been replaced. */
static int table_mirror_pull(struct table_mirror *c, struct table_mirror_table *t, bool *anew,
                             struct err *e) {
    struct wire_pull want = {.making = t->making};
    struct wire_pulled got;
    struct ring_mark have;
    ring_replica_mark(t->replica, &have);
    memcpy(want.table, t->name, sizeof want.table);
    want.first_seq = have.first_seq;
    want.rows = have.rows;
    want.heap_used = have.heap_used;
    struct wire_message *m = call_ask(c->call, WIRE_PULL, &want, e);
    if (!m)
        return -1;
    int rc = wire_get_pulled(m, &got, e);
    if (rc == 0)
        rc = ring_replica_apply(t->replica, got.pieces, got.len, e);
    if (rc == 0) {
        t->bytes = table_mirror_measure(t->replica);
        t->behind = got.more && got.len > 0;
        *anew = *anew || got.anew;
    }
    wire_message_free(m);
    return rc;
}

static void table_mirror_disconnect(struct table_mirror *c) {
    call_close(c->call);
    c->call = NULL;
}

static int table_mirror_connect(struct table_mirror *c, bool (*stop)(void *arg), void *arg, struct err *e) {
    c->call = call_open_stoppable(&c->addr, stop, arg, e);
    if (!c->call)
        return -1;
    c->pid = call_get_target(c->call)->pid;
    return table_mirror_list(c, e);
}

/* Copy from all tables in turn, until none has more rows or the time is over. */
static int table_mirror_pull_all(struct table_mirror *c, uint64_t until_ns, struct err *e) {
    bool more = true, anew = false;
    for (size_t i = 0; i < c->n_tables; i++)
        c->tables[i].behind = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < c->n_tables; i++) {
            struct table_mirror_table *t = &c->tables[i];
            if (!t->behind)
                continue;
            if (clock_mono_ns() >= until_ns)
                return 0;
            if (!table_mirror_fits(c))
                return err_set(e, ERR_FAILED, "its tables are larger than %zu MB", TABLE_MIRROR_BYTES >> 20);
            if (table_mirror_pull(c, t, &anew, e) != 0)
                return -1;
            more = more || t->behind;
        }
        /* Replaced tables are behind from here on; the next call copies them. */
        if (anew)
            return table_mirror_list(c, e);
    }
    return 0;
}

/* ---- public functions ---- */

struct table_mirror *table_mirror_new(const struct target_address *addr, struct err *e) {
    struct table_mirror *c = calloc(1, sizeof *c);
    if (!c) {
        err_set(e, ERR_FAILED, "out of memory for copies of tables");
        return NULL;
    }
    c->addr = *addr;
    c->addr.mode = MODEL_MODE_AGENT;
    return c;
}

void table_mirror_free(struct table_mirror *c) {
    if (!c)
        return;
    table_mirror_disconnect(c);
    for (size_t i = 0; i < c->n_tables; i++)
        ring_replica_close(c->tables[i].replica);
    free(c);
}

int table_mirror_update(struct table_mirror *c, double limit_s, bool (*stop)(void *arg), void *arg,
                        struct err *e) {
    uint64_t until_ns = clock_mono_ns() + (uint64_t)(limit_s * 1e9);
    int rc = -1;
    bool again = true;
    /* The connection of the last time may have ended meanwhile, or end now: a new one continues. */
    if (c->call) {
        call_set_stop(c->call, stop, arg);
        rc = table_mirror_pull_all(c, until_ns, e);
        again = rc != 0 && call_is_disconnected(c->call);
        if (again)
            table_mirror_disconnect(c);
    }
    if (again && table_mirror_connect(c, stop, arg, e) == 0)
        rc = table_mirror_pull_all(c, until_ns, e);
    if (rc != 0)
        table_mirror_disconnect(c);
    else
        call_set_stop(c->call, NULL, NULL);
    return rc;
}

int64_t table_mirror_pid(const struct table_mirror *c) { return c->pid; }

size_t table_mirror_take(struct table_mirror *c, int *fds, size_t cap) {
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

const char *table_mirror_withheld(const struct table_mirror *c, size_t i) {
    return i < c->n_withheld ? c->withheld[i] : NULL;
}

bool table_mirror_behind(const struct table_mirror *c) {
    for (size_t i = 0; i < c->n_tables; i++)
        if (c->tables[i].behind)
            return true;
    return false;
}

uint64_t table_mirror_missing(const struct table_mirror *c) {
    uint64_t n = c->missing;
    for (size_t i = 0; i < c->n_tables; i++)
        n += ring_replica_missing(c->tables[i].replica);
    return n;
}
