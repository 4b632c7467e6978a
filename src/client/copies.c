/* SPDX-License-Identifier: Apache-2.0 */
/* copies: see copies.h. One request at a time; each table in turn, so that none waits for a long one. */
#include "client/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/asker.h"
#include "store/ring_sync.h"
#include "wire/wire.h"

#define COPIES_BYTES                                                                                         \
    ((size_t)128 * 1024 * 1024) /* of all copies: four times what an agent's tables take by default */

struct copies_table {
    char name[64];
    size_t bytes; /* that its copy takes */
    uint32_t making;
    struct ring_replica *replica;
    bool fresh;  /* nobody has taken a descriptor of it yet */
    bool behind; /* there is more, as far as is known */
};

struct copies {
    struct asker *asker;
    uint64_t missing; /* of tables that were made anew since */
    struct copies_table tables[WIRE_MAX_TABLES];
    size_t n_tables;
    char withheld[WIRE_MAX_TABLES][64];
    size_t n_withheld;
};

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
    (void)wire_put_request(&b, asker_next_id(c->asker), WIRE_TABLES);
    struct wire_message *m = asker_ask(c->asker, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_tables(m, tables, WIRE_MAX_TABLES, &n, e);
    c->n_withheld = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (tables[i].head)
            rc = copies_begin(c, &tables[i], e);
        else
            memcpy(c->withheld[c->n_withheld++], tables[i].name, sizeof c->withheld[0]);
    wire_message_free(m);
    return rc;
}

/* Memory of a copy: what was written into its file. */
static size_t copies_measure(const struct ring_replica *r) {
    struct stat st;
    int fd = ring_replica_open(r);
    size_t n = fd >= 0 && fstat(fd, &st) == 0 ? (size_t)st.st_blocks * 512 : 0;
    if (fd >= 0)
        (void)close(fd);
    return n;
}

static bool copies_have_room(const struct copies *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_tables; i++)
        n += c->tables[i].bytes;
    return n <= COPIES_BYTES;
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
    (void)wire_put_pull(&b, asker_next_id(c->asker), &want);
    struct wire_message *m = asker_ask(c->asker, &b, e);
    if (!m)
        return -1;
    int rc = wire_get_pulled(m, &got, e);
    if (rc == 0)
        rc = ring_replica_apply(t->replica, got.pieces, got.len, e);
    if (rc == 0) {
        t->bytes = copies_measure(t->replica);
        t->behind = got.more && got.len > 0;
        *anew = *anew || got.anew;
    }
    wire_message_free(m);
    return rc;
}

static int copies_connect(struct copies *c, struct err *e) {
    return asker_connect(c->asker, e) == 0 ? copies_list(c, e) : -1;
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
            if (!copies_have_room(c))
                return err_set(e, ERR_FAILED, "its tables are larger than %zu MB", COPIES_BYTES >> 20);
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

struct copies *copies_new(const char *path, pid_t pid, struct err *e) {
    struct copies *c = calloc(1, sizeof *c);
    if (!c) {
        (void)err_set(e, ERR_FAILED, "out of memory for copies of tables");
        return NULL;
    }
    c->asker = asker_new(path, pid, e);
    if (c->asker)
        return c;
    copies_free(c);
    return NULL;
}

void copies_free(struct copies *c) {
    if (!c)
        return;
    asker_free(c->asker);
    for (size_t i = 0; i < c->n_tables; i++)
        ring_replica_close(c->tables[i].replica);
    free(c);
}

int copies_update(struct copies *c, double limit_s, bool (*stop)(void *arg), void *arg, struct err *e) {
    uint64_t until_ns = clock_mono_ns() + (uint64_t)(limit_s * 1e9);
    bool had = asker_is_connected(c->asker);
    asker_set_stop(c->asker, stop, arg);
    int rc = had || copies_connect(c, e) == 0 ? copies_pull_all(c, until_ns, e) : -1;
    bool stopped = stop && stop(arg);
    if (rc != 0) {
        bool gone = had && !asker_is_connected(c->asker); /* while nobody looked */
        asker_drop(c->asker);
        if (gone && !stopped)
            rc = copies_connect(c, e) == 0 ? copies_pull_all(c, until_ns, e) : -1;
        if (rc != 0)
            asker_drop(c->asker);
    }
    asker_set_stop(c->asker, NULL, NULL);
    return rc;
}

int64_t copies_pid(const struct copies *c) { return asker_pid(c->asker); }

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

const char *copies_withheld(const struct copies *c, size_t i) {
    return i < c->n_withheld ? c->withheld[i] : NULL;
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
