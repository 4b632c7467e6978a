/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_trace: see alloc_trace.h. */
#include "agent/alloc/alloc_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/alloc/alloc_native.h"
#include "agent/alloc/alloc_python.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "store/ring/ring_tables.h"

#define ALLOC_TRACE_POLL_NS (100 * CLOCK_NS_PER_MS) /* between two readings of samples */
/* while the worker is at work, or the last reading found many */
#define ALLOC_TRACE_SOON_NS (10 * CLOCK_NS_PER_MS)
#define ALLOC_TRACE_MANY 100
#define ALLOC_TRACE_JOB_NS (2 * CLOCK_NS_PER_S)
#define ALLOC_TRACE_RETRY_NS CLOCK_NS_PER_S
#define ALLOC_TRACE_RENEW_NS (2 * CLOCK_NS_PER_S) /* between two searches for new libraries */
#define ALLOC_TRACE_LEAVE_NS CLOCK_NS_PER_S
#define ALLOC_TRACE_CHECK_NS (10 * CLOCK_NS_PER_S)
#define ALLOC_TRACE_TIDS 512
#define ALLOC_TRACE_ACCOUNT_NS (200 * CLOCK_NS_PER_MS) /* between two looks at the cost */
#define ALLOC_TRACE_ROWS 256 /* a second; the others keep their bytes until the next one */
#define ALLOC_TRACE_STACKS 65536
#define ALLOC_TRACE_STACK_BYTES ((size_t)8 * 1024 * 1024)
#define ALLOC_TRACE_ARENA ((size_t)256 * 1024)
/* Samples may take so much of one core; calls of hooks come on top of that. */
#define ALLOC_TRACE_BUDGET_PCT 1.0

/* ---- with the worker ---- */

enum alloc_trace_work {
    ALLOC_TRACE_INSERT,
    ALLOC_TRACE_RENEW, /* hooks for libraries that were loaded meanwhile */
    ALLOC_TRACE_REMOVE,
};

struct alloc_trace_job {
    struct worker_job job; /* first */
    enum alloc_trace_work work;
    bool apart_done;
    uint64_t every;
    double call_ns;
    uint64_t loads;      /* of libraries, before they were examined */
    int stay, changed;   /* domains in which a hook stays; words that others had changed */
    char no_python[128]; /* why there are no hooks in Python's allocators; "" if there are */
    char no_native[128]; /* the same for libraries */
};

/* Atomic: jobs that may still put hooks in. */
static uint32_t alloc_trace_entering;
static uint32_t alloc_trace_leaving; /* atomic: the agent leaves, and nothing is put in any more */

static struct alloc_trace_job *alloc_trace_job_of(struct worker_job *job) {
    return (struct alloc_trace_job *)(void *)job;
}

static bool alloc_trace_job_step(struct worker_job *base, struct worker *w) {
    struct alloc_trace_job *job = alloc_trace_job_of(base);
    const struct pyapi *api = worker_api(w);
    if (job->apart_done)
        return false;
    base->apart = true;
    if (job->work == ALLOC_TRACE_REMOVE)
        job->stay = alloc_python_remove(api);
    if (job->work != ALLOC_TRACE_INSERT)
        return true;
    if (__atomic_load_n(&alloc_trace_leaving, __ATOMIC_ACQUIRE)) {
        snprintf(base->why, sizeof base->why, "the agent is leaving");
        base->apart = false;
        return false;
    }
    if (alloc_samples_begin(worker_pystack(w), api->PyGILState_GetThisThreadState, job->every) != 0) {
        snprintf(base->why, sizeof base->why, "a thread is still in the last tracing: try again");
        base->apart = false;
        return false;
    }
    alloc_python_insert(api, !worker_runs_beside(w), job->no_python, sizeof job->no_python);
    return true;
}

