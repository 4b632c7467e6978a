/* SPDX-License-Identifier: Apache-2.0 */
/* The seam: several pieces at once, what is not there, and a kernel that refuses the call. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

#define CANNOT 77
#define PAGE 4096U

static struct iovec piece(uint64_t addr, size_t len) {
    return (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
}

static void check_many_of_a_buffer(void **state) {
    (void)state;
    static const uint8_t bytes[] = "0123456789";
    uint8_t out[16] = {0};
    struct mem m;
    mem_init_buffer(&m, bytes, 10, 0x1000);
    struct iovec pieces[] = {piece(0x1002, 3), piece(0x1000, 1), piece(0x1008, 2), piece(0x1008, 3)};
    assert_int_equal(mem_read_many(&m, pieces, 3, out), 3);
    assert_memory_equal(out, "234089", 6);
    assert_int_equal(mem_read_many(&m, pieces, 4, out), 3);
    assert_int_equal(mem_read_many(&m, pieces + 3, 1, out), 0);
    assert_int_equal(mem_read_many(&m, pieces, 0, out), 0);
    struct iovec wild[] = {piece(UINT64_MAX - 1, 8), piece(0x1000, 1)};
    assert_int_equal(mem_read_many(&m, wild, 2, out), 0);
    struct iovec huge[] = {piece(0x1000, SIZE_MAX / 2), piece(0x1000, SIZE_MAX / 2)};
    assert_int_equal(mem_read_many(&m, huge, 2, out), 0);
}

/* Two pages, the second of which cannot be read. */
static uint8_t *half_mapped(void) {
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    memset(p, 'a', PAGE);
    assert_int_equal(munmap(p + PAGE, PAGE), 0);
    return p;
}

static void check_many_of_ourselves(void **state) {
    (void)state;
    uint8_t *p = half_mapped(), out[64] = {0};
    uint64_t at = (uint64_t)(uintptr_t)p;
    struct mem m, handler;
    mem_init_process(&m, getpid());
    mem_init_handler(&handler, &m);
    struct iovec pieces[] = {piece(at, 8), piece(at + PAGE - 4, 8), piece(at, 8)};
    assert_int_equal(mem_read_many(&m, pieces, 3, out), 1); /* the second ends in nothing */
    assert_int_equal(mem_read_many(&handler, pieces, 3, out), 1);
    assert_memory_equal(out, "aaaaaaaa", 8);
    assert_int_equal(mem_read(&m, at + PAGE, out, 1), -1);
    assert_int_equal(mem_read(&handler, at + PAGE, out, 1), -1);
    assert_false(mem_is_refused(&handler));
    assert_false(mem_is_file(&m));
    mem_fini(&m);
    assert_int_equal(munmap(p, PAGE), 0);
}

/* ---- where the call is refused ---- */

static int refuse(int error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0
               ? -1
               : 0;
}

/* 0 when all went well, else the number of what did not. */
static int read_refused(int error) {
    uint8_t *p = half_mapped(), out[64] = {0};
    uint64_t at = (uint64_t)(uintptr_t)p, value;
    struct mem m, handler, early;
    mem_init_process(&early, getpid());
    if (mem_read_u64(&early, at, &value) != 0)
        return 1;
    if (refuse(error) != 0)
        return CANNOT;
    mem_init_process(&m, getpid());
    mem_init_handler(&handler, &m);
    struct iovec pieces[] = {piece(at, 8), piece(at + PAGE - 4, 8), piece(at, 8)};
    if (mem_read(&m, at, out, 8) != 0 || memcmp(out, "aaaaaaaa", 8) != 0 || !mem_is_file(&m))
        return 2;
    if (mem_read_many(&m, pieces, 3, out) != 1 || mem_read(&m, at + PAGE - 4, out, 8) == 0 ||
        mem_read(&m, 16, out, 8) == 0)
        return 3;
    /* A handler may run on a thread that has other descriptors: it does without. */
    if (mem_read(&handler, at, out, 8) == 0 || !mem_is_refused(&handler) || mem_is_file(&handler))
        return 4;
    mem_init_handler(&handler, &m);
    if (mem_read_many(&handler, pieces, 1, out) != 0 || !mem_is_refused(&handler))
        return 5;
    /* A filter that comes later is noticed. */
    if (mem_read_u64(&early, at, &value) != 0 || !mem_is_file(&early))
        return 6;
    int fd = m.file - 1;
    mem_fini(&m);
    mem_fini(&early);
    return fcntl(fd, F_GETFD) == -1 ? 0 : 7;
}

