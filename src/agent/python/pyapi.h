/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyapi: the functions of the job's CPython that the python worker calls, found by name.
 *
 * Only names of the stable ABI (Doc/data/stable_abi.dat), or of every version from 3.6 to 3.15,
 * with types of our own: one agent works with all of them. They are looked up in the library
 * that contains the discovered runtime, so a second Python in the process is not mistaken for
 * it. Objects are only ever handled as pointers. Used by the worker's thread.
 */
#ifndef AGENT_PYTHON_PYAPI_H
#define AGENT_PYTHON_PYAPI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct pyapi_object; /* a PyObject */

/* PyMemAllocatorEx (Include/cpython/pymem.h). */
struct pyapi_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t n, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};

/* Each with its name in CPython. */
struct pyapi {
    int (*Py_IsInitialized)(void);
    int (*PyGILState_Ensure)(void);
    void (*PyGILState_Release)(int state);
    void (*Py_IncRef)(struct pyapi_object *o);
    void (*Py_DecRef)(struct pyapi_object *o);
    void (*PyErr_Clear)(void);
    struct pyapi_object *(*PyErr_Occurred)(void); /* borrowed */
    struct pyapi_object *(*PyDict_New)(void);
    int (*PyDict_SetItemString)(struct pyapi_object *dict, const char *key, struct pyapi_object *value);
    /* borrowed */
    struct pyapi_object *(*PyDict_GetItemString)(struct pyapi_object *dict, const char *key);
    struct pyapi_object *(*PyEval_GetBuiltins)(void);     /* borrowed */
    struct pyapi_object *(*PyImport_GetModuleDict)(void); /* borrowed */
    struct pyapi_object *(*Py_CompileString)(const char *source, const char *file, int start);
    struct pyapi_object *(*PyEval_EvalCode)(struct pyapi_object *code, struct pyapi_object *globals,
                                            struct pyapi_object *locals);
    struct pyapi_object *(*PyObject_CallFunctionObjArgs)(struct pyapi_object *callable, ...);
    struct pyapi_object *(*PyIter_Next)(struct pyapi_object *iterator);
    ssize_t (*PyTuple_Size)(struct pyapi_object *tuple);
    struct pyapi_object *(*PyTuple_GetItem)(struct pyapi_object *tuple, ssize_t i); /* borrowed */
    long long (*PyLong_AsLongLong)(struct pyapi_object *o);
    struct pyapi_object *(*PyLong_FromLong)(long v);
    struct pyapi_object *(*PyUnicode_FromString)(const char *text);
    struct pyapi_object *(*PyUnicode_AsEncodedString)(struct pyapi_object *o, const char *encoding,
                                                      const char *errors);
    int (*PyBytes_AsStringAndSize)(struct pyapi_object *o, char **text, ssize_t *size);
    struct pyapi_object *(*PyCFunction_NewEx)(void *method, struct pyapi_object *self,
                                              struct pyapi_object *module);
    void *(*PyGILState_GetThisThreadState)(void);
    int (*PyUnicode_CompareWithASCIIString)(struct pyapi_object *o, const char *text);
    unsigned long (*PyType_GetFlags)(struct pyapi_object *type);
    struct pyapi_object *(*PyObject_GetAttrString)(struct pyapi_object *o, const char *name);
    int (*PyObject_SetItem)(struct pyapi_object *o, struct pyapi_object *key, struct pyapi_object *value);
    int (*PyObject_DelItem)(struct pyapi_object *o, struct pyapi_object *key);
    struct pyapi_object *(*PyDict_Values)(struct pyapi_object *dict);
    struct pyapi_object *(*PyWeakref_NewRef)(struct pyapi_object *o, struct pyapi_object *callback);
    int (*PyErr_ExceptionMatches)(struct pyapi_object *exception);
    struct pyapi_object **PyExc_AttributeError, **PyExc_TypeError;
    int (*Py_AddPendingCall)(int (*fn)(void *arg), void *arg);
    int (*PyThreadState_SetAsyncExc)(unsigned long ident, struct pyapi_object *exception);
    struct pyapi_object *(*PyObject_Type)(struct pyapi_object *o);
    double (*PyFloat_AsDouble)(struct pyapi_object *o);
    struct pyapi_object *(*PyLong_FromLongLong)(long long v);
    struct pyapi_object *(*PyUnicode_FromStringAndSize)(const char *text, ssize_t size);
    struct pyapi_object *(*PyUnicode_DecodeUTF8)(const char *text, ssize_t size, const char *errors);
    struct pyapi_object *(*PyList_New)(ssize_t size);
    int (*PyList_Append)(struct pyapi_object *list, struct pyapi_object *o);
    struct pyapi_object *(*Py_BuildValue)(const char *format, ...);
    struct pyapi_object *_Py_NoneStruct, *_Py_TrueStruct,
        *_Py_FalseStruct; /* the objects themselves, as are the types: */
    struct pyapi_object *PyLong_Type, *PyFloat_Type, *PyUnicode_Type, *PyTuple_Type, *PyList_Type;
    ssize_t (*PyList_Size)(struct pyapi_object *list);
    struct pyapi_object *(*PyList_GetItem)(struct pyapi_object *list, ssize_t i); /* borrowed */
    struct pyapi_object **PyExc_KeyboardInterrupt;
    struct pyapi_object *(*PyObject_GenericGetAttr)(struct pyapi_object *o, struct pyapi_object *name);
    int (*PyDict_Next)(struct pyapi_object *dict, ssize_t *at, struct pyapi_object **key, /* borrowed */
                       struct pyapi_object **value);
    int (*PyType_IsSubtype)(struct pyapi_object *type, struct pyapi_object *of);
    /* borrowed; NULL if no Python runs on this thread */
    struct pyapi_object *(*PyEval_GetFrame)(void);
    int (*PyGC_Disable)(void); /* from 3.10 on, like the next; otherwise NULL */
    void (*PyErr_Fetch)(struct pyapi_object **type, struct pyapi_object **value, struct pyapi_object **tb);
    /* steals its arguments */
    void (*PyErr_Restore)(struct pyapi_object *type, struct pyapi_object *value, struct pyapi_object *tb);
    void (*PyErr_NormalizeException)(struct pyapi_object **type, struct pyapi_object **value,
                                     struct pyapi_object **tb);
    struct pyapi_object *(*PySys_GetObject)(const char *name); /* borrowed */
    int (*PySys_SetObject)(const char *name, struct pyapi_object *value);
    struct pyapi_object *(*PyBytes_FromStringAndSize)(const char *bytes, ssize_t size);
    int (*PyGC_Enable)(void);
    /* both or none */
    void (*PyMem_GetAllocator)(int domain, struct pyapi_allocator *out);
    void (*PyMem_SetAllocator)(int domain, const struct pyapi_allocator *a);
    /* 3.6, which makes its GIL late; otherwise NULL, like the next */
    int (*PyEval_ThreadsInitialized)(void);
    void (*PyEval_InitThreads)(void);
    void *library;        /* kept open: its code cannot be unloaded while it may be called */
    uint64_t *finalizing; /* 3.6, where this variable is outside of _PyRuntime; otherwise NULL */
};

#define PYAPI_FILE_INPUT 257 /* Py_file_input: source of whole statements */

/* Find them in the library that contains address `runtime`. 0, or -1 with the error. May wait
 * for the loader's lock. */
int pyapi_find(struct pyapi *api, uint64_t runtime, struct err *e);

/* Release the library. */
void pyapi_close(struct pyapi *api);

/* The text of a str object, as UTF-8, cut to `cap` at a character. 0, or -1 (no exception is
 * left set). With the GIL. */
int pyapi_get_text(const struct pyapi *api, struct pyapi_object *o, char *buf, size_t cap);

/* The int at index `i` of a tuple; 0 if there is none. With the GIL. */
int64_t pyapi_get_int(const struct pyapi *api, struct pyapi_object *tuple, ssize_t i);

/* The object's own attribute of that name, without its class: a new reference, or NULL (no
 * exception is left set). With the GIL. */
struct pyapi_object *pyapi_get_own(const struct pyapi *api, struct pyapi_object *o, const char *name);

#endif
