/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_feed: tables that screens show: a query each, asked again and again while somebody looks. Not those of the SQL screen.
 *
 * A screen asks for its feed and draws the newest rows; the host (or a test) has the query run and gives the answer. What came
 * before stays when a later answer is an error. One thread.
 */
#ifndef TUI_CORE_APP_FEED_H
#define TUI_CORE_APP_FEED_H

#include <stdbool.h>

#include "tui/core/app.h"

#define APP_FEED_UNKNOWN INT64_MIN

void app_feeds_fini(struct app_feeds *f);

/* What is known is of another target. Answers that are under way are not taken. */
void app_feeds_forget(struct app_feeds *f);

/* Ask for a feed by its query, which is cut to APP_FEED_TEXT, unless it is asked for already. */
void app_feed_ask(struct app *a, enum app_feed_id id, const char *text);

/* The same when it is time: at first, then every `every_s`, and seldom when answers take long. Not while the view is paused, nor when
 * the target has ended and its tables with it. */
void app_feed_follow(struct app *a, enum app_feed_id id, const char *text, double every_s);

/* The same of the verdicts, which have no query. */
void app_feed_follow_verdicts(struct app *a, double every_s);

const struct app_feed *app_feed_get(const struct app *a, enum app_feed_id id);

/* The next one that is wanted, in turn after `last`; FEED_COUNT: none is. */
enum app_feed_id app_feed_next(const struct app *a, enum app_feed_id last);

/* Have its query run. 0, or -1 with the error: the answer that app_take_feed then has to be given. */
int app_feed_begin(struct app *a, enum app_feed_id id, struct querier *q, struct err *e);

/* How old the rows are and what they took, or why there are none: one line, for a screen's head. */
void app_feed_put_state(const struct app *a, enum app_feed_id id, struct strbuf *out);

/* Number of a column by its name; -1 there is none. `rows` may be NULL. */
int app_feed_column(const struct result *rows, const char *name);

/* A value, of a column that may not be there (-1): NULL, NAN, or -1 where it is unknown. Text is the result's. */
const char *app_feed_text(const struct result *rows, size_t row, int column);
double app_feed_number(const struct result *rows, size_t row, int column);
int app_feed_flag(const struct result *rows, size_t row, int column);
int64_t app_feed_int(const struct result *rows, size_t row, int column); /* APP_FEED_UNKNOWN */

/* What stands where rows would be: why there are none, or `nothing`. Errors are there in full. */
void app_feed_put_empty(const struct app *a, enum app_feed_id id, const char *nothing, char *buf, size_t cap);

#endif
