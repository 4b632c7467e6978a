/* SPDX-License-Identifier: Apache-2.0 */
/* safe_point: see safe_point.h. */
#include "inject/safe_point.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/syscall_restart.h"
#include "inject/check.h"
#include "inject/filter.h"
#include "inject/unwind.h"

#define SAFE_POINT_MAX_TIDS 4096
#define SAFE_POINT_TIME_PLACES 2
#define SAFE_POINT_STOP_NS (500 * CLOCK_NS_PER_MS)
#define SAFE_POINT_BUDGET_NS (2 * CLOCK_NS_PER_MS)
#define SAFE_POINT_PAUSE_NS 2000000L
#define SAFE_POINT_PAUSE_MAX_NS 20000000L
#define SAFE_POINT_RANK_RUNNING 100
#define SAFE_POINT_RANK_PARTIAL 200 /* after all others, and only where there is nothing else */
#define SAFE_POINT_RANK_PARENT 10   /* after others of their kind: see safe_point_calls */

/* Why a thread was refused; the first ones are places in the code. */
enum safe_point_refusal {
    SAFE_POINT_MOVED = TARGET_PLACES,
    SAFE_POINT_UNINTERRUPTIBLE,
    SAFE_POINT_STOPPED,
    SAFE_POINT_LOADER_BUSY,
    SAFE_POINT_IN_RSEQ,
    SAFE_POINT_NO_STATE,
    SAFE_POINT_WRONG_CALL,
    SAFE_POINT_NOT_TRACEABLE,
    SAFE_POINT_FILTERED,
    SAFE_POINT_PARTIAL,
    SAFE_POINT_REFUSALS
};

static const char *const safe_point_refusal_text[SAFE_POINT_REFUSALS] = {
    [TARGET_PLAIN] = "in a call that must not be interrupted",
    [TARGET_UNKNOWN_CODE] = "in code without unwind information",
    [TARGET_STDIO] = "holding a stream's lock",
    [TARGET_SIGNAL] = "in a signal handler",
    [TARGET_PROCESS] = "in fork, exit or spawn",
    [TARGET_THREADS] = "creating or ending a thread",
    [TARGET_ALLOCATOR] = "inside the memory allocator",
    [TARGET_LOADER] = "inside the dynamic loader",
    [SAFE_POINT_MOVED] = "running too fast to be stopped at one",
    [SAFE_POINT_UNINTERRUPTIBLE] = "in an uninterruptible wait (state D)",
    [SAFE_POINT_STOPPED] = "stopped",
    [SAFE_POINT_LOADER_BUSY] = "waiting while a library is being loaded",
    [SAFE_POINT_IN_RSEQ] = "in a restartable sequence",
    [SAFE_POINT_NO_STATE] = "not readable",
    [SAFE_POINT_WRONG_CALL] = "in a call that must not be interrupted",
    [SAFE_POINT_NOT_TRACEABLE] = "not traceable",
    [SAFE_POINT_PARTIAL] = "in a call that may be partly done",
    [SAFE_POINT_FILTERED] = "under a seccomp filter that would kill it for what the agent does",
};

struct safe_point_candidate {
    pid_t tid;
    int rank;
    long nr;
};

struct safe_point {
    struct target *t;
    struct unwinder *unwinder;
    struct unwind_copy *copy;
    uint8_t *again;          /* the stack at the second stop */
    enum target_place limit; /* the worst place accepted in this round */
    enum target_place seen;  /* the worst place of the thread accepted */
    unsigned refusals[SAFE_POINT_REFUSALS];
    uint64_t stopped_ns;
    struct err first_error; /* of a stop that was not permitted */
    /* the last one was refused because another of our programs traces the thread */
    bool is_busy;
};

/* --- system calls ---------------------------------------------------------------------------------------------- */

struct safe_point_call {
    long nr;
    int rank;
    const char *name;
};

/* 0: the kernel restarts it without a trace, unless a part of it may be done
 * (syscall_restart_is_partial). 1: restarted with the rest of its time. 2: we
 * repeat it (syscall_restart_rewind), and its time starts again. From SAFE_POINT_RANK_PARENT on,
 * a parent's: a child may end during our stop. Its SIGCHLD, which the kernel drops where it is
 * ignored, is kept for a traced parent: it wakes another thread, whose call may end with EINTR. */
