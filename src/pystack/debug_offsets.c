/* SPDX-License-Identifier: Apache-2.0 */
/* debug_offsets: see debug_offsets.h. */
#include "pystack/debug_offsets.h"

#include <string.h>

#include "pystack/reader.h"

#define DEBUG_SIZE_MAX (1U << 20) /* no struct of the interpreter is larger */
#define DEBUG_HEAD_WORDS 3        /* cookie, version, free_threaded */

/* The published words, one after the other. */
enum debug_kind {
    DEBUG_SIZE, /* size of a struct: the offsets that follow are in it */
    /* the same for a struct that is read into a buffer, in which its fields must then lie */
    DEBUG_WHOLE,
    DEBUG_FIELD, /* offset of a field */
    /* size of a struct elsewhere; the next offsets are still in the previous one */
    DEBUG_OTHER,
    DEBUG_SKIP, /* `width` words that are not needed */
};

struct debug_word {
    enum debug_kind kind;
    uint16_t width; /* bytes of the field */
    uint16_t to;    /* its place in struct debug_work */
};

/* The result: the offsets, and the numbers they are derived from. */
struct debug_work {
    struct pystack_offsets off;
    int32_t unused;
    int32_t gil_state, gil_enabled, gil_locked, gil_holder;
    int32_t interp_gc, gc_collecting;
    int32_t gc_stats, gc_stats_size; /* the latter 0: not published */
    int32_t str_size, ascii_size;
};

#define WORK(name) ((uint16_t)offsetof(struct debug_work, name))
#define SIZE                                                                                                 \
    { DEBUG_SIZE, 0, WORK(unused) }
#define SIZE_TO(name)                                                                                        \
    { DEBUG_SIZE, 0, WORK(name) }
#define WHOLE(name)                                                                                          \
    { DEBUG_WHOLE, 0, WORK(name) }
#define FIELD(name, width)                                                                                   \
    { DEBUG_FIELD, width, WORK(off.name) }
#define FIELD_TO(name, width)                                                                                \
    { DEBUG_FIELD, width, WORK(name) }
#define OTHER_TO(name)                                                                                       \
    { DEBUG_OTHER, 0, WORK(name) }
#define SKIP(n)                                                                                              \
    { DEBUG_SKIP, n, 0 }

static const struct debug_word debug_words_3_13[] = {
    SIZE, FIELD(runtime_finalizing, 8), FIELD(runtime_interpreters_head, 8),
    /* interpreter, without builtins */
    SIZE, FIELD(interp_id, 8), FIELD(interp_next, 8), FIELD(interp_threads_head, 8), FIELD_TO(interp_gc, 8),
    FIELD(interp_modules, 8), FIELD(interp_sysdict, 8), SKIP(1), FIELD(gil, 8), FIELD_TO(gil_state, 8),
    FIELD_TO(gil_enabled, 4), FIELD_TO(gil_locked, 4), FIELD_TO(gil_holder, 8),
    /* thread state; status */
    WHOLE(off.tstate_size), FIELD(tstate_prev, 8), FIELD(tstate_next, 8), FIELD(tstate_interp, 8),
    FIELD(tstate_frame, 8), FIELD(tstate_thread_id, 8), FIELD(tstate_native_thread_id, 8),
    FIELD(tstate_datastack_chunk, 8), SKIP(1),
    /* frame */
    WHOLE(off.frame_size), FIELD(frame_previous, 8), FIELD(frame_code, 8), FIELD(frame_instr, 8),
    FIELD(frame_localsplus, 8), FIELD(frame_owner, 1),
    /* code */
    WHOLE(off.code_size), FIELD(code_filename, 8), FIELD(code_name, 8), FIELD(code_qualname, 8),
    FIELD(code_linetable, 8), FIELD(code_firstlineno, 4), FIELD(code_argcount, 4), FIELD(code_names, 8),
    FIELD(code_kinds, 8), FIELD(code_bytes, 1),
    /* object; type: tp_repr */
    WHOLE(off.object_size), FIELD(object_type, 8), SIZE, FIELD(type_name, 8), SKIP(1), FIELD(type_flags, 8),
    /* tuple, list; dict; float */
    SIZE, FIELD(tuple_items, 8), SKIP(1), SIZE, FIELD(list_items, 8), SKIP(1), SIZE, FIELD(dict_keys, 8),
    FIELD(dict_values, 8), SIZE, FIELD(float_value, 8),
    /* int, bytes, str */
    WHOLE(unused), FIELD(long_tag, 8), FIELD(long_digits, 4), WHOLE(unused), FIELD(var_size, 8),
    FIELD(bytes_data, 1), WHOLE(str_size), FIELD(str_state, 4), FIELD(str_length, 8), SIZE_TO(ascii_size),
    /* gc */
    SIZE, FIELD_TO(gc_collecting, 4)};

