/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes by TCP: addresses as text, users of connections, headers of web pages, tokens, and who has to wait.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/access/access.h"
#include "agent/server/tcp_listener.h"
#include "agent/access/token.h"
#include "base/clock.h"
#include "wire/wire.h"

static struct address address(const char *text) {
    struct address a;
    struct err e;
    if (address_parse(&a, text, &e) != 0)
        fail_msg("%s", e.text);
    return a;
}

static void test_addresses(void **state) {
    static const char *const good[][2] = {{"", "127.0.0.1:0"},
                                          {"3344", "127.0.0.1:3344"},
                                          {":3344", "127.0.0.1:3344"},
                                          {"localhost:1", "127.0.0.1:1"},
                                          {"*:65535", "0.0.0.0:65535"},
                                          {"[::1]:3344", "[::1]:3344"},
                                          {"10.1.2.3:3344", "10.1.2.3:3344"}};
    static const char *const bad[] = {"x",       ":",           "127.0.0.1:", "127.0.0.1:65536", "::1:3344",
                                      "[::1]",   "[::1:3",      "example:80", "127.0.0.1:-1",    "127.1:3344",
                                      "1.2.3.4", "127.0.0.1:3 "};
    char text[ADDRESS_MAX];
    struct address a;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        a = address(good[i][0]);
        address_format(&a, text, sizeof text);
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (address_parse(&a, bad[i], NULL) == 0)
            fail_msg("'%s' is taken", bad[i]);
}

static void test_loopback(void **state) {
    static const char *const near[] = {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"};
    static const char *const far[] = {"10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[fe80::1]:1",
                                      "[::ffff:10.0.0.1]:1"};
    struct address a;
    (void)state;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        a = address(near[i]);
        assert_true(address_is_loopback(&a));
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        a = address(far[i]);
        assert_false(address_is_loopback(&a));
    }
}

#define LOCAL "0100007F:C350"
#define REMOTE "0100007F:0D10"
#define LINE(local, remote, st, uid, inode)                                                                  \
    "   0: " local " " remote " " st " 00000000:00000000 00:00000000 00000000  " uid "        0 " inode      \
    " 1 0000000000000000 20 4 30 10 -1\n"

static int64_t uid_in(const char *lines) {
    char text[1024];
    (void)snprintf(text, sizeof text, "  sl  local_address rem_address   st\n%s", lines);
    return access_uid_in(text, LOCAL, REMOTE, NULL);
}

/* Who closes its socket at once is shown as root by the kernel, until the connection is gone. */
static void test_users_of_connections(void **state) {
    (void)state;
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "01", "1000", "4711")), 1000);
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "01", "0", "4711")), 0);
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "01", "0", "0")), -1);
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "04", "0", "0")), -1);
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "05", "1000", "4711")),
                     1000); /* it has said all, and reads */
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "08", "1000", "4711")), -1);
    assert_int_equal(uid_in(LINE(LOCAL, REMOTE, "06", "0", "0")), -1);
    assert_int_equal(uid_in(LINE(REMOTE, LOCAL, "01", "1000", "4711")), -1);
    assert_int_equal(uid_in("rubbish\n   0: " LOCAL "\n"), -1);
    assert_int_equal(uid_in(LINE(REMOTE, LOCAL, "01", "7", "1") LINE(LOCAL, REMOTE, "01", "8", "2")), 8);
}

