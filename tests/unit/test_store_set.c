/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where rings lie: folders of the living, the dead and of others; the limit of memory; file systems that are full, small or
 * read-only; memory only.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/ring/ring_dir.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_set.h"
#include "store/ring/ring_tables.h"

static const struct ring_owner owner = {
    .pid = 4711, .start_ticks = 42, .rank = RING_INT_NULL, .started_at = NAN};

static char base[64];

static int make_base(void **state) {
    (void)state;
    (void)snprintf(base, sizeof base, "/tmp/ring-set-XXXXXX");
    return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state) {
    (void)state;
    (void)ring_dir_prune(base, geteuid(), 1e18, UINT64_MAX);
    return rmdir(base);
}

static struct ring_set *open_set(size_t bytes) {
    struct err e;
    struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, base, bytes, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static uint64_t total_bytes(const struct ring_set *s) {
    uint64_t total = 0;
    for (size_t i = 0; i < RING_TABLE_KEPT; i++) {
        struct ring_counts c;
        assert_non_null(ring_set_get(s, i));
        ring_get_counts(ring_set_get(s, i), &c);
        total += c.file_bytes + c.memory_bytes;
    }
    return total;
}

static void append_memory(struct ring_set *s, int n) {
    for (int i = 0; i < n; i++) {
        union ring_value v[RING_MEMORY_COUNT] = {{.f = 1000.0 + i}, {.f = i},   {.f = NAN},
                                                 {.f = NAN},        {.f = NAN}, {.i = i}};
        assert_int_equal(ring_append(ring_set_get(s, RING_MEMORY), v), 0);
    }
}

static uint64_t rows_of(const char *path) {
    struct err e;
    struct ring_reader *in = ring_reader_open(path, geteuid(), &e);
    uint64_t oldest, next;
    if (!in)
        fail_msg("%s", e.text);
    ring_reader_range(in, &oldest, &next);
    ring_reader_close(in);
    return next - oldest;
}

static void all_tables_stay_within_the_limit(void **state) {
    (void)state;
    static const size_t limits[] = {RING_TABLE_KEPT * (size_t)65536, (size_t)2048 * 1024, (size_t)5000000,
                                    RING_SET_DEFAULT_BYTES, (size_t)256 * 1024 * 1024};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct ring_set *s = open_set(limits[i]);
        uint64_t total = total_bytes(s);
        if (total > limits[i] || total < limits[i] * 7 / 10)
            fail_msg("%llu bytes of %zu", (unsigned long long)total, limits[i]);
        assert_string_equal(ring_set_note(s), "");
        ring_set_close(s, true);
    }
    struct err e;
    assert_null(ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, base, 100000, &e));
    assert_non_null(strstr(e.text, "too little"));
}

static void a_folder_is_alive_as_long_as_its_writer(void **state) {
    (void)state;
    struct ring_set *s = open_set(2 << 20);
    char path[RING_DIR_PATH], file[RING_DIR_PATH + 64];
    (void)snprintf(path, sizeof path, "%s", ring_set_path(s));
    (void)snprintf(file, sizeof file, "%s/python.memory.ring", path);
    assert_non_null(strstr(path, "/4711-42"));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    append_memory(s, 10);
    assert_int_equal(rows_of(file), 0);
    assert_int_equal(ring_set_flush(s), 0);
    assert_int_equal(rows_of(file), 10);
    assert_int_equal(ring_dir_alive(path), 1);
    /* Another one with the same pid, in another namespace, has a folder of its own. */
    struct ring_set *other = open_set(2 << 20);
    assert_string_not_equal(ring_set_path(other), path);
    assert_int_equal(rows_of(file), 10);
    ring_set_close(other, true);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1e18, UINT64_MAX), 0);
    ring_set_close(s, false);
    assert_int_equal(ring_dir_alive(path), 0);
    assert_int_equal(rows_of(file), 10);
    /* Not yet old, and not too large; then old. */
    assert_int_equal(ring_dir_prune(base, geteuid(), 1000, UINT64_MAX), 0);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1000, 4 << 20), 0);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1e18, UINT64_MAX), 1);
    assert_int_equal(access(path, F_OK), -1);
}

static int add_bytes(const struct ring_dir_entry *entry, void *arg) {
    *(uint64_t *)arg += entry->bytes;
    return 0;
}

