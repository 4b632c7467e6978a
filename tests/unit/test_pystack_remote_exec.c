/* SPDX-License-Identifier: Apache-2.0 */
/* Where an interpreter takes requests of debuggers: what it publishes of that, and an interpreter made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/debug_offsets.h"
#include "pystack/remote_exec.h"
#include "pystack/pystack_internal.h"

#define LINE_MAX_BYTES 4096
#define BASE 0x10000000ULL
#define RUNTIME (BASE + 4096)
#define INTERP (BASE + 0x80000)
#define TSTATE (BASE + 0x100000)
#define OTHER (BASE + 0x110000)
#define SIZE ((size_t)0x120000)

enum { WORD_THREADS_MAIN = 10, WORD_TSTATE_SIZE = 22, SUPPORT_WORDS = 6 };

struct published {
    int minor, free_threaded;
    size_t n; /* bytes */
    uint64_t words[PYSTACK_DEBUG_BYTES / 8];
};

/* Call `check` with what each build publishes, by its own headers; how many have a door. */
static int for_each_published(void (*check)(const struct published *p, const struct pystack_offsets *row)) {
    static char line[LINE_MAX_BYTES], hex[LINE_MAX_BYTES];
    FILE *file = fopen(PROBING_SOURCE_DIR "/tests/unit/pystack_published.txt", "r");
    int count = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        struct published p = {0};
        if (line[0] == '#' || sscanf(line, "3.%d.%*s %d %s", &p.minor, &p.free_threaded, hex) != 3)
            continue;
        p.n = strlen(hex) / 2;
        for (size_t i = 0; i < p.n; i++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
            ((uint8_t *)p.words)[i] = (uint8_t)byte;
        }
        const struct pystack_offsets *row = pystack_offsets_find(3, p.minor, p.free_threaded);
        assert_non_null(row);
        check(&p, row);
        count += p.minor >= 14;
    }
    (void)fclose(file);
    return count;
}

static uint64_t *support_of(struct published *p) { return p->words + p->n / 8 - SUPPORT_WORDS; }

static int parse(const struct published *p, const struct pystack_offsets *row,
                 struct pystack_remote_exec_offsets *o) {
    return pystack_remote_exec_parse((const uint8_t *)p->words, p->n, row, o);
}

static void check_published(const struct published *p, const struct pystack_offsets *row) {
    struct pystack_remote_exec_offsets o;
    if (p->minor < 14) {
        assert_int_equal(parse(p, row, &o), -1);
        return;
    }
    assert_int_equal(parse(p, row, &o), 0);
    uint64_t size = p->words[WORD_TSTATE_SIZE];
    assert_int_equal(o.path_size, 512); /* _Py_MAX_SCRIPT_PATH_SIZE */
    assert_int_equal(o.path, o.pending + 4);
    assert_true(o.path + o.path_size <= size && o.breaker < o.pending && o.breaker % 8 == 0);
    assert_true(o.enabled % 4 == 0 && o.threads_main % 8 == 0 && o.threads_main);
}

static void test_published(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_published), 4);
}

/* Each word made impossible in turn: nothing that is accepted lies outside of its struct. */
static void check_impossible(const struct published *p, const struct pystack_offsets *row) {
    static const uint64_t bad[] = {0, 2U << 20, 1ULL << 40, UINT64_MAX, UINT64_MAX - 511};
    struct pystack_remote_exec_offsets o;
    if (p->minor < 14)
        return;
    for (size_t i = 0; i < SUPPORT_WORDS; i++)
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            struct published q = *p;
            if (support_of(&q)[i] == bad[k])
                continue; /* the flag is the support's first */
            support_of(&q)[i] = bad[k];
            bool may_be = bad[k] == 0 && (i == 3 || i == 4);
            assert_int_equal(parse(&q, row, &o), may_be ? 0 : -1);
        }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        struct published q = *p;
        q.words[WORD_THREADS_MAIN] = bad[k];
        assert_int_equal(parse(&q, row, &o), -1);
        q = *p;
        q.words[WORD_TSTATE_SIZE] = bad[k];
        assert_int_equal(parse(&q, row, &o), -1);
    }
    struct published q = *p;
    support_of(&q)[5] = 8; /* a path has no room in that */
    assert_int_equal(parse(&q, row, &o), -1);
    q = *p;
    q.n -= 8;
    assert_int_equal(parse(&q, row, &o), -1);
    q = *p;
    q.words[2] = !q.words[2]; /* of another build */
    assert_int_equal(parse(&q, row, &o), -1);
    q = *p;
    q.words[0]++;
    assert_int_equal(parse(&q, row, &o), -1);
}

