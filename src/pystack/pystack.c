/* SPDX-License-Identifier: Apache-2.0 */
/* pystack: opening and closing; see pystack.h. */
#include "pystack/pystack.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/procfs.h"
#include "pystack/discover.h"
#include "pystack/pystack_internal.h"

static int pystack_allocate(struct pystack *ps) {
    ps->frames = calloc(PYSTACK_MAX_FRAMES, sizeof *ps->frames);
    ps->places = calloc(PYSTACK_MAX_FRAMES, sizeof *ps->places);
    ps->raw = calloc(PYSTACK_MAX_RAW, sizeof *ps->raw);
    ps->chunk[0] = malloc(PYSTACK_CHUNK_MAX);
    ps->chunk[1] = malloc(PYSTACK_CHUNK_MAX);
    ps->tids = calloc(PYSTACK_MAX_THREADS, sizeof *ps->tids);
    ps->numbers = calloc(PYSTACK_MAX_THREADS, sizeof *ps->numbers);
    ps->clocks = calloc(PYSTACK_MAX_THREADS, sizeof *ps->clocks);
    ps->clocks_next = calloc(PYSTACK_MAX_THREADS, sizeof *ps->clocks_next);
    if (!ps->frames || !ps->places || !ps->raw || !ps->chunk[0] || !ps->chunk[1] || !ps->tids ||
        !ps->numbers || !ps->clocks || !ps->clocks_next)
        return -1;
    return pystack_codes_init(&ps->codes);
}

/* The process of these threads, and its numbering. */
static void pystack_identify(struct pystack *ps, pid_t pid) {
    struct procfs_status st;
    ps->main_tid = pid ? pid : getpid();
    ps->other_namespace = pid && pystack_in_other_namespace(pid);
    if (ps->other_namespace && procfs_read_status(pid, 0, &st) == 0)
        ps->main_tid = (pid_t)st.ns_pid;
    ps->started_at = procfs_started_at(pid);
}

static struct pystack *pystack_open_as(pid_t pid, const char *strategy, enum pystack_lack *lack,
                                       struct err *e) {
    *lack = PYSTACK_LACKS_RIGHT;
    if (pid == getpid())
        pid = 0;
    struct pystack *ps = calloc(1, sizeof *ps);
    if (!ps || pystack_allocate(ps) != 0) {
        err_set(e, ERR_FAILED, "out of memory while opening process %d", (int)pid);
        pystack_close(ps);
        return NULL;
    }
    ps->pid = pid;
    ps->self = pid == 0;
    ps->pthread_tid = -1;
    mem_init_process(&ps->reader.mem, pid ? pid : getpid());
    if (pid)
        mem_identify(pid, &ps->identity);
    if (pystack_discover(ps, pid, strategy, lack, e) != 0) {
        pystack_close(ps);
        return NULL;
    }
    if (!pystack_is_same(ps)) {
        *lack = PYSTACK_LACKS_START;
        err_set(e, ERR_ATTACH, "process %d started another program (exec), or ended, while it was opened",
                (int)pid);
        pystack_close(ps);
        return NULL;
    }
    pystack_identify(ps, pid);
    return ps;
}

struct pystack *pystack_open(pid_t pid, struct err *e) {
    return pystack_open_by(pid, NULL, e);
}

struct pystack *pystack_open_by(pid_t pid, const char *strategy, struct err *e) {
    enum pystack_lack ignored;
    return pystack_open_as(pid, strategy, &ignored, e);
}

struct pystack *pystack_open_young(pid_t pid, enum pystack_lack *lack, struct err *e) {
    return pystack_open_as(pid, NULL, lack, e);
}

struct pystack *pystack_open_memory(const struct mem *mem, const struct pystack_offsets *off,
                                    uint64_t runtime) {
    struct pystack *ps = calloc(1, sizeof *ps);
    if (!ps || pystack_allocate(ps) != 0) {
        pystack_close(ps);
        return NULL;
    }
    ps->self = true;
    ps->pthread_tid = -1;
    ps->reader.mem = *mem;
    ps->reader.off = *off;
    ps->info = (struct pystack_info){
        .major = off->major, .minor = off->minor, .discovery = "memory", .runtime = runtime};
    pystack_identify(ps, 0);
    return ps;
}

void pystack_close(struct pystack *ps) {
    if (!ps)
        return;
    pystack_native_fini(ps);
    pystack_waits_fini(ps);
    mem_fini(&ps->reader.mem);
    pystack_names_fini(&ps->names);
    pystack_codes_fini(&ps->codes);
    free(ps->frames);
    free(ps->places);
    free(ps->raw);
    free(ps->chunk[0]);
    free(ps->chunk[1]);
    free(ps->tids);
    free(ps->numbers);
    free(ps->clocks);
    free(ps->clocks_next);
    free(ps->loaders);
    free(ps);
}

bool pystack_is_same(const struct pystack *ps) { return ps->self || mem_is_same(ps->pid, &ps->identity); }

void pystack_read_through(struct pystack *ps, const struct mem *mem) {
    mem_fini(&ps->reader.mem);
    mem_share_image(&ps->reader.mem, mem);
}

void pystack_set_asker(struct pystack *ps, const struct pystack_asker *asker) { ps->asker = *asker; }

const struct pystack_info *pystack_get_info(const struct pystack *ps) { return &ps->info; }

int pystack_own_file(const struct pystack *ps) {
    return mem_is_file(&ps->reader.mem) ? ps->reader.mem.file - 1 : -1;
}
