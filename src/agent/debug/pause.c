/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause: see pause.h. Sources: Doc/c-api/init.rst (PyEval_SetTrace, PyEval_SetTraceAllThreads,
 * PyInterpreterState_ThreadHead), Python/ceval.c (_PyEval_SetTrace, 3.9 to 3.11),
 * Python/pystate.c (init_threadstate), Include/methodobject.h.
 */
#include "agent/debug/pause.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/access/access.h"
#include "agent/debug/fatal.h"
#include "agent/debug/debugger_state.h"
#include "agent/access/token.h"
#include "base/clock.h"

#define PAUSE_VARARGS 1 /* METH_VARARGS */
#define PAUSE_WHOLE_TRIES 10000
#define PAUSE_WHOLE_US 500
/* prefix of the names of the agent's threads and of the threads that they start */
#define PAUSE_OWN "probing"

typedef struct pyapi_object object;
typedef int (*pause_tracer)(object *self, void *frame, int what, object *arg);

/* PyMethodDef. */
struct pause_method {
    const char *name;
    object *(*call)(object *self, object *args);
    int flags;
    const char *doc;
};

/* Functions of Python besides those in pyapi.h; NULL if it has none with that name. */
static struct {
    struct pyapi api;                                          /* as found the first time */
    void (*set_all)(pause_tracer fn, object *self);            /* 3.12 and later */
    int (*set_of)(void *state, pause_tracer fn, object *self); /* 3.9 and later */
    void (*set_own)(pause_tracer fn, object *self);
    void *(*swap)(void *state);
    void *(*interpreter)(void);
    void *(*first)(void *interpreter);
    void *(*next)(void *state);
    void *(*save)(void);
    void (*restore)(void *state);
    int32_t made_at; /* see pystack_thread_ready_offset */
} pause_python;

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static struct access pause_access; /* protected by the lock */
static pthread_mutex_t pause_note_lock = PTHREAD_MUTEX_INITIALIZER;
static char pause_note[PAUSE_NOTE_MAX]; /* protected by that lock */

static object *pause_number(long v) { return pause_python.api.PyLong_FromLong(v); }

static object *pause_none(void) {
    pause_python.api.Py_IncRef(pause_python.api._Py_NoneStruct);
    return pause_python.api._Py_NoneStruct;
}

/* ---- threads ---- */

/* On a thread of the job, at its next event. An exception of the function is raised there. */
static int pause_on_event(object *hold, void *frame, int what, object *arg) {
    char name[17] = "";
    (void)frame;
    (void)what;
    (void)arg;
    if (prctl(PR_GET_NAME, name) != 0 || strncmp(name, PAUSE_OWN, sizeof PAUSE_OWN - 1) == 0)
        return 0;
    object *result = pause_python.api.PyObject_CallFunctionObjArgs(hold, NULL);
    if (!result)
        return -1;
    pause_python.api.Py_DecRef(result);
    return 0;
}

/* A thread that enters Python from C creates its state without the GIL: true if the state is
 * complete. */
static bool pause_is_whole(const void *state) {
    void *last;
    if (!pause_python.made_at)
        return true;
    memcpy(&last, (const char *)state + pause_python.made_at, sizeof last);
    return last != NULL;
}

/* The newest state, from which the others are reached, once it is complete: one at a time is
 * being created. NULL if it does not become complete. */
static void *pause_first(void) {
    for (int i = 0; i < PAUSE_WHOLE_TRIES; i++) {
        void *state = pause_python.first(pause_python.interpreter());
        if (!state || pause_is_whole(state))
            return state;
        void *own = pause_python.save();
        usleep(PAUSE_WHOLE_US);
        pause_python.restore(own);
    }
    return NULL;
}

/* Up to 3.11: one thread state after the other. Nothing in between releases the GIL, so none of
 * them ends meanwhile. */
static void pause_set_each(pause_tracer fn, object *hold) {
    void *own = pause_python.api.PyGILState_GetThisThreadState();
    for (void *state = pause_first(); state; state = pause_python.next(state)) {
        if (state == own)
            continue;
        if (pause_python.set_of) {
            pause_python.set_of(state, fn, hold);
            continue;
        }
        pause_python.swap(state);
        pause_python.set_own(fn, hold);
        pause_python.swap(own);
    }
}

/* (function, or None): called by every thread except this one. */
static object *pause_trace(object *self, object *args) {
    object *hold = pause_python.api.PyTuple_GetItem(args, 0);
    (void)self;
    if (!hold)
        return NULL;
    bool on = hold != pause_python.api._Py_NoneStruct;
    pause_tracer fn = on ? pause_on_event : NULL;
    if (!pause_python.set_all) {
        pause_set_each(fn, on ? hold : NULL);
    } else {
        pause_python.set_all(fn, on ? hold : NULL);
        pause_python.set_own(NULL, NULL);
    }
    return pause_none();
}

