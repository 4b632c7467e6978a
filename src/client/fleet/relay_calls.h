/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_calls: questions to the relays on the hosts of a job, on a thread that may wait: all hosts are asked at the
 * same time, each as often as its answers require.
 *
 * For requests that fleet_links.h does not make, such as SQL. A relay is a stranger: whatever it sends is bounded
 * and checked. A host that cannot be reached, or does not answer in time, is silent: the others are asked on, and
 * it is tried again some seconds later. A rank is the first host's that has it. Used by one thread.
 */
#ifndef CLIENT_FLEET_RELAY_CALLS_H
#define CLIENT_FLEET_RELAY_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/hosts/fleet_reach.h"
#include "client/jobs/rank_set.h"
#include "wire/wire.h"

struct relay_calls;

/* The hosts of `reach` and the job that `target` names there, as fleet_links_open takes it; the ranks behind a '/'
 * are the only ones that are meant. Nothing is started yet. `reach` is not kept, apart from its texts. NULL with the error. */
struct relay_calls *relay_calls_new(const char *target, const struct fleet_reach *reach, struct err *e);

/* Ends the relays, for which it waits a second at most. NULL is allowed. */
void relay_calls_free(struct relay_calls *c);

/* How long questions may take, in seconds, and what ends them early (`stop` NULL: nothing does). */
struct relay_calls_limit {
    double limit_s;
    bool (*stop)(void *arg);
    void *arg;
};

/* Connect to the hosts that are not, and learn their clocks; all are asked which ranks of the job they have now. 0, or
 * -1 with the error: no host has the job, or none can be reached. */
int relay_calls_connect(struct relay_calls *c, const struct relay_calls_limit *limit, struct err *e);

/* A host. */
struct relay_host {
    const char *name;
    bool is_there;         /* it answers, and has the job */
    struct rank_set ranks; /* of the job, those of this host alone that are meant */
    bool is_part;          /* it has others, too */
    double ahead_s;        /* of its clock, where that is more than the error of measuring it; 0 */
    const char *note;      /* why it is not there; "" */
};

size_t relay_calls_count(const struct relay_calls *c);
const struct relay_host *relay_calls_host(const struct relay_calls *c, size_t i);

/* Are only some ranks meant? */
bool relay_calls_is_part(const struct relay_calls *c);

/* The name of the job; "" before relay_calls_connect. */
const char *relay_calls_job(const struct relay_calls *c);

/* Ask host `i` for rows; for a step below. 1, or -1: it cannot be asked, and is silent. */
int relay_calls_ask(struct relay_calls *c, size_t i, const struct wire_rows_ask *ask);

/* What a host is asked: called with each answer, and with `m` NULL first. 1: it has asked; 0: the host is done;
 * -1 with the error: the answer is not valid, and the host is silent. `why` (NULL: it did answer) is the reason with
 * which the host refuses. */
typedef int (*relay_calls_step)(void *arg, size_t i, const struct wire_message *m, const char *why,
                                struct err *e);

/* Ask all hosts that are there until each is done, or silent. 0, or -1: it was stopped. Hosts that had not answered
 * by the limit are silent. */
int relay_calls_run(struct relay_calls *c, const struct relay_calls_limit *limit, relay_calls_step step,
                    void *arg);

/* End what hosts are still asked: their relays are started again when they are needed. */
void relay_calls_drop(struct relay_calls *c);

/* Append which hosts are silent, and why, each in a clause. */
void relay_calls_put_silent(const struct relay_calls *c, struct strbuf *out);

#endif
