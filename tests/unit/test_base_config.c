/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration: every key has a row that makes sense, values are checked, and the environment of a process is taken. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/config.h"

/* The variable's name is the key's, in capitals. */
static void check_name(const struct option_def *d) {
    char name[64] = "PROBING_";
    assert_int_equal(strncmp(d->name, "probing.", 8), 0);
    for (const char *p = d->name + 8; *p; p++) {
        size_t n = strlen(name);
        name[n] = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : '_';
        name[n + 1] = '\0';
    }
    assert_string_equal(d->env, name);
}

static void check_rows(void **state) {
    struct config c;
    (void)state;
    config_init(&c);
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const struct option_def *d = &config_defs[i];
        check_name(d);
        assert_true(d->help && *d->help && d->unit);
        assert_true(!d->max || (d->min <= d->default_number && d->default_number <= d->max));
        assert_true(c.values[i] == d->default_number && !c.given[i]);
        assert_true((d->kind == OPTION_TEXT) == (d->default_value != NULL));
        assert_int_equal(config_find(d->name, NULL), i);
        assert_int_equal(config_find(d->name + 8, NULL), i);
    }
}

static void check_values(void **state) {
    static const char *const refused[] = {"",    "abc", "1 %%", "1s",    "0",  "-1",
                                          "101", "nan", "inf",  "1e999", "1 2"};
    struct config c;
    struct err e;
    (void)state;
    config_init(&c);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(config_set(&c, CONFIG_BUDGET, "--budget", refused[i], &e), -1);
        assert_int_equal(e.code, ERR_USAGE);
        assert_int_equal(strncmp(e.text, "--budget takes a number from 0.01 to 100", 40), 0);
        assert_true(c.values[CONFIG_BUDGET] == 1 && !c.given[CONFIG_BUDGET]);
    }
    assert_int_equal(config_set(&c, CONFIG_BUDGET, "--budget", "0.25", &e), 0);
    assert_true(c.values[CONFIG_BUDGET] == 0.25 && c.given[CONFIG_BUDGET]);
}

