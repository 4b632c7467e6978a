/* SPDX-License-Identifier: Apache-2.0 */
/* Native and Python frames put together, as each version of CPython marks its entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/native_merge.h"

#define MAX 64

/* Letters: n native, L loop, P part of the loop, e what it calls at its edges, ? cut or gap; then a-z (not n) Python frames, | an entry. Merged is what comes out,
 * innermost first, with the kind of merge in front. */
static const char *merge(const char *text, bool truncated) {
    static char out[MAX + 8];
    struct model_frame frames[MAX] = {{0}};
    enum native_role roles[MAX];
    uint32_t order[MAX];
    enum model_native how;
    size_t n = strlen(text), n_native = 0, used;
    while (n_native < n && strchr("nmkeLP?", text[n_native])) {
        frames[n_native].kind = MODEL_FRAME_NATIVE;
        roles[n_native] = text[n_native] == 'L'   ? NATIVE_ROLE_LOOP
                          : text[n_native] == 'P' ? NATIVE_ROLE_LOOP_PART
                          : text[n_native] == 'e' ? NATIVE_ROLE_EDGE
                          : text[n_native] == '?' ? NATIVE_ROLE_TRUNCATED
                                                  : NATIVE_ROLE_PLAIN;
        n_native++;
    }
    for (size_t i = n_native; i < n; i++)
        frames[i].kind = text[i] == '|' ? MODEL_FRAME_ENTRY : MODEL_FRAME_PYTHON;
    size_t shown = native_merge(frames, n, roles, n_native, truncated, order, &how);
    const char *name = model_native_name(how);
    strcpy(out, name ? name : "unknown");
    used = strlen(out);
    out[used++] = ' ';
    for (size_t i = 0; i < shown; i++) {
        assert_true(order[i] < n);
        out[used++] = text[order[i]];
    }
    out[used] = '\0';
    return out;
}

static void check(const char *text, const char *expected) {
    assert_string_equal(merge(text, false), expected);
}

/* Up to 3.10 each frame has a call of the loop of its own. */
static void test_a_call_for_each_frame(void **state) {
    (void)state;
    check("nLmLkL"
          "a|b|c|",
          "merged namb"
          "kc");
    check("nL"
          "a|",
          "merged na");
}

/* From 3.11 on one call runs several frames. */
static void test_a_call_for_several_frames(void **state) {
    (void)state;
    check("nLmLk"
          "ab|cde|",
          "merged nabmcdek");
    check("LmL"
          "abc|d|",
          "merged abcmd");
}

/* A thread without Python, and one that is between two calls of it. */
static void test_native_alone(void **state) {
    (void)state;
    check("nmk", "merged nmk");
    check("nm?", "merged nm?");
    check("", "unknown ");
    check("ab|", "unknown ab");
}

/* A call that has just begun has no frame yet, or one whose arguments are still being set up. */
static void test_a_call_that_begins(void **state) {
    (void)state;
    check("LmL"
          "ab|",
          "merged mab");
    check("PLmL"
          "ab|",
          "merged mab");
    check("nLmL"
          "|ab|",
          "merged nmab");
    check("nLmL"
          "ab|",
          "apart nLmLab"); /* it called something: it must have a frame */
    check("nneLmL"
          "ab|",
          "merged nnemab"); /* its frame has left: the result is checked */
    check("eLmL"
          "|ab|",
          "merged emab");
    check("eLL"
          "a|b|",
          "merged eab"); /* of what it has called itself */
    check("enLmL"
          "ab|",
          "apart enLmLab");
    check("nLeL"
          "ab|",
          "apart nLeLab");
}

/* Instructions of a tail-call interpreter, and parts the compiler split off, are of the loop below them. */
static void test_parts_are_of_their_loop(void **state) {
    (void)state;
    check("nPLmPLk"
          "ab|c|",
          "merged nabmck");
    check("nPPLk"
          "ab|",
          "merged nabk");
    check("nPmLk"
          "a|b|",
          "merged namb"
          "k"); /* a part that does not stand on its loop */
}

static void test_what_does_not_fit_stays_apart(void **state) {
    (void)state;
    check("nLm"
          "a|b|",
          "apart nLmab");
    check("nLmLkLn"
          "a|b|",
          "apart nLmLkLnab");
    check("nm"
          "a|",
          "apart nma");
    check("nLm"
          "a",
          "apart nLma"); /* the outermost frame's entry is missing though nothing was cut */
}

