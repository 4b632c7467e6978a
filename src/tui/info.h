/* SPDX-License-Identifier: Apache-2.0 */
/* info: the text of --info: versions, paths, what the terminal can do, what is built in. Asks
 * nothing of a target. */
#ifndef TUI_INFO_H
#define TUI_INFO_H

#include "base/strbuf.h"
#include "tui/startup.h"

/* `s` was read by startup_read. */
void info_put(const struct startup *s, struct strbuf *out);

#endif
