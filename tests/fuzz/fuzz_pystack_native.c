/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pystack_native: a stack is unwound by an image (headers, unwind tables, code) in which nothing need make sense.
 *
 * Input: 17 registers, 2 bytes: length of the stack (times 8), the stack, and the image. Registers and words of the stack are offsets
 * into image or stack when their highest bit is set, so that a mutation reaches more than one page.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pystack/native.h"
#include "pystack/native_label.h"

#define FUZZ_BASE 0x400000ULL
#define FUZZ_STACK 0x7000000000ULL
#define FUZZ_IMAGE_MAX ((size_t)64 * 1024)
#define FUZZ_STACK_WORDS 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t fuzz_word(const uint8_t *data) {
    uint64_t v;
    memcpy(&v, data, sizeof v);
    if (v >> 63)
        return FUZZ_BASE + (v & 0xffff);
    if (v >> 62)
        return FUZZ_STACK + (v & 0xfff);
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct native_copy copy;
    static struct model_frame frames[NATIVE_MAX_FRAMES];
    static enum native_role roles[NATIVE_MAX_FRAMES];
    uint16_t words;
    if (size < 8 * NATIVE_REGS + sizeof words)
        return 0;
    for (size_t i = 0; i < NATIVE_REGS; i++)
        copy.regs[i] = fuzz_word(data + 8 * i);
    memcpy(&words, data + 8 * NATIVE_REGS, sizeof words);
    data += 8 * NATIVE_REGS + sizeof words;
    size -= 8 * NATIVE_REGS + sizeof words;
    copy.known = words & 0x8000 ? 1U << NATIVE_RIP | 1U << NATIVE_RSP : (1U << NATIVE_REGS) - 1;
    words = (uint16_t)(words % FUZZ_STACK_WORDS);
    copy.stack_at = FUZZ_STACK;
    copy.stack_end = 0;
    for (copy.stack_len = 0; copy.stack_len / 8 < words && size >= 8; copy.stack_len += 8) {
        uint64_t word = fuzz_word(data);
        memcpy(copy.stack + copy.stack_len, &word, sizeof word);
        data += 8;
        size -= 8;
    }
    size = size < FUZZ_IMAGE_MAX ? size : FUZZ_IMAGE_MAX;
    struct mem mem;
    mem_init_buffer(&mem, data, size, FUZZ_BASE);
    struct native *n = size ? native_new_memory(&mem, FUZZ_BASE, (size + 4095) & ~(uint64_t)4095) : NULL;
    if (!n)
        return 0;
    for (int again = 0; again < 2; again++) { /* cold, and with what was remembered */
        size_t got = native_unwind(n, &copy, frames, NATIVE_MAX_FRAMES);
        if (got > NATIVE_MAX_FRAMES)
            abort();
        for (size_t i = 0; i < got; i++)
            if (frames[i].kind != MODEL_FRAME_NATIVE ||
                (frames[i].module && strcmp(frames[i].module, "memory") != 0))
                abort();
    }
    struct native_labels *labels = native_labels_new();
    size_t got = labels ? native_unwind(n, &copy, frames, NATIVE_MAX_FRAMES) : 0;
    for (int again = 0; labels && again < 2; again++)
        native_label(labels, native_get_maps(n), frames, got, roles);
    native_labels_free(labels);
    native_free(n);
    return 0;
}
