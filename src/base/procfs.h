/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs: what the kernel reports about a process and its threads (proc(5)).
 *
 * Every function takes a pid as seen from here; pid 0 means ourselves. Missing facts are
 * MODEL_UNKNOWN, '?' or empty. No allocation except where a strbuf or callback says so; usable
 * inside the job.
 */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"

/* From /proc/PID/status. */
struct procfs_status {
    char name[64];
    char state; /* R S D T t Z X I, '?' */
    int64_t tgid, ppid;
    int64_t tracer_pid; /* 0 nobody */
    int64_t uid, gid;   /* effective */
    int64_t real_uid, saved_uid;
    int64_t ns_pid; /* pid in its innermost namespace (last of NSpid) */
    int64_t rss_bytes, swap_bytes;
    int64_t threads;
    int64_t voluntary, involuntary; /* context switches of this thread */
    int seccomp;                    /* 0 off, 1 strict, 2 filter, -1 unknown */
    int64_t seccomp_filters;        /* how many; -1 unknown (before Linux 5.9) */
    bool shadow_stack;              /* x86_Thread_features names shstk */
    uint64_t sig_blocked, sig_pending, sig_shared_pending;
    uint64_t sig_ignored, sig_caught; /* of the process: SIG_IGN, a handler */
};

/* From /proc/PID[/task/TID]/stat. */
struct procfs_stat {
    char comm[64];
    char state;
    int64_t ppid;
    int64_t session;                   /* pid of its first process; 0: that is in no namespace of ours */
    uint64_t utime_ticks, stime_ticks; /* clock ticks, see procfs_ticks_per_s */
    uint64_t start_ticks;              /* since boot */
    int64_t threads;
    int64_t rss_pages;
    int64_t minor_faults, major_faults;
    int64_t cpu;    /* the CPU it ran on last; -1 unknown */
    uint64_t flags; /* PF_... of the kernel's linux/sched.h */
};

/* One line of /proc/PID/maps; `path` is "" for anonymous memory. */
struct procfs_map {
    uint64_t start, end, offset, inode;
    char perms[5];
    char path[512];
};

/* Clock ticks a second, and the size of a page. */
long procfs_ticks_per_s(void);
long procfs_page_size(void);

/* Read one file of the process. 0, or -1 with errno (ENOENT or ESRCH: no such process or
 * thread). */
/* tid 0: the process itself */
int procfs_read_status(pid_t pid, pid_t tid, struct procfs_status *out);
int procfs_read_stat(pid_t pid, pid_t tid, struct procfs_stat *out); /* tid 0: the process itself */

/* The content of one file of a process or thread, up to cap - 1 bytes, NUL-terminated. Returns
 * bytes read, or -1 with errno. */
ssize_t procfs_read_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t cap);

/* For how long a thread has been ready to run and waited for a CPU, in ns, without a wait that still
 * lasts, and how often it has got one (second and third number of schedstat:
 * Documentation/scheduler/sched-stats.rst). 0, or -1: the kernel does not say. */
int procfs_read_cpu_wait(pid_t pid, pid_t tid, uint64_t *ns, uint64_t *times);

/* comm of a thread, newline removed. 0 or -1 with errno. */
int procfs_read_comm(pid_t pid, pid_t tid, char *buf, size_t cap);

/* Whether the thread has children: 1, 0, or -1 if unknown (a kernel may be built without the
 * list). */
int procfs_has_children(pid_t pid, pid_t tid);

/* Arguments joined by single spaces; empty for a kernel thread or zombie. 0 or -1 with errno. */
int procfs_read_cmdline(pid_t pid, struct strbuf *out);

/* Target of /proc/PID/exe, with " (deleted)" removed. 0 or -1 with errno. */
int procfs_read_exe(pid_t pid, char *buf, size_t cap);

/* The value of one variable of the environment with which the process was started. 0, or -1
 * (absent or unreadable). */
int procfs_read_environ(pid_t pid, const char *name, char *buf, size_t cap);

/* True if the process is in a user namespace that maps only a part of the users
 * (user_namespaces(7)). The first namespace maps all to themselves. False if it cannot be
 * determined. */
bool procfs_in_inner_user_ns(pid_t pid);

/* Seconds since the epoch when the process started; NAN when unknown. */
double procfs_started_at(pid_t pid);

/* True if the process has ended: nothing is left of it but zombies and exiting threads. Its
 * memory and sockets go first, for a large process seconds before it is a zombie. A process
 * whose first thread alone has ended is alive. */
bool procfs_is_gone(pid_t pid);

/* True if the process is on its way out. Waits for its end, half a second at most; a millisecond
 * if it is not ending. */
bool procfs_is_ending(pid_t pid);

/* True for a kernel thread, which has no program. */
bool procfs_is_kernel_thread(const struct procfs_stat *st);

/* Thread ids in ascending order into `tids` (room for `cap`). Total number found (may exceed
 * cap), or -1 with errno. */
ssize_t procfs_list_tids(pid_t pid, pid_t *tids, size_t cap);

/* The numbers that are names in a folder, such as /proc/PID/fd; like procfs_list_tids. */
ssize_t procfs_list_numbers(const char *path, pid_t *out, size_t cap);

/* All process ids in ascending order; like procfs_list_tids. */
ssize_t procfs_list_pids(pid_t *pids, size_t cap);

/* Call `fn` for each mapping until it returns non-zero. That value, 0 at the end, or -1 with
 * errno. */
int procfs_each_map(pid_t pid, int (*fn)(const struct procfs_map *map, void *arg), void *arg);

/* The system call of a sleeping thread (/proc/PID/task/TID/syscall): number, six arguments, sp,
 * pc. 0 in a system call; 1 when running or not in one; -1 with errno if it may not be read. */
struct procfs_syscall {
    long nr;
    uint64_t args[6];
    uint64_t sp, pc;
};
int procfs_read_syscall(pid_t pid, pid_t tid, struct procfs_syscall *out);

/* Whether a process holds a file exclusively by flock, as /proc/locks has it, which lists locks of processes that are
 * seen here: 1 it does; 0 another one does, or it holds no file like that; -1 not known: there is no list, or of the
 * files that it holds none has the numbers of stat, which differ on some file systems. */
int procfs_has_lock(pid_t pid, dev_t dev, ino_t inode);

/* What /proc hides from this user. */
enum procfs_hiding {
    PROCFS_HIDES_NOTHING = 0,
    PROCFS_HIDES_OTHERS, /* processes of other users: mounted with hidepid */
    PROCFS_HIDES_ALL,    /* not mounted here */
};
enum procfs_hiding procfs_hiding(void);

/* The same from the text of /proc/self/mountinfo, for a user with these groups. */
enum procfs_hiding procfs_parse_hiding(const char *mountinfo, uid_t uid, const gid_t *groups,
                                       size_t n_groups);

/* Parsers of the files' contents, for tests and fuzzing: 0 or -1. */
int procfs_parse_stat(const char *text, struct procfs_stat *out);
int procfs_parse_status(const char *text, struct procfs_status *out);
int procfs_parse_map(const char *line, struct procfs_map *out);
int procfs_parse_syscall(const char *text, struct procfs_syscall *out);

/* The holder of an exclusive flock, and whether it is of that file. 0: another kind of line. */
pid_t procfs_parse_lock(const char *line, dev_t dev, ino_t inode, bool *is_it);

#endif
