/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent, in this process, without memory at one of its calls: every allocation in turn fails, for the agent's threads alone.
 * It is started, asked for everything and ejected; whatever fails is refused or left out, and afterwards threads and
 * descriptors are as before and it can be started again.
 *
 * tests/functional/test_failing.py does the same to a real job; this one can be built with sanitisers. The linker's --wrap leads the
 * calls of all that is linked here through this file; where there is a library of CPython, it is loaded and run, so that the agent has
 * something to read, and is not counted.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/entry.h"
#include "base/clock.h"
#include "client/session/call.h"

#define DEADLINE_NS (20 * CLOCK_NS_PER_S)
#define CHILD_S 120
#define TRIES 40 /* places; all with PROBING_KILL_FULL */
#define EXIT_OVER 42

/* ---- allocations ---- */

static atomic_ulong calls, fail_at; /* fail_at: number of the call that fails; 0: none */
static _Thread_local bool ours;     /* of the test, not of the agent */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

static bool fails(void) {
    unsigned long at = atomic_load(&fail_at);
    return !ours && at && atomic_fetch_add(&calls, 1) + 1 == at;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }

void *__wrap_realloc(void *p, size_t size) { return fails() ? NULL : __real_realloc(p, size); }

char *__wrap_strdup(const char *s) { return fails() ? NULL : __real_strdup(s); }

/* ---- this process ---- */

static size_t count_entries(const char *path) {
    size_t n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

/* Run an interpreter here, if there is one to be loaded; its main thread is ours and does nothing. */
static void run_python(void) {
    static const char *const names[] = {"libpython3.13.so.1.0", "libpython3.12.so.1.0",
                                        "libpython3.11.so.1.0", "libpython3.10.so.1.0",
                                        "libpython3.9.so.1.0"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    void (*start)(int) = library ? (void (*)(int))(uintptr_t)dlsym(library, "Py_InitializeEx") : NULL;
    if (start)
        start(0);
}

static void *bring_in(void *arg) {
    struct agent_start *args = arg;
    *args = (struct agent_start){.size = sizeof *args, .abi_version = AGENT_ABI_VERSION, .fd = -1};
    return (void *)(intptr_t)probing_start(args);
}

/* As injected: by a thread of its own. */
static int start_agent(struct agent_start *args) {
    pthread_t thread;
    void *result = NULL;
    if (pthread_create(&thread, NULL, bring_in, args) != 0 || pthread_join(thread, &result) != 0)
        return -1;
    return (int)(intptr_t)result;
}

static int on_batch(void *arg, struct model_sample_batch *batch) {
    (void)arg, (void)batch;
    return 0;
}

/* libwebsockets forgets the eventfd of each context. The agent closes its own; those of clients are as many as there were clients. */
static size_t clients;

static struct call *dial(const struct target_address *addr, struct err *e) {
    clients++;
    return call_open(addr, e);
}

/* What the agent says must make sense all the same. */
static bool senseless;

static void check(int rc, const struct err *e) {
    if (rc == 0 || !strstr(e->text, "not valid"))
        return;
    senseless = true;
    (void)fprintf(stderr, "%s\n", e->text);
}

/* Ask for what there is; any of it may be refused. */
static void ask(const struct target_address *addr) {
    struct err e;
    struct model_status status;
    struct model_snapshot s;
    double elapsed;
    struct call *c = dial(addr, &e);
    if (!c) {
        check(-1, &e);
        return;
    }
    check(call_status(c, &status, &e), &e);
    model_status_fini(&status);
    check(call_snapshot(c, &s, &e), &e);
    model_snapshot_fini(&s);
    check(call_sample(c, 100, 0.1, on_batch, NULL, &elapsed, &e), &e);
    call_close(c);
}

static int eject(const struct target_address *addr) {
    struct err e = {.text = ""};
    struct call *c = dial(addr, &e);
    int rc = c ? call_eject(c, &e) : -1;
    call_close(c);
    if (rc != 0)
        (void)fprintf(stderr, "eject: %s\n", e.text);
    return rc;
}

static int gone(size_t threads, size_t fds) {
    fds += clients;
    uint64_t until = clock_mono_ns() + DEADLINE_NS;
    while (clock_mono_ns() < until) {
        if (count_entries("/proc/self/task") == threads && count_entries("/proc/self/fd") == fds)
            return 0;
        (void)poll(NULL, 0, 2);
    }
    (void)fprintf(stderr, "%zu threads and %zu descriptors, before %zu and %zu\n",
                  count_entries("/proc/self/task"), count_entries("/proc/self/fd"), threads, fds);
    return -1;
}

/* One life of the agent, in which allocation `at` fails (0: none). 0; EXIT_OVER when there are not so many; else what went wrong. */
static int live(unsigned long at) {
    struct agent_start args;
    clients = 0;
    size_t threads = count_entries("/proc/self/task"), fds = count_entries("/proc/self/fd");
    atomic_store(&calls, 0);
    atomic_store(&fail_at, at);
    int rc = start_agent(&args);
    struct target_address addr = {.mode = MODEL_MODE_AGENT};
    (void)snprintf(addr.path, sizeof addr.path, "%s", args.endpoint);
    if (rc == AGENT_STARTED)
        ask(&addr);
    bool over = atomic_load(&calls) < at;
    atomic_store(&fail_at, 0);
    if (rc == AGENT_FAILED ? !args.error[0] : rc != AGENT_STARTED || eject(&addr) != 0)
        return 2;
    if (gone(threads, fds) != 0)
        return 3;
    if (senseless)
        return 5;
    return over ? EXIT_OVER : 0;
}

/* In a process of its own: what one failure leaves behind must not help or hurt the next. The result of live, with `at` and with 0. */
static int live_apart(unsigned long at) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(CHILD_S);
        ours = true;
        run_python();
        int rc = live(at);
        if (rc == 0 && live(0) != 0)
            rc = 4;
        _exit(rc);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("allocation %lu: signal %d", at, WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void each_allocation_may_fail(void **state) {
    unsigned long step = 1, at = 1;
    bool full = getenv("PROBING_KILL_FULL");
    (void)state;
    assert_int_equal(live_apart(0), 0);
    for (int tries = 0; tries < TRIES || full; tries++, at += step) {
        int rc = live_apart(at);
        if (rc == EXIT_OVER) {
            print_message("allocations: fewer than %lu\n", at);
            return;
        }
        if (rc != 0)
            fail_msg("allocation %lu: result %d", at, rc);
        step =
            full ? 1
                 : step + step / 4 + (unsigned long)(tries % 3); /* the first ones all, then here and there */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
