/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread copies of its own frames, on memory made by hand that lies in this process, where the copy looks for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "pystack/pystack_internal.h"
#include "pystack/self.h"
#include "support/pystack_image.h"

#define SELF_ENTRY 3 /* code unit that all entry frames stand at */

struct fixture {
    struct image img;
    struct image_python py;
    struct pystack_self self;
    uint64_t stack_pointer;
    struct pystack_known known;
    uint64_t leaf, outer, nothing; /* code objects, and what entry frames have in place of one */
    struct pystack *ps;
    struct arena arena;
    struct model_frame *frames;
    ssize_t n;
};

static void fixture_begin(struct fixture *f, const struct pystack_offsets *off) {
    image_init(&f->img, off);
    image_python(&f->img, &f->py, "x");
    image_put_u64(&f->img, f->py.tstate, off->tstate_thread_id, (uint64_t)pthread_self());
    f->outer = image_code(&f->img, "outer", "/x/y.py", 7, 20, 2);
    f->leaf = image_code(&f->img, "leaf", "/x/y.py", 9, 20, 2);
    f->nothing = image_ascii(&f->img, "None");
}

/* Lay the image where it says that it is, and let this thread copy what it says are its frames. */
static enum pystack_self_end fixture_copy(struct fixture *f, uint64_t newest) {
    struct mem m;
    struct pystack_thread *threads;
    uint64_t unknown = 0;
    bool truncated;
    image_set_frame(&f->img, &f->py, newest);
    void *at = mmap((void *)(uintptr_t)IMAGE_BASE, IMAGE_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(at, (void *)(uintptr_t)IMAGE_BASE);
    memcpy(at, f->img.bytes, IMAGE_SIZE);
    mem_init_process(&m, getpid());
    arena_init(&f->arena, (size_t)8 << 20);
    f->ps = pystack_open_memory(&m, f->img.off, f->py.runtime);
    assert_non_null(f->ps);
    f->ps->tstate_current = f->py.current;
    assert_int_equal(pystack_read_threads(f->ps, &f->arena, &threads), 1);
    memset(&f->self, 0, sizeof f->self);
    pystack_self_prepare(f->ps, &f->self, threads, &f->known);
    pystack_self_copy(&f->self, 0);
    f->n = pystack_self_decode(f->ps, &f->self, &f->known, &f->arena, &f->frames, &truncated, &unknown);
    assert_int_equal(unknown, 0);
    return f->self.end;
}

static void fixture_end(struct fixture *f) {
    pystack_close(f->ps);
    arena_fini(&f->arena);
    assert_int_equal(munmap((void *)(uintptr_t)IMAGE_BASE, IMAGE_SIZE), 0);
}

static void for_each_version(void (*test)(struct fixture *f, const struct pystack_offsets *off)) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_true(n >= 13);
    for (size_t i = 0; i < n; i++)
        if (rows[i].frame_style != PYSTACK_FRAME_CFRAME)
            test(f, &rows[i]);
    free(f);
}

/* An entry into the interpreter's loop below `previous`. */
static uint64_t put_entry(struct fixture *f, uint64_t previous, int unit) {
    const struct pystack_offsets *off = f->img.off;
    if (off->frame_style == PYSTACK_FRAME_OBJECT)
        return previous;
    return image_frame(&f->img, previous, f->nothing, unit, (uint8_t)off->owner_shim);
}

/* Where chains end in 3.15: an entry frame that was never entered, within the thread state. */
static uint64_t put_bottom(struct fixture *f) {
    const struct pystack_offsets *off = f->img.off;
    uint64_t frame = off->minor < 15 ? 0 : put_entry(f, 0, 0);
    if (frame)
        image_put_u64(&f->img, frame, off->frame_instr, 0);
    return frame;
}

