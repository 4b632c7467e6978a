/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_space: see unwind_space.h. Accessors: libunwind(3), unw_create_addr_space(3). */
#include "base/unwind_space.h"

#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "base/clock.h"

#define SPACE_PAGE 4096U

/* Part of libunwind's remote library, but not of its headers: finds the FDE in a table in the
 * target. */
#define space_search_table UNW_OBJ(dwarf_search_unwind_table)
extern int space_search_table(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
                              int need_unwind_info, void *arg);

#ifdef __x86_64__
_Static_assert(UNW_X86_64_RAX == 0 && UNW_X86_64_RDX == 1 && UNW_X86_64_RSP == 7 &&
                   UNW_X86_64_RIP == UNWIND_SPACE_REGS - 1,
               "libunwind numbers registers as the psABI does");
#endif

struct space_page {
    uint64_t at; /* address + 1, 0 free */
    uint8_t bytes[SPACE_PAGE];
};

struct unwind_space {
    struct unwind_space_target target;
    unw_addr_space_t space;
    unw_cursor_t cursor, last; /* the frame that was come to, and the one before */
    const struct unwind_space_copy *copy;
    struct unwind_space_limits limits;
    unsigned reads, step_reads;
    bool is_late;
    bool no_info; /* a place without unwind information was met */
    size_t n_pages;
    struct space_page pages[];
};

bool unwind_space_is_late(struct unwind_space *u) {
    if (u->limits.deadline_ns && clock_mono_ns() > u->limits.deadline_ns)
        u->is_late = true;
    return u->is_late;
}

bool unwind_space_ran_out(const struct unwind_space *u) { return u->is_late; }

int unwind_space_read(struct unwind_space *u, uint64_t addr, void *out, size_t len) {
    uint64_t at = addr & ~(uint64_t)(SPACE_PAGE - 1);
    struct space_page *page = &u->pages[at / SPACE_PAGE % u->n_pages];
    if (addr - at > SPACE_PAGE - len)
        return mem_read(u->target.mem, addr, out, len);
    if (page->at != at + 1) {
        if (unwind_space_is_late(u))
            return -1;
        page->at = 0;
        if (mem_read(u->target.mem, at, page->bytes, SPACE_PAGE) != 0)
            return -1;
        page->at = at + 1;
    }
    memcpy(out, page->bytes + (addr - at), len);
    return 0;
}

/* ---- what libunwind asks for ---- */

static int space_access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *val, int write, void *arg) {
    struct unwind_space *u = arg;
    const struct unwind_space_copy *c = u->copy;
    (void)as;
    u->reads++;
    u->step_reads++;
    if (write || (u->limits.reads && u->reads > u->limits.reads) ||
        (u->limits.step_reads && u->step_reads > u->limits.step_reads))
        return -UNW_EINVAL;
    if (c->stack_len >= sizeof *val && addr >= c->stack_at &&
        addr - c->stack_at <= c->stack_len - sizeof *val) {
        memcpy(val, c->stack + (addr - c->stack_at), sizeof *val);
        return 0;
    }
    enum unwind_space_memory memory = u->target.memory(u->target.arg, addr);
    if (memory == UNWIND_SPACE_FORBIDDEN)
        return -UNW_EINVAL;
    int rc = memory == UNWIND_SPACE_STEADY ? unwind_space_read(u, addr, val, sizeof *val)
                                           : mem_read(u->target.mem, addr, val, sizeof *val);
    return rc == 0 ? 0 : -UNW_EINVAL;
}

static int space_access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val, int write, void *arg) {
    const struct unwind_space_copy *c = ((struct unwind_space *)arg)->copy;
    (void)as;
    if (write)
        return -UNW_EREADONLYREG;
    if (reg < 0 || reg >= UNWIND_SPACE_REGS || !(c->known >> reg & 1))
        return -UNW_EBADREG;
    *val = c->regs[reg];
    return 0;
}

