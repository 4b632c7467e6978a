/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: walks the frames of a thread.
 *
 * Sources: Include/internal/pycore_frame.h (_PyFrame_IsIncomplete, owners),
 * Include/cpython/frameobject.h (up to 3.10). A running thread changes what we read. So first
 * only the links are followed, with the newest chunk of the data stack copied in one read, and
 * the innermost ones are read twice; if they differ the stack is torn. Code objects are read
 * after that.
 */
#include "pystack/pystack_internal.h"

#define FRAMES_ATTEMPTS 3
#define FRAMES_NUMBER_MAX 65536   /* copies of one code object, at most one per thread */
#define FRAMES_DUPLICATES_MAX 512 /* of them that are searched */
#define FRAMES_BEFORE_FIRST (-2)  /* "previous instruction" of a frame that has not begun */

enum frames_end { FRAMES_WHOLE, FRAMES_MOVED, FRAMES_BROKEN };

/* A walk in progress. */
struct frames_walk {
    struct pystack *ps;
    uint64_t tstate;
    size_t n_raw; /* in ps->raw */
    size_t n;     /* in ps->frames */
    bool moved;   /* the two readings differ */
    bool broken;  /* a link or a frame was not valid */
    bool truncated;
};

static int frames_first(struct pystack *ps, uint64_t tstate, uint64_t *frame) {
    const struct pystack_offsets *o = &ps->reader.off;
    if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_frame, frame) != 0)
        return -1;
    if (o->frame_style != PYSTACK_FRAME_CFRAME)
        return 0;
    if (!pystack_is_pointer(*frame))
        return -1;
    return pystack_read_u64_at(&ps->reader, *frame, o->cframe_current_frame, frame);
}

/* Copy the newest chunk of the data stack, up to the innermost frame if that is in it, twice;
 * sets `*moved` if the innermost frame changed in between. */
static void frames_copy_chunk(struct pystack *ps, uint64_t tstate, uint64_t first, bool *moved) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t chunk, size, now;
    ps->chunk_len = 0;
    if (!o->tstate_datastack_chunk ||
        pystack_read_u64_at(&ps->reader, tstate, o->tstate_datastack_chunk, &chunk) != 0 ||
        !pystack_is_pointer(chunk) || pystack_read_u64_at(&ps->reader, chunk, o->chunk_size, &size) != 0)
        return;
    if (first > chunk && first - chunk < size && size - (first - chunk) > (uint64_t)o->frame_size)
        size = first - chunk + (uint64_t)o->frame_size;
    if (size > PYSTACK_CHUNK_MAX)
        return;
    for (int i = 0; i < 2; i++) {
        if (mem_read(&ps->reader.mem, chunk, ps->chunk[i], (size_t)size) != 0)
            return;
        if (frames_first(ps, tstate, &now) != 0 || now != first)
            *moved = true;
    }
    ps->chunk_addr = chunk;
    ps->chunk_len = (size_t)size;
}

static bool frames_in_chunk(const struct pystack *ps, uint64_t addr) {
    size_t size = (size_t)ps->reader.off.frame_size;
    return ps->chunk_len >= size && addr >= ps->chunk_addr && addr - ps->chunk_addr <= ps->chunk_len - size;
}

/* The frame at `addr`, from copy `look` (0, 1) of the chunk if it is in there, otherwise from
 * memory. */
static int frames_read(struct pystack *ps, uint64_t addr, int look, struct pystack_raw_frame *f) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint8_t local[PYSTACK_STRUCT_MAX];
    const uint8_t *bytes = local;
    if (!pystack_is_pointer(addr))
        return -1;
    if (frames_in_chunk(ps, addr))
        bytes = ps->chunk[look] + (addr - ps->chunk_addr);
    else if (mem_read(&ps->reader.mem, addr, local, (size_t)o->frame_size) != 0)
        return -1;
    f->addr = addr;
    pystack_parse_frame(o, bytes, f);
    return 0;
}

