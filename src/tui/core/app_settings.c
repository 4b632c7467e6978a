/* SPDX-License-Identifier: Apache-2.0 */
/* app_settings: see app_settings.h. */
#include "tui/core/app_settings.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_screen.h"

static void app_settings_apply_delay(struct app *a, const char *value) {
    (void)value;
    a->config.delay_s = settings_number(&a->settings, SETTINGS_DELAY);
}

static void app_settings_read_delay(const struct app *a, char *value, size_t cap) {
    option_format(&settings_table[SETTINGS_DELAY], a->config.delay_s, value, cap);
}

static void app_settings_apply_theme_setting(struct app *a, const char *value) {
    (void)value;
    a->host.set_theme(a->host.arg, a->settings.values[SETTINGS_THEME]);
}

static void app_settings_apply_ascii(struct app *a, const char *value) {
    a->config.ascii = strcmp(value, "on") == 0 || (strcmp(value, "auto") == 0 && !a->config.is_utf8);
    app_screen_update_all(a);
}

static void app_settings_apply_mouse(struct app *a, const char *value) {
    a->mouse = strcmp(value, "on") == 0;
    a->host.set_mouse(a->host.arg, a->mouse);
}

static void app_settings_read_mouse(const struct app *a, char *value, size_t cap) {
    snprintf(value, cap, "%s", a->mouse ? "on" : "off");
}

static void app_settings_apply_header(struct app *a, const char *value) {
    a->folded = strcmp(value, "line") == 0;
}

static void app_settings_read_header(const struct app *a, char *value, size_t cap) {
    snprintf(value, cap, "%s", a->folded ? "line" : "full");
}

/* Settings that take effect immediately, or that keys change, too. `read` is NULL if only
 * app_settings_set changes it. */
static const struct {
    void (*apply)(struct app *a, const char *value);
    void (*read)(const struct app *a, char *value, size_t cap);
} app_settings_live[SETTINGS_COUNT] = {
    [SETTINGS_DELAY] = {app_settings_apply_delay, app_settings_read_delay},
    [SETTINGS_THEME] = {app_settings_apply_theme_setting, NULL},
    [SETTINGS_COLOR] = {app_settings_apply_theme_setting, NULL},
    [SETTINGS_ASCII] = {app_settings_apply_ascii, NULL},
    [SETTINGS_MOUSE] = {app_settings_apply_mouse, app_settings_read_mouse},
    [SETTINGS_HEADER] = {app_settings_apply_header, app_settings_read_header},
};

void app_step_delay(struct app *a, int step) {
    static const double delays[] = {SETTINGS_MIN_DELAY_S, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60};
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

static int app_settings_change(struct app *a, enum settings_key key, const char *text, struct err *e) {
    if (settings_put(&a->settings, key, settings_table[key].name, text, SETTINGS_BY_KEY, e) != 0)
        return -1;
    if (app_settings_live[key].apply)
        app_settings_live[key].apply(a, a->settings.values[key]);
    a->dirty = true;
    return 0;
}

int app_settings_set(struct app *a, const char *name, const char *text, struct err *e) {
    int key = settings_find(name, e);
    return key < 0 ? -1 : app_settings_change(a, (enum settings_key)key, text, e);
}

static bool app_settings_step_choice(struct app *a, enum settings_key key, int step) {
    const struct option_def *d = &settings_table[key];
    int n = 0, at = 0;
    const char *word;
    for (; (word = d->choice(n)); n++)
        if (strcmp(word, a->settings.values[key]) == 0)
            at = n;
    return app_settings_change(a, key, d->choice((at + step + n) % n), NULL) == 0;
}

bool app_settings_step(struct app *a, enum settings_key key, int step) {
    if (settings_table[key].kind == OPTION_CHOICE)
        return app_settings_step_choice(a, key, step);
    if (settings_table[key].kind != OPTION_DELAY)
        return false;
    app_step_delay(a, step);
    app_settings_sync(a);
    return true;
}

/* Read the values that the app has now; those that differ get this origin. */
static void app_settings_read_back(struct app *a, enum settings_origin origin) {
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        char now[SETTINGS_TEXT];
        if (!app_settings_live[i].read)
            continue;
        app_settings_live[i].read(a, now, sizeof now);
        if (strcmp(now, a->settings.values[i]) == 0)
            continue;
        memcpy(a->settings.values[i], now, sizeof now);
        a->settings.origins[i] = origin;
    }
}

void app_settings_sync(struct app *a) { app_settings_read_back(a, SETTINGS_BY_KEY); }

void app_settings_begin(struct app *a, const struct settings *s) {
    if (!s) {
        settings_init(&a->settings);
        app_settings_read_back(a, SETTINGS_BY_DEFAULT);
        if (a->config.sample_hz <= 0)
            a->config.sample_hz = settings_number(&a->settings, SETTINGS_RATE);
        return;
    }
    a->settings = *s;
    a->config.delay_s = settings_number(s, SETTINGS_DELAY);
    a->config.sample_hz = settings_number(s, SETTINGS_RATE);
    a->config.ascii = strcmp(s->values[SETTINGS_ASCII], "on") == 0 ||
                      (strcmp(s->values[SETTINGS_ASCII], "auto") == 0 && !a->config.is_utf8);
    a->config.mouse = a->mouse = settings_is_on(s, SETTINGS_MOUSE);
    a->config.filter = s->values[SETTINGS_FILTER][0] ? s->values[SETTINGS_FILTER] : NULL;
    a->config.hide_idle = settings_is_on(s, SETTINGS_HIDE_IDLE);
    a->folded = strcmp(s->values[SETTINGS_HEADER], "line") == 0;
}
