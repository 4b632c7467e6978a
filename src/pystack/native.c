/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: unwinds a copy; see native.h.
 *
 * What libunwind guesses where it finds no unwind information (code made at run time,
 * hand-written loops) is believed only when the address it comes to is one that a call returns
 * to.
 */
#include "pystack/native.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/unwind_space.h"
#include "pystack/native_maps.h"

#define NATIVE_PAGES 256U
#define NATIVE_CACHE 1024U /* places whose unwind rules libunwind remembers */
/* of one step: mapped memory is foreign and may contain anything */
#define NATIVE_STEP_READS 5000U
#define NATIVE_MAX_READS 200000U /* of one stack */
/* an unknown address causes the maps to be read again, but not more often */
#define NATIVE_REFRESH_NS (100 * CLOCK_NS_PER_MS)
#define NATIVE_CALL_MAX 7            /* bytes of the longest call instruction */
#define NATIVE_FUNCTION_MAX 0x10000U /* bytes of a function with an unknown beginning */
/* bytes copied beyond the stack pointer of the outermost frame */
#define NATIVE_BEYOND 512
#define NATIVE_BRIDGE_TRIES 32 /* callers tried where a chain is broken */

struct native {
    struct mem mem;
    struct native_maps maps;
    uint64_t read_ns; /* when the maps were read */
    struct unwind_space *space;
    struct unwind_space_copy copy; /* being unwound */
    struct native_stats stats;
};

_Static_assert(NATIVE_REGS == UNWIND_SPACE_REGS, "registers in the same order");

/* The rest of the stack may have changed since, so it is not read. Data of modules is, because
 * unwind tables refer to it. */
static enum unwind_space_memory native_memory(void *arg, uint64_t addr) {
    const struct native *n = arg;
    const struct native_map *map = native_maps_at(&n->maps, addr);
    if (!map || !map->readable)
        return UNWIND_SPACE_FORBIDDEN;
    return map->steady ? UNWIND_SPACE_STEADY : UNWIND_SPACE_CHANGING;
}

static bool native_table(void *arg, uint64_t addr, struct unwind_space_table *out) {
    struct native *n = arg;
    const struct native_module *m = native_maps_module(&n->maps, addr);
    if (!m || !m->n_table)
        return false;
    *out = (struct unwind_space_table){.text_start = m->elf.text_start,
                                       .text_end = m->elf.text_end,
                                       .header = m->elf.eh_frame_hdr,
                                       .entries = m->table,
                                       .n_entries = m->n_table};
    return true;
}

/* ---- life ---- */

/* With maps to be read, or given. */
static struct native *native_make(const struct mem *mem, pid_t pid) {
    struct native *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->mem = *mem;
    native_maps_init(&n->maps, pid, &n->mem);
    struct unwind_space_target target = {
        .mem = &n->mem, .memory = native_memory, .table = native_table, .arg = n};
    n->space = unwind_space_new(&target, NATIVE_PAGES, NATIVE_CACHE);
    if (!n->space) {
        native_free(n);
        return NULL;
    }
    return n;
}

struct native *native_new(pid_t pid) {
    struct mem mem;
    mem_init_process(&mem, pid ? pid : getpid());
    return native_make(&mem, pid);
}

struct native *native_new_memory(const struct mem *mem, uint64_t base, uint64_t size) {
    struct native *n = native_make(mem, 0);
    if (!n || native_maps_set(&n->maps, base, size) == 0)
        return n;
    native_free(n);
    return NULL;
}

void native_free(struct native *n) {
    if (!n)
        return;
    unwind_space_free(n->space);
    native_maps_fini(&n->maps);
    mem_fini(&n->mem);
    free(n);
}

void native_refresh(struct native *n, uint64_t max_age_ns) {
    uint64_t now = clock_mono_ns();
    if (n->maps.given)
        return;
    if (n->read_ns && now - n->read_ns < max_age_ns)
        return;
    n->read_ns = now;
    if (native_maps_read(&n->maps) != 1)
        return;
    unwind_space_flush(n->space);
}

const struct native_stats *native_get_stats(const struct native *n) { return &n->stats; }

struct native_maps *native_get_maps(struct native *n) {
    return &n->maps;
}

