/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths that others name, and what of theirs goes to a terminal: nothing is opened before it is known to be a plain file, links lead
 * nowhere, output is ours alone and holds nothing that a terminal obeys.
 *
 * That nothing was opened is told by inotify(7): a descriptor that only stands for a file (O_PATH) makes no event, an open does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/target/exit_reason.h"
#include "client/symbols/frame_file.h"
#include "client/output.h"
#include "client/target/rings.h"
#include "client/symbols/source_text.h"
#include "client/target/tcp.h"
#include "client/export/trace_file.h"
#include "pystack/mapped.h"
#include "store/recording/archive.h"
#include "store/ring/ring_reader.h"

static char folder[64];

static const char *at(const char *name) {
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text) {
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static int set_up(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/probing-test-paths-XXXXXX");
    (void)alarm(60); /* a FIFO that is opened waits */
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state) {
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static mode_t mode_of(const char *path) {
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

/* ---- nothing is opened ---- */

static void look_at_source(const char *path) {
    struct source_text *text = calloc(1, sizeof *text);
    struct err e;
    assert_non_null(text);
    assert_int_equal(source_read(text, getpid(), path, 1, &e), -1);
    assert_int_equal(source_read(text, 0, path, 1, &e), -1);
    free(text);
}

static void look_at_table(const char *path) {
    struct err e;
    assert_null(ring_reader_open(path, geteuid(), &e));
}

static void look_at_mapped(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(mapped_open(getpid(), path, st.st_ino), -1);
    assert_int_equal(mapped_open_beside(getpid(), folder, strrchr(path, '/') + 1, path, st.st_ino), -1);
}

static void look_at_recording(const char *path) { assert_false(archive_is_one(path)); }

static void look_at_fatal(const char *path) {
    struct rings_place place = {.owner = geteuid(), .modified_at = 0};
    char how[256];
    (void)path;
    (void)snprintf(place.path, sizeof place.path, "%s", folder);
    exit_reason_explain(&place, 0, how, sizeof how);
}

static void look_at_door(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char text[64];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/1.sock", folder);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    (void)close(fd);
    put("1.door", "text");
    assert_int_equal(tcp_read_beside(at("1.sock"), at("1.door"), text, sizeof text), 0);
    assert_string_equal(text, "text");
    assert_int_equal(tcp_read_beside(at("1.sock"), path, text, sizeof text), -1);
}

static void test_what_is_no_plain_file_is_not_opened(void **state) {
    static void (*const looks[])(const char *) = {look_at_source,    look_at_table, look_at_mapped,
                                                  look_at_recording, look_at_fatal, look_at_door};
    struct inotify_event event;
    (void)state;
    assert_int_equal(mkfifo(at(RING_DIR_FATAL), 0600), 0);
    char fifo[PATH_MAX];
    (void)snprintf(fifo, sizeof fifo, "%s", at(RING_DIR_FATAL));
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(notify >= 0 && inotify_add_watch(notify, fifo, IN_OPEN) >= 0);
        looks[i](fifo);
        assert_int_equal(read(notify, &event, sizeof event), -1);
        assert_int_equal(errno, EAGAIN);
        /* The watch would have told. */
        int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        (void)close(fd);
        assert_true(read(notify, &event, sizeof event) > 0);
        (void)close(notify);
    }
    (void)unlink(fifo);
}

/* ---- sources ---- */

/* The first line, or why there is none. */
static const char *source_line(pid_t pid, const char *path) {
    static struct source_text text;
    struct err e;
    return source_read(&text, pid, path, 1, &e) == 0 ? text.lines[0] : "";
}

static void test_sources_are_read_below_the_root(void **state) {
    (void)state;
    char done = 0;
    int ready[2], end[2];
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir(at("root"), 0755), 0);
    assert_int_equal(mkdir(at("root/job"), 0755), 0);
    put("secret", "outer");
    put("root/inner.py", "inner");
    put("root/job/near.py", "near");
    assert_int_equal(symlink("../../secret", at("root/job/up.py")), 0);
    assert_int_equal(symlink(at("secret"), at("root/job/absolute.py")), 0);
    assert_int_equal(symlink("/inner.py", at("root/job/link.py")), 0);
    assert_true(pipe2(ready, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(end[1]);
        if (chroot(at("root")) != 0 || chdir("/job") != 0 || write(ready[1], &done, 1) != 1)
            _exit(1);
        (void)!read(end[0], &done, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &done, 1), 1);
    assert_string_equal(source_line(child, "/inner.py"), "inner");
    assert_string_equal(source_line(child, "/job/link.py"), "inner");
    assert_string_equal(source_line(child, "near.py"), "near");
    assert_string_equal(source_line(child, "../inner.py"), "inner");
    assert_string_equal(source_line(child, "link.py"), "inner");
    static const char *const outside[] = {"up.py",      "absolute.py",      "../../secret",
                                          "/job/up.py", "/job/absolute.py", "/../secret"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_string_equal(source_line(child, outside[i]), "");
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(end[i]);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- root's editor ---- */

static void test_an_editor_of_root_opens_no_file_of_others(void **state) {
    static const uid_t other = 54329;
    char path[PATH_MAX];
    struct err e;
    (void)state;
    if (geteuid() != 0)
        skip();
    (void)unsetenv("SUDO_UID");
    assert_int_equal(mkdir(at("own"), 0755), 0);
    put("own/train.py", "pass\n");
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), 0);
    /* His file, then ours in a folder of his, then in one of everybody's. */
    assert_int_equal(chown(at("own/train.py"), other, other), 0);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), -1);
    assert_non_null(strstr(e.text, "not opened as root"));
    assert_int_equal(chown(at("own/train.py"), 0, 0), 0);
    assert_int_equal(chown(at("own"), other, other), 0);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), -1);
    /* It is he who is root by sudo. */
    (void)setenv("SUDO_UID", "54329", 1);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), 0);
    (void)setenv("SUDO_UID", "", 1);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), -1);
    assert_int_equal(chown(at("own"), 0, 0), 0);
    assert_int_equal(chmod(at("own"), 0777), 0);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), -1);
    assert_int_equal(chmod(at("own"), 01777), 0);
    assert_int_equal(frame_file_find(0, at("own/train.py"), path, sizeof path, &e), 0);
}

