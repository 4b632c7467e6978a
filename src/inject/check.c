/* SPDX-License-Identifier: Apache-2.0 */
/* check: see check.h. Permission rules: ptrace(2), "Ptrace access mode checking"; Yama:
 * Documentation/admin-guide/LSM. */
#include "inject/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "inject/inject.h"
#include "inject/target.h"

#define CHECK_CAP_SYS_PTRACE 19
#define CHECK_MAX_ANCESTORS 64
#define CHECK_STATUS_MAX ((size_t)64 * 1024)

/* --- facts ----------------------------------------------------------------------------------------------------- */

static int check_ptrace_scope(void) {
    struct strbuf text;
    strbuf_init(&text, CHECK_STATUS_MAX);
    int scope =
        strbuf_read_file(&text, "/proc/sys/kernel/yama/ptrace_scope") == 0 ? atoi(strbuf_str(&text)) : 0;
    strbuf_fini(&text);
    return scope;
}

/* A set of capabilities (capabilities(7)) of the process that `who` names in /proc; 0 if it may
 * not be read. */
static unsigned long long check_read_caps(const char *who, const char *key) {
    char path[64];
    struct strbuf text;
    unsigned long long caps = 0;
    snprintf(path, sizeof path, "/proc/%s/status", who);
    strbuf_init(&text, CHECK_STATUS_MAX);
    const char *line = strbuf_read_file(&text, path) == 0 ? strstr(strbuf_str(&text), key) : NULL;
    if (line)
        caps = strtoull(line + strlen(key), NULL, 16);
    strbuf_fini(&text);
    return caps;
}

static void check_read_ours(struct check_facts *f) {
    struct procfs_status ours;
    char who[24];
    snprintf(who, sizeof who, "%d", (int)f->pid);
    unsigned long long caps = check_read_caps("self", "\nCapEff:");
    f->our_cap_ptrace = caps >> CHECK_CAP_SYS_PTRACE & 1;
    f->has_more_caps = (check_read_caps(who, "\nCapPrm:") & ~caps) != 0;
    f->our_ns_is_inner = procfs_in_inner_user_ns(0);
    f->our_seccomp = procfs_read_status(0, 0, &ours) == 0 ? ours.seccomp : MODEL_UNKNOWN;
    f->ptrace_scope = check_ptrace_scope();
}

/* True if the users of the process are mapped in another way than ours: then it is in another
 * user namespace. */
static bool check_is_other_user_ns(pid_t pid) {
    char ours[1024], its[1024];
    return procfs_read_file(0, 0, "uid_map", ours, sizeof ours) >= 0 &&
           procfs_read_file(pid, 0, "uid_map", its, sizeof its) >= 0 && strcmp(ours, its) != 0;
}

/* The AppArmor profile that confines this program, or "". SELinux has a context of another form
 * in the same file. */
static void check_read_apparmor(char *profile, size_t cap) {
    static const char enforced[] = " (enforce)";
    char label[128];
    profile[0] = '\0';
    if (procfs_read_file(0, 0, "attr/apparmor/current", label, sizeof label) <= 0 &&
        procfs_read_file(0, 0, "attr/current", label, sizeof label) <= 0)
        return;
    char *mode = strstr(label, enforced);
    if (mode) {
        *mode = '\0';
        text_sanitize(profile, cap, label);
    }
}

static bool check_selinux_denies(void) {
    struct strbuf text;
    strbuf_init(&text, 16);
    bool denies =
        strbuf_read_file(&text, "/sys/fs/selinux/booleans/deny_ptrace") == 0 && strbuf_str(&text)[0] == '1';
    strbuf_fini(&text);
    return denies;
}

/* The facts that explain a refusal of the kernel. */
static void check_read_obstacles(struct check_facts *f) {
    f->other_user_ns = check_is_other_user_ns(f->pid);
    check_read_apparmor(f->apparmor, sizeof f->apparmor);
    f->selinux_denies = check_selinux_denies();
    container_find_slurm_job(f->pid, f->slurm_job, sizeof f->slurm_job);
}

static bool check_is_descendant(pid_t pid) {
    struct procfs_stat st;
    for (int i = 0; i < CHECK_MAX_ANCESTORS && pid > 1; i++) {
        if (pid == getpid())
            return true;
        if (procfs_read_stat(pid, 0, &st) != 0)
            return false;
        pid = (pid_t)st.ppid;
    }
    return false;
}

