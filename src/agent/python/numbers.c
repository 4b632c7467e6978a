/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers: see numbers.h. Mean and squares are combined piece by piece (Chan, Golub, LeVeque
 * 1979), so that they are as exact as with two passes.
 */
#include "agent/python/numbers.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS_A_STEP 32768 /* numbers */
#define NUMBERS_LANES 4
#define NUMBERS_VECTOR 16 /* bytes that are checked together */

/* ---- the order of reading: it does not matter, so strides are sorted and dims are merged ---- */

static void numbers_sort(struct numbers_view *v) {
    for (size_t i = 1; i < v->n_dims; i++)
        for (size_t k = i; k > 0 && v->stride[k] > v->stride[k - 1]; k--) {
            int64_t shape = v->shape[k], stride = v->stride[k];
            v->shape[k] = v->shape[k - 1];
            v->stride[k] = v->stride[k - 1];
            v->shape[k - 1] = shape;
            v->stride[k - 1] = stride;
        }
}

/* Remove dims of size one and dims that repeat numbers. False if there are no numbers, or too
 * many dims. */
static bool numbers_reduce(struct numbers *n, const struct numbers_view *from) {
    struct numbers_view *v = &n->view;
    uint64_t total = 1;
    n->repeat = 1;
    *v = *from;
    v->n_dims = 0;
    for (size_t i = 0; i < from->n_dims; i++) {
        int64_t size = from->shape[i];
        if (size < 0 || from->stride[i] < 0 || __builtin_mul_overflow(total, (uint64_t)size, &total))
            return false;
        if (size != 1 && from->stride[i] == 0)
            n->repeat *= (uint64_t)size;
        else if (size != 1) {
            v->shape[v->n_dims] = size;
            v->stride[v->n_dims++] = from->stride[i];
        }
    }
    numbers_sort(v);
    size_t to = 0;
    for (size_t i = 1; i < v->n_dims; i++) {
        if (v->stride[to] == v->stride[i] * v->shape[i]) {
            v->shape[to] *= v->shape[i];
            v->stride[to] = v->stride[i];
        } else {
            to++;
            v->shape[to] = v->shape[i];
            v->stride[to] = v->stride[i];
        }
    }
    if (v->n_dims == 0) {
        v->shape[0] = v->stride[0] = 1;
    }
    v->n_dims = to + 1;
    n->stats.count = total;
    return true;
}

int numbers_begin(struct numbers *n, const struct numbers_view *view) {
    bool known = view->kind == 'b'   ? view->width == 2
                 : view->kind == 'f' ? view->width >= 2
                                     : view->width >= 1;
    known = known && strchr("fbiu", view->kind) && view->kind != '\0' && view->width <= 8 &&
            (view->width & (view->width - 1)) == 0;
    n->stats = (struct numbers_stats){.min = NAN, .max = NAN, .mean = NAN};
    n->binning = n->failed = false;
    memset(n->index, 0, sizeof n->index);
    if (!known || view->n_dims > NUMBERS_DIMS || !numbers_reduce(n, view))
        return -1;
    mem_init_process(&n->mem, getpid());
    return 0;
}

/* ---- one number ---- */

static double numbers_half(uint16_t h) {
    int exponent = h >> 10 & 31;
    double fraction = h & 1023, v;
    if (exponent == 31)
        v = fraction > 0 ? NAN : INFINITY;
    else
        v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

static double numbers_get(const struct numbers_view *v, const uint8_t *at) {
    uint64_t bits = 0;
    memcpy(&bits, at, v->width); /* little-endian, like all supported machines */
    if (v->kind == 'u')
        return (double)bits;
    if (v->kind == 'i') {
        unsigned shift = (unsigned)(64 - 8 * v->width);
        return (double)((int64_t)(bits << shift) >> shift);
    }
    uint32_t single = v->kind == 'b' ? (uint32_t)bits << 16 : (uint32_t)bits;
    if (v->kind == 'f' && v->width == 2)
        return numbers_half((uint16_t)bits);
    if (v->kind == 'f' && v->width == 8) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    float f;
    memcpy(&f, &single, sizeof f);
    return (double)f;
}

/* ---- a piece ---- */

/* Count the numbers that are not finite; the others stay in n->values. Returns their number. */
static size_t numbers_sift(struct numbers *n, size_t count) {
    struct numbers_stats *s = &n->stats;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        double v = n->values[i];
        s->nan += isnan(v) ? n->repeat : 0;
        s->inf += isinf(v) ? n->repeat : 0;
        s->zeros += v == 0 ? n->repeat : 0;
        if (isfinite(v))
            n->values[kept++] = v;
    }
    return kept;
}

