/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of walking an interpreter's memory, on memory made by hand, for every version of the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    struct pystack_thread *threads;
    struct model_frame *frames;
    bool torn, truncated;
};

static void fixture_begin(struct fixture *f, const struct pystack_offsets *off, const char *name) {
    image_init(&f->img, off);
    image_python(&f->img, &f->py, name);
    arena_init(&f->arena, (size_t)8 << 20);
}

static ssize_t fixture_frames(struct fixture *f) {
    struct mem m;
    image_open(&f->img, &m);
    f->ps = pystack_open_memory(&m, f->img.off, f->py.runtime);
    assert_non_null(f->ps);
    f->ps->tstate_current = f->py.current;
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 1);
    return pystack_read_frames(f->ps, f->threads, &f->arena, &f->frames, &f->torn, &f->truncated);
}

static void fixture_end(struct fixture *f) {
    pystack_close(f->ps);
    f->ps = NULL;
    arena_fini(&f->arena);
}

/* Run a test once for each row of the tables. */
static void for_each_version(void (*test)(struct fixture *f, const struct pystack_offsets *off)) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_true(n >= 13);
    for (size_t i = 0; i < n; i++)
        test(f, &rows[i]);
    free(f);
}

static void check_thread(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "trainer");
    image_set_holder(&f->img, &f->py, 1);
    uint64_t code = image_code(&f->img, "leaf", "/x/y.py", 7, 20, 2);
    image_set_frame(&f->img, &f->py, image_frame(&f->img, 0, code, 5, 0));
    assert_int_equal(fixture_frames(f), 1);
    assert_string_equal(f->threads[0].name, "trainer");
    assert_true(f->threads[0].ident == IMAGE_IDENT && f->threads[0].holds_gil);
    assert_true(off->tstate_id < 0 || f->threads[0].serial == 7);
    assert_int_equal(f->threads[0].tid, off->tstate_native_thread_id ? 4242 : 0);
    assert_string_equal(f->frames[0].func, "leaf");
    assert_string_equal(f->frames[0].file, "/x/y.py");
    assert_int_equal(f->frames[0].line, 7);
    assert_false(f->torn || f->truncated);
    fixture_end(f);
}

static void test_a_thread(void **state) {
    (void)state;
    for_each_version(check_thread);
}

static void check_last_holder(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    image_set_holder(&f->img, &f->py, 0);
    assert_int_equal(fixture_frames(f), 0); /* no frame at all */
    assert_false(f->threads[0].holds_gil);  /* it was the last to hold it, it does not now */
    fixture_end(f);
}

static void test_the_last_holder_is_not_the_holder(void **state) {
    (void)state;
    for_each_version(check_last_holder);
}

static void check_skipped(struct fixture *f, const struct pystack_offsets *off) {
    if (off->frame_style == PYSTACK_FRAME_OBJECT)
        return;
    fixture_begin(f, off, "x");
    uint64_t outer = image_code(&f->img, "outer", "a", 1, 20, 2),
             inner = image_code(&f->img, "inner", "a", 9, 20, 4);
    uint64_t frame = image_frame(&f->img, 0, outer, 5, 0);
    if (off->owner_shim != 255)
        frame = image_frame(&f->img, frame, off->minor == 12 ? outer : 0, 0, (uint8_t)off->owner_shim);
    if (off->owner_bottom != 255)
        frame = image_frame(&f->img, frame, 0, 0, (uint8_t)off->owner_bottom);
    frame = image_frame(&f->img, frame, inner, 1, (uint8_t)off->owner_generator); /* begun, though early */
    frame = image_frame(&f->img, frame, inner, 3, 0);                             /* not begun */
    image_set_frame(&f->img, &f->py, frame);
    assert_int_equal(fixture_frames(f), 2);
    assert_string_equal(f->frames[0].func, "inner");
    assert_string_equal(f->frames[1].func, "outer");
    assert_false(f->torn);
    fixture_end(f);
}

static void test_frames_that_are_not_shown(void **state) {
    (void)state;
    for_each_version(check_skipped);
}

