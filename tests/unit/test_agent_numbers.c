/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of numbers in memory against what is computed the simple way, over kinds, strides and what is not finite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/python/numbers.h"

static struct numbers *run(const struct numbers_view *v) {
    struct numbers *n = calloc(1, sizeof *n);
    assert_non_null(n);
    assert_int_equal(numbers_begin(n, v), 0);
    while (numbers_step(n))
        ;
    return n;
}

static void of_floats_with_some_that_are_not_finite(void **state) {
    enum { N = 200000 };
    float *x = malloc(N * sizeof *x);
    double sum = 0, m2 = 0, min = INFINITY, max = -INFINITY;
    uint64_t bins[NUMBERS_BINS] = {0}, finite = 0;
    (void)state;
    assert_non_null(x);
    srand(1);
    for (int i = 0; i < N; i++)
        x[i] = i % 1000 == 7   ? NAN
               : i % 1000 == 9 ? -INFINITY
               : i % 100 == 3  ? 0
                               : 1e6f + (float)(rand() % 4096);
    for (int i = 0; i < N; i++)
        if (isfinite(x[i])) {
            finite++;
            sum += (double)x[i];
            min = fmin(min, (double)x[i]);
            max = fmax(max, (double)x[i]);
        }
    double mean = sum / (double)finite;
    for (int i = 0; i < N; i++)
        if (isfinite(x[i])) {
            m2 += ((double)x[i] - mean) * ((double)x[i] - mean);
            size_t bin = (size_t)(((double)x[i] - min) / (max - min) * NUMBERS_BINS);
            bins[bin < NUMBERS_BINS ? bin : NUMBERS_BINS - 1]++;
        }
    struct numbers *n = run(&(struct numbers_view){.address = (uint64_t)(uintptr_t)x,
                                                   .kind = 'f',
                                                   .width = 4,
                                                   .n_dims = 1,
                                                   .shape = {N},
                                                   .stride = {1}});
    assert_true(n->stats.count == N && n->stats.nan == N / 1000 && n->stats.inf == N / 1000);
    assert_true(n->stats.zeros == N / 100 && n->stats.finite == finite && !n->failed);
    assert_true(n->stats.min == min && n->stats.max == max);
    assert_true(fabs(n->stats.mean - mean) < 1e-9 * fabs(mean));
    assert_true(fabs(numbers_std(&n->stats) - sqrt(m2 / (double)(finite - 1))) < 1e-9 * sqrt(m2));
    assert_memory_equal(n->stats.bins, bins, sizeof bins);
    free(n);
    free(x);
}