static void check_read_elf(struct check_facts *f) {
    char path[64];
    unsigned char ident[EI_NIDENT + 4];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)f->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, ident, sizeof ident) == (ssize_t)sizeof ident && memcmp(ident, ELFMAG, SELFMAG) == 0) {
        f->elf_known = true;
        f->elf_class = ident[EI_CLASS];
        /* e_machine, in the target's own byte order: ours */
        f->elf_machine = ident[18] | ident[19] << 8;
    }
    close(fd);
}

/* The agent's bytes are opened through /proc as the process itself sees it. */
static void check_read_proc(struct check_facts *f) {
    char path[64];
    struct statfs fs;
    snprintf(path, sizeof path, "/proc/%d/root/proc", (int)f->pid);
    if (statfs(path, &fs) == 0)
        f->no_proc = fs.f_type != PROC_SUPER_MAGIC;
    else
        f->no_proc = errno == ENOENT;
}

static void check_read_maps(struct check_facts *f, const struct mem *mem) {
    struct target t;
    struct err ignored;
    if (target_init(&t, f->pid, mem, &ignored) == 0 && t.map_count > 0) {
        uint8_t byte;
        f->maps_known = true;
        f->libc = t.musl                         ? CHECK_LIBC_MUSL
                  : t.libc >= 0 && t.loader >= 0 ? CHECK_LIBC_GLIBC
                  : t.loader >= 0                ? CHECK_LIBC_NOT_YET
                                                 : CHECK_LIBC_NONE;
        for (size_t i = 0; i < t.map_count && !f->readable; i++)
            f->readable = t.maps[i].readable && mem_read(&t.mem, t.maps[i].start, &byte, 1) == 0;
        f->replaced = !f->readable && mem_is_gone(&t.mem);
    }
    target_fini(&t);
}

void check_gather(pid_t pid, const struct mem *mem, struct check_facts *f) {
    char path[64], raw[64];
    struct stat st;
    struct procfs_stat kernel;
    *f = (struct check_facts){.pid = pid, .our_uid = (int64_t)geteuid()};
    container_find(&f->here);
    f->exists = pid > 0 && procfs_read_status(pid, 0, &f->status) == 0;
    if (!f->exists)
        return;
    text_sanitize(f->name, sizeof f->name, f->status.name);
    if (f->status.tracer_pid > 0 && procfs_read_comm((pid_t)f->status.tracer_pid, 0, raw, sizeof raw) == 0)
        text_sanitize(f->tracer, sizeof f->tracer, raw);
    /* The folder always belongs to the process's user; what is in it may belong to root
     * (proc(5)). */
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f->dumpable = stat(path, &st) == 0 && (int64_t)st.st_uid == f->status.uid;
    f->has_ended = procfs_is_gone(pid);
    f->kernel_thread = procfs_read_stat(pid, 0, &kernel) == 0 && procfs_is_kernel_thread(&kernel);
    check_read_ours(f);
    f->descendant = check_is_descendant(pid);
    check_read_elf(f);
    check_read_proc(f);
    if (!f->kernel_thread)
        check_read_maps(f, mem);
    if (!f->readable)
        check_read_obstacles(f);
}

/* --- judgement ------------------------------------------------------------------------------------------------- */

static int check_judge_state(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    char state = f->status.state;
    if (!f->exists) {
        char what[32], text[sizeof e->text];
        snprintf(what, sizeof what, "process %d", pid);
        container_put_missing(&f->here, what, text, sizeof text);
        return err_set(e, ERR_ATTACH, "%s", text);
    }
    if (f->status.tgid > 0 && f->status.tgid != pid)
        return err_set(e, ERR_ATTACH, "%d is a thread of process %" PRId64 ": give that pid", pid,
                       f->status.tgid);
    if (f->has_ended && state == 'Z')
        return err_set(e, ERR_ATTACH,
                       "process %d (%s) has ended and is a zombie: there is nothing to attach to", pid,
                       f->name);
    if (f->has_ended)
        return err_set(e, ERR_ATTACH, "process %d (%s) has ended: there is nothing to attach to", pid,
                       f->name);
    if (f->kernel_thread)
        return err_set(e, ERR_ATTACH, "process %d (%s) is a kernel thread: give the pid of a Python process",
                       pid, f->name);
    if (f->status.tracer_pid <= 0 && (state == 'T' || state == 't'))
        return err_set(e, ERR_ATTACH,
                       "process %d is stopped: continue it with 'kill -CONT %d' first; until then it can "
                       "only be read from outside",
                       pid, pid);
    return 0;
}

