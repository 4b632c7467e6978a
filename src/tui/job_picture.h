/* SPDX-License-Identifier: Apache-2.0 */
/* job_picture: the screens of all ranks of a job as text or JSON, for --export txt and json. */
#ifndef TUI_JOB_PICTURE_H
#define TUI_JOB_PICTURE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/fleet/fleet_source.h"
#include "tui/core/app.h"
#include "tui/model/job_shot.h"

struct job_picture {
    const char *target; /* the job: "job:train.py", or a pid of one of its processes */
    const char *filter; /* of its rows; NULL: all. Not for the stacks as JSON */
    const struct screen_def *screen;
    int rows, cols; /* of the text */
    bool json;
    const struct fleet_reach *reach; /* where its ranks are */
};

/* The screen of that name, if it is one of a job; or if the target (NULL: none is known yet) is a job in a database,
 * of which it shows something. NULL. */
const struct screen_def *job_picture_find(const char *name, const char *target);

/* Watch the job for two rounds, and append its screen, drawn with the settings of `app`. 0, or -1 with
 * the error: there is no such job, or nothing is known of it in time. */
int job_picture_put(const struct job_picture *p, const struct app_config *app, struct strbuf *out,
                    struct err *e);

/* Append the rows of p->screen, which is that of the ranks or the stacks, as JSON. Pure. 0, or -1 without memory. */
int job_picture_put_json(const struct job_picture *p, const struct job_shot *s, struct strbuf *out);

#endif
