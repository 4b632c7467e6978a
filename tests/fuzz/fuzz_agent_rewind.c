/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the code before a system call: what is found lies in them, and what follows it is left alone. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/sampler/rewind.h"

#define FUZZ_MOV_EAX 0xb8
#define FUZZ_MOV_EDI 0xbf

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const uint8_t *code, size_t n, int number, uint8_t op) {
    if (number == -1)
        return;
    if (number < 0 || number >= 1024)
        abort();
    for (size_t i = 0; i + 5 <= n; i++)
        if (code[i] == op && (code[i + 1] | code[i + 2] << 8) == number && !code[i + 3] && !code[i + 4])
            return;
    abort(); /* a number that nothing loads */
}

/* A place of the stack: there is an instruction that loads from it. */
static void fuzz_check_slot(const uint8_t *code, size_t n, int slot) {
    if (slot == -1)
        return;
    if (slot < 0 || slot >= 0x80)
        abort();
    for (size_t i = 0; i + 5 <= n; i++)
        if (code[i] == 0x48 && code[i + 1] == 0x8b && code[i + 3] == 0x24 && code[i + 4] == slot)
            return;
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_check_slot(data, size, rewind_find_slot(data, size, false));
    fuzz_check_slot(data, size, rewind_find_slot(data, size, true));
    fuzz_check(data, size, rewind_find_number(data, size), FUZZ_MOV_EAX);
    fuzz_check(data, size, rewind_find_argument(data, size), FUZZ_MOV_EDI);
    return 0;
}