static void test_what_makes_no_sense(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_impossible), 4);
}

/* --- an interpreter ------------------------------------------------------------------------------------------- */

static uint8_t memory[SIZE];

static void put(uint64_t addr, uint64_t value) { memcpy(memory + (addr - BASE), &value, sizeof value); }

static void put_u32(uint64_t addr, uint32_t value) { memcpy(memory + (addr - BASE), &value, sizeof value); }

/* A main thread and another one, that is newer. */
static void lay_out(const struct published *p, const struct pystack_offsets *row,
                    struct pystack_remote_exec_offsets *o) {
    memset(memory, 0, sizeof memory);
    memcpy(memory + (RUNTIME - BASE), p->words, p->n);
    assert_int_equal(parse(p, row, o), 0);
    put(RUNTIME + (uint64_t)row->runtime_interpreters_head, INTERP);
    put(INTERP + (uint64_t)row->interp_threads_head, OTHER);
    put(INTERP + o->threads_main, TSTATE);
    put_u32(INTERP + o->enabled, 1);
    put(OTHER + (uint64_t)row->tstate_next, TSTATE);
    put(OTHER + (uint64_t)row->tstate_interp, INTERP);
    put(TSTATE + (uint64_t)row->tstate_prev, OTHER);
    put(TSTATE + (uint64_t)row->tstate_interp, INTERP);
    put(TSTATE + (uint64_t)row->tstate_native_thread_id, 4242);
}

static void refused(const struct pystack_offsets *row, const char *why) {
    struct pystack_remote_exec door;
    struct err e = {0};
    struct mem m;
    mem_init_buffer(&m, memory, sizeof memory, BASE);
    struct pystack *ps = pystack_open_memory(&m, row, RUNTIME);
    assert_non_null(ps);
    assert_int_equal(pystack_find_remote_exec(ps, &door, &e), why ? -1 : 0);
    if (why) {
        assert_int_equal(e.code, ERR_ATTACH);
        assert_non_null(strstr(e.text, why));
    } else {
        assert_true(pystack_has_remote_exec(ps));
        assert_int_equal(door.tid, 4242);
        assert_int_equal(door.breaker_set & 0x11, 0); /* neither the GIL nor garbage is asked for */
        assert_true(door.breaker_set & 0x20);
        assert_in_range(door.path, TSTATE, TSTATE + 1024);
        assert_in_range(door.pending, TSTATE, TSTATE + 1024);
        assert_in_range(door.breaker, TSTATE, TSTATE + 1024);
    }
    pystack_close(ps);
}

static void check_interpreter(const struct published *p, const struct pystack_offsets *row) {
    struct pystack_remote_exec_offsets o;
    if (p->minor < 14)
        return;
    lay_out(p, row, &o);
    refused(row, NULL);
    put_u32(INTERP + o.enabled, 0);
    refused(row, "PYTHON_DISABLE_REMOTE_DEBUG");
    lay_out(p, row, &o);
    put_u32(INTERP + o.enabled, 0xffffffff); /* not yet decided */
    refused(row, "takes no requests");
    lay_out(p, row, &o);
    put(RUNTIME + (uint64_t)row->runtime_finalizing, TSTATE);
    refused(row, "being shut down");
    lay_out(p, row, &o);
    put_u32(TSTATE + o.pending, 1);
    refused(row, "another debugger");
    lay_out(p, row, &o);
    put(INTERP + o.threads_main, 0);
    refused(row, "main thread has ended");
    lay_out(p, row, &o);
    put(OTHER + (uint64_t)row->tstate_next, 0); /* it is not in the list any more */
    refused(row, "main thread has ended");
    lay_out(p, row, &o);
    put(TSTATE + (uint64_t)row->tstate_interp, OTHER);
    refused(row, "main thread has ended");
    lay_out(p, row, &o);
    put(OTHER + (uint64_t)row->tstate_next, OTHER); /* a list without an end */
    refused(row, "main thread has ended");
    lay_out(p, row, &o);
    put(RUNTIME, 0);
    refused(row, "no place for requests");
}

static void test_an_interpreter(void **state) {
    (void)state;
    assert_int_equal(for_each_published(check_interpreter), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_what_makes_no_sense),
        cmocka_unit_test(test_an_interpreter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
