/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_spans: see torch_spans.h. Sources: ATen/record_function.h (class RecordFunctionCallback,
 * enum class RecordScope, struct ObserverContext) of torch 1.13 to 2.13;
 * c10/util/ThreadLocalDebugInfo.h (ThreadLocalDebugInfo::get) of 2.2 to 2.13; the System V ABI and
 * the Itanium C++ ABI for their parameters and results.
 *
 * A callback is a C function with the calling convention of the C++ one: it returns a
 * std::unique_ptr<ObserverContext> by a hidden pointer, where it writes NULL: there is no
 * context to be destroyed.
 */
#include "agent/torch/torch_spans.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/torch/comm_info.h"
#include "agent/torch/loaded.h"
#include "agent/torch/step_values.h"
#include "agent/torch/module_hooks.h"
#include "agent/torch/spans.h"
#include "agent/torch/steps.h"
#include "base/clock.h"
#include "base/elf.h"
#include "base/mem.h"

#define TORCH_SPANS_FIRST 113 /* versions: 100 * major + minor */
#define TORCH_SPANS_LAST 213
#define TORCH_SPANS_SCOPES 10
#define TORCH_SPANS_BACKWARD 1 /* RecordScope::BACKWARD_FUNCTION */
#define TORCH_SPANS_USER 7     /* RecordScope::USER_SCOPE */
#define TORCH_SPANS_TIMED 64   /* one in so many is timed */
#define TORCH_SPANS_PYTHON "Backward"
#define TORCH_SPANS_LIBRARY "libtorch_cpu.so"
#define TORCH_SPANS_C10 "libc10.so"
#define TORCH_SPANS_PARAM_COMMS 4 /* DebugInfoKind::PARAM_COMMS_INFO, up to 2.12 */
/* for constructors, after its relocation was seen */
#define TORCH_SPANS_SETTLE_NS (900 * CLOCK_NS_PER_MS)
#define TORCH_SPANS_TRIES 120 /* checks for its mapping, a second apart */

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
/* A kind is a number of a byte, or a class that is a pointer: one register. */
typedef const void *torch_spans_debug_info(uintptr_t kind);

static struct {
    /* torch is called with it locked, and the end of the process locks it permanently */
    pthread_mutex_t lock;
    torch_spans_add *add;
    torch_spans_remove *remove;
    torch_spans_name *name;
    torch_spans_debug_info *info; /* NULL: what it returns could not be read */
    uintptr_t kind;               /* DebugInfoKind::PARAM_COMMS_INFO */
    struct comm_info comm;
    uint64_t user, backward, count; /* handles; 0 if none */
    bool over;                      /* the process is ending: torch may be gone */
    bool at_exit;                   /* the handler for that is registered, which is permanent */
    pid_t pid;
    uint64_t base, ready_ns; /* of the library: when its relocation was first seen; 0: not yet */
    unsigned tries;          /* checks that did not find it */
} torch_spans = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Atomic. */
static uint32_t torch_spans_off;  /* this is a child of a fork, where nobody reads reports */
static uint32_t torch_spans_busy; /* it is locked: torch may be in the middle of a call */
/* And was, when this process was forked: torch's own lock may stay locked. */
static uint32_t torch_spans_torn;

/* The backward pass, for the threads of the job: atomic. */
static uint64_t torch_spans_last_ns; /* end of its last node, */
static uint64_t torch_spans_also_ns; /* and of what else belongs to it */
static uint32_t torch_spans_passing; /* it is in progress */
static uint64_t torch_spans_nodes;   /* of all passes that were watched */
static uint64_t torch_spans_wait_ns; /* see torch_spans_passes */
static uint64_t torch_spans_ops;     /* counted */
/* Key of an Optimizer.step for whose end module_hooks waits; 0 if none. */
static uint64_t torch_spans_step;
/* Cost of the begin and the end of operations. */
static struct torch_spans_cost { uint64_t calls, timed, ns; } torch_spans_starts, torch_spans_ends;

/* ---- on the job's threads ---- */

