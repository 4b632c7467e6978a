/* SPDX-License-Identifier: Apache-2.0 */
/* tally_copy: the samples of a window as a fold, for an export, which may take a while: nothing of it changes meanwhile. */
#include "client/tally.h"

struct tally_copy {
    const struct tally *tally;
    enum tally_window window;
    size_t n;
};

static void tally_copy_count(void *arg, size_t i, struct fold_entry *e) {
    const struct tally_copy *c = arg;
    struct tally_count n = {0};
    if (i < c->n)
        n = tally_get_count(c->tally, c->window, i);
    e->samples = n.samples;
    e->on_cpu = n.on_cpu;
    e->us = n.us;
    e->on_cpu_us = n.on_cpu_us;
    e->gc = n.gc;
    e->gc_us = n.gc_us;
    e->gc_on_cpu = n.gc_on_cpu;
    e->gc_on_cpu_us = n.gc_on_cpu_us;
    e->gil = n.gil;
    e->gil_us = n.gil_us;
}

struct fold *tally_copy_window(const struct tally *t, enum tally_window window) {
    struct tally_copy c = {.tally = t, .window = window, .n = tally_count_entries(t)};
    return fold_copy(tally_fold(t), tally_copy_count, &c);
}
