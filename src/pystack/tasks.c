/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks: see tasks.h.
 *
 * Sources: Modules/_asynciomodule.c (lists, awaited_by), Include/internal/pycore_llist.h,
 * Include/internal/ pycore_interpframe_structs.h (generators), Objects/genobject.c (_PyGen_yf;
 * wrappers keep their generator first).
 */
#include "pystack/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/procfs.h"
#include "pystack/mapped.h"
#include "pystack/values_internal.h"

#define TASKS_ATTEMPTS 3
#define TASKS_STRUCT_MAX 4096     /* no task is larger */
#define TASKS_STATE_MAX (1 << 20) /* nor is a thread's or an interpreter's state */
#define TASKS_FRAMES_MAX 64       /* of one task */
#define TASKS_AWAITERS_MAX 16     /* of one task */
#define TASKS_FUTURES_MAX 4       /* between a task and one that awaits it */
#define TASKS_SET_SLOTS 256       /* examined slots of a set's table */
/* on the way to what awaits one task: futures may stand for futures, each for many */
#define TASKS_VISITS_MAX 1024
#define TASKS_FLAG(x) ((x) != 0)

/* ---- what is published ---- */

enum { TASKS_WORD_TASK = 0, TASKS_WORD_INTERP = 7, TASKS_WORD_TSTATE = 9, TASKS_WORDS = 13 };

static int tasks_take(const uint8_t *bytes, size_t word, uint64_t size, uint64_t width, int32_t *out) {
    uint64_t v = pystack_get_u64(bytes, (int32_t)word * 8);
    *out = (int32_t)v;
    return v <= size && size - v >= width ? 0 : -1;
}

int pystack_asyncio_parse(const uint8_t *bytes, size_t n, struct pystack_asyncio *out) {
    if (n < TASKS_WORDS * 8)
        return -1;
    uint64_t task = pystack_get_u64(bytes, TASKS_WORD_TASK * 8),
             interp = pystack_get_u64(bytes, TASKS_WORD_INTERP * 8),
             tstate = pystack_get_u64(bytes, TASKS_WORD_TSTATE * 8);
    struct pystack_asyncio a = {.task_size = (int32_t)task};
    if (task == 0 || task > TASKS_STRUCT_MAX || interp == 0 || interp > TASKS_STATE_MAX || tstate == 0 ||
        tstate > TASKS_STATE_MAX || tasks_take(bytes, 1, task, 8, &a.task_name) != 0 ||
        tasks_take(bytes, 2, task, 8, &a.task_awaited_by) != 0 ||
        tasks_take(bytes, 3, task, 1, &a.task_is_task) != 0 ||
        tasks_take(bytes, 4, task, 1, &a.task_awaited_by_is_set) != 0 ||
        tasks_take(bytes, 5, task, 8, &a.task_coro) != 0 ||
        tasks_take(bytes, 6, task, 16, &a.task_node) != 0 ||
        tasks_take(bytes, 8, interp, 16, &a.interp_tasks) != 0 ||
        tasks_take(bytes, 11, tstate, 8, &a.tstate_running_task) != 0 ||
        tasks_take(bytes, 12, tstate, 16, &a.tstate_tasks) != 0)
        return -1;
    *out = a;
    return 0;
}

/* ---- one task ---- */

struct tasks_work {
    struct pystack *ps;
    const struct pystack_asyncio *a;
    struct values *values;
    struct arena *arena;
    struct model_task *items; /* PYSTACK_TASKS_MAX */
    size_t n;
    uint64_t seen[PYSTACK_TASKS_MAX]; /* of the list being read */
    size_t n_seen;
    bool cut;
};

/* A coroutine, generator or asynchronous generator of Python code. */
static bool tasks_is_generator(const char *type) {
    return strcmp(type, "coroutine") == 0 || strcmp(type, "generator") == 0 ||
           strcmp(type, "async_generator") == 0;
}

