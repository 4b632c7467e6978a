/* SPDX-License-Identifier: Apache-2.0 */
/* loaders: see loaders.h. */
#include "pystack/loaders.h"

#include <stdlib.h>

#include "pystack/pystack_internal.h"

#define LOADERS_FRAMES 256    /* of one thread */
#define LOADERS_WORDS 160     /* of one frame or generator, from its beginning, */
#define LOADERS_FEW 16        /* so many if no others follow */
#define LOADERS_DEPTH 5       /* generators within generators */
#define LOADERS_OBJECTS 20000 /* objects that are examined */
#define LOADERS_SEEN 8192     /* of them that are remembered; a power of two */
#define LOADERS_TYPES 256     /* a power of two */
#define LOADERS_TRIES 4       /* to read consistent counters */
#define LOADERS_NAME 48
#define LOADERS_ARENA ((size_t)2 * 1024 * 1024)
#define LOADERS_COUNT_MAX (1LL << 40) /* no counter is larger */
#define LOADERS_SEM_HANDLE                                                                                   \
    16 /* SemLock: PyObject_HEAD, sem_t *handle, unsigned long, int count, int maxvalue */
#define LOADERS_SEM_MAX 36

/* Kinds of objects, by type. */
enum loaders_kind {
    LOADERS_OTHER = 1,
    LOADERS_MANY,   /* an iterator with worker processes */
    LOADERS_ONE,    /* an iterator without */
    LOADERS_DATA,   /* a DataLoader, which may keep its iterator */
    LOADERS_HOLDER, /* an object that may refer to an iterator from its own words */
};

static const struct {
    const char *name;
    enum loaders_kind kind;
} loaders_types[] = {
    {"_MultiProcessingDataLoaderIter", LOADERS_MANY},
    {"_SingleProcessDataLoaderIter", LOADERS_ONE},
    {"DataLoader", LOADERS_DATA},
    {"generator", LOADERS_HOLDER},
    {"frame", LOADERS_HOLDER},
    {"enumerate", LOADERS_HOLDER},
    {"zip", LOADERS_HOLDER},
    {"map", LOADERS_HOLDER},
    {"filter", LOADERS_HOLDER},
    {"itertools.islice", LOADERS_HOLDER},
    {"itertools.cycle", LOADERS_HOLDER},
    {"itertools.chain", LOADERS_HOLDER},
};

/* A search. */
struct loaders_work {
    struct pystack *ps;
    struct {
        uint64_t addr;
        enum loaders_kind kind;
    } types[LOADERS_TYPES];
    uint64_t seen[LOADERS_SEEN];
    unsigned visits;
    uint64_t *found;
    size_t n;
};

static size_t loaders_hash(uint64_t p, size_t n) {
    return (size_t)((p >> 4) * 0x9E3779B97F4A7C15ULL >> 40) & (n - 1);
}

/* ---- types ---- */

static enum loaders_kind loaders_name_kind(struct pystack_reader *r, uint64_t type) {
    char name[LOADERS_NAME];
    uint64_t at;
    if (pystack_read_u64_at(r, type, r->off.type_name, &at) != 0 || at == 0)
        return LOADERS_OTHER;
    size_t n = sizeof name; /* a text may end where memory does */
    while (n >= 8 && mem_read(&r->mem, at, name, n) != 0)
        n /= 2;
    for (size_t i = 0; n >= 8 && i < sizeof loaders_types / sizeof loaders_types[0]; i++) {
        size_t len = strlen(loaders_types[i].name) + 1;
        if (len <= n && memcmp(name, loaders_types[i].name, len) == 0)
            return loaders_types[i].kind;
    }
    return LOADERS_OTHER;
}

/* The type of the object at `addr`; 0 if there is none, or it was freed. */
static uint64_t loaders_type(struct pystack_reader *r, uint64_t addr) {
    uint8_t head[PYSTACK_STRUCT_MAX];
    int32_t at = r->off.object_type;
    if (!pystack_is_pointer(addr) || at < 8 || at + 8 > (int32_t)sizeof head ||
        mem_read(&r->mem, addr, head, (size_t)at + 8) != 0 ||
        (!r->off.free_threaded && (pystack_get_u64(head, at - 8) & UINT32_MAX) == 0))
        return 0;
    uint64_t type = pystack_get_u64(head, at);
    return pystack_is_pointer(type) ? type : 0;
}

