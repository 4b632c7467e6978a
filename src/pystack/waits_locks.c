/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits_locks: the objects of Python that threads sleep on, and who holds them.
 *
 * Layouts, right after PyObject_HEAD:
 * up to 3.13 (Modules/_threadmodule.c, lockobject and rlockobject; Modules/_queuemodule.c,
 * simplequeueobject; Modules/_multiprocessing/semaphore.c, SemLockObject) a pointer to a sem_t, whose
 * first word is the futex (sysdeps/nptl, struct new_sem); in an RLock the owner's ident follows, then
 * its count.
 * From 3.14 on, and in a Lock of later 3.13 (3.13.15, not 3.13.0), a PyMutex of one byte; in an RLock
 * (Include/internal/pycore_lock.h, _PyRecursiveMutex) the owner and the level follow, aligned. A thread
 * that waits for one sleeps on a semaphore of its own: in struct wait_entry (Python/parking_lot.c) the
 * address of the mutex stands right before it.
 * A builtin method (Include/cpython/methodobject.h) has a pointer to its definition, whose first word
 * is the name, and then its object; a method of Python's (Include/cpython/classobject.h) its function
 * and its object. Up to 3.13 `with x` keeps the bound x.__exit__ on the value stack until the block
 * ends (Python/bytecodes.c, BEFORE_WITH). From 3.14 on (LOAD_SPECIAL) the function and x lie there side by
 * side.
 */
#include "pystack/waits_internal.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "pystack/blocks.h"
#include "pystack/locals.h"

#define WAITS_CODE_WORDS_MAX 1024 /* variables, or words of stack, accepted of a code object */
#define WAITS_BASES_MAX 8
#define WAITS_GLOBALS_MAX 4096 /* variables of a module that are compared */
#define WAITS_OWNERS_MAX 4     /* variables of a function whose attributes are compared, */
#define WAITS_OWNERS_TRIED 256 /* or of the first so many variables of its module */
#define WAITS_SCAN_FRAMES 128  /* of one thread */

/* ---- frames ---- */

static int32_t waits_i32(struct pystack_reader *r, uint64_t addr, int32_t at, int32_t most) {
    uint32_t v;
    return mem_read_u32(&r->mem, addr + (uint64_t)at, &v) == 0 && v <= (uint32_t)most ? (int32_t)v : -1;
}

/* Include/cpython/code.h: co_stacksize stands before co_flags (3.6 to 3.10), or after
 * co_kwonlyargcount. */
static int32_t waits_stack_size(struct pystack_reader *r, uint64_t code) {
    const struct pystack_offsets *o = &r->off;
    int32_t at = o->code_kinds ? o->code_kwonlyargcount + 4 : o->code_flags - 4;
    return waits_i32(r, code, at, WAITS_CODE_WORDS_MAX);
}

/* Where the value stack begins, in words after the variables: 3.6 to 3.10 have a pointer to it
 * (f_valuestack follows f_locals, Include/frameobject.h). -1 unknown. */
static int32_t waits_n_locals(struct pystack_reader *r, uint64_t frame, uint64_t code) {
    const struct pystack_offsets *o = &r->off;
    uint64_t stack, first = frame + (uint64_t)o->frame_localsplus;
    if (o->code_kinds)
        return waits_i32(r, code, o->code_nlocalsplus, WAITS_CODE_WORDS_MAX);
    if (pystack_read_u64_at(r, frame, o->frame_locals + 8, &stack) != 0 || stack < first ||
        (stack - first) % 8 != 0 || (stack - first) / 8 > WAITS_CODE_WORDS_MAX)
        return -1;
    return (int32_t)((stack - first) / 8);
}

static void waits_untag(const struct pystack_offsets *o, uint64_t *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        words[i] &= ~(uint64_t)o->tag_bits;
}

/* How many words of the value stack at `stack` are in use; -1 unknown. From 3.14 on a frame knows it while
 * it calls something, from 3.11 to 3.13 (`stacktop`, after the instruction, counted from the variables)
 * while it calls a function of Python. */
static int32_t waits_depth(struct pystack_reader *r, uint64_t frame, uint64_t stack, int32_t n_locals) {
    const struct pystack_offsets *o = &r->off;
    uint64_t top;
    uint32_t words;
    if (o->frame_stackpointer)
        return pystack_read_u64_at(r, frame, o->frame_stackpointer, &top) == 0 && top >= stack &&
                       (top - stack) / 8 <= WAITS_CODE_WORDS_MAX
                   ? (int32_t)((top - stack) / 8)
                   : -1;
    if (o->frame_style == PYSTACK_FRAME_OBJECT ||
        mem_read_u32(&r->mem, frame + (uint64_t)o->frame_instr + 8, &words) != 0 ||
        words > 2 * WAITS_CODE_WORDS_MAX || (int32_t)words < n_locals)
        return -1;
    return (int32_t)words - n_locals;
}

int waits_read_words(struct pystack *ps, uint64_t addr, struct waits_words *out) {
    struct pystack_reader *r = &ps->reader;
    const struct pystack_offsets *o = &r->off;
    struct pystack_raw_frame f;
    uint64_t first = addr + (uint64_t)o->frame_localsplus;
    out->n_locals = out->n_stack = 0;
    if (!o->code_flags || pystack_read_raw_frame(ps, addr, &f) != 0 || pystack_is_shim(o, &f))
        return -1;
    out->code = f.code;
    int32_t n_locals = waits_n_locals(r, addr, f.code), n_stack = waits_stack_size(r, f.code);
    if (n_locals < 0 || n_stack < 0)
        return -1;
    uint64_t stack = first + 8 * (uint64_t)n_locals;
    int32_t depth = waits_depth(r, addr, stack, n_locals);
    /* otherwise some words may be of the past */
    if (depth >= 0 && depth < n_stack)
        n_stack = depth;
    out->n_locals = n_locals < WAITS_WORDS ? (size_t)n_locals : WAITS_WORDS;
    out->n_stack = n_stack < WAITS_WORDS ? (size_t)n_stack : WAITS_WORDS;
    if ((out->n_locals && mem_read(&r->mem, first, out->locals, out->n_locals * 8) != 0) ||
        (out->n_stack && mem_read(&r->mem, stack, out->stack, out->n_stack * 8) != 0)) {
        out->n_locals = out->n_stack = 0;
        return -1;
    }
    waits_untag(o, out->locals, out->n_locals);
    waits_untag(o, out->stack, out->n_stack);
    return 0;
}

