/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers: statistics of numbers that lie in this process's memory, without the GIL and without the library they belong to.
 *
 * Memory is read through base/mem.h: what is freed meanwhile gives wrong numbers, or none, but no fault. In pieces; no state but the
 * struct's; any thread.
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

/* Numbers as an array of any strides has them. */
struct numbers_view {
    uint64_t address;
    char kind;    /* 'f' IEEE 754, 'b' bfloat16, 'i' signed, 'u' unsigned (a bool is one of a byte) */
    size_t width; /* of a number, in bytes */
    size_t n_dims;
    int64_t shape[NUMBERS_DIMS], stride[NUMBERS_DIMS]; /* strides in numbers */
};

struct numbers_stats {
    uint64_t count, nan, inf, zeros;
    uint64_t finite;             /* what the rest is made of: */
    double min, max, mean;       /* NAN there are none */
    double m2;                   /* sum of squared differences from the mean */
    uint64_t bins[NUMBERS_BINS]; /* from min to max */
};

struct numbers {
    struct mem mem;
    struct numbers_view view; /* its dims simplified: the last is the innermost */
    uint64_t repeat;          /* how often each number counts */
    int64_t index[NUMBERS_DIMS];
    bool binning, failed;
    struct numbers_stats stats;
    uint8_t bytes[NUMBERS_BUFFER];
    double values[NUMBERS_BUFFER];
};

/* 0, or -1: these are no numbers that can be read. */
int numbers_begin(struct numbers *n, const struct numbers_view *view);

/* Read on for some 100 us. True when there is more. */
bool numbers_step(struct numbers *n);

/* The same without mean, squares, zeros and bins, at once, at some GiB a second, of floating point numbers (kinds 'f' and 'b') alone. 0, or -1:
 * they cannot be read. */
int numbers_scan(struct numbers *n, const struct numbers_view *view);

/* The sum of squares of those that are finite, and how many are not; at once, and of such numbers alone. 0, or -1. */
int numbers_squares(struct numbers *n, const struct numbers_view *view, double *sum, uint64_t *bad);

/* Standard deviation of a sample; NAN for fewer than two. */
double numbers_std(const struct numbers_stats *s);

#endif