static const struct safe_point_call safe_point_calls[] = {
    {SYS_futex, 0, "futex"},
    {SYS_read, 0, "read"},
    {SYS_wait4, 13, "wait4"},
    {SYS_waitid, 13, "waitid"},
    {SYS_pause, 0, "pause"},
    {SYS_write, 0, "write"},
    {SYS_clock_nanosleep, 1, "clock_nanosleep"},
    {SYS_nanosleep, 1, "nanosleep"},
    {SYS_restart_syscall, 1, "restart_syscall"},
    {SYS_poll, 1, "poll"},
    {SYS_ppoll, 1, "ppoll"},
    {SYS_select, 1, "select"},
    {SYS_pselect6, 1, "pselect6"},
    {SYS_accept, 2, "accept"},
    {SYS_accept4, 2, "accept4"},
    {SYS_recvfrom, 2, "recvfrom"},
    {SYS_recvmsg, 2, "recvmsg"},
    {SYS_recvmmsg, 2, "recvmmsg"},
    {SYS_sendto, 2, "sendto"},
    {SYS_sendmsg, 2, "sendmsg"},
    {SYS_epoll_wait, 2, "epoll_wait"},
    {SYS_epoll_pwait, 2, "epoll_pwait"},
    {SYS_rt_sigtimedwait, 2, "rt_sigtimedwait"},
    {SYS_semop, 2, "semop"},
    {SYS_semtimedop, 2, "semtimedop"},
};

static const struct safe_point_call *safe_point_call_of(long nr) {
    for (size_t i = 0; i < sizeof safe_point_calls / sizeof safe_point_calls[0]; i++)
        if (safe_point_calls[i].nr == nr)
            return &safe_point_calls[i];
    return NULL;
}

int safe_point_rank_call(long nr, const char *file) {
    const struct safe_point_call *call = safe_point_call_of(nr);
    if (!call)
        return -1;
    if ((nr == SYS_read || nr == SYS_write) && file[0] == '/' && strncmp(file, "/dev/pts/", 9) != 0 &&
        strncmp(file, "/dev/tty", 8) != 0)
        return -1;
    return call->rank;
}

void safe_point_call_name(char *buf, size_t cap, long nr) {
    const struct safe_point_call *call = safe_point_call_of(nr);
    if (call)
        snprintf(buf, cap, "%s", call->name);
    else
        snprintf(buf, cap, "system call %ld", nr);
}

/* --- candidates ------------------------------------------------------------------------------------------------ */

static void safe_point_refuse(struct safe_point *m, unsigned why) {
    if (why < SAFE_POINT_REFUSALS)
        m->refusals[why]++;
}

static int safe_point_rank_sleeper(pid_t pid, pid_t tid, long *nr) {
    struct procfs_syscall sc;
    char file[128] = "";
    int rc = procfs_read_syscall(pid, tid, &sc);
    if (rc < 0)
        return -1;
    /* it has woken up */
    if (rc > 0)
        return SAFE_POINT_RANK_RUNNING;
    *nr = sc.nr;
    /* a named pipe waits like an unnamed one */
    if ((sc.nr == SYS_read || sc.nr == SYS_write) &&
        syscall_restart_read_file(pid, (int)sc.args[0], file, sizeof file))
        file[0] = '\0';
    int rank = safe_point_rank_call(sc.nr, file);
    return rank >= 0 && syscall_restart_is_partial(pid, &sc) ? SAFE_POINT_RANK_PARTIAL : rank;
}

static int safe_point_cmp(const void *a, const void *b) {
    const struct safe_point_candidate *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->tid > y->tid) - (x->tid < y->tid);
}