/* What a variable refers to: the content of a cell. */
static uint64_t waits_variable(struct pystack *ps, struct waits *w, uint64_t word) {
    uint64_t value;
    if (values_kind_of(&w->values, word) == VALUES_CELL)
        return pystack_read_u64_at(&ps->reader, word, ps->reader.off.cell_value, &value) == 0
                   ? value & ~(uint64_t)ps->reader.off.tag_bits
                   : 0;
    return word;
}

uint64_t waits_self(const struct waits_case *l, size_t frame) {
    struct waits_words words;
    if (frame >= l->n || waits_read_words(l->ps, l->places[frame], &words) != 0 || words.n_locals == 0)
        return 0;
    return waits_variable(l->ps, l->w, words.locals[0]);
}

bool waits_is_a(struct waits *w, uint64_t object, const char *name) {
    struct values_type type;
    int rc = values_get_type_of(&w->values, object, &type);
    for (int i = 0; rc == 0 && i < WAITS_BASES_MAX; i++) {
        if (strcmp(type.name, name) == 0)
            return true;
        rc = type.base ? values_get_type(&w->values, type.base, &type) : -1;
    }
    return false;
}

static bool waits_has_type(struct waits *w, uint64_t object, const char *name) {
    struct values_type type;
    return values_get_type_of(&w->values, object, &type) == 0 && strcmp(type.name, name) == 0;
}

/* ---- names of objects ---- */

/* co_names (Include/cpython/code.h): before co_varnames (up to 3.10), or two words before
 * co_flags. */
static uint64_t waits_names(struct pystack_reader *r, uint64_t code, uint64_t *n) {
    const struct pystack_offsets *o = &r->off;
    uint64_t names;
    int32_t at = o->code_kinds ? o->code_flags - 16 : o->code_names - 8;
    if (pystack_read_u64_at(r, code, at, &names) != 0 || !pystack_is_pointer(names) ||
        pystack_read_u64_at(r, names, o->var_size, n) != 0 || *n > WAITS_CODE_WORDS_MAX)
        return 0;
    return names + (uint64_t)o->tuple_items;
}

static bool waits_read_name(struct pystack_reader *r, uint64_t names, uint64_t i, char *buf, size_t cap) {
    uint64_t name;
    return mem_read_u64(&r->mem, names + 8 * i, &name) == 0 && pystack_read_str(r, name, buf, cap) > 0;
}

/* True if the function uses a global variable or an attribute of that name. */
static bool waits_uses(struct pystack_reader *r, uint64_t code, const char *wanted) {
    char name[WAITS_LABEL];
    uint64_t n, names = waits_names(r, code, &n);
    for (uint64_t i = 0; names && i < n && i < WAITS_NAMES_USED; i++)
        if (waits_read_name(r, names, i, name, sizeof name) && strcmp(name, wanted) == 0)
            return true;
    return false;
}

/* The same by names that were read before, for many of them. */
static bool waits_uses_one(struct waits *w, struct pystack_reader *r, uint64_t code, const char *wanted) {
    struct waits_names *known = &w->names;
    uint64_t hash = hash_fnv_text(HASH_FNV_START, wanted), n, names;
    char name[WAITS_LABEL];
    if (known->code != code) {
        known->code = code;
        known->n = 0;
        names = waits_names(r, code, &n);
        for (uint64_t i = 0; names && i < n && i < WAITS_NAMES_USED; i++)
            if (waits_read_name(r, names, i, name, sizeof name))
                known->hashes[known->n++] = hash_fnv_text(HASH_FNV_START, name);
    }
    for (size_t i = 0; i < known->n; i++)
        if (known->hashes[i] == hash)
            return true;
    return false;
}

/* True if the function has the name "acquire": many threads are in the same functions. */
static bool waits_acquires(struct waits *w, struct pystack_reader *r, uint64_t code) {
    struct waits_acquirer *known = &w->acquirers[(code >> 5) % WAITS_LABELS];
    if (known->code != code)
        *known = (struct waits_acquirer){.code = code, .acquires = waits_uses(r, code, "acquire")};
    return known->acquires;
}

struct waits_naming {
    struct waits_case *l;
    const struct waits_words *words;
    uint64_t object;
    char *buf;
    size_t cap;
    uint64_t owners[WAITS_OWNERS_MAX];
    char names[WAITS_OWNERS_MAX][32];
    const char *owner; /* of the attributes that are being compared */
    size_t n_owners, left;
};

static bool waits_match_local(void *arg, size_t slot, const char *name, bool cell) {
    struct waits_naming *s = arg;
    (void)cell;
    if (slot >= s->words->n_locals || name[0] == '.')
        return true;
    uint64_t object = waits_variable(s->l->ps, s->l->w, s->words->locals[slot]);
    if (object == s->object) {
        snprintf(s->buf, s->cap, "%s", name);
        return false;
    }
    if (object && s->n_owners < WAITS_OWNERS_MAX && strlen(name) < sizeof s->names[0]) {
        s->owners[s->n_owners] = object;
        snprintf(s->names[s->n_owners++], sizeof s->names[0], "%s", name);
    }
    return true;
}

/* Variables of the module that the function has names of: their attributes are tried, too. */
static int waits_match_owner(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                             void *arg) {
    struct waits_naming *s = arg;
    char name[sizeof s->names[0]];
    (void)index;
    if (s->n_owners == WAITS_OWNERS_MAX || s->left-- == 0)
        return -1;
    if (pystack_read_str(r, key, name, sizeof name) > 0 && waits_uses_one(s->l->w, r, s->words->code, name)) {
        s->owners[s->n_owners] = value;
        memcpy(s->names[s->n_owners++], name, sizeof name);
    }
    return 0;
}

static int waits_match_global(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                              void *arg) {
    struct waits_naming *s = arg;
    (void)index;
    if (value == s->object)
        return pystack_read_str(r, key, s->buf, s->cap) > 0 ? 1 : -1;
    return s->left-- == 0 ? -1 : 0;
}

/* In the frame of a function f_globals stands one word (up to 3.10) or two words before f_locals
 * (Include/frameobject.h, Include/internal/pycore_frame.h, pycore_interpframe_structs.h). */
