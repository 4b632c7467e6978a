/* SPDX-License-Identifier: Apache-2.0 */
/* app: see app.h. Drawing the frame around the screens is in app_draw.c. */
#include "tui/core/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/action_keys.h"
#include "tui/keys/action.h"
#include "tui/core/app_history.h"
#include "tui/core/footer.h"
#include "tui/core/tabs.h"
#include "tui/core/tagging.h"
#include "tui/core/verdict_badge.h"

struct app *app_new(const struct app_config *config) {
    struct app *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->config = *config;
    a->host = config->host ? *config->host : app_host_none;
    a->mouse = config->mouse;
    settings_begin(a, config->settings);
    a->cursor_row = a->footer_row = -1;
    data_init(&a->data);
    a->began_s = a->data.pulse.began_s = config->began_s;
    app_query_init(&a->query);
    app_repl_init(&a->repl);
    a->log = log_new();
    command_line_init(&a->command);
    row_actions_init(&a->hands);
    a->hands.readonly = config->readonly;
    app_push(a, config->pick ? &screen_picker : &screen_threads);
    if (a->n_screens == 0) {
        app_free(a);
        return NULL;
    }
    if (!config->pick)
        settings_open_screen(a);
    if (config->diff)
        a->host.open_diff(a->host.arg, config->diff);
    return a;
}

static void app_drop_screens(struct app *a);

void app_free(struct app *a) {
    if (!a)
        return;
    a->host = app_host_none; /* it is not there any more */
    app_drop_screens(a);
    target_list_free(a->processes, a->n_processes);
    targets_fini(a);
    data_fini(&a->data);
    app_diff_fini(&a->diff);
    app_query_fini(&a->query);
    app_repl_fini(&a->repl);
    app_debug_forget(a);
    app_feeds_fini(&a->feeds);
    app_forget_source(a);
    log_free(a->log);
    command_line_fini(&a->command);
    tags_fini(&a->threads);
    tags_fini(&a->functions);
    free(a);
}

void app_set_time(struct app *a, double now_s, double epoch_s) {
    a->now_s = now_s;
    a->epoch_s = epoch_s;
}

struct app_screen *app_top(struct app *a) {
    return &a->screens[a->n_screens - 1];
}

/* A screen that was kept when it was closed; its state is NULL when there is none. */
static struct app_screen app_take_kept(struct app *a, const struct screen_def *def) {
    for (int i = 0; i < a->n_kept; i++)
        if (a->kept[i].def == def) {
            struct app_screen s = a->kept[i];
            a->kept[i] = a->kept[--a->n_kept];
            return s;
        }
    return (struct app_screen){def, NULL};
}

void app_push(struct app *a, const struct screen_def *def) {
    if (a->n_screens == APP_MAX_SCREENS)
        return;
    struct app_screen s = app_take_kept(a, def);
    bool is_new = !s.state;
    if (is_new)
        s.state = calloc(1, def->state_size ? def->state_size : 1);
    if (!s.state)
        return;
    a->screens[a->n_screens++] = s;
    a->prompt_for = ACTION_NONE; /* it was the other screen's */
    if (is_new && def->init)
        def->init(s.state, a);
    else if (!is_new && def->update)
        def->update(s.state, a);
    a->dirty = true;
}

static void app_free_screen(struct app_screen *s) {
    if (s->def->fini)
        s->def->fini(s->state);
    free(s->state);
}

void app_pop(struct app *a) {
    struct app_screen *s = app_top(a);
    if (s->def->needs_samples)
        a->samples_until_s = a->now_s + APP_SAMPLE_STAY_S;
    if (s->def->is_kept && a->n_kept < APP_MAX_SCREENS)
        a->kept[a->n_kept++] = *s;
    else
        app_free_screen(s);
    a->n_screens--;
    a->prompt_for = ACTION_NONE;
    a->dirty = true;
}

/* Close all screens for good. */
static void app_drop_screens(struct app *a) {
    while (a->n_screens > 0)
        app_pop(a);
    while (a->n_kept > 0)
        app_free_screen(&a->kept[--a->n_kept]);
}

void app_message(struct app *a, bool is_bad, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = is_bad;
    a->dirty = true;
    if (is_bad)
        log_add(a->log, a->epoch_s, LOG_LEVEL_BAD, "%s", a->message);
}

