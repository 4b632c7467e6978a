/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_offsets: prints one row of src/pystack/offsets_table.c.
 *
 * Compiled against the headers of one CPython (3.4 to 3.15) by tools/gen_offsets.py and run once. This is the only kind of
 * program of the project that includes Python.h. What the installed headers keep private is declared here after the
 * file of CPython that defines it. With -DGEN_FREE_THREADED the headers are read as those of a free-threaded build.
 */
#define Py_BUILD_CORE 1
#include <patchlevel.h>
#ifdef GEN_FREE_THREADED
#include <pyconfig.h>
#define Py_GIL_DISABLED 1
#endif
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_pystate.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_gil.h"
#elif PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#include "internal/pycore_gil.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe_structs.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_object.h"
#else
/* Objects/dict-common.h, 3.6 to 3.10 (3.5: without the last two, the entries follow; 3.4: the same in Objects/dictobject.c) */
struct _dictkeysobject {
    Py_ssize_t dk_refcnt;
    Py_ssize_t dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable;
    Py_ssize_t dk_nentries;
    char dk_indices[];
};
#define dk_entries dk_nentries
/* Include/internal/pycore_moduleobject.h (3.10), Objects/moduleobject.c (up to 3.9) */
struct module_head {
    PyObject ob_base;
    PyObject *md_dict;
};
#define PyModuleObject struct module_head
#endif

static void put(const char *name, long value) { printf(", .%s = %ld", name, value); }

#define AT(name, type, field) put(name, (long)offsetof(type, field))

#if PY_VERSION_HEX < 0x03070000
/* No _PyRuntime: what is called so here is the static variable interp_head of Python/pystate.c, and the GIL is static
 * variables of Python/ceval_gil.h, which discovery looks for. Interpreters and thread states have no numbers. */
