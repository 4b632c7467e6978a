/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_spans: see torch_spans.h. Sources: ATen/record_function.h (class RecordFunctionCallback, enum class RecordScope, struct
 * ObserverContext) of torch 1.13 to 2.13; the System V ABI and the Itanium C++ ABI for how they are passed and returned.
 *
 * A callback is a C function with the calling convention of the C++ one: it returns a std::unique_ptr<ObserverContext> by a
 * hidden pointer, to which it writes NULL: there is no context to be destroyed.
 */
#include "agent/torch_spans.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/spans.h"
#include "agent/steps.h"
#include "base/clock.h"
#include "base/elf.h"
#include "base/mem.h"
#include "base/procfs.h"

#define TORCH_SPANS_FIRST 113 /* versions: 100 * major + minor */
#define TORCH_SPANS_LAST 213
#define TORCH_SPANS_SCOPES 10
#define TORCH_SPANS_BACKWARD 1 /* RecordScope::BACKWARD_FUNCTION */
#define TORCH_SPANS_USER 7     /* RecordScope::USER_SCOPE */
#define TORCH_SPANS_TIMED 64   /* one of so many is timed */

/* at::RecordFunctionCallback. */
struct torch_spans_callback {
    void *(*start)(void **context, const void *record);
    void (*end)(const void *record, void *context);
    double probability;
    bool scopes[TORCH_SPANS_SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
};

typedef uint64_t torch_spans_add(struct torch_spans_callback callback);
typedef void torch_spans_remove(uint64_t handle);
typedef const char *torch_spans_name(const void *record);

static struct {
    pthread_mutex_t
        lock; /* torch is called with it held, and by the end of the process it is taken for ever */
    torch_spans_add *add;
    torch_spans_remove *remove;
    torch_spans_name *name;
    uint64_t user, backward; /* handles; 0 none */
    bool over;               /* the process is ending: torch may be gone */
    bool at_exit;            /* the handler of that is registered; stays so for ever */
    pid_t pid;
} torch_spans = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the backward pass, for the threads of the job: atomic. */
static uint64_t torch_spans_last_ns; /* a node of it ended last */
static uint32_t torch_spans_passing; /* it goes on */
static uint64_t torch_spans_calls, torch_spans_timed_ns, torch_spans_timed;

/* ---- on the job's threads ---- */

/* Whatever else is told ends a backward pass. */
static void torch_spans_pass_ends(void) {
    uint32_t passing = 1;
    if (__atomic_load_n(&torch_spans_passing, __ATOMIC_RELAXED) &&
        __atomic_compare_exchange_n(&torch_spans_passing, &passing, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        spans_end(STEPS_BACKWARD, __atomic_load_n(&torch_spans_last_ns, __ATOMIC_RELAXED));
}

static void *torch_spans_on_start(void **context, const void *record) {
    uint64_t call = __atomic_fetch_add(&torch_spans_calls, 1, __ATOMIC_RELAXED);
    uint64_t from = call % TORCH_SPANS_TIMED == 0 ? clock_mono_ns() : 0;
    *context = NULL;
    torch_spans_pass_ends();
    spans_begin((uint64_t)(uintptr_t)record, torch_spans.name(record));
    if (from) {
        (void)__atomic_add_fetch(&torch_spans_timed_ns, clock_mono_ns() - from, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&torch_spans_timed, 1, __ATOMIC_RELAXED);
    }
    return context;
}

static void torch_spans_on_end(const void *record, void *context) {
    (void)context;
    spans_end((uint64_t)(uintptr_t)record, clock_mono_ns());
}

static void *torch_spans_on_node(void **context, const void *record) {
    uint32_t passing = 0;
    (void)record;
    *context = NULL;
    if (!__atomic_load_n(&torch_spans_passing, __ATOMIC_RELAXED) &&
        __atomic_compare_exchange_n(&torch_spans_passing, &passing, 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        spans_begin(STEPS_BACKWARD, "backward");
    return context;
}

static void torch_spans_on_node_end(const void *record, void *context) {
    (void)record;
    (void)context;
    __atomic_store_n(&torch_spans_last_ns, clock_mono_ns(), __ATOMIC_RELAXED);
}

/* ---- on the sampler's ---- */

bool torch_spans_knows(const char *version) {
    unsigned major, minor;
#if defined(__x86_64__)
    return sscanf(version, "%3u.%3u", &major, &minor) == 2 && 100 * major + minor >= TORCH_SPANS_FIRST &&
           100 * major + minor <= TORCH_SPANS_LAST && minor < 100;
#else
    (void)major, (void)minor, (void)version;
    return false;
#endif
}

/* Torch's own destructors come after this: it was registered later than they. */
static void torch_spans_on_exit(void) {
    if (torch_spans.pid != getpid())
        return; /* a child of a fork, in which the lock may be held by nobody */
    (void)pthread_mutex_lock(&torch_spans.lock);
    torch_spans.over = true;
    (void)pthread_mutex_unlock(&torch_spans.lock);
}

static int torch_spans_match(const struct procfs_map *map, void *arg) {
    const char *name = strrchr(map->path, '/');
    if (!name || map->offset != 0 || strncmp(name, "/libtorch_cpu.so", 16) != 0)
        return 0;
    *(uint64_t *)arg = map->start;
    return 1;
}

/* The functions, from the image that is mapped: the loader's lock, which an import may hold for long, is not asked for. */
static int torch_spans_find(struct err *e) {
    static const struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", &torch_spans.add},
        {"_ZN2at14removeCallbackEm", &torch_spans.remove},
        {"_ZNK2at14RecordFunction4nameEv", &torch_spans.name},
    };
    struct elf_image image;
    struct mem m;
    uint64_t base = 0;
    mem_init_process(&m, getpid());
    if (procfs_each_map(0, torch_spans_match, &base) != 1 || elf_open_memory(&image, &m, base) != 0)
        return err_set(e, ERR_FAILED, "libtorch_cpu.so is not mapped");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t at;
        if (elf_find_symbol(&image, wanted[i].name, &at, NULL) != 0)
            return err_set(e, ERR_FAILED, "libtorch_cpu.so shows no %s", wanted[i].name);
        void *symbol = (void *)(uintptr_t)at;
        memcpy(wanted[i].to, &symbol, sizeof symbol);
    }
    return 0;
}

/* With the lock. */
static uint64_t torch_spans_arm(int scope) {
    bool backward = scope == TORCH_SPANS_BACKWARD;
    struct torch_spans_callback callback = {
        .start = backward ? torch_spans_on_node : torch_spans_on_start,
        .end = backward ? torch_spans_on_node_end : torch_spans_on_end,
        .probability = 1,
    };
    callback.scopes[scope] = true;
    return torch_spans.add(callback);
}

/* With the lock: from now on the end of the process is noticed. */
static bool torch_spans_watch_exit(void) {
    if (!torch_spans.at_exit)
        torch_spans.at_exit = atexit(torch_spans_on_exit) == 0;
    torch_spans.pid = getpid();
    return torch_spans.at_exit;
}

int torch_spans_begin(const char *version, struct err *e) {
    int rc = 0;
    if (torch_spans.user)
        return 0;
    if (!torch_spans_knows(version))
        return err_set(e, ERR_FAILED, "torch %s: its operations cannot be told, its callbacks are not known",
                       version);
    if (torch_spans_find(e) != 0)
        return -1;
    (void)pthread_mutex_lock(&torch_spans.lock);
    if (torch_spans.over || !torch_spans_watch_exit())
        rc = err_set(e, ERR_FAILED, "the process is ending");
    else
        torch_spans.user = torch_spans_arm(TORCH_SPANS_USER);
    (void)pthread_mutex_unlock(&torch_spans.lock);
    return rc;
}

static void torch_spans_disarm(uint64_t *handle) {
    (void)pthread_mutex_lock(&torch_spans.lock);
    if (*handle && !torch_spans.over)
        torch_spans.remove(*handle);
    *handle = 0;
    (void)pthread_mutex_unlock(&torch_spans.lock);
}

void torch_spans_end(void) {
    torch_spans_disarm(&torch_spans.backward);
    torch_spans_disarm(&torch_spans.user);
}

bool torch_spans_look_backward(bool on) {
    if (!on) {
        torch_spans_disarm(&torch_spans.backward);
        __atomic_store_n(&torch_spans_passing, 0, __ATOMIC_RELEASE);
        return true;
    }
    (void)pthread_mutex_lock(&torch_spans.lock);
    if (torch_spans.user && !torch_spans.backward && !torch_spans.over)
        torch_spans.backward = torch_spans_arm(TORCH_SPANS_BACKWARD);
    bool looks = torch_spans.backward != 0;
    (void)pthread_mutex_unlock(&torch_spans.lock);
    return looks;
}

double torch_spans_us(void) {
    uint64_t n = __atomic_load_n(&torch_spans_timed, __ATOMIC_RELAXED);
    return n ? (double)__atomic_load_n(&torch_spans_timed_ns, __ATOMIC_RELAXED) / (double)n / 1e3 : NAN;
}
