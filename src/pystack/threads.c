/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: interpreters and their thread states.
 *
 * Both are doubly checked lists: a thread state names its interpreter and its predecessor, so a list that changes while it is
 * read is noticed and read again. Sources: Include/internal/pycore_interp.h, Include/cpython/pystate.h.
 */
#include "pystack/pystack_internal.h"

#include "base/clock.h"

#define THREADS_ATTEMPTS 4
#define THREADS_YOUNG 64                /* thread states at the head of a list that may not have begun */
#define THREADS_BIRTH_NS CLOCK_NS_PER_S /* one that has not begun within this may never do so */

/* The newest interpreter, at the head of the list. */
static int threads_first_interpreter(struct pystack *ps, uint64_t *interp) {
    int32_t head = ps->reader.off.runtime_interpreters_head;
    uint64_t other, next;
    if (pystack_read_u64_at(&ps->reader, ps->info.runtime, head, interp) != 0)
        return -1;
    if (!ps->static_other || pystack_read_u64_at(&ps->reader, ps->static_other, head, &other) != 0 ||
        other == *interp || !pystack_is_pointer(other) ||
        pystack_read_u64_at(&ps->reader, other, ps->reader.off.interp_next, &next) != 0 || next == 0)
        return 0;
    /* Only the head of the list can name an interpreter that is not the first: that one was interp_head. */
    ps->info.runtime = ps->static_other;
    ps->static_other = 0;
    *interp = other;
    return 0;
}

static int threads_count_interpreters(struct pystack *ps, uint64_t interp, uint64_t *n) {
    for (*n = 0; interp && *n < PYSTACK_MAX_INTERPRETERS; (*n)++)
        if (!pystack_is_pointer(interp) ||
            pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_next, &interp) != 0)
            return -1;
    return 0;
}

int pystack_each_interpreter(struct pystack *ps,
                             int (*fn)(struct pystack *ps, uint64_t interp, int64_t id, void *arg),
                             void *arg) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t interp, id = 0;
    if (threads_first_interpreter(ps, &interp) != 0)
        return -1;
    if (o->interp_id < 0 && threads_count_interpreters(ps, interp, &id) != 0)
        return -1;
    for (int i = 0; interp && i < PYSTACK_MAX_INTERPRETERS; i++) {
        id--; /* without numbers of their own: the newest comes first */
        if (!pystack_is_pointer(interp) ||
            (o->interp_id >= 0 && pystack_read_u64_at(&ps->reader, interp, o->interp_id, &id) != 0))
            return -1;
        int rc = fn(ps, interp, (int64_t)id, arg);
        if (rc)
            return rc;
        if (pystack_read_u64_at(&ps->reader, interp, o->interp_next, &interp) != 0)
            return -1;
    }
    return 0;
}

struct threads_list {
    struct arena *arena;
    struct pystack_thread *items;
    size_t n, cap;
    bool strict; /* a predecessor that does not fit spoils the list */
    uint64_t now_ns;
};

static struct pystack_thread *threads_add(struct threads_list *l) {
    if (l->n == PYSTACK_MAX_THREADS)
        return NULL;
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 32;
        struct pystack_thread *items = arena_calloc(l->arena, cap, sizeof *items);
        if (!items)
            return NULL;
        if (l->n)
            memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->cap = cap;
    }
    return &l->items[l->n++];
}

/* ---- what tells that the list is another ---- */

static void threads_mark(struct pystack *ps, uint64_t addr, uint64_t value) {
    if (ps->n_marks && ps->n_marks < PYSTACK_MAX_MARKS)
        ps->marks[ps->n_marks++] = (struct pystack_mark){.addr = addr, .value = value};
    else
        ps->n_marks = 0;
}

/* New interpreters and thread states come first in their lists. */
static int threads_mark_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    const struct pystack_offsets *o = &ps->reader.off;
    const struct threads_list *l = arg;
    (void)id;
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].interp != interp)
            continue;
        threads_mark(ps, interp + (uint64_t)o->interp_threads_head, l->items[i].tstate);
        if (o->tstate_id >= 0)
            threads_mark(ps, l->items[i].tstate + (uint64_t)o->tstate_id, l->items[i].serial);
        else
            threads_mark(ps, l->items[i].tstate + (uint64_t)o->tstate_thread_id, l->items[i].ident);
        return 0;
    }
    threads_mark(ps, interp + (uint64_t)o->interp_threads_head, 0);
    return 0;
}

