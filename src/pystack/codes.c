/* SPDX-License-Identifier: Apache-2.0 */
/* codes: see codes.h. Layout: Include/cpython/code.h. */
#include "pystack/codes.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

#define CODES_TABLE_MAX ((size_t)1 << 20)   /* bytes of one line table */
#define CODES_TABLE_LONG ((size_t)32 << 10) /* no hand-written function has a longer one, */
/* and so many bytes of such are read in one call */
#define CODES_LONG_MAX ((size_t)32 << 20)
#define CODES_BYTES_MAX ((size_t)16 << 20) /* bytes of all entries */
#define CODES_FUNC_MAX 1024
#define CODES_FILE_MAX 4096
#define CODES_FRESH_NS (2 * CLOCK_NS_PER_S) /* an entry is believed at most so long without a check */
/* and without reading its strings again: a CODES_TRUST-th of its age, between that and this */
#define CODES_STRINGS_NS (60 * CLOCK_NS_PER_S)
#define CODES_REREAD 4096 /* bytes of a table that are compared with what was read before */
/* checks of a code object, each at a moment of its own, until it counts as settled */
#define CODES_PROOFS 8
#define CODES_PROOF_NS (30 * CLOCK_NS_PER_MS) /* between two of them */
/* an object of 8 s is believed for a second without a check */
#define CODES_TRUST 8
#define CODES_MEMO 4
#define CODES_STRUCT_MAX 320         /* of a code object, without its code */
#define CODES_HEAD_MAX 128           /* of a str or bytes object */
#define CODES_UNITS_MAX (1ULL << 28) /* code units of one object */
#define CODES_ADDRESSES (1ULL << 32) /* maximum distance of objects */
#define CODES_SPAN_MAX 65536         /* first traceable instruction: prologues are short */

struct pystack_code {
    struct pystack_code_key key;
    uint64_t since_ns;   /* the key has been the same at every check since */
    bool changes;        /* another code object was at this address before */
    uint64_t seen_ns;    /* when its key was last read and unchanged */
    uint64_t proved_ns;  /* when it was last found alive */
    unsigned proofs;     /* and how often so far */
    uint64_t checked_ns; /* when its strings and table were read */
    uint64_t used_call, checked_call;
    char *func, *file;
    uint8_t *table;
    size_t table_len;
    size_t bytes;
    const char *arena_func, *arena_file; /* copies of call `arena_call` */
    uint64_t arena_call;
    struct {
        int64_t at;
        int line;
    } memo[CODES_MEMO];
    unsigned memo_next;
};

/* Code objects that are checked together. */
struct pystack_codes_group {
    struct pystack_code_key keys[PYSTACK_CODES_AT_ONCE];
    size_t n;
    struct iovec pieces[3 * PYSTACK_CODES_AT_ONCE];
    uint8_t bytes[PYSTACK_CODES_AT_ONCE * PYSTACK_CODES_WORK_BYTES];
};

int pystack_codes_init(struct pystack_codes *c) {
    *c = (struct pystack_codes){0};
    c->slots = calloc((size_t)PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS, sizeof(struct pystack_code *));
    c->group = calloc(1, sizeof *c->group);
    return c->slots ? 0 : -1;
}

static void codes_drop(struct pystack_codes *c, struct pystack_code **slot) {
    struct pystack_code *code = *slot;
    if (!code)
        return;
    c->bytes -= code->bytes;
    free(code->func);
    free(code->file);
    free(code->table);
    free(code);
    *slot = NULL;
}

static void codes_drop_all(struct pystack_codes *c) {
    for (size_t i = 0; c->slots && i < (size_t)PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS; i++)
        codes_drop(c, &c->slots[i]);
}

void pystack_codes_fini(struct pystack_codes *c) {
    codes_drop_all(c);
    free(c->slots);
    free(c->group);
    *c = (struct pystack_codes){0};
}

void pystack_codes_begin(struct pystack_codes *c, struct arena *arena) {
    c->call++;
    c->now_ns = clock_mono_ns();
    c->arena = arena;
    if (c->group)
        c->group->n = 0;
    pystack_codes_next(c);
}

void pystack_codes_next(struct pystack_codes *c) {
    c->lines_left = CODES_LONG_MAX;
    c->searches_left = PYSTACK_CODES_SEARCHES;
}

/* Read the object at `addr`, whose head has `head` bytes, with the first bytes after that; `*n`
 * is the number read. It may be at the very end of a mapping. */
