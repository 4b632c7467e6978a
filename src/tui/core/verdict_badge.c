/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_badge: see verdict_badge.h. */
#include "tui/core/verdict_badge.h"

#include <stdio.h>

#include "client/verdict/verdict.h"
#include "tui/core/app.h"
#include "tui/core/app_feed.h"

#define VERDICT_BADGE_EVERY_S 5.0 /* between two verdicts, */
/* And so many times what one takes: at most a four-hundredth of a core. */
#define VERDICT_BADGE_ANSWERS 400.0
#define VERDICT_BADGE_LONGEST_S 30.0 /* but no longer than that */
#define VERDICT_BADGE_SNAPSHOTS 8    /* before the first one, so that the program starts quickly */
#define VERDICT_BADGE_STAYS_S 75.0   /* an older one is not shown */

void verdict_badge_follow(struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_VERDICTS);
    const struct data *d = &app->data;
    double every_s = f->elapsed_s * VERDICT_BADGE_ANSWERS;
    if (!d->has_target || d->target.mode != MODEL_MODE_AGENT || d->received < VERDICT_BADGE_SNAPSHOTS ||
        d->paused)
        return; /* from outside there are no tables; the Overview says that a target has ended */
    every_s = every_s < VERDICT_BADGE_EVERY_S ? VERDICT_BADGE_EVERY_S : every_s;
    app_feed_follow_verdicts(app, every_s < VERDICT_BADGE_LONGEST_S ? every_s : VERDICT_BADGE_LONGEST_S);
}

static enum theme_role verdict_badge_role(enum verdict_level level) {
    return level >= VERDICT_BAD ? ROLE_CONN_LOST : ROLE_CONN_WAIT;
}

enum theme_role verdict_badge_get(const struct app *app, char *buf, size_t cap) {
    const struct app_feed *f = app_feed_get(app, FEED_VERDICTS);
    const struct verdict *worst = f->verdicts.n ? &f->verdicts.items[0] : NULL;
    const char *cause = NULL;
    buf[0] = '\0';
    if (data_is_over(&app->data) || !worst || worst->rule->level < VERDICT_WARN ||
        app->now_s - f->answered_s > VERDICT_BADGE_STAYS_S)
        return ROLE_TEXT;
    /* The worst are first. */
    for (size_t i = 1; worst->rule->is_state && !cause && i < f->verdicts.n; i++)
        if (f->verdicts.items[i].rule->level >= VERDICT_WARN)
            cause = f->verdicts.items[i].brief;
    snprintf(buf, cap, "%s%s%s", worst->brief, cause ? ": " : "", cause ? cause : "");
    return verdict_badge_role(worst->rule->level);
}
