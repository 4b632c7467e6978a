/* SPDX-License-Identifier: Apache-2.0 */
/* overview_verdicts: see overview_verdicts.h. */
#include "tui/screens/overview/overview_verdicts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/verdict/verdict.h"
#include "tui/core/app_feed.h"
#include "tui/core/app.h"
#include "tui/core/screen.h"
#include "tui/view/rank_text.h"

#define VERDICTS_EVERY_S 2.0
#define VERDICTS_SILENT_LINES 3 /* of hosts that give no news */
#define VERDICTS_SILENT_TEXT 1024

void overview_verdicts_follow(struct app *app) { app_feed_follow_verdicts(app, VERDICTS_EVERY_S); }

enum theme_role overview_verdict_role(int64_t level) {
    return level >= VERDICT_BAD    ? ROLE_CONN_LOST
           : level == VERDICT_WARN ? ROLE_CONN_WAIT
           : level == VERDICT_NOTE ? ROLE_VALUE
                                   : ROLE_CONN_OK;
}

enum action overview_verdict_opens(const char *screen) {
    for (const struct screen_def *const *s = screen_list; screen && *s; s++)
        if (strcmp((*s)->name, screen) == 0)
            return (*s)->opens[0].action;
    return ACTION_NONE;
}

/* Bytes of `text` that fit into a line of `cols`: up to a blank, if there is one. */
static size_t verdicts_break(const char *text, int cols) {
    size_t fits = text_fit(text, cols), at = fits;
    if (!text[fits])
        return fits;
    while (at > 0 && text[at] != ' ')
        at--;
    return at ? at : fits;
}

/* 0: the area is not known yet. */
static bool verdicts_is_narrow(int cols) { return cols > 0 && cols < OVERVIEW_NARROW; }

int overview_verdicts_indent(int cols) { return verdicts_is_narrow(cols) ? 2 : OVERVIEW_LABEL_COLS; }

/* Add one text as lines; returns their number. In a narrow column the name has a line of its own. */
static int verdicts_add(struct overview_line *out, int n, int max, const char *label, const char *text,
                        int cols, enum theme_role role, enum action opens) {
    int width = cols - overview_verdicts_indent(cols) - 2;
    width = width < 20 ? 20 : width;
    for (bool first = true; n < max && (first || *text); first = false) {
        struct overview_line *l = &out[n++];
        bool alone = first && verdicts_is_narrow(cols);
        size_t len = alone ? 0 : verdicts_break(text, width);
        *l = (struct overview_line){
            .kind = OVERVIEW_VERDICT, .label = first ? label : "", .role = role, .opens = opens};
        snprintf(l->text, sizeof l->text, "%.*s", (int)len, text);
        for (text += len; *text == ' '; text++)
            ;
        if (len == 0 && !alone)
            break;
    }
    return n;
}

int overview_verdicts_lines(const struct app *app, int cols, struct overview_line *out) {
    const struct app_feed *f = app_feed_get(app, FEED_VERDICTS);
    char empty[sizeof f->error.text + 64];
    int n = 0, max = verdicts_is_narrow(cols) ? OVERVIEW_VERDICT_LINES_NARROW : OVERVIEW_VERDICT_LINES;
    for (size_t i = 0; i < f->verdicts.n; i++) {
        const struct verdict *v = &f->verdicts.items[i];
        n = verdicts_add(out, n, max, v->rule->code, v->text, cols, overview_verdict_role(v->rule->level),
                         overview_verdict_opens(v->rule->screen));
    }
    if (n)
        return n;
    app_feed_put_empty(app, FEED_VERDICTS, "no verdict on its training yet", empty, sizeof empty);
    if (verdicts_is_narrow(cols))
        return verdicts_add(out, 0, 4, "verdict", empty, cols, ROLE_VALUE, ACTION_NONE);
    return verdicts_add(out, 0, 1, "verdict", empty, 1000, ROLE_VALUE, ACTION_NONE);
}

/* Hosts of which there may be no rank to be seen; returns the number of lines. */
static int verdicts_add_silent(const struct job_shot *f, int cols, struct overview_line *out, int n,
                               int max) {
    struct strbuf text;
    strbuf_init(&text, VERDICTS_SILENT_TEXT);
    strbuf_adds(&text, "from ");
    rank_text_put_silent(f, 0, true, &text);
    n = verdicts_add(out, n, max, "no news", strbuf_str(&text), cols, ROLE_CONN_WAIT, ACTION_SHOW_RANKS);
    strbuf_fini(&text);
    return n;
}

/* What is there to say without a verdict. For how long ranks stand still is said in any case: without agents nobody may
 * know that they wait. */
static void verdicts_put_none(const struct job_shot *f, char *buf, size_t cap) {
    char since[16], still[64] = "";
    bool stands = f && f->still_s >= JOB_SHOT_JUDGED_S;
    if (stands) {
        rank_text_since(f->still_s, since, sizeof since);
        snprintf(still, sizeof still, "ranks have had the same stack for %s", since);
    }
    if (stands && !f->is_judged)
        snprintf(buf, cap, "not judged: %s", still);
    else
        snprintf(buf, cap, "%s%s%s",
                 !f                             ? "looking for the ranks"
                 : job_shot_silent_hosts(f) > 0 ? "nothing is worth a warning on the hosts that answer"
                                                : "nothing is worth a warning",
                 stands ? "; " : "", still);
}

int overview_verdicts_job_lines(const struct job_shot *f, int cols, struct overview_line *out) {
    static const enum theme_role roles[] = {
        [JOB_SHOT_NOTE] = ROLE_VALUE, [JOB_SHOT_WARNING] = ROLE_CONN_WAIT, [JOB_SHOT_BAD] = ROLE_CONN_LOST};
    int n = 0, most = verdicts_is_narrow(cols) ? OVERVIEW_VERDICT_LINES_NARROW : OVERVIEW_VERDICT_LINES;
    bool is_silent = job_shot_silent_hosts(f) > 0;
    int max = most - (is_silent ? VERDICTS_SILENT_LINES : 0);
    for (size_t i = 0; f && i < f->n_verdicts; i++) {
        const struct job_shot_verdict *v = &f->verdicts[i];
        n = verdicts_add(out, n, max, v->code, v->text, cols, roles[v->level], ACTION_SHOW_STACKS);
    }
    if (!n) {
        char text[128];
        verdicts_put_none(f, text, sizeof text);
        n = verdicts_add(out, 0, 4, "verdict", text, cols, ROLE_VALUE, ACTION_SHOW_RANKS);
    }
    if (is_silent)
        n = verdicts_add_silent(f, cols, out, n,
                                n + VERDICTS_SILENT_LINES < most ? n + VERDICTS_SILENT_LINES : most);
    return n;
}
