/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: what the screens show, for files and scripts.
 *
 * One row of export_formats is one format. An export resolves and attaches to its target, looks (once, or for a while
 * through the stream of samples), renders into memory and writes that whole: a file is replaced in one step or not at
 * all. Runs on the calling thread, on a loop of its own; never touches the terminal.
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

/* What weights are counted in; unless told, as the format does it. */
enum export_unit { EXPORT_UNIT_OWN = 0, EXPORT_SAMPLES, EXPORT_US };

/* Options that say something to some formats; to others they are refused by name. */
enum export_option {
    EXPORT_TAKES_DURATION = 1 << 0,
    EXPORT_TAKES_THREADS = 1 << 1,
    EXPORT_TAKES_PROCESS = 1 << 2,
    EXPORT_TAKES_BY_FUNCTION = 1 << 3,
    EXPORT_TAKES_UNIT = 1 << 4,
    EXPORT_TAKES_LOCALS = 1 << 5,
    EXPORT_TAKES_NATIVE = 1 << 6,
    EXPORT_TAKES_SCREEN = 1 << 7, /* which screen, of what size, of which rows */
};

/* What else is to be known of a format; they share a word with the options. */
enum export_trait {
    EXPORT_IS_BINARY = 1 << 16,    /* nothing for a terminal */
    EXPORT_NEEDS_TIME = 1 << 17,   /* one look is nothing to it */
    EXPORT_WANTS_STATES = 1 << 18, /* what states of the GIL and of collecting garbage samples are of */
    EXPORT_WANTS_ORDER = 1 << 19,  /* what threads did when */
};

/* Draws a screen as text. One that is made of samples is given them first; its functions return 0, `take` not if that was
 * enough, `render` -1 with the error. What the screen shows of the tables, it asks at `addr`. */
struct export_renderer {
    int (*render)(void *arg, const struct target_address *addr, const struct model_target *target,
                  const struct model_snapshot *snapshot, struct strbuf *out, struct err *e);
    int (*take)(void *arg, const struct model_target *target,
                const struct model_sample_batch *batch); /* NULL: it is not made of samples */
    double duration_s;                                   /* with `take`: how long, unless told */
    void *arg;
};

struct export_request {
    const char *target;                   /* TARGET as typed */
    const struct target_address *address; /* what that was resolved to; NULL: not yet */
    struct target_options how;
    const char *format;    /* name of a row of export_formats */
    bool once;             /* one look, whatever the format's own duration */
    const char *sql;       /* json, ndjson, csv: rows of this query; NULL none */
    double duration_s;     /* how long to look; 0 = the format's own */
    const char *output;    /* file; NULL or "-" = standard output */
    bool threads;          /* a frame for the thread */
    bool process;          /* a frame for the process */
    bool gentle;           /* no signals to threads that run */
    bool locals;           /* locals of the frames */
    bool native;           /* native frames too */
    double budget_pct;     /* what sampling may cost, of one core; 0: the usual */
    bool by_function;      /* functions, not lines */
    enum export_unit unit; /* weight */
    struct strbuf *note;   /* where a line goes that the user should see though all is well; NULL nowhere */
    const struct export_renderer
        *screen; /* draws 'txt'; NULL: this program has no screens, 'txt' is refused */
};

/* What a format is given to render. */
struct export_data {
    const struct export_request *request;
    const struct target_address *address;
    const struct model_target *target;
    const struct model_snapshot *snapshot; /* the last look; empty when the format sampled and wants none */
    const struct stack_counts *counts;     /* samples added up; of one look, each thread once */
    const struct thread_runs *runs;        /* and in the order of time; NULL without EXPORT_WANTS_ORDER */
    const char *choice;                    /* of the samples only these, in words; NULL all of them */
    double elapsed_s;                      /* of the sampling; 0 with one look */
    double until_s;                        /* when that ended, seconds since the epoch; NAN unknown */
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
    unsigned takes; /* EXPORT_TAKES_...: of the options that not all formats take; and enum export_trait */
};

/* All formats; the last row has no name. */
extern const struct export_format export_formats[];

/* The row, or NULL with ERR_USAGE and a suggestion. */
const struct export_format *export_find(const char *name, struct err *e);

/* "json|ndjson|.." for help; owned by the call's static buffer. */
const char *export_format_names(void);

/* Unit by name ("samples", "us"). 0, or -1 with ERR_USAGE. */
int export_parse_unit(const char *name, enum export_unit *out, struct err *e);

/* The options of a format, as they are typed: "--duration --threads". */
void export_put_options(const struct export_format *f, struct strbuf *out);

/* ERR_USAGE unless the format takes the option, which is called `name` where it was given. 0 or -1. */
int export_check_option(const struct export_format *f, enum export_option option, const char *name,
                        struct err *e);

/* Do it. 0, or -1 with the error; then nothing was written. */
int export_run(const struct export_request *request, struct err *e);

#endif
