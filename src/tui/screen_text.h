/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen_text: the Threads screen as plain text, for --export txt. Drawn by the same code as on a
 * terminal.
 */
#ifndef TUI_SCREEN_TEXT_H
#define TUI_SCREEN_TEXT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/session/session.h"

struct screen_text_config {
    int cols; /* width; at least LAYOUT_MIN_COLS is used */
    bool ascii;
    const char *filter; /* as --filter; NULL: none */
};

/* Header, all threads, and the stack of every thread that has one. Signature of
 * export_renderer.render; `arg` is a struct screen_text_config. 0, or -1 with the error. */
int screen_text_render(void *arg, const struct target_address *addr, const struct model_target *target,
                       const struct model_snapshot *snapshot, struct strbuf *out, struct err *e);

#endif