/* Of dead ones the newest stay, as many as may take that much. */
static void the_dead_take_no_more_than_they_may(void **state) {
    (void)state;
    char paths[3][RING_DIR_PATH];
    for (int i = 0; i < 3; i++) {
        struct ring_owner other = owner;
        struct err e;
        other.start_ticks += (uint64_t)i + 1;
        struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &other, base, 2 << 20, &e);
        assert_non_null(s);
        (void)snprintf(paths[i], RING_DIR_PATH, "%s", ring_set_path(s));
        ring_set_close(s, false);
        for (size_t k = 0; k < RING_TABLE_KEPT; k++) {
            char file[RING_DIR_PATH + 64];
            struct timespec at[2] = {{.tv_sec = 2000000000 + i}, {.tv_sec = 2000000000 + i}};
            (void)snprintf(file, sizeof file, "%s/%s.ring", paths[i], RING_TABLES[k].name);
            assert_int_equal(utimensat(AT_FDCWD, file, at, 0), 0);
        }
    }
    uint64_t all = 0;
    (void)ring_dir_each(base, geteuid(), add_bytes, &all);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1000, all), 0);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1000, all - 1), 1);
    assert_int_equal(access(paths[0], F_OK), -1);
    assert_int_equal(access(paths[1], F_OK) + access(paths[2], F_OK), 0);
    assert_int_equal(ring_dir_prune(base, geteuid(), 1000, 0), 2);
}

static void a_new_agent_in_the_same_process_begins_anew(void **state) {
    (void)state;
    struct ring_set *s = open_set(2 << 20);
    char path[RING_DIR_PATH], file[RING_DIR_PATH + 64];
    (void)snprintf(path, sizeof path, "%s", ring_set_path(s));
    (void)snprintf(file, sizeof file, "%s/python.memory.ring", path);
    append_memory(s, 3);
    ring_set_close(s, false);
    s = open_set(2 << 20);
    assert_string_equal(ring_set_path(s), path);
    assert_int_equal(rows_of(file), 0);
    ring_set_close(s, true);
    assert_int_equal(access(path, F_OK), -1);
}

static int count_one(const struct ring_dir_entry *entry, void *arg) {
    int *alive = arg;
    assert_int_equal(entry->pid, 4711);
    assert_int_equal(entry->start_ticks, 42);
    *alive += entry->alive ? 100 : 1;
    return 0;
}

static void folders_are_found(void **state) {
    (void)state;
    struct ring_set *s = open_set(2 << 20);
    char odd[RING_DIR_PATH];
    int seen = 0;
    (void)snprintf(odd, sizeof odd, "%s/not-a-pid", base);
    assert_int_equal(mkdir(odd, 0700), 0);
    assert_int_equal(ring_dir_each(base, geteuid(), count_one, &seen), 0);
    assert_int_equal(seen, 100);
    seen = 0;
    assert_int_equal(ring_dir_each(base, geteuid() + 1, count_one, &seen), 0);
    assert_int_equal(seen, 0);
    ring_set_close(s, false);
    assert_int_equal(ring_dir_each(base, geteuid(), count_one, &seen), 0);
    assert_int_equal(seen, 1);
    assert_int_equal(ring_dir_each("/nonexistent", geteuid(), count_one, &seen), 0);
    (void)rmdir(odd);
    (void)ring_dir_prune(base, geteuid(), 1e18, UINT64_MAX);
}

static void a_folder_of_others_or_a_link_is_not_used(void **state) {
    (void)state;
    char path[RING_DIR_PATH], link[128];
    struct err e;
    (void)snprintf(link, sizeof link, "%s/link", base);
    assert_int_equal(symlink("/tmp", link), 0);
    assert_int_equal(ring_dir_create(link, 1, 1, path, &e), -1);
    (void)unlink(link);
    assert_int_equal(mkdir(link, 0700), 0);
    assert_int_equal(chmod(link, 0777), 0);
    assert_int_equal(ring_dir_create(link, 1, 1, path, &e), -1);
    assert_non_null(strstr(e.text, "not a private folder of this user"));
    (void)rmdir(link);
    assert_int_equal(ring_dir_create("/proc/nothing", 1, 1, path, &e), -1);
    assert_int_equal(ring_dir_base(path, 0, "relative", 0, 0), -1);
    assert_int_equal(ring_dir_base(path, 0, NULL, 0, 0), -1);
    assert_int_equal(ring_dir_base(path, 1, NULL, 17, 0), 0);
    assert_string_equal(path, "/dev/shm/probing-17");
}

static void rows_expire_by_each_tables_retention(void **state) {
    (void)state;
    struct ring_set *s = open_set(2 << 20);
    for (int i = 0; i < 60; i++)
        append_memory(s, 100);
    ring_set_expire(s, 1000.0 + 24 * 3600 - 1);
    struct ring_counts before, after;
    ring_get_counts(ring_set_get(s, RING_MEMORY), &before);
    ring_set_expire(s, 1000.0 + 100 + 24 * 3600);
    ring_get_counts(ring_set_get(s, RING_MEMORY), &after);
    assert_true(after.oldest_seq > before.oldest_seq);
    ring_set_close(s, true);
}

/* ---- file systems: each in a mount namespace of a child ---- */