int pystack_read_first_frame(struct pystack *ps, uint64_t tstate, uint64_t *frame) {
    return frames_first(ps, tstate, frame);
}

int pystack_read_raw_frame(struct pystack *ps, uint64_t addr, struct pystack_raw_frame *f) {
    ps->chunk_len = 0; /* not from a copy */
    return frames_read(ps, addr, 0, f);
}

/* Follow the links into ps->raw. A cycle is found by comparing with a frame remembered at every
 * power of two (Brent). */
static void frames_follow(struct frames_walk *w, uint64_t first) {
    struct pystack *ps = w->ps;
    uint64_t remembered = 0;
    size_t next_power = 1;
    for (uint64_t addr = first; addr; addr = ps->raw[w->n_raw - 1].previous) {
        if (w->n_raw == PYSTACK_MAX_RAW) {
            w->truncated = true;
            return;
        }
        if (addr == remembered || frames_read(ps, addr, 0, &ps->raw[w->n_raw]) != 0) {
            w->broken = true;
            return;
        }
        if (++w->n_raw == next_power) {
            next_power *= 2;
            remembered = addr;
        }
    }
}

/* True if the innermost frames are still linked as before. The leaf may be at another
 * instruction; a caller may not. */
static bool frames_unmoved(const struct frames_walk *w, uint64_t first) {
    struct pystack *ps = w->ps;
    uint64_t now;
    bool outside = false;
    for (size_t i = 0; i < w->n_raw && i < PYSTACK_VERIFIED; i++) {
        const struct pystack_raw_frame *before = &ps->raw[i];
        struct pystack_raw_frame f;
        outside = outside || !frames_in_chunk(ps, before->addr);
        if (frames_read(ps, before->addr, 1, &f) != 0 || f.previous != before->previous ||
            f.code != before->code || f.owner != before->owner || (i > 0 && f.instr != before->instr))
            return false;
    }
    return !outside || (frames_first(ps, w->tstate, &now) == 0 && now == first);
}

static bool frames_is_position(const struct pystack_code *code, uint64_t start, uint64_t instr, int64_t *at) {
    *at = (int64_t)(instr - start);
    return *at >= FRAMES_BEFORE_FIRST && *at < pystack_code_n_bytes(code) && *at % 2 == 0;
}

/* The same for a thread's own copy of the code. In the first instruction of a function a thread
 * moves to another copy and changes the number and the instruction one after the other. The
 * instruction lies in one copy only, so that one is searched for. Sources: _PyFrame_GetBytecode
 * (Include/internal/pycore_interpframe.h), _LOAD_BYTECODE (Python/bytecodes.c). */
static bool frames_is_copy_position(struct pystack_reader *r, const struct pystack_raw_frame *f,
                                    const struct pystack_code *code, int64_t *at) {
    uint64_t copies, n, entries[FRAMES_DUPLICATES_MAX];
    if (pystack_read_u64_at(r, f->code, r->off.code_tlbc, &copies) != 0 || !pystack_is_pointer(copies) ||
        mem_read_u64(&r->mem, copies, &n) != 0 || n == 0)
        return false;
    if (f->tlbc < n && f->tlbc < FRAMES_NUMBER_MAX &&
        pystack_read_u64_at(r, copies, r->off.tlbc_entries + 8 * (int32_t)f->tlbc, &entries[0]) == 0 &&
        frames_is_position(code, entries[0], f->instr, at) && *at >= 0)
        return true;
    n = n < FRAMES_DUPLICATES_MAX ? n : FRAMES_DUPLICATES_MAX;
    if (mem_read(&r->mem, copies + (uint64_t)r->off.tlbc_entries, entries, n * sizeof entries[0]) != 0)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (entries[i] && frames_is_position(code, entries[i], f->instr, at) && *at >= 0)
            return true;
    return false;
}

