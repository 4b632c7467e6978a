/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of reading locals and values, on memory made by hand, for every version of the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/locals.h"
#include "pystack/scalars.h"
#include "pystack/values.h"
#include "support/pystack_values.h"

struct fixture {
    struct image img;
    struct image_python py;
    struct pystack *ps;
    struct arena arena;
    struct pystack_thread *threads;
    struct model_frame *frames;
    const struct model_locals **locals;
    ssize_t n;
    bool moved, cut;
};

static void read_locals(struct fixture *f, struct pystack_locals_budget budget) {
    struct mem m;
    bool torn, truncated;
    image_open(&f->img, &m);
    f->ps = pystack_open_memory(&m, f->img.off, f->py.runtime);
    assert_non_null(f->ps);
    f->ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 1);
    f->n = pystack_read_frames(f->ps, f->threads, &f->arena, &f->frames, &torn, &truncated);
    assert_true(f->n > 0);
    f->moved = f->cut = false;
    f->locals =
        pystack_locals_read(f->ps, 0, f->frames, (size_t)f->n, true, &f->arena, &budget, &f->moved, &f->cut);
    assert_non_null(f->locals);
}

static void begin(struct fixture *f, const struct pystack_offsets *off) {
    image_init(&f->img, off);
    image_python(&f->img, &f->py, "x");
    arena_init(&f->arena, (size_t)8 << 20);
}

static void end(struct fixture *f) {
    pystack_close(f->ps);
    arena_fini(&f->arena);
}

static void for_each_version(void (*test)(struct fixture *f, const struct pystack_offsets *off)) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        if (rows[i].type_name) /* not 3.4 and 3.5 */
            test(f, &rows[i]);
    free(f);
}

