/* SPDX-License-Identifier: Apache-2.0 */
/* gate: see gate.h. Sources: Python/ceval_gil.c (take_gil), Include/internal/pycore_frame.h. */
#include "pystack/gate.h"

#include "base/hash.h"
#include "pystack/locals.h"
#include "pystack/pystack_internal.h"

#define GATE_MARK_FRAMES 3
#define GATE_MARK_BYTES 256 /* of a frame's variables */

static int gate_take_main(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    (void)ps;
    *(uint64_t *)arg = interp;
    return id == 0; /* the first interpreter is the main one; it is last in the list */
}

static bool gate_has_none(struct pystack *ps, uint64_t gil) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint32_t enabled;
    return o->gil_enabled >= 0 &&
           mem_read_u32(&ps->reader.mem, gil + (uint64_t)o->gil_enabled, &enabled) == 0 && !enabled;
}

/* A number that changes when the thread progresses in Python: a hash of its innermost frames,
 * their positions and contents. */
static uint64_t gate_mark(struct pystack *ps, uint64_t tstate) {
    struct pystack_raw_frame f;
    uint8_t bytes[GATE_MARK_BYTES];
    uint64_t addr, mark = 0;
    if (pystack_read_first_frame(ps, tstate, &addr) != 0)
        return 0;
    for (int i = 0; i < GATE_MARK_FRAMES && addr && pystack_read_raw_frame(ps, addr, &f) == 0; i++) {
        uint64_t words[] = {mark, addr, f.code, f.instr};
        mark = hash_bytes(words, sizeof words);
        if (mem_read(&ps->reader.mem, addr + (uint64_t)ps->reader.off.frame_localsplus, bytes,
                     sizeof bytes) == 0)
            mark ^= hash_bytes(bytes, sizeof bytes);
        addr = f.previous;
    }
    return mark;
}

int pystack_gate_read(struct pystack *ps, struct pystack_gate *out) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t interp = 0, gil, finalizing = 0, ident;
    *out = (struct pystack_gate){.finalizing = false};
    if (o->runtime_finalizing >= 0 &&
        pystack_read_u64_at(&ps->reader, ps->info.runtime, o->runtime_finalizing, &finalizing) != 0)
        return -1;
    out->finalizing = finalizing != 0;
    if (out->finalizing)
        return 0;
    if (pystack_each_interpreter(ps, gate_take_main, &interp) != 1 || pystack_find_gil(ps, interp, &gil) != 0)
        return -1;
    out->none = gate_has_none(ps, gil);
    if (pystack_read_gil_holder(ps, gil, &out->holder) != 0)
        return -1;
    out->held = out->holder != 0;
    if (!out->held)
        return 0;
    /* The holder may have ended in between: what cannot be read of it is unknown. */
    if (pystack_read_u64_at(&ps->reader, out->holder, o->tstate_thread_id, &ident) == 0)
        out->holder_tid = pystack_tid_of_ident(ps, ident);
    out->mark = gate_mark(ps, out->holder);
    return 0;
}

uint64_t pystack_gate_word(const struct pystack *ps) {
    int32_t at = ps->reader.off.runtime_finalizing;
    return at >= 0 ? ps->info.runtime + (uint64_t)at : 0;
}

bool pystack_gate_moved(const struct pystack_gate *before, const struct pystack_gate *after) {
    return before->held != after->held || before->holder != after->holder || before->mark != after->mark;
}

/* ---- where threads are ---- */

/* Data gathered from thread states. */
struct gate_codes {
    uint64_t but, *codes;
    size_t n, cap;
    bool failed;
};

/* The innermost code object of a thread state; 0 if it runs none. False if it cannot be read. */
static bool gate_innermost(struct pystack *ps, uint64_t tstate, uint64_t *code) {
    struct pystack_raw_frame f;
    uint64_t addr;
    *code = 0;
    if (pystack_read_first_frame(ps, tstate, &addr) != 0)
        return false;
    for (size_t i = 0; addr && !*code && i < PYSTACK_MAX_RAW; i++, addr = f.previous) {
        if (pystack_read_raw_frame(ps, addr, &f) != 0)
            return false;
        *code = pystack_is_shim(&ps->reader.off, &f) ? 0 : f.code;
    }
    return true;
}

static int gate_gather_codes(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct gate_codes *g = arg;
    uint64_t tstate, code = 0;
    if (id != 0)
        return 0;
    if (pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_threads_head, &tstate) != 0)
        tstate = 1;
    for (int i = 0; pystack_is_pointer(tstate) && i < PYSTACK_MAX_THREADS && !g->failed; i++) {
        if (tstate != g->but && !gate_innermost(ps, tstate, &code))
            g->failed = true;
        else if (tstate != g->but && code && g->n < g->cap)
            g->codes[g->n++] = code;
        else if (tstate != g->but && code)
            g->failed = true;
        if (pystack_read_u64_at(&ps->reader, tstate, ps->reader.off.tstate_next, &tstate) != 0)
            g->failed = true;
    }
    g->failed = g->failed || tstate != 0;
    return 1;
}

