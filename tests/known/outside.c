/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside PID FILE MODE COUNT SECONDS: samples the program whose stacks are known from another process, as fast as it can, with the
 * reader that --no-inject (MODE no-inject) and --block (MODE block: running threads are stopped) use, until it has COUNT samples
 * or SECONDS are over (0: no limit), and writes what it saw to FILE for bench/known_answer.py. One thread.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "inject/stop.h"
#include "known/stacks.h"
#include "pystack/pystack.h"

#define OUTSIDE_ARENA ((size_t)16 << 20)
#define OUTSIDE_FAILURES 1000 /* in a row: the program is gone */

struct outside_counts {
    uint64_t samples, failed, held, stopped_ns, refused;
    uint64_t failed_in_a_row;
};

static int outside_stop(void *arg, pid_t tid) { return stop_thread(arg, tid); }

static uint64_t outside_go(void *arg) { return stop_release(arg); }

/* Look at every thread once. */
static void outside_look(struct pystack *ps, struct outside_counts *c) {
    struct arena arena;
    struct pystack_thread *threads;
    struct model_frame *frames;
    bool torn, truncated, any = false;
    arena_init(&arena, OUTSIDE_ARENA);
    ssize_t n = pystack_read_threads(ps, &arena, &threads);
    for (ssize_t i = 0; i < n; i++) {
        ssize_t depth = pystack_read_frames(ps, &threads[i], &arena, &frames, &torn, &truncated);
        uint64_t ns = pystack_stopped_ns(ps);
        c->held += ns > 0;
        c->stopped_ns += ns;
        c->failed += depth < 0;
        if (depth < 0)
            continue;
        stacks_count(frames, (size_t)depth, torn);
        c->samples++;
        any = true;
    }
    c->failed_in_a_row = any ? 0 : c->failed_in_a_row + 1;
    arena_fini(&arena);
}

static void outside_sample(struct pystack *ps, struct stop *stop, uint64_t samples, double seconds,
                           struct outside_counts *c) {
    uint64_t until = clock_mono_ns() + (uint64_t)(seconds * 1e9);
    while (c->samples < samples && c->failed_in_a_row < OUTSIDE_FAILURES &&
           (seconds <= 0 || clock_mono_ns() < until)) {
        outside_look(ps, c);
        /* On a busy machine it may be late to stop; while it is, no other look could stop it. */
        while (stop_tend(stop))
            (void)usleep(1000);
        stacks_pause();
    }
    c->refused = stop->refused;
}

static int outside_write(const char *path, const struct outside_counts *c) {
    FILE *f = fopen(path, "w");
    if (!f)
        return 1;
    (void)fprintf(f, "unread %" PRIu64 "\nheld %" PRIu64 "\nrefused %" PRIu64 "\nstopped_us %.1f\n",
                  c->failed, c->held, c->refused,
                  c->held ? (double)c->stopped_ns / 1e3 / (double)c->held : 0);
    stacks_write(f);
    return fclose(f) == 0 && c->failed_in_a_row < OUTSIDE_FAILURES ? 0 : 1;
}

int main(int argc, char **argv) {
    struct err e = {0};
    struct stop s;
    struct outside_counts counts = {0};
    if (argc != 6 || stacks_init() != 0)
        return 2;
    pid_t pid = (pid_t)atoi(argv[1]);
    struct pystack *ps = pystack_open(pid, &e);
    if (!ps) {
        (void)fprintf(stderr, "outside: %s\n", e.text);
        return err_exit_status(&e);
    }
    stop_init(&s, pid);
    struct pystack_stopper hold = {.stop = outside_stop, .go = outside_go, .arg = &s};
    pystack_set_stopper(ps, strcmp(argv[3], "block") == 0 ? &hold : NULL);
    stacks_pin(pid);
    outside_sample(ps, &s, strtoull(argv[4], NULL, 10), atof(argv[5]), &counts);
    pystack_close(ps);
    return outside_write(argv[2], &counts);
}
