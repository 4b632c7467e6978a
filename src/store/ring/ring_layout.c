/* SPDX-License-Identifier: Apache-2.0 */
/* ring_layout: see ring_format.h. Makes and checks the head of a ring's file; nothing unchecked
 * is trusted. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "store/ring/ring_format.h"

#define RING_ENTRY_ALIGN 64U
#define RING_PAGE 4096U
/* rows of a chunk: a column of 2 bits then fills 8 bytes, at which each begins */
#define RING_ROWS_STEP 32U
#define RING_CHUNKS_WANTED 32U
#define RING_CHUNKS_PLAIN 1024U
#define RING_CHUNK_MAX ((uint32_t)128 * 1024)
#define RING_CHUNK_MIN ((uint32_t)8 * 1024)

unsigned ring_file_type(const struct ring_column_def *c) {
    size_t labels = 0;
    if (c->type == RING_BOOL)
        return RING_FILE_FLAG;
    while (c->type == RING_ENUM && labels <= RING_FEW && c->labels && c->labels[labels])
        labels++;
    return c->type == RING_ENUM && labels <= RING_FEW ? RING_FILE_FEW : c->type;
}

unsigned ring_column_type(unsigned file_type) {
    return file_type == RING_FILE_FEW ? RING_ENUM : file_type == RING_FILE_FLAG ? RING_BOOL : file_type;
}

unsigned ring_file_bits(unsigned file_type) {
    switch (file_type) {
    case RING_DOUBLE:
    case RING_INT64:
        return 64;
    case RING_TIMESTAMP:
    case RING_INT32:
    case RING_UINT32:
    case RING_ID:
        return 32;
    case RING_TEXT:
        return 16;
    case RING_ENUM:
    case RING_BOOL: /* of minor 0 */
        return 4;
    case RING_FILE_FEW:
    case RING_FILE_FLAG:
        return 2;
    }
    return 0;
}

uint32_t ring_checksum(const void *data, size_t len) {
    const uint8_t *p = data;
    uint32_t h = 0x811c9dc5U;
    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint32_t word;
        memcpy(&word, p + i, 4);
        h = (h ^ word) * 0x01000193U;
        h ^= h >> 15;
    }
    return h;
}

uint32_t ring_head_checksum(const void *head, uint32_t len) {
    const size_t member = offsetof(struct ring_file_head, checksum), after = member + sizeof(uint32_t);
    /* Two sums, so that equal changes before and after do not cancel out: the first is rotated. */
    uint32_t before = ring_checksum(head, member);
    return (before << 13 | before >> 19) ^ ring_checksum((const char *)head + after, len - after);
}

uint32_t ring_entry_checksum(const struct ring_entry *entry) {
    return ring_checksum(entry, offsetof(struct ring_entry, checksum));
}

/* ---- making ---- */

struct ring_writer_head {
    char *bytes;
    uint32_t used;
    bool full;
};

/* Offset of a copy of the string; 0 for NULL. */
static uint32_t ring_put_text(struct ring_writer_head *w, const char *s) {
    if (!s)
        return 0;
    size_t n = strlen(s) + 1;
    if (n > RING_MAX_HEAD - w->used) {
        w->full = true;
        return 0;
    }
    uint32_t at = w->used;
    memcpy(w->bytes + at, s, n);
    w->used += (uint32_t)n;
    return at;
}

static uint32_t ring_put_labels(struct ring_writer_head *w, const char *const *labels) {
    uint32_t at = 0;
    for (size_t i = 0; labels && labels[i]; i++) {
        uint32_t here = ring_put_text(w, labels[i]);
        if (i == 0)
            at = here;
        else if (here)
            w->bytes[here - 1] = '\n'; /* the NUL of the one before */
    }
    return at;
}