/* A number that changes with the set of threads. */
static object *pause_threads(object *self, object *args) {
    uint64_t sum = 0;
    (void)self;
    (void)args;
    for (void *state = pause_first(); state; state = pause_python.next(state))
        sum += (uint64_t)(uintptr_t)state;
    return pause_number((long)(sum & INT64_MAX));
}

/* (thread): interrupt the code that it runs. */
static object *pause_interrupt(object *self, object *args) {
    (void)self;
    int64_t ident = pyapi_get_int(&pause_python.api, args, 0);
    int n = pause_python.api.PyThreadState_SetAsyncExc((unsigned long)ident,
                                                       *pause_python.api.PyExc_KeyboardInterrupt);
    return pause_number(n);
}

/* ---- admission ---- */

static object *pause_make_token(object *self, object *args) {
    struct token made;
    struct err e;
    (void)self;
    (void)args;
    return token_make(&made, &e) == 0 ? pause_python.api.PyUnicode_FromString(made.text) : pause_none();
}

/* The user at the other end of `fd`: see pause_judge. Without the GIL, because finding users may
 * take a while. A client with the token never has to wait: failed attempts of others do not keep
 * it out. */
static int pause_check_token(int fd, const char *token, const char *said) {
    struct address near, far;
    struct token right = {.text = ""};
    strncat(right.text, token, TOKEN_LEN);
    if (access_ends(fd, &near, &far) != 0)
        return -1;
    if (said[0] && token_is(&right, said, strlen(said)))
        return 1;
    pthread_mutex_lock(&pause_lock);
    uint64_t now = clock_mono_ns();
    struct access_peer who = access_find_peer(&pause_access, &near, &far);
    int is = access_is_known(&who) ? 1 : 0;
    if (said[0]) {
        if (!is)
            access_note_failure(&pause_access, &far, who.uid, now);
        is = -1;
    } else if (!is && access_must_wait(&pause_access, &far, who.uid, now)) {
        is = -1;
    }
    pthread_mutex_unlock(&pause_lock);
    return is;
}

/* (descriptor of a connection, token, received text). For the text "": 1 if it is the job's user
 * or root; 0 if it is another user; -1 if it is refused. Otherwise 1 if it is the token, -1 if
 * it is not. */
static object *pause_judge(object *self, object *args) {
    const struct pyapi *api = &pause_python.api;
    char token[TOKEN_LEN + 1], said[2 * TOKEN_LEN + 1];
    (void)self;
    int fd = (int)pyapi_get_int(api, args, 0);
    if (pyapi_get_text(api, api->PyTuple_GetItem(args, 1), token, sizeof token) != 0 ||
        pyapi_get_text(api, api->PyTuple_GetItem(args, 2), said, sizeof said) != 0)
        return pause_number(-1);
    void *state = pause_python.save();
    int is = pause_check_token(fd, token, said);
    pause_python.restore(state);
    return pause_number(is);
}

/* ---- reports ---- */

/* (text): for the table of events. The first one stays until it is taken. */
static object *pause_report(object *self, object *args) {
    char text[PAUSE_NOTE_MAX];
    (void)self;
    pyapi_get_text(&pause_python.api, pause_python.api.PyTuple_GetItem(args, 0), text, sizeof text);
    pthread_mutex_lock(&pause_note_lock);
    if (!pause_note[0])
        memcpy(pause_note, text, sizeof text);
    pthread_mutex_unlock(&pause_note_lock);
    return pause_none();
}

/* (kind, state, address, text, milliseconds left, used): the state of a debugger, for the
 * status. */
static object *pause_get_debugger(object *self, object *args) {
    const struct pyapi *api = &pause_python.api;
    char state[16] = "", address[64] = "", text[256] = "";
    (void)self;
    pyapi_get_text(api, api->PyTuple_GetItem(args, 1), state, sizeof state);
    pyapi_get_text(api, api->PyTuple_GetItem(args, 2), address, sizeof address);
    pyapi_get_text(api, api->PyTuple_GetItem(args, 3), text, sizeof text);
    debugger_state_note((enum debugger_state_kind)pyapi_get_int(api, args, 0), state, address, text,
                        pyapi_get_int(api, args, 4), pyapi_get_int(api, args, 5) == 1);
    return pause_none();
}

bool pause_take_note(char *buf, size_t cap) {
    pthread_mutex_lock(&pause_note_lock);
    bool there = pause_note[0] != '\0';
    buf[0] = '\0';
    strncat(buf, pause_note, cap - 1);
    pause_note[0] = '\0';
    pthread_mutex_unlock(&pause_note_lock);
    return there;
}

