/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every refusal of inject_check from a /proc that is made up: a file system of our own is laid over /proc in a mount
 * namespace of a child, which asks and sends the answer back. What is read of memory is the child's own. Its root is a
 * folder there, with the marks of a container, and its environment the case's.
 */
#include <elf.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "inject/inject.h"

#define NOBODY 99999999 /* more than a pid can be: the kernel knows none, so its memory cannot be read */
#define NO_NAMESPACE 77
#define ALL_CAPS "000001ffffffffff"

/* What is unlike a Python of our own that may be injected into. */
struct proc_case {
    const char *name;
    const char *state; /* "S (sleeping)" */
    int uid, our_uid, tracer, seccomp, our_seccomp, owner;
    unsigned flags;               /* of linux/sched.h */
    const char *caps, *our_caps;  /* "0000000000000000" */
    const char *uid_map;          /* of ours; "0 0 4294967295" */
    const char *scope;            /* of Yama; NULL: there is none */
    const char *features;         /* x86_Thread_features */
    const char *maps;             /* names of what is mapped; "ld-linux-x86-64.so.2 libc.so.6" */
    const char *env;              /* of the child that asks; "A=1 B=2" */
    const char *mark;             /* a file in its root; "/.dockerenv" */
    const char *first_cgroup;     /* cgroup of process 1 */
    const char *cgroup, *its_map; /* cgroup and uid_map of the process */
    const char *label;            /* of ours in attr/current */
    bool selinux;                 /* deny_ptrace is on */
    bool is_unreadable, has_no_exe, is_32_bit, is_missing, has_parent, has_no_proc;
    const char *why, *remedy; /* NULL: it may be injected into */
};

