/* SPDX-License-Identifier: Apache-2.0 */
/* worker_rows: see worker_rows.h. Rows are written in the format of the wire: no Python object
 * is kept. */
#include "agent/python/worker_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/python/flight.h"
#include "agent/python/numbers.h"
#include "base/clock.h"
#include "pystack/gate.h"

#define ROWS_COLUMNS 64
#define ROWS_TEXT_BYTES 8192 /* of all texts of a row; longer ones are cut */
#define ROWS_ARENA ((size_t)4 * 1024 * 1024)
#define ROWS_ROOTS_A_STEP 64
#define ROWS_DRAIN_STEPS 5000

struct rows_root {
    struct model_locals frame;
    struct model_local local; /* with its own frame */
    const char *func, *file, *thread;
    int line;
    int64_t tid;
    int depth;
};

/* ---- arrays of numbers, described by units ---- */

/* Only rows_squares_step may run without the GIL. */

#define ROWS_SQUARES_MAX 2048 /* arrays at a time */

struct rows_squares_item {
    struct numbers_view view;
    bool read;
    double sum;
    uint64_t bad;
};

struct rows_squares {
    struct numbers numbers;
    size_t n, at;
    bool begun; /* the item at `at` is started */
    struct rows_squares_item items[];
};

/* Parse the description of an array: a list of (address, kind as a character's number, width,
 * then the shape, then the strides). 0 or -1. */
static int rows_get_view(const struct pyapi *api, struct pyapi_object *list, struct numbers_view *out) {
    int64_t item[3 + 2 * NUMBERS_DIMS];
    ssize_t n = api->PyList_Size(list);
    *out = (struct numbers_view){.address = 0};
    if (n < 3 || n > (ssize_t)(sizeof item / sizeof item[0]) || (n - 3) % 2 != 0)
        return -1;
    for (ssize_t i = 0; i < n; i++)
        item[i] = api->PyLong_AsLongLong(api->PyList_GetItem(list, i));
    if (api->PyErr_Occurred())
        return -1;
    out->address = (uint64_t)item[0];
    out->kind = (char)item[1];
    out->width = (size_t)item[2];
    out->n_dims = (size_t)(n - 3) / 2;
    memcpy(out->shape, item + 3, out->n_dims * sizeof out->shape[0]);
    memcpy(out->stride, item + 3 + out->n_dims, out->n_dims * sizeof out->stride[0]);
    return 0;
}

/* True if it is a list of such lists. */
static bool rows_squares_is(const struct pyapi *api, struct pyapi_object *list) {
    struct pyapi_object *first = api->PyList_Size(list) > 0 ? api->PyList_GetItem(list, 0) : NULL;
    struct pyapi_object *type = first ? api->PyObject_Type(first) : NULL;
    if (type)
        api->Py_DecRef(type);
    return type && type == api->PyList_Type;
}

/* Parse these descriptions. NULL if there are too many, or without memory. */
static struct rows_squares *rows_squares_new(const struct pyapi *api, struct pyapi_object *lists) {
    ssize_t n = api->PyList_Size(lists);
    if (n < 0 || n > ROWS_SQUARES_MAX)
        return NULL;
    struct rows_squares *s = calloc(1, sizeof *s + (size_t)n * sizeof s->items[0]);
    if (!s)
        return NULL;
    s->n = (size_t)n;
    /* not numbers */
    for (ssize_t i = 0; i < n; i++)
        if (rows_get_view(api, api->PyList_GetItem(lists, i), &s->items[i].view) != 0)
            s->items[i].view.kind = '\0';
    return s;
}

static void rows_squares_take(struct rows_squares_item *item, const struct numbers *n) {
    const struct numbers_stats *s = &n->stats;
    item->read = !n->failed;
    item->bad = s->nan + s->inf;
    item->sum = s->finite ? s->m2 + s->mean * s->mean * (double)s->finite : 0;
}

