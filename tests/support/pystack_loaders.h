/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_loaders: an iterator of torch's DataLoader in the memory of an interpreter made by hand (pystack_image.h). */
#ifndef TESTS_SUPPORT_PYSTACK_LOADERS_H
#define TESTS_SUPPORT_PYSTACK_LOADERS_H

#include "support/pystack_image.h"

/* One of two workers, with the pids 4001 and 4002, over a dataset of class "Items": 9 batches asked for, 6 given out; of the other 3 one
 * has come before its turn, one is in the queue, and one the first worker makes. Held by a variable of the thread's one frame, and
 * by a generator that another variable refers to. Its address. */
uint64_t image_loader(struct image *img, const struct image_python *py);

#endif