static const struct proc_case cases[] = {
    {.name = "fine"},
    {.name = "fine, sandboxed as a container", .seccomp = 2, .our_seccomp = 2},
    {.name = "gone", .is_missing = true, .why = "no process", .remedy = ": 'probing list'"},
    {.name = "gone, or of the host",
     .is_missing = true,
     .mark = "/.dockerenv",
     .why = "in this container",
     .remedy = "probing list"},
    {.name = "on another node",
     .is_missing = true,
     .env = "SLURM_JOB_ID=77",
     .why = "on this node",
     .remedy = "'srun --jobid=77 --overlap --pty probing-top'"},
    {.name = "on another node of several",
     .is_missing = true,
     .env = "SLURM_JOB_ID=78 SLURMD_NODENAME=n1 SLURM_JOB_NUM_NODES=2",
     .why = "on this node: run",
     .remedy = "'srun --jobid=78 --overlap --pty probing-top'"},
    {.name = "gone on the only node",
     .is_missing = true,
     .env = "SLURM_JOB_ID=77 SLURMD_NODENAME=n1 SLURM_JOB_NUM_NODES=1",
     .why = "no process",
     .remedy = ": 'probing list'"},
    {.name = "zombie", .state = "Z (zombie)", .why = "zombie", .remedy = "nothing to attach to"},
    {.name = "on its way out",
     .flags = 0x4,
     .has_no_exe = true,
     .why = "has ended:",
     .remedy = "nothing to attach to"},
    {.name = "stopped", .state = "T (stopped)", .why = "is stopped", .remedy = "kill -CONT"},
    {.name = "traced",
     .state = "t (tracing stop)",
     .tracer = 1,
     .why = "traced by process 1 (tracer)",
     .remedy = "end that"},
    {.name = "kernel", .flags = 0x200000, .has_no_exe = true, .why = "thread", .remedy = "Python process"},
    {.name = "Yama 1",
     .is_unreadable = true,
     .scope = "1",
     .why = "ptrace_scope is 1",
     .remedy = "ptrace_scope=0"},
    {.name = "Yama 1 in Docker",
     .is_unreadable = true,
     .scope = "1",
     .mark = "/.dockerenv",
     .why = "ptrace_scope is 1: run this with",
     .remedy = "'docker exec --privileged', or start the container with --cap-add=SYS_PTRACE"},
    {.name = "Yama 1 in podman",
     .is_unreadable = true,
     .scope = "1",
     .mark = "/run/.containerenv",
     .why = "ptrace_scope is 1: run this with ",
     .remedy = "'podman exec --privileged'"},
    {.name = "Yama 1 in podman, by its variable",
     .is_unreadable = true,
     .scope = "1",
     .env = "container=podman",
     .why = "ptrace_scope is 1: run this with ",
     .remedy = "'podman exec --privileged'"},
    {.name = "Yama 1 in a pod",
     .is_unreadable = true,
     .scope = "1",
     .env = "KUBERNETES_SERVICE_HOST=10.0.0.1",
     .mark = "/.dockerenv",
     .why = "ptrace_scope is 1: run this in",
     .remedy = "'kubectl debug --profile=general'"},
    {.name = "Yama 1 in a pod, by its control group",
     .is_unreadable = true,
     .scope = "1",
     .first_cgroup = "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-ab.scope",
     .why = "ptrace_scope is 1: run this in",
     .remedy = "'kubectl debug --profile=general'"},
    {.name = "Yama 1 in Docker, by its control group",
     .is_unreadable = true,
     .scope = "1",
     .first_cgroup = "9:memory:/docker/abcdef",
     .why = "ptrace_scope is 1: run this with",
     .remedy = "docker exec --privileged"},
    {.name = "Yama 1 in Apptainer",
     .is_unreadable = true,
     .scope = "1",
     .mark = "/.singularity.d",
     .env = "SLURM_JOB_ID=77",
     .why = "ptrace_scope is 1: run this outside",
     .remedy = "outside of the container"},
    {.name = "Yama 1 in another container",
     .is_unreadable = true,
     .scope = "1",
     .env = "container=lxc",
     .why = "ptrace_scope is 1: run this as root on",
     .remedy = "capability SYS_PTRACE to the container"},
    {.name = "Yama 1 in a Slurm job",
     .is_unreadable = true,
     .scope = "1",
     .env = "SLURM_JOB_ID=77",
     .why = "ptrace_scope is 1: start",
     .remedy = "start the job with 'srun probing launch'"},
    {.name = "Yama 1 of a Slurm job",
     .is_unreadable = true,
     .scope = "1",
     .cgroup = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0",
     .why = "ptrace_scope is 1: start",
     .remedy = "start the job with 'srun probing launch'"},
    {.name = "Yama 1, a child of ours",
     .is_unreadable = true,
     .scope = "1",
     .has_parent = true,
     .why = "security policy",
     .remedy = "run this as root"},
    {.name = "Yama 2", .is_unreadable = true, .scope = "2", .why = "ptrace_scope is 2", .remedy = "as root"},
    {.name = "Yama 3",
     .scope = "3",
     .why = "ptrace_scope is 3",
     .remedy = "start the job with 'probing launch'"},
    {.name = "another user",
     .is_unreadable = true,
     .uid = 1000,
     .why = "another user (uid 1000)",
     .our_uid = 1001,
     .remedy = "that user or root"},
    {.name = "another user, of a root without the capability",
     .is_unreadable = true,
     .uid = 1000,
     .why = "(uid 1000), and this root lacks the capability",
     .remedy = ": run this as that user"},
    {.name = "another user, of a container's root",
     .is_unreadable = true,
     .uid = 1000,
     .mark = "/.dockerenv",
     .why = "(uid 1000), and this root lacks the capability SYS_PTRACE: ",
     .remedy = "docker exec --privileged"},
    {.name = "not dumpable", .is_unreadable = true, .owner = 7, .why = "not dumpable", .remedy = "as root"},
    {.name = "outside of our user namespace",
     .is_unreadable = true,
     .uid = 65534,
     .our_caps = ALL_CAPS,
     .uid_map = "0 1000 1",
     .why = "another user namespace",
     .remedy = "root on the host"},
    {.name = "beside our user namespace",
     .is_unreadable = true,
     .uid_map = "0 1000 1",
     .its_map = "0 4294967295 1",
     .caps = ALL_CAPS,
     .why = "another user namespace than this program",
     .remedy = "run this on the host"},
    {.name = "no capability",
     .is_unreadable = true,
     .caps = ALL_CAPS,
     .why = "has capabilities that this program lacks",
     .remedy = "run this as root"},
    {.name = "our seccomp",
     .is_unreadable = true,
     .our_seccomp = 2,
     .why = "seccomp filter",
     .remedy = "outside of that sandbox"},
    {.name = "our seccomp in Docker",
     .is_unreadable = true,
     .our_seccomp = 2,
     .mark = "/.dockerenv",
     .why = "seccomp filter that this runs under may forbid it: start",
     .remedy = ": start the container with --cap-add=SYS_PTRACE"},
    {.name = "our seccomp in a pod",
     .is_unreadable = true,
     .our_seccomp = 2,
     .mark = "/var/run/secrets/kubernetes.io",
     .why = "seccomp filter that this runs under may forbid it: run",
     .remedy = "kubectl debug --profile=general"},
    {.name = "our seccomp, and its Slurm job",
     .is_unreadable = true,
     .our_seccomp = 2,
     .cgroup = "5:pids:/\n1:freezer:/slurm/uid_1000/job_77/step_batch/task_0\n0::/",
     .why = "seccomp filter that this runs under may forbid it: run this in its job",
     .remedy = "'srun --jobid=77 --overlap --pty probing-top 99999999'"},
    {.name = "a policy", .is_unreadable = true, .why = "security policy", .remedy = "run this as root"},
    {.name = "a policy, in the same Slurm job",
     .is_unreadable = true,
     .env = "SLURM_JOB_ID=77",
     .cgroup = "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0",
     .why = "security policy",
     .remedy = "run this as root"},
    {.name = "a control group of another's making",
     .is_unreadable = true,
     .cgroup = "0::/slurm/job_7;reboot/x",
     .why = "security policy",
     .remedy = "run this as root"},
    {.name = "AppArmor",
     .is_unreadable = true,
     .label = "docker-default (enforce)\n",
     .mark = "/.dockerenv",
     .why = "the AppArmor profile docker-default of this program may forbid it",
     .remedy = "docker exec --privileged"},
    {.name = "AppArmor that only complains",
     .is_unreadable = true,
     .label = "docker-default (complain)\n",
     .why = "security policy",
     .remedy = "run this as root"},
    {.name = "SELinux",
     .is_unreadable = true,
     .label = "unconfined_u:unconfined_r:unconfined_t:s0",
     .selinux = true,
     .why = "SELinux forbids it (deny_ptrace is on)",
     .remedy = "'setsebool deny_ptrace off' as root"},
    {.name = "strict seccomp", .seccomp = 1, .why = "strict seccomp", .remedy = "killed"},
    {.name = "musl", .maps = "ld-musl-x86_64.so.1", .why = "musl", .remedy = "from outside"},
    {.name = "static", .maps = "python3.11", .why = "statically linked", .remedy = "from outside"},
    {.name = "32-bit", .is_32_bit = true, .why = "32-bit", .remedy = "made for it"},
    {.name = "too early",
     .maps = "python3.11 ld-linux-x86-64.so.2",
     .why = "is still starting",
     .remedy = "try again"},
    {.name = "no /proc", .has_no_proc = true, .why = "no /proc in its container", .remedy = "from outside"},
    {.name = "shadow stack", .features = "shstk", .why = "shadow stack", .remedy = "from outside"},
};

