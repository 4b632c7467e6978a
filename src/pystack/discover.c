/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: finds _PyRuntime in a process and determines the version.
 *
 * An ordered list of named strategies offers addresses. An address is believed only if a walk
 * from it returns to where it began and sys.hexversion agrees with the assumed version. Reads
 * only; the process may be our own.
 */
#include "pystack/discover.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "pystack/debug_offsets.h"
#include "pystack/mapped.h"
#include "pystack/offsets.h"

#define DISCOVER_SCAN_MAX (256ULL << 20) /* bytes searched for the cookie */
#define DISCOVER_ATTEMPTS 5              /* lists may change while they are read */

bool pystack_version_of_name(const char *path, int *major, int *minor) {
    const char *slash = strrchr(path, '/');
    const char *p = slash ? slash + 1 : path;
    if (strncmp(p, "lib", 3) == 0)
        p += 3;
    if (strncmp(p, "python", 6) != 0)
        return false;
    *major = *minor = 0;
    p += 6;
    if (isdigit((unsigned char)p[0]) && p[1] == '.' && isdigit((unsigned char)p[2])) {
        *major = p[0] - '0';
        *minor = (int)strtol(p + 2, NULL, 10);
        return true;
    }
    /* python, python3, libpython3.so (which only forwards): a Python name without a minor
     * version. */
    return *p == '\0' || isdigit((unsigned char)*p) || *p == '.' || *p == '-';
}

void discover_fail(struct discover *d, enum discover_failure why) {
    if (why > d->failure)
        d->failure = why;
}

void discover_note_unsupported(struct discover *d, int major, int minor, const char *what) {
    discover_fail(d, DISCOVER_UNSUPPORTED);
    if (d->unsupported[0] == '\0')
        snprintf(d->unsupported, sizeof d->unsupported, "%d.%d%s", major, minor, what);
}

/* Check that the walk runtime -> interpreter -> thread state -> interpreter returns. 0, or -1
 * with the reason noted. */
static int discover_walk(struct discover *d, uint64_t *interp) {
    struct pystack *ps = d->ps;
    struct pystack_reader *r = &ps->reader;
    uint64_t tstate, back, previous;
    if (pystack_read_u64_at(r, ps->info.runtime, r->off.runtime_interpreters_head, interp) != 0) {
        discover_fail(d, DISCOVER_INCONSISTENT);
        return -1;
    }
    if (*interp == 0) {
        discover_fail(d, DISCOVER_UNINITIALISED);
        return -1;
    }
    if (!pystack_is_pointer(*interp) ||
        pystack_read_u64_at(r, *interp, r->off.interp_threads_head, &tstate) != 0 ||
        !pystack_is_pointer(tstate) || pystack_read_u64_at(r, tstate, r->off.tstate_interp, &back) != 0 ||
        back != *interp || pystack_read_u64_at(r, tstate, r->off.tstate_prev, &previous) != 0 ||
        previous != 0) {
        discover_fail(d, DISCOVER_INCONSISTENT);
        return -1;
    }
    return 0;
}