/* The threads worth trying, best first. */
static size_t safe_point_list(struct safe_point *m, struct safe_point_candidate *out, pid_t *tids) {
    pid_t pid = m->t->pid;
    ssize_t n = procfs_list_tids(pid, tids, SAFE_POINT_MAX_TIDS);
    size_t count = 0;
    memset(m->refusals, 0, sizeof m->refusals);
    for (ssize_t i = 0; i < n && i < SAFE_POINT_MAX_TIDS; i++) {
        struct procfs_stat st;
        struct safe_point_candidate c = {.tid = tids[i], .rank = SAFE_POINT_RANK_RUNNING, .nr = -1};
        if (procfs_read_stat(pid, tids[i], &st) != 0)
            continue;
        if (st.state == 'S') {
            c.rank = safe_point_rank_sleeper(pid, tids[i], &c.nr);
            if (c.rank < 0) {
                safe_point_refuse(m, SAFE_POINT_WRONG_CALL);
                continue;
            }
            if (c.rank == SAFE_POINT_RANK_PARTIAL && m->limit == TARGET_PLAIN) {
                safe_point_refuse(m, SAFE_POINT_PARTIAL);
                continue;
            }
        } else if (st.state == 'D') {
            safe_point_refuse(m, SAFE_POINT_UNINTERRUPTIBLE);
            continue;
        } else if (st.state != 'R') {
            safe_point_refuse(m, SAFE_POINT_STOPPED);
            continue;
        }
        if (procfs_has_children(pid, c.tid) > 0)
            c.rank += SAFE_POINT_RANK_PARENT;
        out[count++] = c;
    }
    qsort(out, count, sizeof *out, safe_point_cmp);
    return count;
}

/* --- one thread ------------------------------------------------------------------------------------------------ */

/* Release a thread that was only examined. */
static void safe_point_let_go(struct safe_point *m, struct thread *th) {
    thread_release(th);
    m->stopped_ns += th->stopped_ns;
    th->stopped_ns = 0;
}

struct safe_point_map_search {
    uint64_t addr, end;
};

static int safe_point_match_map(const struct procfs_map *map, void *arg) {
    struct safe_point_map_search *s = arg;
    if (s->addr < map->start || s->addr >= map->end)
        return 0;
    s->end = map->end;
    return 1;
}

/* Copy the stack from the red zone of `sp` to the end of its mapping, as far as there is room. 0
 * or -1. */
static int safe_point_copy_stack(struct safe_point *m, struct unwind_copy *c) {
    const struct target_map *map = target_map_at(m->t, c->regs.rsp);
    struct safe_point_map_search s = {.addr = c->regs.rsp, .end = map ? map->end : 0};
    /* a stack made after the snapshot is looked up again */
    if (!map && procfs_each_map(m->t->pid, safe_point_match_map, &s) != 1)
        return -1;
    c->stack_at = c->regs.rsp;
    c->stack_len = s.end - c->stack_at < UNWIND_STACK_MAX ? (size_t)(s.end - c->stack_at) : UNWIND_STACK_MAX;
    return mem_read(&m->t->mem, c->stack_at, c->stack, c->stack_len);
}

/* Where the kernel writes the remaining time when a call is interrupted, by our stops too:
 * select(2), pselect6, ppoll(2), nanosleep(2), clock_nanosleep(2). A call that continues as
 * restart_syscall has the arguments of the original. */
static size_t safe_point_time_places(const struct user_regs_struct *r, uint64_t at[SAFE_POINT_TIME_PLACES]) {
    switch (r->orig_rax) {
    case SYS_select:
    case SYS_pselect6:
        at[0] = r->r8;
        return 1;
    case SYS_ppoll:
        at[0] = r->rdx;
        return 1;
    case SYS_nanosleep:
        at[0] = r->rsi;
        return 1;
    case SYS_clock_nanosleep:
        at[0] = r->r10;
        return 1;
    case SYS_restart_syscall:
        at[0] = r->rsi;
        at[1] = r->r10;
        return 2;
    default:
        return 0;
    }
}

/* Exclude the remaining time from the comparison. */
static void safe_point_forget_time(struct safe_point *m, size_t used) {
    uint64_t at[SAFE_POINT_TIME_PLACES];
    size_t n = safe_point_time_places(&m->copy->regs, at);
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < sizeof(struct timespec); k++) {
            uint64_t byte = at[i] + k - m->copy->stack_at;
            if (byte < used)
                m->again[byte] = m->copy->stack[byte];
        }
}

/* True if the thread is where it was when its stack was copied. rax and orig_rax differ between
 * the first and a restarted call. */
