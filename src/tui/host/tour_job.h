/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tour_job: the training job that `probing-top --tour` shows: one of examples/, which is built in.
 * slow_train.py, whose fault the verdict names, where a Python has torch; else train_plain.py.
 *
 * A guardian, a process of its own, starts the job and waits until this program ends, however that
 * happens. Then it ends the job and removes its files.
 */
#ifndef TUI_HOST_TOUR_JOB_H
#define TUI_HOST_TOUR_JOB_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct tour_job {
    pid_t pid;             /* of the job */
    bool has_torch;        /* it trains with torch */
    char python[PATH_MAX]; /* that runs it */

    pid_t guardian;
    int fd;                /* the guardian waits for its end */
    char folder[PATH_MAX]; /* of its files */
};

/* Start it, and wait for its first step; reports on standard error what it does. $PYTHON names the
 * Python; otherwise the first along PATH that has torch, or the first at all. 0, or -1 with the
 * error: nothing is left then. */
int tour_job_start(struct tour_job *j, struct err *e);

/* End it, and wait until it is gone. */
void tour_job_end(struct tour_job *j);

#endif
