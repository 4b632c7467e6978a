/* SPDX-License-Identifier: Apache-2.0 */
/* model: see model.h. */
#include "base/model.h"

#include <string.h>

void model_snapshot_fini(struct model_snapshot *s) {
    arena_fini(&s->arena);
    *s = (struct model_snapshot){.arena = s->arena};
}

void model_snapshot_keep(struct model_snapshot *s, int64_t tid) {
    size_t i = 0;
    while (i < s->n_threads && s->threads[i].tid != tid)
        i++;
    s->threads += i;
    s->n_threads = i < s->n_threads ? 1 : 0;
    size_t from = 0, n = 0;
    while (from < s->n_tasks && s->tasks[from].tid != tid)
        from++;
    while (from + n < s->n_tasks && s->tasks[from + n].tid == tid)
        n++;
    s->tasks = s->tasks ? s->tasks + from : NULL;
    s->n_tasks = n;
}

void model_target_fini(struct model_target *t) {
    arena_fini(&t->arena);
    *t = (struct model_target){.arena = t->arena};
}

void model_sample_batch_fini(struct model_sample_batch *b) {
    arena_fini(&b->arena);
    *b = (struct model_sample_batch){.arena = b->arena};
}

void model_status_fini(struct model_status *s) {
    arena_fini(&s->arena);
    *s = (struct model_status){.arena = s->arena};
}

const char *model_gil_name(enum model_gil g) {
    switch (g) {
    case MODEL_GIL_NONE:
        return "none";
    case MODEL_GIL_WAITING:
        return "waiting";
    case MODEL_GIL_HOLDING:
        return "held";
    case MODEL_GIL_UNKNOWN:
        break;
    }
    return NULL;
}

const char *model_local_kind_name(enum model_local_kind k) {
    switch (k) {
    case MODEL_LOCAL_ARGUMENT:
        return "argument";
    case MODEL_LOCAL_CELL:
        return "cell";
    case MODEL_LOCAL_FREE:
        return "free";
    case MODEL_LOCAL_VARIABLE:
        break;
    }
    return "variable";
}

size_t model_frames_strip_native(struct model_frame *frames, size_t n, const struct model_locals **locals) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (frames[i].kind != MODEL_FRAME_PYTHON)
            continue;
        frames[kept] = frames[i];
        if (locals)
            locals[kept] = locals[i];
        kept++;
    }
    return kept;
}

void model_snapshot_strip_native(struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++) {
        struct model_thread *t = &s->threads[i];
        t->n_frames = model_frames_strip_native(t->frames, t->n_frames, t->locals);
    }
}

bool model_snapshot_has_native(const struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++)
        for (size_t k = 0; k < s->threads[i].n_frames; k++)
            if (s->threads[i].frames[k].kind != MODEL_FRAME_PYTHON)
                return true;
    return false;
}

int model_snapshot_copy_python(const struct model_snapshot *s, struct model_snapshot *out) {
    *out = *s;
    arena_init(&out->arena, s->arena.limit);
    out->threads = arena_calloc(&out->arena, s->n_threads + 1, sizeof *out->threads);
    for (size_t i = 0; out->threads && i < s->n_threads; i++) {
        const struct model_thread *from = &s->threads[i];
        struct model_thread *t = &out->threads[i];
        *t = *from;
        t->frames = arena_calloc(&out->arena, from->n_frames + 1, sizeof *t->frames);
        if (from->locals)
            t->locals = arena_calloc(&out->arena, from->n_frames + 1, sizeof *t->locals);
        if (out->arena.failed)
            return -1;
        if (from->n_frames)
            memcpy(t->frames, from->frames, from->n_frames * sizeof *t->frames);
        if (from->n_frames && from->locals)
            memcpy(t->locals, from->locals, from->n_frames * sizeof *t->locals);
    }
    if (!out->threads)
        return -1;
    model_snapshot_strip_native(out);
    return 0;
}

const char *model_native_name(enum model_native n) {
    return n == MODEL_NATIVE_MERGED ? "merged" : n == MODEL_NATIVE_APART ? "apart" : NULL;
}

const char *model_wait_kind_name(enum model_wait_kind k) {
    static const char *const names[MODEL_WAIT_KINDS] = {
        [MODEL_WAIT_GIL] = "gil",
        [MODEL_WAIT_LOCK] = "lock",
        [MODEL_WAIT_RLOCK] = "rlock",
        [MODEL_WAIT_CONDITION] = "condition",
        [MODEL_WAIT_EVENT] = "event",
        [MODEL_WAIT_SEMAPHORE] = "semaphore",
        [MODEL_WAIT_BARRIER] = "barrier",
        [MODEL_WAIT_QUEUE] = "queue",
        [MODEL_WAIT_FUTURE] = "future",
        [MODEL_WAIT_THREAD] = "thread",
        [MODEL_WAIT_PROCESS_LOCK] = "process lock",
        [MODEL_WAIT_NATIVE_LOCK] = "native lock",
        [MODEL_WAIT_SLEEP] = "sleep",
        [MODEL_WAIT_SOCKET] = "socket",
        [MODEL_WAIT_PIPE] = "pipe",
        [MODEL_WAIT_TERMINAL] = "terminal",
        [MODEL_WAIT_FILE] = "file",
        [MODEL_WAIT_FILE_LOCK] = "file lock",
        [MODEL_WAIT_POLL] = "poll",
        [MODEL_WAIT_LOOP] = "loop",
        [MODEL_WAIT_CHILD] = "child",
        [MODEL_WAIT_LOADER] = "loader",
        [MODEL_WAIT_COLLECTIVE] = "collective",
        [MODEL_WAIT_STOPPED] = "stopped",
        [MODEL_WAIT_UNRECORDED] = "not recorded",
    };
    return (unsigned)k < MODEL_WAIT_KINDS ? names[k] : NULL;
}

const char *model_task_state_name(enum model_task_state s) {
    switch (s) {
    case MODEL_TASK_PENDING:
        return "pending";
    case MODEL_TASK_RUNNING:
        return "running";
    case MODEL_TASK_UNKNOWN:
        break;
    }
    return NULL;
}

const char *model_frame_kind_name(enum model_frame_kind k) {
    return k == MODEL_FRAME_NATIVE ? "native" : "python";
}

const char *model_mode_name(enum model_mode m) {
    return m == MODEL_MODE_READONLY ? "readonly" : m == MODEL_MODE_RECORDED ? "recorded" : "agent";
}

const char *model_sampling_name(enum model_sampling s) {
    return s == MODEL_SAMPLING_GENTLE ? "gentle" : "exact";
}
