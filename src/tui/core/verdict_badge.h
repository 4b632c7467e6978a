/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_badge: the worst verdict about the job (client/verdict/verdict.h) in a few words, for the
 * header of every screen: "SLOW: INPUT-BOUND, worker 2". Empty while nothing is wrong, or the
 * verdict is unknown or old.
 *
 * It is requested seldom, and never while the view is frozen: nobody waits for it, and observing
 * must stay cheap. One thread.
 */
#ifndef TUI_CORE_VERDICT_BADGE_H
#define TUI_CORE_VERDICT_BADGE_H

#include <stddef.h>

#include "tui/theme/theme.h"

struct app;

/* Request it, if it is due. */
void verdict_badge_follow(struct app *app);

/* Its text; "": nothing to say. Returns the role that it is drawn in. */
enum theme_role verdict_badge_get(const struct app *app, char *buf, size_t cap);

#endif
