/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a thread copies of itself in the signal's handler, from memory that has been tampered with and changes
 * between two copies, and what is made of it afterwards.
 *
 * The first byte chooses the version, and whether the thread has the GIL and reads its frames directly, which then lie in memory where
 * they say. The rest are patches of 12 bytes as in fuzz_pystack_walk.c; a third of them before the first copy, a third before the
 * second (which asks at once for what the first one needed), the rest before it is decoded.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pystack/pystack_internal.h"
#include "pystack/self.h"
#include "support/pystack_image.h"

#define FUZZ_PATCH 12
#define FUZZ_PATCHES_MAX 33
#define FUZZ_DEPTH 20
#define FUZZ_ROOT 32 /* bytes before the end of the thread state */
#define FUZZ_LIMIT_BEHIND_CHUNK 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct image img;
static struct pystack_self self;
static struct pystack_known known;
static uint64_t chunk;                       /* where the frames begin */
static _Thread_local uint64_t attached_with; /* the thread state */

/* The loop was entered twice: two _PyCFrame, and one within the thread state that holds no frame. */
static void fuzz_link_cframes(const struct pystack_offsets *off, const struct image_python *py,
                              uint64_t middle) {
    uint64_t outer = image_alloc(&img, 64), root = py->tstate + (uint64_t)off->tstate_size - FUZZ_ROOT;
    image_put_u64(&img, py->cframe, off->cframe_current_frame + 8, outer);
    image_put_u64(&img, outer, off->cframe_current_frame, middle);
    image_put_u64(&img, outer, off->cframe_current_frame + 8, root);
}

static uint64_t fuzz_build(const struct pystack_offsets *off, struct image_python *py) {
    image_init(&img, off);
    image_python(&img, py, "trainer");
    uint64_t code[4], frame = 0, middle = 0;
    static const char *const names[] = {"train_step", "forward", "relu", "leaf"};
    for (int i = 0; i < 4; i++)
        code[i] = image_code(&img, names[i], "/job/train.py", 10 * i + 1, 40, 2);
    chunk = image_alloc(&img, 64);
    for (int i = 0; i < FUZZ_DEPTH; i++) {
        bool entry = i % (FUZZ_DEPTH / 2) == 0;
        if (i == FUZZ_DEPTH / 2)
            middle = frame;
        if (entry && off->owner_shim != 255)
            frame = image_frame(&img, frame, 0, 0, (uint8_t)off->owner_shim);
        frame = image_frame(&img, frame, code[i % 4], 3 + i % 30, i == 7 ? (uint8_t)off->owner_generator : 0);
        if (entry && off->minor == 11) /* is_entry is the byte before owner */
            image_put_u8(&img, frame, off->frame_owner - 1, 1);
    }
    image_set_frame(&img, py, frame);
    if (off->frame_style == PYSTACK_FRAME_CFRAME)
        fuzz_link_cframes(off, py, middle);
    image_set_holder(&img, py, 1);
    image_put_u64(&img, py->tstate, off->tstate_thread_id, (uint64_t)pthread_self());
    return py->runtime;
}

static void fuzz_patch(const uint8_t *data, size_t n) {
    for (; n > 0; n--, data += FUZZ_PATCH) {
        uint32_t where;
        uint64_t what;
        memcpy(&where, data, sizeof where);
        memcpy(&what, data + sizeof where, sizeof what);
        if (where >> 31)
            what = IMAGE_BASE + what % img.used / 8 * 8;
        size_t at = (where & 0x7fffffff) % (img.used - sizeof what) / 8 * 8;
        memcpy(img.bytes + at, &what, sizeof what);
    }
}

