/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_static: finds the interpreter of a Python that has no _PyRuntime (up to 3.6).
 *
 * Its list of interpreters is the static variable interp_head of Python/pystate.c, its GIL static variables of
 * Python/ceval_gil.h; only _PyThreadState_Current is exported. Symbols for debuggers name them all; without these the list is
 * looked for in the writable data of the image, and who waits for the GIL stays unknown.
 */
#include "pystack/discover_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf.h"

#define STATIC_GIL_SPAN_MAX 1024 /* the GIL's mutexes and condition variables lie side by side */
#define STATIC_PRIMITIVE 48 /* bytes of the last of them, whichever it is (glibc: a condition variable) */
#define STATIC_ATTEMPTS 5   /* lists may change while they are read */

/* Does the image have what such a Python exports? Then where _PyThreadState_Current is. */
static int static_open(struct discover *d, const struct discover_image *image, struct elf_image *img,
                       uint64_t *current) {
    uint64_t runtime;
    if (elf_open_memory(img, &d->ps->reader.mem, image->base) != 0 ||
        elf_find_symbol(img, "_PyRuntime", &runtime, NULL) == 0)
        return -1;
    return elf_find_symbol(img, "_PyThreadState_Current", current, NULL);
}

/* Try the variable at `head` as that of each version it may be. */
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

/* Where the GIL's mutexes and condition variables are, by the symbols of the file. */
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

/* The run-time address of a variable, by the symbols of the file; 0 not there. */
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
        (void)close(fd);
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
    bool within;       /* the mapping before this one was the image's */
    uint64_t heads[2]; /* where pointers to interpreters were found, that with the longest list first */
    size_t lengths[2];
};

/* Number of interpreters in the list that begins at `interp`; 0 when it is none. */
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
        /* The other is autoInterpreterState: the first interpreter, which is alone in the list now but need not stay so. */
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
