/* SPDX-License-Identifier: Apache-2.0 */
/* app: see app.h. */
#include "tui/core/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/workers/exporter.h"

void app_message(struct app *a, bool is_bad, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = is_bad;
    a->dirty = true;
    if (is_bad)
        log_add(a->log, a->epoch_s, LOG_LEVEL_BAD, "%s", a->message);
}

void app_refuse(struct app *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = true;
    a->dirty = true;
}

void app_prompt(struct app *a, enum action what, const char *label, const char *text) {
    prompt_start(&a->prompt, label, text);
    a->prompt_for = what;
    a->prompt_failed = false;
    a->dirty = true;
}

void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open) {
    struct err e;
    if (*is_open)
        return;
    *is_open = true;
    history_fini(h);
    if (a->host.open_history(a->host.arg, name, h, &e) != 0)
        app_message(a, true, "%s", e.text);
}

void app_ask_details(struct app *a, const struct wire_threads *want) {
    struct err e;
    if (a->host.ask_details(a->host.arg, want, &e) == 0)
        return;
    app_message(a, true, "%s", e.text);
    a->data.native_refused |= want->native;
}

void app_take_locals(struct app *a, struct model_snapshot *s) {
    data_take_locals(&a->data, s);
    a->dirty = true;
}

void app_want_source(struct app *a, const char *path, int from) {
    struct app_source *asked = &a->source_asked;
    from = from < 1 ? 1 : from;
    if (asked->from == from && strcmp(asked->path, path) == 0)
        return;
    snprintf(asked->path, sizeof asked->path, "%s", path);
    asked->from = from;
    a->host.read_source(a->host.arg);
}

void app_take_source(struct app *a, struct source_text *text) {
    free(a->source);
    a->source = text;
    a->dirty = true;
}

void app_forget_source(struct app *a) {
    free(a->source);
    a->source = NULL;
    memset(&a->source_asked, 0, sizeof a->source_asked);
}

void app_attach(struct app *a, pid_t pid) { app_attach_there(a, pid, NULL); }

void app_attach_there(struct app *a, pid_t pid, const char *host) {
    a->attaching = pid;
    a->began_s = a->now_s;
    a->host.attach(a->host.arg, pid, host);
}

void app_quit(struct app *a) { a->host.quit(a->host.arg); }

/* ---- a host that does nothing ---- */

static void app_host_do(void *arg) { (void)arg; }

static void app_host_set_mouse(void *arg, bool on) {
    (void)arg;
    (void)on;
}

static void app_host_take_name(void *arg, const char *name) {
    (void)arg;
    (void)name;
}

static int app_host_open_history(void *arg, const char *name, struct history *h, struct err *e) {
    (void)arg;
    (void)name;
    (void)h;
    (void)e;
    return 0;
}

static void app_host_copy(void *arg, const char *what, const char *text, size_t len) {
    (void)arg;
    (void)what;
    (void)text;
    (void)len;
}

static void app_host_write(void *arg, struct export_job *job) {
    (void)arg;
    export_job_free(job);
}

static void app_host_edit(void *arg, pid_t pid, const char *file, int line) {
    (void)arg;
    (void)pid;
    (void)file;
    (void)line;
}

static void app_host_attach(void *arg, pid_t pid, const char *host) {
    (void)host;
    (void)arg;
    (void)pid;
}

static void app_host_show_target(void *arg, int target) {
    (void)arg;
    (void)target;
}

static void app_host_find_job(void *arg, pid_t pid) {
    (void)arg;
    (void)pid;
}

static void app_host_request(void *arg, enum wire_method method) {
    (void)arg;
    (void)method;
}

static int app_host_ask_details(void *arg, const struct wire_threads *want, struct err *e) {
    (void)arg;
    (void)want;
    (void)e;
    return 0;
}

static int app_host_arm(void *arg, const struct wire_arm *want, struct err *e) {
    (void)arg;
    (void)want;
    (void)e;
    return 0;
}

static int app_host_configure(void *arg, const struct wire_config *want, struct err *e) {
    (void)arg;
    (void)want;
    (void)e;
    return 0;
}

static void app_host_eval(void *arg, const struct wire_eval *want) {
    (void)arg;
    (void)want;
}

static void app_host_debug(void *arg, enum wire_method method, const struct wire_debug *want) {
    (void)arg;
    (void)method;
    (void)want;
}

static void app_host_run_magic(void *arg, struct magic *m, int cols) {
    (void)arg;
    (void)cols;
    magic_fini(m);
}

const struct app_host app_host_none = {
    .quit = app_host_do,
    .suspend = app_host_do,
    .repaint = app_host_do,
    .set_mouse = app_host_set_mouse,
    .set_theme = app_host_take_name,
    .list_themes = app_host_do,
    .save_settings = app_host_do,
    .open_history = app_host_open_history,
    .copy = app_host_copy,
    .write = app_host_write,
    .edit = app_host_edit,
    .read_source = app_host_do,
    .list_processes = app_host_do,
    .list_jobs = app_host_do,
    .attach = app_host_attach,
    .show_target = app_host_show_target,
    .open_diff = app_host_take_name,
    .watch_job = app_host_take_name,
    .query_job = app_host_take_name,
    .find_job = app_host_find_job,
    .request = app_host_request,
    .ask_details = app_host_ask_details,
    .arm = app_host_arm,
    .disarm = app_host_arm,
    .configure = app_host_configure,
    .eval = app_host_eval,
    .debug = app_host_debug,
    .run_query = app_host_do,
    .cancel_query = app_host_do,
    .read_feeds = app_host_do,
    .run_magic = app_host_run_magic,
    .cancel_magic = app_host_do,
};
