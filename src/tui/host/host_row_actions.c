/* SPDX-License-Identifier: Apache-2.0 */
/* host_row_actions: see host_row_actions.h. */
#include "tui/host/host_row_actions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/symbols/frame_file.h"
#include "client/history.h"
#include "client/output.h"
#include "tui/core/app_export.h"
#include "tui/core/app.h"
#include "tui/term/term.h"

/* ---- copying ---- */

/* Write it into a file, for the reason `why`. */
static void host_row_actions_copy_to_file(struct host_row_actions *h, const char *what, const char *copied,
                                          size_t len, const char *why) {
    char path[512];
    struct strbuf text;
    struct err e;
    const char *user = getenv("HOME");
    size_t home = 0; /* of the path: the message is one line, with the path first */
    history_path("copied", path, sizeof path);
    if (user && *user && strncmp(path, user, strlen(user)) == 0 && path[strlen(user)] == '/')
        home = strlen(user);
    strbuf_init(&text, 0);
    strbuf_add(&text, copied, len);
    if (!*path)
        app_message(h->app, true, "nothing was copied: %s, and there is no folder for a file", why);
    else if (text.failed || output_write(path, &text, &e) != 0)
        app_message(h->app, true, "nothing was copied: %s", text.failed ? "out of memory" : e.text);
    else
        app_message(h->app, false, "%s is in %s%s: %s", what, home ? "~" : "", path + home, why);
    strbuf_fini(&text);
}

void host_row_actions_copy(struct host_row_actions *h, const char *what, const char *text, size_t len) {
    char begin[48];
    const char *why = term_clipboard_why_not(getenv("TERM"), getenv("STY"));
    if (len > TERM_CLIPBOARD_MAX)
        why = "it is too long for a clipboard";
    if (!h->term)
        return;
    if (why) {
        host_row_actions_copy_to_file(h, what, text, len, why);
        return;
    }
    term_copy(h->term, text, len);
    text_sanitize(begin, sizeof begin, text);
    app_message(h->app, false, "copied %s, %zu bytes: %s%s", what, len, begin,
                len >= sizeof begin ? "..." : "");
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

void host_row_actions_edit(struct host_row_actions *h, pid_t pid, const char *file, int line) {
    char path[PATH_MAX];
    struct err e;
    if (!h->term || host_row_actions_is_editing(h))
        return;
    if (frame_file_find(pid, file, path, sizeof path, &e) != 0) {
        app_message(h->app, true, "%s", e.text);
        return;
    }
    h->on_terminal(h->arg, true);
    term_give(h->term);
    if (editor_process_start(&h->editor, editor_process_command(), path, line, &e) != 0) {
        term_take(h->term);
        app_message(h->app, true, "%s", e.text);
        h->on_terminal(h->arg, false);
        return;
    }
    h->watch = h->editor.pidfd >= 0
                   ? loop_watch_fd(h->loop, h->editor.pidfd, host_row_actions_on_edited, h, &e)
                   : NULL;
    /* It waits for its end. */
    if (!h->watch)
        host_row_actions_on_edited(h);
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

void host_row_actions_write(struct host_row_actions *h, struct export_job *job) {
    struct err e;
    if (host_row_actions_open_exporter(h, &e) != 0) {
        export_job_free(job);
        app_message(h->app, true, "%s", e.text);
    } else if (exporter_start(h->exporter, job, &e) != 0)
        app_message(h->app, true, "%s", e.text);
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
