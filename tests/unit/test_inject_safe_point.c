/* SPDX-License-Identifier: Apache-2.0 */
/* Which sleeping threads are taken, and in which order; how an interrupted call goes on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "inject/safe_point.h"
#include "inject/thread.h"

static void test_order(void **state) {
    (void)state;
    assert_true(safe_point_rank_call(SYS_futex, "") < safe_point_rank_call(SYS_clock_nanosleep, ""));
    assert_true(safe_point_rank_call(SYS_clock_nanosleep, "") < safe_point_rank_call(SYS_epoll_wait, ""));
    assert_true(safe_point_rank_call(SYS_poll, "") >= 0);
    assert_true(safe_point_rank_call(SYS_epoll_wait, "") <
                safe_point_rank_call(SYS_wait4, ""));            /* a child may end */
    assert_int_equal(safe_point_rank_call(SYS_ioctl, ""), -1);   /* drivers see the interruption */
    assert_int_equal(safe_point_rank_call(SYS_connect, ""), -1); /* twice is not the same as once */
    assert_int_equal(safe_point_rank_call(SYS_openat, ""), -1);
}

static void test_files(void **state) {
    (void)state;
    assert_true(safe_point_rank_call(SYS_read, "pipe:[123]") >= 0);
    assert_true(safe_point_rank_call(SYS_read, "socket:[5]") >= 0);
    assert_true(safe_point_rank_call(SYS_read, "/dev/pts/3") >= 0);
    assert_true(safe_point_rank_call(SYS_read, "/dev/tty") >= 0);
    assert_true(safe_point_rank_call(SYS_read, "anon_inode:[eventfd]") >= 0);
    assert_int_equal(safe_point_rank_call(SYS_read, "/mnt/fuse/data.bin"), -1); /* the server would see it */
    assert_int_equal(safe_point_rank_call(SYS_write, "/home/user/log"), -1);
}

static void test_names(void **state) {
    char name[32];
    (void)state;
    safe_point_call_name(name, sizeof name, SYS_epoll_wait);
    assert_string_equal(name, "epoll_wait");
    safe_point_call_name(name, sizeof name, 4000);
    assert_string_equal(name, "system call 4000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
