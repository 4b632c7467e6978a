/* SPDX-License-Identifier: Apache-2.0 */
/* lies: see lies.h. */
#include "lies.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/ring/ring.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_sync.h"
#include "store/ring/ring_tables.h"
#include "wire/codec.h"
#include "wire/field.h"

#define LIES_LONG ((size_t)64 * 1024)
#define LIES_ROOM ((size_t)64 * 1024 * 1024) /* for one answer */

/* ---- what is drawn ---- */

static uint64_t lies_next(struct lies *l) {
    uint64_t z = l->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t lies_below(struct lies *l, uint64_t n) { return lies_next(l) % n; }

bool lies_chance(struct lies *l, unsigned permille) { return lies_below(l, 1000) < permille; }

/* What a terminal, a shell, a parser or a person might take for something else. */
static const struct lies_said {
    const char *s;
    size_t len;
} lies_texts[] = {
#define T(text)                                                                                              \
    { text, sizeof text - 1 }
    T("\x1b]52;c;RVZJTA==\x07"),       /* sets the clipboard */
    T("\x1b]0;HELD\x07"),              /* the title */
    T("\x1b[2J\x1b[H\x1b[31mgone"),    /* clears the screen */
    T("\x1b[6n\x1b[c\x1bP$q q\x1b\\"), /* makes the terminal type */
    T("\x9b"
      "31mC1\x9d"
      "52;c;RVZJTA==\x9c"), /* the same in one byte, */
    T("\xc2\x9b"
      "31mC1\xc2\x9d"
      "52;c;RVZJTA==\xc2\x9c"), /* and in UTF-8 */
    T("\xe2\x80\xae"
      "gnp.evil\xe2\x81\xa6"),                    /* turns the writing round */
    T("train\nprobing: 4242 was attached\r\nok"), /* forges a line */
    T("over\rwritten\b\b\b\x7f\t\v\f"),
    T("nul\0hidden"),
    T("\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80"), /* is no UTF-8 */
    T("e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"),
    T("%s%n%p%1000000d{}$(id)`id`"),
    T("';--\"</script><script>alert(1)</script>&amp;]]>"),
    T("a;b c,d\"e|f"),
    T("/etc/passwd"),
    T("../../../../../../../../etc/passwd"),
    T("/proc/1/root/etc/passwd"),
    T("/proc/self/fd/1"),
    T("/proc/self/environ"),
    T("/dev/stdin"),
    T("_ZN1aIXsr1bIcE1cEE1dEv"),
    T("127.0.0.1:1"),
    T("255.255.255.255:99999"),
    T("[::1]:0"),
    T("unix:/etc"),
    T("-o"),
    T("--"),
    T(" "),
    T(""),
#undef T
};

static const char *const lies_plain[] = {"train_step",     "MainThread",   "train.py", "python",
                                         "3.11.7",         "loss",         "exact",    "forward",
                                         "python.samples", "127.0.0.1:80", "listening"};

const char *lies_text(struct lies *l, size_t *len) {
    static _Thread_local char text[LIES_LONG + 1];
    size_t n = sizeof lies_texts / sizeof lies_texts[0];
    const char *s = NULL;
    switch (lies_below(l, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        s = lies_plain[lies_below(l, sizeof lies_plain / sizeof lies_plain[0])];
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        s = l->n_paths ? l->paths[lies_below(l, l->n_paths)] : "/etc/shadow";
        break;
    case 8: /* a long one of one of them */
        if (lies_chance(l, 250)) {
            const struct lies_said *said = &lies_texts[lies_below(l, n)];
            *len = LIES_LONG >> lies_below(l, 12);
            for (size_t i = 0; i < *len; i++)
                text[i] = said->len ? said->s[i % said->len] : 'x';
            text[*len] = '\0';
            return text;
        }
        break;
    default:
        break;
    }
    if (s) {
        *len = strlen(s);
        return s;
    }
    const struct lies_said *said = &lies_texts[lies_below(l, n)];
    *len = said->len;
    return said->s;
}

static int64_t lies_int(struct lies *l) {
    static const int64_t ends[] = {0,         1,          -1,       INT64_MAX,  INT64_MIN, INT32_MAX,
                                   INT32_MIN, UINT32_MAX, INT8_MIN, UINT16_MAX, 1LL << 53, (1LL << 53) + 1,
                                   4096,      -4096};
    return lies_chance(l, 500) ? (int64_t)lies_below(l, 100)
                               : ends[lies_below(l, sizeof ends / sizeof ends[0])];
}

static double lies_double(struct lies *l) {
    const double ends[] = {0,        -0.0,    1,      -1,   INFINITY, -INFINITY,    DBL_MAX,
                           -DBL_MAX, DBL_MIN, 5e-324, 1e18, 9.3e18,   1.8446744e19, 1e-9};
    return lies_chance(l, 500) ? (double)lies_below(l, 100000) / 64
                               : ends[lies_below(l, sizeof ends / sizeof ends[0])];
}

/* ---- structs, filled by their tables ---- */

static const char *lies_copy_text(struct lies *l, struct arena *a) {
    size_t len;
    const char *s = lies_text(l, &len);
    char *copy = arena_calloc(a, len + 1, 1);
    return copy ? memcpy(copy, s, len) : NULL;
}

static void lies_fill_field(struct lies *l, const struct field *f, char *at, struct arena *a) {
    switch (f->kind) {
    case FIELD_BOOL:
        *(bool *)(void *)at = lies_chance(l, 500);
        break;
    case FIELD_CHAR:
        *at = lies_chance(l, 700) ? "RSDTtZXI"[lies_below(l, 8)] : (char)lies_below(l, 256);
        break;
    case FIELD_INT8:
        *(int8_t *)(void *)at = (int8_t)lies_int(l);
        break;
    case FIELD_INT:
        *(int *)(void *)at = (int)lies_int(l);
        break;
    case FIELD_INT64:
        *(int64_t *)(void *)at = lies_int(l);
        break;
    case FIELD_UINT32:
        *(uint32_t *)(void *)at = (uint32_t)lies_int(l);
        break;
    case FIELD_UINT64:
        *(uint64_t *)(void *)at = (uint64_t)lies_int(l);
        break;
    case FIELD_DOUBLE:
        *(double *)(void *)at = lies_double(l);
        break;
    case FIELD_STR:
        *(const char **)(void *)at = lies_chance(l, 100) ? NULL : lies_copy_text(l, a);
        break;
    case FIELD_ENUM:
        *(uint32_t *)(void *)at = (uint32_t)lies_below(l, (uint64_t)f->max + 1);
        break;
    }
}

static void lies_fill(struct lies *l, const struct field_table *t, void *row, struct arena *a) {
    for (size_t i = 0; i < t->n; i++)
        lies_fill_field(l, &t->fields[i], (char *)row + t->fields[i].offset, a);
}

static const char *lies_long_text(struct arena *a) {
    char *text = arena_calloc(a, LIES_LONG + 1, 1);
    return text ? memset(text, 'n', LIES_LONG) : NULL;
}

/* Of many rows sometimes all texts are one and the same long one: little to send, much to show. */
static void *lies_rows(struct lies *l, const struct field_table *t, size_t n, struct arena *a) {
    char *rows = arena_calloc(a, n + 1, t->stride);
    const char *bomb = n > 500 && lies_chance(l, 100) ? lies_long_text(a) : NULL;
    for (size_t i = 0; rows && i < n; i++) {
        lies_fill(l, t, rows + i * t->stride, a);
        for (size_t k = 0; bomb && k < t->n; k++)
            if (t->fields[k].kind == FIELD_STR)
                *(const char **)(void *)(rows + i * t->stride + t->fields[k].offset) = bomb;
    }
    return rows;
}

/* How many of something: mostly few. */
static size_t lies_many(struct lies *l) {
    return lies_chance(l, 20) ? (size_t)lies_below(l, 2000) : (size_t)lies_below(l, 6);
}

static void lies_put_target(struct lies *l, uint32_t id, struct strbuf *out) {
    struct model_target t = {.rank = MODEL_UNKNOWN, .pid = l->pid, .uid = l->uid};
    arena_init(&t.arena, LIES_ROOM);
    lies_fill(l, &FIELD_TARGET, &t, &t.arena);
    if (lies_chance(l, 700))
        t.pid = l->pid;
    t.mode = lies_chance(l, 950) ? MODEL_MODE_AGENT : t.mode;
    (void)wire_put_target(out, id, &t);
    arena_fini(&t.arena);
}

static void lies_put_status(struct lies *l, uint32_t id, struct strbuf *out) {
    struct model_status s = {.clients = 1};
    arena_init(&s.arena, LIES_ROOM);
    lies_fill(l, &FIELD_STATUS, &s, &s.arena);
    s.tables = lies_rows(l, &FIELD_TABLES, s.n_tables = lies_many(l), &s.arena);
    s.settings = lies_rows(l, &FIELD_SETTINGS, s.n_settings = lies_many(l), &s.arena);
    s.doors = lies_rows(l, &FIELD_DOORS, s.n_doors = lies_many(l), &s.arena);
    s.holds = lies_rows(l, &FIELD_HOLDS, s.n_holds = lies_many(l), &s.arena);
    s.leases = lies_rows(l, &FIELD_LEASES, s.n_leases = 1 + lies_many(l), &s.arena);
    if (!s.tables || !s.settings || !s.doors || !s.holds || !s.leases)
        s.n_tables = s.n_settings = s.n_doors = s.n_holds = s.n_leases = 0;
    /* What the client has armed goes on for two looks, and has then left something somewhere. */
    if (l->armed[0] && s.n_leases && !lies_chance(l, 100)) {
        struct model_lease *lease = &s.leases[0];
        lease->what = l->armed;
        lease->owners = l->looks < 2;
        lease->armed = lease->by_config = false;
        lease->looks = l->looks++;
        lease->note = "it has ended";
        lease->file = l->n_paths ? l->paths[lies_below(l, l->n_paths)] : "/etc/shadow";
    }
    (void)wire_put_status(out, id, &s);
    arena_fini(&s.arena);
}

/* Only native frames travel with a module. */
static void lies_keep_module(struct model_frame *f) {
    if (f->kind != MODEL_FRAME_NATIVE)
        f->module = NULL;
}

static void lies_fill_frames(struct lies *l, struct model_frame **frames, size_t *n, struct arena *a) {
    *n = lies_chance(l, 10) ? (size_t)lies_below(l, 3000) : (size_t)lies_below(l, 12);
    bool bomb = lies_chance(l, 3); /* little to send, much to show: one long name a hundred thousand times */
    if (bomb)
        *n = 100000;
    *frames = lies_rows(l, &FIELD_FRAMES, 0, a);
    struct model_frame *list = arena_calloc(a, *n + 1, sizeof *list);
    if (!list) {
        *n = 0;
        return;
    }
    struct model_frame some[3];
    for (size_t i = 0; i < 3; i++) {
        some[i] = (struct model_frame){.func = NULL};
        lies_fill(l, &FIELD_FRAMES, &some[i], a);
        lies_keep_module(&some[i]);
        if (bomb)
            some[i].func = lies_long_text(a);
    }
    for (size_t i = 0; i < *n; i++)
        list[i] = some[i % 3];
    *frames = list;
}

static void lies_fill_locals(struct lies *l, struct model_thread *t, struct arena *a) {
    if (t->n_frames == 0 || lies_chance(l, 500))
        return;
    t->locals = arena_calloc(a, t->n_frames, sizeof *t->locals);
    for (size_t i = 0; t->locals && i < t->n_frames && i < 3; i++) {
        struct model_locals *locals = arena_calloc(a, 1, sizeof *locals);
        if (!locals)
            return;
        locals->n = lies_many(l);
        locals->items = lies_rows(l, &FIELD_LOCALS, locals->n, a);
        for (size_t k = 0; locals->items && k < locals->n; k++)
            if (!locals->items[k].name)
                locals->items[k].name = "x";
        t->locals[i] = locals->items ? locals : NULL;
    }
}

static void lies_fill_snapshot(struct lies *l, struct model_snapshot *s) {
    arena_init(&s->arena, LIES_ROOM);
    lies_fill(l, &FIELD_SNAPSHOT, s, &s->arena);
    lies_fill(l, &FIELD_PROCESS, &s->process, &s->arena);
    s->n_threads = lies_chance(l, 10) ? (size_t)lies_below(l, 500) : (size_t)lies_below(l, 5);
    s->threads = lies_rows(l, &FIELD_THREADS, s->n_threads, &s->arena);
    for (size_t i = 0; s->threads && i < s->n_threads; i++) {
        lies_fill_frames(l, &s->threads[i].frames, &s->threads[i].n_frames, &s->arena);
        lies_fill_locals(l, &s->threads[i], &s->arena);
    }
    s->n_tasks = lies_chance(l, 300) ? lies_many(l) : 0;
    s->tasks = lies_rows(l, &FIELD_TASKS, s->n_tasks, &s->arena);
    for (size_t i = 0; s->tasks && i < s->n_tasks; i++) {
        struct model_task *t = &s->tasks[i];
        lies_fill_frames(l, &t->frames, &t->n_frames, &s->arena);
        /* Each other, or themselves: round in a ring. */
        t->awaited_by = arena_calloc(&s->arena, 2, sizeof *t->awaited_by);
        t->n_awaited_by = t->awaited_by ? (size_t)lies_below(l, 3) : 0;
        for (size_t k = 0; k < t->n_awaited_by; k++)
            t->awaited_by[k] = s->tasks[lies_below(l, s->n_tasks)].id;
    }
    s->note = lies_chance(l, 300) ? lies_copy_text(l, &s->arena) : NULL;
    if (!s->threads)
        s->n_threads = 0;
    if (!s->tasks)
        s->n_tasks = 0;
}

static void lies_put_threads(struct lies *l, uint32_t id, bool notify, struct strbuf *out) {
    struct model_snapshot s = {.timestamp = 1};
    lies_fill_snapshot(l, &s);
    if (notify)
        (void)wire_put_threads_notify(out, &s);
    else
        (void)wire_put_snapshot(out, id, &s);
    arena_fini(&s.arena);
}

static void lies_put_samples(struct lies *l, struct strbuf *out) {
    struct model_sample_batch b = {.epoch = l->epoch};
    arena_init(&b.arena, LIES_ROOM);
    lies_fill(l, &FIELD_BATCH, &b, &b.arena);
    b.epoch = lies_chance(l, 800) ? l->epoch : (l->epoch = (uint32_t)lies_int(l));
    b.frames = lies_rows(l, &FIELD_FRAME_DEFS, b.n_frames = lies_many(l) + 1, &b.arena);
    b.stacks = lies_rows(l, &FIELD_STACK_DEFS, b.n_stacks = lies_many(l) + 1, &b.arena);
    b.threads = lies_rows(l, &FIELD_THREAD_DEFS, b.n_threads = lies_many(l) + 1, &b.arena);
    b.samples = lies_rows(l, &FIELD_SAMPLES, b.n_samples = lies_many(l) + 1, &b.arena);
    if (!b.frames || !b.stacks || !b.threads || !b.samples)
        b.n_frames = b.n_stacks = b.n_threads = b.n_samples = 0;
    for (size_t i = 0; i < b.n_frames; i++)
        lies_keep_module(&b.frames[i].frame);
    /* Most are as they have to be; else ids are twice, missing, or their own parents. */
    bool right = l->plausible || lies_chance(l, 700);
    for (size_t i = 0; right && i < b.n_frames; i++)
        b.frames[i].frame_id = (uint32_t)i + 1;
    for (size_t i = 0; right && i < b.n_stacks; i++)
        b.stacks[i] = (struct model_stack_def){(uint32_t)i + 1, (uint32_t)i, (uint32_t)(i % b.n_frames) + 1};
    for (size_t i = 0; right && i < b.n_samples; i++) {
        b.samples[i].stack_id = (uint32_t)(i % (b.n_stacks + 1));
        b.samples[i].native_id = 0;
        b.samples[i].tid = b.threads[i % b.n_threads].tid;
    }
    (void)wire_put_samples_notify(out, &b);
    arena_fini(&b.arena);
}

/* ---- tables ---- */

static void lies_ring_value(struct lies *l, const struct ring_column_def *c, union ring_value *v,
                            struct arena *a) {
    int labels = 0;
    switch (c->type) {
    case RING_TIMESTAMP:
        v->f = clock_epoch_s() - (double)lies_below(l, 100);
        break;
    case RING_DOUBLE:
        v->f = lies_double(l);
        break;
    case RING_TEXT:
        v->s = lies_copy_text(l, a);
        break;
    case RING_ENUM:
        while (c->labels && c->labels[labels])
            labels++;
        v->i = labels ? (int64_t)lies_below(l, (uint64_t)labels) : 0;
        break;
    case RING_BOOL:
        v->i = (int64_t)lies_below(l, 2);
        break;
    case RING_ID:
        v->i = (int64_t)lies_below(l, 5);
        break;
    default:
        v->i = lies_int(l);
        break;
    }
}

static struct ring_reader *lies_make_ring(struct lies *l, const struct ring_table_def *def) {
    struct ring_owner owner = {
        .pid = l->pid, .rank = RING_INT_NULL, .host = "liar", .started_at = clock_epoch_s()};
    int fd = memfd_create("table", MFD_CLOEXEC);
    int again = fd >= 0 ? dup(fd) : -1;
    struct err e;
    struct ring *ring = fd >= 0 ? ring_create(fd, def, &owner, 256 * 1024, &e) : NULL;
    if (!ring)
        return NULL;
    struct arena a;
    arena_init(&a, LIES_ROOM);
    for (int row = 0; row < 40; row++) {
        union ring_value v[RING_MAX_COLUMNS];
        memset(v, 0, sizeof v);
        for (size_t i = 0; def->columns[i].name; i++)
            lies_ring_value(l, &def->columns[i], &v[i], &a);
        (void)ring_append(ring, v);
    }
    arena_fini(&a);
    (void)ring_flush(ring);
    struct ring_reader *r = ring_reader_open_fd(again, "a table", &e);
    if (r)
        (void)ring_reader_refresh(r, &e);
    ring_close(ring);
    return r;
}

/* Bytes with some of them wrong. */
static void lies_bend(struct lies *l, char *data, size_t *len) {
    for (uint64_t n = 1 + lies_below(l, 4); n > 0 && *len > 0; n--) {
        size_t at = (size_t)lies_below(l, lies_chance(l, 500) ? *len : (*len < 64 ? *len : 64));
        switch (lies_below(l, 5)) {
        case 0:
            data[at] = (char)(data[at] ^ 1 << lies_below(l, 8));
            break;
        case 1:
            data[at] = (char)(lies_chance(l, 500) ? 0xff : 0x7f);
            break;
        case 2:
            for (size_t i = 0; i < 8 && at + i < *len; i++)
                data[at + i] = (char)(lies_chance(l, 500) ? 0xff : 0);
            break;
        case 3: {
            int64_t v = lies_int(l);
            for (size_t i = 0; i < 8 && at + i < *len; i++)
                data[at + i] = (char)(v >> 8 * i);
            break;
        }
        default:
            *len = lies_chance(l, 300) ? at : *len;
            break;
        }
    }
}

/* Made when somebody asks for them first: most do not. */
static void lies_make_rings(struct lies *l) {
    static const enum ring_table kept[LIES_RINGS] = {RING_SAMPLES, RING_STACKS, RING_FRAMES,
                                                     RING_STEPS,   RING_FACTS,  RING_EVENTS};
    for (size_t i = 0; i < LIES_RINGS; i++)
        if (!l->rings[i])
            l->rings[i] = lies_make_ring(l, &RING_TABLES[kept[i]]);
}

static void lies_put_tables(struct lies *l, uint32_t id, struct strbuf *out) {
    struct wire_table tables[LIES_RINGS];
    char *heads[LIES_RINGS] = {NULL};
    size_t n = 0;
    lies_make_rings(l);
    for (size_t i = 0; i < LIES_RINGS; i++) {
        size_t len;
        if (!l->rings[i])
            continue;
        const void *head = ring_reader_head(l->rings[i], &len);
        heads[n] = malloc(len + 1);
        if (!heads[n])
            continue;
        memcpy(heads[n], head, len);
        if (!l->plausible && lies_chance(l, 150))
            lies_bend(l, heads[n], &len);
        tables[n] = (struct wire_table){.head = heads[n], .head_len = len};
        (void)snprintf(tables[n].name, sizeof tables[n].name, "%s", ring_reader_info(l->rings[i])->name);
        if (lies_chance(l, 50)) {
            size_t text_len;
            (void)snprintf(tables[n].name, sizeof tables[n].name, "%s", lies_text(l, &text_len));
        }
        n++;
    }
    (void)wire_put_tables(out, id, tables, n);
    for (size_t i = 0; i < n; i++)
        free(heads[i]);
}

static void lies_put_pulled(struct lies *l, uint32_t id, const struct wire_message *m, struct strbuf *out) {
    struct wire_pull want = {.rows = 0};
    struct wire_pulled answer = {.pieces = ""};
    struct strbuf pieces;
    struct err e;
    size_t at = (size_t)lies_below(l, LIES_RINGS);
    lies_make_rings(l);
    strbuf_init(&pieces, WIRE_MAX_MESSAGE);
    if (wire_get_pull(m, &want, &e) == 0)
        for (size_t i = 0; i < LIES_RINGS; i++)
            if (l->rings[i] && strcmp(ring_reader_info(l->rings[i])->name, want.table) == 0)
                at = i;
    if (l->rings[at]) {
        struct ring_mark have = {.first_seq = want.first_seq, .rows = want.rows, .heap_used = want.heap_used};
        if (lies_chance(l, 100))
            have = (struct ring_mark){.first_seq = 0};
        (void)ring_sync_next(l->rings[at], &have, RING_SYNC_MIN, &pieces);
        if (!l->plausible && lies_chance(l, 400) && pieces.len)
            lies_bend(l, pieces.data, &pieces.len);
    }
    answer.pieces = pieces.data ? pieces.data : (const void *)"";
    answer.len = pieces.len;
    answer.more = lies_chance(l, 100);
    answer.anew = lies_chance(l, 50);
    (void)wire_put_pulled(out, id, &answer);
    strbuf_fini(&pieces);
}

static void lies_put_rows(struct lies *l, uint32_t id, const struct wire_message *m, struct strbuf *out) {
    struct wire_rows_ask ask;
    struct wire_rows rows = {.n_columns = 0};
    struct strbuf columns, values;
    struct arena a;
    struct err e;
    const struct ring_table_def *def = &RING_TABLES[lies_below(l, RING_TABLE_COUNT)];
    arena_init(&a, LIES_ROOM);
    strbuf_init(&columns, 0);
    strbuf_init(&values, 0);
    if (wire_get_rows_ask(m, &ask, &e) == 0)
        for (size_t i = 0; i < RING_TABLE_COUNT; i++)
            if (strcmp(RING_TABLES[i].name, ask.table) == 0)
                def = &RING_TABLES[i];
    struct wire_value row[RING_MAX_COLUMNS];
    size_t n = 0;
    for (; n < RING_MAX_COLUMNS && def->columns[n].name; n++)
        row[n] = (struct wire_value){
            .kind = WIRE_VALUE_TEXT, .s = def->columns[n].name, .len = strlen(def->columns[n].name)};
    (void)wire_add_row(&columns, row, n);
    rows.n_columns = n;
    rows.n_rows = lies_many(l);
    for (size_t r = 0; r < rows.n_rows; r++) {
        for (size_t i = 0; i < n; i++) {
            union ring_value v = {.i = 0};
            lies_ring_value(l, &def->columns[i], &v, &a);
            if (def->columns[i].type == RING_TEXT)
                row[i] = v.s ? (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = v.s, .len = strlen(v.s)}
                             : (struct wire_value){.kind = WIRE_VALUE_NULL};
            else if (def->columns[i].type == RING_DOUBLE || def->columns[i].type == RING_TIMESTAMP)
                row[i] = (struct wire_value){.kind = WIRE_VALUE_DOUBLE, .f = v.f};
            else
                row[i] = (struct wire_value){.kind = WIRE_VALUE_INT, .i = v.i};
        }
        (void)wire_add_row(&values, row, n);
    }
    size_t len;
    rows.columns = columns.data;
    rows.columns_len = columns.len;
    rows.rows = values.data;
    rows.rows_len = values.len;
    rows.more = lies_chance(l, 100);
    (void)snprintf(rows.note, sizeof rows.note, "%s", lies_chance(l, 300) ? lies_text(l, &len) : "");
    (void)wire_put_rows(out, id, &rows);
    strbuf_fini(&columns);
    strbuf_fini(&values);
    arena_fini(&a);
}

/* ---- code ---- */

/* How a debugger stands. */
static void lies_put_debugger(struct lies *l, uint32_t id, enum wire_method method, struct strbuf *out) {
    struct wire_debugger d = {.on = false};
    arena_init(&d.arena, LIES_ROOM);
    lies_fill(l, field_debug_answer(method), &d, &d.arena);
    if (lies_chance(l, 800))
        d.refused = d.raised = d.missing = NULL;
    if (lies_chance(l, 800))
        d.timed_out = d.unended = false;
    if (lies_chance(l, 600))
        d.address = "127.0.0.1:3344";
    if (method == WIRE_PAUSE) {
        d.n_threads = (size_t)lies_below(l, 6);
        d.threads = lies_rows(l, &FIELD_PAUSED_THREADS, d.n_threads, &d.arena);
        d.n_threads = d.threads ? d.n_threads : 0;
    }
    (void)wire_put_debugger(out, id, method, &d);
    wire_debugger_fini(&d);
}

static void lies_put_evaluated(struct lies *l, uint32_t id, struct strbuf *out) {
    struct wire_evaluated v = {.duration_ms = lies_double(l)};
    struct wire_text *texts[] = {&v.result, &v.output, &v.type, &v.message, &v.traceback};
    struct strbuf kept[5];
    for (size_t i = 0; i < 5; i++) {
        size_t len;
        strbuf_init(&kept[i], 0);
        const char *s = lies_text(l, &len);
        (void)strbuf_add(&kept[i], s, len);
        if (lies_chance(l, i < 2 ? 900 : 200))
            *texts[i] = (struct wire_text){strbuf_str(&kept[i]), kept[i].len};
    }
    v.truncated = lies_chance(l, 100);
    v.timed_out = lies_chance(l, 100);
    v.unended = lies_chance(l, 50);
    (void)wire_put_evaluated(out, id, &v);
    for (size_t i = 0; i < 5; i++)
        strbuf_fini(&kept[i]);
}

static void lies_put_listening(struct lies *l, uint32_t id, struct strbuf *out) {
    struct wire_listening v = {.address = ""};
    char *const texts[] = {v.address, v.token, v.looking_token, v.file};
    const size_t caps[] = {sizeof v.address, sizeof v.token, sizeof v.looking_token, sizeof v.file};
    size_t len;
    for (size_t i = 0; i < 4; i++)
        (void)snprintf(texts[i], caps[i], "%s", lies_text(l, &len));
    (void)wire_put_listening(out, id, &v);
}

static void lies_put_error(struct lies *l, uint32_t id, struct strbuf *out) {
    size_t len;
    (void)wire_put_error(out, id, (enum wire_error)lies_below(l, 8), lies_text(l, &len));
}

/* ---- what is well formed, made wrong ---- */

static size_t lies_count(struct codec_cursor c) {
    struct codec_token t;
    size_t n = 0;
    while (c.at < c.end && codec_read(&c, &t) == 0)
        n++;
    return n;
}

static void lies_write_wrong(struct lies *l, struct strbuf *out) {
    size_t len;
    const char *s;
    switch (lies_below(l, 12)) {
    case 0:
        codec_write_nil(out);
        break;
    case 1:
        codec_write_bool(out, lies_chance(l, 500));
        break;
    case 2:
    case 3:
        codec_write_int(out, lies_int(l));
        break;
    case 4:
        codec_write_uint(out, UINT64_MAX - lies_below(l, 3));
        break;
    case 5:
        codec_write_double(out, lies_double(l));
        break;
    case 6:
        (void)strbuf_add(out, "\xcb\x7f\xf8\0\0\0\0\0\0",
                         9); /* not a number: codec_write_double would not say it */
        break;
    case 7:
        s = lies_text(l, &len);
        codec_write_bin(out, s, len);
        break;
    case 8:
        codec_write_array(out, 0);
        break;
    case 9:
        codec_write_map(out, 0);
        break;
    default:
        s = lies_text(l, &len);
        codec_write_strn(out, s, len);
        break;
    }
}

static void lies_rewrite(struct lies *l, struct codec_cursor *c, size_t *left, struct strbuf *out);

/* The head of an array or map is written with another count than has members. */
static size_t lies_wrong_count(struct lies *l, size_t n) {
    switch (lies_below(l, 5)) {
    case 0:
        return n + 1;
    case 1:
        return n ? n - 1 : 1;
    case 2:
        return 0;
    case 3:
        return UINT32_MAX;
    default:
        return (size_t)lies_below(l, 1 << 20);
    }
}

/* Copies the value at the cursor; what is number `*left` from here becomes another one, is left out, or is there twice. */
static void lies_rewrite(struct lies *l, struct codec_cursor *c, size_t *left, struct strbuf *out) {
    struct codec_cursor from = *c;
    struct codec_token t;
    bool here = (*left)-- == 0;
    if (codec_read(c, &t) != 0) {
        c->at = c->end;
        return;
    }
    if (here && lies_chance(l, 700)) {
        *c = from;
        if (codec_skip(c) != 0)
            c->at = c->end;
        lies_write_wrong(l, out);
        return;
    }
    if (t.type != CODEC_ARRAY && t.type != CODEC_MAP) {
        (void)strbuf_add(out, from.at, (size_t)(c->at - from.at));
        if (here)
            (void)strbuf_add(out, from.at, (size_t)(c->at - from.at));
        return;
    }
    size_t n = t.count, said = here ? lies_wrong_count(l, n) : n;
    if (t.type == CODEC_ARRAY)
        codec_write_array(out, said);
    else
        codec_write_map(out, said);
    for (size_t i = 0; i < (t.type == CODEC_MAP ? 2 * n : n) && c->at < c->end; i++)
        lies_rewrite(l, c, left, out);
}

/* `from` is what was written at the end of `out` from `start` on: it is replaced by the same with something wrong. */
static void lies_spoil(struct lies *l, struct strbuf *out, size_t start) {
    struct strbuf whole;
    if (out->failed || out->len <= start)
        return;
    strbuf_init(&whole, 0);
    (void)strbuf_add(&whole, out->data + start, out->len - start);
    struct codec_cursor c = {.at = (const uint8_t *)whole.data,
                             .end = (const uint8_t *)whole.data + whole.len};
    size_t n = lies_count(c), target = n ? (size_t)lies_below(l, n) : 0;
    out->len = start;
    if (lies_chance(l, 30)) { /* any bytes wrong */
        size_t len = whole.len;
        lies_bend(l, whole.data, &len);
        (void)strbuf_add(out, whole.data, len);
    } else if (n < 100000) {
        lies_rewrite(l, &c, &target, out);
    }
    strbuf_fini(&whole);
}

/* ---- answers ---- */

void lies_answer(struct lies *l, const struct wire_message *m, struct strbuf *out) {
    uint32_t id = wire_message_id(m);
    enum wire_method method = wire_message_method(m);
    struct wire_arm arm;
    struct err e;
    size_t start = out->len;
    bool spoilt = lies_chance(l, method == WIRE_HELLO ? 40 : 250);
    l->said++;
    if (lies_chance(l, method == WIRE_HELLO ? 10 : 40)) {
        lies_put_error(l, id, out);
        return;
    }
    switch (method) {
    case WIRE_HELLO:
        lies_put_target(l, id, out);
        break;
    case WIRE_THREADS:
        lies_put_threads(l, id, false, out);
        break;
    case WIRE_STATUS:
        lies_put_status(l, id, out);
        break;
    case WIRE_TABLES:
        lies_put_tables(l, id, out);
        break;
    case WIRE_PULL:
        lies_put_pulled(l, id, m, out);
        break;
    case WIRE_ROWS:
        lies_put_rows(l, id, m, out);
        break;
    case WIRE_EVAL:
    case WIRE_COMPLETE:
        lies_put_evaluated(l, id, out);
        break;
    case WIRE_DEBUG:
    case WIRE_PAUSE:
    case WIRE_CATCH:
        lies_put_debugger(l, id, method, out);
        break;
    case WIRE_LISTEN:
        lies_put_listening(l, id, out);
        break;
    case WIRE_ARM:
        if (wire_get_arm(m, &arm, &e) == 0) {
            (void)snprintf(l->armed, sizeof l->armed, "%s", arm.what);
            l->looks = 0;
        }
        (void)wire_put_ok(out, id);
        spoilt = lies_chance(l, 50);
        break;
    default:
        (void)wire_put_ok(out, id);
        break;
    }
    if (spoilt && !l->plausible)
        lies_spoil(l, out, start);
}

void lies_notify(struct lies *l, enum wire_stream stream, struct strbuf *out) {
    size_t len, start = out->len;
    l->said++;
    if (lies_chance(l, 10))
        (void)wire_put_bye(out, lies_text(l, &len));
    else if (stream == WIRE_STREAM_SAMPLES)
        lies_put_samples(l, out);
    else
        lies_put_threads(l, 0, true, out);
    if (!l->plausible && lies_chance(l, 150))
        lies_spoil(l, out, start);
}

void lies_init(struct lies *l, uint64_t seed, int64_t pid, int64_t uid, const char *const *paths) {
    *l = (struct lies){
        .state = seed * 0x9e3779b97f4a7c15 + 1, .pid = pid, .uid = uid, .paths = paths, .epoch = 1};
    while (paths[l->n_paths])
        l->n_paths++;
}

void lies_fini(struct lies *l) {
    for (size_t i = 0; i < LIES_RINGS; i++)
        if (l->rings[i])
            ring_reader_close(l->rings[i]);
}
