/* SPDX-License-Identifier: Apache-2.0 */
/* settings: see settings.h. */
#include "tui/core/settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/option.h"
#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app.h"

/* ---- what some take ---- */

static const char *settings_color(int i) {
    static const char *const words[] = {"auto", "always", "never", "16", "256", NULL};
    return words[i];
}

static const char *settings_ascii(int i) {
    static const char *const words[] = {"auto", "on", "off", NULL};
    return words[i];
}

static const char *settings_header(int i) {
    static const char *const words[] = {"full", "line", NULL};
    return words[i];
}

/* Screens that stand side by side; those over them are opened from one of these. */
static const char *settings_screen(int i) {
    if (i == 0)
        return screen_threads.name;
    const struct screen_def *tab;
    for (int k = 0; (tab = screen_tab(k)); k++)
        if (tab != &screen_threads && --i == 0)
            return tab->name;
    return NULL;
}

static double settings_parse_time(const char *text) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    double unit = !*end ? 0.1 : strcmp(end, "ms") == 0 ? 0.001 : strcmp(end, "s") == 0 ? 1 : 0;
    return end == text || errno || unit == 0 || !isfinite(v) ? NAN : v * unit;
}

static void settings_format_time(char *text, size_t cap, double s) {
    if (s < 0.9995)
        (void)snprintf(text, cap, "%.4gms", s * 1000);
    else
        (void)snprintf(text, cap, "%.4gs", s);
}

static int settings_check_delay(char *text, size_t cap, struct err *e) {
    double s = settings_parse_time(text);
    if (!(s >= APP_MIN_DELAY_S && s <= APP_MAX_DELAY_S))
        return err_set(e, ERR_USAGE,
                       "takes tenths of a second, or a time such as 250ms or 2s, from 33ms to 60s");
    settings_format_time(text, cap, s);
    return 0;
}

static int settings_check_theme(char *text, size_t cap, struct err *e) {
    (void)cap;
    return *text ? 0 : err_set(e, ERR_USAGE, "takes the name of a theme or a file");
}

static int settings_check_budget(char *text, size_t cap, struct err *e) {
    struct config wish;
    (void)cap;
    config_init(&wish);
    if (*text && config_set(&wish, CONFIG_BUDGET, "it", text, NULL) != 0)
        return err_set(e, ERR_USAGE, "takes percent of a core, such as 0.5, or nothing for the usual");
    return 0;
}

/* ---- what they do ---- */

static void settings_apply_delay(struct app *a, const char *value) {
    a->config.delay_s = settings_parse_time(value);
    a->requests.rate = true;
}

static void settings_read_delay(const struct app *a, char *value, size_t cap) {
    settings_format_time(value, cap, a->config.delay_s);
}

static void settings_apply_theme_setting(struct app *a, const char *value) {
    (void)value;
    (void)snprintf(a->requests.theme, sizeof a->requests.theme, "%s", a->settings.values[SETTINGS_THEME]);
}

static void settings_apply_ascii(struct app *a, const char *value) {
    a->config.ascii = strcmp(value, "on") == 0 || (strcmp(value, "auto") == 0 && !a->config.is_utf8);
    app_update_screens(a);
}

static void settings_apply_mouse(struct app *a, const char *value) {
    a->mouse = strcmp(value, "on") == 0;
    a->requests.toggle_mouse = true;
}

static void settings_read_mouse(const struct app *a, char *value, size_t cap) {
    (void)snprintf(value, cap, "%s", a->mouse ? "on" : "off");
}

static void settings_apply_header(struct app *a, const char *value) {
    a->folded = strcmp(value, "line") == 0;
}

static void settings_read_header(const struct app *a, char *value, size_t cap) {
    (void)snprintf(value, cap, "%s", a->folded ? "line" : "full");
}

/* ---- the table ---- */

