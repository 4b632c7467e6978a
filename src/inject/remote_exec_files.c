/* SPDX-License-Identifier: Apache-2.0 */
/* remote_exec_files: see remote_exec_files.h. Runs on the injector's one thread, whose file-system user it borrows for a moment. */
#include "inject/remote_exec_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/agent_abi.h"
#include "base/endpoint.h"
#include "base/procfs.h"

#define REMOTE_EXEC_FILES_START "start.py"
#define REMOTE_EXEC_FILES_AGENT "agent"
#define REMOTE_EXEC_FILES_LOADED_MAX 512

/* The interpreter runs this on its main thread, where a handler of the job's signals may come in between: so it only makes a
 * thread, which does the rest, and hands a ^C that arrives just then back to the job. Nothing is defined, no module is
 * imported that is not there already, so nothing is left: no name, no cycle. _imp and posix are built into every interpreter.
 * A module that is imported through _imp is not entered anywhere; this one says that there is none. */
static const char remote_exec_files_script[] =
    "import _thread, posix\n"
    "folder = '%s'\n"
    "try:\n"
    "    _thread.start_new_thread(exec, ('''\n"
    "import _imp, _thread, posix, sys\n"
    "files = []\n"
    "try:\n"
    "    files.append(posix.open(folder + '/" REMOTE_EXEC_FILES_START
    "', posix.O_WRONLY | posix.O_APPEND | posix.O_CLOEXEC))\n"
    "    posix.unlink(folder + '/" REMOTE_EXEC_FILES_START "')\n"
    "    name = bytes.fromhex(loaded).decode('utf-8', 'surrogateescape')\n"
    "    if not name:\n"
    "        files.append(posix.open(folder + '/" REMOTE_EXEC_FILES_AGENT
    "', posix.O_RDONLY | posix.O_CLOEXEC))\n"
    "        posix.unlink(folder + '/" REMOTE_EXEC_FILES_AGENT "')\n"
    "    posix.rmdir(folder)\n"
    "    if not name:\n"
    "        try:\n"
    "            files.append(posix.memfd_create('" AGENT_MEMFD_NAME "', posix.MFD_CLOEXEC | 16))\n"
    "        except OSError:\n"
    "            files.append(posix.memfd_create('" AGENT_MEMFD_NAME "', posix.MFD_CLOEXEC))\n"
    "        while posix.sendfile(files[2], files[1], None, 1048576):\n"
    "            pass\n"
    "        name = '/proc/self/task/' + str(_thread.get_native_id()) + '/fd/' + str(files[2])\n"
    "    try:\n"
    "        _imp.create_dynamic(type(sys.implementation)(name='" AGENT_REMOTE_EXEC_MODULE
    "', origin=name))\n"
    "    except SystemError:\n"
    "        pass\n"
    "    said = '#loaded'\n"
    "except BaseException as why:\n"
    "    said = '#' + str(why)\n"
    "if files:\n"
    "    posix.write(files[0], said.encode('utf-8', 'replace'))\n"
    "for file in files:\n"
    "    posix.close(file)\n"
    "''', {'folder': folder, 'loaded': '%s'}))\n"
    "except KeyboardInterrupt:\n"
    "    _thread.interrupt_main()\n"
    "except RuntimeError as why:\n"
    "    file = posix.open(folder + '/" REMOTE_EXEC_FILES_START
    "', posix.O_WRONLY | posix.O_APPEND | posix.O_CLOEXEC)\n"
    "    posix.write(file, ('#' + str(why)).encode())\n"
    "    posix.close(file)\n";

ssize_t remote_exec_files_compose(char *buf, size_t cap, const char *inside, const char *loaded) {
    char hex[2 * REMOTE_EXEC_FILES_LOADED_MAX + 1] = "";
    size_t len = loaded ? strlen(loaded) : 0;
    if (len > REMOTE_EXEC_FILES_LOADED_MAX)
        return -1;
    for (size_t i = 0; i < len; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)loaded[i]);
    int n = snprintf(buf, cap, remote_exec_files_script, inside, hex);
    return n > 0 && (size_t)n < cap ? n : -1;
}

/* Files made meanwhile are that user's, and may be made only where that user may. */
static int remote_exec_files_become(int64_t uid, int64_t gid) {
    (void)setfsgid(
        (gid_t)gid); /* matters to file systems that know but the target's users: we are root then */
    (void)setfsuid((uid_t)uid);
    return setfsuid((uid_t)-1) == (int)uid ? 0 : -1;
}

