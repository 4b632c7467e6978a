/* SPDX-License-Identifier: Apache-2.0 */
/* Every refusal of inject_check from made-up facts: the reason, the remedy, one line. */
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <setjmp.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/check.h"
#include "inject/inject.h"

#define PID 4242

/* A process that may be injected into, by its own user. */
static struct check_facts fine(void) {
    struct check_facts f = {
        .pid = PID,
        .exists = true,
        .name = "python3",
        .readable = true,
        .dumpable = true,
        .elf_known = true,
        .elf_class = ELFCLASS64,
        .elf_machine = EM_X86_64,
        .maps_known = true,
        .libc = CHECK_LIBC_GLIBC,
        .our_uid = 1000,
    };
    f.status.state = 'S';
    f.status.tgid = PID;
    f.status.uid = 1000;
    return f;
}

static void judged(const struct check_facts *f, int verdict, const char *why, const char *remedy) {
    struct err e = {0};
    assert_int_equal(check_judge(f, &e), verdict);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "4242"));
    assert_non_null(strstr(e.text, why));
    assert_non_null(strstr(e.text, remedy));
    assert_null(strchr(e.text, '\n'));
}

/* The judgement of `f` is a refusal whose one line has both words. */
static void refused(const struct check_facts *f, const char *why, const char *remedy) {
    judged(f, -1, why, remedy);
}

/* No thread may be borrowed, and that is all. */
static void barred(const struct check_facts *f, const char *why, const char *remedy) {
    judged(f, INJECT_ONLY_REMOTE_EXEC, why, remedy);
}

static void test_no_proc(void **state) {
    struct check_facts f = fine();
    (void)state;
    f.no_proc = true;
    refused(&f, "has no /proc", "only be read from outside");
}

static void test_fine(void **state) {
    struct check_facts f = fine();
    struct err e = {0};
    (void)state;
    assert_int_equal(check_judge(&f, &e), 0);
    f.status.state = 'R';
    f.status.seccomp = 2; /* a filter: every container has one */
    f.ptrace_scope = 1;   /* readable all the same: it is a child, or we are root */
    assert_int_equal(check_judge(&f, &e), 0);
}

static void test_states(void **state) {
    (void)state;
    struct check_facts f = fine();
    f.exists = false;
    refused(&f, "no process", "probing list");
    f = fine();
    f.status.tgid = 77;
    refused(&f, "thread of process 77", "give that pid");
    f = fine();
    f.has_ended = true;
    f.status.state = 'Z';
    refused(&f, "zombie", "python3");
    f = fine();
    f.kernel_thread = true;
    refused(&f, "kernel", "Python process");
    f = fine();
    f.status.state = 'T';
    refused(&f, "stopped", "kill -CONT 4242");
    f = fine();
    f.status.state = 't';
    f.status.tracer_pid = 99;
    strcpy(f.tracer, "gdb");
    refused(&f, "traced by process 99 (gdb)", "end that one first");
}

/* Another of our programs lets go in a moment, which can be waited for, if nothing else is the matter. */
static void test_traced_by_ours(void **state) {
    (void)state;
    struct check_facts f = fine();
    f.status.tracer_pid = 99;
    f.status.state = 't';
    strcpy(f.tracer, "probing-top");
    judged(&f, INJECT_BUSY, "traced by process 99 (probing-top)", "try again");
    f.status.state = 'S';
    strcpy(f.tracer, "probing");
    judged(&f, INJECT_BUSY, "traced by process 99 (probing)", "try again");
    f.libc = CHECK_LIBC_MUSL;
    refused(&f, "traced by process 99", "end that one first");
    f.libc = CHECK_LIBC_GLIBC;
    strcpy(f.tracer, "probing-else");
    barred(&f, "traced by process 99", "end that one first");
}

/* What forbids to borrow a thread forbids no more than that, if nothing else is the matter. */
static void test_only_by_door(void **state) {
    (void)state;
    struct check_facts f = fine();
    f.status.tracer_pid = 99;
    barred(&f, "traced by process 99", "end that one first");
    f.readable = false;
    refused(&f, "traced by process 99", "end that one first");
    f.readable = true;
    f.libc = CHECK_LIBC_MUSL;
    refused(&f, "traced by process 99", "end that one first");
    f = fine();
    f.status.shadow_stack = true;
    barred(&f, "shadow stack", "from outside");
    f.readable = false;
    refused(&f, "not allowed", "as root");
    f = fine();
    f.status.shadow_stack = true;
    f.libc = CHECK_LIBC_NONE;
    refused(&f, "statically linked", "from outside");
}

static void test_permissions(void **state) {
    (void)state;
    struct check_facts f = fine();
    f.readable = false;
    refused(&f, "not allowed", ": run this as root");
    f.here.kind = CONTAINER_OTHER;
    refused(&f, "security policy", "SYS_PTRACE");
    f = fine();
    f.readable = false;
    f.status.uid = 0;
    refused(&f, "another user (uid 0)", "root");
    f = fine();
    f.readable = false;
    f.ptrace_scope = 1;
    refused(&f, "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0");
    f.descendant = true; /* allowed by Yama: something else forbids it */
    refused(&f, "policy", "root");
    f.ptrace_scope = 2;
    refused(&f, "ptrace_scope is 2", "root");
    f = fine();
    f.ptrace_scope = 3;
    refused(&f, "ptrace_scope is 3", "probing launch");
    f = fine();
    f.readable = f.dumpable = false;
    refused(&f, "not dumpable", "root");
    f.our_cap_ptrace = true;
    refused(&f, "not allowed", "policy");
}

static void test_programs(void **state) {
    (void)state;
    struct check_facts f = fine();
    f.elf_class = ELFCLASS32;
    refused(&f, "32-bit", "64-bit x86");
    f = fine();
    f.elf_machine = EM_AARCH64;
    refused(&f, "foreign", "64-bit x86");
    f = fine();
    f.libc = CHECK_LIBC_MUSL;
    refused(&f, "musl", "from outside");
    f = fine();
    f.libc = CHECK_LIBC_NONE;
    refused(&f, "statically linked", "from outside");
    f = fine();
    f.status.seccomp = 1;
    refused(&f, "strict seccomp", "killed");
}

static void test_ourselves(void **state) {
    struct check_facts f;
    (void)state;
    check_gather(getpid(), NULL, &f);
    assert_true(f.exists && f.readable && f.elf_known && f.maps_known);
    assert_int_equal(f.elf_class, ELFCLASS64);
    assert_int_equal(f.libc, CHECK_LIBC_GLIBC);
    assert_false(f.kernel_thread);
    check_gather(-1, NULL, &f);
    assert_false(f.exists);
}

static void test_a_zombie(void **state) {
    struct err e = {0};
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(inject_check(child, &e), -1);
    assert_non_null(strstr(e.text, "zombie"));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(inject_check(child, &e), -1);
    assert_non_null(strstr(e.text, "no process"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fine),           cmocka_unit_test(test_no_proc),
        cmocka_unit_test(test_states),         cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_programs),       cmocka_unit_test(test_ourselves),
        cmocka_unit_test(test_a_zombie),       cmocka_unit_test(test_only_by_door),
        cmocka_unit_test(test_traced_by_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