static void expect_both(const struct fixture *f) {
    assert_int_equal(f->n, 2);
    assert_string_equal(f->frames[0].func, "leaf");
    assert_int_equal(f->frames[0].line, 9);
    assert_string_equal(f->frames[1].func, "outer");
    assert_int_equal(f->frames[1].line, 7);
}

static void check_whole(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off);
    uint64_t frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    frame = image_frame(&f->img, put_entry(f, frame, SELF_ENTRY), f->leaf, 5, 0);
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_WHOLE);
    expect_both(f);
    fixture_end(f);

    /* A generator yields to C: the entry frame is the current one, at its other instruction. */
    fixture_begin(f, off);
    frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    frame = image_frame(&f->img, frame, f->leaf, 5, 0);
    assert_int_equal(fixture_copy(f, put_entry(f, frame, SELF_ENTRY + 2)), PYSTACK_SELF_WHOLE);
    expect_both(f);
    fixture_end(f);

    fixture_begin(f, off);
    assert_int_equal(fixture_copy(f, 0), PYSTACK_SELF_WHOLE);
    assert_int_equal(f->n, 0);
    fixture_end(f);
}

static void test_a_whole_stack(void **state) {
    (void)state;
    for_each_version(check_whole);
}

static void check_together(struct fixture *f, const struct pystack_offsets *off) {
    const char *func = NULL;
    fixture_begin(f, off);
    uint64_t frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    frame = image_frame(&f->img, put_entry(f, frame, SELF_ENTRY), f->leaf, 5, 0);
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_WHOLE);
    const struct pystack_self_result copy = {.taken_ns = f->self.taken_ns,
                                             .n_frames = f->self.n_frames,
                                             .n_keys = f->self.n_keys,
                                             .frames = f->self.frames,
                                             .keys = f->self.keys};
    pystack_self_begin(f->ps, &f->arena);
    for (int i = 0; i < 2; i++) {
        uint64_t unknown = 0;
        bool truncated;
        f->n = pystack_self_decode_next(f->ps, &copy, &f->known, &f->frames, &truncated, &unknown);
        expect_both(f);
        assert_true(!truncated && unknown == 0);
        assert_true(!func || func == f->frames[0].func);
        func = f->frames[0].func;
    }
    fixture_end(f);
}

static void test_copies_decoded_together_share_their_texts(void **state) {
    (void)state;
    for_each_version(check_together);
}

static void check_gone(struct fixture *f, const struct pystack_offsets *off) {
    fixture_begin(f, off);
    uint64_t frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->leaf, 5, 0);
    image_put_u64(&f->img, f->py.tstate, off->tstate_thread_id, (uint64_t)pthread_self() + 64);
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_GONE);
    assert_int_equal(f->n, -1);
    fixture_end(f);
}

static void test_the_thread_state_of_another(void **state) {
    (void)state;
    for_each_version(check_gone);
}

static void expect_broken(struct fixture *f, uint64_t frame) {
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_BROKEN);
    assert_int_equal(f->n, -1);
    fixture_end(f);
}

/* Links that a signal may find half made, from 3.13 on. */
static void check_half_made(struct fixture *f, const struct pystack_offsets *off) {
    if (off->frame_style != PYSTACK_FRAME_DIRECT)
        return;
    /* A generator that was unlinked from its caller, but is still the current frame. */
    fixture_begin(f, off);
    expect_broken(f, image_frame(&f->img, 0, f->leaf, 5, (uint8_t)off->owner_generator));

    /* An entry frame that is not filled: its link is what lay there before. */
    fixture_begin(f, off);
    uint64_t frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    expect_broken(f, image_frame(&f->img, put_entry(f, frame, SELF_ENTRY + 9), f->leaf, 5, 0));

    fixture_begin(f, off);
    frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    expect_broken(
        f, image_frame(&f->img, image_frame(&f->img, frame, f->nothing, SELF_ENTRY, 0x5c), f->leaf, 5, 0));

    /* An entry frame that was never entered, other than at the end. */
    fixture_begin(f, off);
    frame = put_entry(f, put_entry(f, 0, SELF_ENTRY), 0);
    image_put_u64(&f->img, frame, off->frame_instr, 0);
    expect_broken(f, image_frame(&f->img, frame, f->leaf, 5, 0));

    /* A link to nowhere. */
    fixture_begin(f, off);
    expect_broken(f, image_frame(&f->img, 0x7f00deadbee0, f->leaf, 5, 0));
}