static void check_refused(void **state) {
    (void)state;
    static const int errors[] = {EPERM, ENOSYS};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(read_refused(errors[i]));
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == CANNOT) {
            print_message("needs seccomp: a filter cannot be installed here\n");
            skip();
        }
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void check_nobody(void **state) {
    (void)state;
    struct mem m;
    uint8_t out[8];
    mem_init_process(&m, 0x7ffffff0); /* no process has such a number */
    errno = 0;
    assert_int_equal(mem_read(&m, 0x400000, out, sizeof out), -1);
    assert_int_equal(errno, ESRCH);
    assert_false(mem_is_file(&m));
    mem_fini(&m);
}

/* The memory of a child that becomes another program: what was opened stays with the first. */
static void check_image(void **state) {
    (void)state;
    static volatile uint64_t word = 0x1122334455667788;
    static const uint8_t fixed[8] = "constant";
    uint64_t at = (uint64_t)(uintptr_t)&word, value = 0;
    struct mem m, shared;
    struct mem_identity first;
    int go[2], status = 0;
    assert_int_equal(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(go[0], &byte, 1) == 1 && word == 7)
            (void)execl("/bin/sleep", "sleep", "100", (char *)NULL);
        _exit(1);
    }
    mem_open_image(&m, child);
    mem_share_image(&shared, &m);
    assert_int_equal(mem_read_u64(&shared, at, &value), 0);
    assert_int_equal(value, 0x1122334455667788);
    value = 7;
    assert_int_equal(mem_write(&m, at, &value, sizeof value), 0);
    assert_int_equal(word, 0x1122334455667788); /* of ours */
    assert_int_equal(mem_read(&m, 16, &value, sizeof value), -1);
    assert_false(mem_is_gone(&m));
    struct iovec pieces[] = {piece(at, 8), piece((uint64_t)(uintptr_t)fixed, 8), piece(16, 8)};
    uint8_t out[24];
    assert_int_equal(mem_read_many(&m, pieces, 3, out), 2);
    assert_memory_equal(out + 8, fixed, 8);
    assert_int_equal(mem_identify(child, &first), 0);
    assert_true(mem_is_same(child, &first));
    assert_int_equal(write(go[1], "", 1), 1);
    for (int i = 0; i < 20000 && mem_is_same(child, &first); i++)
        (void)usleep(1000);
    assert_false(mem_is_same(child, &first));
    assert_int_equal(mem_read_u64(&m, at, &value), -1);
    assert_true(mem_is_gone(&m));
    assert_int_equal(mem_write(&m, at, &value, sizeof value), -1);
    assert_int_equal(mem_read_u64(&shared, at, &value), -1);
    mem_fini(&shared);
    mem_fini(&m);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    /* What is read only cannot be written to by who may only read. */
    mem_init_process(&m, getpid());
    assert_int_equal(mem_write(&m, at, &value, sizeof value), -1);
    mem_open_image(&m, 0x7ffffff0);
    assert_int_equal(mem_read_u64(&m, at, &value), -1);
    mem_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_many_of_a_buffer),
        cmocka_unit_test(check_many_of_ourselves),
        cmocka_unit_test(check_refused),
        cmocka_unit_test(check_nobody),
        cmocka_unit_test(check_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
