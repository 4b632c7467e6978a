/* SPDX-License-Identifier: Apache-2.0 */
/* repl_draw: the Repl screen: what was said, a line that tells how it stands, what is typed, and names over it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/screens/repl/repl_state.h"

#define REPL_PROMPT ">>> "
#define REPL_PROMPT_MORE "... "
#define REPL_PROMPT_COLS 4
#define REPL_RUNS_S 0.5 /* so long code runs before that is said */

void repl_follow(struct repl_state *s, const struct app *app) {
    if (s->logged == app->repl.logged)
        return;
    struct match search = s->pager.search;
    struct list list = s->pager.list;
    s->logged = app->repl.logged;
    pager_fini(&s->pager);
    if (pager_init(&s->pager, strbuf_str(&app->repl.log), app->repl.log.len) != 0)
        return;
    s->pager.marked = true;
    s->pager.search = search;
    s->pager.list = list;
}

/* Words of a line, over as many rows as they take; how many. */
static int repl_draw_words(struct grid *g, struct rect area, int row, enum theme_role role,
                           const char *text) {
    int rows = 0;
    for (char line[512]; *text && row + rows < area.rows; rows++) {
        (void)snprintf(line, sizeof line, "%s", text);
        size_t n = text_fit(line, area.cols - 2);
        size_t cut = n;
        while (line[n] && cut > 0 && line[cut] != ' ')
            cut--;
        n = cut ? cut : n ? n : 1;
        line[n] = '\0';
        (void)grid_text(g, area, row + rows, 1, role, line);
        text += n + (text[n] == ' ');
    }
    return rows;
}

static void repl_draw_nothing(const struct app *app, struct grid *g, struct rect area) {
    static const char *const lines[] = {
        "What is typed here runs in the job, with the names of its __main__.",
        "Enter runs a statement, an empty line ends a block; _ is the last value.",
        "Tab completes names as the job has them, ctrl-r finds code of before.",
        "ctrl-c ends what runs. Esc: to the output, where letters are keys.",
        "%help lists commands of our own: %bt, %q SQL, %tensors, %steps, ...",
    };
    const char *why = app_repl_why_not(app);
    int row = 0;
    if (why)
        row += repl_draw_words(g, area, row, ROLE_CONN_WAIT, why) + 1;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        row += repl_draw_words(g, area, row, ROLE_MUTED, lines[i]);
}

static void repl_draw_output(struct repl_state *s, const struct app *app, struct grid *g, struct rect area) {
    s->out_area = area;
    repl_follow(s, app);
    if (!app->repl.log.len) {
        repl_draw_nothing(app, g, area);
        return;
    }
    if (s->follows)
        s->pager.list.top = s->pager.list.selected = INT_MAX / 2;
    pager_draw(&s->pager, g, area);
    s->follows = s->follows || s->pager.list.top + s->pager.list.page >= s->pager.list.count;
}

/* Where code runs. */
static void repl_draw_where(const struct app *app, struct grid *g, struct rect line, int col) {
    const struct wire_eval *want = &app->repl.want;
    char text[160] = "runs in the job, with the names of its __main__";
    if (want->tid > 0)
        (void)snprintf(text, sizeof text, "runs in the job, with the names of frame %lld:%lld; %%frame off",
                       (long long)want->tid, (long long)want->depth);
    else if (data_is_recorded(&app->data) || app->data.paused)
        (void)snprintf(text, sizeof text, "runs in the job now, whatever the view shows");
    grid_text_fit(g, line, 0, col, line.cols - col, ROLE_TABLE_HEAD, GRID_LEFT, text);
}

static void repl_draw_title(const struct repl_state *s, const struct app *app, struct grid *g,
                            struct rect line) {
    const struct app_repl *r = &app->repl;
    const char *why = app_repl_why_not(app);
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = grid_text(g, line, 0, 0, s->in_output ? ROLE_TITLE : ROLE_TITLE_FOCUS, " Code ") + 1;
    double age_s = app->now_s - r->began_s;
    if (app_repl_runs(app) && r->interrupted)
        col += grid_text(g, line, 0, col, ROLE_STATUS_ON, " ending ") + 1;
    else if (app_repl_runs(app) && age_s >= REPL_RUNS_S)
        col += grid_printf(g, line, 0, col, ROLE_STATUS_ON,
                           r->asked == APP_REPL_QUERY ? " looking %.0f s: ctrl-c ends it "
                                                      : " running %.0f s: ctrl-c ends it ",
                           age_s) +
               1;
    else if (why)
        grid_text_fit(g, line, 0, col, line.cols - col, ROLE_STATUS_BAD, GRID_LEFT, why);
    else
        repl_draw_where(app, g, line, col);
    if (!s->follows && s->pager.list.count > 0 && col < line.cols - 24)
        grid_text_fit(g, line, 0, line.cols - 22, 22, ROLE_STATUS_ON, GRID_LEFT, " PgDn: more below ");
}

static void repl_draw_code(struct repl_state *s, struct app *app, struct grid *g, struct rect area) {
    struct editor *e = &s->typing.editor;
    int row, col;
    struct rect text = {area.row, area.col + REPL_PROMPT_COLS, area.rows, area.cols - REPL_PROMPT_COLS};
    s->typing.area = text;
    grid_fill(g, area, ROLE_TEXT);
    editor_draw(e, g, text, &row, &col);
    for (int i = 0; i < area.rows && e->top + i < editor_lines(e); i++)
        (void)grid_text(g, area, i, 0, ROLE_LABEL, e->top + i ? REPL_PROMPT_MORE : REPL_PROMPT);
    if (!s->in_output && !app->prompt_for) {
        app->cursor_row = row;
        app->cursor_col = col;
    }
}

static struct typing_choice repl_choice(const void *arg, int i) {
    return ((const struct repl_state *)arg)->choices[i];
}

void repl_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct repl_state *s = state;
    int rows = editor_lines(&s->typing.editor), most = area.rows / 2;
    rows = rows > most ? most : rows;
    rows = rows < 1 ? 1 : rows;
    struct rect out = {area.row, area.col, area.rows - rows - 1, area.cols};
    struct rect line = {area.row + out.rows, area.col, 1, area.cols};
    repl_draw_output(s, app, g, out);
    repl_draw_title(s, app, g, line);
    repl_draw_code(s, app, g, (struct rect){line.row + 1, area.col, rows, area.cols});
    if (s->typing.completing && !s->in_output)
        typing_draw_choices(&s->typing, g, area, s->from, repl_choice, s);
}

void repl_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct repl_state *s = state;
    const struct list *l = &s->pager.list;
    if (s->in_output) {
        if (l->count)
            (void)strbuf_addf(out, "Line %d of %d", l->top + 1, l->count);
        if (s->pager.search.active)
            (void)strbuf_addf(out, "   /%s", s->pager.search.text);
        return;
    }
    if (s->typing.completing) {
        (void)strbuf_addf(out, "%d of %d", s->typing.choices.selected + 1, s->typing.choices.count);
        return;
    }
    if (s->n_ahead)
        (void)strbuf_addf(out, "%d key%s wait for the end of what runs", s->n_ahead,
                          s->n_ahead == 1 ? "" : "s");
    else if (s->typing.history_at >= 0)
        (void)strbuf_addf(out, "code %ld of %zu that was run", s->typing.history_at + 1, app->repl.history.n);
    else if (editor_lines(&s->typing.editor) > 1)
        (void)strbuf_adds(out, "an empty line runs the block; F5 runs it as it is");
}
