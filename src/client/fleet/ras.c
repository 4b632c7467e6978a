/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras: see ras.h.
 *
 * The forms are those of NCCL's src/ras/client_support.cc: the text of v2.24.3-1 (rasClientRunInit,
 * rasClientRunComms), which counts all collectives together and lists missing ranks by number, and that
 * of v2.26.2-1 to v2.30.7-1, which counts each kind; JSON of v2.28.7-1 (rasDumpCommsToJSON) to v2.30.7-1.
 */
#include "client/fleet/ras.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/json_scan.h"
#include "base/text.h"

#define RAS_OPS 16 /* kinds of collectives */
#define RAS_SIZE ((int64_t)1 << 20)
#define RAS_PIDS ((int64_t)1 << 31)
#define RAS_KEY 40
#define RAS_LINE 1200  /* NCCL's are of 1024 bytes at most */
#define RAS_GROUPS 256 /* of communicators, in the table of the text */
#define RAS_MANY ((int64_t)1 << 62)

void ras_answer_fini(struct ras_answer *a) {
    free(a->comms);
    free(a->members);
    *a = (struct ras_answer){.n = 0};
}

static struct ras_comm *ras_add_comm(struct ras_answer *a) {
    if (a->n_comms == RAS_COMMS ||
        grow_array(&a->comms, sizeof *a->comms, a->n_comms + 1, &a->cap_comms) != 0)
        return NULL;
    a->comms[a->n_comms] = (struct ras_comm){.id = 0, .counts = HASH_FNV_START};
    return &a->comms[a->n_comms++];
}

static struct ras_member *ras_add_member(struct ras_answer *a, uint32_t comm) {
    if (a->n == RAS_MEMBERS || grow_array(&a->members, sizeof *a->members, a->n + 1, &a->cap) != 0)
        return NULL;
    a->members[a->n] = (struct ras_member){.comm = comm, .rank = -1, .pid = -1};
    return &a->members[a->n++];
}

static int64_t ras_pid(int64_t v) { return v > 0 && v < RAS_PIDS ? v : -1; }

static int32_t ras_rank(int64_t v) { return v >= 0 && v < RAS_SIZE ? (int32_t)v : -1; }

/* NCCL's own rule for whom it names (rasCountIsOutlier): one, or fewer than half. More are not behind:
 * the others are ahead. */
static bool ras_is_few(int64_t n, int64_t of) { return n == 1 || (n > 0 && n < of - n); }

/* ---- JSON ---- */

struct ras_reader {
    struct json_scan c;
    struct ras_answer *a;
    bool is_full; /* there is no room for more */
    /* of the communicator that is read */
    char ops[RAS_OPS][RAS_OP];
    size_t n_ops;
    int64_t (*counts)[RAS_OPS]; /* of its members; -1 unknown */
    size_t cap_counts;
    size_t first; /* of its members */
};

static bool ras_read_counts(struct ras_reader *r, int64_t *counts) {
    char key[RAS_OP];
    bool first = true;
    int rc;
    if (!json_scan_mark(&r->c, '{'))
        return json_scan_skip(&r->c);
    while ((rc = json_scan_next_key(&r->c, &first, key, sizeof key)) == 1) {
        size_t op = 0;
        int64_t n;
        if (!json_scan_number(&r->c, &n))
            return false;
        while (op < r->n_ops && strcmp(r->ops[op], key) != 0)
            op++;
        if (op == RAS_OPS)
            continue;
        if (op == r->n_ops)
            memcpy(r->ops[r->n_ops++], key, sizeof key);
        counts[op] = n;
    }
    return rc == 0;
}

