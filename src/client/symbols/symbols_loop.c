/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_loop: see symbols_loop.h. Instructions: Intel SDM, volume 2 (E9 rel32, 0F 80..8F
 * rel32). The function of an address: the FDE in .eh_frame, which every part has. */
#include "client/symbols/symbols_loop.h"

#include <string.h>

#include "pystack/native_merge.h"

#define LOOP_MAX ((uint64_t)1024 * 1024) /* bytes of the function */
#define LOOP_MAX_HEADERS 64
#define LOOP_HEAD 12 /* bytes before the table of .eh_frame_hdr */
#define LOOP_ENTRY 8

/* File offset of what is loaded at `addr`, the file's own address. 0, or -1. */
static int loop_file_offset(Elf *elf, uint64_t addr, uint64_t size, int64_t *offset) {
    size_t n;
    GElf_Phdr ph;
    if (elf_getphdrnum(elf, &n) != 0)
        return -1;
    for (size_t i = 0; i < n && i < LOOP_MAX_HEADERS; i++)
        if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && addr >= ph.p_vaddr &&
            addr - ph.p_vaddr < ph.p_filesz && size <= ph.p_filesz - (addr - ph.p_vaddr)) {
            *offset = (int64_t)(ph.p_offset + (addr - ph.p_vaddr));
            return 0;
        }
    return -1;
}

/* True if the `size` bytes of code at `start` jump into (from, to). */
static bool loop_jumps(Dwfl_Module *module, uint64_t start, uint64_t size, uint64_t from, uint64_t to) {
    GElf_Addr bias;
    int64_t offset;
    Elf *elf = dwfl_module_getelf(module, &bias);
    if (!elf || size > LOOP_MAX || loop_file_offset(elf, start - bias, size, &offset) != 0)
        return false;
    Elf_Data *code = elf_getdata_rawchunk(elf, offset, size, ELF_T_BYTE);
    return code && code->d_buf && native_code_jumps(code->d_buf, code->d_size, start, from, to);
}

/* The function (or part of one) at `at`, the file's own address: from its beginning to that of
 * the next, by the sorted table of .eh_frame_hdr (LSB 5.0 core, "Exception Frames"; the encoding
 * that linkers write). 0 or -1. */
static int loop_find_part(Elf *elf, uint64_t at, uint64_t *from, uint64_t *to) {
    size_t n, low = 0;
    GElf_Phdr ph = {.p_type = PT_NULL};
    uint32_t count;
    if (elf_getphdrnum(elf, &n) != 0)
        return -1;
    for (size_t i = 0; i < n && i < LOOP_MAX_HEADERS && ph.p_type != PT_GNU_EH_FRAME; i++)
        if (!gelf_getphdr(elf, (int)i, &ph))
            return -1;
    Elf_Data *data = ph.p_type == PT_GNU_EH_FRAME
                         ? elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE)
                         : NULL;
    const uint8_t *head = data ? data->d_buf : NULL;
    if (!head || data->d_size < LOOP_HEAD || memcmp(head, "\x01\x1b\x03\x3b", 4) != 0)
        return -1;
    memcpy(&count, head + 8, sizeof count);
    size_t high = count <= (data->d_size - LOOP_HEAD) / LOOP_ENTRY ? count : 0;
    for (*from = *to = 0; low < high;) {
        size_t middle = low + (high - low) / 2;
        int32_t offset;
        memcpy(&offset, head + LOOP_HEAD + middle * LOOP_ENTRY, sizeof offset);
        uint64_t start = ph.p_vaddr + (uint64_t)(int64_t)offset;
        if (start <= at) {
            low = middle + 1;
            *from = start;
        } else {
            high = middle;
            *to = start;
        }
    }
    return *from && *to ? 0 : -1;
}

bool symbols_loop_has(Dwfl_Module *module, uint64_t start, uint64_t size, uint64_t at) {
    uint64_t from, to;
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    if (!elf || loop_find_part(elf, at - bias, &from, &to) != 0 || from + bias == start)
        return false;
    return loop_jumps(module, start, size, from + bias, to + bias) ||
           loop_jumps(module, from + bias, to - from, start, start + size);
}