static uint64_t waits_globals(struct pystack_reader *r, uint64_t frame) {
    const struct pystack_offsets *o = &r->off;
    uint64_t dict;
    int32_t at = o->frame_locals - (o->frame_style == PYSTACK_FRAME_OBJECT ? 8 : 16);
    return pystack_read_u64_at(r, frame, at, &dict) == 0 ? dict & ~(uint64_t)o->tag_bits : 0;
}

static int waits_match_value(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                             void *arg) {
    struct waits_naming *s = arg;
    char name[48];
    (void)index;
    if (value != s->object)
        return s->left-- == 0 ? -1 : 0;
    if (pystack_read_str(r, key, name, sizeof name) <= 0 || !waits_uses_one(s->l->w, r, s->words->code, name))
        return 0;
    snprintf(s->buf, s->cap, "%s.%s", s->owner, name);
    return 1;
}

/* An attribute of one of the function's variables, of those that it has names of. Values are compared, names
 * read of those alone that are the object: a module has hundreds. */
static bool waits_match_attribute(struct waits_naming *s) {
    for (size_t k = 0; k < s->n_owners; k++) {
        s->owner = s->names[k];
        s->left = WAITS_GLOBALS_MAX;
        if (pystack_attr_each(&s->l->ps->reader, s->owners[k], waits_match_value, s) == 1)
            return true;
    }
    return false;
}

/* As one of the function's variables, or of their attributes. */
static enum waits_place waits_find_near(struct waits_naming *s) {
    struct pystack_reader *r = &s->l->ps->reader;
    pystack_locals_each_name(r, s->words->code, waits_match_local, s);
    if (s->buf[0])
        return WAITS_LOCAL;
    return waits_match_attribute(s) ? WAITS_ATTRIBUTE : WAITS_NOWHERE;
}

/* As a variable of its module, or an attribute of one. */
static enum waits_place waits_find_global(struct waits_naming *s, uint64_t frame) {
    struct pystack_reader *r = &s->l->ps->reader;
    uint64_t dict = waits_globals(r, frame);
    s->left = WAITS_GLOBALS_MAX;
    if (dict && pystack_dict_each(r, dict, waits_match_global, s) == 1)
        return WAITS_GLOBAL;
    s->n_owners = 0;
    s->left = WAITS_OWNERS_TRIED;
    if (dict && pystack_dict_each(r, dict, waits_match_owner, s) <= 0 && waits_match_attribute(s))
        return WAITS_ATTRIBUTE;
    return WAITS_NOWHERE;
}

static struct waits_label *waits_label_at(struct waits *w, uint64_t code, uint64_t object, uint64_t locals) {
    return &w->labels[((object >> 4) ^ (code >> 5) ^ locals) % WAITS_LABELS];
}

static bool waits_is_label(const struct waits_label *known, uint64_t code, uint64_t object, uint64_t locals) {
    return known->code == code && known->object == object && known->locals == locals;
}

static void waits_keep_label(struct waits *w, const struct waits_label *found) {
    *waits_label_at(w, found->code, found->object, found->locals) = *found;
}

/* Each call of a function has variables of its own; what it finds in its module is the same for all. */
enum waits_place waits_find_label(struct waits_case *l, size_t frame, uint64_t object, char *buf,
                                  size_t cap) {
    struct waits_words words;
    char text[WAITS_LABEL] = "";
    buf[0] = '\0';
    if (frame >= l->n || !object || waits_read_words(l->ps, l->places[frame], &words) != 0)
        return WAITS_NOWHERE;
    struct waits_naming s = {.l = l, .words = &words, .object = object, .buf = text, .cap = sizeof text};
    uint64_t locals = hash_fnv(HASH_FNV_START, words.locals, words.n_locals * sizeof words.locals[0]);
    struct waits_label found = *waits_label_at(l->w, words.code, object, locals);
    if (!waits_is_label(&found, words.code, object, locals)) {
        found = (struct waits_label){.code = words.code, .object = object, .place = waits_find_near(&s)};
        if (found.place == WAITS_NOWHERE) {
            const struct waits_label *global = waits_label_at(l->w, words.code, object, 0);
            if (waits_is_label(global, words.code, object, 0))
                found = *global;
            else {
                found.place = waits_find_global(&s, l->places[frame]);
                text_sanitize(found.text, sizeof found.text, found.place == WAITS_NOWHERE ? "" : text);
                waits_keep_label(l->w, &found);
            }
        } else
            text_sanitize(found.text, sizeof found.text, text);
        found.locals = locals;
        waits_keep_label(l->w, &found);
    }
    snprintf(buf, cap, "%s", found.text);
    return found.place;
}

/* ---- the group of a collective ---- */

struct waits_group {
    const struct waits_words *words;
    uint64_t variable, ranks; /* 0: not found */
    uint64_t n;
};

static bool waits_match_group(void *arg, size_t slot, const char *name, bool cell) {
    struct waits_group *g = arg;
    (void)cell;
    if (strcmp(name, "group") != 0)
        return true;
    g->variable = slot < g->words->n_locals ? g->words->locals[slot] : 0;
    return false;
}

static int waits_match_ranks(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                             void *arg) {
    struct waits_group *g = arg;
    (void)r, (void)index;
    if (key != g->variable)
        return 0;
    g->ranks = value;
    return 1;
}

static int waits_count_rank(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                            void *arg) {
    struct waits_group *g = arg;
    (void)r, (void)index, (void)key, (void)value;
    g->n++;
    return 0;
}

/* torch/distributed/distributed_c10d.py, 1.13 to 2.13: _pg_group_ranks is {group: {rank: its number in
 * the group}}. */
uint64_t waits_find_group_size(struct waits_case *l, size_t frame) {
    struct pystack_reader *r = &l->ps->reader;
    struct waits_words words;
    struct waits_group g = {.words = &words};
    uint64_t dict, groups;
    if (frame >= l->n || waits_read_words(l->ps, l->places[frame], &words) != 0 ||
        pystack_locals_each_name(r, words.code, waits_match_group, &g) != 0 || !g.variable)
        return 0;
    g.variable = waits_variable(l->ps, l->w, g.variable);
    if ((dict = waits_globals(r, l->places[frame])) == 0 ||
        pystack_dict_find(r, dict, "_pg_group_ranks", NULL, &groups) != 0 ||
        pystack_dict_each(r, groups, waits_match_ranks, &g) != 1 ||
        pystack_dict_each(r, g.ranks, waits_count_rank, &g) != 0)
        return 0;
    return g.n;
}