enum { CANNOT_MOUNT = 77 };

/* Run `fn` in a child that has a tmpfs of `bytes` at `base`. Whether it could be done. */
static bool with_tmpfs(const char *options, int (*fn)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        int rc = unshare(CLONE_NEWNS);
        if (rc != 0)
            rc = unshare(CLONE_NEWUSER | CLONE_NEWNS);
        if (rc != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", base, "tmpfs", 0, options) != 0 ||
            mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=16m,mode=700") != 0)
            _exit(CANNOT_MOUNT);
        _exit(fn());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == CANNOT_MOUNT)
        return false;
    if (WEXITSTATUS(status) != 0)
        fail_msg("failed at line %d", WEXITSTATUS(status) == 255 ? 0 : WEXITSTATUS(status) * 4);
    return true;
}

/* The number of a line, roughly: an exit status has eight bits. */
#define FAILED_HERE (__LINE__ / 4)

static uint64_t tmpfs_free(void) { return ring_dir_free_bytes(base) * 4; }

static void fill_up(void) {
    char file[128], block[65536];
    (void)snprintf(file, sizeof file, "%s/filler", base);
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    memset(block, 1, sizeof block);
    for (size_t n = sizeof block; n > 0;)
        if (write(fd, block, n) <= 0)
            n /= 2;
    (void)close(fd);
}

/* Space is taken in advance: a file system that fills up later takes nothing from us. */
static int in_a_filling_tmpfs(void) {
    struct err e;
    uint64_t before = tmpfs_free();
    struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, base, (size_t)64 << 20, &e);
    if (!s || strncmp(ring_set_path(s), base, strlen(base)) != 0)
        return FAILED_HERE;
    if (before - tmpfs_free() > before / 4 + 65536)
        return FAILED_HERE; /* more than a quarter */
    fill_up();
    for (int i = 0; i < 20000; i++) {
        union ring_value v[RING_MEMORY_COUNT] = {{.f = i}, {.f = i}, {.f = i}, {.f = i}, {.f = i}, {.i = i}};
        if (ring_append(ring_set_get(s, RING_MEMORY), v) != 0)
            return FAILED_HERE;
    }
    struct ring_counts c;
    if (ring_set_flush(s) != 0)
        return FAILED_HERE;
    ring_get_counts(ring_set_get(s, RING_MEMORY), &c);
    if (c.lost != 0 || c.rows != 20000 || c.oldest_seq >= 20000 - 500)
        return FAILED_HERE;
    ring_set_close(s, true);
    return 0;
}

/* Somebody takes our space away and fills the disk: rows are lost and counted, nothing else happens. */
static int in_a_full_tmpfs(void) {
    struct err e;
    char file[RING_DIR_PATH + 64];
    struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, base, (size_t)64 << 20, &e);
    if (!s)
        return FAILED_HERE;
    (void)snprintf(file, sizeof file, "%s/python.memory.ring", ring_set_path(s));
    if (truncate(file, 0) != 0)
        return FAILED_HERE;
    fill_up();
    struct ring *r = ring_set_get(s, RING_MEMORY);
    for (int i = 0; i < 5000; i++) {
        union ring_value v[RING_MEMORY_COUNT] = {{.f = i}, {.f = i}, {.f = i}, {.f = i}, {.f = i}, {.i = i}};
        if (ring_append(r, v) != 0)
            return FAILED_HERE;
    }
    struct ring_counts c;
    if (ring_flush(r) == 0 || errno != ENOSPC)
        return FAILED_HERE;
    ring_get_counts(r, &c);
    if (c.lost == 0 || c.rows != 5000)
        return FAILED_HERE;
    /* Room again: it goes on, and the gap shows in the numbers of the rows. */
    (void)snprintf(file, sizeof file, "%s/filler", base);
    (void)unlink(file);
    for (int i = 0; i < 5; i++) {
        union ring_value v[RING_MEMORY_COUNT] = {{.f = i}, {.f = i}, {.f = i}, {.f = i}, {.f = i}, {.i = i}};
        (void)ring_append(r, v);
    }
    if (ring_flush(r) != 0)
        return FAILED_HERE;
    (void)snprintf(file, sizeof file, "%s/python.memory.ring", ring_set_path(s));
    struct ring_reader *in = ring_reader_open(file, geteuid(), &e);
    uint64_t oldest, next;
    if (!in)
        return FAILED_HERE;
    ring_reader_range(in, &oldest, &next);
    if (next != 5005 || oldest == 0)
        return FAILED_HERE;
    ring_reader_close(in);
    ring_set_close(s, true);
    return 0;
}

