/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_loaders: see pystack_loaders.h. Attributes as torch/utils/data/dataloader.py and multiprocessing/queues.py name them. */
#include "support/pystack_loaders.h"

#include <string.h>

#include "support/pystack_values.h"

#define IMAGE_SEM_HANDLE 16 /* SemLock */
#define IMAGE_SEM_MAX 36

/* An instance of a class of that name. */
static uint64_t loader_instance(struct image *img, const char *class, const struct image_pair *pairs,
                                size_t n) {
    uint64_t object = image_instance(img, pairs, n), type, text = image_alloc(img, 64);
    memcpy(&type, img->bytes + (object - IMAGE_BASE) + img->off->object_type, sizeof type);
    for (size_t i = 0; class[i]; i++)
        image_put_u8(img, text, (int32_t)i, (uint8_t) class[i]);
    image_put_u64(img, type, img->off->type_name, text);
    image_put_u64(img, object, img->off->object_type - 8, 1);
    return object;
}

static struct image_pair loader_attr(struct image *img, const char *name, uint64_t value) {
    return (struct image_pair){image_ascii(img, name), value};
}

static struct image_pair loader_number(struct image *img, const char *name, uint64_t number) {
    return loader_attr(img, name, image_int(img, number));
}

static uint64_t loader_list(struct image *img, const uint64_t *items, size_t n) {
    uint64_t list = image_object(img, img->type_type, 64), array = image_alloc(img, 8 * n);
    image_put_u64(img, list, img->off->var_size, n);
    image_put_u64(img, list, img->off->list_items, array);
    for (size_t i = 0; i < n; i++)
        image_put_u64(img, array, (int32_t)(8 * i), items[i]);
    return list;
}

static uint64_t loader_tuple(struct image *img, uint64_t first, uint64_t second) {
    const struct pystack_offsets *o = img->off;
    uint64_t tuple = image_object(img, img->type_type, (size_t)o->tuple_items + 16);
    image_put_u64(img, tuple, o->var_size, second ? 2 : 1);
    image_put_u64(img, tuple, o->tuple_items, first);
    image_put_u64(img, tuple, o->tuple_items + 8, second);
    return tuple;
}

static uint64_t loader_workers(struct image *img) {
    uint64_t workers[2];
    for (size_t i = 0; i < 2; i++) {
        struct image_pair pid = loader_number(img, "pid", 4001 + i);
        struct image_pair popen = loader_attr(img, "_popen", loader_instance(img, "Popen", &pid, 1));
        workers[i] = loader_instance(img, "Process", &popen, 1);
    }
    return loader_list(img, workers, 2);
}

/* Of multiprocessing's, with one object in it. */
static uint64_t loader_queue(struct image *img) {
    uint64_t lock = image_object(img, img->type_type, 64), handle = image_alloc(img, 32);
    image_put_u64(img, lock, IMAGE_SEM_HANDLE, handle);
    image_put_u32(img, lock, IMAGE_SEM_MAX, 32767);
    image_put_u32(img, handle, 0, 32766);
    struct image_pair semlock = loader_attr(img, "_semlock", lock);
    struct image_pair sem = loader_attr(img, "_sem", loader_instance(img, "BoundedSemaphore", &semlock, 1));
    return loader_instance(img, "Queue", &sem, 1);
}

/* Number of the batch -> (worker,), or (worker, batch). */
static uint64_t loader_tasks(struct image *img) {
    uint64_t first = image_int(img, 0), second = image_int(img, 1);
    const struct image_pair tasks[] = {{image_int(img, 6), loader_tuple(img, first, 0)},
                                       {image_int(img, 7), loader_tuple(img, second, image_int(img, 5))},
                                       {image_int(img, 8), loader_tuple(img, second, 0)}};
    return image_dict(img, tasks, 3, 1);
}

uint64_t image_loader(struct image *img, const struct image_python *py) {
    const uint64_t states[] = {image_int(img, 1), image_int(img, 1)};
    const struct image_pair attrs[] = {
        loader_number(img, "_num_workers", 2),
        loader_number(img, "_num_yielded", 6),
        loader_number(img, "_persistent_workers", 0),
        loader_number(img, "_prefetch_factor", 2),
        loader_number(img, "_send_idx", 9),
        loader_number(img, "_rcvd_idx", 6),
        loader_number(img, "_tasks_outstanding", 2),
        loader_attr(img, "_dataset", loader_instance(img, "Items", NULL, 0)),
        loader_attr(img, "_workers", loader_workers(img)),
        loader_attr(img, "_workers_status", loader_list(img, states, 2)),
        loader_attr(img, "_task_info", loader_tasks(img)),
        loader_attr(img, "_data_queue", loader_queue(img)),
    };
    uint64_t loader =
        loader_instance(img, "_MultiProcessingDataLoaderIter", attrs, sizeof attrs / sizeof attrs[0]);
    uint64_t generator = image_object(img, image_type(img, "generator", 0, 0, 0), 256);
    image_put_u64(img, generator, 64, loader);
    const struct image_local locals[] = {{"batches", 0x20, generator}, {"self", 0x20, loader}};
    uint64_t code = image_code(img, "__next__", "/torch/utils/data/dataloader.py", 700, 20, 2);
    image_set_frame(img, py, image_locals_frame(img, 0, code, locals, 2, 1));
    return loader;
}
