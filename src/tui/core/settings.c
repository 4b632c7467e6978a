/* SPDX-License-Identifier: Apache-2.0 */
/* settings: see settings.h. */
#include "tui/core/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/text.h"
#include "tui/core/screen.h"
#include "wire/wire.h"

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

/* The tabs; other screens are opened from one of these. */
static const char *settings_screen(int i) {
    const struct screen_def *tab = screen_tab(i);
    return tab ? tab->name : NULL;
}

static const char *settings_switch(int i) {
    static const char *const words[] = {"on", "off", NULL};
    return words[i];
}

static bool settings_is_theme(const char *text) { return *text != '\0'; }

static bool settings_is_budget(const char *text) {
    double pct;
    return !*text || option_read(&config_defs[CONFIG_BUDGET], "", text, &pct, NULL) == 0;
}

/* ---- the table ---- */

const struct option_def settings_table[] = {
    [SETTINGS_DELAY] = {.name = "delay",
                        .kind = OPTION_DELAY,
                        .default_value = "250ms",
                        .takes = "tenths of a second, or 250ms, 2s, ...; 33ms to 60s",
                        .help = "time between two snapshots",
                        .min = SETTINGS_MIN_DELAY_S,
                        .max = SETTINGS_MAX_DELAY_S,
                        .takes_long = "tenths of a second, or a time such as 250ms or 2s, from 33ms to 60s"},
    [SETTINGS_THEME] = {.name = "theme",
                        .kind = OPTION_TEXT,
                        .default_value = "auto",
                        .takes = "auto, a name, or a file with a / in its name",
                        .help = "colours of the screens; auto: by the background",
                        .takes_long = "auto, the name of a theme or a file",
                        .check = settings_is_theme},
    [SETTINGS_COLOR] = {.name = "color",
                        .kind = OPTION_CHOICE,
                        .default_value = "auto",
                        .takes = "auto, always, never, 16 or 256",
                        .help = "how many colours; auto: by the terminal and NO_COLOR",
                        .choice = settings_color},
    [SETTINGS_ASCII] = {.name = "ascii",
                        .kind = OPTION_CHOICE,
                        .default_value = "auto",
                        .takes = "auto, on or off",
                        .help = "ASCII only; auto: on the Linux console or without UTF-8",
                        .choice = settings_ascii},
    [SETTINGS_MOUSE] = {.name = "mouse",
                        .kind = OPTION_CHOICE,
                        .choice = settings_switch,
                        .default_value = "on",
                        .takes = "on or off",
                        .help = "use the mouse; off: the terminal selects text"},
    [SETTINGS_SCREEN] = {.name = "screen",
                         .kind = OPTION_CHOICE,
                         .default_value = "overview",
                         .takes = "the name of a screen",
                         .help = "the first screen",
                         .choice = settings_screen,
                         .at_start = true},
    [SETTINGS_FILTER] = {.name = "filter",
                         .kind = OPTION_TEXT,
                         .default_value = "",
                         .takes = "what F4 takes, or nothing",
                         .help = "show only rows that match at the start",
                         .at_start = true},
    [SETTINGS_HIDE_IDLE] = {.name = "hide-idle",
                            .kind = OPTION_CHOICE,
                            .choice = settings_switch,
                            .default_value = "off",
                            .takes = "on or off",
                            .help = "hide idle threads at the start",
                            .at_start = true},
    [SETTINGS_HEADER] = {.name = "header",
                         .kind = OPTION_CHOICE,
                         .default_value = "full",
                         .takes = "full or line",
                         .help = "the full header, or one line of it",
                         .choice = settings_header},
    [SETTINGS_GENTLE] = {.name = "gentle",
                         .kind = OPTION_CHOICE,
                         .choice = settings_switch,
                         .default_value = "off",
                         .takes = "on or off",
                         .help = "send no signals: stacks of running threads may be torn",
                         .at_start = true},
    [SETTINGS_BUDGET] = {.name = "budget",
                         .kind = OPTION_TEXT,
                         .default_value = "",
                         .takes = "percent of a core, or empty for the default",
                         .help = "limit of the overhead",
                         .at_start = true,
                         .takes_long = "percent of a core, such as 0.5, or empty for the default",
                         .check = settings_is_budget},
    [SETTINGS_RATE] = {.name = "rate",
                       .kind = OPTION_RATE,
                       .default_value = "100",
                       .takes = "Hz, from 0.1 to 1000",
                       .help = "samples of each thread a second, of Flame, Top, Timeline",
                       .min = WIRE_MIN_HZ,
                       .max = WIRE_MAX_SAMPLE_HZ,
                       .unit = "Hz",
                       .at_start = true,
                       .takes_long = "a number from 0.1 to 1000 (Hz)"},
    [SETTINGS_READONLY] = {.name = "readonly",
                           .kind = OPTION_CHOICE,
                           .choice = settings_switch,
                           .default_value = "off",
                           .takes = "on or off",
                           .help = "change nothing in a target and load no agent",
                           .at_start = true},
};
_Static_assert(sizeof settings_table / sizeof settings_table[0] == SETTINGS_COUNT, "a setting has no row");

/* ---- values ---- */

void settings_init(struct settings *s) {
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        snprintf(s->values[i], SETTINGS_TEXT, "%s", settings_table[i].default_value);
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

int settings_put(struct settings *s, enum settings_key key, const char *name, const char *text,
                 enum settings_origin origin, struct err *e) {
    const struct option_def *d = &settings_table[key];
    char value[SETTINGS_TEXT], clean[SETTINGS_TEXT];
    double number;
    text_sanitize(clean, sizeof clean, text);
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len && strchr(" \t", text[len - 1]))
        len--;
    if (len >= sizeof value)
        return err_set(e, ERR_USAGE, "%s: too long", name);
    memset(value, 0, sizeof value);
    memcpy(value, text, len);
    if (d->kind != OPTION_CHOICE && strpbrk(value, "\r\n"))
        return err_set(e, ERR_USAGE, "%s takes one line", name);
    if (option_read(d, name, value, &number, NULL) != 0)
        return option_refuse(d, name, clean, e);
    if (d->kind == OPTION_DELAY || option_is_number(d))
        option_format(d, number, value, sizeof value);
    memcpy(s->values[key], value, sizeof value);
    s->origins[key] = origin;
    return 0;
}

bool settings_is_on(const struct settings *s, enum settings_key key) {
    return strcmp(s->values[key], "on") == 0;
}

double settings_number(const struct settings *s, enum settings_key key) {
    double number = 0;
    option_read(&settings_table[key], "", s->values[key], &number, NULL);
    return number;
}

const char *settings_origin_name(enum settings_origin origin) {
    static const char *const names[] = {[SETTINGS_BY_DEFAULT] = "default",
                                        [SETTINGS_BY_FILE] = "file",
                                        [SETTINGS_BY_COMMAND_LINE] = "command line",
                                        [SETTINGS_BY_KEY] = "changed, not saved"};
    return names[origin];
}
