/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_badge: the worst that is the matter with the job (client/verdict/verdict.h) in few words, for the header of every screen: "SLOW: INPUT-BOUND,
 * worker 2". Nothing while nothing is the matter, or not known, or known of long ago.
 *
 * It is asked for seldom, and never while the view is paused: nobody waits for it, and looking must stay cheap. One thread.
 */
#ifndef TUI_CORE_VERDICT_BADGE_H
#define TUI_CORE_VERDICT_BADGE_H

#include <stddef.h>

#include "tui/theme/theme.h"

struct app;

/* Ask for it, if it is time. */
void verdict_badge_follow(struct app *app);

/* It itself; "" there is nothing to be said. The role that it is drawn in. */
enum theme_role verdict_badge_get(const struct app *app, char *buf, size_t cap);

#endif