static bool alloc_trace_job_off_gil(struct worker_job *base) {
    struct alloc_trace_job *job = alloc_trace_job_of(base);
    job->loads = alloc_native_loads();
    if (job->work == ALLOC_TRACE_REMOVE)
        job->changed = alloc_native_remove();
    else if (!__atomic_load_n(&alloc_trace_leaving, __ATOMIC_ACQUIRE))
        alloc_native_insert(job->no_native, sizeof job->no_native);
    if (job->work == ALLOC_TRACE_INSERT)
        job->call_ns = alloc_samples_call_ns();
    if (job->no_python[0] && job->no_native[0])
        snprintf(base->why, sizeof base->why, "%s; %s", job->no_python, job->no_native);
    job->apart_done = true;
    return false;
}

static void alloc_trace_job_drop(struct worker_job *base, struct worker *w) {
    (void)base;
    (void)w;
}

static void alloc_trace_job_fini(struct worker_job *base) {
    struct alloc_trace_job *job = alloc_trace_job_of(base);
    if (job->work != ALLOC_TRACE_REMOVE)
        __atomic_fetch_sub(&alloc_trace_entering, 1, __ATOMIC_RELEASE);
    free(job);
}

static struct worker_job *alloc_trace_job_new(enum alloc_trace_work work, uint64_t every,
                                              uint64_t deadline_ns) {
    struct alloc_trace_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    *job = (struct alloc_trace_job){.job = {.step = alloc_trace_job_step,
                                            .drop = alloc_trace_job_drop,
                                            .off_gil = alloc_trace_job_off_gil,
                                            .fini = alloc_trace_job_fini,
                                            .deadline_ns = deadline_ns},
                                    .work = work,
                                    .every = every};
    if (work != ALLOC_TRACE_REMOVE)
        __atomic_fetch_add(&alloc_trace_entering, 1, __ATOMIC_RELEASE);
    return &job->job;
}

static int alloc_trace_submit(struct alloc_trace *t, enum alloc_trace_work work, uint64_t now_ns,
                              struct err *e) {
    struct worker_job *job = alloc_trace_job_new(work, t->every, now_ns + ALLOC_TRACE_JOB_NS);
    if (job && worker_submit(t->worker, job, e) == 0) {
        t->job = job;
        return 0;
    }
    if (job)
        job->fini(job);
    return job ? -1 : err_set(e, ERR_FAILED, "no memory to trace allocations");
}

static void alloc_trace_release(struct alloc_trace *t) {
    worker_release(t->worker, t->job);
    t->job = NULL;
}

/* ---- samples ---- */

/* A stack without Python: who called malloc. */
static uint32_t alloc_trace_native(struct alloc_trace *t, const struct alloc_native_caller *caller) {
    const struct model_frame frame = {.kind = MODEL_FRAME_NATIVE,
                                      .func = caller->function[0] ? caller->function : NULL,
                                      .file = caller->library,
                                      .module = caller->library};
    uint32_t stack = caller->library ? trie_add(&t->stacks, &frame, 1) : 0;
    return stack == TRIE_FULL ? 0 : stack;
}

/* Who called malloc; known ones are not searched for again. */
static const struct alloc_native_caller *alloc_trace_caller(struct alloc_trace *t, uint64_t address) {
    struct alloc_trace_caller *known =
        &t->callers[address * 0x9E3779B97F4A7C15ULL >> ALLOC_TRACE_CALLER_SHIFT];
    if (known->address != address || !address) {
        alloc_native_find_caller(address, &known->of);
        known->address = address;
    }
    return &known->of;
}

/* The frames of a record, as a number of t->stacks; 0 unknown. */
static uint32_t alloc_trace_stack(struct alloc_trace *t, struct pystack *ps, const struct alloc_record *r,
                                  const struct pystack_self *copy) {
    struct arena arena;
    struct model_frame *frames = NULL;
    bool truncated = false;
    uint64_t unknown = 0;
    uint32_t stack = 0;
    if (!ps || r->n_frames == 0)
        return 0;
    arena_init(&arena, ALLOC_TRACE_ARENA);
    ssize_t n = pystack_self_decode(ps, copy, alloc_samples_known(), &arena, &frames, &truncated, &unknown);
    if (n > 0)
        stack = truncated ? trie_add_truncated(&t->stacks, frames, (size_t)n)
                          : trie_add(&t->stacks, frames, (size_t)n);
    arena_fini(&arena);
    t->overflowed += stack == TRIE_FULL;
    return stack == TRIE_FULL ? 0 : stack;
}

