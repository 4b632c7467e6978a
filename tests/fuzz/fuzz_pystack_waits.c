/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a thread waits for, in an interpreter whose memory has been tampered with.
 *
 * The first byte chooses the version, the second the lock that it sleeps on (two bits) and the block that it is in. The rest are
 * patches of 12 bytes to memory that made sense: where (4 bytes), what (8 bytes: a value, or with the top bit of the place a
 * pointer into the memory itself).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/model_text.h"
#include "support/pystack_waits.h"

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

static void fuzz_check(const struct model_snapshot *s) {
    struct strbuf text;
    const struct model_wait *w = &s->threads[0].wait;
    /* By its ident, a list of threads that was tampered with may name one that the snapshot has not. */
    bool by_ident = w->kind == MODEL_WAIT_RLOCK || w->kind == MODEL_WAIT_THREAD;
    if ((unsigned)w->kind >= MODEL_WAIT_KINDS || (w->what && strlen(w->what) >= WAITS_WHAT) ||
        w->tid > INT32_MAX || (w->tid && !by_ident && w->tid != (uint64_t)s->threads[0].tid))
        abort();
    strbuf_init(&text, 4096);
    model_text_put_wait(&text, s, &s->threads[0], false);
    strbuf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t sems[] = {IMAGE_SEM_LOCK, IMAGE_SEM_RLOCK, IMAGE_SEM_ENTERED, IMAGE_SEM_NONE};
    static struct image img;
    struct image_waits made;
    struct model_snapshot s;
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    if (size < 2 || !rows[data[0] % n_rows].type_name)
        return 0;
    image_init(&img, &rows[data[0] % n_rows]);
    image_waits(&img, &made);
    image_waits_enter(&img, &made, data[1] >> 4, data[1] >> 2 & 1);
    uint64_t futex = img.off->minor >= 14 ? made.entry[data[1] % 4] : sems[data[1] % 4];
    fuzz_patch(&img, data + 2, size - 2);
    if (image_waits_read(&img, made.py.runtime, futex, &s) == 0)
        fuzz_check(&s);
    model_snapshot_fini(&s);
    return 0;
}