/* Continue for about 100 us; without the GIL. True if there is more. */
static bool rows_squares_step(struct rows_squares *s) {
    if (s->at == s->n)
        return false;
    struct rows_squares_item *item = &s->items[s->at];
    if (!s->begun && numbers_begin(&s->numbers, &item->view) != 0) {
        s->at++;
        return true;
    }
    s->begun = true;
    if (numbers_step(&s->numbers) && !s->numbers.binning)
        return true;
    rows_squares_take(item, &s->numbers);
    s->begun = false;
    s->at++;
    return true;
}

/* With the GIL: append a value, which is released, to a list. 0, or -1 with an exception. */
static int rows_append(const struct pyapi *api, struct pyapi_object *list, struct pyapi_object *value) {
    int rc = value ? api->PyList_Append(list, value) : -1;
    if (value)
        api->Py_DecRef(value);
    return rc;
}

/* A list with a tuple for each array: the sum of squares of its finite numbers, and the number
 * of others; None if it could not be read. NULL with an exception. */
static struct pyapi_object *rows_squares_answer(const struct pyapi *api, const struct rows_squares *s) {
    struct pyapi_object *list = api->PyList_New(0);
    for (size_t i = 0; list && i < s->n; i++) {
        const struct rows_squares_item *item = &s->items[i];
        struct pyapi_object *o =
            item->read ? api->Py_BuildValue("(dL)", item->sum, (long long)item->bad) : api->Py_BuildValue("");
        if (rows_append(api, list, o) == 0)
            continue;
        api->Py_DecRef(list);
        list = NULL;
    }
    return list;
}

static void rows_squares_free(struct rows_squares *s) { free(s); }

/* ---- a document of the flight recorder ---- */

struct rows_flight {
    struct pyapi_object *bytes; /* owned: its text does not move */
    const char *text;
    size_t len;
    struct flight read;
    struct err error; /* it could not be read */
};

/* With the GIL: NULL if it is not a bytes object, or without memory. */
static struct rows_flight *rows_flight_new(const struct pyapi *api, struct pyapi_object *bytes) {
    char *text;
    ssize_t len;
    if (api->PyBytes_AsStringAndSize(bytes, &text, &len) != 0)
        return NULL;
    struct rows_flight *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    api->Py_IncRef(bytes);
    f->bytes = bytes;
    f->text = text;
    f->len = (size_t)len;
    return f;
}

/* With the GIL. NULL is a no-op. */
static void rows_flight_free(const struct pyapi *api, struct rows_flight *f) {
    if (!f)
        return;
    api->Py_DecRef(f->bytes);
    flight_fini(&f->read);
    free(f);
}

static const char *rows_flight_text(const char *text) { return text[0] ? text : NULL; }

/* With the GIL. NULL with an exception. */
static struct pyapi_object *rows_flight_answer(const struct pyapi *api, const struct rows_flight *f) {
    if (f->error.code != ERR_OK)
        return api->PyUnicode_FromString(f->error.text);
    struct pyapi_object *list = api->PyList_New(0);
    for (size_t i = 0; list && i < f->read.n; i++) {
        const struct flight_group *g = &f->read.groups[i];
        struct pyapi_object *o = api->Py_BuildValue(
            "(LzzzLLiLLzLz)", (long long)g->number, rows_flight_text(g->name), rows_flight_text(g->desc),
            rows_flight_text(g->backend), (long long)g->enqueued, (long long)g->completed, (int)g->p2p,
            (long long)g->timeout_ms, (long long)g->open_seq, rows_flight_text(g->open_op),
            (long long)g->open_bytes, rows_flight_text(g->open_dtype));
        if (rows_append(api, list, o) == 0)
            continue;
        api->Py_DecRef(list);
        list = NULL;
    }
    return list;
}