static void of_every_kind(void **state) {
    static const uint16_t half[] = {0x3c00, 0xc000, 0x7c00, 0x7e00, 0x0001};  /* 1, -2, inf, nan, 2^-24 */
    static const uint16_t brain[] = {0x3f80, 0xc000, 0x7f80, 0x7fc0, 0x0000}; /* 1, -2, inf, nan, 0 */
    static const int8_t bytes[] = {-128, 127, 0};
    static const uint64_t large[] = {UINT64_MAX, 0};
    static const double doubles[] = {1e300, -1e300};
    (void)state;
    const struct {
        struct numbers_view view;
        double min, max;
        uint64_t nan, inf;
    } cases[] = {
        {{.address = (uintptr_t)half, .kind = 'f', .width = 2, .shape = {5}}, -2, 1, 1, 1},
        {{.address = (uintptr_t)brain, .kind = 'b', .width = 2, .shape = {5}}, -2, 1, 1, 1},
        {{.address = (uintptr_t)bytes, .kind = 'i', .width = 1, .shape = {3}}, -128, 127, 0, 0},
        {{.address = (uintptr_t)large, .kind = 'u', .width = 8, .shape = {2}}, 0, (double)UINT64_MAX, 0, 0},
        {{.address = (uintptr_t)doubles, .kind = 'f', .width = 8, .shape = {2}}, -1e300, 1e300, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct numbers_view v = cases[i].view;
        v.n_dims = 1;
        v.stride[0] = 1;
        struct numbers *n = run(&v);
        assert_true(n->stats.min == cases[i].min && n->stats.max == cases[i].max);
        assert_true(n->stats.nan == cases[i].nan && n->stats.inf == cases[i].inf);
        free(n);
    }
}

/* Squares at once: whatever the kind, where numbers lie apart or repeat, and without what is not finite. */
static void of_squares(void **state) {
    enum { N = 50003 };
    static const uint16_t half[] = {0x3c00, 0xc000, 0x7c00, 0x7e00, 0x0000};
    static const uint16_t brain[] = {0x3f80, 0xc000, 0x7f80, 0x7fc0, 0x0000};
    static const double doubles[] = {3, -4, NAN};
    static const int8_t bytes[] = {1};
    float *x = malloc(N * sizeof *x);
    double all = 0, third = 0;
    (void)state;
    assert_non_null(x);
    for (int i = 0; i < N; i++) {
        x[i] = i % 1000 == 7 ? NAN : i % 1000 == 9 ? INFINITY : (float)(i % 37) - 18.5f;
        all += isfinite(x[i]) ? (double)x[i] * (double)x[i] : 0;
        third += i % 3 == 0 && isfinite(x[i]) ? (double)x[i] * (double)x[i] : 0;
    }
    const uint64_t at = (uint64_t)(uintptr_t)x;
    const struct {
        struct numbers_view view;
        double sum;
        uint64_t bad;
    } cases[] = {
        {{at, 'f', 4, 1, {N}, {1}}, all, 100},
        {{at, 'f', 4, 2, {2, N}, {0, 1}}, 2 * all, 200},
        {{at, 'f', 4, 1, {(N + 2) / 3}, {3}}, third, 33},
        {{at, 'f', 4, 1, {0}, {1}}, 0, 0},
        {{at, 'f', 4, 0, {0}, {0}}, 18.5 * 18.5, 0},
        {{(uintptr_t)half, 'f', 2, 1, {5}, {1}}, 5, 2},
        {{(uintptr_t)brain, 'b', 2, 1, {5}, {1}}, 5, 2},
        {{(uintptr_t)doubles, 'f', 8, 1, {3}, {1}}, 25, 1},
    };
    struct numbers *n = calloc(1, sizeof *n);
    double sum;
    uint64_t bad;
    assert_non_null(n);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(numbers_squares(n, &cases[i].view, &sum, &bad), 0);
        assert_true(fabs(sum - cases[i].sum) <= 1e-12 * cases[i].sum);
        assert_int_equal(bad, cases[i].bad);
    }
    const struct numbers_view whole = {(uintptr_t)bytes, 'i', 1, 1, {1}, {1}};
    assert_int_equal(numbers_squares(n, &whole, &sum, &bad), -1);
    const struct numbers_view nowhere = {16, 'f', 4, 1, {4}, {1}};
    assert_int_equal(numbers_squares(n, &nowhere, &sum, &bad), -1);
    free(n);
    free(x);
}

/* Each number of x[d0, d1, d2] counts once for each place of the view that it is at. */
static void of_any_strides(void **state) {
    enum { N = 60000 };
    int32_t *x = malloc(N * sizeof *x);
    (void)state;
    assert_non_null(x);
    for (int i = 0; i < N; i++)
        x[i] = i;
    static const struct {
        size_t n_dims;
        int64_t shape[4], stride[4];
    } cases[] = {{3, {20, 30, 100}, {3000, 100, 1}},
                 {3, {100, 20, 30}, {1, 3000, 100}},
                 {2, {3, 7}, {0, 5000}},
                 {1, {20}, {3000}},
                 {2, {2, 20000}, {1, 3}},
                 {0, {0}, {0}},
                 {3, {5, 0, 2}, {2, 2, 1}},
                 {4, {2, 1, 3, 4}, {1000, 7, 0, 9}}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct numbers_view v = {
            .address = (uint64_t)(uintptr_t)x, .kind = 'i', .width = 4, .n_dims = cases[k].n_dims};
        memcpy(v.shape, cases[k].shape, sizeof cases[k].shape);
        memcpy(v.stride, cases[k].stride, sizeof cases[k].stride);
        uint64_t count = 1;
        double sum = 0;
        for (size_t d = 0; d < v.n_dims; d++)
            count *= (uint64_t)v.shape[d];
        for (uint64_t i = 0; i < count; i++) {
            uint64_t rest = i, at = 0;
            for (size_t d = v.n_dims; d > 0; d--) {
                at += rest % (uint64_t)v.shape[d - 1] * (uint64_t)v.stride[d - 1];
                rest /= (uint64_t)v.shape[d - 1];
            }
            sum += x[at];
        }
        struct numbers *n = run(&v);
        assert_true(n->stats.count == count && n->stats.finite == count);
        if (count)
            assert_true(fabs(n->stats.mean - sum / (double)count) < 1e-9 * (1 + sum));
        else
            assert_true(isnan(n->stats.mean));
        uint64_t binned = 0;
        for (size_t b = 0; b < NUMBERS_BINS; b++)
            binned += n->stats.bins[b];
        assert_true(binned == count);
        free(n);
    }
    free(x);
}