static void numbers_add(struct numbers *n, size_t count) {
    struct numbers_stats *s = &n->stats;
    size_t kept = numbers_sift(n, count);
    double sum = 0, m2 = 0;
    for (size_t i = 0; i < kept; i++) {
        double v = n->values[i];
        sum += v;
        s->min = v < s->min || isnan(s->min) ? v : s->min;
        s->max = v > s->max || isnan(s->max) ? v : s->max;
    }
    if (kept == 0)
        return;
    double mean = sum / (double)kept, many = (double)kept * (double)n->repeat, before = (double)s->finite;
    for (size_t i = 0; i < kept; i++)
        m2 += (n->values[i] - mean) * (n->values[i] - mean);
    double apart = s->finite ? mean - s->mean : 0;
    s->m2 += m2 * (double)n->repeat + apart * apart * before * many / (before + many);
    s->mean = s->finite ? s->mean + apart * many / (before + many) : mean;
    s->finite += kept * n->repeat;
}

static void numbers_bin(struct numbers *n, size_t count) {
    struct numbers_stats *s = &n->stats;
    double scale = s->max > s->min ? NUMBERS_BINS / (s->max - s->min) : 0;
    for (size_t i = 0; i < count; i++) {
        double v = n->values[i];
        if (!isfinite(v))
            continue;
        double at = (v - s->min) * scale; /* it may have been written since */
        size_t bin = at > 0 ? at < NUMBERS_BINS ? (size_t)at : NUMBERS_BINS - 1 : 0;
        s->bins[bin] += n->repeat;
    }
}

/* The address of the numbers at the index, and how many of the innermost dim are read together. */
static uint64_t numbers_find(const struct numbers *n, size_t *count) {
    const struct numbers_view *v = &n->view;
    size_t last = v->n_dims - 1, apart = (size_t)v->stride[last] * v->width;
    uint64_t offset = 0;
    for (size_t i = 0; i < v->n_dims; i++)
        offset += (uint64_t)n->index[i] * (uint64_t)v->stride[i];
    size_t fit = apart && apart < NUMBERS_BUFFER ? (NUMBERS_BUFFER - v->width) / apart + 1 : 1;
    size_t left = (size_t)(v->shape[last] - n->index[last]);
    *count = left < fit ? left : fit;
    return v->address + offset * v->width;
}

/* Advance by so many of the innermost dim. False at the end, where it starts again. */
static bool numbers_advance(struct numbers *n, size_t count) {
    size_t i = n->view.n_dims - 1;
    n->index[i] += (int64_t)count;
    while (n->index[i] >= n->view.shape[i]) {
        n->index[i] = 0;
        if (i == 0)
            return false;
        n->index[--i]++;
    }
    return true;
}

/* True if there is more of this pass. */
static bool numbers_piece(struct numbers *n, size_t *done) {
    size_t count, apart = (size_t)n->view.stride[n->view.n_dims - 1] * n->view.width;
    uint64_t at = numbers_find(n, &count);
    size_t len = (count - 1) * apart + n->view.width;
    if (mem_read(&n->mem, at, n->bytes, len) != 0) {
        n->failed = true;
        return false;
    }
    for (size_t i = 0; i < count; i++)
        n->values[i] = numbers_get(&n->view, n->bytes + i * apart);
    if (n->binning)
        numbers_bin(n, count);
    else
        numbers_add(n, count);
    *done += count;
    return numbers_advance(n, count);
}

bool numbers_step(struct numbers *n) {
    size_t done = 0;
    if (n->stats.count == 0)
        return false;
    while (done < NUMBERS_A_STEP)
        if (!numbers_piece(n, &done)) {
            bool again = !n->binning && !n->failed && n->stats.finite > 0;
            n->binning = true;
            return again;
        }
    return true;
}

/* ---- the quick scan ---- */

/* Floating point numbers are sign and magnitude. As integers in the same order, NaN and infinity
 * are at the two ends. */
struct numbers_order {
    int64_t last;      /* the largest finite one; the smallest is -last - 1 */
    int64_t low, high; /* of the finite numbers */
    uint64_t bad, inf; /* numbers that are not finite, and the infinite ones of them */
};

