/* SPDX-License-Identifier: Apache-2.0 */
/* host_theme: see host_theme.h. */
#include "tui/host/host_theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "tui/core/app.h"
#include "tui/core/app_take.h"
#include "tui/core/config_file.h"
#include "tui/model/log.h"

#define HOST_THEME_WARNINGS ((size_t)64 * 1024)
/* A file was written and closed, or replaced another one. */
#define HOST_THEME_EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO)

/* ---- watching ---- */

static void host_theme_unwatch(struct host_theme *l) {
    for (size_t i = 0; i < THEME_MAX_FILES; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= l->wd[k] == l->wd[i];
        if (l->wd[i] >= 0 && !again)
            inotify_rm_watch(l->inotify, l->wd[i]);
    }
    for (size_t i = 0; i < THEME_MAX_FILES; i++)
        l->wd[i] = -1;
}

/* Watch the folders of the files, because editors replace a file by a new one. */
static void host_theme_watch(struct host_theme *l) {
    host_theme_unwatch(l);
    for (size_t i = 0; l->inotify >= 0 && i < l->files.n; i++) {
        char folder[THEME_MAX_FILE_NAME];
        const char *slash = strrchr(l->files.paths[i], '/');
        int len = slash ? (int)(slash - l->files.paths[i]) : 0;
        snprintf(folder, sizeof folder, "%.*s", len, l->files.paths[i]);
        l->wd[i] = inotify_add_watch(l->inotify, slash ? (len ? folder : "/") : ".", HOST_THEME_EVENTS);
    }
}

static bool host_theme_is_ours(const struct host_theme *l, const struct inotify_event *e) {
    for (size_t i = 0; i < l->files.n; i++) {
        const char *slash = strrchr(l->files.paths[i], '/');
        if (l->wd[i] == e->wd && e->len && strcmp(e->name, slash ? slash + 1 : l->files.paths[i]) == 0)
            return true;
    }
    return false;
}

static void host_theme_on_event(void *arg) {
    struct host_theme *l = arg;
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool ours = false;
    ssize_t n;
    while ((n = read(l->inotify, buf, sizeof buf)) > 0)
        for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)(buf + at);
            ours |= host_theme_is_ours(l, e);
            at += (ssize_t)sizeof *e + (ssize_t)e->len;
        }
    if (ours)
        host_theme_reload(l);
}

/* ---- loading ---- */

static void host_theme_show(struct host_theme *l) {
    if (*l->term)
        term_set_theme(*l->term, &l->theme, l->app->settings.values[SETTINGS_COLOR]);
    l->app->dirty = true;
}

struct term *host_theme_open(const struct host_theme *l, const struct term_config *config, struct err *e) {
    struct term_config own = *config;
    own.theme = &l->theme;
    own.color = l->app->settings.values[SETTINGS_COLOR];
    return term_open(&own, e);
}

static void host_theme_log(struct host_theme *l, const char *warnings) {
    while (*warnings) {
        int len = (int)strcspn(warnings, "\n");
        log_add(l->app->log, l->app->epoch_s, LOG_LEVEL_WARN, "%.*s", len, warnings);
        warnings += len + (warnings[len] == '\n');
    }
}

/* Report mistakes in the files, at the start and when they are read again: the first in the message
 * line, all in the log. */
static void host_theme_warn(struct host_theme *l, const char *warnings) {
    size_t first = strcspn(warnings, "\n");
    bool more = warnings[first] && warnings[first + 1];
    if (!*warnings)
        return;
    app_message(l->app, false, "%.*s%s", (int)first, warnings, more ? " (and more: see the log)" : "");
    host_theme_log(l, warnings);
}

static bool host_theme_is_auto(const char *name) { return strcmp(name, THEME_AUTO) == 0; }

/* The theme that the name stands for. */
static const char *host_theme_resolve(const struct host_theme *l, const char *name) {
    return host_theme_is_auto(name) ? theme_auto_name(l->background) : name;
}