static enum loaders_kind loaders_kind(struct loaders_work *w, uint64_t addr) {
    uint64_t type = loaders_type(&w->ps->reader, addr);
    if (!type)
        return LOADERS_OTHER;
    size_t at = loaders_hash(type, LOADERS_TYPES);
    if (w->types[at].addr != type) {
        w->types[at].addr = type;
        w->types[at].kind = loaders_name_kind(&w->ps->reader, type);
    }
    return w->types[at].kind;
}

/* ---- the search ---- */

static void loaders_visit(struct loaders_work *w, uint64_t addr, unsigned depth);

/* Examine what the words from `addr` on point to. */
static void loaders_scan(struct loaders_work *w, uint64_t addr, unsigned depth) {
    uint64_t words[LOADERS_WORDS];
    size_t n = LOADERS_WORDS;
    if (mem_read(&w->ps->reader.mem, addr, words, n * 8) != 0) {
        n = LOADERS_FEW;
        if (mem_read(&w->ps->reader.mem, addr, words, n * 8) != 0)
            return;
    }
    for (size_t i = 0; i < n; i++)
        loaders_visit(w, words[i] & ~(uint64_t)w->ps->reader.off.tag_bits, depth);
}

static bool loaders_is_new(struct loaders_work *w, uint64_t addr) {
    size_t at = loaders_hash(addr, LOADERS_SEEN);
    bool is_new = w->seen[at] != addr; /* one that was evicted is examined again */
    w->seen[at] = addr;
    return is_new;
}

static void loaders_add(struct loaders_work *w, uint64_t addr) {
    for (size_t i = 0; i < w->n; i++)
        if (w->found[i] == addr)
            return;
    if (w->n < PYSTACK_LOADERS)
        w->found[w->n++] = addr;
}

static void loaders_visit(struct loaders_work *w, uint64_t addr, unsigned depth) {
    uint64_t kept;
    if (!pystack_is_pointer(addr) || !loaders_is_new(w, addr) || w->visits >= LOADERS_OBJECTS)
        return;
    w->visits++;
    switch (loaders_kind(w, addr)) {
    case LOADERS_MANY:
    case LOADERS_ONE:
        loaders_add(w, addr);
        break;
    case LOADERS_DATA:
        if (depth < LOADERS_DEPTH && pystack_attr_find(&w->ps->reader, addr, "_iterator", NULL, &kept) == 0)
            loaders_visit(w, kept, depth + 1);
        break;
    case LOADERS_HOLDER:
        if (depth < LOADERS_DEPTH)
            loaders_scan(w, addr + 16, depth + 1);
        break;
    default:
        break;
    }
}

static void loaders_search_thread(struct loaders_work *w, const struct pystack_thread *t) {
    const struct pystack_offsets *o = &w->ps->reader.off;
    struct pystack_raw_frame f;
    uint64_t at;
    if (pystack_read_first_frame(w->ps, t->tstate, &at) != 0)
        return;
    for (size_t i = 0; i < LOADERS_FRAMES && at; i++, at = f.previous) {
        if (pystack_read_raw_frame(w->ps, at, &f) != 0)
            return;
        if (!pystack_is_shim(o, &f))
            loaders_scan(w, at + (uint64_t)o->frame_localsplus, 0);
    }
}

ssize_t pystack_find_loaders(struct pystack *ps, uint64_t *addrs) {
    struct arena arena;
    struct pystack_thread *threads;
    arena_init(&arena, LOADERS_ARENA);
    struct loaders_work *w = calloc(1, sizeof *w);
    ssize_t n = w ? pystack_read_threads(ps, &arena, &threads) : -1;
    if (n >= 0 && ps->reader.off.type_name) {
        w->ps = ps;
        w->found = addrs;
        for (ssize_t i = 0; i < n; i++)
            loaders_search_thread(w, &threads[i]);
        n = (ssize_t)w->n;
    }
    free(w);
    arena_fini(&arena);
    return n;
}