static void what_cannot_be_read_is_no_fault(void **state) {
    struct numbers *n = calloc(1, sizeof *n);
    struct numbers_view v = {.kind = 'f', .width = 4, .n_dims = 1, .shape = {100000}, .stride = {1}};
    (void)state;
    assert_non_null(n);
    void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    v.address = (uint64_t)(uintptr_t)gone;
    assert_int_equal(numbers_begin(n, &v), 0);
    assert_false(numbers_step(n));
    assert_true(n->failed);
    v.width = 3;
    assert_int_equal(numbers_begin(n, &v), -1);
    v.width = 4;
    v.kind = 'c';
    assert_int_equal(numbers_begin(n, &v), -1);
    v.kind = 'f';
    v.shape[0] = -1;
    assert_int_equal(numbers_begin(n, &v), -1);
    (void)munmap(gone, 4096);
    free(n);
}

/* Against the full statistics: any kind, any number of them, one that is not finite anywhere or none. */
static void a_quick_look_says_the_same(void **state) {
    static const struct {
        char kind;
        uint8_t width;
        uint64_t bad; /* a NaN */
        uint64_t sign;
    } kinds[] = {{'f', 2, 0x7e01, 0x8000},
                 {'b', 2, 0xffc1, 0x8000},
                 {'f', 4, 0x7f800000, 0x80000000},
                 {'f', 4, 0xff800001, 0x80000000},
                 {'f', 8, 0xfff0000000000000, 0x8000000000000000}};
    uint8_t *bytes = malloc(8 * 40000);
    struct numbers *full, *quick = calloc(1, sizeof *quick);
    (void)state;
    assert_true(bytes && quick);
    srand(3);
    for (size_t turn = 0; turn < 600; turn++) {
        size_t kind = turn % 5, n = turn % 7 == 0 ? (size_t)rand() % 40000 : (size_t)rand() % 70;
        size_t width = kinds[kind].width, apart = turn % 3 == 0 ? 2 : 1;
        struct numbers_view v = {.address = (uint64_t)(uintptr_t)bytes,
                                 .kind = kinds[kind].kind,
                                 .width = width,
                                 .n_dims = 1,
                                 .shape = {(int64_t)(n / apart)},
                                 .stride = {(int64_t)apart}};
        for (size_t i = 0; i < n; i++) {
            double x = (rand() % 20000 - 10000) * pow(2, rand() % 8 - 4);
            float f = (float)x;
            uint32_t single;
            memcpy(&single, &f, sizeof single);
            /* as halves, any finite bits */
            uint64_t half = (uint64_t)rand() % 0x7c00 | (rand() % 2 ? 0x8000 : 0), brain = single >> 16;
            memcpy(bytes + i * width,
                   width == 8                ? (void *)&x
                   : width == 4              ? (void *)&f
                   : kinds[kind].kind == 'f' ? (void *)&half
                                             : (void *)&brain,
                   width);
        }
        if (turn % 2 && n)
            memcpy(bytes + (size_t)rand() % n * width, &kinds[kind].bad, width);
        full = run(&v);
        assert_int_equal(numbers_scan(quick, &v), 0);
        const struct numbers_stats *a = &full->stats, *b = &quick->stats;
        assert_true(a->count == b->count && a->nan == b->nan && a->inf == b->inf && a->finite == b->finite);
        assert_true((a->min == b->min && a->max == b->max) || a->finite == 0);
        free(full);
    }
    assert_int_equal(numbers_scan(quick, &(struct numbers_view){.kind = 'i', .width = 4}), -1);
    assert_int_equal(numbers_scan(quick, &(struct numbers_view){.kind = 'f', .width = 4, .address = 64}), -1);
    free(quick);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_look_says_the_same),
        cmocka_unit_test(of_floats_with_some_that_are_not_finite),
        cmocka_unit_test(of_every_kind),
        cmocka_unit_test(of_squares),
        cmocka_unit_test(of_any_strides),
        cmocka_unit_test(what_cannot_be_read_is_no_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
