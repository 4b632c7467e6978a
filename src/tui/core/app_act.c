/* SPDX-License-Identifier: Apache-2.0 */
/* app_act: see app_act.h. */
#include "tui/core/app_act.h"

#include "tui/core/app_arm.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"
#include "tui/core/app_message.h"
#include "tui/core/app_prompt.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/command_line.h"
#include "tui/core/row_actions.h"
#include "tui/core/tagging.h"

static void app_open_prompt(struct app *a, enum action what) {
    struct app_screen *s = app_top(a);
    if (!app_screen_can_type(s))
        return;
    const char *before = app_screen_typed_before(s, what);
    bool is_filter = what == ACTION_FILTER;
    app_prompt(a, what, is_filter ? "Filter: " : "Search: ", is_filter ? before : "");
}

void app_quit(struct app *a) { a->host.quit(a->host.arg); }

static void app_close(struct app *a) {
    if (a->n_screens > 1 && !app_top(a)->def->is_tab)
        app_pop(a);
    else
        app_quit(a);
}

/* Actions that mean the same on every screen; false: another one. */
static bool app_act_common(struct app *a, enum action action) {
    switch ((int)action) {
    case ACTION_SEARCH:
    case ACTION_FILTER:
        app_open_prompt(a, action);
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
            app_pop(a);
        return true;
    case ACTION_QUIT:
        app_close(a);
        return true;
    case ACTION_QUIT_NOW:
        app_quit(a);
        return true;
    default:
        return row_actions_act(a, action);
    }
}

void app_act(struct app *a, enum action action) {
    struct app_screen *s = app_top(a);
    a->dirty = true;
    if (row_actions_refuses(a, action))
        return;
    if (app_screen_act(s, a, action))
        return;
    if (!app_open(a, action))
        (void)(app_history_act(a, action) || app_diff_act(a, action) || tagging_act(a, action) ||
               app_arm_act(a, action) || app_debug_act(a, action) || app_act_common(a, action));
}
