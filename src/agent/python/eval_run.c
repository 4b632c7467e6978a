/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_run: see eval_run.h. Sources: Doc/c-api/init.rst (PyThreadState_SetAsyncExc,
 * Py_AddPendingCall), Doc/c-api/exceptions.rst.
 *
 * python/units/eval.py has the parts that are easier in Python.
 */
#include "agent/python/eval_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pystack/gate.h"

#define EVAL_ARENA ((size_t)1024 * 1024)
/* for the output of a call, which is discarded, and for a traceback */
#define EVAL_CALL_BYTES 65536
#define EVAL_GONE "the frame has ended: its thread moved on"

#define EVAL_NAME(name) [EVAL_##name] = "eval_" #name,
static const char *const eval_functions[EVAL_FUNCTION_COUNT] = {EVAL_FUNCTIONS(EVAL_NAME)};

/* ---- life cycle ---- */

static const struct model_thread *eval_find_thread(const struct model_snapshot *s, int64_t tid) {
    for (size_t i = 0; s && i < s->n_threads; i++)
        if (s->threads[i].tid == tid)
            return &s->threads[i];
    return NULL;
}

/* 0 or -1 with the error. */
static int eval_copy_place(struct eval_run *run, const struct model_snapshot *s, struct err *e) {
    long long tid = (long long)run->want.tid;
    const struct model_thread *t = eval_find_thread(s, run->want.tid);
    if (!t || t->n_frames == 0)
        return err_set(e, ERR_FAILED, "thread %lld has no Python frames: 'backtrace' shows which have", tid);
    if ((uint64_t)run->want.depth >= t->n_frames)
        return err_set(e, ERR_FAILED, "thread %lld has %zu frames: the outermost is %lld:%zu", tid,
                       t->n_frames, tid, t->n_frames - 1);
    const struct model_locals *from = t->locals ? t->locals[run->want.depth] : NULL;
    if (!from)
        return err_set(e, ERR_FAILED, "frame %lld:%lld ran on while it was read: try again", tid,
                       (long long)run->want.depth);
    run->place = (struct eval_place){.ident = t->ident, .locals = *from};
    run->place.locals.items = NULL;
    run->place.locals.n = 0;
    return 0;
}

static struct strbuf *eval_texts(struct eval_run *run, size_t i) {
    struct strbuf *all[] = {&run->result, &run->output, &run->type, &run->message, &run->traceback};
    return i < sizeof all / sizeof all[0] ? all[i] : NULL;
}

struct eval_run *eval_run_new(const struct wire_eval *want, const struct model_snapshot *found,
                              uint32_t owner, struct err *e) {
    struct eval_run *run = calloc(1, sizeof *run);
    if (!run || pthread_mutex_init(&run->lock, NULL) != 0) {
        free(run);
        err_set(e, ERR_FAILED, "no memory for the code");
        return NULL;
    }
    run->refs = 1;
    run->pid = getpid();
    run->want = *want;
    run->want.main = want->main && !want->complete;
    run->owner = owner;
    run->duration_ms = NAN;
    arena_init(&run->arena, EVAL_ARENA + want->code_len);
    for (size_t i = 0; eval_texts(run, i); i++)
        strbuf_init(eval_texts(run, i), (size_t)want->output_bytes + 64);
    char *code = arena_calloc(&run->arena, want->code_len + 1, 1);
    if (code)
        memcpy(code, want->code, want->code_len);
    run->want.code = code;
    int rc = code ? 0 : err_set(e, ERR_FAILED, "no memory for the code");
    if (rc == 0 && want->tid)
        rc = eval_copy_place(run, found, e);
    if (rc == 0)
        return run;
    eval_run_unref(run);
    return NULL;
}

