/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alt_stack: see alt_stack.h. That rt_sigreturn restores uc_stack: restore_altstack in
 * kernel/signal.c.
 */
#include "agent/sampler/alt_stack.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/sampler/stack_headroom.h"
#include "base/clock.h"
#include "base/mem.h"

#define ALT_STACK_MAX 256
#define ALT_STACK_FULL_NS CLOCK_NS_PER_S /* and is not looked for so soon again */
#define ALT_STACK_GUARD 4096U
/* Handlers of the job with SA_ONSTACK run on it, too; a Go runtime uses what it finds for its own
 * and needs 32 KiB. What is not touched costs nothing. */
#define ALT_STACK_BYTES ((size_t)128 * 1024)
#define ALT_STACK_TOUCHED 16384U
/* What handlers need beside the kernel's frames: ours, and one of the job below it. The stack that
 * faulthandler makes has it. */
#define ALT_STACK_HANDLERS 4096U
/* At the lowest address, where nothing gets: whoever unmaps the stack of a thread that ends (some
 * runtimes do) takes it with it. */
#define ALT_STACK_MARK 0x6b63617473746c61ULL

static struct alt_stacks {
    struct alt_stack {
        int64_t tid;
        uint8_t *memory;
    } items[ALT_STACK_MAX];
    size_t n;
    size_t needed;    /* of a stack that is not ours */
    uint64_t full_ns; /* when none was free; 0: one was */
} alt_stacks;

static bool alt_stack_is_gone(int64_t tid) {
    return syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) != 0 && errno == ESRCH;
}

static bool alt_stack_is_marked(const uint8_t *memory) {
    uint64_t mark = 0;
    struct mem m;
    mem_init_process(&m, getpid());
    bool is_there = mem_read(&m, (uint64_t)(uintptr_t)memory, &mark, sizeof mark) == 0;
    mem_fini(&m);
    return is_there && mark == ALT_STACK_MARK;
}

static uint8_t *alt_stack_map(void) {
    uint64_t mark = ALT_STACK_MARK;
    uint8_t *p = mmap(NULL, ALT_STACK_GUARD + ALT_STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mprotect(p, ALT_STACK_GUARD, PROT_NONE) != 0) {
        munmap(p, ALT_STACK_GUARD + ALT_STACK_BYTES);
        return NULL;
    }
    memcpy(p + ALT_STACK_GUARD, &mark, sizeof mark);
    return p + ALT_STACK_GUARD;
}

/* One whose thread is gone, and which nobody has taken away with it. */
static struct alt_stack *alt_stack_find_free(void) {
    for (size_t i = 0; i < alt_stacks.n; i++) {
        struct alt_stack *s = &alt_stacks.items[i];
        if (!alt_stack_is_gone(s->tid))
            continue;
        if (alt_stack_is_marked(s->memory))
            return s;
        uint8_t *memory = alt_stack_map();
        s->memory = memory ? memory : s->memory;
        return memory ? s : NULL;
    }
    return NULL;
}

void *alt_stack_of(int64_t tid) {
    alt_stacks.needed = 2 * stack_headroom_frame() + ALT_STACK_HANDLERS;
    for (size_t i = 0; i < alt_stacks.n; i++)
        if (alt_stacks.items[i].tid == tid)
            return alt_stack_is_marked(alt_stacks.items[i].memory) ? alt_stacks.items[i].memory : NULL;
    uint64_t now = clock_mono_ns();
    if (alt_stacks.full_ns && now - alt_stacks.full_ns < ALT_STACK_FULL_NS)
        return NULL;
    struct alt_stack *s = alt_stack_find_free();
    if (!s && alt_stacks.n < ALT_STACK_MAX) {
        uint8_t *memory = alt_stack_map();
        if (!memory)
            return NULL;
        s = &alt_stacks.items[alt_stacks.n++];
        s->memory = memory;
    }
    alt_stacks.full_ns = s ? 0 : now;
    if (!s)
        return NULL;
    s->tid = tid;
    return s->memory;
}

enum alt_stack_state alt_stack_install(void *memory, void *context) {
    stack_t *stack = &((ucontext_t *)context)->uc_stack;
    if (stack->ss_size && !(stack->ss_flags & SS_DISABLE))
        return stack->ss_size >= alt_stacks.needed ? ALT_STACK_READY : ALT_STACK_UNFIT;
    if (memory)
        *stack = (stack_t){.ss_sp = memory, .ss_size = ALT_STACK_BYTES};
    return ALT_STACK_NONE;
}

void alt_stack_in_child(void) { alt_stacks = (struct alt_stacks){.n = 0}; }

size_t alt_stack_bytes(void) { return alt_stacks.n * ALT_STACK_TOUCHED; }
