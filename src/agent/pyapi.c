/* SPDX-License-Identifier: Apache-2.0 */
/* pyapi: see pyapi.h. dlsym(3), dladdr(3). */
#include "agent/pyapi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PYAPI_NAME(name)                                                                                     \
    { #name, offsetof(struct pyapi, name) }

static const struct pyapi_name {
    const char *name;
    size_t offset;
} pyapi_names[] = {
    PYAPI_NAME(Py_IsInitialized),
    PYAPI_NAME(PyGILState_Ensure),
    PYAPI_NAME(PyGILState_Release),
    PYAPI_NAME(Py_IncRef),
    PYAPI_NAME(Py_DecRef),
    PYAPI_NAME(PyErr_Clear),
    PYAPI_NAME(PyErr_Occurred),
    PYAPI_NAME(PyDict_New),
    PYAPI_NAME(PyDict_SetItemString),
    PYAPI_NAME(PyDict_GetItemString),
    PYAPI_NAME(PyEval_GetBuiltins),
    PYAPI_NAME(PyImport_GetModuleDict),
    PYAPI_NAME(Py_CompileString),
    PYAPI_NAME(PyEval_EvalCode),
    PYAPI_NAME(PyObject_CallFunctionObjArgs),
    PYAPI_NAME(PyIter_Next),
    PYAPI_NAME(PyTuple_Size),
    PYAPI_NAME(PyTuple_GetItem),
    PYAPI_NAME(PyLong_AsLongLong),
    PYAPI_NAME(PyLong_FromLong),
    PYAPI_NAME(PyUnicode_AsEncodedString),
    PYAPI_NAME(PyBytes_AsStringAndSize),
    PYAPI_NAME(Py_AddPendingCall),
    PYAPI_NAME(PyThreadState_SetAsyncExc),
    PYAPI_NAME(PyExc_KeyboardInterrupt),
};

/* Does the symbol belong to the image that begins at `base`? */
static bool pyapi_is_within(const void *symbol, const void *base) {
    Dl_info info;
    return symbol && dladdr(symbol, &info) && info.dli_fbase == base;
}

/* Something to look names up in. */
static void *pyapi_open(const Dl_info *image) {
    const char *probe = "PyGILState_Ensure";
    void *handle = dlopen(NULL, RTLD_NOW | RTLD_NOLOAD);
    if (handle && pyapi_is_within(dlsym(handle, probe), image->dli_fbase))
        return handle;
    if (handle)
        (void)dlclose(handle);
    handle = dlopen(image->dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (handle && pyapi_is_within(dlsym(handle, probe), image->dli_fbase))
        return handle;
    if (handle)
        (void)dlclose(handle);
    return NULL;
}

void pyapi_close(struct pyapi *api) {
    if (api->library)
        (void)dlclose(api->library);
    api->library = NULL;
}

int pyapi_find(struct pyapi *api, uint64_t runtime, struct err *e) {
    Dl_info image;
    *api = (struct pyapi){.finalizing = NULL};
    void *handle =
        dladdr((const void *)(uintptr_t)runtime, &image) && image.dli_fname ? pyapi_open(&image) : NULL;
    if (!handle)
        return err_set(e, ERR_FAILED, "this Python shows none of the functions that take the GIL");
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof pyapi_names / sizeof pyapi_names[0]; i++) {
        void *symbol = dlsym(handle, pyapi_names[i].name);
        if (!symbol)
            missing = pyapi_names[i].name;
        memcpy((char *)api + pyapi_names[i].offset, &symbol, sizeof symbol);
    }
    api->finalizing = dlsym(handle, "_Py_Finalizing");
    api->library = handle;
    if (missing)
        pyapi_close(api);
    return missing ? err_set(e, ERR_FAILED, "this Python shows no %s", missing) : 0;
}

int pyapi_get_text(const struct pyapi *api, struct pyapi_object *o, char *buf, size_t cap) {
    char *text = NULL;
    ssize_t size = 0;
    buf[0] = '\0';
    struct pyapi_object *bytes = o ? api->PyUnicode_AsEncodedString(o, "utf-8", "replace") : NULL;
    if (!bytes || api->PyBytes_AsStringAndSize(bytes, &text, &size) != 0) {
        api->PyErr_Clear();
        if (bytes)
            api->Py_DecRef(bytes);
        return -1;
    }
    size_t n = (size_t)size < cap ? (size_t)size : cap - 1;
    while (n < (size_t)size && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(buf, text, n);
    buf[n] = '\0';
    api->Py_DecRef(bytes);
    return 0;
}

int64_t pyapi_get_int(const struct pyapi *api, struct pyapi_object *tuple, ssize_t i) {
    struct pyapi_object *o = api->PyTuple_GetItem(tuple, i);
    int64_t v = o ? api->PyLong_AsLongLong(o) : 0;
    if (api->PyErr_Occurred()) {
        api->PyErr_Clear();
        v = 0;
    }
    return v;
}
