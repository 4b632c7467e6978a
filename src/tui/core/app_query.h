/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_query: what the SQL screen asks for and what came of it: the part of the app between that screen and the querier.
 *
 * The screen asks; the host (or a test) has it done and gives the answer. One thread.
 */
#ifndef TUI_CORE_APP_QUERY_H
#define TUI_CORE_APP_QUERY_H

#include <stdbool.h>

#include "client/history.h"
#include "tui/workers/querier.h"

enum app_query_request { APP_QUERY_NONE = 0, APP_QUERY_TABLES, APP_QUERY_RUN, APP_QUERY_EXPORT };

struct app_query {
    enum app_query_request pending; /* asked for and not begun; cleared by the host that begins it */
    char *text;                     /* of the query that runs, or ran last; owned */
    struct querier_export exported; /* with APP_QUERY_EXPORT */
    bool running;                   /* asked for, and not answered */
    bool exporting;                 /* what runs is an export */
    bool is_listing;                /* what runs lists the tables: `pending` may wait for its end */
    double began_s;                 /* since when, on the caller's clock */
    struct querier_answer answer;   /* of the last query */
    unsigned answers;               /* how many queries were answered */
    struct catalog *catalog;        /* the newest; NULL: not known yet */
    unsigned catalogs;              /* how many there were */
    char note[640];                 /* what cannot be seen and why */
    struct history history;
    bool has_history;    /* it was opened */
    char saved_dir[512]; /* where the user's queries are kept; "" nowhere */
    double watch_s;      /* > 0: the query is run again and again */
    double due_s;        /* when next, on the caller's clock */
};

struct app;

void app_query_init(struct app_query *q);
void app_query_fini(struct app_query *q);

/* What is known is of another target; the history stays. */
void app_query_forget(struct app_query *q);

/* Ask what tables there are, unless something runs. */
void app_query_tables(struct app *a);

/* Run a text; it goes into the history unless `again`. False, with a message, when something runs. */
bool app_ask(struct app *a, const char *text, bool again);

/* Write a result; *x is moved out. False, with a message, when something runs. */
bool app_write(struct app *a, struct querier_export *x);

void app_cancel(struct app *a);

/* It could not be begun, or it is done; moved out of *answer. */
void app_take_answer(struct app *a, struct querier_answer *answer);

/* The tables; those that there always are while nothing else is known. NULL: out of memory. */
const struct catalog *app_catalog(struct app *a);

/* Does what is drawn change by time alone? */
bool app_query_needs_tick(const struct app *a);

#endif
