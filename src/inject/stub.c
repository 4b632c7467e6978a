/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stub: see stub.h. Everything here ends up in one section and is copied into another process.
 *
 * So: no call, table, literal or string outside this section; no relocation; system calls are
 * raw; libc is reached only through addresses in the params. mk/flags.mk gives this file flags
 * of its own.
 */
#include "inject/stub.h"

#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <linux/memfd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif
#define STUB_PR_SET_NAME 15L
#define STUB_CLOCK_MONOTONIC 1L
#define STUB_RTLD_NOW 2
#define STUB_POLL_NS 200000L
#define STUB_EINVAL 22
#define STUB_OUT_NS 10000000000ULL

#define STUB_CODE __attribute__((section("inject_stub"), used, noinline))
#define STUB_INLINE static inline __attribute__((always_inline))

_Static_assert(offsetof(struct stub_params, region) == 0, "used by the assembly below");
_Static_assert(offsetof(struct stub_params, region_size) == 8, "used by the assembly below");
_Static_assert(offsetof(struct stub_params, fn_munmap) == 16, "used by the assembly below");
_Static_assert(offsetof(struct stub_params, syscall_ret) == 24, "used by the assembly below");
_Static_assert(offsetof(struct stub_params, chain_time) == 32, "used by the assembly below");
_Static_assert(offsetof(struct stub_params, out) == 40, "used by the assembly below");
_Static_assert(SYS_ppoll == 271, "used by the assembly below");
_Static_assert(sizeof(struct stub_out) == sizeof(struct pollfd) &&
                   offsetof(struct stub_out, here) == offsetof(struct pollfd, revents),
               "the kernel writes it");

/*
 * inject_stub_borrowed(params): entered on the stack in the region. At the end it switches to
 * the frames on the borrowed thread's own stack and jumps to libc's "syscall; ret" with
 * ppoll(&out, 1, chain_time, NULL, 8). There it sleeps until the injector interrupts it; the
 * kernel then clears `out.here`, when no instruction of the region will be run by this thread
 * any more. Nobody comes: it returns into its frames. ppoll leaves no restart state behind, as
 * nanosleep would: the thread's own interrupted call has to find what it left there.
 *
 * inject_stub_thread(params): start routine of the created thread. When the region is not the
 * agent's it jumps to libc's munmap with a return address outside of it on the stack: no
 * instruction runs here after the pages are gone.
 */
