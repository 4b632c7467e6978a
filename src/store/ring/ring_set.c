/* SPDX-License-Identifier: Apache-2.0 */
/* ring_set: see ring_set.h. */
#include "store/ring/ring_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/ring/ring_dir.h"

struct ring_set {
    const struct ring_table_def *tables;
    size_t n;
    struct ring *rings[RING_SET_MAX];
    int dir; /* locked; -1 in memory only */
    char path[RING_DIR_PATH];
    char note[256];
};

static void ring_set_add_note(struct ring_set *s, const struct err *why) {
    if (!s->note[0])
        snprintf(s->note, sizeof s->note, "%s", why->text);
}

/* Size of the file of table `i`. Every table has the minimum; the rest is divided by weight. A
 * sixteenth and 17 KB are for the chunk in the writer's memory, its strings' index and its
 * directory. */
static size_t ring_set_share(const struct ring_set *s, size_t i, size_t total) {
    size_t weights = 0, rest = total - s->n * RING_SET_TABLE_MIN;
    for (size_t k = 0; k < s->n; k++)
        weights += s->tables[k].weight;
    size_t share = RING_SET_TABLE_MIN + (size_t)((double)rest * s->tables[i].weight / (double)weights);
    return share - share / 16 - (size_t)17 * 1024;
}

/* Make a file in memory, sealed so that nobody can shorten it. */
static int ring_set_memory_file(const char *table) {
    int fd = (int)syscall(SYS_memfd_create, table, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    return fd;
}

static void ring_set_make(struct ring_set *s, const struct ring_owner *of, size_t total) {
    struct ring_owner owner = *of;
    owner.made_at = clock_epoch_s();
    for (size_t i = 0; i < s->n; i++) {
        struct err why = {.code = ERR_OK};
        const char *name = s->tables[i].name;
        int fd = s->dir >= 0 ? ring_dir_begin_file(s->dir, name) : ring_set_memory_file(name);
        if (fd < 0)
            err_set_errno(&why, ERR_FAILED, errno, "table %s: cannot be made", name);
        else
            s->rings[i] = ring_create(fd, &s->tables[i], &owner, ring_set_share(s, i, total), &why);
        if (s->rings[i] && s->dir >= 0 && ring_dir_finish_file(s->dir, name) != 0) {
            err_set_errno(&why, ERR_FAILED, errno, "table %s: cannot be made", name);
            ring_close(s->rings[i]);
            s->rings[i] = NULL;
        }
        if (!s->rings[i])
            ring_set_add_note(s, &why);
    }
}

static size_t ring_set_count(const struct ring_set *s) {
    size_t made = 0;
    for (size_t i = 0; i < s->n; i++)
        made += s->rings[i] != NULL;
    return made;
}

static void ring_set_clear(struct ring_set *s, bool remove) {
    for (size_t i = 0; i < s->n; i++) {
        ring_close(s->rings[i]);
        s->rings[i] = NULL;
    }
    if (s->dir >= 0) {
        if (remove)
            ring_dir_remove(s->dir, s->path);
        close(s->dir);
    }
    s->dir = -1;
    s->path[0] = '\0';
}

/* Try one place. Returns whether all tables exist now. */
static bool ring_set_try(struct ring_set *s, const char *base, const struct ring_owner *owner,
                         size_t max_bytes) {
    struct err why = {.code = ERR_OK};
    s->dir = ring_dir_create(base, owner->pid, owner->start_ticks, s->path, &why);
    if (s->dir < 0) {
        ring_set_add_note(s, &why);
        s->path[0] = '\0';
        return false;
    }
    uint64_t room = ring_dir_free_bytes(base);
    size_t total = room < max_bytes ? (size_t)room : max_bytes;
    if (total >= s->n * RING_SET_TABLE_MIN)
        ring_set_make(s, owner, total);
    else
        err_set(&why, ERR_FAILED, "%s: is nearly full", base);
    if (ring_set_count(s) == s->n)
        return true;
    if (why.code != ERR_OK)
        ring_set_add_note(s, &why);
    ring_set_clear(s, true);
    return false;
}

struct ring_set *ring_set_open(const struct ring_table_def *tables, size_t n, const struct ring_owner *owner,
                               const char *data_dir, size_t max_bytes, struct err *e) {
    if (n == 0 || n > RING_SET_MAX || max_bytes < n * RING_SET_TABLE_MIN) {
        err_set(e, ERR_FAILED, "%zu bytes are too little for %zu tables; at least %zu are needed", max_bytes,
                n, n * RING_SET_TABLE_MIN);
        return NULL;
    }
    struct ring_set *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "out of memory");
        return NULL;
    }
    s->tables = tables;
    s->n = n;
    s->dir = -1;
    for (int i = 0; i < RING_DIR_BASES; i++) {
        char base[RING_DIR_PATH];
        if (ring_dir_base(base, i, data_dir, geteuid(), 0) == 0 && ring_set_try(s, base, owner, max_bytes))
            return s;
    }
    ring_set_make(s, owner, max_bytes);
    if (ring_set_count(s) > 0)
        return s;
    err_set(e, ERR_FAILED, "no place for the tables: %s", s->note);
    free(s);
    return NULL;
}

struct ring *ring_set_get(const struct ring_set *s, size_t i) {
    return i < s->n ? s->rings[i] : NULL;
}

void ring_set_each_fd(const struct ring_set *s, void (*fn)(int fd)) {
    for (size_t i = 0; i < s->n; i++)
        if (s->rings[i])
            fn(ring_file(s->rings[i]));
    if (s->dir >= 0)
        fn(s->dir);
}

const char *ring_set_path(const struct ring_set *s) { return s->path; }

const char *ring_set_note(const struct ring_set *s) { return s->note; }

int ring_set_flush(struct ring_set *s) {
    int rc = 0, problem = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->rings[i] && ring_flush(s->rings[i]) != 0) {
            problem = errno;
            rc = -1;
        }
    errno = problem;
    return rc;
}

void ring_set_expire(struct ring_set *s, double now) {
    for (size_t i = 0; i < s->n; i++)
        if (s->rings[i] && s->tables[i].retention_s > 0)
            ring_expire(s->rings[i], now - s->tables[i].retention_s);
}

void ring_set_close(struct ring_set *s, bool remove) {
    if (!s)
        return;
    ring_set_clear(s, remove);
    free(s);
}

void ring_set_abandon(struct ring_set *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        ring_abandon(s->rings[i]);
    free(s);
}
