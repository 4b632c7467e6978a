/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_info: see comm_info.h. Sources: torch/csrc/distributed/c10d/ParamCommsUtils.hpp (class
 * ParamCommsDebugInfo), from the published packages of torch 2.2.0, 2.2.2, 2.3.0, 2.3.1, 2.4.0,
 * 2.4.1, 2.5.0, 2.5.1, 2.6.0, 2.7.0, 2.7.1, 2.8.0, 2.9.0, 2.9.1, 2.10.0, 2.11.0, 2.12.0, 2.12.1
 * and 2.13.0; the Itanium C++ ABI for members, tables of virtual functions and names of classes;
 * libstdc++'s basic_string.h, cow_string.h and tuple for strings and the order in a tuple.
 */
#include "agent/torch/comm_info.h"

#include <stddef.h>
#include <string.h>

#define COMM_INFO_CLASS "N5torch19ParamCommsDebugInfoE"
#define COMM_INFO_BYTES 256
#define COMM_INFO_MOST ((int64_t)1 << 48) /* elements, and numbers of collectives */
#define COMM_INFO_WORLD (1 << 24)

/* Parts of an object of libstdc++. */
#define COMM_INFO_VECTOR 24U
#define COMM_INFO_LOCAL 16U /* bytes within a new string, and where they begin in it */
#define COMM_INFO_COUNT 24U /* before an old string's characters: their number */

enum comm_info_group { COMM_INFO_UNNAMED, COMM_INFO_NUMBERED, COMM_INFO_NAMED };

/* The first versions with another layout. A group's number (2.3) is that of no table. */
static const struct comm_info_version {
    unsigned first;
    enum comm_info_group group;
    bool wide, seq;
} comm_info_versions[] = {
    {202, COMM_INFO_UNNAMED, false, false}, {203, COMM_INFO_NUMBERED, false, false},
    {204, COMM_INFO_NAMED, false, false},   {205, COMM_INFO_NAMED, true, false},
    {212, COMM_INFO_NAMED, true, true},
};
#define COMM_INFO_LAST 213U

static uint32_t comm_info_member(uint32_t *at, uint32_t bytes, uint32_t align) {
    uint32_t from = (*at + align - 1) / align * align;
    *at = from + bytes;
    return from;
}

bool comm_info_init(struct comm_info *c, unsigned version, enum comm_info_strings strings) {
    const struct comm_info_version *v = NULL;
    uint32_t string = strings == COMM_INFO_STRINGS_NEW ? 32 : 8, at = 8;
    *c = (struct comm_info){.strings = strings};
    for (size_t i = 0; i < sizeof comm_info_versions / sizeof comm_info_versions[0]; i++)
        if (version >= comm_info_versions[i].first)
            v = &comm_info_versions[i];
    if (!v || version > COMM_INFO_LAST)
        return false;
    c->wide = v->wide;
    if (v->group == COMM_INFO_NUMBERED)
        comm_info_member(&at, 4, 4);
    if (v->group == COMM_INFO_NAMED) {
        /* the last of a tuple is stored first: the description, then the name */
        comm_info_member(&at, string, 8);
        c->pg = comm_info_member(&at, string, 8);
    }
    uint32_t count = v->wide ? 8 : 4;
    c->rank = comm_info_member(&at, 4, 4);
    c->world = comm_info_member(&at, 4, 4);
    c->name = comm_info_member(&at, string, 8);
    c->in = comm_info_member(&at, count, count);
    c->out = comm_info_member(&at, count, count);
    c->dtype = comm_info_member(&at, 1, 1);
    if (v->seq) {
        /* parts of inputs and outputs, first rank and stride, ranks, asynchronous */
        comm_info_member(&at, 2 * COMM_INFO_VECTOR, 8);
        comm_info_member(&at, 8, 4);
        comm_info_member(&at, COMM_INFO_VECTOR, 8);
        comm_info_member(&at, 1, 1);
        c->seq = comm_info_member(&at, 8, 8);
        c->p2p = comm_info_member(&at, 1, 1);
    }
    c->size = at;
    return true;
}

/* ---- its members ---- */

static int32_t comm_info_i32(const uint8_t *object, uint32_t at) {
    int32_t v;
    memcpy(&v, object + at, sizeof v);
    return v;
}

static int64_t comm_info_i64(const uint8_t *object, uint32_t at) {
    int64_t v;
    memcpy(&v, object + at, sizeof v);
    return v;
}