/* sys.hexversion of the interpreter; 0 if it cannot be read. */
static uint32_t discover_hexversion(struct pystack_reader *r, uint64_t interp) {
    uint64_t sysdict, object, value;
    if (pystack_read_u64_at(r, interp, r->off.interp_sysdict, &sysdict) != 0 ||
        pystack_dict_find(r, sysdict, "hexversion", NULL, &object) != 0 ||
        pystack_read_int(r, object, &value) != 0 || value >> 24 != 3 || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

/* True for a build --with-pydebug, from sys.abiflags. */
static bool discover_is_debug(struct pystack_reader *r, uint64_t interp) {
    uint64_t sysdict, object;
    char flags[16];
    return pystack_read_u64_at(r, interp, r->off.interp_sysdict, &sysdict) == 0 &&
           pystack_dict_find(r, sysdict, "abiflags", NULL, &object) == 0 &&
           pystack_read_str(r, object, flags, sizeof flags) >= 0 && strchr(flags, 'd') != NULL;
}

static int discover_read_published(struct discover *d, uint64_t runtime) {
    uint8_t bytes[PYSTACK_DEBUG_BYTES];
    if (mem_read(&d->ps->reader.mem, runtime, bytes, sizeof bytes) == 0 &&
        pystack_debug_offsets_apply(bytes, sizeof bytes, &d->ps->reader.off) == 0)
        return 0;
    discover_fail(d, DISCOVER_INCONSISTENT);
    return -1;
}

int discover_try_row(struct discover *d, uint64_t runtime, const struct pystack_offsets *row, uint32_t hex,
                     bool exact) {
    struct pystack *ps = d->ps;
    const struct pystack_version *version =
        pystack_version_find(row->major, row->minor, row->free_threaded != 0);
    uint64_t interp, finalizing = 0;
    ps->reader.off = *row;
    ps->info.runtime = runtime;
    if (!version ||
        (version->source == PYSTACK_SOURCE_PUBLISHED && discover_read_published(d, runtime) != 0) ||
        discover_walk(d, &interp) != 0)
        return -1;
    uint32_t published = discover_hexversion(&ps->reader, interp);
    if (published ? published >> 16 != hex >> 16 : !exact) {
        /* sys is emptied near the end: then the version can no longer be read. */
        bool ending = !published && row->runtime_finalizing >= 0 &&
                      pystack_read_u64_at(&ps->reader, runtime, row->runtime_finalizing, &finalizing) == 0 &&
                      finalizing != 0;
        discover_fail(d, ending ? DISCOVER_ENDING : DISCOVER_INCONSISTENT);
        return -1;
    }
    if (published)
        hex = published;
    ps->info.debug_build = discover_is_debug(&ps->reader, interp);
    if (ps->info.debug_build && !version->debug_builds) {
        d->debug = true;
        discover_note_unsupported(d, row->major, row->minor, "d (debug build)");
        return -1;
    }
    ps->info.major = row->major;
    ps->info.minor = row->minor;
    ps->info.micro = (int)(hex >> 8 & 255);
    ps->info.free_threaded = version->free_threaded;
    ps->info.untested = version->tested == PYSTACK_TESTED_NOT;
    ps->info.finalizing =
        row->runtime_finalizing >= 0 &&
        pystack_read_u64_at(&ps->reader, runtime, ps->reader.off.runtime_finalizing, &finalizing) == 0 &&
        finalizing != 0;
    return 0;
}

/* Try `runtime` as version `hex` of that build. */
static int discover_try_version(struct discover *d, uint64_t runtime, uint32_t hex, bool free_threaded,
                                bool exact) {
    int major = (int)(hex >> 24), minor = (int)(hex >> 16 & 255);
    const struct pystack_offsets *row = pystack_offsets_find(major, minor, free_threaded);
    if (row)
        return discover_try_row(d, runtime, row, hex, exact);
    discover_note_unsupported(d, major, minor, free_threaded ? "t (free-threaded)" : "");
    return -1;
}

/* Try `runtime` as the version that it reports, or as any it may be. */
static int discover_try(struct discover *d, uint64_t runtime, uint32_t known,
                        const struct discover_image *image) {
    uint8_t head[24];
    uint32_t hex;
    bool free_threaded;
    if (mem_read(&d->ps->reader.mem, runtime, head, sizeof head) != 0)
        return -1;
    if (pystack_debug_offsets_peek(head, sizeof head, &hex, &free_threaded))
        return discover_try_version(d, runtime, hex, free_threaded, true);
    if (known)
        return discover_try_version(d, runtime, known, false, true);
    if (image && image->major)
        return discover_try_version(d, runtime, (uint32_t)image->major << 24 | (uint32_t)image->minor << 16,
                                    false, false);
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].gil_place != PYSTACK_GIL_STATIC && rows[i].frame_style != PYSTACK_FRAME_DIRECT &&
            discover_try_row(d, runtime, &rows[i],
                             (uint32_t)rows[i].major << 24 | (uint32_t)rows[i].minor << 16, false) == 0)
            return 0;
    return -1;
}

static int discover_retry(struct discover *d, uint64_t runtime, uint32_t known,
                          const struct discover_image *image) {
    for (int i = 0; i < DISCOVER_ATTEMPTS; i++)
        if (discover_try(d, runtime, known, image) == 0)
            return 0;
    return -1;
}