size_t native_bytes(const struct native *n) {
    return n ? sizeof *n + unwind_space_bytes(n->space) + sizeof(struct native_copy) +
                   native_maps_bytes(&n->maps)
             : 0;
}

/* ---- unwinding ---- */

/* A stack being followed. */
struct native_walk {
    struct model_frame *out;
    size_t n, cap;
    bool whole;      /* its end was reached */
    uint64_t ip, sp; /* of the last frame */
    uint64_t start;  /* of its function; 0 unknown */
    bool no_info;    /* a place without unwind information was met on the way to the next one */
};

/* The mapping of the code at `ip`; if it is unknown the maps are read again, unless that was
 * just done. */
static const struct native_map *native_code_at(struct native *n, uint64_t ip) {
    const struct native_map *map = native_maps_at(&n->maps, ip);
    if (map && map->executable)
        return map;
    native_refresh(n, NATIVE_REFRESH_NS);
    map = native_maps_at(&n->maps, ip);
    return map && map->executable ? map : NULL;
}

static int native_read_code(struct native *n, uint64_t addr, void *out, size_t len) {
    const struct native_map *map = native_maps_at(&n->maps, addr);
    if (!map || !map->executable || len > map->end - addr)
        return -1;
    return map->steady ? unwind_space_read(n->space, addr, out, len) : mem_read(&n->mem, addr, out, len);
}

/* True if `ip` is just behind a call instruction. `*target`: the callee, 0 if it is not in the
 * instruction. Intel SDM, volume 2: E8 rel32, or FF /2 with up to 5 more bytes. */
static bool native_is_return(struct native *n, uint64_t ip, uint64_t *target) {
    uint8_t code[NATIVE_CALL_MAX];
    int32_t offset;
    *target = 0;
    if (ip < 4096 || native_read_code(n, ip - sizeof code, code, sizeof code) != 0)
        return false;
    for (size_t i = 0; i + 2 <= sizeof code; i++)
        if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2)
            return true;
    if (code[NATIVE_CALL_MAX - 5] != 0xe8)
        return false;
    memcpy(&offset, code + NATIVE_CALL_MAX - 4, sizeof offset);
    *target = ip + (uint64_t)(int64_t)offset;
    return true;
}

/* Where a call of `target` leads: through an entry of a procedure linkage table (optional
 * endbr64 and bnd, then FF 25: jmp *rel32). */
static uint64_t native_through_plt(struct native *n, uint64_t target) {
    uint8_t code[16];
    size_t at = 0;
    int32_t offset;
    uint64_t to;
    if (native_read_code(n, target, code, sizeof code) != 0)
        return target;
    at += memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0 ? 4 : 0;
    at += code[at] == 0xf2;
    if (code[at] != 0xff || code[at + 1] != 0x25)
        return target;
    memcpy(&offset, code + at + 2, sizeof offset);
    uint64_t slot = target + at + 6 + (uint64_t)(int64_t)offset;
    const struct native_map *map = native_maps_at(&n->maps, slot);
    return map && map->readable && mem_read_u64(&n->mem, slot, &to) == 0 ? to : target;
}

static struct model_frame native_frame(struct native *n, uint64_t ip) {
    const struct native_module *m = native_maps_module(&n->maps, ip);
    return (struct model_frame){
        .kind = MODEL_FRAME_NATIVE, .module = m ? m->path : NULL, .address = m ? ip - m->elf.bias : ip};
}

/* One frame. False if it is not valid; `exact`: the address is of the instruction itself, not
 * behind a call. */
static bool native_put(struct native *n, struct native_walk *w, bool exact) {
    uint64_t ip, sp, target;
    if (unwind_space_get(n->space, &ip, &sp) != 0)
        return false;
    if (ip == 0) {
        w->whole = true; /* the outermost frame's return address */
        return false;
    }
    /* A guess of libunwind's must be behind a call; and a stack grows down: a caller's part of
     * it is above. */
    if ((w->no_info && !exact && !native_is_return(n, ip, &target)) || sp < w->sp)
        return false;
    ip -= !exact;
    if (!native_code_at(n, ip))
        return false;
    w->ip = ip;
    w->sp = sp;
    w->out[w->n++] = native_frame(n, ip);
    return true;
}

