/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent's words make a client do: `probing PID profile -o FILE` moves a file that the agent has named, and screens read the source
 * that a frame names. Whatever is named, nothing is opened but regular files below the scratch folder (O_PATH has no effect and is free),
 * nothing is removed, renamed or connected to but there, and victims are as they were.
 *
 * The input is lines, each a status of the agent: owners, steps and the file that it names, "1 0 @/tables/profile-%-1.json"; @ stands for
 * the scratch folder, % for this process. Those that begin with "s " are files of frames instead.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/armed.h"
#include "client/symbols/source_text.h"
#include "store/ring/ring_dir.h"
#include "store/sql/sql.h"

#define ACTS_STATUSES 64
#define ACTS_PATH 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], own_folder[128],
    output[128];     /* victims and sources; where traces of this process lie; what -o names */
static bool reading; /* a source: any file of the job's may be read */
static bool inside;  /* what is done now is done for the input */

static void check(bool holds, const char *what, const char *path) {
    if (holds)
        return;
    inside = false;
    (void)dprintf(STDERR_FILENO, "%s: %s\n", what, path);
    abort();
}

/* ---- what may be done ---- */

/* NOLINTBEGIN: names that the linker gives */
int __real_open(const char *path, int flags, ...);
int __real_openat(int dir, const char *path, int flags, ...);
long __real_syscall(long number, ...);
FILE *__real_fopen(const char *path, const char *how);
int __real_unlink(const char *path);
int __real_unlinkat(int dir, const char *path, int flags);
int __real_rename(const char *from, const char *to);
int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __real_sigaction(int number, const struct sigaction *action, struct sigaction *old);
sighandler_t __real_signal(int number, sighandler_t handler);
int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
long __wrap_syscall(long number, ...);
FILE *__wrap_fopen(const char *path, const char *how);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_rename(const char *from, const char *to);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old);
sighandler_t __wrap_signal(int number, sighandler_t handler);
int __wrap_cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                             struct database **out, struct err *e);
struct call *__wrap_call_open(const struct target_address *addr, struct err *e);
void __wrap_call_close(struct call *c);
int __wrap_call_status(struct call *c, struct model_status *out, struct err *e);
int __wrap_call_arm(struct call *c, const struct wire_arm *want, struct err *e);
int __wrap_call_disarm(struct call *c, const struct wire_arm *want, struct err *e);
int __wrap_call_rest(struct call *c, double seconds, struct err *e);
int __wrap_database_refresh(struct database *d, struct err *e);
struct sql_result *__wrap_database_begin(struct database *d, const char *text, const struct sql_query *q,
                                         const char **tail, struct sql_error *where, struct err *e);
void __wrap_database_explain(const struct database *d, struct err *e);
/* NOLINTEND */

/* Where an open descriptor leads. */
static void acts_place(int fd, char *buf) {
    char link[48];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, ACTS_PATH - 1);
    buf[n > 0 ? n : 0] = '\0';
}

static bool acts_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/' && !strstr(path, "/../");
}

/* Something was opened: was that allowed? */
static int acts_opened(int fd, int flags, const char *named) {
    char path[ACTS_PATH];
    struct stat st;
    if (!inside || fd < 0 || (flags & O_PATH))
        return fd;
    check(fstat(fd, &st) == 0, "an open file is none", named);
    acts_place(fd, path);
    check(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode), "neither a file nor a folder was opened", path);
    if (S_ISDIR(st.st_mode) || (strncmp(path, "/proc/", 6) == 0 && (flags & O_ACCMODE) == O_RDONLY &&
                                strncmp(named, "/proc/", 6) == 0 && !strstr(named, "/root")))
        return fd; /* to look what there is; what the kernel tells of a process */
    bool written = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    if (reading && !written)
        return fd;
    check(!strstr(path, "victim"), "a victim was opened", path);
    check(written ? acts_below(path, folder) : acts_below(path, folder) || acts_below(path, own_folder),
          "a file elsewhere was opened", path);
    return fd;
}

/* Something is to be removed, or to be replaced. */
static void acts_changes(int dir, const char *name) {
    char path[2 * ACTS_PATH] = "", root[48];
    if (!inside)
        return;
    if (name[0] != '/' && dir != AT_FDCWD) {
        acts_place(dir, path);
        (void)strcat(path, "/");
    }
    (void)snprintf(root, sizeof root, "/proc/%d/root/", (int)getpid());
    if (strncmp(name, root, strlen(root)) == 0)
        name += strlen(root) - 1;
    (void)strncat(path, name, ACTS_PATH - 1);
    check(!strstr(path, "victim"), "a victim is removed", path);
    check(acts_below(path, folder) || acts_below(path, own_folder), "something elsewhere is removed", path);
}

