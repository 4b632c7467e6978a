/* SPDX-License-Identifier: Apache-2.0 */
/* stack_text: see stack_text.h. Sources: Doc/reference/datamodel.rst (frame and code objects). */
#include "agent/python/stack_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STACK_FRAMES 256 /* maximum that is walked */
#define STACK_TRUNCATED " < ..."

/* Torch's function that calls a module; names of functions around and in it contain this. */
#define STACK_TEXT_CALL "_call_impl"
#define STACK_TEXT_MODULE "torch/nn/modules/module.py"

typedef struct pyapi_object object;

struct stack_frame {
    char func[128], file[256];
    long long line;
};

/* The text of an attribute, or of the second one if the first does not exist. */
static void stack_get_text(const struct pyapi *api, object *o, const char *name, const char *other, char *buf,
                           size_t cap) {
    object *text = api->PyObject_GetAttrString(o, name);
    if (!text && other) {
        api->PyErr_Clear();
        text = api->PyObject_GetAttrString(o, other);
    }
    if (pyapi_get_text(api, text, buf, cap) != 0)
        snprintf(buf, cap, "?");
    if (text)
        api->Py_DecRef(text);
}

static void stack_read_frame(const struct pyapi *api, object *frame, struct stack_frame *out) {
    object *code = api->PyObject_GetAttrString(frame, "f_code"),
           *line = api->PyObject_GetAttrString(frame, "f_lineno");
    *out = (struct stack_frame){.func = "?", .file = "?", .line = line ? api->PyLong_AsLongLong(line) : -1};
    api->PyErr_Clear();
    if (code) {
        stack_get_text(api, code, "co_qualname", "co_name", out->func, sizeof out->func);
        stack_get_text(api, code, "co_filename", NULL, out->file, sizeof out->file);
        api->Py_DecRef(code);
    }
    if (line)
        api->Py_DecRef(line);
    api->PyErr_Clear();
}

/* Visit each frame, innermost first, until `take` returns false. */
static void stack_each(const struct pyapi *api, bool (*take)(void *arg, const struct stack_frame *f),
                       void *arg) {
    struct stack_frame f;
    object *frame = api->PyEval_GetFrame();
    bool more = true;
    if (frame)
        api->Py_IncRef(frame);
    for (size_t i = 0; frame && frame != api->_Py_NoneStruct && more && i < STACK_FRAMES; i++) {
        stack_read_frame(api, frame, &f);
        more = take(arg, &f);
        object *back = api->PyObject_GetAttrString(frame, "f_back");
        api->Py_DecRef(frame);
        frame = back;
    }
    if (frame)
        api->Py_DecRef(frame);
    api->PyErr_Clear();
}

static bool stack_is(const struct stack_frame *f, const char *func, const char *file) {
    size_t n = strlen(f->file), m = strlen(file);
    return strstr(f->func, func) && n >= m && strcmp(f->file + n - m, file) == 0;
}

struct stack_out {
    char *buf;
    size_t cap, len;
};

static bool stack_put(void *arg, const struct stack_frame *f) {
    struct stack_out *o = arg;
    char text[sizeof *f + 32];
    if (stack_is(f, STACK_TEXT_CALL, STACK_TEXT_MODULE))
        return true;
    size_t more =
        (size_t)snprintf(text, sizeof text, "%s%s (%s:%lld)", o->len ? " < " : "", f->func, f->file, f->line);
    bool fits = o->len + more + sizeof STACK_TRUNCATED <= o->cap;
    if (fits || o->len)
        o->len += (size_t)snprintf(o->buf + o->len, o->cap - o->len, "%s", fits ? text : STACK_TRUNCATED);
    return fits;
}

size_t stack_text_write(const struct pyapi *api, char *buf, size_t cap) {
    struct stack_out o = {buf, cap, 0};
    buf[0] = '\0';
    stack_each(api, stack_put, &o);
    return o.len;
}

static bool stack_count_call(void *arg, const struct stack_frame *f) {
    size_t *n = arg, len = strlen(f->func), end = strlen(STACK_TEXT_CALL);
    bool named = len >= end && strcmp(f->func + len - end, STACK_TEXT_CALL) == 0;
    *n += named && (len == end || f->func[len - end - 1] == '.') &&
          stack_is(f, STACK_TEXT_CALL, STACK_TEXT_MODULE);
    return true;
}

size_t stack_text_count_calls(const struct pyapi *api) {
    size_t n = 0;
    stack_each(api, stack_count_call, &n);
    return n;
}