/* Py_Version (3.11 on) of an image; 0 if it is missing. */
static uint32_t discover_py_version(struct discover *d, const struct elf_image *img) {
    uint64_t addr, value;
    if (elf_find_symbol(img, "Py_Version", &addr, NULL) != 0 ||
        mem_read_u64(&d->ps->reader.mem, addr, &value) != 0 || value >> 24 != 3)
        return 0;
    return (uint32_t)value;
}

static int discover_by_symbol_in(struct discover *d, uint64_t base, const struct discover_image *image) {
    struct elf_image img;
    uint64_t runtime, debug;
    if (elf_open_memory(&img, &d->ps->reader.mem, base) != 0)
        return -1;
    if (elf_find_symbol(&img, "_PyRuntime", &runtime, NULL) == 0 &&
        discover_retry(d, runtime, discover_py_version(d, &img), image) == 0)
        return 0;
    /* Before 3.8 objects of a debug build have a longer head, so that nothing could be read. */
    if (image && image->major && image->minor < 8 &&
        elf_find_symbol(&img, "_Py_NegativeRefcount", &debug, NULL) == 0) {
        d->debug = true;
        discover_note_unsupported(d, image->major, image->minor, "d (debug build)");
    }
    return -1;
}

/* The dynamic symbol _PyRuntime of the executable or libpython. */
static int discover_by_symbol(struct discover *d) {
    for (size_t i = 0; i < d->n_named; i++)
        if (discover_by_symbol_in(d, d->named[i].base, &d->named[i]) == 0)
            return 0;
    return -1;
}

/* The same for any other image: Python embedded in a program. */
static int discover_by_embedding(struct discover *d) {
    for (size_t i = 0; i < d->n_others; i++)
        if (discover_by_symbol_in(d, d->others[i], NULL) == 0)
            return 0;
    return -1;
}

int discover_open_file(struct discover *d, const struct discover_image *image) {
    return mapped_open(d->ps->pid, image->is_exe ? NULL : image->path, image->inode);
}

/* The link-time address that `find` gives in the file of each named image. */
static int discover_by_file(struct discover *d, int (*find)(int fd, uint64_t *addr)) {
    for (size_t i = 0; i < d->n_named; i++) {
        struct elf_image img;
        uint64_t addr;
        int fd = discover_open_file(d, &d->named[i]);
        if (fd < 0)
            continue;
        int found = find(fd, &addr);
        close(fd);
        if (found == 0 && elf_open_memory(&img, &d->ps->reader.mem, d->named[i].base) == 0 &&
            discover_retry(d, addr + img.bias, discover_py_version(d, &img), &d->named[i]) == 0)
            return 0;
    }
    return -1;
}

static int discover_find_section(int fd, uint64_t *addr) {
    struct elf_section s;
    if (elf_find_section(fd, ".PyRuntime", &s) != 0)
        return -1;
    *addr = s.addr;
    return 0;
}

static int discover_find_file_symbol(int fd, uint64_t *addr) {
    return elf_find_file_symbol(fd, "_PyRuntime", addr);
}

/* The section that contains only _PyRuntime since 3.10. */
static int discover_by_section(struct discover *d) { return discover_by_file(d, discover_find_section); }

/* The symbol table that a debugger would use. */
static int discover_by_symtab(struct discover *d) { return discover_by_file(d, discover_find_file_symbol); }

static int discover_scan_map(const struct procfs_map *map, void *arg) {
    struct discover *d = arg;
    bool adjoins = map->path[0] == '\0' && d->last.end == map->start && d->last.path[0] == '/';
    bool wanted = map->perms[0] == 'r' && map->perms[1] == 'w' && map->perms[3] == 'p' &&
                  (map->path[0] == '/' || adjoins);
    d->last = *map;
    for (uint64_t at = map->start; wanted && at < map->end && d->scanned < DISCOVER_SCAN_MAX;
         at += DISCOVER_SCAN_BLOCK) {
        size_t n = map->end - at < DISCOVER_SCAN_BLOCK ? (size_t)(map->end - at) : DISCOVER_SCAN_BLOCK;
        d->scanned += n;
        if (mem_read(&d->ps->reader.mem, at, d->block, n) != 0)
            break;
        for (size_t i = 0; i + 8 <= n; i += 8)
            if (memcmp(d->block + i, PYSTACK_DEBUG_COOKIE, 8) == 0 && discover_retry(d, at + i, 0, NULL) == 0)
                return 1;
    }
    return 0;
}

