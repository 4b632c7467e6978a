/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: one document about a job, for somebody else: what is wrong with it, with the evidence;
 * its steps, where its time goes, all stacks, memory, loaders, events, settings, overhead.
 *
 * A row of report_formats is a format: one page that needs no network, Markdown for an issue, JSON
 * for scripts. They are made like exports (export_run_as): of a live job, from outside, of a
 * recording or a dead job. No values of variables, no environment, and a command line without
 * what looks like a secret (base/mask.h).
 */
#ifndef CLIENT_EXPORT_REPORT_H
#define CLIENT_EXPORT_REPORT_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "client/export/export.h"
#include "client/sql/database.h"
#include "client/sql/result.h"
#include "client/sql/steps_model.h"
#include "client/verdict/verdict.h"
#include "flame/flame_stacks.h"

/* The first is the default; the last row has no name. */
extern const struct export_format report_formats[];

/* The row, or NULL with ERR_USAGE. */
const struct export_format *report_find(const char *name, struct err *e);

/* ---- for its renderers ---- */

/* Tables of a report, in its order. */
enum report_table {
    REPORT_FIGURES = 0,
    REPORT_STEPS,
    REPORT_MEMORY,
    REPORT_ALLOCATIONS,
    REPORT_LOADERS,
    REPORT_WORKERS,
    REPORT_GC,
    REPORT_EVENTS,
    REPORT_OVERHEAD,
    REPORT_TABLES,
};

/* A function, by its time on the CPU or, where that is unknown, by all of its time. */
struct report_function {
    const char *name;  /* as in the flame graph */
    double own, total; /* shares of all */
};

#define REPORT_FUNCTIONS 20
#define REPORT_SLOW 20 /* slow steps that are listed, the newest */

struct report {
    const struct export_data *data;
    /* the target with its masked command line; the rest is that of the data */
    struct model_target target;
    struct strbuf command;
    struct database *database;
    struct verdicts verdicts;
    struct err verdicts_error;            /* ERR_OK, or why there are none */
    struct result *tables[REPORT_TABLES]; /* NULL: see the errors */
    struct err errors[REPORT_TABLES];
    struct model_status status; /* of the agent, with its settings */
    bool has_status;
    struct steps_model steps; /* with what slow ones had in common */
    struct report_function functions[REPORT_FUNCTIONS];
    size_t n_functions;
    struct arena names; /* of the functions */
    bool by_cpu;        /* the functions are those on the CPU */
    double made_s;      /* time of its making, seconds since the epoch */
};

/* A table's title for people, its key for scripts, and what it means that it has no rows. */
const char *report_title(enum report_table table);
const char *report_key(enum report_table table);
const char *report_nothing(enum report_table table);

/* "2026-11-26 20:15:03 UTC"; "?" unknown. */
void report_put_time(struct strbuf *out, double epoch_s);

/* A copy of some of the samples, as large as all of them at most: those of the main thread, or those on
 * the CPU (all, where that is unknown). The caller frees it; NULL without memory. */
enum report_part { REPORT_MAIN = 0, REPORT_BUSY };
struct stack_counts *report_select(const struct report *r, enum report_part part);

/* Sentences about what the report is made of: the samples, the moment, what is missing. Lines of
 * plain text, not sanitised. */
void report_put_sources(const struct report *r, struct strbuf *out);

/* report_html.c, report_text.c: append the document. 0, or -1 without memory. */
int report_put_html(const struct report *r, struct strbuf *out);
int report_put_markdown(const struct report *r, struct strbuf *out);
int report_put_json(const struct report *r, struct strbuf *out);

/* report_chart.c: steps as bars of their parts; numbers over time as lines. SVG within a page; nothing
 * without rows. */
struct report_line {
    const char *column, *label;
};
void report_put_steps_chart(struct strbuf *out, const struct result *steps);
void report_put_lines_chart(struct strbuf *out, const struct result *rows, const struct report_line *lines,
                            size_t n, const char *unit);

/* A value of a column that may be missing (-1): NAN. */
double report_number(const struct result *rows, size_t row, int column);

#endif
