/* SPDX-License-Identifier: Apache-2.0 */
/* procfs: see procfs.h. Formats: proc(5), Documentation/filesystems/proc.rst of Linux. */
#include "base/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"

#define PROCFS_FILE_MAX ((size_t)16 * 1024)
#define PROCFS_GROUPS_MAX 256
#define PROCFS_PF_EXITING 0x4 /* linux/sched.h */
#define PROCFS_PF_KTHREAD 0x200000
#define PROCFS_ENDING_TIDS 1024
/* from the end of the first thread to the end of all */
#define PROCFS_ENDING_NS (500 * CLOCK_NS_PER_MS)
#define PROCFS_STAT_FIELDS 40 /* of /proc/PID/stat, as far as they are read; number 0 is unused */

static void procfs_path(char *buf, size_t cap, pid_t pid, pid_t tid, const char *name) {
    char who[16] = "self";
    if (pid > 0)
        snprintf(who, sizeof who, "%d", (int)pid);
    if (tid > 0)
        snprintf(buf, cap, "/proc/%s/task/%d/%s", who, (int)tid, name);
    else
        snprintf(buf, cap, "/proc/%s/%s", who, name);
}

/* Files of one record: fs/seq_file.c gives as much of it as there is room for, so that a read which left room has
 * read all. Of the others a read may end with a page. */
