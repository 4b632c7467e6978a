/* SPDX-License-Identifier: Apache-2.0 */
/* app_source: lines of source that a screen shows: asked for by a wish, which the runner carries out; see app.h. */
#include "tui/core/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void app_want_source(struct app *a, const char *path, int from) {
    struct app_source_request *w = &a->source_request;
    from = from < 1 ? 1 : from;
    if (w->from == from && strcmp(w->path, path) == 0)
        return; /* it was asked for already */
    (void)snprintf(w->path, sizeof w->path, "%s", path);
    w->from = from;
    w->is_new = true;
}

void app_take_source(struct app *a, struct source_text *text) {
    free(a->source);
    a->source = text;
    a->dirty = true;
}

void app_forget_source(struct app *a) {
    free(a->source);
    a->source = NULL;
    memset(&a->source_request, 0, sizeof a->source_request);
}
