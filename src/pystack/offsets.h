/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets: where CPython has the fields that we read, one row per minor version, from 3.13 on
 * one more for free-threaded builds.
 *
 * Rows are generated from CPython's own headers (tools/gen_offsets.c, .py). From 3.13 on the
 * interpreter publishes most of them itself (_Py_DebugOffsets); those replace the row's, see
 * debug_offsets.h. Plain data, read-only.
 */
#ifndef PYSTACK_OFFSETS_H
#define PYSTACK_OFFSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a thread state leads to its frames. */
enum pystack_frame_style {
    PYSTACK_FRAME_OBJECT = 0, /* tstate -> PyFrameObject -> f_back (up to 3.10) */
    PYSTACK_FRAME_CFRAME = 1, /* tstate -> _PyCFrame -> _PyInterpreterFrame (3.11, 3.12) */
    PYSTACK_FRAME_DIRECT = 2, /* tstate -> _PyInterpreterFrame (from 3.13 on) */
};

/* Where the GIL is. */
enum pystack_gil_place {
    PYSTACK_GIL_RUNTIME = 0, /* `gil` is the offset of the struct in the runtime (3.7 to 3.11) */
    /* `gil` is the offset of a pointer to it in the interpreter (from 3.12 on) */
    PYSTACK_GIL_INTERPRETER = 1,
    PYSTACK_GIL_STATIC = 2, /* static variables, found by discovery (up to 3.6) */
};

/* Where the flag of a running collection is. */
enum pystack_gc_place {
    PYSTACK_GC_INTERPRETER = 0, /* `gc_collecting` is an offset in the interpreter (from 3.9 on) */
    PYSTACK_GC_RUNTIME = 1,     /* in the runtime (3.7, 3.8) */
    PYSTACK_GC_STATIC = 2,      /* a static variable, found by discovery (up to 3.6) */
};

/* Form of the line table of a code object. */
enum pystack_line_style {
    PYSTACK_LINE_LNOTAB = 0,    /* 3.6 to 3.9 */
    PYSTACK_LINE_TABLE = 1,     /* 3.10 */
    PYSTACK_LINE_LOCATIONS = 2, /* from 3.11 on */
    PYSTACK_LINE_FORWARD = 3,   /* up to 3.5: like LNOTAB, but lines only rise */
};

/* Form of the keys of a dict. */
enum pystack_keys_style {
    PYSTACK_KEYS_SIZE = 0, /* dk_size, entries of hash, key, value (3.6 to 3.10) */
    /* dk_log2_index_bytes; entries without hash if all keys are strings */
    PYSTACK_KEYS_LOG2 = 1,
    /* the entries of hash, key, value are the hash table itself (up to 3.5) */
    PYSTACK_KEYS_HASHED = 2,
};

/* Where an instance has its attributes. */
enum pystack_attr_style {
    PYSTACK_ATTR_DICTOFFSET = 0, /* dict at tp_dictoffset (up to 3.10) */
    PYSTACK_ATTR_TWO_WORDS = 1,  /* 3.11: values 4 words before the object, dict 3 words before */
    PYSTACK_ATTR_TAGGED = 2,     /* 3.12: 3 words before: values if bit 0 is set, otherwise dict */
    /* from 3.13 on: dict at attr_dict (before the object), values after it */
    PYSTACK_ATTR_INLINE = 3,
};

