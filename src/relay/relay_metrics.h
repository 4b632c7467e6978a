/* SPDX-License-Identifier: Apache-2.0 */
/* relay_metrics: newest values for Prometheus, at a port of loopback: one answer a connection, in its text format. */
#ifndef RELAY_RELAY_METRICS_H
#define RELAY_RELAY_METRICS_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Listen at "PORT" or "HOST:PORT" of the loopback interface. A descriptor to be polled, or -1 with the error. */
int relay_metrics_listen(const char *address, struct err *e);

/* Answer who is at the descriptor; a client that does not ask within a moment is dropped. */
void relay_metrics_answer(int fd, const struct strbuf *text);

/* Append the type of a metric, "gauge" or "counter", and a value of it: of a rank of a job, or (NULL) of the relay.
 * What is unknown is left out. */
void relay_metrics_put_type(struct strbuf *out, const char *name, const char *type);
void relay_metrics_put(struct strbuf *out, const char *name, const char *job, int64_t rank, double value);

#endif