void app_refuse(struct app *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = true;
    a->dirty = true;
}

void app_update_screens(struct app *a) {
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->update)
            a->screens[i].def->update(a->screens[i].state, a);
    verdict_badge_follow(a);
    a->dirty = true;
}

void app_set_paused(struct app *a, bool paused) {
    data_set_paused(&a->data, paused);
    if (!paused)
        app_history_leave(a);
    app_update_screens(a);
}

static struct events_place app_place(const struct app *a) {
    pid_t pid = a->targets.n > 1 ? a->pid : 0;
    return (struct events_place){.log = a->log, .pid = pid, .now_s = a->now_s, .epoch_s = a->epoch_s};
}

void app_take_target(struct app *a, struct model_target *t) {
    struct events_place place = app_place(a);
    bool is_first = !a->data.has_target;
    data_take_target(&a->data, t);
    events_see_target(&a->data, is_first, &place);
    app_update_screens(a);
}

void app_take_snapshot(struct app *a, struct model_snapshot *s) {
    struct events_place place = app_place(a);
    data_take_snapshot(&a->data, s, a->now_s);
    events_see_snapshot(&a->data, &place);
    app_update_screens(a);
}

void app_take_status(struct app *a, const struct model_status *s) {
    struct events_place place = app_place(a);
    events_see_status(&a->data, s, &place);
    app_watch_take(a, s);
    app_arm_take(a, s);
    a->dirty = true;
}

void app_take_proc_stats(struct app *a, const struct proc_stats *v) {
    struct events_place place = app_place(a);
    events_see_proc_stats(&a->data, v, &place);
    a->dirty = true;
}

bool app_wants_proc_stats(const struct app *a) {
    bool wanted = app_is_late(a);
    for (int i = 0; i < a->n_screens; i++)
        wanted = wanted || a->screens[i].def->needs_vitals;
    return wanted && !data_is_recorded(&a->data) && !data_is_over(&a->data);
}

bool app_wants_status(const struct app *a) {
    const struct data *d = &a->data;
    bool has_agent = d->state == SESSION_CONNECTED && d->has_target && d->target.mode == MODEL_MODE_AGENT;
    bool was_asked = d->pulse.status_at_s > 0;
    bool is_due =
        !d->paused && !data_is_recorded(d) && !data_is_over(d) &&
        a->now_s - d->pulse.status_at_s >= (debuggers_stop(&d->holds) ? DEBUGGERS_STATUS_S : EVENTS_STATUS_S);
    return has_agent && (!was_asked || is_due || app_arm_wants_status(a));
}

void app_take_children(struct app *a, struct children_list *l) {
    data_take_children(&a->data, l, a->now_s);
    app_update_screens(a);
}

bool app_shows_children(const struct app *a) {
    int i = a->n_screens - 1;
    while (i > 0 && !a->screens[i].def->is_tab)
        i--;
    return i >= 0 && a->screens[i].def->shows_children;
}

void app_set_pid(struct app *a, pid_t pid) {
    pid_t before = a->pid, started = a->came_from;
    a->pid = pid;
    a->data.pulse.began_s = a->began_s;
    if (!before || before == pid)
        return;
    a->came_from = started == pid ? 0 : before;
    data_fini(&a->data);
    data_init(&a->data);
    a->data.pulse.began_s = a->began_s;
    app_history_leave(a);
    app_query_forget(&a->query);
    app_repl_forget(a);
    app_feeds_forget(&a->feeds);
    app_forget_source(a);
    tags_clear(&a->threads);
    tags_clear(&a->functions);
    if (!a->targets.n) /* else it is one of them */
        tags_clear(&a->targets.tags);
    a->native = false;
    app_update_screens(a);
}

void app_ask_details(struct app *a, const struct wire_threads *want) {
    struct err e;
    if (a->host.ask_details(a->host.arg, want, &e) == 0)
        return;
    app_message(a, true, "%s", e.text);
    a->data.native_refused |= want->native;
}

void app_take_locals(struct app *a, struct model_snapshot *s) {
    data_take_locals(&a->data, s);
    a->dirty = true;
}

