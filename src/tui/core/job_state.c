/* SPDX-License-Identifier: Apache-2.0 */
/* job_state: see job_state.h. */
#include "tui/core/job_state.h"

#include <math.h>
#include <string.h>

#include "tui/core/screen.h"
#include "tui/view/rank_text.h"

void job_state_init(struct app_job *j) {
    j->rank = j->opening = j->opened = -1;
    j->moment = NAN;
}

void job_state_fini(struct app_job *j) {
    job_shot_free(j->shot);
    job_shot_free(j->read);
    job_history_fini(&j->past);
    tags_fini(&j->tags);
    memset(j, 0, sizeof *j);
}

bool job_state_is_watched(const struct app *a) { return *a->job.target != '\0'; }

bool job_state_is_alone(const struct app *a) {
    return job_state_is_watched(a) && a->pid == 0 && !a->data.has_target && !a->attaching &&
           a->job.opened < 0;
}

bool job_state_can_open(const struct app *a) {
    const struct job_shot *f = job_state_shown(a);
    bool is_here = !a->config.job_is_closed;
    for (size_t i = 0; f && i < f->n_hosts; i++)
        is_here |= f->hosts[i].is_here;
    return is_here && isnan(a->job.moment) && !a->data.paused && !(f && f->is_final);
}

bool job_state_is_shown_by(const struct app *a, const struct screen_def *def) {
    if (!def || !job_state_is_watched(a))
        return false;
    return def->of_job || (job_state_is_alone(a) && (def->shows_job || (def->reads_job && a->job.has_past)));
}

const struct job_shot_rank *job_state_selected(const struct app *a) {
    const struct job_shot *f = job_state_shown(a);
    const struct job_shot_rank *r = job_shot_find(f, a->job.rank);
    int worst = -1;
    for (size_t i = 0; f && a->job.rank < 0 && i < f->n_ranks; i++) {
        int badness = rank_text_badness(f, &f->ranks[i]);
        r = badness > worst ? &f->ranks[i] : r;
        worst = badness > worst ? badness : worst;
    }
    return r;
}

const struct app_job_offer *job_state_offer(const struct app *a) {
    return a->pid > 0 && a->job.offer.pid == a->pid ? &a->job.offer : NULL;
}

bool job_state_is_offered(const struct app *a) { return job_state_is_watched(a) || job_state_offer(a); }

bool job_state_is_launcher(const struct app *a) {
    const struct app_job_offer *o = job_state_offer(a);
    return o && o->rank < 0;
}

const struct job_shot *job_state_shown(const struct app *a) {
    return a->data.paused && a->job.frozen ? a->job.frozen : a->job.shot;
}

int32_t job_state_rank(const struct app *a, int32_t *world) {
    const struct job_shot *f = a->job.shot;
    const struct job_shot_rank *r = job_shot_find_pid(f, a->pid), *opened = job_shot_find(f, a->job.opened);
    /* on another host: it is the one that was opened last, as long as it is shown */
    if (!r && opened && !job_shot_is_here(f, opened) && a->data.has_target &&
        opened->pid == a->data.target.pid)
        r = opened;
    const struct app_job_offer *o = job_state_offer(a);
    *world = r ? f->world : o ? o->world : 0;
    return r ? r->rank : o ? o->rank : -1;
}
