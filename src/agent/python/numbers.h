/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers: statistics of numbers in this process's memory, without the GIL and without the
 * library that owns them.
 *
 * Memory is read through base/mem.h: memory that is freed meanwhile gives wrong numbers, or
 * none, but no fault. In pieces; no state besides the struct's; any thread.
 */
#ifndef AGENT_PYTHON_NUMBERS_H
#define AGENT_PYTHON_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#define NUMBERS_DIMS 16
#define NUMBERS_BINS 20
#define NUMBERS_BUFFER ((size_t)16 * 1024)

/* Numbers in an array of any strides. */
struct numbers_view {
    uint64_t address;
    /* 'f' IEEE 754, 'b' bfloat16, 'i' signed, 'u' unsigned (a bool is one of a byte) */
    char kind;
    size_t width; /* of a number, in bytes */
    size_t n_dims;
    int64_t shape[NUMBERS_DIMS], stride[NUMBERS_DIMS]; /* strides in numbers */
};

struct numbers_stats {
    uint64_t count, nan, inf, zeros;
    uint64_t finite;             /* the rest describes these: */
    double min, max, mean;       /* NAN if there are none */
    double m2;                   /* sum of squared differences from the mean */
    uint64_t bins[NUMBERS_BINS]; /* from min to max */
};

struct numbers {
    struct mem mem;
    struct numbers_view view; /* with simplified dims: the last is the innermost */
    uint64_t repeat;          /* how often each number counts */
    int64_t index[NUMBERS_DIMS];
    bool binning, failed;
    struct numbers_stats stats;
    uint8_t bytes[NUMBERS_BUFFER];
    double values[NUMBERS_BUFFER];
};

/* 0, or -1: these numbers cannot be read. */
int numbers_begin(struct numbers *n, const struct numbers_view *view);

/* Continue for about 100 us. True if there is more. */
bool numbers_step(struct numbers *n);

/* The same without mean, squares, zeros and bins, in one call, at some GiB a second, for
 * floating point numbers (kinds 'f' and 'b') only. 0, or -1: they cannot be read. */
int numbers_scan(struct numbers *n, const struct numbers_view *view);

/* The sum of squares of the finite numbers, and the number of others; in one call, and for such
 * numbers only. 0, or -1. */
int numbers_squares(struct numbers *n, const struct numbers_view *view, double *sum, uint64_t *bad);

/* Standard deviation of a sample; NAN for fewer than two. */
double numbers_std(const struct numbers_stats *s);

#endif
