/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_table: the commands behind the colon, a row each; see command.h. A row is a line or two:
 * the words of the help.
 */
#include "tui/core/action_table.h"
#include "tui/core/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_parse.h"
#include "client/export/export.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_export.h"
#include "tui/core/app_history.h"
#include "tui/core/app_job.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/job_state.h"
#include "tui/core/job_time.h"
#include "tui/core/screen.h"
#include "tui/core/targets.h"
#include "tui/core/window.h"
#include "tui/view/rank_text.h"

static void command_help(struct app *app, const char *argument) {
    (void)argument;
    app_input_act(app, ACTION_SHOW_HELP);
}

static void command_quit(struct app *app, const char *argument) {
    (void)argument;
    app_quit(app);
}

/* ---- search and filter, as if typed into their prompts ---- */

static void command_typed(struct app *app, enum action what, const char *text) {
    struct app_screen *s = app_screen_top(app);
    if (!app_screen_can_type(s) || !action_row(what, screen_context(s->def, s->state))) {
        app_refuse(app, "there is nothing to %s here", what == ACTION_FILTER ? "filter" : "search");
        return;
    }
    bool found = app_screen_typed(s, app, what, text, SCREEN_TYPING);
    app_screen_typed(s, app, what, text, SCREEN_ACCEPT);
    if (!found && *text)
        app_refuse(app, "nothing matches '%s'", text);
}

static void command_search(struct app *app, const char *argument) {
    command_typed(app, ACTION_SEARCH, argument);
}

static void command_filter(struct app *app, const char *argument) {
    command_typed(app, ACTION_FILTER, argument);
}

/* ---- :target ---- */

static void command_target(struct app *app, const char *argument) {
    int at = targets_named(app, argument);
    if (at < 0)
        app_refuse(app, "there is no target '%s': p lists them", argument);
    else
        app->host.show_target(app->host.arg, at);
}

static void command_complete_target(struct app *app, struct command_choices *out) {
    for (int i = 0; i < app->targets.n; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i + 1);
        command_offer(out, number, targets_name(app, i));
    }
}

/* ---- :at ---- */

static void command_at(struct app *app, const char *argument) {
    double at_s;
    if (!job_state_is_watched(app))
        app_refuse(app, ":at needs a job whose ranks are watched; , and . step through snapshots");
    else if (!*argument)
        app_set_paused(app, false);
    else if (!time_parse(argument, strlen(argument), app->epoch_s, &at_s))
        app_refuse(app, "'%.40s' is not a time (use one " TIME_PARSE_FORMS ")", argument);
    else
        job_time_go_to(app, at_s);
}

/* ---- :rank ---- */

static void command_rank(struct app *app, const char *argument) {
    char *end;
    long rank = strtol(argument, &end, 10);
    if (!job_state_is_watched(app))
        app_refuse(app, "no job is watched: probing-top job:NAME watches the ranks of one");
    else if (!app->job.shot)
        app_message(app, false, "the ranks are not known yet");
    else if (end == argument || *end || rank < 0 || rank >= RANK_SET_LIMIT)
        app_refuse(app, "'%s' is not a rank: give a number", argument);
    else
        app_job_open(app, (int32_t)rank, true);
}

static void command_complete_rank(struct app *app, struct command_choices *out) {
    const struct job_shot *s = app->job.shot;
    for (size_t i = 0; s && i < s->n_ranks; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)s->ranks[i].rank);
        command_offer(out, number, rank_text_state(&s->ranks[i]));
    }
}

/* ---- :thread ---- */

/* The thread with that number, that whole name, or the only one whose name contains the text. NULL
 * with a message. */
static const struct model_thread *command_find_thread(struct app *app, const char *name) {
    const struct data_shot *shot = data_shown(&app->data);
    const struct model_thread *part = NULL;
    char *end;
    long long tid = strtoll(name, &end, 10);
    size_t parts = 0;
    for (size_t i = 0; shot && i < shot->snapshot.n_threads; i++) {
        const struct model_thread *t = &shot->snapshot.threads[i];
        const char *known = data_thread_name(t);
        if ((!*end && t->tid == tid) || strcmp(known, name) == 0)
            return t;
        if (strcasestr(known, name)) {
            part = t;
            parts++;
        }
    }
    if (parts == 1)
        return part;
    if (parts == 0)
        app_refuse(app, "there is no thread '%s': Tab lists those there are", name);
    else
        app_refuse(app, "%zu threads have '%s' in their names: Tab lists them", parts, name);
    return NULL;
}

static void command_thread(struct app *app, const char *argument) {
    struct screen_pick what = {.tid = 0};
    bool all = strcmp(argument, "all") == 0;
    if (!*argument) {
        app_refuse(app, "which one? :thread TID, :thread NAME, or all");
        return;
    }
    const struct model_thread *t = all ? NULL : command_find_thread(app, argument);
    if (!t && !all)
        return;
    what.tid = t ? t->tid : 0;
    if (!app_screen_top(app)->def->show && !all)
        app_input_act(app, ACTION_SHOW_THREADS);
    struct app_screen *s = app_screen_top(app);
    if (!s->def->show || !s->def->show(s->state, app, &what))
        app_refuse(app, all ? "all threads are shown here" : "thread %s is not among those shown here",
                   argument);
}

