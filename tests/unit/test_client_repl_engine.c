/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of both prompts: its questions, when typed code is complete, and what it shows of an answer, in which order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "client/repl/repl_engine.h"

/* A face that notes what it is asked for. */
struct noted {
    struct strbuf shown;
    bool refuses;
};

static void put(void *arg, enum repl_mark mark, const char *text, size_t len) {
    struct noted *n = arg;
    if (len)
        strbuf_addf(&n->shown, "%c:%.*s\n", "VTEN"[mark], (int)len, text);
}

static int run_code(void *arg, const char *code, size_t len, bool timed, struct err *e) {
    struct noted *n = arg;
    if (n->refuses)
        return err_set(e, ERR_FAILED, "not now");
    strbuf_addf(&n->shown, "run%s %.*s\n", timed ? " timed" : "", (int)len, code);
    return 0;
}

static int query(void *arg, struct magic *m, struct err *e) {
    (void)e;
    strbuf_addf(&((struct noted *)arg)->shown, "query %s\n", strbuf_str(&m->text));
    return 0;
}

static struct wire_text text_of(const char *s) { return (struct wire_text){s, s ? strlen(s) : 0}; }

/* What is shown of an answer, and why it has failed; "" it has not. */
static void shows(struct repl_engine *r, const struct wire_evaluated *v, const char *shown, const char *why) {
    struct noted n = {.refuses = false};
    const struct repl_face face = {.arg = &n, .put = put};
    struct err e = {.text = ""};
    strbuf_init(&n.shown, 0);
    assert_int_equal(repl_engine_put(r, v, &face, &e), *why ? -1 : 0);
    assert_string_equal(strbuf_str(&n.shown), shown);
    if (*why)
        assert_string_equal(e.text, why);
    strbuf_fini(&n.shown);
}

static void test_questions(void **state) {
    (void)state;
    struct repl_engine r;
    struct err e = {.text = ""};
    repl_engine_init(&r, 60, 4096);
    assert_int_equal(repl_engine_ask(&r, REPL_RUN, "1 + 1 ...", 5, &e), 0);
    struct wire_eval want = repl_engine_question(&r);
    assert_true(want.keep && !want.complete && !want.whole && want.code_len == 5 &&
                want.output_bytes == 4096);
    assert_string_equal(want.code, "1 + 1");
    assert_string_equal(want.name, "<repl>");
    /* What is too long is not asked, and the question before it stays. */
    char *long_code = calloc(1, WIRE_EVAL_CODE_MAX + 1);
    assert_non_null(long_code);
    assert_int_equal(repl_engine_ask(&r, REPL_NAMES, long_code, WIRE_EVAL_CODE_MAX + 1, &e), -1);
    assert_non_null(strstr(e.text, "longer than"));
    free(long_code);
    assert_int_equal(repl_engine_end(&r), REPL_RUN);
    assert_int_equal(r.asked, REPL_NOTHING);
    r.timed = r.interrupted = true;
    assert_int_equal(repl_engine_ask(&r, REPL_WHOLE, "x", 1, &e), 0);
    want = repl_engine_question(&r);
    assert_true(want.complete && want.whole && want.timeout_s == 60 && want.output_bytes > 4096);
    assert_false(r.timed || r.interrupted);
    assert_int_equal(repl_engine_ask(&r, REPL_NAMES, "x", 1, &e), 0);
    want = repl_engine_question(&r);
    assert_true(want.complete && !want.whole && want.timeout_s < 60);
    repl_engine_fini(&r);
}

static void test_when_code_is_complete(void **state) {
    (void)state;
    const struct wire_text answers[] = {text_of("done"), text_of("more"), text_of("block"),
                                        text_of("moreover"), text_of(NULL)};
    const enum repl_code codes[] = {REPL_CODE_DONE, REPL_CODE_MORE, REPL_CODE_BLOCK, REPL_CODE_DONE,
                                    REPL_CODE_DONE};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_int_equal(repl_engine_read_code(&answers[i]), codes[i]);
    assert_true(repl_engine_ends_block(REPL_CODE_BLOCK, " \t"));
    assert_false(repl_engine_ends_block(REPL_CODE_BLOCK, " x"));
    assert_false(repl_engine_ends_block(REPL_CODE_MORE, ""));
    assert_int_equal(repl_engine_find_word("a.bc_9", 6), 2);
    assert_int_equal(repl_engine_find_word("a.bc_9", 2), 2);
    assert_int_equal(repl_engine_find_word("h\xc3\xb6rt", 5), 0);
}

