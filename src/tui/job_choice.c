/* SPDX-License-Identifier: Apache-2.0 */
/* job_choice: see job_choice.h. */
#include "tui/job_choice.h"

#include <stdio.h>

#include "client/engine/engine_schema.h"
#include "client/fleet/engine_jobs.h"

int job_choice_read(const char *address, bool may_choose, char *out, size_t cap, struct err *e) {
    struct engine_address a;
    struct engine_jobs jobs = {.n = 0};
    double last;
    char name[ENGINE_ADDRESS_JOB];
    if (engine_address_parse(&a, address, e) != 0 || engine_address_read_password(&a, e) != 0)
        return -1;
    if (a.job[0]) {
        snprintf(out, cap, "%s", address);
        return 0;
    }
    struct engine_http *h = engine_http_open(&a, e);
    int rc = h ? engine_schema_check(h, e) : -1;
    if (rc == 0 && may_choose)
        rc = engine_jobs_read(&jobs, h, e);
    bool several = jobs.n > 1;
    snprintf(name, sizeof name, "%s", jobs.n == 1 ? jobs.items[0].name : "");
    if (rc == 0 && jobs.n == 0)
        rc = engine_jobs_choose(h, "", name, sizeof name, &last, e);
    if (rc == 0)
        rc = engine_address_name_job(address, name, out, cap, e);
    engine_jobs_fini(&jobs);
    engine_http_close(h);
    return rc == 0 && several ? 1 : rc;
}