/* ---- names of traces ---- */

static void test_names_of_traces(void **state) {
    static const char *const none[] = {"",
                                       "/",
                                       "profile-7-1.json/",
                                       "profile-7-.json",
                                       "profile-8-1.json",
                                       "profile-77-1.json",
                                       "profile-7-1.json.",
                                       "profile-7-1.jso",
                                       "profile-7-1x.json",
                                       "profile--7-1.json",
                                       "xprofile-7-1.json",
                                       "/etc/passwd",
                                       "profile-7-1.json/..",
                                       "profile-7-123456789012345678901234567890.json"};
    (void)state;
    assert_string_equal(trace_file_name("/x/../y/profile-7-1700000000000.json", 7),
                        "profile-7-1700000000000.json");
    assert_string_equal(trace_file_name("profile-7-1.json", 7), "profile-7-1.json");
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(trace_file_name(none[i], 7));
}

/* ---- moving a trace ---- */

static bool stop_at_once(void) { return true; }

/* A trace of our own where this process's tables would lie, of `size` bytes: its path. */
static const char *put_trace(off_t size) {
    static char path[128];
    char base[64];
    (void)snprintf(base, sizeof base, "/dev/shm/probing-%u", (unsigned)geteuid());
    assert_true(mkdir(base, 0700) == 0 || errno == EEXIST);
    (void)snprintf(path, sizeof path, "%s/profile-%d-1.json", base, (int)getpid());
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    (void)close(fd);
    return path;
}

