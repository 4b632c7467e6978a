/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull: sends the tables to clients that cannot open their files.
 *
 * Reads the files as any reader does, and keeps nothing between two answers. An answer is
 * bounded in bytes and in time; the client asks again for the rest. The sampler's thread, which
 * alone owns the tables.
 */
#ifndef AGENT_SERVER_PULL_H
#define AGENT_SERVER_PULL_H

#include <stdint.h>

#include "agent/server/mailbox.h"
#include "agent/tables/record.h"
#include "wire/wire.h"

/* Answer a request for tables of a client with this access. */
void pull_answer_tables(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                        enum wire_access may);

/* Answer a request for rows. */
void pull_answer_rows(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                      const struct wire_pull *want);

#endif
