/* SPDX-License-Identifier: Apache-2.0 */
/* param_groups: see param_groups.h. Source: torch/optim/optimizer.py
 * (Optimizer.add_param_group). */
#include "agent/torch/param_groups.h"

#include <stddef.h>

#define PARAM_GROUPS_MAX 1024

#define PARAM_GROUPS_LIST_SUBCLASS                                                                           \
    (1UL << 25) /* Py_TPFLAGS_... (Include/object.h), the same in all versions */
#define PARAM_GROUPS_DICT_SUBCLASS (1UL << 29)

typedef struct pyapi_object object;

static bool groups_is(const struct pyapi *api, object *o, unsigned long subclass) {
    object *type = o ? api->PyObject_Type(o) : NULL;
    bool is = type && api->PyType_GetFlags(type) & subclass;
    if (type)
        api->Py_DecRef(type);
    return is;
}

static bool groups_each_of(const struct pyapi *api, object *group, int32_t number, param_groups_fn *each,
                           void *ctx) {
    bool is_dict = groups_is(api, group, PARAM_GROUPS_DICT_SUBCLASS);
    object *parameters = is_dict ? api->PyDict_GetItemString(group, "params") : NULL;
    bool is_list = groups_is(api, parameters, PARAM_GROUPS_LIST_SUBCLASS);
    ssize_t n = is_list ? api->PyList_Size(parameters) : 0;
    for (ssize_t i = 0; i < n; i++) {
        object *parameter = api->PyList_GetItem(parameters, i);
        if (parameter)
            each(ctx, parameter, number, (int32_t)i);
    }
    return is_list;
}

bool param_groups_each(const struct pyapi *api, object *optimizer, param_groups_fn *each, void *ctx) {
    object *groups = pyapi_get_own(api, optimizer, "param_groups");
    ssize_t n = groups_is(api, groups, PARAM_GROUPS_LIST_SUBCLASS) ? api->PyList_Size(groups) : 0;
    bool all = n > 0 && n <= PARAM_GROUPS_MAX;
    for (ssize_t i = 0; i < n && i < PARAM_GROUPS_MAX; i++)
        all = groups_each_of(api, api->PyList_GetItem(groups, i), (int32_t)i, each, ctx) && all;
    if (groups)
        api->Py_DecRef(groups);
    api->PyErr_Clear();
    return all;
}