/* ---- the object of a futex ---- */

/* The object of a bound method (of C or of Python) at `addr`; 0: it is none. `*exits`: the method is
 * __exit__. */
static uint64_t waits_bound(struct pystack *ps, struct waits *w, uint64_t addr, bool *exits) {
    struct pystack_reader *r = &ps->reader;
    int32_t head = r->off.object_size;
    uint64_t words[2], name;
    char text[64] = "";
    bool builtin = waits_has_type(w, addr, "builtin_function_or_method");
    *exits = false;
    if ((!builtin && !waits_has_type(w, addr, "method")) ||
        mem_read(&r->mem, addr + (uint64_t)head, words, sizeof words) != 0)
        return 0;
    if (builtin) {
        if (mem_read_u64(&r->mem, words[0], &name) == 0)
            mem_read_cstr(&r->mem, name, text, sizeof text);
        *exits = strcmp(text, "__exit__") == 0;
    } else if (pystack_read_u64_at(r, words[0], r->off.function_qualname, &name) == 0 &&
               pystack_read_str(r, name, text, sizeof text) > 0) {
        const char *dot = strrchr(text, '.');
        *exits = strcmp(dot ? dot + 1 : text, "__exit__") == 0;
    }
    return words[1] & ~(uint64_t)r->off.tag_bits;
}

/* The futex that a waiting thread would sleep on, or the mutex that it waits for. */
struct waits_guard {
    uint64_t futex; /* up to 3.13, and of a lock of processes */
    uint64_t mutex; /* from 3.13 on */
};

static bool waits_is_guarded(struct pystack *ps, uint64_t object, const struct waits_guard *g) {
    uint64_t at = object + (uint64_t)ps->reader.off.object_size, word;
    if (!pystack_is_pointer(object))
        return false;
    if (g->mutex && g->mutex == at)
        return true;
    if (!g->futex || mem_read_u64(&ps->reader.mem, at, &word) != 0 || word != g->futex)
        return false;
    /* From 3.14 on only a lock of processes has a pointer to its semaphore. */
    return ps->reader.off.minor < 14 || waits_has_type(ps->waits, object, "_multiprocessing.SemLock");
}

/* The object among the words of the innermost frame; 0 none. */
static uint64_t waits_find_object(struct waits_case *l, const struct waits_guard *g) {
    struct waits_words words;
    if (l->n == 0 || waits_read_words(l->ps, l->places[0], &words) != 0)
        return 0;
    for (size_t i = words.n_stack; i-- > 0;) {
        bool exits;
        uint64_t object = words.stack[i];
        if (!pystack_is_pointer(object))
            continue;
        if (!waits_is_guarded(l->ps, object, g))
            object = waits_bound(l->ps, l->w, object, &exits);
        if (object && waits_is_guarded(l->ps, object, g))
            return object;
    }
    for (size_t i = 0; i < words.n_locals; i++) {
        uint64_t object = words.locals[i] ? waits_variable(l->ps, l->w, words.locals[i]) : 0;
        if (object && waits_is_guarded(l->ps, object, g))
            return object;
    }
    return 0;
}

/* ---- frames of the library ---- */

/* Files whose frames stand between a function of the job and what it waits for. */
static const char *const waits_library[] = {
    "threading.py",
    "queue.py",
    "concurrent/futures/_base.py",
    "concurrent/futures/thread.py",
    "multiprocessing/synchronize.py",
    "multiprocessing/queues.py",
    "multiprocessing/pool.py",
};

/* Functions that run whatever they are given: it is not theirs. */
static bool waits_is_runner(const struct model_frame *f) {
    return waits_is_in(f, "threading.py", "run") || waits_is_in(f, "threading.py", "_bootstrap_inner") ||
           waits_is_in(f, "threading.py", "_bootstrap") ||
           waits_is_in(f, "concurrent/futures/thread.py", "run");
}

static bool waits_is_library(const struct model_frame *f) {
    if (waits_is_runner(f))
        return false;
    for (size_t i = 0; i < sizeof waits_library / sizeof waits_library[0]; i++)
        if (waits_is_in(f, waits_library[i], NULL))
            return true;
    return false;
}

/* What a function of the library waits for, if it waits until it is woken; the outermost one of a
 * thread that is here counts. */
static const struct {
    const char *file, *func, *class; /* of `self`; NULL any */
    enum model_wait_kind kind;
    const char *what; /* without a name; NULL: the class and the name of the object */
} waits_known[] = {
    {"threading.py", "wait", "Event", MODEL_WAIT_EVENT, NULL},
    {"threading.py", "wait", "Barrier", MODEL_WAIT_BARRIER, NULL},
    {"threading.py", "wait", "Condition", MODEL_WAIT_CONDITION, NULL},
    {"threading.py", "wait_for", "Condition", MODEL_WAIT_CONDITION, NULL},
    {"threading.py", "acquire", "Semaphore", MODEL_WAIT_SEMAPHORE, NULL},
    {"threading.py", "start", "Thread", MODEL_WAIT_EVENT, "a thread that it starts"},
    {"threading.py", "join", "Thread", MODEL_WAIT_THREAD, "the end of thread"},
    {"threading.py", "_wait_for_tstate_lock", "Thread", MODEL_WAIT_THREAD, "the end of thread"},
    {"threading.py", "_shutdown", NULL, MODEL_WAIT_THREAD, "the end of all threads that are not daemons"},
    {"queue.py", "get", "Queue", MODEL_WAIT_QUEUE, NULL},
    {"queue.py", "put", "Queue", MODEL_WAIT_QUEUE, NULL},
    {"queue.py", "join", "Queue", MODEL_WAIT_QUEUE, NULL},
    {"concurrent/futures/_base.py", "result", "Future", MODEL_WAIT_FUTURE, NULL},
    {"concurrent/futures/_base.py", "exception", "Future", MODEL_WAIT_FUTURE, NULL},
    {"concurrent/futures/_base.py", "wait", NULL, MODEL_WAIT_FUTURE, "futures"},
    {"concurrent/futures/_base.py", "as_completed", NULL, MODEL_WAIT_FUTURE, "futures"},
    {"concurrent/futures/thread.py", "_worker", NULL, MODEL_WAIT_QUEUE, "work for its executor"},
    {"multiprocessing/queues.py", "_feed", NULL, MODEL_WAIT_QUEUE, "items for its multiprocessing.Queue"},
};
#define WAITS_KNOWN (sizeof waits_known / sizeof waits_known[0])

