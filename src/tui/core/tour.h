/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tour: `probing-top --tour`, a walk through the screens with a hint below each, on a job that was
 * started for it (host/tour_job.h).
 *
 * A row of tour_pages is a page. While a tab is shown and nothing is being typed, Enter and Right go
 * to the next page, Left goes back, q and Esc end the tour; all other keys are the screen's.
 */
#ifndef TUI_CORE_TOUR_H
#define TUI_CORE_TOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/core/app.h"
#include "tui/keys/action.h"
#include "tui/view/grid.h"

#define TOUR_HINT_MAX 160

struct tour_page {
    enum action opens;   /* the screen */
    const char *answers; /* the question that the screen answers */
    const char *keys;    /* what to press there; "{name}" is the key of that action */
    const char *typed;   /* what is in the editor when the page is first shown; NULL: nothing */
};

/* Ends with ACTION_NONE. */
extern const struct tour_page tour_pages[];

/* Show the first page. */
void tour_begin(struct app *a);

/* True: the key was for the tour, which did what it means. */
bool tour_key(struct app *a, uint32_t key);

/* Rows of the hint, of so many rows of the screen; 0: there is no tour. */
int tour_rows(const struct app *a, int screen_rows);
void tour_draw(struct app *a, struct grid *g, struct rect area);

/* Put a text of the page with the keys as they are in that context. */
void tour_put_text(const char *text, enum action_context context, char *buf, size_t cap);

#endif
