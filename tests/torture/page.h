/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page: what the hostile target and whoever tortures it share, a file that both have mapped (run.py knows the layout too).
 *
 * Every thread of the target has a slot: how often it came round, what went wrong in it, whether it rests. All fields are
 * written by one side only and read with atomics by the other.
 */
#ifndef TORTURE_PAGE_H
#define TORTURE_PAGE_H

#include <stdint.h>

#define TORTURE_MAGIC 0x6572757472747430ULL
#define TORTURE_SLOTS 40
#define TORTURE_SIGNALS 65
#define TORTURE_QUIET 2

struct torture_slot {
    char name[24];
    int64_t tid;
    uint64_t progress; /* rounds done */
    uint64_t bad;      /* checks that failed */
    uint64_t parked; /* 1 while it rests: it holds nothing that comes and goes; TORTURE_QUIET while all do */
    char why[96];    /* the first check that failed */
};

struct torture_action {
    uint64_t handler, flags, mask; /* as sigaction(2) tells them */
};

struct torture_page {
    uint64_t magic, n_slots;
    /* written from outside */
    uint64_t quiet;     /* 1: everybody rests */
    uint64_t only;      /* n: everybody but slot n - 1 rests */
    uint64_t ask;       /* a new number: the actions are wanted */
    uint64_t childless; /* 1: nobody makes processes */
    /* written by the target */
    uint64_t answered;    /* the last number for which the actions were filled */
    uint64_t children;    /* processes that live or are waited for */
    uint64_t births;      /* how many there ever were */
    uint64_t interrupted; /* calls that ended with EINTR while there were any: see calls.c */
    uint64_t semaphore;   /* its semaphore set's id + 1, for whoever removes it in the end; 0 none yet */
    struct torture_action actions[TORTURE_SIGNALS];
    struct torture_slot slots[TORTURE_SLOTS];
};

#endif