static bool ras_read_status(struct ras_reader *r, struct ras_member *m) {
    char key[RAS_KEY];
    bool first = true, yes;
    int rc;
    if (!json_scan_mark(&r->c, '{'))
        return json_scan_skip(&r->c);
    while ((rc = json_scan_next_key(&r->c, &first, key, sizeof key)) == 1) {
        enum ras_state state = strcmp(key, "considered_dead") == 0 ? RAS_DEAD
                               : strcmp(key, "unresponsive") == 0  ? RAS_SILENT
                                                                   : RAS_ANSWERS;
        if (!json_scan_flag(&r->c, &yes))
            return false;
        if (yes && state > m->state)
            m->state = state;
    }
    return rc == 0;
}

static bool ras_read_member(struct ras_reader *r, bool is_missing) {
    struct ras_member m = {.comm = (uint32_t)r->a->n_comms, .rank = -1, .pid = -1};
    int64_t counts[RAS_OPS], v;
    char key[RAS_KEY];
    bool first = true, ok = true;
    int rc;
    for (size_t i = 0; i < RAS_OPS; i++)
        counts[i] = -1;
    if (!json_scan_mark(&r->c, '{'))
        return false;
    while (ok && (rc = json_scan_next_key(&r->c, &first, key, sizeof key)) == 1) {
        if (strcmp(key, "rank") == 0) {
            ok = json_scan_number(&r->c, &v);
            m.rank = ok ? ras_rank(v) : -1;
        } else if (strcmp(key, "pid") == 0) {
            ok = json_scan_number(&r->c, &v);
            m.pid = ok ? ras_pid(v) : -1;
        } else if (strcmp(key, "host") == 0)
            ok = json_scan_text(&r->c, m.host, sizeof m.host);
        else if (is_missing && strcmp(key, "status") == 0)
            ok = ras_read_status(r, &m);
        else if (!is_missing && strcmp(key, "collective_counts") == 0)
            ok = ras_read_counts(r, counts);
        else
            ok = json_scan_skip(&r->c);
    }
    if (!ok || rc != 0)
        return false;
    size_t at = r->a->n - r->first;
    struct ras_member *to = ras_add_member(r->a, m.comm);
    if (!to || grow_array(&r->counts, sizeof *r->counts, at + 1, &r->cap_counts) != 0) {
        r->is_full = true;
        return false;
    }
    *to = m;
    memcpy(r->counts[at], counts, sizeof counts);
    return true;
}

static bool ras_read_members(struct ras_reader *r, bool is_missing) {
    bool first = true;
    int rc;
    if (!json_scan_mark(&r->c, '['))
        return false;
    while ((rc = json_scan_next(&r->c, &first, ']')) == 1)
        if (!ras_read_member(r, is_missing))
            return false;
    return rc == 0;
}

static int ras_compare_rank(const void *a, const void *b) {
    int32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Each rank is within the size, and there once. */
static bool ras_is_whole(const struct ras_reader *r, int64_t size) {
    size_t n = r->a->n - r->first;
    bool ok = size > 0 && size <= RAS_SIZE && n <= (size_t)size;
    int32_t *ranks = ok ? malloc((n + 1) * sizeof *ranks) : NULL;
    ok = ranks != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        ranks[i] = r->a->members[r->first + i].rank;
        ok = ranks[i] >= 0 && ranks[i] < size;
    }
    if (ok)
        qsort(ranks, n, sizeof *ranks, ras_compare_rank);
    for (size_t i = 1; ok && i < n; i++)
        ok = ranks[i] != ranks[i - 1];
    free(ranks);
    return ok;
}

/* Who has launched fewer of a kind than others. */
static void ras_find_behind(struct ras_reader *r, size_t op) {
    size_t n = r->a->n - r->first;
    struct ras_member *members = r->a->members + r->first;
    int64_t most = -1, known = 0, below = 0;
    for (size_t i = 0; i < n; i++)
        most = r->counts[i][op] > most ? r->counts[i][op] : most;
    for (size_t i = 0; i < n; i++) {
        known += r->counts[i][op] >= 0;
        below += r->counts[i][op] >= 0 && r->counts[i][op] < most;
    }
    for (size_t i = 0; ras_is_few(below, known) && i < n; i++) {
        int64_t behind = r->counts[i][op] >= 0 ? most - r->counts[i][op] : 0;
        if (behind <= members[i].behind || members[i].state > RAS_BEHIND)
            continue;
        members[i].state = RAS_BEHIND;
        members[i].behind = behind;
        memcpy(members[i].op, r->ops[op], sizeof members[i].op);
    }
}

