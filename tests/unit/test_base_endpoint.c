/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths an agent's socket may have, and who listens there. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/endpoint.h"

static void test_names(void **state) {
    static const char *const good[] = {
        "/tmp/probing-0/1.sock", "/dev/shm/probing-1000/77.sock", "/var/tmp/probing-5-4026531837-123/9.sock",
        "/run/probing-65534/4194304.sock", "/run/user/1000/probing-1000/12.sock"};
    static const char *const bad[] = {"",
                                      "/run/docker.sock",
                                      "/tmp/probing-0/1.sock/../../../run/docker.sock",
                                      "/tmp/../run/probing-0/1.sock",
                                      "/tmp/probing-0/../x.sock",
                                      "/tmp/probing-0/1.sockx",
                                      "/tmp/probing-0/.sock",
                                      "/tmp/probing-/1.sock",
                                      "/tmp/probing-0-/1.sock",
                                      "/tmp/probing-0",
                                      "/tmp/probing-0/1.sock ",
                                      "/tmp//probing-0/1.sock",
                                      "/home/probing-0/1.sock",
                                      "/run/user/probing-0/1.sock",
                                      "/run/user/../probing-0/1.sock",
                                      "/run/user/0probing-0/1.sock",
                                      "tmp/probing-0/1.sock"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(endpoint_is_name(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (endpoint_is_name(bad[i]))
            fail_msg("%s", bad[i]);
}

/* A connection to a socket at which process `*who` listens: another one where `other`. */
static int connected(bool other, pid_t *who) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(sa_family_t) + 32;
    int ready[2], fd = socket(AF_UNIX, SOCK_STREAM, 0), server = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(sa.sun_path + 1, sizeof sa.sun_path - 1, "probing-test-%d-%d", (int)getpid(), (int)other);
    assert_int_equal(pipe(ready), 0);
    *who = other ? fork() : getpid();
    if (*who == 0 || !other) {
        bool well = bind(server, (const struct sockaddr *)&sa, len) == 0 && listen(server, 1) == 0;
        if (write(ready[1], "", 1) != 1 || !well)
            _exit(1);
        if (other) {
            (void)pause();
            _exit(0);
        }
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(connect(fd, (const struct sockaddr *)&sa, len), 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(server);
    return fd;
}

static void test_peers(void **state) {
    struct err e = {.code = ERR_OK};
    pid_t who;
    (void)state;
    int fd = connected(false, &who);
    assert_int_equal(endpoint_check_peer(fd, getpid(), &e), 0);
    (void)close(fd);
    fd = connected(true, &who);
    assert_int_equal(endpoint_check_peer(fd, who, &e), 0);
    assert_int_equal(endpoint_check_peer(fd, getpid(), &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "nothing was sent"));
    (void)close(fd);
    (void)kill(who, SIGKILL);
    assert_int_equal(waitpid(who, NULL, 0), who);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
