/* SPDX-License-Identifier: Apache-2.0 */
/* header_job: the header of the screens that show all ranks of a job. */
#ifndef TUI_CORE_HEADER_JOB_H
#define TUI_CORE_HEADER_JOB_H

#include "tui/core/app.h"

/* The job in a line: its name, ranks, hosts, step, rate, what watching it costs; and in another one
 * its verdict, or how many ranks do what. With one row the verdict's code is in the first. */
void header_job_draw(const struct app *app, struct grid *g, struct rect area);

#endif