static bool alloc_trace_on_free(void *arg, uint32_t entry, uint64_t serial) {
    return alloc_sites_free(arg, entry, serial);
}

/* Dropped samples belong to no site, but to the sum. */
static void alloc_trace_add_lost(struct alloc_trace *t) {
    struct alloc_samples_stats now;
    alloc_samples_get_stats(&now);
    for (size_t i = 0; i < ALLOC_DOMAINS; i++)
        if (now.lost_bytes[i] > t->lost_bytes[i])
            alloc_sites_add_unknown(&t->sites, (uint8_t)i, (double)(now.lost_bytes[i] - t->lost_bytes[i]));
    memcpy(t->lost_bytes, now.lost_bytes, sizeof t->lost_bytes);
}

static void alloc_trace_read(struct alloc_trace *t) {
    size_t n = 0;
    struct pystack *ps = t->host.pystack(t->host.arg);
    struct pystack_self *copy = NULL;
    for (const struct alloc_record *r; (r = alloc_samples_next(&copy)); n++) {
        const struct alloc_native_caller *caller = r->caller ? alloc_trace_caller(t, r->caller) : NULL;
        uint32_t stack = alloc_trace_stack(t, ps, r, copy);
        if (caller && r->n_frames == 0 && r->end == PYSTACK_SELF_WHOLE)
            stack = alloc_trace_native(t, caller);
        alloc_sites_add(&t->sites, stack, caller && caller->is_torch ? ALLOC_TORCH : r->domain,
                        (struct alloc_sites_size){.size = r->size, .mean = r->mean}, r->entry, r->serial);
    }
    alloc_samples_each_free(alloc_trace_on_free, &t->sites);
    t->is_busy = n > ALLOC_TRACE_MANY;
}

/* ---- rows ---- */

static void alloc_trace_write(struct alloc_trace *t, uint32_t index, double now_s) {
    struct model_frame frames[ALLOC_SAMPLES_FRAMES + 1];
    const struct alloc_site *site = &t->sites.sites[index];
    union ring_value v[RING_ALLOCATIONS_COUNT];
    size_t n = 0;
    for (uint32_t at = site->stack; at && n < sizeof frames / sizeof frames[0];
         at = t->stacks.stacks[at - 1].parent_id)
        frames[n++] = t->stacks.frames[t->stacks.stacks[at - 1].frame_id - 1].frame;
    v[RING_ALLOCATIONS_TIMESTAMP].f = now_s;
    v[RING_ALLOCATIONS_FUNCTION].s = n ? frames[0].func : NULL;
    v[RING_ALLOCATIONS_FILE].s = n ? frames[0].file : NULL;
    v[RING_ALLOCATIONS_LINENO].i = n && frames[0].line > 0 ? frames[0].line : RING_INT_NULL;
    v[RING_ALLOCATIONS_BYTES].i = llround(site->allocated);
    v[RING_ALLOCATIONS_CALLS].i = llround(site->calls);
    v[RING_ALLOCATIONS_STACK].i = n ? t->host.number(t->host.arg, frames, n) : RING_INT_NULL;
    v[RING_ALLOCATIONS_LIVE].i = site->live > 0 ? llround(site->live) : 0;
    v[RING_ALLOCATIONS_FREED].i = llround(site->freed);
    v[RING_ALLOCATIONS_DOMAIN].i = site->domain;
    record_append(t->record, RING_ALLOCATIONS, v);
    alloc_sites_settle(&t->sites, index);
}

static size_t alloc_trace_write_rows(struct alloc_trace *t) {
    uint32_t list[ALLOC_TRACE_ROWS];
    double now_s = clock_epoch_s();
    size_t n = t->record->set ? alloc_sites_changed(&t->sites, list, ALLOC_TRACE_ROWS) : 0;
    for (size_t i = 0; i < n; i++)
        alloc_trace_write(t, list[i], now_s);
    return n;
}

/* ---- cost ---- */