struct rows_job {
    struct worker_job job; /* first */
    const char *function;
    struct wire_rows_ask ask;
    struct arena arena; /* texts and frames of the roots */
    struct rows_root *roots;
    size_t n_roots, told;
    bool roots_cut;
    uint64_t progress;         /* atomic */
    bool stop, stopped;        /* atomic; and the generator knows */
    unsigned wound;            /* pieces since nobody waits any longer */
    struct pyapi_object *args; /* owned, as are: */
    struct pyapi_object *list; /* the roots as the unit knows them; NULL: all were sent */
    struct pyapi_object *rows; /* the generator */
    struct numbers *numbers;   /* the last ones requested; NULL if none, or: */
    struct rows_squares *squares;
    struct rows_flight *flight;
    bool answered; /* the unit has the answer */
    struct strbuf columns, made;
    size_t n_columns, n_rows;
    bool more;
    char note[sizeof((struct wire_rows *)NULL)->note];
};

static struct rows_job *rows_job_of(struct worker_job *job) { return (struct rows_job *)(void *)job; }

static void rows_fail(struct rows_job *job, const char *why) {
    snprintf(job->job.why, sizeof job->job.why, "%s", why);
}

/* ---- to Python ---- */

/* With the GIL: put a value, which is released, into the arguments. 0 or -1. */
static int rows_set(struct rows_job *job, const struct pyapi *api, const char *key,
                    struct pyapi_object *value) {
    int rc = value ? api->PyDict_SetItemString(job->args, key, value) : -1;
    if (value)
        api->Py_DecRef(value);
    return rc;
}

/* With the GIL: the dict of arguments. 0 or -1. */
static int rows_make_args(struct rows_job *job, const struct pyapi *api) {
    job->args = api->PyDict_New();
    job->list = job->args ? api->PyList_New(0) : NULL;
    int rc = job->list ? api->PyDict_SetItemString(job->args, "roots", job->list) : -1;
    for (size_t i = 0; rc == 0 && i < job->ask.n_args; i++) {
        const struct wire_rows_arg *a = &job->ask.args[i];
        rc = rows_set(job, api, a->key,
                      a->is_text ? api->PyUnicode_FromStringAndSize(a->text, (ssize_t)strlen(a->text))
                                 : api->PyLong_FromLongLong(a->number));
    }
    return rc;
}

/* With the GIL: send the next few roots. 0 or -1. */
static int rows_send_roots(struct rows_job *job, const struct pyapi *api) {
    for (size_t i = 0; i < ROWS_ROOTS_A_STEP && job->told < job->n_roots; i++) {
        const struct rows_root *r = &job->roots[job->told++];
        struct pyapi_object *o = api->Py_BuildValue("(zzziLziz)", r->local.name, r->func, r->file, r->line,
                                                    (long long)r->tid, r->thread, r->depth, r->local.type);
        if (!o) { /* a name that is not a text: later ones must keep their numbers */
            api->PyErr_Clear();
            o = api->Py_BuildValue("(zzziLziz)", NULL, NULL, NULL, 0, 0LL, NULL, 0, NULL);
        }
        if (rows_append(api, job->list, o) != 0)
            return -1;
    }
    return 0;
}

/* With the GIL: one more piece of the start. True if there is more of it, or if it has failed. */
static bool rows_begin(struct rows_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    if (job->rows)
        return false;
    if (!job->args && rows_make_args(job, api) != 0)
        rows_fail(job, "no memory for a request to Python");
    else if (job->told < job->n_roots && !worker_runs_beside(w)) {
        if (rows_send_roots(job, api) != 0)
            rows_fail(job, "no memory for a request to Python");
    } else {
        struct pyapi_object *function = worker_helper(w, job->function);
        job->rows = function ? api->PyObject_CallFunctionObjArgs(function, job->args, NULL) : NULL;
        if (!job->rows)
            rows_fail(job, "this Python does not support it");
    }
    api->PyErr_Clear();
    return true;
}