static bool safe_point_is_same(struct safe_point *m, const struct user_regs_struct *now, size_t used) {
    const struct unwind_copy *c = m->copy;
    struct user_regs_struct a = c->regs, b = *now;
    a.rax = b.rax = a.orig_rax = b.orig_rax = 0;
    if (memcmp(&a, &b, sizeof a) != 0)
        return false;
    if (mem_read(&m->t->mem, c->stack_at, m->again, used) != 0)
        return false;
    safe_point_forget_time(m, used);
    return memcmp(c->stack, m->again, used) == 0;
}

/* True if another of our programs traces it. */
static bool safe_point_is_ours(const struct thread *th) {
    struct procfs_status st;
    char name[64];
    return procfs_read_status(th->pid, th->tid, &st) == 0 && st.tracer_pid > 0 &&
           procfs_read_comm((pid_t)st.tracer_pid, 0, name, sizeof name) == 0 && check_is_ours(name);
}

/* Stop it for the first time: read registers and, of a running thread, the stack too. 0, or -1
 * with the refusal counted. */
static int safe_point_stop(struct safe_point *m, struct thread *th, struct user_regs_struct *regs) {
    struct err e = {0};
    if (thread_stop(th, SAFE_POINT_STOP_NS, &e) != 0) {
        if (e.code == ERR_ATTACH && m->first_error.code == ERR_OK)
            m->first_error = e;
        safe_point_refuse(m, th->seized ? SAFE_POINT_UNINTERRUPTIBLE : SAFE_POINT_NOT_TRACEABLE);
        m->is_busy = !th->seized && safe_point_is_ours(th);
        return -1;
    }
    if (th->signal == SIGTRAP && !th->deliver && thread_get_regs(th, regs) == 0) {
        syscall_restart_settle(th, regs);
        return 0;
    }
    safe_point_refuse(m, th->deliver             ? SAFE_POINT_MOVED
                         : th->signal != SIGTRAP ? SAFE_POINT_STOPPED
                                                 : SAFE_POINT_NO_STATE);
    safe_point_let_go(m, th);
    return -1;
}

/* Whether the unwound stack allows borrowing the thread. */
static bool safe_point_accept(struct safe_point *m, const struct unwind_result *r) {
    if (r->worst > m->limit) {
        safe_point_refuse(m, r->worst);
        return false;
    }
    if (!target_loader_is_consistent(m->t)) {
        safe_point_refuse(m, SAFE_POINT_LOADER_BUSY);
        return false;
    }
    m->seen = r->worst;
    return true;
}

/* True if the filters of the stopped thread would kill it or the threads it starts. Releases it
 * then. */
static bool safe_point_is_filtered(struct safe_point *m, struct thread *th) {
    long nr;
    if (filter_judge_thread(th->tid, &nr) != FILTER_KILLS)
        return false;
    safe_point_refuse(m, SAFE_POINT_FILTERED);
    safe_point_let_go(m, th);
    return true;
}

static int safe_point_try_sleeping(struct safe_point *m, struct thread *th) {
    struct unwind_result r;
    struct user_regs_struct now;
    if (safe_point_stop(m, th, &m->copy->regs) != 0 || safe_point_is_filtered(m, th))
        return -1;
    safe_point_let_go(m, th);
    th->call = (int64_t)m->copy->regs.orig_rax > 0 ? (long)m->copy->regs.orig_rax : 0;
    if (safe_point_copy_stack(m, m->copy) != 0) {
        safe_point_refuse(m, SAFE_POINT_NO_STATE);
        return -1;
    }
    unwinder_run(m->unwinder, m->copy, 0, &r);
    if (!safe_point_accept(m, &r))
        return -1;
    if (safe_point_stop(m, th, &now) != 0)
        return -1;
    if (safe_point_is_same(m, &now, r.stack_used) && target_loader_is_consistent(m->t))
        return 0;
    safe_point_refuse(m, SAFE_POINT_MOVED);
    safe_point_let_go(m, th);
    return -1;
}