static void alloc_trace_describe(struct alloc_trace *t, const struct alloc_samples_stats *now) {
    char mean[32], every[32];
    size_t n = 0;
    t->note[0] = '\0';
    if (t->lacks[0])
        n += (size_t)snprintf(t->note, sizeof t->note, "%s. ", t->lacks);
    text_human_bytes(mean, sizeof mean, (double)t->mean);
    text_human_bytes(every, sizeof every, (double)t->every);
#define ALLOC_TRACE_ADD(...)                                                                                 \
    do {                                                                                                     \
        if (n < sizeof t->note)                                                                              \
            n += (size_t)snprintf(t->note + n, sizeof t->note - n, __VA_ARGS__);                             \
    } while (0)
    if (t->mean > t->every)
        ALLOC_TRACE_ADD("a sample every %s instead of %s, to keep its cost down. ", mean, every);
    if (now->lost)
        ALLOC_TRACE_ADD("%llu of %llu samples were dropped. ", (unsigned long long)now->lost,
                        (unsigned long long)now->samples);
    if (now->unfollowed)
        ALLOC_TRACE_ADD("the table of live blocks was full: %llu samples count as live until tracing ends. ",
                        (unsigned long long)now->unfollowed);
    if (t->overflowed || t->sites.homeless)
        ALLOC_TRACE_ADD("there are too many different stacks: the newest ones are merged. ");
    if (now->strangers)
        ALLOC_TRACE_ADD("there are too many threads: %llu allocations were not sampled. ",
                        (unsigned long long)now->strangers);
#undef ALLOC_TRACE_ADD
    if (n > 1 && n < sizeof t->note)
        t->note[n - 2] = '\0';
}

/* What it has cost, and whether samples must be further apart. */
static void alloc_trace_account(struct alloc_trace *t, uint64_t took_ns) {
    struct alloc_samples_stats now;
    alloc_samples_get_stats(&now);
    alloc_trace_add_lost(t);
    double samples_ns = (double)(now.spent_ns - t->seen.spent_ns);
    double calls = now.calls > t->seen.calls ? (double)(now.calls - t->seen.calls) : 0;
    double pct = 100 * samples_ns / (double)took_ns;
    t->spent_ns += samples_ns + calls * t->call_ns;
    t->pct = 100 * (samples_ns + calls * t->call_ns) / (double)took_ns;
    t->seen = now;
    uint64_t mean = t->mean;
    if (pct > ALLOC_TRACE_BUDGET_PCT && mean < (uint64_t)ALLOC_TRACE_EVERY_MAX)
        mean = (uint64_t)((double)mean * fmin(pct / ALLOC_TRACE_BUDGET_PCT, 8));
    else if (pct < ALLOC_TRACE_BUDGET_PCT / 4 && mean > t->every)
        mean = mean / 2 > t->every ? mean / 2 : t->every;
    if (mean != t->mean)
        alloc_samples_set_mean(mean);
    t->mean = mean;
    alloc_trace_describe(t, &now);
}

double alloc_trace_pct(const struct alloc_trace *t, uint64_t now_ns) {
    return t->begun_ns && now_ns > t->begun_ns ? 100 * t->spent_ns / (double)(now_ns - t->begun_ns) : NAN;
}

/* ---- phases ---- */

/* A thread with seccomp filters other than ours might be killed for what copying its stack calls. Its
 * number; 0 if there is none. */
static int64_t alloc_trace_find_filtered(void) {
    pid_t tids[ALLOC_TRACE_TIDS];
    struct procfs_status own, status;
    ssize_t n = procfs_list_tids(0, tids, ALLOC_TRACE_TIDS);
    if (procfs_read_status(0, (pid_t)syscall(SYS_gettid), &own) != 0)
        return 0;
    for (ssize_t i = 0; i < n && i < ALLOC_TRACE_TIDS; i++)
        if (procfs_read_status(0, tids[i], &status) == 0 &&
            (status.seccomp != own.seccomp || status.seccomp_filters != own.seccomp_filters))
            return tids[i];
    return 0;
}

static int alloc_trace_refuse_filtered(struct err *e) {
    int64_t tid = alloc_trace_find_filtered();
    return tid ? err_set(e, ERR_FAILED,
                         "thread %lld has a seccomp filter of its own, which may forbid it to copy its stack",
                         (long long)tid)
               : 0;
}

