/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: see self.h.
 *
 * Sources: Python/ceval.c of 3.11 and 3.12 (the prologue of _PyEval_EvalFrameDefault: a
 * _PyCFrame is linked before its current_frame is set), Include/internal/pycore_frame.h; of 3.13
 * to 3.15 (the same prologue, DISPATCH_INLINED, YIELD_VALUE: frames are filled, then linked),
 * Include/internal/pycore_interpframe.h. Of the same versions Python/pystate.c: who makes, frees
 * and attaches a thread state (_PyThreadState_Attach, detach_thread, _PyThreadState_DeleteCurrent,
 * _PyThreadState_DeleteList) and its chunks (push_chunk, _PyThreadState_PopFrame,
 * tstate_delete_common, _PyThreadState_DeleteExcept); the chunks of 3.11 and 3.12, too.
 */
#include "pystack/self.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "pystack/pystack_internal.h"
#include "pystack/offsets.h"

#define SELF_PAGE 4096ULL
/* at the end of `bytes`: the region that is replaced when all are used */
#define SELF_SPILL (2 * SELF_PAGE)
/* and what a copy begins with takes at most so much */
#define SELF_KEPT_BYTES (PYSTACK_SELF_BYTES - SELF_SPILL - SELF_PAGE)
#define SELF_TSTATE 0 /* regions with a fixed meaning */
#define SELF_GIL 1
#define SELF_GC 2
#define SELF_FIXED 3
/* The kernel needs as long for a piece as for some KiB of it. So what is at most this far from
 * another piece is read with it: on the same page, or on the next one, which has a frame too. */
#define SELF_GAP 512
/* The GIL and the collector's flag are members of one struct: the bytes between them exist. */
#define SELF_STATE_GAP 1024
/* Bytes between the usual position of an entry frame and the one when a generator yields to it. */
#define SELF_TRAMPOLINE 4
#define SELF_ENTRY_BEFORE_OWNER 1 /* 3.11: is_entry is the byte before owner */
#define SELF_CHUNK_HEAD 32        /* of a chunk, up to its size: bytes, at most */
/* datastack_chunk, datastack_top, datastack_limit (Include/cpython/pystate.h) */
#define SELF_LIMIT_BEHIND_CHUNK 16
#define SELF_BASE_FRAME_MINOR 15

bool pystack_self_supports(const struct pystack_info *info) {
    const struct pystack_version *v = pystack_version_find(info->major, info->minor, info->free_threaded);
    return v && v->exact;
}

/* ---- memory that cannot go away ---- */

static void self_add_span(struct pystack_self *s, uint64_t from, uint64_t to) {
    s->spans[s->n_spans++] = (struct pystack_self_span){.from = from, .to = to};
}

static const uint8_t *self_at(uint64_t addr) { return (const uint8_t *)(uintptr_t)addr; }

/* The thread's own stack, from where it was interrupted. Nobody unmaps it while the thread runs on it;
 * of another one (an alternative stack, a fiber's) it is unknown how far it is used. */
static void self_add_stack(struct pystack_self *s, uint64_t stack_pointer) {
    if (stack_pointer >= s->stack_low && stack_pointer < s->stack_high)
        self_add_span(s, stack_pointer, s->stack_high);
}

/* The newest chunk of the data stack. A thread links it after it is mapped and unlinks it before it is
 * unmapped. In between, chunk and limit may be of different ones; so they count if the chunk had that
 * size when it was read, through the kernel. The first chunk stays until the thread state is deleted,
 * whoever runs with it. */
static void self_add_chunk(struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    const uint8_t *tstate = self_at(s->thread.tstate);
    uint64_t chunk = pystack_get_u64(tstate, o->tstate_datastack_chunk);
    uint64_t limit = pystack_get_u64(tstate, o->tstate_datastack_chunk + SELF_LIMIT_BEHIND_CHUNK);
    if (chunk != s->chunk || limit != s->chunk_limit) {
        uint8_t head[SELF_CHUNK_HEAD];
        size_t len = (size_t)o->chunk_size + 8;
        s->reads++;
        if (!pystack_is_pointer(chunk) || limit <= chunk || len > sizeof head ||
            mem_read(&s->reader.mem, chunk, head, len) != 0 ||
            pystack_get_u64(head, o->chunk_size) != limit - chunk)
            return;
        s->is_first_chunk = pystack_get_u64(head, o->chunk_previous) == 0;
        s->chunk = chunk;
        s->chunk_limit = limit;
    }
    if (s->is_attached || s->is_first_chunk)
        self_add_span(s, chunk, limit);
}

