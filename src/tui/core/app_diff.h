/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_diff: what Top and Flame compare with: the time before the one shown, a span that was chosen,
 * or the samples of a recording.
 *
 * The screens say in words what is compared. Shares are compared, so the two times may differ in
 * length. While the view is live, the earlier time moves along once a second; a span stays where it
 * is. One thread.
 */
#ifndef TUI_CORE_APP_DIFF_H
#define TUI_CORE_APP_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/core/app.h"

/* The samples to compare with. */
struct app_diff_side {
    const struct sample_store *tally;
    enum sample_store_window window;
    bool is_foreign; /* from another tally than the one that is shown */
    int64_t tid;     /* the thread in that tally; 0: all, -1: it has no such thread */
};

void app_diff_fini(struct app_diff *d);

/* An action about comparing: mark, begin, end; false: another one. */
bool app_diff_act(struct app *a, enum action action);

/* Toggle comparing. A window that has nothing before it is replaced by one that has, with a
 * message. */
void app_diff_toggle(struct app *a);

/* Show what is compared with what. */
void app_diff_say(struct app *a);

/* Compare with a span; with the time before the window that is shown. False, with a message: that
 * is not possible. */
bool app_diff_choose_span(struct app *a, double from_s, double to_s);
void app_diff_choose_before(struct app *a);

/* ":diff" with an argument: "B", "A B" (each a window as ":window" takes it; A is shown), "before",
 * "off", else the name of a recording. */
void app_diff_command(struct app *a, const char *argument);

/* What to compare the window `chosen` of thread `tid` (0: all) with, brought up to date. False:
 * nothing is compared, or there is nothing to compare with. */
bool app_diff_find(struct app *a, enum sample_store_window chosen, int64_t tid, struct app_diff_side *out);

/* "last 10 s against the 10 s before", and which part of the earlier time is unknown. */
void app_diff_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap);

/* Compare with a recording whose samples will arrive; its samples; it cannot be read. */
void app_diff_expect(struct app *a, const char *name);
void app_diff_take_samples(struct app *a, const struct model_sample_batch *b);
void app_diff_fail(struct app *a, const char *why);

#endif
