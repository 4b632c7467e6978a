/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: the time that all screens show: since the start, the last seconds, since the mark, or a
 * span that was selected.
 *
 * Screens call window_which for the window of the tally and compare `version` to see that it has
 * changed. Times are those of the samples (model_sample.timestamp). One thread.
 */
#ifndef TUI_CORE_WINDOW_H
#define TUI_CORE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"

#define WINDOW_TEXT 64

/* The window of the tally that screens show: the one that was chosen, or SAMPLE_STORE_ALL if that
 * mark or span no longer exists. */
enum sample_store_window window_which(const struct app *a);

/* Choose one; choose the next available one. Updates the screens. */
void window_show(struct app *a, enum sample_store_window which);
void window_step(struct app *a);

/* Make the time between two moments the window. False, with a message: not possible. */
bool window_select(struct app *a, double from_s, double to_s);

/* Drop the span: the window is again what it was before. */
void window_let_go(struct app *a);

/* A window as text: "all", "10s", "60s", "mark", or FROM-TO, each a time of day ("22:13:20.5") or
 * how long ago ("90s", "2m"; "0s" is now). 0, or -1 with ERR_USAGE. */
int window_parse(struct app *a, const char *text, struct err *e);

/* The same texts as a fixed time from one moment to another. And does a text look like one of them?
 * The name of a file does not. */
int window_parse_range(const struct app *a, const char *text, double *from_s, double *to_s, struct err *e);
bool window_is_text(const char *text);

/* Its beginning and end; false while nothing is known. */
bool window_get_range(const struct app *a, double *from_s, double *to_s);

/* "over 4m09s", "last 10 s", "since mark 12s", "22:13:20.5 +3.5s"; "" before the first samples. */
void window_put_text(const struct app *a, char *buf, size_t cap);

/* The unknown part of it: "first 2.0s not known"; "": all of it is known. */
void window_put_missing(const struct app *a, char *buf, size_t cap);

#endif
