/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_job: the ranks of a job made by hand, always the same, for tests of the screens.
 */
#ifndef TESTS_TUI_JOB_H
#define TESTS_TUI_JOB_H

#include "client/fleet/engine_jobs.h"
#include "tui/core/app.h"
#include "tui/model/job_shot.h"

enum job_fixture {
    JOB_FIXTURE_HEALTHY, /* 8 ranks of this host, with steps */
    JOB_FIXTURE_HUNG, /* 8 ranks on 2 hosts: 7 wait in a collective for rank 5, whose loader gives nothing */
    JOB_FIXTURE_BACKWARD,     /* 8 ranks without agents, of which 3 stand in a backward pass */
    JOB_FIXTURE_DEVICE,       /* 7 of 8 wait for the result of their device, which looks like work */
    JOB_FIXTURE_DEVICE_STEPS, /* the same, but their steps go on */
    JOB_FIXTURE_64,           /* 8 hosts: one rank is slow, one is stopped */
    JOB_FIXTURE_1000,         /* 125 hosts: one has no process, a host is silent, one stack is another */
    JOB_FIXTURE_BARE,         /* 3 ranks without an agent, one is missing, of one nothing is known */
    JOB_FIXTURE_SILENT,       /* 8 ranks on a host; of its two others nothing is known */
    JOB_FIXTURE_NAMES,        /* CJK, escape sequences, overlong names */
};

/* The ranks at FIXTURE_EPOCH_S. */
struct job_shot *job_fixture(enum job_fixture kind);

/* The same with its verdict given to an app that watches them. */
void job_fixture_give(struct app *a, enum job_fixture kind);

/* Jobs of a database: two that run, two that have ended, one of which little is known. */
struct engine_jobs job_fixture_jobs(void);

/* An app in which one of them is to be chosen. */
struct app *job_fixture_picker(bool ascii);

/* An app in which no process is open, on the screen that a key opens. */
struct app *job_fixture_app(enum job_fixture kind, const char *keys, bool ascii);

#endif
