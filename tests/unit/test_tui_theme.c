/* SPDX-License-Identifier: Apache-2.0 */
/* Theme files: what is right is taken, what is wrong is a warning with its line, and colours fit every terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "tui/theme/theme.h"

static const struct theme_path shipped = {.dirs = {PROBING_SOURCE_DIR "/themes"}};

static void parse(struct theme *t, const char *text, struct strbuf *warnings) {
    theme_init_default(t);
    strbuf_init(warnings, 65536);
    theme_parse(t, text, strlen(text), "x.theme", &shipped, warnings);
}

static void test_built_in_is_the_file(void **state) {
    struct strbuf file;
    (void)state;
    strbuf_init(&file, 65536);
    assert_int_equal(strbuf_read_file(&file, PROBING_SOURCE_DIR "/themes/default.theme"), 0);
    assert_string_equal(strbuf_str(&file), theme_default_text);
    strbuf_fini(&file);
}

static void test_shipped_themes_are_clean(void **state) {
    static const char *const names[] = {"default", "light", "mono"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct theme t;
        struct strbuf warnings;
        struct err e;
        strbuf_init(&warnings, 65536);
        assert_int_equal(theme_load(&t, names[i], &shipped, &warnings, &e), 0);
        assert_string_equal(strbuf_str(&warnings), "");
        strbuf_fini(&warnings);
    }
}

static void test_mono_theme_has_no_colour(void **state) {
    struct theme t;
    struct err e;
    (void)state;
    assert_int_equal(theme_load(&t, "mono", &shipped, NULL, &e), 0);
    for (int i = 0; i < ROLE_COUNT; i++) {
        struct theme_attrs look = theme_resolve(&t, (enum theme_role)i, THEME_256);
        assert_true(look.fg == -1 && look.bg == -1);
    }
}

/* In every shipped theme and at every depth, what must be told apart is. */
static void test_roles_differ(void **state) {
    static const char *const names[] = {"default", "light", "mono"};
    static const enum theme_role pairs[][2] = {
        {ROLE_SELECTION, ROLE_TEXT},    {ROLE_STATUS_ON, ROLE_STATUS},        {ROLE_BANNER, ROLE_TEXT},
        {ROLE_GIL_HELD, ROLE_TEXT},     {ROLE_FOOTER_KEY, ROLE_FOOTER_LABEL}, {ROLE_MATCH, ROLE_SELECTION},
        {ROLE_TITLE_FOCUS, ROLE_TITLE}, {ROLE_TABLE_SORT, ROLE_TABLE_HEAD}};
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (int depth = THEME_MONO; depth <= THEME_256; depth++)
            for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
                struct theme t;
                struct err e;
                assert_int_equal(theme_load(&t, names[n], &shipped, NULL, &e), 0);
                struct theme_attrs a = theme_resolve(&t, pairs[i][0], (enum theme_depth)depth);
                struct theme_attrs b = theme_resolve(&t, pairs[i][1], (enum theme_depth)depth);
                if (a.fg == b.fg && a.bg == b.bg && a.attrs == b.attrs)
                    fail_msg("%s at depth %d: %s looks like %s", names[n], depth,
                             theme_role_name(pairs[i][0]), theme_role_name(pairs[i][1]));
            }
}

static void test_values(void **state) {
    struct theme t;
    struct strbuf w;
    (void)state;
    parse(&t,
          "name = Test\n[palette]\nhot = #ff0000\n[roles]\ntext = hot 17 bold underline\nmuted = - blue\n"
          "label = bright-cyan default plain\n[mono]\ntext = reverse\n",
          &w);
    assert_string_equal(strbuf_str(&w), "");
    assert_string_equal(t.name, "Test");
    struct theme_attrs look = theme_resolve(&t, ROLE_TEXT, THEME_256);
    assert_int_equal(look.fg, 196);
    assert_int_equal(look.bg, 17);
    assert_int_equal(look.attrs, THEME_BOLD | THEME_UNDERLINE);
    assert_int_equal(theme_resolve(&t, ROLE_MUTED, THEME_256).bg, 4);
    assert_int_equal(theme_resolve(&t, ROLE_LABEL, THEME_256).fg, 14);
    assert_int_equal(theme_resolve(&t, ROLE_TEXT, THEME_16).fg, 9);
    assert_int_equal(theme_resolve(&t, ROLE_TEXT, THEME_8).fg, 1);
    assert_true(theme_resolve(&t, ROLE_TEXT, THEME_8).attrs & THEME_BOLD);
    assert_int_equal(theme_resolve(&t, ROLE_TEXT, THEME_MONO).attrs, THEME_REVERSE);
    assert_int_equal(theme_resolve(&t, ROLE_TEXT, THEME_MONO).fg, -1);
    strbuf_fini(&w);
}

