/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autostart: see autostart.h.
 *
 * Py_IsInitialized only reads a variable of the interpreter: no GIL, any thread, any time
 * (Doc/c-api/init.rst). It is a weak reference: where the program has no such symbol, ld.so
 * leaves it NULL.
 */
#include "agent/autostart.h"

#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/entry.h"
#include "agent/fork.h"
#include "agent/life.h"
#include "agent/threads.h"
#include "agent/autostart_match.h"
#include "base/agent_abi.h"
#include "base/clock.h"
#include "base/strbuf.h"

#define AUTOSTART_PRELOAD "LD_PRELOAD"
#define AUTOSTART_WORDS_MAX ((size_t)256 * 1024)
#define AUTOSTART_PATH_MAX 4096
/* until an existing Python must be initialised */
#define AUTOSTART_LONGEST_NS (120 * CLOCK_NS_PER_S)
#define AUTOSTART_TRIES 5
#define AUTOSTART_NAP_NS (1 * CLOCK_NS_PER_MS)
#define AUTOSTART_NAP_MAX_NS (50 * CLOCK_NS_PER_MS)
/* a child that calls exec after fork has done so by then */
#define AUTOSTART_CHILD_NS (200 * CLOCK_NS_PER_MS)

extern int Py_IsInitialized(void) __attribute__((weak));

static struct autostart {
    bool nested;  /* children get an agent, too */
    bool waiting; /* a thread of ours is about to start one here */
} autostart;

static void autostart_nap(uint64_t ns) {
    struct timespec pause = {.tv_sec = (time_t)(ns / CLOCK_NS_PER_S), .tv_nsec = (long)(ns % CLOCK_NS_PER_S)};
    nanosleep(&pause, NULL);
}

/* Nobody tries again later, so a machine that is too busy now gets a few seconds. */
static int autostart_start(enum agent_way way, char *error, size_t cap) {
    struct agent_start args = {.size = sizeof args, .abi_version = AGENT_ABI_VERSION, .fd = -1, .way = way};
    int rc = entry_start(&args, false);
    for (int tries = 1; rc == AGENT_FAILED && tries < AUTOSTART_TRIES; tries++) {
        autostart_nap(AUTOSTART_NAP_MAX_NS);
        rc = entry_start(&args, false);
    }
    if (rc == AGENT_FAILED && cap)
        snprintf(error, cap, "%s", args.error);
    return rc == AGENT_FAILED ? -1 : 1;
}

/* True if it is initialised; false if that took too long. */
static bool autostart_wait_for_python(void) {
    uint64_t until = clock_mono_ns() + AUTOSTART_LONGEST_NS, nap = AUTOSTART_NAP_NS;
    while (!Py_IsInitialized()) {
        if (clock_mono_ns() >= until)
            return false;
        autostart_nap(nap);
        nap = 2 * nap < AUTOSTART_NAP_MAX_NS ? 2 * nap : AUTOSTART_NAP_MAX_NS;
    }
    return true;
}

/* The thread of a preloaded library. */
static void *autostart_preloaded(void *arg) {
    (void)arg;
    threads_begin("probing-wait");
    if (autostart_wait_for_python())
        autostart_start(AGENT_WAY_PRELOADED, NULL, 0);
    threads_end();
    __atomic_store_n(&autostart.waiting, false, __ATOMIC_RELAXED);
    return NULL;
}

/* The thread in the child of a fork. */
static void *autostart_forked(void *arg) {
    (void)arg;
    threads_begin("probing-wait");
    autostart_nap(AUTOSTART_CHILD_NS);
    if (!Py_IsInitialized || Py_IsInitialized())
        autostart_start(AGENT_WAY_FORKED, NULL, 0);
    threads_end();
    __atomic_store_n(&autostart.waiting, false, __ATOMIC_RELAXED);
    return NULL;
}

static void autostart_create(void *(*fn)(void *)) {
    pthread_t thread;
    autostart.waiting = true;
    if (threads_create(&thread, fn, NULL, true) != 0)
        autostart.waiting = false;
}

/* In the child of a fork, after everything else was reset. If children get an agent, too, a
 * thread starts it after a while: a child that calls exec does not need one. */
