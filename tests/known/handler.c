/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handler: where the time of a thread's copy of its own frames goes. The calling thread copies itself, in its usual context, many
 * times, with warm caches or after they were emptied, as a job's work between two samples does; the parts are measured alone.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/stack_headroom.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "pystack/pystack.h"
#include "pystack/self.h"

#define HANDLER_MOST 1001
#define HANDLER_CACHE_BYTES ((size_t)16 << 20)
#define HANDLER_LINE 64
/* Copies, and the time between them, until the decoder believes the code: the handler need not describe it then. */
#define HANDLER_WARMUPS 12
#define HANDLER_WARMUP_NS (40 * (long)CLOCK_NS_PER_MS)

/* In nanoseconds; medians. */
struct handler_cost {
    double whole;    /* the copy */
    double kernel;   /* the copy when nothing may be read directly */
    double read;     /* of that the kernel's reading of all pieces */
    double ranges;   /* the same of only what frames took in these pieces */
    double direct;   /* those frames without the kernel */
    double delivery; /* of a signal to this thread, and the return from it */
    double empty;    /* a call of the kernel that reads 8 bytes */
    double frames, pieces, bytes, range_bytes, reads;
};

/* Times each part so often, HANDLER_MOST at most. 0, or -1 and a line on stderr. */
__attribute__((visibility("default"))) int handler_measure(int is_cold, int times, struct handler_cost *out);

static struct {
    struct pystack *ps;
    struct pystack_thread thread;
    struct pystack_known known;
    struct pystack_self self;
    struct stack_headroom_stack stack; /* high 0: nothing may be read directly */
    struct iovec ranges[PYSTACK_SELF_REGIONS];
    size_t n_ranges;
    uint8_t *cache;
    uint8_t bytes[PYSTACK_SELF_BYTES];
    double spent[HANDLER_MOST];
    size_t times;
} handler;

static void handler_nothing(int sig) { (void)sig; }

static void handler_empty_caches(void) {
    for (size_t i = 0; i < HANDLER_CACHE_BYTES; i += HANDLER_LINE)
        handler.cache[i]++;
}

static void handler_copy(void) { pystack_self_copy(&handler.self, (uintptr_t)__builtin_frame_address(0)); }

static void handler_read_pieces(const struct iovec *pieces, size_t n) {
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += pieces[i].iov_len;
    struct iovec to = {.iov_base = handler.bytes, .iov_len = len};
    (void)process_vm_readv(getpid(), &to, 1, pieces, n, 0);
}

static void handler_read(void) { handler_read_pieces(handler.self.remote, handler.self.n_regions); }

static void handler_read_ranges(void) { handler_read_pieces(handler.ranges, handler.n_ranges); }

static void handler_read_directly(void) {
    size_t size = (size_t)handler.self.reader.off.frame_size;
    for (size_t i = 0; i < handler.self.n_frames; i++)
        memcpy(handler.bytes + i % 64 * size, (const void *)(uintptr_t)handler.self.frames[i].addr, size);
}

static void handler_send(void) { (void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGUSR2); }

static void handler_call_kernel(void) {
    struct iovec piece = {.iov_base = &handler.ps, .iov_len = sizeof handler.ps};
    handler_read_pieces(&piece, 1);
}

static int handler_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double handler_median(void (*part)(void), int is_cold) {
    for (size_t i = 0; i < handler.times; i++) {
        if (is_cold)
            handler_empty_caches();
        uint64_t from = clock_mono_ns();
        part();
        handler.spent[i] = (double)(clock_mono_ns() - from);
    }
    qsort(handler.spent, handler.times, sizeof handler.spent[0], handler_order);
    return handler.spent[handler.times / 2];
}

static int handler_find(void) {
    struct arena arena;
    struct pystack_thread *threads;
    int rc = -1;
    arena_init(&arena, 1 << 20);
    ssize_t n = pystack_read_threads(handler.ps, &arena, &threads);
    for (ssize_t i = 0; i < n; i++)
        if (threads[i].tid == syscall(SYS_gettid)) {
            handler.thread = threads[i];
            handler.thread.name = NULL;
            rc = 0;
        }
    arena_fini(&arena);
    return rc;
}

static void handler_prepare(void) {
    pystack_self_prepare(handler.ps, &handler.self, &handler.thread, &handler.known);
    handler.self.stack_low = handler.stack.own;
    handler.self.stack_high = handler.stack.high;
    if (handler.stack.high == 0) {
        handler.self.attached = 0;
        handler.self.resident = (struct pystack_self_span){0};
    }
}