bool app_take_samples(struct app *a, const struct model_sample_batch *b) {
    struct events_place place = app_place(a);
    bool is_complete = data_take_samples(&a->data, b, a->now_s);
    events_see_samples(&a->data, b, APP_SAMPLE_HZ, &place);
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->needs_samples && a->screens[i].def->update) {
            a->screens[i].def->update(a->screens[i].state, a);
            a->dirty = true;
        }
    return is_complete;
}

bool app_wants_samples(const struct app *a) {
    if (data_is_recorded(
            &a->data)) /* they cost nobody anything, and every screen can go to a time of theirs */
        return true;
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->needs_samples)
            return true;
    return a->now_s < a->samples_until_s;
}

void app_set_state(struct app *a, enum session_state state, const struct err *why, double retry_in_s) {
    struct events_place place = app_place(a);
    enum session_state before = a->data.state;
    data_set_state(&a->data, state, why, a->now_s + retry_in_s);
    events_see_state(&a->data, before, &place);
    if (before == SESSION_CONNECTED && state != SESSION_CONNECTED)
        app_repl_broke(a);
    app_update_screens(a);
}

void app_take_processes(struct app *a, struct target_process *list, size_t n, const char *hidden) {
    target_list_free(a->processes, a->n_processes);
    a->processes = list;
    a->n_processes = n;
    a->has_processes = true;
    snprintf(a->hidden, sizeof a->hidden, "%s", hidden);
    app_update_screens(a);
}

void app_take_themes(struct app *a, char (*names)[THEME_MAX_NAME], size_t n) {
    a->n_themes = n > APP_MAX_THEMES ? APP_MAX_THEMES : n;
    memcpy(a->themes, names, a->n_themes * sizeof *names);
    app_update_screens(a);
}

void app_attach(struct app *a, pid_t pid) {
    a->attaching = pid;
    a->began_s = a->now_s;
    a->host.attach(a->host.arg, pid);
}

void app_attach_done(struct app *a, const struct err *why) {
    a->attaching = 0;
    a->attaches_several = false;
    if (why) {
        app_message(a, true, "%s", why->text);
        return;
    }
    a->message[0] = '\0';
    app_drop_screens(a);
    app_push(a, &screen_threads);
    settings_open_screen(a);
}

pid_t app_attach_next(struct app *a) {
    if (a->n_attach_more == 0)
        return 0;
    pid_t next = a->attach_more[0];
    a->n_attach_more--;
    memmove(a->attach_more, a->attach_more + 1, (size_t)a->n_attach_more * sizeof next);
    return next;
}

int app_exit_status(const struct app *a) { return data_is_over(&a->data) ? ERR_LOST : 0; }

void app_tick(struct app *a) {
    struct events_place place = app_place(a);
    events_see_time(&a->data, app_delay_s(a), &place);
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->tick)
            a->screens[i].def->tick(a->screens[i].state, a);
}

double app_delay_s(const struct app *a) {
    bool slow = a->data.paused && a->config.delay_s < APP_PAUSED_S;
    return slow ? APP_PAUSED_S : a->config.delay_s;
}

bool app_is_late(const struct app *a) {
    return !data_is_over(&a->data) && !data_is_recorded(&a->data) && a->data.live.valid &&
           a->now_s - a->data.live.arrived_s > 2 * app_delay_s(a);
}

bool app_needs_tick(const struct app *a) {
    if (app_query_needs_tick(a) || app_repl_needs_tick(a))
        return true;
    if (a->n_screens && a->screens[0].def == &screen_picker)
        return false;
    if (data_is_over(&a->data) || data_is_recorded(&a->data))
        return false; /* the time of the last snapshot is shown, not its age */
    if (a->data.paused && a->data.state == SESSION_CONNECTED)
        return false; /* what is shown stands still */
    return a->data.state != SESSION_CONNECTED || app_is_late(a) || debuggers_stop(&a->data.holds);
}

bool app_shows_native(const struct app *a, enum action_context context) {
    return a->native && (a->native_on & ACTION_IN(context));
}

void app_toggle_native(struct app *a, enum action_context context) {
    bool shown = app_shows_native(a, context);
    a->native_on = (a->native ? a->native_on : 0) ^ ACTION_IN(context);
    a->native = a->native_on != 0;
    app_message(a, false,
                shown ? "native frames are their callers' time"
                      : "native frames: from the samples of now on");
}