static bool ras_read_comm(struct ras_reader *r) {
    char key[RAS_KEY], text[64];
    bool first = true, ok = true;
    int64_t size = -1;
    uint64_t id[2] = {0, 0};
    int rc;
    r->first = r->a->n;
    r->n_ops = 0;
    if (!json_scan_mark(&r->c, '{'))
        return false;
    while (ok && (rc = json_scan_next_key(&r->c, &first, key, sizeof key)) == 1) {
        bool is_first = strcmp(key, "hash") == 0;
        if (is_first || strcmp(key, "secondary_hash") == 0) {
            ok = json_scan_text(&r->c, text, sizeof text);
            id[!is_first] = hash_fnv_text(HASH_FNV_START, text);
        } else if (strcmp(key, "size") == 0)
            ok = json_scan_number(&r->c, &size);
        else if (strcmp(key, "ranks") == 0)
            ok = ras_read_members(r, false);
        else if (strcmp(key, "missing_ranks") == 0)
            ok = ras_read_members(r, true);
        else
            ok = json_scan_skip(&r->c);
    }
    if (!ok || rc != 0)
        return false;
    if (!ras_is_whole(r, size)) {
        r->a->n = r->first;
        return true;
    }
    struct ras_comm *comm = ras_add_comm(r->a);
    if (!comm) {
        r->is_full = true;
        return false;
    }
    comm->id = hash_fnv(HASH_FNV_START, id, sizeof id);
    comm->size = (int32_t)size;
    for (size_t op = 0; op < r->n_ops; op++)
        ras_find_behind(r, op);
    for (size_t i = 0; i < r->a->n - r->first; i++) {
        const struct ras_member *m = &r->a->members[r->first + i];
        comm->counts = hash_fnv(comm->counts, &m->rank, sizeof m->rank);
        comm->counts = hash_fnv(comm->counts, r->counts[i], sizeof r->counts[i]);
    }
    return true;
}

static bool ras_read_comms(struct ras_reader *r) {
    bool first = true;
    int rc;
    if (!json_scan_mark(&r->c, '['))
        return false;
    while ((rc = json_scan_next(&r->c, &first, ']')) == 1)
        if (!ras_read_comm(r))
            return false;
    return rc == 0;
}

static int ras_parse_json(struct ras_answer *a, const char *text, size_t len, struct err *e) {
    struct ras_reader r = {.c = {.at = text, .end = text + len}, .a = a};
    char key[RAS_KEY];
    bool first = true, ok = json_scan_mark(&r.c, '{'), has_comms = false;
    int rc = -1;
    while (ok && (rc = json_scan_next_key(&r.c, &first, key, sizeof key)) == 1) {
        bool is_comms = strcmp(key, "communicators") == 0;
        ok = is_comms ? !has_comms && ras_read_comms(&r) : json_scan_skip(&r.c);
        has_comms |= is_comms;
    }
    free(r.counts);
    if (ok && rc == 0 && has_comms && json_scan_peek(&r.c) < 0)
        return 0;
    if (r.is_full)
        return err_set(e, ERR_FAILED, "its answer has more than %d ranks", RAS_MEMBERS);
    return err_set(e, ERR_FAILED, "its answer is not that of NCCL's RAS: error at byte %zu of %zu",
                   (size_t)(r.c.at - text), len);
}

/* ---- text ---- */

static bool ras_take(const char **p, const char *word) {
    size_t n = strlen(word);
    bool there = strncmp(*p, word, n) == 0;
    *p += there ? n : 0;
    return there;
}

