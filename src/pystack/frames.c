/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: walks the frames of a thread.
 *
 * Sources: Include/internal/pycore_frame.h (_PyFrame_IsIncomplete, owners), Include/cpython/frameobject.h (up to 3.10). A running
 * thread changes what we read: frames of the newest data stack chunk are copied at once, and after the walk the innermost
 * links are read again; if they differ the stack is torn.
 */
#include "pystack/pystack_internal.h"

#define FRAMES_STEPS_MAX (4 * PYSTACK_MAX_FRAMES) /* shims and unfinished frames count too */
#define FRAMES_ATTEMPTS 3
#define FRAMES_BEFORE_FIRST (-2) /* "previous instruction" of a frame that has not begun */

enum frames_end { FRAMES_WHOLE, FRAMES_MOVED, FRAMES_BROKEN };

/* A walk in progress. */
struct frames_walk {
    struct pystack *ps;
    size_t n;          /* frames found */
    size_t n_verified; /* raw frames kept for the second look */
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

/* Copy the newest chunk of the data stack, up to the innermost frame when that lies in it. */
static void frames_copy_chunk(struct pystack *ps, uint64_t tstate, uint64_t first) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t chunk, size;
    ps->chunk_len = 0;
    if (!o->tstate_datastack_chunk ||
        pystack_read_u64_at(&ps->reader, tstate, o->tstate_datastack_chunk, &chunk) != 0 ||
        !pystack_is_pointer(chunk) || pystack_read_u64_at(&ps->reader, chunk, o->chunk_size, &size) != 0)
        return;
    if (first > chunk && first - chunk < size && size - (first - chunk) > (uint64_t)o->frame_size)
        size = first - chunk + (uint64_t)o->frame_size;
    if (size > PYSTACK_CHUNK_MAX || mem_read(&ps->reader.mem, chunk, ps->chunk, (size_t)size) != 0)
        return;
    ps->chunk_addr = chunk;
    ps->chunk_len = (size_t)size;
}

static int frames_read(struct pystack *ps, uint64_t addr, struct pystack_raw_frame *f) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint8_t local[PYSTACK_STRUCT_MAX];
    const uint8_t *bytes = local;
    size_t size = (size_t)o->frame_size;
    if (!pystack_is_pointer(addr))
        return -1;
    if (ps->chunk_len >= size && addr >= ps->chunk_addr && addr - ps->chunk_addr <= ps->chunk_len - size)
        bytes = ps->chunk + (addr - ps->chunk_addr);
    else if (mem_read(&ps->reader.mem, addr, local, size) != 0)
        return -1;
    f->addr = addr;
    f->previous = pystack_get_u64(bytes, o->frame_previous);
    f->code = pystack_get_u64(bytes, o->frame_code);
    if (o->frame_style == PYSTACK_FRAME_OBJECT) {
        f->instr = (uint64_t)(int64_t)pystack_get_i32(bytes, o->frame_instr);
        f->owner = 0;
    } else {
        f->instr = pystack_get_u64(bytes, o->frame_instr);
        f->owner = bytes[o->frame_owner];
    }
    return 0;
}

/* Byte of the code that the frame is at. 0, or -1 when the instruction is not of this code. */
static int frames_position(const struct pystack_offsets *o, const struct pystack_raw_frame *f,
                           const struct pystack_code *code, int64_t *at) {
    if (o->frame_style == PYSTACK_FRAME_OBJECT) {
        int64_t lasti = (int64_t)f->instr;
        *at = o->line_style == PYSTACK_LINE_TABLE && lasti > 0 ? lasti * 2 : lasti;
        return lasti >= -1 ? 0 : -1;
    }
    *at = (int64_t)(f->instr - (f->code + (uint64_t)o->code_bytes));
    return *at >= FRAMES_BEFORE_FIRST && *at < pystack_code_n_bytes(code) && *at % 2 == 0 ? 0 : -1;
}