/* A GIL that is turned off is held by nobody, whatever else its struct says. */
static void check_no_gil(struct fixture *f, const struct pystack_offsets *off) {
    if (off->gil_enabled < 0)
        return;
    fixture_begin(f, off, "x");
    image_set_holder(&f->img, &f->py, 1);
    image_put_u32(&f->img, f->py.gil, off->gil_enabled, 0);
    assert_int_equal(fixture_frames(f), 0);
    assert_false(f->threads[0].holds_gil || f->ps->holder_unlisted);
    assert_int_equal(f->threads[0].gil_enabled, 0);
    /* Without a GIL it cannot be told which thread collects garbage. */
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_NONE), 0);
    image_put_u32(&f->img, f->py.interp, off->gc_collecting, 1);
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_NONE), MODEL_UNKNOWN);
    fixture_end(f);
}

static void test_a_gil_that_is_off(void **state) {
    (void)state;
    for_each_version(check_no_gil);
}

static void read_facts(struct fixture *f, uint64_t switches, uint64_t collecting) {
    f->ps->static_switches = switches;
    f->ps->static_collecting = collecting;
    arena_fini(&f->arena);
    arena_init(&f->arena, (size_t)8 << 20);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 1);
}

/* How often the GIL has changed hands, and whether garbage is collected: by whoever holds it then. */
static void check_facts(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    bool is_static = off->gc_place == PYSTACK_GC_STATIC;
    uint64_t at = image_alloc(&f->img, 16), gc = at + 8;
    if (!is_static) {
        at = f->py.gil + (uint64_t)off->gil_switches;
        gc = (off->gc_place == PYSTACK_GC_RUNTIME ? f->py.runtime : f->py.interp) +
             (uint64_t)off->gc_collecting;
    }
    image_set_holder(&f->img, &f->py, 1);
    image_put_u64(&f->img, at, 0, 42);
    image_put_u32(&f->img, gc, 0, 1);
    (void)fixture_frames(f);
    if (is_static) { /* where they are is not known */
        assert_false(f->threads[0].gil_counted);
        assert_int_equal(f->threads[0].collecting, MODEL_UNKNOWN);
        assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_HOLDING), MODEL_UNKNOWN);
    }
    read_facts(f, at, gc);
    assert_true(f->threads[0].gil_counted && f->threads[0].gil_switches == 42);
    assert_true(f->threads[0].holds_gil && f->threads[0].gil_holder == f->py.tstate);
    assert_int_equal(f->threads[0].gil_enabled, 1);
    assert_int_equal(f->threads[0].collecting, 1);
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_HOLDING), 1);
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_WAITING), 0);
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_UNKNOWN), MODEL_UNKNOWN);
    image_put_u32(&f->img, gc, 0, 0);
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_HOLDING), 0);
    image_put_u32(&f->img, gc, 0, 7); /* no truth value */
    assert_int_equal(pystack_read_gc(f->ps, f->threads, MODEL_GIL_HOLDING), MODEL_UNKNOWN);
    fixture_end(f);
}

static void test_facts(void **state) {
    (void)state;
    for_each_version(check_facts);
}

/* A thread's own copy of the code, number `index` of `n`. */
static void put_copy(struct fixture *f, uint64_t frame, uint64_t code, uint32_t index, uint64_t n, int unit) {
    const struct pystack_offsets *off = f->img.off;
    uint64_t copies = image_alloc(&f->img, 64), copy = image_alloc(&f->img, 64);
    image_put_u64(&f->img, copies, 0, n);
    image_put_u64(&f->img, copies, off->tlbc_entries, code + (uint64_t)off->code_bytes);
    image_put_u64(&f->img, copies, off->tlbc_entries + 8, copy);
    image_put_u64(&f->img, code, off->code_tlbc, copies);
    image_put_u32(&f->img, frame, off->frame_tlbc_index, index);
    image_put_u64(&f->img, frame, off->frame_instr, copy + 2 * (uint64_t)unit);
}

