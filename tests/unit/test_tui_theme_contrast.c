/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The themes that are shipped, looked at with numbers: text can be read on its ground (WCAG 2.1, 1.4.3), what is selected or
 * found stands out, and in the themes for the colour-blind what must be told apart still is when one kind of cone is missing.
 * Colours are those a terminal with 256 of them shows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "tui/theme/theme.h"

static const struct theme_path shipped = {.dirs = {PROBING_SOURCE_DIR "/themes"}};

/* The ten, and the ground each is meant for; where a theme has one of its own, that is held against it. */
static const struct shipped {
    const char *name;
    uint32_t ground, ink; /* of the terminal */
    double contrast;
    const char *eyes; /* "": any; else the kinds of cones that may be missing: l, m, s */
} themes[] = {
    {"default", 0x000000, 0xd0d0d0, 4.5, ""},
    {"deuteranopia", 0x000000, 0xd0d0d0, 4.5, "m"},
    {"gruvbox", 0x000000, 0xd0d0d0, 4.5, ""},
    {"high-contrast", 0x000000, 0xd0d0d0, 7, ""},
    {"light", 0xffffff, 0x202020, 4.5, ""},
    {"mono", 0x000000, 0xd0d0d0, 4.5, ""},
    {"nord", 0x000000, 0xd0d0d0, 4.5, ""},
    {"okabe-ito", 0x000000, 0xd0d0d0, 4.5, "lms"},
    {"solarized-light", 0xffffff, 0x202020, 4.5, ""},
    {"tritanopia", 0x000000, 0xd0d0d0, 4.5, "s"},
};
#define N_THEMES (sizeof themes / sizeof themes[0])

/* What is no text, or text that says nothing by itself. */
static const enum theme_role graphic[] = {ROLE_BORDER, ROLE_METER_CPU, ROLE_METER_GIL, ROLE_FLAME_SMALL};

static struct theme load(const char *name) {
    struct theme t;
    struct strbuf warnings;
    struct err e = {0};
    strbuf_init(&warnings, 65536);
    if (theme_load(&t, name, &shipped, &warnings, &e) != 0)
        fail_msg("%s: %s", name, e.text);
    assert_string_equal(strbuf_str(&warnings), "");
    strbuf_fini(&warnings);
    return t;
}

/* Ten, and no other file lies there. */
static void test_all_that_is_shipped_is_known(void **state) {
    char names[32][THEME_MAX_NAME];
    (void)state;
    assert_int_equal(theme_list(&shipped, names, 32), 1 + N_THEMES);
    assert_string_equal(names[0], THEME_AUTO); /* a name without a file */
    for (size_t i = 0; i < N_THEMES; i++)
        assert_string_equal(names[i + 1], themes[i].name);
}

static void test_no_warning(void **state) {
    (void)state;
    for (size_t i = 0; i < N_THEMES; i++) {
        struct theme t = load(themes[i].name);
        assert_true(t.name[0]);
    }
}

/* ---- colours as eyes see them ---- */

struct colour {
    double v[3];
};

