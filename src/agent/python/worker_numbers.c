/* SPDX-License-Identifier: Apache-2.0 */
/* worker_numbers: see worker_numbers.h. */
#include "agent/python/worker_numbers.h"

#include <stdlib.h>
#include <string.h>

struct squares_item {
    struct numbers_view view;
    bool read;
    double sum;
    uint64_t bad;
};

struct worker_squares {
    struct numbers numbers;
    size_t n, at;
    bool begun; /* the item at `at` */
    struct squares_item items[];
};

int worker_numbers_view(const struct pyapi *api, struct pyapi_object *list, struct numbers_view *out) {
    int64_t item[3 + 2 * NUMBERS_DIMS];
    ssize_t n = api->PyList_Size(list);
    *out = (struct numbers_view){.address = 0};
    if (n < 3 || n > (ssize_t)(sizeof item / sizeof item[0]) || (n - 3) % 2 != 0)
        return -1;
    for (ssize_t i = 0; i < n; i++)
        item[i] = api->PyLong_AsLongLong(api->PyList_GetItem(list, i));
    if (api->PyErr_Occurred())
        return -1;
    out->address = (uint64_t)item[0];
    out->kind = (char)item[1];
    out->width = (size_t)item[2];
    out->n_dims = (size_t)(n - 3) / 2;
    memcpy(out->shape, item + 3, out->n_dims * sizeof out->shape[0]);
    memcpy(out->stride, item + 3 + out->n_dims, out->n_dims * sizeof out->stride[0]);
    return 0;
}

bool worker_squares_is(const struct pyapi *api, struct pyapi_object *list) {
    struct pyapi_object *first = api->PyList_Size(list) > 0 ? api->PyList_GetItem(list, 0) : NULL;
    struct pyapi_object *type = first ? api->PyObject_Type(first) : NULL;
    if (type)
        api->Py_DecRef(type);
    return type && type == api->PyList_Type;
}

struct worker_squares *worker_squares_new(const struct pyapi *api, struct pyapi_object *lists) {
    ssize_t n = api->PyList_Size(lists);
    if (n < 0 || n > WORKER_SQUARES_MAX)
        return NULL;
    struct worker_squares *s = calloc(1, sizeof *s + (size_t)n * sizeof s->items[0]);
    if (!s)
        return NULL;
    s->n = (size_t)n;
    for (ssize_t i = 0; i < n; i++)
        if (worker_numbers_view(api, api->PyList_GetItem(lists, i), &s->items[i].view) != 0)
            s->items[i].view.kind = '\0'; /* no numbers */
    return s;
}

static void squares_take(struct squares_item *item, const struct numbers *n) {
    const struct numbers_stats *s = &n->stats;
    item->read = !n->failed;
    item->bad = s->nan + s->inf;
    item->sum = s->finite ? s->m2 + s->mean * s->mean * (double)s->finite : 0;
}

bool worker_squares_step(struct worker_squares *s) {
    if (s->at == s->n)
        return false;
    struct squares_item *item = &s->items[s->at];
    if (!s->begun && numbers_begin(&s->numbers, &item->view) != 0) {
        s->at++;
        return true;
    }
    s->begun = true;
    if (numbers_step(&s->numbers) && !s->numbers.binning)
        return true;
    squares_take(item, &s->numbers);
    s->begun = false;
    s->at++;
    return true;
}

struct pyapi_object *worker_squares_answer(const struct pyapi *api, const struct worker_squares *s) {
    struct pyapi_object *list = api->PyList_New(0);
    for (size_t i = 0; list && i < s->n; i++) {
        const struct squares_item *item = &s->items[i];
        struct pyapi_object *o =
            item->read ? api->Py_BuildValue("(dL)", item->sum, (long long)item->bad) : api->Py_BuildValue("");
        int rc = o ? api->PyList_Append(list, o) : -1;
        if (o)
            api->Py_DecRef(o);
        if (rc == 0)
            continue;
        api->Py_DecRef(list);
        list = NULL;
    }
    return list;
}

void worker_squares_free(struct worker_squares *s) { free(s); }
