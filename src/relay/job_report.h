/* SPDX-License-Identifier: Apache-2.0 */
/* job_report: a job of this host as a row of report.h. */
#ifndef RELAY_JOB_REPORT_H
#define RELAY_JOB_REPORT_H

#include <stdint.h>

#include "base/strbuf.h"
#include "client/jobs/job_find.h"
#include "client/fleet/report.h"

struct job_report {
    struct report_job row; /* its texts are the job's, and those below */
    struct strbuf here, missing, elsewhere;
    char user[64];
};

/* Fill it; `found`: how often its ranks were found. job_report_fini frees. */
void job_report_fill(struct job_report *r, const struct job *job, int64_t found);
void job_report_fini(struct job_report *r);

#endif