static void check_copies(struct fixture *f, const struct pystack_offsets *off) {
    if (!off->code_tlbc)
        return;
    for (uint32_t index = 0; index < 4; index++) {
        fixture_begin(f, off, "x");
        uint64_t code = image_code(&f->img, "leaf", "a", 9, 20, 2);
        uint64_t frame = image_frame(&f->img, 0, code, 5, 0);
        /* The copy that holds the instruction is number 1, whatever number the frame says: it may just be changing. At last
         * there is only number 0, and the instruction lies in none. */
        put_copy(f, frame, code, index, index == 3 ? 1 : 2, 5);
        image_set_frame(&f->img, &f->py, frame);
        assert_int_equal(fixture_frames(f), index == 3 ? -1 : 1);
        if (index < 3)
            assert_int_equal(f->frames[0].line, 9);
        fixture_end(f);
    }
}

static void test_copies_of_code(void **state) {
    (void)state;
    for_each_version(check_copies);
}

static void check_cycle(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    uint64_t code = image_code(&f->img, "round", "a", 1, 20, 0);
    uint64_t first = image_frame(&f->img, 0, code, 5, 0);
    uint64_t last = image_frame(&f->img, image_frame(&f->img, first, code, 5, 0), code, 5, 0);
    image_put_u64(&f->img, first, off->frame_previous, last);
    image_set_frame(&f->img, &f->py, last);
    assert_in_range(fixture_frames(f), 1, 64);
    assert_true(f->torn);
    fixture_end(f);
}

static void test_a_cycle_ends(void **state) {
    (void)state;
    for_each_version(check_cycle);
}

static void check_broken(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    uint64_t code = image_code(&f->img, "leaf", "a", 1, 20, 0);
    image_set_frame(&f->img, &f->py,
                    image_frame(&f->img, 0x7f00deadbee0, code, 5, 0)); /* a link to nowhere */
    assert_int_equal(fixture_frames(f), 1);
    assert_true(f->torn);
    fixture_end(f);

    fixture_begin(f, off, "x");
    image_set_frame(&f->img, &f->py, image_frame(&f->img, 0, image_ascii(&f->img, "no code"), 5, 0));
    assert_int_equal(fixture_frames(f), -1);
    fixture_end(f);

    if (off->frame_style != PYSTACK_FRAME_OBJECT) {
        fixture_begin(f, off, "x");
        code = image_code(&f->img, "leaf", "a", 1, 20, 0);
        image_set_frame(&f->img, &f->py,
                        image_frame(&f->img, 0, code, 21, 0)); /* an instruction of other code */
        assert_int_equal(fixture_frames(f), -1);
        fixture_end(f);
    }
}

static void test_what_makes_no_sense_is_torn(void **state) {
    (void)state;
    for_each_version(check_broken);
}

static void check_deep(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    uint64_t code = image_code(&f->img, "deep", "a", 3, 20, 0), frame = 0;
    uint64_t outermost = image_frame(&f->img, 0, image_code(&f->img, "main", "a", 1, 20, 0), 5, 0);
    frame = outermost;
    /* The same few bytes again and again would be a cycle, so the frames are packed as tightly as the data stack's. */
    size_t step = (size_t)off->frame_size < 96 ? 96 : (size_t)off->frame_size;
    size_t room = (sizeof f->img.bytes - f->img.used) / step - 2;
    for (size_t i = 0; i < room; i++) {
        uint64_t addr = IMAGE_BASE + f->img.used;
        f->img.used += step / 8 * 8;
        image_put_u64(&f->img, addr, off->frame_previous, frame);
        image_put_u64(&f->img, addr, off->frame_code, code);
        if (off->frame_style != PYSTACK_FRAME_OBJECT)
            image_put_u64(&f->img, addr, off->frame_instr, code + (uint64_t)off->code_bytes + 10);
        frame = addr;
    }
    image_set_frame(&f->img, &f->py, frame);
    ssize_t n = fixture_frames(f);
    assert_int_equal(n, room + 1 < PYSTACK_MAX_FRAMES ? room + 1 : PYSTACK_MAX_FRAMES);
    assert_int_equal(f->truncated, room + 1 > PYSTACK_MAX_FRAMES);
    assert_string_equal(f->frames[0].func, "deep");
    assert_string_equal(f->frames[n - 1].func, f->truncated ? "deep" : "main");
    assert_false(f->torn);
    fixture_end(f);
}