/* What allows tracing where Yama forbids it. A user of a cluster has neither root nor the sysctl,
 * but starts the job. */
static const char *check_scope_remedy(const struct check_facts *f) {
    if (f->here.kind != CONTAINER_NONE)
        return container_remedy(f->here.kind);
    if (f->here.slurm_job[0] || f->slurm_job[0])
        return "start the job with 'srun probing launch'";
    return "run this as root, or 'sysctl kernel.yama.ptrace_scope=0'";
}

/* The kernel refuses without a reason that is known: a filter around us, or a policy. */
static int check_refuse_policy(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    char by[sizeof f->apparmor + 32] = "its container or security policy forbids it", remedy[128];
    snprintf(remedy, sizeof remedy, "%s", container_remedy(f->here.kind));
    if (f->our_seccomp == 2) {
        snprintf(by, sizeof by, "a seccomp filter that this runs under may forbid it");
        snprintf(remedy, sizeof remedy, "%s", container_filter_remedy(f->here.kind));
    }
    /* The job's own step is under neither our filter nor our policy. */
    if (f->here.kind == CONTAINER_NONE && f->slurm_job[0] && strcmp(f->slurm_job, f->here.slurm_job) != 0)
        snprintf(remedy, sizeof remedy,
                 "run this in its job, 'srun --jobid=%s --overlap --pty probing-top %d'", f->slurm_job, pid);
    if (f->selinux_denies) {
        snprintf(by, sizeof by, "SELinux forbids it (deny_ptrace is on)");
        snprintf(remedy, sizeof remedy, "run 'setsebool deny_ptrace off' as root");
    } else if (f->our_seccomp != 2 && f->apparmor[0]) {
        snprintf(by, sizeof by, "the AppArmor profile %s of this program may forbid it", f->apparmor);
    }
    return err_set(e, ERR_ATTACH, "not allowed to attach to process %d: %s: %s", pid, by, remedy);
}

/* Reasons that the capability SYS_PTRACE would overcome. */
static int check_judge_capability(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    bool foreign = f->status.uid != f->our_uid;
    if (foreign && f->our_uid != 0)
        return err_set(e, ERR_ATTACH,
                       "process %d belongs to another user (uid %" PRId64 "): run this as that user or root",
                       pid, f->status.uid);
    if (foreign)
        return err_set(e, ERR_ATTACH,
                       "process %d belongs to another user (uid %" PRId64 "), and this root lacks the "
                       "capability SYS_PTRACE: %s",
                       pid, f->status.uid,
                       f->here.kind == CONTAINER_NONE ? "run this as that user"
                                                      : container_remedy(f->here.kind));
    if (f->ptrace_scope == 2 || (f->ptrace_scope == 1 && !f->descendant))
        return err_set(e, ERR_ATTACH,
                       "not allowed to attach to process %d: kernel.yama.ptrace_scope is %d: %s", pid,
                       f->ptrace_scope, check_scope_remedy(f));
    if (!f->dumpable)
        return err_set(e, ERR_ATTACH, "process %d is not dumpable, so only root may read it: %s", pid,
                       container_remedy(f->here.kind));
    if (f->our_ns_is_inner && f->other_user_ns)
        return err_set(e, ERR_ATTACH,
                       "process %d is in another user namespace than this program: run this on the host, "
                       "outside of both",
                       pid);
    if (f->has_more_caps)
        return err_set(e, ERR_ATTACH, "process %d has capabilities that this program lacks: %s", pid,
                       container_remedy(f->here.kind));
    return 0;
}