static long page_size;
static char own_page[3 * 65536];

__attribute__((format(printf, 2, 3))) static void put(const char *path, const char *fmt, ...) {
    va_list ap;
    FILE *f = fopen(path, "w");
    if (!f)
        _exit(2);
    va_start(ap, fmt);
    (void)vfprintf(f, fmt, ap);
    va_end(ap);
    (void)fclose(f);
}

static void put_elf(const char *path, bool is_32_bit) {
    Elf64_Ehdr eh = {.e_type = ET_DYN, .e_machine = is_32_bit ? EM_386 : EM_X86_64};
    memcpy(eh.e_ident, ELFMAG, SELFMAG);
    eh.e_ident[EI_CLASS] = is_32_bit ? ELFCLASS32 : ELFCLASS64;
    FILE *f = fopen(path, "w");
    if (!f || fwrite(&eh, sizeof eh, 1, f) != 1)
        _exit(2);
    (void)fclose(f);
}

static void put_maps(const char *path, const char *names) {
    uint64_t start =
        ((uint64_t)(uintptr_t)own_page + (uint64_t)page_size - 1) / (uint64_t)page_size * (uint64_t)page_size;
    FILE *f = fopen(path, "w");
    if (!f)
        _exit(2);
    for (const char *n = names; *n; n += strcspn(n, " "), n += strspn(n, " "), start += (uint64_t)page_size)
        (void)fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp 00000000 08:01 17 /usr/lib/%.*s\n", start,
                      start + (uint64_t)page_size, (int)strcspn(n, " "), n);
    (void)fclose(f);
}