struct pystack_offsets {
    int32_t major, minor, free_threaded;
    int32_t runtime_interpreters_head, runtime_finalizing; /* finalizing -1: not in the runtime */
    int32_t interp_next, interp_id /* -1: does not exist */, interp_sysdict, interp_threads_head,
        interp_modules;
    int32_t gil_place, gil, gil_last_holder, gil_locked, gil_size;
    int32_t gil_enabled; /* -1: it is always on */
    int32_t tstate_size, tstate_prev, tstate_next, tstate_interp, tstate_id /* -1: does not exist */,
        tstate_thread_id, tstate_frame;
    int32_t tstate_native_thread_id; /* 0: does not exist */
    int32_t cframe_current_frame;
    int32_t tstate_datastack_chunk; /* 0: does not exist */
    int32_t chunk_previous, chunk_size;
    int32_t frame_style, frame_size, frame_previous, frame_code, frame_instr, frame_owner;
    int32_t owner_shim, owner_bottom, owner_generator; /* 255: no such owner */
    /* bits of a pointer to code that are not part of it */
    int32_t tag_bits;
    /* A thread's own copy of the code (free-threaded, from 3.14 on): number in the frame, array
     * in the code object. 0: none */
    int32_t frame_tlbc_index, code_tlbc, tlbc_entries;
    int32_t line_style;
    int32_t code_size, code_filename, code_name, code_qualname, code_firstlineno, code_linetable, code_bytes;
    int32_t code_firsttraceable;
    int32_t object_type, object_size, var_size, bytes_data;
    int32_t str_length, str_state, str_kind_mask, str_compact_mask, str_ascii_mask;
    int32_t str_ascii_data, str_compact_data, str_legacy_data;
    int32_t long_tag, long_digits, long_size_shift, long_digit_bits;
    int32_t module_dict;
    int32_t type_flags, type_basicsize, type_dictoffset, type_cached_keys;
    int32_t dict_keys, dict_values;
    int32_t keys_style, keys_size, keys_log2_size, keys_log2_index_bytes, keys_kind, keys_nentries,
        keys_indices;
    int32_t values_data, values_valid;
    int32_t attr_style, attr_dict;
    /* Values: of locals, and within the objects. */
    int32_t frame_localsplus, frame_locals;
    /* from 3.11 on: names and kinds of all together */
    int32_t code_nlocalsplus, code_names, code_kinds;
    /* before: locals, cells and free ones separately */
    int32_t code_cellvars, code_freevars;
    int32_t code_flags, code_argcount, code_kwonlyargcount;
    int32_t type_name, type_base, type_dict, type_qualname;
    int32_t cell_value, float_value, list_items, tuple_items;
    int32_t dict_used, set_used, set_mask, set_table;
    int32_t function_qualname, method_function, builtin_def, exception_args;
    /* in the GIL: how often it went to another thread; 0: a static variable */
    int32_t gil_switches;
    int32_t gc_place, gc_collecting;
    /* The collector's counters, relative to the same base as `gc_collecting`: an item per
     * generation; or (gc_stats_size > 0) a pointer to so many bytes, in which each generation
     * has several items and a word, the latest item being the one with most collections. */
    int32_t gc_stats, gc_stats_size, gc_item_size /* 0: not known */, gc_item_collections,
        gc_item_duration /* 0: not counted */, gc_young_items, gc_old_items;
    /* beside gc_stats: objects that the last full collection has left (3.7 to 3.13); 0 not
     * counted */
    int32_t gc_long_lived;
    /* Coroutines (from 3.14 on; 0 before): their frame, its state and the value of it that means
     * "awaits"; the awaited object is so many words below the frame's stack pointer. */
    int32_t gen_iframe, gen_frame_state, gen_awaits, gen_awaited_words, frame_stackpointer;
};

/* The row of a version and build, or NULL. */
const struct pystack_offsets *pystack_offsets_find(int major, int minor, bool free_threaded);

/* All rows, oldest first. */
const struct pystack_offsets *pystack_offsets_all(size_t *n);

/* The rows themselves (offsets_table.c). */
extern const struct pystack_offsets pystack_offsets_table[];
extern const size_t pystack_offsets_table_size;

/*
 * ---- the CPythons that are supported, one row each ----
 *
 * The one list from which discovery decides, errors speak and the table of docs/pythons.md is made (tools/versions_table.sh).
 */

/* Source of the offsets. */
enum pystack_version_source {
    /* generated from the headers of that version (tools/gen_offsets.py) */
    PYSTACK_SOURCE_TABLE,
    /* _Py_DebugOffsets of the running interpreter, the rest from the table */
    PYSTACK_SOURCE_PUBLISHED,
};

/* Which tests cover a version. */
enum pystack_version_tested {
    PYSTACK_TESTED_NOT,    /* nobody */
    PYSTACK_TESTED_IN_CI,  /* `make test`, where that version is installed */
    PYSTACK_TESTED_MATRIX, /* `make matrix`, which installs it */
};

struct pystack_version {
    int major, minor;
    bool free_threaded;
    enum pystack_version_source source;
    enum pystack_version_tested tested;
    bool debug_builds; /* --with-pydebug can be read too */
    /* a running thread can copy its own frames (self.h); otherwise it is read passively */
    bool exact;
};

/* The row of a version and build, or NULL if it is not supported. */
const struct pystack_version *pystack_version_find(int major, int minor, bool free_threaded);

/* All rows, oldest first. */
const struct pystack_version *pystack_version_all(size_t *n);

#endif
