/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_files: see symbols_files.h. Locations of debug information: "Separate Debug Files" in
 * the manual of gdb. */
#include "client/symbols/symbols_files.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/procfs.h"

#define FILES_VDSO "[vdso]"
#define FILES_VDSO_MAX ((size_t)64 * 1024)
#define FILES_DEBUG "/usr/lib/debug"
#define FILES_PLACE 4096
#define FILES_MAX ((off_t)16 * 1024 * 1024 * 1024)

/* The vdso is not a file, but ours equals the target's: the kernel's. */
static int files_open_vdso(void) {
    const uint8_t *image = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
    size_t done = 0;
    long page = sysconf(_SC_PAGESIZE);
    /* Page by page: a write that starts behind its end fails. */
    while (fd >= 0 && page > 0 && done < FILES_VDSO_MAX && write(fd, image + done, (size_t)page) == page)
        done += (size_t)page;
    if (fd >= 0 && done == 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* True if `gid` is one of the process's groups. */
static bool files_has_group(pid_t pid, gid_t gid) {
    char text[8192];
    if (procfs_read_file(pid, 0, "status", text, sizeof text) <= 0)
        return false;
    char *at = strstr(text, "\nGroups:");
    at = at ? at + strlen("\nGroups:") : NULL;
    while (at && *at && *at != '\n') {
        char *end;
        unsigned long one = strtoul(at, &end, 10);
        if (end == at)
            break;
        if (one == gid)
            return true;
        at = end + strspn(end, " \t");
    }
    return false;
}

/* True if the target could read it. As root we could read anything, and would let the helper,
 * which runs as the target's user, read it. */
static bool files_may_read(pid_t pid, const struct stat *st) {
    struct procfs_status who;
    if (geteuid() != 0 || (st->st_mode & S_IROTH))
        return true;
    if (procfs_read_status(pid, 0, &who) != 0)
        return false;
    if (who.uid == 0 || (int64_t)st->st_uid == who.uid)
        return true;
    return (st->st_mode & S_IRGRP) && ((int64_t)st->st_gid == who.gid || files_has_group(pid, st->st_gid));
}

/* Open below the folder `root`. A file of /proc has no size, and reading it may have effects. */
static int files_open_below(const struct symbols_files *f, const char *root, const char *path) {
    struct stat st;
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = file_open_regular(folder, path, FILE_LINKS_IN_ROOT, O_RDONLY, FILE_ANY_OWNER);
    close(folder);
    if (fd >= 0 &&
        (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > FILES_MAX || !files_may_read(f->pid, &st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int files_open_theirs(const struct symbols_files *f, const char *path) {
    char root[32];
    snprintf(root, sizeof root, "/proc/%d/root", (int)f->pid);
    return files_open_below(f, root, path);
}

int symbols_files_open(const struct symbols_files *f) {
    if (strcmp(f->path, FILES_VDSO) == 0)
        return files_open_vdso();
    return f->path[0] == '/' && f->pid > 0 ? files_open_theirs(f, f->path) : -1;
}

/* ---- debug information ---- */

/* ".build-id/ab/cdef.debug" */
static void files_put_id(char *out, const struct symbols_want *want) {
    out += sprintf(out, ".build-id/%02x/", want->id[0]);
    for (uint32_t i = 1; i < want->id_len; i++)
        out += sprintf(out, "%02x", want->id[i]);
    sprintf(out, ".debug");
}

/* Write location number `i` of the file to `out`; `*ours`: relative to our own FILES_DEBUG.
 * False if there is no such location. */
static bool files_place(const struct symbols_files *f, const struct symbols_want *want, unsigned i, char *out,
                        size_t cap, bool *ours) {
    char id[2 * SYMBOLS_BUILD_ID_MAX + 32] = "", name[SYMBOLS_LINK_MAX + 16];
    const char *path = f->path, *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) : 0, n = 0;
    if (want->id_len >= 2)
        files_put_id(id, want);
    if (want->name[0])
        snprintf(name, sizeof name, "%s", want->name);
    else
        snprintf(name, sizeof name, "%.*s.debug", SYMBOLS_LINK_MAX, slash ? slash + 1 : path);
    /* A link is a name, not a path. */
    bool is_name = !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    *ours = i == 1 || i == 5;
    if (i < 2)
        n = id[0] ? snprintf(out, cap, "%s%s", *ours ? "" : FILES_DEBUG "/", id) : 0;
    else if (is_name && i == 2)
        n = snprintf(out, cap, "%.*s/%s", len, path, name);
    else if (is_name && i == 3)
        n = snprintf(out, cap, "%.*s/.debug/%s", len, path, name);
    else if (is_name && i < 6)
        n = snprintf(out, cap, "%s%.*s/%s", *ours ? "." : FILES_DEBUG, len, path, name);
    if (n <= 0 || (size_t)n >= cap)
        out[0] = '\0';
    return i < 6;
}

/* A file that the last one refers to, by a name relative to it, or by its build id. */
static bool files_alt_place(const struct symbols_files *f, const struct symbols_want *want, unsigned i,
                            char *out, size_t cap, bool *ours) {
    char id[2 * SYMBOLS_BUILD_ID_MAX + 32] = "";
    const char *from = f->given ? f->given : f->path, *slash = strrchr(from, '/');
    int n = 0;
    *ours = i == 2 || (i == 0 && f->given && f->given_is_ours);
    if (want->id_len >= 2)
        files_put_id(id, want);
    if (i == 0 && want->name[0])
        n = want->name[0] == '/'
                ? snprintf(out, cap, "%s", want->name)
                : snprintf(out, cap, "%.*s/%s", slash ? (int)(slash - from) : 0, from, want->name);
    else if (i > 0 && id[0])
        n = snprintf(out, cap, "%s%s", *ours ? "" : FILES_DEBUG "/", id);
    if (n <= 0 || (size_t)n >= cap)
        out[0] = '\0';
    return i < 3;
}

int symbols_files_open_debug(struct symbols_files *f, const struct symbols_want *want) {
    char place[FILES_PLACE];
    bool ours, is_alt = want->what == SYMBOLS_WANT_ALT;
    if (f->pid <= 0 || f->path[0] != '/')
        return -1;
    if (want->number == 0)
        f->next = 0;
    while ((is_alt ? files_alt_place : files_place)(f, want, f->next, place, sizeof place, &ours)) {
        f->next++;
        int fd = !place[0] ? -1
                 : ours    ? files_open_below(f, FILES_DEBUG, place)
                           : files_open_theirs(f, place);
        if (fd < 0)
            continue;
        if (!is_alt) {
            free(f->given);
            f->given = strdup(place);
            f->given_is_ours = ours;
        }
        return fd;
    }
    return -1;
}