static int64_t comm_info_count(const struct comm_info *c, const uint8_t *object, uint32_t at) {
    return c->wide ? comm_info_i64(object, at) : comm_info_i32(object, at);
}

/* A string of at most `cap - 1` bytes, all of them printable, into `out`. False if it is none. */
static bool comm_info_string(const struct comm_info *c, struct mem *m, const uint8_t *object, uint64_t base,
                             uint32_t at, char *out, size_t cap) {
    uint64_t chars = (uint64_t)comm_info_i64(object, at), n;
    bool is_new = c->strings == COMM_INFO_STRINGS_NEW;
    if (is_new)
        n = (uint64_t)comm_info_i64(object, at + 8);
    else if (mem_read_u64(m, chars - COMM_INFO_COUNT, &n) != 0)
        return false;
    if (n >= cap)
        return false;
    if (is_new && chars == base + at + COMM_INFO_LOCAL) {
        if (n >= COMM_INFO_LOCAL)
            return false;
        memcpy(out, object + at + COMM_INFO_LOCAL, n);
    } else if (n && mem_read(m, chars, out, n) != 0) {
        return false;
    }
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i] < ' ' || out[i] > '~')
            return false;
    return true;
}

/* Is it an object of that class? Its table of virtual functions is in any library that makes one;
 * before the table is a pointer to the class's type_info, which has its name. */
static bool comm_info_has_class(struct comm_info *c, struct mem *m, uint64_t table) {
    uint64_t type, name;
    char text[sizeof COMM_INFO_CLASS];
    if (table && __atomic_load_n(&c->class_at, __ATOMIC_RELAXED) == table)
        return true;
    if (mem_read_u64(m, table - 8, &type) != 0 || mem_read_u64(m, type + 8, &name) != 0 ||
        mem_read(m, name, text, sizeof text) != 0 || memcmp(text, COMM_INFO_CLASS, sizeof text) != 0)
        return false;
    __atomic_store_n(&c->class_at, table, __ATOMIC_RELAXED);
    return true;
}

/* ---- names of operations ---- */

/* Up to a blank ("send 0->1"), without underscores. */
static void comm_info_squeeze(const char *name, char out[SPANS_NAME]) {
    size_t n = 0;
    for (; *name && *name != ' ' && n < SPANS_NAME - 1; name++)
        if (*name != '_')
            out[n++] = *name;
    out[n] = '\0';
}

/* Are they one operation? The object's is "allreduce" or "_allgather_base" where the span's is "all_reduce" or
 * "_all_gather_base". That of a collective which is made of others is not that of the others' spans. */
static bool comm_info_same_op(const char *span, const char *named) {
    static const char *const others[][2] = {{"alltoall", "alltoallv"}, {"allreducebarrier", "barrier"}};
    char a[SPANS_NAME], b[SPANS_NAME];
    comm_info_squeeze(span, a);
    comm_info_squeeze(named, b);
    bool same = a[0] && strcmp(a, b) == 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        same = same || (strcmp(a, others[i][0]) == 0 && strcmp(b, others[i][1]) == 0);
    return same;
}

bool comm_info_read(struct comm_info *c, struct mem *m, uint64_t at, const char *name,
                    struct spans_comm *out) {
    uint8_t object[COMM_INFO_BYTES];
    char op[SPANS_NAME];
    *out = (struct spans_comm){.seq = -1};
    if (c->size == 0 || c->size > sizeof object || mem_read(m, at, object, c->size) != 0 ||
        !comm_info_has_class(c, m, (uint64_t)comm_info_i64(object, 0)))
        return false;
    int32_t rank = comm_info_i32(object, c->rank), world = comm_info_i32(object, c->world);
    int64_t in = comm_info_count(c, object, c->in), made = comm_info_count(c, object, c->out);
    if (world < 1 || world > COMM_INFO_WORLD || rank < 0 || rank >= world || in < 0 || in > COMM_INFO_MOST ||
        made < 0 || made > COMM_INFO_MOST || object[c->dtype] > INT8_MAX || (c->p2p && object[c->p2p] > 1))
        return false;
    if (!comm_info_string(c, m, object, at, c->name, op, sizeof op) || !comm_info_same_op(name + 5, op))
        return false;
    if (c->pg && !comm_info_string(c, m, object, at, c->pg, out->pg, sizeof out->pg))
        return false;
    if (c->seq)
        out->seq = comm_info_i64(object, c->seq);
    if (out->seq < -1 || out->seq > COMM_INFO_MOST)
        return false;
    out->elements = in;
    out->dtype = (int8_t)object[c->dtype];
    out->size = world;
    return true;
}
