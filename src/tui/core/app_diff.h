/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_diff: what Top and Flame compare the time they show with: the time before it, a span that was chosen, or the samples of a
 * recording.
 *
 * What is compared is said in words wherever it is shown. Shares are compared, so the two may be of different length. While
 * the view moves the time before moves along, once a second; a span stands still. One thread.
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
    bool is_foreign; /* of another tally than what is shown */
    int64_t tid;     /* there: the thread in question; 0 all, -1 there is none like it */
};

void app_diff_fini(struct app_diff *d);

/* Do an action that is about comparing: the mark, begin, end; false when it is none of them. */
bool app_diff_act(struct app *a, enum action action);

/* Begin to compare, or end it. A window that has nothing before it is changed to one that has, and the user is told. */
void app_diff_toggle(struct app *a);

/* Tell the user what is compared with what. */
void app_diff_say(struct app *a);

/* Compare with a span, from here on; with the time before the window that is shown. False, with a message: it cannot be. */
bool app_diff_choose_span(struct app *a, double from_s, double to_s);
void app_diff_choose_before(struct app *a);

/* ":diff" with an argument: "B", "A B" (each a window as ":window" takes it, A is shown then), "before", "off", else the name of a
 * recording. */
void app_diff_command(struct app *a, const char *argument);

/* What to compare the window `chosen` of thread `tid` (0 all) with; brings it up to date. False: nothing is compared, or there
 * is nothing to compare with. */
bool app_diff_find(struct app *a, enum sample_store_window chosen, int64_t tid, struct app_diff_side *out);

/* "last 10 s against the 10 s before"; and what of the time before is not known. */
void app_diff_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap);

/* Compare with a recording, of which samples will come; its samples; it cannot be read. */
void app_diff_expect(struct app *a, const char *name);
void app_diff_take_samples(struct app *a, const struct model_sample_batch *b);
void app_diff_fail(struct app *a, const char *why);

#endif
