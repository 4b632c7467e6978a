/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull: the tables, handed out to clients that cannot open their files.
 *
 * Reads the files as any reader does, with nothing kept between two answers. An answer is bounded in bytes and in time; who wants
 * more asks again. The sampler's thread, which alone knows the tables.
 */
#ifndef AGENT_SERVER_PULL_H
#define AGENT_SERVER_PULL_H

#include <stdint.h>

#include "agent/server/mailbox.h"
#include "agent/tables/record.h"
#include "wire/wire.h"

/* To tables, of who may do so much. */
void pull_answer_tables(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                        enum wire_access may);

/* To pull. */
void pull_answer_rows(const struct record *r, struct mailbox *m, uint32_t peer, uint32_t id,
                      const struct wire_pull *want);

#endif