static int ring_check_def(const struct ring_table_def *def, size_t *n, unsigned *row_bits, bool *text,
                          struct err *e) {
    size_t times = 0;
    *n = 0;
    *row_bits = 0;
    *text = false;
    for (const struct ring_column_def *c = def->columns; c->name; c++) {
        unsigned bits = ring_file_bits(ring_file_type(c));
        if (bits == 0 || strlen(c->name) >= RING_MAX_NAME || ++*n > RING_MAX_COLUMNS)
            return err_set(e, ERR_FAILED, "table %s: column %s cannot be stored", def->name, c->name);
        *row_bits += bits;
        *text = *text || c->type == RING_TEXT;
        times += c->type == RING_TIMESTAMP;
    }
    if (*n == 0 || times > 1 || strlen(def->name) >= RING_MAX_NAME)
        return err_set(e, ERR_FAILED,
                       "table %s cannot be stored: no column, two times, or its name is too long", def->name);
    return 0;
}

/* Choose number and size of chunks. A chunk is the unit of loss, so there should be many; each has
 * its own strings, so those with strings should not be small. Without, small ones are written with
 * fewer system calls: their columns lie so close together that one is enough (ring.c: RING_GAP). */
static int ring_plan_chunks(struct ring_file_head *h, const struct ring_table_def *def, size_t bytes,
                            unsigned row_bits, bool text, struct err *e) {
    size_t chunk = bytes / (text ? RING_CHUNKS_WANTED : RING_CHUNKS_PLAIN) / RING_PAGE * RING_PAGE;
    chunk = chunk > RING_CHUNK_MAX ? RING_CHUNK_MAX : chunk < RING_CHUNK_MIN ? RING_CHUNK_MIN : chunk;
    unsigned percent = !text ? 0 : def->text_percent ? def->text_percent : 10;
    size_t heap = chunk * percent / 100 / RING_ENTRY_ALIGN * RING_ENTRY_ALIGN;
    if (heap > RING_MAX_CHUNK_TEXT)
        heap = RING_MAX_CHUNK_TEXT;
    size_t rows = (chunk - heap) * 8 / row_bits / RING_ROWS_STEP * RING_ROWS_STEP;
    uint64_t fixed = h->entry_at + RING_PAGE;
    uint64_t n = bytes > fixed ? (bytes - fixed) / (chunk + sizeof(struct ring_entry)) : 0;
    if (n > RING_MAX_CHUNKS)
        n = RING_MAX_CHUNKS;
    if (n < 2 || rows == 0 || percent > 90)
        return err_set(e, ERR_FAILED, "table %s: %zu bytes are too little for it", def->name, bytes);
    h->n_chunks = (uint32_t)n;
    h->chunk_bytes = (uint32_t)chunk;
    h->chunk_rows = (uint32_t)rows;
    h->heap_bytes = (uint32_t)heap;
    h->heap_at = (uint32_t)(chunk - heap);
    h->entry_stride = sizeof(struct ring_entry);
    h->chunk_at = (h->entry_at + n * sizeof(struct ring_entry) + RING_PAGE - 1) / RING_PAGE * RING_PAGE;
    return 0;
}

size_t ring_whole_text_bytes(const struct ring_table_def *def) {
    unsigned percent = def->text_percent ? def->text_percent : 10;
    size_t texts = 0;
    for (const struct ring_column_def *c = def->columns; c->name; c++)
        texts += c->type == RING_TEXT;
    /* of one row, as ring.c counts them (text_max) */
    size_t heap = 2 + texts * (RING_MAX_TEXT + 4) + RING_ENTRY_ALIGN;
    size_t chunk = (heap * 100 / percent + RING_PAGE) / RING_PAGE * RING_PAGE;
    return texts ? (chunk < RING_CHUNK_MAX ? chunk : RING_CHUNK_MAX) * RING_CHUNKS_WANTED : 0;
}

