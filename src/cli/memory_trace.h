/* SPDX-License-Identifier: Apache-2.0 */
/* memory_trace: `probing TARGET memory --trace`: who allocates memory, and what of it lives. */
#ifndef CLI_MEMORY_TRACE_H
#define CLI_MEMORY_TRACE_H

#include <stdbool.h>

#include "cli/cli.h"

#define MEMORY_TOP 20 /* places that are printed for people */

struct memory_options {
    struct cli_read_options read; /* first */
    bool trace, gpu;
    double duration_s; /* 0: the default */
    double every;      /* bytes; 0: as the agent is configured */
    long top;          /* places to print; 0: the default */
};

/* Trace for a while, and print the sites. 0, or -1 with the error. */
int memory_trace_exec(const struct memory_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e);

/* Put "function (file:line)", with the end of the file's path, and a newline. NULL and NAN: unknown. */
void memory_put_place(struct strbuf *out, const char *function, const char *file, double line);

#endif