static void autostart_in_child(bool had_agent) {
    bool wanted = autostart.nested && (had_agent || autostart.waiting);
    autostart.waiting = false;
    if (wanted)
        autostart_create(autostart_forked);
}

/* One of enum autostart_match for this process, or -1 with the error. */
static int autostart_judge(const char *value, struct err *e) {
    struct strbuf words;
    strbuf_init(&words, AUTOSTART_WORDS_MAX);
    strbuf_read_file(&words, "/proc/self/cmdline");
    int match = autostart_match_judge(value, words.data, words.len, e);
    strbuf_fini(&words);
    autostart.nested |= match == AUTOSTART_MATCH_NESTED;
    return match;
}

int probing_autostart(const char *value, char *error, size_t cap) {
    struct err e = {0};
    fork_set_starter(autostart_in_child);
    int match = autostart_judge(value, &e);
    if (match < 0 && cap)
        snprintf(error, cap, "%s", e.text);
    return match <= 0 ? match : autostart_start(AGENT_WAY_PTH, error, cap);
}

/* ---- preloaded ---- */

bool autostart_take_out(const char *list, const char *name, char *buf, size_t cap) {
    bool found = false;
    size_t used = 0;
    buf[0] = '\0';
    for (const char *w = list; *w;) {
        size_t n = strcspn(w, " :"), len = strlen(name);
        bool ours = n >= len && strncmp(w + n - len, name, len) == 0 && (n == len || w[n - len - 1] == '/');
        found |= ours;
        if (n && !ours && used + n + 2 <= cap)
            used += (size_t)snprintf(buf + used, cap - used, "%s%.*s", used ? ":" : "", (int)n, w);
        w += n + (w[n] != '\0');
    }
    return found;
}

struct autostart_self {
    uintptr_t address;
    char path[AUTOSTART_PATH_MAX]; /* this library's path, as the loader has it */
};

static int autostart_on_image(struct dl_phdr_info *info, size_t size, void *arg) {
    struct autostart_self *self = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || self->address - (info->dlpi_addr + p->p_vaddr) >= p->p_memsz)
            continue;
        snprintf(self->path, sizeof self->path, "%s", info->dlpi_name ? info->dlpi_name : "");
        return 1;
    }
    return 0;
}

/* If children of this process are not to get an agent, they must see neither the variable nor
 * the library. */
static void autostart_keep_from_children(const char *rest) {
    unsetenv(AUTOSTART_MATCH_VARIABLE);
    if (rest[0])
        setenv(AUTOSTART_PRELOAD, rest, 1);
    else
        unsetenv(AUTOSTART_PRELOAD);
}

/* Runs before main if the library was preloaded: there is one thread, and nobody else uses the
 * environment. If it was loaded later, by the injector (from a descriptor: its name shows that)
 * or by probing.pth, another thread may be using the environment, or the environment does not
 * name us. */
__attribute__((constructor)) static void autostart_on_load(void) {
    static struct autostart_self self;
    char rest[AUTOSTART_PATH_MAX];
    struct err e;
    if (!Py_IsInitialized || Py_IsInitialized())
        return;
    self.address = (uintptr_t)&autostart_on_load;
    dl_iterate_phdr(autostart_on_image, &self);
    const char *slash = strrchr(self.path, '/'), *name = slash ? slash + 1 : self.path;
    const char *list = name[0] && strncmp(self.path, "/proc/", 6) != 0 ? getenv(AUTOSTART_PRELOAD) : NULL;
    if (!list || strlen(list) >= sizeof rest || !autostart_take_out(list, name, rest, sizeof rest))
        return;
    const char *value = getenv(AUTOSTART_MATCH_VARIABLE);
    int match = value ? autostart_judge(value, &e) : AUTOSTART_MATCH_MATCH;
    if (match == AUTOSTART_MATCH_ONCE)
        autostart_keep_from_children(rest);
    fork_set_starter(autostart_in_child);
    if (match <= AUTOSTART_MATCH_NONE)
        return;
    /* Python may fork before the thread has started an agent here. Without a handler only such
     * children get none. */
    if (autostart.nested)
        life_watch_forks(fork_in_child);
    autostart_create(autostart_preloaded);
}