/* Vectors, which the compiler maps to the machine's. */
typedef int16_t numbers_shorts __attribute__((vector_size(NUMBERS_VECTOR)));
typedef int32_t numbers_words __attribute__((vector_size(NUMBERS_VECTOR)));

static void numbers_order_add(struct numbers_order *o, int64_t x) {
    bool bad = x > o->last || x < -o->last - 1;
    o->bad += bad;
    o->inf += x == o->last + 1 || x == -o->last - 2;
    o->low = !bad && x < o->low ? x : o->low;
    o->high = !bad && x > o->high ? x : o->high;
}

static void numbers_order_join(struct numbers_order *o, int64_t low, int64_t high, int64_t bad, int64_t inf) {
    o->bad += (uint64_t)bad;
    o->inf += (uint64_t)inf;
    o->low = low < o->low ? low : o->low;
    o->high = high > o->high ? high : o->high;
}

/* At most NUMBERS_BUFFER bytes, so that the counts fit into a lane. */
static void numbers_order_16(const uint8_t *bytes, size_t n, struct numbers_order *o) {
    enum { LANES = sizeof(numbers_shorts) / sizeof(int16_t) };
    _Static_assert(NUMBERS_BUFFER / NUMBERS_VECTOR < INT16_MAX, "a count does not fit");
    numbers_shorts v, low = {0}, high = {0}, bad = {0}, inf = {0}, is_bad, is;
    int16_t last = (int16_t)o->last;
    size_t whole = n - n % LANES;
    low += last;
    high -= (int16_t)(last + 1);
    for (size_t i = 0; i < whole; i += LANES) {
        memcpy(&v, bytes + sizeof(int16_t) * i, sizeof v);
        v ^= (v >> 15) & INT16_MAX;
        is_bad = (v > last) | (v < (int16_t)(-last - 1));
        bad -= is_bad;
        inf -= (v == (int16_t)(last + 1)) | (v == (int16_t)(-last - 2));
        is = (v < low) & ~is_bad;
        low = (v & is) | (low & ~is);
        is = (v > high) & ~is_bad;
        high = (v & is) | (high & ~is);
    }
    for (size_t k = 0; k < LANES && whole; k++)
        numbers_order_join(o, low[k], high[k], bad[k], inf[k]);
    for (size_t i = whole; i < n; i++) {
        int16_t x;
        memcpy(&x, bytes + sizeof x * i, sizeof x);
        numbers_order_add(o, x ^ (x < 0 ? INT16_MAX : 0));
    }
}

static void numbers_order_32(const uint8_t *bytes, size_t n, struct numbers_order *o) {
    enum { LANES = sizeof(numbers_words) / sizeof(int32_t) };
    numbers_words v, low = {0}, high = {0}, bad = {0}, inf = {0}, is_bad, is;
    int32_t last = (int32_t)o->last;
    size_t whole = n - n % LANES;
    low += last;
    high -= last + 1;
    for (size_t i = 0; i < whole; i += LANES) {
        memcpy(&v, bytes + sizeof(int32_t) * i, sizeof v);
        v ^= (v >> 31) & INT32_MAX;
        is_bad = (v > last) | (v < -last - 1);
        bad -= is_bad;
        inf -= (v == last + 1) | (v == -last - 2);
        is = (v < low) & ~is_bad;
        low = (v & is) | (low & ~is);
        is = (v > high) & ~is_bad;
        high = (v & is) | (high & ~is);
    }
    for (size_t k = 0; k < LANES && whole; k++)
        numbers_order_join(o, low[k], high[k], bad[k], inf[k]);
    for (size_t i = whole; i < n; i++) {
        int32_t x;
        memcpy(&x, bytes + sizeof x * i, sizeof x);
        numbers_order_add(o, x ^ (x < 0 ? INT32_MAX : 0));
    }
}

static void numbers_order_any(const struct numbers *n, size_t count, struct numbers_order *o) {
    size_t width = n->view.width, apart = (size_t)n->view.stride[n->view.n_dims - 1] * width;
    for (size_t i = 0; i < count; i++) {
        int64_t x = 0;
        unsigned shift = (unsigned)(64 - 8 * width);
        memcpy(&x, n->bytes + i * apart, width);
        x = (int64_t)((uint64_t)x << shift) >> shift;
        numbers_order_add(o, x ^ (x < 0 ? INT64_MAX >> shift : 0));
    }
}