static void check_units(void **state) {
    static const struct {
        enum config_key key;
        const char *text;
        double value; /* NAN: refused */
        const char *printed;
    } cases[] = {
        {CONFIG_BUDGET, "5%", 5, "5"},
        {CONFIG_BUDGET, "0.5 %", 0.5, "0.5"},
        {CONFIG_SAMPLE_RATE, "20", 20, "20"},
        {CONFIG_SAMPLE_RATE, "20Hz", 20, "20"},
        {CONFIG_SAMPLE_RATE, "0", 0, "0"},
        {CONFIG_SAMPLE_RATE, "2kHz", NAN, NULL},
        {CONFIG_MAX_MEMORY, "64MB", 67108864, "64M"},
        {CONFIG_MAX_MEMORY, "1 GiB", 1073741824, "1G"},
        {CONFIG_MAX_MEMORY, "1.5g", 1610612736, "1536M"},
        {CONFIG_MAX_MEMORY, "2000000", 2000000, "2000000B"},
        {CONFIG_MAX_MEMORY, "0", 0, "0B"},
        {CONFIG_MAX_MEMORY, "-1", NAN, NULL},
        {CONFIG_MAX_MEMORY, "1TB", NAN, NULL},
        {CONFIG_RETENTION, "2h", 7200, "2h"},
        {CONFIG_RETENTION, "90", 90, "90s"},
        {CONFIG_RETENTION, "250ms", 0.25, "0.25s"},
        {CONFIG_RETENTION, "0", 0, "0s"},
        {CONFIG_RETENTION, "-1", NAN, NULL},
        {CONFIG_RETENTION_DAYS, "12h", 0.5, "0.5"},
        {CONFIG_RETENTION_DAYS, "2w", 14, "14"},
        {CONFIG_GENTLE, "on", 1, "on"},
        {CONFIG_GENTLE, "False", 0, "off"},
        {CONFIG_GENTLE, "2", NAN, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c;
        struct err e = {0};
        char text[CONFIG_TEXT_MAX];
        config_init(&c);
        int rc = config_set(&c, cases[i].key, "KEY", cases[i].text, &e);
        if (!cases[i].printed) {
            assert_int_equal(rc, -1);
            assert_int_equal(e.code, ERR_USAGE);
            assert_false(c.given[cases[i].key]);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_true(c.values[cases[i].key] == cases[i].value);
        config_format(&c, cases[i].key, false, text, sizeof text);
        assert_string_equal(text, cases[i].printed);
        /* What is printed is understood, and means the same. */
        assert_int_equal(config_set(&c, cases[i].key, "KEY", text, &e), 0);
        assert_true(c.values[cases[i].key] == cases[i].value);
    }
}

static void check_text(void **state) {
    char text[CONFIG_TEXT_MAX], longer[CONFIG_TEXT_MAX + 2];
    struct config c;
    struct err e;
    (void)state;
    config_init(&c);
    assert_int_equal(config_set(&c, CONFIG_DATA_DIR, "KEY", "here", &e), -1);
    assert_string_equal(e.text, "KEY takes an absolute path, not 'here'");
    memset(longer, '/', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(config_set(&c, CONFIG_DATA_DIR, "KEY", longer, &e), -1);
    assert_int_equal(config_set(&c, CONFIG_DATA_DIR, "KEY", "/here", &e), 0);
    config_format(&c, CONFIG_DATA_DIR, false, text, sizeof text);
    assert_string_equal(text, "/here");
    config_format(&c, CONFIG_DATA_DIR, true, text, sizeof text);
    assert_string_equal(text, "");
}

static void check_names(void **state) {
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {{"", true},      {"A", true},   {"RANK,_x9", true}, {"A,", false},  {",A", false},
                 {"A,,B", false}, {"9A", false}, {"A B", false},     {"A=1", false}, {"*", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CONFIG_TEXT_MAX];
        struct config c;
        struct err e = {0};
        config_init(&c);
        assert_int_equal(config_set(&c, CONFIG_ENV_ALLOW, "KEY", cases[i].text, &e), cases[i].fits ? 0 : -1);
        config_format(&c, CONFIG_ENV_ALLOW, false, text, sizeof text);
        assert_string_equal(text, cases[i].fits ? cases[i].text : "");
        assert_true(c.given[CONFIG_ENV_ALLOW] == cases[i].fits && c.data_dir[0] == '\0');
        if (!cases[i].fits)
            assert_ptr_equal(strstr(e.text, "KEY takes names of variables"), e.text);
    }
}

static void check_unknown_keys(void **state) {
    struct err e;
    (void)state;
    assert_int_equal(config_find("probing.bugdet", &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "unknown setting 'probing.bugdet': did you mean probing.budget?");
    assert_int_equal(config_find("nothing.like.it", &e), -1);
    assert_non_null(strstr(e.text, "lists them"));
}

/* A process that was started with PROBING_BUDGET=`value` in its environment (NULL: without); it ends when `*end` is closed. */
static pid_t start_with(const char *value, int *end) {
    char variable[64];
    char *argv[] = {(char *)(uintptr_t) "cat", NULL}, *envp[] = {NULL, NULL};
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    (void)snprintf(variable, sizeof variable, "PROBING_BUDGET=%s", value ? value : "");
    envp[0] = value ? variable : NULL;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(pipes[0], 0);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)execve("/bin/cat", argv, envp);
        _exit(127);
    }
    (void)close(pipes[0]);
    /* Until it has become the other program, what is there is our own environment. */
    char path[64], name[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    for (int i = 0; i < 1000 && strcmp(name, "cat\n") != 0; i++) {
        FILE *f = fopen(path, "re");
        if (!f || !fgets(name, sizeof name, f))
            name[0] = '\0';
        if (f)
            (void)fclose(f);
        (void)usleep(10000);
    }
    assert_string_equal(name, "cat\n");
    *end = pipes[1];
    return pid;
}

static void check_environment(void **state) {
    static const struct {
        const char *value;
        double budget;
        bool given;
        int rc;
    } cases[] = {{NULL, 1, false, 0}, {"", 1, false, 0}, {"0.5", 0.5, true, 0}, {"much", 1, false, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c;
        struct err e = {0};
        int end;
        pid_t pid = start_with(cases[i].value, &end);
        config_init(&c);
        int rc = config_read_environ(&c, pid, &e);
        (void)close(end);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(rc, cases[i].rc);
        assert_true(c.values[CONFIG_BUDGET] == cases[i].budget && c.given[CONFIG_BUDGET] == cases[i].given);
        assert_true(rc == 0 || strstr(e.text, "PROBING_BUDGET takes a number"));
    }
}

static void check_addresses(void **state) {
    struct config c;
    struct err e;
    char text[CONFIG_TEXT_MAX];
    (void)state;
    config_init(&c);
    assert_int_equal(config_set(&c, CONFIG_LISTEN, "PROBING_ADDR", "0.0.0.0:3344", &e), 0);
    config_format(&c, CONFIG_LISTEN, false, text, sizeof text);
    assert_string_equal(text, "0.0.0.0:3344");
    assert_int_equal(config_set(&c, CONFIG_LISTEN, "PROBING_ADDR", "node7:3344", &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(c.address, "0.0.0.0:3344");
    assert_int_equal(config_set(&c, CONFIG_LISTEN, "PROBING_ADDR", "", &e), 0);
    assert_string_equal(c.address, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_rows),        cmocka_unit_test(check_values),
        cmocka_unit_test(check_units),       cmocka_unit_test(check_text),
        cmocka_unit_test(check_names),       cmocka_unit_test(check_unknown_keys),
        cmocka_unit_test(check_environment), cmocka_unit_test(check_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
