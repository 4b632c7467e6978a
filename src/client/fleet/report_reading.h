/* SPDX-License-Identifier: Apache-2.0 */
/* report_reading: readings of ranks (rank_probe.h) as rows that travel (report.h), and back. Pure. */
#ifndef CLIENT_FLEET_REPORT_READING_H
#define CLIENT_FLEET_REPORT_READING_H

#include "client/fleet/rank_probe.h"
#include "client/fleet/ras.h"
#include "client/fleet/report.h"

/* `now_s`: on the monotonic clock of this host. Texts are those of the reading. */
struct report_state report_reading_put(const struct rank_reading *r, double now_s);
struct report_group report_reading_put_group(const struct rank_group *g);
struct report_ras report_reading_put_ras(const struct ras_fact *f);

/* What is missing, or out of bounds, is unknown. */
void report_reading_take(const struct report_state *row, double now_s, struct rank_reading *out);
void report_reading_take_group(const struct report_group *row, struct rank_group *out);
void report_reading_take_ras(const struct report_ras *row, struct ras_fact *out);

#endif