/* As the sampler does, a thread that runs no Python makes the first preparation. */
static void *handler_begin(void *arg) {
    (void)arg;
    handler.stack.high = 0;
    handler_prepare();
    return NULL;
}

static int handler_choose(bool directly) {
    pthread_t thread;
    memset(&handler.self, 0, sizeof handler.self);
    if (pthread_create(&thread, NULL, handler_begin, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return -1;
    handler.self.thread.tstate = 0; /* of no thread yet */
    return !directly || stack_headroom_find(handler.thread.tid, (uint64_t)pthread_self(), clock_mono_ns(),
                                            &handler.stack)
               ? 0
               : -1;
}

/* One copy as the sampler has it made: with what is known of the last one. */
static int handler_warm(void) {
    for (int i = 0; i < HANDLER_WARMUPS; i++) {
        struct arena arena;
        struct model_frame *frames;
        bool truncated;
        uint64_t unknown = 0;
        arena_init(&arena, 1 << 20);
        handler_prepare();
        handler_copy();
        ssize_t n = pystack_self_decode(handler.ps, &handler.self, &handler.known, &arena, &frames,
                                        &truncated, &unknown);
        arena_fini(&arena);
        if (n <= 0)
            return -1;
        (void)nanosleep(&(struct timespec){.tv_nsec = HANDLER_WARMUP_NS}, NULL);
    }
    handler_prepare();
    handler_copy();
    return handler.self.end == PYSTACK_SELF_WHOLE ? 0 : -1;
}

/* What frames took of each piece, from the first to the last of them; a piece that has none has its first bytes read. */
static double handler_find_ranges(void) {
    const struct pystack_self *s = &handler.self;
    double bytes = 0;
    handler.n_ranges = s->n_regions;
    for (size_t k = 0; k < s->n_regions; k++) {
        uint64_t first = UINT64_MAX, end = 0, from = s->regions[k].addr, to = from + s->regions[k].len;
        for (size_t i = 0; i < s->n_frames; i++) {
            uint64_t addr = s->frames[i].addr;
            if (addr < from || addr >= to)
                continue;
            first = addr < first ? addr : first;
            end = addr + (uint64_t)s->reader.off.frame_size > end ? addr + (uint64_t)s->reader.off.frame_size
                                                                  : end;
        }
        if (end == 0)
            first = from, end = from + (s->regions[k].len < 256 ? s->regions[k].len : 256);
        end = end < to ? end : to;
        handler.ranges[k] =
            (struct iovec){.iov_base = (void *)(uintptr_t)first, .iov_len = (size_t)(end - first)};
        bytes += (double)(end - first);
    }
    return bytes;
}

int handler_measure(int is_cold, int times, struct handler_cost *out) {
    struct sigaction nothing = {.sa_handler = handler_nothing, .sa_flags = SA_RESTART};
    struct err e = {0};
    handler.times = times > 0 && times < HANDLER_MOST ? (size_t)times : HANDLER_MOST;
    if (!handler.ps)
        handler.ps = pystack_open(0, &e);
    if (!handler.cache)
        handler.cache = calloc(1, HANDLER_CACHE_BYTES);
    if (!handler.ps || !handler.cache || handler_find() != 0 || handler_choose(false) != 0 ||
        handler_warm() != 0 || sigaction(SIGUSR2, &nothing, NULL) != 0) {
        (void)fprintf(stderr, "handler: this thread cannot copy itself %s\n", e.text);
        return -1;
    }
    double range_bytes = handler_find_ranges();
    *out = (struct handler_cost){.kernel = handler_median(handler_copy, is_cold),
                                 .read = handler_median(handler_read, is_cold),
                                 .ranges = handler_median(handler_read_ranges, is_cold),
                                 .direct = handler_median(handler_read_directly, is_cold),
                                 .delivery = handler_median(handler_send, is_cold),
                                 .empty = handler_median(handler_call_kernel, is_cold),
                                 .frames = (double)handler.self.n_frames,
                                 .pieces = (double)handler.self.n_regions,
                                 .bytes = (double)handler.self.n_bytes,
                                 .range_bytes = range_bytes};
    if (handler_choose(true) != 0 || handler_warm() != 0)
        return -1;
    out->whole = handler_median(handler_copy, is_cold);
    out->reads = (double)handler.self.reads;
    return 0;
}