/* Take one frame into the result. 0, 1 when the limit is reached, -1 when the frame makes no sense. */
static int frames_take(struct frames_walk *w, const struct pystack_raw_frame *f) {
    struct pystack *ps = w->ps;
    const struct pystack_offsets *o = &ps->reader.off;
    if (o->frame_style != PYSTACK_FRAME_OBJECT && f->owner == o->owner_shim)
        return 0; /* stands for an entry into C, not for a function */
    int64_t at;
    struct pystack_code *code = pystack_codes_get(&ps->codes, &ps->reader, f->code);
    if (!code || frames_position(o, f, code, &at) != 0)
        return -1;
    if (o->frame_style != PYSTACK_FRAME_OBJECT && f->owner != o->owner_generator &&
        at < pystack_code_first_byte(code))
        return 0; /* its arguments are still being set up */
    if (w->n == PYSTACK_MAX_FRAMES) {
        w->truncated = true;
        return 1;
    }
    ps->frames[w->n++] = (struct model_frame){
        .kind = MODEL_FRAME_PYTHON,
        .func = pystack_code_func(&ps->codes, code),
        .file = pystack_code_file(&ps->codes, code),
        .line = pystack_code_line(code, &ps->reader, at),
    };
    return 0;
}

/* Follow the links. A cycle is found by comparing with a frame remembered at every power of two (Brent). */
static enum frames_end frames_follow(struct frames_walk *w, uint64_t first) {
    struct pystack *ps = w->ps;
    uint64_t remembered = 0;
    size_t next_power = 1, step = 0;
    for (uint64_t addr = first; addr; step++) {
        struct pystack_raw_frame f;
        if (step == FRAMES_STEPS_MAX) {
            w->truncated = true;
            return FRAMES_WHOLE;
        }
        if (addr == remembered || frames_read(ps, addr, &f) != 0)
            return FRAMES_BROKEN;
        if (step == next_power) {
            next_power *= 2;
            remembered = addr;
        }
        if (w->n_verified < PYSTACK_VERIFIED)
            ps->verified[w->n_verified++] = f;
        int rc = frames_take(w, &f);
        if (rc < 0)
            return FRAMES_BROKEN;
        if (rc > 0)
            break;
        addr = f.previous;
    }
    return FRAMES_WHOLE;
}

/* Are the innermost frames still linked as they were? */
static bool frames_unmoved(struct pystack *ps, uint64_t tstate, uint64_t first, size_t n_verified) {
    uint64_t now;
    if (frames_first(ps, tstate, &now) != 0 || now != first)
        return false;
    frames_copy_chunk(ps, tstate, first);
    for (size_t i = 0; i < n_verified; i++) {
        const struct pystack_raw_frame *before = &ps->verified[i];
        struct pystack_raw_frame f;
        if (frames_read(ps, before->addr, &f) != 0 || f.previous != before->previous ||
            f.code != before->code || f.owner != before->owner || (i > 0 && f.instr != before->instr))
            return false;
    }
    return true;
}

static enum frames_end frames_attempt(struct frames_walk *w, uint64_t tstate) {
    struct pystack *ps = w->ps;
    uint64_t first;
    w->n = w->n_verified = 0;
    w->truncated = false;
    if (frames_first(ps, tstate, &first) != 0)
        return FRAMES_BROKEN;
    frames_copy_chunk(ps, tstate, first);
    enum frames_end end = frames_follow(w, first);
    if (end == FRAMES_WHOLE && !frames_unmoved(ps, tstate, first, w->n_verified))
        end = FRAMES_MOVED;
    return end;
}

ssize_t pystack_walk_frames(struct pystack *ps, uint64_t tstate, struct arena *arena,
                            struct model_frame **out, bool *torn, bool *truncated, bool retry_moved) {
    struct frames_walk w = {.ps = ps};
    enum frames_end end = FRAMES_BROKEN;
    *out = NULL;
    *torn = *truncated = false;
    for (int i = 0; i < FRAMES_ATTEMPTS && (end == FRAMES_BROKEN || (end == FRAMES_MOVED && retry_moved));
         i++)
        end = frames_attempt(&w, tstate);
    if (end == FRAMES_BROKEN && w.n == 0)
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
    return pystack_walk_frames(ps, t->tstate, arena, out, torn, truncated, false);
}