static void test_the_innermost_frames_are_kept(void **state) {
    (void)state;
    for_each_version(check_deep);
}

static void check_threads_list(struct fixture *f, const struct pystack_offsets *off) {
    struct mem m;
    fixture_begin(f, off, "x");
    uint64_t second = image_alloc(&f->img, (size_t)off->tstate_size);
    image_put_u64(&f->img, f->py.tstate, off->tstate_next, second);
    image_put_u64(&f->img, second, off->tstate_prev, f->py.tstate);
    image_put_u64(&f->img, second, off->tstate_interp, f->py.interp);
    image_open(&f->img, &m);
    f->ps = pystack_open_memory(&m, off, f->py.runtime);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 2);
    assert_null(f->threads[1].name); /* no such identifier in threading._active */
    image_put_u64(&f->img, second, off->tstate_interp, f->py.interp + 8);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), -1);
    image_put_u64(&f->img, second, off->tstate_interp, f->py.interp);
    image_put_u64(&f->img, second, off->tstate_next, second); /* a list without end is cut */
    assert_in_range(pystack_read_threads(f->ps, &f->arena, &f->threads), 1, PYSTACK_MAX_THREADS);
    image_put_u64(&f->img, f->py.runtime, off->runtime_interpreters_head, 0);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 0);
    fixture_end(f);
}

static void test_lists_of_threads(void **state) {
    (void)state;
    for_each_version(check_threads_list);
}

/* A thread of the kernel's list that the interpreter's list lacks has no thread state, unless that list was cut. */
static void check_cut_list(struct fixture *f, const struct pystack_offsets *off) {
    struct model_snapshot s;
    struct err e;
    for (int cut = 0; cut < 2; cut++) {
        fixture_begin(f, off, "x");
        if (cut)
            image_put_u64(&f->img, f->py.tstate, off->tstate_next, f->py.tstate);
        struct mem m;
        image_open(&f->img, &m);
        f->ps = pystack_open_memory(&m, off, f->py.runtime);
        assert_int_equal(pystack_snapshot(f->ps, NULL, 0, &s, &e), 0);
        assert_true(s.n_threads > 0);
        assert_false(s.threads[0].has_python);
        assert_int_equal(s.incomplete, cut);
        assert_int_equal(s.threads[0].gil, cut ? MODEL_GIL_UNKNOWN : MODEL_GIL_NONE);
        assert_int_equal(s.threads[0].gc, cut ? MODEL_UNKNOWN : 0);
        model_snapshot_fini(&s);
        fixture_end(f);
    }
}

static void test_a_cut_list_proves_nothing(void **state) {
    (void)state;
    for_each_version(check_cut_list);
}

/* Up to 3.6 two static variables name the first interpreter, until a second one tells which of them is the list. */
static void check_static_lists(struct fixture *f, const struct pystack_offsets *off) {
    if (off->gil_place != PYSTACK_GIL_STATIC)
        return;
    fixture_begin(f, off, "x");
    uint64_t list = image_alloc(&f->img, 8), second = image_alloc(&f->img, 16384);
    uint64_t tstate = image_alloc(&f->img, (size_t)off->tstate_size);
    image_put_u64(&f->img, list, 0, f->py.interp);
    assert_int_equal(fixture_frames(f), 0);
    f->ps->static_other = list;
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 1);
    assert_true(f->ps->info.runtime == f->py.runtime && f->threads[0].interpreter == 0);
    image_put_u64(&f->img, second, off->interp_next, f->py.interp);
    image_put_u64(&f->img, second, off->interp_threads_head, tstate);
    image_put_u64(&f->img, tstate, off->tstate_interp, second);
    image_put_u64(&f->img, list, 0, second);
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 2);
    assert_true(f->threads[0].tstate == tstate && f->threads[0].interpreter == 1);
    assert_true(f->threads[1].tstate == f->py.tstate && f->threads[1].interpreter == 0);
    assert_true(f->ps->info.runtime == list);
    fixture_end(f);
}

static void test_which_variable_is_the_list(void **state) {
    (void)state;
    for_each_version(check_static_lists);
}