/* Bytes that belong to the thread state. In 3.15 the frame in which the chain ends is part of what the
 * thread state is the first member of (_PyThreadStateImpl, Include/internal/pycore_tstate.h). */
static uint64_t self_tstate_size(const struct pystack_offsets *o) {
    return (uint64_t)(o->minor < SELF_BASE_FRAME_MINOR ? o->tstate_size : o->tstate_size + o->frame_size);
}

/* True if the thread is attached with this thread state. Only the thread itself attaches and
 * detaches, so it remains so until the handler returns; and nobody else frees a thread state without
 * the GIL of its interpreter, which the thread has. */
static bool self_has_attached(const struct pystack_self *s, uint64_t ident) {
    return s->attached && pystack_get_u64(self_at(ident + (uint64_t)s->attached), 0) == s->thread.tstate;
}

static bool self_is_within(const struct pystack_self_span *span, uint64_t addr, uint64_t len) {
    return addr >= span->from && addr < span->to && len <= span->to - addr;
}

/* True if the thread state is a variable that stays, and so are the GIL and the collector's flag. It
 * belongs to the thread that has initialised Python, and only this one deletes it, after it has unlinked
 * the chunks: where another thread finalises Python it is cleared, and its chunks are left. */
static bool self_is_resident(const struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    int32_t gil = o->gil_locked > o->gil_last_holder ? o->gil_locked : o->gil_last_holder;
    return self_is_within(&s->resident, s->thread.tstate, self_tstate_size(o)) &&
           (!s->gil || self_is_within(&s->resident, s->gil, (uint64_t)gil + 8)) &&
           (!s->gc || self_is_within(&s->resident, s->gc, 4));
}

/* True if the thread state cannot go away before the handler returns, and is this thread's: it is read
 * directly then, and with it the newest chunk. */
static bool self_read_directly(struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    uint64_t ident = (uint64_t)pthread_self();
    const uint8_t *tstate = self_at(s->thread.tstate);
    bool attached = self_has_attached(s, ident);
    if (s->n_regions < SELF_FIXED || !(attached || self_is_resident(s)) ||
        pystack_get_u64(tstate, o->tstate_thread_id) != ident)
        return false;
    if (!s->own && (pystack_get_u64(tstate, o->tstate_id) != s->thread.serial ||
                    pystack_get_u64(tstate, o->tstate_interp) != s->thread.interp))
        return false;
    s->is_attached = attached;
    self_add_chunk(s);
    self_add_span(s, s->thread.tstate, s->thread.tstate + self_tstate_size(o));
    return true;
}

/* ---- memory ---- */

/* Read the regions together; keeps those that are complete. Those with a fixed meaning are left out if they
 * are read directly. */
static void self_read_all(struct pystack_self *s) {
    size_t first = s->is_direct ? SELF_FIXED : 0, total = 0;
    for (size_t i = first; i < s->n_regions; i++) {
        struct pystack_self_region *r = &s->regions[i];
        r->at = (uint32_t)total;
        total += r->len;
        r->used_to = 0;
        s->remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)r->addr, .iov_len = r->len};
    }
    s->is_read = true;
    s->n_bytes = 0;
    if (first == s->n_regions)
        return;
    s->n_regions = first + mem_read_many(&s->reader.mem, s->remote + first, s->n_regions - first, s->bytes);
    s->reads++;
    for (size_t i = first; i < s->n_regions; i++)
        s->n_bytes += s->regions[i].len;
}