/* ---- an iterator ---- */

static int64_t loaders_int(struct pystack_reader *r, uint64_t object, const char *name) {
    uint64_t at, v;
    if (pystack_attr_find(r, object, name, NULL, &at) != 0 || pystack_read_int(r, at, &v) != 0 ||
        v > LOADERS_COUNT_MAX)
        return MODEL_UNKNOWN;
    return (int64_t)v;
}

static void loaders_read_dataset(struct pystack_reader *r, uint64_t addr, struct pystack_loader *out) {
    uint64_t dataset, type, at;
    if (pystack_attr_find(r, addr, "_dataset", NULL, &dataset) != 0 || !(type = loaders_type(r, dataset)) ||
        pystack_read_u64_at(r, type, r->off.type_name, &at) != 0)
        return;
    size_t n = sizeof out->dataset;
    while (n >= 8 && mem_read(&r->mem, at, out->dataset, n) != 0)
        n /= 2;
    out->dataset[n >= 8 ? n - 1 : 0] = '\0';
}

/* Item `i` of the list at `list`. 0 or -1. */
static int loaders_item(struct pystack_reader *r, uint64_t list, size_t i, uint64_t *item) {
    uint64_t items;
    return pystack_read_u64_at(r, list, r->off.list_items, &items) == 0 && pystack_is_pointer(items)
               ? mem_read_u64(&r->mem, items + 8 * i, item)
               : -1;
}

static void loaders_read_workers(struct pystack_reader *r, uint64_t addr, struct pystack_loader *out) {
    uint64_t list, states = 0, n, item, popen, active;
    if (pystack_attr_find(r, addr, "_workers", NULL, &list) != 0 ||
        pystack_read_u64_at(r, list, r->off.var_size, &n) != 0)
        return;
    pystack_attr_find(r, addr, "_workers_status", NULL, &states);
    out->n = n < PYSTACK_LOADER_WORKERS ? (size_t)n : PYSTACK_LOADER_WORKERS;
    for (size_t i = 0; i < out->n; i++) {
        struct pystack_loader_worker *k = &out->worker[i];
        *k = (struct pystack_loader_worker){.pid = MODEL_UNKNOWN, .active = MODEL_UNKNOWN};
        if (loaders_item(r, list, i, &item) == 0 &&
            pystack_attr_find(r, item & ~(uint64_t)r->off.tag_bits, "_popen", NULL, &popen) == 0)
            k->pid = loaders_int(r, popen, "pid");
        if (states && loaders_item(r, states, i, &item) == 0 && pystack_read_int(r, item, &active) == 0)
            k->active = active == 1;
    }
}

/* Batches under way: number of the batch -> (worker,), and then (worker, batch) once it has come
 * before its turn. */
struct loaders_tasks {
    struct pystack_loader *out;
    int64_t arrived;
};

static int loaders_task(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value, void *arg) {
    struct loaders_tasks *t = arg;
    uint64_t n, item, worker;
    (void)index, (void)key;
    if (pystack_read_u64_at(r, value, r->off.var_size, &n) != 0 || n < 1 || n > 2 ||
        mem_read_u64(&r->mem, value + (uint64_t)r->off.tuple_items, &item) != 0 ||
        pystack_read_int(r, item, &worker) != 0)
        return 0;
    t->arrived += n == 2;
    if (n == 1 && worker < t->out->n)
        t->out->worker[worker].outstanding++;
    return 0;
}

/* Batches in a multiprocessing queue: those put in and not taken out, by its semaphore; or in a
 * queue between threads. */