void alloc_trace_init(struct alloc_trace *t, struct worker *worker, struct record *record,
                      const struct alloc_trace_host *host) {
    *t = (struct alloc_trace){.worker = worker, .record = record, .host = *host, .next_ns = UINT64_MAX};
    trie_init(&t->stacks, ALLOC_TRACE_STACKS, ALLOC_TRACE_STACK_BYTES);
    __atomic_store_n(&alloc_trace_leaving, 0, __ATOMIC_RELEASE);
}

void alloc_trace_fini(struct alloc_trace *t) {
    alloc_samples_end();
    alloc_trace_release(t);
    alloc_sites_fini(&t->sites);
    trie_reset(&t->stacks);
    t->phase = ALLOC_TRACE_IDLE;
    t->next_ns = UINT64_MAX;
}

static void alloc_trace_go(struct alloc_trace *t, enum alloc_trace_phase phase, uint64_t now_ns) {
    t->phase = phase;
    t->next_ns = phase == ALLOC_TRACE_IDLE ? UINT64_MAX : now_ns + ALLOC_TRACE_SOON_NS;
}

int alloc_trace_begin(struct alloc_trace *t, uint64_t every, uint64_t now_ns, struct err *e) {
    struct pystack *ps = t->host.pystack(t->host.arg);
    if (every < ALLOC_TRACE_EVERY_MIN || every > (uint64_t)ALLOC_TRACE_EVERY_MAX)
        return err_set(e, ERR_USAGE, "samples may be 1 KiB to 1 TiB apart");
    if (t->phase == ALLOC_TRACE_LEAVES) {
        t->next_every = every;
        return 0;
    }
    if (!ps)
        return err_set(e, ERR_FAILED, "there is no Python in this process");
    if (pystack_own_file(ps) >= 0)
        return err_set(e, ERR_FAILED, "process_vm_readv is refused in this process (a seccomp filter)");
    if (alloc_trace_refuse_filtered(e) != 0)
        return -1;
    if (!pystack_self_supports(pystack_get_info(ps)))
        return err_set(e, ERR_FAILED, "threads of Python %s cannot copy their own stacks",
                       pystack_get_info(ps)->version);
    record_begin(t->record);
    t->every = t->mean = every;
    t->is_lost = false;
    t->next_every = 0;
    t->note[0] = '\0';
    t->begun_ns = 0;
    t->spent_ns = 0;
    t->overflowed = 0;
    t->seen = (struct alloc_samples_stats){.calls = 0};
    memset(t->lost_bytes, 0, sizeof t->lost_bytes);
    if (alloc_sites_init(&t->sites, ALLOC_SAMPLES_LIVE) != 0)
        return err_set(e, ERR_FAILED, "no memory to trace allocations");
    if (alloc_trace_submit(t, ALLOC_TRACE_INSERT, now_ns, e) != 0) {
        alloc_sites_fini(&t->sites);
        return -1;
    }
    alloc_trace_go(t, ALLOC_TRACE_ENTERS, now_ns);
    return 0;
}

static void alloc_trace_forget(struct alloc_trace *t) {
    alloc_sites_fini(&t->sites);
    trie_reset(&t->stacks);
    memset(t->callers, 0, sizeof t->callers);
}

/* The hooks do nothing any more; the worker takes them out. */
static void alloc_trace_begin_leave(struct alloc_trace *t, uint64_t now_ns) {
    alloc_samples_stop();
    alloc_trace_release(t);
    if (t->begun_ns) {
        alloc_trace_read(t);
        alloc_trace_account(t, clock_mono_ns() - t->account_ns);
        while (alloc_trace_write_rows(t) > 0)
            ;
        record_flush_now(t->record); /* whoever has ended it reads them next */
    }
    alloc_trace_forget(t);
    alloc_samples_end();
    t->retry_ns = now_ns;
    alloc_trace_go(t, ALLOC_TRACE_LEAVES, now_ns);
}