static void ring_put_columns(struct ring_writer_head *w, struct ring_file_head *h,
                             const struct ring_table_def *def) {
    uint32_t at = 0;
    h->time_column = RING_NO_COLUMN;
    for (uint32_t i = 0; i < h->n_columns; i++) {
        const struct ring_column_def *c = &def->columns[i];
        struct ring_file_column col = {
            .name_at = ring_put_text(w, c->name),
            .unit_at = ring_put_text(w, c->unit),
            .help_at = ring_put_text(w, c->help),
            .labels_at = c->type == RING_ENUM ? ring_put_labels(w, c->labels) : 0,
            .data_at = at,
            .type = (uint8_t)ring_file_type(c),
            .bits = (uint8_t)ring_file_bits(ring_file_type(c)),
        };
        if (c->type == RING_TIMESTAMP)
            h->time_column = i;
        at += h->chunk_rows * col.bits / 8;
        memcpy(w->bytes + h->column_at + i * sizeof col, &col, sizeof col);
    }
}

int ring_layout_make(void *head, const struct ring_table_def *def, const struct ring_owner *owner,
                     size_t bytes, struct err *e) {
    struct ring_file_head h = {.byte_order = RING_BYTE_ORDER, .major = RING_MAJOR, .minor = RING_MINOR};
    size_t n;
    unsigned row_bits;
    bool text;
    if (ring_check_def(def, &n, &row_bits, &text, e) != 0)
        return -1;
    memset(head, 0, RING_MAX_HEAD);
    struct ring_writer_head w = {.bytes = head};
    h.n_columns = (uint32_t)n;
    h.column_at = sizeof h;
    h.column_stride = sizeof(struct ring_file_column);
    w.used = (uint32_t)(sizeof h + n * sizeof(struct ring_file_column));
    h.name_at = ring_put_text(&w, def->name);
    h.alias_at = ring_put_text(&w, def->alias);
    h.help_at = ring_put_text(&w, def->help);
    h.host_at = ring_put_text(&w, owner->host);
    uint32_t names_end = w.used;
    ring_put_columns(&w, &h, def); /* once for the length, once with the numbers of rows */
    h.head_bytes = (w.used + 3) / 4 * 4;
    h.entry_at = (h.head_bytes + RING_ENTRY_ALIGN - 1) / RING_ENTRY_ALIGN * RING_ENTRY_ALIGN;
    if (w.full)
        return err_set(e, ERR_FAILED, "table %s: its description is too long", def->name);
    if (ring_plan_chunks(&h, def, bytes, row_bits, text, e) != 0)
        return -1;
    w.used = names_end;
    ring_put_columns(&w, &h, def);
    memcpy(h.magic, RING_MAGIC, sizeof h.magic);
    h.pid = owner->pid;
    h.start_ticks = owner->start_ticks;
    h.rank = owner->rank;
    h.started_at = owner->started_at;
    h.created_at = owner->made_at > 0 ? owner->made_at : clock_epoch_s();
    h.retention_s = def->retention_s;
    h.cost = (uint32_t)def->cost;
    memcpy(head, &h, sizeof h);
    h.checksum = ring_head_checksum(head, h.head_bytes);
    memcpy(head, &h, sizeof h);
    return 0;
}

/* ---- checking ---- */

/* True if there is a string at `at` (0: none) that ends within the head. */
static bool ring_text_ok(const char *bytes, uint32_t len, uint32_t at, size_t most) {
    return at == 0 || (at >= sizeof(struct ring_file_head) && at < len &&
                       memchr(bytes + at, '\0', len - at) && strlen(bytes + at) < most);
}