/* Too little room, or not to be written: the next place is taken, and it is said why. */
static int elsewhere(void) {
    struct err e;
    struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, base, (size_t)2 << 20, &e);
    if (!s || strncmp(ring_set_path(s), base, strlen(base)) == 0)
        return FAILED_HERE;
    if (!strstr(ring_set_note(s), base))
        return FAILED_HERE;
    for (size_t i = 0; i < RING_TABLE_KEPT; i++)
        if (!ring_set_get(s, i))
            return FAILED_HERE;
    ring_set_close(s, true);
    return 0;
}

static int in_a_read_only_tmpfs(void) {
    return mount(NULL, base, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0 ? elsewhere() : CANNOT_MOUNT;
}

/* No place at all. */
static int in_memory_only(void) {
    struct err e;
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_RDONLY, NULL) != 0 ||
        mount("tmpfs", "/tmp", "tmpfs", MS_RDONLY, NULL) != 0)
        return CANNOT_MOUNT;
    struct ring_set *s = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, NULL, (size_t)2 << 20, &e);
    if (!s || ring_set_path(s)[0] != '\0' || !ring_set_note(s)[0])
        return FAILED_HERE;
    union ring_value v[RING_MEMORY_COUNT] = {{.f = 1}, {.f = 2}, {.f = 3}, {.f = 4}, {.f = 5}, {.i = 6}};
    if (ring_append(ring_set_get(s, RING_MEMORY), v) != 0 || ring_set_flush(s) != 0)
        return FAILED_HERE;
    /* Readers find it among the descriptors; nobody can shorten it. */
    int found = 0;
    for (int fd = 3; fd < 64; fd++) {
        char path[64], name[256] = "";
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) < 0 || !strstr(name, "memfd:python.memory"))
            continue;
        if (ftruncate(fd, 0) == 0)
            return FAILED_HERE;
        struct ring_reader *in = ring_reader_open_fd(dup(fd), path, &e);
        size_t n;
        if (!in)
            return FAILED_HERE;
        (void)ring_reader_chunks(in, &n);
        found += n == 1;
        ring_reader_close(in);
    }
    ring_set_close(s, true);
    return found == 1 ? 0 : FAILED_HERE;
}

static void run_in_tmpfs(const char *options, int (*fn)(void)) {
    if (!with_tmpfs(options, fn)) {
        print_message("needs mounts: a tmpfs cannot be mounted in a namespace of our own\n");
        skip();
    }
}

static void a_file_system_that_fills_up_takes_nothing(void **state) {
    (void)state;
    run_in_tmpfs("size=16m,mode=700", in_a_filling_tmpfs);
}

static void a_full_file_system_loses_rows_and_nothing_else(void **state) {
    (void)state;
    run_in_tmpfs("size=16m,mode=700", in_a_full_tmpfs);
}

static void a_small_file_system_is_passed_over(void **state) {
    (void)state;
    run_in_tmpfs("size=256k,mode=700", elsewhere);
}

static void a_read_only_file_system_is_passed_over(void **state) {
    (void)state;
    run_in_tmpfs("size=16m,mode=700", in_a_read_only_tmpfs);
}

static void without_any_place_there_is_memory(void **state) {
    (void)state;
    run_in_tmpfs("size=16m,mode=700", in_memory_only);
}

/* One that a writer did not live to finish is nobody's table, and goes with the folder. */
static void an_unfinished_table_is_none(void **state) {
    char path[RING_DIR_PATH], name[RING_DIR_PATH + 64];
    struct err e;
    (void)state;
    int dir = ring_dir_create(base, 4244, 1, path, &e);
    assert_true(dir >= 0);
    int fd = ring_dir_begin_file(dir, "python.gc");
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    (void)snprintf(name, sizeof name, "%s/python.gc%s", path, RING_DIR_SUFFIX);
    assert_int_equal(access(name, F_OK), -1);
    ring_dir_remove(dir, path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(close(dir), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unfinished_table_is_none),
        cmocka_unit_test(all_tables_stay_within_the_limit),
        cmocka_unit_test(a_folder_is_alive_as_long_as_its_writer),
        cmocka_unit_test(the_dead_take_no_more_than_they_may),
        cmocka_unit_test(a_new_agent_in_the_same_process_begins_anew),
        cmocka_unit_test(folders_are_found),
        cmocka_unit_test(a_folder_of_others_or_a_link_is_not_used),
        cmocka_unit_test(rows_expire_by_each_tables_retention),
        cmocka_unit_test(a_file_system_that_fills_up_takes_nothing),
        cmocka_unit_test(a_full_file_system_loses_rows_and_nothing_else),
        cmocka_unit_test(a_small_file_system_is_passed_over),
        cmocka_unit_test(a_read_only_file_system_is_passed_over),
        cmocka_unit_test(without_any_place_there_is_memory),
    };
    return cmocka_run_group_tests(tests, make_base, remove_base);
}
