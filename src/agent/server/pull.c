/* SPDX-License-Identifier: Apache-2.0 */
/* pull: see pull.h. */
#include "agent/server/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/server/reply.h"
#include "agent/fds.h"
#include "base/clock.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_sync.h"

/* bytes of pieces in an answer; the rest is for the envelope */
#define PULL_MAX_BYTES (WIRE_MAX_MESSAGE - (size_t)64 * 1024)
#define PULL_LONGEST_NS CLOCK_NS_PER_MS /* no further piece is started after that */

/* A reader of the table's file; meanwhile its descriptor is registered as the agent's. NULL with
 * the error. */
static struct ring_reader *pull_open(const struct ring *ring, int *fd, struct err *e) {
    *fd = fcntl(ring_file(ring), F_DUPFD_CLOEXEC, 0);
    if (*fd < 0) {
        err_set_errno(e, ERR_FAILED, errno, "a table cannot be read");
        return NULL;
    }
    fds_note(*fd);
    struct ring_reader *in = ring_reader_open_fd(*fd, "a table", e);
    if (!in)
        fds_forget(*fd);
    return in;
}

static void pull_close(struct ring_reader *in, int fd) {
    if (!in)
        return;
    fds_forget(fd);
    ring_reader_close(in);
}

static int pull_none(const struct record *r, struct err *e) {
    return err_set(e, ERR_FAILED, "%s", r->note[0] ? r->note : "there are no tables yet");
}

void pull_answer_tables(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                        enum wire_access may) {
    struct ring_reader *in[RING_TABLE_KEPT] = {NULL};
    struct wire_table tables[RING_TABLE_KEPT];
    int fds[RING_TABLE_KEPT];
    struct err e;
    size_t n = 0;
    _Static_assert((int)RING_TABLE_KEPT <= WIRE_MAX_TABLES, "a client takes fewer tables than there are");
    if (!r->set) {
        pull_none(r, &e);
        reply_tables(m, peer, id, NULL, 0, &e);
        return;
    }
    for (size_t i = 0; i < RING_TABLE_KEPT; i++) {
        struct ring *ring = ring_set_get(r->set, i);
        in[n] = ring ? pull_open(ring, &fds[n], &e) : NULL;
        if (!in[n])
            continue;
        const struct ring_info *info = ring_reader_info(in[n]);
        tables[n] = (struct wire_table){.name = ""};
        strncat(tables[n].name, info->name, sizeof tables[n].name - 1);
        if (ring_table_access(&RING_TABLES[i]) <= may)
            tables[n].head = ring_reader_head(in[n], &tables[n].head_len);
        n++;
    }
    reply_tables(m, peer, id, tables, n, NULL);
    for (size_t i = 0; i < n; i++)
        pull_close(in[i], fds[i]);
}

static const struct ring *pull_find(const struct record *r, const char *name) {
    for (size_t i = 0; i < RING_TABLE_KEPT; i++)
        if (strcmp(RING_TABLES[i].name, name) == 0)
            return ring_set_get(r->set, i);
    return NULL;
}

/* Read the pieces after the mark; sets `*more` if there are further ones. 0, or -1 without
 * memory. */
static int pull_read(struct ring_reader *in, const struct wire_pull *want, struct strbuf *out, bool *more) {
    struct ring_mark have = {.first_seq = want->first_seq, .rows = want->rows, .heap_used = want->heap_used};
    uint64_t until = clock_mono_ns() + PULL_LONGEST_NS;
    int rc = 1;
    while (rc > 0 && out->len + RING_SYNC_MIN <= PULL_MAX_BYTES && (out->len == 0 || clock_mono_ns() < until))
        rc = ring_sync_next(in, &have, RING_SYNC_MIN, out);
    *more = rc > 0;
    return rc < 0 ? -1 : 0;
}

/* Fill the answer without its envelope; it points into `pieces`. 0, or -1 with the error. */
static int pull_fill(const struct ring *ring, const struct wire_pull *want, struct strbuf *pieces,
                     struct wire_pulled *out, struct err *e) {
    int fd, rc = 0;
    size_t len;
    struct ring_reader *in = pull_open(ring, &fd, e);
    if (!in)
        return -1;
    const void *head = ring_reader_head(in, &len);
    *out = (struct wire_pulled){.anew = ring_sync_making(head, len) != want->making};
    if (!out->anew)
        rc = ring_reader_refresh(in, e);
    if (rc == 0 && !out->anew && pull_read(in, want, pieces, &out->more) != 0)
        rc = err_set(e, ERR_FAILED, "no memory for rows of a table");
    pull_close(in, fd);
    out->pieces = pieces->data;
    out->len = pieces->len;
    return rc;
}

void pull_answer_rows(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                      const struct wire_pull *want) {
    struct wire_pulled answer;
    struct strbuf pieces;
    struct err e;
    const struct ring *ring = r->set ? pull_find(r, want->table) : NULL;
    strbuf_init(&pieces, WIRE_MAX_MESSAGE);
    int rc = ring ? pull_fill(ring, want, &pieces, &answer, &e) : pull_none(r, &e);
    reply_rows(m, peer, id, rc == 0 ? &answer : NULL, &e);
    strbuf_fini(&pieces);
}
