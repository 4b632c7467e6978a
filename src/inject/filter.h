/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: whether a thread's seccomp filters would kill for what the injector and the agent do.
 *
 * A filter that refuses a call does no harm: a feature is missing then. One that kills cannot be
 * discovered by trying. A tracer with CAP_SYS_ADMIN may read a thread's filters; here they run
 * over every call that will be made. The filters are foreign bytes: every jump and index is
 * checked.
 */
#ifndef INJECT_FILTER_H
#define INJECT_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILTER_INSTRUCTIONS_MAX 4096 /* of one filter: BPF_MAXINSNS */

enum filter_verdict {
    FILTER_HARMLESS = 0,
    FILTER_KILLS,
    FILTER_UNKNOWN, /* they may not be read, or are not valid */
};

/* A filter's result for a call (SECCOMP_RET_*, with its data). 0, or -1 if the filter is not
 * valid. */
int filter_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t *answer);

/* Whether this filter would kill for one of the calls. `*nr` becomes its number. */
enum filter_verdict filter_judge(const struct sock_filter *code, size_t n, long *nr);

/* The same for all filters of thread `tid`, which is stopped under ptrace. Takes less than a
 * millisecond. */
enum filter_verdict filter_judge_thread(pid_t tid, long *nr);

#endif
