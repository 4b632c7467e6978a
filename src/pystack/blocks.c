/* SPDX-License-Identifier: Apache-2.0 */
/* blocks: see blocks.h. */
#include "pystack/blocks.h"

#include <stdlib.h>

#define BLOCKS_TABLE_MAX (256 << 10)

/* Objects of frames, up to 3.10 (Include/frameobject.h): f_localsplus follows f_blockstack, which has
 * CO_MAXBLOCKS of PyTryBlock (type, handler, level), which follows f_iblock and a char, aligned. */
#define BLOCKS_MAX 20
#define BLOCKS_SIZE 12
#define BLOCKS_LEVEL 8
#define BLOCKS_STACK (-BLOCKS_MAX * BLOCKS_SIZE)
#define BLOCKS_N (BLOCKS_STACK - 8)

static int32_t blocks_read_object(struct pystack_reader *r, uint64_t frame) {
    uint64_t end = frame + (uint64_t)r->off.frame_localsplus;
    uint32_t n, level;
    if (mem_read_u32(&r->mem, end + (uint64_t)BLOCKS_N, &n) != 0 || n > BLOCKS_MAX)
        return -1;
    if (n == 0)
        return 0;
    uint64_t last = end + (uint64_t)BLOCKS_STACK + (uint64_t)(n - 1) * BLOCKS_SIZE;
    return mem_read_u32(&r->mem, last + BLOCKS_LEVEL, &level) == 0 && level <= INT32_MAX ? (int32_t)level
                                                                                         : -1;
}

/* Six bits a byte, the highest first; 64: more follow. */
static int blocks_get_number(const uint8_t *table, size_t n, size_t *at, uint32_t *out) {
    *out = 0;
    do {
        if (*at == n || *out >> 26)
            return -1;
        *out = *out << 6 | (table[*at] & 63);
    } while (table[(*at)++] & 64);
    return 0;
}

/* Entries of four numbers, in the order of the code: the first unit, how many, the handler, twice the depth
 * and whether it wants the instruction (InternalDocs/exception_handling.md). */
int32_t pystack_blocks_find(const uint8_t *table, size_t n, uint64_t unit) {
    uint32_t entry[4];
    for (size_t at = 0; at < n;) {
        for (size_t i = 0; i < 4; i++)
            if (blocks_get_number(table, n, &at, &entry[i]) != 0)
                return -1;
        if (unit < entry[0])
            break;
        if (unit - entry[0] < entry[1])
            return (int32_t)(entry[3] >> 1);
    }
    return 0;
}

int32_t pystack_blocks_read(struct pystack *ps, const struct pystack_raw_frame *f) {
    struct pystack_reader *r = &ps->reader;
    const struct pystack_offsets *o = &r->off;
    struct pystack_code *code;
    uint64_t table, n;
    int64_t at;
    if (o->frame_style == PYSTACK_FRAME_OBJECT)
        return blocks_read_object(r, f->addr);
    code = pystack_codes_get_running(&ps->codes, r, f->code);
    if (!code || pystack_frame_position(r, f, code, &at) != 0)
        return -1;
    /* Include/cpython/code.h: co_exceptiontable stands before co_flags */
    if (pystack_read_u64_at(r, f->code, o->code_flags - 8, &table) != 0 || !pystack_is_pointer(table) ||
        pystack_read_u64_at(r, table, o->var_size, &n) != 0 || n > BLOCKS_TABLE_MAX)
        return -1;
    if (at < 0 || n == 0)
        return 0;
    uint8_t *bytes = malloc((size_t)n);
    int32_t depth = bytes && mem_read(&r->mem, table + (uint64_t)o->bytes_data, bytes, (size_t)n) == 0
                        ? pystack_blocks_find(bytes, (size_t)n, (uint64_t)at / 2)
                        : -1;
    free(bytes);
    return depth;
}
