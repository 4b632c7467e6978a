/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probing.torch_profiling: what it says, and what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/watch.h"

static struct watch parsed;

static void parse(const char *text) {
    struct err e = {.text = ""};
    if (watch_parse(&parsed, "KEY", text, &e) != 0)
        fail_msg("'%s': %s", text, e.text);
}

static void expect_part(const struct watch_expr *x, size_t i, enum watch_part_kind kind, const char *name,
                        int64_t index) {
    assert_true(i < x->n);
    assert_int_equal(x->parts[i].kind, kind);
    assert_string_equal(x->parts[i].name, name);
    assert_int_equal(x->parts[i].index, index);
}

static void check_switch(void **state) {
    static const struct {
        const char *text;
        bool on, off;
    } cases[] = {{"", false, false},   {"on", true, false}, {"ON", true, false},
                 {"off", false, true}, {"1", true, false},  {"no", false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].text);
        assert_true(parsed.on == cases[i].on && parsed.off == cases[i].off && parsed.n == 0);
    }
}

static void check_expressions(void **state) {
    (void)state;
    parse("on,exprs=loss@train,acc1@train");
    assert_true(parsed.on);
    assert_int_equal(parsed.n, 2);
    assert_string_equal(parsed.exprs[0].name, "loss");
    assert_string_equal(parsed.exprs[0].func, "train");
    assert_string_equal(parsed.exprs[1].name, "acc1");
    expect_part(&parsed.exprs[1], 0, WATCH_ATTRIBUTE, "acc1", 0);
    parse("off,exprs=self.meter.avg@pkg.mod.Trainer.fit.<locals>.step,sizes[-2]['a,b'][\"c\"]");
    assert_true(!parsed.on && parsed.off);
    assert_int_equal(parsed.n, 2);
    assert_string_equal(parsed.exprs[0].name, "self.meter.avg");
    assert_string_equal(parsed.exprs[0].func, "pkg.mod.Trainer.fit.<locals>.step");
    expect_part(&parsed.exprs[0], 2, WATCH_ATTRIBUTE, "avg", 0);
    assert_string_equal(parsed.exprs[1].name, "sizes[-2]['a,b'][\"c\"]");
    assert_string_equal(parsed.exprs[1].func, "");
    expect_part(&parsed.exprs[1], 0, WATCH_ATTRIBUTE, "sizes", 0);
    expect_part(&parsed.exprs[1], 1, WATCH_INDEX, "", -2);
    expect_part(&parsed.exprs[1], 2, WATCH_KEY, "a,b", 0);
    expect_part(&parsed.exprs[1], 3, WATCH_KEY, "c", 0);
    parse("exprs=loss");
    assert_true(!parsed.on && !parsed.off && parsed.n == 1);
}

/* What could run something, or is nothing, is refused and said. */
static void check_refused(void **state) {
    static const char *const cases[] = {"maybe",
                                        "on,loss",
                                        "exprs=",
                                        "exprs=f()",
                                        "exprs=a+b",
                                        "exprs=a.",
                                        "exprs=a[",
                                        "exprs=a[x]",
                                        "exprs=a@",
                                        "exprs=a@f.",
                                        "exprs=a@f()",
                                        "exprs=1a",
                                        "exprs=a,,b",
                                        "exprs=a['b]",
                                        "exprs=a['\\n']",
                                        "exprs=a@b@c",
                                        "exprs= a",
                                        "exprs=a[1",
                                        "exprs=a.b.c.d.e.f.g.h.i",
                                        "exprs=a[1:2]"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {.text = ""};
        if (watch_parse(&parsed, "KEY", cases[i], &e) == 0)
            fail_msg("'%s' was taken", cases[i]);
        assert_int_equal(e.code, ERR_USAGE);
        assert_int_equal(strncmp(e.text, "KEY", 3), 0);
    }
}

/* Limits, of names and of their number. */
static void check_limits(void **state) {
    char text[4096], name[2 * WATCH_NAME];
    (void)state;
    memset(name, 'x', sizeof name);
    for (size_t n = WATCH_NAME - 2; n <= WATCH_NAME + 1; n++) {
        (void)snprintf(text, sizeof text, "exprs=%.*s", (int)n, name);
        assert_int_equal(watch_parse(&parsed, "KEY", text, NULL), n < WATCH_NAME ? 0 : -1);
    }
    size_t at = (size_t)snprintf(text, sizeof text, "exprs=a");
    for (size_t n = 2; n <= WATCH_MAX + 1; n++) {
        at += (size_t)snprintf(text + at, sizeof text - at, ",a");
        assert_int_equal(watch_parse(&parsed, "KEY", text, NULL), n <= WATCH_MAX ? 0 : -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_switch), cmocka_unit_test(check_expressions),
                                       cmocka_unit_test(check_refused), cmocka_unit_test(check_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