/* A wrapper of a generator, which is its first reference. */
static bool tasks_is_wrapper(const char *type) {
    static const char *const wrappers[] = {"coroutine_wrapper", "async_generator_asend",
                                           "async_generator_athrow", "anext_awaitable"};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
        if (strcmp(type, wrappers[i]) == 0)
            return true;
    return false;
}

/* The generator at `addr`, or behind the wrapper there: its address, 0 if there is none. */
static uint64_t tasks_find_generator(struct tasks_work *w, uint64_t addr) {
    struct values_type type;
    for (int i = 0; i < 2; i++) {
        if (values_get_type_of(w->values, addr, &type) != 0 || type.heap)
            return 0;
        if (tasks_is_generator(type.name))
            return addr;
        if (!tasks_is_wrapper(type.name) ||
            pystack_read_u64_at(&w->ps->reader, addr, w->ps->reader.off.object_size, &addr) != 0)
            return 0;
    }
    return 0;
}

/* What a generator in frame `frame` awaits; 0 if nothing is known. */
static uint64_t tasks_find_awaited(struct tasks_work *w, uint64_t generator, uint64_t frame) {
    struct pystack_reader *r = &w->ps->reader;
    const struct pystack_offsets *o = &r->off;
    int8_t state;
    uint64_t top, object;
    if (mem_read(&r->mem, generator + (uint64_t)o->gen_frame_state, &state, 1) != 0 ||
        state != o->gen_awaits || pystack_read_u64_at(r, frame, o->frame_stackpointer, &top) != 0 ||
        !pystack_is_pointer(top) || top <= frame + (uint64_t)o->frame_localsplus ||
        mem_read_u64(&r->mem, top - 8 * (uint64_t)o->gen_awaited_words, &object) != 0)
        return 0;
    return object & ~(uint64_t)o->tag_bits;
}

/* Append the frame at `addr` to ps->frames. False if it is not a function's valid frame. */
static bool tasks_put_frame(struct tasks_work *w, uint64_t addr, size_t *n) {
    struct pystack *ps = w->ps;
    struct pystack_raw_frame f;
    if (pystack_read_raw_frame(ps, addr, &f) != 0)
        return false;
    if (pystack_is_shim(&ps->reader.off, &f))
        return true;
    struct pystack_code *code = pystack_codes_get_running(&ps->codes, &ps->reader, f.code);
    return code && pystack_put_frame(ps, &f, code, n) == 0;
}

/* The frames of a task that its thread is in: from the innermost one to that of the task's own
 * coroutine. */
static bool tasks_put_running(struct tasks_work *w, uint64_t tstate, uint64_t last, size_t *n) {
    struct pystack_raw_frame f;
    uint64_t addr;
    if (pystack_read_first_frame(w->ps, tstate, &addr) != 0)
        return false;
    for (size_t i = 0; i < TASKS_FRAMES_MAX && addr; i++, addr = f.previous) {
        if (pystack_read_raw_frame(w->ps, addr, &f) != 0 || !tasks_put_frame(w, addr, n))
            return false;
        if (addr == last)
            return true;
    }
    return false;
}

static void tasks_reverse(struct model_frame *frames, size_t n) {
    for (size_t i = 0; i < n / 2; i++) {
        struct model_frame swap = frames[i];
        frames[i] = frames[n - 1 - i];
        frames[n - 1 - i] = swap;
    }
}

