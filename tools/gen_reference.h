/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_reference: the pages of docs/ that are made from the programs' own tables (`make docs`), and
 * the variables of the environment, which the manual pages have, too.
 */
#ifndef TOOLS_GEN_REFERENCE_H
#define TOOLS_GEN_REFERENCE_H

#include <stdbool.h>

#include "base/option.h"
#include "tui/keys/action.h"

enum reference_reader { REFERENCE_BOTH, REFERENCE_TOP, REFERENCE_PROBING, REFERENCE_JOB };

/* A variable that a program reads, or that is read where a job starts. */
struct reference_variable {
    const char *name;
    enum reference_reader reader;
    const char *help;
};

/* Ends with a NULL name. Those of the agent's settings are rows of config_defs. */
extern const struct reference_variable reference_variables[];

/* An action that many contexts have with the same keys is listed once. A context with these keys, or
 * -1: list it where it is. */
int reference_common_context(const struct action_def *row);

/* Is the row listed in context `c`, because it is not common, or has other keys there? */
bool reference_differs(const struct action_def *row, enum action_context c);

/* Print docs/NAME.md. 0, or -1 if there is no such page. */
int reference_put(const char *name);

#endif
