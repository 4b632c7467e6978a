/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_sandbox: see symbols_sandbox.h. seccomp(2), linux/filter.h, capabilities(7),
 * setrlimit(2). */
#include "client/symbols/symbols_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/symbols/symbols_protocol.h"

#define SANDBOX_NOBODY 65534
#define SANDBOX_DATA ((rlim_t)1024 * 1024 * 1024) /* memory of its own; mapped files are extra */
#define SANDBOX_SPACE ((rlim_t)256 * 1024 * 1024 * 1024)
#define SANDBOX_STACK ((rlim_t)100 * 1024 * 1024)
#define SANDBOX_CPU_S ((rlim_t)600) /* of its whole life */

/* A sanitiser's runtime has terabytes of address space and makes calls of its own. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_IS_INSTRUMENTED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_IS_INSTRUMENTED 1
#endif
#ifndef SANDBOX_IS_INSTRUMENTED
#define SANDBOX_IS_INSTRUMENTED 0
#endif

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- descriptors ---- */

static void sandbox_close_others(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < SYMBOLS_SOCKET; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, SYMBOLS_SOCKET + 1, ~0U, 0) == 0)
        return;
#endif
    struct rlimit most = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &most);
    for (rlim_t fd = SYMBOLS_SOCKET + 1; fd < most.rlim_cur && fd < 65536; fd++)
        close((int)fd);
}

/* ---- user ---- */

static int sandbox_become(int64_t uid, int64_t gid) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    int rc = 0;
    if (uid >= 0 && geteuid() == 0) {
        /* In a user namespace that has neither the target's user nor this one we stay root, of
         * that namespace. */
        setgroups(0, NULL);
        if (setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) != 0)
            setresgid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY);
        if (setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0 &&
            setresuid(SANDBOX_NOBODY, SANDBOX_NOBODY, SANDBOX_NOBODY) != 0)
            rc = errno == EINVAL ? 0 : -1;
    }
    syscall(SYS_capset, &head, none);
    /* The target's user may signal it, but not trace it or read its memory. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? rc : -1;
}

/* ---- limits ---- */

static void sandbox_limit(int what, rlim_t most) {
    struct rlimit now;
    if (getrlimit(what, &now) == 0 && now.rlim_max < most)
        most = now.rlim_max;
    setrlimit(what, &(struct rlimit){most, most});
}

static void sandbox_limit_all(void) {
    sandbox_limit(RLIMIT_CORE, 0);
    sandbox_limit(RLIMIT_FSIZE, 0);
    sandbox_limit(RLIMIT_NOFILE, 3 * SYMBOLS_MAX_MODULES);
    sandbox_limit(RLIMIT_CPU, SANDBOX_CPU_S);
    sandbox_limit(RLIMIT_STACK, SANDBOX_STACK);
    if (SANDBOX_IS_INSTRUMENTED)
        return;
    sandbox_limit(RLIMIT_DATA, SANDBOX_DATA);
    sandbox_limit(RLIMIT_AS, SANDBOX_SPACE);
}

/* ---- system calls ---- */

#ifdef SANDBOX_ARCH
#define SANDBOX_DATA_AT(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define SANDBOX_LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SANDBOX_DATA_AT(field))
#define SANDBOX_YES BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define SANDBOX_NO BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define SANDBOX_ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), SANDBOX_YES
/* Unless the low word of an argument has one of these bits; both machines are little-endian. */
#define SANDBOX_UNLESS(number, arg, bits)                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 4), SANDBOX_LOAD(args[arg]),                            \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, 1), SANDBOX_NO, SANDBOX_YES

/* Refused calls fail, as if a file were missing: elfutils continues without it. */
static const struct sock_filter sandbox_filter[] = {
    SANDBOX_LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    SANDBOX_LOAD(nr),
    SANDBOX_ALLOW(SYS_pread64),
    SANDBOX_ALLOW(SYS_read),
    SANDBOX_ALLOW(SYS_lseek),
    SANDBOX_ALLOW(SYS_fstat),
    SANDBOX_ALLOW(SYS_newfstatat), /* fstat() in a newer C library */
    SANDBOX_ALLOW(SYS_fcntl),
    SANDBOX_ALLOW(SYS_close),
    SANDBOX_ALLOW(SYS_sendmsg),
    SANDBOX_ALLOW(SYS_recvmsg),
    SANDBOX_ALLOW(SYS_brk),
    SANDBOX_ALLOW(SYS_munmap),
    SANDBOX_ALLOW(SYS_mremap),
    SANDBOX_ALLOW(SYS_madvise),
    SANDBOX_ALLOW(SYS_futex),
    SANDBOX_ALLOW(SYS_getrandom),
    SANDBOX_ALLOW(SYS_sysinfo), /* qsort */
    SANDBOX_ALLOW(SYS_setitimer),
    SANDBOX_ALLOW(SYS_clock_gettime),
    SANDBOX_ALLOW(SYS_rt_sigprocmask),
    SANDBOX_ALLOW(SYS_rt_sigreturn),
    SANDBOX_ALLOW(SYS_restart_syscall),
    SANDBOX_ALLOW(SYS_exit),
    SANDBOX_ALLOW(SYS_exit_group),
    SANDBOX_UNLESS(SYS_mmap, 2, PROT_EXEC),
    SANDBOX_UNLESS(SYS_mprotect, 2, PROT_EXEC),
    SANDBOX_NO,
};

static void sandbox_filter_calls(void) {
    const struct sock_fprog program = {.len = sizeof sandbox_filter / sizeof sandbox_filter[0],
                                       .filter = (struct sock_filter *)(uintptr_t)sandbox_filter};
    if (!SANDBOX_IS_INSTRUMENTED)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static void sandbox_filter_calls(void) {}
#endif

int symbols_sandbox_enter(int64_t uid, int64_t gid) {
    sandbox_close_others();
    if (sandbox_become(uid, gid) != 0)
        return -1;
    sandbox_limit_all();
    sandbox_filter_calls();
    return 0;
}

void symbols_sandbox_set_time(int seconds) {
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}
