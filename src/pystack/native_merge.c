/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_merge: see native_merge.h. Names: Python/ceval.c (_PyEval_EvalFrameDefault; the
 * compiler's suffixes .cold, .part.N and the like), Python/ceval_macros.h of 3.14
 * (_TAIL_CALL_...). Instructions: Intel SDM, volume 2 (E9 rel32, 0F 80..8F rel32).
 */
#include "pystack/native_merge.h"

#include <string.h>

#define MERGE_LOOP "_PyEval_EvalFrameDefault"
#define MERGE_TAIL_CALL "_TAIL_CALL_"

/* Up to 3.10 _PyEval_EvalFrameDefault checks the recursion depth before it links its frame, and
 * has the result checked after it has unlinked it (Python/ceval.c: Py_EnterRecursiveCall,
 * exit_eval_frame). */
static const char *const merge_edges[] = {"_Py_CheckFunctionResult", "_Py_CheckRecursiveCall"};

/* A merge in progress. */
struct merge {
    const struct model_frame *frames;
    size_t n;
    const enum native_role *roles;
    size_t n_native;
    size_t python; /* the next one to place */
    uint32_t *order;
    size_t done;
};

enum native_role native_role_of(const char *symbol) {
    size_t len = sizeof MERGE_LOOP - 1;
    if (!symbol)
        return NATIVE_ROLE_PLAIN;
    if (strncmp(symbol, MERGE_TAIL_CALL, sizeof MERGE_TAIL_CALL - 1) == 0)
        return NATIVE_ROLE_LOOP_PART;
    for (size_t i = 0; i < sizeof merge_edges / sizeof merge_edges[0]; i++)
        if (strcmp(symbol, merge_edges[i]) == 0)
            return NATIVE_ROLE_EDGE;
    if (strncmp(symbol, MERGE_LOOP, len) != 0 || (symbol[len] && symbol[len] != '.'))
        return NATIVE_ROLE_PLAIN;
    return strncmp(symbol + len, ".part.", 6) == 0 ? NATIVE_ROLE_LOOP_PART : NATIVE_ROLE_LOOP;
}

bool native_code_jumps(const uint8_t *code, size_t size, uint64_t start, uint64_t from, uint64_t to) {
    uint64_t first = 0;
    for (size_t i = 0; i + 6 <= size; i++) {
        size_t skip = code[i] == 0xe9 ? 1 : code[i] == 0x0f && code[i + 1] >> 4 == 8 ? 2 : 0;
        int32_t offset;
        if (!skip)
            continue;
        memcpy(&offset, code + i + skip, sizeof offset);
        uint64_t target = start + i + skip + sizeof offset + (uint64_t)(int64_t)offset;
        if (target <= from || target >= to)
            continue;
        if (first && target != first)
            return true;
        first = target;
    }
    return false;
}

/* True if native frame `i` ends a call of the loop, seen from within. A part counts if its loop
 * does not follow. */
static bool merge_is_call(const struct merge *m, size_t i) {
    if (m->roles[i] == NATIVE_ROLE_LOOP)
        return true;
    return m->roles[i] == NATIVE_ROLE_LOOP_PART &&
           !(i + 1 < m->n_native &&
             (m->roles[i + 1] == NATIVE_ROLE_LOOP || m->roles[i + 1] == NATIVE_ROLE_LOOP_PART));
}

/* Place the Python frames up to the next entry. */
static void merge_put_python(struct merge *m) {
    while (m->python < m->n) {
        const struct model_frame *f = &m->frames[m->python];
        if (f->kind == MODEL_FRAME_ENTRY) {
            m->python++;
            return;
        }
        m->order[m->done++] = (uint32_t)m->python++;
    }
}

static size_t merge_count_calls(const struct merge *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_native; i++)
        n += merge_is_call(m, i);
    return n;
}

/* Number of groups of Python frames; an outermost one without its entry means a cut stack. */
static size_t merge_count_groups(const struct merge *m, bool *open) {
    size_t n = 0;
    *open = false;
    for (size_t i = m->n_native; i < m->n; i++) {
        *open = m->frames[i].kind != MODEL_FRAME_ENTRY;
        n += !*open;
    }
    return n + *open;
}

/* True if the loop is the innermost native frame, or has called one of the functions at its
 * edges. Then it may just have begun, or be about to end, without its Python frame. */
static bool merge_begins_with_call(const struct merge *m) {
    size_t i = 0, edge = 0;
    while (edge < m->n_native && m->roles[edge] == NATIVE_ROLE_PLAIN)
        edge++;
    if (edge < m->n_native && m->roles[edge] == NATIVE_ROLE_EDGE)
        i = edge + 1;
    while (i < m->n_native && m->roles[i] == NATIVE_ROLE_LOOP_PART && !merge_is_call(m, i))
        i++;
    return i < m->n_native && merge_is_call(m, i);
}

static size_t merge_apart(struct merge *m) {
    for (size_t i = 0; i < m->n; i++)
        if (m->frames[i].kind != MODEL_FRAME_ENTRY)
            m->order[m->done++] = (uint32_t)i;
    return m->done;
}

size_t native_merge(const struct model_frame *frames, size_t n, const enum native_role *roles,
                    size_t n_native, bool truncated, uint32_t *order, enum model_native *how) {
    struct merge m = {
        .frames = frames, .n = n, .roles = roles, .n_native = n_native, .python = n_native, .order = order};
    bool open, skip_first = false;
    size_t calls = merge_count_calls(&m), groups = merge_count_groups(&m, &open);
    bool cut = n_native && roles[n_native - 1] == NATIVE_ROLE_TRUNCATED;
    *how = n_native ? MODEL_NATIVE_MERGED : MODEL_NATIVE_UNKNOWN;
    if (n_native == 0)
        return merge_apart(&m);
    if (!cut && !truncated && calls == groups + 1 && merge_begins_with_call(&m))
        skip_first = true;
    else if (cut && truncated ? false
             : cut            ? calls > groups
             : truncated      ? calls < groups
                              : calls != groups || open) {
        *how = MODEL_NATIVE_APART;
        return merge_apart(&m);
    }
    for (size_t i = 0; i < n_native; i++) {
        if (roles[i] == NATIVE_ROLE_PLAIN || roles[i] == NATIVE_ROLE_EDGE ||
            roles[i] == NATIVE_ROLE_TRUNCATED)
            order[m.done++] = (uint32_t)i;
        else if (merge_is_call(&m, i) && !skip_first)
            merge_put_python(&m);
        else if (merge_is_call(&m, i))
            skip_first = false;
    }
    while (m.python < n)
        merge_put_python(&m);
    return m.done;
}