static void put_runtime(void) {
    put("runtime_interpreters_head", 0);
    put("runtime_finalizing", -1);
    AT("interp_next", PyInterpreterState, next);
    put("interp_id", -1);
    AT("interp_sysdict", PyInterpreterState, sysdict);
    AT("interp_threads_head", PyInterpreterState, tstate_head);
    AT("interp_modules", PyInterpreterState, modules);
    put("gil_place", 2);
    put("gil_enabled", -1);
}
#else
static void put_runtime(void) {
    AT("runtime_interpreters_head", _PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX >= 0x03090000
    AT("runtime_finalizing", _PyRuntimeState, _finalizing);
#else
    AT("runtime_finalizing", _PyRuntimeState, finalizing);
#endif
    AT("interp_next", PyInterpreterState, next);
    AT("interp_id", PyInterpreterState, id);
    AT("interp_sysdict", PyInterpreterState, sysdict);
#if PY_VERSION_HEX >= 0x030b0000
    AT("interp_threads_head", PyInterpreterState, threads.head);
#else
    AT("interp_threads_head", PyInterpreterState, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    AT("interp_modules", PyInterpreterState, imports.modules);
    put("gil_place", 1);
    AT("gil", PyInterpreterState, ceval.gil);
#else
    AT("interp_modules", PyInterpreterState, modules);
    put("gil_place", 0);
    AT("gil", _PyRuntimeState, ceval.gil);
#endif
    AT("gil_last_holder", struct _gil_runtime_state, last_holder);
    AT("gil_locked", struct _gil_runtime_state, locked);
    put("gil_size", (long)sizeof(struct _gil_runtime_state));
#ifdef Py_GIL_DISABLED
    AT("gil_enabled", struct _gil_runtime_state, enabled);
#else
    put("gil_enabled", -1);
#endif
}
#endif

static void put_thread(void) {
#if PY_VERSION_HEX < 0x03070000
    AT("tstate_size", PyThreadState, on_delete); /* the rest is long and of no use */
#else
    put("tstate_size", (long)sizeof(PyThreadState));
#endif
    AT("tstate_prev", PyThreadState, prev);
    AT("tstate_next", PyThreadState, next);
    AT("tstate_interp", PyThreadState, interp);
    AT("tstate_thread_id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x03070000
    AT("tstate_id", PyThreadState, id);
#else
    put("tstate_id", -1);
#endif
#if PY_VERSION_HEX >= 0x030d0000
    AT("tstate_frame", PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
    AT("tstate_frame", PyThreadState, cframe);
    AT("cframe_current_frame", _PyCFrame, current_frame);
#else
    AT("tstate_frame", PyThreadState, frame);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    AT("tstate_native_thread_id", PyThreadState, native_thread_id);
    AT("tstate_datastack_chunk", PyThreadState, datastack_chunk);
    AT("chunk_previous", _PyStackChunk, previous);
    AT("chunk_size", _PyStackChunk, size);
#endif
}

static void put_frame(void) {
#if PY_VERSION_HEX >= 0x030b0000
    put("frame_size", (long)sizeof(_PyInterpreterFrame));
    AT("frame_previous", _PyInterpreterFrame, previous);
    AT("frame_owner", _PyInterpreterFrame, owner);
#else
    put("frame_size", (long)offsetof(PyFrameObject, f_localsplus));
    AT("frame_previous", PyFrameObject, f_back);
    AT("frame_code", PyFrameObject, f_code);
    AT("frame_instr", PyFrameObject, f_lasti);
#endif
#if PY_VERSION_HEX >= 0x030d0000
    put("frame_style", 2);
    AT("frame_code", _PyInterpreterFrame, f_executable);
    AT("frame_instr", _PyInterpreterFrame, instr_ptr);
#elif PY_VERSION_HEX >= 0x030b0000
    put("frame_style", 1);
    AT("frame_code", _PyInterpreterFrame, f_code);
    AT("frame_instr", _PyInterpreterFrame, prev_instr);
#else
    put("frame_style", 0);
#endif
#if PY_VERSION_HEX >= 0x030e0000
    put("owner_shim", FRAME_OWNED_BY_INTERPRETER);
#elif PY_VERSION_HEX >= 0x030c0000
    put("owner_shim", FRAME_OWNED_BY_CSTACK);
#else
    put("owner_shim", 255);
#endif
#if PY_VERSION_HEX >= 0x030e0000 && PY_VERSION_HEX < 0x030f0000
    put("owner_bottom", FRAME_OWNED_BY_CSTACK);
#else
    put("owner_bottom", 255);
#endif
#if PY_VERSION_HEX >= 0x030e0000
    put("tag_bits", 3);
#endif
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
    AT("frame_tlbc_index", _PyInterpreterFrame, tlbc_index);
    AT("code_tlbc", PyCodeObject, co_tlbc);
    AT("tlbc_entries", _PyCodeArray, entries);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    put("owner_generator", FRAME_OWNED_BY_GENERATOR);
#endif
#if PY_VERSION_HEX >= 0x030e0000
    AT("gen_iframe", PyGenObject, gi_iframe);
    AT("gen_frame_state", PyGenObject, gi_frame_state);
    put("gen_awaits", FRAME_SUSPENDED_YIELD_FROM);
    put("gen_awaited_words", PY_VERSION_HEX >= 0x030f0000 ? 2 : 1); /* Objects/genobject.c: _PyGen_yf */
    AT("frame_stackpointer", _PyInterpreterFrame, stackpointer);
#endif
}

static void put_code(void) {
    put("code_size", (long)sizeof(PyCodeObject));
    AT("code_filename", PyCodeObject, co_filename);
    AT("code_name", PyCodeObject, co_name);
    AT("code_firstlineno", PyCodeObject, co_firstlineno);
#if PY_VERSION_HEX >= 0x030b0000
    AT("code_qualname", PyCodeObject, co_qualname);
    AT("code_linetable", PyCodeObject, co_linetable);
    AT("code_bytes", PyCodeObject, co_code_adaptive);
    AT("code_firsttraceable", PyCodeObject, _co_firsttraceable);
    put("line_style", 2);
#elif PY_VERSION_HEX >= 0x030a0000
    AT("code_linetable", PyCodeObject, co_linetable);
    put("line_style", 1);
#else
    AT("code_linetable", PyCodeObject, co_lnotab);
    put("line_style", PY_VERSION_HEX < 0x03060000 ? 3 : 0);
#endif
}

/* Mask of a bit field of the state word of a string. */
static uint32_t state_mask(int field) {
    PyASCIIObject o;
    memset(&o, 0, sizeof o);
    if (field == 0)
        o.state.kind = 7; /* three bits in every version */
    else if (field == 1)
        o.state.compact = 1;
    else
        o.state.ascii = 1;
    uint32_t word;
    memcpy(&word, &o.state, sizeof word);
    return word;
}

static void put_objects(void) {
    AT("object_type", PyObject, ob_type);
    put("object_size", (long)sizeof(PyObject));
    AT("var_size", PyVarObject, ob_size);
    AT("bytes_data", PyBytesObject, ob_sval);
    AT("str_length", PyASCIIObject, length);
    AT("str_state", PyASCIIObject, state);
    put("str_kind_mask", (long)state_mask(0));
    put("str_compact_mask", (long)state_mask(1));
    put("str_ascii_mask", (long)state_mask(2));
    put("str_ascii_data", (long)sizeof(PyASCIIObject));
    put("str_compact_data", (long)sizeof(PyCompactUnicodeObject));
    AT("str_legacy_data", PyUnicodeObject, data);
#if PY_VERSION_HEX >= 0x030c0000
    AT("long_tag", PyLongObject, long_value.lv_tag);
    AT("long_digits", PyLongObject, long_value.ob_digit);
    put("long_size_shift", 3);
#else
    AT("long_tag", PyVarObject, ob_size);
    AT("long_digits", PyLongObject, ob_digit);
    put("long_size_shift", 0);
#endif
    put("long_digit_bits", PyLong_SHIFT);
    AT("module_dict", PyModuleObject, md_dict);
    AT("type_flags", PyTypeObject, tp_flags);
    AT("type_basicsize", PyTypeObject, tp_basicsize);
    AT("type_dictoffset", PyTypeObject, tp_dictoffset);
    AT("type_cached_keys", PyHeapTypeObject, ht_cached_keys);
}

static void put_dict(void) {
    AT("dict_keys", PyDictObject, ma_keys);
    AT("dict_values", PyDictObject, ma_values);
#if PY_VERSION_HEX >= 0x030b0000
    put("keys_style", 1);
    AT("keys_log2_size", struct _dictkeysobject, dk_log2_size);
    AT("keys_log2_index_bytes", struct _dictkeysobject, dk_log2_index_bytes);
    AT("keys_kind", struct _dictkeysobject, dk_kind);
    AT("values_data", struct _dictvalues, values);
#else
    put("keys_style", PY_VERSION_HEX < 0x03060000 ? 2 : 0);
    AT("keys_size", struct _dictkeysobject, dk_size);
    put("values_data", 0);
#endif
#if PY_VERSION_HEX >= 0x03060000
    AT("keys_nentries", struct _dictkeysobject, dk_nentries);
    AT("keys_indices", struct _dictkeysobject, dk_indices);
#else
    AT("keys_nentries", struct _dictkeysobject, dk_usable);
    AT("keys_indices", struct _dictkeysobject, dk_entries);
#endif
#if PY_VERSION_HEX >= 0x030d0000
    put("attr_style", 3);
    put("attr_dict", (long)MANAGED_DICT_OFFSET);
    AT("values_valid", struct _dictvalues, valid);
#elif PY_VERSION_HEX >= 0x030c0000
    put("attr_style", 2);
#elif PY_VERSION_HEX >= 0x030b0000
    put("attr_style", 1);
#else
    put("attr_style", 0);
#endif
}

/* Where values are: of locals, and within the objects that they are. */
static void put_values(void) {
#if PY_VERSION_HEX >= 0x030b0000
    AT("frame_localsplus", _PyInterpreterFrame, localsplus);
    AT("frame_locals", _PyInterpreterFrame, f_locals);
    AT("code_nlocalsplus", PyCodeObject, co_nlocalsplus);
    AT("code_names", PyCodeObject, co_localsplusnames);
    AT("code_kinds", PyCodeObject, co_localspluskinds);
#else
    AT("frame_localsplus", PyFrameObject, f_localsplus);
    AT("frame_locals", PyFrameObject, f_locals);
    AT("code_names", PyCodeObject, co_varnames);
    AT("code_cellvars", PyCodeObject, co_cellvars);
    AT("code_freevars", PyCodeObject, co_freevars);
#endif
    AT("code_flags", PyCodeObject, co_flags);
    AT("code_argcount", PyCodeObject, co_argcount);
    AT("code_kwonlyargcount", PyCodeObject, co_kwonlyargcount);
    AT("type_name", PyTypeObject, tp_name);
    AT("type_base", PyTypeObject, tp_base);
    AT("type_dict", PyTypeObject, tp_dict);
    AT("type_qualname", PyHeapTypeObject, ht_qualname);
    AT("cell_value", PyCellObject, ob_ref);
    AT("float_value", PyFloatObject, ob_fval);
    AT("list_items", PyListObject, ob_item);
    AT("tuple_items", PyTupleObject, ob_item);
    AT("dict_used", PyDictObject, ma_used);
    AT("set_used", PySetObject, used);
    AT("set_mask", PySetObject, mask);
    AT("set_table", PySetObject, table);
    AT("function_qualname", PyFunctionObject, func_qualname);
    AT("method_function", PyMethodObject, im_func);
    AT("builtin_def", PyCFunctionObject, m_ml);
    AT("exception_args", PyBaseExceptionObject, args);
}

/* Counters of the garbage collector: a struct a generation, from 3.15 on several of each, behind a pointer. */
static void put_collections(void) {
#if PY_VERSION_HEX < 0x03070000
    put("gc_item_size", 24); /* Modules/gcmodule.c: struct gc_generation_stats */
#else
    put("gc_item_size", sizeof(struct gc_generation_stats));
    AT("gc_item_collections", struct gc_generation_stats, collections);
#endif
#if PY_VERSION_HEX >= 0x03070000 && PY_VERSION_HEX < 0x03090000
    AT("gc_stats", _PyRuntimeState, gc.generation_stats);
#elif PY_VERSION_HEX >= 0x03090000
    AT("gc_stats", PyInterpreterState, gc.generation_stats);
#endif
/* How many objects the last full collection has left; 3.14 keeps another number. */
#if PY_VERSION_HEX >= 0x03070000 && PY_VERSION_HEX < 0x03090000
    AT("gc_long_lived", _PyRuntimeState, gc.long_lived_total);
#elif PY_VERSION_HEX >= 0x03090000 && PY_VERSION_HEX < 0x030e0000
    AT("gc_long_lived", PyInterpreterState, gc.long_lived_total);
#endif
#if PY_VERSION_HEX >= 0x030f0000
    put("gc_stats_size", sizeof(struct gc_stats));
    AT("gc_item_duration", struct gc_generation_stats, duration);
    put("gc_young_items", GC_YOUNG_STATS_SIZE);
    put("gc_old_items", GC_OLD_STATS_SIZE);
#endif
}

/* Who has had the GIL, and whether garbage is being collected: up to 3.6 static variables. */
static void put_facts(void) {
#if PY_VERSION_HEX < 0x03070000
    put("gc_place", 2);
#elif PY_VERSION_HEX < 0x03090000
    AT("gil_switches", struct _gil_runtime_state, switch_number);
    put("gc_place", 1);
    AT("gc_collecting", _PyRuntimeState, gc.collecting);
#else
    AT("gil_switches", struct _gil_runtime_state, switch_number);
    AT("gc_collecting", PyInterpreterState, gc.collecting);
#endif
}

#ifdef GEN_PUBLISHED
/* What an interpreter of these headers publishes of itself, as one row of tests/unit/pystack_published.txt. */
#include "internal/pycore_ceval.h"
#include "internal/pycore_runtime_init.h"

static const _PyRuntimeState published = _PyRuntimeState_INIT(published, "xdebugpy");

static void put_published(void) {
    const unsigned char *bytes = (const unsigned char *)&published.debug_offsets;
#ifdef Py_GIL_DISABLED
    printf("%s 1 ", PY_VERSION);
#else
    printf("%s 0 ", PY_VERSION);
#endif
    for (size_t i = 0; i < sizeof published.debug_offsets; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

int main(void) {
    put_published();
    return 0;
}
#else
int main(void) {
    printf("{/* CPython %s */ .major = %d, .minor = %d", PY_VERSION, PY_MAJOR_VERSION, PY_MINOR_VERSION);
#ifdef Py_GIL_DISABLED
    put("free_threaded", 1);
#endif
    put_runtime();
    put_thread();
    put_frame();
    put_code();
    put_objects();
    put_dict();
    put_values();
    put_facts();
    put_collections();
    printf("}");
    return 0;
}
#endif