static int codes_read_object(struct pystack_reader *r, uint64_t addr, size_t head, uint8_t *buf, size_t *n) {
    *n = head + PYSTACK_CODE_PRINT;
    if (mem_read(&r->mem, addr, buf, *n) == 0)
        return 0;
    size_t to_page_end = (size_t)(4096 - addr % 4096);
    if (to_page_end < head || to_page_end >= *n)
        return -1;
    *n = to_page_end;
    return mem_read(&r->mem, addr, buf, *n);
}

static void codes_put_data(struct pystack_code_print *p, const uint8_t *data, size_t have, uint64_t bytes) {
    size_t n = bytes < have ? (size_t)bytes : have;
    memcpy(p->data, data, n < PYSTACK_CODE_PRINT ? n : PYSTACK_CODE_PRINT);
}

/* `buf`: `have` bytes of a str, at least its head. */
static int codes_parse_str(const struct pystack_offsets *o, const uint8_t *buf, size_t have,
                           struct pystack_code_print *p) {
    uint32_t state = (uint32_t)pystack_get_i32(buf, o->str_state), kind_mask = (uint32_t)o->str_kind_mask;
    p->form = state & (kind_mask | (uint32_t)o->str_compact_mask | (uint32_t)o->str_ascii_mask);
    p->length = pystack_get_u64(buf, o->str_length);
    size_t at = (size_t)(state & (uint32_t)o->str_ascii_mask ? o->str_ascii_data : o->str_compact_data);
    uint64_t width = (state & kind_mask) / (kind_mask & -kind_mask);
    if ((state & (uint32_t)o->str_compact_mask) && p->length < CODES_TABLE_MAX && at < have)
        codes_put_data(p, buf + at, have - at, p->length * width);
    return 0;
}

/* The same for a bytes object. */
static int codes_parse_bytes(const struct pystack_offsets *o, const uint8_t *buf, size_t have,
                             struct pystack_code_print *p) {
    size_t head = (size_t)o->bytes_data;
    p->length = pystack_get_u64(buf, o->var_size);
    codes_put_data(p, buf + head, have - head, p->length);
    return 0;
}

static int codes_read_str_print(struct pystack_reader *r, uint64_t addr, struct pystack_code_print *p) {
    uint8_t buf[CODES_HEAD_MAX + PYSTACK_CODE_PRINT];
    size_t have;
    if (codes_read_object(r, addr, (size_t)r->off.str_ascii_data, buf, &have) != 0)
        return -1;
    return codes_parse_str(&r->off, buf, have, p);
}

static int codes_read_bytes_print(struct pystack_reader *r, uint64_t addr, struct pystack_code_print *p) {
    uint8_t buf[CODES_HEAD_MAX + PYSTACK_CODE_PRINT];
    size_t have;
    if (codes_read_object(r, addr, (size_t)r->off.bytes_data, buf, &have) != 0)
        return -1;
    return codes_parse_bytes(&r->off, buf, have, p);
}

/* Freeing an object usually changes only its first word, the reference count: it becomes 0, or
 * leads to the next free block (Objects/obmalloc.c; malloc(3) overwrites the type too). A count
 * never looks like an address, not even with the flags of 3.14 in its upper bits. A
 * free-threaded build has two counts behind its first word, and both become 0 (Include/object.h:
 * ob_ref_local, and ob_ref_shared above two bits). */
static bool codes_is_alive(const struct pystack_offsets *o, const uint8_t *bytes) {
    uint64_t count = pystack_get_u64(bytes, o->object_type - 8);
    if (o->gil_enabled >= 0)
        return pystack_get_i32(bytes, o->object_type - 12) != 0 || count >> 2 != 0;
    return count != 0 && (count < CODES_ADDRESSES || count >> 47);
}

/* Parse the struct of the code object itself. 0, or -1 if it is not one. */
static int codes_parse_struct(const struct pystack_offsets *o, uint64_t addr, const uint8_t *bytes,
                              struct pystack_code_key *key) {
    *key = (struct pystack_code_key){
        .addr = addr,
        .type = pystack_get_u64(bytes, o->object_type),
        .name = pystack_get_u64(bytes, o->code_name),
        .filename = pystack_get_u64(bytes, o->code_filename),
        .table = pystack_get_u64(bytes, o->code_linetable),
        .firstlineno = pystack_get_i32(bytes, o->code_firstlineno),
    };
    if (o->code_qualname) { /* from 3.11 on, with the code bytes in the object */
        key->qualname = pystack_get_u64(bytes, o->code_qualname);
        key->size = pystack_get_u64(bytes, o->var_size);
        key->firsttraceable = pystack_get_i32(bytes, o->code_firsttraceable);
    }
    bool ok = codes_is_alive(o, bytes) && pystack_is_pointer(key->type) && pystack_is_pointer(key->name) &&
              pystack_is_pointer(key->filename) && pystack_is_pointer(key->table) &&
              (!o->code_qualname || pystack_is_pointer(key->qualname)) && key->firsttraceable >= 0 &&
              key->firsttraceable <= CODES_SPAN_MAX && key->size <= CODES_UNITS_MAX;
    return ok ? 0 : -1;
}

