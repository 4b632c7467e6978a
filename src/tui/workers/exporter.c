/* SPDX-License-Identifier: Apache-2.0 */
/* exporter: see exporter.h. */
#include "tui/workers/exporter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/work.h"
#include "client/output.h"

#define EXPORTER_STOP_S 1
#define EXPORTER_STRINGS ((size_t)1024 * 1024)

/* ---- a job ---- */

struct export_job *export_job_new(const struct export_format *format, const char *path,
                                  const struct model_target *target) {
    struct export_job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    j->format = format;
    snprintf(j->path, sizeof j->path, "%s", path);
    strbuf_init(&j->text, EXPORTER_MAX);
    struct model_target *t = &j->target;
    *t = *target;
    arena_init(&t->arena, EXPORTER_STRINGS);
    t->host = arena_strdup(&t->arena, target->host);
    t->cmdline = arena_strdup(&t->arena, target->cmdline);
    t->exe = arena_strdup(&t->arena, target->exe);
    t->python = arena_strdup(&t->arena, target->python);
    t->torch = arena_strdup(&t->arena, target->torch);
    t->mode_reason = arena_strdup(&t->arena, target->mode_reason);
    t->agent_version = arena_strdup(&t->arena, target->agent_version);
    t->discovery = arena_strdup(&t->arena, target->discovery);
    if (!t->arena.failed)
        return j;
    export_job_free(j);
    return NULL;
}

void export_job_free(struct export_job *j) {
    if (!j)
        return;
    strbuf_fini(&j->text);
    sample_filter_fini(&j->cut);
    arena_fini(&j->target.arena);
    free(j);
}

void export_job_do(struct export_job *j) {
    const struct export_request request = {
        .format = j->format->name, .duration_s = j->elapsed_s, .by_function = j->by_function};
    const struct model_snapshot nothing = {0};
    const struct export_data data = {.request = &request,
                                     .target = &j->target,
                                     .snapshot = &nothing,
                                     .counts = j->cut.counts,
                                     .runs = j->cut.runs,
                                     .choice = j->is_part ? j->choice : NULL,
                                     .elapsed_s = j->elapsed_s,
                                     .until_s = j->until_s};
    int rc = j->cut.counts ? j->format->render(&data, &j->text, &j->error) : 0;
    if (rc == 0 && j->text.failed)
        rc = err_set(&j->error, ERR_FAILED, "it is too long or memory is short");
    if (rc == 0)
        rc = output_write(j->path, &j->text, &j->error);
    if (rc == 0)
        j->error = (struct err){0};
}

/* ---- the thread ---- */

struct exporter {
    struct work work;
    struct export_job *job; /* the worker's while it is running */
};

static void exporter_run(void *arg) {
    struct exporter *x = arg;
    export_job_do(x->job);
}

struct exporter *exporter_new(struct err *e) {
    struct exporter *x = calloc(1, sizeof *x);
    int rc = x ? work_init(&x->work) : ENOMEM;
    if (rc == 0)
        return x;
    err_set_errno(e, ERR_FAILED, rc, "cannot export");
    free(x);
    return NULL;
}

int exporter_fd(const struct exporter *x) { return x->work.fd; }

int exporter_start(struct exporter *x, struct export_job *j, struct err *e) {
    if (x->work.is_running) {
        export_job_free(j);
        return err_set(e, ERR_FAILED, "an export is running: wait for its end");
    }
    x->job = j;
    int rc = work_start(&x->work, exporter_run, x);
    if (rc == 0)
        return 0;
    export_job_free(j);
    x->job = NULL;
    return err_set_errno(e, ERR_FAILED, rc, "cannot export");
}

struct export_job *exporter_take(struct exporter *x) {
    if (!work_finish(&x->work))
        return NULL;
    struct export_job *j = x->job;
    x->job = NULL;
    return j;
}

void exporter_free(struct exporter *x) {
    if (!x || !work_stop(&x->work, EXPORTER_STOP_S))
        return;
    export_job_free(x->job);
    free(x);
}
