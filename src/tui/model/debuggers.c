/* SPDX-License-Identifier: Apache-2.0 */
/* debuggers: see debuggers.h. */
#include "tui/model/debuggers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static void debuggers_copy(char *to, size_t cap, const char *from) {
    text_sanitize(to, cap, from ? from : "");
}

void debuggers_take(struct debuggers *h, const struct model_status *s, double now_s) {
    *h = (struct debuggers){.told_s = now_s};
    for (size_t i = 0; i < s->n_holds && h->n < DEBUGGERS_MAX; i++) {
        const struct model_debugger *from = &s->holds[i];
        struct debugger *to = &h->items[h->n++];
        debuggers_copy(to->what, sizeof to->what, from->what);
        debuggers_copy(to->state, sizeof to->state, from->state);
        debuggers_copy(to->address, sizeof to->address, from->address);
        debuggers_copy(to->text, sizeof to->text, from->text);
        to->pid = from->pid;
        to->left_s = from->left_s;
        to->used = from->used;
    }
}

bool debuggers_have(const struct debuggers *h, const char *what) {
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->items[i].what, what) == 0)
            return true;
    return false;
}

static bool debugger_stops_job(const struct debugger *h) {
    return strcmp(h->state, "held") == 0 || strcmp(h->state, "kept") == 0;
}

bool debuggers_stop(const struct debuggers *h) {
    for (size_t i = 0; i < h->n; i++)
        if (debugger_stops_job(&h->items[i]))
            return true;
    return false;
}

/* One line; if two hold threads, the pause comes first: it holds them all. */
bool debuggers_put_line(const struct debuggers *h, double now_s, char *buf, size_t cap) {
    const struct debugger *it = NULL;
    char by[64] = "", left[32] = "";
    for (size_t i = 0; i < h->n && !it; i++)
        if (debugger_stops_job(&h->items[i]))
            it = &h->items[i];
    if (!it)
        return false;
    bool kept = strcmp(it->state, "kept") == 0;
    if (!kept && it->pid > 0)
        snprintf(by, sizeof by, " by process %lld%s", (long long)it->pid,
                 it->pid == getpid() ? " (this one)" : "");
    double rest = it->left_s - (now_s - h->told_s);
    if (!isnan(rest))
        snprintf(left, sizeof left, ", %.0f s left", rest > 0 ? rest : 0);
    snprintf(buf, cap, "%s%s: pdb at %s%s%s%s%s", kept ? "KEPT" : "PAUSED", by,
             it->address[0] ? it->address : "?", left, it->used ? ", in use" : "", kept ? ": " : "",
             it->text);
    return true;
}

void debuggers_put_names(const struct debuggers *h, char *buf, size_t cap) {
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < h->n && used < cap; i++) {
        const struct debugger *it = &h->items[i];
        if (debugger_stops_job(it))
            continue;
        int n = snprintf(buf + used, cap - used, "%s%s%s%s%s", used ? ", " : "", it->what,
                         it->address[0] ? " at " : "", it->address, it->used ? " (in use)" : "");
        used += n > 0 ? (size_t)n : 0;
    }
}