/* Follow the chain from the registers of the copy. */
static void native_follow(struct native *n, struct native_walk *w) {
    bool exact = true;
    w->whole = w->no_info = false;
    w->sp = 0;
    w->start = 0;
    if (unwind_space_begin(n->space) != 0)
        return;
    for (int step = 1; step > 0 && w->n < w->cap;) {
        if (!native_put(n, w, exact))
            break;
        exact = unwind_space_is_signal(n->space);
        /* the handler may have had a stack of its own */
        if (exact)
            w->sp = 0;
        step = unwind_space_step(n->space, &w->no_info);
        w->whole = step == 0 && !w->no_info;
    }
    if (!w->whole && w->n)
        w->start = unwind_space_function(n->space);
}

enum native_caller { NATIVE_NO_CALLER, NATIVE_MAYBE_CALLER, NATIVE_CALLER };

/* Whether the function that returns to `ip` has called the last frame. A call of another
 * function is left over from an earlier call; for a call through a pointer it is unknown. */
static enum native_caller native_is_caller(struct native *n, const struct native_walk *w, uint64_t ip) {
    uint64_t target;
    if (!native_code_at(n, ip) || !native_maps_module(&n->maps, ip) || !native_is_return(n, ip, &target))
        return NATIVE_NO_CALLER;
    if (!target)
        return NATIVE_MAYBE_CALLER;
    target = native_through_plt(n, target);
    if (w->start)
        return target == w->start ? NATIVE_CALLER : NATIVE_NO_CALLER;
    return target <= w->ip && w->ip - target < NATIVE_FUNCTION_MAX ? NATIVE_MAYBE_CALLER : NATIVE_NO_CALLER;
}

/* Follow the chain from a return address at `at` of the copied stack. With `frame_pointer`, the
 * word below it is taken for the caller's rbp, as functions with a frame pointer leave it there.
 * True if it leads to the end. */
static bool native_try(struct native *n, struct native_copy *c, struct native_walk *w, size_t at,
                       bool frame_pointer) {
    uint64_t ip, rbp, sp = c->stack_at + at + 8;
    memcpy(&ip, c->stack + at, sizeof ip);
    c->regs[NATIVE_RIP] = ip - 1;
    c->regs[NATIVE_RSP] = sp;
    n->copy.known = 1U << NATIVE_RIP | 1U << NATIVE_RSP;
    if (frame_pointer) {
        if (at < 8)
            return false;
        memcpy(&rbp, c->stack + at - 8, sizeof rbp);
        if (rbp < sp || rbp % 8 != 0 || rbp - c->stack_at >= c->stack_len)
            return false;
        c->regs[NATIVE_RBP] = rbp;
        n->copy.known |= 1U << NATIVE_RBP;
    }
    native_follow(n, w);
    return w->whole;
}

/* The chain broke: hand-written code has no unwind information, and most registers of a sleeping
 * thread are unknown. Search the stack for a caller from which it can be followed to its end.
 * Unless that has certainly called the last frame, a gap is marked in between. */
static void native_bridge(struct native *n, struct native_copy *c, struct native_walk *w) {
    uint64_t regs[NATIVE_REGS], from = (w->sp + 7) & ~7ULL;
    bool found = false;
    memcpy(regs, c->regs, sizeof regs);
    if (w->n + 2 > w->cap || from < c->stack_at)
        return;
    size_t i = (size_t)(from - c->stack_at);
    for (int tries = NATIVE_BRIDGE_TRIES; !found && i + 8 <= c->stack_len && tries > 0; i += 8) {
        uint64_t ip;
        memcpy(&ip, c->stack + i, sizeof ip);
        enum native_caller caller = native_is_caller(n, w, ip);
        for (int with = 1; caller != NATIVE_NO_CALLER && !found && with >= 0; with--) {
            struct native_walk beyond = *w;
            if (!with || caller != NATIVE_CALLER)
                beyond.out[beyond.n++] = (struct model_frame){.kind = MODEL_FRAME_NATIVE};
            found = native_try(n, c, &beyond, i, with);
            if (found)
                *w = beyond;
            tries--;
        }
    }
    memcpy(c->regs, regs, sizeof regs);
}

