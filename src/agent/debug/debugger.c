/* SPDX-License-Identifier: Apache-2.0 */
/* debugger: see debugger.h. */
#include "agent/debug/debugger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/debug/pause.h"
#include "wire/field.h"

#define DEBUGGER_THREADS_MAX 4096
#define DEBUGGER_ARENA ((size_t)1024 * 1024)

typedef struct pyapi_object object;

struct debugger {
    struct eval_call call; /* first */
    enum wire_method method;
    struct wire_debug want; /* owned */
    uint32_t client;
    object *function, *owner, *how; /* owned until it has been called */
    struct wire_debugger got;       /* owned */
};

static struct debugger *debugger_of(struct eval_call *c) { return (struct debugger *)(void *)c; }

/* A text of a client, which may not be UTF-8, encoded like Python's file names. */
static object *debugger_text(const struct pyapi *api, const char *text) {
    return api->PyUnicode_DecodeUTF8(text, (ssize_t)strlen(text), "surrogateescape");
}

static object *debugger_ref(const struct pyapi *api, object *o) {
    api->Py_IncRef(o);
    return o;
}

/* ---- the request, as Python objects ---- */

static object *debugger_put(const struct pyapi *api, const struct field *f, const void *row) {
    const void *p = (const char *)row + f->offset;
    const char *text;
    switch (f->kind) {
    case FIELD_BOOL:
        return debugger_ref(api, *(const bool *)p ? api->_Py_TrueStruct : api->_Py_FalseStruct);
    case FIELD_INT:
    case FIELD_ENUM:
        return api->PyLong_FromLong(*(const int *)p);
    case FIELD_DOUBLE:
        return api->Py_BuildValue("d", *(const double *)p);
    case FIELD_STR:
        memcpy(&text, p, sizeof text);
        return text ? debugger_text(api, text) : debugger_ref(api, api->_Py_NoneStruct);
    default:
        return NULL;
    }
}

/* Set `*o` under that name and release it; false if there was no memory for either. */
static bool debugger_set(const struct pyapi *api, object *dict, const char *key, object *o) {
    bool set = o && api->PyDict_SetItemString(dict, key, o) == 0;
    if (o)
        api->Py_DecRef(o);
    return set;
}

static object *debugger_put_places(const struct pyapi *api, const struct wire_debug *want) {
    object *list = api->PyList_New(0);
    for (size_t i = 0; list && i < want->n_places; i++) {
        object *place = debugger_text(api, want->places[i]);
        if (place) {
            api->PyList_Append(list, place);
            api->Py_DecRef(place);
        }
    }
    return list;
}

static int debugger_prepare(struct eval_call *call, struct worker *w) {
    struct debugger *c = debugger_of(call);
    const struct pyapi *api = worker_api(w);
    const struct field_table *fields = field_debug_params(c->method);
    char name[32];
    snprintf(name, sizeof name, "%s_do", wire_method_name(c->method));
    object *function = pause_give(w) == 0 ? worker_helper(w, name) : NULL;
    if (!function)
        return -1;
    c->function = debugger_ref(api, function);
    c->owner = api->PyLong_FromLongLong((long long)c->client);
    c->how = api->PyDict_New();
    bool whole = c->owner && c->how;
    for (size_t i = 0; whole && i < fields->n; i++)
        whole =
            debugger_set(api, c->how, fields->fields[i].key, debugger_put(api, &fields->fields[i], &c->want));
    if (whole && c->method == WIRE_DEBUG)
        whole = debugger_set(api, c->how, "places", debugger_put_places(api, &c->want));
    return whole ? 0 : -1;
}

/* ---- the answer ---- */

static const char *debugger_take_text(const struct pyapi *api, object *bytes, struct arena *arena) {
    char *text;
    ssize_t size;
    return api->PyBytes_AsStringAndSize(bytes, &text, &size) == 0 ? arena_strndup(arena, text, (size_t)size)
                                                                  : NULL;
}

