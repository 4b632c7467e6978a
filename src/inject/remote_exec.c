/* SPDX-License-Identifier: Apache-2.0 */
/* remote_exec: see remote_exec.h. Protocol: PEP 768; Python/remote_debugging.c. struct link_map,
 * struct r_debug: glibc elf/link.h. */
#include "inject/remote_exec.h"

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
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/procfs.h"
#include "base/text.h"
#include "inject/agentfile.h"
#include "inject/safe_point.h"
#include "inject/target.h"
#include "inject/thread.h"

#define REMOTE_EXEC_LOADED_MAX 512
#define REMOTE_EXEC_LINKS_MAX 65536
/* for a script that has started when the time is up */
#define REMOTE_EXEC_RUN_NS (2 * CLOCK_NS_PER_S)
#define REMOTE_EXEC_START_NS (3 * CLOCK_NS_PER_S) /* for an agent that is being started then */
#define REMOTE_EXEC_GRACE_NS                                                                                 \
    (100 * CLOCK_NS_PER_MS) /* for a thread that took the path just before it was cleared */
#define REMOTE_EXEC_LOADED "#loaded"
#define REMOTE_EXEC_SAID_MAX 256

struct remote_exec {
    const struct inject_request *req;
    struct inject_remote_exec at;
    struct remote_exec_files files;
    struct mem mem;
    uint64_t deadline_ns;
    bool (*stop_asked)(void);
    /* the loader's name of an agent that is already mapped; "" none */
    char loaded[REMOTE_EXEC_LOADED_MAX];
};

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* The flag: 1 waiting, 0 taken, -1 cannot be read. */
static int remote_exec_read_pending(struct remote_exec *d) {
    uint32_t v;
    return mem_read_u32(&d->mem, d->at.pending, &v) == 0 ? v != 0 : -1;
}

/* --- an agent that is mapped ----------------------------------------------------------------------------------- */

/* The name under which the target's loader has opened the image at [base, end). 0 or -1. */
static int remote_exec_find_name(struct target *t, uint64_t base, uint64_t end, char *buf, size_t cap) {
    struct elf_image loader;
    uint64_t r_debug, map;
    if (t->loader < 0 || elf_open_memory(&loader, &t->mem, t->images[t->loader].base) != 0 ||
        elf_find_symbol(&loader, "_r_debug", &r_debug, NULL) != 0 ||
        mem_read_u64(&t->mem, r_debug + 8, &map) != 0)
        return -1;
    for (int i = 0; map && i < REMOTE_EXEC_LINKS_MAX; i++) {
        uint64_t link[4]; /* l_addr, l_name, l_ld, l_next */
        if (mem_read(&t->mem, map, link, sizeof link) != 0)
            return -1;
        if (link[2] >= base && link[2] < end)
            return mem_read_cstr(&t->mem, link[1], buf, cap) > 0 ? 0 : -1;
        map = link[3];
    }
    return -1;
}

/* Look for a parked agent of ours; d->loaded then names it. 0, or -1 with the error. */
static int remote_exec_find_agent(struct remote_exec *d, struct err *e) {
    struct target t;
    uint64_t entry;
    int rc = target_init(&t, d->req->pid, &d->mem, e);
    if (rc == 0 && t.agent >= 0) {
        rc = agentfile_find_mapped(&t, &entry, e);
        if (rc == 0 && remote_exec_find_name(&t, t.images[t.agent].base, t.images[t.agent].end, d->loaded,
                                             sizeof d->loaded) != 0)
            rc = err_set(e, ERR_ATTACH, "the agent that it has loaded cannot be found by name");
    }
    target_fini(&t);
    return rc;
}

