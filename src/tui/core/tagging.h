/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tagging: rows that are tagged, whatever the screen: tag them, show them alone, and what they are, for copies and exports.
 *
 * Screens say what their rows are (screen_def.rows); what is tagged and not shown is left alone, and that is said. Pure; one thread.
 */
#ifndef TUI_CORE_TAGGING_H
#define TUI_CORE_TAGGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/keys/action.h"
#include "tui/core/screen.h"

/* What the tagged rows of a screen are of; frames are borrowed until data come. */
struct tagged {
    size_t n;                  /* tagged rows that are shown */
    size_t hidden;             /* and those that are not */
    struct screen_pick *picks; /* n of them */
};

/* Do an action that is about tags; false when it is none of them. */
bool tagging_act(struct app *app, enum action action);

/* How many rows of the topmost screen that is no overlay are tagged. */
size_t tagging_count(struct app *app);

/* They themselves. Texts are appended to `one` and `whole`, if those are not NULL: a line or paragraph each. 0, or -1 without memory;
 * tagged_fini in any case. */
int tagging_collect(struct app *app, struct tagged *out, struct strbuf *one, struct strbuf *whole);
void tagged_fini(struct tagged *t);

/* "3 tagged rows", "3 tagged rows; 2 more are not shown". */
void tagging_text(const struct tagged *t, char *buf, size_t cap);

/* Are the rows threads; are they functions or lines? */
bool tagged_has_threads(const struct tagged *t);
bool tagged_has_frames(const struct tagged *t);

/* Is one of them a thread of the target; is one of them a frame's function, or its line? */
bool tagged_has_thread(const struct tagged *t, int64_t tid);
bool tagged_has_frame(const struct tagged *t, const struct model_frame *f);

/* Show only tagged rows of that screen, or what was shown; what it was. */
bool tagging_show_only(struct app *app, bool only);

#endif