static int safe_point_try_running(struct safe_point *m, struct thread *th) {
    struct unwind_result r = {0};
    if (safe_point_stop(m, th, &m->copy->regs) != 0 || safe_point_is_filtered(m, th))
        return -1;
    if (thread_in_rseq(th, &m->t->mem)) {
        safe_point_refuse(m, SAFE_POINT_IN_RSEQ);
        safe_point_let_go(m, th);
        return -1;
    }
    int copied = safe_point_copy_stack(m, m->copy);
    if (copied == 0) {
        unwinder_run(m->unwinder, m->copy, SAFE_POINT_BUDGET_NS, &r);
        if (!r.out_of_time && safe_point_accept(m, &r))
            return 0;
    }
    safe_point_let_go(m, th);
    if (copied != 0)
        safe_point_refuse(m, SAFE_POINT_NO_STATE);
    if (r.out_of_time) {
        safe_point_refuse(m, SAFE_POINT_MOVED);
        /* fills the caches for the next try, while it runs */
        unwinder_run(m->unwinder, m->copy, 0, &r);
    }
    return -1;
}

/* --- all threads ----------------------------------------------------------------------------------------------- */

static int safe_point_explain(struct safe_point *m, uint64_t waited_ns, struct safe_point_found *found,
                              struct err *e) {
    char text[256] = "";
    unsigned total = 0, kinds = 0;
    for (unsigned i = 0; i < SAFE_POINT_REFUSALS; i++) {
        total += m->refusals[i];
        kinds += m->refusals[i] != 0;
    }
    if (m->first_error.code != ERR_OK && m->refusals[SAFE_POINT_NOT_TRACEABLE] == total) {
        found->is_barred = true;
        found->is_busy = m->is_busy;
        return *e = m->first_error, -1;
    }
    for (unsigned i = 0; i < SAFE_POINT_REFUSALS; i++) {
        size_t used = strlen(text);
        if (!m->refusals[i] || used + 1 >= sizeof text)
            continue;
        if (kinds == 1)
            snprintf(text, sizeof text, "%s %s", total == 1 ? "its thread is" : "every thread is",
                     safe_point_refusal_text[i]);
        else
            snprintf(text + used, sizeof text - used, "%s%u %s", used ? ", " : "threads: ", m->refusals[i],
                     safe_point_refusal_text[i]);
    }
    return err_set(
        e, ERR_ATTACH, "process %d: no safe point within %u ms (%s); try again, or use --no-inject",
        (int)m->t->pid, (unsigned)(waited_ns / CLOCK_NS_PER_MS), total ? text : "no thread was found");
}

/* The strategies to catch a thread, in the order of each round. */
static const struct safe_point_strategy {
    enum agent_way way;
    unsigned per_round; /* threads tried at most */
    int (*catch)(struct safe_point *m, struct thread *th);
} safe_point_strategies[] = {
    {AGENT_WAY_ASLEEP, 32, safe_point_try_sleeping},
    {AGENT_WAY_SAFE_POINT, 8, safe_point_try_running},
};

#define SAFE_POINT_STRATEGIES (sizeof safe_point_strategies / sizeof safe_point_strategies[0])

static size_t safe_point_strategy_of(const struct safe_point_candidate *c) { return c->nr < 0 ? 1 : 0; }

static int safe_point_describe(const struct safe_point_candidate *c, enum target_place seen,
                               struct safe_point_found *found) {
    char name[32], *how = found->how;
    size_t cap = sizeof found->how;
    found->way = safe_point_strategies[safe_point_strategy_of(c)].way;
    safe_point_call_name(name, sizeof name, c->nr);
    if (c->nr >= 0)
        snprintf(how, cap, "asleep in %s", name);
    else
        snprintf(how, cap, "running");
    if (seen > TARGET_PLAIN)
        snprintf(how + strlen(how), cap - strlen(how), ", %s", safe_point_refusal_text[seen]);
    return 0;
}

/* Try the candidates of one round. 0 with a thread stopped in `out`, 1 for none, -1 if one is
 * stuck in our stop. */
static int safe_point_round(struct safe_point *m, struct thread *out, struct safe_point_candidate *list,
                            size_t n, uint64_t deadline, struct safe_point_found *found) {
    unsigned tried[SAFE_POINT_STRATEGIES] = {0};
    for (size_t i = 0; i < n && (i == 0 || clock_mono_ns() < deadline); i++) {
        size_t k = safe_point_strategy_of(&list[i]);
        if (tried[k]++ >= safe_point_strategies[k].per_round)
            continue;
        *out = (struct thread){.pid = m->t->pid, .tid = list[i].tid};
        if (safe_point_strategies[k].catch(m, out) == 0)
            return safe_point_describe(&list[i], m->seen, found);
        if (out->seized)
            return -1;
    }
    return 1;
}