const struct settings_def settings_table[] = {
    [SETTINGS_DELAY] = {.name = "delay",
                        .type = SETTINGS_TIME,
                        .default_value = "250ms",
                        .takes = "tenths of a second, or 250ms, 2s, ...; 33ms to 60s",
                        .help = "time between two snapshots",
                        .check = settings_check_delay,
                        .apply = settings_apply_delay,
                        .read = settings_read_delay},
    [SETTINGS_THEME] = {.name = "theme",
                        .type = SETTINGS_TEXTUAL,
                        .default_value = "default",
                        .takes = "a name, or a file with a / in its name",
                        .help = "colours of the screens",
                        .check = settings_check_theme,
                        .apply = settings_apply_theme_setting},
    [SETTINGS_COLOR] = {.name = "color",
                        .type = SETTINGS_CHOICE,
                        .default_value = "auto",
                        .takes = "auto, always, never, 16 or 256",
                        .help = "how many colours; auto: by the terminal and NO_COLOR",
                        .choice = settings_color,
                        .apply = settings_apply_theme_setting},
    [SETTINGS_ASCII] = {.name = "ascii",
                        .type = SETTINGS_CHOICE,
                        .default_value = "auto",
                        .takes = "auto, on or off",
                        .help = "draw with ASCII only; auto: unless the locale is UTF-8",
                        .choice = settings_ascii,
                        .apply = settings_apply_ascii},
    [SETTINGS_MOUSE] = {.name = "mouse",
                        .type = SETTINGS_SWITCH,
                        .default_value = "on",
                        .takes = "on or off",
                        .help = "use the mouse; off: the terminal selects text",
                        .apply = settings_apply_mouse,
                        .read = settings_read_mouse},
    [SETTINGS_SCREEN] = {.name = "screen",
                         .type = SETTINGS_CHOICE,
                         .default_value = "threads",
                         .takes = "the name of a screen",
                         .help = "the screen to begin with",
                         .choice = settings_screen,
                         .at_start = true},
    [SETTINGS_FILTER] = {.name = "filter",
                         .type = SETTINGS_TEXTUAL,
                         .default_value = "",
                         .takes = "what F4 takes, or nothing",
                         .help = "show only rows that match, to begin with",
                         .at_start = true},
    [SETTINGS_HIDE_IDLE] = {.name = "hide-idle",
                            .type = SETTINGS_SWITCH,
                            .default_value = "off",
                            .takes = "on or off",
                            .help = "hide threads that did not run lately, to begin with",
                            .at_start = true},
    [SETTINGS_HEADER] = {.name = "header",
                         .type = SETTINGS_CHOICE,
                         .default_value = "full",
                         .takes = "full or line",
                         .help = "all of the header, or one line of it",
                         .choice = settings_header,
                         .apply = settings_apply_header,
                         .read = settings_read_header},
    [SETTINGS_GENTLE] = {.name = "gentle",
                         .type = SETTINGS_SWITCH,
                         .default_value = "off",
                         .takes = "on or off",
                         .help = "send no signals: stacks of running threads may be torn",
                         .at_start = true},
    [SETTINGS_BUDGET] = {.name = "budget",
                         .type = SETTINGS_TEXTUAL,
                         .default_value = "",
                         .takes = "percent of a core, or nothing for the usual",
                         .help = "what looking may cost the machine",
                         .at_start = true,
                         .check = settings_check_budget},
    [SETTINGS_READONLY] = {.name = "readonly",
                           .type = SETTINGS_SWITCH,
                           .default_value = "off",
                           .takes = "on or off",
                           .help = "change nothing in a target: no agent goes into it",
                           .at_start = true},
};
_Static_assert(sizeof settings_table / sizeof settings_table[0] == SETTINGS_COUNT, "a setting has no row");

/* ---- values ---- */

void settings_init(struct settings *s) {
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        (void)snprintf(s->values[i], SETTINGS_TEXT, "%s", settings_table[i].default_value);
}

int settings_find(const char *name, struct err *e) {
    const char *names[SETTINGS_COUNT + 1] = {NULL};
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        names[i] = settings_table[i].name;
        if (strcmp(names[i], name) == 0)
            return i;
    }
    const char *near = option_suggest(name, names);
    if (near)
        return err_set(e, ERR_USAGE, "there is no setting '%s': did you mean %s?", name, near);
    return err_set(e, ERR_USAGE, "there is no setting '%s': --print-config lists them", name);
}

static bool settings_is_choice(const struct settings_def *d, const char *text) {
    const char *word;
    for (int i = 0; (word = d->choice(i)); i++)
        if (strcmp(word, text) == 0)
            return true;
    return false;
}

int settings_put(struct settings *s, enum settings_key key, const char *name, const char *text,
                 enum settings_origin origin, struct err *e) {
    const struct settings_def *d = &settings_table[key];
    char value[SETTINGS_TEXT], clean[SETTINGS_TEXT];
    struct err why = {0};
    (void)text_sanitize(clean, sizeof clean, text);
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len && strchr(" \t", text[len - 1]))
        len--;
    if (len >= sizeof value)
        return err_set(e, ERR_USAGE, "%s: too long", name);
    memset(value, 0, sizeof value);
    memcpy(value, text, len);
    bool bad_choice = d->type == SETTINGS_CHOICE && !settings_is_choice(d, value);
    bool bad_switch = d->type == SETTINGS_SWITCH && strcmp(value, "on") != 0 && strcmp(value, "off") != 0;
    if (bad_choice || bad_switch)
        return err_set(e, ERR_USAGE, "%s takes %s, not '%s'", name, d->takes, clean);
    if (strpbrk(value, "\r\n"))
        return err_set(e, ERR_USAGE, "%s takes one line", name);
    if (d->check && d->check(value, sizeof value, &why) != 0)
        return err_set(e, ERR_USAGE, "%s %s, not '%s'", name, why.text, clean);
    memcpy(s->values[key], value, sizeof value);
    s->origins[key] = origin;
    return 0;
}