/* Read one more region; when all are used, the last one is replaced. NULL if it cannot be read. */
static const uint8_t *self_read_more(struct pystack_self *s, uint64_t addr, size_t len) {
    bool pages = s->reader.off.frame_style != PYSTACK_FRAME_OBJECT;
    uint64_t from = pages ? addr & ~(SELF_PAGE - 1) : addr;
    uint64_t end = pages ? (addr + len + SELF_PAGE - 1) & ~(SELF_PAGE - 1) : addr + len;
    if (end - from > SELF_SPILL)
        return NULL;
    bool spill = s->n_regions >= PYSTACK_SELF_REGIONS - 1 ||
                 s->n_bytes + (end - from) > PYSTACK_SELF_BYTES - SELF_SPILL;
    struct pystack_self_region *r = &s->regions[spill ? PYSTACK_SELF_REGIONS - 1 : s->n_regions];
    size_t at = spill ? PYSTACK_SELF_BYTES - SELF_SPILL : s->n_bytes;
    s->reads++;
    r->len = 0;
    if (mem_read(&s->reader.mem, from, s->bytes + at, (size_t)(end - from)) != 0)
        return NULL;
    *r = (struct pystack_self_region){.addr = from,
                                      .len = (uint32_t)(end - from),
                                      .at = (uint32_t)at,
                                      .used_from = addr,
                                      .used_to = addr + len};
    s->spilled |= spill;
    if (!spill) {
        s->n_regions++;
        s->n_bytes += (size_t)(end - from);
    }
    s->last = (size_t)(r - s->regions);
    return s->bytes + at + (addr - from);
}

static const uint8_t *self_in_region(struct pystack_self *s, size_t i, uint64_t addr, size_t len) {
    struct pystack_self_region *r = &s->regions[i];
    if (addr < r->addr || len > r->len || addr - r->addr > r->len - len)
        return NULL;
    s->last = i;
    r->used_from = r->used_to && r->used_from < addr ? r->used_from : addr;
    r->used_to = r->used_to > addr + len ? r->used_to : addr + len;
    return s->bytes + r->at + (addr - r->addr);
}

/* The same for the regions. */
static const uint8_t *self_in_regions(struct pystack_self *s, uint64_t addr, size_t len) {
    const uint8_t *found = NULL;
    size_t first = s->is_direct ? SELF_FIXED : 0, n = s->n_regions - first;
    /* Frames come in the same order as the last time. */
    for (size_t k = 0; !found && k < n; k++)
        found = self_in_region(s, first + (s->last - first + k) % n, addr, len);
    if (!found && s->spilled)
        found = self_in_region(s, PYSTACK_SELF_REGIONS - 1, addr, len);
    return found;
}

/* `len` bytes at `addr`, or NULL. Valid until the next call. */
static const uint8_t *self_bytes(struct pystack_self *s, uint64_t addr, size_t len) {
    if (!pystack_is_pointer(addr))
        return NULL;
    for (size_t i = 0; i < s->n_spans; i++)
        if (self_is_within(&s->spans[i], addr, len))
            return self_at(addr);
    if (!s->is_read)
        self_read_all(s);
    const uint8_t *found = self_in_regions(s, addr, len);
    return found ? found : self_read_more(s, addr, len);
}

/* ---- code objects ---- */

static size_t self_known_slot(uint64_t addr) {
    return (size_t)((addr >> 4) * 0x9E3779B97F4A7C15ULL >> 32) % PYSTACK_KNOWN_SLOTS;
}

static bool self_is_known(const struct pystack_known *known, uint64_t addr) {
    return __atomic_load_n(&known->addrs[self_known_slot(addr)], __ATOMIC_RELAXED) == addr;
}

/* Mark the code of a frame that the decoder does not know for description. Returns the number of
 * the key + 1, or 0. */
static uint16_t self_take_key(struct pystack_self *s, uint64_t code) {
    if (self_is_known(s->known, code))
        return 0;
    for (size_t i = 0; i < s->n_keys; i++)
        if (s->keys[i].addr == code)
            return (uint16_t)(i + 1);
    if (s->n_keys == PYSTACK_SELF_KEYS || !pystack_is_pointer(code))
        return 0;
    s->keys[s->n_keys] = (struct pystack_code_key){.addr = code};
    return (uint16_t)++s->n_keys;
}

