/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: interpreters and their thread states.
 *
 * Both are doubly checked lists: a thread state names its interpreter and its predecessor, so a
 * change during the read is noticed and the list is read again. Sources:
 * Include/internal/pycore_interp.h, Include/cpython/pystate.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "pystack/pystack_internal.h"

#define THREADS_ATTEMPTS 4
/* thread states at the head of a list that may not have begun */
#define THREADS_YOUNG 64
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
    /* Only the head of the list can name an interpreter that is not the first: that variable was
     * interp_head. */
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
    bool strict; /* a predecessor that does not fit makes the list invalid */
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
    /* The C library's own number is right after a fork too, when the interpreter's may still be
     * the parent's. */
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

/* Facts that all threads of an interpreter share. */
static void threads_read_facts(struct pystack *ps, struct pystack_thread *facts) {
    uint64_t gil;
    facts->gil_enabled = MODEL_UNKNOWN;
    facts->collecting = pystack_read_collecting(ps, facts->interp);
    if (pystack_find_gil(ps, facts->interp, &gil) != 0) {
        ps->holder_unlisted = true;
        return;
    }
    facts->gil_enabled = pystack_read_gil_enabled(ps, gil);
    /* In this order: while the count is unchanged, the holder read after it has not given the
     * GIL to another. */
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

/* A thread state is made by the thread that starts another: until that one has begun, the state
 * has no thread of its own (3.12 on: none at all; before: its creator's) and no frame. Source:
 * Modules/_threadmodule.c (thread_run), Python/pystate.c. */
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

/* By tid. An OS thread with sub-interpreters has several thread states. From 3.13 on the
 * youngest interpreter's is the one that older ones have called into. Before, a
 * sub-interpreter's state claims the thread that created it, whoever runs it
 * (Modules/_xxsubinterpretersmodule.c), so only the oldest certainly belongs to this thread. */
static int threads_compare(const void *a, const void *b, void *arg) {
    const struct pystack_thread *x = a, *y = b;
    const struct pystack *ps = arg;
    if (x->tid != y->tid)
        return (x->tid > y->tid) - (x->tid < y->tid);
    int by_age = (x->interpreter > y->interpreter) - (x->interpreter < y->interpreter);
    if (by_age)
        return ps->info.minor >= 13 ? -by_age : by_age;
    return (x->serial < y->serial) - (x->serial > y->serial); /* the newer one: a thread has one in each */
}

void pystack_sort_threads(const struct pystack *ps, struct pystack_thread *list, size_t n) {
    if (n)
        qsort_r(list, n, sizeof *list, threads_compare, (void *)(uintptr_t)ps);
}

const char *pystack_name_of_thread(const struct pystack_thread *states, size_t n) {
    const struct pystack_thread *named = NULL;
    for (size_t i = 0; i < n; i++)
        if (states[i].name && (!named || states[i].interpreter < named->interpreter))
            named = &states[i];
    return named ? named->name : NULL;
}

size_t pystack_keep_one_state(struct pystack *ps, struct pystack_thread *list, size_t n) {
    size_t kept = 0, same;
    pystack_sort_threads(ps, list, n);
    for (size_t i = 0; i < n; i += same) {
        struct pystack_thread *one = &list[i];
        uint64_t frame = 0;
        for (same = 1; list[i].tid && i + same < n && list[i + same].tid == list[i].tid;)
            same++;
        for (size_t k = 0; same > 1 && k < same && !frame; k++)
            if (pystack_read_first_frame(ps, list[i + k].tstate, &frame) == 0 && frame)
                one = &list[i + k];
        const char *name = pystack_name_of_thread(&list[i], same);
        list[kept] = *one;
        list[kept++].name = name;
    }
    return kept;
}

ssize_t pystack_find_thread(const struct pystack_thread *thread, const void *list, size_t n, size_t size,
                            size_t guess) {
    for (size_t k = 0; k < n; k++) {
        size_t at = (guess + k) % n;
        const struct pystack_thread *known = (const void *)((const char *)list + at * size);
        if (known->serial == thread->serial && known->tstate == thread->tstate && known->tid == thread->tid)
            return (ssize_t)at;
    }
    return -1;
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
    /* what leads to a thread state that is still the same leads to an interpreter */
    return !pystack_threads_changed(ps) ||
           (pystack_each_interpreter(ps, threads_check_interpreter, &found) == 0 && found);
}

int32_t pystack_thread_ready_offset(const struct pystack *ps) {
    const struct pystack_offsets *o = &ps->reader.off;
    return o->major == 3 && o->minor == 11 ? o->tstate_frame : 0;
}

/*
 * ---- numbers of threads ----
 *
 * OS threads, numbered by us and by the target, and how pthread_self leads to them.
 *
 * Up to 3.10 CPython keeps only pthread_self, the address of the C library's struct pthread; the thread's id lies in there at
 * an offset that is found by looking for ids that exist. Namespaces: pid_namespaces(7). */

#define TIDS_PTHREAD_BYTES 1024 /* how far into struct pthread the id is searched for */
#define TIDS_TRIES_MAX 16       /* a C library that hides it is not searched again and again */
#define TIDS_SAMPLE 64          /* threads compared in the search */

/* Offsets to try first: those of glibc and musl for x86-64. */
static const int32_t tids_usual[] = {0x2d0, 0x30};

bool pystack_in_other_namespace(pid_t pid) {
    char path[64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &theirs) == 0 &&
           (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev);
}

ssize_t pystack_list_tids(struct pystack *ps) {
    ssize_t total = procfs_list_tids(ps->pid, ps->numbers, PYSTACK_MAX_THREADS);
    if (total < 0)
        return -1;
    size_t n = total < PYSTACK_MAX_THREADS ? (size_t)total : PYSTACK_MAX_THREADS;
    ps->n_tids = 0;
    for (size_t i = 0; i < n; i++) {
        struct pystack_tid t = {.outer = ps->numbers[i], .inner = ps->numbers[i]};
        struct procfs_status status;
        if (ps->other_namespace) {
            /* ended since the listing */
            if (procfs_read_status(ps->pid, t.outer, &status) != 0)
                continue;
            t.inner = status.ns_pid;
        }
        ps->tids[ps->n_tids++] = t;
    }
    return total;
}

int pystack_refresh_tids(struct pystack *ps) { return pystack_list_tids(ps) < 0 ? -1 : 0; }

static bool tids_exists(const struct pystack *ps, int64_t inner) {
    for (size_t i = 0; i < ps->n_tids; i++)
        if (ps->tids[i].inner == inner)
            return true;
    return false;
}

pid_t pystack_outer_tid(const struct pystack *ps, int64_t inner) {
    if (inner <= 0 || inner > INT32_MAX)
        return 0;
    if (!ps->other_namespace)
        return (pid_t)inner;
    for (size_t i = 0; i < ps->n_tids; i++)
        if (ps->tids[i].inner == inner)
            return ps->tids[i].outer;
    return 0;
}

/* Number of the sampled threads whose word at `at` is the id of a thread, each a different one;
 * -1 if one is not. With `usual`, the known place of a C library, those that are not do not
 * count against it: a fork leaves 3.6 the states of threads that are gone. */
static int tids_count_matches(struct pystack *ps, const uint64_t *idents, size_t n, int32_t at, bool usual) {
    uint32_t seen[TIDS_SAMPLE];
    int matches = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t tid;
        /* a thread that ended */
        if (mem_read_u32(&ps->reader.mem, idents[i] + (uint64_t)at, &tid) != 0)
            continue;
        if (!tids_exists(ps, tid)) {
            if (usual)
                continue;
            return -1;
        }
        for (int j = 0; j < matches; j++)
            if (seen[j] == tid)
                return -1;
        seen[matches++] = tid;
    }
    return matches;
}