/* A worker of an executor waits for work in its queue, one of a multiprocessing.Queue for items on its
 * condition: below that they work, or wait for something else. */
static bool waits_is_at_work(const struct waits_case *l, size_t frame) {
    const struct model_frame *f = &l->frames[frame], *inner = frame ? f - 1 : NULL;
    if (waits_is_in(f, "concurrent/futures/thread.py", "_worker"))
        return inner && !waits_is_in(inner, "queue.py", "get");
    if (waits_is_in(f, "multiprocessing/queues.py", "_feed"))
        return !inner || !waits_is_in(inner, "threading.py", "wait");
    return false;
}

static size_t waits_find_known(const struct waits_case *l, size_t frame, uint64_t *self) {
    *self = 0;
    for (size_t i = 0; i < WAITS_KNOWN; i++) {
        if (!waits_is_in(&l->frames[frame], waits_known[i].file, waits_known[i].func) ||
            waits_is_at_work(l, frame))
            continue;
        *self = *self ? *self : waits_self(l, frame);
        if (!waits_known[i].class || (*self && waits_is_a(l->w, *self, waits_known[i].class)))
            return i;
    }
    return WAITS_KNOWN;
}

/* ---- what it says of them ---- */

static void waits_put_type(struct waits_case *l, uint64_t object, const char *label) {
    struct values_type type;
    const char *name = values_get_type_of(&l->w->values, object, &type) == 0 ? type.name : "object";
    const char *dot = strrchr(name, '.');
    snprintf(l->e->what, sizeof l->e->what, "%.40s%s%.60s", dot ? dot + 1 : name, label[0] ? " " : "", label);
}

static int64_t waits_int_attr(struct pystack_reader *r, uint64_t object, const char *name) {
    uint64_t at, v;
    return pystack_attr_find(r, object, name, NULL, &at) == 0 && pystack_read_int(r, at, &v) == 0 &&
                   v <= INT32_MAX
               ? (int64_t)v
               : -1;
}

/* Whether a queue is empty or full, which it is as long as threads wait for it, but for those in join; its
 * deque or list has its length where all have it. */
static void waits_put_queue(struct waits_case *l, uint64_t queue) {
    struct pystack_reader *r = &l->ps->reader;
    size_t at = strlen(l->e->what);
    uint64_t items, n;
    int64_t most = waits_int_attr(r, queue, "maxsize");
    if (pystack_attr_find(r, queue, "queue", NULL, &items) != 0 ||
        pystack_read_u64_at(r, items, r->off.var_size, &n) != 0 || n > INT32_MAX)
        return;
    if (n == 0)
        snprintf(l->e->what + at, sizeof l->e->what - at, ", empty");
    else if (most > 0 && n >= (uint64_t)most)
        snprintf(l->e->what + at, sizeof l->e->what - at, ", full (%lld)", (long long)n);
}

static void waits_put_barrier(struct waits_case *l, uint64_t barrier) {
    size_t at = strlen(l->e->what);
    int64_t there = waits_int_attr(&l->ps->reader, barrier, "_count"),
            of = waits_int_attr(&l->ps->reader, barrier, "_parties");
    l->e->changes = true;
    if (there >= 0 && of > 0)
        snprintf(l->e->what + at, sizeof l->e->what - at, ", %lld of %lld are there", (long long)there,
                 (long long)of);
}

/* The end of a thread: its name, and its ident, which leads to its number. */
static void waits_put_thread(struct waits_case *l, uint64_t thread) {
    struct pystack_reader *r = &l->ps->reader;
    uint64_t at;
    char name[64];
    if (pystack_attr_find(r, thread, "_name", NULL, &at) == 0 &&
        pystack_read_str(r, at, name, sizeof name) > 0) {
        size_t n = strlen(l->e->what);
        snprintf(l->e->what + n, sizeof l->e->what - n, " %s", name);
    }
    if (pystack_attr_find(r, thread, "_ident", NULL, &at) == 0)
        pystack_read_int(r, at, &l->e->ident);
}

/* The lock that threads of a condition hold when they are awake; 0 unknown. */
static uint64_t waits_condition_lock(struct pystack *ps, uint64_t condition) {
    uint64_t lock;
    return pystack_attr_find(&ps->reader, condition, "_lock", NULL, &lock) == 0 ? lock : 0;
}

/* ---- a thread in futex(2) ---- */

static void waits_put_deadline(struct waits_case *l) {
    uint64_t op = l->call.args[1], at = l->call.args[3];
    struct timespec ts, now;
    int command = (int)op & FUTEX_CMD_MASK;
    if (!at || (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET))
        return;
    l->e->flags |= MODEL_WAIT_TIMED;
    /* FUTEX_WAIT has a duration, from when on is not known. */
    if (command != FUTEX_WAIT_BITSET || mem_read(&l->ps->reader.mem, at, &ts, sizeof ts) != 0 ||
        clock_gettime(op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now) != 0)
        return;
    double left = (double)(ts.tv_sec - now.tv_sec) + (double)(ts.tv_nsec - now.tv_nsec) / 1e9;
    if (left > 0 && left < 1e9)
        l->e->deadline_ns = clock_mono_ns() + (uint64_t)(left * 1e9);
}