/* Describe them, when the copied bytes are no longer needed. */
static void self_read_keys(struct pystack_self *s) {
    _Static_assert(3 * PYSTACK_CODES_AT_ONCE <= PYSTACK_SELF_REGIONS &&
                       PYSTACK_CODES_AT_ONCE * PYSTACK_CODES_WORK_BYTES <= PYSTACK_SELF_BYTES,
                   "the keys are read into what held the copy");
    struct pystack_codes_work work = {.pieces = s->remote, .bytes = s->bytes};
    uint64_t before = s->reader.mem.reads;
    if (s->n_keys)
        pystack_codes_read_keys(&s->reader, s->keys, s->n_keys, &work);
    s->reads += s->reader.mem.reads - before;
}

/* ---- frames ---- */

static bool self_is_entry(const struct pystack_offsets *o, const uint8_t *bytes,
                          const struct pystack_raw_frame *f) {
    if (o->minor == 11)
        return bytes[o->frame_owner - SELF_ENTRY_BEFORE_OWNER] != 0;
    return f->owner == o->owner_shim;
}

/* Follow the links from `first`. With `check`, the first entry frame must lead to `expected`.
 * False if one does not hold. A cycle is found by comparing with a frame remembered at every
 * power of two (Brent). */
static bool self_follow(struct pystack_self *s, uint64_t first, uint64_t expected, bool check) {
    const struct pystack_offsets *o = &s->reader.off;
    uint64_t remembered = 0;
    size_t next_power = 1;
    s->n_frames = 0;
    s->end = PYSTACK_SELF_WHOLE;
    for (uint64_t addr = first; addr;) {
        struct pystack_raw_frame f = {.addr = addr};
        if (s->n_frames == PYSTACK_SELF_FRAMES) {
            s->end = PYSTACK_SELF_TRUNCATED;
            return true;
        }
        const uint8_t *bytes = addr == remembered ? NULL : self_bytes(s, addr, (size_t)o->frame_size);
        if (!bytes) {
            s->cyclic = addr == remembered;
            s->end = PYSTACK_SELF_BROKEN;
            return false;
        }
        pystack_parse_frame(o, bytes, &f);
        if (check && self_is_entry(o, bytes, &f)) {
            if (f.previous != expected)
                return false;
            check = false;
        }
        s->frames[s->n_frames] = (struct pystack_self_frame){.addr = addr,
                                                             .code = f.code,
                                                             .instr = f.instr,
                                                             .tlbc = f.tlbc,
                                                             .owner = f.owner,
                                                             .entry = f.entry};
        if (!pystack_is_shim(o, &f))
            s->frames[s->n_frames].key = self_take_key(s, f.code);
        if (++s->n_frames == next_power) {
            next_power *= 2;
            remembered = addr;
        }
        addr = f.previous;
    }
    return !check;
}

static bool self_is_root(const struct pystack_self *s, uint64_t cframe) {
    return cframe >= s->thread.tstate && cframe - s->thread.tstate < (uint64_t)s->reader.off.tstate_size;
}

/* Follow the frames of the _PyCFrame at `cframe`; `*outer` becomes its predecessor. False if it
 * is not consistent: its first entry frame must lead to where its predecessor stands. */
static bool self_follow_cframe(struct pystack_self *s, uint64_t cframe, uint64_t *outer) {
    int32_t at = s->reader.off.cframe_current_frame;
    const uint8_t *bytes = self_bytes(s, cframe, (size_t)at + 16);
    *outer = 0;
    if (!bytes)
        return false;
    uint64_t first = pystack_get_u64(bytes, at);
    *outer = pystack_get_u64(bytes, at + 8);
    if (self_is_root(s, cframe))
        return self_follow(s, first, 0, false);
    bytes = self_bytes(s, *outer, (size_t)at + 16);
    if (!bytes)
        return false;
    uint64_t expected = pystack_get_u64(bytes, at);
    /* The bottom has no frame. It lies within the thread state; that of a greenlet lies on its
     * stack and leads there. */
    uint64_t below = pystack_get_u64(bytes, at + 8);
    bool bottom = first && (below == 0 || self_is_root(s, below));
    return (expected || bottom) && self_follow(s, first, expected, true);
}