/* With the GIL: give the unit the requested variable, while its frame lives. */
static void rows_give_root(struct rows_job *job, struct worker *w, int64_t i) {
    const struct pyapi *api = worker_api(w);
    struct pystack_living living = {.tstate = 0};
    uint64_t object;
    if (i < 0 || (uint64_t)i >= job->n_roots || worker_runs_beside(w))
        return;
    const struct rows_root *r = &job->roots[i];
    if (pystack_place_read(worker_pystack(w), &living, &r->frame, &r->local, &object) != PYSTACK_PLACE_GONE)
        api->PyDict_SetItemString(job->args, "root", (struct pyapi_object *)(uintptr_t)object);
    api->PyErr_Clear();
}

/* ---- from Python ---- */

/* With the GIL: the type of an object; it lives as long as the object does. */
static const struct pyapi_object *rows_type(const struct pyapi *api, struct pyapi_object *o) {
    struct pyapi_object *type = api->PyObject_Type(o);
    if (type)
        api->Py_DecRef(type);
    return type;
}

/* With the GIL: a value; its text is written to `text`, of which `*used` bytes are used. */
static struct wire_value rows_value(const struct pyapi *api, struct pyapi_object *o, char *text,
                                    size_t *used) {
    struct wire_value v = {.kind = WIRE_VALUE_NULL};
    if (!o || o == api->_Py_NoneStruct)
        return v;
    const struct pyapi_object *type = rows_type(api, o);
    if (o == api->_Py_TrueStruct || o == api->_Py_FalseStruct) {
        v = (struct wire_value){.kind = WIRE_VALUE_BOOL, .i = o == api->_Py_TrueStruct};
    } else if (type == api->PyLong_Type) {
        v = (struct wire_value){.kind = WIRE_VALUE_INT, .i = api->PyLong_AsLongLong(o)};
    } else if (type == api->PyFloat_Type) {
        v = (struct wire_value){.kind = WIRE_VALUE_DOUBLE, .f = api->PyFloat_AsDouble(o)};
    } else if (type == api->PyUnicode_Type &&
               pyapi_get_text(api, o, text + *used, ROWS_TEXT_BYTES - *used) == 0) {
        v = (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = text + *used, .len = strlen(text + *used)};
        *used += v.len + 1 < ROWS_TEXT_BYTES - *used ? v.len + 1 : v.len;
    }
    if (api->PyErr_Occurred()) { /* the number is too large */
        api->PyErr_Clear();
        v = (struct wire_value){.kind = WIRE_VALUE_NULL};
    }
    return v;
}

/* With the GIL: take a row from a tuple. */
static void rows_take(struct rows_job *job, const struct pyapi *api, struct pyapi_object *tuple, size_t n) {
    struct wire_value values[ROWS_COLUMNS];
    char text[ROWS_TEXT_BYTES];
    size_t used = 0;
    struct strbuf *out = job->n_columns ? &job->made : &job->columns;
    if (n > ROWS_COLUMNS)
        n = ROWS_COLUMNS;
    for (size_t i = 0; i < n; i++)
        values[i] = rows_value(api, api->PyTuple_GetItem(tuple, (ssize_t)i), text, &used);
    size_t before = out->len;
    if (wire_add_row(out, values, n) != 0) {
        out->len = before;
        job->more = true;
        worker_rows_stop(&job->job);
    } else if (job->n_columns)
        job->n_rows++;
    else
        job->n_columns = n;
}

/* With the GIL. */
static void rows_take_note(struct rows_job *job, const struct pyapi *api, struct pyapi_object *o) {
    char text[sizeof job->note];
    size_t n = strlen(job->note);
    if (pyapi_get_text(api, o, text, sizeof text) == 0 && text[0])
        snprintf(job->note + n, sizeof job->note - n, "%s%s", n ? "; " : "", text);
}

/* ---- numbers ---- */

static void rows_forget_numbers(struct rows_job *job) {
    free(job->numbers);
    rows_squares_free(job->squares);
    job->numbers = NULL;
    job->squares = NULL;
}