static void remote_exec_files_be_oneself(void) {
    bool changed = setfsuid(geteuid()) != (int)geteuid();
    (void)setfsgid(getegid());
    if (changed)
        (void)prctl(PR_SET_DUMPABLE, 1); /* the kernel took that away with the user */
}

/* A new file with these bytes. Its descriptor, or -1 with errno. */
static int remote_exec_files_put(int folder, const char *name, const void *bytes, size_t size) {
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t n = write(fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            saved = n < 0 ? errno : ENOSPC;
            (void)close(fd);
            fd = -1;
        } else {
            done += (size_t)n;
        }
    }
    errno = saved;
    return fd;
}

/* All of it in one place. 0, or -1 with errno. */
static int remote_exec_files_fill(struct remote_exec_files *f, const char *where, const uint8_t *bytes,
                                  size_t size, const char *loaded) {
    char script[REMOTE_EXEC_FILES_SCRIPT_MAX], inside[64];
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    (void)snprintf(f->name, sizeof f->name, "probing-start-%016llx", (unsigned long long)random);
    (void)snprintf(inside, sizeof inside, "%s/%s", where, f->name);
    (void)snprintf(f->path, sizeof f->path, "%s/" REMOTE_EXEC_FILES_START, inside);
    ssize_t len = remote_exec_files_compose(script, sizeof script, inside, loaded);
    if (len < 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    f->script_len = (size_t)len;
    if (mkdirat(f->place, f->name, 0700) != 0)
        return -1;
    f->folder = openat(f->place, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (f->folder < 0 || fstat(f->folder, &st) != 0)
        return -1;
    if ((int64_t)st.st_uid != f->uid) { /* another one has been put over it */
        errno = EPERM;
        return -1;
    }
    if (bytes) {
        int agent = remote_exec_files_put(f->folder, REMOTE_EXEC_FILES_AGENT, bytes, size);
        if (agent < 0)
            return -1;
        (void)close(agent);
    }
    f->script = remote_exec_files_put(f->folder, REMOTE_EXEC_FILES_START, script, f->script_len);
    return f->script >= 0 ? 0 : -1;
}

int remote_exec_files_make(struct remote_exec_files *f, pid_t pid, const uint8_t *bytes, size_t size,
                           const char *loaded, struct err *e) {
    struct procfs_status st;
    char path[128];
    int why = 0;
    *f = (struct remote_exec_files){.place = -1, .folder = -1, .script = -1};
    if (procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_LOST, "it has ended");
    for (const char *const *where = endpoint_places; *where; where++) {
        (void)snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, *where);
        f->place = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (f->place < 0) {
            why = why ? why : errno;
            continue;
        }
        f->uid = st.uid;
        f->gid = st.gid;
        errno = EPERM;
        int rc = remote_exec_files_become(st.uid, st.gid);
        rc = rc == 0 ? remote_exec_files_fill(f, *where, bytes, size, loaded) : -1;
        int saved = errno;
        remote_exec_files_be_oneself();
        if (rc == 0)
            return 0;
        why = why ? why : saved;
        remote_exec_files_remove(f);
    }
    return err_set_errno(e, ERR_ATTACH, why, "no file can be made where it would see it");
}

size_t remote_exec_files_read(const struct remote_exec_files *f, char *buf, size_t cap) {
    ssize_t n = pread(f->script, buf, cap - 1, (off_t)f->script_len);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

void remote_exec_files_disarm(const struct remote_exec_files *f) { (void)!ftruncate(f->script, 0); }

/* As the target's user, as they were made: where that user has put another folder in place of ours, nothing goes that it could not
 * take away itself. */
void remote_exec_files_remove(struct remote_exec_files *f) {
    bool become = f->folder >= 0 || (f->place >= 0 && f->name[0]);
    if (become && remote_exec_files_become(f->uid, f->gid) == 0) {
        if (f->folder >= 0) {
            (void)unlinkat(f->folder, REMOTE_EXEC_FILES_START, 0);
            (void)unlinkat(f->folder, REMOTE_EXEC_FILES_AGENT, 0);
        }
        if (f->place >= 0 && f->name[0])
            (void)unlinkat(f->place, f->name, AT_REMOVEDIR);
    }
    if (become)
        remote_exec_files_be_oneself();
    if (f->folder >= 0)
        (void)close(f->folder);
    if (f->script >= 0)
        (void)close(f->script);
    if (f->place >= 0)
        (void)close(f->place);
    *f = (struct remote_exec_files){.place = -1, .folder = -1, .script = -1};
}