static int ring_check_head(const struct ring_file_head *h, size_t have, const char *path, struct err *e) {
    if (have < sizeof *h || memcmp(h->magic, RING_MAGIC, sizeof h->magic) != 0)
        return err_set(e, ERR_FAILED, "%s: not a ring table of probing-top", path);
    if (h->byte_order != RING_BYTE_ORDER)
        return err_set(e, ERR_FAILED, "%s: written on a machine of another byte order", path);
    if (h->major != RING_MAJOR)
        return err_set(e, ERR_FAILED,
                       "%s: has format %u, this program reads format %u; use the version that wrote it", path,
                       h->major, RING_MAJOR);
    bool ok = h->head_bytes >= sizeof *h && h->head_bytes <= have && h->head_bytes % 4 == 0 &&
              h->column_at >= sizeof *h && h->column_stride >= sizeof(struct ring_file_column) &&
              h->n_columns > 0 && h->n_columns <= RING_MAX_COLUMNS && h->column_at <= h->head_bytes &&
              h->column_stride <= RING_PAGE &&
              (uint64_t)h->n_columns * h->column_stride <= h->head_bytes - h->column_at;
    ok = ok && h->entry_stride >= sizeof(struct ring_entry) && h->entry_stride <= RING_PAGE &&
         h->entry_stride % 4 == 0 && h->n_chunks > 0 && h->n_chunks <= RING_MAX_CHUNKS &&
         h->entry_at >= h->head_bytes && h->entry_at <= RING_MAX_HEAD + RING_PAGE &&
         h->chunk_at <= UINT32_MAX && h->chunk_at >= h->entry_at + (uint64_t)h->n_chunks * h->entry_stride;
    ok = ok && h->chunk_bytes > 0 && h->chunk_bytes <= RING_MAX_CHUNK_BYTES && h->chunk_rows > 0 &&
         h->chunk_rows <= RING_MAX_CHUNK_ROWS && h->heap_bytes <= RING_MAX_CHUNK_TEXT &&
         h->heap_at <= h->chunk_bytes && h->heap_bytes <= h->chunk_bytes - h->heap_at &&
         (h->time_column == RING_NO_COLUMN || h->time_column < h->n_columns);
    return ok ? 0 : err_set(e, ERR_FAILED, "%s: its description is damaged", path);
}

bool ring_name_ok(const char *s, bool table) {
    size_t dots = 0, i = 0;
    for (; s[i]; i++) {
        bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';
        bool digit = s[i] >= '0' && s[i] <= '9';
        bool first = i == 0 || s[i - 1] == '.';
        dots += s[i] == '.';
        if (!letter && !(digit && !first) && !(s[i] == '.' && !first && table))
            return false;
    }
    return i > 0 && s[i - 1] != '.' && dots <= 1;
}

static bool ring_column_ok(const char *bytes, const struct ring_file_head *h,
                           const struct ring_file_column *c) {
    uint32_t len = h->head_bytes;
    unsigned bits = ring_file_bits(c->type);
    if (!c->name_at || !ring_text_ok(bytes, len, c->name_at, RING_MAX_NAME) ||
        !ring_name_ok(bytes + c->name_at, false))
        return false;
    if (!ring_text_ok(bytes, len, c->unit_at, len) || !ring_text_ok(bytes, len, c->help_at, len) ||
        !ring_text_ok(bytes, len, c->labels_at, len))
        return false;
    return (bits == 0 || bits == c->bits) && c->bits <= 64 && c->data_at % 8 == 0 &&
           c->data_at <= h->chunk_bytes &&
           ((uint64_t)h->chunk_rows * c->bits + 7) / 8 <= h->chunk_bytes - c->data_at;
}

int ring_layout_check(const void *head, size_t have, const char *path, struct err *e) {
    const char *bytes = head;
    struct ring_file_head h = {.magic = ""};
    memcpy(&h, bytes, have < sizeof h ? have : sizeof h);
    if (ring_check_head(&h, have, path, e) != 0)
        return -1;
    uint32_t len = h.head_bytes;
    bool ok = ring_head_checksum(bytes, len) == h.checksum && h.name_at &&
              ring_text_ok(bytes, len, h.name_at, RING_MAX_NAME) && ring_name_ok(bytes + h.name_at, true) &&
              ring_text_ok(bytes, len, h.alias_at, RING_MAX_NAME) &&
              (!h.alias_at || ring_name_ok(bytes + h.alias_at, true)) &&
              ring_text_ok(bytes, len, h.help_at, len) && ring_text_ok(bytes, len, h.host_at, len);
    for (uint32_t i = 0; ok && i < h.n_columns; i++) {
        struct ring_file_column c;
        memcpy(&c, bytes + h.column_at + (size_t)i * h.column_stride, sizeof c);
        ok = ring_column_ok(bytes, &h, &c) && (i != h.time_column || c.type == RING_TIMESTAMP);
    }
    return ok ? 0 : err_set(e, ERR_FAILED, "%s: its description is damaged", path);
}