static void threads_put_marks(struct pystack *ps, const struct threads_list *l) {
    uint64_t addr = ps->info.runtime + (uint64_t)ps->reader.off.runtime_interpreters_head, first;
    ps->n_marks = 0;
    if (mem_read_u64(&ps->reader.mem, addr, &first) != 0)
        return;
    ps->marks[ps->n_marks++] = (struct pystack_mark){.addr = addr, .value = first};
    if (pystack_each_interpreter(ps, threads_mark_interpreter, (void *)(uintptr_t)l) != 0)
        ps->n_marks = 0;
}

bool pystack_threads_changed(struct pystack *ps) {
    struct iovec pieces[PYSTACK_MAX_MARKS];
    uint64_t now[PYSTACK_MAX_MARKS];
    for (size_t i = 0; i < ps->n_marks; i++)
        pieces[i] =
            (struct iovec){.iov_base = (void *)(uintptr_t)ps->marks[i].addr, .iov_len = sizeof now[i]};
    if (ps->n_marks == 0 || mem_read_many(&ps->reader.mem, pieces, ps->n_marks, now) != ps->n_marks)
        return true;
    for (size_t i = 0; i < ps->n_marks; i++)
        if (now[i] != ps->marks[i].value)
            return true;
    return false;
}

static int64_t threads_tid(struct pystack *ps, const uint8_t *bytes, uint64_t ident) {
    const struct pystack_offsets *o = &ps->reader.off;
    /* The C library's own number is right after a fork too, when the interpreter's may still be the parent's. */
    int64_t tid = pystack_tid_of_ident(ps, ident);
    if (tid == 0 && o->tstate_native_thread_id)
        tid = (int64_t)pystack_get_u64(bytes, o->tstate_native_thread_id);
    return tid > 0 && tid <= INT32_MAX ? tid : 0;
}

int pystack_read_serial(struct pystack *ps, const struct pystack_thread *t, uint64_t *serial) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t ident;
    if (o->tstate_id >= 0)
        return pystack_read_u64_at(&ps->reader, t->tstate, o->tstate_id, serial);
    if (pystack_read_u64_at(&ps->reader, t->tstate, o->tstate_thread_id, &ident) != 0)
        return -1;
    *serial = (uint64_t)pystack_tid_of_ident(ps, ident);
    return 0;
}

/* What is the same for all threads of an interpreter. */
static void threads_read_facts(struct pystack *ps, struct pystack_thread *facts) {
    uint64_t gil;
    facts->gil_enabled = MODEL_UNKNOWN;
    facts->collecting = pystack_read_collecting(ps, facts->interp);
    if (pystack_find_gil(ps, facts->interp, &gil) != 0) {
        ps->holder_unlisted = true;
        return;
    }
    facts->gil_enabled = pystack_read_gil_enabled(ps, gil);
    /* In this order: while the count stays as it is, the holder read after it has not given the GIL to another. */
    facts->gil_counted = pystack_read_gil_switches(ps, gil, &facts->gil_switches) == 0;
    if (pystack_read_gil_holder(ps, gil, &facts->gil_holder) != 0) {
        facts->gil_holder = 0;
        ps->holder_unlisted = true;
    }
}

