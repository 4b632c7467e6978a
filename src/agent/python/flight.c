/* SPDX-License-Identifier: Apache-2.0 */
/* flight: see flight.h. The form: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump_json;
 * 2.5 to 2.7: NCCLUtils.cpp). */
#include "agent/python/flight.h"

#include <stdlib.h>
#include <string.h>

#include "agent/python/torch_dtypes.h"
#include "base/text.h"

#define FLIGHT_KEY 40    /* longer keys are none of ours */
#define FLIGHT_TENSORS 8 /* of an entry whose bytes are added up */
#define FLIGHT_MANY ((int64_t)1 << 62)

struct flight_cursor {
    const char *at, *end;
};

/* An entry, or a status. */
struct flight_entry {
    int64_t number, collective, op, timeout_ms;
    bool p2p, retired, has_number;
    char name[FLIGHT_NAME], desc[FLIGHT_NAME];
    char title[64]; /* gloo:all_reduce */
    char state[16];
    int64_t numel[FLIGHT_TENSORS]; /* of its inputs */
    size_t n_numel, n_dtypes;
    char dtypes[FLIGHT_TENSORS][24];
};

/* ---- values ---- */

static void flight_blanks(struct flight_cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static int flight_peek(struct flight_cursor *c) {
    flight_blanks(c);
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

/* Accept the character `mark` after blanks. */
static bool flight_mark(struct flight_cursor *c, char mark) {
    bool there = flight_peek(c) == (unsigned char)mark;
    c->at += there;
    return there;
}

static int flight_hex(int ch) {
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

/* Read the rest of a string whose first quote was read, as much as fits, made safe to show. */
static bool flight_rest_of_text(struct flight_cursor *c, char *out, size_t cap) {
    char raw[FLIGHT_NAME];
    size_t n = 0, most = cap < sizeof raw ? cap : sizeof raw;
    while (c->at < c->end && *c->at != '"') {
        char ch = *c->at++;
        if (ch == '\\') {
            if (c->at == c->end)
                return false;
            ch = *c->at++;
            if (ch == 'u') {
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = c->at < c->end ? flight_hex((unsigned char)*c->at++) : -1;
                    if (digit < 0)
                        return false;
                    code = code << 4 | digit;
                }
                /* names of groups are ASCII: others are only to be told apart from nothing */
                ch = code > 0 && code < 128 ? (char)code : '?';
            } else if (ch == 'n' || ch == 't' || ch == 'r' || ch == 'b' || ch == 'f') {
                ch = ' ';
            }
        }
        if (cap && n + 1 < most)
            raw[n++] = ch ? ch : '?';
    }
    if (c->at == c->end)
        return false;
    c->at++;
    if (cap) {
        raw[n] = '\0';
        text_sanitize(out, cap, raw);
    }
    return true;
}

/* Skip a value of any kind. */
static bool flight_skip(struct flight_cursor *c) {
    char closes[FLIGHT_DEPTH];
    size_t depth = 0;
    do {
        int ch = flight_peek(c);
        if (ch < 0)
            return false;
        c->at++;
        if (ch == '"') {
            if (!flight_rest_of_text(c, NULL, 0))
                return false;
        } else if (ch == '{' || ch == '[') {
            if (depth == FLIGHT_DEPTH)
                return false;
            closes[depth++] = ch == '{' ? '}' : ']';
        } else if (ch == '}' || ch == ']') {
            if (!depth || closes[--depth] != ch)
                return false;
        } else if (ch == ',' || ch == ':') {
            if (!depth)
                return false;
        } else {
            while (c->at < c->end && !strchr(",:]}[{\" \t\r\n", *c->at))
                c->at++;
        }
    } while (depth);
    return true;
}

/* A text; "" for a value of another kind. */
static bool flight_text(struct flight_cursor *c, char *out, size_t cap) {
    out[0] = '\0';
    if (!flight_mark(c, '"'))
        return flight_skip(c);
    return flight_rest_of_text(c, out, cap);
}

/* Digits, which may be in quotes. FLIGHT_UNKNOWN for a value of another kind, and for a negative
 * or too large one. */
static bool flight_number(struct flight_cursor *c, int64_t *out) {
    bool quoted = flight_peek(c) == '"';
    const char *from = c->at + (quoted ? 1 : 0), *p = from;
    int64_t v = 0;
    *out = FLIGHT_UNKNOWN;
    if (!flight_skip(c))
        return false;
    const char *end = c->at - (quoted ? 1 : 0);
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        v = v < FLIGHT_MANY / 10 ? v * 10 + (*p - '0') : FLIGHT_MANY;
    if (p == end && p > from && v < FLIGHT_MANY)
        *out = v;
    return true;
}

/* true, or another value: false. */
static bool flight_flag(struct flight_cursor *c, bool *out) {
    flight_blanks(c);
    *out = c->end - c->at >= 4 && memcmp(c->at, "true", 4) == 0;
    return flight_skip(c);
}

/* ---- objects and lists ---- */

/* The next member of an object, or element of a list, whose first mark was read: 1; 0 at its end;
 * -1. `*first` is true before the first. */
static int flight_next(struct flight_cursor *c, bool *first, char close) {
    if (flight_mark(c, close))
        return 0;
    if (!*first && !flight_mark(c, ','))
        return -1;
    *first = false;
    return 1;
}

static int flight_next_key(struct flight_cursor *c, bool *first, char *key, size_t cap) {
    int rc = flight_next(c, first, '}');
    if (rc == 1 && (!flight_mark(c, '"') || !flight_rest_of_text(c, key, cap) || !flight_mark(c, ':')))
        return -1;
    return rc;
}

/* ---- groups ---- */

static struct flight_group *flight_get(struct flight *f, int64_t number) {
    /* entries of a group follow each other, the newest group is asked for most */
    for (size_t i = f->n; i > 0; i--)
        if (f->groups[i - 1].number == number)
            return &f->groups[i - 1];
    if (f->n == FLIGHT_GROUPS) {
        f->more = true;
        return NULL;
    }
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 8;
        struct flight_group *groups = realloc(f->groups, cap * sizeof *groups);
        if (!groups) {
            f->more = true;
            return NULL;
        }
        f->groups = groups;
        f->cap = cap;
    }
    f->groups[f->n] = (struct flight_group){.number = number,
                                            .enqueued = FLIGHT_UNKNOWN,
                                            .completed = FLIGHT_UNKNOWN,
                                            .last = FLIGHT_UNKNOWN,
                                            .timeout_ms = FLIGHT_UNKNOWN,
                                            .p2p = FLIGHT_UNKNOWN,
                                            .open_seq = FLIGHT_UNKNOWN,
                                            .open_bytes = FLIGHT_UNKNOWN};
    return &f->groups[f->n++];
}

static bool flight_status(struct flight_cursor *c, struct flight *f, int64_t number) {
    char key[FLIGHT_KEY];
    bool first = true;
    int64_t enqueued = FLIGHT_UNKNOWN, completed = FLIGHT_UNKNOWN;
    if (!flight_mark(c, '{'))
        return flight_skip(c);
    int rc;
    while ((rc = flight_next_key(c, &first, key, sizeof key)) == 1) {
        bool ok = strcmp(key, "last_enqueued_collective") == 0    ? flight_number(c, &enqueued)
                  : strcmp(key, "last_completed_collective") == 0 ? flight_number(c, &completed)
                                                                  : flight_skip(c);
        if (!ok)
            return false;
    }
    struct flight_group *g = rc == 0 && number >= 0 ? flight_get(f, number) : NULL;
    if (g && enqueued >= 0) {
        g->enqueued = enqueued;
        g->completed = completed < 0 ? 0 : completed; /* -1: none has ended */
    }
    return rc == 0;
}

static bool flight_statuses(struct flight_cursor *c, struct flight *f) {
    char key[FLIGHT_KEY];
    bool first = true;
    int rc;
    if (!flight_mark(c, '{'))
        return flight_skip(c);
    while ((rc = flight_next_key(c, &first, key, sizeof key)) == 1) {
        char *end = NULL;
        long long number = strtoll(key, &end, 10);
        if (!flight_status(c, f, end != key && !*end ? number : -1))
            return false;
    }
    return rc == 0;
}

/* ---- entries ---- */

/* "process_group": [name, description], or the name alone. */
static bool flight_pair(struct flight_cursor *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (flight_peek(c) != '[')
        return flight_text(c, entry->name, sizeof entry->name);
    c->at++;
    for (int i = 0; (rc = flight_next(c, &first, ']')) == 1; i++)
        if (!(i == 0   ? flight_text(c, entry->name, sizeof entry->name)
              : i == 1 ? flight_text(c, entry->desc, sizeof entry->desc)
                       : flight_skip(c)))
            return false;
    return rc == 0;
}

/* [2, 3]: 6 elements. */
static bool flight_shape(struct flight_cursor *c, int64_t *numel) {
    bool first = true;
    int rc;
    int64_t n;
    *numel = 1;
    if (!flight_mark(c, '[')) {
        *numel = FLIGHT_UNKNOWN;
        return flight_skip(c);
    }
    while ((rc = flight_next(c, &first, ']')) == 1) {
        if (!flight_number(c, &n))
            return false;
        if (*numel >= 0)
            *numel = n < 0 || (n > 0 && *numel > FLIGHT_MANY / n) ? FLIGHT_UNKNOWN : *numel * n;
    }
    return rc == 0;
}

static bool flight_shapes(struct flight_cursor *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (!flight_mark(c, '['))
        return flight_skip(c);
    for (entry->n_numel = 0; (rc = flight_next(c, &first, ']')) == 1; entry->n_numel++)
        if (!(entry->n_numel < FLIGHT_TENSORS ? flight_shape(c, &entry->numel[entry->n_numel])
                                              : flight_skip(c)))
            return false;
    return rc == 0;
}

static bool flight_dtypes(struct flight_cursor *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (!flight_mark(c, '['))
        return flight_skip(c);
    for (entry->n_dtypes = 0; (rc = flight_next(c, &first, ']')) == 1; entry->n_dtypes++)
        if (!(entry->n_dtypes < FLIGHT_TENSORS
                  ? flight_text(c, entry->dtypes[entry->n_dtypes], sizeof entry->dtypes[0])
                  : flight_skip(c)))
            return false;
    return rc == 0;
}

static bool flight_member(struct flight_cursor *c, struct flight_entry *entry, const char *key) {
    if (strcmp(key, "pg_id") == 0)
        return flight_number(c, &entry->number);
    if (strcmp(key, "process_group") == 0)
        return flight_pair(c, entry);
    if (strcmp(key, "collective_seq_id") == 0)
        return flight_number(c, &entry->collective);
    if (strcmp(key, "op_id") == 0)
        return flight_number(c, &entry->op);
    if (strcmp(key, "profiling_name") == 0)
        return flight_text(c, entry->title, sizeof entry->title);
    if (strcmp(key, "state") == 0)
        return flight_text(c, entry->state, sizeof entry->state);
    if (strcmp(key, "retired") == 0)
        return flight_flag(c, &entry->retired);
    if (strcmp(key, "is_p2p") == 0)
        return flight_flag(c, &entry->p2p);
    if (strcmp(key, "timeout_ms") == 0)
        return flight_number(c, &entry->timeout_ms);
    if (strcmp(key, "input_sizes") == 0)
        return flight_shapes(c, entry);
    if (strcmp(key, "input_dtypes") == 0)
        return flight_dtypes(c, entry);
    return flight_skip(c);
}

/* torch's own name of a type, and its bytes; 0 if unknown. */
static int64_t flight_dtype(const char *name, const char **torch) {
    const struct torch_dtype *dtype = torch_dtypes_find(name);
    *torch = dtype ? dtype->torch : name;
    return dtype ? dtype->bytes : 0;
}

static int64_t flight_bytes(const struct flight_entry *entry) {
    int64_t sum = 0;
    if (entry->n_numel != entry->n_dtypes || entry->n_numel > FLIGHT_TENSORS || entry->n_numel == 0)
        return FLIGHT_UNKNOWN;
    for (size_t i = 0; i < entry->n_numel; i++) {
        const char *torch;
        int64_t size = flight_dtype(entry->dtypes[i], &torch);
        if (!size || entry->numel[i] < 0 || entry->numel[i] > (FLIGHT_MANY - sum) / size)
            return FLIGHT_UNKNOWN;
        sum += entry->numel[i] * size;
    }
    return sum;
}

static void flight_open(struct flight_group *g, const struct flight_entry *entry, int64_t seq) {
    const char *colon = strchr(entry->title, ':'), *dtype = "";
    g->open_seq = seq;
    text_sanitize(g->open_op, sizeof g->open_op, colon ? colon + 1 : entry->title);
    g->open_bytes = flight_bytes(entry);
    if (entry->n_dtypes)
        flight_dtype(entry->dtypes[0], &dtype);
    text_sanitize(g->open_dtype, sizeof g->open_dtype, dtype);
}

/* Take what an entry shows of its group. */
static void flight_count(struct flight_group *g, const struct flight_entry *entry) {
    bool gloo = strncmp(entry->title, "gloo:", 5) == 0, nccl = strncmp(entry->title, "nccl:", 5) == 0;
    const char *colon = strchr(entry->title, ':');
    size_t n = colon ? (size_t)(colon - entry->title) : 0;
    if (n && n < sizeof g->backend) {
        memcpy(g->backend, entry->title, n);
        g->backend[n] = '\0';
    }
    if (entry->name[0])
        memcpy(g->name, entry->name, sizeof g->name);
    if (entry->desc[0])
        memcpy(g->desc, entry->desc, sizeof g->desc);
    if (entry->timeout_ms >= 0)
        g->timeout_ms = entry->timeout_ms;
    if (g->p2p < 0)
        g->p2p = 0;
    if (entry->p2p) {
        g->p2p = 1;
        return;
    }
    /* gloo counts tags as collectives; its own sequence, which its status has, is the number of the
     * operation */
    int64_t seq = gloo && entry->op >= 0 ? entry->op : entry->collective;
    bool completed = strcmp(entry->state, "completed") == 0;
    bool over = completed || (entry->retired && !nccl);
    if (seq < 0)
        return;
    if (!over && (g->open_seq < 0 || seq < g->open_seq))
        flight_open(g, entry, seq);
    if (seq > g->last)
        g->last = seq;
}

static bool flight_entry(struct flight_cursor *c, struct flight *f) {
    struct flight_entry entry = {.number = FLIGHT_UNKNOWN,
                                 .collective = FLIGHT_UNKNOWN,
                                 .op = FLIGHT_UNKNOWN,
                                 .timeout_ms = FLIGHT_UNKNOWN};
    char key[FLIGHT_KEY];
    bool first = true;
    int rc;
    if (!flight_mark(c, '{'))
        return flight_skip(c);
    while ((rc = flight_next_key(c, &first, key, sizeof key)) == 1)
        if (!flight_member(c, &entry, key))
            return false;
    struct flight_group *g = rc == 0 && entry.number >= 0 ? flight_get(f, entry.number) : NULL;
    if (g)
        flight_count(g, &entry);
    f->entries++;
    return rc == 0;
}

static bool flight_entries(struct flight_cursor *c, struct flight *f) {
    bool first = true;
    int rc;
    if (!flight_mark(c, '['))
        return flight_skip(c);
    while ((rc = flight_next(c, &first, ']')) == 1)
        if (!flight_entry(c, f))
            return false;
    return rc == 0;
}

/* Where there were entries, all before the oldest open one have ended. */
static void flight_settle(struct flight *f) {
    for (size_t i = 0; i < f->n; i++) {
        struct flight_group *g = &f->groups[i];
        if (g->last < 0)
            continue;
        g->completed = g->open_seq < 0 ? g->last : g->open_seq > 0 ? g->open_seq - 1 : 0;
        /* the status counts a collective before its entry is there */
        if (g->enqueued < g->last)
            g->enqueued = g->last;
    }
}

/* ---- a document ---- */

void flight_fini(struct flight *f) {
    free(f->groups);
    *f = (struct flight){.n = 0};
}

int flight_read(struct flight *f, const char *text, size_t len, struct err *e) {
    struct flight_cursor c = {.at = text, .end = text + len};
    char key[FLIGHT_KEY];
    bool first = true, ok = true;
    int rc = -1;
    *f = (struct flight){.n = 0};
    if (len > FLIGHT_BYTES)
        return err_set(e, ERR_FAILED, "the flight recorder's document has %zu MiB: %zu are read at most",
                       len >> 20, FLIGHT_BYTES >> 20);
    if (flight_mark(&c, '{'))
        while (ok && (rc = flight_next_key(&c, &first, key, sizeof key)) == 1)
            ok = strcmp(key, "pg_status") == 0 ? flight_statuses(&c, f)
                 : strcmp(key, "entries") == 0 ? flight_entries(&c, f)
                                               : flight_skip(&c);
    if (ok && rc == 0 && flight_peek(&c) < 0) {
        flight_settle(f);
        return 0;
    }
    flight_fini(f);
    return err_set(e, ERR_FAILED, "the flight recorder's document is not JSON: error at byte %zu of %zu",
                   (size_t)(c.at - text), len);
}