/* The cookie at the start of _PyRuntime since 3.13, in the data of the mapped files. */
static int discover_by_cookie(struct discover *d) {
    d->block = malloc(DISCOVER_SCAN_BLOCK);
    if (!d->block)
        return -1;
    int rc = procfs_each_map(d->ps->pid, discover_scan_map, d);
    free(d->block);
    d->block = NULL;
    return rc == 1 ? 0 : -1;
}

static const struct discover_strategy {
    const char *name;
    int (*find)(struct discover *d);
} discover_strategies[] = {
    {"symbol", discover_by_symbol},           {"section", discover_by_section},
    {"symtab", discover_by_symtab},           {"embedded", discover_by_embedding},
    {"cookie", discover_by_cookie},           {"interp_head", discover_by_interp_head},
    {"static-scan", discover_by_static_scan},
};

static bool discover_is_first(const struct discover *d, const struct procfs_map *map) {
    return map->offset == 0 && map->perms[0] == 'r' && map->path[0] == '/' &&
           strcmp(map->path, d->last.path) != 0;
}

static int discover_note_map(const struct procfs_map *map, void *arg) {
    struct discover *d = arg;
    d->n_maps++;
    bool first = discover_is_first(d, map);
    d->last = *map;
    if (!first)
        return 0;
    int major = 0, minor = 0;
    bool is_exe = strcmp(map->path, d->exe) == 0;
    bool named = pystack_version_of_name(map->path, &major, &minor);
    if ((is_exe || named) && d->n_named < DISCOVER_NAMED_MAX && strlen(map->path) < sizeof d->named[0].path) {
        struct discover_image *image = &d->named[d->n_named++];
        *image = (struct discover_image){
            .base = map->start, .inode = map->inode, .is_exe = is_exe, .major = major, .minor = minor};
        memcpy(image->path, map->path, strlen(map->path) + 1);
    } else if (d->n_others < DISCOVER_OTHER_MAX) {
        d->others[d->n_others++] = map->start;
    }
    return 0;
}

/* Executables and libraries of a Python too old to have a _PyRuntime that we know. */
static void discover_judge_names(struct discover *d) {
    for (size_t i = 0; i < d->n_named; i++)
        if (d->named[i].major && !pystack_version_find(d->named[i].major, d->named[i].minor, false))
            discover_note_unsupported(d, d->named[i].major, d->named[i].minor, "");
}

static int discover_explain(struct discover *d, pid_t pid, struct err *e) {
    size_t n;
    pid = pid ? pid : getpid();
    const struct pystack_version *rows = pystack_version_all(&n);
    switch (d->failure) {
    case DISCOVER_UNSUPPORTED:
        return err_set(e, ERR_ATTACH,
                       "Python %s of process %d is not supported: CPython %d.%d to %d.%d are%s",
                       d->unsupported, (int)pid, rows[0].major, rows[0].minor, rows[n - 1].major,
                       rows[n - 1].minor, d->debug ? ", debug builds from 3.13 on" : "");
    case DISCOVER_UNINITIALISED:
        return err_set(e, ERR_ATTACH, "Python in process %d has not started yet or has ended: try again",
                       (int)pid);
    case DISCOVER_ENDING:
        return err_set(e, ERR_ATTACH,
                       "process %d is ending: its Python is being shut down, and the rest cannot be read",
                       (int)pid);
    case DISCOVER_INCONSISTENT:
        return err_set(e, ERR_ATTACH,
                       "Python in process %d cannot be read: its memory is not laid out as a release build's",
                       (int)pid);
    case DISCOVER_NOTHING:
        break;
    }
    return err_set(e, ERR_ATTACH,
                   "process %d is not a Python process: no CPython interpreter was found in it", (int)pid);
}

static int discover_explain_permission(pid_t pid, const struct procfs_status *st, struct err *e) {
    if (geteuid() == 0)
        return err_set(
            e, ERR_ATTACH,
            "the memory of process %d may not be read: this root lacks CAP_SYS_PTRACE over it (a container?)",
            (int)pid);
    if (st->uid != (int64_t)geteuid())
        return err_set(e, ERR_ATTACH,
                       "process %d belongs to another user (uid %lld): run as that user or as root", (int)pid,
                       (long long)st->uid);
    return err_set(
        e, ERR_ATTACH,
        "the memory of process %d may not be read: run as root, or set kernel.yama.ptrace_scope to 0",
        (int)pid);
}