/* 3.11 and 3.12: tstate -> _PyCFrame {…, current_frame, previous}, one for each entry into the
 * interpreter's loop, the first within the thread state. The newest may be linked before it is
 * filled. If only its frame is missing, its predecessor has the stack, because the new frame has
 * not begun. If that is missing too, the thread has to be asked again. */
static void self_follow_cframes(struct pystack_self *s, uint64_t cframe) {
    uint64_t outer, beyond;
    if (self_follow_cframe(s, cframe, &outer))
        return;
    s->n_keys = 0;
    /* An unfilled one leads astray, not in circles. */
    if (s->cyclic || !outer || self_is_root(s, outer) || !self_follow_cframe(s, outer, &beyond))
        s->end = PYSTACK_SELF_BROKEN;
}

/* From 3.13 on the thread state leads to its frames itself. Each entry into the interpreter's
 * loop is a frame on the C stack. They are all alike except the outermost of 3.15, which is not
 * an entry, and the outermost frame is always one. Frames are filled before they are linked; but
 * a compiler may reverse that, and then the links end early or in old contents of the C stack. */
static void self_follow_direct(struct pystack_self *s, uint64_t first) {
    const struct pystack_offsets *o = &s->reader.off;
    const struct pystack_self_frame *entry = NULL;
    if (!self_follow(s, first, 0, false) || s->end != PYSTACK_SELF_WHOLE)
        return;
    for (size_t i = s->n_frames; i-- > 0;) {
        const struct pystack_self_frame *f = &s->frames[i];
        bool bottom = i + 1 == s->n_frames, shim = f->owner == o->owner_shim || f->owner == o->owner_bottom;
        bool alike = !entry || (f->code == entry->code &&
                                f->instr - entry->instr + SELF_TRAMPOLINE <= 2 * SELF_TRAMPOLINE);
        if (shim ? !alike || (!bottom && f->instr == 0) : bottom || f->owner > o->owner_shim)
            s->end = PYSTACK_SELF_BROKEN;
        if (shim && !entry && f->instr != 0)
            entry = f;
    }
}

/* ---- the copy ---- */

/* Add what was used of a region to the first `n`: to one that it touches, or as one more. Returns
 * their number. */
static size_t self_keep(struct pystack_self *s, size_t n, const struct pystack_self_region *old) {
    bool pages = s->reader.off.frame_style != PYSTACK_FRAME_OBJECT;
    uint64_t from = pages ? old->used_from & ~(SELF_PAGE - 1) : old->used_from;
    uint64_t to = pages ? (old->used_to + SELF_PAGE - 1) & ~(SELF_PAGE - 1) : old->used_to;
    uint64_t gap = pages ? 0 : SELF_GAP;
    from = from > old->addr ? from : old->addr;
    to = to < old->addr + old->len ? to : old->addr + old->len;
    for (size_t i = SELF_FIXED; i < n; i++) {
        struct pystack_self_region *r = &s->regions[i];
        uint64_t end = r->addr + r->len;
        if (from > end + gap || r->addr > to + gap)
            continue;
        r->addr = from < r->addr ? from : r->addr;
        r->len = (uint32_t)((to > end ? to : end) - r->addr);
        return n;
    }
    s->regions[n] = (struct pystack_self_region){.addr = from, .len = (uint32_t)(to - from)};
    return n + 1;
}

/* Keep what the last copy used, or all that it did not even ask for. */
static void self_keep_used(struct pystack_self *s) {
    size_t n = SELF_FIXED, bytes = 0, fit = SELF_FIXED;
    if (!s->is_read)
        return;
    for (size_t i = SELF_FIXED; i < s->n_regions; i++) {
        struct pystack_self_region old = s->regions[i]; /* its place may be taken by an earlier one */
        if (old.used_to)
            n = self_keep(s, n, &old);
    }
    for (; fit < n && bytes + s->regions[fit].len <= SELF_KEPT_BYTES; fit++)
        bytes += s->regions[fit].len;
    s->n_regions = fit;
}

void pystack_self_reuse(struct pystack_self *s) {
    if (s->n_regions > SELF_FIXED)
        self_keep_used(s);
    else
        s->n_regions = SELF_FIXED;
}

