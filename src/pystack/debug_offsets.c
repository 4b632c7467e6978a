/* SPDX-License-Identifier: Apache-2.0 */
/* debug_offsets: see debug_offsets.h. */
#include "pystack/debug_offsets.h"

#include <string.h>

#include "pystack/reader.h"

#define DEBUG_SIZE_MAX (1U << 20) /* no struct of the interpreter is larger */

/* One published number: its place in words from the start, the place of its struct's size, our field. `whole` structs are
 * read into a buffer, so their fields must lie within it. */
struct debug_field {
    uint16_t word;
    uint16_t size_word;
    bool whole;
    uint16_t width; /* bytes of the field */
    size_t field;   /* offset in struct pystack_offsets */
};

#define FIELD(name) offsetof(struct pystack_offsets, name)

/* 3.13; words 0 to 2 are cookie, version, free_threaded. */
static const struct debug_field debug_fields_3_13[] = {
    {4, 3, false, 8, FIELD(runtime_finalizing)},
    {5, 3, false, 8, FIELD(runtime_interpreters_head)},
    {7, 6, false, 8, FIELD(interp_id)},
    {8, 6, false, 8, FIELD(interp_next)},
    {9, 6, false, 8, FIELD(interp_threads_head)},
    {11, 6, false, 8, FIELD(interp_modules)},
    {12, 6, false, 8, FIELD(interp_sysdict)},
    {14, 6, false, 8, FIELD(gil)},
    {20, 19, true, 8, FIELD(tstate_prev)},
    {21, 19, true, 8, FIELD(tstate_next)},
    {22, 19, true, 8, FIELD(tstate_interp)},
    {23, 19, true, 8, FIELD(tstate_frame)},
    {24, 19, true, 8, FIELD(tstate_thread_id)},
    {25, 19, true, 8, FIELD(tstate_native_thread_id)},
    {26, 19, true, 8, FIELD(tstate_datastack_chunk)},
    {29, 28, true, 8, FIELD(frame_previous)},
    {30, 28, true, 8, FIELD(frame_code)},
    {31, 28, true, 8, FIELD(frame_instr)},
    {33, 28, true, 1, FIELD(frame_owner)},
    {35, 34, true, 8, FIELD(code_filename)},
    {36, 34, true, 8, FIELD(code_name)},
    {37, 34, true, 8, FIELD(code_qualname)},
    {38, 34, true, 8, FIELD(code_linetable)},
    {39, 34, true, 4, FIELD(code_firstlineno)},
    {43, 34, true, 1, FIELD(code_bytes)},
    {45, 44, true, 8, FIELD(object_type)},
    {49, 46, false, 8, FIELD(type_flags)},
    {57, 56, false, 8, FIELD(dict_keys)},
    {58, 56, false, 8, FIELD(dict_values)},
    {62, 61, true, 8, FIELD(long_tag)},
    {63, 61, true, 4, FIELD(long_digits)},
    {65, 64, true, 8, FIELD(var_size)},
    {66, 64, true, 1, FIELD(bytes_data)},
    {68, 67, true, 4, FIELD(str_state)},
    {69, 67, true, 8, FIELD(str_length)},
};

/* Words that are needed otherwise. */
enum {
    DEBUG_3_13_INTERP_SIZE = 6,
    DEBUG_3_13_GIL_STATE = 15,
    DEBUG_3_13_GIL_LOCKED = 17,
    DEBUG_3_13_GIL_HOLDER = 18,
    DEBUG_3_13_TSTATE_SIZE = 19,
    DEBUG_3_13_FRAME_SIZE = 28,
    DEBUG_3_13_CODE_SIZE = 34,
    DEBUG_3_13_STR_SIZE = 67,
    DEBUG_3_13_ASCII_SIZE = 70,
    DEBUG_3_13_WORDS = 73,
};

_Static_assert(DEBUG_3_13_WORDS * 8 == PYSTACK_DEBUG_BYTES, "the bytes to read must hold every known form");

static uint64_t debug_word(const uint8_t *bytes, unsigned word) {
    return pystack_get_u64(bytes, (int32_t)word * 8);
}

