/* SPDX-License-Identifier: Apache-2.0 */
/* source_reader: see source_reader.h. */
#include "tui/workers/source_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/work.h"

#define SOURCE_READER_STOP_S 1

struct source_reader {
    struct work work;
    /* The worker's while it is running. */
    pid_t pid;
    char path[1024];
    int from;
    struct source_text *text;
};

static void source_reader_run(void *arg) {
    struct source_reader *r = arg;
    struct err e;
    source_read(r->text, r->pid, r->path, r->from, &e);
}

struct source_reader *source_reader_new(struct err *e) {
    struct source_reader *r = calloc(1, sizeof *r);
    int rc = r ? work_init(&r->work) : ENOMEM;
    if (rc == 0)
        return r;
    err_set_errno(e, ERR_FAILED, rc, "cannot read source files");
    free(r);
    return NULL;
}

int source_reader_fd(const struct source_reader *r) { return r->work.fd; }

bool source_reader_is_busy(const struct source_reader *r) { return r->work.is_running; }

int source_reader_start(struct source_reader *r, pid_t pid, const char *path, int from, struct err *e) {
    if (r->work.is_running)
        return 0;
    r->text = calloc(1, sizeof *r->text);
    r->pid = pid;
    r->from = from;
    snprintf(r->path, sizeof r->path, "%s", path);
    int rc = r->text ? work_start(&r->work, source_reader_run, r) : ENOMEM;
    if (rc == 0)
        return 0;
    free(r->text);
    r->text = NULL;
    return err_set_errno(e, ERR_FAILED, rc, "cannot read %s", path);
}

struct source_text *source_reader_take(struct source_reader *r) {
    if (!work_finish(&r->work))
        return NULL;
    struct source_text *text = r->text;
    r->text = NULL;
    return text;
}

void source_reader_free(struct source_reader *r) {
    if (!r || !work_stop(&r->work, SOURCE_READER_STOP_S))
        return;
    free(r->text);
    free(r);
}