/* The GIL, and whether garbage is being collected: one region if they are near each other. */
static void self_set_state(struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    int32_t low = o->gil_last_holder < o->gil_locked ? o->gil_last_holder : o->gil_locked;
    /* What is unknown is some bytes of the thread state instead. */
    struct pystack_self_region gil = {
        .addr = s->gil ? s->gil + (uint64_t)low : s->thread.tstate,
        .len = s->gil ? (uint32_t)(o->gil_last_holder + o->gil_locked - 2 * low + 8) : 8};
    struct pystack_self_region gc = {.addr = s->gc ? s->gc : s->thread.tstate, .len = 8};
    uint64_t from = gil.addr < gc.addr ? gil.addr : gc.addr;
    uint64_t to = gil.addr + gil.len > gc.addr + gc.len ? gil.addr + gil.len : gc.addr + gc.len;
    s->state_joined = s->gil && s->gc && to - from <= SELF_STATE_GAP;
    if (s->state_joined) {
        gil = (struct pystack_self_region){.addr = from, .len = (uint32_t)(to - from)};
        gc.len = 0;
    }
    s->regions[SELF_GIL] = gil;
    s->regions[SELF_GC] = gc;
}

/* What may be read directly, as far as that is the same for all threads. */
static void self_set_direct(struct pystack *ps, struct pystack_self *s) {
    if (!ps->attached_searched) {
        ps->attached = pystack_find_attached(ps);
        pystack_find_resident(ps, &ps->resident_from, &ps->resident_to);
    }
    ps->attached_searched = true;
    s->attached = ps->attached;
    s->resident = (struct pystack_self_span){.from = ps->resident_from, .to = ps->resident_to};
}

void pystack_self_prepare(struct pystack *ps, struct pystack_self *s, const struct pystack_thread *t,
                          const struct pystack_known *known) {
    const struct pystack_offsets *o = &ps->reader.off;
    /* a thread without Python has no thread state, like what was never prepared */
    bool same = s->reader.mem.read && s->thread.tstate == t->tstate && s->thread.serial == t->serial;
    if (!same)
        s->n_regions = SELF_FIXED;
    pystack_self_reuse(s);
    s->thread = *t;
    s->known = known;
    if (!same) {
        self_set_direct(ps, s);
        s->stack_low = s->stack_high = s->chunk = s->chunk_limit = 0;
        s->reader.off = ps->reader.off;
        mem_init_handler(&s->reader.mem, &ps->reader.mem);
        s->gil = 0;
        if (o->gil_place == PYSTACK_GIL_STATIC)
            s->gil = ps->tstate_current;
        else if (pystack_find_gil(ps, t->interp, &s->gil) != 0)
            s->gil = 0;
        s->gc = pystack_find_collecting(ps, t->interp);
    }
    s->regions[SELF_TSTATE] =
        (struct pystack_self_region){.addr = t->tstate, .len = (uint32_t)o->tstate_size};
    self_set_state(s);
    s->is_read = false;
}

void pystack_self_prepare_own(struct pystack *ps, struct pystack_self *s, const struct pystack_known *known) {
    self_set_direct(ps, s);
    s->thread = (struct pystack_thread){.tid = 0};
    s->own = true;
    s->known = known;
    s->native = NULL;
    s->gil = s->gc = s->stack_low = s->stack_high = s->chunk = s->chunk_limit = 0;
    s->n_regions = SELF_FIXED;
    s->is_read = false;
    s->reader.off = ps->reader.off;
    mem_init_handler(&s->reader.mem, &ps->reader.mem);
}

/* The copy of `addr`, a part of the GIL or the collector's flag (`region`). */
static const uint8_t *self_state(const struct pystack_self *s, size_t region, uint64_t addr) {
    const struct pystack_self_region *r = &s->regions[s->state_joined ? SELF_GIL : region];
    return s->bytes + r->at + (addr - r->addr);
}

