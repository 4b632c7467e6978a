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
#include "agent/sampler/thread_sampler.h"
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

/* One that takes signals, and sleeps until told to end. */
static void *listen_to_signals(void *arg) {
    struct held *h = arg;
    char byte = 0;
    h->tid = syscall(SYS_gettid);
    h->ident = (uint64_t)pthread_self();
    return write(h->told[1], &byte, 1) + read(h->tell[0], &byte, 1) == 2 ? NULL : arg;
}

/* An interpreter, and a thread that can be asked for its frames, of which there are none. */
struct asked {
    struct image *img;
    struct mem m;
    struct pystack *ps;
    struct held h;
    pthread_t thread;
    struct pystack_thread t;
};

static void begin_asking(struct asked *a, void *(*run)(void *arg)) {
    struct image_python py;
    char byte = 0;
    size_t n;
    *a = (struct asked){.img = malloc(sizeof *a->img)};
    assert_non_null(a->img);
    image_init(a->img, &pystack_offsets_all(&n)[0]);
    image_python(a->img, &py, "x");
    image_open(a->img, &a->m);
    a->ps = pystack_open_memory(&a->m, a->img->off, py.runtime);
    assert_non_null(a->ps);
    assert_true(pipe(a->h.tell) == 0 && pipe(a->h.told) == 0);
    assert_int_equal(pthread_create(&a->thread, NULL, run, &a->h), 0);
    assert_int_equal(read(a->h.told[0], &byte, 1), 1);
    a->t = (struct pystack_thread){.tid = a->h.tid, .ident = a->h.ident, .seen_ns = clock_mono_ns()};
}

static void end_thread(struct asked *a) {
    void *failed;
    char byte = 0;
    assert_int_equal(write(a->h.tell[1], &byte, 1), 1);
    assert_int_equal(pthread_join(a->thread, &failed), 0);
    assert_null(failed);
}

static void end_asking(struct asked *a) {
    pystack_close(a->ps);
    free(a->img);
    for (int i = 0; i < 2; i++)
        assert_true(close(a->h.tell[i]) == 0 && close(a->h.told[i]) == 0);
}

static const uint64_t patience_ns = 20 * CLOCK_NS_PER_S;

/* Otherwise the slot would wait for nobody, and the thread's timer could not use it. */
static void check_a_request_is_withdrawn(void **state) {
    static struct pystack_known known;
    struct signal_sampler_stats stats = {0};
    const struct pystack_self *copy;
    struct asked a;
    struct err e;
    (void)state;
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    begin_asking(&a, hold);
    struct pystack_thread t = a.t;
    struct pystack *ps = a.ps;
    assert_true(signal_sampler_ask(ps, &t, &known));
    assert_int_equal(signal_sampler_wait(&t, clock_mono_ns(), &copy), SIGNAL_SAMPLER_WAITING);
    assert_int_equal(signal_sampler_get(&t, &copy), SIGNAL_SAMPLER_NONE);
    assert_true(signal_sampler_ask(ps, &t, &known));
    end_thread(&a);
    assert_int_equal(signal_sampler_get(&t, &copy), SIGNAL_SAMPLER_READY);
    signal_sampler_release(&t);
    assert_int_equal(stats.sent, 2);
    assert_int_equal(stats.late, 1);
    signal_sampler_disarm();
    end_asking(&a);
}

/* The library stays in the job after the agent has left it: what handlers cost then is not the next run's. */
static void check_each_sampler_counts_its_own(void **state) {
    static struct pystack_known known;
    struct signal_sampler_stats first = {0}, second = {0};
    const struct pystack_self *copy;
    struct asked a;
    struct err e;
    (void)state;
    assert_int_equal(signal_sampler_arm(&first, &e), 0);
    begin_asking(&a, listen_to_signals);
    assert_true(signal_sampler_ask(a.ps, &a.t, &known));
    assert_int_equal(signal_sampler_wait(&a.t, clock_mono_ns() + patience_ns, &copy), SIGNAL_SAMPLER_READY);
    signal_sampler_release(&a.t);
    assert_int_equal(signal_sampler_check(&e), 0);
    signal_sampler_disarm();
    uint64_t handled = first.handled;
    assert_true(handled > 0 && first.handler_ns > 0 && first.deliver_ns > 0);
    assert_int_equal(signal_sampler_arm(&second, &e), 0);
    assert_int_equal(signal_sampler_check(&e), 0);
    assert_int_equal(second.handled, 0);
    assert_true(second.handler_ns == 0 && second.deliver_ns == 0 && second.restarted == 0);
    signal_sampler_disarm();
    /* while one that only pauses goes on */
    assert_int_equal(signal_sampler_arm(&first, &e), 0);
    assert_int_equal(signal_sampler_check(&e), 0);
    assert_int_equal(first.handled, handled);
    signal_sampler_disarm();
    end_thread(&a);
    end_asking(&a);
}

/* Samples end with a request that is answered but not collected; other streams go on. */
static void check_a_pause_forgets_answers(void **state) {
    static struct pystack_known known;
    struct signal_sampler_stats stats = {0};
    struct thread_sampler p;
    const struct pystack_self *copy;
    struct asked a;
    struct err e;
    (void)state;
    assert_int_equal(thread_sampler_init(&p, NULL, NULL), 0);
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    begin_asking(&a, listen_to_signals);
    p.threads = calloc(1, sizeof *p.threads);
    assert_non_null(p.threads);
    p.threads[0].py = a.t;
    p.n_threads = 1;
    assert_true(signal_sampler_ask(a.ps, &a.t, &known));
    assert_int_equal(signal_sampler_wait(&a.t, clock_mono_ns() + patience_ns, &copy), SIGNAL_SAMPLER_READY);
    assert_false(signal_sampler_ask(a.ps, &a.t, &known));
    thread_sampler_pause(&p);
    assert_int_equal(signal_sampler_get(&a.t, &copy), SIGNAL_SAMPLER_NONE);
    assert_true(signal_sampler_ask(a.ps, &a.t, &known));
    assert_int_equal(signal_sampler_wait(&a.t, clock_mono_ns() + patience_ns, &copy), SIGNAL_SAMPLER_READY);
    signal_sampler_disarm();
    thread_sampler_fini(&p);
    end_thread(&a);
    end_asking(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_exact_puts_back_what_was_there),
        cmocka_unit_test(check_exact_leaves_children_alone),
        cmocka_unit_test(check_a_request_is_withdrawn),
        cmocka_unit_test(check_each_sampler_counts_its_own),
        cmocka_unit_test(check_a_pause_forgets_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