/* sRGB to linear light (IEC 61966-2-1). */
static struct colour to_linear(uint32_t rgb) {
    struct colour c;
    for (int i = 0; i < 3; i++) {
        double v = (double)(rgb >> (16 - 8 * i) & 255) / 255;
        c.v[i] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    return c;
}

static struct colour multiply(const double m[3][3], struct colour c) {
    struct colour out;
    for (int i = 0; i < 3; i++)
        out.v[i] = m[i][0] * c.v[0] + m[i][1] * c.v[1] + m[i][2] * c.v[2];
    return out;
}

static double contrast(uint32_t a, uint32_t b) {
    struct colour x = to_linear(a), y = to_linear(b);
    double p = 0.2126 * x.v[0] + 0.7152 * x.v[1] + 0.0722 * x.v[2];
    double q = 0.2126 * y.v[0] + 0.7152 * y.v[1] + 0.0722 * y.v[2];
    return (fmax(p, q) + 0.05) / (fmin(p, q) + 0.05);
}

/* Linear sRGB to cone responses, and back (Vienot, Brettel, Mollon 1999, "Digital video colourmaps for checking the legibility
 * of displays by dichromats", after Smith and Pokorny). */
static const double cones[3][3] = {
    {17.8824, 43.5161, 4.11935}, {3.45565, 27.1554, 3.86714}, {0.0299566, 0.184309, 1.46709}};
static const double back[3][3] = {{0.0809444479, -0.1305044090, 0.1167210700},
                                  {-0.0102485335, 0.0540193266, -0.1136147080},
                                  {-0.0003652970, -0.0041216147, 0.6935114050}};

/* What is left of a colour without one kind of cones (l, m or s): its response is what white and one primary fix it to, blue
 * for l and m as in that paper, red for s, whose confusions lie across it. */
static struct colour without(char cone, uint32_t rgb) {
    int lost = cone == 'l' ? 0 : cone == 'm' ? 1 : 2, a = lost == 0 ? 1 : 0, b = lost == 2 ? 1 : 2;
    struct colour white = multiply(cones, (struct colour){{1, 1, 1}});
    struct colour fixed = multiply(cones, (struct colour){{cone == 's', 0, cone != 's'}});
    double det = white.v[a] * fixed.v[b] - white.v[b] * fixed.v[a];
    double x = (white.v[lost] * fixed.v[b] - white.v[b] * fixed.v[lost]) / det;
    double y = (white.v[a] * fixed.v[lost] - white.v[lost] * fixed.v[a]) / det;
    struct colour c = multiply(cones, to_linear(rgb));
    c.v[lost] = x * c.v[a] + y * c.v[b];
    c = multiply(back, c);
    for (int i = 0; i < 3; i++)
        c.v[i] = fmin(fmax(c.v[i], 0), 1);
    return c;
}

/* Linear sRGB to CIE L*a*b* under D65. */
static struct colour to_lab(struct colour c) {
    static const double xyz[3][3] = {{0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047},
                                     {0.2126729, 0.7151522, 0.0721750},
                                     {0.0193339 / 1.08883, 0.1191920 / 1.08883, 0.9503041 / 1.08883}};
    struct colour w = multiply(xyz, c);
    for (int i = 0; i < 3; i++)
        w.v[i] = w.v[i] > 216.0 / 24389 ? cbrt(w.v[i]) : (24389.0 / 27 * w.v[i] + 16) / 116;
    return (struct colour){{116 * w.v[1] - 16, 500 * (w.v[0] - w.v[1]), 200 * (w.v[1] - w.v[2])}};
}

/* How far apart two colours look: 2.3 can just be seen side by side; `cone` 0: none is missing. */
static double distance(char cone, uint32_t a, uint32_t b) {
    struct colour p = to_lab(cone ? without(cone, a) : to_linear(a));
    struct colour q = to_lab(cone ? without(cone, b) : to_linear(b));
    return sqrt(pow(p.v[0] - q.v[0], 2) + pow(p.v[1] - q.v[1], 2) + pow(p.v[2] - q.v[2], 2));
}

/* Grey stays as it is, and the confusions are those that the kinds of blindness are known by. */
static void test_the_eyes_are_right(void **state) {
    (void)state;
    for (const char *cone = "lms"; *cone; cone++) {
        struct colour grey = without(*cone, 0x808080), same = to_linear(0x808080);
        for (int i = 0; i < 3; i++)
            assert_true(fabs(grey.v[i] - same.v[i]) < 1e-4);
    }
    assert_true(distance(0, 0xaf5f5f, 0x6b7d5f) > 35); /* a red and a green */
    assert_true(distance('m', 0xaf5f5f, 0x6b7d5f) < 15);
    assert_true(distance('s', 0xaf5f5f, 0x6b7d5f) > 35);
    assert_true(distance(0, 0x5f87d7, 0x5f9e8f) > 35); /* a blue and a green */
    assert_true(distance('s', 0x5f87d7, 0x5f9e8f) < 15);
    assert_true(distance('m', 0x5f87d7, 0x5f9e8f) > 25);
}

struct shown {
    uint32_t fg, bg;
    unsigned attrs;
};

static struct shown shown_as(const struct theme *t, const struct shipped *s, enum theme_role role) {
    struct theme_attrs look = theme_resolve(t, role, THEME_256);
    struct shown out = {look.fg < 0 ? s->ink : theme_color_rgb(look.fg),
                        look.bg < 0 ? s->ground : theme_color_rgb(look.bg), look.attrs};
    if (look.attrs & THEME_REVERSE)
        out = (struct shown){out.bg, out.fg, look.attrs};
    return out;
}

static bool is_graphic(enum theme_role role) {
    for (size_t i = 0; i < sizeof graphic / sizeof graphic[0]; i++)
        if (graphic[i] == role)
            return true;
    return false;
}

/* A role that a theme leaves as it is by default is held to what the default is. */
static bool is_inherited(const struct theme *t, const struct theme *base, enum theme_role role) {
    struct theme_attrs a = theme_resolve(t, role, THEME_256), b = theme_resolve(base, role, THEME_256);
    return a.fg == b.fg && a.bg == b.bg;
}

static void test_text_can_be_read(void **state) {
    struct theme base = load("default");
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < N_THEMES; i++) {
        struct theme t = load(themes[i].name);
        for (int role = 0; role < ROLE_COUNT; role++) {
            struct shown s = shown_as(&t, &themes[i], (enum theme_role)role);
            double least = is_graphic((enum theme_role)role)                ? 3
                           : is_inherited(&t, &base, (enum theme_role)role) ? themes[0].contrast
                                                                            : themes[i].contrast;
            double c = contrast(s.fg, s.bg);
            if (c < least)
                print_error("%s: %s is %06x on %06x: %.2f, less than %.1f\n", themes[i].name,
                            theme_role_name((enum theme_role)role), s.fg, s.bg, c, least);
            bad += c < least;
        }
    }
    assert_int_equal(bad, 0);
}