static enum model_gil self_gil(const struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    int32_t low = o->gil_last_holder < o->gil_locked ? o->gil_last_holder : o->gil_locked;
    if (s->is_attached)
        return MODEL_GIL_HOLDING;
    if (s->is_direct && s->attached)
        return MODEL_GIL_NONE;
    if (!s->gil || s->n_regions <= SELF_GIL)
        return MODEL_GIL_UNKNOWN;
    const uint8_t *bytes =
        s->is_direct ? self_at(s->gil + (uint64_t)low) : self_state(s, SELF_GIL, s->gil + (uint64_t)low);
    if (o->gil_place == PYSTACK_GIL_STATIC)
        return pystack_get_u64(bytes, 0) == s->thread.tstate ? MODEL_GIL_HOLDING : MODEL_GIL_NONE;
    bool held = pystack_get_i32(bytes, o->gil_locked - low) == 1 &&
                pystack_get_u64(bytes, o->gil_last_holder - low) == s->thread.tstate;
    return held ? MODEL_GIL_HOLDING : MODEL_GIL_NONE;
}

/* Whether the thread collects garbage. See pystack_read_gc. */
static int8_t self_gc(const struct pystack_self *s) {
    int32_t collecting = MODEL_UNKNOWN;
    if (s->gc && s->is_direct)
        collecting = pystack_get_i32(self_at(s->gc), 0);
    else if (s->gc && s->n_regions > SELF_GC)
        collecting = pystack_get_i32(self_state(s, SELF_GC, s->gc), 0);
    bool has_gil = s->reader.off.gil_enabled < 0;
    if (s->gil_state == MODEL_GIL_NONE && has_gil)
        return 0;
    if (collecting == 0 || (collecting == 1 && s->gil_state == MODEL_GIL_HOLDING))
        return (int8_t)collecting;
    return MODEL_UNKNOWN;
}

/* The thread state through the kernel, and with it all that the last copy used. NULL if it is not this
 * thread's, or cannot be read. */
static const uint8_t *self_read_tstate(struct pystack_self *s) {
    const struct pystack_offsets *o = &s->reader.off;
    self_read_all(s);
    if (s->n_regions <= SELF_TSTATE) {
        s->end = mem_is_refused(&s->reader.mem) ? PYSTACK_SELF_REFUSED : PYSTACK_SELF_GONE;
        return NULL;
    }
    const uint8_t *tstate = s->bytes + s->regions[SELF_TSTATE].at;
    /* before 3.7 thread states have no number: belonging to this thread is enough */
    if (pystack_get_u64(tstate, o->tstate_thread_id) != (uint64_t)pthread_self() ||
        (!s->own && o->tstate_id >= 0 && pystack_get_u64(tstate, o->tstate_id) != s->thread.serial))
        return NULL;
    return tstate;
}

void pystack_self_copy(struct pystack_self *s, uint64_t stack_pointer) {
    const struct pystack_offsets *o = &s->reader.off;
    s->taken_ns = clock_mono_ns();
    s->n_frames = s->n_keys = s->n_spans = 0;
    s->spilled = s->cyclic = s->is_read = s->is_attached = false;
    s->reads = 0;
    s->gil_state = MODEL_GIL_UNKNOWN;
    s->gc_state = MODEL_UNKNOWN;
    s->end = PYSTACK_SELF_GONE;
    self_add_stack(s, stack_pointer);
    s->is_direct = self_read_directly(s);
    s->last = s->is_direct ? SELF_FIXED : 0;
    const uint8_t *tstate = s->is_direct ? self_at(s->thread.tstate) : self_read_tstate(s);
    if (!tstate)
        return;
    s->gil_state = self_gil(s);
    s->gc_state = self_gc(s);
    uint64_t first = pystack_get_u64(tstate, o->tstate_frame);
    if (o->frame_style == PYSTACK_FRAME_CFRAME)
        self_follow_cframes(s, first);
    else if (o->frame_style == PYSTACK_FRAME_DIRECT)
        self_follow_direct(s, first);
    else
        self_follow(s, first, 0, false);
    self_read_keys(s);
}