int pystack_frame_position(struct pystack_reader *r, const struct pystack_raw_frame *f,
                           const struct pystack_code *code, int64_t *at) {
    const struct pystack_offsets *o = &r->off;
    if (o->frame_style == PYSTACK_FRAME_OBJECT) {
        int64_t lasti = (int64_t)f->instr;
        *at = o->line_style == PYSTACK_LINE_TABLE && lasti > 0 ? lasti * 2 : lasti;
        return lasti >= -1 ? 0 : -1;
    }
    if (frames_is_position(code, f->code + (uint64_t)o->code_bytes, f->instr, at))
        return 0;
    return o->code_tlbc && frames_is_copy_position(r, f, code, at) ? 0 : -1;
}

int pystack_put_frame(struct pystack *ps, const struct pystack_raw_frame *f, struct pystack_code *code,
                      size_t *n) {
    const struct pystack_offsets *o = &ps->reader.off;
    int64_t at;
    if (pystack_frame_position(&ps->reader, f, code, &at) != 0)
        return -1;
    if (o->frame_style != PYSTACK_FRAME_OBJECT && f->owner != o->owner_generator &&
        at < pystack_code_first_byte(code))
        return 0; /* its arguments are still being set up */
    if (*n == PYSTACK_MAX_FRAMES)
        return 1;
    ps->places[*n] = f->addr;
    ps->frames[(*n)++] = (struct model_frame){
        .kind = MODEL_FRAME_PYTHON,
        .func = pystack_code_func(&ps->codes, code),
        .file = pystack_code_file(&ps->codes, code),
        .line = pystack_code_line(&ps->codes, code, &ps->reader, at),
    };
    return 0;
}

int pystack_put_entry(struct pystack *ps, const struct pystack_raw_frame *f, size_t *n) {
    if (!ps->entries || !pystack_ends_entry(&ps->reader.off, f))
        return 0;
    if (*n == PYSTACK_MAX_FRAMES)
        return 1;
    ps->places[*n] = f->addr;
    ps->frames[(*n)++] = (struct model_frame){.kind = MODEL_FRAME_ENTRY};
    return 0;
}

/* Read the function of one frame. 0, 1 when the limit is reached, -1 if the frame is not valid. */
static int frames_decode(struct frames_walk *w, const struct pystack_raw_frame *f) {
    struct pystack *ps = w->ps;
    int rc = 0;
    /* stands for an entry into C, not for a function */
    if (!pystack_is_shim(&ps->reader.off, f)) {
        struct pystack_code *code = pystack_codes_get_running(&ps->codes, &ps->reader, f->code);
        rc = code ? pystack_put_frame(ps, f, code, &w->n) : -1;
    }
    return rc == 0 ? pystack_put_entry(ps, f, &w->n) : rc;
}

/* True if a stack that stands still is consistent. In 3.11 and 3.12 (3.13 has none of these)
 * tstate leads to _PyCFrame {..., current_frame, previous}, one for each entry into the
 * interpreter's loop, the first within the thread state. The newest may be linked before it is
 * filled: then its first entry frame does not lead to where its predecessor stands. */
static bool frames_fit_cframes(const struct frames_walk *w) {
    struct pystack *ps = w->ps;
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t newest, before, expected;
    size_t i = 0;
    if (pystack_read_u64_at(&ps->reader, w->tstate, o->tstate_frame, &newest) != 0)
        return false;
    if (newest - w->tstate < (uint64_t)o->tstate_size)
        return true;
    if (pystack_read_u64_at(&ps->reader, newest, o->cframe_current_frame + 8, &before) != 0 ||
        !pystack_is_pointer(before) ||
        pystack_read_u64_at(&ps->reader, before, o->cframe_current_frame, &expected) != 0)
        return false;
    while (i < w->n_raw && !pystack_ends_entry(o, &ps->raw[i]))
        i++;
    return i == w->n_raw ? w->truncated : ps->raw[i].previous == expected;
}

