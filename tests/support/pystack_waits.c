/* SPDX-License-Identifier: Apache-2.0 */
/* pystack_waits: see pystack_waits.h. */
#include "support/pystack_waits.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/pystack_values.h"

#define WAITS_STACK 4 /* words of the function's value stack */
#define WAITS_TID 12
#define WAITS_UNIT 5 /* that the function is at */

static uint64_t waits_lock(struct image *img, const char *type, uint64_t sem, uint64_t owner) {
    const struct pystack_offsets *o = img->off;
    uint64_t object = image_type(img, "object", 0, 0, 0);
    uint64_t lock = image_object(img, image_type(img, type, 0, object, 0), 64);
    image_put_u64(img, lock, o->object_size, o->minor >= 14 ? 1 : sem);
    if (owner) {
        image_put_u64(img, lock, o->object_size + 8, owner);
        image_put_u64(img, lock, o->object_size + 16,
                      o->minor < 14); /* how often it is held, or how often more */
    }
    return lock;
}

void image_waits(struct image *img, struct image_waits *out) {
    const struct pystack_offsets *o = img->off;
    image_python(img, &out->py, "x");
    out->lock = waits_lock(img, "_thread.lock", IMAGE_SEM_LOCK, 0);
    out->rlock = waits_lock(img, "_thread.RLock", IMAGE_SEM_RLOCK, IMAGE_IDENT);
    out->entered = waits_lock(img, "_thread.lock", IMAGE_SEM_ENTERED, 0);
    uint64_t object = image_type(img, "object", 0, 0, 0), name = image_alloc(img, 16),
             def = image_alloc(img, 16);
    for (int32_t i = 0; i < 8; i++)
        image_put_u8(img, name, i, (uint8_t) "__exit__"[i]);
    image_put_u64(img, def, 0, name);
    if (o->minor >= 14) {
        out->exits = image_object(img, image_type(img, "method_descriptor", 0, object, 0), 64);
        image_put_u64(img, out->exits, o->object_size + 8, image_ascii(img, "__exit__"));
    } else {
        out->exits = image_object(img, image_type(img, "builtin_function_or_method", 0, object, 0), 64);
        image_put_u64(img, out->exits, o->object_size, def);
        image_put_u64(img, out->exits, o->object_size + 8, out->entered);
    }
    const uint64_t locks[] = {out->lock, out->rlock, out->entered, 0};
    for (size_t i = 0; i < 4; i++) {
        uint64_t entry = image_alloc(img, 64);
        image_put_u64(img, entry, 8, locks[i] ? locks[i] + (uint64_t)o->object_size : 0);
        out->entry[i] = entry + 16;
    }
    const struct image_local locals[] = {{"lock", 0x20, out->lock}, {"again", 0x20, out->rlock}};
    uint64_t code = out->code = image_code(img, "leaf", "/job/leaf.py", 5, 20, 2);
    uint64_t frame = out->frame = image_locals_frame(img, 0, code, locals, 2, 1);
    uint64_t stack = frame + (uint64_t)o->frame_localsplus + 16;
    image_alloc(img, 8 * WAITS_STACK);
    image_put_u32(img, code, o->code_kinds ? o->code_kwonlyargcount + 4 : o->code_flags - 4, WAITS_STACK);
    if (o->code_kinds)
        image_put_u32(img, code, o->code_nlocalsplus, 2);
    else
        image_put_u64(img, frame, o->frame_locals + 8, stack);
    if (o->frame_stackpointer)
        image_put_u64(img, frame, o->frame_stackpointer, stack + 8 * WAITS_STACK);
    image_put_u64(img, stack, 0, out->exits);
    if (o->minor >= 14)
        image_put_u64(img, stack, 8, out->entered);
    if (o->code_kinds)
        image_put_u64(img, code, o->code_flags - 8, image_bytes(img, "", 0));
    image_set_frame(img, &out->py, frame);
}

void image_waits_enter(struct image *img, const struct image_waits *made, uint8_t depth, bool covers) {
    const struct pystack_offsets *o = img->off;
    if (o->code_kinds) {
        /* first unit, units, handler, depth and a bit: of two blocks, one before and one around WAITS_UNIT */
        const uint8_t table[] = {
            0x80, 2, 10, 6, 0x80 | (uint8_t)(covers ? 3 : WAITS_UNIT + 1), 4, 12, (uint8_t)(depth * 2)};
        image_put_u64(img, made->code, o->code_flags - 8, image_bytes(img, table, sizeof table));
        return;
    }
    /* f_iblock, and b_level of the first of f_blockstack: see pystack/blocks.c */
    image_put_u32(img, made->frame, o->frame_localsplus - 248, covers);
    image_put_u32(img, made->frame, o->frame_localsplus - 240 + 8, depth);
}

/* A thread of this process that sleeps: the kernel is asked whether it does. */
static pid_t waits_sleeper;
static sem_t waits_never;

static void *waits_sleep(void *arg) {
    __atomic_store_n(&waits_sleeper, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    sem_wait(&waits_never);
    return arg;
}

static void waits_begin_sleeper(struct procfs_stat *st) {
    pthread_t thread;
    if (!waits_sleeper &&
        (sem_init(&waits_never, 0, 0) != 0 || pthread_create(&thread, NULL, waits_sleep, NULL) != 0))
        abort();
    do {
        st->state = '?';
        if (__atomic_load_n(&waits_sleeper, __ATOMIC_ACQUIRE))
            procfs_read_stat(0, waits_sleeper, st);
    } while (st->state != 'S');
}

int image_waits_read(struct image *img, uint64_t runtime, uint64_t futex, struct model_snapshot *out) {
    struct mem m;
    struct pystack_thread *threads;
    struct model_frame *frames;
    bool torn, truncated;
    memset(out, 0, sizeof *out);
    arena_init(&out->arena, (size_t)4 << 20);
    image_open(img, &m);
    struct pystack *ps = pystack_open_memory(&m, img->off, runtime);
    if (!ps)
        return -1;
    ps->pthread_tid = 0x2d0; /* the search for it asks the kernel */
    ssize_t n = pystack_read_threads(ps, &out->arena, &threads);
    ssize_t count = n > 0 ? pystack_read_frames(ps, threads, &out->arena, &frames, &torn, &truncated) : -1;
    out->threads = arena_calloc(&out->arena, 1, sizeof *out->threads);
    pystack_waits_begin(ps, 1);
    if (count <= 0 || !ps->waits || !out->threads) {
        pystack_close(ps);
        return -1;
    }
    threads->tid = out->threads->tid = WAITS_TID;
    out->threads->has_python = true;
    out->n_threads = 1;
    struct waits_entry *e = &ps->waits->now[ps->waits->n++];
    struct procfs_stat st;
    waits_begin_sleeper(&st);
    *e = (struct waits_entry){.tid = waits_sleeper,
                              .state = 'S',
                              .known = true,
                              .cpu_ns = pystack_thread_cpu(ps, waits_sleeper, &st),
                              .tstate = threads->tstate};
    struct waits_case l = {.ps = ps,
                           .w = ps->waits,
                           .e = e,
                           .t = out->threads,
                           .frames = frames,
                           .places = ps->places,
                           .n = (size_t)count,
                           .call = {.nr = SYS_futex, .args = {futex, FUTEX_WAIT_BITSET}}};
    waits_find_futex(&l);
    pystack_waits_end(ps, threads, (size_t)n, out);
    pystack_close(ps);
    return 0;
}