static int discover_explain_unreadable(pid_t pid, int errnum, struct err *e) {
    struct procfs_status st;
    struct procfs_stat kernel;
    if (procfs_read_status(pid, 0, &st) != 0 || procfs_read_stat(pid, 0, &kernel) != 0)
        return err_set(e, ERR_LOST, "process %d ended while it was being opened", (int)pid);
    bool has_ended = procfs_is_gone(pid);
    pid = pid ? pid : getpid();
    if (has_ended)
        return err_set(e, ERR_ATTACH, "process %d has ended%s: there is nothing to read", (int)pid,
                       st.state == 'Z' ? " (a zombie)" : "");
    if (errnum == EPERM || errnum == EACCES)
        return discover_explain_permission(pid, &st, e);
    if (procfs_is_kernel_thread(&kernel))
        return err_set(e, ERR_ATTACH,
                       "process %d has no memory of its own (a kernel thread): there is nothing to read",
                       (int)pid);
    if (errnum == ESRCH)
        return err_set(e, ERR_ATTACH,
                       "process %d has ended, or its first thread has: there is nothing to read", (int)pid);
    return err_set_errno(e, ERR_ATTACH, errnum, "the memory of process %d cannot be read", (int)pid);
}

/* Check that memory can be read: the executable's first bytes are mapped in every process. 0 or
 * errno. */
static int discover_probe(struct discover *d) {
    uint8_t byte;
    uint64_t at = d->n_named ? d->named[0].base : d->n_others ? d->others[0] : 0;
    errno = 0;
    if (d->n_maps == 0)
        return ESRCH;
    if (at && mem_read(&d->ps->reader.mem, at, &byte, 1) != 0)
        return errno ? errno : EFAULT;
    return 0;
}

/* What may change by itself. A program with a Python name whose library is not mapped yet is
 * still loading. */
static enum pystack_lack discover_lack(const struct discover *d, int unreadable) {
    int major, minor;
    if (unreadable == EPERM || unreadable == EACCES)
        return PYSTACK_LACKS_RIGHT;
    if (unreadable)
        return PYSTACK_LACKS_INTERPRETER;
    switch (d->failure) {
    case DISCOVER_UNINITIALISED:
        return PYSTACK_LACKS_START;
    case DISCOVER_NOTHING:
        return pystack_version_of_name(d->exe, &major, &minor) ? PYSTACK_LACKS_START
                                                               : PYSTACK_LACKS_INTERPRETER;
    case DISCOVER_INCONSISTENT:
        return PYSTACK_LACKS_INTERPRETER;
    default:
        return PYSTACK_LACKS_RIGHT;
    }
}

static int discover_run(struct discover *d, pid_t pid, const char *only, enum pystack_lack *lack,
                        struct err *e) {
    struct pystack *ps = d->ps;
    struct procfs_status st;
    if (procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_ATTACH, "no process %d", (int)pid);
    if (procfs_read_exe(pid, d->exe, sizeof d->exe) != 0)
        d->exe[0] = '\0';
    int unreadable = procfs_each_map(pid, discover_note_map, d) != 0 ? errno : discover_probe(d);
    if (unreadable) {
        *lack = discover_lack(d, unreadable);
        return discover_explain_unreadable(pid, unreadable, e);
    }
    for (size_t i = 0; i < sizeof discover_strategies / sizeof discover_strategies[0]; i++)
        if ((!only || strcmp(only, discover_strategies[i].name) == 0) &&
            discover_strategies[i].find(d) == 0) {
            ps->info.discovery = discover_strategies[i].name;
            snprintf(ps->info.version, sizeof ps->info.version, "%d.%d.%d%s%s", ps->info.major,
                     ps->info.minor, ps->info.micro, ps->info.free_threaded ? "t" : "",
                     ps->info.debug_build ? "d" : "");
            return 0;
        }
    discover_judge_names(d);
    *lack = discover_lack(d, 0);
    return discover_explain(d, pid, e);
}

int pystack_discover(struct pystack *ps, pid_t pid, const char *only, enum pystack_lack *lack,
                     struct err *e) {
    struct discover *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(e, ERR_FAILED, "out of memory while looking for Python in process %d", (int)pid);
    d->ps = ps;
    int rc = discover_run(d, pid, only, lack, e);
    free(d);
    return rc;
}