static void test_answers(void **state) {
    (void)state;
    struct repl_engine r;
    repl_engine_init(&r, 60, 4096);
    struct wire_evaluated v = {.output = text_of("out\n"), .result = text_of("7"), .duration_ms = 1234.5};
    shows(&r, &v, "V:out\n\nV:7\n", "");
    r.timed = true;
    v.truncated = true;
    shows(&r, &v, "V:out\n\nV:7\nV:1234 ms in the job\nN:the output was truncated at 4 KiB\n", "");
    /* A traceback explains what an exception without one does not. */
    r.timed = false;
    v = (struct wire_evaluated){.type = text_of("KeyError"), .traceback = text_of("Traceback ...")};
    shows(&r, &v, "T:Traceback ...\n", "the code raised KeyError");
    assert_true(r.explained);
    v.traceback = text_of(NULL);
    shows(&r, &v, "E:the code raised KeyError\n", "the code raised KeyError");
    assert_false(r.explained);
    v = (struct wire_evaluated){.timed_out = true, .traceback = text_of("T")};
    shows(&r, &v, "T:T\nE:timed out after 60 s and was interrupted; %timeout S raises the limit\n",
          "timed out after 60 s and was interrupted; %timeout S raises the limit");
    struct err e;
    v.unended = true;
    assert_int_equal(repl_engine_explain(&v, 2, "", &e), -1);
    assert_non_null(strstr(e.text, "timed out after 2 s: the code is in C or catches"));
    v.timed_out = false;
    assert_int_equal(repl_engine_explain(&v, 2, "", &e), -1);
    assert_non_null(strstr(e.text, "interrupted: the code is in C or catches"));
    repl_engine_fini(&r);
}

static void test_lines(void **state) {
    (void)state;
    struct noted n = {.refuses = false};
    const struct repl_face face = {.arg = &n, .put = put, .run = run_code, .query = query};
    struct repl_engine r;
    struct err e = {.text = ""};
    strbuf_init(&n.shown, 0);
    repl_engine_init(&r, 60, 4096);
    assert_int_equal(repl_engine_run_magic(&r, "%time 2 * 3", &face, &e), 0);
    assert_int_equal(repl_engine_run_magic(&r, "%q SELECT 1", &face, &e), 0);
    assert_int_equal(repl_engine_run_magic(&r, "%timeout 5", &face, &e), 0);
    assert_string_equal(strbuf_str(&n.shown), "run timed 2 * 3\nquery SELECT 1\n");
    assert_true(r.want.timeout_s == 5);
    assert_int_equal(repl_engine_run_magic(&r, "%help", &face, &e), 0);
    assert_non_null(strstr(strbuf_str(&n.shown), "V:%help"));
    assert_int_equal(repl_engine_run_magic(&r, "%nothing", &face, &e), -1);
    n.refuses = true;
    assert_int_equal(repl_engine_run_magic(&r, "%who", &face, &e), -1);
    assert_string_equal(e.text, "not now");
    strbuf_fini(&n.shown);
    repl_engine_fini(&r);
}

static void test_history_fails_once(void **state) {
    (void)state;
    struct repl_engine r;
    struct err e;
    repl_engine_init(&r, 60, 4096);
    assert_int_equal(repl_engine_remember(&r, "first line", 5, &e), 0);
    assert_string_equal(r.history.entries[0], "first");
    (void)strcpy(r.history.path, "/proc/self/no such file");
    assert_int_equal(repl_engine_remember(&r, "2", 1, &e), -1);
    assert_int_equal(repl_engine_remember(&r, "3", 1, &e), 0);
    assert_int_equal(r.history.n, 3);
    repl_engine_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_when_code_is_complete),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_history_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