static enum alloc_trace_end alloc_trace_end_enter(struct alloc_trace *t, uint64_t now_ns, struct err *e) {
    enum worker_end end = worker_get_end(t->worker, t->job);
    if (end == WORKER_PENDING)
        return ALLOC_TRACE_GOES_ON;
    if (end == WORKER_DONE) {
        const struct alloc_trace_job *job = alloc_trace_job_of(t->job);
        t->call_ns = job->call_ns;
        t->loads = job->loads;
        snprintf(t->lacks, sizeof t->lacks, "%s%s", job->no_python, job->no_native);
        alloc_trace_release(t);
        t->begun_ns = t->row_ns = t->account_ns = t->checked_ns = now_ns;
        alloc_trace_go(t, ALLOC_TRACE_RUNS, now_ns);
        return ALLOC_TRACE_GOES_ON;
    }
    err_set(e, ERR_FAILED, "%s", t->job->why);
    snprintf(t->note, sizeof t->note, "%s", t->job->why);
    alloc_trace_release(t);
    alloc_trace_begin_leave(t, now_ns);
    return ALLOC_TRACE_REFUSED;
}

/* Libraries that were loaded since get their hooks, too. */
static void alloc_trace_renew(struct alloc_trace *t, uint64_t now_ns) {
    struct err e;
    if (t->job && worker_get_end(t->worker, t->job) != WORKER_PENDING) {
        if (worker_get_end(t->worker, t->job) == WORKER_DONE)
            t->loads = alloc_trace_job_of(t->job)->loads;
        alloc_trace_release(t);
    }
    if (!t->job && now_ns >= t->retry_ns && alloc_native_is_in()) {
        t->retry_ns = now_ns + ALLOC_TRACE_RENEW_NS;
        if (alloc_native_loads() != t->loads)
            alloc_trace_submit(t, ALLOC_TRACE_RENEW, now_ns, &e);
    }
}

static void alloc_trace_run(struct alloc_trace *t, uint64_t now_ns) {
    alloc_trace_renew(t, now_ns);
    alloc_trace_read(t);
    if (now_ns - t->account_ns >= ALLOC_TRACE_ACCOUNT_NS) {
        alloc_trace_account(t, now_ns - t->account_ns);
        t->account_ns = now_ns;
    }
    if (now_ns - t->row_ns < CLOCK_NS_PER_S)
        return;
    alloc_trace_write_rows(t);
    t->row_ns = now_ns;
}

/* True if they are out, or will never be. */
static bool alloc_trace_end_leave(struct alloc_trace *t, uint64_t now_ns) {
    struct err e;
    if (!alloc_trace_is_in())
        return true;
    if (t->is_lost) { /* no worker is left */
        alloc_native_remove();
        return true;
    }
    if (!t->job) {
        if (now_ns >= t->retry_ns && alloc_trace_submit(t, ALLOC_TRACE_REMOVE, now_ns, &e) != 0) {
            snprintf(t->note, sizeof t->note, "unused hooks stay in the job for now: %s", e.text);
            t->retry_ns = now_ns + ALLOC_TRACE_RETRY_NS;
        }
        return false;
    }
    enum worker_end end = worker_get_end(t->worker, t->job);
    if (end == WORKER_PENDING)
        return false;
    int stay = alloc_trace_job_of(t->job)->stay, changed = alloc_trace_job_of(t->job)->changed;
    if (end == WORKER_FAILED)
        snprintf(t->note, sizeof t->note, "unused hooks are still in the job: %s", t->job->why);
    else if (stay)
        snprintf(t->note, sizeof t->note,
                 "another allocator was installed above ours (tracemalloc?): %d of 3 hooks stay below it and "
                 "only pass calls on",
                 stay);
    else if (changed)
        snprintf(t->note, sizeof t->note,
                 "%d pointers of libraries were changed by other code in the meantime and stay as they are",
                 changed);
    alloc_trace_release(t);
    t->retry_ns = now_ns + ALLOC_TRACE_RETRY_NS;
    return end == WORKER_DONE;
}

/* Now and then: may it go on? 0, or -1 with the error, which is the note, too. */
static int alloc_trace_check(struct alloc_trace *t, uint64_t now_ns, struct err *e) {
    if (now_ns - t->checked_ns < ALLOC_TRACE_CHECK_NS)
        return 0;
    t->checked_ns = now_ns;
    if (alloc_trace_refuse_filtered(e) == 0)
        return 0;
    snprintf(t->note, sizeof t->note, "%s", e->text);
    return -1;
}