ssize_t pystack_gate_codes(struct pystack *ps, uint64_t but, uint64_t *codes, size_t cap) {
    struct gate_codes g = {.but = but, .codes = codes, .cap = cap};
    return pystack_each_interpreter(ps, gate_gather_codes, &g) < 0 || g.failed ? -1 : (ssize_t)g.n;
}

/* ---- places ---- */

#define GATE_TAG_INT 3U /* Py_INT_TAG: Include/internal/pycore_stackref.h */

/* The target of a search in the lists of thread states. */
struct gate_search {
    uint64_t tstate;
    bool found;
};

static int gate_find_tstate(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct gate_search *s = arg;
    uint64_t tstate;
    if (id != 0 || pystack_read_u64_at(&ps->reader, interp, ps->reader.off.interp_threads_head, &tstate) != 0)
        return 0;
    for (int i = 0; pystack_is_pointer(tstate) && i < PYSTACK_MAX_THREADS && !s->found; i++) {
        s->found = tstate == s->tstate;
        if (pystack_read_u64_at(&ps->reader, tstate, ps->reader.off.tstate_next, &tstate) != 0)
            break;
    }
    return 1;
}

/* The frames of a live thread state, into `living`; none if it is gone. */
static void gate_list_frames(struct pystack *ps, uint64_t tstate, struct pystack_living *living) {
    struct gate_search search = {.tstate = tstate};
    struct pystack_raw_frame f;
    uint64_t addr;
    living->tstate = tstate;
    living->n = 0;
    if (pystack_each_interpreter(ps, gate_find_tstate, &search) < 0 || !search.found ||
        pystack_read_first_frame(ps, tstate, &addr) != 0)
        return;
    for (size_t i = 0; addr && i < PYSTACK_MAX_RAW && living->n < PYSTACK_MAX_FRAMES;
         i++, addr = f.previous) {
        if (pystack_read_raw_frame(ps, addr, &f) != 0)
            return;
        living->frames[living->n++] = addr;
    }
}

static bool gate_lives(struct pystack *ps, struct pystack_living *living, uint64_t tstate, uint64_t frame) {
    if (living->tstate != tstate)
        gate_list_frames(ps, tstate, living);
    for (size_t i = 0; i < living->n; i++)
        if (living->frames[i] == frame)
            return true;
    return false;
}

enum pystack_place_state pystack_place_read(struct pystack *ps, struct pystack_living *living,
                                            const struct model_locals *l, const struct model_local *local,
                                            uint64_t *object) {
    struct pystack_raw_frame f;
    *object = 0;
    if (!local->place || !gate_lives(ps, living, l->tstate, l->frame) ||
        pystack_read_raw_frame(ps, l->frame, &f) != 0 || f.code != l->code ||
        pystack_locals_find_object(ps, l->frame, local, object) != 0 || *object == 0)
        return PYSTACK_PLACE_GONE;
    return f.instr == l->instr ? PYSTACK_PLACE_SAME : PYSTACK_PLACE_MOVED;
}

enum pystack_place_state pystack_place_check(struct pystack *ps, struct pystack_living *living,
                                             const struct model_locals *l, const struct model_local *local) {
    uint64_t object;
    enum pystack_place_state state = pystack_place_read(ps, living, l, local, &object);
    return state != PYSTACK_PLACE_GONE && object != local->place->object ? PYSTACK_PLACE_GONE : state;
}

struct gate_each {
    struct pystack *ps;
    uint64_t frame;
    bool (*fn)(void *arg, const char *name, uint64_t object, bool cell);
    void *arg;
};

static bool gate_on_name(void *arg, size_t slot, const char *name, bool cell) {
    const struct gate_each *each = arg;
    struct pystack_reader *r = &each->ps->reader;
    uint64_t word, tags = (uint64_t)r->off.tag_bits;
    uint64_t at = each->frame + (uint64_t)r->off.frame_localsplus + 8 * (uint64_t)slot;
    if (name[0] == '.' || mem_read_u64(&r->mem, at, &word) != 0) /* made by the compiler */
        return true;
    bool number = tags == GATE_TAG_INT && (word & tags) == GATE_TAG_INT;
    word &= ~tags;
    return number || !pystack_is_pointer(word) || each->fn(each->arg, name, word, cell);
}

int pystack_place_each(struct pystack *ps, const struct model_locals *l,
                       bool (*fn)(void *arg, const char *name, uint64_t object, bool cell), void *arg) {
    struct pystack_living living = {.tstate = 0};
    struct gate_each each = {.ps = ps, .frame = l->frame, .fn = fn, .arg = arg};
    struct pystack_raw_frame f;
    if (!gate_lives(ps, &living, l->tstate, l->frame) || pystack_read_raw_frame(ps, l->frame, &f) != 0 ||
        f.code != l->code)
        return -1;
    return pystack_locals_each_name(&ps->reader, l->code, gate_on_name, &each) == 0 ? 0 : -1;
}
