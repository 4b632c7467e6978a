/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: threading.Thread.name of every thread, read without Python.
 *
 * sys.modules["threading"]._active maps thread identifiers to Thread objects, each with an
 * attribute _name (Lib/threading.py). Reading them takes thousands of reads, so it is done about
 * once a second, which shows renames too. A job that never imports threading has no such names:
 * its main thread gets threading's default name, the others the kernel's.
 */
#include "pystack/pystack_internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

#define NAMES_AGE_NS CLOCK_NS_PER_S
/* after a failure, or if a thread is missing */
#define NAMES_RETRY_NS (100 * CLOCK_NS_PER_MS)
/* after so many in a row the names are forgotten */
#define NAMES_FAILURES_MAX 10
#define NAMES_READS 200000ULL /* limit for all names: an honest one takes about eight */
#define NAMES_SHARE 20        /* one part in so many of all time goes into reading names */
#define NAMES_MAIN_INTERPRETER 0
/* of the thread that initialised the interpreter (tstate->id, 3.7 on) */
#define NAMES_FIRST_SERIAL 1
/* for one name: other threads may change the path to it */
#define NAMES_TRIES 3

static void names_clear(struct pystack_names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i].text);
    table_clear(&names->places);
    names->n = 0;
}

void pystack_names_fini(struct pystack_names *names) {
    names_clear(names);
    free(names->items);
    table_fini(&names->places);
    *names = (struct pystack_names){0};
}

struct names_read {
    struct pystack *ps;
    struct pystack_names next;
    int64_t interpreter;
    uint64_t most; /* give up after so many reads */
    bool failed;
};

static int names_add(struct pystack_names *names, int64_t interpreter, uint64_t ident, const char *text) {
    if (names->n == PYSTACK_MAX_THREADS)
        return -1;
    if (names->n == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 32;
        struct pystack_name *items = realloc(names->items, cap * sizeof *items);
        if (!items)
            return -1;
        names->items = items;
        names->cap = cap;
    }
    char *copy = strdup(text);
    if (!copy || table_add(&names->places, hash_mix(ident), (uint32_t)names->n) != 0) {
        free(copy);
        return -1;
    }
    names->items[names->n++] =
        (struct pystack_name){.interpreter = interpreter, .ident = ident, .text = copy};
    return 0;
}

/* threading._active of the interpreter at `interp`; 0 if it has not imported threading and has
 * no names, which is not a failure. 0 or -1. */
static int names_find_active(struct pystack *ps, struct pystack_names *hints, uint64_t interp,
                             uint64_t *active) {
    struct pystack_reader *r = &ps->reader;
    uint64_t modules, module, dict;
    *active = 0;
    if (pystack_read_u64_at(r, interp, r->off.interp_modules, &modules) != 0 || !pystack_is_pointer(modules))
        return -1;
    if (pystack_dict_find(r, modules, "threading", &hints->hint_threading, &module) != 0)
        return 0;
    if (pystack_read_u64_at(r, module, r->off.module_dict, &dict) != 0)
        return -1;
    return pystack_dict_find(r, dict, "_active", &hints->hint_active, active);
}

/* The name of the Thread object at `thread`. 0 or -1. */
static int names_read_text(struct pystack_reader *r, struct pystack_names *hints, uint64_t thread, char *text,
                           size_t cap) {
    uint64_t name;
    return pystack_attr_find(r, thread, "_name", &hints->hint_name, &name) == 0 &&
                   pystack_read_str(r, name, text, cap) >= 0
               ? 0
               : -1;
}

static int names_read_entry(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                            void *arg) {
    struct names_read *n = arg;
    uint64_t ident;
    char text[PYSTACK_NAME_MAX];
    (void)index;
    if (r->mem.reads > n->most) {
        n->failed = true;
        return 1;
    }
    if (pystack_read_int(r, key, &ident) != 0 || names_read_text(r, &n->next, value, text, sizeof text) != 0)
        return 0;
    return names_add(&n->next, n->interpreter, ident, text) == 0 ? 0 : 1;
}

static int names_read_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct names_read *n = arg;
    uint64_t active;
    n->interpreter = id;
    if (ps->reader.mem.reads > n->most) {
        n->failed = true;
        return 1;
    }
    if (names_find_active(ps, &n->next, interp, &active) != 0 ||
        (active && pystack_dict_each(&ps->reader, active, names_read_entry, n) < 0))
        n->failed = true;
    else if (id == NAMES_MAIN_INTERPRETER && !active)
        n->next.without_threading = true;
    return 0;
}

static void names_read(struct pystack *ps, uint64_t now) {
    struct pystack_names *old = &ps->names;
    struct names_read n = {.ps = ps, .most = ps->reader.mem.reads + NAMES_READS};
    n.next.hint_threading = old->hint_threading;
    n.next.hint_active = old->hint_active;
    n.next.hint_name = old->hint_name;
    old->tried_ns = now;
    bool ok = pystack_each_interpreter(ps, names_read_interpreter, &n) >= 0 && !n.failed;
    old->took_ns = n.next.took_ns = clock_mono_ns() - now;
    if (!ok && ++old->failures < NAMES_FAILURES_MAX) {
        pystack_names_fini(&n.next);
        return;
    }
    n.next.tried_ns = now;
    n.next.failures = ok ? 0 : old->failures;
    pystack_names_fini(old);
    *old = n.next;
}

