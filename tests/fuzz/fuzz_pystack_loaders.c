/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: iterators of DataLoaders in an interpreter whose memory has been tampered with.
 *
 * The first byte chooses the version. The rest are patches of 12 bytes to memory that made sense: where (4 bytes), what
 * (8 bytes: a value, or with the top bit of the place a pointer into the memory itself). Without a patch what is found is
 * what was put there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/loaders.h"
#include "pystack/pystack_internal.h"
#include "support/pystack_loaders.h"

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

static void fuzz_check(const struct pystack_loader *l) {
    if (l->n > PYSTACK_LOADER_WORKERS || l->workers < 0 || l->yielded < 0 ||
        !memchr(l->dataset, '\0', sizeof l->dataset) || (!l->processes && l->n))
        abort();
}

/* What image_loader has put there. */
static void fuzz_check_whole(const struct pystack_loader *l, const struct pystack_offsets *o) {
    int64_t ready = o->object_type == 8 ? 2 : MODEL_UNKNOWN; /* SemLock is laid out otherwise without a GIL */
    if (l->ready != ready || !l->processes || strcmp(l->dataset, "Items") != 0 || l->workers != 2 ||
        l->prefetch != 2 || l->persistent != 0 || l->sent != 9 || l->received != 6 || l->outstanding != 2 ||
        l->yielded != 6 || l->n != 2 || l->worker[0].pid != 4001 || l->worker[1].pid != 4002 ||
        l->worker[0].active != 1 || l->worker[1].active != 1 || l->worker[0].outstanding != 1 ||
        l->worker[1].outstanding != 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct image img;
    struct image_python py;
    struct pystack_loader loader;
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct mem m;
    uint64_t addrs[PYSTACK_LOADERS];
    if (size < 1 || !rows[data[0] % n_rows].type_name)
        return 0;
    image_init(&img, &rows[data[0] % n_rows]);
    image_python(&img, &py, "trainer");
    uint64_t made = image_loader(&img, &py);
    fuzz_patch(&img, data + 1, size - 1);
    image_open(&img, &m);
    struct pystack *ps = pystack_open_memory(&m, img.off, py.runtime);
    if (!ps)
        return 0;
    ps->pid = -1;
    ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    ssize_t n = pystack_find_loaders(ps, addrs);
    if (n > PYSTACK_LOADERS || (size == 1 && (n != 1 || addrs[0] != made)))
        abort();
    for (ssize_t i = 0; i < n; i++)
        if (pystack_read_loader(ps, addrs[i], &loader) == 0)
            fuzz_check(&loader);
    if (pystack_read_loader(ps, made, &loader) == 0)
        fuzz_check(&loader);
    else if (size == 1)
        abort();
    if (size == 1)
        fuzz_check_whole(&loader, img.off);
    pystack_close(ps);
    return 0;
}