static const char * or (const char *text, const char *default_value) { return text ? text : default_value; }

/* Make the folders above a file, and the file; as `test -e` sees it, a folder would do. */
static void put_in_root(const char *root, const char *path, const char *text) {
    char full[128];
    size_t n = (size_t)snprintf(full, sizeof full, "%s%s", root, path);
    for (size_t i = strlen(root) + 1; i < n; i++)
        if (full[i] == '/') {
            full[i] = '\0';
            (void)mkdir(full, 0755);
            full[i] = '/';
        }
    put(full, "%s", text);
}

/* Go into a root of the case's own, with /proc in it; the environment and the user are its own, too. */
static bool move_in(const struct proc_case *c) {
    char words[256], *rest = words, *word;
    (void)mkdir("/proc/jail", 0755);
    if (c->mark)
        put_in_root("/proc/jail", c->mark, "");
    if (c->selinux)
        put_in_root("/proc/jail", "/sys/fs/selinux/booleans/deny_ptrace", "1 1");
    (void)mkdir("/proc/jail/proc", 0755);
    if (mount("/proc", "/proc/jail/proc", NULL, MS_BIND | MS_REC, NULL) != 0 || chroot("/proc/jail") != 0 ||
        chdir("/") != 0 || clearenv() != 0)
        return false;
    (void)snprintf(words, sizeof words, "%s", c->env ? c->env : "");
    while ((word = strsep(&rest, " ")))
        if (*word && putenv(strdup(word)) != 0)
            return false;
    return !c->our_uid || seteuid((uid_t)c->our_uid) == 0;
}