/* With the GIL: start to read the numbers that a list describes, or the lists in it. */
static void rows_begin_numbers(struct rows_job *job, const struct pyapi *api, struct pyapi_object *list) {
    struct numbers_view v;
    job->answered = false;
    rows_forget_numbers(job);
    if (rows_squares_is(api, list)) {
        job->squares = rows_squares_new(api, list);
        job->job.apart = job->squares != NULL;
        return;
    }
    if (rows_get_view(api, list, &v) != 0)
        return;
    job->numbers = calloc(1, sizeof *job->numbers);
    job->job.apart = job->numbers && numbers_begin(job->numbers, &v) == 0;
    if (!job->job.apart)
        rows_forget_numbers(job);
}

/* With the GIL: start to read a document. The time in which torch wrote it without the GIL does not
 * count as a hold. */
static void rows_begin_flight(struct rows_job *job, const struct pyapi *api, struct pyapi_object *bytes) {
    struct pyapi_object *apart = api->PyDict_GetItemString(job->args, "apart_ns");
    long long ns = apart ? api->PyLong_AsLongLong(apart) : 0;
    api->PyErr_Clear();
    if (ns > 0 && job->job.since_ns && (uint64_t)ns <= clock_self_cpu_ns() - job->job.since_ns)
        job->job.since_ns += (uint64_t)ns;
    rows_flight_free(api, job->flight);
    job->flight = rows_flight_new(api, bytes);
    job->answered = false;
    job->job.apart = job->flight != NULL;
}

static bool rows_off_gil(struct worker_job *base) {
    struct rows_job *job = rows_job_of(base);
    bool stop = __atomic_load_n(&job->stop, __ATOMIC_ACQUIRE);
    __atomic_add_fetch(&job->progress, 1, __ATOMIC_RELAXED);
    if (job->flight) {
        flight_read(&job->flight->read, job->flight->text, job->flight->len, &job->flight->error);
        return false;
    }
    if (job->squares)
        return !stop && rows_squares_step(job->squares);
    if (stop)
        job->numbers->failed = true;
    return !stop && numbers_step(job->numbers);
}

/* With the GIL: statistics of one array. */
static struct pyapi_object *rows_make_statistics(const struct numbers *numbers, const struct pyapi *api) {
    char bins[NUMBERS_BINS * 24] = "";
    const struct numbers_stats *s = &numbers->stats;
    for (size_t i = 0, n = 0; s->finite && i < NUMBERS_BINS; i++)
        n += (size_t)snprintf(bins + n, sizeof bins - n, "%s%llu", i ? " " : "",
                              (unsigned long long)s->bins[i]);
    return api->Py_BuildValue("(LLLLdddds)", (long long)s->count, (long long)s->nan, (long long)s->inf,
                              (long long)s->zeros, s->min, s->max, s->mean, numbers_std(s), bins);
}

/* With the GIL: give the unit the result. */
static void rows_answer_numbers(struct rows_job *job, const struct pyapi *api) {
    struct pyapi_object *answer = NULL;
    job->answered = true;
    if (job->flight) {
        answer = rows_flight_answer(api, job->flight);
        rows_flight_free(api, job->flight);
        job->flight = NULL;
    } else if (job->squares)
        answer = rows_squares_answer(api, job->squares);
    else if (!job->numbers->failed)
        answer = rows_make_statistics(job->numbers, api);
    if (answer)
        rows_set(job, api, "answer", answer);
    api->PyErr_Clear();
}

/* With the GIL: handle an item of the generator. True if it asks for a variable, and so
 * continues immediately. */