static const struct debug_word debug_words_3_14[] = {
    SIZE, FIELD(runtime_finalizing, 8), FIELD(runtime_interpreters_head, 8),
    /* interpreter; threads_main; builtins; at its end the generations of code and of its copies */
    SIZE, FIELD(interp_id, 8), FIELD(interp_next, 8), FIELD(interp_threads_head, 8), SKIP(1),
    FIELD_TO(interp_gc, 8), FIELD(interp_modules, 8), FIELD(interp_sysdict, 8), SKIP(1), FIELD(gil, 8),
    FIELD_TO(gil_state, 8), FIELD_TO(gil_enabled, 4), FIELD_TO(gil_locked, 4), FIELD_TO(gil_holder, 8),
    SKIP(2),
    /* thread state; status */
    WHOLE(off.tstate_size), FIELD(tstate_prev, 8), FIELD(tstate_next, 8), FIELD(tstate_interp, 8),
    FIELD(tstate_frame, 8), FIELD(tstate_thread_id, 8), FIELD(tstate_native_thread_id, 8),
    FIELD(tstate_datastack_chunk, 8), SKIP(1),
    /* frame */
    WHOLE(off.frame_size), FIELD(frame_previous, 8), FIELD(frame_code, 8), FIELD(frame_instr, 8),
    FIELD(frame_localsplus, 8), FIELD(frame_owner, 1), FIELD(frame_stackpointer, 8),
    FIELD(frame_tlbc_index, 4),
    /* code */
    WHOLE(off.code_size), FIELD(code_filename, 8), FIELD(code_name, 8), FIELD(code_qualname, 8),
    FIELD(code_linetable, 8), FIELD(code_firstlineno, 4), FIELD(code_argcount, 4), FIELD(code_names, 8),
    FIELD(code_kinds, 8), FIELD(code_bytes, 1), FIELD(code_tlbc, 8),
    /* object; type: tp_repr */
    WHOLE(off.object_size), FIELD(object_type, 8), SIZE, FIELD(type_name, 8), SKIP(1), FIELD(type_flags, 8),
    /* tuple, list, set; dict; float */
    SIZE, FIELD(tuple_items, 8), SKIP(1), SIZE, FIELD(list_items, 8), SKIP(1), SIZE, FIELD(set_used, 8),
    FIELD(set_table, 8), FIELD(set_mask, 8), SIZE, FIELD(dict_keys, 8), FIELD(dict_values, 8), SIZE,
    FIELD(float_value, 8),
    /* int, bytes, str */
    WHOLE(unused), FIELD(long_tag, 8), FIELD(long_digits, 4), WHOLE(unused), FIELD(var_size, 8),
    FIELD(bytes_data, 1), WHOLE(str_size), FIELD(str_state, 4), FIELD(str_length, 8), SIZE_TO(ascii_size),
    /* gc; generator: gi_name */
    SIZE, FIELD_TO(gc_collecting, 4), SIZE, SKIP(1), FIELD(gen_iframe, 8), FIELD(gen_frame_state, 1)};

