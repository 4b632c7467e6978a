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

#include "base/strbuf.h"
#include "tui/workers/querier.h"

#define APP_FEED_TEXT 1024
#define APP_FEED_UNKNOWN INT64_MIN

/* One for each table that a screen shows. */
enum app_feed_id {
    FEED_TENSORS = 0,
    FEED_TENSOR_GROWTH,
    FEED_TENSOR,  /* what is asked of one alone: figures, */
    FEED_HOLDERS, /* and what holds it */
    FEED_MODULES,
    FEED_ARMED,
    FEED_LOADERS,
    FEED_LOADER_WORKERS,
    FEED_VERDICTS, /* no query: verdicts are judged, see querier_judge */
    FEED_STEPS,
    FEED_STEP_SAMPLES,
    FEED_COUNT,
};

struct app_feed {
    char text[APP_FEED_TEXT]; /* of the query */
    bool wanted, running;     /* asked for and not begun; begun and not answered */
    bool again;               /* it was, because it was time, and not because somebody wants it now */
    double asked_s;           /* when, on the caller's clock */
    bool is_answered;         /* once at least: rows, or verdicts, are there */
    struct result *rows;      /* the newest; NULL none yet. Owned */
    struct verdicts verdicts; /* the same of FEED_VERDICTS. Owned */
    double answered_s;        /* when they came */
    double elapsed_s;         /* how long they took */
    bool truncated;           /* there are more */
    struct err error;         /* of the newest answer; ERR_OK: it went well */
    char note[256];           /* what cannot be seen and why; "" nothing */
    double failed_s;          /* since when answers are errors; 0 they are not */
    unsigned version;         /* counts answers */
};

struct app_feeds {
    struct app_feed feeds[FEED_COUNT];
};

struct app;

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

/* Have its query run. 0, or -1 with the error: the answer that app_feed_take then has to be given. */
int app_feed_begin(struct app *a, enum app_feed_id id, struct querier *q, struct err *e);

/* It is answered, or could not be begun; moved out of *answer. */
void app_feed_take(struct app *a, enum app_feed_id id, struct querier_answer *answer);

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
