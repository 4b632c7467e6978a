/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_label: see native_label.h. The function of an address without a symbol: the sorted
 * table of .eh_frame_hdr (LSB 5.0 core, "Exception Frames") has an entry for every part of a
 * function.
 */
#include "pystack/native_label.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"

#define LABEL_SLOTS 8192U /* a power of two */
#define LABEL_SLOTS_USED (LABEL_SLOTS / 2)
#define LABEL_TEXT_MAX ((size_t)1024 * 1024)
#define LABEL_TEXT_USED ((size_t)384 * 1024)
#define LABEL_NAME_MAX 1024          /* longer ones are cut */
#define LABEL_BATCH 64               /* addresses searched for together */
#define LABEL_PART_MAX (256U * 1024) /* bytes of a part of the loop */
#define LABEL_LOOP "_PyEval_EvalFrameDefault"

struct label {
    const char *module; /* NULL: a free slot */
    uint64_t address;
    const char *func; /* NULL unknown */
    enum native_role role;
};

struct native_labels {
    struct label slots[LABEL_SLOTS];
    size_t n;
    struct arena text;
    struct elf_function batch[LABEL_BATCH];
    struct label *batch_of[LABEL_BATCH];
};

struct native_labels *native_labels_new(void) {
    struct native_labels *l = calloc(1, sizeof *l);
    if (l)
        arena_init(&l->text, LABEL_TEXT_MAX);
    return l;
}

void native_labels_free(struct native_labels *l) {
    if (!l)
        return;
    arena_fini(&l->text);
    free(l);
}

size_t native_labels_bytes(const struct native_labels *l) { return l ? sizeof *l + l->text.used : 0; }

/* ---- what is remembered ---- */

/* Its slot, or the free one where it belongs. */
static struct label *label_slot(struct native_labels *l, const char *module, uint64_t address) {
    size_t i = (size_t)hash_mix(address ^ (uint64_t)(uintptr_t)module << 7);
    for (;; i++) {
        struct label *at = &l->slots[i & (LABEL_SLOTS - 1)];
        if (!at->module || (at->module == module && at->address == address))
            return at;
    }
}

void native_labels_forget(struct native_labels *l) {
    arena_fini(&l->text);
    memset(l->slots, 0, sizeof l->slots);
    l->n = 0;
}

/* Room for the addresses of one stack. */
static void label_reserve(struct native_labels *l, size_t n) {
    if (l->n + n <= LABEL_SLOTS_USED && l->text.used <= LABEL_TEXT_USED && !l->text.failed)
        return;
    native_labels_forget(l);
}

/* ---- looking ---- */

/* The function, or part of one, that contains `addr`: from its beginning to that of the next.
 * Run-time addresses. 0 or -1. */
static int label_find_part(const struct native_module *m, uint64_t addr, uint64_t *from, uint64_t *to) {
    uint64_t low = 0, high = m->n_table;
    *from = *to = 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint32_t word;
        if (mem_read_u32(m->elf.mem, m->table + middle * 8, &word) != 0)
            return -1;
        uint64_t start = m->elf.eh_frame_hdr + (uint64_t)(int64_t)(int32_t)word;
        if (start <= addr) {
            low = middle + 1;
            *from = start;
        } else {
            high = middle;
            *to = start;
        }
    }
    return *from && *to ? 0 : -1;
}

/* True if the code in [start, start + size) jumps into (from, to). */
static bool label_jumps(const struct native_module *m, uint64_t start, uint64_t size, uint64_t from,
                        uint64_t to) {
    uint8_t *code = size <= LABEL_PART_MAX ? malloc(size) : NULL;
    bool jumps = code && mem_read(m->elf.mem, start, code, size) == 0 &&
                 native_code_jumps(code, size, start, from, to);
    free(code);
    return jumps;
}

/* True if the code at `addr`, which has no name, is a part of the loop that the compiler has
 * placed elsewhere. */
static bool label_is_loop(const struct native_module *m, uint64_t addr) {
    uint64_t loop, size, from, to;
    if (elf_find_symbol(&m->elf, LABEL_LOOP, &loop, &size) != 0 || size == 0 ||
        label_find_part(m, addr, &from, &to) != 0 || from == loop)
        return false;
    return label_jumps(m, loop, size, from, to) || label_jumps(m, from, to - from, loop, loop + size);
}

/* Find the labels of the batch, all of module `m`. */
static void label_find(struct native_labels *l, const struct native_module *m, size_t n) {
    char name[LABEL_NAME_MAX];
    elf_find_functions(&m->elf, l->batch, n);
    for (size_t i = 0; i < n; i++) {
        struct label *at = l->batch_of[i];
        if (l->batch[i].name && mem_read_cstr(m->elf.mem, l->batch[i].name, name, sizeof name) > 0)
            at->func = arena_strdup(&l->text, name);
        at->role = at->func                             ? native_role_of(at->func)
                   : label_is_loop(m, l->batch[i].addr) ? NATIVE_ROLE_LOOP
                                                        : NATIVE_ROLE_PLAIN;
    }
}

/* Add the unknown addresses of one module, that of frame `first`, from the frames after it. */
static void label_add_module(struct native_labels *l, struct native_maps *maps,
                             const struct model_frame *frames, size_t n, size_t first) {
    const char *module = frames[first].module;
    const struct native_module *m = native_maps_find(maps, module);
    size_t in_batch = 0;
    for (size_t i = first; i < n; i++) {
        struct label *at = frames[i].module == module ? label_slot(l, module, frames[i].address) : NULL;
        if (!at || at->module)
            continue;
        *at = (struct label){.module = module, .address = frames[i].address};
        l->n++;
        if (!m)
            continue;
        l->batch[in_batch] = (struct elf_function){.addr = frames[i].address + m->elf.bias};
        l->batch_of[in_batch++] = at;
        if (in_batch == LABEL_BATCH) {
            label_find(l, m, in_batch);
            in_batch = 0;
        }
    }
    if (in_batch)
        label_find(l, m, in_batch);
}

void native_label(struct native_labels *l, struct native_maps *maps, struct model_frame *frames, size_t n,
                  enum native_role *roles) {
    label_reserve(l, n);
    for (size_t i = 0; i < n; i++) {
        struct model_frame *f = &frames[i];
        roles[i] = f->module || f->address ? NATIVE_ROLE_PLAIN : NATIVE_ROLE_TRUNCATED;
        if (!f->module)
            continue;
        struct label *at = label_slot(l, f->module, f->address);
        if (!at->module)
            label_add_module(l, maps, frames, n, i);
        roles[i] = at->role;
        f->func = at->func;
    }
}