size_t native_unwind(struct native *n, struct native_copy *c, struct model_frame *out, size_t cap) {
    static const struct unwind_space_limits limits = {.reads = NATIVE_MAX_READS,
                                                      .step_reads = NATIVE_STEP_READS};
    uint64_t began = clock_self_cpu_ns();
    struct native_walk w = {.out = out, .cap = cap - 1};
    if (!(c->known >> NATIVE_RIP & 1) || !c->stack_len || cap < 4)
        return 0;
    n->copy = (struct unwind_space_copy){.regs = c->regs,
                                         .known = c->known,
                                         .stack_at = c->stack_at,
                                         .stack = c->stack,
                                         .stack_len = c->stack_len};
    unwind_space_set(n->space, &n->copy, &limits);
    native_follow(n, &w);
    if (!w.whole && w.n && w.n < w.cap)
        native_bridge(n, c, &w);
    /* The outermost frame stays where it is: the next copy need not go further. */
    c->stack_end = w.whole ? w.sp + NATIVE_BEYOND : 0;
    if (!w.whole && w.n)
        out[w.n++] = (struct model_frame){.kind = MODEL_FRAME_NATIVE};
    n->stats.stacks++;
    n->stats.frames += w.n;
    n->stats.cut += !w.whole;
    n->stats.ns += clock_self_cpu_ns() - began;
    return w.n;
}

/* ---- registers and stack of one moment ----
 *
 * Up to native_copy_asleep everything is async-signal-safe: one call of the kernel, nothing allocated. Registers of a context:
 * sys/ucontext.h of glibc for x86-64. */

#define COPY_PAGE 4096ULL
/* bytes below the stack pointer that belong to the function; System V psABI */
#define COPY_RED_ZONE 128

void native_copy_stack(struct native_copy *c, pid_t pid) {
    uint64_t from = c->regs[NATIVE_RSP] - COPY_RED_ZONE, at = from;
    size_t left = NATIVE_STACK_MAX, n = 0;
    c->stack_at = from;
    c->stack_len = 0;
    if (c->regs[NATIVE_RSP] < COPY_PAGE || c->regs[NATIVE_RSP] >= 1ULL << 47)
        return;
    if (c->stack_end > from && c->stack_end - from < left)
        left = (size_t)(c->stack_end - from);
    /* Page by page: reads as far as the kernel can up to the stack's end. */
    for (size_t got = left; got && n < NATIVE_PIECES; n++) {
        size_t piece = (size_t)(COPY_PAGE - at % COPY_PAGE);
        piece = piece < got ? piece : got;
        c->pieces[n] = (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = piece};
        at += piece;
        got -= piece;
    }
    struct iovec local = {.iov_base = c->stack, .iov_len = left};
    ssize_t got = process_vm_readv(pid, &local, 1, c->pieces, n, 0);
    c->stack_len = got > 0 ? (size_t)got : 0;
}

#ifdef __x86_64__
void native_copy_registers(struct native_copy *c, const void *context) {
    static const uint8_t from[NATIVE_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                              REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    const ucontext_t *uc = context;
    for (size_t i = 0; i < NATIVE_REGS; i++)
        c->regs[i] = (uint64_t)uc->uc_mcontext.gregs[from[i]];
    c->known = (1U << NATIVE_REGS) - 1;
    c->stack_len = 0;
}
#else
void native_copy_registers(struct native_copy *c, const void *context) {
    (void)context;
    c->known = 0;
    c->stack_len = 0;
}
#endif

void native_copy_context(struct native_copy *c, const void *context, pid_t pid) {
    uint64_t began = clock_mono_ns();
    native_copy_registers(c, context);
    if (c->known)
        native_copy_stack(c, pid);
    c->spent_ns = clock_mono_ns() - began;
}

int native_copy_asleep(struct native_copy *c, pid_t pid, pid_t tid) {
    struct procfs_syscall call;
    c->known = 0;
    c->stack_len = 0;
    if (procfs_read_syscall(pid, tid, &call) != 0)
        return -1;
    c->regs[NATIVE_RSP] = call.sp;
    c->regs[NATIVE_RIP] = call.pc;
    c->known = 1U << NATIVE_RSP | 1U << NATIVE_RIP;
    native_copy_stack(c, pid ? pid : getpid());
    return c->stack_len ? 0 : -1;
}
