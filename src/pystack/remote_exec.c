/* SPDX-License-Identifier: Apache-2.0 */
/* remote_exec: see remote_exec.h. */
#include "pystack/remote_exec.h"

#include "pystack/debug_offsets.h"
#include "pystack/pystack_internal.h"

#define REMOTE_EXEC_INTERP_SIZE_MAX (1U << 20)
#define REMOTE_EXEC_PATH_MIN 64

/* Bits of eval_breaker, in its lowest byte. Another process cannot change one of them without
 * writing the others too. So the stored byte sets those that have no effect if nothing is
 * pending (signals, pending calls, asynchronous exceptions, stop, merge, cold code: each is
 * checked against what it stands for), and clears those whose owners set them again if they are
 * not heard (the GIL, garbage). So no request is lost, and none is invented: a GIL request that
 * nobody has made would let its holder wait for a taker that never comes. */
#define REMOTE_EXEC_BITS ((1U << 1) | (1U << 2) | (1U << 3) | (1U << 5) | (1U << 6) | (1U << 7))

/* Words of struct _Py_DebugOffsets. */
static const struct remote_exec_form {
    int minor;
    size_t words; /* of the whole; the last six are debugger_support */
    size_t interp_size, threads_main, tstate_size;
} remote_exec_forms[] = {{14, 95, 6, 10, 22}, {15, 111, 6, 10, 22}};

static const struct remote_exec_form *remote_exec_form_of(int major, int minor) {
    for (size_t i = 0; i < sizeof remote_exec_forms / sizeof remote_exec_forms[0]; i++)
        if (major == 3 && remote_exec_forms[i].minor == minor)
            return &remote_exec_forms[i];
    return NULL;
}

/* True if a field of `width` bytes at `at` lies in a struct of `size`. */
static bool remote_exec_fits(uint64_t at, uint64_t width, uint64_t size) {
    return at <= size && size - at >= width;
}

int pystack_remote_exec_parse(const uint8_t *bytes, size_t n, const struct pystack_offsets *row,
                              struct pystack_remote_exec_offsets *out) {
    const struct remote_exec_form *form = remote_exec_form_of(row->major, row->minor);
    uint32_t version;
    bool free_threaded;
    if (!form || n < form->words * 8 || !pystack_debug_offsets_peek(bytes, n, &version, &free_threaded) ||
        (int)(version >> 16 & 255) != row->minor || free_threaded != (row->free_threaded != 0))
        return -1;
    uint64_t support[6];
    memcpy(support, bytes + (form->words - 6) * 8, sizeof support);
    uint64_t interp = pystack_get_u64(bytes, (int32_t)form->interp_size * 8);
    uint64_t tstate = pystack_get_u64(bytes, (int32_t)form->tstate_size * 8);
    struct pystack_remote_exec_offsets o = {.threads_main =
                                                pystack_get_u64(bytes, (int32_t)form->threads_main * 8),
                                            .enabled = support[2],
                                            .breaker = support[0],
                                            .pending = support[1] + support[3],
                                            .path = support[1] + support[4],
                                            .path_size = support[5]};
    if (interp > REMOTE_EXEC_INTERP_SIZE_MAX || tstate > PYSTACK_STRUCT_MAX || support[1] > tstate ||
        support[3] > tstate || support[4] > tstate || !remote_exec_fits(o.threads_main, 8, interp) ||
        !remote_exec_fits(o.enabled, 4, interp) || !remote_exec_fits(o.breaker, 8, tstate) ||
        !remote_exec_fits(o.pending, 4, tstate) || o.path_size < REMOTE_EXEC_PATH_MIN ||
        o.path_size > PYSTACK_REMOTE_EXEC_PATH_MAX || !remote_exec_fits(o.path, o.path_size, tstate))
        return -1;
    /* A missing field would be zero; only the flag may be zero, as the support's first field. */
    if (o.threads_main == 0 || o.enabled == 0 || o.breaker == 0 || support[1] == 0)
        return -1;
    *out = o;
    return 0;
}