static bool ras_take_number(const char **p, int64_t *out) {
    int64_t v = 0;
    const char *from = *p;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        v = v < RAS_MANY / 10 ? v * 10 + (**p - '0') : RAS_MANY;
    *out = v;
    return *p > from && v < RAS_MANY;
}

static void ras_take_blanks(const char **p) { *p += strspn(*p, " "); }

/* What the lines mean that follow. */
enum ras_part {
    RAS_PART_NONE,
    RAS_PART_TABLE,
    RAS_PART_SILENT,
    RAS_PART_DEAD,
    RAS_PART_MISSING,
    RAS_PART_COUNTS
};

struct ras_lines {
    struct ras_answer *a;
    enum ras_part part;
    int32_t sizes[RAS_GROUPS]; /* of the communicators of a group; 0 unknown */
    uint32_t comm;
    bool is_full;
    /* of a kind of collective: who has launched how many, as far as they are named */
    bool has_counts;
    char op[RAS_OP];
    size_t first; /* of these in the members; `behind` is how many they have launched until the end */
    int64_t value, most, n; /* the newest; the largest; ranks */
    int64_t values[RAS_OPS], ranks[RAS_OPS];
    size_t n_values;
};

/* Some ranks have launched so many. */
static void ras_add_value(struct ras_lines *r, int64_t value, int64_t ranks) {
    r->value = value;
    r->n += ranks;
    r->most = value > r->most ? value : r->most;
    if (r->n_values < RAS_OPS) {
        r->values[r->n_values] = value;
        r->ranks[r->n_values] = ranks;
    }
    r->n_values++;
}

static void ras_end_counts(struct ras_lines *r) {
    int64_t below = 0;
    size_t to = r->first;
    if (!r->has_counts)
        return;
    r->has_counts = false;
    for (size_t i = 0; i < r->n_values && i < RAS_OPS; i++)
        below += r->values[i] < r->most ? r->ranks[i] : 0;
    bool few = r->n_values <= RAS_OPS && ras_is_few(below, r->n);
    for (size_t i = r->first; i < r->a->n; i++) {
        struct ras_member m = r->a->members[i];
        m.behind = r->most - m.behind;
        if (few && m.behind > 0)
            r->a->members[to++] = m;
    }
    r->a->n = to;
}

static void ras_hash_line(struct ras_lines *r, const char *line) {
    struct ras_comm *comm = &r->a->comms[r->comm];
    comm->counts = hash_fnv_text(comm->counts, line);
}

/* "process 812 on node 10.0.0.2", somewhere in a line. */
static void ras_read_process(struct ras_member *m, const char *p) {
    const char *at = strstr(p, "rocess ");
    char host[RAS_LINE];
    int64_t pid;
    if (!at || !ras_take(&at, "rocess ") || !ras_take_number(&at, &pid) || !ras_take(&at, " on node "))
        return;
    snprintf(host, sizeof host, "%s", at);
    host[strcspn(host, " ")] = '\0';
    m->pid = ras_pid(pid);
    text_sanitize(m->host, sizeof m->host, host);
}

static bool ras_add_line(struct ras_lines *r, uint32_t comm, int64_t rank, enum ras_state state,
                         const char *p) {
    struct ras_member *m = ras_add_member(r->a, comm);
    if (!m) {
        r->is_full = true;
        return false;
    }
    m->rank = ras_rank(rank);
    m->state = state;
    ras_read_process(m, p);
    if (state == RAS_BEHIND) {
        m->behind = r->value;
        memcpy(m->op, r->op, sizeof m->op);
    }
    return true;
}

