/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_do: performs a run: see eval_internal.h. On its thread, with the GIL.
 *
 * sys.stdin, stdout and stderr are replaced and restored from here, because between the check
 * and the change no other thread has the GIL.
 */
#include "agent/python/eval_internal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "agent/python/gil_usage.h"
#include "base/clock.h"

#define EVAL_TRIES 8 /* attempts to replace a stream that other code changes, too */
#define EVAL_INTERRUPTED "KeyboardInterrupt"
#define EVAL_NOT_APART "what it prints could not be kept apart from what the job prints: it was not run"

static const char *const eval_streams[EVAL_STREAMS] = {"stdin", "stdout", "stderr"};

/* A text made by python/units/eval.py, as bytes. */
static void eval_take_text(struct eval_run *run, struct pyapi_object *bytes, struct strbuf *out) {
    char *text;
    ssize_t size;
    strbuf_clear(out);
    if (bytes && run->api.PyBytes_AsStringAndSize(bytes, &text, &size) == 0)
        strbuf_add(out, text, (size_t)size);
    run->api.PyErr_Clear();
}

static void eval_take_flag(struct eval_run *run, struct pyapi_object *flag) {
    run->truncated = run->truncated || flag == run->api._Py_TrueStruct;
}

/* ---- the streams ---- */

static struct pyapi_object *eval_call(struct eval_run *run, enum eval_function f, struct pyapi_object *a,
                                      struct pyapi_object *b, struct pyapi_object *c) {
    return run->api.PyObject_CallFunctionObjArgs(run->functions[f], run->self, a, b, c, NULL);
}

/* Replace the object that sys has under that name, if there is one. False on failure. */
static bool eval_put_stream(struct eval_run *run, size_t i) {
    const struct pyapi *api = &run->api;
    struct pyapi_object *name = api->PyUnicode_FromString(eval_streams[i]);
    bool put = false;
    for (int tries = 0; name && !put && tries < EVAL_TRIES; tries++) {
        struct pyapi_object *before = api->PySys_GetObject(eval_streams[i]);
        put = !before;
        if (put)
            break;
        api->Py_IncRef(before);
        struct pyapi_object *ours = eval_call(run, EVAL_stream, before, name, NULL);
        /* leaked on purpose: print() on another thread may use it, without a reference, when it
         * is removed */
        if (ours)
            api->Py_IncRef(ours);
        put = ours && api->PySys_GetObject(eval_streams[i]) == before &&
              api->PySys_SetObject(eval_streams[i], ours) == 0;
        if (put)
            run->streams[i] = (struct eval_stream){.ours = ours, .before = before};
        else {
            eval_drop(run, &ours);
            eval_drop(run, &before);
        }
    }
    eval_drop(run, &name);
    api->PyErr_Clear();
    return put;
}

/* Restore the previous object, unless other code has replaced ours since. */
static void eval_take_stream(struct eval_run *run, size_t i) {
    struct eval_stream *s = &run->streams[i];
    if (s->ours && run->api.PySys_GetObject(eval_streams[i]) == s->ours)
        run->api.PySys_SetObject(eval_streams[i], s->before);
    eval_drop(run, &s->ours);
    eval_drop(run, &s->before);
    run->api.PyErr_Clear();
}

/* ---- the run itself ---- */

void eval_own_begin(struct eval_run *run) { run->since_ns = clock_self_cpu_ns(); }

void eval_own_end(struct eval_run *run) {
    if (run->since_ns)
        gil_usage_add(run->since_ns);
    run->since_ns = 0;
}

/* The client's code. */
static struct pyapi_object *eval_theirs(struct eval_run *run, struct pyapi_object *code,
                                        struct pyapi_object *globals, struct pyapi_object *locals) {
    eval_own_end(run);
    struct pyapi_object *value = run->api.PyEval_EvalCode(code, globals, locals);
    eval_own_begin(run);
    return value;
}

static struct pyapi_object *eval_item(struct eval_run *run, struct pyapi_object *tuple, ssize_t i) {
    struct pyapi_object *o = run->api.PyTuple_GetItem(tuple, i);
    return o == run->api._Py_NoneStruct ? NULL : o;
}

/* The call that is made instead of running code. False if it has raised an exception. */
static bool eval_do_call(struct eval_run *run) {
    eval_own_end(run);
    int rc = run->call->run(run->call, &run->api);
    eval_own_begin(run);
    return rc == 0;
}

/* Run the code, then its last expression, whose text is taken. False on an exception. */
static bool eval_do(struct eval_run *run) {
    const struct pyapi *api = &run->api;
    struct pyapi_object *made = eval_call(run, EVAL_compile, NULL, NULL, NULL), *done = NULL;
    if (!made)
        return false;
    struct pyapi_object *code = eval_item(run, made, 0), *last = eval_item(run, made, 1);
    struct pyapi_object *globals = api->PyTuple_GetItem(made, 2), *locals = api->PyTuple_GetItem(made, 3);
    bool ok = true;
    if (code) {
        done = eval_theirs(run, code, globals, locals);
        ok = done != NULL;
        eval_drop(run, &done);
    }
    struct pyapi_object *value = ok && last ? eval_theirs(run, last, globals, locals) : NULL;
    ok = ok && (!last || value);
    struct pyapi_object *shown = NULL;
    if (value && value != api->_Py_NoneStruct) {
        shown = eval_call(run, EVAL_show, value, NULL, NULL);
        ok = shown != NULL;
    }
    if (shown) {
        eval_take_text(run, api->PyTuple_GetItem(shown, 0), &run->result);
        eval_take_flag(run, api->PyTuple_GetItem(shown, 1));
        run->has_result = true;
    }
    eval_drop(run, &shown);
    eval_drop(run, &value);
    eval_drop(run, &made);
    return ok;
}