static const struct debug_word debug_words_3_15[] = {
    SIZE, FIELD(runtime_finalizing, 8), FIELD(runtime_interpreters_head, 8),
    /* interpreter: as 3.14 */
    SIZE, FIELD(interp_id, 8), FIELD(interp_next, 8), FIELD(interp_threads_head, 8), SKIP(1),
    FIELD_TO(interp_gc, 8), FIELD(interp_modules, 8), FIELD(interp_sysdict, 8), SKIP(1), FIELD(gil, 8),
    FIELD_TO(gil_state, 8), FIELD_TO(gil_enabled, 4), FIELD_TO(gil_locked, 4), FIELD_TO(gil_holder, 8),
    SKIP(2),
    /* thread state; base_frame and last profiled ones; status, holds_gil, gil_requested,
     * exceptions; err_stackitem */
    WHOLE(off.tstate_size), FIELD(tstate_prev, 8), FIELD(tstate_next, 8), FIELD(tstate_interp, 8),
    FIELD(tstate_frame, 8), SKIP(3), FIELD(tstate_thread_id, 8), FIELD(tstate_native_thread_id, 8),
    FIELD(tstate_datastack_chunk, 8), SKIP(6),
    /* frame, code, object: as 3.14 */
    WHOLE(off.frame_size), FIELD(frame_previous, 8), FIELD(frame_code, 8), FIELD(frame_instr, 8),
    FIELD(frame_localsplus, 8), FIELD(frame_owner, 1), FIELD(frame_stackpointer, 8),
    FIELD(frame_tlbc_index, 4), WHOLE(off.code_size), FIELD(code_filename, 8), FIELD(code_name, 8),
    FIELD(code_qualname, 8), FIELD(code_linetable, 8), FIELD(code_firstlineno, 4), FIELD(code_argcount, 4),
    FIELD(code_names, 8), FIELD(code_kinds, 8), FIELD(code_bytes, 1), FIELD(code_tlbc, 8),
    WHOLE(off.object_size), FIELD(object_type, 8),
    /* type: tp_repr; heap type */
    SIZE, FIELD(type_name, 8), SKIP(1), FIELD(type_flags, 8), FIELD(type_basicsize, 8),
    FIELD(type_dictoffset, 8), SIZE, FIELD(type_cached_keys, 8),
    /* tuple, list, set; dict; float */
    SIZE, FIELD(tuple_items, 8), SKIP(1), SIZE, FIELD(list_items, 8), SKIP(1), SIZE, FIELD(set_used, 8),
    FIELD(set_table, 8), FIELD(set_mask, 8), SIZE, FIELD(dict_keys, 8), FIELD(dict_values, 8), SIZE,
    FIELD(float_value, 8),
    /* int, bytes, str */
    WHOLE(unused), FIELD(long_tag, 8), FIELD(long_digits, 4), WHOLE(unused), FIELD(var_size, 8),
    FIELD(bytes_data, 1), WHOLE(str_size), FIELD(str_state, 4), FIELD(str_length, 8), SIZE_TO(ascii_size),
    /* size of a string that is not ASCII; gc: frame; generator: gi_name */
    SKIP(1), SIZE, FIELD_TO(gc_collecting, 4), SKIP(1), OTHER_TO(gc_stats_size), FIELD_TO(gc_stats, 8), SIZE,
    SKIP(1), FIELD(gen_iframe, 8), FIELD(gen_frame_state, 1)};

/* The form of a minor version. `words`: of the whole struct, including what follows the last one
 * needed. */
static const struct debug_form {
    int minor;
    const struct debug_word *items;
    size_t n;
    size_t words;
} debug_forms[] = {
    {13, debug_words_3_13, sizeof debug_words_3_13 / sizeof debug_words_3_13[0], 73},
    {14, debug_words_3_14, sizeof debug_words_3_14 / sizeof debug_words_3_14[0], 95},
    {15, debug_words_3_15, sizeof debug_words_3_15 / sizeof debug_words_3_15[0], 111},
};

static uint64_t debug_word_at(const uint8_t *bytes, size_t word) {
    return pystack_get_u64(bytes, (int32_t)word * 8);
}

bool pystack_debug_offsets_peek(const uint8_t *bytes, size_t n, uint32_t *version, bool *free_threaded) {
    if (n < DEBUG_HEAD_WORDS * 8 || memcmp(bytes, PYSTACK_DEBUG_COOKIE, 8) != 0)
        return false;
    uint64_t v = debug_word_at(bytes, 1);
    if (v >> 32 || v >> 24 != 3)
        return false;
    *version = (uint32_t)v;
    *free_threaded = debug_word_at(bytes, 2) != 0;
    return true;
}

/* Take the words in their order. 0, or -1 if one is not valid. */
static int debug_take_words(const uint8_t *bytes, size_t n, const struct debug_form *form,
                            struct debug_work *w) {
    uint64_t size = 0;
    size_t at = DEBUG_HEAD_WORDS;
    for (size_t i = 0; i < form->n; i++) {
        const struct debug_word *word = &form->items[i];
        if (word->kind == DEBUG_SKIP) {
            at += word->width;
            continue;
        }
        if ((at + 1) * 8 > n)
            return -1;
        uint64_t value = debug_word_at(bytes, at++);
        if (word->kind == DEBUG_FIELD) {
            if (value > size || size - value < word->width)
                return -1;
        } else {
            if (value == 0 || value > (word->kind == DEBUG_WHOLE ? PYSTACK_STRUCT_MAX : DEBUG_SIZE_MAX))
                return -1;
            size = word->kind == DEBUG_OTHER ? size : value;
        }
        int32_t number = (int32_t)value;
        memcpy((char *)w + word->to, &number, sizeof number);
    }
    return 0;
}

