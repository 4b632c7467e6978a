/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: the units of Python that the python worker runs in the job: src/agent/python/units/NAME.py, built in as text.
 *
 * A unit is a file, and a row of HELPER_UNITS or, if it makes tables, of store/ring/tables.def; the names in it begin with its own.
 * What it is and may do: units/types.py. All are compiled into one private dict, each when it is first wanted. Functions need the GIL:
 * the worker's thread.
 */
#ifndef AGENT_PYTHON_HELPER_H
#define AGENT_PYTHON_HELPER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/pyapi.h"

#define HELPER_BETWEEN "\n\n\n" /* between two pieces of a unit, each of which is compiled alone */
#define HELPER_PIECE_MAX 4096   /* bytes of a piece, with its end */

/* X(name, the unit whose names it uses, which comes before it: "" none) */
#define HELPER_UNITS(X)                                                                                      \
    X(types, "")                                                                                             \
    X(values, "types")                                                                                       \
    X(tasks, "types")                                                                                        \
    X(roots, "types")                                                                                        \
    X(facts, "roots")                                                                                        \
    X(gradients, "facts")                                                                                    \
    X(hooks, "types")                                                                                        \
    X(trace, "types")                                                                                        \
    X(nonfinite, "trace")                                                                                    \
    X(profiler, "trace")                                                                                     \
    X(eval, "types")                                                                                         \
    X(debug, "eval")                                                                                         \
    X(pdb_server, "debug")                                                                                   \
    X(pause, "pdb_server")                                                                                   \
    X(catch, "pause")

enum helper_index {
#define HELPER_INDEX(name, needs) HELPER_##name,
    HELPER_UNITS(HELPER_INDEX)
#undef HELPER_INDEX
#define PYTHON_UNIT(name, needs) HELPER_##name,
#include "store/ring/tables.def"
        HELPER_COUNT,
};

struct helper_unit {
    const char *name, *needs;
    const char *source; /* NUL-terminated */
};

extern const struct helper_unit helper_units[HELPER_COUNT];

/* The place of a unit in the table; HELPER_COUNT: there is none of that name. */
size_t helper_find(const char *name);

/* What of the units is there. Zeroed to begin. */
struct helper {
    struct pyapi_object *globals; /* NULL: not begun */
    bool read[HELPER_COUNT];      /* units that are compiled, or could not be */
    const char *unread;           /* the rest of one that is being compiled; NULL: none is */
};

/* Make the dict, unless it is there. 0, or -1: there is no memory. */
int helper_begin(struct helper *h, const struct pyapi *api);

/* Compile the next piece of a unit, or of what it needs: true; false when all of it is there. NULL is no unit. A piece that this
 * Python cannot compile leaves its names unknown. */
bool helper_read(struct helper *h, const struct pyapi *api, const char *unit);

/* A function of a unit; borrowed. NULL: there is none of that name. */
struct pyapi_object *helper_get(const struct helper *h, const struct pyapi *api, const char *name);

/* Let go of everything. A unit that puts something into the job has a function NAME_off, which takes it out: it is called. */
void helper_end(struct helper *h, const struct pyapi *api);

#endif
