/* SPDX-License-Identifier: Apache-2.0 */
/* loaders: see loaders.h. */
#include "pystack/loaders.h"

#include <stdlib.h>

#include "base/clock.h"
#include "pystack/pystack_internal.h"
#include "pystack/read_cache.h"

#define LOADERS_FRAMES 256    /* of one thread */
#define LOADERS_WORDS 160     /* of one frame or generator, from its beginning, */
#define LOADERS_FEW 16        /* so many if no others follow */
#define LOADERS_DEPTH 5       /* generators within generators */
#define LOADERS_OBJECTS 20000 /* objects that are examined */
#define LOADERS_SEEN 8192     /* of them that are remembered; a power of two */
#define LOADERS_TYPES 1024    /* a power of two */
#define LOADERS_TYPES_NS (30 * CLOCK_NS_PER_S)
#define LOADERS_TRIES 4 /* to read consistent counters */
#define LOADERS_NAME 48
#define LOADERS_HEAD 64 /* of an object, up to its type: bytes, at most */
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

/* What is kept between searches, and between readings. */
struct loaders {
    struct {
        uint64_t addr;
        enum loaders_kind kind;
    } types[LOADERS_TYPES];
    uint64_t types_ns; /* since when: another type may be at an address later */
    /* An iterator is read again and again: what was read of it last is read first, at once. */
    uint64_t addr; /* of the iterator */
    struct pystack_reader reader;
    struct read_cache cache;
};

/* A search. */
struct loaders_work {
    struct pystack *ps;
    struct loaders *kept;
    uint64_t seen[LOADERS_SEEN];
    unsigned visits;
    uint64_t *found;
    size_t n;
    /* of objects that are examined together: where their heads are, and these */
    struct iovec remote[LOADERS_WORDS];
    uint8_t heads[LOADERS_WORDS * LOADERS_HEAD];
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

/* Bytes of an object up to its type; 0 if they are unknown. */
static size_t loaders_head(const struct pystack_offsets *o) {
    int32_t at = o->object_type;
    return at < 8 || at + 8 > LOADERS_HEAD ? 0 : (size_t)at + 8;
}

/* The type in the head of an object; 0 if there is none, or it was freed. */
static uint64_t loaders_head_type(const struct pystack_offsets *o, const uint8_t *head) {
    int32_t at = o->object_type;
    uint64_t type = pystack_get_u64(head, at);
    if (!o->free_threaded && (pystack_get_u64(head, at - 8) & UINT32_MAX) == 0)
        return 0;
    return pystack_is_pointer(type) ? type : 0;
}

/* The type of the object at `addr`; 0 as above. */
static uint64_t loaders_type(struct pystack_reader *r, uint64_t addr) {
    uint8_t head[LOADERS_HEAD];
    size_t len = loaders_head(&r->off);
    if (!pystack_is_pointer(addr) || !len || mem_read(&r->mem, addr, head, len) != 0)
        return 0;
    return loaders_head_type(&r->off, head);
}

static enum loaders_kind loaders_type_kind(struct loaders_work *w, uint64_t type) {
    if (!type)
        return LOADERS_OTHER;
    size_t at = loaders_hash(type, LOADERS_TYPES);
    if (w->kept->types[at].addr != type) {
        w->kept->types[at].addr = type;
        w->kept->types[at].kind = loaders_name_kind(&w->ps->reader, type);
    }
    return w->kept->types[at].kind;
}

/* The types of `n` objects, read together. */
static void loaders_read_types(struct loaders_work *w, const uint64_t *addrs, size_t n, uint64_t *types) {
    struct pystack_reader *r = &w->ps->reader;
    size_t len = loaders_head(&r->off);
    memset(types, 0, n * sizeof *types);
    for (size_t i = 0; i < n; i++)
        w->remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)addrs[i], .iov_len = len};
    /* One that cannot be read ends a reading. */
    for (size_t from = 0; len && from < n; from++) {
        size_t whole = mem_read_many(&r->mem, w->remote + from, n - from, w->heads);
        for (size_t i = 0; i < whole; i++)
            types[from++] = loaders_head_type(&r->off, w->heads + i * len);
    }
}

/* ---- the search ---- */

static void loaders_follow(struct loaders_work *w, uint64_t addr, enum loaders_kind kind, unsigned depth);

static bool loaders_is_new(struct loaders_work *w, uint64_t addr) {
    size_t at = loaders_hash(addr, LOADERS_SEEN);
    if (!pystack_is_pointer(addr) || w->seen[at] == addr || w->visits >= LOADERS_OBJECTS)
        return false;
    w->seen[at] = addr; /* one that was evicted is examined again */
    w->visits++;
    return true;
}