static void check_replaced(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off, "x");
    uint64_t code = image_code(&f->img, "first", "a", 1, 20, 0);
    image_set_frame(&f->img, &f->py, image_frame(&f->img, 0, code, 5, 0));
    assert_int_equal(fixture_frames(f), 1);
    assert_string_equal(f->frames[0].func, "first");
    /* Another function in the same place, its name too: only what the name holds has changed. */
    uint64_t name;
    int32_t field = off->code_qualname ? off->code_qualname : off->code_name;
    memcpy(&name, f->img.bytes + (code - IMAGE_BASE) + field, sizeof name);
    memcpy(f->img.bytes + (name - IMAGE_BASE) + off->str_ascii_data, "other", 5);
    assert_int_equal(pystack_read_frames(f->ps, f->threads, &f->arena, &f->frames, &f->torn, &f->truncated),
                     1);
    assert_string_equal(f->frames[0].func, "other");
    fixture_end(f);
}

static void test_code_in_a_place_used_again(void **state) {
    (void)state;
    for_each_version(check_replaced);
}

/* Memory that becomes another at the n-th read: a thread that went from one chain of calls to another meanwhile. */
static struct {
    const uint8_t *after;
    int reads_left;
} moving;

static int moving_read(struct mem *m, uint64_t addr, void *buf, size_t len) {
    if (moving.reads_left-- == 0)
        m->bytes = moving.after;
    if (addr < m->base || addr - m->base > m->size || len > m->size - (addr - m->base))
        return -1;
    memcpy(buf, m->bytes + (addr - m->base), len);
    return 0;
}

static void make_chain(struct fixture *f, const struct pystack_offsets *off, const char *const names[4],
                       bool swapped) {
    uint64_t codes[4], frame = 0;
    fixture_begin(f, off, "x");
    for (int i = 0; i < 4; i++)
        codes[i] = image_code(&f->img, names[i], "f", 1, 20, 0);
    uint64_t chunk = image_alloc(&f->img, 64);
    for (int i = 0; i < 2; i++) /* the same frames are used by both chains */
        frame = image_frame(&f->img, frame, codes[2 * swapped + i], 5, 0);
    image_set_frame(&f->img, &f->py, frame);
    if (off->tstate_datastack_chunk) {
        image_put_u64(&f->img, chunk, off->chunk_size, 4096);
        image_put_u64(&f->img, f->py.tstate, off->tstate_datastack_chunk, chunk);
    }
}

static void check_moving(struct fixture *f, const struct pystack_offsets *off) {
    static const char *const names[4] = {"a1", "a2", "b1", "b2"};
    struct fixture *after = calloc(1, sizeof *after);
    int torn = 0, whole_b = 0;
    assert_non_null(after);
    make_chain(after, off, names, true);
    for (int n = 1; n < 80; n++) {
        struct mem m;
        make_chain(f, off, names, false);
        image_open(&f->img, &m);
        m.read = moving_read;
        f->ps = pystack_open_memory(&m, off, f->py.runtime);
        assert_non_null(f->ps);
        moving.after = after->img.bytes;
        moving.reads_left = -1;
        assert_int_equal(pystack_read_threads(f->ps, &f->arena, &f->threads), 1);
        moving.reads_left = n;
        assert_int_equal(
            pystack_read_frames(f->ps, f->threads, &f->arena, &f->frames, &f->torn, &f->truncated), 2);
        torn += f->torn;
        whole_b += !f->torn && f->frames[0].func[0] == 'b';
        if (!f->torn && f->frames[0].func[0] != f->frames[1].func[0])
            fail_msg("3.%d, changed at read %d: %s called by %s", off->minor, n, f->frames[0].func,
                     f->frames[1].func);
        fixture_end(f);
    }
    arena_fini(&after->arena);
    free(after);
    assert_true(torn > 0 && torn < 40 && whole_b > 0);
}

static void test_a_stack_of_two_moments_is_torn(void **state) {
    (void)state;
    for_each_version(check_moving);
}

