/* SPDX-License-Identifier: Apache-2.0 */
/* An iterator of a DataLoader: read again with few calls, and its counts are of one moment, or one of them is unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/loaders.h"
#include "pystack/pystack_internal.h"
#include "support/pystack_loaders.h"

/* Memory in which a number is counted on when others are read together, so often. */
static struct {
    ssize_t (*read_many)(struct mem *m, const struct iovec *pieces, size_t n, void *buf, size_t len);
    uint8_t *number;
    int times;
    unsigned reads;
} counted;

static ssize_t loaders_count_on(struct mem *m, const struct iovec *pieces, size_t n, void *buf, size_t len) {
    counted.reads++;
    if (counted.times-- > 0)
        ++*counted.number;
    return counted.read_many(m, pieces, n, buf, len);
}

static void check_an_iterator(struct image *img, const struct pystack_offsets *off) {
    struct image_python py;
    struct pystack_loader first, again;
    struct mem m;
    uint64_t addrs[PYSTACK_LOADERS], number;
    image_init(img, off);
    image_python(img, &py, "trainer");
    uint64_t made = image_loader(img, &py);
    image_open(img, &m);
    struct pystack *ps = pystack_open_memory(&m, off, py.runtime);
    assert_non_null(ps);
    ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    assert_int_equal(pystack_find_loaders(ps, addrs), 1);
    assert_int_equal(addrs[0], made);

    /* The places are known after the first reading, and nothing moves. */
    counted.read_many = ps->reader.mem.read_many;
    counted.times = 0;
    ps->reader.mem.read_many = loaders_count_on;
    assert_int_equal(pystack_read_loader(ps, made, &first), 0);
    uint64_t reads = ps->reader.mem.reads;
    counted.reads = 0;
    assert_int_equal(pystack_read_loader(ps, made, &again), 0);
    assert_memory_equal(&first, &again, sizeof first);
    assert_int_equal(counted.reads, 2);
    assert_in_range(ps->reader.mem.reads - reads, 0, 100); /* places, in two calls */
    assert_int_equal(again.sent, 9);

    /* It moves while it is read: now and then, and all the time. */
    assert_int_equal(pystack_attr_find(&ps->reader, made, "_send_idx", NULL, &number), 0);
    counted.number = img->bytes + (number - IMAGE_BASE) + off->long_digits;
    counted.times = 3;
    assert_int_equal(pystack_read_loader(ps, made, &again), 0);
    assert_int_equal(again.sent, 9 + 3);
    assert_int_equal(again.ready, first.ready);
    counted.times = 100;
    assert_int_equal(pystack_read_loader(ps, made, &again), 0);
    assert_int_equal(again.ready, MODEL_UNKNOWN);
    pystack_close(ps);
}

static void test_an_iterator_is_read_again(void **state) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    struct image *img = malloc(sizeof *img);
    (void)state;
    assert_non_null(img);
    for (size_t i = 0; i < n; i++)
        if (rows[i].type_name)
            check_an_iterator(img, &rows[i]);
    free(img);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_iterator_is_read_again)};
    return cmocka_run_group_tests_name("pystack_loaders", tests, NULL, NULL);
}