/* The loaded agent's answer: 1 with it, 0 not yet, -1 the agent is gone. */
static int remote_exec_read_answer(struct remote_exec *d, struct agent_remote_exec *out) {
    struct target t;
    struct elf_image img;
    struct err ignored;
    uint64_t at;
    int rc = -1;
    if (target_init(&t, d->req->pid, &d->mem, &ignored) == 0 && t.agent >= 0 &&
        elf_open_memory(&img, &t.mem, t.images[t.agent].base) == 0 &&
        elf_find_symbol(&img, AGENT_REMOTE_EXEC_SYMBOL, &at, NULL) == 0 &&
        mem_read(&t.mem, at, out, sizeof *out) == 0)
        rc = out->done == 1;
    target_fini(&t);
    return rc;
}

/* --- the request ----------------------------------------------------------------------------------------------- */

/* Cancel the request. True if it was still there; if it was taken just before, the script that
 * is read does nothing. */
static bool remote_exec_take_back(struct remote_exec *d) {
    int32_t zero = 0;
    char nothing = '\0', said[8];
    bool there = remote_exec_read_pending(d) == 1;
    if (there) {
        mem_write(&d->mem, d->at.pending, &zero, sizeof zero);
        mem_write(&d->mem, d->at.path, &nothing, sizeof nothing);
    }
    remote_exec_files_disarm(&d->files);
    uint64_t until = clock_mono_ns() + REMOTE_EXEC_GRACE_NS;
    for (long nap_ns = 0; clock_mono_ns() < until && !remote_exec_files_read(&d->files, said, sizeof said);)
        thread_nap(&nap_ns);
    return there;
}

static int remote_exec_ask(struct remote_exec *d, struct err *e) {
    const struct inject_remote_exec *at = &d->at;
    int32_t one = 1;
    size_t len = strlen(d->files.path) + 1;
    /* As late as possible: addresses may have changed while the files were made. */
    if (d->req->find_remote_exec(d->req->find_remote_exec_arg, &d->mem, &d->at, e) != 0)
        return -1;
    if (len > at->path_size)
        return err_set(e, ERR_ATTACH, "its Python has no room for the path of a script");
    if (mem_write(&d->mem, at->path, d->files.path, len) == 0 &&
        mem_write(&d->mem, at->pending, &one, sizeof one) == 0) {
        if (mem_write(&d->mem, at->breaker, &at->breaker_set, sizeof at->breaker_set) == 0)
            return 0;
        int saved = errno;
        remote_exec_take_back(d);
        errno = saved;
    }
    return err_set_errno(e, ERR_ATTACH, errno, "its memory may not be written to");
}

/* Describe what the expected thread is doing. */
static void remote_exec_describe_thread(const struct remote_exec *d, char *buf, size_t cap) {
    struct procfs_stat st;
    struct procfs_syscall sc;
    char name[32];
    pid_t tid = d->at.tid ? d->at.tid : d->req->pid;
    if (procfs_read_stat(d->req->pid, tid, &st) != 0)
        snprintf(buf, cap, "it has ended");
    else if (st.state == 'S' && procfs_read_syscall(d->req->pid, tid, &sc) == 0) {
        safe_point_call_name(name, sizeof name, sc.nr);
        snprintf(buf, cap, "it is asleep in %s", name);
    } else
        snprintf(buf, cap,
                 st.state == 'R' ? "it runs code that is not Python's"
                                 : "it is stopped or in an uninterruptible wait");
}

static int remote_exec_give_up(struct remote_exec *d, uint64_t waited_ns, struct err *e) {
    char what[80];
    unsigned ms = (unsigned)(waited_ns / CLOCK_NS_PER_MS);
    remote_exec_describe_thread(d, what, sizeof what);
    if (remote_exec_take_back(d))
        return err_set(e, ERR_ATTACH, "its main thread reached no safe point within %u ms (%s)", ms, what);
    return err_set(e, ERR_ATTACH,
                   "its main thread accepted the request but did not act on it within %u ms (%s)", ms, what);
}