/* A line about collectives of one kind. */
static void ras_read_counts_line(struct ras_lines *r, const char *line) {
    const char *p = line;
    int64_t n, value;
    if (ras_take(&p, "  Communicator ranks have different ")) {
        const char *end = strstr(p, " operation counts");
        ras_end_counts(r);
        r->n_values = 0;
        r->n = r->most = 0;
        r->first = r->a->n;
        r->has_counts = end != NULL;
        snprintf(r->op, sizeof r->op, "%.*s", end ? (int)(end - p) : 0, p);
        if (strcmp(r->op, "collective") == 0)
            r->op[0] = '\0';
        char clean[RAS_OP];
        text_sanitize(clean, sizeof clean, r->op);
        memcpy(r->op, clean, sizeof clean);
        if (end)
            ras_hash_line(r, line);
        return;
    }
    if (!r->has_counts)
        return;
    ras_hash_line(r, line);
    if (ras_take(&p, "  Rank ") && ras_take_number(&p, &n)) {
        if (ras_take(&p, " has launched up to operation ") && ras_take_number(&p, &value))
            ras_add_value(r, value, 1);
        else if (ras_take(&p, " has not launched any operations"))
            ras_add_value(r, 0, 1);
        if (ras_take(&p, " -- ") && r->n_values)
            ras_add_line(r, r->comm, n, RAS_BEHIND, p);
        return;
    }
    p = line;
    ras_take_blanks(&p);
    if (!ras_take_number(&p, &n) || n > RAS_SIZE)
        return;
    if (ras_take(&p, " ranks have launched up to operation ") && ras_take_number(&p, &value))
        ras_add_value(r, value, n);
    else if (ras_take(&p, " ranks have not launched any operations"))
        ras_add_value(r, 0, n);
}

/* "#0-0 (27a079b828ff1a75) MISMATCH": what is written of a communicator. */
static void ras_begin_comm(struct ras_lines *r, const char *p) {
    int64_t group, number;
    r->part = RAS_PART_NONE;
    if (!ras_take_number(&p, &group) || !ras_take(&p, "-") || !ras_take_number(&p, &number) ||
        !ras_take(&p, " ("))
        return;
    size_t n = strspn(p, "0123456789abcdef");
    if (n == 0 || n > 16 || p[n] != ')')
        return;
    uint64_t id = hash_fnv(HASH_FNV_START, p, n);
    p += n;
    r->part = strcmp(p, ") INCOMPLETE") == 0 ? RAS_PART_MISSING
              : strcmp(p, ") MISMATCH") == 0 ? RAS_PART_COUNTS
                                             : RAS_PART_NONE;
    for (r->comm = 0; r->comm < r->a->n_comms && r->a->comms[r->comm].id != id; r->comm++)
        ;
    if (r->part == RAS_PART_NONE || r->comm < r->a->n_comms)
        return;
    struct ras_comm *comm = ras_add_comm(r->a);
    r->is_full |= !comm;
    if (!comm) {
        r->part = RAS_PART_NONE;
        return;
    }
    comm->id = id;
    comm->size = group < RAS_GROUPS ? r->sizes[group] : 0;
}

/* A row of the table: group, communicators, nodes, ranks of a node ("7-8"), ranks of a communicator. */
static void ras_read_table(struct ras_lines *r, const char *p) {
    int64_t v[4], size;
    for (int i = 0; i < 3; i++) {
        ras_take_blanks(&p);
        if (!ras_take_number(&p, &v[i]))
            return;
    }
    ras_take_blanks(&p);
    if (!ras_take_number(&p, &v[3]) || (ras_take(&p, "-") && !ras_take_number(&p, &v[3])))
        return;
    ras_take_blanks(&p);
    if (ras_take_number(&p, &size) && v[0] < RAS_GROUPS && size <= RAS_SIZE)
        r->sizes[v[0]] = (int32_t)size;
}

/* "The missing ranks: 1,2,5", of 2.24 and 2.25: they may have left the communicator, so that alone shows
 * nothing. */
static void ras_read_missing(struct ras_lines *r, const char *p) {
    int64_t n;
    if (ras_take(&p, "  Rank ") && ras_take_number(&p, &n) && ras_take(&p, " -- "))
        ras_add_line(r, r->comm, n, RAS_SILENT, p);
}

