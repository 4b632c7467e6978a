/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_name: see symbols_name.h. libiberty: demangle.h. */
#include "client/symbols/symbols_name.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>

#include <libiberty/demangle.h>

#define NAME_TIMEOUTS 20

struct name_text {
    char *out;
    size_t len;
};

static sigjmp_buf name_way_out;
static volatile sig_atomic_t name_can_leave;
static unsigned name_timeouts;
static long name_time_us;
static pthread_t name_thread;

/* The functions with a callback keep everything on the stack, so they can be left in the middle.
 * (Rust's names with non-ASCII letters have a piece of memory for a moment: it leaks, within the
 * helper's memory limit.) */
static void name_add(const char *s, size_t len, void *arg) {
    struct name_text *t = arg;
    if (len >= SYMBOLS_PLAIN_MAX - t->len)
        siglongjmp(name_way_out, 1);
    if (len > 0) /* an empty piece may have no address */
        memcpy(t->out + t->len, s, len);
    t->len += len;
}

static void name_out_of_time(int sig) {
    (void)sig;
    /* The signal belongs to the process: with other threads (the fuzzer's) it may have come to
     * one of them. It comes again. */
    if (name_can_leave && pthread_equal(pthread_self(), name_thread))
        siglongjmp(name_way_out, 2);
}

int symbols_name_begin(long time_us) {
    name_timeouts = 0;
    name_time_us = time_us;
    name_thread = pthread_self();
    struct sigaction sa = {.sa_handler = name_out_of_time, .sa_flags = 0};
    sigemptyset(&sa.sa_mask);
    return sigaction(SIGVTALRM, &sa, NULL);
}

static void name_set_timer(long us) {
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_usec = us, .it_interval.tv_usec = us}, NULL);
}

/* Like cplus_demangle(symbol, DMGL_AUTO), which has no bound. True if the name was mangled. */
static bool name_demangle(const char *symbol, struct name_text *t) {
    name_can_leave = strncmp(symbol, "_R", 2) != 0; /* see name_add: not during an allocation */
    if (rust_demangle_callback(symbol, DMGL_AUTO, name_add, t))
        return true;
    t->len = 0;
    name_can_leave = 1;
    return cplus_demangle_v3_callback(symbol, DMGL_AUTO, name_add, t);
}

/* 1 done, 0 the name was not mangled or is too long, -1 it took too long. */
static int name_try(const char *symbol, struct name_text *t) {
    int way = sigsetjmp(name_way_out, 1);
    int rc = way == 0 ? name_demangle(symbol, t) : way == 1 ? 0 : -1;
    name_can_leave = 0; /* before we return: then there is nothing to return to */
    return rc;
}

size_t symbols_name_plain(const char *symbol, char out[SYMBOLS_PLAIN_MAX]) {
    struct name_text t = {.out = out};
    if (name_timeouts >= NAME_TIMEOUTS || strlen(symbol) >= SYMBOLS_MANGLED_MAX)
        return 0;
    name_set_timer(name_time_us);
    int rc = name_try(symbol, &t);
    name_set_timer(0);
    name_timeouts += rc < 0;
    size_t len = rc > 0 && !memchr(out, '\0', t.len) ? t.len : 0;
    out[len] = '\0';
    return len;
}