/* Wait for the script's result. 0, or -1 with the error and everything undone. */
static int remote_exec_wait(struct remote_exec *d, char *said, size_t cap, struct err *e) {
    uint64_t start = clock_mono_ns(), until = d->deadline_ns;
    bool taken = false;
    for (long nap_ns = 0;;) {
        size_t n = remote_exec_files_read(&d->files, said, cap);
        if (n >= 2)
            return 0;
        int pending = taken ? 0 : remote_exec_read_pending(d);
        if (pending < 0)
            return err_set(e, ERR_LOST, "it has ended");
        if (pending == 0 && !taken) {
            taken = true;
            until =
                clock_mono_ns() + REMOTE_EXEC_RUN_NS > until ? clock_mono_ns() + REMOTE_EXEC_RUN_NS : until;
        }
        if (d->stop_asked() && !taken)
            return remote_exec_take_back(d), err_set(e, ERR_FAILED, "interrupted; it is as it was");
        if (clock_mono_ns() > until)
            return remote_exec_give_up(d, clock_mono_ns() - start, e);
        thread_nap(&nap_ns);
    }
}

/* The script has loaded it: wait until it runs, or reports why not. */
static int remote_exec_wait_for_agent(struct remote_exec *d, struct agent_remote_exec *out, struct err *e) {
    uint64_t until = clock_mono_ns() + REMOTE_EXEC_START_NS;
    long nap_ns = 0;
    int rc;
    while ((rc = remote_exec_read_answer(d, out)) == 0 && clock_mono_ns() < until)
        thread_nap(&nap_ns);
    if (rc < 0)
        return err_set(e, ERR_ATTACH, "what it has loaded is not our agent");
    if (rc == 0)
        return err_set(e, ERR_ATTACH, "the agent was not up in time");
    if (out->result == AGENT_STARTED || out->result == AGENT_ALREADY)
        return 0;
    char text[sizeof out->start.error];
    out->start.error[sizeof out->start.error - 1] = '\0';
    text_sanitize(text, sizeof text, out->start.error);
    return err_set(e, ERR_ATTACH, "the agent could not start: %s", text);
}

static int remote_exec_run(struct remote_exec *d, const uint8_t *bytes, size_t size,
                           struct agent_remote_exec *out, struct err *e) {
    char said[REMOTE_EXEC_SAID_MAX], text[REMOTE_EXEC_SAID_MAX];
    bool loaded = d->loaded[0] != '\0';
    if (remote_exec_files_make(&d->files, d->req->pid, loaded ? NULL : bytes, size, loaded ? d->loaded : NULL,
                               e) != 0 ||
        remote_exec_ask(d, e) != 0 || remote_exec_wait(d, said, sizeof said, e) != 0)
        return -1;
    if (strcmp(said, REMOTE_EXEC_LOADED) == 0)
        return remote_exec_wait_for_agent(d, out, e);
    text_sanitize(text, sizeof text, said + 1);
    return err_set(e, ERR_ATTACH, "it could not load the agent: %s", text);
}

int remote_exec_enter(const struct inject_request *req, const struct mem *mem, const uint8_t *bytes,
                      size_t size, uint64_t deadline_ns, bool (*stop_asked)(void),
                      struct remote_exec_result *out, struct err *e) {
    struct remote_exec d = {.req = req, .deadline_ns = deadline_ns, .stop_asked = stop_asked};
    d.files = (struct remote_exec_files){.place = -1, .folder = -1, .script = -1};
    *out = (struct remote_exec_result){.reused = false};
    mem_share_image(&d.mem, mem);
    int rc = req->find_remote_exec(req->find_remote_exec_arg, &d.mem, &d.at, e);
    if (rc == 0)
        rc = remote_exec_find_agent(&d, e);
    if (rc == 0)
        rc = remote_exec_run(&d, bytes, size, &out->agent, e);
    out->reused = d.loaded[0] != '\0';
    remote_exec_files_remove(&d.files);
    if (rc != 0 && mem_is_gone(&d.mem))
        e->code = ERR_LOST;
    mem_fini(&d.mem);
    return rc;
}