__asm__(".pushsection inject_stub, \"ax\", @progbits\n"
        ".globl inject_stub_borrowed\n"
        ".hidden inject_stub_borrowed\n"
        "inject_stub_borrowed:\n"
        "    endbr64\n"
        "    cld\n"
        "    mov %rdi, %rbx\n"
        "    call stub_borrow\n"
        "    mov %rax, %rsp\n"
        "    mov $271, %eax\n"
        "    lea 40(%rbx), %rdi\n"
        "    mov $1, %esi\n"
        "    mov 32(%rbx), %rdx\n"
        "    xor %r10d, %r10d\n"
        "    mov $8, %r8d\n"
        "    mov 24(%rbx), %rcx\n"
        "    jmp *%rcx\n"
        ".globl inject_stub_thread\n"
        ".hidden inject_stub_thread\n"
        "inject_stub_thread:\n"
        "    endbr64\n"
        "    push %rbx\n"
        "    mov %rdi, %rbx\n"
        "    call stub_thread\n"
        "    test %eax, %eax\n"
        "    jz 1f\n"
        "    mov 0(%rbx), %rdi\n"
        "    mov 8(%rbx), %rsi\n"
        "    mov 16(%rbx), %rax\n"
        "    pop %rbx\n"
        "    jmp *%rax\n"
        "1:  pop %rbx\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        ".popsection\n");

uint64_t stub_borrow(struct stub_params *p) __attribute__((visibility("hidden")));
int stub_thread(struct stub_params *p) __attribute__((visibility("hidden")));

STUB_INLINE long stub_syscall(long nr, long a, long b, long c, long d) {
    long ret;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return ret;
}

STUB_INLINE int32_t stub_get(const int32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }

STUB_INLINE void stub_set(int32_t *at, int32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

STUB_INLINE uint64_t stub_now(void) {
    struct {
        long sec, nsec;
    } ts;
    stub_syscall(SYS_clock_gettime, STUB_CLOCK_MONOTONIC, (long)&ts, 0, 0);
    return (uint64_t)ts.sec * 1000000000ULL + (uint64_t)ts.nsec;
}

/* Only for the created thread: nanosleep uses restart state that the borrowed thread must keep. */
STUB_INLINE void stub_pause(void) {
    struct {
        long sec, nsec;
    } ts;
    ts.sec = 0;
    ts.nsec = STUB_POLL_NS;
    stub_syscall(SYS_nanosleep, (long)&ts, 0, 0, 0);
}

STUB_INLINE char *stub_put_text(char *to, const char *end, uint64_t word) {
    for (; word && to < end; word >>= 8)
        *to++ = (char)(word & 0xff);
    return to;
}

STUB_INLINE char *stub_put_number(char *to, const char *end, uint32_t n) {
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    while (count > 0 && to < end)
        *to++ = digits[--count];
    return to;
}

/* Up to eight characters as one integer: a literal string would be outside the section. */
#define STUB_TEXT(a, b, c, d, e, f, g, h)                                                                    \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | (uint64_t)(e) << 32 |  \
     (uint64_t)(f) << 40 | (uint64_t)(g) << 48 | (uint64_t)(h) << 56)

/* /proc/self/task/TID/fd/FD. Unlike with /proc/self/fd/FD, no later dlopen can mean another file
 * by the same name (the loader knows libraries by the names they were opened with). */
STUB_INLINE void stub_make_path(struct stub_params *p) {
    char *end = p->path + sizeof p->path - 1, *at = p->path;
    at = stub_put_text(at, end, STUB_TEXT('/', 'p', 'r', 'o', 'c', '/', 's', 'e'));
    at = stub_put_text(at, end, STUB_TEXT('l', 'f', '/', 't', 'a', 's', 'k', '/'));
    at = stub_put_number(at, end, (uint32_t)p->tid);
    at = stub_put_text(at, end, STUB_TEXT('/', 'f', 'd', '/', 0, 0, 0, 0));
    at = stub_put_number(at, end, (uint32_t)p->fd);
    *at = 0;
}

STUB_INLINE void stub_copy_error(struct stub_params *p, const char *text) {
    char *to = p->start.error, *end = to + sizeof p->start.error - 1;
    while (text && *text && to < end)
        *to++ = *text++;
    *to = 0;
}

/* On the borrowed thread: create the other one. Then the region belongs to that one, and the way
 * back of this one does not unmap it. Returns the stack pointer for leaving. */
STUB_CODE uint64_t stub_borrow(struct stub_params *p) {
    int *(*errno_location)(void) = (int *(*)(void))p->fn_errno_location;
    int (*attr_init)(void *) = (int (*)(void *))p->fn_attr_init;
    int (*attr_setstacksize)(void *, unsigned long) = (int (*)(void *, unsigned long))p->fn_attr_setstacksize;
    int (*attr_destroy)(void *) = (int (*)(void *))p->fn_attr_destroy;
    int (*create)(uint64_t *, const void *, uint64_t, void *) =
        (int (*)(uint64_t *, const void *, uint64_t, void *))p->fn_pthread_create;
    int *where = errno_location();
    int kept = *where;
    int rc = attr_init(p->attr);
    if (rc == 0) {
        attr_setstacksize(p->attr, p->stack_size); /* on failure the default is good enough */
        rc = create(&p->thread, p->attr, p->thread_fn, p);
        attr_destroy(p->attr);
    }
    *where = kept;
    p->create_errno = rc;
    stub_set(&p->created, 1);
    return rc == 0 ? p->chain_back : p->chain_release;
}

/* On the created thread: wait until the borrowed one has left the region. 0, or -1 if it does
 * not leave. */
STUB_INLINE int stub_await_out(struct stub_params *p) {
    uint64_t until = stub_now() + STUB_OUT_NS;
    while (__atomic_load_n(&p->out.here, __ATOMIC_ACQUIRE)) {
        if (stub_now() > until)
            return -1;
        stub_pause();
    }
    return 0;
}

/* Wait for the injector to set `flag`. 0, or -1 if it cancelled or shows no sign of life. */
STUB_INLINE int stub_await(struct stub_params *p, const int32_t *flag) {
    uint64_t until = stub_now() + p->go_wait_ns;
    int32_t pulse = stub_get(&p->pulse);
    while (!stub_get(flag)) {
        uint64_t now = stub_now();
        if (stub_get(&p->cancel) || now > until)
            return -1;
        if (stub_get(&p->pulse) != pulse) {
            pulse = stub_get(&p->pulse);
            until = now + p->go_wait_ns;
        }
        stub_pause();
    }
    return stub_get(&p->cancel) ? -1 : 0;
}

STUB_INLINE int stub_make_file(struct stub_params *p) {
    long fd = stub_syscall(SYS_memfd_create, (long)p->file_name, MFD_CLOEXEC | MFD_EXEC, 0, 0);
    if (fd == -STUB_EINVAL) /* a kernel without MFD_EXEC */
        fd = stub_syscall(SYS_memfd_create, (long)p->file_name, MFD_CLOEXEC, 0, 0);
    if (fd < 0) {
        p->sys_errno = (int32_t)-fd;
        return -1;
    }
    p->fd = (int32_t)fd;
    return 0;
}

STUB_INLINE int stub_start(struct stub_params *p, uint64_t entry) {
    uint64_t (*self)(void) = (uint64_t(*)(void))p->fn_pthread_self;
    int (*start)(struct agent_start *) = (int (*)(struct agent_start *))entry;
    p->start.size = sizeof p->start;
    p->start.abi_version = AGENT_ABI_VERSION;
    p->start.region = p->region;
    p->start.region_size = p->region_size;
    p->start.thread = self();
    p->start.fd = p->fd;
    /* A canceller reads the phase after cancelling, and we do the reverse, so one of us sees the
     * other: what was cancelled before STUB_STARTING never starts. */
    __atomic_store_n(&p->phase, STUB_STARTING, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (stub_get(&p->cancel))
        return STUB_CANCELLED;
    int rc = start(&p->start);
    return rc == AGENT_STARTED ? STUB_STARTED : rc == AGENT_ALREADY ? STUB_ALREADY : STUB_REFUSED;
}

STUB_INLINE int stub_load(struct stub_params *p) {
    void *(*open)(const char *, int) = (void *(*)(const char *, int))p->fn_dlopen;
    void *(*sym)(void *, const char *) = (void *(*)(void *, const char *))p->fn_dlsym;
    const char *(*error)(void) = (const char *(*)(void))p->fn_dlerror;
    int (*close)(void *) = (int (*)(void *))p->fn_dlclose;
    if (stub_make_file(p) != 0)
        return STUB_NO_MEMFD;
    stub_make_path(p);
    stub_set(&p->phase, STUB_WAITING);
    if (stub_await(p, &p->go) != 0)
        return STUB_CANCELLED;
    stub_set(&p->phase, STUB_LOADING);
    void *handle = open(p->path, STUB_RTLD_NOW);
    if (!handle) {
        stub_copy_error(p, error());
        return STUB_NO_LOAD;
    }
    uint64_t entry = (uint64_t)sym(handle, p->symbol);
    int result = entry ? stub_start(p, entry) : STUB_NO_ENTRY;
    if (!entry || result == STUB_CANCELLED)
        close(handle); /* nothing of it ran */
    return result;
}

/* On the created thread. 1 if the caller has to unmap the region, 0 if the agent will. */
STUB_CODE int stub_thread(struct stub_params *p) {
    int (*detach)(uint64_t) = (int (*)(uint64_t))p->fn_pthread_detach;
    uint64_t (*self)(void) = (uint64_t(*)(void))p->fn_pthread_self;
    stub_syscall(SYS_prctl, STUB_PR_SET_NAME, (long)p->thread_name, 0, 0);
    p->fd = -1;
    p->tid = (int32_t)stub_syscall(SYS_gettid, 0, 0, 0, 0);
    if (stub_await_out(p) != 0) {
        detach(self());
        return 0; /* a debugger stopped the other thread in the region: it stays */
    }
    stub_set(&p->phase, STUB_BORN);
    int result;
    if (!p->entry)
        result = stub_load(p);
    else if (stub_await(p, &p->go) == 0)
        result = stub_start(p, p->entry);
    else
        result = STUB_CANCELLED;
    p->result = result;
    stub_set(&p->phase, STUB_DONE);
    if (result != STUB_CANCELLED)
        stub_await(p, &p->ack);
    if (result == STUB_STARTED)
        return 0;
    if (p->fd >= 0)
        stub_syscall(SYS_close, p->fd, 0, 0, 0);
    detach(self());
    return 1;
}