void pause_in_child(void) {
    pause_lock = pause_note_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pause_note[0] = '\0';
}

/* ---- fatal signals ---- */

/* (1 to record them, 0 to stop recording, 2 neither; the handlers that may be faulthandler's):
 * the armed signals as in fatal_describe, or "!" and the reason why none is. Without the GIL,
 * because a thread that waits for the GIL may have the loader's lock. */
static object *pause_note_fatal(object *self, object *args) {
    const struct pyapi *api = &pause_python.api;
    char text[PAUSE_NOTE_MAX];
    struct err e = {0};
    int rc = 0;
    (void)self;
    int64_t what = pyapi_get_int(api, args, 0), reporter = pyapi_get_int(api, args, 1);
    void *python;
    memcpy(&python, &api->Py_IsInitialized, sizeof python);
    void *state = pause_python.save();
    if (what == 1)
        rc = fatal_arm(python, (unsigned)reporter, &e);
    else if (what == 0)
        fatal_disarm();
    fatal_describe(text, sizeof text);
    if (rc != 0)
        snprintf(text, sizeof text, "!%s", e.text);
    pause_python.restore(state);
    return api->PyUnicode_FromString(text);
}

/* ---- the functions for the units ---- */

#define PAUSE_FUNCTIONS 8
static struct pause_method pause_methods[PAUSE_FUNCTIONS] = {
    {"probing_held", pause_get_debugger, PAUSE_VARARGS, NULL},
    {"probing_trace", pause_trace, PAUSE_VARARGS, NULL},
    {"probing_threads", pause_threads, PAUSE_VARARGS, NULL},
    {"probing_interrupt", pause_interrupt, PAUSE_VARARGS, NULL},
    {"probing_token", pause_make_token, PAUSE_VARARGS, NULL},
    {"probing_judge", pause_judge, PAUSE_VARARGS, NULL},
    {"probing_tell", pause_report, PAUSE_VARARGS, NULL},
    {"probing_fatal", pause_note_fatal, PAUSE_VARARGS, NULL},
};

static void pause_find(const struct pyapi *api, int32_t made_at) {
    static const struct {
        const char *name;
        void *at;
    } names[] = {
        {"PyEval_SetTraceAllThreads", &pause_python.set_all},
        {"_PyEval_SetTrace", &pause_python.set_of},
        {"PyEval_SetTrace", &pause_python.set_own},
        {"PyThreadState_Swap", &pause_python.swap},
        {"PyInterpreterState_Main", &pause_python.interpreter},
        {"PyInterpreterState_ThreadHead", &pause_python.first},
        {"PyThreadState_Next", &pause_python.next},
        {"PyEval_SaveThread", &pause_python.save},
        {"PyEval_RestoreThread", &pause_python.restore},
    };
    pause_python.api = *api;
    pause_python.made_at = made_at;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *symbol = dlsym(api->library, names[i].name);
        memcpy(names[i].at, &symbol, sizeof symbol);
    }
    if (!pause_python.interpreter) { /* 3.6 */
        void *symbol = dlsym(api->library, "PyInterpreterState_Head");
        memcpy(&pause_python.interpreter, &symbol, sizeof symbol);
    }
    pause_python.api.library = NULL;
}

static bool pause_is_possible(const struct worker *w) {
    return pause_python.set_own && pause_python.swap && pause_python.interpreter && pause_python.first &&
           pause_python.next && pause_python.save && pause_python.restore && !worker_runs_beside(w);
}

int pause_give(struct worker *w) {
    const struct pyapi *api = worker_api(w);
    object *take = worker_helper(w, "pdb_server_take"), *made[PAUSE_FUNCTIONS] = {NULL}, *result = NULL;
    if (!take)
        return -1;
    if (!pause_python.api.PyCFunction_NewEx)
        pause_find(api, pystack_thread_ready_offset(worker_pystack(w)));
    bool all = true;
    for (size_t i = 0; i < PAUSE_FUNCTIONS; i++) {
        made[i] = api->PyCFunction_NewEx(&pause_methods[i], NULL, NULL);
        all = all && made[i];
    }
    object *possible = pause_is_possible(w) ? api->_Py_TrueStruct : api->_Py_FalseStruct;
    if (all)
        result = api->PyObject_CallFunctionObjArgs(take, possible, made[0], made[1], made[2], made[3],
                                                   made[4], made[5], made[6], made[7], NULL);
    for (size_t i = 0; i < PAUSE_FUNCTIONS; i++)
        if (made[i])
            api->Py_DecRef(made[i]);
    if (result)
        api->Py_DecRef(result);
    api->PyErr_Clear();
    return result ? 0 : -1;
}
