/* SPDX-License-Identifier: Apache-2.0 */
/* host_source: the source_reader on the runner's loop: lines that the app asks for are read, and given to it. One thread. */
#ifndef TUI_HOST_HOST_SOURCE_H
#define TUI_HOST_HOST_SOURCE_H

#include "client/loop.h"
#include "tui/core/app.h"

struct source_reader;

struct host_source {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer */
    void *arg;
    struct source_reader *reader; /* NULL until something is asked for */
    struct loop_watch *watch;
};

/* Do what the app asks for. */
void host_source_apply(struct host_source *r);
void host_source_stop(struct host_source *r);

#endif
