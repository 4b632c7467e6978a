/* SPDX-License-Identifier: Apache-2.0 */
/* flight: see flight.h. The form: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump_json;
 * 2.5 to 2.7: NCCLUtils.cpp). */
#include "agent/python/flight.h"

#include <stdlib.h>
#include <string.h>

#include "agent/python/torch_dtypes.h"
#include "base/json_scan.h"
#include "base/text.h"

#define FLIGHT_KEY 40    /* longer keys are none of ours */
#define FLIGHT_TENSORS 8 /* of an entry whose bytes are added up */
#define FLIGHT_MANY ((int64_t)1 << 62)

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

static bool flight_status(struct json_scan *c, struct flight *f, int64_t number) {
    char key[FLIGHT_KEY];
    bool first = true;
    int64_t enqueued = FLIGHT_UNKNOWN, completed = FLIGHT_UNKNOWN;
    if (!json_scan_mark(c, '{'))
        return json_scan_skip(c);
    int rc;
    while ((rc = json_scan_next_key(c, &first, key, sizeof key)) == 1) {
        bool ok = strcmp(key, "last_enqueued_collective") == 0    ? json_scan_number(c, &enqueued)
                  : strcmp(key, "last_completed_collective") == 0 ? json_scan_number(c, &completed)
                                                                  : json_scan_skip(c);
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

static bool flight_statuses(struct json_scan *c, struct flight *f) {
    char key[FLIGHT_KEY];
    bool first = true;
    int rc;
    if (!json_scan_mark(c, '{'))
        return json_scan_skip(c);
    while ((rc = json_scan_next_key(c, &first, key, sizeof key)) == 1) {
        char *end = NULL;
        long long number = strtoll(key, &end, 10);
        if (!flight_status(c, f, end != key && !*end ? number : -1))
            return false;
    }
    return rc == 0;
}

/* ---- entries ---- */

/* "process_group": [name, description], or the name alone. */
static bool flight_pair(struct json_scan *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (json_scan_peek(c) != '[')
        return json_scan_text(c, entry->name, sizeof entry->name);
    c->at++;
    for (int i = 0; (rc = json_scan_next(c, &first, ']')) == 1; i++)
        if (!(i == 0   ? json_scan_text(c, entry->name, sizeof entry->name)
              : i == 1 ? json_scan_text(c, entry->desc, sizeof entry->desc)
                       : json_scan_skip(c)))
            return false;
    return rc == 0;
}

/* [2, 3]: 6 elements. */
static bool flight_shape(struct json_scan *c, int64_t *numel) {
    bool first = true;
    int rc;
    int64_t n;
    *numel = 1;
    if (!json_scan_mark(c, '[')) {
        *numel = FLIGHT_UNKNOWN;
        return json_scan_skip(c);
    }
    while ((rc = json_scan_next(c, &first, ']')) == 1) {
        if (!json_scan_number(c, &n))
            return false;
        if (*numel >= 0)
            *numel = n < 0 || (n > 0 && *numel > FLIGHT_MANY / n) ? FLIGHT_UNKNOWN : *numel * n;
    }
    return rc == 0;
}

static bool flight_shapes(struct json_scan *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (!json_scan_mark(c, '['))
        return json_scan_skip(c);
    for (entry->n_numel = 0; (rc = json_scan_next(c, &first, ']')) == 1; entry->n_numel++)
        if (!(entry->n_numel < FLIGHT_TENSORS ? flight_shape(c, &entry->numel[entry->n_numel])
                                              : json_scan_skip(c)))
            return false;
    return rc == 0;
}

static bool flight_dtypes(struct json_scan *c, struct flight_entry *entry) {
    bool first = true;
    int rc;
    if (!json_scan_mark(c, '['))
        return json_scan_skip(c);
    for (entry->n_dtypes = 0; (rc = json_scan_next(c, &first, ']')) == 1; entry->n_dtypes++)
        if (!(entry->n_dtypes < FLIGHT_TENSORS
                  ? json_scan_text(c, entry->dtypes[entry->n_dtypes], sizeof entry->dtypes[0])
                  : json_scan_skip(c)))
            return false;
    return rc == 0;
}

static bool flight_member(struct json_scan *c, struct flight_entry *entry, const char *key) {
    if (strcmp(key, "pg_id") == 0)
        return json_scan_number(c, &entry->number);
    if (strcmp(key, "process_group") == 0)
        return flight_pair(c, entry);
    if (strcmp(key, "collective_seq_id") == 0)
        return json_scan_number(c, &entry->collective);
    if (strcmp(key, "op_id") == 0)
        return json_scan_number(c, &entry->op);
    if (strcmp(key, "profiling_name") == 0)
        return json_scan_text(c, entry->title, sizeof entry->title);
    if (strcmp(key, "state") == 0)
        return json_scan_text(c, entry->state, sizeof entry->state);
    if (strcmp(key, "retired") == 0)
        return json_scan_flag(c, &entry->retired);
    if (strcmp(key, "is_p2p") == 0)
        return json_scan_flag(c, &entry->p2p);
    if (strcmp(key, "timeout_ms") == 0)
        return json_scan_number(c, &entry->timeout_ms);
    if (strcmp(key, "input_sizes") == 0)
        return flight_shapes(c, entry);
    if (strcmp(key, "input_dtypes") == 0)
        return flight_dtypes(c, entry);
    return json_scan_skip(c);
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
    /* a send or recv of gloo is an operation without an entry, and takes no tag */
    if (gloo && entry->collective >= 0 && entry->op > entry->collective)
        g->p2p = 1;
    /* gloo counts tags as collectives; its own sequence, which its status has, is the number of the
     * operation */
    int64_t seq = gloo && entry->op >= 0 ? entry->op : entry->collective;
    bool completed = strcmp(entry->state, "completed") == 0;
    bool over = completed || (entry->retired && !nccl);
    if (seq < 0)
        return;
    /* the operations of a coalesced block never end; the entry of the block, which has their number,
     * does */
    if (over && seq == g->open_seq)
        g->open_seq = FLIGHT_UNKNOWN;
    if (!over && (g->open_seq < 0 || seq < g->open_seq))
        flight_open(g, entry, seq);
    if (seq > g->last)
        g->last = seq;
}

static bool flight_entry(struct json_scan *c, struct flight *f) {
    struct flight_entry entry = {.number = FLIGHT_UNKNOWN,
                                 .collective = FLIGHT_UNKNOWN,
                                 .op = FLIGHT_UNKNOWN,
                                 .timeout_ms = FLIGHT_UNKNOWN};
    char key[FLIGHT_KEY];
    bool first = true;
    int rc;
    if (!json_scan_mark(c, '{'))
        return json_scan_skip(c);
    while ((rc = json_scan_next_key(c, &first, key, sizeof key)) == 1)
        if (!flight_member(c, &entry, key))
            return false;
    struct flight_group *g = rc == 0 && entry.number >= 0 ? flight_get(f, entry.number) : NULL;
    if (g)
        flight_count(g, &entry);
    f->entries++;
    return rc == 0;
}

static bool flight_entries(struct json_scan *c, struct flight *f) {
    bool first = true;
    int rc;
    if (!json_scan_mark(c, '['))
        return json_scan_skip(c);
    while ((rc = json_scan_next(c, &first, ']')) == 1)
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
        /* the status may count a collective before its entry is there; that of NCCL has the number of a
         * send or recv, which is another count, after one */
        if (g->enqueued < g->last || strcmp(g->backend, "nccl") == 0)
            g->enqueued = g->last;
    }
}

/* ---- a document ---- */

void flight_fini(struct flight *f) {
    free(f->groups);
    *f = (struct flight){.n = 0};
}

int flight_read(struct flight *f, const char *text, size_t len, struct err *e) {
    struct json_scan c = {.at = text, .end = text + len};
    char key[FLIGHT_KEY];
    bool first = true, ok = true;
    int rc = -1;
    *f = (struct flight){.n = 0};
    if (len > FLIGHT_BYTES)
        return err_set(e, ERR_FAILED, "the flight recorder's document has %zu MiB: %zu are read at most",
                       len >> 20, FLIGHT_BYTES >> 20);
    if (json_scan_mark(&c, '{'))
        while (ok && (rc = json_scan_next_key(&c, &first, key, sizeof key)) == 1)
            ok = strcmp(key, "pg_status") == 0 ? flight_statuses(&c, f)
                 : strcmp(key, "entries") == 0 ? flight_entries(&c, f)
                                               : json_scan_skip(&c);
    if (ok && rc == 0 && json_scan_peek(&c) < 0) {
        flight_settle(f);
        return 0;
    }
    flight_fini(f);
    return err_set(e, ERR_FAILED, "the flight recorder's document is not JSON: error at byte %zu of %zu",
                   (size_t)(c.at - text), len);
}
