/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: what the screens show, for files and scripts.
 *
 * One row of export_formats is one format. An export resolves and attaches to its target, looks (once, or for a while
 * through the stream of samples), renders into memory and writes that whole: a file is replaced in one step or not at
 * all. Runs on the calling thread, on a loop of its own; never touches the terminal.
 */
#ifndef CLIENT_EXPORT_H
#define CLIENT_EXPORT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/target.h"

struct fold;

enum export_unit { EXPORT_SAMPLES = 0, EXPORT_US };

/* Draws the screen as text; 0, or -1 with the error. */
struct export_renderer {
    int (*render)(void *arg, const struct model_target *target, const struct model_snapshot *snapshot,
                  struct strbuf *out, struct err *e);
    void *arg;
};

struct export_request {
    const char *target; /* TARGET as typed */
    struct target_options how;
    const char *format;    /* name of a row of export_formats */
    bool once;             /* one look, whatever the format's own duration */
    const char *sql;       /* json, ndjson, csv: rows of this query; NULL none */
    double duration_s;     /* how long to look; 0 = the format's own */
    const char *output;    /* file; NULL or "-" = standard output */
    bool threads;          /* folded: a frame for the thread */
    bool process;          /* folded: a frame for the process */
    bool gentle;           /* no signals to threads that run */
    bool locals;           /* json: locals of the frames */
    bool native;           /* json, folded: native frames too */
    double budget_pct;     /* what sampling may cost, of one core; 0: the usual */
    bool by_function;      /* folded: functions, not lines */
    enum export_unit unit; /* folded: weight */
    struct strbuf *note;   /* where a line goes that the user should see though all is well; NULL nowhere */
    const struct export_renderer
        *screen; /* draws 'txt'; NULL: this program has no screens, 'txt' is refused */
};

/* What a format is given to render. */
struct export_data {
    const struct export_request *request;
    const struct model_target *target;
    const struct model_snapshot *snapshot; /* the last look; empty when the format sampled and wants none */
    const struct fold *fold;               /* samples added up; of one look, each thread once */
    double elapsed_s;                      /* of the sampling; 0 with one look */
};

struct export_format {
    const char *name;
    const char *help;    /* one line */
    double duration_s;   /* how long it looks unless told; 0 = once */
    bool wants_samples;  /* with a duration it needs the stream of samples */
    bool wants_snapshot; /* it shows a look at the end even so */
    bool takes_sql;      /* --sql gives it rows */
    int (*render)(const struct export_data *data, struct strbuf *out,
                  struct err *e); /* NULL: it is made of tables alone */
};

/* All formats; the last row has no name. */
extern const struct export_format export_formats[];

/* The row, or NULL with ERR_USAGE and a suggestion. */
const struct export_format *export_find(const char *name, struct err *e);

/* "json|ndjson|.." for help; owned by the call's static buffer. */
const char *export_format_names(void);

/* Unit by name ("samples", "us"). 0, or -1 with ERR_USAGE. */
int export_parse_unit(const char *name, enum export_unit *out, struct err *e);

/* Do it. 0, or -1 with the error; then nothing was written. */
int export_run(const struct export_request *request, struct err *e);

#endif
