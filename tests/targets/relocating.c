/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library whose relocation takes as long as a test wants: the resolver of an indirect function, which the loader calls in
 * the middle of it, waits for a byte. Nothing of the library may be used there: system calls only.
 */
#include <stddef.h>
#include <sys/syscall.h>

#define RELOCATING_TELLS 200 /* descriptors: a byte is written when it waits, */
#define RELOCATING_WAITS 201 /* and one is read, or the end */

/* So that there are pages that the loader protects, and others that it does not. */
int relocating_data[4096] = {1};
const void *const relocating_table[2048] = {&relocating_data[1], &relocating_data[2]};
int relocating_answer(void);

static long relocating_call(long nr, long fd, void *byte) {
    long rc;
    __asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(fd), "S"(byte), "d"(1L) : "rcx", "r11", "memory");
    return rc;
}

static int relocating_real(void) { return relocating_data[0] + (relocating_table[0] != NULL); }

__attribute__((used)) static int (*relocating_resolve(void))(void) {
    char byte = 'r';
    (void)relocating_call(SYS_write, RELOCATING_TELLS, &byte);
    (void)relocating_call(SYS_read, RELOCATING_WAITS, &byte);
    return relocating_real;
}

int relocating_answer(void) __attribute__((ifunc("relocating_resolve")));
int (*const relocating_pointer)(void) = relocating_answer; /* to be filled in when it is relocated */