bool pystack_has_remote_exec(const struct pystack *ps) {
    return remote_exec_form_of(ps->reader.off.major, ps->reader.off.minor) != NULL;
}

static int remote_exec_match_main(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    (void)ps;
    *(uint64_t *)arg = interp;
    return id == 0;
}

/* The state of the main thread: it belongs to this interpreter, and is in its list. 0 or -1. */
static int remote_exec_find_main(struct pystack *ps, uint64_t interp,
                                 const struct pystack_remote_exec_offsets *o, uint64_t *tstate) {
    const struct pystack_offsets *off = &ps->reader.off;
    uint64_t at, of;
    if (mem_read_u64(&ps->reader.mem, interp + o->threads_main, tstate) != 0 ||
        !pystack_is_pointer(*tstate) ||
        pystack_read_u64_at(&ps->reader, *tstate, off->tstate_interp, &of) != 0 || of != interp ||
        pystack_read_u64_at(&ps->reader, interp, off->interp_threads_head, &at) != 0)
        return -1;
    for (int i = 0; at && i < PYSTACK_MAX_THREADS; i++) {
        if (at == *tstate)
            return 0;
        if (!pystack_is_pointer(at) || pystack_read_u64_at(&ps->reader, at, off->tstate_next, &at) != 0)
            return -1;
    }
    return -1;
}

static int remote_exec_is_open(struct pystack *ps, uint64_t interp,
                               const struct pystack_remote_exec_offsets *o, struct err *e) {
    uint32_t enabled;
    uint64_t finalizing;
    if (mem_read_u32(&ps->reader.mem, interp + o->enabled, &enabled) != 0)
        return err_set(e, ERR_ATTACH, "its Python cannot be read");
    if (enabled != 1)
        return err_set(e, ERR_ATTACH,
                       "its Python takes no requests from outside (PYTHON_DISABLE_REMOTE_DEBUG or "
                       "-X disable-remote-debug)");
    if (pystack_read_u64_at(&ps->reader, ps->info.runtime, ps->reader.off.runtime_finalizing, &finalizing) ==
            0 &&
        finalizing != 0)
        return err_set(e, ERR_ATTACH, "its Python is being shut down");
    return 0;
}

int pystack_find_remote_exec(struct pystack *ps, struct pystack_remote_exec *out, struct err *e) {
    uint8_t bytes[PYSTACK_DEBUG_BYTES];
    struct pystack_remote_exec_offsets o;
    uint64_t interp = 0, tstate, tid = 0;
    uint32_t pending;
    if (mem_read(&ps->reader.mem, ps->info.runtime, bytes, sizeof bytes) != 0 ||
        pystack_remote_exec_parse(bytes, sizeof bytes, &ps->reader.off, &o) != 0)
        return err_set(e, ERR_ATTACH, "its Python has no place for requests from outside");
    if (pystack_each_interpreter(ps, remote_exec_match_main, &interp) != 1)
        return err_set(e, ERR_ATTACH, "its main interpreter was not found");
    if (remote_exec_is_open(ps, interp, &o, e) != 0)
        return -1;
    if (remote_exec_find_main(ps, interp, &o, &tstate) != 0 ||
        mem_read_u32(&ps->reader.mem, tstate + o.pending, &pending) != 0)
        return err_set(e, ERR_ATTACH, "its main thread has ended or was not found");
    if (pending != 0)
        return err_set(e, ERR_ATTACH, "another debugger's request waits for its main thread");
    pystack_read_u64_at(&ps->reader, tstate, ps->reader.off.tstate_native_thread_id, &tid);
    *out = (struct pystack_remote_exec){.path = tstate + o.path,
                                        .path_size = (size_t)o.path_size,
                                        .pending = tstate + o.pending,
                                        .breaker = tstate + o.breaker,
                                        .breaker_set = REMOTE_EXEC_BITS,
                                        .tid = (int64_t)tid};
    return 0;
}