static int64_t loaders_queued(struct pystack_reader *r, uint64_t queue) {
    uint64_t deque, n, sem, lock, handle;
    uint32_t value;
    int32_t max;
    if (pystack_attr_find(r, queue, "queue", NULL, &deque) == 0)
        return pystack_read_u64_at(r, deque, r->off.var_size, &n) == 0 && n < LOADERS_COUNT_MAX
                   ? (int64_t)n
                   : MODEL_UNKNOWN;
    if (pystack_attr_find(r, queue, "_sem", NULL, &sem) != 0 ||
        pystack_attr_find(r, sem, "_semlock", NULL, &lock) != 0 || r->off.object_type != 8 ||
        mem_read_u64(&r->mem, lock + LOADERS_SEM_HANDLE, &handle) != 0 ||
        mem_read(&r->mem, lock + LOADERS_SEM_MAX, &max, sizeof max) != 0 || !pystack_is_pointer(handle) ||
        mem_read(&r->mem, handle, &value, sizeof value) != 0 || max <= 0 || value > (uint32_t)max)
        return MODEL_UNKNOWN;
    return (int64_t)max - (int64_t)value;
}

static void loaders_read_queues(struct pystack_reader *r, uint64_t addr, struct pystack_loader *out) {
    struct loaders_tasks tasks = {.out = out};
    uint64_t info, queue;
    bool known = pystack_attr_find(r, addr, "_task_info", NULL, &info) == 0 &&
                 pystack_dict_each(r, info, loaders_task, &tasks) == 0;
    for (size_t i = 0; !known && i < out->n; i++)
        out->worker[i].outstanding = MODEL_UNKNOWN;
    if (!known || pystack_attr_find(r, addr, "_data_queue", NULL, &queue) != 0)
        return;
    int64_t queued = loaders_queued(r, queue);
    if (queued >= 0 && (out->outstanding < 0 || queued <= out->outstanding))
        out->ready = queued + tasks.arrived;
}

/* Counters of one with worker processes. Its thread may run at the same time. 0; -1 if it did. */
static int loaders_read_counts(struct pystack_reader *r, uint64_t addr, struct pystack_loader *out) {
    out->ready = MODEL_UNKNOWN;
    out->sent = loaders_int(r, addr, "_send_idx");
    out->received = loaders_int(r, addr, "_rcvd_idx");
    out->outstanding = loaders_int(r, addr, "_tasks_outstanding");
    /* not that of an earlier try: all are of one moment */
    out->yielded = loaders_int(r, addr, "_num_yielded");
    loaders_read_workers(r, addr, out);
    loaders_read_queues(r, addr, out);
    return loaders_int(r, addr, "_send_idx") == out->sent &&
                   loaders_int(r, addr, "_num_yielded") == out->yielded &&
                   loaders_int(r, addr, "_rcvd_idx") == out->received &&
                   loaders_int(r, addr, "_tasks_outstanding") == out->outstanding
               ? 0
               : -1;
}

bool pystack_is_loader(struct pystack *ps, uint64_t addr, bool *processes) {
    uint64_t type = loaders_type(&ps->reader, addr);
    enum loaders_kind kind = type ? loaders_name_kind(&ps->reader, type) : LOADERS_OTHER;
    *processes = kind == LOADERS_MANY;
    return kind == LOADERS_MANY || kind == LOADERS_ONE;
}

int pystack_read_loader(struct pystack *ps, uint64_t addr, struct pystack_loader *out) {
    struct pystack_reader *r = &ps->reader;
    *out = (struct pystack_loader){.addr = addr};
    if (!pystack_is_loader(ps, addr, &out->processes))
        return -1;
    out->workers = loaders_int(r, addr, "_num_workers");
    out->yielded = loaders_int(r, addr, "_num_yielded");
    if (out->workers < 0 || out->yielded < 0)
        return -1;
    out->prefetch = out->sent = out->received = out->outstanding = out->ready = MODEL_UNKNOWN;
    out->persistent = loaders_int(r, addr, "_persistent_workers");
    loaders_read_dataset(r, addr, out);
    if (!out->processes)
        return 0;
    out->prefetch = loaders_int(r, addr, "_prefetch_factor");
    for (int tries = 0; loaders_read_counts(r, addr, out) != 0; tries++)
        if (tries == LOADERS_TRIES) {
            out->ready = MODEL_UNKNOWN; /* not of the same moment */
            break;
        }
    return 0;
}
