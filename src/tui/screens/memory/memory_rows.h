/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_rows: the rows of the Memory screen: places that allocate, and what variables of the job
 * hold; and the past of the job's memory. Pure.
 */
#ifndef TUI_SCREENS_MEMORY_MEMORY_ROWS_H
#define TUI_SCREENS_MEMORY_MEMORY_ROWS_H

#include "tui/model/meter.h"
#include "tui/view/outline.h"

/* A place that allocates, or a holder. Texts belong to the result; NULL and NAN: unknown. */
struct memory_row {
    const char *name; /* a function; how a holder is reached */
    const char *file; /* of a function */
    const char *kind; /* python, torch, native; list, dict, tensor, ... */
    const char *of;   /* the type of a holder's newest element */
    double lineno;
    double bytes;            /* that live; that are held */
    double growth;           /* bytes more than at the mark, or at an earlier look */
    double share;            /* of all that lives, 0 to 1 */
    double allocated, calls; /* since tracing began */
    double count, more;      /* elements; how many more than at that look */
    double since_s, room;
    uint64_t key;
    size_t line; /* in the result */
};

struct memory_rows {
    struct result *rows; /* one reference */
    struct memory_row *items;
    size_t n;
    double live, allocated; /* of all places */
    double looked;          /* objects that were looked at for holders; NAN unknown */
};

/* What was there when the mark was set. */
struct memory_mark {
    struct {
        uint64_t key;
        double bytes;
    } * items;
    size_t n;
    bool is_set;
};

/* The rows of nodes are struct memory_row. */
extern const struct outline_def memory_sites_outline, memory_holders_outline;
int memory_column_bytes(void);
int memory_column_growth(void);

/* Make nodes from a result (NULL: none) and give them to the outline. Replaces the earlier ones. */
void memory_sites_build(struct memory_rows *r, struct result *rows, const struct memory_mark *mark,
                        struct outline *out);
void memory_holders_build(struct memory_rows *r, struct result *rows, struct outline *out);
void memory_rows_fini(struct memory_rows *r);

/* Remember what is there now. */
void memory_mark_set(struct memory_mark *m, const struct memory_rows *r);
void memory_mark_fini(struct memory_mark *m);

/* The past of the process, a value a second. */
enum memory_meter {
    MEMORY_METER_ALL = 0, /* in RAM and swapped out */
    MEMORY_METER_RSS,
    MEMORY_METER_PSS, /* its own part of shared pages */
    MEMORY_METER_CGROUP,
    MEMORY_METER_GPU,
    MEMORY_METER_OBJECTS, /* Python's, after the last full collection */
    MEMORY_METERS,
};

struct memory_history {
    struct meter meters[MEMORY_METERS]; /* bytes, but for objects */
    double limit;                       /* of the control group; NAN none, or not known */
    double a_minute;                    /* bytes, over the meters' time; NAN unknown */
};

/* Read rows of python.memory and system.process_history, the oldest first; NULL: none. */
void memory_history_read(struct memory_history *p, const struct result *memory, const struct result *process);

#endif
