/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: whether this process may be injected into, and if not, why.
 *
 * Facts are gathered from /proc and then judged by a pure function, so that every refusal can be
 * tested.
 */
#ifndef INJECT_CHECK_H
#define INJECT_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/container.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/procfs.h"

enum check_libc {
    CHECK_LIBC_NONE = 0, /* statically linked */
    CHECK_LIBC_NOT_YET,  /* the loader exists and has not mapped it */
    CHECK_LIBC_GLIBC,
    CHECK_LIBC_MUSL,
};

struct check_facts {
    pid_t pid;
    bool exists;
    struct procfs_status status;
    char name[64];   /* sanitised */
    char tracer[64]; /* name of the tracer, sanitised; "" if there is none or it is invisible */
    bool has_ended;  /* a zombie, or about to be one */
    bool kernel_thread;
    bool readable; /* its memory may be read: the permission that ptrace needs too */
    /* the memory that was opened is gone: the process has started another program, or ended */
    bool replaced;
    bool dumpable;   /* its /proc/PID belongs to its user */
    bool descendant; /* of this process */
    bool elf_known;  /* elf_class and elf_machine were read */
    int elf_class, elf_machine;
    bool no_proc; /* /proc is not mounted in its mount namespace */
    bool maps_known;
    enum check_libc libc;
    int64_t our_uid;
    bool our_cap_ptrace;
    /* we are in a user namespace that maps only a part of the users: root there is root of that
     * part */
    bool our_ns_is_inner;
    int our_seccomp;       /* as status.seccomp, of this process */
    bool has_more_caps;    /* it has capabilities that we lack: then the same user is not enough */
    int ptrace_scope;      /* kernel.yama.ptrace_scope; 0 without Yama */
    struct container here; /* where this program runs */
    /* the rest is known only of a process that is not readable */
    bool other_user_ns;                /* its users are mapped in another way than ours */
    char apparmor[64];                 /* AppArmor profile that confines us, sanitised; "" none */
    bool selinux_denies;               /* SELinux's deny_ptrace is on */
    char slurm_job[CONTAINER_JOB_MAX]; /* the Slurm job it belongs to; "" none, or unknown */
};

/* `mem`: the memory opened before, or NULL. */
void check_gather(pid_t pid, const struct mem *mem, struct check_facts *f);

/* 0; or with the one line that says why not: -1, INJECT_ONLY_REMOTE_EXEC or INJECT_BUSY. */
int check_judge(const struct check_facts *f, struct err *e);

/* True if a tracer of this name is one of our programs. They attach, or stop a thread to read
 * it, and soon let go; a debugger stays. */
bool check_is_ours(const char *tracer);

#endif
