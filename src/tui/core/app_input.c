/* SPDX-License-Identifier: Apache-2.0 */
/* app_input: see app_input.h. */
#include "tui/core/app_input.h"

#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_ask.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"
#include "tui/core/app_job.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/command.h"
#include "tui/core/app_draw.h"
#include "tui/core/job_time.h"
#include "tui/core/row_actions.h"
#include "tui/core/screen.h"
#include "tui/core/tagging.h"
#include "tui/core/tour.h"
#include "tui/keys/input.h"

/* ---- what an action does: on the topmost screen, or on any ---- */

static void app_input_open_prompt(struct app *a, enum action what) {
    struct app_screen *s = app_screen_top(a);
    if (!app_screen_can_type(s))
        return;
    const char *before = app_screen_typed_before(s, what);
    bool is_filter = what == ACTION_FILTER;
    app_prompt(a, what, is_filter ? "Filter: " : "Search: ", is_filter ? before : "");
}

static void app_input_close(struct app *a) {
    if (a->n_screens > 1 && !app_screen_top(a)->def->is_tab)
        app_screen_pop(a);
    else
        app_quit(a);
}

/* Actions that mean the same on every screen; false: another one. */
static bool app_input_act_common(struct app *a, enum action action) {
    switch ((int)action) {
    case ACTION_SEARCH:
    case ACTION_FILTER:
        app_input_open_prompt(a, action);
        return true;
    case ACTION_COMMAND_LINE:
        command_line_open(a, "");
        return true;
    case ACTION_REDRAW:
        a->host.repaint(a->host.arg);
        return true;
    case ACTION_SUSPEND:
        a->host.suspend(a->host.arg);
        return true;
    case ACTION_MOUSE:
        a->mouse = !a->mouse;
        a->host.set_mouse(a->host.arg, a->mouse);
        app_message(a, false, a->mouse ? "mouse on" : "mouse off: the terminal selects text");
        return true;
    case ACTION_SCREEN_NEXT:
    case ACTION_SCREEN_PREV:
        app_screen_step(a, action == ACTION_SCREEN_NEXT ? 1 : -1);
        return true;
    case ACTION_METERS:
        a->folded = !a->folded;
        return true;
    case ACTION_SAVE_SETTINGS:
        app_settings_sync(a);
        a->host.save_settings(a->host.arg);
        return true;
    case ACTION_PAUSE:
        app_set_paused(a, !a->data.paused);
        return true;
    case ACTION_REFRESH:
        a->host.request(a->host.arg, WIRE_THREADS);
        return true;
    case ACTION_SLOWER:
        app_step_delay(a, 1);
        return true;
    case ACTION_FASTER:
        app_step_delay(a, -1);
        return true;
    case ACTION_BACK:
        if (a->n_screens > 1)
            app_screen_pop(a);
        return true;
    case ACTION_QUIT:
        app_input_close(a);
        return true;
    case ACTION_QUIT_NOW:
        app_quit(a);
        return true;
    default:
        return row_actions_act(a, action);
    }
}

/* Do it without a question. */
static void app_input_do(struct app *a, enum action action) {
    struct app_screen *s = app_screen_top(a);
    if (app_screen_act(s, a, action))
        return;
    if (!job_time_act(a, action) && !app_job_act(a, action) && !app_screen_open(a, action))
        (void)(app_history_act(a, action) || app_diff_act(a, action) || tagging_act(a, action) ||
               app_arm_act(a, action) || app_debug_act(a, action) || app_input_act_common(a, action));
}

void app_input_act(struct app *a, enum action action) {
    a->dirty = true;
    if (!row_actions_refuses(a, action) && !app_ask_first(a, action))
        app_input_do(a, action);
}

/* ---- a line from behind the colon ---- */

#define APP_INPUT_MAX_NAMES 512

static void app_input_unknown_command(struct app *app, const char *word) {
    const char *names[APP_INPUT_MAX_NAMES];
    enum action_context context = command_context(app);
    size_t n = 0;
    for (const struct command_def *d = command_rows(); d->name && n + 1 < APP_INPUT_MAX_NAMES; d++)
        if (d->contexts & ACTION_IN(context))
            names[n++] = d->name;
    for (const struct action_def *d = action_table(); d->action && n + 1 < APP_INPUT_MAX_NAMES; d++)
        if (d->contexts & ACTION_IN(context))
            names[n++] = d->name;
    names[n] = NULL;
    const char *near = option_suggest(word, names);
    if (near)
        app_refuse(app, "there is no command '%s' here: did you mean '%s'?", word, near);
    else
        app_refuse(app, "there is no command '%s' here: Tab lists those there are", word);
}

void app_input_command(struct app *app, const char *line) {
    char word[64], argument[PROMPT_MAX];
    enum action_context context = command_context(app);
    size_t len = command_first_word(&line);
    if (len == 0)
        return;
    snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), line);
    line += len + strspn(line + len, " ");
    snprintf(argument, sizeof argument, "%s", line);
    for (size_t n = strlen(argument); n > 0 && argument[n - 1] == ' ';)
        argument[--n] = '\0';
    log_add(app->log, app->epoch_s, LOG_LEVEL_INFO, ":%s%s%s", word, *argument ? " " : "", argument);
    const struct command_def *command = command_find(word, context);
    const struct action_def *action = command ? NULL : action_named(word, context);
    if (command && *argument && !*command->arguments)
        app_refuse(app, ":%s takes no argument", word);
    else if (command)
        command->run(app, argument);
    else if (action && *argument)
        app_refuse(app, ":%s takes no argument", word);
    else if (action)
        app_input_act(app, action->action);
    else
        app_input_unknown_command(app, word);
}

