/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file: see trace_file.h. setfsuid(2): rights over files, of this thread alone. */
#include "client/export/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "client/output.h"
#include "client/target/rings.h"

#define TRACE_FIRST "profile-"
#define TRACE_LAST ".json"
#define TRACE_MOST ((off_t)2 << 30) /* bytes; the agent refuses to write a quarter of it */
#define TRACE_MOST_NS (300 * CLOCK_NS_PER_S)
#define TRACE_BLOCK 65536

const char *trace_file_name(const char *told, int64_t pid) {
    char first[48];
    const char *slash = strrchr(told, '/'), *name = slash ? slash + 1 : told;
    size_t n = (size_t)snprintf(first, sizeof first, TRACE_FIRST "%" PRId64 "-", pid);
    if (strncmp(name, first, n) != 0)
        return NULL;
    size_t digits = strspn(name + n, "0123456789");
    return digits > 0 && digits < 20 && strcmp(name + n + digits, TRACE_LAST) == 0 ? name : NULL;
}

/* A folder and a file in it; both descriptors. */
struct trace_found {
    int folder, file;
    struct stat st;
};

/* True if it is in this folder, in which only its user may have made anything. */
static bool trace_find_in(struct trace_found *f, int root, const char *base, const char *name, int64_t uid) {
    struct stat st;
    f->folder = file_take(root, base, FILE_LINKS_IN_ROOT);
    if (f->folder < 0)
        return false;
    if (fstat(f->folder, &st) == 0 && S_ISDIR(st.st_mode) && (int64_t)st.st_uid == uid &&
        (st.st_mode & 077) == 0) {
        f->file = file_open_regular(f->folder, name, FILE_LINKS_REFUSED, O_RDONLY, uid);
        if (f->file >= 0 && fstat(f->file, &f->st) == 0 && f->st.st_nlink == 1)
            return true;
    }
    if (f->file >= 0)
        close(f->file);
    close(f->folder);
    f->folder = f->file = -1;
    return false;
}

static bool trace_find(struct trace_found *f, pid_t pid, const struct rings_owner *owner, const char *name) {
    char root_path[48], base[RING_DIR_PATH];
    bool found = false;
    snprintf(root_path, sizeof root_path, "/proc/%d/root", (int)pid);
    int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *f = (struct trace_found){.folder = -1, .file = -1};
    for (int i = 0; root >= 0 && !found && i < RING_DIR_BASES; i++)
        found = rings_base(owner, i, base) == 0 && trace_find_in(f, root, base, name, owner->uid);
    if (root >= 0)
        close(root);
    return found;
}

/* Copy as much as the file has now. 0, or -1 with the error. */
static int trace_pour(const struct trace_found *from, int to, const char *output, bool (*stop)(void),
                      struct err *e) {
    uint64_t until_ns = clock_mono_ns() + TRACE_MOST_NS;
    char *block = malloc(TRACE_BLOCK);
    int rc = block ? 0 : err_set(e, ERR_FAILED, "out of memory");
    for (off_t left = from->st.st_size; rc == 0 && left > 0;) {
        ssize_t n = read(from->file, block, left < TRACE_BLOCK ? (size_t)left : TRACE_BLOCK), put = 0;
        int why = errno;
        for (ssize_t at = 0; n > 0 && at < n && put >= 0; at += put)
            put = write(to, block + at, (size_t)(n - at));
        if (stop && stop())
            rc = err_set(e, ERR_FAILED, "interrupted: the trace stays where it is");
        else if (clock_mono_ns() > until_ns)
            rc = err_set(e, ERR_FAILED, "the trace takes too long to be read: it stays where it is");
        else if (put < 0)
            rc = err_set_errno(e, ERR_FAILED, errno, "%s cannot be written, the trace stays where it is",
                               output);
        else if (n == 0 || (n < 0 && why != EINTR))
            rc = err_set(e, ERR_FAILED, "the trace cannot be read: %s",
                         n < 0 ? strerror(why) : "it is cut off");
        left -= n > 0 ? n : 0;
    }
    free(block);
    return rc;
}

/* With that user's rights: whatever is there by now, that user could have removed it. */
static void trace_remove(const struct trace_found *f, const char *name) {
    setfsgid(f->st.st_gid);
    setfsuid(f->st.st_uid);
    if (setfsuid((uid_t)-1) == (int)f->st.st_uid)
        unlinkat(f->folder, name, 0);
    bool changed = setfsuid(geteuid()) != (int)geteuid();
    setfsgid(getegid());
    /* the kernel cleared it with the change of user */
    if (changed)
        prctl(PR_SET_DUMPABLE, 1);
}

static int trace_copy(const struct trace_found *f, const char *output, bool (*stop)(void), struct err *e) {
    struct output_file to;
    if (f->st.st_size > TRACE_MOST)
        return err_set(e, ERR_FAILED, "the trace has %lld bytes, more than is copied: it stays where it is",
                       (long long)f->st.st_size);
    if (output_file_begin(&to, output, e) != 0)
        return -1;
    if (trace_pour(f, to.fd, output, stop, e) != 0) {
        output_file_drop(&to);
        return -1;
    }
    if (fsync(to.fd) == 0)
        return output_file_end(&to, output, e);
    err_set_errno(e, ERR_FAILED, errno, "%s cannot be written, the trace stays where it is", output);
    output_file_drop(&to);
    return -1;
}

int trace_file_move(pid_t pid, const char *told, const char *output, bool (*stop)(void), struct err *e) {
    struct rings_owner owner;
    struct trace_found f;
    char clean[512];
    text_sanitize(clean, sizeof clean, told);
    if (pid <= 0 || rings_owner(pid, &owner) != 0)
        return err_set(e, ERR_FAILED,
                       "the trace is on the job's machine, in %.300s: it cannot be moved from here", clean);
    const char *name = trace_file_name(told, owner.pid);
    if (!name)
        return err_set(e, ERR_FAILED,
                       "the agent names %.300s, which is not a trace of process %d: it was not touched",
                       clean, (int)pid);
    if (!trace_find(&f, pid, &owner, name))
        return err_set(e, ERR_FAILED,
                       "%.300s is not a file of process %d's user where its tables lie, or not to be read "
                       "from here: it was "
                       "not touched",
                       clean, (int)pid);
    int rc = trace_copy(&f, output, stop, e);
    if (rc == 0)
        trace_remove(&f, name);
    close(f.file);
    close(f.folder);
    return rc;
}