static int discover_glance_map(const struct procfs_map *map, void *arg) {
    int major, minor;
    (void)arg;
    return map->perms[2] == 'x' && map->path[0] == '/' && pystack_version_of_name(map->path, &major, &minor);
}

int pystack_is_python(pid_t pid) {
    char path[64], who[16] = "self";
    struct elf_section section;
    int rc = procfs_each_map(pid, discover_glance_map, NULL);
    if (rc != 0)
        return rc;
    if (pid > 0)
        snprintf(who, sizeof who, "%d", (int)pid);
    snprintf(path, sizeof path, "/proc/%s/exe", who);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int found = elf_find_section(fd, ".PyRuntime", &section) == 0;
    close(fd);
    return found;
}

/* ---- a Python that has no _PyRuntime (up to 3.6) ----
 *
 * Its list of interpreters is the static variable interp_head of Python/pystate.c, its GIL static variables of
 * Python/ceval_gil.h; only _PyThreadState_Current is exported. Symbols for debuggers name them all; without these the list is
 * looked for in the writable data of the image, and who waits for the GIL stays unknown. */

#define STATIC_GIL_SPAN_MAX 1024 /* the GIL's mutexes and condition variables lie side by side */
/* bytes of the last of them, whichever it is (glibc: a condition variable) */
#define STATIC_PRIMITIVE 48
#define STATIC_ATTEMPTS 5 /* lists may change while they are read */

/* True if the image exports what such a Python exports. Then finds _PyThreadState_Current. */
static int static_open(struct discover *d, const struct discover_image *image, struct elf_image *img,
                       uint64_t *current) {
    uint64_t runtime;
    if (elf_open_memory(img, &d->ps->reader.mem, image->base) != 0 ||
        elf_find_symbol(img, "_PyRuntime", &runtime, NULL) == 0)
        return -1;
    return elf_find_symbol(img, "_PyThreadState_Current", current, NULL);
}

/* Try the variable at `head` for each possible version. */
static int static_try(struct discover *d, const struct discover_image *image, uint64_t head) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    for (size_t i = 0; i < n; i++) {
        uint32_t hex = (uint32_t)rows[i].major << 24 | (uint32_t)rows[i].minor << 16;
        if (rows[i].gil_place != PYSTACK_GIL_STATIC || (image->major && image->minor != rows[i].minor))
            continue;
        for (int j = 0; j < STATIC_ATTEMPTS; j++)
            if (discover_try_row(d, head, &rows[i], hex, false) == 0)
                return 0;
    }
    return -1;
}

/* Find the GIL's mutexes and condition variables, by the symbols of the file. */
static void static_find_gil(struct pystack *ps, int fd, uint64_t bias) {
    static const char *const names[] = {"gil_mutex", "gil_cond", "switch_mutex", "switch_cond"};
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t addr;
        if (elf_find_file_symbol(fd, names[i], &addr) != 0)
            return;
        low = addr < low ? addr : low;
        high = addr > high ? addr : high;
    }
    if (high - low > STATIC_GIL_SPAN_MAX)
        return;
    ps->static_gil = low + bias;
    ps->reader.off.gil_size = (int32_t)(high - low + STATIC_PRIMITIVE);
}

/* The run-time address of a variable, by the symbols of the file; 0 if it is missing. */
static uint64_t static_find(int fd, const char *name, uint64_t bias) {
    uint64_t addr;
    return elf_find_file_symbol(fd, name, &addr) == 0 ? addr + bias : 0;
}

/* The variables by the symbol table that a debugger would use. */
int discover_by_interp_head(struct discover *d) {
    for (size_t i = 0; i < d->n_named; i++) {
        struct elf_image img;
        uint64_t current, head;
        if (static_open(d, &d->named[i], &img, &current) != 0)
            continue;
        int fd = discover_open_file(d, &d->named[i]);
        if (fd < 0)
            continue;
        bool found = elf_find_file_symbol(fd, "interp_head", &head) == 0 &&
                     static_try(d, &d->named[i], head + img.bias) == 0;
        if (found) {
            d->ps->tstate_current = current;
            static_find_gil(d->ps, fd, img.bias);
            d->ps->static_switches = static_find(fd, "gil_switch_number", img.bias);
            d->ps->static_collecting = static_find(fd, "collecting", img.bias);
            d->ps->static_gc_stats = static_find(fd, "generation_stats", img.bias);
        }
        close(fd);
        if (found)
            return 0;
    }
    return -1;
}

