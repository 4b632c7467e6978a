/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_headroom: see stack_headroom.h. mincore(2), getauxval(3) for AT_MINSIGSTKSZ, mmap(2) for
 * the gap below a growing stack. The C library's own struct, which pthread_self points to, is at
 * the upper end of a thread's stack (glibc: nptl/allocatestack.c; musl:
 * src/thread/pthread_create.c), so it identifies the mapping.
 */
#include "agent/sampler/stack_headroom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/procfs.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* since Linux 5.14: asm/auxvec.h */
#endif
/* of the C library's struct of a thread: 2304 bytes in glibc */
#define STACK_HEADROOM_STRUCT_WORDS 288
/* with the complete state of a processor, including AMX */
#define STACK_HEADROOM_FRAME_UNKNOWN 16384U
/* for the handler, and for the thread's own use until the signal arrives */
#define STACK_HEADROOM_LEAST 65536U
#define STACK_HEADROOM_MOST ((uint64_t)512 * 1024)
#define STACK_HEADROOM_SHARE 8 /* of a stack */
#define STACK_HEADROOM_PAGE 4096U
#define STACK_HEADROOM_GAP ((uint64_t)1 << 20) /* the kernel keeps it free below a growing stack */
/* and maps nothing so far below its end (mm/util.c, arch/x86/mm/mmap.c: mmap_base) */
#define STACK_HEADROOM_RESERVED ((uint64_t)128 << 20)
/* times the duration of reading the mappings, until they are read again */
#define STACK_HEADROOM_PAUSE 20
#define STACK_HEADROOM_MAX 16384 /* mappings */

/* A private writable mapping without a file, and the end of the one below it. */
struct stack_headroom_map {
    uint64_t start, end, below;
    bool is_main;
};

static struct stack_headroom_maps {
    struct stack_headroom_map *items; /* by address */
    size_t n, cap;
    uint64_t end; /* of the previous mapping */
    uint64_t read_ns, took_ns;
} room;

void stack_headroom_forget(void) {
    free(room.items);
    room = (struct stack_headroom_maps){.n = 0};
}

size_t stack_headroom_bytes(void) { return room.cap * sizeof *room.items; }

static int stack_headroom_note(const struct procfs_map *map, void *arg) {
    (void)arg;
    uint64_t below = room.end;
    room.end = map->end;
    if (map->perms[0] != 'r' || map->perms[1] != 'w' || map->perms[3] != 'p' ||
        (map->path[0] && map->path[0] != '['))
        return 0;
    if (room.n == room.cap) {
        size_t cap = room.cap ? 2 * room.cap : 128;
        struct stack_headroom_map *items =
            cap <= STACK_HEADROOM_MAX ? realloc(room.items, cap * sizeof *items) : NULL;
        if (!items)
            return 1;
        room.items = items;
        room.cap = cap;
    }
    room.items[room.n++] = (struct stack_headroom_map){
        .start = map->start, .end = map->end, .below = below, .is_main = strcmp(map->path, "[stack]") == 0};
    return 0;
}

/* Read the mappings unless they are from `since` or later. False if they were read too short a
 * time ago. */
static bool stack_headroom_read(uint64_t since) {
    uint64_t now = clock_mono_ns();
    if (room.read_ns && room.read_ns >= since)
        return true;
    if (room.read_ns && now - room.read_ns < STACK_HEADROOM_PAUSE * room.took_ns)
        return false;
    room.n = 0;
    room.end = 0;
    room.read_ns = now;
    procfs_each_map(0, stack_headroom_note, NULL);
    room.took_ns = clock_mono_ns() - now;
    return true;
}

static const struct stack_headroom_map *stack_headroom_map_of(uint64_t addr, bool is_main) {
    for (size_t i = 0; i < room.n; i++)
        if (is_main ? room.items[i].is_main : addr >= room.items[i].start && addr < room.items[i].end)
            return &room.items[i];
    return NULL;
}

/* The lowest address that the main thread's stack may grow to. */
static uint64_t stack_headroom_main_low(const struct stack_headroom_map *map) {
    struct rlimit limit;
    uint64_t low = map->below ? map->below + STACK_HEADROOM_GAP : 0;
    /* unknown: treated as if the stack were full */
    if (getrlimit(RLIMIT_STACK, &limit) != 0)
        return map->start;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < map->end && map->end - limit.rlim_cur > low)
        low = map->end - limit.rlim_cur;
    return low < map->start ? low : map->start;
}