/* Each call of the interpreter's loop ends once, and nothing else does: the frame at the bottom of 3.15 was never called. */
static void check_ends_of_calls(struct fixture *f, const struct pystack_offsets *off) {
    bool object = off->frame_style == PYSTACK_FRAME_OBJECT, shims = !object && off->minor > 11;
    fixture_begin(f, off, "x");
    uint64_t outer = image_code(&f->img, "outer", "/x/y.py", 7, 20, 2);
    uint64_t leaf = image_code(&f->img, "leaf", "/x/y.py", 9, 20, 2), nothing = image_ascii(&f->img, "None");
    uint64_t frame = off->minor < 15 ? 0 : image_frame(&f->img, 0, nothing, 0, (uint8_t)off->owner_shim);
    if (frame)
        image_put_u64(&f->img, frame, off->frame_instr, 0);
    for (int i = 0; i < 2; i++) {
        if (shims)
            frame = image_frame(&f->img, frame, nothing, 3, (uint8_t)off->owner_shim);
        frame = image_frame(&f->img, frame, i ? leaf : outer, 5, 0);
        if (!object && !shims)
            image_put_u8(&f->img, frame, off->frame_owner - 1, 1); /* is_entry */
    }
    image_set_frame(&f->img, &f->py, frame);
    assert_int_equal(fixture_frames(f), 2);
    f->ps->entries = true;
    assert_int_equal(pystack_read_frames(f->ps, f->threads, &f->arena, &f->frames, &f->torn, &f->truncated),
                     4);
    assert_false(f->torn);
    for (int i = 0; i < 4; i++)
        assert_int_equal(f->frames[i].kind, i % 2 ? MODEL_FRAME_ENTRY : MODEL_FRAME_PYTHON);
    fixture_end(f);
}

static void test_ends_of_calls(void **state) {
    (void)state;
    for_each_version(check_ends_of_calls);
}

/* ---- what the garbage collector counts ---- */

/* An item in which a generation has had `n` collections. */
static void put_counters(struct fixture *f, uint64_t item, int64_t n) {
    const struct pystack_offsets *off = f->img.off;
    double duration = (double)n / 8;
    uint64_t bits;
    memcpy(&bits, &duration, sizeof bits);
    for (int k = 0; k < 3; k++)
        image_put_u64(&f->img, item, off->gc_item_collections + 8 * k, (uint64_t)(n * (k + 1)));
    if (off->gc_item_duration)
        image_put_u64(&f->img, item, off->gc_item_duration, bits);
}

/* Where items are: `at` of the generations' first ones, of each `items[g]`. */
static void place_counters(struct fixture *f, uint64_t *at, int32_t *items) {
    const struct pystack_offsets *off = f->img.off;
    uint64_t from =
        (off->gc_place == PYSTACK_GC_RUNTIME ? f->py.runtime : f->py.interp) + (uint64_t)off->gc_stats;
    if (off->gc_place == PYSTACK_GC_STATIC)
        from = image_alloc(&f->img, 3 * (size_t)off->gc_item_size);
    if (off->gc_stats_size) {
        uint64_t stats = image_alloc(&f->img, (size_t)off->gc_stats_size);
        image_put_u64(&f->img, from, 0, stats);
        from = stats;
    }
    for (int g = 0; g < 3; g++) {
        items[g] = !off->gc_stats_size ? 1 : g == 0 ? off->gc_young_items : off->gc_old_items;
        at[g] = from;
        from += (uint64_t)(items[g] * off->gc_item_size + (off->gc_stats_size ? 8 : 0));
    }
}

static void expect_counters(struct fixture *f, int64_t young, bool settled) {
    struct pystack_gc gc[PYSTACK_MAX_COUNTERS];
    const char *why;
    assert_int_equal(pystack_read_gc_stats(f->ps, gc, &why), 1);
    assert_null(why);
    assert_true(gc[0].settled == settled);
    for (int g = 0; g < 3; g++) {
        int64_t n = g == 0 ? young : 10 * (g + 1);
        assert_int_equal(gc[0].generations[g].collections, n);
        assert_int_equal(gc[0].generations[g].collected, 2 * n);
        assert_int_equal(gc[0].generations[g].uncollectable, 3 * n);
        double duration = gc[0].generations[g].duration_s;
        assert_true(f->img.off->gc_item_duration ? duration == (double)n / 8 : duration != duration);
    }
}