static void command_complete_thread(struct app *app, struct command_choices *out) {
    const struct data_shot *shot = data_shown(&app->data);
    const char *word = command_word(out);
    bool by_number = *word >= '0' && *word <= '9';
    for (size_t i = 0; shot && i < shot->snapshot.n_threads; i++) {
        const struct model_thread *t = &shot->snapshot.threads[i];
        char tid[24];
        snprintf(tid, sizeof tid, "%lld", (long long)t->tid);
        command_offer(out, by_number ? tid : data_thread_name(t), "");
    }
    command_offer(out, "all", "Flame and Top: samples of all threads");
}

/* ---- targets ---- */

static void command_attach(struct app *app, const char *argument) {
    char *end;
    errno = 0;
    long pid = strtol(argument, &end, 10);
    if (errno || end == argument || *end || pid <= 0 || (pid_t)pid != pid) {
        app_refuse(app, ":attach takes the pid of a process, not '%s'", argument);
        return;
    }
    if (app->attaching) {
        app_refuse(app, "an attach to %ld is under way", (long)app->attaching);
        return;
    }
    app_message(app, false, "attaching to %ld ...", pid);
    app_attach(app, (pid_t)pid);
}

static void command_diff(struct app *app, const char *argument) {
    enum action_context context = screen_context(app_screen_top(app)->def, app_screen_top(app)->state);
    if (*argument)
        app_diff_command(app, argument);
    else if (action_row(ACTION_DIFF, context))
        app_input_act(app, ACTION_DIFF);
    else
        app_refuse(app,
                   "compare with what? :diff before, a window as in :window, two windows, or a recording");
}

/* ---- files ---- */

static void command_write(struct app *app, const char *name, const char *path) {
    struct err e;
    bool exists;
    const struct export_format *f = export_find(name, &e);
    if (!f)
        app_refuse(app, "%s", e.text);
    else if (!app_export(app, f, path, false, &exists) && exists)
        app_refuse(app, "%s already exists: choose another name", path);
}

static void command_export(struct app *app, const char *argument) {
    char format[32], name[128];
    size_t len = strcspn(argument, " ");
    struct err e;
    const char *path = argument + len + strspn(argument + len, " ");
    snprintf(format, sizeof format, "%.*s", (int)(len < sizeof format ? len : sizeof format - 1), argument);
    const struct export_format *f = *format ? export_find(format, &e) : NULL;
    if (!*format) {
        app_input_act(app, ACTION_SHOW_EXPORT);
        return;
    }
    if (f && !*path) {
        app_export_name(app, f, name, sizeof name);
        path = name;
    }
    command_write(app, format, path);
}

static void command_complete_export(struct app *app, struct command_choices *out) {
    if (command_next_word(out)) /* a file name has no completion */
        return;
    for (const struct export_format *f = export_formats; f->name; f++)
        if (!app_export_why_not(app, f))
            command_offer(out, f->name, f->help);
}

static void command_save_screen(struct app *app, const char *argument) {
    char name[128];
    struct err e;
    const struct export_format *f = export_find("txt", &e);
    app_export_name(app, f, name, sizeof name);
    command_write(app, "txt", *argument ? argument : name);
}

/* ---- settings ---- */

static void command_theme(struct app *app, const char *argument) {
    struct err e;
    if (!*argument)
        app_input_act(app, ACTION_SHOW_THEMES);
    else if (app_settings_set(app, settings_table[SETTINGS_THEME].name, argument, &e) != 0)
        app_refuse(app, "%s", e.text);
}

static void command_complete_theme(struct app *app, struct command_choices *out) {
    app->host.list_themes(app->host.arg); /* at the latest for the next time */
    for (size_t i = 0; i < app->n_themes; i++)
        command_offer(out, app->themes[i], "");
}

static void command_set(struct app *app, const char *argument) {
    char name[64];
    struct err e;
    size_t len = strcspn(argument, "= ");
    const char *value = argument + len + strspn(argument + len, " ");
    snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), argument);
    int key = *name ? settings_find(name, &e) : -1;
    if (!*name)
        app_refuse(app, "which setting? :set NAME=VALUE changes it, :set NAME shows it; Tab lists the names");
    else if (key < 0)
        app_refuse(app, "%s", e.text);
    else if (*value && *value != '=')
        app_refuse(app, ":set %s=VALUE, with a =", name);
    else if (*value && app_settings_set(app, name, value + 1 + strspn(value + 1, " "), &e) != 0)
        app_refuse(app, "%s", e.text);
    else {
        app_settings_sync(app);
        app_message(app, false, "%s=%s%s   %s", name, app->settings.values[key],
                    *value && settings_table[key].at_start ? " (from the next start on, if it is saved)" : "",
                    settings_table[key].help);
    }
}

