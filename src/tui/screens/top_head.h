/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_head: the first lines of the Top screen: which samples are added up and how, and how good the stream is. Pure.
 */
#ifndef TUI_SCREENS_TOP_HEAD_H
#define TUI_SCREENS_TOP_HEAD_H

#include "client/tally_table.h"
#include "tui/app.h"
#include "tui/widgets/grid.h"

/* Draw one or two lines; a fact that does not fit whole is left out. */
void top_head_draw(const struct tally_table *t, const struct tally_query *q, const struct app *app,
                   struct grid *g, struct rect area);

#endif
