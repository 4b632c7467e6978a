/* SPDX-License-Identifier: Apache-2.0 */
/* The signal by which threads are asked: what its handler leaves behind in the job and in children of the job, and requests that
 * are not answered in time. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/signal_sampler.h"
#include "base/clock.h"
#include "pystack/pystack_internal.h"
#include "support/pystack_image.h"

/* The disposition as the kernel has it. */
struct action {
    uint64_t handler, flags, restorer, mask;
};

static void read_action(struct action *out) {
    memset(out, 0, sizeof *out);
    assert_int_equal(syscall(SYS_rt_sigaction, SIGURG, NULL, out, sizeof out->mask), 0);
}

static void check_exact_puts_back_what_was_there(void **state) {
    struct signal_sampler_stats stats = {0};
    struct action before, now;
    struct err e;
    (void)state;
    read_action(&before);
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    read_action(&now);
    assert_true(memcmp(&before, &now, sizeof now) != 0);
    signal_sampler_disarm();
    read_action(&now);
    assert_memory_equal(&before, &now, sizeof now);
}

static int stop_arming;

static void *arm_and_disarm(void *arg) {
    struct signal_sampler_stats stats = {0};
    struct err e;
    while (!__atomic_load_n(&stop_arming, __ATOMIC_ACQUIRE)) {
        if (signal_sampler_arm(&stats, &e) != 0)
            return arg;
        signal_sampler_disarm();
    }
    return NULL;
}

/* fork copies dispositions first and memory later: the child has no handler whatever the copy of our memory says. */
static void check_exact_leaves_children_alone(void **state) {
    pthread_t thread;
    void *failed;
    int wrong = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, arm_and_disarm, &stop_arming), 0);
    for (int i = 0; i < 300; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            struct sigaction now;
            signal_sampler_in_child();
            _exit(sigaction(SIGURG, NULL, &now) != 0 || now.sa_handler != SIG_DFL);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        wrong += status != 0;
    }
    __atomic_store_n(&stop_arming, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_true(!failed && !wrong);
}

/* A thread that takes no signal: it waits for its child of vfork, which ends when told to. */
struct held {
    int tell[2], told[2];
    int64_t tid;
    uint64_t ident;
};

static void *hold(void *arg) {
    struct held *h = arg;
    int status = -1;
    h->tid = syscall(SYS_gettid);
    h->ident = (uint64_t)pthread_self();
    pid_t child = vfork();
    if (child == 0) {
        char byte = 0;
        ssize_t n = write(h->told[1], &byte, 1) + read(h->tell[0], &byte, 1);
        _exit(n != 2);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? NULL : arg;
}

/* Otherwise the slot would wait for nobody, and the thread's timer could not use it. */
static void check_a_request_is_withdrawn(void **state) {
    static struct pystack_known known;
    struct signal_sampler_stats stats = {0};
    const struct pystack_self *copy;
    struct image_python py;
    struct image *img = malloc(sizeof *img);
    struct held h;
    struct mem m;
    struct err e;
    pthread_t thread;
    void *failed;
    char byte = 0;
    size_t n;
    (void)state;
    assert_non_null(img);
    image_init(img, &pystack_offsets_all(&n)[0]);
    image_python(img, &py, "x");
    image_open(img, &m);
    struct pystack *ps = pystack_open_memory(&m, img->off, py.runtime);
    assert_non_null(ps);
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    assert_true(pipe(h.tell) == 0 && pipe(h.told) == 0);
    assert_int_equal(pthread_create(&thread, NULL, hold, &h), 0);
    assert_int_equal(read(h.told[0], &byte, 1), 1);
    struct pystack_thread t = {.tid = h.tid, .ident = h.ident, .seen_ns = clock_mono_ns()};
    assert_true(signal_sampler_ask(ps, &t, &known));
    assert_int_equal(signal_sampler_wait(&t, clock_mono_ns(), &copy), SIGNAL_SAMPLER_WAITING);
    assert_int_equal(signal_sampler_get(&t, &copy), SIGNAL_SAMPLER_NONE);
    assert_true(signal_sampler_ask(ps, &t, &known));
    assert_int_equal(write(h.tell[1], &byte, 1), 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(signal_sampler_get(&t, &copy), SIGNAL_SAMPLER_READY);
    signal_sampler_release(&t);
    assert_int_equal(stats.sent, 2);
    assert_int_equal(stats.late, 1);
    signal_sampler_disarm();
    pystack_close(ps);
    free(img);
    for (int i = 0; i < 2; i++)
        assert_true(close(h.tell[i]) == 0 && close(h.told[i]) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_exact_puts_back_what_was_there),
        cmocka_unit_test(check_exact_leaves_children_alone),
        cmocka_unit_test(check_a_request_is_withdrawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
