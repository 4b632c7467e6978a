/* SPDX-License-Identifier: Apache-2.0 */
/* model: see model.h. */
#include "base/model.h"

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
    case MODEL_GIL_HELD:
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

const char *model_mode_name(enum model_mode m) { return m == MODEL_MODE_READONLY ? "readonly" : "agent"; }

const char *model_sampling_name(enum model_sampling s) {
    return s == MODEL_SAMPLING_GENTLE ? "gentle" : "exact";
}