static void ras_read_line(struct ras_lines *r, const char *line) {
    const char *p = line;
    bool is_table = ras_take(&p, "    #  in group");
    if (line[0] != ' ' || is_table)
        ras_end_counts(r);
    if (is_table)
        r->part = RAS_PART_TABLE;
    else if (line[0] == '#')
        ras_begin_comm(r, line + 1);
    else if (line[0] != ' ')
        r->part = strcmp(line, "DEAD") == 0         ? RAS_PART_DEAD
                  : strcmp(line, "INCOMPLETE") == 0 ? RAS_PART_SILENT
                  /* kinds of collectives are apart by empty lines */
                  : !line[0] && r->part == RAS_PART_COUNTS ? RAS_PART_COUNTS
                                                           : RAS_PART_NONE;
    else if (r->part == RAS_PART_TABLE)
        ras_read_table(r, line);
    else if (r->part == RAS_PART_MISSING)
        ras_read_missing(r, line);
    else if (r->part == RAS_PART_COUNTS)
        ras_read_counts_line(r, line);
    else if ((r->part == RAS_PART_DEAD || r->part == RAS_PART_SILENT) && strncmp(line, "  Process ", 10) == 0)
        ras_add_line(r, RAS_NO_COMM, -1, r->part == RAS_PART_DEAD ? RAS_DEAD : RAS_SILENT, line);
}

static const char *ras_search(const char *text, size_t len, const char *words) {
    return len ? memmem(text, len, words, strlen(words)) : NULL;
}

static int ras_parse_text(struct ras_answer *a, const char *text, size_t len, struct err *e) {
    struct ras_lines r = {.a = a};
    const char *end = text + len;
    if (len < 13 || memcmp(text, "NCCL version ", 13) != 0 || text[len - 1] != '\n' ||
        !ras_search(text, len, "\nWarnings\n========\n"))
        return err_set(e, ERR_FAILED, "its answer of %zu bytes is not that of NCCL's RAS, or is cut", len);
    for (const char *at = text; at < end && !r.is_full;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        char line[RAS_LINE];
        size_t n = next ? (size_t)(next - at) : 0;
        if (n < sizeof line && !memchr(at, '\0', n)) {
            memcpy(line, at, n);
            line[n] = '\0';
            ras_read_line(&r, line);
        }
        at = next ? next + 1 : end;
    }
    ras_end_counts(&r);
    return r.is_full ? err_set(e, ERR_FAILED, "its answer has more than %d ranks", RAS_MEMBERS) : 0;
}

int ras_parse(struct ras_answer *a, const char *text, size_t len, bool is_json, struct err *e) {
    *a = (struct ras_answer){.is_json = is_json};
    int rc = len > RAS_BYTES ? err_set(e, ERR_FAILED, "its answer has more than %zu bytes", RAS_BYTES)
             : is_json       ? ras_parse_json(a, text, len, e)
                             : ras_parse_text(a, text, len, e);
    if (rc != 0)
        ras_answer_fini(a);
    return rc;
}

/* ---- facts ---- */

bool ras_is_behind(const struct ras_answer *a) {
    for (size_t i = 0; i < a->n; i++)
        if (a->members[i].state == RAS_BEHIND)
            return true;
    return false;
}

/* Whether that communicator had launched the same before. */
static bool ras_stands(const struct ras_answer *a, uint32_t comm, const struct ras_answer *before) {
    for (size_t i = 0; before && before->is_json == a->is_json && i < before->n_comms; i++)
        if (before->comms[i].id == a->comms[comm].id)
            return before->comms[i].counts == a->comms[comm].counts;
    return false;
}

