/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_tasks: see pystack_tasks.h. The places of fields are our own: the reader is told them. */
#include "support/pystack_tasks.h"

#include <string.h>

#include "support/pystack_values.h"

#define TASKS_TASK_BYTES 168

struct tasks_types {
    uint64_t task, coroutine, wrapper, text, number, set;
};

static const struct pystack_asyncio tasks_layout = {.task_size = TASKS_TASK_BYTES,
                                                    .task_name = 136,
                                                    .task_awaited_by = 96,
                                                    .task_is_task = 108,
                                                    .task_awaited_by_is_set = 109,
                                                    .task_coro = 128,
                                                    .task_node = 152};

/* A coroutine in a function of that name, which awaits an object (0: nothing that is told). */
static uint64_t tasks_coroutine(struct image *img, uint64_t type, const char *name, int line,
                                uint64_t awaited) {
    const struct pystack_offsets *o = img->off;
    uint64_t object = image_object(img, type, 256), frame = object + (uint64_t)o->gen_iframe;
    uint64_t code = image_code(img, name, "/job/tasks.py", line, 20, 2),
             top = frame + (uint64_t)o->frame_localsplus + 40;
    image_put_u64(img, frame, o->frame_code, code | (o->tag_bits & 1));
    image_put_u64(img, frame, o->frame_instr, code + (uint64_t)o->code_bytes + 10);
    image_put_u8(img, frame, o->frame_owner, (uint8_t)o->owner_generator);
    image_put_u64(img, frame, o->frame_stackpointer, top);
    image_put_u64(img, top - 8 * (uint64_t)o->gen_awaited_words, 0, awaited);
    image_put_u8(img, object, o->gen_frame_state,
                 awaited ? (uint8_t)o->gen_awaits : (uint8_t)(o->gen_awaits - 1));
    return object;
}

static uint64_t tasks_task(struct image *img, const struct tasks_types *types, uint64_t coroutine,
                           uint64_t name, int is_task) {
    uint64_t task = image_object(img, types->task, TASKS_TASK_BYTES);
    image_put_u64(img, task, tasks_layout.task_coro, coroutine);
    image_put_u64(img, task, tasks_layout.task_name, name);
    image_put_u8(img, task, tasks_layout.task_is_task, (uint8_t)is_task);
    return task;
}

static void tasks_link(struct image *img, const struct image_tasks *t) {
    uint64_t before = t->head;
    for (size_t i = 0; i <= IMAGE_TASKS; i++) {
        uint64_t node = i < IMAGE_TASKS ? t->task[i] + (uint64_t)tasks_layout.task_node : t->head;
        image_put_u64(img, before, 0, node);
        image_put_u64(img, node, 8, before);
        before = node;
    }
}

static void tasks_make_types(struct image *img, struct tasks_types *t) {
    uint64_t object = image_type(img, "object", 0, 0, 0);
    *t = (struct tasks_types){.task = image_type(img, "_asyncio.Task", 0, object, 0),
                              .coroutine = image_type(img, "coroutine", 0, object, 0),
                              .wrapper = image_type(img, "coroutine_wrapper", 0, object, 0),
                              .text = image_type(img, "str", 1ULL << 28, object, 0),
                              .number = image_type(img, "int", 1ULL << 24, object, 0),
                              .set = image_type(img, "set", 0, object, 0)};
}

static uint64_t tasks_typed(struct image *img, uint64_t object, uint64_t type) {
    image_put_u64(img, object, img->off->object_type - 8, 1);
    image_put_u64(img, object, img->off->object_type, type);
    return object;
}

static uint64_t tasks_set(struct image *img, uint64_t type, uint64_t a, uint64_t b) {
    const struct pystack_offsets *o = img->off;
    uint64_t set = image_object(img, type, (size_t)o->set_table + 8), table = image_alloc(img, 8 * 16);
    image_put_u64(img, set, o->set_used, 2);
    image_put_u64(img, set, o->set_mask, 7);
    image_put_u64(img, set, o->set_table, table);
    image_put_u64(img, table + 16, 0, a);
    image_put_u64(img, table + 80, 0, b);
    return set;
}

void image_tasks(struct image *img, const struct image_python *py, struct image_tasks *out) {
    struct tasks_types types;
    tasks_make_types(img, &types);
    out->asyncio = tasks_layout;
    uint64_t heads = image_alloc(img, 64);
    out->head = heads;
    image_put_u64(img, heads + 32, 0, heads + 32); /* of the interpreter: it is empty */
    image_put_u64(img, heads + 32, 8, heads + 32);
    out->asyncio.tstate_tasks = (int32_t)(heads - py->tstate);
    out->asyncio.interp_tasks = (int32_t)(heads + 32 - py->interp);
    out->asyncio.tstate_running_task = (int32_t)(heads + 16 - py->tstate);
    uint64_t alone = tasks_coroutine(img, types.coroutine, "alone", 11, 0);
    uint64_t inner = tasks_coroutine(img, types.coroutine, "inner", 21, 0);
    uint64_t outer = tasks_coroutine(img, types.coroutine, "outer", 31, inner);
    uint64_t wrapper = image_object(img, types.wrapper, 64);
    image_put_u64(img, wrapper, img->off->object_size,
                  tasks_coroutine(img, types.coroutine, "behind", 41, 0));
    uint64_t before = tasks_coroutine(img, types.coroutine, "before", 51, wrapper);
    out->task[0] = tasks_task(img, &types, alone, tasks_typed(img, image_ascii(img, "first"), types.text), 1);
    out->task[1] = tasks_task(img, &types, outer, 0, 1);
    out->task[2] = tasks_task(img, &types, before, tasks_typed(img, image_int(img, 7), types.number), 1);
    uint64_t future = tasks_task(img, &types, 0, 0, 0);
    image_put_u64(img, out->task[0], tasks_layout.task_awaited_by, future);
    image_put_u64(img, future, tasks_layout.task_awaited_by, out->task[1]);
    image_put_u64(img, out->task[2], tasks_layout.task_awaited_by,
                  tasks_set(img, types.set, out->task[0], out->task[1]));
    image_put_u8(img, out->task[2], tasks_layout.task_awaited_by_is_set, 1);
    tasks_link(img, out);
}
