/* SPDX-License-Identifier: Apache-2.0 */
/*
 * theme_color: fits true colour to terminals with 256, 16, 8 or no colours.
 *
 * What a role leaves to the default is taken from the role text, so a theme sets its own background
 * by giving text one. xterm's palette: 16 named colours, a 6x6x6 cube with the levels below, 24
 * greys from 8 in steps of 10. Decides also whether a background is light. Pure functions.
 */
#include "tui/theme/theme.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t theme_xterm16[16] = {
    0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
    0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
};
static const int theme_cube[6] = {0, 95, 135, 175, 215, 255};

uint32_t theme_color_rgb(int index) {
    if (index < 16)
        return theme_xterm16[index < 0 ? 0 : index];
    if (index >= 232) {
        uint32_t grey = 8 + 10 * (uint32_t)(index - 232);
        return grey << 16 | grey << 8 | grey;
    }
    int i = index - 16;
    return (uint32_t)theme_cube[i / 36] << 16 | (uint32_t)theme_cube[i / 6 % 6] << 8 |
           (uint32_t)theme_cube[i % 6];
}

/* Squared distance, weighted roughly as the eye does. */
static int theme_distance(uint32_t a, uint32_t b) {
    int r = (int)(a >> 16 & 255) - (int)(b >> 16 & 255);
    int g = (int)(a >> 8 & 255) - (int)(b >> 8 & 255);
    int l = (int)(a & 255) - (int)(b & 255);
    return 3 * r * r + 4 * g * g + 2 * l * l;
}

static int theme_nearest(uint32_t rgb, int first, int last) {
    int best = first, best_distance = theme_distance(rgb, theme_color_rgb(first));
    for (int i = first + 1; i <= last; i++) {
        int d = theme_distance(rgb, theme_color_rgb(i));
        if (d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return best;
}

int theme_color_to_256(uint32_t rgb) { return theme_nearest(rgb, 16, 255); }

int theme_color_to_16(uint32_t rgb) { return theme_nearest(rgb, 0, 15); }

/* The style of a role; its defaults come from the role text. */
static struct theme_style theme_style_of(const struct theme *t, enum theme_role role,
                                         enum theme_depth depth) {
    bool few = depth < THEME_256;
    struct theme_style s = few && t->has16[role] ? t->color16[role] : t->color[role];
    struct theme_style text = few && t->has16[ROLE_TEXT] ? t->color16[ROLE_TEXT] : t->color[ROLE_TEXT];
    if (s.fg.kind == THEME_COLOR_DEFAULT)
        s.fg = text.fg;
    if (s.bg.kind == THEME_COLOR_DEFAULT)
        s.bg = text.bg;
    return s;
}

static int theme_color_number(struct theme_color c, enum theme_depth depth) {
    if (c.kind == THEME_COLOR_DEFAULT)
        return -1;
    if (depth == THEME_256)
        return c.kind == THEME_COLOR_INDEX ? (int)c.value : theme_color_to_256(c.value);
    if (c.kind == THEME_COLOR_INDEX && c.value < 16)
        return (int)c.value;
    return theme_color_to_16(c.kind == THEME_COLOR_INDEX ? theme_color_rgb((int)c.value) : c.value);
}

struct theme_attrs theme_resolve(const struct theme *t, enum theme_role role, enum theme_depth depth) {
    struct theme_attrs look = {.fg = -1, .bg = -1, .attrs = t->mono[role]};
    if (depth == THEME_MONO)
        return look;
    struct theme_style s = theme_style_of(t, role, depth);
    look.attrs = s.attrs;
    look.fg = theme_color_number(s.fg, depth);
    look.bg = theme_color_number(s.bg, depth);
    if (depth == THEME_8) {
        /* Bold gives the bright half, for the foreground only. */
        if (look.fg >= 8) {
            look.fg -= 8;
            look.attrs |= THEME_BOLD;
        }
        if (look.bg >= 8)
            look.bg -= 8;
        if (look.fg >= 0 && look.fg == look.bg)
            look.fg = look.bg == 0 ? 7 : 0;
    }
    return look;
}

int theme_choose_depth(const char *when, const char *no_color, int colors, enum theme_depth *out,
                       struct err *e) {
    bool is_auto = !when || strcmp(when, "auto") == 0;
    enum theme_depth offered = colors >= 256  ? THEME_256
                               : colors >= 16 ? THEME_16
                               : colors >= 8  ? THEME_8
                                              : THEME_MONO;
    *out = offered;
    if (is_auto) {
        if (no_color && *no_color)
            *out = THEME_MONO;
    } else if (strcmp(when, "never") == 0) {
        *out = THEME_MONO;
    } else if (strcmp(when, "16") == 0) {
        *out = offered < THEME_16 ? offered : THEME_16;
    } else if (strcmp(when, "always") != 0 && strcmp(when, "256") != 0) {
        return err_set(e, ERR_USAGE, "--color takes auto, always, never, 16 or 256, not '%s'", when);
    }
    return 0;
}

/* ---- the terminal's background ---- */

/* Of xterm's palette, white and bright white are light; Vim and Emacs draw the same line. */
enum theme_background theme_background_by_env(const char *colorfgbg) {
    const char *last = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
    char *end;
    if (!last || !isdigit((unsigned char)last[1]))
        return THEME_BACKGROUND_UNKNOWN;
    long color = strtol(last + 1, &end, 10);
    if (*end || color > 15)
        return THEME_BACKGROUND_UNKNOWN;
    return color == 7 || color == 15 ? THEME_BACKGROUND_LIGHT : THEME_BACKGROUND_DARK;
}

/* XParseColor's form: each part has 1 to 4 digits, of which as many are the whole. */
enum theme_background theme_background_by_color(const char *color) {
    static const int weights[3] = {299, 587, 114}; /* of red, green, blue in lightness (ITU-R BT.601) */
    double light = 0;
    const char *p = strchr(color, ':');
    if (!p || strncmp(color, "rgb", 3) != 0)
        return THEME_BACKGROUND_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        char *end;
        p++;
        if (!isxdigit((unsigned char)*p))
            return THEME_BACKGROUND_UNKNOWN;
        unsigned long v = strtoul(p, &end, 16);
        long digits = end - p;
        if (digits > 4 || (i < 2 && *end != '/'))
            return THEME_BACKGROUND_UNKNOWN;
        light += weights[i] * (double)v / (double)((1UL << 4 * digits) - 1);
        p = end;
    }
    return light > 500 ? THEME_BACKGROUND_LIGHT : THEME_BACKGROUND_DARK;
}

const char *theme_auto_name(enum theme_background background) {
    return background == THEME_BACKGROUND_LIGHT ? "light" : "default";
}
