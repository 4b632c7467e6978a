/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: what the screens show, for files and scripts.
 *
 * One row of export_formats is one format. An export resolves and attaches to its target, takes
 * a snapshot (or samples for a while), renders into memory and writes that whole: a file is
 * replaced in one step or not at all. Runs on the calling thread, on a loop of its own; never
 * touches the terminal.
 */
#ifndef CLIENT_EXPORT_EXPORT_H
#define CLIENT_EXPORT_EXPORT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/session/session.h"
#include "client/target/target.h"

struct stack_counts;
struct thread_runs;

/* Unit of weights; the format's own by default. */
enum export_unit { EXPORT_UNIT_OWN = 0, EXPORT_SAMPLES, EXPORT_US };

/* Options that only some formats take; the others refuse them by name. */
enum export_option {
    EXPORT_TAKES_DURATION = 1 << 0,
    EXPORT_TAKES_THREADS = 1 << 1,
    EXPORT_TAKES_PROCESS = 1 << 2,
    EXPORT_TAKES_BY_FUNCTION = 1 << 3,
    EXPORT_TAKES_UNIT = 1 << 4,
    EXPORT_TAKES_LOCALS = 1 << 5,
    EXPORT_TAKES_NATIVE = 1 << 6,
    EXPORT_TAKES_SCREEN = 1 << 7, /* the screen, its size, its rows */
    EXPORT_TAKES_RATE = 1 << 8,
};

/* Other traits of a format; they share a word with the options. */
enum export_trait {
    EXPORT_IS_BINARY = 1 << 16,    /* not for a terminal */
    EXPORT_NEEDS_TIME = 1 << 17,   /* useless for a single snapshot */
    EXPORT_WANTS_STATES = 1 << 18, /* needs the GIL and garbage collection state of samples */
    EXPORT_WANTS_ORDER = 1 << 19,  /* needs the order in time */
};

/* Draws a screen as text. A screen made of samples first gets them from `take`, which returns 0
 * when it has enough; `render` returns 0, or -1 with the error. For tables it queries the
 * target at `addr`. */
struct export_renderer {
    int (*render)(void *arg, const struct target_address *addr, const struct model_target *target,
                  const struct model_snapshot *snapshot, struct strbuf *out, struct err *e);
    int (*take)(void *arg, const struct model_target *target,
                const struct model_sample_batch *batch); /* NULL: it is not made of samples */
    double duration_s;                                   /* with `take`: the default duration */
    void *arg;
};

struct export_request {
    const char *target;                   /* TARGET as typed */
    const struct target_address *address; /* the resolved target; NULL: not yet */
    struct target_options how;
    const char *format;    /* name of a row of export_formats */
    bool once;             /* one snapshot, whatever the format's own duration */
    const char *sql;       /* json, ndjson, csv: rows of this query; NULL none */
    double duration_s;     /* sampling time; 0 = the format's own */
    double rate_hz;        /* samples of each thread a second; 0: the default */
    const char *output;    /* file; NULL or "-" = standard output */
    bool threads;          /* a frame for the thread */
    bool process;          /* a frame for the process */
    bool gentle;           /* no signals to running threads */
    bool locals;           /* locals of the frames */
    bool native;           /* native frames too */
    double budget_pct;     /* limit of the cost of sampling, of one core; 0: the default */
    bool by_function;      /* functions, not lines */
    enum export_unit unit; /* weight */
    struct strbuf *note;   /* receives a line for the user in spite of success; NULL none */
    /* draws 'txt'; NULL: this program has no screens and refuses 'txt' */
    const struct export_renderer *screen;
};

/* The input of a renderer. */
struct export_data {
    const struct export_request *request;
    const struct target_address *address;
    const struct model_target *target;
    /* the last snapshot; empty if the format sampled and needs none */
    const struct model_snapshot *snapshot;
    /* aggregated samples; of one snapshot, each thread once */
    const struct stack_counts *counts;
    /* the same in order of time; NULL without EXPORT_WANTS_ORDER */
    const struct thread_runs *runs;
    /* describes a selection of the samples; NULL all of them */
    const char *choice;
    double elapsed_s; /* of the sampling; 0 for a single snapshot */
    double until_s;   /* its end, seconds since the epoch; NAN unknown */
};

struct export_format {
    const char *name;
    const char *help;    /* one line */
    double duration_s;   /* default sampling time; 0 = a single snapshot */
    bool wants_samples;  /* with a duration it needs the stream of samples */
    bool wants_snapshot; /* and yet shows a snapshot at the end */
    bool takes_sql;      /* --sql gives it rows */
    int (*render)(const struct export_data *data, struct strbuf *out,
                  struct err *e); /* NULL: it is made of tables alone */
    /* EXPORT_TAKES_...: of the options that only some formats take; and enum export_trait */
    unsigned takes;
};

/* All formats; the last row has no name. */
extern const struct export_format export_formats[];

/* The row, or NULL with ERR_USAGE and a suggestion. */
const struct export_format *export_find(const char *name, struct err *e);

/* "json|ndjson|.." for help; owned by the call's static buffer. */
const char *export_format_names(void);

/* The names of the formats and of the units, for option_def.choice. */
const char *export_choose_format(int i);
const char *export_choose_unit(int i);

/* Unit by name ("samples", "us"). 0, or -1 with ERR_USAGE. */
int export_parse_unit(const char *name, enum export_unit *out, struct err *e);

/* The options of a format, as they are typed: "--duration --threads". */
void export_put_options(const struct export_format *f, struct strbuf *out);

/* ERR_USAGE if the format does not take the option, whose name was `name`. 0 or -1. */
int export_check_option(const struct export_format *f, enum export_option option, const char *name,
                        struct err *e);

/* Run the export. 0, or -1 with the error; then nothing was written. */
int export_run(const struct export_request *request, struct err *e);

/* The same for a format that is not in the table; `format` of the request is ignored. */
int export_run_as(const struct export_format *f, const struct export_request *request, struct err *e);

#endif