static int threads_read_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct threads_list *l = arg;
    const struct pystack_offsets *o = &ps->reader.off;
    struct pystack_thread facts = {.interpreter = id, .interp = interp, .seen_ns = l->now_ns};
    uint64_t tstate, holder, previous = 0;
    if (pystack_read_u64_at(&ps->reader, interp, o->interp_threads_head, &tstate) != 0)
        return -1;
    threads_read_facts(ps, &facts);
    holder = facts.gil_holder;
    bool found = holder == 0;
    for (int i = 0; tstate && i < PYSTACK_MAX_THREADS; i++) {
        uint8_t bytes[PYSTACK_STRUCT_MAX] = {0};
        if (!pystack_is_pointer(tstate) ||
            mem_read(&ps->reader.mem, tstate, bytes, (size_t)o->tstate_size) != 0 ||
            pystack_get_u64(bytes, o->tstate_interp) != interp ||
            (l->strict && pystack_get_u64(bytes, o->tstate_prev) != previous))
            return -1;
        struct pystack_thread *t = threads_add(l);
        if (!t)
            return 1;
        uint64_t ident = pystack_get_u64(bytes, o->tstate_thread_id);
        *t = facts;
        t->tstate = tstate;
        t->ident = ident;
        t->tid = threads_tid(ps, bytes, ident);
        t->holds_gil = tstate == holder;
        t->serial = o->tstate_id >= 0 ? pystack_get_u64(bytes, o->tstate_id) : (uint64_t)t->tid;
        found = found || tstate == holder;
        previous = tstate;
        tstate = pystack_get_u64(bytes, o->tstate_next);
    }
    ps->holder_unlisted = ps->holder_unlisted || !found;
    return 0;
}

/* ---- threads that have not begun ---- */

/* A thread state is made by the thread that starts another: until that one has begun it has no thread of its own (3.12 on: none
 * at all; before: its creator's) and no frame. Source: Modules/_threadmodule.c (thread_run), Python/pystate.c. */
static bool threads_is_unborn(struct pystack *ps, const struct threads_list *l, size_t i) {
    const struct pystack_offsets *o = &ps->reader.off;
    const struct pystack_thread *t = &l->items[i];
    uint64_t frame;
    if (t->ident == 0)
        return true;
    for (size_t k = i + 1; k < l->n && l->items[k].interp == t->interp; k++)
        if (l->items[k].ident == t->ident)
            return pystack_read_u64_at(&ps->reader, t->tstate, o->tstate_frame, &frame) == 0 &&
                   (frame == 0 || frame - t->tstate < (uint64_t)o->tstate_size);
    return false;
}

/* Their threads are not known yet; the list has to be read again, for a while. */
static void threads_judge_young(struct pystack *ps, struct threads_list *l) {
    uint64_t unborn = 0;
    size_t age = 0;
    for (size_t i = 0; i < l->n; i++) {
        age = i > 0 && l->items[i - 1].interp == l->items[i].interp ? age + 1 : 0;
        if (age >= THREADS_YOUNG || !threads_is_unborn(ps, l, i))
            continue;
        l->items[i].tid = 0;
        unborn = l->items[i].serial + 1;
    }
    if (unborn != ps->unborn)
        ps->unborn_ns = l->now_ns;
    ps->unborn = unborn;
    if (unborn && l->now_ns - ps->unborn_ns < THREADS_BIRTH_NS)
        ps->n_marks = 0;
}

ssize_t pystack_read_threads(struct pystack *ps, struct arena *arena, struct pystack_thread **out) {
    struct threads_list l = {.arena = arena};
    int rc = -1;
    for (int i = 0; i < THREADS_ATTEMPTS && rc < 0; i++) {
        l.n = 0;
        l.now_ns = clock_mono_ns();
        ps->holder_unlisted = false;
        l.strict = i + 1 < THREADS_ATTEMPTS;
        rc = pystack_each_interpreter(ps, threads_read_interpreter, &l);
    }
    *out = NULL;
    if (rc < 0)
        return -1;
    threads_put_marks(ps, &l);
    threads_judge_young(ps, &l);
    pystack_names_put(ps, l.items, l.n, arena);
    *out = l.items;
    return (ssize_t)l.n;
}

static int threads_check_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t tstate, back;
    (void)id;
    if (pystack_read_u64_at(&ps->reader, interp, o->interp_threads_head, &tstate) != 0 ||
        (tstate &&
         (!pystack_is_pointer(tstate) ||
          pystack_read_u64_at(&ps->reader, tstate, o->tstate_interp, &back) != 0 || back != interp)))
        return -1;
    *(bool *)arg = true;
    return 0;
}

bool pystack_is_there(struct pystack *ps) {
    bool found = false;
    return pystack_each_interpreter(ps, threads_check_interpreter, &found) == 0 && found;
}

int32_t pystack_thread_ready_offset(const struct pystack *ps) {
    const struct pystack_offsets *o = &ps->reader.off;
    return o->major == 3 && o->minor == 11 ? o->tstate_frame : 0;
}