/* A lock whose holder may be known. */
static void waits_put_lock(struct waits_case *l, uint64_t object, uint64_t guard, size_t user) {
    char label[WAITS_LABEL];
    struct waits_entry *e = l->e;
    uint64_t named = object, self;
    struct values_type type;
    bool feeds = user > 0 && waits_is_in(&l->frames[user - 1], "multiprocessing/queues.py", "_feed");
    if (values_get_type_of(&l->w->values, object, &type) != 0)
        return;
    /* The job knows a condition, a semaphore or a queue rather than the lock within. */
    if (user > 0 && !feeds && (self = waits_self(l, user - 1)) != 0)
        named = self;
    waits_find_label(l, user, named, label, sizeof label);
    if (strcmp(type.name, "_thread.lock") == 0)
        e->kind = MODEL_WAIT_LOCK;
    else if (strcmp(type.name, "_thread.RLock") == 0)
        e->kind = MODEL_WAIT_RLOCK;
    else if (strcmp(type.name, "_multiprocessing.SemLock") == 0)
        e->kind = MODEL_WAIT_PROCESS_LOCK;
    else if (strcmp(type.name, "_queue.SimpleQueue") == 0)
        e->kind = MODEL_WAIT_QUEUE;
    else
        return;
    if (e->kind == MODEL_WAIT_LOCK || e->kind == MODEL_WAIT_RLOCK) {
        e->lock = object;
        e->guard = guard;
        if (named != object) {
            waits_put_type(l, named, label);
            char of[WAITS_WHAT];
            snprintf(of, sizeof of, "%s", e->what);
            snprintf(e->what, sizeof e->what, "the lock of %.100s", of);
        } else {
            snprintf(e->what, sizeof e->what, "%s%s%s", e->kind == MODEL_WAIT_LOCK ? "Lock" : "RLock",
                     label[0] ? " " : "", label);
        }
    } else if (feeds) {
        snprintf(e->what, sizeof e->what, "the lock for writing to its multiprocessing.Queue");
    } else {
        waits_put_type(l, named, label);
        if (e->kind == MODEL_WAIT_QUEUE)
            snprintf(e->what + strlen(e->what), sizeof e->what - strlen(e->what), ", empty");
    }
}

/* What a function of the library waits for that has been woken by nobody so far. */
static bool waits_put_known(struct waits_case *l, size_t user) {
    char label[WAITS_LABEL];
    struct waits_entry *e = l->e;
    for (size_t i = user; i-- > 0;) {
        uint64_t self;
        size_t k = waits_find_known(l, i, &self);
        if (k == WAITS_KNOWN)
            continue;
        e->kind = waits_known[k].kind;
        if (waits_known[k].what)
            snprintf(e->what, sizeof e->what, "%s", waits_known[k].what);
        else {
            waits_find_label(l, i + 1, self, label, sizeof label);
            waits_put_type(l, self, label);
        }
        if (e->kind == MODEL_WAIT_QUEUE && waits_known[k].class) {
            waits_put_queue(l, self);
            e->changes = strcmp(waits_known[k].func, "join") == 0;
        } else if (e->kind == MODEL_WAIT_BARRIER)
            waits_put_barrier(l, self);
        else if (e->kind == MODEL_WAIT_THREAD && waits_known[k].class)
            waits_put_thread(l, self);
        return true;
    }
    return false;
}

void waits_find_futex(struct waits_case *l) {
    struct pystack *ps = l->ps;
    struct waits_entry *e = l->e;
    struct waits_guard g = {.futex = l->call.args[0]};
    size_t user = 0; /* the first frame that is not of the library */
    waits_put_deadline(l);
    if (ps->reader.off.minor >= 13)
        mem_read_u64(&ps->reader.mem, l->call.args[0] - 8, &g.mutex);
    while (user < l->n && waits_is_library(&l->frames[user]))
        user++;
    uint64_t object = waits_find_object(l, &g), condition = 0;
    if (l->n && waits_is_in(&l->frames[0], "threading.py", "wait"))
        condition = waits_self(l, 0);
    uint64_t of_condition = condition ? waits_condition_lock(ps, condition) : 0;
    bool again = object && object == of_condition;
    /* It waits to be woken, unless it waits for a lock: to begin, or once it was woken. */
    if (!again && waits_put_known(l, user)) {
        bool locks =
            waits_has_type(l->w, object, "_thread.lock") || waits_has_type(l->w, object, "_thread.RLock");
        if (!locks || condition || e->kind == MODEL_WAIT_THREAD) {
            e->released = of_condition;
            return;
        }
        e->kind = MODEL_WAIT_UNKNOWN;
        e->what[0] = '\0';
        e->ident = 0;
    }
    if (object) {
        bool by_mutex = g.mutex && g.mutex == object + (uint64_t)ps->reader.off.object_size;
        waits_put_lock(l, object, by_mutex ? g.mutex : g.futex, user);
        /* Condition.wait has released its Lock, and takes it again: no block of `with` around it holds it */
        if (waits_is_in(&l->frames[0], "threading.py", "_acquire_restore"))
            e->released = object;
        if (e->kind != MODEL_WAIT_UNKNOWN)
            return;
    }
    e->kind = MODEL_WAIT_NATIVE_LOCK;
    snprintf(e->what, sizeof e->what, "a lock in native code (futex 0x%llx)",
             (unsigned long long)l->call.args[0]);
}

/* ---- holders ---- */

/* What is looked for in the frames of one thread. */
struct waits_scan {
    struct pystack *ps;
    struct waits *w;
    struct waits_entry *e;
};

static void waits_add_claim(struct waits_scan *s, uint64_t lock, enum waits_how how) {
    struct waits_entry *e = s->e;
    /* frames come innermost first */
    for (size_t i = 0; i < e->n_claims; i++)
        if (e->claims[i].lock == lock && (e->claims[i].how == WAITS_RELEASED || e->claims[i].how == how))
            return;
    if (e->n_claims < WAITS_CLAIMS)
        e->claims[e->n_claims++] = (struct waits_claim){.lock = lock, .how = how};
}

/* Its place among the wanted locks, or their number. */
static size_t waits_place_of(const struct waits *w, uint64_t object) {
    size_t i = 0;
    while (i < w->n_wanted && w->wanted[i] != object)
        i++;
    return i;
}

static bool waits_is_wanted(const struct waits *w, uint64_t object) {
    return waits_place_of(w, object) < w->n_wanted;
}

/* The wanted lock that leaving a block of `with object` would release; 0 none. */
static uint64_t waits_lock_of(struct waits_scan *s, uint64_t object) {
    if (waits_is_wanted(s->w, object))
        return object;
    struct values_type type;
    /* A condition, or what looks like one, has its lock in an attribute. */
    if (values_get_type_of(&s->w->values, object, &type) != 0 || !type.heap ||
        !waits_is_a(s->w, object, "Condition"))
        return 0;
    uint64_t lock = waits_condition_lock(s->ps, object);
    return waits_is_wanted(s->w, lock) ? lock : 0;
}