/* Lay a /proc with the case's process over the real one. Its pid, or -1 where that is not allowed. */
static pid_t lay_out(const struct proc_case *c) {
    pid_t pid = c->is_unreadable ? NOBODY : getpid();
    char path[64], link[64];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/proc", "tmpfs", 0, "mode=755") != 0)
        return -1;
    (void)mkdir("/proc/self", 0755);
    (void)mkdir("/proc/sys", 0755);
    (void)mkdir("/proc/sys/kernel", 0755);
    (void)mkdir("/proc/sys/kernel/yama", 0755);
    (void)mkdir("/proc/1", 0755);
    put("/proc/1/comm", "tracer\n");
    put("/proc/1/stat", "1 (init) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 1 1\n");
    put("/proc/self/status",
        "Name:\ttest\nState:\tR (running)\nTgid:\t1\nPPid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t%s\nSeccomp:\t%d\n",
        or (c->our_caps, "0000000000000000"), c->our_seccomp);
    put("/proc/self/uid_map", "%s\n", or (c->uid_map, "0 0 4294967295"));
    (void)mkdir("/proc/self/attr", 0755);
    put("/proc/self/attr/current", "%s", or (c->label, "unconfined\n"));
    put("/proc/1/cgroup", "%s\n", or (c->first_cgroup, "0::/init.scope"));
    if (c->scope)
        put("/proc/sys/kernel/yama/ptrace_scope", "%s\n", c->scope);
    if (c->is_missing)
        return move_in(c) ? pid : -1;
    int n = snprintf(path, sizeof path, "/proc/%d", (int)pid);
    (void)mkdir(path, 0755);
    (void)mkdir("/proc/folder", 0755);
    (void)mkdir("/proc/folder/proc", 0755);
    if (!c->has_no_proc && mount("proc", "/proc/folder/proc", "proc", 0, NULL) != 0)
        return -1;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/root");
    if (symlink("/proc/folder", path) != 0)
        return -1;
    path[n] = '\0';
    if (chown(path, (uid_t)c->uid, 0) != 0) /* also of one that is not dumpable */
        return -1;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/status");
    put(path,
        "Name:\tpython3\nState:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t1\nTracerPid:\t%d\nUid:\t%d\t%d\t%d\t%"
        "d\nNSpid:\t%d\n"
        "CapPrm:\t%s\nSeccomp:\t%d\nx86_Thread_features:\t%s\n",
        or (c->state, "S (sleeping)"), (int)pid, (int)pid, c->tracer, c->uid, c->uid, c->uid, c->uid,
        (int)pid, or (c->caps, "0000000000000000"), c->seccomp, or (c->features, ""));
    if (chown(path, c->owner ? (uid_t)c->owner : (uid_t)c->uid, 0) != 0)
        return -1;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/stat");
    put(path, "%d (python3) %c %d 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 1 1 1\n", (int)pid,
        or (c->state, "S")[0], c->has_parent ? (int)getpid() : 1, c->flags);
    (void)snprintf(path + n, sizeof path - (size_t)n, "/cgroup");
    put(path, "%s\n", or (c->cgroup, "0::/user.slice"));
    (void)snprintf(path + n, sizeof path - (size_t)n, "/uid_map");
    put(path, "%s\n", or (c->its_map, "0 0 4294967295"));
    (void)snprintf(path + n, sizeof path - (size_t)n, "/task");
    (void)mkdir(path, 0755);
    (void)snprintf(path + n, sizeof path - (size_t)n, "/maps");
    put_maps(path, or (c->maps, "python3.11 ld-linux-x86-64.so.2 libc.so.6"));
    /* Its memory is this process's own, through a /proc that tells the truth. */
    (void)mkdir("/proc/real", 0755);
    if (mount("proc", "/proc/real", "proc", 0, NULL) != 0)
        return -1;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/mem");
    (void)snprintf(link, sizeof link, "/proc/real/%d/mem", (int)pid);
    if (!c->is_unreadable && symlink(link, path) != 0)
        return -1;
    (void)snprintf(path + n, sizeof path - (size_t)n, "/exe");
    (void)snprintf(link, sizeof link, "/proc/program");
    put_elf(link, c->is_32_bit);
    if (!c->has_no_exe && symlink(link, path) != 0)
        return -1;
    return move_in(c) ? pid : -1;
}

/* What inject_check says in a child for which /proc is made up; "" nothing. False where that is not allowed. */
static bool ask(const struct proc_case *c, char *said, size_t cap) {
    int fds[2], status = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct err e = {0};
        pid_t pid = lay_out(c);
        if (pid < 0)
            _exit(NO_NAMESPACE);
        int rc = inject_check(pid, &e);
        if ((rc == 0) != (e.code == ERR_OK) || (rc != 0 && e.code != ERR_ATTACH))
            _exit(3);
        _exit(write(fds[1], e.text, strlen(e.text) + 1) > 0 ? 0 : 4);
    }
    (void)close(fds[1]);
    ssize_t n = read(fds[0], said, cap - 1);
    said[n > 0 ? n : 0] = '\0';
    (void)close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_NAMESPACE)
        return false;
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void test_cases(void **state) {
    char said[1024], seen[sizeof cases / sizeof cases[0]][1024];
    (void)state;
    page_size = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct proc_case *c = &cases[i];
        if (!ask(c, said, sizeof said)) {
            print_message("needs root: a mount namespace of its own\n");
            skip();
        }
        bool fits =
            c->why ? strstr(said, c->why) && strstr(said, c->remedy) && !strchr(said, '\n') : !said[0];
        if (!fits)
            fail_msg("%s: %s", c->name, said);
        (void)strcpy(seen[i], said);
        for (size_t k = 0; c->why && k < i; k++) /* each has a message of its own */
            if (!cases[k].why || strcmp(cases[k].why, c->why) != 0)
                assert_string_not_equal(seen[k], said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