enum alloc_trace_end alloc_trace_poll(struct alloc_trace *t, bool wanted, uint64_t now_ns, struct err *e) {
    enum alloc_trace_end end = ALLOC_TRACE_GOES_ON;
    if (t->phase == ALLOC_TRACE_ENTERS)
        end = alloc_trace_end_enter(t, now_ns, e);
    else if (t->phase == ALLOC_TRACE_RUNS && wanted && alloc_trace_check(t, now_ns, e) != 0) {
        alloc_trace_begin_leave(t, now_ns);
        end = ALLOC_TRACE_REFUSED;
    } else if (t->phase == ALLOC_TRACE_RUNS && wanted)
        alloc_trace_run(t, now_ns);
    else if (t->phase == ALLOC_TRACE_RUNS)
        alloc_trace_begin_leave(t, now_ns);
    if (t->phase == ALLOC_TRACE_LEAVES && alloc_trace_end_leave(t, now_ns)) {
        alloc_trace_release(t);
        alloc_trace_go(t, ALLOC_TRACE_IDLE, now_ns);
        uint64_t every = t->next_every;
        if (wanted && every && end == ALLOC_TRACE_GOES_ON)
            return alloc_trace_begin(t, every, now_ns, e) == 0 ? ALLOC_TRACE_GOES_ON : ALLOC_TRACE_REFUSED;
        t->next_every = 0;
        return end == ALLOC_TRACE_GOES_ON ? ALLOC_TRACE_OVER : end;
    }
    bool soon = t->phase == ALLOC_TRACE_ENTERS || (t->phase == ALLOC_TRACE_RUNS && t->is_busy) ||
                (t->phase == ALLOC_TRACE_LEAVES && t->retry_ns <= now_ns);
    t->next_ns = now_ns + (soon ? ALLOC_TRACE_SOON_NS : ALLOC_TRACE_POLL_NS);
    return end;
}

void alloc_trace_lose(struct alloc_trace *t) {
    alloc_samples_stop();
    alloc_python_lose();
    t->is_lost = true;
    if (t->phase == ALLOC_TRACE_IDLE)
        return;
    snprintf(t->note, sizeof t->note, "the interpreter has ended");
    if (t->phase == ALLOC_TRACE_RUNS || t->phase == ALLOC_TRACE_ENTERS) {
        alloc_trace_release(t);
        alloc_trace_begin_leave(t, clock_mono_ns());
    }
}

bool alloc_trace_is_in(void) { return alloc_python_is_in() || alloc_native_is_in(); }

void alloc_trace_stay(void) { __atomic_store_n(&alloc_trace_leaving, 0, __ATOMIC_RELEASE); }

int alloc_trace_leave(struct worker *w, struct err *e) {
    uint64_t until = clock_mono_ns() + ALLOC_TRACE_LEAVE_NS;
    __atomic_store_n(&alloc_trace_leaving, 1, __ATOMIC_RELEASE);
    alloc_samples_stop();
    if (!alloc_trace_is_in() && !__atomic_load_n(&alloc_trace_entering, __ATOMIC_ACQUIRE))
        return 0;
    struct worker_job *job = alloc_trace_job_new(ALLOC_TRACE_REMOVE, 0, until);
    if (!job || worker_submit(w, job, e) != 0) {
        if (job)
            job->fini(job);
        return job ? -1 : err_set(e, ERR_FAILED, "no memory to take hooks out");
    }
    while (worker_get_end(w, job) == WORKER_PENDING && clock_mono_ns() < until + ALLOC_TRACE_LEAVE_NS) {
        const struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    bool out = worker_get_end(w, job) == WORKER_DONE;
    worker_release(w, job);
    if (out)
        return 0;
    return err_set(
        e, ERR_FAILED,
        "hooks in the job's allocators cannot be removed before the GIL is acquired: try again later");
}

size_t alloc_trace_bytes(const struct alloc_trace *t) {
    return alloc_trace_is_busy(t) ? alloc_sites_bytes(&t->sites) + trie_bytes(&t->stacks) : 0;
}
