/* SPDX-License-Identifier: Apache-2.0 */
/* app_input: see app_input.h. */
#include "tui/core/app_input.h"

#include "tui/core/action_keys.h"
#include "tui/core/app_act.h"
#include "tui/core/app_message.h"
#include "tui/core/app_screen.h"
#include "tui/core/command_line.h"
#include "tui/core/command_run.h"
#include "tui/core/footer.h"
#include "tui/core/screen.h"
#include "tui/core/tabs.h"
#include "tui/keys/input.h"

static void app_prompt_result(struct app *a, enum prompt_result result) {
    struct app_screen *s = app_top(a);
    enum action what = a->prompt_for;
    if (result == PROMPT_UNCHANGED)
        return;
    if (result != PROMPT_CHANGED)
        a->prompt_for = ACTION_NONE;
    enum screen_typed phase = result == PROMPT_CHANGED    ? SCREEN_TYPING
                              : result == PROMPT_ACCEPTED ? SCREEN_ACCEPT
                                                          : SCREEN_CANCEL;
    bool found = app_screen_typed(s, a, what, a->prompt.text, phase);
    a->prompt_failed = !found && *a->prompt.text;
    if (result == PROMPT_ACCEPTED && a->prompt_failed)
        app_refuse(a, "nothing matches '%s'", a->prompt.text);
}

void app_key(struct app *a, uint32_t key) {
    a->dirty = true;
    struct app_screen *s = app_top(a);
    enum action action = action_find(screen_context(s->def, s->state), key);
    if (a->prompt_for == ACTION_COMMAND_LINE && !a->too_small) {
        if (command_line_key(a, key))
            command_run_typed(a);
        return;
    }
    if (a->prompt_for && !a->too_small) {
        enum action what = a->prompt_for;
        if (action == what && key > INPUT_SPECIAL) {
            bool found = app_screen_typed(s, a, what, a->prompt.text, SCREEN_REDRAW);
            a->prompt_failed = !found && *a->prompt.text;
        } else
            app_prompt_result(a, prompt_key(&a->prompt, key));
        return;
    }
    a->message[0] = '\0';
    /* Whatever the letter means elsewhere. */
    if (a->too_small && (key == 'q' || key == INPUT_CTRL + 'c')) {
        app_quit(a);
        return;
    }
    if (action) {
        app_act(a, action);
        return;
    }
    if (s->def->key && !a->too_small && s->def->key(s->state, a, key))
        return;
    char name[32];
    input_key_name(key, name, sizeof name);
    app_message(a, false, "%s does nothing here: press ? for the keys", name);
}

/* The second button of the mouse: select what is there, and open the menu. */
static void app_open_menu_at(struct app *a, const struct input_event *e) {
    struct app_screen *s = app_top(a);
    a->dirty = true;
    if (!app_screen_can_pick(s) || !app_screen_mouse(s, a, e))
        return;
    a->row_actions.menu_row = e->row;
    a->row_actions.menu_col = e->col;
    app_act(a, ACTION_SHOW_MENU);
    a->row_actions.menu_row = a->row_actions.menu_col = -1;
}

static void app_mouse(struct app *a, const struct input_event *e) {
    struct app_screen *s = app_top(a);
    if (a->prompt_for || a->too_small)
        return;
    if (e->row == a->footer_row && e->button == INPUT_CLICK) {
        enum action action = footer_at(a, e->col);
        if (action)
            app_act(a, action);
        return;
    }
    enum action tab = e->button == INPUT_CLICK ? tabs_at(a, e->row, e->col) : ACTION_NONE;
    if (tab) {
        app_act(a, tab);
        return;
    }
    if (e->button == INPUT_MENU)
        app_open_menu_at(a, e);
    else if (app_screen_mouse(s, a, e))
        a->dirty = true;
}

void app_input(struct app *a, const struct input_event *e) {
    switch (e->kind) {
    case INPUT_EVENT_KEY:
        app_key(a, e->key);
        break;
    case INPUT_EVENT_MOUSE:
        app_mouse(a, e);
        break;
    case INPUT_EVENT_PASTE:
        if (!a->prompt_for) { /* pasted text is not a series of keys */
            struct app_screen *s = app_top(a);
            if (s->def->paste && !a->too_small)
                s->def->paste(s->state, a, e->text);
            a->dirty = true;
            break;
        }
        a->dirty = true;
        if (a->prompt_for == ACTION_COMMAND_LINE) {
            command_line_paste(a, e->text);
            break;
        }
        prompt_paste(&a->prompt, e->text);
        app_prompt_result(a, PROMPT_CHANGED);
        break;
    case INPUT_EVENT_NONE:
        break;
    }
}