static void test_a_link_half_made(void **state) {
    (void)state;
    for_each_version(check_half_made);
}

/* The frame's instruction lies in a copy of the code, and the copy knows which. */
static void check_copy_of_code(struct fixture *f, const struct pystack_offsets *off) {
    if (!off->code_tlbc)
        return;
    fixture_begin(f, off);
    uint64_t frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    frame = image_frame(&f->img, frame, f->leaf, 5, 0);
    uint64_t copies = image_alloc(&f->img, 64), copy = image_alloc(&f->img, 64);
    image_put_u64(&f->img, copies, 0, 2);
    image_put_u64(&f->img, copies, off->tlbc_entries, f->leaf + (uint64_t)off->code_bytes);
    image_put_u64(&f->img, copies, off->tlbc_entries + 8, copy);
    image_put_u64(&f->img, f->leaf, off->code_tlbc, copies);
    image_put_u32(&f->img, frame, off->frame_tlbc_index, 1);
    image_put_u64(&f->img, frame, off->frame_instr, copy + 10);
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_WHOLE);
    assert_int_equal(f->self.frames[0].tlbc, 1);
    expect_both(f);
    fixture_end(f);
}

static void test_a_copy_of_code(void **state) {
    (void)state;
    for_each_version(check_copy_of_code);
}

/* ---- memory that is read directly ---- */

#define LIMIT_BEHIND_CHUNK 16
#define FRAMES_MAX 8
#define STACK_BELOW ((uint64_t)64 * 1024)

/* The thread state that this thread is attached with. */
static _Thread_local uint64_t attached_with;

static void put_live(uint64_t addr, int32_t at, uint64_t value) {
    memcpy((uint8_t *)(uintptr_t)addr + at, &value, sizeof value);
}

/* Copy again, as the same thread is asked for its next sample. */
static enum pystack_self_end copy_again(struct fixture *f) {
    struct pystack_thread t = f->self.thread;
    pystack_self_prepare(f->ps, &f->self, &t, &f->known);
    pystack_self_copy(&f->self, f->stack_pointer);
    return f->self.end;
}

/* The same when the kernel reads nothing. */
static enum pystack_self_end copy_without_kernel(struct fixture *f) {
    struct mem whole = f->self.reader.mem;
    mem_init_buffer(&f->self.reader.mem, NULL, 0, 0);
    enum pystack_self_end end = copy_again(f);
    f->self.reader.mem = whole;
    return end;
}

static void expect_frames(const struct fixture *f, const uint64_t *addrs, size_t n) {
    assert_int_equal(f->self.n_frames, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(f->self.frames[i].addr, addrs[i]);
}

static size_t note_frames(const struct fixture *f, uint64_t *addrs) {
    assert_in_range(f->self.n_frames, 1, FRAMES_MAX);
    for (size_t i = 0; i < f->self.n_frames; i++)
        addrs[i] = f->self.frames[i].addr;
    return f->self.n_frames;
}

/* Two functions whose frames are in the newest chunk, the outer one of a generator if it is to lie elsewhere. */
static void begin_attached(struct fixture *f, const struct pystack_offsets *off, bool elsewhere) {
    uint64_t frame = 0, chunk;
    fixture_begin(f, off);
    if (elsewhere)
        frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5,
                            (uint8_t)off->owner_generator);
    chunk = image_alloc(&f->img, 64);
    if (!elsewhere)
        frame = image_frame(&f->img, put_entry(f, put_bottom(f), SELF_ENTRY), f->outer, 5, 0);
    frame = image_frame(&f->img, put_entry(f, frame, SELF_ENTRY), f->leaf, 5, 0);
    uint64_t limit = IMAGE_BASE + f->img.used;
    image_put_u64(&f->img, chunk, off->chunk_size, limit - chunk);
    image_put_u64(&f->img, f->py.tstate, off->tstate_datastack_chunk, chunk);
    image_put_u64(&f->img, f->py.tstate, off->tstate_datastack_chunk + LIMIT_BEHIND_CHUNK, limit);
    assert_int_equal(fixture_copy(f, frame), PYSTACK_SELF_WHOLE);
    assert_int_not_equal(f->self.gil_state, MODEL_GIL_HOLDING);
    f->self.attached = (int64_t)((uintptr_t)&attached_with - (uintptr_t)pthread_self());
    attached_with = f->py.tstate;
}