void pystack_self_copy_own(struct pystack_self *s, uint64_t tstate) {
    if (s->thread.tstate != tstate) {
        s->n_regions = SELF_FIXED;
        s->chunk = s->chunk_limit = 0;
    } else {
        pystack_self_reuse(s);
    }
    s->thread.tstate = tstate;
    s->regions[SELF_TSTATE] =
        (struct pystack_self_region){.addr = tstate, .len = (uint32_t)s->reader.off.tstate_size};
    self_set_state(s);
    pystack_self_copy(s, 0);
}

/* ---- afterwards ---- */

static void self_set_known(struct pystack_known *known, uint64_t addr, bool is_known) {
    uint64_t *slot = &known->addrs[self_known_slot(addr)];
    if (is_known)
        __atomic_store_n(slot, addr, __ATOMIC_RELAXED);
    else if (*slot == addr)
        __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
}

/* 0, or 1 if there is no more room. */
static int self_decode_frame(struct pystack *ps, const struct pystack_self_result *s,
                             struct pystack_known *known, size_t i, size_t *n, uint64_t *unknown) {
    const struct pystack_self_frame *g = &s->frames[i];
    struct pystack_raw_frame f = {.addr = g->addr,
                                  .code = g->code,
                                  .instr = g->instr,
                                  .tlbc = g->tlbc,
                                  .owner = g->owner,
                                  .entry = g->entry};
    if (pystack_is_shim(&ps->reader.off, &f))
        return pystack_put_entry(ps, &f, n);
    const struct pystack_code_key *key = g->key && s->keys[g->key - 1].type ? &s->keys[g->key - 1] : NULL;
    struct pystack_code *code = pystack_codes_get_old(&ps->codes, &ps->reader, f.code, key, s->taken_ns);
    int rc = code ? pystack_put_frame(ps, &f, code, n) : -1;
    self_set_known(known, f.code, rc >= 0 && pystack_code_is_settled(code));
    if (rc >= 0)
        return rc == 0 ? pystack_put_entry(ps, &f, n) : rc;
    if (*n == PYSTACK_MAX_FRAMES)
        return 1;
    ps->places[*n] = f.addr;
    ps->frames[(*n)++] = (struct model_frame){.kind = MODEL_FRAME_PYTHON};
    (*unknown)++;
    return pystack_put_entry(ps, &f, n);
}

void pystack_self_begin(struct pystack *ps, struct arena *arena) { pystack_codes_begin(&ps->codes, arena); }

ssize_t pystack_self_decode_next(struct pystack *ps, const struct pystack_self_result *s,
                                 struct pystack_known *known, struct model_frame **out, bool *truncated,
                                 uint64_t *unknown) {
    size_t n = 0;
    *out = ps->frames;
    *truncated = s->end == PYSTACK_SELF_TRUNCATED;
    if (s->end != PYSTACK_SELF_WHOLE && s->end != PYSTACK_SELF_TRUNCATED)
        return -1;
    pystack_codes_next(&ps->codes);
    for (size_t i = 0; i < s->n_frames; i++)
        if (!s->frames[i].key)
            pystack_codes_expect(&ps->codes, &ps->reader, s->frames[i].code);
    pystack_codes_check_expected(&ps->codes, &ps->reader);
    for (size_t i = 0; i < s->n_frames; i++)
        if (self_decode_frame(ps, s, known, i, &n, unknown) != 0) {
            *truncated = true;
            break;
        }
    return (ssize_t)n;
}

ssize_t pystack_self_decode(struct pystack *ps, const struct pystack_self *s, struct pystack_known *known,
                            struct arena *arena, struct model_frame **out, bool *truncated,
                            uint64_t *unknown) {
    const struct pystack_self_result result = {.taken_ns = s->taken_ns,
                                               .end = s->end,
                                               .n_frames = s->n_frames,
                                               .n_keys = s->n_keys,
                                               .frames = s->frames,
                                               .keys = s->keys};
    struct model_frame *frames;
    pystack_self_begin(ps, arena);
    ssize_t n = pystack_self_decode_next(ps, &result, known, &frames, truncated, unknown);
    *out = NULL;
    if (n <= 0)
        return n;
    *out = arena_calloc(arena, (size_t)n, sizeof **out);
    if (!*out)
        return -1;
    memcpy(*out, frames, (size_t)n * sizeof **out);
    return n;
}