/* ---- files; the injector's one thread makes them, whose file-system user it borrows meanwhile ---- */

#define REMOTE_EXEC_FILES_START "start.py"
#define REMOTE_EXEC_FILES_AGENT "agent"
#define REMOTE_EXEC_FILES_LOADED_MAX 512

/* The interpreter runs this on its main thread, where a signal handler of the job may run in
 * between. So it only makes a thread, which does the rest, and hands a ^C that arrives just then
 * back to the job. It defines nothing and imports no module that is not loaded already, so
 * nothing is left: no name, no cycle. _imp and posix are built into every interpreter. A module
 * imported through _imp is not entered anywhere; this one reports that there is none. */
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
        snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)loaded[i]);
    int n = snprintf(buf, cap, remote_exec_files_script, inside, hex);
    return n > 0 && (size_t)n < cap ? n : -1;
}

/* Files made from here on belong to that user, and are possible only where that user may make
 * them. */
static int remote_exec_files_become(int64_t uid, int64_t gid) {
    /* matters to file systems that know only the target's users: we are root then */
    setfsgid((gid_t)gid);
    setfsuid((uid_t)uid);
    return setfsuid((uid_t)-1) == (int)uid ? 0 : -1;
}

static void remote_exec_files_be_oneself(void) {
    bool changed = setfsuid(geteuid()) != (int)geteuid();
    setfsgid(getegid());
    /* the kernel cleared it with the change of user */
    if (changed)
        prctl(PR_SET_DUMPABLE, 1);
}

/* A new file with these bytes. Returns its descriptor, or -1 with errno. */
static int remote_exec_files_put(int folder, const char *name, const void *bytes, size_t size) {
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t n = write(fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            saved = n < 0 ? errno : ENOSPC;
            close(fd);
            fd = -1;
        } else {
            done += (size_t)n;
        }
    }
    errno = saved;
    return fd;
}

/* Make everything in one place. 0, or -1 with errno. */
static int remote_exec_files_fill(struct remote_exec_files *f, const char *where, const uint8_t *bytes,
                                  size_t size, const char *loaded) {
    char script[REMOTE_EXEC_FILES_SCRIPT_MAX], inside[64];
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return -1;
    snprintf(f->name, sizeof f->name, "probing-start-%016llx", (unsigned long long)random);
    snprintf(inside, sizeof inside, "%s/%s", where, f->name);
    snprintf(f->path, sizeof f->path, "%s/" REMOTE_EXEC_FILES_START, inside);
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
    if ((int64_t)st.st_uid != f->uid) { /* another one was put over it */
        errno = EPERM;
        return -1;
    }
    if (bytes) {
        int agent = remote_exec_files_put(f->folder, REMOTE_EXEC_FILES_AGENT, bytes, size);
        if (agent < 0)
            return -1;
        close(agent);
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
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, *where);
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

/* As the target's user, like the making: where that user has put another folder in place of
 * ours, nothing is removed that it could not remove itself. */
void remote_exec_files_remove(struct remote_exec_files *f) {
    bool become = f->folder >= 0 || (f->place >= 0 && f->name[0]);
    if (become && remote_exec_files_become(f->uid, f->gid) == 0) {
        if (f->folder >= 0) {
            unlinkat(f->folder, REMOTE_EXEC_FILES_START, 0);
            unlinkat(f->folder, REMOTE_EXEC_FILES_AGENT, 0);
        }
        if (f->place >= 0 && f->name[0])
            unlinkat(f->place, f->name, AT_REMOVEDIR);
    }
    if (become)
        remote_exec_files_be_oneself();
    if (f->folder >= 0)
        close(f->folder);
    if (f->script >= 0)
        close(f->script);
    if (f->place >= 0)
        close(f->place);
    *f = (struct remote_exec_files){.place = -1, .folder = -1, .script = -1};
}
