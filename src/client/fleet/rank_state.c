/* SPDX-License-Identifier: Apache-2.0 */
/* rank_state: see rank_state.h. */
#include "client/fleet/rank_state.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/procfs.h"
#include "base/text.h"
#include "client/verdict/verdict_places.h"

#define RANK_STATE_FILE 8192     /* of a file of /proc */
#define RANK_STATE_APART_MS 1000 /* the clocks of two CPUs are usually not further apart */
#define RANK_STATE_NEAR 24       /* innermost frames in which torch.distributed is searched for */

void rank_state_init(struct rank_state *s) {
    *s = (struct rank_state){.state = '?', .still_s = NAN, .left_s = NAN, .gc = MODEL_UNKNOWN};
}

/* ---- the kernel's facts ---- */

/* When the thread ran last, in milliseconds of the scheduler's clock; NAN: the kernel was built
 * without it (CONFIG_SCHED_DEBUG). */
static double rank_state_ran_ms(pid_t pid, pid_t tid) {
    char text[RANK_STATE_FILE];
    if (procfs_read_file(pid, tid, "sched", text, sizeof text) <= 0)
        return NAN;
    const char *at = strstr(text, "se.exec_start");
    at = at ? strchr(at, ':') : NULL;
    return at ? strtod(at + 1, NULL) : NAN;
}

/* That clock is not the monotonic one: we run now, and the scheduler notes it when we yield. */
static double rank_state_run_ms(void) {
    sched_yield();
    return rank_state_ran_ms(0, 0);
}

/* Each CPU has such a clock of its own, without the time that a hypervisor or interrupts took from it: it is read where
 * the thread ran. If we may not run there, only that it ran a moment ago is known; otherwise NAN. */
static double rank_state_still_s(pid_t pid, pid_t tid, int64_t cpu) {
    cpu_set_t usual, there;
    double ran = rank_state_ran_ms(pid, tid);
    if (isnan(ran))
        return NAN;
    CPU_ZERO(&there);
    if (cpu >= 0 && cpu < CPU_SETSIZE)
        CPU_SET((size_t)cpu, &there);
    if (sched_getaffinity(0, sizeof usual, &usual) != 0 || sched_setaffinity(0, sizeof there, &there) != 0) {
        double now = rank_state_run_ms();
        return fabs(now - ran) < RANK_STATE_APART_MS ? fmax(0, (now - ran) / 1000) : NAN;
    }
    double now = rank_state_run_ms();
    /* it may run elsewhere by now */
    bool has_run = rank_state_ran_ms(pid, tid) != ran;
    sched_setaffinity(0, sizeof usual, &usual);
    return has_run ? 0 : isnan(now) ? NAN : fmax(0, (now - ran) / 1000);
}

static uint64_t rank_state_number(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static uint64_t rank_state_bytes(pid_t pid) {
    char text[RANK_STATE_FILE];
    if (procfs_read_file(pid, 0, "io", text, sizeof text) <= 0)
        return 0;
    return rank_state_number(text, "rchar: ") + rank_state_number(text, "wchar: ");
}

static uint64_t rank_state_cpu_ns(pid_t pid) {
    clockid_t clock;
    struct timespec at;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &at) != 0)
        return 0;
    return (uint64_t)at.tv_sec * CLOCK_NS_PER_S + (uint64_t)at.tv_nsec;
}

static void rank_state_read_thread(struct rank_state *s, pid_t pid, pid_t tid) {
    char text[256];
    struct procfs_stat st = {.cpu = -1};
    if (procfs_read_stat(pid, tid, &st) == 0)
        s->state = st.state;
    if (procfs_read_file(pid, tid, "schedstat", text, sizeof text) > 0)
        s->thread_ns = strtoull(text, NULL, 10);
    if (procfs_read_file(pid, tid, "wchan", text, sizeof text) > 0 && strcmp(text, "0") != 0)
        text_sanitize(s->wchan, sizeof s->wchan, text);
    s->still_s = s->state == 'R' ? 0 : rank_state_still_s(pid, tid, st.cpu);
}

/* ---- frames ---- */