static void torch_spans_report_pass(void) {
    uint64_t node_ns = __atomic_load_n(&torch_spans_last_ns, __ATOMIC_RELAXED);
    uint64_t also_ns = __atomic_load_n(&torch_spans_also_ns, __ATOMIC_RELAXED);
    spans_end(STEPS_BACKWARD, also_ns > node_ns ? also_ns : node_ns);
    if (module_window_is_wanted())
        module_hooks_on_backward(node_ns);
}

/* A report ends a backward pass if it is not of something that belongs to it. */
static void torch_spans_pass_ends(const char *name) {
    uint32_t passing = 1;
    if (__atomic_load_n(&torch_spans_passing, __ATOMIC_RELAXED) && !(name && steps_is_in_backward(name)) &&
        __atomic_compare_exchange_n(&torch_spans_passing, &passing, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        torch_spans_report_pass();
}

/* An Optimizer.step that is not within another one. */
static void torch_spans_note_step(uint64_t key, const char *name) {
    uint64_t none = 0;
    if (strncmp(name, STEPS_STEP, strlen(STEPS_STEP)) == 0)
        __atomic_compare_exchange_n(&torch_spans_step, &none, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void torch_spans_step_ends(uint64_t key, uint64_t ns) {
    if (__atomic_compare_exchange_n(&torch_spans_step, &key, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        module_window_on_step(ns);
}

static bool torch_spans_is_off(void) { return __atomic_load_n(&torch_spans_off, __ATOMIC_ACQUIRE) != 0; }

/* Its begin, if it is timed; otherwise 0. */
static uint64_t torch_spans_time(struct torch_spans_cost *c) {
    uint64_t call = __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
    return call % TORCH_SPANS_TIMED == 0 ? clock_mono_ns() : 0;
}

static void torch_spans_timed(struct torch_spans_cost *c, uint64_t from) {
    if (!from)
        return;
    __atomic_add_fetch(&c->ns, clock_mono_ns() - from, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->timed, 1, __ATOMIC_RELAXED);
}

/* What torch knows of a collective that begins, if that is believed. */
static void torch_spans_report_comm(uint64_t key, const char *name) {
    struct spans_event e = {.key = key, .what = SPANS_COMM};
    const void *info = torch_spans.info ? torch_spans.info(torch_spans.kind) : NULL;
    struct mem own, m;
    if (!info)
        return;
    int error = errno;
    mem_init_process(&own, torch_spans.pid);
    /* nothing is opened on a thread of the job */
    mem_init_handler(&m, &own);
    if (comm_info_read(&torch_spans.comm, &m, (uint64_t)(uintptr_t)info, name, &e.comm))
        spans_report(&e);
    errno = error;
}

static void *torch_spans_on_start(void **context, const void *record) {
    *context = NULL;
    if (torch_spans_is_off())
        return context;
    uint64_t from = torch_spans_time(&torch_spans_starts);
    const char *name = torch_spans.name(record);
    torch_spans_pass_ends(name);
    spans_begin((uint64_t)(uintptr_t)record, name);
    if (name && comm_info_is_of(name))
        torch_spans_report_comm((uint64_t)(uintptr_t)record, name);
    if (name && module_window_is_wanted())
        torch_spans_note_step((uint64_t)(uintptr_t)record, name);
    torch_spans_timed(&torch_spans_starts, from);
    return context;
}

static void torch_spans_on_end(const void *record, void *context) {
    (void)context;
    if (torch_spans_is_off())
        return;
    uint64_t ns = clock_mono_ns();
    const char *name = torch_spans.name(record);
    /* its time is counted there */
    if (name && strncmp(name, STEP_VALUES_STEP, sizeof STEP_VALUES_STEP - 1) == 0)
        step_values_at_step();
    uint64_t from = torch_spans_time(&torch_spans_ends);
    uint64_t key = (uint64_t)(uintptr_t)record;
    /* the pass waits for it before it returns */
    if (__atomic_load_n(&torch_spans_passing, __ATOMIC_RELAXED) && name && steps_is_in_backward(name))
        __atomic_store_n(&torch_spans_also_ns, ns, __ATOMIC_RELAXED);
    spans_end(key, ns);
    if (__atomic_load_n(&torch_spans_step, __ATOMIC_RELAXED))
        torch_spans_step_ends(key, ns);
    torch_spans_timed(&torch_spans_ends, from);
}

/* Is it of a torch.autograd.Function in Python? Only the name of such a class ends so: it was made
 * by torch from that of the function. */
static bool torch_spans_is_python(const char *name) {
    size_t len = name ? strlen(name) : 0, end = sizeof TORCH_SPANS_PYTHON - 1;
    return len > end && name[len - 1] == TORCH_SPANS_PYTHON[end - 1] &&
           memcmp(name + len - end, TORCH_SPANS_PYTHON, end) == 0;
}

/* A node of a pass begins: not its first, so the one before it has ended. */
static void torch_spans_note_wait(const void *record) {
    if (!torch_spans_is_python(torch_spans.name(record)))
        return;
    uint64_t now_ns = clock_mono_ns(), last_ns = __atomic_load_n(&torch_spans_last_ns, __ATOMIC_RELAXED);
    if (now_ns > last_ns)
        __atomic_add_fetch(&torch_spans_wait_ns, now_ns - last_ns, __ATOMIC_RELAXED);
}

static void *torch_spans_on_node(void **context, const void *record) {
    uint32_t passing = 0;
    *context = NULL;
    if (torch_spans_is_off())
        return context;
    if (__atomic_load_n(&torch_spans_passing, __ATOMIC_RELAXED))
        torch_spans_note_wait(record);
    else if (__atomic_compare_exchange_n(&torch_spans_passing, &passing, 1, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
        spans_begin(STEPS_BACKWARD, "backward");
    return context;
}

static void torch_spans_on_node_end(const void *record, void *context) {
    (void)record;
    (void)context;
    __atomic_store_n(&torch_spans_last_ns, clock_mono_ns(), __ATOMIC_RELAXED);
    __atomic_add_fetch(&torch_spans_nodes, 1, __ATOMIC_RELAXED);
}

static void *torch_spans_on_any(void **context, const void *record) {
    (void)record;
    *context = NULL;
    __atomic_add_fetch(&torch_spans_ops, 1, __ATOMIC_RELAXED);
    return context;
}

static void torch_spans_on_any_end(const void *record, void *context) {
    (void)record;
    (void)context;
}

/* ---- for the sampler ---- */

/* 100 * major + minor; 0 if that is not known. */
static unsigned torch_spans_number(const char *version) {
    unsigned major, minor;
    return sscanf(version, "%3u.%3u", &major, &minor) == 2 && minor < 100 ? 100 * major + minor : 0;
}

bool torch_spans_knows(const char *version) {
#if defined(__x86_64__)
    unsigned number = torch_spans_number(version);
    return number >= TORCH_SPANS_FIRST && number <= TORCH_SPANS_LAST;
#else
    (void)version;
    return false;
#endif
}

static void torch_spans_lock(void) {
    pthread_mutex_lock(&torch_spans.lock);
    __atomic_store_n(&torch_spans_busy, 1, __ATOMIC_SEQ_CST);
}

static void torch_spans_unlock(void) {
    __atomic_store_n(&torch_spans_busy, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&torch_spans.lock);
}

/* Torch's own destructors run after this, because it was registered later. */
static void torch_spans_on_exit(void) {
    /* a child of a fork, where no thread may have the lock */
    if (torch_spans.pid != getpid())
        return;
    torch_spans_lock();
    torch_spans.over = true;
    torch_spans_unlock();
}

/* Check that functions of the library may be called. 0; 1 not yet, -1 never, with the error. */
static int torch_spans_check(struct elf_image *image, struct mem *m, struct err *e) {
    enum loaded_state state = loaded_inspect(TORCH_SPANS_LIBRARY, m, image);
    uint64_t now_ns = clock_mono_ns();
    bool settled = state == LOADED_RELOCATED && torch_spans.ready_ns && torch_spans.base == image->base &&
                   now_ns - torch_spans.ready_ns >= TORCH_SPANS_SETTLE_NS;
    if (settled)
        return 0;
    if (state == LOADED_SEVERAL)
        return err_set(e, ERR_FAILED, "two " TORCH_SPANS_LIBRARY " are loaded: which one trains is unknown");
    if (state == LOADED_UNTOLD)
        return err_set(e, ERR_FAILED,
                       TORCH_SPANS_LIBRARY " has no RELRO: whether it is fully loaded is unknown");
    if (state != LOADED_RELOCATED) {
        torch_spans.ready_ns = 0;
        err_set(e, ERR_FAILED, TORCH_SPANS_LIBRARY " is not loaded yet");
        return ++torch_spans.tries < TORCH_SPANS_TRIES ? 1 : -1;
    }
    torch_spans.tries = 0;
    if (!torch_spans.ready_ns || torch_spans.base != image->base) {
        torch_spans.base = image->base;
        torch_spans.ready_ns = now_ns;
    }
    err_set(e, ERR_FAILED, TORCH_SPANS_LIBRARY " has just been loaded");
    return 1;
}

/* Find what collectives are read with. libtorch_cpu needs this library, so it was relocated before.
 * Where something is missing, a span has only its name. */
static void torch_spans_find_info(const char *version, struct mem *m) {
    static const char *const strings[] = {
        [COMM_INFO_STRINGS_NEW] =
            "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        [COMM_INFO_STRINGS_OLD] = "_ZN3c105ErrorC1ENS_14SourceLocationESs"};
    struct elf_image image;
    uint64_t get, kind, at;
    size_t i = 0;
    if (loaded_inspect(TORCH_SPANS_C10, m, &image) != LOADED_RELOCATED ||
        elf_find_symbol(&image, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE", &get, NULL) != 0)
        return;
    while (i < sizeof strings / sizeof strings[0] && elf_find_symbol(&image, strings[i], &at, NULL) != 0)
        i++;
    if (i == sizeof strings / sizeof strings[0] ||
        !comm_info_init(&torch_spans.comm, torch_spans_number(version), (enum comm_info_strings)i))
        return;
    /* up to 2.12 a number */
    if (elf_find_symbol(&image, "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE", &at, NULL) != 0)
        kind = TORCH_SPANS_PARAM_COMMS;
    else if (mem_read_u64(m, at, &kind) != 0 || !kind)
        return;
    void *symbol = (void *)(uintptr_t)get;
    torch_spans.kind = (uintptr_t)kind;
    memcpy(&torch_spans.info, &symbol, sizeof symbol);
}

/* Find the functions in the mapped image: the loader's lock, which an import may hold for long,
 * is not taken. Returns as torch_spans_check. */
static int torch_spans_find(const char *version, struct err *e) {
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
    mem_init_process(&m, getpid());
    int rc = torch_spans_check(&image, &m, e);
    for (size_t i = 0; rc == 0 && i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t at = 0;
        rc = elf_find_symbol(&image, wanted[i].name, &at, NULL);
        if (rc != 0)
            rc = err_set(e, ERR_FAILED, TORCH_SPANS_LIBRARY " shows no %s", wanted[i].name);
        void *symbol = (void *)(uintptr_t)at;
        memcpy(wanted[i].to, &symbol, sizeof symbol);
    }
    if (rc == 0 && !torch_spans.info)
        torch_spans_find_info(version, &m);
    mem_fini(&m);
    return rc;
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

/* With the lock. */
static void torch_spans_remove_one(uint64_t *handle) {
    if (*handle && !torch_spans.over)
        torch_spans.remove(*handle);
    *handle = 0;
}

static void torch_spans_disarm(uint64_t *handle) {
    torch_spans_lock();
    torch_spans_remove_one(handle);
    torch_spans_unlock();
}

void torch_spans_in_child(void) {
    __atomic_store_n(&torch_spans_off, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&torch_spans_busy, __ATOMIC_SEQ_CST))
        __atomic_store_n(&torch_spans_torn, 1, __ATOMIC_SEQ_CST);
}

/* In the child of a fork: the parent's callbacks are armed here, too; earlier reports are not
 * ours. The parent's thread that might be in the middle of any of this does not exist here. */
static void torch_spans_inherit(void) {
    torch_spans.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    torch_spans.over = false;
    torch_spans.pid = getpid();
    torch_spans_disarm(&torch_spans.backward);
    torch_spans_disarm(&torch_spans.count);
    torch_spans_passing = 0;
    torch_spans_starts = torch_spans_ends = (struct torch_spans_cost){.calls = 0};
    spans_begin_anew();
    __atomic_store_n(&torch_spans_off, 0, __ATOMIC_SEQ_CST);
}

int torch_spans_begin(const char *version, struct err *e) {
    if (!torch_spans_knows(version))
        return err_set(e, ERR_FAILED,
                       "torch %s: its operations cannot be reported, its callbacks are unknown", version);
    if (__atomic_load_n(&torch_spans_torn, __ATOMIC_SEQ_CST))
        return err_set(e, ERR_FAILED, "torch was being called by the agent when this process was forked off");
    if (torch_spans_is_off() || (torch_spans.pid && torch_spans.pid != getpid()))
        torch_spans_inherit();
    int rc = torch_spans.user ? 0 : torch_spans_find(version, e);
    if (rc != 0)
        return rc;
    torch_spans_lock();
    if (torch_spans.over || !torch_spans_watch_exit())
        rc = err_set(e, ERR_FAILED, "the process is ending");
    else if (!torch_spans.user)
        torch_spans.user = torch_spans_arm(TORCH_SPANS_USER);
    torch_spans_unlock();
    return rc;
}

void torch_spans_end(void) {
    torch_spans_disarm(&torch_spans.count);
    torch_spans_disarm(&torch_spans.backward);
    torch_spans_disarm(&torch_spans.user);
}

bool torch_spans_watch_backward(bool on) {
    if (!on) {
        torch_spans_disarm(&torch_spans.backward);
        __atomic_store_n(&torch_spans_passing, 0, __ATOMIC_RELEASE);
        return true;
    }
    torch_spans_lock();
    if (torch_spans.user && !torch_spans.backward && !torch_spans.over)
        torch_spans.backward = torch_spans_arm(TORCH_SPANS_BACKWARD);
    bool looks = torch_spans.backward != 0;
    torch_spans_unlock();
    return looks;
}

void torch_spans_passes(uint64_t *nodes, uint64_t *wait_ns) {
    *nodes = __atomic_load_n(&torch_spans_nodes, __ATOMIC_RELAXED);
    *wait_ns = __atomic_load_n(&torch_spans_wait_ns, __ATOMIC_RELAXED);
}

bool torch_spans_count(bool on) {
    struct torch_spans_callback callback = {
        .start = torch_spans_on_any, .end = torch_spans_on_any_end, .probability = 1};
    for (size_t i = 0; i < TORCH_SPANS_SCOPES; i++)
        callback.scopes[i] = true;
    if (!on) {
        torch_spans_disarm(&torch_spans.count);
        return true;
    }
    torch_spans_lock();
    if (torch_spans.user && !torch_spans.count && !torch_spans.over)
        torch_spans.count = torch_spans.add(callback);
    bool counts = torch_spans.count != 0;
    torch_spans_unlock();
    return counts;
}

uint64_t torch_spans_counted(void) { return __atomic_load_n(&torch_spans_ops, __ATOMIC_RELAXED); }

static double torch_spans_mean_us(const struct torch_spans_cost *c) {
    uint64_t n = __atomic_load_n(&c->timed, __ATOMIC_RELAXED);
    return n ? (double)__atomic_load_n(&c->ns, __ATOMIC_RELAXED) / (double)n / 1e3 : NAN;
}

double torch_spans_us(void) {
    return torch_spans_mean_us(&torch_spans_starts) + torch_spans_mean_us(&torch_spans_ends);
}
