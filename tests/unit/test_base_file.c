/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that others name: what is not a regular file of the right owner is not opened, links go nowhere or stay below the folder.
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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

static char folder_path[64];
static int folder;

static int put(const char *name, const char *text) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return close(fd);
}

static int set_up(void **state) {
    (void)state;
    (void)snprintf(folder_path, sizeof folder_path, "/tmp/probing-test-file-XXXXXX");
    if (!mkdtemp(folder_path))
        return -1;
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(folder, "in", 0700), 0);
    put("plain", "plain");
    put("in/inner", "inner");
    assert_int_equal(symlinkat("plain", folder, "link"), 0);
    assert_int_equal(symlinkat("/plain", folder, "absolute"), 0);
    assert_int_equal(symlinkat("/etc/passwd", folder, "in/out"), 0);
    assert_int_equal(symlinkat("../../../../../../etc/passwd", folder, "in/up"), 0);
    assert_int_equal(symlinkat("in", folder, "folder-link"), 0);
    assert_int_equal(mkfifoat(folder, "fifo", 0600), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    static const char *const names[] = {"plain",  "in/inner", "link",        "absolute",
                                        "in/out", "in/up",    "folder-link", "fifo"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlinkat(folder, names[i], 0);
    (void)unlinkat(folder, "in", AT_REMOVEDIR);
    (void)close(folder);
    return rmdir(folder_path);
}

/* The text of the file, or "" when it was not opened. */
static const char *text_of(const char *path, enum file_links links, int64_t owner) {
    static char text[16];
    int fd = file_open_regular(folder, path, links, O_RDONLY, owner);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void test_regular_files_are_opened(void **state) {
    (void)state;
    assert_string_equal(text_of("plain", FILE_LINKS_REFUSED, FILE_ANY_OWNER), "plain");
    assert_string_equal(text_of("in/inner", FILE_LINKS_REFUSED, (int64_t)getuid()), "inner");
    assert_string_equal(text_of("link", FILE_LINKS_FOLLOWED, FILE_ANY_OWNER), "plain");
    assert_string_equal(text_of("/link", FILE_LINKS_IN_ROOT, FILE_ANY_OWNER), "plain");
    assert_string_equal(text_of("/absolute", FILE_LINKS_IN_ROOT, FILE_ANY_OWNER), "plain");
    assert_string_equal(text_of("folder-link/inner", FILE_LINKS_IN_ROOT, FILE_ANY_OWNER), "inner");
}

static void test_links_are_refused_or_stay_below(void **state) {
    (void)state;
    static const char *const refused[] = {"link", "absolute", "folder-link/inner", "in/out", "in/up"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(file_open_regular(folder, refused[i], FILE_LINKS_REFUSED, O_RDONLY, FILE_ANY_OWNER),
                         -1);
        assert_int_equal(errno, ELOOP);
    }
    assert_int_equal(file_open_regular(folder, "../etc", FILE_LINKS_REFUSED, O_RDONLY, FILE_ANY_OWNER), -1);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(file_take(folder, "/in/out", FILE_LINKS_IN_ROOT), -1);
    assert_int_equal(file_take(folder, "/in/up", FILE_LINKS_IN_ROOT), -1);
    assert_int_equal(file_take(folder, "/../etc/passwd", FILE_LINKS_IN_ROOT), -1);
}

static void test_what_has_effects_is_not_opened(void **state) {
    (void)state;
    (void)alarm(20); /* a FIFO that is opened waits */
    assert_int_equal(file_open_regular(folder, "fifo", FILE_LINKS_REFUSED, O_WRONLY, FILE_ANY_OWNER), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(file_open_regular(folder, "in", FILE_LINKS_REFUSED, O_RDONLY, FILE_ANY_OWNER), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(file_open_regular(AT_FDCWD, "/dev/null", FILE_LINKS_REFUSED, O_RDONLY, FILE_ANY_OWNER),
                     -1);
    assert_int_equal(errno, EINVAL);
    (void)alarm(0);
}

static void test_the_owner_is_checked(void **state) {
    (void)state;
    assert_int_equal(file_open_regular(folder, "plain", FILE_LINKS_REFUSED, O_RDONLY, (int64_t)getuid() + 1),
                     -1);
    assert_int_equal(errno, EPERM);
}

/* Plain by their type, but the kernel's own: some of them are changed by whoever opens or reads them. */
static void test_files_of_the_kernel_are_not_opened(void **state) {
    (void)state;
    static const char *const names[] = {"/proc/self/status", "/proc/kmsg",
                                        "/sys/kernel/mm/transparent_hugepage/enabled"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (access(names[i], F_OK) == 0) {
            assert_int_equal(
                file_open_regular(AT_FDCWD, names[i], FILE_LINKS_FOLLOWED, O_RDONLY, FILE_ANY_OWNER), -1);
            assert_int_equal(errno, EINVAL);
        }
}

/* ---- where the kernel has no openat2, or a seccomp filter says so ---- */

/* From here on openat2 fails with `error` for this process. 0 or -1. */
static int without_openat2(unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
               ? 0
               : -1;
}

static bool opens(const char *path, enum file_links links, const char *text) {
    return strcmp(text_of(path, links, FILE_ANY_OWNER), text) == 0;
}

static bool refuses(const char *path, enum file_links links, int error) {
    return file_open_regular(folder, path, links, O_RDONLY, FILE_ANY_OWNER) == -1 && errno == error;
}

/* Number of the first of what must hold that does not; 0 all hold. */
static int check_walk(void) {
    char whole[128];
    (void)snprintf(whole, sizeof whole, "%s/in/inner", folder_path);
    const bool holds[] = {
        opens("plain", FILE_LINKS_REFUSED, "plain"),
        opens("in//inner", FILE_LINKS_REFUSED, "inner"),
        opens("./in/./inner", FILE_LINKS_REFUSED, "inner"),
        opens(whole, FILE_LINKS_REFUSED, "inner"),
        opens("/in/inner", FILE_LINKS_IN_ROOT, "inner"),
        opens("in/inner", FILE_LINKS_IN_ROOT, "inner"),
        opens("link", FILE_LINKS_FOLLOWED, "plain"),
        refuses("link", FILE_LINKS_REFUSED, ELOOP),
        refuses("in/out", FILE_LINKS_REFUSED, ELOOP),
        refuses("folder-link/inner", FILE_LINKS_REFUSED, ELOOP),
        /* The kernel cannot keep links below the folder: none is followed. */
        refuses("/absolute", FILE_LINKS_IN_ROOT, ELOOP),
        refuses("/in/out", FILE_LINKS_IN_ROOT, ELOOP),
        refuses("/in/up", FILE_LINKS_IN_ROOT, ELOOP),
        refuses("folder-link/inner", FILE_LINKS_IN_ROOT, ELOOP),
        refuses("../etc/passwd", FILE_LINKS_REFUSED, EXDEV),
        refuses("in/../plain", FILE_LINKS_REFUSED, EXDEV),
        refuses("/../etc/passwd", FILE_LINKS_IN_ROOT, EXDEV),
        refuses("in/inner/more", FILE_LINKS_REFUSED, ENOTDIR),
        refuses("nothing", FILE_LINKS_REFUSED, ENOENT),
        refuses("fifo", FILE_LINKS_REFUSED, EINVAL),
        refuses("in", FILE_LINKS_REFUSED, EINVAL),
    };
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++)
        if (!holds[i])
            return (int)i + 1;
    return 0;
}

static void test_where_there_is_no_openat2(void **state) {
    (void)state;
    static const unsigned errors[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        int status = -1;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)alarm(20); /* a FIFO that is opened waits */
            struct open_how_probe {
                uint64_t flags, mode, resolve;
            } how = {O_PATH, 0, 0};
            if (without_openat2(errors[i]) != 0)
                _exit(99);
            if (syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how) != -1 || errno != (int)errors[i])
                _exit(98);
            _exit(check_walk());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular_files_are_opened),
        cmocka_unit_test(test_links_are_refused_or_stay_below),
        cmocka_unit_test(test_what_has_effects_is_not_opened),
        cmocka_unit_test(test_the_owner_is_checked),
        cmocka_unit_test(test_files_of_the_kernel_are_not_opened),
        cmocka_unit_test(test_where_there_is_no_openat2),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
