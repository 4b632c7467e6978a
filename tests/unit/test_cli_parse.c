/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `probing`: both orders, options before and after, and what each mistake says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

#define MAX_WORDS 16

/* Parses words separated by spaces. */
static int parse(const char *text, struct cli_line *line, struct err *e) {
    static char copy[256];
    static char *argv[MAX_WORDS + 1];
    int argc = 1;
    argv[0] = (char *)"probing";
    (void)strncpy(copy, text, sizeof copy - 1);
    for (char *w = strtok(copy, " "); w && argc < MAX_WORDS; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    *e = (struct err){0};
    return cli_parse(argc, argv, line, e);
}

static void accepts(const char *text, const char *verb, const char *target, bool json) {
    struct cli_line line;
    struct err e;
    if (parse(text, &line, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    assert_string_equal(line.verb->name, verb);
    if (target)
        assert_string_equal(line.targets.items[0], target);
    assert_int_equal(line.targets.n, target ? 1 : 0);
    assert_int_equal(line.options->json, json);
    cli_line_fini(&line);
}

/* The value of an option of the line's verb, by the verb's own row. */
static const void *option_at(const struct cli_line *line, const char *name, enum option_kind kind) {
    struct option_def rows[CLI_MAX_ROWS];
    cli_put_rows(line->verb, rows);
    for (const struct option_def *d = rows; d->name; d++)
        if (strcmp(d->name, name) == 0 && d->kind == kind)
            return (const char *)line->options + d->offset;
    fail_msg("%s has no --%s of that kind", line->verb->name, name);
    return NULL;
}

static double seconds(const struct cli_line *line, const char *name) {
    return *(const double *)option_at(line, name, OPTION_SECONDS);
}

static long number(const struct cli_line *line, const char *name) {
    return *(const long *)option_at(line, name, OPTION_INT);
}

static bool flag(const struct cli_line *line, const char *name) {
    return *(const bool *)option_at(line, name, OPTION_FLAG);
}

static void refuses(const char *text, const char *said) {
    struct cli_line line;
    struct err e;
    assert_int_equal(parse(text, &line, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, said);
    cli_line_fini(&line);
}

static void check_orders(void **state) {
    (void)state;
    accepts("-t 12 backtrace", "backtrace", "12", false);
    accepts("--target=12 backtrace --json", "backtrace", "12", true);
    accepts("12 backtrace --json", "backtrace", "12", true);
    accepts("backtrace -t 12", "backtrace", "12", false);
    accepts("train.py inject", "inject", "train.py", false);
    accepts("unix:/tmp/x.sock status --json", "status", "unix:/tmp/x.sock", true);
    accepts("list", "list", NULL, false);
    accepts("list --json", "list", NULL, true);
    accepts("-t list status", "status", "list", false); /* a process named as a verb */
}

static void check_operands_and_many_targets(void **state) {
    (void)state;
    struct cli_line line;
    struct err e;
    assert_int_equal(parse("-t 1 -t 2 query -t 3 SELECT --limit 5", &line, &e), 0);
    assert_int_equal(line.targets.n, 3);
    assert_string_equal(line.options->targets.items[2], "3");
    assert_string_equal(line.options->operand, "SELECT");
    assert_int_equal(number(&line, "limit"), 5);
    assert_true(seconds(&line, "timeout") == 60);
    cli_line_fini(&line);
    assert_int_equal(parse("1 query --timeout 0", &line, &e), 0);
    assert_null(line.options->operand);
    assert_int_equal(number(&line, "limit"), 100000);
    assert_true(seconds(&line, "timeout") == 0);
    cli_line_fini(&line);
    refuses("1 query SELECT 1", "query takes one argument, [SQL] (got '1' too): quote it");
    refuses("query SELECT",
            "query needs a target: probing TARGET query; 'probing list' shows the Python processes");
    refuses("-t 1 -t 2 status", "two targets, 1 and 2: give one");
}

/* Options of hosts stand before the verb or behind it, and only where there can be any. */
static void check_hosts(void **state) {
    (void)state;
    static const char *const lines[] = {"--push --hosts a,b cluster ranks",
                                        "cluster ranks --hosts a,b --push",
                                        "--hosts a,b cluster ranks --push"};
    struct cli_line line;
    struct err e;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(parse(lines[i], &line, &e), 0);
        assert_true(line.options->reach.push);
        assert_string_equal(line.options->reach.hosts, "a,b");
        cli_line_fini(&line);
    }
    accepts("--hosts a,b job:x/3 dump", "dump", "job:x/3", false);
    accepts("--hosts a,b job:x query --json", "query", "job:x", true);
    refuses("--hosts a,b 12 dump", "hosts are for a job, not for '12': probing --hosts LIST job:NAME dump");
    refuses("--hostfile f 12 eject",
            "hosts are for a job, not for '12': probing --hosts LIST job:NAME eject");
    refuses("--slurm 7 -t job:x -t train.py query",
            "hosts are for a job, not for 'train.py': probing --hosts LIST job:NAME query");
    refuses("--hosts a,b list", "list takes no hosts");
    refuses("--hosts a,b launch python train.py", "launch takes no hosts");
}

/* Two answers to one question: neither is given. */
static void check_contradictions(void **state) {
    (void)state;
    accepts("12 status --json --format json", "status", "12", true);
    refuses("12 status --json --format text", "--json and --format text: give one");
}

static void check_mistakes(void **state) {
    (void)state;
    refuses("12", "no verb given for 12. Try: probing 12 dump, or probing-top 12");
    refuses("-t 12", "no verb given for 12. Try: probing 12 dump, or probing-top 12");
    refuses("train.py", "no verb given for train.py. Try: probing train.py dump, or probing-top train.py");
    refuses("12 bactrace", "unknown verb 'bactrace': did you mean 'backtrace'?");
    refuses("-t 12 stauts", "unknown verb 'stauts': did you mean 'status'?");
    refuses("bactrace 12", "unknown verb 'bactrace': did you mean 'backtrace'?");
    refuses("12 tensorboard", "unknown verb 'tensorboard': 'probing help' lists the verbs");
    refuses("12 13 dump", "two targets, 12 and 13: give one, or each with -t, and a verb");
    refuses("12 top", "the screens are a program of their own: probing-top 12");
    refuses("top 12", "the screens are a program of their own: probing-top 12");
    refuses("12 locals", "variables are an option of backtrace: probing 12 backtrace --locals");
    refuses("python train.py",
            "'python' is not a verb; to start a job with the agent in it: probing launch python ...");
    refuses("12 l", "'l' is ambiguous: list or launch");
    refuses("backtrace",
            "backtrace needs a target: probing TARGET backtrace; 'probing list' shows the Python processes");
    refuses("12 backtrace 13", "backtrace takes no arguments (got '13')");
    refuses("12 backtrace -t 13", "two targets, 12 and 13: give one");
    refuses("-t 12 list", "list takes no target");
    refuses("12 backtrace --jsn", "unknown option --jsn: did you mean --json?");
    refuses("12 backtrace --format xml", "backtrace has no format 'xml': json or text");
    refuses("12 inject -Z 127.0.0.1:1", "unknown option -Z: --help lists the options");
    refuses("12 inject -P 127.0.0.1:1", "inject takes no arguments (got '127.0.0.1:1')");
    refuses("--frobnicate list", "unknown option --frobnicate: --help lists the options");
    refuses("-t", "--target needs a value: --target TARGET");
    refuses("12 inject --timeout never", "--timeout never: not a duration, give for example 2s or 250ms");
}

/* The verb first, other names, beginnings of names. */
static void check_other_words(void **state) {
    (void)state;
    struct cli_line line;
    struct err e;
    accepts("dump 12", "dump", "12", false);
    accepts("backtrace train.py --json", "backtrace", "train.py", true);
    accepts("-p 12 dump", "dump", "12", false);
    accepts("--pid 12 dump", "dump", "12", false);
    accepts("dump --pid 12", "dump", "12", false);
    accepts("12 dump --format json", "dump", "12", true);
    accepts("12 dump -j", "dump", "12", true);
    accepts("12 bt", "backtrace", "12", false);
    accepts("stacks 12", "backtrace", "12", false);
    accepts("12 threads", "backtrace", "12", false);
    accepts("ps", "list", NULL, false);
    accepts("12 sql", "query", "12", false);
    accepts("12 attach", "inject", "12", false);
    accepts("detach 12", "eject", "12", false);
    accepts("12 flame", "flamegraph", "12", false);
    accepts("12 backt", "backtrace", "12", false);
    accepts("12 flameg --duration 1", "flamegraph", "12", false);
    accepts("ver status", "status", "ver", false); /* a process whose name begins a verb's */
    accepts("query 12", "query", "12", false);
    accepts("tables 12", "tables", "12", false);
    assert_int_equal(parse("query 1 SELECT", &line, &e), 0);
    assert_string_equal(line.targets.items[0], "1");
    assert_string_equal(line.options->operand, "SELECT");
    cli_line_fini(&line);
    assert_int_equal(parse("eval 1 2", &line, &e), 0);
    assert_string_equal(line.targets.items[0], "1");
    assert_string_equal(line.options->operand, "2");
    cli_line_fini(&line);
    assert_int_equal(parse("tables python.samples", &line, &e), 0);
    assert_int_equal(line.targets.n, 0);
    assert_string_equal(line.options->operand, "python.samples");
    cli_line_fini(&line);
    assert_int_equal(parse("run python x.py", &line, &e), 0);
    assert_string_equal(line.verb->name, "launch");
    assert_string_equal(line.options->command[1], "x.py");
    cli_line_fini(&line);
    assert_int_equal(parse("version", &line, &e), 0);
    assert_true(line.version);
    cli_line_fini(&line);
    assert_int_equal(parse("", &line, &e), 0);
    assert_true(line.nothing);
    cli_line_fini(&line);
}

static void check_own_options(void **state) {
    (void)state;
    struct cli_line line;
    struct err e;
    assert_int_equal(parse("12 inject --timeout 250ms --json", &line, &e), 0);
    assert_true(seconds(&line, "timeout") == 0.25);
    assert_true(line.options->json);
    cli_line_fini(&line);
}

/* What follows a verb that takes a command belongs to that, options and all. */
static void check_command(void **state) {
    struct cli_line line;
    struct err e;
    (void)state;
    assert_int_equal(parse("launch -r python -r -t 5 --json train.py", &line, &e), 0);
    assert_true(flag(&line, "recursive"));
    assert_int_equal(line.targets.n, 0);
    assert_string_equal(line.options->command[0], "python");
    assert_string_equal(line.options->command[1], "-r");
    assert_string_equal(line.options->command[5], "train.py");
    assert_null(line.options->command[6]);
    cli_line_fini(&line);
    assert_int_equal(parse("launch -- -r", &line, &e), 0);
    assert_false(flag(&line, "recursive"));
    assert_string_equal(line.options->command[0], "-r");
    cli_line_fini(&line);
    refuses("launch", "launch needs a command: probing launch [OPTION...] COMMAND [ARGUMENT...]");
    refuses("12 launch ls", "launch takes no target");
    refuses("-t 12 launch ls", "launch takes no target");
}

static void check_help(void **state) {
    (void)state;
    struct cli_line line;
    struct err e;
    struct strbuf out;
    strbuf_init(&out, 0);
    assert_int_equal(parse("--help", &line, &e), 0);
    assert_true(line.help);
    cli_put_help(&out, line.verb);
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        char row[64]; /* an option may have its name, too */
        snprintf(row, sizeof row, "\n  %s ", (*v)->name);
        assert_int_equal(strstr(out.data, row) != NULL, !(*v)->is_internal);
        assert_int_equal(strstr(out.data, (*v)->help) != NULL, !(*v)->is_internal);
    }
    cli_line_fini(&line);
    strbuf_clear(&out);
    assert_int_equal(parse("inject --help", &line, &e), 0); /* needs no target */
    assert_string_equal(line.verb->name, "inject");
    cli_put_help(&out, line.verb);
    assert_non_null(strstr(out.data, "--timeout"));
    assert_non_null(strstr(out.data, "--json"));
    cli_line_fini(&line);
    strbuf_fini(&out);
    assert_int_equal(parse("--version", &line, &e), 0);
    assert_true(line.version);
    cli_line_fini(&line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_operands_and_many_targets),
        cmocka_unit_test(check_orders),
        cmocka_unit_test(check_hosts),
        cmocka_unit_test(check_contradictions),
        cmocka_unit_test(check_mistakes),
        cmocka_unit_test(check_other_words),
        cmocka_unit_test(check_own_options),
        cmocka_unit_test(check_command),
        cmocka_unit_test(check_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