static void rank_state_put_place(struct rank_place *p, const struct model_frame *f) {
    text_sanitize(p->func, sizeof p->func, f->func ? f->func : "?");
    text_sanitize(p->file, sizeof p->file, f->file ? f->file : "");
    p->line = f->line;
}

static bool rank_state_is_own(const struct model_frame *f) {
    return f->kind == MODEL_FRAME_PYTHON && f->file && f->func && !path_is_library(f->file) &&
           f->file[0] != '<' && !strstr(f->file, "/torch/");
}

static const char *rank_state_find(const char *class, const struct model_frame *f) {
    return f->kind == MODEL_FRAME_PYTHON ? verdict_places_find(class, f) : NULL;
}

/* torchrun and its wrappers watch processes, and checkpoints are files: no rank is waited for there. */
static bool rank_state_is_distributed(const char *file) {
    const char *at = file ? strstr(file, "/torch/distributed/") : NULL;
    const char *rest = at ? at + sizeof "/torch/distributed/" - 1 : "";
    return at && strncmp(rest, "elastic/", 8) != 0 && strncmp(rest, "launcher/", 9) != 0 &&
           strncmp(rest, "checkpoint/", 11) != 0;
}

/* The outermost function of torch.distributed in which the thread stands, not its wrappers. */
static void rank_state_find_collective(struct rank_state *s, const struct model_frame *frames, size_t n) {
    const struct model_frame *found = NULL;
    for (size_t i = 0; i < n && i < RANK_STATE_NEAR; i++) {
        const char *file = frames[i].file;
        bool is_in = rank_state_is_distributed(file);
        if (!is_in && (found || frames[i].kind == MODEL_FRAME_PYTHON))
            break;
        if (is_in && (!found || !strstr(file, "/c10d_logger.py")))
            found = &frames[i];
    }
    if (found && found->func)
        text_sanitize(s->collective, sizeof s->collective, found->func);
}

/* What it does, of the outermost frame that does something and is not a part of a training step, and
 * the job's own line for that. */
static void rank_state_find_doing(struct rank_state *s, const struct model_frame *frames, size_t n) {
    size_t phase = n, doing = n;
    for (size_t i = n; i-- > 0;) {
        const char *is = phase == n ? rank_state_find("phase", &frames[i]) : NULL;
        if (is) {
            phase = i;
            snprintf(s->phase, sizeof s->phase, "%s", is);
        }
        is = doing == n ? rank_state_find("doing", &frames[i]) : NULL;
        if (is && (phase == n || i > phase || strcmp(is, "COMPILING") == 0)) {
            doing = i;
            snprintf(s->doing, sizeof s->doing, "%s", is);
        }
    }
    for (size_t i = doing; i < n; i++)
        if (rank_state_is_own(&frames[i])) {
            rank_state_put_place(&s->at, &frames[i]);
            return;
        }
}

static void rank_state_read_frames(struct rank_state *s, const struct model_frame *frames, size_t n) {
    uint64_t hash = HASH_FNV_START;
    for (size_t i = 0; i < n; i++) {
        hash = hash_fnv_text(hash, frames[i].func);
        hash = hash_fnv_text(hash, frames[i].file);
        hash = hash_fnv(hash, &frames[i].line, sizeof frames[i].line);
        if (!s->own.func[0] && rank_state_is_own(&frames[i]))
            rank_state_put_place(&s->own, &frames[i]);
    }
    s->has_stack = n > 0;
    s->stack = hash;
    if (!n)
        return;
    rank_state_put_place(&s->leaf, &frames[0]);
    s->at = s->own.func[0] ? s->own : s->leaf;
    const char *file = frames[0].file ? frames[0].file : "";
    s->in_backward = strstr(file, "/torch/autograd/graph.py") || strstr(file, "/torch/autograd/__init__.py");
    rank_state_find_collective(s, frames, n);
    rank_state_find_doing(s, frames, n);
}

/* ---- threads ---- */

