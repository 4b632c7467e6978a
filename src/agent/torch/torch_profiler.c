/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_profiler: see torch_profiler.h. Sources: torch/optim/optimizer.py (profile_hook_step),
 * torch/autograd/profiler.py, torch/csrc/autograd/profiler_kineto.cpp (its state is the
 * thread's).
 */
#include "agent/torch/torch_profiler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/torch/torch_spans.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/model.h"
#include "base/procfs.h"
#include "base/text.h"
#include "store/ring/ring_dir.h"

/* for the worker to get the GIL, and a good time */
#define TORCH_PROFILER_JOB_NS (5 * CLOCK_NS_PER_S)
#define TORCH_PROFILER_FINISH_NS (300 * CLOCK_NS_PER_S) /* and to write and sum up */
#define TORCH_PROFILER_COUNTED 10                       /* number of counted steps, or those of */
#define TORCH_PROFILER_COUNTED_NS (2 * CLOCK_NS_PER_S)
#define TORCH_PROFILER_COUNT_NS (30 * CLOCK_NS_PER_S) /* for two steps to end */
/* for the first step, and then for all of them */
#define TORCH_PROFILER_LONGEST_NS (60 * CLOCK_NS_PER_S)
#define TORCH_PROFILER_NUMBER_NS (20 * CLOCK_NS_PER_S) /* for the last step to be over */
#define TORCH_PROFILER_LEAVE_NS CLOCK_NS_PER_S
#define TORCH_PROFILER_ASK_NS (CLOCK_NS_PER_S / 2) /* between two pending calls */
/* so many times the counted operations are too many */
#define TORCH_PROFILER_MORE 4.0
#define TORCH_PROFILER_FEW 100000.0   /* unless there are at most this many */
#define TORCH_PROFILER_MOST 2000000.0 /* maximum of profiled operations */
#define TORCH_PROFILER_BASE_S 0.05    /* minimum of a pause */
/* of a pause, per operation: ending, reading and writing it */
#define TORCH_PROFILER_OP_US 20.0
#define TORCH_PROFILER_OP_MEMORY 2500.0
#define TORCH_PROFILER_OP_FILE 300.0
#define TORCH_PROFILER_SHARE 4 /* one part in so many of the free memory may be used */
#define TORCH_PROFILER_FREE_BYTES ((double)64 * 1024 * 1024)

#define TORCH_PROFILER_METH_O 0x0008

/* The unit's orders and answers: profiler.py. */
enum torch_profiler_said {
    TORCH_PROFILER_STEP = 0,
    TORCH_PROFILER_STARTED,
    TORCH_PROFILER_STOPPED,
    TORCH_PROFILER_FAILED,
    TORCH_PROFILER_CALL
};
enum torch_profiler_order {
    TORCH_PROFILER_NOTHING = 0,
    TORCH_PROFILER_START,
    TORCH_PROFILER_STOP,
    TORCH_PROFILER_DROP
};

enum torch_profiler_state {
    TORCH_PROFILER_OFF = 0,
    TORCH_PROFILER_WAITS, /* for an Optimizer.step to end */
    TORCH_PROFILER_STARTING,
    TORCH_PROFILER_ON,
    TORCH_PROFILER_STOPPING,
    TORCH_PROFILER_OVER,
    TORCH_PROFILER_BROKEN, /* it could not be started or ended */
};

/* PyMethodDef. */
struct torch_profiler_method {
    const char *name;
    struct pyapi_object *(*call)(struct pyapi_object *self, struct pyapi_object *arg);
    int flags;
    const char *doc;
};

/* Between the sampler's thread and the job's: atomic, except members that are written before
 * `state`. */
static uint32_t torch_profiler_state, torch_profiler_hurry, torch_profiler_child, torch_profiler_in;
static uint64_t torch_profiler_thread; /* of the thread that it runs on: pthread_self */
static int64_t torch_profiler_tid;     /* and its number */
static uint32_t torch_profiler_left, torch_profiler_per_step, torch_profiler_over;
static uint64_t torch_profiler_step_ns[TORCH_PROFILER_STEPS_MAX];
/* Written with the GIL. */
static struct pyapi torch_profiler_api;
static struct pyapi_object *torch_profiler_on_call; /* owned; NULL if none */

static uint32_t torch_profiler_get(const uint32_t *v) { return __atomic_load_n(v, __ATOMIC_ACQUIRE); }
static void torch_profiler_set(uint32_t *v, uint32_t to) { __atomic_store_n(v, to, __ATOMIC_RELEASE); }
static bool torch_profiler_turn(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&torch_profiler_state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

bool torch_profiler_is_in(void) { return torch_profiler_get(&torch_profiler_in) != 0; }

void torch_profiler_in_child(void) {
    torch_profiler_set(&torch_profiler_child, 1);
    torch_profiler_set(&torch_profiler_in, 0); /* an agent of the child's own may start again */
}

/* ---- on the job's threads, with the GIL ---- */

/* A step has ended on the thread that it runs on. */
static enum torch_profiler_order torch_profiler_count_step(void) {
    uint32_t per_step = torch_profiler_get(&torch_profiler_per_step),
             left = torch_profiler_get(&torch_profiler_left) - 1;
    uint32_t n = torch_profiler_over;
    torch_profiler_set(&torch_profiler_left, left);
    if (left % per_step == 0 && n < TORCH_PROFILER_STEPS_MAX) {
        torch_profiler_step_ns[n] = clock_mono_ns();
        torch_profiler_set(&torch_profiler_over, n + 1);
    }
    if (left && !torch_profiler_get(&torch_profiler_hurry))
        return TORCH_PROFILER_NOTHING;
    torch_profiler_set(&torch_profiler_state, TORCH_PROFILER_STOPPING);
    return TORCH_PROFILER_STOP;
}

/* The thread that has forked also has its profiler in the child, where nobody would ever end it. */
static enum torch_profiler_order torch_profiler_order_in_child(uint32_t state, uint64_t self) {
    bool is_on =
        state == TORCH_PROFILER_STARTING || state == TORCH_PROFILER_ON || state == TORCH_PROFILER_STOPPING;
    bool mine = __atomic_load_n(&torch_profiler_thread, __ATOMIC_ACQUIRE) == self;
    return is_on && mine && torch_profiler_turn(state, TORCH_PROFILER_OFF) ? TORCH_PROFILER_DROP
                                                                           : TORCH_PROFILER_NOTHING;
}

static enum torch_profiler_order torch_profiler_order(int64_t said) {
    uint32_t state = torch_profiler_get(&torch_profiler_state);
    uint64_t self = (uint64_t)pthread_self();
    if (torch_profiler_get(&torch_profiler_child))
        return torch_profiler_order_in_child(state, self);
    if (said == TORCH_PROFILER_STEP && state == TORCH_PROFILER_WAITS) {
        if (!torch_profiler_turn(TORCH_PROFILER_WAITS, TORCH_PROFILER_STARTING))
            return TORCH_PROFILER_NOTHING;
        __atomic_store_n(&torch_profiler_tid, (int64_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
        __atomic_store_n(&torch_profiler_thread, self, __ATOMIC_RELEASE);
        return TORCH_PROFILER_START;
    }
    if (__atomic_load_n(&torch_profiler_thread, __ATOMIC_ACQUIRE) != self)
        return TORCH_PROFILER_NOTHING;
    if (said == TORCH_PROFILER_STARTED)
        torch_profiler_set(&torch_profiler_state, TORCH_PROFILER_ON);
    else if (said == TORCH_PROFILER_STOPPED || said == TORCH_PROFILER_FAILED)
        torch_profiler_set(&torch_profiler_state,
                           said == TORCH_PROFILER_STOPPED ? TORCH_PROFILER_OVER : TORCH_PROFILER_BROKEN);
    /* it was interrupted, as by a signal, before it could answer */
    else if (state == TORCH_PROFILER_STARTING || state == TORCH_PROFILER_STOPPING)
        return TORCH_PROFILER_STOP;
    else if (said == TORCH_PROFILER_STEP && state == TORCH_PROFILER_ON)
        return torch_profiler_count_step();
    else if (said == TORCH_PROFILER_CALL && state == TORCH_PROFILER_ON &&
             torch_profiler_get(&torch_profiler_hurry)) {
        torch_profiler_set(&torch_profiler_state, TORCH_PROFILER_STOPPING);
        return TORCH_PROFILER_STOP;
    }
    return TORCH_PROFILER_NOTHING;
}

static struct pyapi_object *torch_profiler_callback(struct pyapi_object *self, struct pyapi_object *arg) {
    (void)self;
    long long said = torch_profiler_api.PyLong_AsLongLong(arg);
    return torch_profiler_api.PyLong_FromLong((long)torch_profiler_order(said));
}

struct pyapi_object *torch_profiler_new_callback(const struct pyapi *api) {
    static struct torch_profiler_method method = {"probing_profiler", torch_profiler_callback,
                                                  TORCH_PROFILER_METH_O, NULL};
    torch_profiler_api = *api;
    return api->PyCFunction_NewEx(&method, NULL, NULL);
}

void torch_profiler_keep(const struct pyapi *api, struct pyapi_object *on_call) {
    struct pyapi_object *before = torch_profiler_on_call;
    if (on_call)
        api->Py_IncRef(on_call);
    torch_profiler_on_call = on_call;
    if (before)
        api->Py_DecRef(before);
}

/* A pending call, of the main thread. It may run at any later time. */
static int torch_profiler_on_pending(void *arg) {
    (void)arg;
    bool wanted = torch_profiler_get(&torch_profiler_state) == TORCH_PROFILER_ON &&
                  !torch_profiler_get(&torch_profiler_child);
    struct pyapi_object *result =
        wanted && torch_profiler_on_call
            ? torch_profiler_api.PyObject_CallFunctionObjArgs(torch_profiler_on_call, NULL)
            : NULL;
    if (result)
        torch_profiler_api.Py_DecRef(result);
    /* an exception of a signal handler is the job's */
    return wanted && torch_profiler_on_call && !result ? -1 : 0;
}

/* ---- the expected cost ---- */

void torch_profiler_init(struct torch_profiler *p, struct worker *worker, struct training *training) {
    *p = (struct torch_profiler){.worker = worker, .training = training};
}

void torch_profiler_fini(struct torch_profiler *p) {
    torch_spans_count(false);
    worker_release(p->worker, p->job);
    p->job = NULL;
}

static void torch_profiler_go(struct torch_profiler *p, enum torch_profiler_phase phase, uint64_t now_ns) {
    p->phase = phase;
    p->phase_ns = now_ns;
}

/* Memory that may still be used, bytes; NAN if unknown. */
static double torch_profiler_free_memory(const struct torch_profiler *p) {
    char text[4096];
    int64_t used = MODEL_UNKNOWN, limit = MODEL_UNKNOWN;
    double free_bytes = NAN;
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    const char *at = strstr(text, "MemAvailable:");
    if (at)
        free_bytes = strtod(at + strlen("MemAvailable:"), NULL) * 1024;
    cgroup_read_memory(&p->training->record->collect.groups, &used, &limit);
    if (limit != MODEL_UNKNOWN && used != MODEL_UNKNOWN && !(free_bytes <= (double)(limit - used)))
        free_bytes = (double)(limit - used);
    return free_bytes;
}

/*
 * The files of traces, in a folder of the user, beside the folders of tables, from all processes
 * of the user: the newest ones are kept.
 */

#define TORCH_PROFILER_KEPT 8 /* files, including the next one */
#define TORCH_PROFILER_FILES_FIRST "profile-"
#define TORCH_PROFILER_FILES_LAST ".json"
#define TORCH_PROFILER_FILES_MAX_ENTRIES 65536 /* entries of a folder */

static void torch_profiler_put_name(const char *base, char *path, size_t cap) {
    snprintf(path, cap, "%.400s/" TORCH_PROFILER_FILES_FIRST "%ld-%.0f" TORCH_PROFILER_FILES_LAST, base,
             (long)getpid(), clock_epoch_s() * 1000);
}

/* The time at which a file with that name was written, in ms since the epoch; 0: it is not the
 * name of a trace. */
static uint64_t torch_profiler_file_time(const char *name) {
    char *end = NULL;
    if (strncmp(name, TORCH_PROFILER_FILES_FIRST, sizeof TORCH_PROFILER_FILES_FIRST - 1) != 0)
        return 0;
    const char *pid = name + sizeof TORCH_PROFILER_FILES_FIRST - 1;
    if (strspn(pid, "0123456789") == 0 || pid[strspn(pid, "0123456789")] != '-')
        return 0;
    const char *at = pid + strspn(pid, "0123456789") + 1;
    uint64_t ms = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
    return ms && strcmp(end, TORCH_PROFILER_FILES_LAST) == 0 ? ms : 0;
}

/* Insert it among the newest, newest first; the oldest of them drops out. */
static void torch_profiler_file_note(uint64_t *newest, size_t n, uint64_t ms) {
    size_t i = n;
    for (; i > 0 && newest[i - 1] < ms; i--)
        if (i < n)
            newest[i] = newest[i - 1];
    if (i < n)
        newest[i] = ms;
}

/* True if it is a file of this user. */
static bool torch_profiler_file_is_ours(int dir, const char *name) {
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* Make room for another: files that cannot be removed stay. */
static void torch_profiler_prune(const char *base) {
    uint64_t newest[TORCH_PROFILER_KEPT - 1] = {0}, *oldest = &newest[TORCH_PROFILER_KEPT - 2];
    const struct dirent *entry;
    DIR *d = opendir(base);
    if (!d)
        return;
    for (size_t i = 0; i < TORCH_PROFILER_FILES_MAX_ENTRIES && (entry = readdir(d)); i++)
        if (torch_profiler_file_time(entry->d_name) && torch_profiler_file_is_ours(dirfd(d), entry->d_name))
            torch_profiler_file_note(newest, TORCH_PROFILER_KEPT - 1,
                                     torch_profiler_file_time(entry->d_name));
    rewinddir(d);
    for (size_t i = 0; i < TORCH_PROFILER_FILES_MAX_ENTRIES && (entry = readdir(d)); i++) {
        uint64_t ms = torch_profiler_file_time(entry->d_name);
        if (ms && ms < *oldest && torch_profiler_file_is_ours(dirfd(d), entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
    }
    closedir(d);
}

/* True if it is a folder of ours alone. It is made if it does not exist. */
static bool torch_profiler_owns(const char *path) {
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Choose a name for the file, beside the folders of tables, where there is room; on a disk
 * rather than in memory. */
static int torch_profiler_name(struct torch_profiler *p, double bytes, struct err *e) {
    char base[RING_DIR_PATH];
    struct statvfs fs;
    for (int i = RING_DIR_BASES; i-- > 0;) {
        if (ring_dir_base(base, i, p->training->record->config.data_dir, geteuid(), 0) != 0 ||
            !torch_profiler_owns(base) || statvfs(base, &fs) != 0 ||
            (double)fs.f_bavail * (double)fs.f_frsize < bytes + TORCH_PROFILER_FREE_BYTES)
            continue;
        torch_profiler_put_name(base, p->file, sizeof p->file);
        torch_profiler_prune(base);
        return 0;
    }
    return err_set(e, ERR_FAILED, "there is no room for a file of %.0f MiB where tables are kept",
                   bytes / 1048576);
}

static void torch_profiler_put_cost(struct torch_profiler *p) {
    char bytes[32];
    text_human_bytes(bytes, sizeof bytes, p->expected * TORCH_PROFILER_OP_FILE);
    snprintf(p->note, sizeof p->note,
             "%lld step%s: about %.0f operations: the job will stop for about %.2g s when they end, and a "
             "file of about %s is written",
             (long long)p->steps, p->steps == 1 ? "" : "s", p->expected,
             TORCH_PROFILER_BASE_S + p->expected * TORCH_PROFILER_OP_US / 1e6, bytes);
}

/* 0: the cost is acceptable; or -1 with the error. */
static int torch_profiler_judge(struct torch_profiler *p, struct err *e) {
    double free_bytes = torch_profiler_free_memory(p), needed = p->expected * TORCH_PROFILER_OP_MEMORY;
    if (p->expected > TORCH_PROFILER_MOST)
        return err_set(
            e, ERR_FAILED,
            "%lld steps have about %.0f operations: more than %.0f would stop the job for too long",
            (long long)p->steps, p->expected, TORCH_PROFILER_MOST);
    if (needed > free_bytes / TORCH_PROFILER_SHARE)
        return err_set(e, ERR_FAILED, "about %.0f MiB of memory are needed, and only %.0f MiB are free",
                       needed / 1048576, free_bytes / 1048576);
    return torch_profiler_name(p, p->expected * TORCH_PROFILER_OP_FILE, e);
}

int torch_profiler_begin(struct torch_profiler *p, const struct wire_arm *want, uint64_t now_ns,
                         struct err *e) {
    const struct training *training = p->training;
    struct procfs_status st;
    if (torch_profiler_is_busy(p) || torch_profiler_is_in())
        return err_set(e, ERR_FAILED, "an earlier profile is still running");
    if (!training->reports && (training->refused || !p->training->record->facts.torch[0]))
        return err_set(e, ERR_FAILED, "%s",
                       training->note[0] ? training->note
                                         : "no training steps seen (flamegraph profiles any Python)");
    if (procfs_read_status(getpid(), 0, &st) == 0 && st.tracer_pid > 0)
        return err_set(e, ERR_FAILED, "process %lld traces the job, as debuggers do",
                       (long long)st.tracer_pid);
    *p = (struct torch_profiler){.worker = p->worker, .training = p->training};
    p->steps = want->steps < TORCH_PROFILER_STEPS_MAX ? want->steps : TORCH_PROFILER_STEPS_MAX;
    p->dry = want->dry;
    p->compiled = want->compiled;
    p->expected = NAN;
    torch_profiler_go(p, TORCH_PROFILER_COUNTS, now_ns);
    return 0;
}

/* ---- phases ---- */

static enum torch_profiler_end torch_profiler_rest(struct torch_profiler *p, enum torch_profiler_end how) {
    torch_spans_count(false);
    worker_release(p->worker, p->job);
    p->job = NULL;
    torch_profiler_set(&torch_profiler_state, TORCH_PROFILER_OFF);
    p->phase = TORCH_PROFILER_IDLE;
    return how;
}

static enum torch_profiler_end torch_profiler_refuse(struct torch_profiler *p, const struct err *e) {
    snprintf(p->note, sizeof p->note, "%s", e->text);
    return torch_profiler_rest(p, TORCH_PROFILER_REFUSED);
}

static bool torch_profiler_submit(struct torch_profiler *p, struct worker_job *job) {
    struct err e;
    if (job && worker_submit(p->worker, job, &e) == 0) {
        p->job = job;
        return true;
    }
    if (job)
        job->fini(job);
    return false;
}

/* True if complete steps have been counted. */
static bool torch_profiler_counts(struct torch_profiler *p, int64_t steps, uint64_t ops, uint64_t now_ns) {
    if (!p->counts) {
        p->counts = p->training->reports && torch_spans_count(true);
        p->first_step = steps;
    } else if (!p->aligned && steps > p->first_step) {
        /* the step that was in progress at the start is over: from here on steps are complete */
        p->aligned = true;
        p->first_step = steps;
        p->first_ops = ops;
    }
    bool enough =
        steps - p->first_step >= TORCH_PROFILER_COUNTED || now_ns - p->phase_ns > TORCH_PROFILER_COUNTED_NS;
    return p->aligned && steps > p->first_step && enough;
}

/* Operations between the ends of steps, as far as polls now and then show them. */
static enum torch_profiler_end torch_profiler_poll_counts(struct torch_profiler *p, bool wanted,
                                                          uint64_t now_ns, struct err *e) {
    const struct training *training = p->training;
    const struct steps *s = &training->steps;
    uint64_t ops = torch_spans_counted();
    if (!wanted)
        return torch_profiler_rest(p, TORCH_PROFILER_DONE);
    if (now_ns - p->phase_ns > TORCH_PROFILER_COUNT_NS) {
        err_set(e, ERR_FAILED, "no two training steps have ended within %.0f s%s%s",
                (double)TORCH_PROFILER_COUNT_NS / 1e9, training->note[0] ? ": " : "", training->note);
        return torch_profiler_refuse(p, e);
    }
    if (!torch_profiler_counts(p, s->count, ops, now_ns))
        return TORCH_PROFILER_GOES_ON;
    p->expected = (double)(ops - p->first_ops) / (double)(s->count - p->first_step) * (double)p->steps;
    torch_profiler_put_cost(p);
    if (torch_profiler_judge(p, e) != 0)
        return torch_profiler_refuse(p, e);
    if (p->dry) {
        p->file[0] = '\0';
        return torch_profiler_rest(p, TORCH_PROFILER_DONE);
    }
    torch_profiler_set(&torch_profiler_child, 0);
    torch_profiler_set(&torch_profiler_hurry, 0);
    torch_profiler_set(&torch_profiler_over, 0);
    torch_profiler_set(&torch_profiler_per_step, s->per_step ? s->per_step : 1);
    torch_profiler_set(&torch_profiler_left,
                       (uint32_t)p->steps * torch_profiler_get(&torch_profiler_per_step));
    if (!torch_profiler_submit(p, torch_profiler_job_enter(p->compiled, now_ns + TORCH_PROFILER_JOB_NS))) {
        err_set(e, ERR_FAILED, "the python worker takes no job");
        return torch_profiler_refuse(p, e);
    }
    torch_profiler_set(&torch_profiler_in, 1);
    torch_profiler_go(p, TORCH_PROFILER_ENTERS, now_ns);
    return TORCH_PROFILER_GOES_ON;
}

static void torch_profiler_begin_leave(struct torch_profiler *p, uint64_t now_ns) {
    worker_release(p->worker, p->job);
    p->job = NULL;
    torch_profiler_go(p, TORCH_PROFILER_LEAVES, now_ns);
}

static void torch_profiler_poll_enters(struct torch_profiler *p, uint64_t now_ns) {
    enum worker_end end = worker_get_end(p->worker, p->job);
    if (end == WORKER_PENDING)
        return;
    const char *note = torch_profiler_job_note(p->job);
    if (end == WORKER_DONE && !note[0]) {
        worker_release(p->worker, p->job);
        p->job = NULL;
        p->first_ops = torch_spans_counted();
        torch_profiler_set(&torch_profiler_state, TORCH_PROFILER_WAITS);
        torch_profiler_go(p, TORCH_PROFILER_RUNS, now_ns);
        return;
    }
    snprintf(p->note, sizeof p->note, "%s", note[0] ? note : p->job->why);
    torch_profiler_begin_leave(p, now_ns); /* it may be installed */
}

/* True if it must be ended before its steps are over. */
static bool torch_profiler_is_overdue(const struct torch_profiler *p, bool wanted, uint64_t now_ns) {
    double ops = (double)(torch_spans_counted() - p->first_ops);
    double most = p->expected * TORCH_PROFILER_MORE;
    return !wanted || now_ns - p->phase_ns > TORCH_PROFILER_LONGEST_NS ||
           ops > (most > TORCH_PROFILER_FEW ? most : TORCH_PROFILER_FEW);
}

static void torch_profiler_poll_runs(struct torch_profiler *p, bool wanted, uint64_t now_ns) {
    uint32_t state = torch_profiler_get(&torch_profiler_state);
    p->discards |= !wanted;
    if (state == TORCH_PROFILER_OVER || state == TORCH_PROFILER_BROKEN) {
        torch_profiler_begin_leave(p, now_ns);
        return;
    }
    if (!torch_profiler_is_overdue(p, wanted, now_ns) && !torch_profiler_get(&torch_profiler_hurry))
        return;
    if (torch_profiler_turn(TORCH_PROFILER_WAITS, TORCH_PROFILER_OFF)) {
        snprintf(p->note, sizeof p->note, "nothing was profiled: no optimizer took a step");
        torch_profiler_begin_leave(p, now_ns);
        return;
    }
    torch_profiler_set(&torch_profiler_hurry, 1);
    torch_profiler_go(p, TORCH_PROFILER_HURRIES, now_ns);
}

/* Another hook must be installed where the thread passes sooner. Tried again and again. */
static void torch_profiler_poll_hurries(struct torch_profiler *p, uint64_t now_ns) {
    uint32_t state = torch_profiler_get(&torch_profiler_state);
    if (state == TORCH_PROFILER_OVER || state == TORCH_PROFILER_BROKEN) {
        torch_profiler_begin_leave(p, now_ns);
        return;
    }
    bool on_main = __atomic_load_n(&torch_profiler_tid, __ATOMIC_ACQUIRE) == (int64_t)getpid();
    if (on_main && now_ns - p->asked_ns >= TORCH_PROFILER_ASK_NS && torch_profiler_api.Py_AddPendingCall) {
        /* repeatedly: there may have been no room for it, or no profiler yet */
        p->asked_ns = now_ns;
        torch_profiler_api.Py_AddPendingCall(torch_profiler_on_pending, NULL);
    }
    if (p->job && worker_get_end(p->worker, p->job) == WORKER_PENDING)
        return;
    bool in = p->job && worker_get_end(p->worker, p->job) == WORKER_DONE;
    if (in)
        return;
    worker_release(p->worker, p->job);
    p->job = NULL;
    torch_profiler_submit(p, torch_profiler_job_hurry(now_ns + TORCH_PROFILER_JOB_NS));
}

/* ---- results ---- */

/* True if the numbers of its steps are known. A step is over when the next one has begun. */
static bool torch_profiler_knows_steps(const struct torch_profiler *p) {
    uint32_t ended = torch_profiler_get(&torch_profiler_over);
    for (size_t i = 0; ended && i < TRAINING_STEP_ENDS; i++)
        if (p->training->ends[i].step && p->training->ends[i].end_ns >= torch_profiler_step_ns[ended - 1])
            return true;
    return !ended;
}

static void torch_profiler_write(struct torch_profiler *p, const struct torch_profiler_found *f) {
    union ring_value v[RING_SPANS_COUNT];
    uint32_t ended = torch_profiler_get(&torch_profiler_over);
    for (size_t i = 0; i < f->n; i++) {
        const struct torch_profiler_row *row = &f->rows[i];
        size_t at = row->step >= 0 && row->step < (int64_t)ended ? (size_t)row->step : ended;
        int64_t step = at < ended ? training_step_at(p->training, torch_profiler_step_ns[at]) : -1;
        v[RING_SPANS_TIMESTAMP].f = (double)row->begin_ns / 1e9;
        v[RING_SPANS_NAME].s = row->name;
        v[RING_SPANS_DURATION_MS].f = (double)row->took_ns / 1e6;
        v[RING_SPANS_TID].i = row->tid < 0 ? RING_INT_NULL : row->tid;
        v[RING_SPANS_STEP].i = step < 0 ? RING_INT_NULL : step;
        v[RING_SPANS_KIND].i = row->tid == TORCH_PROFILER_GPU ? RING_SPAN_GPU : RING_SPAN_PROFILER;
        v[RING_SPANS_CALLS].i = row->calls;
        record_append(p->training->record, RING_SPANS, v);
    }
    /* a client that has waited for its end reads them then */
    record_flush_now(p->training->record);
}

static void torch_profiler_report_found(struct torch_profiler *p, const struct torch_profiler_found *f) {
    char bytes[32];
    uint32_t ended = torch_profiler_get(&torch_profiler_over);
    text_human_bytes(bytes, sizeof bytes, f->bytes);
    snprintf(p->note, sizeof p->note, "%u step%s, %lld operations, %s of a trace; the job stopped for %.2g s",
             ended, ended == 1 ? "" : "s", (long long)f->events, bytes, (double)f->pause_us / 1e6);
    size_t used = strlen(p->note);
    if (f->gpus > 0 && f->steps_ns > 0)
        snprintf(p->note + used, sizeof p->note - used, "; %s was at work for %.0f %% of the time",
                 f->gpus == 1 ? "the GPU" : "the busiest GPU", 100 * (double)f->gpu_ns / (double)f->steps_ns);
}

static enum torch_profiler_end torch_profiler_poll_leaves(struct torch_profiler *p, bool wanted,
                                                          uint64_t now_ns, struct err *e) {
    bool keeps = torch_profiler_get(&torch_profiler_state) == TORCH_PROFILER_OVER && !p->discards && wanted;
    if (!p->job) {
        uint64_t until = now_ns + (keeps ? TORCH_PROFILER_FINISH_NS : TORCH_PROFILER_JOB_NS);
        torch_profiler_submit(p,
                              torch_profiler_job_leave(keeps ? p->file : NULL,
                                                       torch_profiler_get(&torch_profiler_per_step), until));
        return TORCH_PROFILER_GOES_ON;
    }
    enum worker_end end = worker_get_end(p->worker, p->job);
    struct torch_profiler_found found;
    if (end == WORKER_PENDING)
        return TORCH_PROFILER_GOES_ON;
    torch_profiler_job_get(p->job, &found);
    if (end == WORKER_FAILED) { /* the hook is still installed: try again */
        snprintf(p->note, sizeof p->note, "%s", p->job->why);
        worker_release(p->worker, p->job);
        p->job = NULL;
        return TORCH_PROFILER_GOES_ON;
    }
    torch_profiler_set(&torch_profiler_in, 0);
    const char *note = torch_profiler_job_note(p->job);
    if (found.written && !torch_profiler_knows_steps(p) && now_ns - p->phase_ns < TORCH_PROFILER_NUMBER_NS)
        return TORCH_PROFILER_GOES_ON;
    if (found.written) {
        torch_profiler_write(p, &found);
        torch_profiler_report_found(p, &found);
        p->seen = torch_profiler_get(&torch_profiler_over);
        return torch_profiler_rest(p, TORCH_PROFILER_DONE);
    }
    p->file[0] = '\0';
    err_set(e, ERR_FAILED, "%s", note[0] ? note : p->note[0] ? p->note : "nothing was profiled");
    return p->discards ? torch_profiler_rest(p, TORCH_PROFILER_DONE) : torch_profiler_refuse(p, e);
}

enum torch_profiler_end torch_profiler_poll(struct torch_profiler *p, bool wanted, uint64_t now_ns,
                                            struct err *e) {
    switch (p->phase) {
    case TORCH_PROFILER_IDLE:
        return TORCH_PROFILER_DONE;
    case TORCH_PROFILER_COUNTS:
        return torch_profiler_poll_counts(p, wanted, now_ns, e);
    case TORCH_PROFILER_ENTERS:
        torch_profiler_poll_enters(p, now_ns);
        break;
    case TORCH_PROFILER_RUNS:
        torch_profiler_poll_runs(p, wanted, now_ns);
        break;
    case TORCH_PROFILER_HURRIES:
        torch_profiler_poll_hurries(p, now_ns);
        break;
    case TORCH_PROFILER_LEAVES:
        return torch_profiler_poll_leaves(p, wanted, now_ns, e);
    }
    return TORCH_PROFILER_GOES_ON;
}

/* ---- leaving ---- */

int torch_profiler_leave(struct worker *w, struct err *e) {
    uint64_t until = clock_mono_ns() + TORCH_PROFILER_LEAVE_NS;
    (void)w;
    if (!torch_profiler_is_in())
        return 0;
    /* the sampler makes the worker remove its hook */
    torch_profiler_turn(TORCH_PROFILER_WAITS, TORCH_PROFILER_BROKEN);
    torch_profiler_set(&torch_profiler_hurry, 1);
    while (torch_profiler_is_in() && clock_mono_ns() < until) {
        struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    if (!torch_profiler_is_in())
        return 0;
    return err_set(e, ERR_FAILED,
                   "torch.profiler runs in the job, and only its own thread can end it: try again later");
}
