/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: is what lies at an address an interpreter of this version? The same bytes are tried as every version there is.
 *
 * The first byte chooses the version they are laid out as. The rest are patches of 12 bytes as in fuzz_pystack_walk.c.
 * Published offsets (3.13 on) lie at the beginning of the runtime, so they are tampered with too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/discover.h"
#include "pystack/reader.h"
#include "support/pystack_image.h"

#define FUZZ_PATCH 12
#define FUZZ_PATCHES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct image img;

static uint64_t fuzz_build(const struct pystack_offsets *off) {
    struct image_python py;
    image_init(&img, off);
    image_python(&img, &py, "trainer");
    uint64_t hex = (uint64_t)off->major << 24 | (uint64_t)off->minor << 16 | 0x05f0;
    struct image_pair entries[] = {{image_ascii(&img, "hexversion"), image_int(&img, hex)},
                                   {image_ascii(&img, "abiflags"), image_ascii(&img, "")}};
    image_put_u64(&img, py.interp, off->interp_sysdict, image_dict(&img, entries, 2, 0));
    return py.runtime;
}

static void fuzz_patch(const uint8_t *data, size_t size) {
    for (size_t n = 0; size >= FUZZ_PATCH && n < FUZZ_PATCHES_MAX;
         n++, data += FUZZ_PATCH, size -= FUZZ_PATCH) {
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

/* Readers copy structs into buffers of a fixed size, whatever the interpreter says of itself. */
static void fuzz_check(const struct pystack_offsets *o) {
    if (o->tstate_size > PYSTACK_STRUCT_MAX || o->frame_size > PYSTACK_STRUCT_MAX ||
        o->code_size > PYSTACK_STRUCT_MAX || o->tstate_size <= 0 || o->frame_size <= 0 || o->code_size <= 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct discover d;
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct mem m;
    if (size < 1)
        return 0;
    const struct pystack_offsets *row = &rows[data[0] % n_rows];
    uint64_t runtime = fuzz_build(row);
    fuzz_patch(data + 1, size - 1);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, row, runtime);
    for (size_t i = 0; ps && i < n_rows; i++) {
        uint32_t hex = (uint32_t)rows[i].major << 24 | (uint32_t)rows[i].minor << 16;
        memset(&d, 0, sizeof d);
        d.ps = ps;
        if (discover_try_row(&d, runtime, &rows[i], hex, i & 1) == 0)
            fuzz_check(&ps->reader.off);
        else if (d.failure == DISCOVER_NOTHING)
            abort(); /* every refusal has a reason */
    }
    pystack_close(ps);
    return 0;
}
