/* SPDX-License-Identifier: Apache-2.0 */
/* host_source: see host_source.h. */
#include "tui/host/host_source.h"

#include "tui/host/source_reader.h"

static void host_source_on_read(void *arg) {
    struct host_source *r = arg;
    struct source_text *text = source_reader_take(r->reader);
    if (!text)
        return;
    app_take_source(r->app, text);
    host_source_apply(r); /* another one may be wanted by now */
    r->answered(r->arg);
}

static int host_source_open(struct host_source *r, struct err *e) {
    if (r->reader)
        return 0;
    r->reader = source_reader_new(e);
    if (r->reader)
        r->watch = loop_watch_fd(r->loop, source_reader_fd(r->reader), host_source_on_read, r, e);
    if (r->watch)
        return 0;
    source_reader_free(r->reader);
    r->reader = NULL;
    return -1;
}

void host_source_apply(struct host_source *r) {
    struct app_source_request *w = &r->app->source_request;
    struct err e;
    if (!w->is_new || (r->reader && source_reader_is_busy(r->reader)))
        return;
    w->is_new = false;
    if (host_source_open(r, &e) != 0 ||
        source_reader_start(r->reader, r->app->pid, w->path, w->from, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

void host_source_stop(struct host_source *r) {
    loop_unwatch(r->watch);
    source_reader_free(r->reader);
    r->watch = NULL;
    r->reader = NULL;
}