static bool procfs_is_one_record(const char *name) {
    static const char *const names[] = {"stat",    "status", "statm", "schedstat",
                                        "syscall", "comm",   "wchan", "io"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

ssize_t procfs_read_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t cap) {
    char path[96];
    procfs_path(path, sizeof path, pid, tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t used = 0;
    ssize_t n = 0;
    while (used + 1 < cap) {
        n = read(fd, buf + used, cap - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used + 1 < cap && procfs_is_one_record(name))
            break;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    buf[used] = '\0';
    return n < 0 ? -1 : (ssize_t)used;
}

long procfs_ticks_per_s(void) {
    long t = sysconf(_SC_CLK_TCK);
    return t > 0 ? t : 100;
}

long procfs_page_size(void) {
    long p = sysconf(_SC_PAGESIZE);
    return p > 0 ? p : 4096;
}

int procfs_parse_stat(const char *text, struct procfs_stat *out) {
    *out = (struct procfs_stat){.state = '?'};
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')'); /* comm itself may contain parentheses */
    if (!open || !close || close < open)
        return -1;
    size_t n = (size_t)(close - open - 1);
    if (n >= sizeof out->comm)
        n = sizeof out->comm - 1;
    memcpy(out->comm, open + 1, n);
    out->comm[n] = '\0';
    const char *p = close + 1 + strspn(close + 1, " ");
    out->state = *p ? *p++ : '?';
    uint64_t fields[PROCFS_STAT_FIELDS] = {0};
    size_t last = 3; /* numbered as in proc(5) */
    for (char *end; last + 1 < PROCFS_STAT_FIELDS; p = end) {
        fields[last + 1] = strtoull(p, &end, 10);
        if (end == p)
            break;
        last++;
    }
    if (last < 24)
        return -1;
    out->ppid = (int64_t)fields[4];
    out->session = (int64_t)fields[6];
    out->flags = fields[9];
    out->minor_faults = (int64_t)fields[10];
    out->major_faults = (int64_t)fields[12];
    out->utime_ticks = fields[14];
    out->stime_ticks = fields[15];
    out->threads = (int64_t)fields[20];
    out->start_ticks = fields[22];
    out->rss_pages = (int64_t)fields[24];
    out->cpu = last < 39 ? -1 : (int64_t)fields[39];
    return 0;
}

/* The text after "Key:\t", or NULL. */
static const char *procfs_field(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, key, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, " \t");
    return NULL;
}

static int64_t procfs_field_int(const char *text, const char *key, int64_t default_value) {
    const char *v = procfs_field(text, key);
    return v && (isdigit((unsigned char)*v) || *v == '-') ? strtoll(v, NULL, 10) : default_value;
}

static uint64_t procfs_field_hex(const char *text, const char *key) {
    const char *v = procfs_field(text, key);
    return v ? strtoull(v, NULL, 16) : 0;
}

/* The second of the ids of a user or group: the effective one. */
static int64_t procfs_field_effective(const char *text, const char *key) {
    long long real, effective;
    const char *v = procfs_field(text, key);
    return v && sscanf(v, "%lld %lld", &real, &effective) == 2 ? effective : -1;
}

int procfs_parse_status(const char *text, struct procfs_status *out) {
    *out = (struct procfs_status){.state = '?'};
    const char *name = procfs_field(text, "Name");
    const char *state = procfs_field(text, "State");
    if (!name || !state)
        return -1;
    size_t n = strcspn(name, "\n");
    if (n >= sizeof out->name)
        n = sizeof out->name - 1;
    memcpy(out->name, name, n);
    out->state = *state;
    out->tgid = procfs_field_int(text, "Tgid", -1);
    out->ppid = procfs_field_int(text, "PPid", -1);
    out->tracer_pid = procfs_field_int(text, "TracerPid", 0);
    int64_t rss_kib = procfs_field_int(text, "VmRSS", -1);
    out->rss_bytes = rss_kib < 0 || rss_kib > INT64_MAX / 1024 ? -1 : rss_kib * 1024;
    int64_t swap_kib = procfs_field_int(text, "VmSwap", -1);
    out->swap_bytes = swap_kib < 0 || swap_kib > INT64_MAX / 1024 ? -1 : swap_kib * 1024;
    out->voluntary = procfs_field_int(text, "voluntary_ctxt_switches", -1);
    out->involuntary = procfs_field_int(text, "nonvoluntary_ctxt_switches", -1);
    out->threads = procfs_field_int(text, "Threads", -1);
    out->seccomp = (int)procfs_field_int(text, "Seccomp", -1);
    out->seccomp_filters = procfs_field_int(text, "Seccomp_filters", -1);
    out->sig_blocked = procfs_field_hex(text, "SigBlk");
    out->sig_pending = procfs_field_hex(text, "SigPnd");
    out->sig_shared_pending = procfs_field_hex(text, "ShdPnd");
    out->sig_ignored = procfs_field_hex(text, "SigIgn");
    out->sig_caught = procfs_field_hex(text, "SigCgt");
    out->uid = procfs_field_effective(text, "Uid");
    long long real = -1, saved = -1;
    const char *users = procfs_field(text, "Uid");
    if (users && sscanf(users, "%lld %*d %lld", &real, &saved) != 2)
        real = saved = -1;
    out->real_uid = real;
    out->saved_uid = saved;
    out->gid = procfs_field_effective(text, "Gid");
    out->ns_pid = out->tgid;
    const char *ns = procfs_field(text, "NSpid");
    for (const char *p = ns; p && *p && *p != '\n';) {
        char *end;
        int64_t v = strtoll(p, &end, 10);
        if (end == p)
            break;
        out->ns_pid = v;
        p = end;
    }
    const char *features = procfs_field(text, "x86_Thread_features");
    const char *shstk = features ? strstr(features, "shstk") : NULL;
    out->shadow_stack = shstk && !memchr(features, '\n', (size_t)(shstk - features));
    return 0;
}

int procfs_parse_map(const char *line, struct procfs_map *out) {
    unsigned major, minor;
    int at = 0;
    *out = (struct procfs_map){0};
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &out->start, &out->end,
               out->perms, &out->offset, &major, &minor, &out->inode, &at) != 7 ||
        at == 0 || out->end < out->start)
        return -1;
    const char *path = line + at + strspn(line + at, " ");
    size_t n = strcspn(path, "\n");
    if (n >= sizeof out->path)
        n = sizeof out->path - 1;
    memcpy(out->path, path, n);
    return 0;
}

int procfs_parse_syscall(const char *text, struct procfs_syscall *out) {
    *out = (struct procfs_syscall){.nr = -1};
    if (strncmp(text, "running", 7) == 0)
        return 1;
    int got = sscanf(text,
                     "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                     " %" SCNx64,
                     &out->nr, &out->args[0], &out->args[1], &out->args[2], &out->args[3], &out->args[4],
                     &out->args[5], &out->sp, &out->pc);
    if (got >= 1 && out->nr < 0)
        return 1;
    return got == 9 ? 0 : -1;
}