/* The native chain was followed a part of the way: what was seen of it must fit, the rest of Python follows. */
static void test_a_chain_that_was_cut(void **state) {
    (void)state;
    check("nLm?"
          "a|bc|d|",
          "merged nam?bcd");
    check("n?"
          "a|b|",
          "merged n?ab");
    check("nLmLk?"
          "a|",
          "apart nLmLk?a");
    check("n?mLk"
          "ab|",
          "merged n?mabk"); /* a gap, and the chain goes on behind it */
    check("n?mLk"
          "ab|c|",
          "apart n?mLkabc");
}

/* Only the innermost Python frames are known. */
static void test_a_recursion_that_was_cut(void **state) {
    (void)state;
    assert_string_equal(merge("nLmLkLn"
                              "a|b",
                              true),
                        "merged nambkn");
    assert_string_equal(merge("nLm"
                              "a|b|",
                              true),
                        "apart nLmab");
    assert_string_equal(merge("nL?"
                              "a|b|",
                              true),
                        "merged na?b");
}

static void test_roles_by_name(void **state) {
    (void)state;
    assert_int_equal(native_role_of("_PyEval_EvalFrameDefault"), NATIVE_ROLE_LOOP);
    assert_int_equal(native_role_of("_PyEval_EvalFrameDefault.cold"), NATIVE_ROLE_LOOP);
    assert_int_equal(native_role_of("_PyEval_EvalFrameDefault.localalias"), NATIVE_ROLE_LOOP);
    assert_int_equal(native_role_of("_PyEval_EvalFrameDefault.part.0"), NATIVE_ROLE_LOOP_PART);
    assert_int_equal(native_role_of("_TAIL_CALL_CALL_FUNCTION_EX"), NATIVE_ROLE_LOOP_PART);
    assert_int_equal(native_role_of("_PyEval_EvalFrameDefaultish"), NATIVE_ROLE_PLAIN);
    assert_int_equal(native_role_of("_PyEval_EvalFrame"), NATIVE_ROLE_PLAIN);
    assert_int_equal(native_role_of("PyEval_EvalCode"), NATIVE_ROLE_PLAIN);
    assert_int_equal(native_role_of("_Py_CheckFunctionResult"), NATIVE_ROLE_EDGE);
    assert_int_equal(native_role_of(""), NATIVE_ROLE_PLAIN);
    assert_int_equal(native_role_of(NULL), NATIVE_ROLE_PLAIN);
}

/* Every list of up to eight marks: nothing is lost or shown twice, and Python and native frames each keep their order. */
static void test_nothing_is_lost(void **state) {
    static const char native[] = "nLP?", python[] = "a|";
    (void)state;
    for (unsigned n_native = 0; n_native <= 4; n_native++)
        for (unsigned n_python = 0; n_python <= 4; n_python++)
            for (unsigned bits = 0; bits < 1U << (2 * n_native + n_python); bits++)
                for (int truncated = 0; truncated < 2; truncated++) {
                    char text[MAX] = "";
                    size_t frames = 0, shown = 0;
                    for (unsigned i = 0; i < n_native; i++)
                        text[i] = native[bits >> (2 * i) & 3];
                    for (unsigned i = 0; i < n_python; i++) {
                        text[n_native + i] = python[bits >> (2 * n_native + i) & 1];
                        frames += text[n_native + i] == 'a';
                    }
                    const char *out = strchr(merge(text, truncated), ' ') + 1;
                    for (const char *p = out; *p; p++) {
                        assert_true(*p != '|');
                        shown += *p == 'a';
                    }
                    assert_int_equal(shown, frames);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_for_each_frame),
        cmocka_unit_test(test_a_call_for_several_frames),
        cmocka_unit_test(test_native_alone),
        cmocka_unit_test(test_a_call_that_begins),
        cmocka_unit_test(test_parts_are_of_their_loop),
        cmocka_unit_test(test_what_does_not_fit_stays_apart),
        cmocka_unit_test(test_a_chain_that_was_cut),
        cmocka_unit_test(test_a_recursion_that_was_cut),
        cmocka_unit_test(test_roles_by_name),
        cmocka_unit_test(test_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