struct tids_sample {
    uint64_t idents[TIDS_SAMPLE];
    size_t n;
};

/* A thread that runs several interpreters has a thread state in each. */
static bool tids_is_sampled(const struct tids_sample *s, uint64_t ident) {
    for (size_t i = 0; i < s->n; i++)
        if (s->idents[i] == ident)
            return true;
    return false;
}

static int tids_sample_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct tids_sample *s = arg;
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t tstate, ident;
    (void)id;
    if (pystack_read_u64_at(&ps->reader, interp, o->interp_threads_head, &tstate) != 0)
        return 0;
    for (int i = 0; tstate && s->n < TIDS_SAMPLE && i < PYSTACK_MAX_THREADS; i++) {
        if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_thread_id, &ident) != 0)
            break;
        if (pystack_is_pointer(ident) && !tids_is_sampled(s, ident))
            s->idents[s->n++] = ident;
        if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_next, &tstate) != 0)
            break;
    }
    return s->n == TIDS_SAMPLE;
}

/* Find the offset of the thread id in struct pthread: the first at which every Python thread has
 * an existing id of its own. */
static void tids_find_offset(struct pystack *ps) {
    struct tids_sample s = {.n = 0};
    if (pystack_list_tids(ps) < 0 || pystack_each_interpreter(ps, tids_sample_interpreter, &s) < 0 ||
        s.n == 0)
        return;
    for (size_t i = 0; i < sizeof tids_usual / sizeof tids_usual[0]; i++)
        if (tids_count_matches(ps, s.idents, s.n, tids_usual[i], true) > 0) {
            ps->pthread_tid = tids_usual[i];
            return;
        }
    for (int32_t at = 0; at < TIDS_PTHREAD_BYTES; at += 4)
        if (tids_count_matches(ps, s.idents, s.n, at, false) > 0) {
            ps->pthread_tid = at;
            return;
        }
}

int64_t pystack_tid_of_ident(struct pystack *ps, uint64_t ident) {
    uint32_t tid;
    if (ps->pthread_tid < 0 && ps->pthread_tries < TIDS_TRIES_MAX) {
        ps->pthread_tries++;
        tids_find_offset(ps);
    }
    if (ps->pthread_tid < 0 || !pystack_is_pointer(ident) ||
        mem_read_u32(&ps->reader.mem, ident + (uint64_t)ps->pthread_tid, &tid) != 0 || tid > INT32_MAX)
        return 0;
    return (int64_t)tid;
}