/* The method "complete": none of the code is run. */
static void eval_complete(struct eval_run *run) {
    struct pyapi_object *told = eval_call(run, run->want.whole ? EVAL_whole : EVAL_names, NULL, NULL, NULL);
    if (told) {
        eval_take_text(run, run->api.PyTuple_GetItem(told, 0), &run->result);
        eval_take_flag(run, run->api.PyTuple_GetItem(told, 1));
    }
    run->has_result = told != NULL;
    eval_drop(run, &told);
    run->api.PyErr_Clear();
}

/* Describe the exception in words. */
static void eval_explain_error(struct eval_run *run) {
    const struct pyapi *api = &run->api;
    struct pyapi_object *type = NULL, *value = NULL, *tb = NULL, *none = api->_Py_NoneStruct;
    api->PyErr_Fetch(&type, &value, &tb);
    api->PyErr_NormalizeException(&type, &value, &tb);
    struct pyapi_object *told =
        eval_call(run, EVAL_explain, type ? type : none, value ? value : none, tb ? tb : none);
    if (told) {
        eval_take_text(run, api->PyTuple_GetItem(told, 0), &run->type);
        eval_take_text(run, api->PyTuple_GetItem(told, 1), &run->message);
        eval_take_text(run, api->PyTuple_GetItem(told, 2), &run->traceback);
        eval_take_flag(run, api->PyTuple_GetItem(told, 3));
    }
    if (run->type.len == 0) /* interrupted meanwhile, or its text could not be made */
        strbuf_adds(&run->type, EVAL_INTERRUPTED);
    eval_drop(run, &told);
    eval_drop(run, &type);
    eval_drop(run, &value);
    eval_drop(run, &tb);
    api->PyErr_Clear();
}

/* Whether the code can be interrupted. An interrupt that was not delivered comes up in a
 * function of ours. It is not cancelled, because PyThreadState_SetAsyncExc without an exception
 * sets the eval breaker of all threads, which only a delivered exception clears; a thread of
 * 3.11 with a trace function then never gets past the beginning of a function. */
static void eval_set_running(struct eval_run *run, bool running) {
    pthread_mutex_lock(&run->lock);
    run->running = running;
    bool drain = !running && __atomic_load_n(&run->interrupts, __ATOMIC_RELAXED) > 0;
    if (drain)
        run->api.PyThreadState_SetAsyncExc(run->ident, *run->api.PyExc_KeyboardInterrupt);
    pthread_mutex_unlock(&run->lock);
    if (drain) {
        struct pyapi_object *drained = eval_call(run, EVAL_drain, NULL, NULL, NULL);
        eval_drop(run, &drained);
    }
    if (!running)
        run->api.PyErr_Clear();
}

static void eval_finish(struct eval_run *run) {
    struct pyapi_object *left = NULL;
    for (size_t i = 0; i < EVAL_STREAMS; i++)
        eval_take_stream(run, i);
    left = eval_call(run, EVAL_close, NULL, NULL, NULL);
    if (left) {
        eval_take_text(run, run->api.PyTuple_GetItem(left, 0), &run->output);
        eval_take_flag(run, run->api.PyTuple_GetItem(left, 1));
    }
    eval_drop(run, &left);
    eval_let_go(run);
}

/* Perform a run that has started, on this thread. */
void eval_perform(struct eval_run *run) {
    uint64_t began = clock_mono_ns();
    if (!run->since_ns)
        eval_own_begin(run);
    run->ident = (unsigned long)pthread_self();
    __atomic_store_n(&run->tid, syscall(SYS_gettid), __ATOMIC_RELAXED);
    struct pyapi_object *begun = eval_call(run, EVAL_begin, NULL, NULL, NULL);
    eval_drop(run, &begun);
    run->api.PyErr_Clear();
    bool apart = true;
    for (size_t i = 0; i < EVAL_STREAMS && !run->want.complete; i++)
        apart = eval_put_stream(run, i) && apart;
    if (run->want.complete) {
        eval_complete(run);
    } else if (apart) {
        eval_set_running(run, true);
        if (!(run->call ? eval_do_call(run) : eval_do(run)))
            eval_explain_error(run);
        eval_set_running(run, false);
    } else {
        strbuf_adds(&run->type, "RuntimeError");
        strbuf_adds(&run->message, EVAL_NOT_APART);
        strbuf_adds(&run->traceback, "RuntimeError: " EVAL_NOT_APART "\n");
    }
    eval_finish(run);
    eval_own_end(run);
    run->duration_ms = (double)(clock_mono_ns() - began) / 1e6;
    __atomic_store_n(&run->state, EVAL_DONE, __ATOMIC_RELEASE);
}
