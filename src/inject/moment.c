/* SPDX-License-Identifier: Apache-2.0 */
/* moment: see moment.h. */
#include "inject/moment.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/again.h"
#include "inject/check.h"
#include "inject/filter.h"
#include "inject/unwind.h"

#define MOMENT_MAX_TIDS 4096
#define MOMENT_TIME_PLACES 2
#define MOMENT_STOP_NS (500 * CLOCK_NS_PER_MS)
#define MOMENT_BUDGET_NS (2 * CLOCK_NS_PER_MS)
#define MOMENT_PAUSE_NS 2000000L
#define MOMENT_PAUSE_MAX_NS 20000000L
#define MOMENT_RANK_RUNNING 100
#define MOMENT_RANK_PARENT 10 /* after others that do the same: see moment_calls */

/* Why a thread was not taken; the first ones are places in the code. */
enum moment_refusal {
    MOMENT_MOVED = TARGET_PLACES,
    MOMENT_UNINTERRUPTIBLE,
    MOMENT_STOPPED,
    MOMENT_LOADER_BUSY,
    MOMENT_IN_RSEQ,
    MOMENT_NO_STATE,
    MOMENT_WRONG_CALL,
    MOMENT_NOT_TRACEABLE,
    MOMENT_FILTERED,
    MOMENT_REFUSALS
};

static const char *const moment_refusal_text[MOMENT_REFUSALS] = {
    [TARGET_PLAIN] = "in a call that must not be interrupted",
    [TARGET_UNKNOWN_CODE] = "in code without unwind information",
    [TARGET_STDIO] = "holding a stream's lock",
    [TARGET_SIGNAL] = "in a signal handler",
    [TARGET_PROCESS] = "in fork, exit or spawn",
    [TARGET_THREADS] = "creating or ending a thread",
    [TARGET_ALLOCATOR] = "inside the memory allocator",
    [TARGET_LOADER] = "inside the dynamic loader",
    [MOMENT_MOVED] = "running on too fast to be caught",
    [MOMENT_UNINTERRUPTIBLE] = "in an uninterruptible wait (state D)",
    [MOMENT_STOPPED] = "stopped",
    [MOMENT_LOADER_BUSY] = "waiting while a library is being loaded",
    [MOMENT_IN_RSEQ] = "in a restartable sequence",
    [MOMENT_NO_STATE] = "not readable",
    [MOMENT_WRONG_CALL] = "in a call that must not be interrupted",
    [MOMENT_NOT_TRACEABLE] = "not traceable",
    [MOMENT_FILTERED] = "under a seccomp filter that would kill it for what the agent does",
};

struct moment_candidate {
    pid_t tid;
    int rank;
    long nr;
};

struct moment {
    struct target *t;
    struct unwinder *unwinder;
    struct unwind_copy *copy;
    uint8_t *again;          /* the stack at the second stop */
    enum target_place limit; /* the worst place accepted in this round */
    enum target_place seen;  /* the worst place of the thread accepted */
    unsigned refusals[MOMENT_REFUSALS];
    uint64_t stopped_ns;
    struct err first_error; /* of a stop that was not permitted; */
    bool is_busy;           /* the last was because another of our programs traces the thread */
};

/* --- system calls ---------------------------------------------------------------------------------------------- */

struct moment_call {
    long nr;
    int rank;
    const char *name;
};

/* 0: restarted by the kernel as if nothing happened. 1: restarted, with what is left of its time. 2: called again by us
 * (again_rewind), its time starts anew. From MOMENT_RANK_PARENT on, a parent's: the end of a child may fall into our
 * stop, and its SIGCHLD, which the kernel drops where it is ignored, is kept for a parent that is traced: it wakes another
 * thread, and a call of that one may end with EINTR. */
