/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: would the seccomp filters of a thread kill for what the injector and the agent do?
 *
 * A filter that refuses a call is no harm: a feature is missing then. One that kills cannot be found out about by trying. A
 * tracer with CAP_SYS_ADMIN may read a thread's filters; they are run here, over every call that will be made.
 * The filters are foreign bytes: every jump and index is checked.
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
    FILTER_UNKNOWN, /* they may not be read, or make no sense */
};

/* What a filter answers to a call (SECCOMP_RET_*, with its data). 0, or -1 when it is no valid filter. */
int filter_run(const struct sock_filter *code, size_t n, const struct seccomp_data *data, uint32_t *answer);

/* Would this filter kill for one of the calls? `*nr` becomes its number. */
enum filter_verdict filter_judge(const struct sock_filter *code, size_t n, long *nr);

/* The same of all filters of the thread `tid`, which stands still under ptrace. Takes less than a millisecond. */
enum filter_verdict filter_judge_thread(pid_t tid, long *nr);

#endif