/* The sixteen colours are the terminal's. */
static const struct palette {
    const char *name;
    bool bold_is_bright; /* the foreground of bold text is of the bright half */
    uint32_t colors[16];
} palettes[] = {
    {"xterm",
     false,
     {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000,
      0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff}},
    {"Linux console",
     true,
     {0x000000, 0xaa0000, 0x00aa00, 0xaa5500, 0x0000aa, 0xaa00aa, 0x00aaaa, 0xaaaaaa, 0x555555, 0xff5555,
      0x55ff55, 0xffff55, 0x5555ff, 0xff55ff, 0x55ffff, 0xffffff}},
    {"Tango",
     false,
     {0x2e3436, 0xcc0000, 0x4e9a06, 0xc4a000, 0x3465a4, 0x75507b, 0x06989a, 0xd3d7cf, 0x555753, 0xef2929,
      0x8ae234, 0xfce94f, 0x729fcf, 0xad7fa8, 0x34e2e2, 0xeeeeec}},
};

static struct shown shown_in(const struct theme *t, const struct shipped *s, enum theme_role role,
                             enum theme_depth depth, const struct palette *p) {
    struct theme_attrs look = theme_resolve(t, role, depth);
    if (p->bold_is_bright && (look.attrs & THEME_BOLD) && look.fg >= 0 && look.fg < 8)
        look.fg += 8;
    struct shown out = {look.fg < 0 ? s->ink : p->colors[look.fg],
                        look.bg < 0 ? s->ground : p->colors[look.bg], look.attrs};
    if (look.attrs & THEME_REVERSE)
        out = (struct shown){out.bg, out.fg, look.attrs};
    return out;
}

