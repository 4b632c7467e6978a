/* SPDX-License-Identifier: Apache-2.0 */
/* startup: see startup.h. */
#include "tui/startup.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STARTUP_WARNINGS ((size_t)64 * 1024)

/* Where themes are: the user's, those beside this program, the installed ones. */
static void startup_find_themes(struct startup *s) {
    char exe[PATH_MAX], folder[CONFIG_FILE_PATH - 16];
    size_t n = 0;
    if (config_file_folder(folder, sizeof folder)) {
        snprintf(s->themes_user, sizeof s->themes_user, "%s/themes", folder);
        s->theme_path.dirs[n++] = s->themes_user;
    }
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (len > 0) {
        exe[len] = '\0';
        const char *dir = dirname(exe);
        snprintf(s->themes_beside, sizeof s->themes_beside, "%.*s/themes", CONFIG_FILE_PATH - 32, dir);
        snprintf(s->themes_above, sizeof s->themes_above, "%.*s/../themes", CONFIG_FILE_PATH - 32, dir);
        snprintf(s->themes_installed, sizeof s->themes_installed, "%.*s/../lib/probing/themes",
                 CONFIG_FILE_PATH - 32, dir);
        s->theme_path.dirs[n++] = s->themes_beside;
        s->theme_path.dirs[n++] = s->themes_above;
        s->theme_path.dirs[n++] = s->themes_installed;
    }
    s->theme_path.dirs[n] = PROBING_DATADIR "/themes";
}

/* Settings that the command line has, in the order of its rows. */
static int startup_take_options(struct startup *s, const struct main_options *o, struct err *e) {
    for (const struct option_def *d = main_table; d->name; d++) {
        const void *field = (const char *)o + d->offset;
        const char *text = !d->setting              ? NULL
                           : d->kind == OPTION_FLAG ? *(const bool *)field ? d->value : NULL
                                                    : *(const char *const *)field;
        char name[64];
        int key = text ? settings_find(d->setting, e) : 0;
        snprintf(name, sizeof name, "--%s", d->name);
        if (text && (key < 0 || settings_put(&s->settings, (enum settings_key)key, name, text,
                                             SETTINGS_BY_COMMAND_LINE, e) != 0))
            return -1;
    }
    return 0;
}

int startup_read(struct startup *s, const struct main_options *o, struct err *e) {
    memset(s, 0, sizeof *s);
    strbuf_init(&s->warnings, STARTUP_WARNINGS);
    settings_init(&s->settings);
    theme_init_default(&s->theme);
    startup_find_themes(s);
    if (config_file_path(s->config_path, sizeof s->config_path))
        config_file_read(&s->settings, s->config_path, &s->warnings);
    return startup_take_options(s, o, e);
}

void startup_fini(struct startup *s) { strbuf_fini(&s->warnings); }

int startup_load_theme(struct startup *s, struct err *e) {
    struct err why = {0};
    const char *name = s->settings.values[SETTINGS_THEME];
    bool is_auto = strcmp(name, THEME_AUTO) == 0;
    if (is_auto)
        name = theme_auto_name(theme_background_by_env(getenv("COLORFGBG")));
    if (theme_load(&s->theme, name, &s->theme_path, &s->warnings, &why) == 0)
        return 0;
    if (is_auto) /* the others are files, which may be missing */
        return 0;
    if (s->settings.origins[SETTINGS_THEME] == SETTINGS_BY_COMMAND_LINE)
        return err_set(e, why.code, "%s", why.text);
    strbuf_addf(&s->warnings, "%s: theme: %s\n", s->config_path, why.text);
    return 0;
}

size_t startup_list_themes(char names[][THEME_MAX_NAME], size_t max) {
    struct startup s = {.config_path = ""};
    startup_find_themes(&s);
    return theme_list(&s.theme_path, names, max);
}

void startup_put_themes(struct strbuf *out) {
    char names[STARTUP_MAX_THEMES][THEME_MAX_NAME];
    size_t n = startup_list_themes(names, STARTUP_MAX_THEMES), cols = 0;
    for (size_t i = 0; i < n; i++) {
        cols = cols + strlen(names[i]) + 1 > 78 ? 0 : cols;
        strbuf_addf(out, "%s%s", cols ? " " : i ? "\n  " : "  ", names[i]);
        cols += strlen(names[i]) + 1;
    }
    strbuf_addc(out, '\n');
}
