/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_head: the first lines of the Top and Flame screens: which samples are added up and how, and
 * the quality of the stream. Pure.
 */
#ifndef TUI_SCREENS_TOP_TOP_HEAD_H
#define TUI_SCREENS_TOP_TOP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/core/app.h"
#include "tui/view/grid.h"

/* Which samples, and how many there are. */
struct top_head {
    int64_t tid;      /* 0: all threads */
    size_t n_tids;    /* that were sampled */
    const char *by;   /* "function", ... */
    const char *time; /* "ON CPU", ... */
    bool compared;    /* while comparing: the two times */
    uint64_t samples;
    double gc_pct; /* share in which garbage was collected; NAN: unknown, or not shown here */
};

/* Draw one or two lines; a fact that does not fit whole is left out. */
void top_head_draw(const struct top_head *head, const struct app *app, struct grid *g, struct rect area);

/* The text in place of rows if the stream or the connection is the reason that there are none; "":
 * neither is. `first` samples are waited for. */
void top_head_empty(const struct app *app, unsigned first, char *buf, size_t cap);

#endif