void app_step_delay(struct app *a, int step) {
    static const double delays[] = {APP_MIN_DELAY_S, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60};
    int n = (int)(sizeof delays / sizeof delays[0]), at = 0;
    while (at < n - 1 && delays[at] < a->config.delay_s * 0.999)
        at++;
    if (step < 0 && at > 0)
        at--;
    else if (step > 0 && at < n - 1 && delays[at] <= a->config.delay_s * 1.001)
        at++;
    a->config.delay_s = delays[at];
    app_message(a, false, "a snapshot every %g s", a->config.delay_s);
}

/* ---- actions ---- */

void app_prompt(struct app *a, enum action what, const char *label, const char *text) {
    prompt_start(&a->prompt, label, text);
    a->prompt_for = what;
    a->prompt_failed = false;
    a->dirty = true;
}

static void app_open_prompt(struct app *a, enum action what) {
    struct app_screen *s = app_top(a);
    if (!screen_can_type(s))
        return;
    const char *before = screen_typed_before(s, what);
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

/* Actions that mean the same on every screen; false when it is none of them. */
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
        settings_sync(a);
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

bool app_open(struct app *a, enum action action) {
    const struct screen_def *def = screen_of_action(action);
    if (!def)
        return false;
    if (app_top(a)->def == def)
        return true;
    /* Tabs stand side by side over the first one; as it was left, each. */
    while (def->is_tab && a->n_screens > 1)
        app_pop(a);
    if (app_top(a)->def != def)
        app_push(a, def);
    return app_top(a)->def == def;
}

void app_act(struct app *a, enum action action) {
    struct app_screen *s = app_top(a);
    a->dirty = true;
    if (row_actions_refuses(a, action))
        return;
    if (screen_act(s, a, action))
        return;
    if (!app_open(a, action))
        (void)(app_history_act(a, action) || app_act_diff(a, action) || tagging_act(a, action) ||
               app_arm_act(a, action) || app_debug_act(a, action) || app_act_common(a, action));
}

/* ---- input ---- */

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
    bool found = screen_typed(s, a, what, a->prompt.text, phase);
    a->prompt_failed = !found && *a->prompt.text;
    if (result == PROMPT_ACCEPTED && a->prompt_failed)
        app_refuse(a, "nothing matches '%s'", a->prompt.text);
}

void app_key(struct app *a, uint32_t key) {
    a->dirty = true;
    struct app_screen *s = app_top(a);
    enum action action = action_find(screen_context(s->def, s->state), key);
    if (a->prompt_for == ACTION_COMMAND_LINE && !a->too_small) {
        command_line_key(a, key);
        return;
    }
    if (a->prompt_for && !a->too_small) {
        enum action what = a->prompt_for;
        if (action == what && key > INPUT_SPECIAL) {
            bool found = screen_typed(s, a, what, a->prompt.text, SCREEN_REDRAW);
            a->prompt_failed = !found && *a->prompt.text;
        } else
            app_prompt_result(a, prompt_key(&a->prompt, key));
        return;
    }
    a->message[0] = '\0';
    if (a->too_small &&
        (key == 'q' || key == INPUT_CTRL + 'c')) { /* it says so, whatever the letter means elsewhere */
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
        row_actions_open_menu_at(a, e);
    else if (screen_mouse(s, a, e))
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
        if (!a->prompt_for) { /* pasted text is no keys */
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

void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open) {
    struct err e;
    if (*is_open)
        return;
    *is_open = true;
    history_fini(h);
    if (a->host.open_history(a->host.arg, name, h, &e) != 0)
        app_message(a, true, "%s", e.text);
}

/* ---- source ---- */

void app_want_source(struct app *a, const char *path, int from) {
    struct app_source *asked = &a->source_asked;
    from = from < 1 ? 1 : from;
    if (asked->from == from && strcmp(asked->path, path) == 0)
        return;
    snprintf(asked->path, sizeof asked->path, "%s", path);
    asked->from = from;
    a->host.read_source(a->host.arg);
}

void app_take_source(struct app *a, struct source_text *text) {
    free(a->source);
    a->source = text;
    a->dirty = true;
}

void app_forget_source(struct app *a) {
    free(a->source);
    a->source = NULL;
    memset(&a->source_asked, 0, sizeof a->source_asked);
}