static void test_a_trace_is_moved_within_bounds(void **state) {
    struct stat st;
    struct err e;
    (void)state;
    const char *trace = put_trace(100000);
    assert_int_equal(trace_file_move(getpid(), trace, at("moved"), stop_at_once, &e), -1);
    assert_non_null(strstr(e.text, "interrupted"));
    assert_int_equal(access(at("moved"), F_OK), -1);
    assert_int_equal(access(trace, F_OK), 0);
    /* Another process did not write it, and one that is gone did not, either. */
    assert_int_equal(trace_file_move(getppid(), trace, at("moved"), NULL, &e), -1);
    assert_int_equal(trace_file_move(0, trace, at("moved"), NULL, &e), -1);
    assert_int_equal(trace_file_move(getpid(), trace, "/nowhere/moved", NULL, &e), -1);
    assert_int_equal(access(trace, F_OK), 0);
    assert_int_equal(trace_file_move(getpid(), trace, at("moved"), NULL, &e), 0);
    assert_int_equal(stat(at("moved"), &st), 0);
    assert_int_equal(st.st_size, 100000);
    assert_int_equal(mode_of(at("moved")), 0600);
    assert_int_equal(access(trace, F_OK), -1);
    /* Empty of content, but so large that it would fill a disk. */
    trace = put_trace((off_t)3 << 30);
    assert_int_equal(trace_file_move(getpid(), trace, at("large"), NULL, &e), -1);
    assert_non_null(strstr(e.text, "more than is copied"));
    assert_int_equal(access(at("large"), F_OK), -1);
    assert_int_equal(unlink(trace), 0);
}

/* ---- recordings ---- */

static void test_recordings(void **state) {
    char path[PATH_MAX], beside[PATH_MAX + 8];
    struct err e;
    (void)state;
    (void)snprintf(path, sizeof path, "%s", at("run.db"));
    struct archive_writer *w = archive_create(path, &e);
    assert_non_null(w);
    assert_int_equal(mode_of(path), 0600);
    assert_null(archive_create(path, &e));
    assert_non_null(strstr(e.text, "already exists"));
    assert_int_equal(archive_finish(w, &e), 0);
    struct archive *a = archive_open(path, &e);
    assert_non_null(a);
    archive_close(a);
    /* One that asks for a log: files beside it would be made, and mapped. */
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "\2\2", 2, 18), 2);
    (void)close(fd);
    assert_null(archive_open(path, &e));
    assert_non_null(strstr(e.text, "write-ahead log"));
    for (int i = 0; i < 2; i++) {
        (void)snprintf(beside, sizeof beside, "%s-%s", path, i ? "shm" : "wal");
        assert_int_equal(access(beside, F_OK), -1);
    }
    assert_null(archive_create(at("nowhere/run.db"), &e));
    assert_non_null(strstr(e.text, "cannot be written"));
}

/* ---- output ---- */

static const char *guarded(const char *text) {
    static struct strbuf out;
    strbuf_fini(&out);
    strbuf_init(&out, 0);
    assert_int_equal(output_guard(&out, text, strlen(text)), 0);
    return strbuf_str(&out);
}

#define X "\xef\xbf\xbd"

static void test_a_terminal_is_given_nothing_that_it_obeys(void **state) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"plain\ttext\nw\xc3\xb6rds \xe4\xb8\xbb\n", "plain\ttext\nw\xc3\xb6rds \xe4\xb8\xbb\n"},
        {"\x1b[0m\x1b[1;31mred\x1b[m\x1b[39;22m", "\x1b[0m\x1b[1;31mred\x1b[m\x1b[39;22m"},
        {"\x1b[8mhidden", X "[8mhidden"},
        {"\x1b[38;5;1m", X "[38;5;1m"},
        {"\x1b[7m\x1b[41m", X "[7m" X "[41m"},
        {"\x1b[31", X "[31"},
        {"\x1b[0000031m", X "[0000031m"},
        {"\x1b[2J\x1b[H", X "[2J" X "[H"},
        {"\x1b]52;c;RE9PUg==\a", X "]52;c;RE9PUg==" X},
        {"\x1b", X},
        {"a\rb\bc\x7f", "a" X "b" X "c" X},
        {"\x9b"
         "31m\xc2\x9b"
         "31m\xc2\x85",
         X "31m" X "31m" X},
        {"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f", X X X X},
        {"\xe2\x80\xa8", X},
        {"\xff\xc0\x80", X X X},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(guarded(rows[i].text), rows[i].expected);
}

