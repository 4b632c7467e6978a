/* SPDX-License-Identifier: Apache-2.0 */
/* dicts: see dicts.h. */
#include "pystack/dicts.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

#define DICTS_BLOCK 64                     /* entries read at once */
#define DICTS_KIND_GENERAL 0               /* DICT_KEYS_GENERAL: entries have a hash */
#define DICTS_FLAG_INLINE_VALUES (1U << 2) /* Py_TPFLAGS_INLINE_VALUES, 3.13 */
#define DICTS_FLAG_MANAGED (1U << 4)       /* Py_TPFLAGS_MANAGED_DICT, 3.11 on */
#define DICTS_WORD 8

static int dicts_read_keys(struct pystack_reader *r, uint64_t keys, struct pystack_dict_table *t) {
    const struct pystack_offsets *o = &r->off;
    uint8_t head[PYSTACK_STRUCT_MAX];
    uint64_t index_bytes;
    bool with_hash = true;
    if (!pystack_is_pointer(keys) || mem_read(&r->mem, keys, head, (size_t)o->keys_nentries + 8) != 0)
        return -1;
    uint64_t n = pystack_get_u64(head, o->keys_nentries);
    if (o->keys_style != PYSTACK_KEYS_LOG2) {
        uint64_t size = pystack_get_u64(head, o->keys_size);
        if (size == 0 || size > UINT32_MAX || (size & (size - 1)) != 0)
            return -1;
        index_bytes = size <= 0xff ? size : size <= 0xffff ? 2 * size : 4 * size;
        if (o->keys_style == PYSTACK_KEYS_HASHED) {
            index_bytes = 0;
            n = size;
        }
    } else {
        uint8_t log2 = head[o->keys_log2_index_bytes];
        if (log2 > 40)
            return -1;
        index_bytes = 1ULL << log2;
        with_hash = head[o->keys_kind] == DICTS_KIND_GENERAL;
    }
    if (n > UINT32_MAX)
        return -1;
    t->n = n < PYSTACK_DICT_MAX ? (uint32_t)n : PYSTACK_DICT_MAX;
    t->entries = keys + (uint64_t)o->keys_indices + index_bytes;
    t->entry_size = with_hash ? 3 * DICTS_WORD : 2 * DICTS_WORD;
    t->key_at = with_hash ? DICTS_WORD : 0;
    t->value_at = t->key_at + DICTS_WORD;
    return 0;
}

int pystack_dict_open(struct pystack_reader *r, uint64_t dict, struct pystack_dict_table *t) {
    uint64_t keys, values;
    if (!pystack_is_pointer(dict) || pystack_read_u64_at(r, dict, r->off.dict_keys, &keys) != 0 ||
        pystack_read_u64_at(r, dict, r->off.dict_values, &values) != 0 || dicts_read_keys(r, keys, t) != 0)
        return -1;
    t->values = values ? values + (uint64_t)r->off.values_data : 0;
    return 0;
}

/* Entries that were read together. */
struct dicts_block {
    uint8_t entries[DICTS_BLOCK * 3 * DICTS_WORD];
    uint64_t values[DICTS_BLOCK]; /* where they are not beside the keys */
};

static int dicts_read_block(struct pystack_reader *r, const struct pystack_dict_table *t, uint32_t from,
                            uint32_t count, struct dicts_block *b) {
    if (mem_read(&r->mem, t->entries + (uint64_t)from * t->entry_size, b->entries,
                 (size_t)count * t->entry_size) != 0)
        return -1;
    return t->values ? mem_read(&r->mem, t->values + (uint64_t)from * DICTS_WORD, b->values,
                                (size_t)count * DICTS_WORD)
                     : 0;
}

/* Key and value of an entry by its place in the block. */
static void dicts_entry(const struct pystack_dict_table *t, const struct dicts_block *b, uint32_t i,
                        uint64_t *key, uint64_t *value) {
    const uint8_t *e = b->entries + (size_t)i * t->entry_size;
    *key = pystack_get_u64(e, (int32_t)t->key_at);
    *value = t->values ? b->values[i] : pystack_get_u64(e, (int32_t)t->value_at);
}

