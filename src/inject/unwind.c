/* SPDX-License-Identifier: Apache-2.0 */
/* unwind: see unwind.h. */
#include "inject/unwind.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/unwind_space.h"

#define UNWIND_PAGES 1024

struct unwinder {
    struct target *t;
    struct unwind_space *space;
};

static enum unwind_space_memory unwind_memory(void *arg, uint64_t addr) {
    const struct target_map *map = target_map_at(arg, addr);
    if (!map || !map->readable)
        return UNWIND_SPACE_FORBIDDEN;
    return map->image >= 0 ? UNWIND_SPACE_STEADY : UNWIND_SPACE_CHANGING;
}

static bool unwind_table(void *arg, uint64_t addr, struct unwind_space_table *out) {
    const struct target_image *img = target_image_at(arg, addr);
    if (!img || !img->unwind_count)
        return false;
    *out = (struct unwind_space_table){.text_start = img->elf.text_start,
                                       .text_end = img->elf.text_end,
                                       .header = img->elf.eh_frame_hdr,
                                       .entries = img->unwind_table,
                                       .n_entries = img->unwind_count};
    return true;
}

struct unwinder *unwinder_new(struct target *t) {
    struct unwind_space_target target = {
        .mem = &t->mem, .memory = unwind_memory, .table = unwind_table, .arg = t};
    struct unwinder *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->t = t;
    u->space = unwind_space_new(&target, UNWIND_PAGES, 0);
    if (!u->space) {
        free(u);
        return NULL;
    }
    return u;
}

void unwinder_free(struct unwinder *u) {
    if (!u)
        return;
    unwind_space_free(u->space);
    free(u);
}

static void unwind_note(struct unwind_result *out, enum target_place place) {
    if (place > out->worst)
        out->worst = place;
}

/* The chain broke at `ip`, which was not the outermost function: what is further out cannot be
 * seen. Code of libc or the loader is refused then; other code (compiled at run time,
 * hand-written loops) is not called by what we look for. */
static void unwind_note_broken(struct unwinder *u, uint64_t ip, struct unwind_result *out) {
    const struct target_map *map = target_map_at(u->t, ip);
    bool libc = map && map->image >= 0 && (map->image == u->t->libc || map->image == u->t->libpthread);
    unwind_note(out, libc ? TARGET_THREADS : TARGET_UNKNOWN_CODE);
}

void unwinder_run(struct unwinder *u, const struct unwind_copy *copy, uint64_t budget_ns,
                  struct unwind_result *out) {
    const struct user_regs_struct *r = &copy->regs;
    const uint64_t regs[UNWIND_SPACE_REGS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
                                              r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
                                              r->r12, r->r13, r->r14, r->r15, r->rip};
    const struct unwind_space_copy all = {.regs = regs,
                                          .known = (1U << UNWIND_SPACE_REGS) - 1,
                                          .stack_at = copy->stack_at,
                                          .stack = copy->stack,
                                          .stack_len = copy->stack_len};
    const struct unwind_space_limits limits = {.deadline_ns = budget_ns ? clock_mono_ns() + budget_ns : 0};
    bool no_info;
    *out = (struct unwind_result){.worst = TARGET_PLAIN};
    unwind_space_set(u->space, &all, &limits);
    int step = unwind_space_begin(u->space) == 0 ? 1 : -1;
    uint64_t ip = copy->regs.rip, sp = copy->regs.rsp;
    while (step > 0 && out->frames < UNWIND_MAX_FRAMES) {
        uint64_t at, top;
        if (unwind_space_get(u->space, &at, &top) != 0)
            break;
        /* the outermost frame's return address */
        if (at == 0)
            break;
        ip = out->frames == 0 ? at : at - 1;
        sp = top > sp ? top : sp;
        const struct target_map *map = target_map_at(u->t, ip);
        if (!map || !map->executable) {
            step = -1;
            break;
        }
        unwind_note(out, target_place_at(u->t, ip));
        if (unwind_space_is_signal(u->space))
            unwind_note(out, TARGET_SIGNAL);
        out->frames++;
        if (unwind_space_is_late(u->space))
            break;
        step = unwind_space_step(u->space, &no_info);
        if (no_info)
            unwind_note_broken(u, ip, out);
    }
    out->out_of_time = unwind_space_ran_out(u->space);
    if (step < 0)
        unwind_note_broken(u, ip, out);
    out->stack_used = sp > copy->stack_at && sp - copy->stack_at < copy->stack_len
                          ? (size_t)(sp - copy->stack_at)
                          : copy->stack_len;
}
