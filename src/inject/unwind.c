/* SPDX-License-Identifier: Apache-2.0 */
/* unwind: see unwind.h. Accessors: libunwind(3), unw_create_addr_space(3). */
#include "inject/unwind.h"

#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "base/clock.h"

#define UNWIND_PAGE 4096U
#define UNWIND_PAGES 1024U

/* Part of libunwind's remote library, though not of its headers: finds the FDE in a table in the target. */
#define unwind_search_table UNW_OBJ(dwarf_search_unwind_table)
extern int unwind_search_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
                               int need_unwind_info, void *arg);

struct unwinder {
    struct target *t;
    unw_addr_space_t space;
    const struct unwind_copy *copy;
    uint64_t deadline; /* 0 none */
    bool out_of_time;
    bool
        no_info; /* a frame without unwind information was met: libunwind then guesses by the frame pointer */
    uint64_t page_at[UNWIND_PAGES]; /* address + 1, 0 free */
    uint8_t pages[UNWIND_PAGES][UNWIND_PAGE];
};

static bool unwinder_is_late(struct unwinder *u) {
    if (u->deadline && clock_mono_ns() > u->deadline)
        u->out_of_time = true;
    return u->out_of_time;
}

/* The word at `addr` (aligned by libunwind) through the cache. */
static int unwinder_read_cached(struct unwinder *u, uint64_t addr, unw_word_t *out) {
    uint64_t page = addr & ~(uint64_t)(UNWIND_PAGE - 1);
    size_t slot = (size_t)((page / UNWIND_PAGE) % UNWIND_PAGES);
    if (u->page_at[slot] != page + 1) {
        if (unwinder_is_late(u))
            return -UNW_EUNSPEC;
        u->page_at[slot] = 0;
        if (mem_read(&u->t->mem, page, u->pages[slot], UNWIND_PAGE) != 0)
            return -UNW_EINVAL;
        u->page_at[slot] = page + 1;
    }
    memcpy(out, u->pages[slot] + (addr - page), sizeof *out);
    return 0;
}

static int unwind_access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg) {
    struct unwinder *u = arg;
    const struct unwind_copy *c = u->copy;
    (void)as;
    if (write)
        return -UNW_EINVAL;
    if (c->stack_len >= sizeof *val && addr >= c->stack_at &&
        addr - c->stack_at <= c->stack_len - sizeof *val) {
        memcpy(val, c->stack + (addr - c->stack_at), sizeof *val);
        return 0;
    }
    const struct target_map *map = target_map_at(u->t, addr);
    if (!map || !map->readable)
        return -UNW_EINVAL;
    if (map->image >= 0 && (addr & (UNWIND_PAGE - 1)) <= UNWIND_PAGE - sizeof *val)
        return unwinder_read_cached(u, addr, val);
    uint64_t word;
    if (mem_read_u64(&u->t->mem, addr, &word) != 0)
        return -UNW_EINVAL;
    *val = word;
    return 0;
}

static int unwind_access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg) {
    const struct user_regs_struct *r = &((struct unwinder *)arg)->copy->regs;
    (void)as;
    if (write)
        return -UNW_EREADONLYREG;
    const unsigned long long regs[] = {
        [UNW_X86_64_RAX] = r->rax, [UNW_X86_64_RDX] = r->rdx, [UNW_X86_64_RCX] = r->rcx,
        [UNW_X86_64_RBX] = r->rbx, [UNW_X86_64_RSI] = r->rsi, [UNW_X86_64_RDI] = r->rdi,
        [UNW_X86_64_RBP] = r->rbp, [UNW_X86_64_RSP] = r->rsp, [UNW_X86_64_R8] = r->r8,
        [UNW_X86_64_R9] = r->r9,   [UNW_X86_64_R10] = r->r10, [UNW_X86_64_R11] = r->r11,
        [UNW_X86_64_R12] = r->r12, [UNW_X86_64_R13] = r->r13, [UNW_X86_64_R14] = r->r14,
        [UNW_X86_64_R15] = r->r15, [UNW_X86_64_RIP] = r->rip,
    };
    if (reg < 0 || (size_t)reg >= sizeof regs / sizeof regs[0])
        return -UNW_EBADREG;
    *val = regs[reg];
    return 0;
}