/* A thread that cannot be unwound to its end, holds a stream's lock (a prompt does, indefinitely), or is in
 * a call that may be partly done, is taken only if there is nothing else, or after a quarter of the time. */
static enum target_place safe_point_limit(const struct safe_point *m, unsigned round, uint64_t start,
                                          uint64_t deadline) {
    unsigned hard = 0;
    for (unsigned i = 0; i < SAFE_POINT_REFUSALS; i++)
        if (i != TARGET_UNKNOWN_CODE && i != TARGET_STDIO && i != SAFE_POINT_WRONG_CALL &&
            i != SAFE_POINT_PARTIAL)
            hard += m->refusals[i];
    if (round >= 2 && (hard == 0 || clock_mono_ns() > start + (deadline - start) / 4))
        return TARGET_STDIO;
    return TARGET_PLAIN;
}

/* Pause between rounds, longer each time: 2 ms to 20 ms. */
static void safe_point_pause(unsigned round) {
    long ns = SAFE_POINT_PAUSE_NS * (long)(round + 1);
    nanosleep(&(struct timespec){0, ns < SAFE_POINT_PAUSE_MAX_NS ? ns : SAFE_POINT_PAUSE_MAX_NS}, NULL);
}

/* True if no temporary obstacle stands in the way of all `n` threads: then waiting to the end is
 * useless. A present tracer may be gone after an eighth of the time; another of our programs is
 * gone as soon as it gets a processor. */
static bool safe_point_is_hopeless(const struct safe_point *m, size_t n, uint64_t start, uint64_t deadline) {
    if (n && m->refusals[SAFE_POINT_FILTERED] >= n)
        return true;
    return n && m->first_error.code == ERR_ATTACH && m->refusals[SAFE_POINT_NOT_TRACEABLE] >= n &&
           !m->is_busy && clock_mono_ns() > start + (deadline - start) / 8;
}

static int safe_point_search(struct safe_point *m, struct thread *out, uint64_t deadline,
                             bool (*stop_asked)(void), struct safe_point_found *found, struct err *e) {
    uint64_t start = clock_mono_ns();
    pid_t *tids = calloc(SAFE_POINT_MAX_TIDS, sizeof *tids);
    struct safe_point_candidate *list = calloc(SAFE_POINT_MAX_TIDS, sizeof *list);
    int rc = tids && list ? 1 : -1;
    if (rc < 0)
        err_set(e, ERR_FAILED, "out of memory");
    for (unsigned round = 0; rc == 1; round++) {
        m->limit = safe_point_limit(m, round, start, deadline);
        size_t n = safe_point_list(m, list, tids);
        rc = safe_point_round(m, out, list, n, deadline, found);
        if (rc == -1)
            err_set(e, ERR_ATTACH, "process %d: thread %d does not stop: %s; try again", (int)m->t->pid,
                    (int)out->tid, thread_why_not_stopped(out));
        if (rc != 1)
            break;
        if (mem_is_gone(&m->t->mem))
            rc = target_lost(m->t, e);
        else if (stop_asked())
            rc = err_set(e, ERR_FAILED, "interrupted; process %d is as it was", (int)m->t->pid);
        else if (clock_mono_ns() >= deadline || safe_point_is_hopeless(m, n, start, deadline))
            rc = safe_point_explain(m, clock_mono_ns() - start, found, e);
        else
            safe_point_pause(round);
    }
    free(tids);
    free(list);
    return rc;
}

int safe_point_find(struct target *t, struct thread *out, uint64_t deadline_ns, bool (*stop_asked)(void),
                    struct safe_point_found *found, struct err *e) {
    struct safe_point m = {.t = t};
    m.unwinder = unwinder_new(t);
    m.copy = malloc(sizeof *m.copy);
    m.again = malloc(UNWIND_STACK_MAX);
    int rc;
    if (m.unwinder && m.copy && m.again)
        rc = safe_point_search(&m, out, deadline_ns, stop_asked, found, e);
    else
        rc = err_set(e, ERR_FAILED, "out of memory");
    out->stopped_ns += m.stopped_ns;
    unwinder_free(m.unwinder);
    free(m.copy);
    free(m.again);
    return rc;
}
