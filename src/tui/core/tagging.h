/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tagging: tagged rows on any screen: tag them, show only them, and collect them for copies and
 * exports.
 *
 * Screens describe their rows (screen_def.rows). Tagged rows that are not shown are left alone, and
 * the message says so. Pure; one thread.
 */
#ifndef TUI_CORE_TAGGING_H
#define TUI_CORE_TAGGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/keys/action.h"
#include "tui/core/screen.h"

/* What the tagged rows stand for; frames are borrowed until the next data. */
struct tagged {
    size_t n;                  /* tagged rows that are shown */
    size_t hidden;             /* tagged rows that are not shown */
    struct screen_pick *picks; /* n of them */
};

/* An action about tags; false: another one. */
bool tagging_act(struct app *app, enum action action);

/* How many rows are tagged on the topmost screen that is not an overlay. */
size_t tagging_count(struct app *app);

/* Collect them. Their texts are appended to `one` and `whole`, if those are not NULL: a line or
 * paragraph each. 0, or -1: out of memory; tagged_fini in any case. */
int tagging_collect(struct app *app, struct tagged *out, struct strbuf *one, struct strbuf *whole);
void tagged_fini(struct tagged *t);

/* "3 tagged rows", "3 tagged rows; 2 more are not shown". */
void tagging_text(const struct tagged *t, char *buf, size_t cap);

/* Are the rows threads? Are they functions or lines? */
bool tagged_has_threads(const struct tagged *t);
bool tagged_has_frames(const struct tagged *t);

/* Is this thread of the target one of them? Is this frame's function, or its line? */
bool tagged_has_thread(const struct tagged *t, int64_t tid);
bool tagged_has_frame(const struct tagged *t, const struct model_frame *f);

/* Show only tagged rows of that screen, or as before; returns what it was. */
bool tagging_show_only(struct app *app, bool only);

#endif
