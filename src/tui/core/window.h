/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: which time the screens look at, the same for all of them: since the start, the last seconds, since the mark, or a
 * span that was selected.
 *
 * Screens ask window_which for the window of the tally and keep `version`, to see that it is another now. Times are those of
 * the samples (model_sample.timestamp). One thread.
 */
#ifndef TUI_CORE_WINDOW_H
#define TUI_CORE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"

#define WINDOW_TEXT 64

/* The window of the tally that screens show: what was chosen, or SAMPLE_STORE_ALL where there is no such mark or span any more. */
enum sample_store_window window_which(const struct app *a);

/* Choose one; the next one of those that there are. Screens are told. */
void window_show(struct app *a, enum sample_store_window which);
void window_step(struct app *a);

/* Make the time from one to another the window. False, with a message, when it cannot be. */
bool window_select(struct app *a, double from_s, double to_s);

/* Let the span go: the window is what it was before there was one. */
void window_let_go(struct app *a);

/* As text: "all", "10s", "60s", "mark", or FROM-TO, each a time of the day ("22:13:20.5") or how long ago ("90s", "2m"; "0s" is
 * now). 0, or -1 with ERR_USAGE. */
int window_parse(struct app *a, const char *text, struct err *e);

/* The same texts, for a time from when to when that stands still. And whether a text looks like one of them: the name of a file does
 * not. */
int window_parse_range(const struct app *a, const char *text, double *from_s, double *to_s, struct err *e);
bool window_is_text(const char *text);

/* From when to when it is; false while nothing is known. */
bool window_get_range(const struct app *a, double *from_s, double *to_s);

/* "over 4m09s", "last 10 s", "since mark 12s", "22:13:20.5 +3.5s"; "" before there are samples. */
void window_put_text(const struct app *a, char *buf, size_t cap);

/* What of it is not known: "first 2.0s not known"; "" it is. */
void window_put_missing(const struct app *a, char *buf, size_t cap);

#endif
