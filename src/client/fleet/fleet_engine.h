/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_engine: fills a fleet from a ClickHouse database that relays write to (`probing relay --to`), for targets
 * clickhouse[s]://...?job=NAME. It is a kind of fleet_source.h.
 *
 * A thread of its own reads once a second: the newest row of each rank, stacks that are not known yet, hosts, and
 * steps. What is shown is as old as the way through the database, 3 s at most. A job that has ended is shown at its
 * last moment. What the database answers is bounded and made safe (engine_rows.h); while it does not answer, the
 * fleet stays as it is, with a note.
 */
#ifndef CLIENT_FLEET_FLEET_ENGINE_H
#define CLIENT_FLEET_FLEET_ENGINE_H

#include "client/fleet/fleet_source.h"

extern const struct fleet_source_kind fleet_engine_kind;

#endif