bool settings_is_on(const struct settings *s, enum settings_key key) {
    return strcmp(s->values[key], "on") == 0;
}

double settings_seconds(const struct settings *s, enum settings_key key) {
    return settings_parse_time(s->values[key]);
}

const char *settings_origin_name(enum settings_origin origin) {
    static const char *const names[] = {[SETTINGS_BY_DEFAULT] = "default",
                                        [SETTINGS_BY_FILE] = "file",
                                        [SETTINGS_BY_COMMAND_LINE] = "command line",
                                        [SETTINGS_BY_KEY] = "changed, not saved"};
    return names[origin];
}

/* ---- in a running app ---- */

static int settings_change(struct app *a, enum settings_key key, const char *text, struct err *e) {
    const struct settings_def *d = &settings_table[key];
    if (settings_put(&a->settings, key, d->name, text, SETTINGS_BY_KEY, e) != 0)
        return -1;
    if (d->apply)
        d->apply(a, a->settings.values[key]);
    a->dirty = true;
    return 0;
}

int settings_set(struct app *a, const char *name, const char *text, struct err *e) {
    int key = settings_find(name, e);
    return key < 0 ? -1 : settings_change(a, (enum settings_key)key, text, e);
}

static bool settings_step_choice(struct app *a, enum settings_key key, int step) {
    const struct settings_def *d = &settings_table[key];
    int n = 0, at = 0;
    const char *word;
    for (; (word = d->choice(n)); n++)
        if (strcmp(word, a->settings.values[key]) == 0)
            at = n;
    return settings_change(a, key, d->choice((at + step + n) % n), NULL) == 0;
}

bool settings_step(struct app *a, enum settings_key key, int step) {
    switch (settings_table[key].type) {
    case SETTINGS_TIME:
        app_step_delay(a, step);
        settings_sync(a);
        return true;
    case SETTINGS_SWITCH:
        return settings_change(a, key, settings_is_on(&a->settings, key) ? "off" : "on", NULL) == 0;
    case SETTINGS_CHOICE:
        return settings_step_choice(a, key, step);
    case SETTINGS_TEXTUAL:
        break;
    }
    return false;
}

/* Values as the app has them now; those that differ have this origin. */
static void settings_read_back(struct app *a, enum settings_origin origin) {
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        char now[SETTINGS_TEXT];
        if (!settings_table[i].read)
            continue;
        settings_table[i].read(a, now, sizeof now);
        if (strcmp(now, a->settings.values[i]) == 0)
            continue;
        memcpy(a->settings.values[i], now, sizeof now);
        a->settings.origins[i] = origin;
    }
}

void settings_sync(struct app *a) { settings_read_back(a, SETTINGS_BY_KEY); }

void settings_begin(struct app *a, const struct settings *s) {
    if (!s) {
        settings_init(&a->settings);
        settings_read_back(a, SETTINGS_BY_DEFAULT);
        return;
    }
    a->settings = *s;
    a->config.delay_s = settings_seconds(s, SETTINGS_DELAY);
    a->config.ascii = strcmp(s->values[SETTINGS_ASCII], "on") == 0 ||
                      (strcmp(s->values[SETTINGS_ASCII], "auto") == 0 && !a->config.is_utf8);
    a->config.mouse = a->mouse = settings_is_on(s, SETTINGS_MOUSE);
    a->config.filter = s->values[SETTINGS_FILTER][0] ? s->values[SETTINGS_FILTER] : NULL;
    a->config.hide_idle = settings_is_on(s, SETTINGS_HIDE_IDLE);
    a->folded = strcmp(s->values[SETTINGS_HEADER], "line") == 0;
}

void settings_open_screen(struct app *a) {
    const struct screen_def *tab;
    for (int i = 0; (tab = screen_tab(i)); i++)
        if (strcmp(tab->name, a->settings.values[SETTINGS_SCREEN]) == 0)
            app_act(a, tab->opens[0].action);
}