bool pystack_debug_offsets_peek(const uint8_t *bytes, size_t n, uint32_t *version, bool *free_threaded) {
    if (n < 24 || memcmp(bytes, PYSTACK_DEBUG_COOKIE, 8) != 0)
        return false;
    uint64_t v = debug_word(bytes, 1);
    if (v >> 32 || v >> 24 != 3)
        return false;
    *version = (uint32_t)v;
    *free_threaded = debug_word(bytes, 2) != 0;
    return true;
}

static bool debug_size_ok(uint64_t size, bool whole) {
    return size != 0 && size <= (whole ? PYSTACK_STRUCT_MAX : DEBUG_SIZE_MAX);
}

static int debug_apply_field(const uint8_t *bytes, const struct debug_field *f, struct pystack_offsets *off) {
    uint64_t size = debug_word(bytes, f->size_word), at = debug_word(bytes, f->word);
    if (!debug_size_ok(size, f->whole) || at > size || size - at < f->width)
        return -1;
    int32_t value = (int32_t)at;
    memcpy((char *)off + f->field, &value, sizeof value);
    return 0;
}

static int debug_apply_rest(const uint8_t *bytes, const struct pystack_offsets *row,
                            struct pystack_offsets *off) {
    uint64_t gil = debug_word(bytes, DEBUG_3_13_GIL_STATE), locked = debug_word(bytes, DEBUG_3_13_GIL_LOCKED),
             holder = debug_word(bytes, DEBUG_3_13_GIL_HOLDER),
             interp = debug_word(bytes, DEBUG_3_13_INTERP_SIZE);
    if (gil > interp || locked > interp || holder > interp || locked < gil || holder < gil ||
        locked - gil > PYSTACK_STRUCT_MAX - 8 || holder - gil > PYSTACK_STRUCT_MAX - 8)
        return -1;
    off->gil_locked = (int32_t)(locked - gil);
    off->gil_last_holder = (int32_t)(holder - gil);
    uint64_t ascii = debug_word(bytes, DEBUG_3_13_ASCII_SIZE), str = debug_word(bytes, DEBUG_3_13_STR_SIZE);
    if (ascii == 0 || ascii > str || ascii % 8 != 0)
        return -1;
    /* What is not published keeps its distance from what is. */
    int32_t moved = (int32_t)ascii - row->str_ascii_data;
    off->str_ascii_data = (int32_t)ascii;
    off->str_compact_data = row->str_compact_data + moved;
    off->str_legacy_data = row->str_legacy_data + moved;
    off->code_firsttraceable = row->code_firsttraceable + off->code_bytes - row->code_bytes;
    off->tstate_size = (int32_t)debug_word(bytes, DEBUG_3_13_TSTATE_SIZE);
    off->frame_size = (int32_t)debug_word(bytes, DEBUG_3_13_FRAME_SIZE);
    off->code_size = (int32_t)debug_word(bytes, DEBUG_3_13_CODE_SIZE);
    return off->code_firsttraceable >= 0 && off->str_legacy_data + 8 <= PYSTACK_STRUCT_MAX ? 0 : -1;
}

int pystack_debug_offsets_apply(const uint8_t *bytes, size_t n, struct pystack_offsets *off) {
    struct pystack_offsets row = *off;
    uint32_t version;
    bool free_threaded;
    if (!pystack_debug_offsets_peek(bytes, n, &version, &free_threaded) || free_threaded ||
        n < PYSTACK_DEBUG_BYTES)
        return -1;
    if ((version >> 16 & 255) != 13 || off->major != 3 || off->minor != 13)
        return -1;
    for (size_t i = 0; i < sizeof debug_fields_3_13 / sizeof debug_fields_3_13[0]; i++)
        if (debug_apply_field(bytes, &debug_fields_3_13[i], off) != 0) {
            *off = row;
            return -1;
        }
    if (debug_apply_rest(bytes, &row, off) != 0) {
        *off = row;
        return -1;
    }
    return 0;
}
