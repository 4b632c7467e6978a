/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread: one thread of the target under ptrace, stopped for short times.
 *
 * All calls for one target come from one thread of ours (ptrace binds a tracee to a task). A
 * thread is seized, stopped, read, released; nothing else of the target is touched. The time for
 * which it was stopped is added up.
 */
#ifndef INJECT_THREAD_H
#define INJECT_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"
#include "base/mem.h"

enum thread_event {
    THREAD_STOPPED, /* our own interruption, or the group-stop of the job */
    THREAD_SYSCALL, /* entry or exit of a system call, if requested */
    THREAD_SIGNAL,  /* about to take a signal: thread.signal */
    THREAD_GONE,    /* exited, killed, or released because it started another program */
    THREAD_TIMEOUT,
};

struct thread {
    pid_t pid, tid;
    bool seized;
    bool stopped;
    /* it has stopped once since it was seized: it counts as stopped until it is released */
    bool caught;
    /* stopped by an interruption, after which the kernel decides again how an interrupted call
     * continues */
    bool at_rest;
    bool settled;  /* by syscall_restart_settle */
    bool replaced; /* it has started another program, and was released then */
    int signal;    /* of THREAD_SIGNAL */
    /* the system call in which it was found, 0 unknown; later it may be restart_syscall */
    long call;
    uint64_t blocked; /* the signals blocked while it is borrowed; 0 before */
    /* the signal it stopped for, delivered when it runs or is released; 0 none */
    int deliver;
    uint64_t since_ns;   /* when the stop was requested */
    uint64_t stopped_ns; /* all stops together */
};

/* Seize; it runs on. The caller is in a hurry until thread_relax or thread_release. 0, or -1
 * with the error (not permitted, gone); then it is not. */
int thread_seize(struct thread *t, struct err *e);
void thread_relax(void);

/* Seize and stop: it stands still, or before a signal (`deliver`) which it takes when it is let
 * go, then it must not be borrowed. 0, or -1 with the error (not permitted, gone, did not stop
 * within `wait_ns`: then it stays seized until the calling task ends, which lets it go). */
int thread_stop(struct thread *t, uint64_t wait_ns, struct err *e);

/* Why a thread that was asked to stop has not done so yet: a clause about "it". */
const char *thread_why_not_stopped(const struct thread *t);

/* Wait a little, each time longer (from 20 to 300 us; `nap_ns` starts at 0): who polls without
 * rest on a busy machine keeps the processor from the thread it waits for. */
void thread_nap(long *nap_ns);

/* Wait for the next event of a thread that was made to run. */
enum thread_event thread_wait(struct thread *t, uint64_t wait_ns);

/* Let it run, still seized: PTRACE_CONT or PTRACE_SYSCALL. What is to be delivered is. 0 or -1. */
int thread_run(struct thread *t, int request);

/* The borrowed thread stands before a signal. One that its own code has raised has to be dealt
 * with by the caller: false. Any other is blocked and handed on when it runs: the kernel then
 * puts it back among the pending ones, as it was (Linux kernel/signal.c, ptrace_signal), whether
 * we live or die. One that was blocked while it is borrowed says that it has put itself back:
 * that is the job's, and takes its course. */
bool thread_defer_signal(struct thread *t);

/* Ask a borrowed thread to stop and wait until it stands in an interruption stop. A signal of
 * its own making is dropped. 0 or -1. */
int thread_interrupt(struct thread *t, uint64_t wait_ns);

/* Give it back: with the registers as they are. What is to be delivered is. */
void thread_release(struct thread *t);

int thread_get_regs(struct thread *t, struct user_regs_struct *regs);
int thread_set_regs(struct thread *t, const struct user_regs_struct *regs);

/* The XSAVE area (NT_X86_XSTATE, standard format). Bytes used, or -1. */
#define THREAD_XSTATE_MAX ((size_t)16 * 1024)
ssize_t thread_get_xstate(struct thread *t, void *buf, size_t cap);
int thread_set_xstate(struct thread *t, const void *buf, size_t len);

int thread_get_mask(struct thread *t, uint64_t *mask);
int thread_set_mask(struct thread *t, uint64_t mask);

/* Is the thread inside a restartable sequence (rseq), which must not be left and entered again?
 * `mem`: its memory. */
bool thread_in_rseq(struct thread *t, struct mem *mem);

/* The word at `addr` as the stopped thread itself sees it, by ptrace: 0, or -1. */
int thread_peek(struct thread *t, uint64_t addr, uint64_t *out);

#endif
