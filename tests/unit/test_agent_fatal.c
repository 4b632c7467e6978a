/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of signals that end a process: where it is put, what it leaves, and what becomes of the signal. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/debug/fatal.h"

/* The disposition as the kernel has it. */
struct action {
    uint64_t handler, flags, restorer, mask;
};

static void read_actions(struct action *out) {
    memset(out, 0, FATAL_SIGNALS * sizeof *out);
    for (size_t i = 0; i < FATAL_SIGNALS; i++)
        assert_int_equal(syscall(SYS_rt_sigaction, fatal_number(i), NULL, &out[i], sizeof out->mask), 0);
}

/* The test library has handlers of its own, and a sanitizer may. */
static void begin(void **state) {
    (void)state;
    for (size_t i = 0; i < FATAL_SIGNALS; i++)
        (void)signal(fatal_number(i), SIG_DFL);
}

static void own_handler(int sig) { _exit(100 + sig); }

static void check_fatal_puts_back_what_was_there(void **state) {
    struct action before[FATAL_SIGNALS], now[FATAL_SIGNALS];
    char text[512];
    struct err e;
    begin(state);
    (void)signal(SIGBUS, own_handler);
    (void)signal(SIGFPE, SIG_IGN);
    read_actions(before);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fatal_arm(own_handler, 0, &e), 0);
        fatal_describe(text, sizeof text);
        assert_string_equal(
            text,
            "SIGSEGV, SIGILL, SIGABRT|SIGBUS: the job has a handler of its own; SIGFPE: the job ignores it");
        read_actions(now);
        for (size_t k = 0; k < FATAL_SIGNALS; k++)
            assert_int_equal(memcmp(&before[k], &now[k], sizeof now[k]) == 0,
                             fatal_number(k) == SIGBUS || fatal_number(k) == SIGFPE);
        fatal_disarm();
        read_actions(now);
        assert_memory_equal(before, now, sizeof now);
        fatal_describe(text, sizeof text);
        assert_string_equal(text, "");
    }
    (void)signal(SIGBUS, SIG_DFL);
    (void)signal(SIGFPE, SIG_DFL);
}

/* One that may be Python's own is taken for it only where Python's library has it, with the flags that it has. */
static void check_fatal_knows_reporters(void **state) {
    static const struct {
        int flags;
        const void *python;
        unsigned reporter;
        bool taken;
    } cases[] = {
        {SA_NODEFER, own_handler, 1, true},  {SA_NODEFER | SA_ONSTACK, own_handler, 31, true},
        {SA_NODEFER, own_handler, 0, false}, {SA_NODEFER, own_handler, 2, false},
        {0, own_handler, 1, false},          {SA_NODEFER | SA_SIGINFO, own_handler, 1, false},
        {SA_NODEFER, getenv, 1, false},
    };
    char text[512];
    struct err e;
    begin(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sigaction sa = {.sa_handler = own_handler, .sa_flags = cases[i].flags};
        assert_int_equal(sigaction(SIGSEGV, &sa, NULL), 0);
        assert_int_equal(fatal_arm(cases[i].python, cases[i].reporter, &e), 0);
        fatal_describe(text, sizeof text);
        assert_int_equal(strstr(text, "SIGSEGV, ") == text, cases[i].taken);
        fatal_disarm();
        assert_int_equal(sigaction(SIGSEGV, NULL, &sa), 0);
        assert_ptr_equal(sa.sa_handler, own_handler);
    }
    (void)signal(SIGSEGV, SIG_DFL);
}

