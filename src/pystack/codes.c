/* SPDX-License-Identifier: Apache-2.0 */
/* codes: see codes.h. Layout: Include/cpython/code.h. */
#include "pystack/codes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "pystack/lines.h"

#define CODES_TABLE_MAX ((size_t)1 << 20)  /* bytes of one line table */
#define CODES_BYTES_MAX ((size_t)16 << 20) /* bytes of all entries */
#define CODES_FUNC_MAX 1024
#define CODES_FILE_MAX 4096
#define CODES_FRESH_NS                                                                                       \
    (2 * CLOCK_NS_PER_S) /* how long an entry is believed without reading its strings again */
#define CODES_MEMO 4
#define CODES_PRINTS 3               /* name, file, line table */
#define CODES_PRINT 64               /* bytes after the object's head: length, hash, the first characters */
#define CODES_PRINT_LEAST 32         /* a small object may lie at the very end of a mapping */
#define CODES_UNITS_MAX (1ULL << 28) /* code units of one object */
#define CODES_SPAN_MAX 65536         /* first traceable instruction: prologues are short */

/* Everything of the code object that names it. Code that is made and dropped again and again gets the same addresses for
 * its parts too, so the beginnings of what they hold are part of it. */
struct codes_key {
    uint64_t addr, type, size, name, qualname, filename, table;
    int32_t firstlineno, firsttraceable;
    uint8_t prints[CODES_PRINTS][CODES_PRINT];
};

struct pystack_code {
    struct codes_key key;
    uint64_t checked_ns; /* when its strings and table were read */
    uint64_t used_call;
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

int pystack_codes_init(struct pystack_codes *c) {
    *c = (struct pystack_codes){0};
    c->slots = calloc((size_t)PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS, sizeof(struct pystack_code *));
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
    *c = (struct pystack_codes){0};
}

void pystack_codes_begin(struct pystack_codes *c, struct arena *arena) {
    c->call++;
    c->now_ns = clock_mono_ns();
    c->arena = arena;
}

static int codes_read_print(struct pystack_reader *r, uint64_t object, uint8_t *out) {
    uint64_t from = object + (uint64_t)r->off.object_size;
    if (mem_read(&r->mem, from, out, CODES_PRINT) == 0)
        return 0;
    return mem_read(&r->mem, from, out, CODES_PRINT_LEAST);
}

static int codes_read_key(struct pystack_reader *r, uint64_t addr, struct codes_key *key) {
    const struct pystack_offsets *o = &r->off;
    uint8_t bytes[PYSTACK_STRUCT_MAX] = {0};
    if (!pystack_is_pointer(addr) || mem_read(&r->mem, addr, bytes, (size_t)o->code_size) != 0)
        return -1;
    *key = (struct codes_key){
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
    if (!pystack_is_pointer(key->type) || !pystack_is_pointer(key->name) ||
        !pystack_is_pointer(key->filename) || !pystack_is_pointer(key->table) ||
        (o->code_qualname && !pystack_is_pointer(key->qualname)) || key->firsttraceable < 0 ||
        key->firsttraceable > CODES_SPAN_MAX || key->size > CODES_UNITS_MAX)
        return -1;
    if (codes_read_print(r, key->qualname ? key->qualname : key->name, key->prints[0]) != 0 ||
        codes_read_print(r, key->filename, key->prints[1]) != 0 ||
        codes_read_print(r, key->table, key->prints[2]) != 0)
        return -1;
    return 0;
}

static bool codes_same_key(const struct codes_key *a, const struct codes_key *b) {
    return a->addr == b->addr && a->type == b->type && a->size == b->size && a->name == b->name &&
           a->qualname == b->qualname && a->filename == b->filename && a->table == b->table &&
           a->firstlineno == b->firstlineno && a->firsttraceable == b->firsttraceable &&
           memcmp(a->prints, b->prints, sizeof a->prints) == 0;
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

/* Make an entry in `slot`, which is free. */
static struct pystack_code *codes_load(struct pystack_codes *c, struct pystack_reader *r,
                                       const struct codes_key *key, struct pystack_code **slot) {
    struct pystack_code *code = calloc(1, sizeof *code);
    if (!code)
        return NULL;
    *slot = code;
    code->key = *key;
    code->checked_ns = c->now_ns;
    code->func = codes_read_text(r, key->qualname ? key->qualname : key->name, CODES_FUNC_MAX);
    code->file = codes_read_text(r, key->filename, CODES_FILE_MAX);
    struct codes_key again;
    /* A code object that is freed meanwhile gives other strings; then it is not the same any more. */
    bool ok = code->func && code->file && codes_read_table(r, code) == 0 &&
              codes_read_key(r, key->addr, &again) == 0 && codes_same_key(key, &again);
    if (!ok) {
        codes_drop(c, slot);
        return NULL;
    }
    code->bytes = sizeof *code + strlen(code->func) + strlen(code->file) + code->table_len + 3;
    c->bytes += code->bytes;
    for (unsigned i = 0; i < CODES_MEMO; i++)
        code->memo[i].at = -1;
    return code;
}

static struct pystack_code **codes_set_of(struct pystack_codes *c, uint64_t addr) {
    uint64_t hash = (addr >> 4) * 0x9E3779B97F4A7C15ULL;
    return c->slots + (hash >> 32) % PYSTACK_CODES_SETS * PYSTACK_CODES_WAYS;
}

struct pystack_code *pystack_codes_get(struct pystack_codes *c, struct pystack_reader *r, uint64_t addr) {
    struct pystack_code **set = codes_set_of(c, addr), **victim = set;
    for (size_t i = 0; i < PYSTACK_CODES_WAYS; i++) {
        struct pystack_code *code = set[i];
        if (code && code->key.addr == addr) {
            victim = &set[i];
            break;
        }
        if (!code || (*victim && code->used_call < (*victim)->used_call))
            victim = &set[i];
    }
    struct pystack_code *known = *victim && (*victim)->key.addr == addr ? *victim : NULL;
    if (known && known->used_call == c->call)
        return known;
    struct codes_key key;
    if (codes_read_key(r, addr, &key) != 0)
        return NULL;
    if (!known || !codes_same_key(&known->key, &key) || c->now_ns - known->checked_ns > CODES_FRESH_NS) {
        if (c->bytes > CODES_BYTES_MAX)
            codes_drop_all(c);
        codes_drop(c, victim);
        known = codes_load(c, r, &key, victim);
    }
    if (known)
        known->used_call = c->call;
    return known;
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

int pystack_code_line(struct pystack_code *code, const struct pystack_reader *r, int64_t at) {
    for (unsigned i = 0; at >= 0 && i < CODES_MEMO; i++)
        if (code->memo[i].at == at)
            return code->memo[i].line;
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
