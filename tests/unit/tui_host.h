/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_host: a host (struct app_host) that does nothing but note what the app asks of it. There is one; an app that is made
 * with it begins with nothing noted.
 */
#ifndef TESTS_TUI_HOST_H
#define TESTS_TUI_HOST_H

#include <limits.h>
#include <stdbool.h>

#include "tui/core/app.h"
#include "tui/core/settings.h"

/* What was asked for since it was last taken. */
struct fake_asked {
    bool quit, suspend, repaint, set_mouse, list_themes, save_settings, copy, write, edit, list_processes,
        list_jobs;
    bool snapshot, status, interrupt, disarm, read_source, cancel_query, cancel_magic;
    char theme[SETTINGS_TEXT]; /* "" none */
    char history[64];          /* opened last */
    char diff[512];
    char job[512];        /* to be watched; "" none */
    char job_tables[512]; /* whose tables are read; "" none */
    pid_t attach, find_job;
    char attach_host[64]; /* "" here */
    int show_target;      /* counted from 1; 0 none */
    struct wire_threads details;
    struct wire_arm arm;
    struct wire_config config;
};

/* Further arguments of what was asked last; they stay when it is taken. */
struct fake_host {
    struct fake_asked asked;
    char *text; /* that was copied, */
    size_t len;
    char what[64]; /* and what it is */
    char file[PATH_MAX];
    int line; /* of the file to edit */
    struct export_job *job;
    enum magic_kind magic_kind;
    int magic_cols;
};

extern struct fake_host fake_host;

/* The host for a struct app_config; what was noted before is forgotten. */
const struct app_host *fake_host_begin(void);

struct fake_asked fake_host_take(void);

#endif
