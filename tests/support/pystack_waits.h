/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_waits: a thread in a frame that has locks, made by hand in an image, and looked at as if it slept on one of them.
 */
#ifndef TESTS_SUPPORT_PYSTACK_WAITS_H
#define TESTS_SUPPORT_PYSTACK_WAITS_H

#include "pystack/waits.h"
#include "pystack/waits_internal.h"
#include "support/pystack_image.h"

/* Semaphores: of the Lock that is a variable, of the RLock that is one too, of the Lock that is only the object of a bound
 * __exit__ on the value stack, and of nothing. */
#define IMAGE_SEM_LOCK 0x7f0000002000ULL
#define IMAGE_SEM_RLOCK 0x7f0000002040ULL
#define IMAGE_SEM_ENTERED 0x7f0000002080ULL
#define IMAGE_SEM_NONE 0x7f00000020c0ULL

struct image_waits {
    struct image_python py;
    uint64_t lock, rlock, entered, exits; /* objects; `exits` is the bound __exit__ of `entered` */
    uint64_t entry[4];                    /* from 3.14 on: where a thread that waits for each sleeps */
    uint64_t code, frame;
};

/* An interpreter whose thread is in a function with the variables "lock" and "again", and enters a block of `with` of a third
 * lock. */
void image_waits(struct image *img, struct image_waits *out);

/* It is in a block to which so many words of its stack belong; `covers`: the instruction that it is at is in that block (up to
 * 3.10 it is in none then). */
void image_waits_enter(struct image *img, const struct image_waits *made, uint8_t depth, bool covers);

/* What a thread waits for that sleeps at `futex`; with who holds it, in a snapshot of one thread (model_snapshot_fini). 0, or
 * -1 if the interpreter cannot be read. */
int image_waits_read(struct image *img, uint64_t runtime, uint64_t futex, struct model_snapshot *out);

#endif