/* Less than with 256 colours: there are few to choose from. */
static void test_text_can_be_read_with_few_colours(void **state) {
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < N_THEMES; i++) {
        struct theme t = load(themes[i].name);
        for (size_t k = 0; k < sizeof palettes / sizeof palettes[0]; k++)
            for (int depth = THEME_8; depth <= THEME_16; depth++)
                for (int role = 0; role < ROLE_COUNT; role++) {
                    struct shown s = shown_in(&t, &themes[i], (enum theme_role)role, (enum theme_depth)depth,
                                              &palettes[k]);
                    if (palettes[k].bold_is_bright && themes[i].ground)
                        continue; /* a console is dark */
                    double c = contrast(s.fg, s.bg);
                    if (is_graphic((enum theme_role)role) || c >= 2.3)
                        continue;
                    print_error("%s, %d colours of %s: %s is %06x on %06x: %.2f\n", themes[i].name,
                                depth == THEME_8 ? 8 : 16, palettes[k].name,
                                theme_role_name((enum theme_role)role), s.fg, s.bg, c);
                    bad++;
                }
    }
    assert_int_equal(bad, 0);
}

/* Two roles that lie side by side: their grounds, or their inks and attributes where the ground is the same. */
static bool differ(const struct shown *a, const struct shown *b, char cone, double least) {
    return distance(cone, a->bg, b->bg) >= least || distance(cone, a->fg, b->fg) >= 2 * least ||
           a->attrs != b->attrs;
}

static void test_what_is_selected_or_found_stands_out(void **state) {
    static const enum theme_role pairs[][2] = {{ROLE_SELECTION, ROLE_TEXT},
                                               {ROLE_SELECTION_OTHER, ROLE_TEXT},
                                               {ROLE_SELECTION, ROLE_MATCH},
                                               {ROLE_SELECTION, ROLE_SELECTION_OTHER},
                                               {ROLE_MATCH, ROLE_TEXT},
                                               {ROLE_FLAME_SELECTION, ROLE_FLAME_MATCH},
                                               {ROLE_FLAME_SELECTION, ROLE_FLAME_OUTER}};
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < N_THEMES; i++) {
        struct theme t = load(themes[i].name);
        for (const char *eyes = *themes[i].eyes ? themes[i].eyes : " "; *eyes; eyes++)
            for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
                struct shown a = shown_as(&t, &themes[i], pairs[k][0]),
                             b = shown_as(&t, &themes[i], pairs[k][1]);
                if (differ(&a, &b, *eyes == ' ' ? '\0' : *eyes, 10))
                    continue;
                print_error("%s: %s looks like %s\n", themes[i].name, theme_role_name(pairs[k][0]),
                            theme_role_name(pairs[k][1]));
                bad++;
            }
        for (int role = ROLE_FLAME_OWN_1; role <= ROLE_FLAME_SMALL; role++)
            for (int over = ROLE_FLAME_SELECTION; over <= ROLE_FLAME_MATCH; over++) {
                struct shown a = shown_as(&t, &themes[i], (enum theme_role)role),
                             b = shown_as(&t, &themes[i], (enum theme_role)over);
                if (!differ(&a, &b, '\0', 10))
                    fail_msg("%s: %s looks like %s", themes[i].name, theme_role_name((enum theme_role)role),
                             theme_role_name((enum theme_role)over));
            }
    }
    assert_int_equal(bad, 0);
}

/* What a theme for the colour-blind is for: roles that mean different things, by the first words of their names. */
static const char *const apart[][6] = {
    {"state.run", "state.sleep", "state.disk", "state.stop"},
    {"gil.held", "gil.waiting"},
    {"conn.ok", "conn.wait", "conn.lost"},
    {"cpu.low", "cpu.high"},
    {"func", "func.library"},
    {"flame.own.", "flame.library.", "flame.native"},
    {"diff.more.", "diff.less."},
};

static bool is_of(enum theme_role role, const char *group) {
    size_t len = strlen(group);
    const char *name = theme_role_name(role);
    return group[len - 1] == '.' ? strncmp(name, group, len) == 0 : strcmp(name, group) == 0;
}

