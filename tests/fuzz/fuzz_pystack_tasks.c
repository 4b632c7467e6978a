/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: tasks of asyncio in an interpreter whose memory has been tampered with, and what _asyncio publishes.
 *
 * The first byte chooses the version. The next 104 are taken for what is published, too. The rest are patches of 12 bytes to
 * memory that made sense: where (4 bytes), what (8 bytes: a value, or with the top bit of the place a pointer into the
 * memory itself).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/tasks.h"
#include "support/pystack_tasks.h"

#define FUZZ_PATCH 12
#define FUZZ_PATCHES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void fuzz_read(struct pystack *ps, const struct image_python *py, const struct pystack_asyncio *a) {
    struct pystack_thread thread = {.tstate = py->tstate, .interp = py->interp, .tid = 4242};
    struct model_snapshot out = {.n_tasks = 0};
    arena_init(&out.arena, (size_t)16 << 20);
    pystack_codes_begin(&ps->codes, &out.arena);
    pystack_tasks_read(ps, a, &thread, 1, &out);
    if (out.n_tasks > PYSTACK_TASKS_MAX)
        abort();
    for (size_t i = 0; i < out.n_tasks; i++) {
        const struct model_task *t = &out.tasks[i];
        if ((t->n_frames && !t->frames) || (t->n_awaited_by && !t->awaited_by) || t->n_frames > 64 ||
            t->n_awaited_by > 16 || (t->tid != 4242 && t->tid != MODEL_UNKNOWN))
            abort();
    }
    arena_fini(&out.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct image img;
    struct image_python py;
    struct image_tasks made;
    struct pystack_asyncio published;
    size_t n_rows, n = 0;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows), *with_tasks[16];
    struct mem m;
    for (size_t i = 0; i < n_rows && n < 16; i++)
        if (rows[i].gen_iframe)
            with_tasks[n++] = &rows[i];
    if (size < 1 || n == 0)
        return 0;
    image_init(&img, with_tasks[data[0] % n]);
    image_python(&img, &py, "loop");
    image_tasks(&img, &py, &made);
    if (size > 1 + PYSTACK_ASYNCIO_BYTES)
        fuzz_patch(&img, data + 1 + PYSTACK_ASYNCIO_BYTES, size - 1 - PYSTACK_ASYNCIO_BYTES);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, img.off, py.runtime);
    if (!ps)
        return 0;
    ps->pid = -1;
    fuzz_read(ps, &py, &made.asyncio);
    if (pystack_asyncio_parse(data + 1, size - 1, &published) == 0)
        fuzz_read(ps, &py, &published);
    pystack_close(ps);
    return 0;
}