/* Close the command line and run it. */
static void app_input_typed_command(struct app *app) {
    char line[PROMPT_MAX];
    struct err e;
    snprintf(line, sizeof line, "%s", app->prompt.text);
    app->prompt_for = ACTION_NONE;
    app->message[0] = '\0';
    int rc = history_add(&app->command.history, line, &e);
    app_input_command(app, line);
    if (rc != 0 && !*app->message)
        app_message(app, true, "%s", e.text);
}

/* ---- keys, the mouse and pasted text ---- */

static void app_input_prompt_result(struct app *a, enum prompt_result result) {
    struct app_screen *s = app_screen_top(a);
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

/* Nothing is shown in which a key could be meant: an answer or typed text would be taken for commands. */
static void app_input_key_unseen(struct app *a, uint32_t key, enum action action) {
    bool types = a->prompt_for || a->ask.action;
    if (key == INPUT_CTRL + 'c' || (key == 'q' && !types)) /* whatever the letter means elsewhere */
        app_quit(a);
    else if ((action == ACTION_REDRAW || action == ACTION_SUSPEND) && (key > INPUT_SPECIAL || !types))
        app_input_act(a, action);
}

void app_input_key(struct app *a, uint32_t key) {
    a->dirty = true;
    struct app_screen *s = app_screen_top(a);
    enum action action = action_find(screen_context(s->def, s->state), key);
    if (a->too_small) {
        app_input_key_unseen(a, key, action);
        return;
    }
    if (a->ask.action) {
        a->message[0] = '\0';
        if (app_ask_answer(a, key, &action))
            app_input_do(a, action);
        return;
    }
    if (a->prompt_for == ACTION_COMMAND_LINE) {
        if (command_line_key(a, key))
            app_input_typed_command(a);
        return;
    }
    if (a->prompt_for) {
        enum action what = a->prompt_for;
        if (action == what && key > INPUT_SPECIAL) {
            bool found = app_screen_typed(s, a, what, a->prompt.text, SCREEN_REDRAW);
            a->prompt_failed = !found && *a->prompt.text;
        } else
            app_input_prompt_result(a, prompt_key(&a->prompt, key));
        return;
    }
    a->message[0] = '\0';
    if (tour_key(a, key))
        return;
    if (action) {
        app_input_act(a, action);
        return;
    }
    if (s->def->key && s->def->key(s->state, a, key))
        return;
    char name[32];
    input_key_name(key, name, sizeof name);
    app_message(a, false, "%s does nothing here: press ? for the keys", name);
}

/* The second button of the mouse: select what is there, and open the menu. */
static void app_input_open_menu(struct app *a, const struct input_event *e) {
    struct app_screen *s = app_screen_top(a);
    a->dirty = true;
    if (!app_screen_can_pick(s) || !app_screen_mouse(s, a, e))
        return;
    a->row_actions.menu_row = e->row;
    a->row_actions.menu_col = e->col;
    app_input_act(a, ACTION_SHOW_MENU);
    a->row_actions.menu_row = a->row_actions.menu_col = -1;
}

static void app_input_mouse(struct app *a, const struct input_event *e) {
    struct app_screen *s = app_screen_top(a);
    if (a->prompt_for || a->ask.action || a->too_small)
        return;
    if (e->row == a->footer_row && e->button == INPUT_CLICK) {
        enum action action = app_draw_key_at(a, e->col);
        if (action)
            app_input_act(a, action);
        return;
    }
    enum action tab = e->button == INPUT_CLICK ? app_draw_tab_at(a, e->row, e->col) : ACTION_NONE;
    if (tab) {
        app_input_act(a, tab);
        return;
    }
    if (e->button == INPUT_MENU)
        app_input_open_menu(a, e);
    else if (app_screen_mouse(s, a, e))
        a->dirty = true;
}

static void app_input_paste(struct app *a, const struct input_event *e) {
    struct app_screen *s = app_screen_top(a);
    if (a->ask.action || a->too_small) /* nor is it an answer */
        return;
    a->dirty = true;
    if (a->prompt_for == ACTION_COMMAND_LINE)
        command_line_paste(a, e->text);
    else if (a->prompt_for) {
        prompt_paste(&a->prompt, e->text);
        app_input_prompt_result(a, PROMPT_CHANGED);
    } else if (s->def->paste) { /* pasted text is not a series of keys */
        a->message[0] = '\0';
        s->def->paste(s->state, a, e->text);
        if (e->is_cut && !a->message[0])
            app_refuse(a, "what was pasted is too long: its end is missing");
    }
}

void app_input(struct app *a, const struct input_event *e) {
    switch (e->kind) {
    case INPUT_EVENT_KEY:
        app_input_key(a, e->key);
        break;
    case INPUT_EVENT_MOUSE:
        app_input_mouse(a, e);
        break;
    case INPUT_EVENT_PASTE:
        app_input_paste(a, e);
        break;
    case INPUT_EVENT_BACKGROUND: /* the host's */
    case INPUT_EVENT_NONE:
        break;
    }
}
