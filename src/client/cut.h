/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut: what was chosen of a tally's samples (a window, a thread, a module, stacks that match, without native frames) as a fold of
 * its own, and in the order of time: for an export, which may take a while; nothing of it changes meanwhile.
 *
 * It has what the flame graph of the same query has. Costs by the stacks and entries of the tally. One thread.
 */
#ifndef CLIENT_CUT_H
#define CLIENT_CUT_H

#include <stdbool.h>
#include <stddef.h>

#include "client/flame.h"
#include "client/fold.h"
#include "client/tally.h"
#include "client/tracks.h"

struct cut_query {
    struct flame_query samples; /* by module: a frame is that of the first line that was seen of it */
    /* By module: what it is called, for people. */
    void (*name_module)(const struct model_frame *f, char *buf, size_t cap);
    /* Only threads, and stacks with a frame, of which these say yes; NULL: all. */
    bool (*has_thread)(const void *arg, int64_t tid);
    bool (*has_frame)(const void *arg, const struct model_frame *f);
    const void *arg;
    /* What threads did when, too: of the samples of this time (samples.window is not looked at then, nor its kind of time). */
    bool in_order;
    double from_s, to_s;
};

struct cut {
    struct fold *fold;
    struct tracks *tracks; /* NULL: not in order */
};

/* 0, or -1 without memory; `out` is the caller's, to be given back in either case. */
int cut_make(struct cut *out, const struct tally *t, const struct cut_query *q);
void cut_fini(struct cut *c);

#endif