struct eval_run *eval_run_new_call(struct eval_call *call, double timeout_s, struct err *e) {
    const struct wire_eval none = {
        .code = "", .timeout_s = timeout_s, .output_bytes = EVAL_CALL_BYTES, .name = "<probing>"};
    struct eval_run *run = eval_run_new(&none, NULL, 0, e);
    if (run)
        run->call = call;
    else
        call->fini(call);
    return run;
}

void eval_run_ref(struct eval_run *run) { __atomic_add_fetch(&run->refs, 1, __ATOMIC_RELAXED); }

void eval_run_unref(struct eval_run *run) {
    if (!run || __atomic_sub_fetch(&run->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; eval_texts(run, i); i++)
        strbuf_fini(eval_texts(run, i));
    pthread_mutex_destroy(&run->lock);
    if (run->call)
        run->call->fini(run->call);
    arena_fini(&run->arena);
    free(run);
}

enum eval_state eval_run_state(const struct eval_run *run) {
    return (enum eval_state)__atomic_load_n(&run->state, __ATOMIC_ACQUIRE);
}

/* The deciding step: from waiting to `state`. */
bool eval_decide(struct eval_run *run, enum eval_state state) {
    int waiting = EVAL_WAITING;
    return __atomic_compare_exchange_n(&run->state, &waiting, (int)state, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool eval_run_withdraw(struct eval_run *run) {
    return eval_decide(run, EVAL_WITHDRAWN) || eval_run_state(run) == EVAL_WITHDRAWN;
}

static struct wire_text eval_text_of(const struct strbuf *b, bool there) {
    return (struct wire_text){.s = there ? (b->data ? b->data : "") : NULL, .len = b->len};
}

void eval_run_get(const struct eval_run *run, struct wire_evaluated *out) {
    bool raised = run->type.len > 0;
    *out = (struct wire_evaluated){.result = eval_text_of(&run->result, run->has_result),
                                   .output = eval_text_of(&run->output, true),
                                   .type = eval_text_of(&run->type, raised),
                                   .message = eval_text_of(&run->message, raised),
                                   .traceback = eval_text_of(&run->traceback, raised),
                                   .duration_ms = run->duration_ms,
                                   .truncated = run->truncated};
}

/* ---- with the GIL ---- */

void eval_drop(struct eval_run *run, struct pyapi_object **o) {
    if (*o)
        run->api.Py_DecRef(*o);
    *o = NULL;
}

/* Release every Python object. */
void eval_let_go(struct eval_run *run) {
    for (size_t i = 0; i < EVAL_FUNCTION_COUNT; i++)
        eval_drop(run, &run->functions[i]);
    eval_drop(run, &run->self);
    eval_drop(run, &run->names);
    if (run->call)
        run->call->let_go(run->call, &run->api);
    run->api.PyErr_Clear();
}

/* ---- preparation, on the worker's thread ---- */

/* Receives variables. */
struct eval_names {
    const struct pyapi *api;
    struct pyapi_object *names, *cells; /* dicts */
    bool failed;
};

static bool eval_put_local(void *arg, const char *name, uint64_t object, bool cell) {
    struct eval_names *n = arg;
    n->failed = n->api->PyDict_SetItemString(cell ? n->cells : n->names, name,
                                             (struct pyapi_object *)(uintptr_t)object) != 0;
    return !n->failed;
}

/* The names of the frame: a tuple of globals and locals. 0, or -1 with why. */
static int eval_find_names(struct eval_run *run, struct worker *w, char *why) {
    const struct pyapi *api = &run->api;
    struct pyapi_object *ident = api->PyLong_FromLongLong((long long)run->place.ident);
    struct pyapi_object *code = api->PyLong_FromLongLong((long long)run->place.locals.code);
    struct pyapi_object *find = worker_helper(w, "eval_frame");
    if (ident && code && find && !worker_runs_beside(w))
        run->names = api->PyObject_CallFunctionObjArgs(find, ident, code, NULL);
    eval_drop(run, &ident);
    eval_drop(run, &code);
    struct pyapi_object *globals = NULL, *locals = NULL;
    if (run->names && run->names != api->_Py_NoneStruct) {
        globals = api->PyTuple_GetItem(run->names, 0);
        locals = api->PyTuple_GetItem(run->names, 1);
    }
    if (!globals || !locals) {
        snprintf(why, WORKER_WHY_MAX,
                 worker_runs_beside(w) ? "a frame cannot be read safely in a Python without a GIL"
                                       : EVAL_GONE);
        return -1;
    }
    struct eval_names n = {.api = api, .names = locals, .cells = api->PyTuple_GetItem(run->names, 2)};
    if (n.cells == api->_Py_NoneStruct) /* of a module or class: its own dict */
        return 0;
    int rc = pystack_place_each(worker_pystack(w), &run->place.locals, eval_put_local, &n);
    if (rc != 0 || n.failed)
        snprintf(why, WORKER_WHY_MAX, EVAL_GONE);
    return rc == 0 && !n.failed ? 0 : -1;
}

/* Append the text of `o` to `why`; consumes it. NULL is nothing. */
static void eval_append(const struct pyapi *api, struct pyapi_object *o, char *why) {
    struct pyapi_object *bytes = o ? api->PyUnicode_AsEncodedString(o, "utf-8", "replace") : NULL;
    char *text;
    ssize_t len;
    size_t used = strlen(why);
    if (bytes && api->PyBytes_AsStringAndSize(bytes, &text, &len) == 0)
        snprintf(why + used, WORKER_WHY_MAX - used, "%.*s", (int)len, text);
    if (bytes)
        api->Py_DecRef(bytes);
    if (o)
        api->Py_DecRef(o);
    api->PyErr_Clear();
}

/* Why eval_open has failed: its exception. */
static void eval_explain(const struct eval_run *run, char *why) {
    const struct pyapi *api = &run->api;
    struct pyapi_object *type = NULL, *value = NULL, *tb = NULL;
    /* first of all: nothing is to be looked up while an exception is set */
    api->PyErr_Fetch(&type, &value, &tb);
    if (!run->call && !run->names && !api->PyDict_GetItemString(api->PyImport_GetModuleDict(), "__main__")) {
        snprintf(why, WORKER_WHY_MAX, "the job has no module __main__ to run code in");
    } else if (!type) {
        snprintf(why, WORKER_WHY_MAX, "cannot prepare the code: no memory");
    } else {
        snprintf(why, WORKER_WHY_MAX, "cannot prepare the code: ");
        api->PyErr_NormalizeException(&type, &value, &tb);
        eval_append(api, api->PyObject_GetAttrString(type, "__name__"), why);
        size_t used = strlen(why);
        snprintf(why + used, WORKER_WHY_MAX - used, ": ");
        if (value)
            eval_append(api, api->PyObject_CallFunctionObjArgs(api->PyUnicode_Type, value, NULL), why);
    }
    struct pyapi_object *all[] = {type, value, tb};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            api->Py_DecRef(all[i]);
    api->PyErr_Clear();
}

/* Prepare everything that the run needs, so that it needs nothing of the worker later. 0, or -1
 * with why. */
static int eval_prepare(struct eval_run *run, struct worker *w, char *why) {
    run->api = *worker_api(w);
    run->api.library = NULL;
    const struct pyapi *api = &run->api;
    snprintf(why, WORKER_WHY_MAX, "this Python has no way to run code for the agent");
    for (size_t i = 0; i < EVAL_FUNCTION_COUNT; i++) {
        run->functions[i] = worker_helper(w, eval_functions[i]);
        if (!run->functions[i])
            return -1;
        api->Py_IncRef(run->functions[i]);
    }
    if (run->want.tid && eval_find_names(run, w, why) != 0)
        return -1;
    if (run->call && run->call->prepare(run->call, w) != 0)
        return -1;
    struct pyapi_object *open = worker_helper(w, "eval_open");
    struct pyapi_object *code =
        run->call ? api->_Py_NoneStruct
                  : api->PyBytes_FromStringAndSize(run->want.code, (ssize_t)run->want.code_len);
    if (run->call)
        api->Py_IncRef(code);
    struct pyapi_object *name = api->PyUnicode_FromString(run->want.name);
    struct pyapi_object *limit = api->PyLong_FromLongLong((long long)run->want.output_bytes);
    struct pyapi_object *main = run->want.main ? api->_Py_TrueStruct : api->_Py_FalseStruct;
    struct pyapi_object *names = run->names ? run->names : api->_Py_NoneStruct;
    struct pyapi_object *owner = api->PyLong_FromLongLong((long long)run->owner);
    if (open && code && name && limit && owner)
        run->self = api->PyObject_CallFunctionObjArgs(open, code, name, limit, names, main, owner, NULL);
    eval_drop(run, &owner);
    eval_drop(run, &code);
    eval_drop(run, &name);
    eval_drop(run, &limit);
    if (!run->self) {
        eval_explain(run, why);
        return -1;
    }
    why[0] = '\0';
    return 0;
}

/* ---- on the main thread ---- */

/* On the job's main thread, with the GIL, when its interpreter gets to it. In a child that the
 * job has forked meanwhile it does not run. */
static int eval_on_pending(void *arg) {
    struct eval_run *run = arg;
    if (getpid() == run->pid && eval_decide(run, EVAL_BEGUN))
        eval_perform(run);
    else
        eval_let_go(run);
    eval_run_unref(run);
    return 0;
}

/* ---- on the worker ---- */

struct eval_job {
    struct worker_job job; /* first */
    struct eval_run *run;
};

static struct eval_run *eval_run_of(struct worker_job *job) { return ((struct eval_job *)(void *)job)->run; }

/* Its preparation, and the runs that it performs, are counted by the run, so that the client's
 * code is not counted. */
static bool eval_step(struct worker_job *job, struct worker *w) {
    struct eval_run *run = eval_run_of(job);
    if (eval_run_state(run) != EVAL_WAITING)
        return false;
    int rc = eval_prepare(run, w, job->why);
    if (rc == 0 && !run->want.main && eval_decide(run, EVAL_BEGUN)) {
        run->since_ns = job->since_ns;
        job->since_ns = 0;
        eval_perform(run);
        return false;
    }
    if (rc != 0) {
        eval_let_go(run);
    } else if (run->want.main) {
        eval_run_ref(run);
        if (run->api.Py_AddPendingCall(eval_on_pending, run) != 0) {
            snprintf(job->why, sizeof job->why, "the main thread has too much to do already");
            eval_let_go(run);
            eval_run_unref(run);
        }
    } else
        eval_let_go(run);
    return false;
}

static void eval_job_drop(struct worker_job *job, struct worker *w) {
    (void)job;
    (void)w;
}

static void eval_job_fini(struct worker_job *job) {
    eval_run_unref(eval_run_of(job));
    free(job);
}

struct worker_job *eval_run_new_job(struct eval_run *run, uint64_t deadline_ns) {
    struct eval_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job = (struct worker_job){.step = eval_step,
                                   .drop = eval_job_drop,
                                   .fini = eval_job_fini,
                                   .calls_job = true,
                                   .is_interrupted = true,
                                   .unit = run->call ? run->call->unit : "eval",
                                   .deadline_ns = deadline_ns};
    job->run = run;
    eval_run_ref(run);
    return &job->job;
}

bool eval_run_is_left(const struct eval_run *run) {
    enum eval_state state = eval_run_state(run);
    return (state == EVAL_DONE || state == EVAL_WITHDRAWN) &&
           __atomic_load_n(&run->interrupter, __ATOMIC_ACQUIRE) != 1;
}

unsigned eval_run_interrupts(const struct eval_run *run) {
    return __atomic_load_n(&run->interrupts, __ATOMIC_RELAXED);
}