static double numbers_order_number(const struct numbers_view *v, int64_t order) {
    unsigned shift = (unsigned)(64 - 8 * v->width);
    uint64_t bits = (uint64_t)(order ^ (order < 0 ? INT64_MAX >> shift : 0));
    uint8_t bytes[sizeof bits];
    memcpy(bytes, &bits, sizeof bits);
    return numbers_get(v, bytes);
}

static void numbers_order_piece(const struct numbers *n, size_t count, struct numbers_order *o) {
    bool dense = n->view.stride[n->view.n_dims - 1] == 1;
    if (dense && n->view.width == 2)
        numbers_order_16(n->bytes, count, o);
    else if (dense && n->view.width == 4)
        numbers_order_32(n->bytes, count, o);
    else
        numbers_order_any(n, count, o);
}

int numbers_scan(struct numbers *n, const struct numbers_view *view) {
    struct numbers_order o = {.low = INT64_MAX, .high = INT64_MIN};
    struct numbers_stats *s = &n->stats;
    size_t count = 0;
    if ((view->kind != 'f' && view->kind != 'b') || numbers_begin(n, view) != 0)
        return -1;
    o.last = view->kind == 'b'  ? 0x7f7f
             : view->width == 2 ? 0x7bff
             : view->width == 4 ? 0x7f7fffff
                                : 0x7fefffffffffffff;
    do {
        uint64_t at = s->count ? numbers_find(n, &count) : 0;
        size_t len =
            count ? (count - 1) * (size_t)n->view.stride[n->view.n_dims - 1] * view->width + view->width : 0;
        if (len && mem_read(&n->mem, at, n->bytes, len) != 0)
            return -1;
        numbers_order_piece(n, count, &o);
    } while (count && numbers_advance(n, count));
    s->inf = o.inf * n->repeat;
    s->nan = (o.bad - o.inf) * n->repeat;
    s->finite = s->count - s->nan - s->inf;
    s->min = s->finite ? numbers_order_number(view, o.low) : NAN;
    s->max = s->finite ? numbers_order_number(view, o.high) : NAN;
    return 0;
}

/* ---- squares ---- */

/* The sum of squares of the first `count` of n->values, in lanes, so that no addition waits for
 * the previous one. */
static double numbers_square(const struct numbers *n, size_t count) {
    double lanes[NUMBERS_LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + NUMBERS_LANES <= count; i += NUMBERS_LANES)
        for (size_t k = 0; k < NUMBERS_LANES; k++)
            lanes[k] += n->values[i + k] * n->values[i + k];
    for (; i < count; i++)
        sum += n->values[i] * n->values[i];
    for (size_t k = 0; k < NUMBERS_LANES; k++)
        sum += lanes[k];
    return sum;
}

static void numbers_fill(struct numbers *n, size_t count) {
    size_t apart = (size_t)n->view.stride[n->view.n_dims - 1] * n->view.width;
    float single;
    if (n->view.kind != 'f' || n->view.width != sizeof single) {
        for (size_t i = 0; i < count; i++)
            n->values[i] = numbers_get(&n->view, n->bytes + i * apart);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(&single, n->bytes + i * apart, sizeof single);
        n->values[i] = (double)single;
    }
}

int numbers_squares(struct numbers *n, const struct numbers_view *view, double *sum, uint64_t *bad) {
    size_t count = 0;
    *sum = 0;
    *bad = 0;
    if ((view->kind != 'f' && view->kind != 'b') || numbers_begin(n, view) != 0)
        return -1;
    if (n->stats.count == 0)
        return 0;
    do {
        uint64_t at = numbers_find(n, &count);
        size_t apart = (size_t)n->view.stride[n->view.n_dims - 1] * n->view.width;
        if (mem_read(&n->mem, at, n->bytes, (count - 1) * apart + n->view.width) != 0)
            return -1;
        numbers_fill(n, count);
        double of_it = numbers_square(n, count);
        if (!isfinite(of_it)) { /* some number is not finite, which is rare: these are left out */
            size_t kept = numbers_sift(n, count);
            of_it = numbers_square(n, kept);
        }
        *sum += of_it * (double)n->repeat;
    } while (numbers_advance(n, count));
    *bad = n->stats.nan + n->stats.inf;
    return 0;
}

double numbers_std(const struct numbers_stats *s) {
    return s->finite > 1 ? sqrt(s->m2 / (double)(s->finite - 1)) : NAN;
}