static int space_find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
                                void *arg) {
    struct unwind_space *u = arg;
    struct unwind_space_table table;
    if (!u->target.table(u->target.arg, ip, &table)) {
        u->no_info = true;
        return -UNW_ENOINFO;
    }
    unw_dyn_info_t di;
    memset(&di, 0, sizeof di);
    di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    di.start_ip = table.text_start;
    di.end_ip = table.text_end;
    di.u.rti.segbase = table.header;
    di.u.rti.table_data = table.entries;
    di.u.rti.table_len = table.n_entries; /* of two 32-bit words: as many words of 64 */
    int rc = space_search_table(as, ip, &di, pi, need, arg);
    if (rc < 0)
        u->no_info = true;
    return rc;
}

static int space_access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val, int write, void *arg) {
    (void)as, (void)reg, (void)val, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static void space_put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg) {
    (void)as, (void)pi, (void)arg;
}

static int space_no_dyn_info(unw_addr_space_t as, unw_word_t *list, void *arg) {
    (void)as, (void)list, (void)arg;
    return -UNW_ENOINFO;
}

static int space_no_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg) {
    (void)as, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int space_no_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t cap, unw_word_t *off,
                         void *arg) {
    (void)as, (void)addr, (void)buf, (void)cap, (void)off, (void)arg;
    return -UNW_ENOINFO;
}

/* ---- for its owner ---- */

struct unwind_space *unwind_space_new(const struct unwind_space_target *target, size_t pages, size_t rules) {
    static unw_accessors_t accessors = {
        .find_proc_info = space_find_proc_info,
        .put_unwind_info = space_put_unwind_info,
        .get_dyn_info_list_addr = space_no_dyn_info,
        .access_mem = space_access_mem,
        .access_reg = space_access_reg,
        .access_fpreg = space_access_fpreg,
        .resume = space_no_resume,
        .get_proc_name = space_no_name,
    };
    struct unwind_space *u = calloc(1, sizeof *u + pages * sizeof *u->pages);
    if (!u)
        return NULL;
    u->target = *target;
    u->n_pages = pages;
    u->space = unw_create_addr_space(&accessors, 0);
    if (!u->space) {
        free(u);
        return NULL;
    }
    unw_set_caching_policy(u->space, UNW_CACHE_GLOBAL);
    if (rules)
        unw_set_cache_size(u->space, rules, 0);
    return u;
}

void unwind_space_free(struct unwind_space *u) {
    if (!u)
        return;
    unw_destroy_addr_space(u->space);
    free(u);
}

size_t unwind_space_bytes(const struct unwind_space *u) { return sizeof *u + u->n_pages * sizeof *u->pages; }

void unwind_space_flush(struct unwind_space *u) {
    for (size_t i = 0; i < u->n_pages; i++)
        u->pages[i].at = 0;
    unw_flush_cache(u->space, 0, 0);
}

void unwind_space_set(struct unwind_space *u, const struct unwind_space_copy *copy,
                      const struct unwind_space_limits *limits) {
    u->copy = copy;
    u->limits = *limits;
    u->reads = 0;
    u->is_late = false;
}

int unwind_space_begin(struct unwind_space *u) {
    u->no_info = false;
    u->step_reads = 0;
    if (unw_init_remote(&u->cursor, u->space, u) != 0)
        return -1;
    u->last = u->cursor;
    return 0;
}

int unwind_space_get(struct unwind_space *u, uint64_t *ip, uint64_t *sp) {
    unw_word_t at, stack;
    if (unw_get_reg(&u->cursor, UNW_REG_IP, &at) != 0 || unw_get_reg(&u->cursor, UNW_REG_SP, &stack) != 0)
        return -1;
    *ip = at;
    *sp = stack;
    return 0;
}

bool unwind_space_is_signal(struct unwind_space *u) { return unw_is_signal_frame(&u->cursor) > 0; }

int unwind_space_step(struct unwind_space *u, bool *no_info) {
    u->last = u->cursor;
    u->no_info = false;
    u->step_reads = 0;
    int step = unw_step(&u->cursor);
    *no_info = u->no_info;
    return step;
}

uint64_t unwind_space_function(struct unwind_space *u) {
    unw_proc_info_t info;
    return unw_get_proc_info(&u->last, &info) == 0 ? info.start_ip : 0;
}
