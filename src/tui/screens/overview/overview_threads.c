/* SPDX-License-Identifier: Apache-2.0 */
/* overview_threads: see overview_threads.h. */
#include "tui/screens/overview/overview_threads.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/screens/threads/threads_rows.h"

#define OVERVIEW_GROUPS 16 /* names that are told apart; more are "others" */
#define OVERVIEW_NAMED 4   /* and written out */

__attribute__((format(printf, 3, 4))) static void overview_append(char *buf, size_t cap, const char *fmt,
                                                                  ...) {
    size_t used = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

/* What each state is called, one and many. */
static const struct {
    const char *one, *many;
} overview_states[] = {{"runs", "run"},
                       {"waits for the GIL", "wait for the GIL"},
                       {"in a device", "in a device"},
                       {"sleeps", "sleep"},
                       {"stopped", "stopped"},
                       {"of which that is unknown", "of which that is unknown"}};
#define OVERVIEW_STATES (sizeof overview_states / sizeof overview_states[0])

static size_t overview_state(const struct model_thread *t) {
    if (t->gil == MODEL_GIL_WAITING)
        return 1;
    switch (t->state) {
    case 'R':
        return 0;
    case 'D':
        return 2;
    case 'S':
    case 'I':
        return 3;
    case 'T':
    case 't':
    case 'Z':
    case 'X':
        return 4;
    default:
        return 5;
    }
}

void overview_threads_text(const struct model_snapshot *s, char *buf, size_t cap) {
    size_t n[OVERVIEW_STATES] = {0};
    buf[0] = '\0';
    for (size_t i = 0; i < s->n_threads; i++)
        n[overview_state(&s->threads[i])]++;
    for (size_t i = 0; i < OVERVIEW_STATES; i++)
        if (n[i])
            overview_append(buf, cap, "%s%zu %s", *buf ? ", " : "", n[i],
                            n[i] == 1 ? overview_states[i].one : overview_states[i].many);
    if (s->incomplete)
        overview_append(buf, cap, "; some were left out");
}

/* ---- classes ---- */

struct overview_group {
    char name[32];
    size_t n;
    double cpu; /* NAN: of none of them */
};

/* A name without the number at its end, as pools of threads have it. */
static void overview_group_name(const struct model_thread *t, char *buf, size_t cap) {
    text_sanitize(buf, cap, data_thread_name(t));
    size_t len = strlen(buf);
    while (len > 1 && strchr("0123456789_-#:/ ", buf[len - 1]))
        len--;
    buf[len] = '\0';
}

static void overview_count(struct overview_group *groups, size_t *n, const struct model_thread *t) {
    char name[sizeof groups->name];
    size_t i = 0;
    overview_group_name(t, name, sizeof name);
    while (i < *n && strcmp(groups[i].name, name) != 0)
        i++;
    if (i == OVERVIEW_GROUPS) {
        i--;
        (void)snprintf(groups[i].name, sizeof groups[i].name, "others");
    } else if (i == *n) {
        groups[(*n)++] = (struct overview_group){.cpu = NAN};
        (void)snprintf(groups[i].name, sizeof groups[i].name, "%s", name);
    }
    groups[i].n++;
    if (!isnan(t->cpu_pct))
        groups[i].cpu = (isnan(groups[i].cpu) ? 0 : groups[i].cpu) + t->cpu_pct;
}

static double overview_order(const struct overview_group *g) { return isnan(g->cpu) ? -1 : g->cpu; }

/* The busiest names first. */
static void overview_put_groups(struct overview_group *groups, size_t n, char *buf, size_t cap) {
    for (size_t k = 0; k < n && k < OVERVIEW_NAMED; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++)
            if (overview_order(&groups[i]) > overview_order(&groups[best]))
                best = i;
        struct overview_group g = groups[best];
        groups[best] = groups[k];
        groups[k] = g;
        overview_append(buf, cap, "%s%s", k ? ", " : ": ", g.name);
        if (g.n > 1)
            overview_append(buf, cap, " x%zu", g.n);
        if (isnan(g.cpu))
            overview_append(buf, cap, " ?");
        else
            overview_append(buf, cap, " %.0f %%", g.cpu);
    }
    if (n > OVERVIEW_NAMED)
        overview_append(buf, cap, ", ...");
}

static void overview_main_text(const struct model_thread *t, char *buf, size_t cap) {
    const struct model_frame *f = t->n_frames ? &t->frames[0] : NULL;
    char func[96], file[64];
    if (!f) {
        (void)snprintf(buf, cap, t->has_python ? "no frame" : "no Python");
        return;
    }
    text_sanitize(func, sizeof func, f->func ? f->func : "?");
    text_sanitize(file, sizeof file, f->file ? thread_base_name(f->file) : "?");
    (void)snprintf(buf, cap, "%s %s:%d", func, file, f->line);
}

void overview_class_text(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                         char *buf, size_t cap) {
    struct overview_group groups[OVERVIEW_GROUPS];
    size_t n = 0, threads = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        if (events_class(d, t) != class)
            continue;
        threads++;
        if (class == EVENTS_CPU_MAIN) {
            overview_main_text(t, buf, cap);
            return;
        }
        overview_count(groups, &n, t);
    }
    if (class == EVENTS_CPU_MAIN)
        (void)snprintf(buf, cap, "not seen");
    else
        (void)snprintf(buf, cap, "%zu", threads);
    overview_put_groups(groups, n, buf, cap);
}