static bool rows_take_item(struct rows_job *job, struct worker *w, struct pyapi_object *o) {
    const struct pyapi *api = worker_api(w);
    if (o == api->_Py_NoneStruct)
        return false;
    const struct pyapi_object *type = rows_type(api, o);
    if (type == api->PyLong_Type) {
        rows_give_root(job, w, api->PyLong_AsLongLong(o));
        return true;
    }
    if (type == api->PyFloat_Type)
        job->job.yields = true;
    else if (type == api->PyList_Type)
        rows_begin_numbers(job, api, o);
    else if (type == api->PyUnicode_Type)
        rows_take_note(job, api, o);
    else if (type == api->PyTuple_Type)
        rows_take(job, api, o, (size_t)api->PyTuple_Size(o));
    else
        rows_begin_flight(job, api, o);
    return false;
}

/* With the GIL: continue the generator. True if there is more. */
static bool rows_go_on(struct rows_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    for (bool again = true; again;) {
        struct pyapi_object *o = api->PyIter_Next(job->rows);
        if (!o && api->PyErr_Occurred())
            rows_fail(job, "the request could not be made in Python");
        if (!o)
            return false;
        again = rows_take_item(job, w, o);
        api->Py_DecRef(o);
        api->PyErr_Clear();
    }
    return true;
}

/* With the GIL: inform the generator that it is to end. */
static void rows_send_stop(struct rows_job *job, const struct pyapi *api) {
    if (!job->stopped && job->args)
        api->PyDict_SetItemString(job->args, "stop", api->_Py_TrueStruct);
    api->PyErr_Clear();
    job->stopped = true;
}

/* With the GIL: all has been read, and what is left is to be sent. */
static bool rows_is_whole(const struct rows_job *job, const struct pyapi *api) {
    bool whole = job->args && api->PyDict_GetItemString(job->args, "whole");
    api->PyErr_Clear();
    return whole;
}

static bool rows_step(struct worker_job *base, struct worker *w) {
    struct rows_job *job = rows_job_of(base);
    __atomic_add_fetch(&job->progress, 1, __ATOMIC_RELAXED);
    if (rows_begin(job, w))
        return base->why[0] == '\0';
    if (__atomic_load_n(&job->stop, __ATOMIC_ACQUIRE)) {
        job->more = job->more || !rows_is_whole(job, worker_api(w));
        rows_send_stop(job, worker_api(w));
    }
    if ((job->numbers || job->squares || job->flight) && !job->answered)
        rows_answer_numbers(job, worker_api(w));
    return rows_go_on(job, w);
}

/* Many objects are released in pieces: releasing them together would keep the GIL for long. */
static bool rows_drain(struct worker_job *base, struct worker *w) {
    struct rows_job *job = rows_job_of(base);
    if (!job->rows || job->wound++ == ROWS_DRAIN_STEPS)
        return false;
    rows_send_stop(job, worker_api(w));
    return rows_go_on(job, w);
}

static void rows_drop(struct worker_job *base, struct worker *w) {
    struct rows_job *job = rows_job_of(base);
    struct pyapi_object **all[] = {&job->rows, &job->list, &job->args};
    rows_flight_free(worker_api(w), job->flight);
    job->flight = NULL;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i])
            worker_api(w)->Py_DecRef(*all[i]);
        *all[i] = NULL;
    }
}

static void rows_fini(struct worker_job *base) {
    struct rows_job *job = rows_job_of(base);
    strbuf_fini(&job->columns);
    strbuf_fini(&job->made);
    rows_forget_numbers(job);
    /* not dropped: without the GIL only our own memory is freed */
    if (job->flight)
        flight_fini(&job->flight->read);
    free(job->flight);
    arena_fini(&job->arena);
    free(job);
}

/* ---- the roots ---- */

static const char *rows_copy(struct rows_job *job, const char *s) {
    return s ? arena_strdup(&job->arena, s) : NULL;
}