static bool waits_is_exit_function(struct waits_scan *s, uint64_t addr) {
    struct pystack_reader *r = &s->ps->reader;
    char text[64];
    uint64_t name;
    /* Include/cpython/descrobject.h: PyDescrObject is type, name */
    int32_t at = waits_has_type(s->w, addr, "method_descriptor") ? r->off.object_size + 8
                 : waits_has_type(s->w, addr, "function")        ? r->off.function_qualname
                                                                 : 0;
    if (!at || pystack_read_u64_at(r, addr, at, &name) != 0 ||
        pystack_read_str(r, name, text, sizeof text) <= 0)
        return false;
    const char *dot = strrchr(text, '.');
    return strcmp(dot ? dot + 1 : text, "__exit__") == 0;
}

/* The wanted lock that is held as long as word `i` of a value stack is in use; 0 none. */
static uint64_t waits_exit_lock(struct waits_scan *s, const struct waits_words *words, size_t i) {
    bool exits;
    uint64_t word = words->stack[i];
    if (!pystack_is_pointer(word))
        return 0;
    if (s->ps->reader.off.minor < 14) {
        uint64_t object = waits_bound(s->ps, s->w, word, &exits);
        return object && exits ? waits_lock_of(s, object) : 0;
    }
    uint64_t lock = i > 0 && pystack_is_pointer(words->stack[i - 1]) ? waits_lock_of(s, word) : 0;
    return lock && waits_is_exit_function(s, words->stack[i - 1]) ? lock : 0;
}

static void waits_scan_stack(struct waits_scan *s, const struct pystack_raw_frame *f,
                             const struct waits_words *words) {
    int32_t depth = 0; /* of its blocks */
    bool known = false;
    for (size_t i = 0; i < words->n_stack; i++) {
        uint64_t lock = waits_exit_lock(s, words, i);
        if (!lock)
            continue;
        if (!known)
            depth = pystack_blocks_read(s->ps, f);
        known = true;
        if ((int64_t)i < depth)
            waits_add_claim(s, lock, WAITS_INSIDE);
    }
}

/* A function that acquires locks by itself and refers to a wanted one. */
static void waits_scan_acquires(struct waits_scan *s, uint64_t frame, const struct waits_words *words) {
    struct waits_case l = {.ps = s->ps, .w = s->w, .e = s->e, .places = &frame, .n = 1};
    char label[WAITS_LABEL];
    if (!waits_acquires(s->w, &s->ps->reader, words->code))
        return;
    for (size_t i = 0; i < s->w->n_wanted; i++) {
        enum waits_place place = waits_find_label(&l, 0, s->w->wanted[i], label, sizeof label);
        if (place == WAITS_LOCAL || place == WAITS_ATTRIBUTE ||
            (place == WAITS_GLOBAL && waits_uses(&s->ps->reader, words->code, label)))
            waits_add_claim(s, s->w->wanted[i], WAITS_ACQUIRES);
    }
}

/* A thread in Condition.wait has let go of the condition's lock, whatever it does there: it may wait for the
 * GIL, or run a handler of a signal. */
static void waits_scan_wait(struct waits_scan *s, const struct pystack_raw_frame *f,
                            const struct waits_words *words) {
    struct pystack *ps = s->ps;
    uint64_t self = words->n_locals ? waits_variable(ps, s->w, words->locals[0]) : 0;
    uint64_t lock = self && !waits_is_wanted(s->w, self) ? waits_lock_of(s, self) : 0;
    struct pystack_code *code = lock ? pystack_codes_get_running(&ps->codes, &ps->reader, f->code) : NULL;
    if (!code)
        return;
    const struct model_frame frame = {.func = pystack_code_func(&ps->codes, code),
                                      .file = pystack_code_file(&ps->codes, code)};
    if (waits_is_in(&frame, "threading.py", "wait"))
        waits_add_claim(s, lock, WAITS_RELEASED);
}

static void waits_scan_thread(struct waits_scan *s) {
    struct waits_words words;
    struct pystack_raw_frame f;
    uint64_t at;
    s->e->n_claims = 0;
    s->e->looked = false;
    if (pystack_read_first_frame(s->ps, s->e->tstate, &at) != 0)
        at = 0;
    for (size_t i = 0; i < WAITS_SCAN_FRAMES && at; i++, at = f.previous) {
        if (waits_is_late(s->w))
            return;
        if (pystack_read_raw_frame(s->ps, at, &f) != 0)
            break;
        if (pystack_is_shim(&s->ps->reader.off, &f) || waits_read_words(s->ps, at, &words) != 0)
            continue;
        waits_scan_wait(s, &f, &words);
        waits_scan_stack(s, &f, &words);
        waits_scan_acquires(s, at, &words);
    }
    s->e->looked = true;
    s->e->set = s->w->wanted_set;
}

/* How sure it is that a thread holds a lock: 2 inside `with`, 1 it may have acquired it, 0 not. */
static int waits_judge(const struct waits_entry *e, uint64_t lock) {
    if (e->known && e->released == lock)
        return 0;
    bool waits_too = e->known && e->lock == lock, acquires = false;
    for (size_t i = 0; i < e->n_claims; i++) {
        if (e->claims[i].lock == lock && e->claims[i].how == WAITS_INSIDE)
            return 2;
        acquires = acquires || (e->claims[i].lock == lock && e->claims[i].how == WAITS_ACQUIRES);
    }
    return acquires && !waits_too;
}

/* The one thread that holds a lock, as far as can be seen. */
struct waits_holder {
    uint64_t tid; /* 0 none, or several */
    uint32_t flags;
};

static struct waits_holder waits_find_holder(const struct waits *w, uint64_t lock,
                                             const struct model_snapshot *out) {
    const struct waits_entry *best = NULL;
    int how = 0, rivals = 0;
    for (size_t i = 0; i < w->n; i++) {
        int sure = waits_judge(&w->now[i], lock);
        if (sure > how) {
            best = &w->now[i];
            how = sure;
            rivals = 0;
        } else if (sure && sure == how)
            rivals++;
    }
    if (!best || rivals)
        return (struct waits_holder){.tid = 0};
    return (struct waits_holder){.tid = (uint64_t)out->threads[best->index].tid,
                                 .flags = MODEL_WAIT_LIKELY | (how == 1 ? MODEL_WAIT_GUESSED : 0)};
}

/* Fill in the tables of numbers and identifiers. 0, or -1 without memory. */
static int waits_index(struct waits *w, const struct pystack_thread *threads, size_t n,
                       const struct model_snapshot *s) {
    table_clear(&w->tids);
    table_clear(&w->idents);
    for (size_t i = 0; i < s->n_threads; i++)
        if (table_add(&w->tids, hash_mix((uint64_t)s->threads[i].tid), (uint32_t)i) != 0)
            return -1;
    for (size_t i = 0; i < n; i++)
        if (table_add(&w->idents, hash_mix(threads[i].ident), (uint32_t)i) != 0)
            return -1;
    return 0;
}