/* What the last full collection has left; 0 is that there was none. */
static void check_long_lived(struct fixture *f) {
    const struct pystack_offsets *off = f->img.off;
    static const uint64_t kept[] = {0, 1, 123456, (uint64_t)1 << 50, (uint64_t)-1};
    static const int64_t told[] = {MODEL_UNKNOWN, 1, 123456, MODEL_UNKNOWN, MODEL_UNKNOWN};
    uint64_t in = off->gc_place == PYSTACK_GC_RUNTIME ? f->py.runtime : f->py.interp;
    struct pystack_gc gc[PYSTACK_MAX_COUNTERS];
    const char *why;
    assert_true((off->gc_long_lived != 0) == (off->minor >= 7 && off->minor <= 13));
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (off->gc_long_lived)
            image_put_u64(&f->img, in, off->gc_long_lived, kept[i]);
        assert_int_equal(pystack_read_gc_stats(f->ps, gc, &why), 1);
        assert_int_equal(gc[0].long_lived, off->gc_long_lived ? told[i] : MODEL_UNKNOWN);
    }
}

static void expect_no_counters(struct fixture *f, const char *reason) {
    struct pystack_gc gc[PYSTACK_MAX_COUNTERS];
    const char *why;
    assert_int_equal(pystack_read_gc_stats(f->ps, gc, &why), -1);
    assert_true(why && strstr(why, reason));
}

static void check_counters(struct fixture *f, const struct pystack_offsets *off) {
    uint64_t at[3], collecting;
    int32_t items[3];
    fixture_begin(f, off, "x");
    if (off->gc_item_size == 0) {
        assert_true(off->minor < 6);
        (void)fixture_frames(f);
        expect_no_counters(f, "unknown");
        fixture_end(f);
        return;
    }
    place_counters(f, at, items);
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < items[g]; i++) /* the latest is the last of them */
            put_counters(f, at[g] + (uint64_t)(i * off->gc_item_size), 10 * (g + 1) - (i + 1) % items[g]);
    (void)fixture_frames(f);
    collecting =
        (off->gc_place == PYSTACK_GC_RUNTIME ? f->py.runtime : f->py.interp) + (uint64_t)off->gc_collecting;
    if (off->gc_place == PYSTACK_GC_STATIC) {
        expect_no_counters(f, "unknown");
        collecting = image_alloc(&f->img, 8);
        f->ps->static_gc_stats = at[0];
        f->ps->static_collecting = collecting;
    }
    image_put_u32(&f->img, collecting, 0, 0);
    expect_counters(f, 10, true);
    check_long_lived(f);
    image_put_u32(&f->img, collecting, 0, 1);
    expect_counters(f, 10, false);
    put_counters(f, at[0], 17); /* the first of them may be the latest, too */
    expect_counters(f, 17, false);
    put_counters(f, at[0], -1);
    expect_no_counters(f, "implausible");
    put_counters(f, at[0], (int64_t)1 << 50);
    expect_no_counters(f, "implausible");
    fixture_end(f);
}

static void test_counters_of_the_collector(void **state) {
    (void)state;
    for_each_version(check_counters);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread),
        cmocka_unit_test(test_the_last_holder_is_not_the_holder),
        cmocka_unit_test(test_frames_that_are_not_shown),
        cmocka_unit_test(test_a_gil_that_is_off),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_copies_of_code),
        cmocka_unit_test(test_a_cycle_ends),
        cmocka_unit_test(test_what_makes_no_sense_is_torn),
        cmocka_unit_test(test_the_innermost_frames_are_kept),
        cmocka_unit_test(test_lists_of_threads),
        cmocka_unit_test(test_a_cut_list_proves_nothing),
        cmocka_unit_test(test_which_variable_is_the_list),
        cmocka_unit_test(test_code_in_a_place_used_again),
        cmocka_unit_test(test_a_stack_of_two_moments_is_torn),
        cmocka_unit_test(test_ends_of_calls),
        cmocka_unit_test(test_counters_of_the_collector),
    };
    return cmocka_run_group_tests_name("pystack_image", tests, NULL, NULL);
}