static bool attaches(const struct pystack_offsets *off) { return off->minor >= 13 && off->gil_enabled < 0; }

static void check_attached(struct fixture *f, const struct pystack_offsets *off) {
    uint64_t addrs[FRAMES_MAX];
    if (!attaches(off))
        return;
    begin_attached(f, off, false);
    size_t n = note_frames(f, addrs);
    int32_t limit = off->tstate_datastack_chunk + LIMIT_BEHIND_CHUNK;
    uint64_t was = f->img.used + IMAGE_BASE;

    /* The size of the chunk is not known yet. */
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_equal(f->self.gil_state, MODEL_GIL_HOLDING);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_equal(f->self.gil_state, MODEL_GIL_HOLDING);
    assert_int_equal(f->self.reads, 0);

    /* A limit that belongs to another chunk. */
    put_live(f->py.tstate, limit, was + 64);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    put_live(f->py.tstate, limit, was);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);

    /* No GIL. */
    attached_with = 0;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_GONE);
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_not_equal(f->self.gil_state, MODEL_GIL_HOLDING);

    /* A later thread state at the same address. */
    attached_with = f->py.tstate;
    put_live(f->py.tstate, off->tstate_id, 8);
    assert_int_equal(copy_again(f), PYSTACK_SELF_GONE);
    fixture_end(f);
}

static void test_a_thread_that_has_the_gil(void **state) {
    (void)state;
    for_each_version(check_attached);
}

/* The thread state of the thread that has initialised Python is read without the kernel with the GIL or without. */
static void check_resident(struct fixture *f, const struct pystack_offsets *off) {
    const struct pystack_self_span all = {IMAGE_BASE, IMAGE_BASE + IMAGE_SIZE};
    uint64_t addrs[FRAMES_MAX];
    if (!attaches(off))
        return;
    begin_attached(f, off, false);
    size_t n = note_frames(f, addrs);
    int64_t attached = f->self.attached;
    f->self.attached = 0;
    f->self.resident = all;
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_equal(f->self.reads, 0);

    /* Who has the GIL is read there, too, or known from the word that says it. */
    assert_true(f->self.gil != 0 && f->self.gc != 0);
    for (int held = 0; held < 2; held++) {
        put_live(f->self.gil, off->gil_last_holder, f->py.tstate);
        memcpy((void *)(uintptr_t)(f->self.gil + (uint64_t)off->gil_locked), &held, sizeof held);
        attached_with = held ? f->py.tstate : 0;
        for (int known = 0; known < 2; known++) {
            f->self.attached = known ? attached : 0;
            assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
            assert_int_equal(f->self.gil_state, held ? MODEL_GIL_HOLDING : MODEL_GIL_NONE);
            assert_int_equal(f->self.is_attached, held && known);
        }
    }

    /* The GIL's own words show for an instant the holder before. */
    attached_with = 0;
    f->self.attached = attached;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    assert_int_equal(f->self.gil_state, MODEL_GIL_NONE);

    /* Not where it may go away: the thread state, the GIL, or the collector's flag. */
    f->self.attached = 0;
    const uint64_t parts[] = {f->py.tstate, f->self.gil, f->self.gc};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        f->self.resident.from = parts[i] + 1;
        assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_GONE);
        f->self.resident = (struct pystack_self_span){IMAGE_BASE, parts[i] + 3};
        assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_GONE);
        assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
        f->self.resident = all;
        assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
        assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    }

    /* Only the first chunk stays; of a thread that has the GIL, any. */
    put_live(f->self.chunk, 0, f->py.tstate);
    f->self.chunk = 0;
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    f->self.attached = attached;
    attached_with = f->py.tstate;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    attached_with = 0;

    /* Another thread has initialised Python again. */
    put_live(f->py.tstate, off->tstate_thread_id, (uint64_t)pthread_self() + 64);
    assert_int_equal(copy_again(f), PYSTACK_SELF_GONE);
    fixture_end(f);
}