static void command_complete_set(struct app *app, struct command_choices *out) {
    const char *word = command_word(out), *eq = strchr(word, '=');
    char name[64];
    struct err e;
    (void)app;
    for (int i = 0; !eq && i < SETTINGS_COUNT; i++) {
        snprintf(name, sizeof name, "%s=", settings_table[i].name);
        command_offer(out, name, settings_table[i].help);
    }
    if (!eq)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(eq - word), word);
    int key = settings_find(name, &e);
    if (key < 0)
        return;
    const struct option_def *d = &settings_table[key];
    out->from += (size_t)(eq + 1 - word);
    for (int i = 0; d->choice && d->choice(i); i++)
        command_offer(out, d->choice(i), "");
}

/* ---- :window ---- */

static void command_window(struct app *app, const char *argument) {
    struct err e;
    char text[WINDOW_TEXT];
    if (window_parse(app, argument, &e) != 0) {
        app_refuse(app, "%s", e.text);
        return;
    }
    window_put_text(app, text, sizeof text);
    if (*text && !app->message[0])
        app_message(app, false, "the window is %s", text);
}

static void command_complete_window(struct app *app, struct command_choices *out) {
    static const char *const names[][2] = {{"10s", "the last 10 s"},
                                           {"60s", "the last 60 s"},
                                           {"all", "since counting began"},
                                           {"mark", "since the mark"},
                                           {"30s-10s", "from 30 s ago to 10 s ago; or 22:13:20-22:13:25"}};
    (void)app;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        command_offer(out, names[i][0], names[i][1]);
}

static void command_complete_diff(struct app *app, struct command_choices *out) {
    if (!command_next_word(out)) {
        command_offer(out, "before", "with the time before the window");
        command_offer(out, "off", "comparison off");
    }
    command_complete_window(app, out);
}

/* ---- a debugger in the job ---- */

static void command_debug(struct app *app, const char *argument) {
    app_debug_command(app, &debug_command_debug, argument);
}

static void command_pause_job(struct app *app, const char *argument) {
    app_debug_command(app, &debug_command_pause, argument);
}

static void command_catch(struct app *app, const char *argument) {
    app_debug_command(app, &debug_command_catch, argument);
}

static void command_complete_debug(struct app *app, struct command_choices *out) {
    (void)app;
    app_debug_complete(&debug_command_debug, out);
}

static void command_complete_debuggers(struct app *app, struct command_choices *out) {
    (void)app;
    app_debug_complete(&debug_command_pause, out);
}

#define ANYWHERE ACTION_EVERYWHERE

/* clang-format off */
const struct command_def command_table[] = {
    {"thread", "TID|NAME|all", "go to a thread; in Flame and Top: its samples", ANYWHERE,
     command_thread, command_complete_thread},
    {"window", "10s|FROM-TO", "the window of all screens, as W", ANYWHERE,
     command_window, command_complete_window},
    {"search", "TEXT", "search, as / does", ANYWHERE, command_search, NULL},
    {"filter", "[TEXT]", "show rows that match, as \\; empty: all", ANYWHERE, command_filter, NULL},
    {"set", "NAME[=VALUE]", "change or show a setting", ANYWHERE, command_set, command_complete_set},
    {"theme", "[NAME|FILE]", "change the theme; empty: choose from a list", ANYWHERE, command_theme,
     command_complete_theme},
    {"export", "FORMAT [FILE]", "write the screen's data to a file, as x", ANYWHERE,
     command_export, command_complete_export},
    {"save-screen", "[FILE]", "write the screen to a file, as text", ANYWHERE, command_save_screen, NULL},
    {"target", "NUMBER|PID", "show another target", ANYWHERE, command_target, command_complete_target},
    {"at", "[TIME]", "all ranks as at 22:13, or 10m ago; empty: now", ANYWHERE, command_at, NULL},
    {"rank", "N", "open a rank of the job that is watched", ANYWHERE, command_rank, command_complete_rank},
    {"diff", "[[A] B|FILE]", "compare window A with B (30s-10s), time before, FILE", ANYWHERE,
     command_diff, command_complete_diff},
    {"debug", "[ADDR|--off]", "start debugpy in the job, as B; --path DIR", ANYWHERE, command_debug,
     command_complete_debug},
    {"pause-job", "[ADDR]", "pause the job's threads and serve pdb; --off", ANYWHERE,
     command_pause_job, command_complete_debuggers},
    {"catch", "[ADDR|--off]", "on an uncaught exception, hold the thread for pdb", ANYWHERE, command_catch,
     command_complete_debuggers},
    {"attach", "PID", "attach to another process", ANYWHERE, command_attach, NULL},
    {"help", "", "show all keys and commands", ANYWHERE, command_help, NULL},
    {"q", "", "quit; the job runs on", ANYWHERE, command_quit, NULL},
    {NULL, NULL, NULL, 0, NULL, NULL},
};
/* clang-format on */
