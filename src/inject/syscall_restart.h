/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_restart: how a system call continues that our stop has interrupted.
 *
 * The kernel repeats most of them by itself when the thread runs on. Some end with EINTR after
 * any stop (signal(7), "Interruption of system calls and library functions by stop signals"): we
 * repeat those. A thread that goes back through a signal frame is beyond the kernel's care:
 * there the registers must say what to call. Restart codes: Linux include/linux/errno.h,
 * arch/x86/kernel/signal.c.
 */
#ifndef INJECT_SYSCALL_RESTART_H
#define INJECT_SYSCALL_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "base/mem.h"
#include "base/procfs.h"
#include "inject/thread.h"

/* The pending signals that a thread will take and that have an effect, as bits (1 << number -
 * 1). The kernel drops ignored signals when they are sent, but keeps them for a traced thread. */
uint64_t syscall_restart_wanted_signals(const struct procfs_status *st);

/* What a descriptor of the process is, as /proc shows it; "" unknown. The file system is not asked, because
 * it may hang. True if it is a pipe, named or not. */
bool syscall_restart_read_file(pid_t pid, int fd, char *file, size_t cap);

/* True if a stop may end the call with a part of its work done: once it has copied something, the kernel
 * reports so much as its result rather than begin again. Nothing repairs that, and not every caller goes on
 * with the rest. Of a call that may have copied nothing so far, too, which /proc does not show. */
bool syscall_restart_is_partial(pid_t pid, const struct procfs_syscall *call);

/* For a call that ended with EINTR though no signal came: set the registers so that it is
 * repeated; its time starts again. False if there is nothing to do. See
 * docs/dev/design/inject.md. */
bool syscall_restart_rewind(struct thread *t, struct user_regs_struct *regs);

/* The same for a stopped thread with `regs`, immediately, so that it repeats the call even if we
 * die. thread_release undoes it if a signal has come in between. `regs` becomes what it has
 * then. */
void syscall_restart_settle(struct thread *t, struct user_regs_struct *regs);

/* For thread_release. */
void syscall_restart_unsettle(struct thread *t);

/* The registers that continue where `regs` would after the kernel has dealt with an interrupted
 * system call: for continuing through a signal frame. `call` is the call first interrupted, 0 if
 * unknown. A timed call is made for its remaining time if that is known, otherwise for all of
 * it. */
void syscall_restart_resolve(struct mem *mem, long call, struct user_regs_struct *regs);

#endif
