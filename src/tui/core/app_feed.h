/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_feed: tables that screens show: a query each, repeated while the table is shown. Not those of
 * the SQL screen.
 *
 * A screen asks for its feed and draws the newest rows; the host (or a test) runs the query and
 * gives the answer. Rows stay when a later answer is an error. One thread.
 */
#ifndef TUI_CORE_APP_FEED_H
#define TUI_CORE_APP_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"
#include "tui/theme/theme.h"

#define APP_FEED_UNKNOWN INT64_MIN

void app_feeds_fini(struct app_feeds *f);

/* Another target is shown: forget what is known. Answers that are under way are dropped. */
void app_feeds_forget(struct app_feeds *f);

/* Request a feed by its query, which is cut to APP_FEED_TEXT, unless it is requested already. */
void app_feed_ask(struct app *a, enum app_feed_id id, const char *text);

/* The same when it is due: at first, then every `every_s`, less often if answers take long. Not
 * while the view is frozen, nor after the target has ended, its tables with it. */
void app_feed_follow(struct app *a, enum app_feed_id id, const char *text, double every_s);

/* Its rows are of another moment: forget them, and what is under way. */
void app_feed_renew(struct app *a, enum app_feed_id id);

/* The same for the verdicts, which have no query. */
void app_feed_follow_verdicts(struct app *a, double every_s);

const struct app_feed *app_feed_get(const struct app *a, enum app_feed_id id);

/* The next one that is requested, in turn after `last`; FEED_COUNT: none. */
enum app_feed_id app_feed_next(const struct app *a, enum app_feed_id last);

/* Run its query. 0, or -1 with the error: then give that to app_take_feed as the answer. */
int app_feed_begin(struct app *a, enum app_feed_id id, struct querier *q, struct err *e);

/* It was ended for something more urgent, and is wanted as before. */
void app_feed_repeat(struct app *a, enum app_feed_id id);

/* The age of the rows and how long they took, or why there are none: one line, for a screen's
 * head. */
void app_feed_put_state(const struct app *a, enum app_feed_id id, struct strbuf *out);

/* Number of the column with that name; -1: none. `rows` may be NULL. */
int app_feed_column(const struct result *rows, const char *name);

/* A value of a column that may be missing (-1): NULL, NAN, or -1 where it is unknown. The text
 * belongs to the result. */
const char *app_feed_text(const struct result *rows, size_t row, int column);
double app_feed_number(const struct result *rows, size_t row, int column);
int app_feed_flag(const struct result *rows, size_t row, int column);
int64_t app_feed_int(const struct result *rows, size_t row, int column); /* APP_FEED_UNKNOWN */

/* The text in place of rows: why there are none, or `nothing`. Errors in full. */
void app_feed_put_empty(const struct app *a, enum app_feed_id id, const char *nothing, char *buf, size_t cap);

/* ---- the worst verdict, for the header of every screen ---- */

/* It is requested seldom, and never while the view is frozen: nobody waits for it, and observing must
 * stay cheap. Request it, if it is due. */
void app_feed_follow_badge(struct app *app);

/* Its text in a few words: "SLOW: INPUT-BOUND, worker 2"; "": nothing is wrong, or the verdict is
 * unknown or old. Returns the role that it is drawn in. */
enum theme_role app_feed_put_badge(const struct app *app, char *buf, size_t cap);

#endif
