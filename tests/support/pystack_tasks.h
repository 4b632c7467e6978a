/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_tasks: tasks of asyncio in the memory of an interpreter made by hand (pystack_image.h); from 3.14 on. */
#ifndef TESTS_SUPPORT_PYSTACK_TASKS_H
#define TESTS_SUPPORT_PYSTACK_TASKS_H

#include "pystack/tasks.h"
#include "support/pystack_image.h"

#define IMAGE_TASKS 3

/* What is in the image: each task's address. The first awaits nothing and has a name; the second awaits the first through a
 * future and two coroutines; the third is awaited by a set of both, has a number for a name, and a wrapper on its way. */
struct image_tasks {
    struct pystack_asyncio asyncio;
    uint64_t task[IMAGE_TASKS];
    uint64_t head; /* of the list */
};

void image_tasks(struct image *img, const struct image_python *py, struct image_tasks *out);

#endif