/* True if a field of 4 bytes at `at` lies in a struct of `size`. */
static bool debug_in(int32_t at, int32_t size) { return at >= 0 && at + 4 <= size; }

/* An unpublished offset keeps its distance from a published one. */
static int debug_derive(const struct pystack_offsets *row, struct debug_work *w) {
    struct pystack_offsets *off = &w->off;
    if (w->gil_locked < w->gil_state || w->gil_holder < w->gil_state ||
        w->gil_locked - w->gil_state > PYSTACK_STRUCT_MAX - 8 ||
        w->gil_holder - w->gil_state > PYSTACK_STRUCT_MAX - 8 || w->gil_enabled > PYSTACK_STRUCT_MAX - 8)
        return -1;
    off->gil_locked = w->gil_locked - w->gil_state;
    off->gil_last_holder = w->gil_holder - w->gil_state;
    off->gil_switches = row->gil_switches + off->gil_locked - row->gil_locked;
    off->gc_collecting = w->interp_gc + w->gc_collecting;
    off->gc_stats = w->gc_stats_size ? w->interp_gc + w->gc_stats
                                     : row->gc_stats + off->gc_collecting - row->gc_collecting;
    if (row->gc_long_lived)
        off->gc_long_lived = row->gc_long_lived + off->gc_collecting - row->gc_collecting;
    /* other counters than those we know */
    if (w->gc_stats_size && w->gc_stats_size != row->gc_stats_size)
        off->gc_item_size = 0;
    /* Unlike the others it counts from the GIL's struct, and exists only in free-threaded
     * builds. */
    off->gil_enabled = row->free_threaded ? w->gil_enabled : -1;
    if (w->ascii_size > w->str_size || w->ascii_size % 8 != 0)
        return -1;
    int32_t moved = w->ascii_size - row->str_ascii_data;
    off->str_ascii_data = w->ascii_size;
    off->str_compact_data = row->str_compact_data + moved;
    off->str_legacy_data = row->str_legacy_data + moved;
    off->code_firsttraceable = row->code_firsttraceable + off->code_bytes - row->code_bytes;
    off->code_flags = row->code_flags + off->code_argcount - row->code_argcount;
    off->code_kwonlyargcount = row->code_kwonlyargcount + off->code_argcount - row->code_argcount;
    off->code_nlocalsplus = row->code_nlocalsplus + off->code_argcount - row->code_argcount;
    off->frame_locals = row->frame_locals + off->frame_previous - row->frame_previous;
    off->dict_used = row->dict_used + off->object_size - row->object_size;
    off->tstate_id = row->tstate_id + off->tstate_datastack_chunk - row->tstate_datastack_chunk;
    return off->code_firsttraceable >= 0 && off->code_firsttraceable + 4 <= off->code_size &&
                   debug_in(off->code_flags, off->code_size) &&
                   debug_in(off->code_kwonlyargcount, off->code_size) &&
                   debug_in(off->code_nlocalsplus, off->code_size) &&
                   debug_in(off->frame_locals + 4, off->frame_size) && off->dict_used >= 0 &&
                   off->tstate_id >= 0 && off->tstate_id + 8 <= off->tstate_size &&
                   off->str_legacy_data + 8 <= PYSTACK_STRUCT_MAX
               ? 0
               : -1;
}

int pystack_debug_offsets_apply(const uint8_t *bytes, size_t n, struct pystack_offsets *off) {
    struct debug_work w = {.off = *off};
    uint32_t version;
    bool free_threaded;
    const struct debug_form *form = NULL;
    if (!pystack_debug_offsets_peek(bytes, n, &version, &free_threaded) ||
        free_threaded != (off->free_threaded != 0))
        return -1;
    for (size_t i = 0; i < sizeof debug_forms / sizeof debug_forms[0]; i++)
        if (debug_forms[i].minor == (int)(version >> 16 & 255))
            form = &debug_forms[i];
    if (!form || off->major != 3 || off->minor != form->minor || n < form->words * 8 ||
        debug_take_words(bytes, n, form, &w) != 0 || debug_derive(off, &w) != 0)
        return -1;
    if (off->code_tlbc == 0) /* only free-threaded builds have copies; others publish 0 */
        w.off.frame_tlbc_index = w.off.code_tlbc = 0;
    *off = w.off;
    return 0;
}