/* The name of the thread state's identifier; NULL none. */
static struct pystack_name *names_place(const struct pystack_names *names, const struct pystack_thread *t) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; t->ident && (i = table_next(&names->places, hash_mix(t->ident), &at)) != TABLE_NONE;)
        if (names->items[i].ident == t->ident && names->items[i].interpreter == t->interpreter)
            return &names->items[i];
    return NULL;
}

/* Note which thread state has each name now: a later thread may get the same identifier. */
static void names_bind(struct pystack_names *names, const struct pystack_thread *threads, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct pystack_name *name = names_place(names, &threads[i]);
        if (name && !name->serial)
            name->serial = threads[i].serial;
    }
}

static const char *names_find(const struct pystack_names *names, const struct pystack_thread *t) {
    const struct pystack_name *name = names_place(names, t);
    return name && name->serial == t->serial ? name->text : NULL;
}

/* Python's main thread, where threading does not name it: the oldest remaining thread of the
 * main interpreter, if it was its first or is the process's own (after a fork any thread may
 * be). 3.6 keeps the states of threads that a fork left behind without saying which was first:
 * there it is the process's own. NULL if it has ended. The list is newest first. */
static const struct pystack_thread *names_find_main(const struct pystack *ps,
                                                    const struct pystack_thread *threads, size_t n) {
    bool numbered = ps->reader.off.tstate_id >= 0;
    for (size_t i = n; i > 0; i--) {
        const struct pystack_thread *t = &threads[i - 1];
        if (t->interpreter != NAMES_MAIN_INTERPRETER)
            continue;
        if (t->tid == ps->main_tid || (numbered && t->serial == NAMES_FIRST_SERIAL))
            return t;
        if (numbered)
            break;
    }
    return NULL;
}

static const char *names_find_or_main(const struct pystack *ps, const struct pystack_thread *t,
                                      const struct pystack_thread *main_thread) {
    const char *name = names_find(&ps->names, t);
    return name || !ps->names.without_threading || t != main_thread ? name : "MainThread";
}

static bool names_is_due(const struct pystack *ps, const struct pystack_thread *threads, size_t n,
                         uint64_t now) {
    const struct pystack_names *names = &ps->names;
    if (!names->tried_ns)
        return true;
    if (now - names->tried_ns < NAMES_SHARE * names->took_ns)
        return false;
    if (now - names->tried_ns >= NAMES_AGE_NS)
        return true;
    if (now - names->tried_ns < NAMES_RETRY_NS)
        return false;
    const struct pystack_thread *main_thread = names_find_main(ps, threads, n);
    for (size_t i = 0; i < n; i++)
        if (!names_find_or_main(ps, &threads[i], main_thread))
            return true;
    return false;
}

void pystack_read_names_anew(struct pystack *ps) { ps->names.tried_ns = 0; }

void pystack_names_put(struct pystack *ps, struct pystack_thread *threads, size_t n, struct arena *arena) {
    uint64_t now = clock_mono_ns();
    if (names_is_due(ps, threads, n, now)) {
        names_read(ps, now);
        names_bind(&ps->names, threads, n);
    }
    const struct pystack_thread *main_thread = names_find_main(ps, threads, n);
    for (size_t i = 0; i < n; i++)
        threads[i].name = arena_strdup(arena, names_find_or_main(ps, &threads[i], main_thread));
}

/* ---- of one thread ---- */

struct names_one {
    struct pystack *ps;
    uint64_t ident;
    char *buf;
    size_t cap;
    uint64_t most; /* give up after so many reads */
    bool found, failed;
};

static int names_match(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value, void *arg) {
    struct names_one *one = arg;
    uint64_t ident;
    (void)index;
    if (r->mem.reads > one->most)
        return 1;
    if (pystack_read_int(r, key, &ident) != 0 || ident != one->ident)
        return 0;
    one->found = names_read_text(r, &one->ps->names, value, one->buf, one->cap) == 0;
    one->failed |= !one->found;
    return 1;
}

/* The first interpreter, last in the list, has priority. */
static int names_match_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct names_one *one = arg;
    uint64_t active;
    (void)id;
    if (ps->reader.mem.reads > one->most)
        return 1;
    if (names_find_active(ps, &ps->names, interp, &active) != 0 ||
        (active && pystack_dict_each(&ps->reader, active, names_match, one) < 0))
        one->failed = true;
    return 0;
}

int pystack_read_name(struct pystack *ps, uint64_t ident, char *buf, size_t cap) {
    struct names_one one = {.ps = ps,
                            .ident = ident,
                            .buf = buf,
                            .cap = cap,
                            .most = ps->reader.mem.reads + NAMES_READS,
                            .failed = true};
    for (int i = 0; i < NAMES_TRIES && one.failed && !one.found; i++) {
        one.failed = false;
        if (pystack_each_interpreter(ps, names_match_interpreter, &one) < 0)
            one.failed = true;
    }
    return one.found ? 0 : -1;
}