static int unwind_access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write,
                               void *arg) {
    (void)as, (void)reg, (void)val, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int unwind_find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
                                 void *arg) {
    struct unwinder *u = arg;
    struct target_image *img = target_image_at(u->t, ip);
    if (!img || !img->unwind_count) {
        u->no_info = true;
        return -UNW_ENOINFO;
    }
    unw_dyn_info_t di;
    memset(&di, 0, sizeof di);
    di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    di.start_ip = img->elf.text_start;
    di.end_ip = img->elf.text_end;
    di.u.rti.segbase = img->elf.eh_frame_hdr;
    di.u.rti.table_data = img->unwind_table;
    di.u.rti.table_len = img->unwind_count; /* entries of two 32-bit words: as many words of 64 */
    int rc = unwind_search_table(as, ip, &di, pi, need, arg);
    if (rc < 0)
        u->no_info = true;
    return rc;
}

static void unwind_put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg) {
    (void)as, (void)pi, (void)arg;
}

static int unwind_no_dyn_info(unw_addr_space_t as, unw_word_t *list, void *arg) {
    (void)as, (void)list, (void)arg;
    return -UNW_ENOINFO;
}

static int unwind_no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg) {
    (void)as, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int unwind_no_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t cap, unw_word_t *off,
                          void *arg) {
    (void)as, (void)addr, (void)buf, (void)cap, (void)off, (void)arg;
    return -UNW_ENOINFO;
}

struct unwinder *unwinder_new(struct target *t) {
    static unw_accessors_t accessors = {
        .find_proc_info = unwind_find_proc_info,
        .put_unwind_info = unwind_put_unwind_info,
        .get_dyn_info_list_addr = unwind_no_dyn_info,
        .access_mem = unwind_access_mem,
        .access_reg = unwind_access_reg,
        .access_fpreg = unwind_access_fpreg,
        .resume = unwind_no_resume,
        .get_proc_name = unwind_no_name,
    };
    struct unwinder *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->t = t;
    u->space = unw_create_addr_space(&accessors, 0);
    if (!u->space) {
        free(u);
        return NULL;
    }
    (void)unw_set_caching_policy(u->space, UNW_CACHE_GLOBAL);
    return u;
}

void unwinder_free(struct unwinder *u) {
    if (!u)
        return;
    unw_destroy_addr_space(u->space);
    free(u);
}

static void unwind_note(struct unwind_result *out, enum target_place place) {
    if (place > out->worst)
        out->worst = place;
}

/* The chain broke at `ip`, which was not the outermost function: what is further out cannot be seen. Code of libc or the
 * loader is refused then; other code (compiled at run time, hand-written loops) is not called by what we look for. */
static void unwind_note_broken(struct unwinder *u, uint64_t ip, struct unwind_result *out) {
    const struct target_map *map = target_map_at(u->t, ip);
    bool libc = map && map->image >= 0 && (map->image == u->t->libc || map->image == u->t->libpthread);
    unwind_note(out, libc ? TARGET_THREADS : TARGET_UNKNOWN_CODE);
}

void unwinder_run(struct unwinder *u, const struct unwind_copy *copy, uint64_t budget_ns,
                  struct unwind_result *out) {
    unw_cursor_t cursor;
    *out = (struct unwind_result){.worst = TARGET_PLAIN};
    u->copy = copy;
    u->out_of_time = false;
    u->deadline = budget_ns ? clock_mono_ns() + budget_ns : 0;
    int step = unw_init_remote(&cursor, u->space, u) == 0 ? 1 : -1;
    uint64_t ip = copy->regs.rip, sp = copy->regs.rsp;
    while (step > 0 && out->frames < UNWIND_MAX_FRAMES) {
        unw_word_t w_ip, w_sp;
        if (unw_get_reg(&cursor, UNW_REG_IP, &w_ip) != 0 || unw_get_reg(&cursor, UNW_REG_SP, &w_sp) != 0)
            break;
        if (w_ip == 0)
            break; /* the outermost frame's return address */
        ip = out->frames == 0 ? w_ip : w_ip - 1;
        sp = w_sp > sp ? w_sp : sp;
        const struct target_map *map = target_map_at(u->t, ip);
        if (!map || !map->executable) {
            step = -1;
            break;
        }
        unwind_note(out, target_place_at(u->t, ip));
        if (unw_is_signal_frame(&cursor) > 0)
            unwind_note(out, TARGET_SIGNAL);
        out->frames++;
        if (unwinder_is_late(u))
            break;
        u->no_info = false;
        step = unw_step(&cursor);
        if (u->no_info)
            unwind_note_broken(u, ip, out);
    }
    out->out_of_time = u->out_of_time;
    if (step < 0)
        unwind_note_broken(u, ip, out);
    out->stack_used = sp > copy->stack_at && sp - copy->stack_at < copy->stack_len
                          ? (size_t)(sp - copy->stack_at)
                          : copy->stack_len;
    u->copy = NULL;
}
