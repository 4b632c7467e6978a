/* SPDX-License-Identifier: Apache-2.0 */
/* remote_exec: see remote_exec.h. Protocol: PEP 768; Python/remote_debugging.c. struct link_map, struct r_debug: glibc elf/link.h. */
#include "inject/remote_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/text.h"
#include "inject/agentfile.h"
#include "inject/remote_exec_files.h"
#include "inject/safe_point.h"
#include "inject/target.h"
#include "inject/thread.h"

#define REMOTE_EXEC_LOADED_MAX 512
#define REMOTE_EXEC_LINKS_MAX 65536
#define REMOTE_EXEC_RUN_NS (2 * CLOCK_NS_PER_S)   /* for a script that has begun when the time is up */
#define REMOTE_EXEC_START_NS (3 * CLOCK_NS_PER_S) /* for an agent that is being started then */
#define REMOTE_EXEC_GRACE_NS                                                                                 \
    (100 * CLOCK_NS_PER_MS) /* for a thread that took the path just before it was taken back */
#define REMOTE_EXEC_LOADED "#loaded"
#define REMOTE_EXEC_SAID_MAX 256

struct remote_exec {
    const struct inject_request *req;
    struct inject_remote_exec at;
    struct remote_exec_files files;
    struct mem mem;
    uint64_t deadline_ns;
    bool (*stop_asked)(void);
    char loaded[REMOTE_EXEC_LOADED_MAX]; /* what the loader calls an agent that is mapped already; "" none */
};

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* The flag: 1 waits, 0 taken, -1 cannot be read. */
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

/* Is there an agent of ours, parked? Then d->loaded names it. 0, or -1 with the error. */
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

/* What the loaded agent says: 1 with its answer, 0 not yet, -1 it is not there. */
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

/* Take the request back. True when it was still there; if it was taken just before, what is read is a script that does nothing. */
static bool remote_exec_take_back(struct remote_exec *d) {
    int32_t zero = 0;
    char nothing = '\0', said[8];
    bool there = remote_exec_read_pending(d) == 1;
    if (there) {
        (void)mem_write(&d->mem, d->at.pending, &zero, sizeof zero);
        (void)mem_write(&d->mem, d->at.path, &nothing, sizeof nothing);
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
    /* As late as can be: where things are may have changed while the files were made. */
    if (d->req->find_remote_exec(d->req->find_remote_exec_arg, &d->mem, &d->at, e) != 0)
        return -1;
    if (len > at->path_size)
        return err_set(e, ERR_ATTACH, "its Python has no room for the path of a script");
    if (mem_write(&d->mem, at->path, d->files.path, len) == 0 &&
        mem_write(&d->mem, at->pending, &one, sizeof one) == 0) {
        if (mem_write(&d->mem, at->breaker, &at->breaker_set, sizeof at->breaker_set) == 0)
            return 0;
        int saved = errno;
        (void)remote_exec_take_back(d);
        errno = saved;
    }
    return err_set_errno(e, ERR_ATTACH, errno, "its memory may not be written to");
}

/* What the thread that should have come is in, for people. */
static void remote_exec_describe_thread(const struct remote_exec *d, char *buf, size_t cap) {
    struct procfs_stat st;
    struct procfs_syscall sc;
    char name[32];
    pid_t tid = d->at.tid ? d->at.tid : d->req->pid;
    if (procfs_read_stat(d->req->pid, tid, &st) != 0)
        (void)snprintf(buf, cap, "it has ended");
    else if (st.state == 'S' && procfs_read_syscall(d->req->pid, tid, &sc) == 0) {
        safe_point_call_name(name, sizeof name, sc.nr);
        (void)snprintf(buf, cap, "it is asleep in %s", name);
    } else
        (void)snprintf(buf, cap,
                       st.state == 'R' ? "it runs code that is not Python's"
                                       : "it is stopped or in an uninterruptible wait");
}

static int remote_exec_give_up(struct remote_exec *d, uint64_t waited_ns, struct err *e) {
    char what[80];
    unsigned ms = (unsigned)(waited_ns / CLOCK_NS_PER_MS);
    remote_exec_describe_thread(d, what, sizeof what);
    if (remote_exec_take_back(d))
        return err_set(e, ERR_ATTACH, "its main thread came to no safe point within %u ms (%s)", ms, what);
    return err_set(e, ERR_ATTACH, "its main thread took the request and did not run it within %u ms (%s)", ms,
                   what);
}

/* Wait for the script's word. 0, or -1 with the error and everything taken back. */
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
            return (void)remote_exec_take_back(d), err_set(e, ERR_FAILED, "interrupted; it is as it was");
        if (clock_mono_ns() > until)
            return remote_exec_give_up(d, clock_mono_ns() - start, e);
        thread_nap(&nap_ns);
    }
}

/* The script has loaded it: wait until it runs, or says why not. */
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
    (void)text_sanitize(text, sizeof text, out->start.error);
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
    (void)text_sanitize(text, sizeof text, said + 1);
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