int __wrap_open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, int) : 0;
    va_end(more);
    /* One that waits for its other end does not come back. */
    int fd = __real_open(path, inside && !(flags & O_PATH) ? flags | O_NONBLOCK : flags, mode);
    return acts_opened(fd, flags, path);
}

int __wrap_openat(int dir, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, int) : 0;
    va_end(more);
    int fd = __real_openat(dir, path, inside && !(flags & O_PATH) ? flags | O_NONBLOCK : flags, mode);
    return acts_opened(fd, flags, path);
}

long __wrap_syscall(long number, ...) {
    /* As many as registers hold: a sixth would be read from the caller's stack, where those that pass fewer have something else. */
    long a[5];
    va_list more;
    va_start(more, number);
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
        a[i] = va_arg(more, long);
    va_end(more);
    if (number != SYS_openat2 || !inside)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
    struct open_how how = *(const struct open_how *)a[2];
    int flags = (int)how.flags;
    if (!(flags & O_PATH))
        how.flags |= O_NONBLOCK;
    return acts_opened((int)__real_syscall(number, a[0], a[1], &how, a[3]), flags, (const char *)a[1]);
}

FILE *__wrap_fopen(const char *path, const char *how) {
    FILE *f = __real_fopen(path, how);
    if (f)
        (void)acts_opened(fileno(f), how[0] == 'r' ? O_RDONLY : O_WRONLY, path);
    return f;
}

int __wrap_unlink(const char *path) {
    acts_changes(AT_FDCWD, path);
    return __real_unlink(path);
}

int __wrap_unlinkat(int dir, const char *path, int flags) {
    acts_changes(dir, path);
    return __real_unlinkat(dir, path, flags);
}

int __wrap_rename(const char *from, const char *to) {
    acts_changes(AT_FDCWD, from);
    acts_changes(AT_FDCWD, to);
    return __real_rename(from, to);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len) {
    check(!inside, "a connection is made", "");
    return __real_connect(fd, to, len);
}

/* The fuzzer's own handlers stay. */
int __wrap_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    return inside ? 0 : __real_sigaction(number, action, old);
}

sighandler_t __wrap_signal(int number, sighandler_t handler) {
    return inside ? SIG_DFL : __real_signal(number, handler);
}

/* ---- the agent ---- */

static struct acts_status {
    int owners, looks;
    char file[512];
} statuses[ACTS_STATUSES];
static size_t n_statuses, next_status;

int __wrap_cli_open_database(const struct cli_options *o, struct target_address *addr, bool no_inject,
                             struct database **out, struct err *e) {
    (void)o, (void)addr, (void)no_inject, (void)e;
    *out = NULL;
    return 0;
}

struct call *__wrap_call_open(const struct target_address *addr, struct err *e) {
    static char there;
    (void)addr, (void)e;
    return (struct call *)(void *)&there;
}

void __wrap_call_close(struct call *c) { (void)c; }

int __wrap_call_status(struct call *c, struct model_status *out, struct err *e) {
    (void)c;
    memset(out, 0, sizeof *out);
    if (next_status == n_statuses)
        return err_set(e, ERR_FAILED, "no more statuses");
    const struct acts_status *s = &statuses[next_status++];
    arena_init(&out->arena, (size_t)1 << 20);
    out->leases = arena_calloc(&out->arena, 1, sizeof *out->leases);
    if (!out->leases)
        return err_set(e, ERR_FAILED, "no memory");
    out->n_leases = 1;
    out->leases[0] = (struct model_lease){
        .what = "profiler", .owners = s->owners, .looks = s->looks, .note = "done", .file = s->file};
    return 0;
}

int __wrap_call_arm(struct call *c, const struct wire_arm *want, struct err *e) {
    (void)c, (void)want, (void)e;
    return 0;
}

int __wrap_call_disarm(struct call *c, const struct wire_arm *want, struct err *e) {
    (void)c, (void)want, (void)e;
    return 0;
}

int __wrap_call_rest(struct call *c, double seconds, struct err *e) {
    (void)c, (void)seconds;
    return next_status < n_statuses ? 0 : err_set(e, ERR_FAILED, "no more statuses");
}

int __wrap_database_refresh(struct database *d, struct err *e) {
    (void)d;
    return err_set(e, ERR_FAILED, "no tables");
}

struct sql_result *__wrap_database_begin(struct database *d, const char *text, const struct sql_query *q,
                                         const char **tail, struct sql_error *where, struct err *e) {
    (void)d, (void)text, (void)q, (void)tail, (void)where;
    (void)err_set(e, ERR_FAILED, "no tables");
    return NULL;
}

void __wrap_database_explain(const struct database *d, struct err *e) { (void)d, (void)e; }

/* ---- the scratch folder ---- */

static void put(const char *dir, const char *name, const char *text) {
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "cannot be written", path);
    (void)close(fd);
}