/* The start of another thread's stack. Its guard pages are not a mapping of their own from glibc
 * 2.42 on (MADV_GUARD_INSTALL), so the memory below the stack may be in the same mapping. But
 * the C library knows: its struct has the block, its size and the size of the guard, one after
 * the other (glibc: nptl/descr.h, struct pthread). musl's struct does not have them, but musl
 * has separate mappings: 0, and the mapping's start counts. */
static uint64_t stack_headroom_thread_low(const struct stack_headroom_map *map, uint64_t ident) {
    uint64_t words[STACK_HEADROOM_STRUCT_WORDS];
    struct mem m;
    size_t n = (map->end - ident) / sizeof words[0];
    n = n < STACK_HEADROOM_STRUCT_WORDS ? n : STACK_HEADROOM_STRUCT_WORDS;
    mem_init_process(&m, getpid());
    if (mem_read(&m, ident, words, n * sizeof words[0]) != 0)
        return 0;
    for (size_t i = 0; i + 2 < n; i++) {
        uint64_t block = words[i], size = words[i + 1], guard = words[i + 2];
        if (block % STACK_HEADROOM_PAGE == 0 && size % STACK_HEADROOM_PAGE == 0 &&
            guard % STACK_HEADROOM_PAGE == 0 && guard < size && block < ident && ident - block < size &&
            block + size <= map->end && block + guard >= map->start)
            return block + guard;
    }
    return 0;
}

bool stack_headroom_find(int64_t tid, uint64_t ident, uint64_t seen_ns, struct stack_headroom_stack *out) {
    *out = (struct stack_headroom_stack){.low = 0};
    if (!stack_headroom_read(seen_ns))
        return false;
    bool is_main = tid == (int64_t)getpid();
    const struct stack_headroom_map *map = stack_headroom_map_of(ident, is_main);
    if (!map)
        return false;
    uint64_t low = is_main ? stack_headroom_main_low(map) : stack_headroom_thread_low(map, ident);
    *out = (struct stack_headroom_stack){
        .low = low ? low : map->start, .high = is_main ? map->end : ident, .grows = is_main};
    out->own = low ? low : out->high;
    if (is_main && out->own < out->high - STACK_HEADROOM_RESERVED)
        out->own = out->high - STACK_HEADROOM_RESERVED;
    return true;
}

size_t stack_headroom_frame(void) {
    static size_t frame; /* all calls are made by one thread */
    if (!frame)
        frame = getauxval(AT_MINSIGSTKSZ);
    return frame ? frame : STACK_HEADROOM_FRAME_UNKNOWN;
}

uint64_t stack_headroom_needed(uint64_t size, uint64_t frame) {
    uint64_t need =
        STACK_HEADROOM_LEAST + (frame + STACK_HEADROOM_PAGE - 1) / STACK_HEADROOM_PAGE * STACK_HEADROOM_PAGE;
    uint64_t share = size / STACK_HEADROOM_SHARE / STACK_HEADROOM_PAGE * STACK_HEADROOM_PAGE;
    return share > STACK_HEADROOM_MOST ? STACK_HEADROOM_MOST : share > need ? share : need;
}

bool stack_headroom_is_enough(const struct stack_headroom_stack *stack) {
    unsigned char there[STACK_HEADROOM_MOST / STACK_HEADROOM_PAGE];
    uint64_t size = stack->high - stack->low;
    uint64_t need = stack_headroom_needed(size, stack_headroom_frame());
    uint64_t from = (stack->low + STACK_HEADROOM_PAGE - 1) / STACK_HEADROOM_PAGE * STACK_HEADROOM_PAGE;
    if (stack->high <= stack->low || size <= need + STACK_HEADROOM_PAGE)
        return false;
    /* it is mapped from its upper end on: check whether the last of the required pages is mapped */
    if (stack->grows)
        return mincore((void *)(uintptr_t)(from + need - STACK_HEADROOM_PAGE), STACK_HEADROOM_PAGE, there) !=
                   0 &&
               errno == ENOMEM;
    if (mincore((void *)(uintptr_t)from, need, there) != 0)
        return false;
    for (uint64_t i = 0; i < need / STACK_HEADROOM_PAGE; i++)
        if (there[i] & 1)
            return false;
    return true;
}
