/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside_sample PID COUNT MODE: looks COUNT times at every Python thread of a process from outside, as fast as it can, and prints
 * each distinct stack (functions, outermost first, joined by ';') with how often it was seen whole and torn, then one line of
 * totals. MODE: passive, or block (running threads are stopped). For tests that know which stacks are legal.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "inject/stop.h"
#include "pystack/pystack.h"

#define MAX_STACKS 100000

struct stack {
    char *text;
    uint64_t whole, torn;
};

static struct stack stacks[MAX_STACKS];
static size_t n_stacks;
static uint64_t stopped_ns, longest_ns, held, failed;

static int stop(void *arg, pid_t tid) { return stop_thread(arg, tid); }

static uint64_t go(void *arg) { return stop_release(arg); }

static void count(const struct model_frame *frames, size_t n, bool torn) {
    struct strbuf text;
    size_t at = 0;
    strbuf_init(&text, 0);
    for (size_t i = n; i-- > 0;)
        (void)strbuf_addf(&text, "%s%s", frames[i].func ? frames[i].func : "?", i ? ";" : "");
    while (at < n_stacks && strcmp(stacks[at].text, strbuf_str(&text)) != 0)
        at++;
    if (at == n_stacks && n_stacks < MAX_STACKS)
        stacks[n_stacks++].text = strdup(strbuf_str(&text));
    if (at < n_stacks) {
        stacks[at].whole += !torn;
        stacks[at].torn += torn;
    }
    strbuf_fini(&text);
}

static void look(struct pystack *ps) {
    struct arena arena;
    struct pystack_thread *threads;
    struct model_frame *frames;
    bool torn, truncated;
    arena_init(&arena, (size_t)16 << 20);
    ssize_t n = pystack_read_threads(ps, &arena, &threads);
    for (ssize_t i = 0; i < n; i++) {
        ssize_t depth = pystack_read_frames(ps, &threads[i], &arena, &frames, &torn, &truncated);
        uint64_t ns = pystack_stopped_ns(ps);
        held += ns > 0;
        stopped_ns += ns;
        longest_ns = ns > longest_ns ? ns : longest_ns;
        failed += depth < 0;
        if (depth >= 0)
            count(frames, (size_t)depth, torn);
    }
    arena_fini(&arena);
}

int main(int argc, char **argv) {
    struct err e = {0};
    struct stop s;
    if (argc != 4)
        return 2;
    pid_t pid = (pid_t)atoi(argv[1]);
    struct pystack *ps = pystack_open(pid, &e);
    if (!ps) {
        (void)fprintf(stderr, "outside_sample: %s\n", e.text);
        return err_exit_status(&e);
    }
    stop_init(&s, pid);
    struct pystack_stopper hold = {.stop = stop, .go = go, .arg = &s};
    pystack_set_stopper(ps, strcmp(argv[3], "block") == 0 ? &hold : NULL);
    uint64_t began = clock_mono_ns();
    for (long i = atol(argv[2]); i > 0; i--) {
        look(ps);
        /* On a busy machine it may be late to stop; while it is, no other look could stop it. */
        while (stop_tend(&s))
            (void)usleep(1000);
    }
    double us = (double)(clock_mono_ns() - began) / 1e3;
    for (size_t i = 0; i < n_stacks; i++)
        (void)printf("%" PRIu64 " %" PRIu64 " %s\n", stacks[i].whole, stacks[i].torn, stacks[i].text);
    (void)printf("= held %" PRIu64 " stopped_us %.1f longest_us %.1f refused %" PRIu64 " failed %" PRIu64
                 " us_per_look %.1f\n",
                 held, held ? (double)stopped_ns / 1e3 / (double)held : 0, (double)longest_ns / 1e3,
                 s.refused, failed, us / atof(argv[2]));
    pystack_close(ps);
    return 0;
}
