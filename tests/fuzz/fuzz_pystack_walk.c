/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: threads, names and frames of an interpreter whose memory has been tampered with.
 *
 * The first byte chooses the version. The rest are patches of 12 bytes to memory that made sense: where (4 bytes), what
 * (8 bytes: a value, or with the top bit of the place a pointer into the memory itself).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/pystack_internal.h"
#include "support/pystack_image.h"

#define FUZZ_PATCH 12
#define FUZZ_PATCHES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t fuzz_build(struct image *img, const struct pystack_offsets *off, uint64_t *current) {
    struct image_python py;
    image_init(img, off);
    image_python(img, &py, "trainer");
    uint64_t code = image_code(img, "train_step", "/job/train.py", 100, 60, 2), frame = 0;
    for (int i = 0; i < 4; i++)
        frame = image_frame(img, frame, code, 4 + i, i == 1 ? (uint8_t)off->owner_generator : 0);
    if (off->owner_shim != 255)
        frame = image_frame(img, frame, 0, 0, (uint8_t)off->owner_shim);
    if (off->code_tlbc) { /* two copies of the code, of which the frames above run the first */
        uint64_t copies = image_alloc(img, 64);
        image_put_u64(img, copies, 0, 2);
        image_put_u64(img, copies, off->tlbc_entries + 8, code + (uint64_t)off->code_bytes);
        image_put_u64(img, code, off->code_tlbc, copies);
        image_put_u32(img, frame, off->frame_tlbc_index, 1);
    }
    frame = image_frame(img, frame, image_code(img, "leaf", "/job/leaf.py", 5, 20, 2), 7, 0);
    if (off->tstate_datastack_chunk) {
        uint64_t chunk = image_alloc(img, 64);
        image_put_u64(img, chunk, off->chunk_size, 2048);
        image_put_u64(img, py.tstate, off->tstate_datastack_chunk, chunk);
    }
    image_set_frame(img, &py, frame);
    image_set_holder(img, &py, 1);
    *current = py.current;
    return py.runtime;
}

static void fuzz_patch(struct image *img, const uint8_t *data, size_t size) {
    for (size_t n = 0; size >= FUZZ_PATCH && n < FUZZ_PATCHES_MAX;
         n++, data += FUZZ_PATCH, size -= FUZZ_PATCH) {
        uint32_t where;
        uint64_t what;
        memcpy(&where, data, sizeof where);
        memcpy(&what, data + sizeof where, sizeof what);
        if (where >> 31)
            what = IMAGE_BASE + what % img->used;
        size_t at = (where & 0x7fffffff) % (img->used - sizeof what);
        memcpy(img->bytes + at, &what, sizeof what);
    }
}

static void fuzz_read(struct pystack *ps) {
    struct arena arena;
    struct pystack_thread *threads;
    arena_init(&arena, (size_t)4 << 20);
    ssize_t n = pystack_read_threads(ps, &arena, &threads);
    (void)pystack_threads_changed(ps);
    (void)pystack_is_there(ps);
    struct pystack_gc counters[PYSTACK_MAX_COUNTERS];
    const char *why;
    if (pystack_read_gc_stats(ps, counters, &why) > PYSTACK_MAX_COUNTERS)
        abort();
    for (ssize_t i = 0; i < n && i < 4; i++) {
        struct model_frame *frames;
        bool torn, truncated;
        (void)pystack_has_gil(ps, &threads[i]);
        ssize_t count = pystack_read_frames(ps, &threads[i], &arena, &frames, &torn, &truncated);
        if (count > PYSTACK_MAX_FRAMES || (count > 0 && !frames) || n > PYSTACK_MAX_THREADS)
            abort();
        for (ssize_t j = 0; j < count; j++)
            if (frames[j].line < 0 || (frames[j].func && strlen(frames[j].func) > 4096))
                abort();
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct image img;
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct mem m;
    if (size < 1)
        return 0;
    uint64_t current, runtime = fuzz_build(&img, &rows[data[0] % n_rows], &current);
    fuzz_patch(&img, data + 1, size - 1);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, img.off, runtime);
    if (!ps)
        return 0;
    ps->tstate_current = current;
    ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    fuzz_read(ps);
    fuzz_read(ps); /* with what was cached */
    pystack_close(ps);
    return 0;
}
