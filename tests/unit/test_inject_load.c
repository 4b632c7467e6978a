/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the created thread to a running agent, when the thread gives us up: this process is its own target, and a question
 * that the injector asks in between is when the thread's memory goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/load.h"

static struct stub_params *params;
static int asked, goes_at;

static void params_go(void) { assert_int_equal(munmap(params, sizeof *params), 0); }

static bool ask(void) {
    if (++asked != goes_at)
        return false;
    params_go();
    return true;
}

static void test_a_thread_that_gives_us_up_at_the_deadline(void **state) {
    struct target t = {.pid = getpid(), .process = -1};
    struct stub_params out;
    struct err e = {.code = ERR_OK};
    (void)state;
    mem_open_image(&t.mem, getpid());
    /* 1: after it was born; 2: while its last word is waited for, which ends the waiting; 3: whether that was a ^C. */
    for (goes_at = 1; goes_at <= 2; goes_at++) {
        asked = 0;
        params = mmap(NULL, sizeof *params, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(params, MAP_FAILED);
        params->phase = STUB_BORN;
        struct load_request req = {.params_at = (uint64_t)(uintptr_t)params,
                                   .deadline_ns = clock_mono_ns() + 60 * CLOCK_NS_PER_S,
                                   .stop_asked = ask};
        /* To be tried again, or an error that says something. */
        int rc = load_agent(&t, &req, &out, &e);
        assert_true(rc == 1 || (rc == -1 && e.code != ERR_OK && e.text[0]));
        assert_int_equal(rc, 1);
    }
    mem_fini(&t.mem);
}

static bool ask_for_good(void) {
    if (++asked == goes_at)
        params_go();
    return asked >= goes_at;
}

/* We are asked to end, and the thread's memory is gone: it has given us up, or has started the agent. Nobody knows here, so
 * nobody says that the process is as it was. */
static void test_a_thread_that_is_gone_when_we_are_asked_to_end(void **state) {
    struct target t = {.pid = getpid(), .process = -1};
    struct stub_params out;
    struct err e = {.code = ERR_OK};
    (void)state;
    mem_open_image(&t.mem, getpid());
    for (goes_at = 1; goes_at <= 2; goes_at++) {
        asked = 0;
        params = mmap(NULL, sizeof *params, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(params, MAP_FAILED);
        params->phase = STUB_BORN;
        struct load_request req = {.params_at = (uint64_t)(uintptr_t)params,
                                   .deadline_ns = clock_mono_ns() + 60 * CLOCK_NS_PER_S,
                                   .stop_asked = ask_for_good};
        assert_int_equal(load_agent(&t, &req, &out, &e), 1);
        assert_string_equal(e.text, "");
    }
    mem_fini(&t.mem);
}

static bool nobody_asks(void) { return false; }

static const uint8_t agent_bytes[] = "these are the agent's bytes";

/* What comes of it when the thread says that descriptor `fd` is its memory file. */
static int hand_over(int fd, struct err *e) {
    struct target t = {.pid = getpid(), .process = (int)syscall(SYS_pidfd_open, getpid(), 0)};
    struct stub_params out;
    struct stub_params *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    p->phase = STUB_WAITING;
    p->fd = fd;
    mem_open_image(&t.mem, getpid());
    struct load_request req = {.params_at = (uint64_t)(uintptr_t)p,
                               .bytes = agent_bytes,
                               .size = sizeof agent_bytes,
                               .deadline_ns = clock_mono_ns() + 50 * CLOCK_NS_PER_MS,
                               .stop_asked = nobody_asks};
    int rc = load_agent(&t, &req, &out, e);
    mem_fini(&t.mem);
    if (t.process >= 0)
        (void)close(t.process);
    (void)munmap(p, sizeof *p);
    return rc;
}

/* A descriptor of each kind that is not to be written to: nothing is, and the line says what it is. */
static void test_what_is_no_memory_file(void **state) {
    char folder[] = "/tmp/probing-test-load-XXXXXX", file[64], fifo[64], text[32] = "";
    int pair[2];
    struct stat before, after;
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/file", folder);
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    int made = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(made, "precious", 8), 8);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const struct {
        int fd;
        const char *what;
    } cases[] = {
        {open(file, O_PATH), "a file on a file system"},
        {made, "a file on a file system"},
        {open(fifo, O_PATH), "a FIFO"},
        {open(fifo, O_RDWR), "a FIFO"},
        {open("/dev/null", O_PATH), "a device"},
        {open("/dev/null", O_RDWR), "a device"},
        {pair[0], "a socket"},
        {open(folder, O_PATH), "not a regular file"},
        {memfd_create("another", MFD_CLOEXEC), "another memory file"},
        {77777, "cannot be opened"},
        {-5, "cannot be opened"},
    };
    assert_int_equal(stat(file, &before), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e = {.code = ERR_OK};
        assert_int_equal(hand_over(cases[i].fd, &e), -1);
        assert_int_equal(e.code, ERR_ATTACH);
        if (!strstr(e.text, cases[i].what))
            fail_msg("%s: %s", cases[i].what, e.text);
        if (cases[i].fd >= 0)
            (void)close(cases[i].fd);
    }
    struct err e = {.code = ERR_OK};
    int full = memfd_create(AGENT_MEMFD_NAME, MFD_CLOEXEC);
    assert_int_equal(write(full, "mine", 4), 4);
    assert_int_equal(hand_over(full, &e), -1);
    assert_non_null(strstr(e.text, "not empty"));
    (void)close(full);
    assert_int_equal(stat(file, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    int fd = open(file, O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), 8);
    assert_string_equal(text, "precious");
    (void)close(fd);
    (void)close(pair[1]);
    (void)unlink(file);
    (void)unlink(fifo);
    (void)rmdir(folder);
}

/* One that is: it gets all of them, by the descriptor that it is written by. */
static void test_the_memory_file(void **state) {
    uint8_t text[2 * sizeof agent_bytes];
    struct err e = {.code = ERR_OK};
    (void)state;
    int fd = memfd_create(AGENT_MEMFD_NAME, MFD_CLOEXEC);
    assert_int_equal(hand_over(fd, &e), -1); /* nobody loads it */
    assert_int_equal(pread(fd, text, sizeof text, 0), sizeof agent_bytes);
    assert_memory_equal(text, agent_bytes, sizeof agent_bytes);
    (void)close(fd);
    /* Of one that is open for reading only nothing is opened anew. */
    fd = memfd_create(AGENT_MEMFD_NAME, MFD_CLOEXEC);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    assert_int_equal(hand_over(reading, &e), -1);
    assert_non_null(strstr(e.text, "not open for writing"));
    assert_int_equal(lseek(reading, 0, SEEK_END), 0);
    (void)close(reading);
}

static void test_what_failed_has_failed(void **state) {
    struct err e = {.code = ERR_OK};
    (void)state;
    assert_int_equal(err_exit_status(&e), 1);
    (void)err_set(&e, ERR_ATTACH, "no");
    assert_int_equal(err_exit_status(&e), 3);
    (void)err_set(&e, ERR_LOST, "gone");
    assert_int_equal(err_exit_status(&e), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_gives_us_up_at_the_deadline),
        cmocka_unit_test(test_a_thread_that_is_gone_when_we_are_asked_to_end),
        cmocka_unit_test(test_what_is_no_memory_file),
        cmocka_unit_test(test_the_memory_file),
        cmocka_unit_test(test_what_failed_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