static void trace_name(char *buf, size_t cap, int number) {
    (void)snprintf(buf, cap, "profile-%d-%d.json", (int)getpid(), number);
}

/* The traces that this process would have left, of which all but the first are something else. */
static void put_traces(bool make) {
    char name[64], path[256], victim[128];
    (void)snprintf(victim, sizeof victim, "%s/victim", folder);
    for (int i = 1; i <= 4; i++) {
        trace_name(name, sizeof name, i);
        (void)snprintf(path, sizeof path, "%s/%s", own_folder, name);
        if (!make) {
            (void)unlink(path);
            (void)rmdir(path);
        } else if (i == 1) {
            put(own_folder, name, "{}");
        } else if (i == 2) {
            (void)symlink(victim, path);
        } else if (i == 3) {
            (void)mkfifo(path, 0600);
        } else {
            (void)mkdir(path, 0700);
        }
    }
}

static void clean_up(void) {
    static const char *const names[] = {"victim", "fifo", "link", "loop", "source.py", "out.json"};
    char path[128];
    inside = false;
    put_traces(false);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void begin(void) {
    char path[128], victim[128];
    /* Nobody reads what verbs tell on the way; sanitizers write to the descriptor. */
    stderr = fopen("/dev/null", "we");
    (void)snprintf(folder, sizeof folder, "/dev/shm/fuzz-acts-XXXXXX");
    check(stderr && mkdtemp(folder) != NULL, "cannot be made", folder);
    (void)snprintf(own_folder, sizeof own_folder, "/dev/shm/probing-%u", (unsigned)geteuid());
    (void)mkdir(own_folder, 0700);
    (void)atexit(clean_up);
    put(folder, "victim", "as it was");
    put(folder, "source.py", "import os\nprint(1)\n");
    (void)snprintf(path, sizeof path, "%s/fifo", folder);
    (void)mkfifo(path, 0600);
    (void)snprintf(victim, sizeof victim, "%s/victim", folder);
    (void)snprintf(path, sizeof path, "%s/link", folder);
    (void)symlink(victim, path);
    (void)snprintf(path, sizeof path, "%s/loop", folder);
    (void)symlink(path, path);
    (void)snprintf(output, sizeof output, "%s/out.json", folder);
}

/* ---- the input ---- */

/* A line with its @ and %, as the agent would say it. */
static void expand(const uint8_t *from, size_t n, char *to, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < n && len + sizeof folder < cap; i++)
        if (from[i] == '@')
            len += (size_t)snprintf(to + len, cap - len, "%s", folder);
        else if (from[i] == '%')
            len += (size_t)snprintf(to + len, cap - len, "%d", (int)getpid());
        else if (from[i])
            to[len++] = (char)from[i];
    to[len] = '\0';
}

static void read_source(const char *file) {
    static struct source_text text;
    struct err e;
    inside = reading = true;
    (void)source_read(&text, getpid(), file, 1, &e);
    inside = reading = false;
    check(text.n >= 0 && text.n <= SOURCE_MAX_LINES, "lines that are none", file);
}

static void take_line(const uint8_t *line, size_t n) {
    char text[512];
    int at = 0;
    expand(line, n, text, sizeof text);
    if (strncmp(text, "s ", 2) == 0) {
        read_source(text + 2);
        return;
    }
    if (n_statuses == ACTS_STATUSES)
        return;
    struct acts_status *s = &statuses[n_statuses];
    if (sscanf(text, "%d %d %n", &s->owners, &s->looks, &at) < 2 || !at)
        return;
    (void)snprintf(s->file, sizeof s->file, "%s", text + at);
    n_statuses++;
}

extern const struct cli_verb verb_profile;

static void run_profile(void) {
    char *argv[] = {(char *)"profile", (char *)"--output", output, (char *)"--yes", NULL};
    const char *operands[4];
    struct cli_options *o = calloc(1, verb_profile.options_size);
    struct target_address addr = {.pid = getpid()};
    struct strbuf out;
    struct err e;
    if (!o || option_parse(verb_profile.options, o, 4, argv, operands, false, &e) != 0)
        abort();
    strbuf_init(&out, 0);
    next_status = 0;
    inside = true;
    (void)verb_profile.exec(o, &addr, &out, &e);
    inside = false;
    strbuf_fini(&out);
    free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[16] = "", path[128];
    if (!folder[0])
        begin();
    put_traces(true);
    n_statuses = 0;
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        take_line(data + at, n);
        at += n + 1;
    }
    if (n_statuses)
        run_profile();
    (void)snprintf(path, sizeof path, "%s/victim", folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    check(fd >= 0 && read(fd, text, sizeof text - 1) == 9 && strcmp(text, "as it was") == 0, "it has changed",
          path);
    (void)close(fd);
    return 0;
}
