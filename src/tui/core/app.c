/* SPDX-License-Identifier: Apache-2.0 */
/* app: see app.h. */
#include "tui/core/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void app_quit(struct app *a) { a->host.quit(a->host.arg); }
