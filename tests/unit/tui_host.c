/* SPDX-License-Identifier: Apache-2.0 */
/* tui_host: see tui_host.h. */
#include "unit/tui_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/workers/exporter.h"

struct fake_host fake_host;

static void fake_host_quit(void *arg) { ((struct fake_host *)arg)->asked.quit = true; }
static void fake_host_suspend(void *arg) { ((struct fake_host *)arg)->asked.suspend = true; }
static void fake_host_repaint(void *arg) { ((struct fake_host *)arg)->asked.repaint = true; }
static void fake_host_list_themes(void *arg) { ((struct fake_host *)arg)->asked.list_themes = true; }
static void fake_host_save_settings(void *arg) { ((struct fake_host *)arg)->asked.save_settings = true; }
static void fake_host_read_source(void *arg) { ((struct fake_host *)arg)->asked.read_source = true; }
static void fake_host_list_processes(void *arg) { ((struct fake_host *)arg)->asked.list_processes = true; }
static void fake_host_list_jobs(void *arg) { ((struct fake_host *)arg)->asked.list_jobs = true; }
static void fake_host_cancel_query(void *arg) { ((struct fake_host *)arg)->asked.cancel_query = true; }
static void fake_host_cancel_magic(void *arg) { ((struct fake_host *)arg)->asked.cancel_magic = true; }

static void fake_host_set_mouse(void *arg, bool on) {
    struct fake_host *h = arg;
    (void)on;
    h->asked.set_mouse = true;
}

static void fake_host_set_theme(void *arg, const char *name) {
    struct fake_host *h = arg;
    snprintf(h->asked.theme, sizeof h->asked.theme, "%s", name);
}

static int fake_host_open_history(void *arg, const char *name, struct history *history, struct err *e) {
    struct fake_host *h = arg;
    (void)history;
    (void)e;
    snprintf(h->asked.history, sizeof h->asked.history, "%s", name);
    return 0;
}

static void fake_host_copy(void *arg, const char *what, const char *text, size_t len) {
    struct fake_host *h = arg;
    h->asked.copy = true;
    free(h->text);
    h->text = strndup(text, len);
    h->len = len;
    snprintf(h->what, sizeof h->what, "%s", what);
}

static void fake_host_write(void *arg, struct export_job *job) {
    struct fake_host *h = arg;
    h->asked.write = true;
    export_job_free(h->job);
    h->job = job;
}

static void fake_host_edit(void *arg, pid_t pid, const char *file, int line) {
    struct fake_host *h = arg;
    (void)pid;
    h->asked.edit = true;
    h->line = line;
    snprintf(h->file, sizeof h->file, "%s", file);
}

static void fake_host_attach(void *arg, pid_t pid, const char *host) {
    struct fake_host *h = arg;
    h->asked.attach = pid;
    snprintf(h->asked.attach_host, sizeof h->asked.attach_host, "%s", host ? host : "");
}

static void fake_host_show_target(void *arg, int target) {
    ((struct fake_host *)arg)->asked.show_target = target + 1;
}

static void fake_host_watch_job(void *arg, const char *target) {
    struct fake_host *h = arg;
    snprintf(h->asked.job, sizeof h->asked.job, "%s", target);
}

static void fake_host_query_job(void *arg, const char *target) {
    struct fake_host *h = arg;
    snprintf(h->asked.job_tables, sizeof h->asked.job_tables, "%s", target);
}

static void fake_host_find_job(void *arg, pid_t pid) {
    struct fake_host *h = arg;
    h->asked.find_job = pid;
}

static void fake_host_open_diff(void *arg, const char *name) {
    struct fake_host *h = arg;
    snprintf(h->asked.diff, sizeof h->asked.diff, "%s", name);
}

static void fake_host_request(void *arg, enum wire_method method) {
    struct fake_host *h = arg;
    h->asked.snapshot |= method == WIRE_THREADS;
    h->asked.status |= method == WIRE_STATUS;
    h->asked.interrupt |= method == WIRE_INTERRUPT;
}

static int fake_host_ask_details(void *arg, const struct wire_threads *want, struct err *e) {
    struct fake_host *h = arg;
    (void)e;
    h->asked.details = *want;
    return 0;
}

static int fake_host_arm(void *arg, const struct wire_arm *want, struct err *e) {
    struct fake_host *h = arg;
    (void)e;
    h->asked.arm = *want;
    h->asked.disarm = false;
    return 0;
}

static int fake_host_disarm(void *arg, const struct wire_arm *want, struct err *e) {
    struct fake_host *h = arg;
    (void)e;
    h->asked.arm = *want;
    h->asked.disarm = true;
    return 0;
}

static int fake_host_configure(void *arg, const struct wire_config *want, struct err *e) {
    struct fake_host *h = arg;
    (void)e;
    h->asked.config = *want;
    return 0;
}

static void fake_host_run_magic(void *arg, struct magic *m, int cols) {
    struct fake_host *h = arg;
    h->magic_kind = m->kind;
    h->magic_cols = cols;
    magic_fini(m);
}

static void fake_host_eval(void *arg, const struct wire_eval *want) {
    (void)arg;
    (void)want; /* repl_engine_question says it, too */
}

static void fake_host_debug(void *arg, enum wire_method method, const struct wire_debug *want) {
    (void)arg;
    (void)method;
    (void)want; /* app->debug has it */
}

static void fake_host_do(void *arg) { (void)arg; /* app->query and app->feeds say what is to be run */ }

const struct app_host *fake_host_begin(void) {
    static const struct app_host host = {
        .arg = &fake_host,
        .quit = fake_host_quit,
        .suspend = fake_host_suspend,
        .repaint = fake_host_repaint,
        .set_mouse = fake_host_set_mouse,
        .set_theme = fake_host_set_theme,
        .list_themes = fake_host_list_themes,
        .save_settings = fake_host_save_settings,
        .open_history = fake_host_open_history,
        .copy = fake_host_copy,
        .write = fake_host_write,
        .edit = fake_host_edit,
        .read_source = fake_host_read_source,
        .list_processes = fake_host_list_processes,
        .list_jobs = fake_host_list_jobs,
        .attach = fake_host_attach,
        .show_target = fake_host_show_target,
        .open_diff = fake_host_open_diff,
        .watch_job = fake_host_watch_job,
        .query_job = fake_host_query_job,
        .find_job = fake_host_find_job,
        .request = fake_host_request,
        .ask_details = fake_host_ask_details,
        .arm = fake_host_arm,
        .disarm = fake_host_disarm,
        .configure = fake_host_configure,
        .eval = fake_host_eval,
        .debug = fake_host_debug,
        .run_query = fake_host_do,
        .cancel_query = fake_host_cancel_query,
        .read_feeds = fake_host_do,
        .run_magic = fake_host_run_magic,
        .cancel_magic = fake_host_cancel_magic,
    };
    export_job_free(fake_host.job);
    free(fake_host.text);
    memset(&fake_host, 0, sizeof fake_host);
    return &host;
}

struct fake_asked fake_host_take(void) {
    struct fake_asked asked = fake_host.asked;
    memset(&fake_host.asked, 0, sizeof fake_host.asked);
    return asked;
}
