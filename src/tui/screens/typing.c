/* SPDX-License-Identifier: Apache-2.0 */
/* typing: see typing.h. */
#include "tui/screens/typing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"

#define TYPING_CHOICES 8
#define TYPING_CHOICE_COLS 28

void typing_init(struct typing *t) {
    editor_init(&t->editor);
    t->history_at = t->found_at = -1;
}

void typing_fini(struct typing *t) {
    editor_fini(&t->editor);
    free(t->draft);
    free(t->sought);
}

/* ---- history ---- */

static void typing_show_entry(struct typing *t, const struct history *h, long at) {
    if (at >= (long)h->n) {
        if (t->history_at >= 0)
            editor_set(&t->editor, t->draft ? t->draft : "");
        t->history_at = -1;
        return;
    }
    if (t->history_at < 0) {
        free(t->draft);
        t->draft = strdup(t->editor.text);
    }
    editor_set(&t->editor, h->entries[at]);
    t->history_at = at;
}

const char *typing_step_history(struct typing *t, const struct history *h, int step, const char *what) {
    static char why[96];
    long n = (long)h->n, at = t->history_at < 0 ? n : t->history_at;
    why[0] = '\0';
    if (n == 0)
        snprintf(why, sizeof why, "no earlier %s", what);
    else if (at + step < 0)
        snprintf(why, sizeof why, "this is the oldest saved %s", what);
    else
        typing_show_entry(t, h, at + step);
    return why[0] ? why : NULL;
}

bool typing_search(struct typing *t, const struct history *h, const char *text, enum screen_typed phase) {
    if (phase == SCREEN_CANCEL) {
        if (t->sought)
            editor_set(&t->editor, t->sought);
        return true;
    }
    if (phase == SCREEN_ACCEPT || !*text)
        return t->found_at >= 0 || !*text;
    size_t before = phase == SCREEN_REDRAW && t->found_at >= 0 ? (size_t)t->found_at : h->n;
    /* Skip entries with the same text. */
    long at = history_find(h, text, before);
    while (phase == SCREEN_REDRAW && at >= 0 && strcmp(h->entries[at], t->editor.text) == 0)
        at = history_find(h, text, (size_t)at);
    if (at < 0)
        return false;
    t->found_at = at;
    editor_set(&t->editor, h->entries[at]);
    return true;
}

void typing_paste(struct typing *t, struct app *app, const char *text) {
    if (!editor_paste(&t->editor, text))
        app_refuse(app, "nothing was pasted: the text would be longer than %zu KiB", EDITOR_MAX / 1024);
}

void typing_begin_search(struct typing *t, struct app *app, enum action action) {
    free(t->sought);
    t->sought = strdup(t->editor.text);
    t->found_at = -1;
    app_prompt(app, action, "History (ctrl-r: older): ", "");
}

/* ---- words to complete with ---- */

bool typing_act_choices(struct typing *t, enum action action) {
    struct list *l = &t->choices;
    if (action == ACTION_UP)
        list_select(l, l->selected ? l->selected - 1 : l->count - 1);
    else if (action == ACTION_DOWN)
        list_select(l, (l->selected + 1) % l->count);
    else
        return false;
    return true;
}

static void typing_draw_choice(const struct typing_choice *choice, bool selected, struct grid *g,
                               struct rect box, int row) {
    struct rect line = {box.row + row, box.col, 1, box.cols};
    int names = TYPING_CHOICE_COLS < box.cols - 10 ? TYPING_CHOICE_COLS : box.cols - 10;
    enum theme_role role = selected ? ROLE_SELECTION : ROLE_STATUS;
    if (!*choice->help)
        names = box.cols - 2;
    grid_fill(g, line, role);
    grid_text_fit(g, line, 0, 1, names, role, GRID_LEFT, choice->text);
    if (*choice->help)
        grid_text_fit(g, line, 0, names + 2, box.cols - names - 2, role, GRID_LEFT, choice->help);
}

void typing_draw_choices(struct typing *t, struct grid *g, struct rect area, size_t from,
                         struct typing_choice (*get)(const void *arg, int i), const void *arg) {
    int line, col;
    editor_place(&t->editor, g, from, &line, &col);
    int at = t->area.row + line - t->editor.top, below = area.row + area.rows - at - 1;
    int rows = t->choices.count < TYPING_CHOICES ? t->choices.count : TYPING_CHOICES;
    int above = at - area.row;
    if (rows > below && rows > above)
        rows = below > above ? below : above;
    struct rect box = {rows <= below ? at + 1 : at - rows, 0, rows, area.cols < 76 ? area.cols : 76};
    box.col = t->area.col + col - t->editor.left - 1;
    if (box.col + box.cols > area.col + area.cols)
        box.col = area.col + area.cols - box.cols;
    if (box.col < area.col)
        box.col = area.col;
    list_fit(&t->choices, t->choices.count, rows);
    for (int i = 0; i < rows && t->choices.top + i < t->choices.count; i++) {
        struct typing_choice choice = get(arg, t->choices.top + i);
        typing_draw_choice(&choice, t->choices.top + i == t->choices.selected, g, box, i);
    }
}
