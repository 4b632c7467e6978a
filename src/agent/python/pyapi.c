/* SPDX-License-Identifier: Apache-2.0 */
/* pyapi: see pyapi.h. dlsym(3), dladdr(3). */
#include "agent/python/pyapi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Py_TPFLAGS_... (Include/object.h), the same in all versions */
#define PYAPI_DICT_SUBCLASS (1UL << 29)

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
    PYAPI_NAME(PyUnicode_FromString),
    PYAPI_NAME(PyUnicode_AsEncodedString),
    PYAPI_NAME(PyBytes_AsStringAndSize),
    PYAPI_NAME(PyCFunction_NewEx),
    PYAPI_NAME(PyGILState_GetThisThreadState),
    PYAPI_NAME(PyUnicode_CompareWithASCIIString),
    PYAPI_NAME(PyType_GetFlags),
    PYAPI_NAME(PyObject_GetAttrString),
    PYAPI_NAME(PyObject_SetItem),
    PYAPI_NAME(PyObject_DelItem),
    PYAPI_NAME(PyDict_Values),
    PYAPI_NAME(PyWeakref_NewRef),
    PYAPI_NAME(PyErr_ExceptionMatches),
    PYAPI_NAME(PyExc_AttributeError),
    PYAPI_NAME(PyExc_TypeError),
    PYAPI_NAME(Py_AddPendingCall),
    PYAPI_NAME(PyThreadState_SetAsyncExc),
    PYAPI_NAME(PyObject_Type),
    PYAPI_NAME(PyFloat_AsDouble),
    PYAPI_NAME(PyLong_FromLongLong),
    PYAPI_NAME(PyUnicode_FromStringAndSize),
    PYAPI_NAME(PyUnicode_DecodeUTF8),
    PYAPI_NAME(PyList_New),
    PYAPI_NAME(PyList_Append),
    PYAPI_NAME(Py_BuildValue),
    PYAPI_NAME(_Py_NoneStruct),
    PYAPI_NAME(_Py_TrueStruct),
    PYAPI_NAME(_Py_FalseStruct),
    PYAPI_NAME(PyLong_Type),
    PYAPI_NAME(PyFloat_Type),
    PYAPI_NAME(PyUnicode_Type),
    PYAPI_NAME(PyTuple_Type),
    PYAPI_NAME(PyList_Type),
    PYAPI_NAME(PyList_Size),
    PYAPI_NAME(PyList_GetItem),
    PYAPI_NAME(PyExc_KeyboardInterrupt),
    PYAPI_NAME(PyObject_GenericGetAttr),
    PYAPI_NAME(PyDict_Next),
    PYAPI_NAME(PyType_IsSubtype),
    PYAPI_NAME(PyEval_GetFrame),
    PYAPI_NAME(PyErr_Fetch),
    PYAPI_NAME(PyErr_Restore),
    PYAPI_NAME(PyErr_NormalizeException),
    PYAPI_NAME(PySys_GetObject),
    PYAPI_NAME(PySys_SetObject),
    PYAPI_NAME(PyBytes_FromStringAndSize),
};

/* True if the symbol belongs to the image that starts at `base`. */
static bool pyapi_is_within(const void *symbol, const void *base) {
    Dl_info info;
    return symbol && dladdr(symbol, &info) && info.dli_fbase == base;
}

/* A handle to look names up in. */
static void *pyapi_open(const Dl_info *image) {
    const char *probe = "PyGILState_Ensure";
    void *handle = dlopen(NULL, RTLD_NOW | RTLD_NOLOAD);
    if (handle && pyapi_is_within(dlsym(handle, probe), image->dli_fbase))
        return handle;
    if (handle)
        dlclose(handle);
    handle = dlopen(image->dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (handle && pyapi_is_within(dlsym(handle, probe), image->dli_fbase))
        return handle;
    if (handle)
        dlclose(handle);
    return NULL;
}

void pyapi_close(struct pyapi *api) {
    if (api->library)
        dlclose(api->library);
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
    void *made = api->finalizing ? dlsym(handle, "PyEval_ThreadsInitialized") : NULL;
    void *make = made ? dlsym(handle, "PyEval_InitThreads") : NULL;
    if (made && make) {
        memcpy(&api->PyEval_ThreadsInitialized, &made, sizeof made);
        memcpy(&api->PyEval_InitThreads, &make, sizeof make);
    }
    void *disable = dlsym(handle, "PyGC_Disable"), *enable = dlsym(handle, "PyGC_Enable");
    if (disable && enable) {
        memcpy(&api->PyGC_Disable, &disable, sizeof disable);
        memcpy(&api->PyGC_Enable, &enable, sizeof enable);
    }
    void *get = dlsym(handle, "PyMem_GetAllocator"), *set = dlsym(handle, "PyMem_SetAllocator");
    if (get && set) {
        memcpy(&api->PyMem_GetAllocator, &get, sizeof get);
        memcpy(&api->PyMem_SetAllocator, &set, sizeof set);
    }
    api->library = handle;
    if (missing)
        pyapi_close(api);
    return missing ? err_set(e, ERR_FAILED, "this Python has no %s", missing) : 0;
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

struct pyapi_object *pyapi_get_own(const struct pyapi *api, struct pyapi_object *o, const char *name) {
    struct pyapi_object *key = api->PyUnicode_FromString("__dict__");
    struct pyapi_object *d = key ? api->PyObject_GenericGetAttr(o, key) : NULL;
    struct pyapi_object *type = d ? api->PyObject_Type(d) : NULL;
    bool is_dict = type && api->PyType_GetFlags(type) & PYAPI_DICT_SUBCLASS;
    struct pyapi_object *found = is_dict ? api->PyDict_GetItemString(d, name) : NULL;
    if (found)
        api->Py_IncRef(found);
    struct pyapi_object *const all[] = {type, d, key};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            api->Py_DecRef(all[i]);
    api->PyErr_Clear();
    return found;
}
