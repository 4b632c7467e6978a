/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_watch: reads the ranks of a job on this host again and again, and keeps what the verdict
 * needs (fleet_verdict.h): two readings some seconds apart, and since when each rank has not moved.
 *
 * Every rank has a child that reads it (rank_probe.h). A reading takes as long as the slowest of
 * them, FLEET_WATCH_MS at most. One thread.
 */
#ifndef CLIENT_FLEET_FLEET_WATCH_H
#define CLIENT_FLEET_FLEET_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/fleet/fleet_verdict.h"
#include "client/jobs/jobs_here.h"

#define FLEET_WATCH_MS 2000
#define FLEET_WATCH_WAIT_S 12.0 /* until it is clear what is wrong */

struct fleet_watch;

/* Watch those ranks of the job that are in `ranks`, and those that are missing, if that is certain. NULL with the error.
 * Nothing is read yet. */
struct fleet_watch *fleet_watch_new(const struct jobs_here *h, const struct job *job,
                                    const struct rank_set *ranks, struct err *e);
void fleet_watch_free(struct fleet_watch *w);

/* The same of the job and the ranks that `target` names (jobs_here_choose). */
struct fleet_watch *fleet_watch_open(const char *target, struct err *e);

/* While ranks have no process: find those that were started meanwhile, or again. 1: all of the job that are there are
 * watched from here on, in `*w`, and nothing of them was read yet; 0: it is as it was; -1 with the error. */
int fleet_watch_renew(struct fleet_watch **w, const char *target, struct err *e);

/* Of what time readings are: now, or a moment that is past. */
struct fleet_watch_time {
    double at_s;           /* on the monotonic clock */
    bool is_past, is_last; /* the next one is ready at once; there is none later */
};

/* What reads ranks elsewhere: fills the readings of `ranks`, which are unknown before; `time` is now. 0, or
 * -1 with the error. */
typedef int (*fleet_watch_read_fn)(void *arg, bool counters, const struct fleet_verdict_rank *ranks,
                                   struct rank_reading *readings, size_t n, struct fleet_watch_time *time,
                                   struct err *e);

/* Watch ranks that are read by `read`; of `list` the rank, its process (0: missing) and its uptime are taken.
 * NULL without memory. */
struct fleet_watch *fleet_watch_new_there(const struct fleet_verdict_rank *list, size_t n, int32_t world,
                                          fleet_watch_read_fn read, void *arg);

/* Read all of them; `counters`: their agents are asked, too. 0, or -1 with the error. */
int fleet_watch_read(struct fleet_watch *w, bool counters, struct err *e);

/* Whether a rank may be stuck, as far as it shows from outside (fleet_verdict_is_suspect). */
bool fleet_watch_is_suspect(const struct fleet_watch *w);

/* Agents were loaded since the last reading: that borrows threads of the ranks, which has to count
 * as no movement. */
void fleet_watch_note_attached(struct fleet_watch *w);

/* What NCCL's RAS service knows of the ranks (ras.h), as far as it is known by now; their number is in `*n`.
 * Of ranks of this host it is asked, in a child, while a rank may be stuck and agents are asked, too. */
const struct ras_fact *fleet_watch_ask_ras(struct fleet_watch *w, size_t *n);

/* The same of ranks that are read elsewhere. */
void fleet_watch_set_ras(struct fleet_watch *w, const struct ras_fact *facts, size_t n);

/* Judge what was read. 0, or -1 with the error; fleet_verdicts_fini frees, on failure too. */
int fleet_watch_judge(struct fleet_watch *w, struct fleet_verdicts *out, struct err *e);

/* Read and judge until another reading would not change the verdicts, for `wait_s` at most, or until
 * `stop` (NULL: none) returns true; what is past is read to its end. 0, or -1 with the error. */
int fleet_watch_ask(struct fleet_watch *w, double wait_s, bool (*stop)(void *arg), void *arg,
                    struct fleet_verdicts *out, struct err *e);

/* The newest readings, by rank. */
const struct fleet_verdict_rank *fleet_watch_ranks(const struct fleet_watch *w, size_t *n);

/* Ranks of which no process is left; a launcher may have started them again. */
size_t fleet_watch_gone(const struct fleet_watch *w);

/* Whether it watches all ranks of the job that are in `ranks`, and these processes of them. */
bool fleet_watch_has(const struct fleet_watch *w, const struct job *job, const struct rank_set *ranks);

#endif