/* A search in the writable data of one image. */
struct static_scan {
    struct discover *d;
    const struct discover_image *image;
    const struct pystack_offsets *row;
    bool within; /* the previous mapping belonged to the image */
    /* addresses of pointers to interpreters, the one with the longest list first */
    uint64_t heads[2];
    size_t lengths[2];
};

/* Number of interpreters in the list that starts at `interp`; 0 if it is not a list. */
static size_t static_count(struct static_scan *s, uint64_t interp) {
    struct pystack_reader *r = &s->d->ps->reader;
    size_t n = 0;
    for (; interp && n < PYSTACK_MAX_INTERPRETERS; n++) {
        uint64_t tstate, back, previous;
        if (!pystack_is_pointer(interp) ||
            pystack_read_u64_at(r, interp, s->row->interp_threads_head, &tstate) != 0 ||
            !pystack_is_pointer(tstate) ||
            pystack_read_u64_at(r, tstate, s->row->tstate_interp, &back) != 0 || back != interp ||
            pystack_read_u64_at(r, tstate, s->row->tstate_prev, &previous) != 0 || previous != 0 ||
            pystack_read_u64_at(r, interp, s->row->interp_next, &interp) != 0)
            return 0;
    }
    return n;
}

static void static_note(struct static_scan *s, uint64_t at, size_t length) {
    if (length > s->lengths[0]) {
        s->heads[1] = s->heads[0];
        s->lengths[1] = s->lengths[0];
        s->heads[0] = at;
        s->lengths[0] = length;
    } else if (!s->heads[1]) {
        s->heads[1] = at;
        s->lengths[1] = length;
    }
}

static int static_scan_map(const struct procfs_map *map, void *arg) {
    struct static_scan *s = arg;
    struct discover *d = s->d;
    s->within = strcmp(map->path, s->image->path) == 0 ||
                (s->within && map->path[0] == '\0' && map->start == d->last.end);
    d->last = *map;
    if (!s->within || map->perms[0] != 'r' || map->perms[1] != 'w')
        return 0;
    for (uint64_t at = map->start; at < map->end; at += DISCOVER_SCAN_BLOCK) {
        size_t n = map->end - at < DISCOVER_SCAN_BLOCK ? (size_t)(map->end - at) : DISCOVER_SCAN_BLOCK;
        if (mem_read(&d->ps->reader.mem, at, d->block, n) != 0)
            break;
        for (size_t i = 0; i + 8 <= n; i += 8) {
            uint64_t word = pystack_get_u64(d->block, (int32_t)i);
            size_t length = pystack_is_pointer(word) ? static_count(s, word) : 0;
            if (length)
                static_note(s, at + i, length);
        }
    }
    return 0;
}

static int static_scan_image(struct discover *d, const struct discover_image *image) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    for (size_t i = 0; i < n; i++) {
        struct static_scan s = {.d = d, .image = image, .row = &rows[i]};
        if (rows[i].gil_place != PYSTACK_GIL_STATIC || (image->major && image->minor != rows[i].minor) ||
            procfs_each_map(d->ps->pid, static_scan_map, &s) != 0 || !s.heads[0] ||
            static_try(d, image, s.heads[0]) != 0)
            continue;
        /* The other is autoInterpreterState: the first interpreter, which is alone in the list
         * now but need not stay so. */
        d->ps->static_other = s.heads[1];
        return 0;
    }
    return -1;
}

/* The list in the data of an image without symbols. */
int discover_by_static_scan(struct discover *d) {
    int rc = -1;
    d->block = malloc(DISCOVER_SCAN_BLOCK);
    for (size_t i = 0; d->block && rc != 0 && i < d->n_named; i++) {
        struct elf_image img;
        uint64_t current;
        if (static_open(d, &d->named[i], &img, &current) == 0 && static_scan_image(d, &d->named[i]) == 0) {
            d->ps->tstate_current = current;
            rc = 0;
        }
    }
    free(d->block);
    d->block = NULL;
    return rc;
}