void host_theme_ask(struct host_theme *l) {
    if (*l->term && host_theme_is_auto(l->name) && l->background == THEME_BACKGROUND_UNKNOWN)
        term_ask_background(*l->term);
}

void host_theme_take_background(struct host_theme *l, const char *color) {
    enum theme_background background = theme_background_by_color(color);
    bool changes = strcmp(theme_auto_name(background), theme_auto_name(l->background)) != 0;
    l->background = background;
    if (changes && host_theme_is_auto(l->name))
        host_theme_load(l, l->name);
}

void host_theme_load(struct host_theme *l, const char *name) {
    struct theme_files files = {.n = 0};
    struct theme_path path = l->path;
    struct theme made;
    struct strbuf warnings;
    struct err e = {0};
    path.files = &files;
    strbuf_init(&warnings, HOST_THEME_WARNINGS);
    int rc = theme_load(&made, host_theme_resolve(l, name), &path, &warnings, &e);
    if (rc != 0 && host_theme_is_auto(name)) { /* files may be missing; "default" is compiled in */
        theme_init_default(&made);
        rc = 0;
    }
    if (rc == 0) {
        l->theme = made;
        l->files = files;
        if (name != l->name)
            snprintf(l->name, sizeof l->name, "%s", name);
        host_theme_ask(l);
        host_theme_watch(l);
        host_theme_warn(l, strbuf_str(&warnings));
        host_theme_show(l);
    } else {
        app_message(l->app, true, "%s", e.text);
        if (name != l->name && strcmp(name, l->app->settings.values[SETTINGS_THEME]) == 0) {
            theme_init_default(&l->theme); /* as at the start */
            host_theme_show(l);
        }
    }
    strbuf_fini(&warnings);
}

void host_theme_reload(struct host_theme *l) {
    if (*l->name)
        host_theme_load(l, l->name);
    l->changed(l->arg);
}

void host_theme_begin(struct host_theme *l, const struct term_config *term, const struct theme_path *path,
                      const char *warnings) {
    struct theme_path found = path ? *path : (struct theme_path){.dirs = {NULL}};
    struct theme made;
    struct err e;
    l->theme = *term->theme;
    l->path = found;
    l->inotify = path ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
    for (size_t i = 0; i < THEME_MAX_FILES; i++)
        l->wd[i] = -1;
    l->watch = l->inotify >= 0 ? loop_watch_fd(l->loop, l->inotify, host_theme_on_event, l, &e) : NULL;
    snprintf(l->name, sizeof l->name, "%s", l->app->settings.values[SETTINGS_THEME]);
    l->background = theme_background_by_env(getenv("COLORFGBG"));
    /* Which files to watch. */
    found.files = &l->files;
    if (path && theme_load(&made, host_theme_resolve(l, l->name), &found, NULL, &e) == 0)
        host_theme_watch(l);
    if (warnings)
        host_theme_warn(l, warnings);
}

void host_theme_end(struct host_theme *l) {
    loop_unwatch(l->watch);
    l->watch = NULL;
    if (l->inotify >= 0)
        close(l->inotify);
    l->inotify = -1;
}

/* ---- what the app asks for ---- */

void host_theme_list(struct host_theme *l) {
    char names[APP_MAX_THEMES][THEME_MAX_NAME];
    app_take_themes(l->app, names, theme_list(&l->path, names, APP_MAX_THEMES));
}

void host_theme_save_settings(struct host_theme *l) {
    struct app *a = l->app;
    struct err e;
    const char *path = a->config.config_path ? a->config.config_path : "";
    int changed = 0;
    for (int i = 0; i < SETTINGS_COUNT; i++)
        changed += a->settings.origins[i] == SETTINGS_BY_KEY;
    if (changed == 0)
        app_message(a, false, "no setting was changed: nothing to save");
    else if (config_file_save(&a->settings, path, &e) != 0)
        app_message(a, true, "%s", e.text);
    else
        app_message(a, false, "%d setting%s saved to %s", changed, changed == 1 ? "" : "s", path);
}
