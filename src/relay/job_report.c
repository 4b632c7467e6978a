/* SPDX-License-Identifier: Apache-2.0 */
/* job_report: see job_report.h. */
#include "relay/job_report.h"

#include "client/gpu/gpu_poller.h"
#include "client/target/target.h"

#define JOB_REPORT_RANGES 64 /* of a set of ranks in a text */

static const char *job_report_set(const struct rank_set *set, struct strbuf *text) {
    strbuf_init(text, 0);
    rank_set_put(set, JOB_REPORT_RANGES, text);
    return text->len ? strbuf_str(text) : NULL;
}

/* Slices are not counted. */
static int64_t job_report_count_gpus(void) {
    struct gpu_device list[GPU_MAX];
    int64_t n = 0;
    for (size_t i = gpu_poller_devices(list, GPU_MAX); i-- > 0;)
        n += list[i].facts.slice == GPU_NO_NUMBER;
    return n ? n : REPORT_NO_INT;
}

void job_report_fill(struct job_report *r, const struct job *job, int64_t found) {
    report_clear(&REPORT_TABLE_JOB, &r->row);
    target_user_name(job->uid, r->user, sizeof r->user);
    r->row.found = found;
    r->row.name = job->name;
    r->row.ranks = job_report_set(&job->here, &r->here);
    r->row.missing = job_report_set(&job->missing, &r->missing);
    r->row.unread = (int64_t)job->unread;
    r->row.elsewhere = job_report_set(&job->elsewhere, &r->elsewhere);
    r->row.world = job->world ? job->world : REPORT_NO_INT;
    r->row.restarts = job->restarts;
    r->row.found_by = job->source->name;
    r->row.user = r->user;
    r->row.gpus = job_report_count_gpus();
    for (size_t i = 0; i < job->n_members; i++)
        if (job->members[i].role == JOB_LAUNCHER && r->row.launcher == REPORT_NO_INT)
            r->row.launcher = job->members[i].pid;
}

void job_report_fini(struct job_report *r) {
    strbuf_fini(&r->here);
    strbuf_fini(&r->missing);
    strbuf_fini(&r->elsewhere);
}