static void test_override_for_16(void **state) {
    struct theme t;
    struct strbuf w;
    (void)state;
    parse(&t, "[roles]\nfunc = #123456\nfunc@16 = green\n", &w);
    assert_string_equal(strbuf_str(&w), "");
    assert_int_equal(theme_resolve(&t, ROLE_FUNC, THEME_16).fg, 2);
    assert_int_equal(theme_resolve(&t, ROLE_FUNC, THEME_256).fg, theme_color_to_256(0x123456));
    strbuf_fini(&w);
    /* A theme that names the colour alone does not keep the inherited theme's 16-colour choice. */
    parse(&t, "[roles]\nfunc = red\n", &w);
    assert_int_equal(theme_resolve(&t, ROLE_FUNC, THEME_16).fg, 1);
    strbuf_fini(&w);
}

static void test_warnings(void **state) {
    struct theme t, same;
    struct strbuf w;
    (void)state;
    parse(&t,
          "# fine\nnonsense\nwhat = ever\n[rolls]\nx = y\n[roles]\nno.such.role = red\ntext = #12345\nmuted "
          "= red blue loud\n"
          "[palette]\np = #gggggg\n[mono]\ntext = sparkling\nno.such = bold\n",
          &w);
    const char *want = "x.theme:2: no '=' in 'nonsense'\nx.theme:3: unknown setting 'what'\nx.theme:4: "
                       "unknown section '[rolls]'\n"
                       "x.theme:7: unknown role 'no.such.role'\nx.theme:8: bad colour '#12345'\n"
                       "x.theme:9: unknown attribute 'loud'\nx.theme:11: bad colour '#gggggg'\n"
                       "x.theme:13: unknown attribute 'sparkling'\nx.theme:14: unknown role 'no.such'\n";
    assert_string_equal(strbuf_str(&w), want);
    theme_init_default(&same);
    assert_memory_equal(&t.color[ROLE_FUNC], &same.color[ROLE_FUNC], sizeof t.color[0]);
    strbuf_fini(&w);
}

static void test_inherit(void **state) {
    struct theme t, light;
    struct strbuf w;
    struct err e;
    (void)state;
    parse(&t, "name = Mine\ninherit = light\n[roles]\nfunc = red\n", &w);
    assert_string_equal(strbuf_str(&w), "");
    assert_int_equal(theme_load(&light, "light", &shipped, NULL, &e), 0);
    assert_string_equal(t.name, "Mine");
    assert_int_equal(theme_resolve(&t, ROLE_FUNC, THEME_256).fg, 1);
    assert_int_equal(theme_resolve(&t, ROLE_SELECTION, THEME_256).bg,
                     theme_resolve(&light, ROLE_SELECTION, THEME_256).bg);
    strbuf_fini(&w);
    parse(&t, "inherit = nowhere\n", &w);
    assert_string_equal(strbuf_str(&w), "x.theme:1: cannot inherit 'nowhere'\n");
    strbuf_fini(&w);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* Two themes that inherit each other end in a warning. */
static void test_cycle(void **state) {
    char dir[] = "/tmp/probing-theme-XXXXXX", a[64], b[64];
    struct theme t;
    struct strbuf w;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(a, sizeof a, "%s/a.theme", dir);
    (void)snprintf(b, sizeof b, "%s/b.theme", dir);
    write_text(a, "inherit = b\n");
    write_text(b, "inherit = a\n[roles]\nfunc = red\n");
    struct theme_path path = {.dirs = {dir}};
    strbuf_init(&w, 65536);
    assert_int_equal(theme_load(&t, "a", &path, &w, &e), 0);
    assert_non_null(strstr(strbuf_str(&w), "cannot inherit"));
    assert_int_equal(theme_load(&t, a, NULL, &w, &e), 0);
    strbuf_fini(&w);
    (void)unlink(a);
    (void)unlink(b);
    (void)rmdir(dir);
}

static void assert_same_look(const struct theme *a, const struct theme *b, enum theme_role role) {
    static const enum theme_depth depths[] = {THEME_MONO, THEME_16, THEME_256};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        struct theme_attrs x = theme_resolve(a, role, depths[i]), y = theme_resolve(b, role, depths[i]);
        assert_memory_equal(&x, &y, sizeof x);
    }
}

