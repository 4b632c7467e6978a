/* SPDX-License-Identifier: Apache-2.0 */
/* record_facts: what the process is, for those who look at its tables when it is gone; see record.h. A fact is written when it becomes known, and
 * when it changes; without a value when it is true no longer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/tables/record.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "pystack/pystack.h"
#include "version.h"

#define RECORD_CMDLINE ((size_t)64 * 1024)
/* Between two looks for a torch, which may be imported late: each reads the list of what is mapped. */
#define RECORD_TORCH_NS (4 * CLOCK_NS_PER_S)
#define RECORD_TORCH_FIRST_NS (CLOCK_NS_PER_S - 1) /* the same once Python has a module of that name */
#define RECORD_TORCH_MAX_NS (64 * CLOCK_NS_PER_S)

static void record_fact(struct record *r, double timestamp, const char *key, const char *value) {
    union ring_value v[RING_FACTS_COUNT];
    v[RING_FACTS_TIMESTAMP].f = timestamp;
    v[RING_FACTS_KEY].s = key;
    v[RING_FACTS_VALUE].s = value;
    record_append(r, RING_FACTS, v);
}

/* What does not change. */
static void record_process_facts(struct record *r, double timestamp) {
    char text[4096];
    struct strbuf cmdline;
    double started = procfs_started_at(0);
    strbuf_init(&cmdline, RECORD_CMDLINE);
    if (procfs_read_cmdline(0, &cmdline) == 0 && strbuf_str(&cmdline)[0])
        record_fact(r, timestamp, RING_FACT_CMD, strbuf_str(&cmdline));
    strbuf_fini(&cmdline);
    if (procfs_read_exe(0, text, sizeof text) == 0)
        record_fact(r, timestamp, RING_FACT_EXE, text);
    if (isfinite(started)) {
        (void)snprintf(text, sizeof text, "%.3f", started);
        record_fact(r, timestamp, RING_FACT_STARTED_AT, text);
    }
    record_fact(r, timestamp, RING_FACT_AGENT, PROBING_VERSION);
}

/* Variables of the environment, as it was when the process began, that somebody has named; there may be secrets among the others. */
static void record_allowed(struct record *r, double timestamp) {
    char key[CONFIG_TEXT_MAX + sizeof RING_FACT_ENV], value[RING_MAX_TEXT + 1];
    for (const char *p = r->config.env_allow; *p;) {
        int n = (int)strcspn(p, ",");
        (void)snprintf(key, sizeof key, "%s%.*s", RING_FACT_ENV, n, p);
        if (procfs_read_environ(0, key + strlen(RING_FACT_ENV), value, sizeof value) == 0)
            record_fact(r, timestamp, key, value);
        p += n + (p[n] == ',');
    }
}

/* Is it time to look for a torch? The list of what is mapped is read seldom, but when one has just been imported. */
static bool record_torch_due(struct record_facts *f, struct pystack *ps, uint64_t now_ns) {
    bool is_there = ps && pystack_has_module(ps, "torch", &f->modules);
    bool came = is_there && !f->torch_module;
    f->torch_module = is_there;
    if (!came && now_ns < f->torch_due_ns)
        return false;
    if (came)
        f->torch_every_ns = RECORD_TORCH_FIRST_NS / 2;
    f->torch_every_ns = f->torch_every_ns ? f->torch_every_ns * 2 : RECORD_TORCH_NS;
    if (f->torch_every_ns > RECORD_TORCH_MAX_NS)
        f->torch_every_ns = RECORD_TORCH_MAX_NS;
    f->torch_due_ns = now_ns + f->torch_every_ns;
    return true;
}

void record_facts(struct record *r, const char *python, struct pystack *ps, uint64_t now_ns,
                  double timestamp) {
    struct record_facts *f = &r->facts;
    if (!f->told) {
        record_process_facts(r, timestamp);
        record_allowed(r, timestamp);
    }
    f->told = true;
    if (strcmp(f->python, python ? python : "") != 0) {
        (void)snprintf(f->python, sizeof f->python, "%s", python ? python : "");
        record_fact(r, timestamp, RING_FACT_PYTHON, python);
    }
    if (f->torch[0] || !record_torch_due(f, ps, now_ns))
        return;
    if (pystack_find_torch(0, f->torch, sizeof f->torch) == 0)
        record_fact(r, timestamp, RING_FACT_TORCH, f->torch);
    else
        f->torch[0] = '\0';
}

void record_event(struct record *r, const char *kind, int64_t uid, int64_t pid, const char *text) {
    union ring_value v[RING_EVENTS_COUNT];
    record_begin(r);
    if (!r->set)
        return;
    v[RING_EVENTS_TIMESTAMP].f = clock_epoch_s();
    v[RING_EVENTS_KIND].s = kind;
    v[RING_EVENTS_CLIENT_UID].i = uid < 0 ? RING_INT_NULL : uid;
    v[RING_EVENTS_CLIENT_PID].i = pid < 0 ? RING_INT_NULL : pid;
    v[RING_EVENTS_TEXT].s = text;
    record_append(r, RING_EVENTS, v);
    r->unflushed = ring_set_flush(r->set) != 0; /* what is done may be the end of the process */
}