/* Frames of a task from its coroutine inwards, then reversed. */
static void tasks_put_frames(struct tasks_work *w, uint64_t coroutine, uint64_t running_in,
                             struct model_task *t) {
    struct pystack *ps = w->ps;
    uint64_t generator = tasks_find_generator(w, coroutine);
    int32_t iframe = ps->reader.off.gen_iframe;
    size_t n = 0;
    bool inside =
        running_in && generator && tasks_put_running(w, running_in, generator + (uint64_t)iframe, &n);
    if (!inside) {
        n = 0;
        for (size_t i = 0; generator && i < TASKS_FRAMES_MAX; i++) {
            if (!tasks_put_frame(w, generator + (uint64_t)iframe, &n))
                break;
            generator =
                tasks_find_generator(w, tasks_find_awaited(w, generator, generator + (uint64_t)iframe));
        }
        tasks_reverse(ps->frames, n);
    }
    t->truncated = n >= TASKS_FRAMES_MAX;
    t->frames = arena_calloc(w->arena, n, sizeof *t->frames);
    if (!t->frames)
        return;
    memcpy(t->frames, ps->frames, n * sizeof *t->frames);
    t->n_frames = n;
}

/* The name is a str, or the number from which it will be made. */
static const char *tasks_get_name(struct tasks_work *w, uint64_t addr) {
    char text[PYSTACK_NAME_MAX];
    uint64_t number;
    switch (values_kind_of(w->values, addr)) {
    case VALUES_STR:
        return pystack_read_str(&w->ps->reader, addr, text, sizeof text) > 0 ? arena_strdup(w->arena, text)
                                                                             : NULL;
    case VALUES_INT:
        if (pystack_read_int(&w->ps->reader, addr, &number) != 0)
            return NULL;
        snprintf(text, sizeof text, "Task-%llu", (unsigned long long)number);
        return arena_strdup(w->arena, text);
    default:
        return NULL;
    }
}

/* ---- who awaits whom ---- */

struct tasks_awaiters {
    uint64_t ids[TASKS_AWAITERS_MAX];
    size_t n, visits;
    bool cut;
};

static void tasks_add_awaiters(struct tasks_work *w, uint64_t future, int depth, struct tasks_awaiters *out);

/* Something that awaits: a task counts, a future stands for those that await it. */
static void tasks_add_awaiter(struct tasks_work *w, uint64_t addr, int depth, struct tasks_awaiters *out) {
    uint8_t is_task;
    if (out->visits++ == TASKS_VISITS_MAX)
        out->cut = true;
    if (out->visits > TASKS_VISITS_MAX || !pystack_is_pointer(addr) ||
        mem_read(&w->ps->reader.mem, addr + (uint64_t)w->a->task_is_task, &is_task, 1) != 0)
        return;
    if (!is_task) {
        tasks_add_awaiters(w, addr, depth + 1, out);
        return;
    }
    for (size_t i = 0; i < out->n; i++)
        if (out->ids[i] == addr)
            return;
    if (out->n == TASKS_AWAITERS_MAX)
        out->cut = true;
    else
        out->ids[out->n++] = addr;
}

static void tasks_add_set(struct tasks_work *w, uint64_t set, int depth, struct tasks_awaiters *out) {
    struct pystack_reader *r = &w->ps->reader;
    uint64_t mask, table, entry[2];
    if (values_kind_of(w->values, set) != VALUES_SET ||
        pystack_read_u64_at(r, set, r->off.set_mask, &mask) != 0 ||
        pystack_read_u64_at(r, set, r->off.set_table, &table) != 0 || !pystack_is_pointer(table))
        return;
    for (uint64_t i = 0; i <= mask && i < TASKS_SET_SLOTS && out->visits <= TASKS_VISITS_MAX; i++) {
        if (mem_read(&r->mem, table + i * sizeof entry, entry, sizeof entry) != 0)
            return;
        if (entry[0] && entry[1] != UINT64_MAX)
            tasks_add_awaiter(w, entry[0], depth, out);
    }
    out->cut = out->cut || mask >= TASKS_SET_SLOTS;
}