/* Take the fields that `dict` has; the others are unknown. */
static void debugger_take(const struct pyapi *api, object *dict, const struct field_table *fields, void *row,
                          struct arena *arena) {
    field_hide(fields, row, 1, WIRE_NOTHING);
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->fields[i];
        void *p = (char *)row + f->offset;
        object *o = api->PyDict_GetItemString(dict, f->key);
        if (!o || o == api->_Py_NoneStruct)
            continue;
        if (f->kind == FIELD_BOOL)
            *(bool *)p = o == api->_Py_TrueStruct;
        else if (f->kind == FIELD_INT)
            *(int *)p = (int)api->PyLong_AsLongLong(o);
        else if (f->kind == FIELD_INT64)
            *(int64_t *)p = api->PyLong_AsLongLong(o);
        else if (f->kind == FIELD_DOUBLE)
            *(double *)p = api->PyFloat_AsDouble(o);
        else if (f->kind == FIELD_STR)
            *(const char **)p = debugger_take_text(api, o, arena);
        api->PyErr_Clear();
    }
}

static void debugger_take_threads(const struct pyapi *api, object *list, struct wire_debugger *out) {
    ssize_t n = list ? api->PyList_Size(list) : 0;
    if (n > DEBUGGER_THREADS_MAX)
        n = DEBUGGER_THREADS_MAX;
    out->threads = n > 0 ? arena_calloc(&out->arena, (size_t)n, sizeof *out->threads) : NULL;
    for (ssize_t i = 0; out->threads && i < n && !out->arena.failed; i++)
        debugger_take(api, api->PyList_GetItem(list, i), &FIELD_PAUSED_THREADS,
                      &out->threads[out->n_threads++], &out->arena);
    api->PyErr_Clear();
}

static int debugger_run(struct eval_call *call, const struct pyapi *api) {
    struct debugger *c = debugger_of(call);
    object *answer = api->PyObject_CallFunctionObjArgs(c->function, c->owner, c->how, NULL);
    if (!answer)
        return -1;
    debugger_take(api, answer, field_debug_answer(c->method), &c->got, &c->got.arena);
    if (c->method == WIRE_PAUSE)
        debugger_take_threads(api, api->PyDict_GetItemString(answer, "threads"), &c->got);
    api->Py_DecRef(answer);
    return 0;
}

static void debugger_let_go(struct eval_call *call, const struct pyapi *api) {
    struct debugger *c = debugger_of(call);
    object **all[] = {&c->function, &c->owner, &c->how};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i])
            api->Py_DecRef(*all[i]);
        *all[i] = NULL;
    }
}

static void debugger_fini(struct eval_call *call) {
    struct debugger *d = debugger_of(call);
    wire_debug_fini(&d->want);
    wire_debugger_fini(&d->got);
    free(d);
}

struct debugger *debugger_new(enum wire_method method, struct wire_debug *want, uint32_t owner) {
    struct debugger *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    *d = (struct debugger){.call = {.unit = "catch", /* which needs the other units */
                                    .prepare = debugger_prepare,
                                    .run = debugger_run,
                                    .let_go = debugger_let_go,
                                    .fini = debugger_fini},
                           .method = method,
                           .want = *want,
                           .client = owner};
    *want = (struct wire_debug){.action = WIRE_DEBUG_UNKNOWN};
    arena_init(&d->got.arena, DEBUGGER_ARENA);
    return d;
}

struct eval_call *debugger_get_call(struct debugger *d) {
    return &d->call;
}

void debugger_get(const struct debugger *d, struct wire_debugger *out) {
    *out = d->got;
    out->arena = (struct arena){.head = NULL};
}

void debugger_describe(enum wire_method method, const struct wire_debug *want, char *out, size_t cap) {
    const char *name = wire_method_name(method);
    if (want->action == WIRE_DEBUG_BEGIN)
        snprintf(out, cap, "%s %.64s:%d", name, want->host, want->port);
    else
        snprintf(out, cap, "%s --%s", name, want->action == WIRE_DEBUG_END ? "off" : "status");
}
