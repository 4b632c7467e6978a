/* SPDX-License-Identifier: Apache-2.0 */
/* host_row_actions: see host_row_actions.h. */
#include "tui/host/host_row_actions.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "client/symbols/frame_file.h"
#include "client/history.h"
#include "client/output.h"
#include "tui/core/app_export.h"
#include "tui/term/term.h"

/* The commands of before, from the first time that the command line is opened. */
static void host_row_actions_open_history(struct host_row_actions *h) {
    char path[512];
    struct err e;
    if (h->has_history)
        return;
    h->has_history = true;
    history_path("commands", path, sizeof path);
    history_fini(&h->app->command.history);
    if (history_open(&h->app->command.history, path, &e) != 0)
        app_message(h->app, true, "%s", e.text);
}

/* ---- copying ---- */

/* Into a file, for the reason given. */
static void host_row_actions_copy_to_file(struct host_row_actions *h, const char *why) {
    const struct row_actions *hands = &h->app->hands;
    char path[512];
    struct strbuf text;
    struct err e;
    history_path("copied", path, sizeof path);
    strbuf_init(&text, 0);
    (void)strbuf_add(&text, hands->text, hands->len);
    if (!*path)
        app_message(h->app, true, "nothing is copied: %s, and there is no folder for a file", why);
    else if (text.failed || output_write(path, &text, &e) != 0)
        app_message(h->app, true, "nothing is copied: %s", text.failed ? "out of memory" : e.text);
    else
        app_message(h->app, false, "%s: %s, %zu bytes, is in %s", why, hands->what, hands->len, path);
    strbuf_fini(&text);
}

static void host_row_actions_copy(struct host_row_actions *h) {
    const struct row_actions *hands = &h->app->hands;
    char begin[48];
    const char *why = term_clipboard_why_not(getenv("TERM"), getenv("STY"));
    if (hands->len > TERM_CLIPBOARD_MAX)
        why = "it is too long for a clipboard";
    if (!h->term || !hands->text)
        return;
    if (why) {
        host_row_actions_copy_to_file(h, why);
        return;
    }
    term_copy(h->term, hands->text, hands->len);
    (void)text_sanitize(begin, sizeof begin, hands->text);
    app_message(h->app, false, "copied %s, %zu bytes: %s%s", hands->what, hands->len, begin,
                hands->len >= sizeof begin ? "..." : "");
}

/* ---- the editor ---- */

bool host_row_actions_is_editing(const struct host_row_actions *h) { return h->editor.pid > 0; }

static void host_row_actions_on_edited(void *arg) {
    struct host_row_actions *h = arg;
    struct err e;
    int rc = editor_process_finish(&h->editor, &e);
    loop_unwatch(h->watch);
    h->watch = NULL;
    term_take(h->term);
    if (rc != 0)
        app_message(h->app, true, "%s", e.text);
    h->on_terminal(h->arg, false);
}

static void host_row_actions_edit(struct host_row_actions *h) {
    const struct row_actions *hands = &h->app->hands;
    char path[PATH_MAX];
    struct err e;
    if (!h->term || host_row_actions_is_editing(h))
        return;
    if (frame_file_find(hands->pid, hands->file, path, sizeof path, &e) != 0) {
        app_message(h->app, true, "%s", e.text);
        return;
    }
    h->on_terminal(h->arg, true);
    term_give(h->term);
    if (editor_process_start(&h->editor, editor_process_command(), path, hands->line, &e) != 0) {
        term_take(h->term);
        app_message(h->app, true, "%s", e.text);
        h->on_terminal(h->arg, false);
        return;
    }
    h->watch = h->editor.pidfd >= 0
                   ? loop_watch_fd(h->loop, h->editor.pidfd, host_row_actions_on_edited, h, &e)
                   : NULL;
    if (!h->watch)
        host_row_actions_on_edited(h); /* which waits for its end */
}

/* ---- exports ---- */

static void host_row_actions_on_exported(void *arg) {
    struct host_row_actions *h = arg;
    struct export_job *job = exporter_take(h->exporter);
    if (!job)
        return;
    app_export_done(h->app, job);
    h->changed(h->arg);
}

static int host_row_actions_open_exporter(struct host_row_actions *h, struct err *e) {
    if (h->exporter)
        return 0;
    h->exporter = exporter_new(e);
    if (h->exporter)
        h->exported = loop_watch_fd(h->loop, exporter_fd(h->exporter), host_row_actions_on_exported, h, e);
    if (h->exported)
        return 0;
    exporter_free(h->exporter);
    h->exporter = NULL;
    return -1;
}

static void host_row_actions_export(struct host_row_actions *h) {
    struct export_job *job = h->app->hands.job;
    struct err e;
    h->app->hands.job = NULL;
    if (host_row_actions_open_exporter(h, &e) != 0) {
        export_job_free(job);
        app_message(h->app, true, "%s", e.text);
    } else if (exporter_start(h->exporter, job, &e) != 0)
        app_message(h->app, true, "%s", e.text);
}

void host_row_actions_apply(struct host_row_actions *h, const struct app_requests *w) {
    if (w->command_history)
        host_row_actions_open_history(h);
    if (w->copy)
        host_row_actions_copy(h);
    if (w->export_file)
        host_row_actions_export(h);
    if (w->edit)
        host_row_actions_edit(h);
}

void host_row_actions_stop(struct host_row_actions *h) {
    loop_unwatch(h->watch);
    h->watch = NULL;
    editor_process_leave(&h->editor);
    loop_unwatch(h->exported);
    exporter_free(h->exporter);
    h->exported = NULL;
    h->exporter = NULL;
}
