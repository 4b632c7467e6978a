/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_state: what the Top screen holds, for the files it is made of: top.c has the screen, top_pick.c what is selected and tagged
 * in it, and the mouse. Pure.
 */
#ifndef TUI_SCREENS_TOP_TOP_STATE_H
#define TUI_SCREENS_TOP_TOP_STATE_H

#include "tui/core/app.h"
#include "tui/screens/top/top_compare.h"
#include "tui/screens/top/top_rows.h"
#include "tui/view/list.h"
#include "tui/view/tags.h"

struct top_state {
    struct sample_store_query query;
    struct sample_store_table table;
    struct top_rows rows;
    struct top_compare compare;
    struct top_filter filter;
    struct match search;
    struct table_sort sort;
    struct list list;
    bool has_id; /* the user chose a row; until then the first one is selected */
    uint32_t id;
    int threshold;
    int scroll;
    struct sample_store_call *calls; /* of the selected function */
    size_t n_calls;
    struct list calls_list;
    bool calls_open, in_calls, zoomed;
    double built_s;         /* when the table was made; with no samples: not yet */
    uint64_t built_samples; /* of the stream then */
    uint64_t ids;           /* of the tally that the numbers are of; 0 none */
    unsigned pauses;
    unsigned window;      /* version of the window shown */
    unsigned tag_changes; /* of the tags that the rows were chosen by */
    bool tagged_only;
    int widths[TABLE_MAX_COLUMNS], call_widths[TABLE_MAX_COLUMNS];
    struct rect table_area, calls_area; /* as last drawn; no rows: not drawn */
};

/* ---- top.c ---- */

/* The selected row of the table; NULL none. */
const struct sample_store_row *top_selected(const struct top_state *s);

void top_select_row(struct top_state *s, const struct app *app, int row);

/* Make the rows of the table again; and the table. */
void top_order(struct top_state *s, const struct app *app);
void top_rebuild(struct top_state *s, struct app *app);

/* ---- top_pick.c ---- */

extern const struct screen_rows top_tagged;

bool top_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole);
bool top_show(void *state, struct app *app, const struct screen_pick *what);
bool top_mouse(void *state, struct app *app, const struct input_event *e);

#endif