/* A line with a mistake is skipped as a whole: its role is as inherited; the others are as the file says. */
static void test_a_broken_line_is_skipped(void **state) {
    struct theme t, same;
    struct strbuf w;
    (void)state;
    theme_init_default(&same);
    parse(&t,
          "inherit = no-such\n[palette]\nhot = #ff00\n[roles]\ntext = hot\nfunc = #00fff0 #12\nfile = 21\n"
          "muted = red blue loud\nmuted@16 = red #12\n[mono]\ntext = reverse sparkling\n",
          &w);
    assert_string_equal(strbuf_str(&w), "x.theme:1: cannot inherit 'no-such'\nx.theme:3: bad colour '#ff00'\n"
                                        "x.theme:5: bad colour 'hot'\nx.theme:6: bad colour '#12'\n"
                                        "x.theme:8: unknown attribute 'loud'\nx.theme:9: bad colour '#12'\n"
                                        "x.theme:11: unknown attribute 'sparkling'\n");
    assert_int_equal(theme_resolve(&t, ROLE_FILE, THEME_256).fg, 21);
    assert_same_look(&t, &same, ROLE_TEXT);
    assert_same_look(&t, &same, ROLE_FUNC);
    assert_same_look(&t, &same, ROLE_MUTED);
    strbuf_fini(&w);
}

static void test_names_that_mean_something_else(void **state) {
    struct theme t;
    struct strbuf w;
    (void)state;
    parse(&t, "inherit = light\ninherit = mono\n[palette]\ndim = #ffffff\n[roles]\ntext = red\n", &w);
    assert_string_equal(
        strbuf_str(&w),
        "x.theme:2: inherits more than once: 'mono'\nx.theme:4: this name is reserved in a role: 'dim'\n");
    assert_int_equal(theme_resolve(&t, ROLE_TEXT, THEME_256).fg, 1);
    strbuf_fini(&w);
}

/* Which files a theme was read from is known: its own and what it inherits. */
static void test_files_are_known(void **state) {
    struct theme_files files = {.n = 0};
    struct theme_path path = {.dirs = {PROBING_SOURCE_DIR "/themes"}, .files = &files};
    struct theme t;
    struct err e;
    (void)state;
    assert_int_equal(theme_load(&t, "solarized-light", &path, NULL, &e), 0);
    assert_int_equal(files.n, 3);
    assert_string_equal(files.paths[0], PROBING_SOURCE_DIR "/themes/solarized-light.theme");
    assert_string_equal(files.paths[1], PROBING_SOURCE_DIR "/themes/light.theme");
    assert_string_equal(files.paths[2], PROBING_SOURCE_DIR "/themes/default.theme");
}

static void test_list(void **state) {
    char dir[] = "/tmp/probing-theme-XXXXXX", path[80], names[8][THEME_MAX_NAME];
    static const char *const files[] = {"b.theme", "a.theme", ".theme", ".x.theme", "other.txt"};
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        write_text(path, "");
    }
    struct theme_path twice = {.dirs = {dir, "/no/such/dir", dir}};
    assert_int_equal(theme_list(&twice, names, 8), 4);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "auto");
    assert_string_equal(names[2], "b");
    assert_string_equal(names[3], "default");
    assert_int_equal(theme_list(&twice, names, 2), 2);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