/* Examine what the words from `addr` on point to. */
static void loaders_scan(struct loaders_work *w, uint64_t addr, unsigned depth) {
    uint64_t words[LOADERS_WORDS], types[LOADERS_WORDS];
    size_t n = LOADERS_WORDS, n_new = 0;
    if (mem_read(&w->ps->reader.mem, addr, words, n * 8) != 0) {
        n = LOADERS_FEW;
        if (mem_read(&w->ps->reader.mem, addr, words, n * 8) != 0)
            return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t object = words[i] & ~(uint64_t)w->ps->reader.off.tag_bits;
        if (loaders_is_new(w, object))
            words[n_new++] = object;
    }
    loaders_read_types(w, words, n_new, types);
    for (size_t i = 0; i < n_new; i++)
        loaders_follow(w, words[i], loaders_type_kind(w, types[i]), depth);
}

static void loaders_add(struct loaders_work *w, uint64_t addr) {
    for (size_t i = 0; i < w->n; i++)
        if (w->found[i] == addr)
            return;
    if (w->n < PYSTACK_LOADERS)
        w->found[w->n++] = addr;
}

static void loaders_follow(struct loaders_work *w, uint64_t addr, enum loaders_kind kind, unsigned depth) {
    uint64_t kept;
    switch (kind) {
    case LOADERS_MANY:
    case LOADERS_ONE:
        loaders_add(w, addr);
        break;
    case LOADERS_DATA:
        if (depth < LOADERS_DEPTH && pystack_attr_find(&w->ps->reader, addr, "_iterator", NULL, &kept) == 0 &&
            loaders_is_new(w, kept))
            loaders_follow(w, kept, loaders_type_kind(w, loaders_type(&w->ps->reader, kept)), depth + 1);
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

/* NULL without memory. */
static struct loaders *loaders_keep(struct pystack *ps) {
    if (!ps->loaders)
        ps->loaders = calloc(1, sizeof *ps->loaders);
    return ps->loaders;
}

ssize_t pystack_find_loaders(struct pystack *ps, uint64_t *addrs) {
    struct arena arena;
    struct pystack_thread *threads;
    uint64_t now_ns = clock_mono_ns();
    arena_init(&arena, LOADERS_ARENA);
    struct loaders *kept = loaders_keep(ps);
    struct loaders_work *w = kept ? calloc(1, sizeof *w) : NULL;
    ssize_t n = w ? pystack_read_threads(ps, &arena, &threads) : -1;
    if (n >= 0 && now_ns - kept->types_ns > LOADERS_TYPES_NS) {
        memset(kept->types, 0, sizeof kept->types);
        kept->types_ns = now_ns;
    }
    if (n >= 0 && ps->reader.off.type_name) {
        w->ps = ps;
        w->kept = kept;
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

/* The reader for the iterator at `addr`, as of now. */
static struct pystack_reader *loaders_begin(struct pystack *ps, uint64_t addr) {
    struct loaders *l = loaders_keep(ps);
    if (!l)
        return &ps->reader;
    if (l->addr != addr) {
        l->addr = addr;
        l->reader.off = ps->reader.off;
        read_cache_init(&l->cache, &l->reader.mem, &ps->reader.mem);
    }
    read_cache_begin(&l->cache);
    return &l->reader;
}

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

static bool loaders_is_iterator(struct pystack_reader *r, uint64_t addr, bool *processes) {
    uint64_t type = loaders_type(r, addr);
    enum loaders_kind kind = type ? loaders_name_kind(r, type) : LOADERS_OTHER;
    *processes = kind == LOADERS_MANY;
    return kind == LOADERS_MANY || kind == LOADERS_ONE;
}

bool pystack_is_loader(struct pystack *ps, uint64_t addr, bool *processes) {
    return loaders_is_iterator(&ps->reader, addr, processes);
}

/* 0 or -1. Its thread may run at the same time. */
static int loaders_read(struct pystack_reader *r, uint64_t addr, struct pystack_loader *out) {
    *out = (struct pystack_loader){.addr = addr};
    if (!loaders_is_iterator(r, addr, &out->processes))
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
    out->sent = loaders_int(r, addr, "_send_idx");
    out->received = loaders_int(r, addr, "_rcvd_idx");
    out->outstanding = loaders_int(r, addr, "_tasks_outstanding");
    loaders_read_workers(r, addr, out);
    loaders_read_queues(r, addr, out);
    return 0;
}

static bool loaders_has_moved(const struct pystack_loader *from, const struct pystack_loader *to) {
    return from->sent != to->sent || from->received != to->received || from->yielded != to->yielded ||
           from->outstanding != to->outstanding;
}

int pystack_read_loader(struct pystack *ps, uint64_t addr, struct pystack_loader *out) {
    struct pystack_loader next;
    if (loaders_read(loaders_begin(ps, addr), addr, out) != 0)
        return -1;
    /* All counts are of one moment if they are the same after the last of them was read. */
    for (int tries = 0; out->processes; tries++) {
        if (loaders_read(loaders_begin(ps, addr), addr, &next) != 0)
            return -1;
        if (!loaders_has_moved(out, &next))
            break;
        *out = next;
        if (tries == LOADERS_TRIES) {
            out->ready = MODEL_UNKNOWN;
            break;
        }
    }
    return 0;
}