static void tasks_add_awaiters(struct tasks_work *w, uint64_t future, int depth, struct tasks_awaiters *out) {
    struct pystack_reader *r = &w->ps->reader;
    uint64_t by;
    uint8_t is_set;
    if (depth > TASKS_FUTURES_MAX || pystack_read_u64_at(r, future, w->a->task_awaited_by, &by) != 0 ||
        mem_read(&r->mem, future + (uint64_t)w->a->task_awaited_by_is_set, &is_set, 1) != 0 || !by)
        return;
    if (TASKS_FLAG(is_set))
        tasks_add_set(w, by, depth, out);
    else
        tasks_add_awaiter(w, by, depth, out);
}

static void tasks_put_awaiters(struct tasks_work *w, struct model_task *t) {
    struct tasks_awaiters by = {.n = 0};
    tasks_add_awaiters(w, t->id, 0, &by);
    t->truncated = t->truncated || by.cut;
    t->awaited_by = arena_calloc(w->arena, by.n, sizeof *t->awaited_by);
    if (!t->awaited_by)
        return;
    memcpy(t->awaited_by, by.ids, by.n * sizeof *t->awaited_by);
    t->n_awaited_by = by.n;
}

/* ---- the lists ---- */

/* Add the task at `addr`, of the loop of thread `tid`. `tstate`: the thread state that runs it;
 * 0 none. */
static void tasks_put(struct tasks_work *w, uint64_t addr, int64_t tid, uint64_t tstate) {
    struct pystack_reader *r = &w->ps->reader;
    uint64_t coroutine, name = 0;
    if (w->n == PYSTACK_TASKS_MAX) {
        w->cut = true;
        return;
    }
    if (pystack_read_u64_at(r, addr, w->a->task_coro, &coroutine) != 0)
        return;
    struct model_task *t = &w->items[w->n++];
    *t = (struct model_task){
        .id = addr, .tid = tid, .state = tstate ? MODEL_TASK_RUNNING : MODEL_TASK_PENDING};
    if (pystack_read_u64_at(r, addr, w->a->task_name, &name) == 0)
        t->name = tasks_get_name(w, name);
    tasks_put_frames(w, coroutine, tstate, t);
    t->coro = t->n_frames ? t->frames[t->n_frames - 1].func : NULL;
    tasks_put_awaiters(w, t);
}

/* The tasks of the list whose head is at `head`, into w->seen. 0, or -1 if it is not consistent. */
static int tasks_follow(struct tasks_work *w, uint64_t head) {
    uint64_t node = head, link[2];
    w->n_seen = 0;
    for (;;) {
        uint64_t before = node;
        if (mem_read(&w->ps->reader.mem, node, link, sizeof link) != 0)
            return -1;
        node = link[0];
        if (node == 0 && before == head)
            return 0; /* the thread has never had one */
        if (!pystack_is_pointer(node) || mem_read(&w->ps->reader.mem, node, link, sizeof link) != 0 ||
            link[1] != before)
            return -1;
        if (node == head)
            return 0;
        if (w->n_seen == PYSTACK_TASKS_MAX) {
            w->cut = true;
            return 0;
        }
        w->seen[w->n_seen++] = node - (uint64_t)w->a->task_node;
    }
}

/* Read the list at `head`: of thread state `t`, or, NULL, of ended threads. */
static void tasks_read_list(struct tasks_work *w, uint64_t head, const struct pystack_thread *t) {
    uint64_t running = 0;
    int rc = -1;
    for (int i = 0; i < TASKS_ATTEMPTS && rc != 0; i++)
        rc = tasks_follow(w, head);
    w->cut = w->cut || rc != 0;
    if (t)
        pystack_read_u64_at(&w->ps->reader, t->tstate, w->a->tstate_running_task, &running);
    for (size_t i = 0; i < w->n_seen && !pystack_is_late(w->ps); i++)
        tasks_put(w, w->seen[i], t && t->tid ? t->tid : MODEL_UNKNOWN,
                  t && w->seen[i] == running ? t->tstate : 0);
}