static void test_the_thread_that_has_initialised_python(void **state) {
    (void)state;
    for_each_version(check_resident);
}

static void check_elsewhere(struct fixture *f, const struct pystack_offsets *off) {
    uint64_t addrs[FRAMES_MAX];
    if (!attaches(off))
        return;
    begin_attached(f, off, true);
    size_t n = note_frames(f, addrs);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
        expect_frames(f, addrs, n);
    }
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    fixture_end(f);
}

static void test_a_frame_that_is_in_no_chunk(void **state) {
    (void)state;
    for_each_version(check_elsewhere);
}

/* The entry frame of the leaf lies on this thread's stack. */
static void check_stack(struct fixture *f, const struct pystack_offsets *off) {
    uint64_t addrs[FRAMES_MAX], below;
    if (!attaches(off))
        return;
    begin_attached(f, off, false);
    size_t n = note_frames(f, addrs), size = (size_t)off->frame_size;
    uint8_t *here = __builtin_alloca(2 * size);
    here += (8 - (uintptr_t)here % 8) % 8;
    memcpy(&below, (const uint8_t *)(uintptr_t)addrs[0] + off->frame_previous, sizeof below);
    assert_int_equal(below, addrs[1]);
    memcpy(here, (const void *)(uintptr_t)below, size);
    put_live(addrs[0], off->frame_previous, (uintptr_t)here);
    addrs[1] = (uintptr_t)here;

    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    f->stack_pointer = (uintptr_t)here - STACK_BELOW;
    f->self.stack_low = f->stack_pointer;
    f->self.stack_high = (uintptr_t)here + size;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_WHOLE);
    expect_frames(f, addrs, n);
    /* one whose stack ends within the frame */
    f->self.stack_high--;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    f->self.stack_high++;
    /* that was given up: the frame is below the stack pointer */
    f->stack_pointer = (uintptr_t)here + 8;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    /* on a stack that is not its own */
    f->stack_pointer = f->self.stack_low - 8;
    assert_int_equal(copy_without_kernel(f), PYSTACK_SELF_BROKEN);
    assert_int_equal(copy_again(f), PYSTACK_SELF_WHOLE);
    fixture_end(f);
}

static void test_frames_on_the_stack(void **state) {
    (void)state;
    for_each_version(check_stack);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_stack),
        cmocka_unit_test(test_copies_decoded_together_share_their_texts),
        cmocka_unit_test(test_the_thread_state_of_another),
        cmocka_unit_test(test_a_link_half_made),
        cmocka_unit_test(test_a_copy_of_code),
        cmocka_unit_test(test_a_thread_that_has_the_gil),
        cmocka_unit_test(test_the_thread_that_has_initialised_python),
        cmocka_unit_test(test_a_frame_that_is_in_no_chunk),
        cmocka_unit_test(test_frames_on_the_stack),
    };
    return cmocka_run_group_tests_name("pystack_self", tests, NULL, NULL);
}