static bool codes_fits(const struct pystack_offsets *o) {
    return o->code_size <= CODES_STRUCT_MAX && o->str_ascii_data <= CODES_HEAD_MAX &&
           o->bytes_data <= CODES_HEAD_MAX;
}

int pystack_codes_read_key(struct pystack_reader *r, uint64_t addr, struct pystack_code_key *key) {
    const struct pystack_offsets *o = &r->off;
    uint8_t bytes[CODES_STRUCT_MAX] = {0};
    if (!pystack_is_pointer(addr) || !codes_fits(o) ||
        mem_read(&r->mem, addr, bytes, (size_t)o->code_size) != 0 ||
        codes_parse_struct(o, addr, bytes, key) != 0)
        return -1;
    if (codes_read_str_print(r, key->qualname ? key->qualname : key->name, &key->name_print) != 0 ||
        codes_read_str_print(r, key->filename, &key->file_print) != 0 ||
        codes_read_bytes_print(r, key->table, &key->table_print) != 0)
        return -1;
    return 0;
}

/* ---- many keys with few calls ---- */

static void codes_ask(struct pystack_codes_work *w, uint64_t addr, size_t len) {
    w->pieces[w->n_pieces++] = (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
}

/* Read the struct of each; its type becomes 0 if there is none. */
static void codes_read_structs(struct pystack_reader *r, struct pystack_code_key *keys, size_t n,
                               struct pystack_codes_work *w) {
    size_t size = (size_t)r->off.code_size;
    w->n_pieces = 0;
    for (size_t i = 0; i < n; i++)
        codes_ask(w, keys[i].addr, size);
    size_t got = mem_read_many(&r->mem, w->pieces, n, w->bytes);
    for (size_t i = 0; i < n; i++) {
        uint8_t *bytes = w->bytes + i * size;
        if ((i >= got && mem_read(&r->mem, keys[i].addr, bytes, size) != 0) ||
            codes_parse_struct(&r->off, keys[i].addr, bytes, &keys[i]) != 0)
            keys[i].type = 0;
    }
}

/* Index of the first key of the same file; `i` itself if it is the first. */
static size_t codes_same_file(const struct pystack_code_key *keys, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (keys[k].type && keys[k].filename == keys[i].filename)
            return k;
    return i;
}

/* Read the contents of the objects that the structs point to. Those of a key that did not come
 * are read one by one. */
static void codes_read_prints(struct pystack_reader *r, struct pystack_code_key *keys, size_t n,
                              struct pystack_codes_work *w) {
    const struct pystack_offsets *o = &r->off;
    size_t str = (size_t)o->str_ascii_data + PYSTACK_CODE_PRINT;
    size_t table = (size_t)o->bytes_data + PYSTACK_CODE_PRINT, at = 0, piece = 0;
    w->n_pieces = 0;
    for (size_t i = 0; i < n; i++) {
        if (!keys[i].type)
            continue;
        codes_ask(w, keys[i].qualname ? keys[i].qualname : keys[i].name, str);
        codes_ask(w, keys[i].table, table);
        if (codes_same_file(keys, i) == i)
            codes_ask(w, keys[i].filename, str);
    }
    size_t got = mem_read_many(&r->mem, w->pieces, w->n_pieces, w->bytes);
    for (size_t i = 0; i < n; i++) {
        if (!keys[i].type)
            continue;
        size_t file = codes_same_file(keys, i);
        piece += file == i ? 3 : 2;
        if (piece > got) {
            if (pystack_codes_read_key(r, keys[i].addr, &keys[i]) != 0)
                keys[i].type = 0;
            continue;
        }
        codes_parse_str(o, w->bytes + at, str, &keys[i].name_print);
        codes_parse_bytes(o, w->bytes + at + str, table, &keys[i].table_print);
        at += str + table;
        if (file == i) {
            codes_parse_str(o, w->bytes + at, str, &keys[i].file_print);
            at += str;
        } else {
            keys[i].file_print = keys[file].file_print;
        }
    }
}

void pystack_codes_read_keys(struct pystack_reader *r, struct pystack_code_key *keys, size_t n,
                             struct pystack_codes_work *w) {
    _Static_assert((CODES_HEAD_MAX + PYSTACK_CODE_PRINT) * 3 <= PYSTACK_CODES_WORK_BYTES &&
                       CODES_STRUCT_MAX <= PYSTACK_CODES_WORK_BYTES,
                   "what is read of one code object");
    for (size_t i = 0; i < n; i += PYSTACK_CODES_AT_ONCE) {
        size_t some = n - i < PYSTACK_CODES_AT_ONCE ? n - i : PYSTACK_CODES_AT_ONCE;
        if (!codes_fits(&r->off))
            continue;
        codes_read_structs(r, keys + i, some, w);
        codes_read_prints(r, keys + i, some, w);
    }
}

static bool codes_same_print(const struct pystack_code_print *a, const struct pystack_code_print *b) {
    return a->length == b->length && a->form == b->form && memcmp(a->data, b->data, sizeof a->data) == 0;
}

static bool codes_same_key(const struct pystack_code_key *a, const struct pystack_code_key *b) {
    return a->addr == b->addr && a->type == b->type && a->size == b->size && a->name == b->name &&
           a->qualname == b->qualname && a->filename == b->filename && a->table == b->table &&
           a->firstlineno == b->firstlineno && a->firsttraceable == b->firsttraceable &&
           codes_same_print(&a->name_print, &b->name_print) &&
           codes_same_print(&a->file_print, &b->file_print) &&
           codes_same_print(&a->table_print, &b->table_print);
}

/* True if a plain ASCII str is all in its print. */
static bool codes_is_whole_text(const struct pystack_offsets *o, const struct pystack_code_print *p) {
    uint32_t plain = (uint32_t)o->str_compact_mask | (uint32_t)o->str_ascii_mask;
    return (p->form & plain) == plain && p->length <= PYSTACK_CODE_PRINT;
}

static char *codes_read_text(struct pystack_reader *r, uint64_t addr, size_t cap) {
    char buf[CODES_FILE_MAX];
    ssize_t n = pystack_read_str(r, addr, buf, cap < sizeof buf ? cap : sizeof buf);
    return n < 0 ? NULL : strndup(buf, (size_t)n);
}

static int codes_read_table(struct pystack_reader *r, struct pystack_code *code) {
    uint64_t n;
    if (pystack_read_u64_at(r, code->key.table, r->off.var_size, &n) != 0 || n > CODES_TABLE_MAX)
        return -1;
    code->table = malloc((size_t)n + 1);
    code->table_len = (size_t)n;
    return code->table && mem_read(&r->mem, code->key.table + (uint64_t)r->off.bytes_data, code->table,
                                   (size_t)n) == 0
               ? 0
               : -1;
}

static uint16_t *codes_by_file(struct pystack_codes *c, uint64_t filename) {
    uint64_t hash = (filename >> 4) * 0x9E3779B97F4A7C15ULL;
    return &c->by_file[(hash >> 32) % PYSTACK_CODES_FILES];
}

/* The entry in `slot` is complete. */
static void codes_settle(struct pystack_codes *c, struct pystack_code **slot) {
    struct pystack_code *code = *slot;
    code->bytes = sizeof *code + strlen(code->func) + strlen(code->file) + code->table_len + 3;
    c->bytes += code->bytes;
    for (unsigned i = 0; i < CODES_MEMO; i++)
        code->memo[i].at = -1;
    *codes_by_file(c, code->key.filename) = (uint16_t)(slot - c->slots);
}

/* Make an entry in `slot`, which is free. */
static struct pystack_code *codes_load(struct pystack_codes *c, struct pystack_reader *r,
                                       const struct pystack_code_key *key, struct pystack_code **slot) {
    struct pystack_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    *slot = code;
    code->key = *key;
    code->checked_ns = c->now_ns;
    code->since_ns = code->seen_ns = clock_mono_ns();
    code->func = codes_read_text(r, key->qualname ? key->qualname : key->name, CODES_FUNC_MAX);
    code->file = codes_read_text(r, key->filename, CODES_FILE_MAX);
    struct pystack_code_key again;
    /* A code object that is freed at the same time gives other strings; then it is no longer the
     * same. */
    bool ok = code->func && code->file && codes_read_table(r, code) == 0 &&
              pystack_codes_read_key(r, key->addr, &again) == 0 && codes_same_key(key, &again);
    if (!ok) {
        codes_drop(c, slot);
        return NULL;
    }
    codes_settle(c, slot);
    return code;
}

/* ---- a code object that is gone: what its description holds of it ---- */

/* Text of a plain ASCII str that starts with this; NULL if it is not complete. Owned by the
 * caller. */
static char *codes_print_text(const struct pystack_offsets *o, const struct pystack_code_print *p) {
    return codes_is_whole_text(o, p) ? strndup((const char *)p->data, (size_t)p->length) : NULL;
}

/* The entry being made has no file yet. */
static bool codes_has_file(const struct pystack_code *code, const struct pystack_code_key *key) {
    return code && code->file && code->key.filename == key->filename &&
           codes_same_print(&code->key.file_print, &key->file_print);
}

/* The file, from any other code object of the same file: the last one made, otherwise by a
 * search of all, of which a call makes few. */
static char *codes_find_file(struct pystack_codes *c, const struct pystack_code_key *key) {
    const struct pystack_code *last = c->slots[*codes_by_file(c, key->filename)];
    if (codes_has_file(last, key))
        return strdup(last->file);
    if (c->searches_left == 0)
        return NULL;
    c->searches_left--;
    for (size_t i = 0; i < (size_t)PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS; i++)
        if (codes_has_file(c->slots[i], key))
            return strdup(c->slots[i]->file);
    return NULL;
}

static bool codes_print_table(const struct pystack_code_print *p, struct pystack_code *code) {
    if (p->length > PYSTACK_CODE_PRINT)
        return false;
    code->table = malloc((size_t)p->length + 1);
    code->table_len = (size_t)p->length;
    if (code->table)
        memcpy(code->table, p->data, (size_t)p->length);
    return code->table != NULL;
}

/* Make an entry in `slot`, which is free, from the description alone. */
static bool codes_rebuild(struct pystack_codes *c, const struct pystack_reader *r,
                          const struct pystack_code_key *key, struct pystack_code **slot) {
    struct pystack_code *code = calloc(1, sizeof *code);
    if (!code)
        return false;
    *slot = code;
    code->key = *key;
    code->checked_ns = code->since_ns = c->now_ns;
    code->func = codes_print_text(&r->off, &key->name_print);
    code->file = codes_print_text(&r->off, &key->file_print);
    if (!code->file)
        code->file = codes_find_file(c, key);
    if (!code->func || !code->file || !codes_print_table(&key->table_print, code)) {
        codes_drop(c, slot);
        return false;
    }
    codes_settle(c, slot);
    return true;
}

static struct pystack_code **codes_set_of(struct pystack_codes *c, uint64_t addr) {
    uint64_t hash = (addr >> 4) * 0x9E3779B97F4A7C15ULL;
    return c->slots + (hash >> 32) % PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS;
}

/* The place in `set` of the object that `key` describes; otherwise of one at the same address, a
 * free one, or the one unused for the longest time. Sets `*changes` if another object is at that
 * address. */
static struct pystack_code **codes_find(struct pystack_code **set, const struct pystack_code_key *key,
                                        bool *changes) {
    struct pystack_code **victim = set;
    *changes = false;
    for (size_t i = 0; i < PYSTACK_CODES_WAYS; i++) {
        if (set[i] && codes_same_key(&set[i]->key, key))
            return &set[i];
        *changes = *changes || (set[i] && set[i]->key.addr == key->addr);
        if (*victim && (!set[i] || set[i]->used_call < (*victim)->used_call))
            victim = &set[i];
    }
    return victim;
}

/* The object was just found at its address, independently of a thread that runs it. */
static void codes_prove(struct pystack_code *code, uint64_t now_ns) {
    if (code->proofs >= CODES_PROOFS || now_ns - code->proved_ns < CODES_PROOF_NS)
        return;
    code->proofs++;
    code->proved_ns = now_ns;
}

/* Code that is made, run and dropped again and again looks the same whenever it runs, but at
 * other moments another object is there, or none. So a new one is checked in between, and only
 * if it is there each time is it one that stays. */
static void codes_recheck(struct pystack_codes *c, struct pystack_reader *r, struct pystack_code *code) {
    struct pystack_code_key now;
    if (code->changes || code->proofs >= CODES_PROOFS || c->now_ns - code->proved_ns < CODES_PROOF_NS)
        return;
    if (pystack_codes_read_key(r, code->key.addr, &now) == 0 && codes_same_key(&now, &code->key))
        codes_prove(code, c->now_ns);
    else
        code->changes = true;
}

/* The entry of `addr` that was checked within this call. */
static struct pystack_code *codes_find_checked(const struct pystack_codes *c, struct pystack_code **set,
                                               uint64_t addr) {
    for (size_t i = 0; i < PYSTACK_CODES_WAYS; i++)
        if (set[i] && set[i]->key.addr == addr && set[i]->checked_call == c->call)
            return set[i];
    return NULL;
}

/* True if its strings and table are to be read again. */
static bool codes_is_stale(const struct pystack_codes *c, const struct pystack_code *code) {
    uint64_t trust = code->changes ? 0 : (c->now_ns - code->since_ns) / CODES_TRUST;
    trust = trust < CODES_FRESH_NS ? CODES_FRESH_NS : trust < CODES_STRINGS_NS ? trust : CODES_STRINGS_NS;
    return c->now_ns - code->checked_ns > trust;
}

/* Read again what its key, which is the same, does not hold. False if that is not the same, or much. */
static bool codes_reread(struct pystack_codes *c, struct pystack_reader *r, struct pystack_code *code) {
    const struct pystack_code_key *key = &code->key;
    uint8_t now[CODES_REREAD];
    if (code->changes || code->table_len > sizeof now || key->table_print.length != code->table_len ||
        !codes_is_whole_text(&r->off, &key->name_print) || !codes_is_whole_text(&r->off, &key->file_print))
        return false;
    if (code->table_len > PYSTACK_CODE_PRINT &&
        (mem_read(&r->mem, key->table + (uint64_t)r->off.bytes_data, now, code->table_len) != 0 ||
         memcmp(now, code->table, code->table_len) != 0))
        return false;
    code->checked_ns = c->now_ns;
    return true;
}

/* True if its strings and table are those of the object with the same key. `changes`: another one was
 * seen at its address. */
static bool codes_is_current(struct pystack_codes *c, struct pystack_reader *r, struct pystack_code *code,
                             bool changes) {
    return !codes_is_stale(c, code) || (!changes && codes_reread(c, r, code));
}

/* Its key was just read, and is the same. */
static void codes_note_checked(const struct pystack_codes *c, struct pystack_code *code) {
    codes_prove(code, c->now_ns);
    code->used_call = code->checked_call = c->call;
    code->seen_ns = c->now_ns;
}

struct pystack_code *pystack_codes_get(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr) {
    struct pystack_code **set = codes_set_of(c, addr), *code = codes_find_checked(c, set, addr);
    struct pystack_code_key key;
    bool changes;
    if (code)
        return code;
    if (pystack_codes_read_key(r, addr, &key) != 0)
        return NULL;
    struct pystack_code **slot = codes_find(set, &key, &changes);
    code = *slot && codes_same_key(&(*slot)->key, &key) ? *slot : NULL;
    if (!code || !codes_is_current(c, r, code, changes)) {
        /* An entry that shared its address with another one was not there all the time. */
        uint64_t since = code && !changes ? code->since_ns : 0, proved = since ? code->proved_ns : 0;
        unsigned proofs = since ? code->proofs : 0;
        changes = changes || (code && code->changes);
        if (c->bytes > CODES_BYTES_MAX)
            codes_drop_all(c);
        codes_drop(c, slot);
        code = codes_load(c, r, &key, slot);
        if (code) {
            code->since_ns = since ? since : code->since_ns;
            code->proofs = proofs;
            code->proved_ns = proved;
            code->changes = changes;
        }
    }
    if (code)
        codes_note_checked(c, code);
    return code;
}

/* The entry of a code object that has long been the same: it is not checked each time. */
static struct pystack_code *codes_find_settled(const struct pystack_codes *c, uint64_t addr) {
    struct pystack_code **set = codes_set_of((struct pystack_codes *)(uintptr_t)c, addr);
    for (size_t i = 0; i < PYSTACK_CODES_WAYS; i++) {
        struct pystack_code *code = set[i];
        if (!code || code->key.addr != addr || !pystack_code_is_settled(code) ||
            code->seen_ns < code->since_ns)
            continue;
        uint64_t trust = (code->seen_ns - code->since_ns) / CODES_TRUST;
        if (c->now_ns - code->seen_ns > (trust < CODES_FRESH_NS ? trust : CODES_FRESH_NS))
            return NULL;
        code->used_call = c->call;
        return code;
    }
    return NULL;
}

struct pystack_code *pystack_codes_get_running(struct pystack_codes *c, struct pystack_reader *r,
                                               uint64_t addr) {
    struct pystack_code *code = codes_find_settled(c, addr);
    return code ? code : pystack_codes_get(c, r, addr);
}

static struct pystack_code *codes_get_described(struct pystack_codes *c, struct pystack_reader *r,
                                                const struct pystack_code_key *then, uint64_t taken_ns) {
    bool changes;
    struct pystack_code **slot = codes_find(codes_set_of(c, then->addr), then, &changes);
    if (!*slot || !codes_same_key(&(*slot)->key, then)) {
        struct pystack_code *now = pystack_codes_get(c, r, then->addr);
        if (now && codes_same_key(&now->key, then))
            return now;
        slot = codes_find(codes_set_of(c, then->addr), then, &changes);
        codes_drop(c, slot);
        if (!codes_rebuild(c, r, then, slot))
            return NULL;
        (*slot)->changes = true;
    }
    (*slot)->used_call = c->call;
    codes_recheck(c, r, *slot);
    if (!(*slot)->changes && taken_ns > (*slot)->seen_ns)
        (*slot)->seen_ns = taken_ns;
    return *slot;
}

struct pystack_code *pystack_codes_get_old(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr,
                                           const struct pystack_code_key *then, uint64_t taken_ns) {
    if (then)
        return codes_get_described(c, r, then, taken_ns);
    struct pystack_code *code = codes_find_settled(c, addr);
    if (code)
        return code;
    code = pystack_codes_get(c, r, addr);
    return code && !code->changes && code->since_ns < taken_ns ? code : NULL;
}

/* ---- checks of many entries with few calls ---- */

static bool codes_is_expected(const struct pystack_codes *c, uint64_t addr) {
    for (size_t i = 0; i < c->group->n; i++)
        if (c->group->keys[i].addr == addr)
            return true;
    return false;
}

static bool codes_has_entry(struct pystack_codes *c, uint64_t addr) {
    struct pystack_code **set = codes_set_of(c, addr);
    for (size_t i = 0; i < PYSTACK_CODES_WAYS; i++)
        if (set[i] && set[i]->key.addr == addr)
            return true;
    return false;
}

void pystack_codes_expect(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr) {
    if (!c->group || codes_find_checked(c, codes_set_of(c, addr), addr) || codes_is_expected(c, addr) ||
        !codes_has_entry(c, addr) || codes_find_settled(c, addr))
        return;
    c->group->keys[c->group->n++] = (struct pystack_code_key){.addr = addr};
    if (c->group->n == PYSTACK_CODES_AT_ONCE)
        pystack_codes_check_expected(c, r);
}

void pystack_codes_check_expected(struct pystack_codes *c, struct pystack_reader *r) {
    struct pystack_codes_group *g = c->group;
    if (!g || g->n == 0)
        return;
    struct pystack_codes_work work = {.pieces = g->pieces, .bytes = g->bytes};
    pystack_codes_read_keys(r, g->keys, g->n, &work);
    for (size_t i = 0; i < g->n; i++) {
        bool changes;
        struct pystack_code *code = *codes_find(codes_set_of(c, g->keys[i].addr), &g->keys[i], &changes);
        /* what has changed is read again when it is asked for */
        if (g->keys[i].type && code && codes_same_key(&code->key, &g->keys[i]) &&
            codes_is_current(c, r, code, changes))
            codes_note_checked(c, code);
    }
    g->n = 0;
}

bool pystack_code_is_settled(const struct pystack_code *code) {
    return !code->changes && code->proofs >= CODES_PROOFS;
}

static void codes_copy(struct pystack_codes *c, struct pystack_code *code) {
    if (code->arena_call == c->call)
        return;
    code->arena_call = c->call;
    code->arena_func = arena_strdup(c->arena, code->func);
    code->arena_file = arena_strdup(c->arena, code->file);
}

const char *pystack_code_func(struct pystack_codes *c, struct pystack_code *code) {
    codes_copy(c, code);
    return code->arena_func;
}

const char *pystack_code_file(struct pystack_codes *c, struct pystack_code *code) {
    codes_copy(c, code);
    return code->arena_file;
}

int pystack_code_line(struct pystack_codes *c, struct pystack_code *code, const struct pystack_reader *r,
                      int64_t at) {
    for (unsigned i = 0; at >= 0 && i < CODES_MEMO; i++)
        if (code->memo[i].at == at)
            return code->memo[i].line;
    if (code->table_len > CODES_TABLE_LONG) {
        if (c->lines_left < code->table_len)
            return 0;
        c->lines_left -= code->table_len;
    }
    int line = pystack_find_line((enum pystack_line_style)r->off.line_style, code->table, code->table_len,
                                 code->key.firstlineno, at);
    if (at >= 0) {
        code->memo[code->memo_next].at = at;
        code->memo[code->memo_next].line = line;
        code->memo_next = (code->memo_next + 1) % CODES_MEMO;
    }
    return line;
}

int64_t pystack_code_first_byte(const struct pystack_code *code) {
    return (int64_t)code->key.firsttraceable * 2;
}

int64_t pystack_code_n_bytes(const struct pystack_code *code) { return (int64_t)code->key.size * 2; }

/* ---- tables of lines ---- */

#define LINES_NONE (-128) /* 3.10: the range has no line */
#define LINES_UNIT 2      /* bytes of a code unit */

/* A line is an int of the interpreter; the sum of a broken table may exceed one. */
static int lines_checked(int64_t line) { return line > 0 && line <= INT32_MAX ? (int)line : 0; }

static int lines_find_lnotab(const uint8_t *t, size_t n, int first, int64_t at, bool only_forward) {
    int64_t line = first, addr = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        addr += t[i];
        if (addr > at)
            break;
        line += only_forward ? t[i + 1] : (int8_t)t[i + 1];
    }
    return lines_checked(line);
}

