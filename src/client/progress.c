/* SPDX-License-Identifier: Apache-2.0 */
/* progress: see progress.h. */
#include "client/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/work.h"
#include "client/output.h"

#define PROGRESS_LEAST_S 1.0 /* what takes less is not shown */
#define PROGRESS_EVERY_NS (250 * CLOCK_NS_PER_MS)
#define PROGRESS_END_S 2
#define PROGRESS_NOTE 96

static struct progress {
    struct work work;
    bool is_open; /* there is a thread */
    const char *what, *hint;
    double total_s;
    uint64_t began_ns;
    char note[PROGRESS_NOTE];
} progress;

static void progress_draw(const struct progress *p, uint64_t now_ns) {
    char line[256], time[64], length[32];
    double since_s = (double)(now_ns - p->began_ns) / 1e9;
    text_human_duration(length, sizeof length, since_s);
    if (p->total_s > 0 && p->total_s < 100)
        snprintf(time, sizeof time, "%.0f of %.3g s", since_s < p->total_s ? since_s : p->total_s,
                 p->total_s);
    else if (p->total_s > 0) {
        char total[32];
        text_human_duration(total, sizeof total, p->total_s);
        snprintf(time, sizeof time, "%s of %s", length, total);
    } else if (since_s < 100)
        snprintf(time, sizeof time, "%.0f s", since_s);
    else
        snprintf(time, sizeof time, "%s", length);
    snprintf(line, sizeof line, "%s: %s%s%s%s%s", p->what, time, *p->note ? ", " : "", p->note,
             p->hint ? "; " : "", p->hint ? p->hint : "");
    output_progress(line);
}

static void progress_run(void *arg) {
    struct progress *p = arg;
    work_lock(&p->work);
    while (!p->work.stop) {
        uint64_t now_ns = clock_mono_ns();
        bool is_long =
            p->total_s >= PROGRESS_LEAST_S || (double)(now_ns - p->began_ns) / 1e9 >= PROGRESS_LEAST_S;
        if (is_long)
            progress_draw(p, now_ns);
        work_wait(&p->work, now_ns + PROGRESS_EVERY_NS);
    }
    work_unlock(&p->work);
}

void progress_begin(const char *what, double total_s, const char *hint) {
    struct progress *p = &progress;
    progress_end();
    if (!output_is_watched() || work_init(&p->work) != 0)
        return;
    p->what = what;
    p->hint = hint;
    p->total_s = total_s;
    p->began_ns = clock_mono_ns();
    p->note[0] = '\0';
    p->is_open = work_start(&p->work, progress_run, p) == 0;
    if (!p->is_open)
        work_stop(&p->work, 0);
}

void progress_note(const char *fmt, ...) {
    struct progress *p = &progress;
    va_list ap;
    if (!p->is_open)
        return;
    work_lock(&p->work);
    va_start(ap, fmt);
    vsnprintf(p->note, sizeof p->note, fmt, ap);
    va_end(ap);
    work_unlock(&p->work);
}

void progress_end(void) {
    if (!progress.is_open)
        return;
    progress.is_open = false;
    work_stop(&progress.work, PROGRESS_END_S);
    output_progress("");
}
