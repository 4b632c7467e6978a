/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_threads: what threads do, in a line: how many run, wait, sleep; and what a class of them is made of. Pure.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_THREADS_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_THREADS_H

#include <stddef.h>

#include "tui/model/data.h"

/* "2 run, 1 waits for the GIL, 1 in a device, 1 sleeps, 1 stopped" */
void overview_threads_text(const struct model_snapshot *s, char *buf, size_t cap);

/* Of a class (events_class): where the main thread is; how many others there are, and the busiest of them by name, those with
 * the same name but for a number at its end together. */
void overview_class_text(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                         char *buf, size_t cap);

#endif