static bool rank_state_has_torch(const struct model_thread *t) {
    for (size_t i = 0; i < t->n_frames; i++)
        if (t->frames[i].file && strstr(t->frames[i].file, "/torch/") &&
            !strstr(t->frames[i].file, "/torch/utils/data/"))
            return true;
    return false;
}

/* The main thread, or, if that waits for another, the one that is inside of torch. */
static const struct model_thread *rank_state_training_thread(const struct model_snapshot *snapshot) {
    const struct model_thread *main = NULL, *other = NULL;
    for (size_t i = 0; i < snapshot->n_threads; i++) {
        const struct model_thread *t = &snapshot->threads[i];
        if (!t->has_python)
            continue;
        main = main ? main : t;
        other = !other && t != main && rank_state_has_torch(t) ? t : other;
    }
    bool waits = main && main->n_frames && main->frames[0].file &&
                 strstr(main->frames[0].file, "/threading.py") && !rank_state_has_torch(main);
    return waits && other ? other : main;
}

static void rank_state_put_holder(struct rank_state *s, const struct model_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->n_threads; i++) {
        const struct model_thread *t = &snapshot->threads[i];
        if (t->tid != snapshot->gil_tid)
            continue;
        text_sanitize(s->holder, sizeof s->holder, t->name ? t->name : "");
        for (size_t f = 0; f < t->n_frames; f++)
            if (rank_state_is_own(&t->frames[f])) {
                rank_state_put_place(&s->holder_at, &t->frames[f]);
                return;
            }
        if (t->n_frames)
            rank_state_put_place(&s->holder_at, &t->frames[0]);
        return;
    }
}

void rank_state_take(struct rank_state *s, const struct model_snapshot *snapshot) {
    const struct model_thread *t = rank_state_training_thread(snapshot);
    if (!t)
        return;
    s->state = t->state;
    s->gc = t->gc;
    s->wait = t->wait.kind;
    s->left_s = t->wait.left_us ? (double)t->wait.left_us / 1e6 : NAN;
    text_sanitize(s->waits_for, sizeof s->waits_for, t->wait.what ? t->wait.what : "");
    rank_state_read_frames(s, t->frames, t->n_frames);
    s->has_gil = t->gil == MODEL_GIL_HOLDING;
    s->needs_gil = t->gil == MODEL_GIL_WAITING;
    if (s->needs_gil && snapshot->gil_tid > 0)
        rank_state_put_holder(s, snapshot);
}

static void rank_state_read_stack(struct rank_state *s, pid_t pid, struct pystack **ps) {
    struct err e = {.code = ERR_OK};
    struct model_snapshot snapshot;
    if (*ps && !pystack_is_same(*ps)) {
        pystack_close(*ps);
        *ps = NULL;
    }
    if (!*ps)
        *ps = pystack_open(pid, &e);
    if (*ps) {
        if (pystack_snapshot(*ps, NULL, 0, &snapshot, &e) == 0)
            rank_state_take(s, &snapshot);
        const struct model_thread *t = rank_state_training_thread(&snapshot);
        pid_t tid = t ? pystack_outer_tid(*ps, t->tid) : 0;
        if (tid > 0)
            rank_state_read_thread(s, pid, tid);
        model_snapshot_fini(&snapshot);
    }
    if (!s->has_stack)
        text_sanitize(s->why, sizeof s->why, e.code == ERR_OK ? "no stack could be read" : err_text(&e));
}

void rank_state_read(struct rank_state *s, pid_t pid, struct pystack **ps) {
    struct procfs_status status;
    rank_state_init(s);
    s->at_s = (double)clock_mono_ns() / 1e9;
    s->gone = procfs_is_gone(pid);
    if (s->gone)
        return;
    s->cpu_ns = rank_state_cpu_ns(pid);
    s->bytes = rank_state_bytes(pid);
    s->traced = procfs_read_status(pid, 0, &status) == 0 && status.tracer_pid > 0;
    rank_state_read_thread(s, pid, pid);
    rank_state_read_stack(s, pid, ps);
}

bool rank_state_waits_for_ranks(const struct rank_state *s) {
    return s->collective[0] || s->wait == MODEL_WAIT_COLLECTIVE;
}