/* Roles of two groups look different to these eyes, by colour alone. */
static int count_alike(const struct theme *t, const struct shipped *s, char cone, const char *a,
                       const char *b) {
    int alike = 0;
    for (int i = 0; i < ROLE_COUNT; i++)
        for (int k = 0; is_of((enum theme_role)i, a) && k < ROLE_COUNT; k++) {
            if (!is_of((enum theme_role)k, b))
                continue;
            struct shown x = shown_as(t, s, (enum theme_role)i), y = shown_as(t, s, (enum theme_role)k);
            double d = x.bg == y.bg ? distance(cone, x.fg, y.fg) : distance(cone, x.bg, y.bg);
            if (d < 10)
                print_error("%s without %c: %s and %s are %.1f apart\n", s->name, cone,
                            theme_role_name((enum theme_role)i), theme_role_name((enum theme_role)k), d);
            alike += d < 10;
        }
    return alike;
}

static void test_the_colour_blind_tell_apart(void **state) {
    int alike = 0;
    (void)state;
    for (size_t i = 0; i < N_THEMES; i++) {
        struct theme t = load(themes[i].name);
        for (const char *cone = themes[i].eyes; *cone; cone++)
            for (size_t g = 0; g < sizeof apart / sizeof apart[0]; g++)
                for (size_t a = 0; a < 6 && apart[g][a]; a++)
                    for (size_t b = a + 1; b < 6 && apart[g][b]; b++)
                        alike += count_alike(&t, &themes[i], *cone, apart[g][a], apart[g][b]);
    }
    assert_int_equal(alike, 0);
}

/* That this is not so of every theme shows that the numbers can say no. */
static void test_others_do_not(void **state) {
    struct theme t = load("gruvbox");
    (void)state;
    t.color[ROLE_STATE_RUN].fg = (struct theme_color){THEME_COLOR_RGB, 0x6b7d5f};
    t.color[ROLE_STATE_STOP].fg = (struct theme_color){THEME_COLOR_RGB, 0xaf5f5f};
    struct shown a = shown_as(&t, &themes[2], ROLE_STATE_RUN), b = shown_as(&t, &themes[2], ROLE_STATE_STOP);
    assert_true(distance('m', a.fg, b.fg) < 15);
}

/* A role that a theme does not name is as in the theme it inherits, on the theme's own ground. */
static void test_roles_to_come_are_inherited(void **state) {
    struct theme t, base;
    struct strbuf w;
    static const char text[] =
        "inherit = default\ninherit16 = light\n[roles]\ntext = #ffffff #000080\nfunc = red\n";
    (void)state;
    strbuf_init(&w, 4096);
    theme_init_default(&t);
    theme_parse(&t, text, strlen(text), "x", &shipped, &w);
    assert_string_equal(strbuf_str(&w), "");
    base = load("default");
    struct theme light = load("light");
    for (int role = 1; role < ROLE_COUNT; role++) {
        struct theme_attrs look = theme_resolve(&t, (enum theme_role)role, THEME_256);
        struct theme_attrs want = theme_resolve(&base, (enum theme_role)role, THEME_256);
        if (role == ROLE_FUNC)
            continue;
        assert_int_equal(look.fg, want.fg < 0 ? 231 : want.fg);
        assert_int_equal(look.bg, want.bg < 0 ? 18 : want.bg);
        struct theme_attrs few = theme_resolve(&t, (enum theme_role)role, THEME_16);
        struct theme_attrs few_want = theme_resolve(&light, (enum theme_role)role, THEME_16);
        assert_memory_equal(&few, &few_want, sizeof few);
    }
    strbuf_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_is_shipped_is_known),
        cmocka_unit_test(test_no_warning),
        cmocka_unit_test(test_the_eyes_are_right),
        cmocka_unit_test(test_text_can_be_read),
        cmocka_unit_test(test_text_can_be_read_with_few_colours),
        cmocka_unit_test(test_what_is_selected_or_found_stands_out),
        cmocka_unit_test(test_the_colour_blind_tell_apart),
        cmocka_unit_test(test_others_do_not),
        cmocka_unit_test(test_roles_to_come_are_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