static void test_files_are_ours_alone(void **state) {
    struct strbuf text;
    struct err e;
    (void)state;
    mode_t mask = umask(0);
    strbuf_init(&text, 0);
    (void)strbuf_adds(&text, "\x1b[8mraw\r\n");
    assert_int_equal(output_write(at("new"), &text, &e), 0);
    assert_int_equal(mode_of(at("new")), 0600);
    /* Of one that is there the permissions are kept; what a link of ours names is replaced. */
    put("old", "old");
    assert_int_equal(chmod(at("old"), 0640), 0);
    assert_int_equal(symlink("old", at("link")), 0);
    assert_int_equal(output_write(at("link"), &text, &e), 0);
    assert_int_equal(mode_of(at("old")), 0640);
    int fd = open(at("old"), O_RDONLY | O_CLOEXEC);
    char back[32];
    assert_int_equal(read(fd, back, sizeof back), text.len); /* no terminal: as it is */
    assert_memory_equal(back, text.data, text.len);
    (void)close(fd);
    strbuf_fini(&text);
    (void)umask(mask);
}

static void test_what_others_have_planted_is_not_followed(void **state) {
    struct strbuf text;
    struct err e;
    (void)state;
    if (geteuid() != 0)
        skip();
    strbuf_init(&text, 0);
    (void)strbuf_adds(&text, "values");
    put("victim", "precious");
    assert_int_equal(symlink("victim", at("planted")), 0);
    assert_int_equal(lchown(at("planted"), 54329, 54329), 0);
    assert_int_equal(mkfifo(at("fifo"), 0666), 0);
    assert_int_equal(chown(at("fifo"), 54329, 54329), 0);
    assert_int_equal(output_write(at("planted"), &text, &e), -1);
    assert_non_null(strstr(e.text, "is a link of user 54329"));
    assert_int_equal(output_check(at("planted"), &e), -1);
    assert_int_equal(output_write(at("fifo"), &text, &e), -1);
    assert_non_null(strstr(e.text, "is a FIFO of user 54329"));
    strbuf_fini(&text);
}

static void test_a_file_in_parts(void **state) {
    struct output_file f;
    struct err e;
    (void)state;
    assert_int_equal(output_file_begin(&f, at("parts"), &e), 0);
    assert_int_equal(access(at("parts"), F_OK), -1);
    assert_int_equal(write(f.fd, "x", 1), 1);
    assert_int_equal(output_file_end(&f, at("parts"), &e), 0);
    assert_int_equal(mode_of(at("parts")), 0600);
    assert_int_equal(output_file_begin(&f, at("parts"), &e), 0);
    output_file_drop(&f);
    assert_int_equal(access(f.temp, F_OK), -1);
    assert_int_equal(access(at("parts"), F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_plain_file_is_not_opened),
        cmocka_unit_test(test_sources_are_read_below_the_root),
        cmocka_unit_test(test_an_editor_of_root_opens_no_file_of_others),
        cmocka_unit_test(test_names_of_traces),
        cmocka_unit_test(test_a_trace_is_moved_within_bounds),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_a_terminal_is_given_nothing_that_it_obeys),
        cmocka_unit_test(test_files_are_ours_alone),
        cmocka_unit_test(test_what_others_have_planted_is_not_followed),
        cmocka_unit_test(test_a_file_in_parts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
