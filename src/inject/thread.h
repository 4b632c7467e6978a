/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread: one thread of the target under ptrace, stopped for moments.
 *
 * All calls for one target come from one thread of ours (ptrace binds a tracee to a task). A thread is seized, stopped,
 * looked at, let go; nothing else of the target is touched. How long it stood still is added up.
 */
#ifndef INJECT_THREAD_H
#define INJECT_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"

enum thread_event {
    THREAD_STOPPED, /* our own interruption, or the group-stop of the job */
    THREAD_SYSCALL, /* entry or exit of a system call, where asked for */
    THREAD_SIGNAL,  /* about to take a signal: thread.signal */
    THREAD_GONE,    /* exited or killed */
    THREAD_TIMEOUT,
};

struct thread {
    pid_t pid, tid;
    bool seized;
    bool stopped;
    bool caught;     /* it has stopped once since it was seized: it counts as stopped until it is released */
    int signal;      /* of THREAD_SIGNAL */
    int owed_signal; /* taken from the thread while it was borrowed, sent to it again when it is let go */
    int deliver;     /* the signal it stopped for instead, which takes its course when it is let go; 0 none */
    uint64_t since_ns;   /* when the stop was asked for */
    uint64_t stopped_ns; /* all stops together */
};

/* Seize; it runs on. The caller is in a hurry until thread_relax or thread_release. 0, or -1 with the error (not permitted,
 * gone); then it is not. */
int thread_seize(struct thread *t, struct err *e);
void thread_relax(void);

/* Seize and stop. 0, or -1 with the error (not permitted, gone, did not stop within `wait_ns`: then it stays seized
 * until the calling task ends, which lets it go). */
int thread_stop(struct thread *t, uint64_t wait_ns, struct err *e);

/* Wait a little, each time longer (from 20 to 300 us; `nap_ns` starts at 0): who polls without rest on a busy machine keeps
 * the processor from the thread it waits for. */
void thread_nap(long *nap_ns);

/* Wait for the next event of a thread that was made to run. */
enum thread_event thread_wait(struct thread *t, uint64_t wait_ns);

/* Let it run, still seized: PTRACE_CONT or PTRACE_SYSCALL. 0 or -1. */
int thread_run(struct thread *t, int request);

/* Ask a running seized thread to stop and wait until it stands in an interruption stop. 0 or -1. */
int thread_interrupt(struct thread *t, uint64_t wait_ns);

/* Give it back: with the registers as they are. What is to be delivered is, owed signals are sent again. */
void thread_release(struct thread *t);

int thread_get_regs(struct thread *t, struct user_regs_struct *regs);
int thread_set_regs(struct thread *t, const struct user_regs_struct *regs);

/* The XSAVE area (NT_X86_XSTATE, standard format). Bytes used, or -1. */
#define THREAD_XSTATE_MAX ((size_t)16 * 1024)
ssize_t thread_get_xstate(struct thread *t, void *buf, size_t cap);
int thread_set_xstate(struct thread *t, const void *buf, size_t len);

int thread_get_mask(struct thread *t, uint64_t *mask);
int thread_set_mask(struct thread *t, uint64_t mask);

/* Is the thread inside a restartable sequence (rseq), which must not be left and entered again? */
bool thread_in_rseq(struct thread *t);

/* Write to the target's memory; 0 or -1. Read-only pages are not written to. */
int thread_write(pid_t pid, uint64_t addr, const void *bytes, size_t len);

/* A system call that was interrupted by our stop with EINTR, though no signal came (epoll_wait and others are not
 * restarted by the kernel): registers that make it be called again. False when nothing is to be done. Measured: see
 * "The EINTR rewind" in docs/decisions.md. */
bool thread_rewind_eintr(struct thread *t, struct user_regs_struct *regs);

/* The registers that continue where `regs` would after the kernel dealt with an interrupted system call: for going on
 * through a signal frame, where the kernel no longer does. */
void thread_resolve_restart(struct user_regs_struct *regs);

#endif