static void test_load_errors(void **state) {
    struct theme t;
    struct err e;
    (void)state;
    assert_int_equal(theme_load(&t, "no-such-theme", &shipped, NULL, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_non_null(strstr(e.text, "no theme 'no-such-theme'"));
    assert_int_equal(theme_load(&t, "/no/such/file.theme", &shipped, NULL, &e), -1);
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(theme_load(&t, "/tmp", &shipped, NULL, &e), -1);
    struct theme_path nowhere = {.dirs = {"/no/such/dir"}};
    assert_int_equal(theme_load(&t, "default", &nowhere, NULL, &e), 0); /* it is compiled in */
}

static void test_colours(void **state) {
    (void)state;
    assert_int_equal(theme_color_to_256(0x000000), 16);
    assert_int_equal(theme_color_to_256(0xffffff), 231);
    assert_int_equal(theme_color_to_256(0xe69f00), 178); /* the anchors of the Okabe-Ito palette */
    assert_int_equal(theme_color_to_256(0x808080), 244);
    assert_int_equal(theme_color_to_16(0xff0000), 9);
    for (int i = 16; i < 256; i++) {
        uint32_t rgb = theme_color_rgb(i);
        assert_int_equal(theme_color_rgb(theme_color_to_256(rgb)), rgb);
    }
}

static void test_depth_rule(void **state) {
    static const struct {
        const char *when, *no_color;
        int colors;
        enum theme_depth want;
    } cases[] = {
        {NULL, NULL, 256, THEME_256},    {"auto", "", 256, THEME_256},     {"auto", "1", 256, THEME_MONO},
        {"always", "1", 256, THEME_256}, {"never", NULL, 256, THEME_MONO}, {"16", NULL, 256, THEME_16},
        {"16", NULL, 8, THEME_8},        {"256", NULL, 8, THEME_8},        {NULL, NULL, 8, THEME_8},
        {NULL, NULL, -1, THEME_MONO},    {"always", NULL, -1, THEME_MONO}, {NULL, NULL, 16, THEME_16}};
    struct err e;
    enum theme_depth got;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(theme_choose_depth(cases[i].when, cases[i].no_color, cases[i].colors, &got, &e), 0);
        assert_int_equal(got, cases[i].want);
    }
    assert_int_equal(theme_choose_depth("purple", NULL, 256, &got, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
}

/* Which theme "auto" is. What cannot be understood is unknown, and then it is the dark one. */
static void test_background(void **state) {
    static const struct {
        const char *text;
        enum theme_background background;
    } envs[] = {{NULL, THEME_BACKGROUND_UNKNOWN},
                {"", THEME_BACKGROUND_UNKNOWN},
                {"15", THEME_BACKGROUND_UNKNOWN},
                {"0;", THEME_BACKGROUND_UNKNOWN},
                {"0;default", THEME_BACKGROUND_UNKNOWN},
                {"0;15x", THEME_BACKGROUND_UNKNOWN},
                {"0;-7", THEME_BACKGROUND_UNKNOWN},
                {"0;16", THEME_BACKGROUND_UNKNOWN},
                {"0;99999999999999999999", THEME_BACKGROUND_UNKNOWN},
                {"15;0", THEME_BACKGROUND_DARK},
                {"15;default;8", THEME_BACKGROUND_DARK},
                {"0;15", THEME_BACKGROUND_LIGHT},
                {"0;default;7", THEME_BACKGROUND_LIGHT}},
      colors[] = {{"", THEME_BACKGROUND_UNKNOWN},
                  {"#ffffff", THEME_BACKGROUND_UNKNOWN},
                  {"rgb", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:ff/ff", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:ff/ff/", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:-1/ff/ff", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:fffff/ff/ff", THEME_BACKGROUND_UNKNOWN},
                  {"rgb:ffff/ffff/ffff", THEME_BACKGROUND_LIGHT},
                  {"rgba:fdfd/f6f6/e3e3/ffff", THEME_BACKGROUND_LIGHT},
                  {"rgb:f/f/f", THEME_BACKGROUND_LIGHT},
                  {"rgb:00/2b/36", THEME_BACKGROUND_DARK},
                  {"rgb:0000/0000/ffff", THEME_BACKGROUND_DARK}};
    (void)state;
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++)
        assert_int_equal(theme_background_by_env(envs[i].text), envs[i].background);
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++)
        assert_int_equal(theme_background_by_color(colors[i].text), colors[i].background);
    assert_string_equal(theme_auto_name(THEME_BACKGROUND_LIGHT), "light");
    assert_string_equal(theme_auto_name(THEME_BACKGROUND_DARK), "default");
    assert_string_equal(theme_auto_name(THEME_BACKGROUND_UNKNOWN), "default");
    struct theme t, same;
    struct err e = {0};
    theme_init_default(&same);
    assert_int_equal(theme_load(&t, THEME_AUTO, NULL, NULL, &e), 0);
    assert_memory_equal(&t, &same, sizeof t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in_is_the_file),
        cmocka_unit_test(test_shipped_themes_are_clean),
        cmocka_unit_test(test_mono_theme_has_no_colour),
        cmocka_unit_test(test_roles_differ),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_override_for_16),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_inherit),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_a_broken_line_is_skipped),
        cmocka_unit_test(test_names_that_mean_something_else),
        cmocka_unit_test(test_files_are_known),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_load_errors),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_depth_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