/* By thread, then by address. */
static int tasks_compare(const void *a, const void *b) {
    const struct model_task *x = a, *y = b;
    if (x->tid != y->tid)
        return (x->tid > y->tid) - (x->tid < y->tid);
    return (x->id > y->id) - (x->id < y->id);
}

void pystack_tasks_read(struct pystack *ps, const struct pystack_asyncio *a,
                        const struct pystack_thread *threads, size_t n, struct model_snapshot *out) {
    struct tasks_work *w = calloc(1, sizeof *w);
    struct values *values = calloc(1, sizeof *values);
    struct model_task *items = arena_calloc(&out->arena, PYSTACK_TASKS_MAX, sizeof *items);
    if (w && values && items) {
        *w = (struct tasks_work){.ps = ps, .a = a, .values = values, .arena = &out->arena, .items = items};
        values_begin(values, &ps->reader, ps->pid);
        for (size_t i = 0; i < n && !pystack_is_late(ps); i++) {
            tasks_read_list(w, threads[i].tstate + (uint64_t)a->tstate_tasks, &threads[i]);
            bool last = true; /* of its interpreter */
            for (size_t k = i + 1; k < n; k++)
                last = last && threads[k].interp != threads[i].interp;
            if (last)
                tasks_read_list(w, threads[i].interp + (uint64_t)a->interp_tasks, NULL);
        }
        if (w->n)
            qsort(items, w->n, sizeof *items, tasks_compare);
        out->tasks = items;
        out->n_tasks = w->n;
        out->incomplete = out->incomplete || w->cut || pystack_is_late(ps);
    } else
        out->incomplete = true;
    free(values);
    free(w);
}

/* ---- where _asyncio publishes how its tasks lie ----
 *
 * In the section .AsyncioDebug of its own library, or, when it is built in, of the program or of libpython. The file must be
 * the one that is mapped. */

#define TASKS_SECTION ".AsyncioDebug"

struct tasks_search {
    struct pystack *ps;
    struct pystack_asyncio *out;
    char exe[512];
    bool unseen; /* a file that may have it cannot be read */
};

static bool tasks_may_have(const struct tasks_search *s, const struct procfs_map *map) {
    const char *slash = strrchr(map->path, '/');
    const char *name = slash ? slash + 1 : map->path;
    return map->offset == 0 && map->path[0] == '/' &&
           (strncmp(name, "_asyncio", 8) == 0 || strncmp(name, "libpython", 9) == 0 ||
            strcmp(map->path, s->exe) == 0);
}

static int tasks_try_map(const struct procfs_map *map, void *arg) {
    struct tasks_search *s = arg;
    struct elf_image image;
    struct elf_section section;
    uint8_t bytes[PYSTACK_ASYNCIO_BYTES];
    if (!tasks_may_have(s, map))
        return 0;
    int fd = mapped_open(s->ps->pid, map->path, map->inode);
    s->unseen = s->unseen || fd < 0;
    if (fd < 0)
        return 0;
    int found = elf_find_section(fd, TASKS_SECTION, &section) == 0 && section.size >= sizeof bytes &&
                elf_open_memory(&image, &s->ps->reader.mem, map->start) == 0 &&
                mem_read(&s->ps->reader.mem, image.bias + section.addr, bytes, sizeof bytes) == 0 &&
                pystack_asyncio_parse(bytes, sizeof bytes, s->out) == 0;
    close(fd);
    return found;
}

bool pystack_knows_tasks(const struct pystack *ps) { return ps->reader.off.gen_iframe != 0; }

int pystack_asyncio_find(struct pystack *ps, struct pystack_asyncio *out) {
    struct tasks_search s = {.ps = ps, .out = out};
    if (!pystack_knows_tasks(ps))
        return -1;
    procfs_read_exe(ps->pid, s.exe, sizeof s.exe);
    int rc = procfs_each_map(ps->pid, tasks_try_map, &s);
    return rc == 1 ? 0 : rc == 0 && !s.unseen ? 1 : -1;
}