static enum frames_end frames_attempt(struct frames_walk *w) {
    struct pystack *ps = w->ps;
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t first;
    *w = (struct frames_walk){.ps = ps, .tstate = w->tstate};
    if (frames_first(ps, w->tstate, &first) != 0)
        return FRAMES_BROKEN;
    frames_copy_chunk(ps, w->tstate, first, &w->moved);
    frames_follow(w, first);
    if (!frames_unmoved(w, first))
        w->moved = true;
    if (ps->standing && o->frame_style == PYSTACK_FRAME_CFRAME && !frames_fit_cframes(w))
        w->broken = true;
    for (size_t i = 0; i < w->n_raw; i++)
        pystack_codes_expect(&ps->codes, &ps->reader, ps->raw[i].code);
    pystack_codes_check_expected(&ps->codes, &ps->reader);
    for (size_t i = 0; i < w->n_raw; i++) {
        int rc = frames_decode(w, &ps->raw[i]);
        if (rc == 0)
            continue;
        w->truncated = w->truncated || rc > 0;
        w->broken = w->broken || rc < 0;
        break;
    }
    return w->broken ? FRAMES_BROKEN : w->moved ? FRAMES_MOVED : FRAMES_WHOLE;
}

/* True if the thread state still belongs to the same thread. Its memory may have been reused. */
static bool frames_same_thread(struct pystack *ps, const struct pystack_thread *t) {
    uint64_t serial;
    return pystack_read_serial(ps, t, &serial) == 0 && serial == t->serial;
}

ssize_t pystack_walk_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated, bool retry_moved) {
    struct frames_walk w = {.ps = ps, .tstate = t->tstate};
    enum frames_end end = FRAMES_BROKEN;
    *out = NULL;
    *torn = *truncated = false;
    for (int i = 0; i < FRAMES_ATTEMPTS && (end == FRAMES_BROKEN || (end == FRAMES_MOVED && retry_moved));
         i++)
        end = frames_attempt(&w);
    if ((end == FRAMES_BROKEN && w.n == 0) || !frames_same_thread(ps, t))
        return -1;
    *torn = end != FRAMES_WHOLE;
    *truncated = w.truncated;
    if (w.n == 0)
        return 0;
    *out = arena_calloc(arena, w.n, sizeof **out);
    if (!*out) {
        *truncated = true;
        return 0;
    }
    memcpy(*out, ps->frames, w.n * sizeof **out);
    return (ssize_t)w.n;
}

ssize_t pystack_read_frames(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated) {
    pystack_codes_begin(&ps->codes, arena);
    return pystack_walk_stopped(ps, t, arena, out, torn, truncated, false);
}

/* ---- whether a function runs ---- */

struct frames_search {
    uint64_t code;
    size_t left; /* threads that may still be examined */
};

/* 1, 0 or -1. */
static int frames_run_code(struct pystack *ps, uint64_t tstate, const struct frames_search *s) {
    struct frames_walk w = {.ps = ps, .tstate = tstate};
    uint64_t first;
    if (frames_first(ps, tstate, &first) != 0)
        return -1;
    frames_copy_chunk(ps, tstate, first, &w.moved);
    frames_follow(&w, first);
    for (size_t i = 0; i < w.n_raw; i++)
        if (ps->raw[i].code == s->code)
            return 1;
    return w.broken || w.moved || w.truncated ? -1 : 0;
}

static int frames_search_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    const struct pystack_offsets *o = &ps->reader.off;
    struct frames_search *s = arg;
    uint64_t tstate, back;
    (void)id;
    if (pystack_read_u64_at(&ps->reader, interp, o->interp_threads_head, &tstate) != 0)
        return -1;
    for (; tstate; s->left--) {
        if (s->left == 0 || !pystack_is_pointer(tstate) ||
            pystack_read_u64_at(&ps->reader, tstate, o->tstate_interp, &back) != 0 || back != interp)
            return -1;
        int rc = frames_run_code(ps, tstate, s);
        if (rc != 0)
            return rc;
        if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_next, &tstate) != 0)
            return -1;
    }
    return 0;
}

int pystack_runs_code(struct pystack *ps, uint64_t code, size_t max_threads) {
    struct frames_search s = {.code = code, .left = max_threads};
    return pystack_each_interpreter(ps, frames_search_interpreter, &s);
}
