/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper: the Python units that the python worker runs in the job:
 * src/agent/python/units/NAME.py, embedded as text.
 *
 * A unit is a file, and a row of HELPER_UNITS or, if it makes tables, of store/ring/tables.def;
 * the names in it start with its own. Its rules are in units/types.py. All are compiled into one
 * private dict, each when it is first needed. Functions need the GIL: the worker's thread.
 */
#ifndef AGENT_PYTHON_HELPER_H
#define AGENT_PYTHON_HELPER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/pyapi.h"

#define HELPER_BETWEEN "\n\n\n" /* between two pieces of a unit, each of which is compiled alone */
#define HELPER_PIECE_MAX 4096   /* bytes of a piece, with its NUL */

/* X(name, the unit whose names it uses and which is read first: "" if none) */
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

/* The index of a unit in the table; HELPER_COUNT if there is none with that name. */
size_t helper_find(const char *name);

/* The loaded units. Zeroed to begin. */
struct helper {
    struct pyapi_object *globals; /* NULL: not started */
    bool read[HELPER_COUNT];      /* units that are compiled, or could not be compiled */
    const char *unread;           /* the rest of the unit that is being compiled; NULL if none is */
};

/* Make the dict, unless it exists. 0, or -1 without memory. */
int helper_begin(struct helper *h, const struct pyapi *api);

/* Compile the next piece of a unit or of its dependencies: true; false if all of it is compiled.
 * `unit` may be NULL: there is none. If this Python cannot compile a piece, its names stay
 * undefined. */
bool helper_read(struct helper *h, const struct pyapi *api, const char *unit);

/* A function of a unit; borrowed. NULL if there is none with that name. */
struct pyapi_object *helper_get(const struct helper *h, const struct pyapi *api, const char *name);

/* Release everything. A unit that installs something in the job has a function NAME_off, which
 * removes it: it is called. */
void helper_end(struct helper *h, const struct pyapi *api);

#endif
