/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a thread that was stopped while it was entering the interpreter's loop, on memory made by hand, for every version of
 * the tables: what is shown holds together, or is marked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/pystack_internal.h"
#include "support/pystack_image.h"

struct fixture {
    struct image img;
    struct image_python py;
    struct pystack *ps;
    struct arena arena;
    uint64_t newest, entry, leaf; /* _PyCFrame, entry frame and frame of the newest call */
    int stops, steps;             /* how often it was stopped; how often it has to run to get through */
    struct model_frame *frames;
    bool torn, truncated;
};

static int fixture_stop(void *arg, pid_t tid) {
    struct fixture *f = arg;
    (void)tid;
    f->stops++;
    return 0;
}

/* It goes on: at last the new call is linked to its caller, and its _PyCFrame to the one before. */
static uint64_t fixture_go(void *arg) {
    struct fixture *f = arg;
    const struct pystack_offsets *o = f->img.off;
    if (--f->steps == 0) {
        image_put_u64(&f->img, f->leaf, o->frame_previous, f->entry);
        image_put_u64(&f->img, f->newest, o->cframe_current_frame + 8, f->py.cframe);
    }
    return 1000;
}

/* A call from C that is being entered, by a thread that is in `outer` below: `filled` says how far it has come. */
static ssize_t fixture_read(struct fixture *f, const struct pystack_offsets *o, bool filled, int steps) {
    struct mem m;
    struct pystack_thread *threads;
    struct pystack_stopper hold = {.stop = fixture_stop, .go = fixture_go, .arg = f};
    *f = (struct fixture){.steps = steps};
    image_init(&f->img, o);
    image_python(&f->img, &f->py, "x");
    arena_init(&f->arena, (size_t)8 << 20);
    uint64_t outer = image_code(&f->img, "outer", "/x/y.py", 7, 20, 2);
    uint64_t leaf = image_code(&f->img, "leaf", "/x/y.py", 9, 20, 2), nothing = image_ascii(&f->img, "None");
    bool shims = o->minor > 11; /* entries are frames of their own */
    uint64_t root = shims ? image_frame(&f->img, 0, nothing, 3, (uint8_t)o->owner_shim) : 0;
    uint64_t caller = image_frame(&f->img, root, outer, 5, 0);
    f->entry = shims ? image_frame(&f->img, caller, nothing, 3, (uint8_t)o->owner_shim) : caller;
    f->leaf = image_frame(&f->img, filled ? f->entry : 0, leaf, 5, 0);
    if (!shims) {
        image_put_u8(&f->img, caller, o->frame_owner - 1, 1); /* is_entry */
        image_put_u8(&f->img, f->leaf, o->frame_owner - 1, 1);
    }
    f->newest = image_alloc(&f->img, 64);
    image_set_frame(&f->img, &f->py, caller);
    image_put_u64(&f->img, f->newest, o->cframe_current_frame, f->leaf);
    image_put_u64(&f->img, f->newest, o->cframe_current_frame + 8, filled ? f->py.cframe : 0);
    image_put_u64(&f->img, f->py.tstate, o->tstate_frame, f->newest);
    image_open(&f->img, &m);
    f->ps = pystack_open_memory(&m, o, f->py.runtime);
    assert_non_null(f->ps);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &threads), 1);
    threads->tid = 4242;
    pystack_set_stopper(f->ps, &hold);
    return pystack_read_frames(f->ps, threads, &f->arena, &f->frames, &f->torn, &f->truncated);
}

static void fixture_end(struct fixture *f) {
    pystack_close(f->ps);
    arena_fini(&f->arena);
}

static void expect_both(const struct fixture *f, ssize_t n) {
    assert_int_equal(n, 2);
    assert_false(f->torn);
    assert_string_equal(f->frames[0].func, "leaf");
    assert_string_equal(f->frames[1].func, "outer");
}

static void check_entering(struct fixture *f, const struct pystack_offsets *o) {
    expect_both(f, fixture_read(f, o, true, 1));
    assert_int_equal(f->stops, 1);
    assert_int_equal(pystack_stopped_ns(f->ps), 1000);
    fixture_end(f);

    /* Some instructions later it is whole: the time of both stops is told. */
    expect_both(f, fixture_read(f, o, false, 1));
    assert_int_equal(f->stops, 2);
    assert_int_equal(pystack_stopped_ns(f->ps), 2000);
    fixture_end(f);

    /* It does not get on, for it has no CPU: what is shown is marked. */
    assert_true(fixture_read(f, o, false, 100) <= 0 || f->torn);
    assert_true(f->stops > 1 && f->stops < 10);
    fixture_end(f);
}

static void test_a_call_that_is_being_entered(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct fixture *f = calloc(1, sizeof *f);
    int tried = 0;
    (void)state;
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        if (rows[i].frame_style == PYSTACK_FRAME_CFRAME) {
            check_entering(f, &rows[i]);
            tried++;
        }
    assert_true(tried >= 2);
    free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_that_is_being_entered),
    };
    return cmocka_run_group_tests_name("pystack_hold", tests, NULL, NULL);
}