static void check_fatal_leaves_children_alone(void **state) {
    struct err e;
    int status;
    begin(state);
    for (int known = 0; known < 2; known++) { /* by a fork that our handler of forks does not hear of, too */
        assert_int_equal(fatal_arm(own_handler, 0, &e), 0);
        pid_t child = fork();
        if (child == 0) {
            struct sigaction now;
            if (known)
                fatal_in_child();
            if (known && (sigaction(SIGSEGV, NULL, &now) != 0 || now.sa_handler != SIG_DFL))
                _exit(1);
            (void)raise(SIGSEGV);
            _exit(2);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        fatal_disarm();
    }
}

/* ---- in a child that ends ---- */

struct debug_command {
    int signal, code, tries;
    int64_t tid;
    uint64_t address, rip;
};

static int debug_command_pipe[2], wake_pipe[2];
static int tries;
static volatile uintptr_t nowhere = 16;

static void wake(void *arg) {
    (void)arg;
    tries++;
    ssize_t n = write(wake_pipe[1], "", 1);
    (void)n;
}

enum reader { READS, READS_NEVER, FAULTS };

static void *reader_main(void *arg) {
    enum reader how = (enum reader)(intptr_t)arg;
    char byte;
    struct debug_command told = {0};
    if (read(wake_pipe[0], &byte, 1) != 1 || how == READS_NEVER || !fatal_is_asked())
        return NULL;
    const struct fatal_record *r = fatal_begin();
    if (how == FAULTS)
        *(volatile int *)nowhere = 1;
    told = (struct debug_command){.signal = r->signal,
                                  .code = r->code,
                                  .tries = tries,
                                  .tid = r->tid,
                                  .address = r->address,
                                  .rip = r->native.regs[NATIVE_RIP]};
    ssize_t n = write(debug_command_pipe[1], &told, sizeof told);
    (void)n;
    fatal_end();
    return NULL;
}

static void fault(void) { *(volatile int *)nowhere = 1; }
static void give_up(void) { abort(); }
static void send_itself(void) { (void)kill(getpid(), SIGILL); }

static int run(void (*what)(void), enum reader how, struct debug_command *told) {
    const struct rlimit none = {0, 0};
    pthread_t thread;
    sigset_t all, before;
    struct err e;
    int status = -1;
    assert_true(pipe(debug_command_pipe) == 0 && pipe(wake_pipe) == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        if (pthread_create(&thread, NULL, reader_main, (void *)(intptr_t)how) != 0)
            _exit(1);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        fatal_set_waker(wake, NULL);
        if (fatal_arm(own_handler, 0, &e) != 0)
            _exit(2);
        what();
        _exit(3);
    }
    (void)close(debug_command_pipe[1]);
    (void)close(wake_pipe[0]);
    (void)close(wake_pipe[1]);
    memset(told, 0, sizeof *told);
    ssize_t n = read(debug_command_pipe[0], told, sizeof *told);
    (void)n;
    (void)close(debug_command_pipe[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void check_fatal_notes_and_passes_on(void **state) {
    static const struct {
        void (*what)(void);
        int signal, code;
        uint64_t address;
    } cases[] = {
        {fault, SIGSEGV, SEGV_MAPERR, 16},
        {give_up, SIGABRT, SI_TKILL, 0},
        {send_itself, SIGILL, SI_USER, 0},
    };
    struct debug_command told;
    begin(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = run(cases[i].what, READS, &told);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), cases[i].signal);
        assert_int_equal(told.signal, cases[i].signal);
        assert_int_equal(told.code, cases[i].code);
        assert_int_equal(told.address, cases[i].address);
        assert_true(told.tid > 0 && told.rip != 0 && told.tries > 0);
    }
}

/* Nobody reads, or who reads faults too: the process ends as it would have. */
static void check_fatal_ends_in_any_case(void **state) {
    struct debug_command told;
    begin(state);
    for (enum reader how = READS_NEVER; how <= FAULTS; how++) {
        int status = run(fault, how, &told);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        assert_int_equal(told.signal, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_fatal_puts_back_what_was_there),
        cmocka_unit_test(check_fatal_knows_reporters),
        cmocka_unit_test(check_fatal_leaves_children_alone),
        cmocka_unit_test(check_fatal_notes_and_passes_on),
        cmocka_unit_test(check_fatal_ends_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
