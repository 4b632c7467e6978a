/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_loop: finds the part of the interpreter's loop that the compiler has placed elsewhere,
 * in a file without a symbol for it.
 *
 * Most of the loop can be in a part of its own (".cold"), for which a stripped file has no
 * symbol. But one part jumps into the middle of the other, which no function does with another
 * one. Private to symbols.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_LOOP_H
#define CLIENT_SYMBOLS_SYMBOLS_LOOP_H

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the code at `at` is another part of the function of `size` bytes at `start`. Addresses
 * are libdwfl's. */
bool symbols_loop_has(Dwfl_Module *module, uint64_t start, uint64_t size, uint64_t at);

#endif