static int check_judge_permission(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    if (f->ptrace_scope >= 3)
        return err_set(e, ERR_ATTACH,
                       "not allowed to attach to process %d: kernel.yama.ptrace_scope is 3, which forbids it "
                       "to everyone until the next boot: start the job with 'probing launch'",
                       pid);
    if (f->readable)
        return 0;
    if (f->replaced)
        return err_set(e, ERR_LOST, "process %d ended, or started another program (exec), while it was read",
                       pid);
    if (!f->our_cap_ptrace && check_judge_capability(f, e) != 0)
        return -1;
    if (f->our_cap_ptrace && f->our_ns_is_inner)
        return err_set(
            e, ERR_ATTACH,
            "process %d is in another user namespace, and you are root only inside this one: run this as "
            "root on the host",
            pid);
    return check_refuse_policy(f, e);
}

static int check_judge_program(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    if (f->elf_known && (f->elf_class != ELFCLASS64 || f->elf_machine != EM_X86_64))
        return err_set(e, ERR_ATTACH,
                       "process %d is a %s program, this build is for 64-bit x86: use one made for it", pid,
                       f->elf_class == ELFCLASS32 ? "32-bit" : "foreign");
    if (f->maps_known && f->libc == CHECK_LIBC_MUSL)
        return err_set(
            e, ERR_ATTACH,
            "process %d runs on musl libc, the agent needs glibc: it can only be read from outside", pid);
    if (f->maps_known && f->libc == CHECK_LIBC_NOT_YET)
        return err_set(e, ERR_ATTACH,
                       "process %d is still starting (its C library is not loaded yet): try again", pid);
    if (f->maps_known && f->libc == CHECK_LIBC_NONE)
        return err_set(e, ERR_ATTACH,
                       "process %d is statically linked (it has no C library that can load an agent): it can "
                       "only be read from outside",
                       pid);
    if (f->no_proc)
        return err_set(e, ERR_ATTACH,
                       "process %d has no /proc in its container, which loading an agent needs: mount it "
                       "there; it can only be read from outside",
                       pid);
    if (f->status.seccomp == 1)
        return err_set(e, ERR_ATTACH,
                       "process %d is in strict seccomp mode and would be killed by any new system call: it "
                       "can only be read from outside",
                       pid);
    return 0;
}

/* Reasons that only forbid borrowing a thread. */
static int check_judge_threads(const struct check_facts *f, struct err *e) {
    int pid = (int)f->pid;
    if (f->status.tracer_pid > 0)
        return err_set(e, ERR_ATTACH,
                       "process %d is being traced by process %" PRId64
                       "%s%s%s: end that one first; until then it can only be read from outside",
                       pid, f->status.tracer_pid, f->tracer[0] ? " (" : "", f->tracer,
                       f->tracer[0] ? ")" : "");
    if (f->status.shadow_stack)
        return err_set(e, ERR_ATTACH,
                       "process %d runs with a shadow stack (x86 CET), which does not allow a thread to be "
                       "borrowed: it can only be read from outside",
                       pid);
    return 0;
}

bool check_is_ours(const char *tracer) {
    return strcmp(tracer, "probing") == 0 || strcmp(tracer, "probing-top") == 0;
}

int check_judge(const struct check_facts *f, struct err *e) {
    struct err other;
    if (check_judge_state(f, e) != 0)
        return -1;
    int borrow = check_judge_threads(f, e);
    if (borrow != 0 && f->status.tracer_pid > 0) { /* an existing tracer is the better reason */
        bool runs = f->status.state != 't' && f->status.state != 'T';
        bool rest = check_judge_permission(f, &other) == 0 && check_judge_program(f, &other) == 0;
        if (rest && check_is_ours(f->tracer)) {
            err_set(e, ERR_ATTACH,
                    "process %d is being traced by process %" PRId64 " (%s) at this moment: try again",
                    (int)f->pid, f->status.tracer_pid, f->tracer);
            return INJECT_BUSY;
        }
        return runs && rest && f->readable ? INJECT_ONLY_REMOTE_EXEC : -1;
    }
    if (check_judge_permission(f, e) != 0 || check_judge_program(f, e) != 0)
        return -1;
    return borrow != 0 ? INJECT_ONLY_REMOTE_EXEC : 0;
}

int inject_check(pid_t pid, struct err *e) {
    struct check_facts facts;
    check_gather(pid, NULL, &facts);
    return check_judge(&facts, e);
}

bool inject_is_for_parents(pid_t pid) {
    return check_ptrace_scope() == 1 &&
           (check_read_caps("self", "\nCapEff:") >> CHECK_CAP_SYS_PTRACE & 1) == 0 &&
           check_is_descendant(pid);
}
