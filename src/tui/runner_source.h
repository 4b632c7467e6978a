/* SPDX-License-Identifier: Apache-2.0 */
/* runner_source: the source_reader on the runner's loop: lines that the app asks for are read, and given to it. One thread. */
#ifndef TUI_RUNNER_SOURCE_H
#define TUI_RUNNER_SOURCE_H

#include "client/loop.h"
#include "tui/app.h"

struct source_reader;

struct runner_source {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer */
    void *arg;
    struct source_reader *reader; /* NULL until something is asked for */
    struct loop_watch *watch;
};

/* Do what the app asks for. */
void runner_source_apply(struct runner_source *r);
void runner_source_stop(struct runner_source *r);

#endif