static int dicts_each(struct pystack_reader *r, const struct pystack_dict_table *t,
                      int (*fn)(struct pystack_reader *, uint32_t, uint64_t, uint64_t, void *), void *arg) {
    struct dicts_block block;
    for (uint32_t from = 0; from < t->n; from += DICTS_BLOCK) {
        uint32_t count = t->n - from < DICTS_BLOCK ? t->n - from : DICTS_BLOCK;
        if (dicts_read_block(r, t, from, count, &block) != 0)
            return -1;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t key, value;
            dicts_entry(t, &block, i, &key, &value);
            if (!key || !value)
                continue;
            int rc = fn(r, from + i, key, value, arg);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int pystack_dict_each(struct pystack_reader *r, uint64_t dict,
                      int (*fn)(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                void *arg),
                      void *arg) {
    struct pystack_dict_table t;
    return pystack_dict_open(r, dict, &t) != 0 ? -1 : dicts_each(r, &t, fn, arg);
}

struct dicts_search {
    const char *name;
    uint64_t value;
    uint32_t index;
};

static int dicts_match(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value, void *arg) {
    struct dicts_search *s = arg;
    if (!pystack_str_is(r, key, s->name))
        return 0;
    s->value = value;
    s->index = index;
    return 1;
}

/* Tries first where the name was last found: objects of a type have their attributes in the same
 * order. Only the text identifies a key: another object may have been made at its address. */
static int dicts_find(struct pystack_reader *r, const struct pystack_dict_table *t, const char *name,
                      uint32_t *hint, uint64_t *value) {
    uint32_t *place = hint ? hint : &r->places[hash_bytes(name, strlen(name)) % PYSTACK_PLACES];
    uint32_t at = *place;
    if (at < t->n) {
        struct dicts_block one;
        uint64_t key, found = 0;
        if (dicts_read_block(r, t, at, 1, &one) == 0)
            dicts_entry(t, &one, 0, &key, &found);
        if (found && pystack_str_is(r, key, name)) {
            *value = found;
            return 0;
        }
    }
    struct dicts_search s = {.name = name};
    if (dicts_each(r, t, dicts_match, &s) != 1)
        return -1;
    *value = s.value;
    *place = s.index;
    return 0;
}

int pystack_dict_find(struct pystack_reader *r, uint64_t dict, const char *name, uint32_t *hint,
                      uint64_t *value) {
    struct pystack_dict_table t;
    return pystack_dict_open(r, dict, &t) != 0 ? -1 : dicts_find(r, &t, name, hint, value);
}

/* Values outside a dict; their keys are shared by the type (ht_cached_keys). */
static int dicts_open_values(struct pystack_reader *r, uint64_t type, uint64_t values,
                             struct pystack_dict_table *t) {
    uint64_t keys;
    if (pystack_read_u64_at(r, type, r->off.type_cached_keys, &keys) != 0 || dicts_read_keys(r, keys, t) != 0)
        return -1;
    t->values = values + (uint64_t)r->off.values_data;
    return 0;
}

static int dicts_open_dictoffset(struct pystack_reader *r, uint64_t object, uint64_t type,
                                 struct pystack_dict_table *t) {
    uint64_t at, dict;
    /* A negative offset counts from the end of an object of variable size; a thread object has a
     * fixed one. */
    if (pystack_read_u64_at(r, type, r->off.type_dictoffset, &at) != 0 || at == 0 ||
        at > PYSTACK_STRUCT_MAX * 64 || mem_read_u64(&r->mem, object + at, &dict) != 0)
        return -1;
    return pystack_dict_open(r, dict, t);
}

static int dicts_open_inline(struct pystack_reader *r, uint64_t object, uint64_t type,
                             struct pystack_dict_table *t) {
    uint64_t size;
    uint8_t head[PYSTACK_STRUCT_MAX];
    if (pystack_read_u64_at(r, type, r->off.type_basicsize, &size) != 0 || size > PYSTACK_STRUCT_MAX * 64 ||
        mem_read(&r->mem, object + size, head, (size_t)r->off.values_data) != 0 || !head[r->off.values_valid])
        return -1;
    return dicts_open_values(r, type, object + size, t);
}

/* The attributes of the instance at `object`. 0 or -1. */
static int dicts_open_attrs(struct pystack_reader *r, uint64_t object, struct pystack_dict_table *t) {
    uint64_t type, flags, word;
    if (!pystack_is_pointer(object) || pystack_read_u64_at(r, object, r->off.object_type, &type) != 0 ||
        !pystack_is_pointer(type) || pystack_read_u64_at(r, type, r->off.type_flags, &flags) != 0)
        return -1;
    if (r->off.attr_style == PYSTACK_ATTR_DICTOFFSET || !(flags & DICTS_FLAG_MANAGED))
        return dicts_open_dictoffset(r, object, type, t);
    if (r->off.attr_style == PYSTACK_ATTR_TWO_WORDS) {
        if (pystack_read_u64_at(r, object, -4 * DICTS_WORD, &word) != 0)
            return -1;
        if (word)
            return dicts_open_values(r, type, word, t);
    }
    int32_t at = r->off.attr_style == PYSTACK_ATTR_INLINE ? r->off.attr_dict : -3 * DICTS_WORD;
    if (pystack_read_u64_at(r, object, at, &word) != 0)
        return -1;
    if (r->off.attr_style == PYSTACK_ATTR_TAGGED && (word & 1))
        return dicts_open_values(r, type, word + 1, t);
    if (!word && r->off.attr_style == PYSTACK_ATTR_INLINE && (flags & DICTS_FLAG_INLINE_VALUES))
        return dicts_open_inline(r, object, type, t);
    return pystack_dict_open(r, word, t);
}

int pystack_attr_find(struct pystack_reader *r, uint64_t object, const char *name, uint32_t *hint,
                      uint64_t *value) {
    struct pystack_dict_table t;
    return dicts_open_attrs(r, object, &t) != 0 ? -1 : dicts_find(r, &t, name, hint, value);
}

int pystack_attr_each(struct pystack_reader *r, uint64_t object,
                      int (*fn)(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                void *arg),
                      void *arg) {
    struct pystack_dict_table t;
    return dicts_open_attrs(r, object, &t) != 0 ? -1 : dicts_each(r, &t, fn, arg);
}