void ras_fact_add(struct ras_fact *facts, size_t *n, const struct ras_fact *fact) {
    size_t at = 0;
    while (at < *n && facts[at].rank < fact->rank)
        at++;
    if (at < *n && facts[at].rank == fact->rank) {
        if (fact->state > facts[at].state ||
            (fact->state == facts[at].state && fact->behind > facts[at].behind))
            facts[at] = *fact;
        return;
    }
    if (at == RAS_FACTS)
        return;
    size_t last = *n < RAS_FACTS ? *n : RAS_FACTS - 1;
    memmove(&facts[at + 1], &facts[at], (last - at) * sizeof *facts);
    facts[at] = *fact;
    *n = last + 1;
}

/* The rank of this host that the process is; -1 none, or not one alone: in a container of its own each may
 * have that pid; -2: it is of another host. */
static int32_t ras_find_here(const struct ras_job *job, const struct ras_member *m) {
    bool is_here = false;
    int32_t rank = -1;
    size_t n = 0;
    for (size_t i = 0; i < job->n_addresses && !is_here; i++)
        is_here = strcmp(job->addresses[i], m->host) == 0;
    for (size_t i = 0; is_here && i < job->n_here; i++)
        if (job->here[i].pid == m->pid) {
            rank = job->here[i].rank;
            n++;
        }
    return !is_here ? -2 : n == 1 ? rank : -1;
}

static bool ras_has_rank(const struct ras_job *job, int32_t rank) {
    for (size_t i = 0; i < job->n_here; i++)
        if (job->here[i].rank == rank)
            return true;
    return false;
}

size_t ras_find(const struct ras_answer *a, const struct ras_answer *before, const struct ras_job *job,
                struct ras_fact *out) {
    size_t n = 0;
    int32_t *ranks = malloc((a->n + 1) * sizeof *ranks);
    int8_t *alike = calloc(a->n_comms + 1, 1); /* 1: it numbers its ranks as the job does; -1: it does not */
    for (size_t i = 0; ranks && alike && i < a->n; i++) {
        const struct ras_member *m = &a->members[i];
        ranks[i] = ras_find_here(job, m);
        if (m->comm == RAS_NO_COMM || ranks[i] < 0 || job->world <= 0 || a->comms[m->comm].size != job->world)
            continue;
        if (m->rank != ranks[i])
            alike[m->comm] = -1;
        else if (!alike[m->comm])
            alike[m->comm] = 1;
    }
    for (size_t i = 0; ranks && alike && i < a->n; i++) {
        const struct ras_member *m = &a->members[i];
        int32_t rank = ranks[i];
        if (rank == -2 && m->comm != RAS_NO_COMM && alike[m->comm] == 1 && m->rank >= 0 &&
            m->rank < job->world && !ras_has_rank(job, m->rank))
            rank = m->rank;
        bool is_told = m->state == RAS_BEHIND ? ras_stands(a, m->comm, before) : m->state > RAS_BEHIND;
        if (rank < 0 || !is_told)
            continue;
        struct ras_fact f = {.rank = rank, .state = m->state, .pid = m->pid};
        memcpy(f.host, m->host, sizeof f.host);
        if (m->state == RAS_BEHIND) {
            f.behind = m->behind;
            memcpy(f.op, m->op, sizeof f.op);
        }
        ras_fact_add(out, &n, &f);
    }
    free(ranks);
    free(alike);
    return n;
}

void ras_fact_put(const struct ras_fact *f, char *buf, size_t cap) {
    char who[RAS_HOST + 32] = "";
    if (f->pid > 0)
        snprintf(who, sizeof who, " (pid %" PRId64 "%s%s)", f->pid, f->host[0] ? " on " : "", f->host);
    if (f->rank < 0)
        snprintf(buf, cap, "%s", f->note);
    else if (f->state == RAS_DEAD)
        snprintf(buf, cap, "NCCL considers its process%s dead", who);
    else if (f->state == RAS_SILENT)
        snprintf(buf, cap, "NCCL does not reach its process%s", who);
    else
        snprintf(buf, cap, "its process%s has launched %" PRId64 " fewer %s%s than the others", who,
                 f->behind, f->op[0] ? f->op : "collective", f->behind == 1 ? "" : "s");
}
