/* SPDX-License-Identifier: Apache-2.0 */
/* log: draws an entry of the log, in the Log screen and at the end of Overview. Pure. */
#ifndef TUI_SCREENS_LOG_H
#define TUI_SCREENS_LOG_H

#include "tui/model/log.h"
#include "tui/view/grid.h"

enum theme_role log_level_role(enum log_level level);

/* Draw "22:13:20 ! text" into one row; the text without its first `scroll` columns, -1: it does not
 * scroll. */
void log_draw_entry(const struct log_entry *e, int scroll, struct grid *g, struct rect row);

#endif
