/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of system calls, run outside the kernel: what they answer, and what is no filter. */
#include <errno.h>
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "inject/filter.h"

#define NR offsetof(struct seccomp_data, nr)
#define ARCH offsetof(struct seccomp_data, arch)
#define ARG(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(at))
#define RETURN(v) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(v))
#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint32_t answer(const struct sock_filter *code, size_t n, int nr, uint64_t arg) {
    struct seccomp_data data = {.nr = nr, .arch = AUDIT_ARCH_X86_64, .args = {arg, arg >> 8}};
    uint32_t out = 0x12345678;
    assert_int_equal(filter_run(code, n, &data, &out), 0);
    return out;
}

static void check_answers(void **state) {
    (void)state;
    const struct sock_filter one[] = {LOAD(NR), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 310, 0, 1),
                                      RETURN(SECCOMP_RET_ERRNO | EPERM), RETURN(SECCOMP_RET_ALLOW)};
    assert_int_equal(answer(one, COUNT(one), 310, 0), SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(answer(one, COUNT(one), 311, 0), SECCOMP_RET_ALLOW);
    const struct sock_filter by_argument[] = {LOAD(ARG(0)),
                                              BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
                                              BPF_STMT(BPF_ST, 3),
                                              LOAD(ARG(1)),
                                              BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                              BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 3),
                                              BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
                                              BPF_STMT(BPF_RET | BPF_A, 0)};
    assert_int_equal(answer(by_argument, COUNT(by_argument), 1, 0x1234), 0x30 + 0x12);
    const struct sock_filter compare[] = {LOAD(ARG(0)),
                                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 100, 3, 0),
                                          BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 50, 1, 0),
                                          BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 2, 3),
                                          RETURN(1),
                                          RETURN(2),
                                          RETURN(3),
                                          RETURN(4)};
    assert_int_equal(answer(compare, COUNT(compare), 1, 101), 2);
    assert_int_equal(answer(compare, COUNT(compare), 1, 50), 1);
    assert_int_equal(answer(compare, COUNT(compare), 1, 3), 3);
    assert_int_equal(answer(compare, COUNT(compare), 1, 4), 4);
    const struct sock_filter jump[] = {BPF_STMT(BPF_JMP | BPF_JA, 1), RETURN(1),
                                       BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_RET | BPF_A, 0)};
    assert_int_equal(answer(jump, COUNT(jump), 1, 0), sizeof(struct seccomp_data));
    const struct sock_filter odd[] = {BPF_STMT(BPF_LD | BPF_IMM, 7), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 40),
                                      BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), BPF_STMT(BPF_RET | BPF_A, 0)};
    assert_int_equal(answer(odd, COUNT(odd), 1, 0), 0);
}

static void refused(const struct sock_filter *code, size_t n) {
    struct seccomp_data data = {.nr = 1};
    uint32_t out;
    long nr;
    assert_int_equal(filter_run(code, n, &data, &out), -1);
    assert_int_equal(filter_judge(code, n, &nr), FILTER_UNKNOWN);
}

static void check_what_is_none(void **state) {
    (void)state;
    const struct sock_filter endless[] = {LOAD(NR)},
                             far[] = {BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RETURN(0)},
                             beyond[] = {LOAD(sizeof(struct seccomp_data)), RETURN(0)},
                             uneven[] = {LOAD(2), RETURN(0)},
                             scratch[] = {BPF_STMT(BPF_ST, BPF_MEMWORDS), RETURN(0)},
                             load[] = {BPF_STMT(BPF_LD | BPF_MEM, BPF_MEMWORDS), RETURN(0)},
                             packet[] = {BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), RETURN(0)},
                             unknown[] = {BPF_STMT(BPF_ALU | 0xf0, 0), RETURN(0)};
    refused(endless, 1);
    refused(endless, 0);
    refused(far, 2);
    refused(beyond, 2);
    refused(uneven, 2);
    refused(scratch, 2);
    refused(load, 2);
    refused(packet, 2);
    refused(unknown, 2);
}

/* A list of what is allowed, as services have; everything else gets `otherwise`. */
static enum filter_verdict judge_all_but(long missing, uint32_t default_value, long *nr) {
    const struct sock_filter code[] = {LOAD(ARCH),
                                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                                       RETURN(SECCOMP_RET_KILL_PROCESS),
                                       LOAD(NR),
                                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)missing, 0, 1),
                                       RETURN(default_value),
                                       RETURN(SECCOMP_RET_ALLOW)};
    return filter_judge(code, COUNT(code), nr);
}

static void check_judgement(void **state) {
    static const long needed[] = {SYS_process_vm_readv, SYS_clone,        SYS_tgkill,
                                  SYS_mincore,          SYS_rt_sigreturn, SYS_futex};
    static const uint32_t deadly[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP | 5,
                                      0x33330000};
    static const uint32_t harmless[] = {SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_TRACE | 7,
                                        SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ERRNO | ENOSYS};
    (void)state;
    for (size_t i = 0; i < COUNT(needed); i++) {
        long nr = -1;
        for (size_t k = 0; k < COUNT(deadly); k++) {
            assert_int_equal(judge_all_but(needed[i], deadly[k], &nr), FILTER_KILLS);
            assert_int_equal(nr, needed[i]);
        }
        for (size_t k = 0; k < COUNT(harmless); k++)
            assert_int_equal(judge_all_but(needed[i], harmless[k], &nr), FILTER_HARMLESS);
    }
    long nr;
    assert_int_equal(judge_all_but(SYS_reboot, SECCOMP_RET_KILL_PROCESS, &nr), FILTER_HARMLESS);
}

/* Sockets of one kind may be forbidden: ours are of another. */
static void check_arguments(void **state) {
    (void)state;
    const struct sock_filter code[] = {LOAD(NR),
                                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
                                       LOAD(ARG(0)),
                                       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
                                       RETURN(SECCOMP_RET_KILL_PROCESS),
                                       RETURN(SECCOMP_RET_ALLOW)};
    long nr;
    assert_int_equal(filter_judge(code, COUNT(code), &nr), FILTER_HARMLESS);
}

static void check_a_thread_that_is_not_traced(void **state) {
    (void)state;
    long nr;
    assert_int_equal(filter_judge_thread(0x7ffffff0, &nr), FILTER_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_answers),
        cmocka_unit_test(check_what_is_none),
        cmocka_unit_test(check_judgement),
        cmocka_unit_test(check_arguments),
        cmocka_unit_test(check_a_thread_that_is_not_traced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
