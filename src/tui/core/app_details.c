/* SPDX-License-Identifier: Apache-2.0 */
/* app_details: see app_details.h. */
#include "tui/core/app_details.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app_message.h"

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
