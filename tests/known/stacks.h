/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks: counts of the distinct stacks that were seen of the program whose stacks are known (program.py), for those who sample it
 * (known.c from within, outside.c from another process), written as bench/known_answer.py reads them. One thread.
 */
#ifndef KNOWN_STACKS_H
#define KNOWN_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/model.h"

/* 0, or -1: out of memory. */
int stacks_init(void);

/* One sample, innermost frame first. */
void stacks_count(const struct model_frame *frames, size_t n, bool torn);

/* A line for each: "stack SEEN TORN", then function, file and line of each frame, outermost first, each after a tab. */
void stacks_write(FILE *f);

/* Put thread `target` on one CPU and the caller on another: on one they never run at the same time, and nothing can go wrong. */
void stacks_pin(pid_t target);

/* Compute for a random time between two samples, so that they are in step with nothing. */
void stacks_pause(void);

#endif