static uint64_t waits_tid_of(const struct waits *w, const struct pystack_thread *threads, uint64_t ident) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; ident && (i = table_next(&w->idents, hash_mix(ident), &at)) != TABLE_NONE;)
        if (threads[i].ident == ident && threads[i].tid > 0)
            return (uint64_t)threads[i].tid;
    return 0;
}

/* The owner of an RLock, which still is the lock that it was; 0 nobody, or unknown. */
static uint64_t waits_owner(struct pystack *ps, const struct waits_entry *e) {
    struct pystack_reader *r = &ps->reader;
    uint64_t words[3], at = e->lock + (uint64_t)r->off.object_size;
    if (mem_read(&r->mem, at, words, sizeof words) != 0 || words[2] > UINT32_MAX)
        return 0;
    /* From 3.14 on the level counts from 0, and the lowest bit of the mutex says that it is locked. */
    bool held = r->off.minor >= 14 ? words[0] & 1 : words[2] > 0 && words[0] == e->guard;
    return held ? words[1] : 0;
}

/* A thread that has run since it was looked at may have the lock by now, and what it seemed to hold is
 * of another moment. */
static void waits_check(struct pystack *ps, struct waits_entry *e, struct model_snapshot *out) {
    struct procfs_stat st;
    if (!e->known || (e->kind != MODEL_WAIT_LOCK && e->kind != MODEL_WAIT_RLOCK))
        return;
    if (procfs_read_stat(ps->pid, e->tid, &st) == 0 && st.state == e->state &&
        pystack_thread_cpu(ps, e->tid, &st) == e->cpu_ns)
        return;
    e->known = false;
    out->threads[e->index].wait = (struct model_wait){.kind = MODEL_WAIT_UNKNOWN};
}

static void waits_want(struct waits *w, uint64_t lock) {
    if (w->n_wanted < WAITS_LOCKS && !waits_is_wanted(w, lock))
        w->wanted[w->n_wanted++] = lock;
}

/* The same number for the same locks, in whatever order. */
static uint64_t waits_number_set(const struct waits *w) {
    uint64_t set = w->n_wanted;
    for (size_t i = 0; i < w->n_wanted; i++)
        set += (w->wanted[i] + 1) * 0x9E3779B97F4A7C15ULL;
    return set;
}

/* Its place among the threads; their number: it is not there. */
static size_t waits_find_thread(const struct waits *w, const struct model_snapshot *s, uint64_t tid) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&w->tids, hash_mix(tid), &at)) != TABLE_NONE;)
        if ((uint64_t)s->threads[i].tid == tid)
            return i;
    return s->n_threads;
}

/* True if the thread waits, forever, for the one that `tid` names, as far as that is more than a
 * guess. */
static bool waits_forever(const struct model_wait *w) {
    return w->tid && !(w->flags & (MODEL_WAIT_TIMED | MODEL_WAIT_GUESSED)) &&
           (w->kind == MODEL_WAIT_LOCK || w->kind == MODEL_WAIT_RLOCK || w->kind == MODEL_WAIT_THREAD);
}

/* Mark the cycles of threads each of which waits for the next. */
static void waits_find_cycles(const struct waits *w, struct model_snapshot *s) {
    uint32_t *walk = arena_calloc(&s->arena, s->n_threads, sizeof *walk); /* the first that came by */
    for (size_t first = 0; walk && first < s->n_threads; first++) {
        size_t i = first;
        while (i < s->n_threads && walk[i] == 0 && waits_forever(&s->threads[i].wait)) {
            walk[i] = (uint32_t)first + 1;
            i = waits_find_thread(w, s, s->threads[i].wait.tid);
        }
        if (i == s->n_threads || walk[i] != first + 1)
            continue;
        while (!(s->threads[i].wait.flags & MODEL_WAIT_DEADLOCK)) {
            s->threads[i].wait.flags |= MODEL_WAIT_DEADLOCK;
            i = waits_find_thread(w, s, s->threads[i].wait.tid);
        }
    }
}

void waits_find_holders(struct pystack *ps, const struct pystack_thread *threads, size_t n,
                        struct model_snapshot *out) {
    struct waits *w = ps->waits;
    size_t k;
    if (waits_index(w, threads, n, out) != 0)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->now[i].known && w->now[i].kind == MODEL_WAIT_LOCK)
            waits_want(w, w->now[i].lock);
    w->wanted_set = waits_number_set(w);
    for (size_t i = 0; i < w->n && w->n_wanted && !waits_is_late(w); i++) {
        struct waits_entry *e = &w->now[i];
        struct waits_scan scan = {.ps = ps, .w = w, .e = e};
        if (!e->looked || e->set != w->wanted_set || !e->known)
            waits_scan_thread(&scan);
    }
    /* Whoever is not looked at may hold it as well: then nobody is named. */
    bool late = w->n_wanted && (waits_is_late(w) || n >= PYSTACK_MAX_THREADS);
    struct waits_holder holders[WAITS_LOCKS];
    for (size_t i = 0; i < w->n_wanted; i++)
        holders[i] = waits_find_holder(w, w->wanted[i], out);
    for (size_t i = 0; i < w->n; i++) {
        const struct waits_entry *e = &w->now[i];
        struct model_wait *wait = &out->threads[e->index].wait;
        if (!e->known)
            continue;
        if (e->kind == MODEL_WAIT_GIL && out->gil_tid > 0)
            wait->tid = (uint64_t)out->gil_tid;
        else if (e->kind == MODEL_WAIT_THREAD)
            wait->tid = waits_tid_of(w, threads, e->ident);
        else if (e->kind == MODEL_WAIT_RLOCK)
            wait->tid = waits_tid_of(w, threads, waits_owner(ps, e));
        else if (e->kind == MODEL_WAIT_LOCK && !late && (k = waits_place_of(w, e->lock)) < w->n_wanted) {
            wait->tid = holders[k].tid;
            wait->flags |= holders[k].flags;
        }
    }
    for (size_t i = 0; i < w->n; i++)
        waits_check(ps, &w->now[i], out);
    waits_find_cycles(w, out);
}
