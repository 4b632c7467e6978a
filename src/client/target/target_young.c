/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_young: a process that began in this very moment is given the time to become a Python; see target.h.
 *
 * 'python train.py & probing $!' looks at it before it is one: first it is a shell's child that has not called exec yet, then a
 * loader without the C library, then an interpreter that is not initialised. Who is no Python for good is told so soon.
 */
#include "client/target/target.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "pystack/pystack.h"

#define TARGET_YOUNG_S                                                                                       \
    2.0 /* younger: it may not have called exec yet, or only a program that calls it again */
#define TARGET_STARTING_S                                                                                    \
    60.0 /* older: what is not initialised by now does not start, it has ended or never will */
#define TARGET_POLL_NS (10 * CLOCK_NS_PER_MS) /* between two looks, which take half of the time at most */

/* Is it worth while to look again, after a look that said `lack`? */
static bool target_may_become(pid_t pid, enum pystack_lack lack) {
    struct procfs_stat st;
    double age_s = clock_epoch_s() - procfs_started_at(pid);
    if (procfs_is_gone(pid) || procfs_read_stat(pid, 0, &st) != 0 || st.state == 'T' || st.state == 't')
        return false;
    return lack != PYSTACK_LACKS_RIGHT &&
           age_s < (lack == PYSTACK_LACKS_START ? TARGET_STARTING_S : TARGET_YOUNG_S);
}

/* Has somebody asked us to end, who has such signals deferred? */
static bool target_stop_asked(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1);
}

int target_await_python(pid_t pid, unsigned timeout_ms, struct err *e) {
    uint64_t until = clock_mono_ns() + timeout_ms * CLOCK_NS_PER_MS;
    double age_s = clock_epoch_s() - procfs_started_at(pid);
    if (!(age_s < TARGET_STARTING_S)) /* or not known */
        return 0;
    for (;;) {
        enum pystack_lack lack;
        struct err ignored;
        uint64_t began = clock_mono_ns();
        struct pystack *python = pystack_open_young(pid, &lack, &ignored);
        uint64_t now = clock_mono_ns(), pause = now - began > TARGET_POLL_NS ? now - began : TARGET_POLL_NS;
        if (python)
            pystack_close(python);
        if (python || !target_may_become(pid, lack) || now + pause >= until)
            return 0;
        if (target_stop_asked())
            return err_set(e, ERR_FAILED, "interrupted; process %d is as it was", (int)pid);
        (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(pause / CLOCK_NS_PER_S),
                                           .tv_nsec = (long)(pause % CLOCK_NS_PER_S)},
                        NULL);
    }
}
