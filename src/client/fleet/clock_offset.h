/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_offset: how far the clock of another host is ahead of this one's, from questions for its time.
 *
 * Its time was read somewhere between sending and answer: halfway, give or take half of the time
 * that took. Of the last questions the one that took least counts. Pure.
 */
#ifndef CLIENT_FLEET_CLOCK_OFFSET_H
#define CLIENT_FLEET_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stddef.h>

#define CLOCK_OFFSET_KEPT 8

/* All zero: nothing is known. */
struct clock_offset {
    struct clock_offset_answer {
        double ahead_s, took_s, sent;
    } answers[CLOCK_OFFSET_KEPT];
    size_t n; /* that there ever were */
};

/* Take an answer; one that the ones before contradict replaces them, since the clock was set, or runs apart. All in
 * seconds: when it was sent and received, by the clock of this host, what the other clock showed in between, and how
 * long it took. What cannot be is passed over. True: the clock was set since the last answer, so that times from before
 * that are of another clock. */
bool clock_offset_add(struct clock_offset *c, double sent, double theirs, double received, double took_s);

/* The offset and its error in ms. False: unknown, both are NAN. */
bool clock_offset_get(const struct clock_offset *c, double *ahead_ms, double *error_ms);

#endif
