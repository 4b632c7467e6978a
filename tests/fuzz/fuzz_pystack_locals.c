/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: locals and their values in an interpreter whose memory has been tampered with.
 *
 * The first byte chooses the version. The rest are patches of 12 bytes to memory that made sense: where (4 bytes), what
 * (8 bytes: a value, or with the top bit of the place a pointer into the memory itself).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/locals.h"
#include "pystack/values.h"
#include "support/pystack_values.h"

#define FUZZ_PATCH 12
#define FUZZ_PATCHES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t fuzz_build(struct image *img, const struct pystack_offsets *off) {
    struct image_python py;
    struct image_local locals[IMAGE_LOCALS_MAX];
    image_init(img, off);
    image_python(img, &py, "trainer");
    size_t n = image_every_kind(img, locals);
    uint64_t code = image_code(img, "leaf", "/job/leaf.py", 5, 20, 2);
    image_set_frame(img, &py, image_locals_frame(img, 0, code, locals, n, 2));
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
            what = IMAGE_BASE + what % img->used / 8 * 8;
        size_t at = (where & 0x7fffffff) % (img->used - sizeof what) / 8 * 8;
        memcpy(img->bytes + at, &what, sizeof what);
    }
}

static void fuzz_check(const struct model_locals *l) {
    if (!l)
        return;
    if (l->n > LOCALS_PER_FRAME)
        abort();
    for (size_t i = 0; i < l->n; i++)
        if (!l->items[i].name || !l->items[i].type != !l->items[i].text ||
            (l->items[i].text && strlen(l->items[i].text) >= VALUES_TEXT_MAX) ||
            (l->items[i].type && strlen(l->items[i].type) >= VALUES_TYPE_MAX))
            abort();
}

static void fuzz_read(struct pystack *ps) {
    struct arena arena;
    struct pystack_thread *threads;
    arena_init(&arena, (size_t)4 << 20);
    ssize_t n = pystack_read_threads(ps, &arena, &threads);
    for (ssize_t i = 0; i < n && i < 2; i++) {
        struct model_frame *frames;
        bool torn, truncated, moved = false, cut = false;
        struct pystack_locals_budget budget = pystack_locals_budget(true);
        ssize_t count = pystack_read_frames(ps, &threads[i], &arena, &frames, &torn, &truncated);
        if (count > 4)
            count = 4;
        if (count <= 0)
            continue;
        const struct model_locals **locals =
            pystack_locals_read(ps, 0, frames, (size_t)count, true, &arena, &budget, &moved, &cut);
        for (ssize_t k = 0; locals && k < count; k++)
            fuzz_check(locals[k]);
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct image img;
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct mem m;
    if (size < 1 || !rows[data[0] % n_rows].type_name)
        return 0;
    uint64_t runtime = fuzz_build(&img, &rows[data[0] % n_rows]);
    fuzz_patch(&img, data + 1, size - 1);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, img.off, runtime);
    if (!ps)
        return 0;
    ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    fuzz_read(ps);
    pystack_close(ps);
    return 0;
}