static const struct model_local *find(const struct model_locals *l, const char *name) {
    for (size_t i = 0; l && i < l->n; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return &l->items[i];
    return NULL;
}

static void expect(const struct fixture *f, const char *name, const char *type, const char *text,
                   enum model_local_kind kind) {
    const struct model_local *l = find(f->locals[0], name);
    if (!l)
        fail_msg("%d.%d: no %s", f->img.off->major, f->img.off->minor, name);
    if (!l->text || strcmp(l->text, text) != 0)
        fail_msg("%d.%d: %s is %s, not %s", f->img.off->major, f->img.off->minor, name, l->text, text);
    assert_string_equal(l->type, type);
    assert_int_equal(l->kind, kind);
}

static uint64_t put_frame(struct fixture *f, struct image_local *locals, size_t n) {
    uint64_t code = image_code(&f->img, "leaf", "/x/y.py", 7, 20, 2);
    uint64_t frame = image_locals_frame(&f->img, 0, code, locals, n, 2);
    image_set_frame(&f->img, &f->py, frame);
    return frame;
}

static void check_kinds(struct fixture *f, const struct pystack_offsets *off) {
    struct image_local locals[IMAGE_LOCALS_MAX];
    begin(f, off);
    size_t n = image_every_kind(&f->img, locals);
    (void)put_frame(f, locals, n);
    read_locals(f, pystack_locals_budget(false));
    expect(f, "none", "NoneType", "None", MODEL_LOCAL_ARGUMENT);
    expect(f, "number", "int", "1234567890123", MODEL_LOCAL_ARGUMENT);
    expect(f, "half", "float", "0.5", MODEL_LOCAL_VARIABLE);
    expect(f, "text", "str",
           "'gr\xc3\xb6\xc3\x9f"
           "e'",
           MODEL_LOCAL_VARIABLE);
    expect(f, "raw", "bytes", "b'a\\x00b'", MODEL_LOCAL_VARIABLE);
    expect(f, "list", "list",
           "[1234567890123, 'gr\xc3\xb6\xc3\x9f"
           "e', 0.5]",
           MODEL_LOCAL_VARIABLE);
    expect(f, "pair", "tuple",
           "(1234567890123, 'gr\xc3\xb6\xc3\x9f"
           "e')",
           MODEL_LOCAL_VARIABLE);
    expect(f, "table", "dict",
           "{'gr\xc3\xb6\xc3\x9f"
           "e': 1234567890123}",
           MODEL_LOCAL_VARIABLE);
    expect(f, "few", "set", "{0.5}", MODEL_LOCAL_VARIABLE);
    expect(f, "made", "Made", "<job.Made object>", MODEL_LOCAL_VARIABLE);
    expect(f, "inner", "tuple",
           "(1234567890123, 'gr\xc3\xb6\xc3\x9f"
           "e')",
           MODEL_LOCAL_CELL);
    expect(f, "outer", "tuple",
           "(1234567890123, 'gr\xc3\xb6\xc3\x9f"
           "e')",
           MODEL_LOCAL_FREE);
    assert_null(find(f->locals[0], "gone"));
    const struct model_local *broken = find(f->locals[0], "broken"); /* there is something, but no object */
    assert_true(broken && !broken->text && !broken->type);
    assert_false(f->moved || f->cut || f->locals[0]->truncated);
    end(f);
}

static void test_every_kind_in_every_version(void **state) {
    (void)state;
    for_each_version(check_kinds);
}

static void check_freed(struct fixture *f, const struct pystack_offsets *off) {
    struct image_local locals[IMAGE_LOCALS_MAX];
    if (off->free_threaded)
        return;
    begin(f, off);
    size_t n = image_every_kind(&f->img, locals);
    image_put_u64(&f->img, locals[1].object, off->object_type - 8, 0); /* no references: it was freed */
    uint64_t type = image_type(&f->img, "half-made", 1ULL << 24, 0, 0);
    image_put_u64(&f->img, type, off->type_flags, 1ULL << 24); /* not ready */
    image_put_u64(&f->img, locals[2].object, off->object_type, type);
    image_put_u64(&f->img, locals[3].object, off->object_type, locals[0].object); /* of a type that is none */
    (void)put_frame(f, locals, n);
    read_locals(f, pystack_locals_budget(false));
    for (size_t i = 1; i < 4; i++) {
        const struct model_local *l = find(f->locals[0], locals[i].name);
        assert_true(l && !l->text);
    }
    assert_string_equal(find(f->locals[0], "list")->text, "[?, ?, ?]");
    end(f);
}

static void test_what_is_no_object_is_unknown(void **state) {
    (void)state;
    for_each_version(check_freed);
}

static void check_limits(struct fixture *f, const struct pystack_offsets *off) {
    struct image_local locals[IMAGE_LOCALS_MAX];
    begin(f, off);
    size_t n = image_every_kind(&f->img, locals);
    (void)put_frame(f, locals, n);
    read_locals(f, (struct pystack_locals_budget){3, 1000});
    assert_true(f->cut && f->locals[0]->truncated);
    assert_int_equal(f->locals[0]->n, 3);
    pystack_close(f->ps);
    read_locals(f, (struct pystack_locals_budget){100, 30});
    assert_true(f->cut && f->locals[0]->truncated && f->locals[0]->n < 5);
    end(f);
}

static void test_budgets_hold(void **state) {
    (void)state;
    for_each_version(check_limits);
}

/* The frame is another function's by the time its locals are read. */
static void check_moved(struct fixture *f, const struct pystack_offsets *off) {
    struct image_local locals[IMAGE_LOCALS_MAX];
    begin(f, off);
    size_t n = image_every_kind(&f->img, locals);
    uint64_t frame = put_frame(f, locals, n);
    read_locals(f, pystack_locals_budget(false));
    image_put_u64(&f->img, frame, off->frame_code, image_code(&f->img, "other", "/x/z.py", 1, 20, 2));
    struct pystack_locals_budget budget = pystack_locals_budget(true);
    const struct model_locals **again =
        pystack_locals_read(f->ps, 0, f->frames, (size_t)f->n, true, &f->arena, &budget, &f->moved, &f->cut);
    assert_true(again && !again[0] && f->moved && !f->cut);
    end(f);
}

static void test_a_frame_that_went_has_no_values(void **state) {
    (void)state;
    for_each_version(check_moved);
}

/* Counts that no object has are not believed, and nothing that long is read. */
static void check_absurd(struct fixture *f, const struct pystack_offsets *off) {
    struct image_local locals[IMAGE_LOCALS_MAX];
    begin(f, off);
    size_t n = image_every_kind(&f->img, locals);
    image_put_u64(&f->img, locals[1].object, off->long_tag, 1ULL << 60);
    image_put_u64(&f->img, locals[3].object, off->str_length, UINT64_MAX);
    image_put_u64(&f->img, locals[4].object, off->var_size, 1ULL << 50);
    image_put_u64(&f->img, locals[5].object, off->var_size, UINT64_MAX);
    image_put_u64(&f->img, locals[6].object, off->var_size, UINT64_MAX);
    image_put_u64(&f->img, locals[7].object, off->dict_used, UINT64_MAX);
    image_put_u64(&f->img, locals[8].object, off->set_used, UINT64_MAX);
    (void)put_frame(f, locals, n);
    read_locals(f, pystack_locals_budget(false));
    for (size_t i = 1; i < 9; i++) {
        const struct model_local *l = find(f->locals[0], locals[i].name);
        assert_true(l && (i == 2 || !l->text));
    }
    assert_true(f->ps->reader.mem.reads < 20000);
    end(f);
}

static void test_absurd_counts_are_unknown(void **state) {
    (void)state;
    for_each_version(check_absurd);
}

/* Numbers are read of tensors of those versions alone whose layout is known; of others they are no numbers. */
static void test_versions_of_torch(void **state) {
    (void)state;
    assert_true(pystack_scalar_knows_torch("2.13.0"));
    assert_true(pystack_scalar_knows_torch("2.13.1+cpu"));
    const char *const others[] = {"",       "2",       "2.1",  "2.12.1", "2.130.0",
                                  "1.13.0", "12.13.0", "3.13", "nightly"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(pystack_scalar_knows_torch(others[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_in_every_version),
        cmocka_unit_test(test_what_is_no_object_is_unknown),
        cmocka_unit_test(test_budgets_hold),
        cmocka_unit_test(test_a_frame_that_went_has_no_values),
        cmocka_unit_test(test_absurd_counts_are_unknown),
        cmocka_unit_test(test_versions_of_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