static const struct moment_call moment_calls[] = {
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

static const struct moment_call *moment_call_of(long nr) {
    for (size_t i = 0; i < sizeof moment_calls / sizeof moment_calls[0]; i++)
        if (moment_calls[i].nr == nr)
            return &moment_calls[i];
    return NULL;
}

int moment_rank_call(long nr, const char *file) {
    const struct moment_call *call = moment_call_of(nr);
    if (!call)
        return -1;
    if ((nr == SYS_read || nr == SYS_write) && file[0] == '/' && strncmp(file, "/dev/pts/", 9) != 0 &&
        strncmp(file, "/dev/tty", 8) != 0)
        return -1;
    return call->rank;
}

void moment_call_name(char *buf, size_t cap, long nr) {
    const struct moment_call *call = moment_call_of(nr);
    if (call)
        (void)snprintf(buf, cap, "%s", call->name);
    else
        (void)snprintf(buf, cap, "system call %ld", nr);
}

/* --- candidates ------------------------------------------------------------------------------------------------ */

static void moment_refuse(struct moment *m, unsigned why) {
    if (why < MOMENT_REFUSALS)
        m->refusals[why]++;
}

/* What the descriptor is that a call waits for, as /proc says it; "" for a pipe with a name, which waits like one without. The file
 * system is not asked, it may be one that hangs. */
static void moment_read_file(pid_t pid, int fd, char *file, size_t cap) {
    char link[64];
    struct statx st;
    (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t n = readlink(link, file, cap - 1);
    file[n > 0 ? n : 0] = '\0';
    if (file[0] == '/' && statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
        S_ISFIFO(st.stx_mode))
        file[0] = '\0';
}

static int moment_rank_sleeper(pid_t pid, pid_t tid, long *nr) {
    struct procfs_syscall sc;
    char file[128] = "";
    int rc = procfs_read_syscall(pid, tid, &sc);
    if (rc < 0)
        return -1;
    if (rc > 0)
        return MOMENT_RANK_RUNNING; /* woke up meanwhile */
    *nr = sc.nr;
    if (sc.nr == SYS_read || sc.nr == SYS_write)
        moment_read_file(pid, (int)sc.args[0], file, sizeof file);
    return moment_rank_call(sc.nr, file);
}

static int moment_cmp(const void *a, const void *b) {
    const struct moment_candidate *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->tid > y->tid) - (x->tid < y->tid);
}

/* The threads worth trying, best first. */
static size_t moment_list(struct moment *m, struct moment_candidate *out, pid_t *tids) {
    pid_t pid = m->t->pid;
    ssize_t n = procfs_list_tids(pid, tids, MOMENT_MAX_TIDS);
    size_t count = 0;
    memset(m->refusals, 0, sizeof m->refusals);
    for (ssize_t i = 0; i < n && i < MOMENT_MAX_TIDS; i++) {
        struct procfs_stat st;
        struct moment_candidate c = {.tid = tids[i], .rank = MOMENT_RANK_RUNNING, .nr = -1};
        if (procfs_read_stat(pid, tids[i], &st) != 0)
            continue;
        if (st.state == 'S') {
            c.rank = moment_rank_sleeper(pid, tids[i], &c.nr);
            if (c.rank < 0) {
                moment_refuse(m, MOMENT_WRONG_CALL);
                continue;
            }
        } else if (st.state == 'D') {
            moment_refuse(m, MOMENT_UNINTERRUPTIBLE);
            continue;
        } else if (st.state != 'R') {
            moment_refuse(m, MOMENT_STOPPED);
            continue;
        }
        if (procfs_has_children(pid, c.tid) > 0)
            c.rank += MOMENT_RANK_PARENT;
        out[count++] = c;
    }
    qsort(out, count, sizeof *out, moment_cmp);
    return count;
}

/* --- one thread ------------------------------------------------------------------------------------------------ */

/* Let go of a thread that was only looked at. */
static void moment_let_go(struct moment *m, struct thread *th) {
    thread_release(th);
    m->stopped_ns += th->stopped_ns;
    th->stopped_ns = 0;
}

struct moment_map_search {
    uint64_t addr, end;
};

static int moment_match_map(const struct procfs_map *map, void *arg) {
    struct moment_map_search *s = arg;
    if (s->addr < map->start || s->addr >= map->end)
        return 0;
    s->end = map->end;
    return 1;
}

/* Copy the stack from the red zone of `sp` to the end of its mapping, as far as there is room. 0 or -1. */
static int moment_copy_stack(struct moment *m, struct unwind_copy *c) {
    const struct target_map *map = target_map_at(m->t, c->regs.rsp);
    struct moment_map_search s = {.addr = c->regs.rsp, .end = map ? map->end : 0};
    if (!map && procfs_each_map(m->t->pid, moment_match_map, &s) != 1)
        return -1; /* a stack made after the snapshot is looked up anew */
    c->stack_at = c->regs.rsp;
    c->stack_len = s.end - c->stack_at < UNWIND_STACK_MAX ? (size_t)(s.end - c->stack_at) : UNWIND_STACK_MAX;
    return mem_read(&m->t->mem, c->stack_at, c->stack, c->stack_len);
}

/* Where the kernel writes the time that is left when a call is interrupted, by our stops too: select(2), pselect6, ppoll(2),
 * nanosleep(2), clock_nanosleep(2); a call that goes on as restart_syscall has the arguments of what it was. */
static size_t moment_time_places(const struct user_regs_struct *r, uint64_t at[MOMENT_TIME_PLACES]) {
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

/* Take the time that is left out of the comparison. */
static void moment_forget_time(struct moment *m, size_t used) {
    uint64_t at[MOMENT_TIME_PLACES];
    size_t n = moment_time_places(&m->copy->regs, at);
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < sizeof(struct timespec); k++) {
            uint64_t byte = at[i] + k - m->copy->stack_at;
            if (byte < used)
                m->again[byte] = m->copy->stack[byte];
        }
}

/* Is the thread where it was when its stack was copied? rax and orig_rax differ between the first and a restarted call. */
static bool moment_is_same(struct moment *m, const struct user_regs_struct *now, size_t used) {
    const struct unwind_copy *c = m->copy;
    struct user_regs_struct a = c->regs, b = *now;
    a.rax = b.rax = a.orig_rax = b.orig_rax = 0;
    if (memcmp(&a, &b, sizeof a) != 0)
        return false;
    if (mem_read(&m->t->mem, c->stack_at, m->again, used) != 0)
        return false;
    moment_forget_time(m, used);
    return memcmp(c->stack, m->again, used) == 0;
}

/* Does another of our programs trace it? */
static bool moment_is_ours(const struct thread *th) {
    struct procfs_status st;
    char name[64];
    return procfs_read_status(th->pid, th->tid, &st) == 0 && st.tracer_pid > 0 &&
           procfs_read_comm((pid_t)st.tracer_pid, 0, name, sizeof name) == 0 && check_is_ours(name);
}

/* Stop it for the first time: registers, and for a running thread the stack too. 0, or -1 with the refusal counted. */
static int moment_stop(struct moment *m, struct thread *th, struct user_regs_struct *regs) {
    struct err e = {0};
    if (thread_stop(th, MOMENT_STOP_NS, &e) != 0) {
        if (e.code == ERR_ATTACH && m->first_error.code == ERR_OK)
            m->first_error = e;
        moment_refuse(m, th->seized ? MOMENT_UNINTERRUPTIBLE : MOMENT_NOT_TRACEABLE);
        m->is_busy = !th->seized && moment_is_ours(th);
        return -1;
    }
    if (th->signal == SIGTRAP && !th->deliver && thread_get_regs(th, regs) == 0) {
        again_settle(th, regs);
        return 0;
    }
    moment_refuse(m, th->deliver ? MOMENT_MOVED : th->signal != SIGTRAP ? MOMENT_STOPPED : MOMENT_NO_STATE);
    moment_let_go(m, th);
    return -1;
}

/* Does what the unwinder saw allow the thread to be borrowed? */
static bool moment_accept(struct moment *m, const struct unwind_result *r) {
    if (r->worst > m->limit) {
        moment_refuse(m, r->worst);
        return false;
    }
    if (!target_loader_is_consistent(m->t)) {
        moment_refuse(m, MOMENT_LOADER_BUSY);
        return false;
    }
    m->seen = r->worst;
    return true;
}

/* The thread stands still: would its filters kill it, or the threads it starts? Let go of then. */
static bool moment_is_filtered(struct moment *m, struct thread *th) {
    long nr;
    if (filter_judge_thread(th->tid, &nr) != FILTER_KILLS)
        return false;
    moment_refuse(m, MOMENT_FILTERED);
    moment_let_go(m, th);
    return true;
}

static int moment_try_sleeping(struct moment *m, struct thread *th) {
    struct unwind_result r;
    struct user_regs_struct now;
    if (moment_stop(m, th, &m->copy->regs) != 0 || moment_is_filtered(m, th))
        return -1;
    moment_let_go(m, th);
    th->call = (int64_t)m->copy->regs.orig_rax > 0 ? (long)m->copy->regs.orig_rax : 0;
    if (moment_copy_stack(m, m->copy) != 0) {
        moment_refuse(m, MOMENT_NO_STATE);
        return -1;
    }
    unwinder_run(m->unwinder, m->copy, 0, &r);
    if (!moment_accept(m, &r))
        return -1;
    if (moment_stop(m, th, &now) != 0)
        return -1;
    if (moment_is_same(m, &now, r.stack_used) && target_loader_is_consistent(m->t))
        return 0;
    moment_refuse(m, MOMENT_MOVED);
    moment_let_go(m, th);
    return -1;
}

static int moment_try_running(struct moment *m, struct thread *th) {
    struct unwind_result r = {0};
    if (moment_stop(m, th, &m->copy->regs) != 0 || moment_is_filtered(m, th))
        return -1;
    if (thread_in_rseq(th, &m->t->mem)) {
        moment_refuse(m, MOMENT_IN_RSEQ);
        moment_let_go(m, th);
        return -1;
    }
    int copied = moment_copy_stack(m, m->copy);
    if (copied == 0) {
        unwinder_run(m->unwinder, m->copy, MOMENT_BUDGET_NS, &r);
        if (!r.out_of_time && moment_accept(m, &r))
            return 0;
    }
    moment_let_go(m, th);
    if (copied != 0)
        moment_refuse(m, MOMENT_NO_STATE);
    if (r.out_of_time) {
        moment_refuse(m, MOMENT_MOVED);
        unwinder_run(m->unwinder, m->copy, 0, &r); /* fills the caches for the next try, while it runs */
    }
    return -1;
}

/* --- all threads ----------------------------------------------------------------------------------------------- */

static int moment_explain(struct moment *m, uint64_t waited_ns, struct moment_found *found, struct err *e) {
    char text[256] = "";
    unsigned total = 0, kinds = 0;
    for (unsigned i = 0; i < MOMENT_REFUSALS; i++) {
        total += m->refusals[i];
        kinds += m->refusals[i] != 0;
    }
    if (m->first_error.code != ERR_OK && m->refusals[MOMENT_NOT_TRACEABLE] == total) {
        found->is_barred = true;
        found->is_busy = m->is_busy;
        return *e = m->first_error, -1;
    }
    for (unsigned i = 0; i < MOMENT_REFUSALS; i++) {
        size_t used = strlen(text);
        if (!m->refusals[i] || used + 1 >= sizeof text)
            continue;
        if (kinds == 1)
            (void)snprintf(text, sizeof text, "%s %s", total == 1 ? "its thread is" : "every thread is",
                           moment_refusal_text[i]);
        else
            (void)snprintf(text + used, sizeof text - used, "%s%u %s",
                           used ? ", " : "threads: ", m->refusals[i], moment_refusal_text[i]);
    }
    return err_set(e, ERR_ATTACH,
                   "process %d: no safe moment within %u ms (%s); try again, or look at it without injecting",
                   (int)m->t->pid, (unsigned)(waited_ns / CLOCK_NS_PER_MS),
                   total ? text : "no thread was found");
}

/* The ways to catch a thread, in the order in which they are tried in every round. */
static const struct moment_strategy {
    enum agent_way way;
    unsigned per_round; /* threads tried at most */
    int (*catch)(struct moment *m, struct thread *th);
} moment_strategies[] = {
    {AGENT_WAY_ASLEEP, 32, moment_try_sleeping},
    {AGENT_WAY_SAFE_POINT, 8, moment_try_running},
};

#define MOMENT_STRATEGIES (sizeof moment_strategies / sizeof moment_strategies[0])

static size_t moment_strategy_of(const struct moment_candidate *c) {
    return c->rank >= MOMENT_RANK_RUNNING ? 1 : 0;
}

static int moment_describe(const struct moment_candidate *c, enum target_place seen,
                           struct moment_found *found) {
    char name[32], *how = found->how;
    size_t cap = sizeof found->how;
    found->way = moment_strategies[moment_strategy_of(c)].way;
    moment_call_name(name, sizeof name, c->nr);
    if (c->nr >= 0 && c->rank < MOMENT_RANK_RUNNING)
        (void)snprintf(how, cap, "asleep in %s", name);
    else
        (void)snprintf(how, cap, "running");
    if (seen > TARGET_PLAIN)
        (void)snprintf(how + strlen(how), cap - strlen(how), ", %s", moment_refusal_text[seen]);
    return 0;
}

/* Try the candidates of one round. 0 with a thread stopped in `out`, 1 none, -1 when one is stuck in our stop. */
static int moment_round(struct moment *m, struct thread *out, struct moment_candidate *list, size_t n,
                        uint64_t deadline, struct moment_found *found) {
    unsigned tried[MOMENT_STRATEGIES] = {0};
    for (size_t i = 0; i < n && (i == 0 || clock_mono_ns() < deadline); i++) {
        size_t k = moment_strategy_of(&list[i]);
        if (tried[k]++ >= moment_strategies[k].per_round)
            continue;
        *out = (struct thread){.pid = m->t->pid, .tid = list[i].tid};
        if (moment_strategies[k].catch(m, out) == 0)
            return moment_describe(&list[i], m->seen, found);
        if (out->seized)
            return -1;
    }
    return 1;
}

/* What cannot be unwound to its end, or sits in a stream's lock (a prompt does, for ever), is taken only when nothing
 * better comes: when that is all there is, or a quarter of the time has passed. */
static enum target_place moment_limit(const struct moment *m, unsigned round, uint64_t start,
                                      uint64_t deadline) {
    unsigned hard = 0;
    for (unsigned i = 0; i < MOMENT_REFUSALS; i++)
        if (i != TARGET_UNKNOWN_CODE && i != TARGET_STDIO && i != MOMENT_WRONG_CALL)
            hard += m->refusals[i];
    if (round >= 2 && (hard == 0 || clock_mono_ns() > start + (deadline - start) / 4))
        return TARGET_STDIO;
    return TARGET_PLAIN;
}

/* Between rounds, longer each time: 2 ms to 20 ms. */
static void moment_pause(unsigned round) {
    long ns = MOMENT_PAUSE_NS * (long)(round + 1);
    (void)nanosleep(&(struct timespec){0, ns < MOMENT_PAUSE_MAX_NS ? ns : MOMENT_PAUSE_MAX_NS}, NULL);
}

/* Nothing that may pass stands in the way of all `n` threads: no need to wait for the end of the time. Who traces them at this moment
 * may be gone in an eighth of it; another of our programs is gone when it has been given a processor. */
static bool moment_is_hopeless(const struct moment *m, size_t n, uint64_t start, uint64_t deadline) {
    if (n && m->refusals[MOMENT_FILTERED] >= n)
        return true;
    return n && m->first_error.code == ERR_ATTACH && m->refusals[MOMENT_NOT_TRACEABLE] >= n && !m->is_busy &&
           clock_mono_ns() > start + (deadline - start) / 8;
}

static int moment_search(struct moment *m, struct thread *out, uint64_t deadline, bool (*stop_asked)(void),
                         struct moment_found *found, struct err *e) {
    uint64_t start = clock_mono_ns();
    pid_t *tids = calloc(MOMENT_MAX_TIDS, sizeof *tids);
    struct moment_candidate *list = calloc(MOMENT_MAX_TIDS, sizeof *list);
    int rc = tids && list ? 1 : -1;
    if (rc < 0)
        (void)err_set(e, ERR_FAILED, "out of memory");
    for (unsigned round = 0; rc == 1; round++) {
        m->limit = moment_limit(m, round, start, deadline);
        size_t n = moment_list(m, list, tids);
        rc = moment_round(m, out, list, n, deadline, found);
        if (rc == -1)
            (void)err_set(e, ERR_ATTACH,
                          "process %d: thread %d does not stop: it is in a system call that cannot be "
                          "interrupted; try again",
                          (int)m->t->pid, (int)out->tid);
        if (rc != 1)
            break;
        if (mem_is_gone(&m->t->mem))
            rc = target_lost(m->t, e);
        else if (stop_asked())
            rc = err_set(e, ERR_FAILED, "interrupted; process %d is as it was", (int)m->t->pid);
        else if (clock_mono_ns() >= deadline || moment_is_hopeless(m, n, start, deadline))
            rc = moment_explain(m, clock_mono_ns() - start, found, e);
        else
            moment_pause(round);
    }
    free(tids);
    free(list);
    return rc;
}

int moment_find(struct target *t, struct thread *out, uint64_t deadline_ns, bool (*stop_asked)(void),
                struct moment_found *found, struct err *e) {
    struct moment m = {.t = t};
    m.unwinder = unwinder_new(t);
    m.copy = malloc(sizeof *m.copy);
    m.again = malloc(UNWIND_STACK_MAX);
    int rc;
    if (m.unwinder && m.copy && m.again)
        rc = moment_search(&m, out, deadline_ns, stop_asked, found, e);
    else
        rc = err_set(e, ERR_FAILED, "out of memory");
    out->stopped_ns += m.stopped_ns;
    unwinder_free(m.unwinder);
    free(m.copy);
    free(m.again);
    return rc;
}