static void rows_add_locals(struct rows_job *job, const struct model_thread *t, size_t depth) {
    const struct model_locals *l = t->locals[depth];
    const char *func = rows_copy(job, t->frames[depth].func), *file = rows_copy(job, t->frames[depth].file);
    const char *thread = rows_copy(job, t->name ? t->name : t->native_name);
    for (size_t i = 0; i < l->n; i++) {
        struct model_place *place = l->items[i].place ? arena_calloc(&job->arena, 1, sizeof *place) : NULL;
        if (!place)
            continue;
        if (job->n_roots == WORKER_ROWS_ROOTS) {
            job->roots_cut = true;
            return;
        }
        *place = *l->items[i].place;
        job->roots[job->n_roots++] = (struct rows_root){
            .frame = {.tstate = l->tstate, .frame = l->frame, .code = l->code, .instr = l->instr},
            .local = {.name = rows_copy(job, l->items[i].name),
                      .type = rows_copy(job, l->items[i].type),
                      .kind = l->items[i].kind,
                      .place = place},
            .func = func,
            .file = file,
            .thread = thread,
            .line = t->frames[depth].line,
            .tid = t->tid,
            .depth = (int)depth};
    }
}

/* Outermost frames first: the function that made an object has the best name for it. 0 or -1. */
static int rows_copy_roots(struct rows_job *job, const struct model_snapshot *s) {
    arena_init(&job->arena, ROWS_ARENA);
    job->roots = s ? arena_calloc(&job->arena, WORKER_ROWS_ROOTS, sizeof *job->roots) : NULL;
    if (s && !job->roots)
        return -1;
    for (size_t i = 0; s && i < s->n_threads; i++) {
        if (s->threads[i].has_python && s->threads[i].torn && s->threads[i].n_frames == 0)
            snprintf(job->note, sizeof job->note, "the stack of thread %lld could not be read: it moved",
                     (long long)s->threads[i].tid);
        for (size_t d = s->threads[i].locals ? s->threads[i].n_frames : 0; d > 0; d--)
            if (s->threads[i].locals[d - 1])
                rows_add_locals(job, &s->threads[i], d - 1);
    }
    if (job->roots_cut)
        snprintf(job->note, sizeof job->note, "only %d variables of frames were read", WORKER_ROWS_ROOTS);
    return job->arena.failed ? -1 : 0;
}

/* ---- for other modules ---- */

struct worker_job *worker_rows_new(const struct worker_rows_request *request, uint64_t deadline_ns) {
    struct rows_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job = (struct worker_job){.step = rows_step,
                                   .drain = rows_drain,
                                   .drop = rows_drop,
                                   .off_gil = rows_off_gil,
                                   .fini = rows_fini,
                                   .hold_ns = 6 * CLOCK_NS_PER_MS / 10,
                                   .pause_ns = 3 * CLOCK_NS_PER_MS / 2,
                                   .unit = request->unit,
                                   .deadline_ns = deadline_ns};
    job->function = request->function;
    job->ask = *request->ask;
    strbuf_init(&job->columns, WORKER_ROWS_BYTES);
    strbuf_init(&job->made, WORKER_ROWS_BYTES);
    if (rows_copy_roots(job, request->roots) == 0)
        return &job->job;
    rows_fini(&job->job);
    return NULL;
}

uint64_t worker_rows_progress(const struct worker_job *job) {
    return __atomic_load_n(&((const struct rows_job *)(const void *)job)->progress, __ATOMIC_RELAXED);
}

void worker_rows_stop(struct worker_job *job) {
    __atomic_store_n(&rows_job_of(job)->stop, true, __ATOMIC_RELEASE);
}

void worker_rows_get(const struct worker_job *base, struct wire_rows *out) {
    const struct rows_job *job = (const struct rows_job *)(const void *)base;
    *out = (struct wire_rows){.columns = job->columns.data,
                              .columns_len = job->columns.len,
                              .rows = job->made.data,
                              .rows_len = job->made.len,
                              .n_columns = job->n_columns,
                              .n_rows = job->n_rows,
                              .more = job->more};
    snprintf(out->note, sizeof out->note, "%s", job->note);
}
