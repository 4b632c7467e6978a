/* SPDX-License-Identifier: Apache-2.0 */
/* rank_group: see rank_group.h. */
#include "client/fleet/rank_group.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "client/jobs/rank_set.h"

#define RANK_GROUP_COLUMNS 64

enum rank_group_type {
    RANK_GROUP_TEXT,
    RANK_GROUP_INT32,
    RANK_GROUP_INT64,
    RANK_GROUP_REAL,
    RANK_GROUP_BOOL
};

/* Columns of the table, and where they go. */
#define RANK_GROUP_COLUMN(name, type, member)                                                                \
    { name, type, offsetof(struct rank_group, member), sizeof((struct rank_group *)0)->member }
static const struct {
    const char *name;
    enum rank_group_type type;
    size_t offset, size;
} rank_group_columns[] = {
    RANK_GROUP_COLUMN("pg", RANK_GROUP_TEXT, pg),
    RANK_GROUP_COLUMN("desc", RANK_GROUP_TEXT, desc),
    RANK_GROUP_COLUMN("backend", RANK_GROUP_TEXT, backend),
    RANK_GROUP_COLUMN("ranks", RANK_GROUP_TEXT, ranks),
    RANK_GROUP_COLUMN("size", RANK_GROUP_INT32, size),
    RANK_GROUP_COLUMN("my_rank", RANK_GROUP_INT32, my_rank),
    RANK_GROUP_COLUMN("last_enqueued", RANK_GROUP_INT64, enqueued),
    RANK_GROUP_COLUMN("last_completed", RANK_GROUP_INT64, completed),
    RANK_GROUP_COLUMN("p2p", RANK_GROUP_BOOL, p2p),
    RANK_GROUP_COLUMN("op", RANK_GROUP_TEXT, op),
    RANK_GROUP_COLUMN("dtype", RANK_GROUP_TEXT, dtype),
    RANK_GROUP_COLUMN("bytes", RANK_GROUP_INT64, bytes),
    RANK_GROUP_COLUMN("open_s", RANK_GROUP_REAL, since_s),
};

#define RANK_GROUP_KNOWN (sizeof rank_group_columns / sizeof rank_group_columns[0])

static void rank_group_put_text(char *to, size_t size, const struct wire_value *v) {
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)(v->len < sizeof text ? v->len : sizeof text - 1), v->s);
    text_sanitize(to, size, text);
}

/* Shortened, never cut: half a list is another group. */
static void rank_group_put_ranks(struct rank_group *g, const struct wire_value *v) {
    struct rank_set set = {.n = 0};
    struct err ignored;
    struct strbuf text, steps;
    strbuf_init(&text, 0);
    strbuf_init(&steps, 0);
    strbuf_add(&text, v->s, v->len);
    if (!text.failed && rank_set_parse(&set, strbuf_str(&text), &ignored) == 0)
        rank_set_put_steps(&set, &steps);
    if (steps.len && steps.len < sizeof g->ranks)
        memcpy(g->ranks, strbuf_str(&steps), steps.len + 1);
    else if (v->len)
        snprintf(g->ranks, sizeof g->ranks, "?%016" PRIx64, hash_fnv(HASH_FNV_START, v->s, v->len));
    strbuf_fini(&steps);
    strbuf_fini(&text);
    rank_set_fini(&set);
}

static void rank_group_put(struct rank_group *g, size_t column, const struct wire_value *v) {
    char *to = (char *)g + rank_group_columns[column].offset;
    enum rank_group_type type = rank_group_columns[column].type;
    bool whole = v->kind == WIRE_VALUE_INT || v->kind == WIRE_VALUE_BOOL;
    if (to == g->ranks && v->kind == WIRE_VALUE_TEXT)
        rank_group_put_ranks(g, v);
    else if (type == RANK_GROUP_TEXT && v->kind == WIRE_VALUE_TEXT)
        rank_group_put_text(to, rank_group_columns[column].size, v);
    else if (type == RANK_GROUP_INT32 && whole && v->i >= -1 && v->i <= INT32_MAX)
        *(int32_t *)(void *)to = (int32_t)v->i;
    else if (type == RANK_GROUP_INT64 && whole)
        *(int64_t *)(void *)to = v->i;
    else if (type == RANK_GROUP_BOOL && whole)
        *(bool *)to = v->i != 0;
    else if (type == RANK_GROUP_REAL && (whole || v->kind == WIRE_VALUE_DOUBLE))
        *(double *)(void *)to = whole ? (double)v->i : v->f;
}

ssize_t rank_groups_read(const struct wire_message *answer, struct rank_group *out, size_t cap,
                         struct err *e) {
    struct wire_rows rows;
    struct wire_value name, values[RANK_GROUP_COLUMNS];
    size_t column[RANK_GROUP_COLUMNS], n_columns = 0, n = 0;
    int rc;
    if (wire_get_rows(answer, &rows, e) != 0)
        return -1;
    while ((rc = wire_next_column(&rows, &name)) > 0 && n_columns < RANK_GROUP_COLUMNS) {
        size_t i = 0;
        while (i < RANK_GROUP_KNOWN && (strlen(rank_group_columns[i].name) != name.len ||
                                        memcmp(rank_group_columns[i].name, name.s, name.len) != 0))
            i++;
        column[n_columns++] = i;
    }
    while (rc >= 0 && n < cap && (rc = wire_next_row(&rows, values, RANK_GROUP_COLUMNS)) > 0) {
        struct rank_group *g = &out[n++];
        *g = (struct rank_group){
            .size = -1, .my_rank = -1, .enqueued = -1, .completed = -1, .bytes = -1, .since_s = NAN};
        for (size_t i = 0; i < n_columns; i++)
            if (column[i] < RANK_GROUP_KNOWN)
                rank_group_put(g, column[i], &values[i]);
    }
    if (rc < 0)
        return err_set(e, ERR_FAILED, RANK_GROUP_TABLE ": the agent's rows are not valid");
    *e = (struct err){.code = ERR_OK};
    snprintf(e->text, sizeof e->text, "%s", rows.note);
    return (ssize_t)n;
}

const struct rank_group *rank_group_find(const struct rank_group *groups, size_t n,
                                         const struct rank_group *like) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(groups[i].pg, like->pg) == 0 && strcmp(groups[i].ranks, like->ranks) == 0 &&
            strcmp(groups[i].backend, like->backend) == 0)
            return &groups[i];
    return NULL;
}

uint64_t rank_group_what(const struct rank_group *g) {
    /* these have inputs or outputs of one size in all ranks; of others a rank may have more, or none */
    static const char *const equal[] = {"allreduce", "all_reduce", "allgather",      "all_gather",
                                        "broadcast", "reduce",     "reduce_scatter", "allreduce_coalesced"};
    if (!g->op[0])
        return 0;
    const char *op = strrchr(g->op, ':');
    op = op ? op + 1 : g->op;
    uint64_t h = hash_fnv_text(HASH_FNV_START, op);
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++)
        if (strcmp(op, equal[i]) == 0) {
            h = hash_fnv_text(h, g->dtype);
            h = g->bytes >= 0 ? hash_fnv(h, &g->bytes, sizeof g->bytes) : h;
        }
    return h ? h : 1;
}