int procfs_read_status(pid_t pid, pid_t tid, struct procfs_status *out) {
    char buf[PROCFS_FILE_MAX];
    if (procfs_read_file(pid, tid, "status", buf, sizeof buf) < 0)
        return -1;
    if (procfs_parse_status(buf, out) != 0) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

int procfs_read_stat(pid_t pid, pid_t tid, struct procfs_stat *out) {
    char buf[1024];
    if (procfs_read_file(pid, tid, "stat", buf, sizeof buf) < 0)
        return -1;
    if (procfs_parse_stat(buf, out) != 0) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

int procfs_read_cpu_wait(pid_t pid, pid_t tid, uint64_t *ns, uint64_t *times) {
    char text[128], *end;
    if (procfs_read_file(pid, tid, "schedstat", text, sizeof text) <= 0)
        return -1;
    strtoull(text, &end, 10);
    const char *wait = end;
    *ns = strtoull(wait, &end, 10);
    const char *count = end;
    *times = strtoull(count, &end, 10);
    return wait != text && count != wait && end != count ? 0 : -1;
}

int procfs_read_comm(pid_t pid, pid_t tid, char *buf, size_t cap) {
    ssize_t n = procfs_read_file(pid, tid, "comm", buf, cap);
    if (n < 0)
        return -1;
    buf[strcspn(buf, "\n")] = '\0';
    return 0;
}

int procfs_has_children(pid_t pid, pid_t tid) {
    char buf[16];
    ssize_t n = procfs_read_file(pid, tid, "children", buf, sizeof buf);
    return n < 0 ? -1 : n > 0;
}

int procfs_read_cmdline(pid_t pid, struct strbuf *out) {
    char path[96];
    procfs_path(path, sizeof path, pid, 0, "cmdline");
    size_t from = out->len;
    int rc = strbuf_read_file(out, path);
    if (rc != 0 && errno != EFBIG)
        return -1;
    while (out->len > from && out->data[out->len - 1] == '\0')
        out->len--;
    for (size_t i = from; i < out->len; i++)
        if (out->data[i] == '\0')
            out->data[i] = ' ';
    return 0;
}

int procfs_read_exe(pid_t pid, char *buf, size_t cap) {
    char path[96];
    procfs_path(path, sizeof path, pid, 0, "exe");
    ssize_t n = readlink(path, buf, cap - 1);
    if (n < 0)
        return -1;
    buf[n] = '\0';
    static const char deleted[] = " (deleted)";
    size_t d = sizeof deleted - 1;
    if ((size_t)n > d && strcmp(buf + (size_t)n - d, deleted) == 0)
        buf[(size_t)n - d] = '\0';
    return 0;
}

int procfs_read_environ(pid_t pid, const char *name, char *buf, size_t cap) {
    char path[96];
    procfs_path(path, sizeof path, pid, 0, "environ");
    struct strbuf env;
    strbuf_init(&env, (size_t)1024 * 1024);
    int rc = -1;
    size_t n = strlen(name);
    if (strbuf_read_file(&env, path) == 0)
        for (size_t i = 0; i < env.len; i += strlen(env.data + i) + 1)
            if (strncmp(env.data + i, name, n) == 0 && env.data[i + n] == '=') {
                snprintf(buf, cap, "%s", env.data + i + n + 1);
                rc = 0;
                break;
            }
    strbuf_fini(&env);
    return rc;
}

bool procfs_in_inner_user_ns(pid_t pid) {
    char path[96];
    unsigned long long inside, outside, count;
    procfs_path(path, sizeof path, pid, 0, "uid_map");
    FILE *f = fopen(path, "re");
    bool inner = f && (fscanf(f, "%llu %llu %llu", &inside, &outside, &count) != 3 || inside != 0 ||
                       outside != 0 || count != UINT32_MAX);
    if (f)
        fclose(f);
    return inner;
}

double procfs_started_at(pid_t pid) {
    struct procfs_stat st;
    struct timespec up;
    if (procfs_read_stat(pid, 0, &st) != 0 || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return NAN;
    double since_boot = (double)st.start_ticks / (double)procfs_ticks_per_s();
    return clock_epoch_s() - ((double)up.tv_sec + (double)up.tv_nsec / 1e9) + since_boot;
}

static int procfs_cmp_pid(const void *a, const void *b) {
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* Numeric entries of a directory. */
ssize_t procfs_list_numbers(const char *path, pid_t *out, size_t cap) {
    DIR *d = opendir(path);
    if (!d)
        return -1;
    size_t n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        long v = strtol(e->d_name, &end, 10);
        if (*end || v < 0)
            continue;
        if (n < cap)
            out[n] = (pid_t)v;
        n++;
    }
    closedir(d);
    qsort(out, n < cap ? n : cap, sizeof *out, procfs_cmp_pid);
    return (ssize_t)n;
}

ssize_t procfs_list_tids(pid_t pid, pid_t *tids, size_t cap) {
    char path[96];
    procfs_path(path, sizeof path, pid, 0, "task");
    return procfs_list_numbers(path, tids, cap);
}

ssize_t procfs_list_pids(pid_t *pids, size_t cap) { return procfs_list_numbers("/proc", pids, cap); }

static bool procfs_thread_ends(const struct procfs_stat *st) {
    return st->state == 'Z' || st->state == 'X' || st->flags & PROCFS_PF_EXITING;
}

bool procfs_is_gone(pid_t pid) {
    struct procfs_stat st;
    pid_t tids[PROCFS_ENDING_TIDS];
    if (procfs_read_stat(pid, 0, &st) != 0)
        return true;
    if (!procfs_thread_ends(&st))
        return false;
    ssize_t n = procfs_list_tids(pid, tids, PROCFS_ENDING_TIDS);
    for (ssize_t i = 0; i < n && i < PROCFS_ENDING_TIDS; i++)
        if (procfs_read_stat(pid, tids[i], &st) == 0 && !procfs_thread_ends(&st))
            return false;
    return n <= PROCFS_ENDING_TIDS;
}

/* True also while a SIGKILL waits for a processor: other threads may be gone by then. */
static bool procfs_is_being_killed(pid_t pid) {
    struct procfs_stat st;
    struct procfs_status status;
    return procfs_read_stat(pid, 0, &st) != 0 || procfs_thread_ends(&st) ||
           procfs_read_status(pid, 0, &status) != 0 || status.sig_pending >> (SIGKILL - 1) & 1;
}

bool procfs_is_ending(pid_t pid) {
    uint64_t until = clock_mono_ns() + PROCFS_ENDING_NS;
    for (int looks = 1; !procfs_is_gone(pid); looks++) {
        /* A single check may fall between the taking of the signal and the thread's end. */
        if (looks > 1 && (!procfs_is_being_killed(pid) || clock_mono_ns() > until))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
    return true;
}

bool procfs_is_kernel_thread(const struct procfs_stat *st) { return st->flags & PROCFS_PF_KTHREAD; }

int procfs_each_map(pid_t pid, int (*fn)(const struct procfs_map *map, void *arg), void *arg) {
    char path[96];
    procfs_path(path, sizeof path, pid, 0, "maps");
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    char *line = NULL;
    size_t cap = 0;
    int rc = 0;
    while (rc == 0 && getline(&line, &cap, f) >= 0) {
        struct procfs_map map;
        if (procfs_parse_map(line, &map) == 0)
            rc = fn(&map, arg);
    }
    free(line);
    fclose(f);
    return rc;
}

pid_t procfs_parse_lock(const char *line, dev_t dev, ino_t inode, bool *is_it) {
    unsigned major_number, minor_number;
    unsigned long long number;
    int pid;
    if (sscanf(line, "%*u: FLOCK %*31s WRITE %d %x:%x:%llu ", &pid, &major_number, &minor_number, &number) !=
            4 ||
        pid <= 0)
        return 0;
    *is_it = major_number == major(dev) && minor_number == minor(dev) && number == inode;
    return (pid_t)pid;
}

int procfs_has_lock(pid_t pid, dev_t dev, ino_t inode) {
    FILE *f = fopen("/proc/locks", "re");
    if (!f)
        return -1;
    char line[256];
    bool has_some = false, is_it = false;
    pid_t holder = 0;
    while (!is_it && fgets(line, sizeof line, f)) {
        holder = procfs_parse_lock(line, dev, inode, &is_it);
        has_some |= holder == pid;
    }
    fclose(f);
    if (is_it)
        return holder == pid;
    return has_some ? -1 : 0;
}

int procfs_read_syscall(pid_t pid, pid_t tid, struct procfs_syscall *out) {
    char buf[512];
    if (procfs_read_file(pid, tid, "syscall", buf, sizeof buf) < 0)
        return -1;
    int rc = procfs_parse_syscall(buf, out);
    if (rc < 0)
        errno = EPROTO;
    return rc;
}

/* True if the option is in the list, separated by commas; `value` gets its value ("" none). */
static bool procfs_option(const char *options, const char *name, char *value, size_t cap) {
    size_t n = strlen(name);
    for (const char *p = options; *p && *p != '\n'; p += *p == ',') {
        size_t len = strcspn(p, ",\n");
        if (len >= n && strncmp(p, name, n) == 0 && (len == n || p[n] == '=')) {
            size_t from = len == n ? n : n + 1;
            snprintf(value, cap, "%.*s", (int)(len - from), p + from);
            return true;
        }
        p += len;
    }
    return false;
}

/* The options of the file system if this line of mountinfo mounts /proc, otherwise NULL. */
static const char *procfs_proc_options(const char *line) {
    int at = 0;
    size_t len = strcspn(line, "\n");
    if (sscanf(line, "%*d %*d %*u:%*u %*s /proc %n", &at) < 0 || at == 0 || line[at - 1] != ' ' ||
        (size_t)at > len)
        return NULL;
    const char *rest = strstr(line + at, " - proc ");
    if (!rest || rest >= line + len)
        return NULL;
    rest += strlen(" - proc ");
    rest += strcspn(rest, " \n"); /* the mounted file system */
    return *rest == ' ' ? rest + 1 : "";
}

enum procfs_hiding procfs_parse_hiding(const char *mountinfo, uid_t uid, const gid_t *groups,
                                       size_t n_groups) {
    const char *options = NULL;
    char value[32];
    for (const char *line = mountinfo; line && *line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *found = procfs_proc_options(line);
        options = found ? found : options; /* the last mount hides the others */
    }
    if (!options)
        return PROCFS_HIDES_ALL;
    if (uid == 0 || !procfs_option(options, "hidepid", value, sizeof value) || strcmp(value, "0") == 0 ||
        strcmp(value, "off") == 0)
        return PROCFS_HIDES_NOTHING;
    bool ptraceable = strcmp(value, "4") == 0 || strcmp(value, "ptraceable") == 0;
    if (!ptraceable && procfs_option(options, "gid", value, sizeof value))
        for (size_t i = 0; i < n_groups; i++)
            if ((unsigned long)groups[i] == strtoul(value, NULL, 10))
                return PROCFS_HIDES_NOTHING;
    return PROCFS_HIDES_OTHERS;
}

enum procfs_hiding procfs_hiding(void) {
    gid_t groups[PROCFS_GROUPS_MAX];
    struct strbuf text;
    struct stat st;
    strbuf_init(&text, (size_t)1024 * 1024);
    int n = getgroups(PROCFS_GROUPS_MAX - 1, groups + 1);
    groups[0] = getegid();
    enum procfs_hiding how = stat("/proc/self", &st) == 0 ? PROCFS_HIDES_NOTHING : PROCFS_HIDES_ALL;
    if (how == PROCFS_HIDES_NOTHING && strbuf_read_file(&text, "/proc/self/mountinfo") == 0 && text.len)
        how = procfs_parse_hiding(strbuf_str(&text), geteuid(), groups, 1 + (n > 0 ? (size_t)n : 0));
    strbuf_fini(&text);
    return how;
}
