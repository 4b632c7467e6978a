/* SPDX-License-Identifier: Apache-2.0 */
/* debuggers: debuggers in the job, whoever started them, by the agent's last status: for the header
 * of every screen. Pure. */
#ifndef TUI_MODEL_DEBUGGERS_H
#define TUI_MODEL_DEBUGGERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/model.h"

#define DEBUGGERS_MAX 3
#define DEBUGGERS_STATUS_S 1.0 /* how often the agent is asked while a debugger holds a thread */

struct debugger {
    char what[16], state[16], address[64], text[256];
    int64_t pid;   /* of who started it; -1: unknown */
    double left_s; /* at the time of the status; NAN: no limit */
    bool used;
};

struct debuggers {
    struct debugger items[DEBUGGERS_MAX];
    size_t n;
    double told_s; /* when the status arrived, on the caller's clock */
};

/* Copy what the status reports. */
void debuggers_take(struct debuggers *h, const struct model_status *s, double now_s);

/* Is there one of that name? */
bool debuggers_have(const struct debuggers *h, const char *what);

/* Does one hold a thread, so that the job does not run normally? */
bool debuggers_stop(const struct debuggers *h);

/* A line about that: "PAUSED by process 42: pdb at 127.0.0.1:4711, 212 s left"; false: none
 * does. */
bool debuggers_put_line(const struct debuggers *h, double now_s, char *buf, size_t cap);

/* The others in few words: "debug at 127.0.0.1:5678, catch"; "": none. */
void debuggers_put_names(const struct debuggers *h, char *buf, size_t cap);

#endif