/* The thread's chunk is what it says, whatever else was tampered with: the thread itself keeps that. */
static void fuzz_attach(const struct image_python *py, uint64_t limit) {
    static bool mapped;
    const struct pystack_offsets *off = img.off;
    if (!mapped &&
        mmap((void *)(uintptr_t)IMAGE_BASE, IMAGE_SIZE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)(uintptr_t)IMAGE_BASE)
        abort();
    mapped = true;
    image_put_u64(&img, chunk, off->chunk_size, limit - chunk);
    image_put_u64(&img, py->tstate, off->tstate_datastack_chunk, chunk);
    image_put_u64(&img, py->tstate, off->tstate_datastack_chunk + FUZZ_LIMIT_BEHIND_CHUNK, limit);
    memcpy((void *)(uintptr_t)IMAGE_BASE, img.bytes, img.used);
    self.attached = (int64_t)((uintptr_t)&attached_with - (uintptr_t)pthread_self());
    attached_with = py->tstate;
}

/* What the decoder and the next copy rely on, whatever the memory said. */
static void fuzz_check_copy(void) {
    if (self.n_frames > PYSTACK_SELF_FRAMES || self.n_keys > PYSTACK_SELF_KEYS ||
        self.n_regions > PYSTACK_SELF_REGIONS || self.n_bytes > PYSTACK_SELF_BYTES)
        abort();
    for (size_t i = 0; i < self.n_regions; i++)
        if ((uint64_t)self.regions[i].at + self.regions[i].len > PYSTACK_SELF_BYTES)
            abort();
    if (self.end != PYSTACK_SELF_WHOLE && self.end != PYSTACK_SELF_TRUNCATED)
        return; /* the frames are not looked at */
    for (size_t i = 0; i < self.n_frames; i++)
        if (self.frames[i].key > self.n_keys)
            abort();
}

/* `whole`: nothing was tampered with, and every frame must be there. */
static void fuzz_decode(struct pystack *ps, bool whole) {
    struct arena arena;
    struct model_frame *frames;
    bool truncated;
    uint64_t unknown = 0;
    arena_init(&arena, (size_t)4 << 20);
    ssize_t n = pystack_self_decode(ps, &self, &known, &arena, &frames, &truncated, &unknown);
    if (n > PYSTACK_MAX_FRAMES || (n > 0 && !frames) || unknown > PYSTACK_MAX_FRAMES)
        abort();
    if (whole && (n != FUZZ_DEPTH || unknown))
        abort();
    for (ssize_t i = 0; i < n; i++)
        if (frames[i].line < 0 || (frames[i].func && strlen(frames[i].func) > 4096))
            abort();
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n_rows, n = size ? (size - 1) / FUZZ_PATCH : 0;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct image_python py;
    struct mem m;
    if (size < 1)
        return 0;
    if (n > FUZZ_PATCHES_MAX)
        n = FUZZ_PATCHES_MAX;
    uint64_t runtime = fuzz_build(&rows[data[0] % n_rows], &py), limit = IMAGE_BASE + img.used;
    bool attach = data[0] / n_rows % 2 == 1 && img.off->minor >= 13 && img.off->gil_enabled < 0;
    struct pystack_thread t = {.tstate = py.tstate, .interp = py.interp};
    if (img.off->tstate_id >= 0)
        t.serial = pystack_get_u64(img.bytes + (py.tstate - IMAGE_BASE), img.off->tstate_id);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, img.off, runtime);
    if (!ps)
        return 0;
    memset(&self, 0, sizeof self);
    memset(&known, 0, sizeof known);
    for (size_t round = 0; round < 3; round++) {
        size_t from = n * round / 3, to = n * (round + 1) / 3;
        fuzz_patch(data + 1 + from * FUZZ_PATCH, to - from);
        if (round < 2) {
            pystack_self_prepare(ps, &self, &t, &known);
            if (attach)
                fuzz_attach(&py, limit);
            pystack_self_copy(&self, 0);
            fuzz_check_copy();
        }
        if (round != 1)
            fuzz_decode(ps, n == 0);
    }
    pystack_close(ps);
    return 0;
}