/* The inode of a socket of this process, which holds it itself; a child that shares it lives elsewhere. */
static void test_neighbours(void **state) {
    int pair[2], gate[2], last = 0;
    struct stat st;
    char byte = 0;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_int_equal(fstat(pair[0], &st), 0);
    assert_true(access_has_socket(st.st_ino, &last));
    assert_int_equal(last, getpid());
    assert_true(access_has_socket(st.st_ino, &last)); /* the one that was found before */
    last = INT_MAX;
    assert_true(access_has_socket(st.st_ino, &last)); /* which has ended since */
    assert_false(access_has_socket(0, &last));
    pid_t child = fork();
    if (child == 0) {
        bool away = unshare(CLONE_NEWNS) == 0;
        (void)!write(gate[1], away ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    assert_true(child > 0);
    (void)close(pair[0]);
    (void)close(gate[1]);
    assert_int_equal(read(gate[0], &byte, 1), 1);
    if (byte == 'y')
        assert_false(access_has_socket(st.st_ino, &last));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    assert_false(access_has_socket(st.st_ino, &last));
    (void)close(pair[1]);
    (void)close(gate[0]);
}

static void test_hosts(void **state) {
    static const char *const good[] = {"127.0.0.1:3344", "127.0.0.1", "localhost:3344", "localhost",
                                       "[::1]:3344",     "[::1]",     "127.0.0.9:1"};
    static const char *const bad[] = {
        "evil.example",           "evil.example:3344",  "0.0.0.0:3344",   "*:3344",   "10.0.0.5:3344", "",
        "localhost.evil.example", "127.0.0.1.evil.com", "127.0.0.1,evil", "[::]:3344"};
    struct address near = address("127.0.0.1:3344"), outer = address("10.0.0.5:3344");
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!access_is_host(good[i], &near))
            fail_msg("'%s' is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (access_is_host(bad[i], &near))
            fail_msg("'%s' is taken", bad[i]);
    assert_false(access_is_host(NULL, &near));
    assert_true(access_is_host("10.0.0.5:3344", &outer));
    assert_true(access_is_origin(NULL, "localhost:1") && access_is_origin("", "localhost:1"));
    assert_true(access_is_origin("http://localhost:1", "localhost:1"));
    assert_false(access_is_origin("http://localhost:2", "localhost:1"));
    assert_false(access_is_origin("https://localhost:1", "localhost:1"));
    assert_false(access_is_origin("null", "localhost:1"));
    assert_false(access_is_origin("http://", NULL));
}

static void test_tokens(void **state) {
    char file[64], socket[64], text[512];
    struct token a, b, none = {.text = ""};
    struct tcp_listener door;
    struct stat st;
    struct err e;
    (void)state;
    assert_int_equal(token_make(&a, &e), 0);
    assert_int_equal(token_make(&b, &e), 0);
    assert_int_equal(strlen(a.text), TOKEN_LEN);
    assert_string_not_equal(a.text, b.text);
    assert_true(token_is(&a, a.text, TOKEN_LEN));
    assert_false(token_is(&a, b.text, TOKEN_LEN));
    assert_false(token_is(&a, a.text, TOKEN_LEN - 1));
    assert_false(token_is(&a, "", 0));
    assert_false(token_is(&none, "", 0));
    memset(text, 0, TOKEN_LEN);
    assert_false(token_is(&none, text, TOKEN_LEN));
    (void)snprintf(socket, sizeof socket, "/tmp/test-access-%d.sock", (int)getpid());
    (void)snprintf(file, sizeof file, "/tmp/test-access-%d.door", (int)getpid());
    assert_int_equal(tcp_listener_open(&door, "", true, socket, &e), 0);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(door.looking && !door.all.text[0] && door.looker.text[0]);
    assert_int_equal(tcp_listener_open(&(struct tcp_listener){.fd = -1}, door.address, false, socket, &e),
                     -1);
    int fd = door.fd;
    tcp_listener_remove(&door);
    assert_int_equal(stat(file, &st), -1);
    assert_int_equal(close(fd), 0);
}

/* Each try in vain takes longer, for that user of that address alone; the table is bounded and forgets the oldest. */
static void test_who_must_wait(void **state) {
    static struct access a;
    struct address far = address("127.0.0.1:5"), other = address("10.0.0.1:5");
    uint64_t now = CLOCK_NS_PER_S, waits = 0;
    char text[32];
    (void)state;
    assert_false(access_must_wait(&a, &far, 7, now));
    for (int i = 0; i < 12; i++) {
        access_note_failure(&a, &far, 7, now);
        assert_true(access_must_wait(&a, &far, 7, now + 1));
        assert_false(access_must_wait(&a, &far, 8, now + 1));
        assert_false(access_must_wait(&a, &other, 7, now + 1));
        uint64_t until = now + 1;
        while (access_must_wait(&a, &far, 7, until))
            until += 50 * CLOCK_NS_PER_MS;
        assert_true(until - now >= waits && until - now < 20 * CLOCK_NS_PER_S);
        waits = until - now;
        now = until;
    }
    assert_true(waits > 10 * CLOCK_NS_PER_S);
    for (int i = 0; i < 2 * ACCESS_ROWS; i++) {
        (void)snprintf(text, sizeof text, "10.0.%d.1:5", i);
        other = address(text);
        access_note_failure(&a, &other, -1, now + (uint64_t)i);
        assert_true(access_must_wait(&a, &other, -1, now + (uint64_t)i));
    }
}

/* What a method does to the job is part of its row, and one that is not known is nobody's from afar. */
static void test_every_method_says_what_it_does(void **state) {
    (void)state;
    for (int m = 0; m < WIRE_METHOD_COUNT; m++)
        assert_in_range(wire_method_access((enum wire_method)m), WIRE_READ_ONLY, WIRE_OWNS);
    assert_int_equal(wire_method_access(WIRE_METHOD_UNKNOWN), WIRE_OWNS);
    assert_int_equal(wire_method_access(WIRE_EVAL), WIRE_CHANGES);
    assert_int_equal(wire_method_access(WIRE_STATUS), WIRE_READ_ONLY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_users_of_connections),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_who_must_wait),
        cmocka_unit_test(test_every_method_says_what_it_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