static int lines_find_table(const uint8_t *t, size_t n, int first, int64_t at) {
    int64_t line = first, addr = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        bool none = (int8_t)t[i + 1] == LINES_NONE;
        if (!none)
            line += (int8_t)t[i + 1];
        if (at < addr + t[i])
            return none ? 0 : lines_checked(line);
        addr += t[i];
    }
    return 0;
}

struct lines_cursor {
    const uint8_t *p, *end;
};

static uint64_t lines_read_varint(struct lines_cursor *c) {
    uint64_t v = 0;
    for (unsigned shift = 0; c->p < c->end; shift += 6) {
        uint8_t b = *c->p++;
        if (shift < 60)
            v |= (uint64_t)(b & 63) << shift;
        if (!(b & 64))
            break;
    }
    return v;
}

static int64_t lines_read_svarint(struct lines_cursor *c) {
    uint64_t v = lines_read_varint(c);
    return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* Codes of an entry: Objects/locations.md. */
enum { LINES_CODE_ONE_LINE = 10, LINES_CODE_NO_COLUMNS = 13, LINES_CODE_LONG = 14, LINES_CODE_NONE = 15 };

/* Line delta of the entry whose first byte had `code`; the search for the next entry skips the
 * rest of it. */
static int64_t lines_read_delta(struct lines_cursor *c, int code) {
    if (code == LINES_CODE_NO_COLUMNS || code == LINES_CODE_LONG)
        return lines_read_svarint(c);
    return code >= LINES_CODE_ONE_LINE && code < LINES_CODE_NO_COLUMNS ? code - LINES_CODE_ONE_LINE : 0;
}

static int lines_find_locations(const uint8_t *t, size_t n, int first, int64_t at) {
    struct lines_cursor c = {.p = t, .end = t + n};
    int64_t line = first, addr = 0;
    while (c.p < c.end) {
        uint8_t b = *c.p++;
        int code = (b >> 3) & 15;
        line += lines_read_delta(&c, code);
        if (line > INT32_MAX || line < INT32_MIN)
            return 0;
        addr += ((b & 7) + 1) * LINES_UNIT;
        if (at < addr)
            return code == LINES_CODE_NONE ? 0 : lines_checked(line);
        /* Only the first byte of an entry has its top bit set. */
        while (c.p < c.end && !(*c.p & 128))
            c.p++;
    }
    return 0;
}

int pystack_find_line(enum pystack_line_style style, const uint8_t *table, size_t n, int first, int64_t at) {
    if (at < 0)
        return lines_checked(first);
    switch (style) {
    case PYSTACK_LINE_LNOTAB:
    case PYSTACK_LINE_FORWARD:
        return lines_find_lnotab(table, n, first, at, style == PYSTACK_LINE_FORWARD);
    case PYSTACK_LINE_TABLE:
        return lines_find_table(table, n, first, at);
    case PYSTACK_LINE_LOCATIONS:
        return lines_find_locations(table, n, first, at);
    }
    return 0;
}
