/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall_restart: how a system call goes on that our stop has interrupted.
 *
 * The kernel calls most of them again by itself when the thread runs on. Some it ends with EINTR after any stop (signal(7),
 * "Interruption of system calls and library functions by stop signals"): those are called again by us. And one who goes back
 * through a signal frame is past the kernel's care: there the registers have to say what is to be called. Restart codes:
 * Linux include/linux/errno.h, arch/x86/kernel/signal.c.
 */
#ifndef INJECT_SYSCALL_RESTART_H
#define INJECT_SYSCALL_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#include "base/mem.h"
#include "base/procfs.h"
#include "inject/thread.h"

/* The pending signals of a thread that it will take and that do something, as bits (1 << number - 1). What is ignored is dropped
 * by the kernel when it is sent, but kept for a thread that is traced. */
uint64_t syscall_restart_wanted_signals(const struct procfs_status *st);

/* A call that ended with EINTR, though no signal came: registers that make it be called again; its time starts anew. False
 * when nothing is to be done. See docs/dev/design/inject.md. */
bool syscall_restart_rewind(struct thread *t, struct user_regs_struct *regs);

/* The same for a thread that stands still with `regs`, at once, so that it calls again though we die: thread_release takes it
 * back when a signal has come meanwhile. `regs` is what it has then. */
void syscall_restart_settle(struct thread *t, struct user_regs_struct *regs);

/* For thread_release. */
void syscall_restart_unsettle(struct thread *t);

/* The registers that continue where `regs` would after the kernel dealt with an interrupted system call: for going on
 * through a signal frame. `call` is what it was first interrupted in, 0 when not known. A call for a time is made for the
 * time that is left where that is known, else for all of it. */
void syscall_restart_resolve(struct mem *mem, long call, struct user_regs_struct *regs);

#endif
