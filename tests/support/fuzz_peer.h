/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_peer: a client of an agent that has no job: what fuzz targets of its requests have in common. */
#ifndef SUPPORT_FUZZ_PEER_H
#define SUPPORT_FUZZ_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "agent/server/calls.h"
#include "agent/server/mailbox.h"
#include "agent/server/peer.h"
#include "wire/wire.h"

struct fuzz_peer {
    struct mailbox mailbox;
    struct calls calls; /* which nobody polls */
    struct peer peer;
    uint32_t config_changes; /* before anything was said */
    bool eval_was_on;
};

/* The first byte of an input: what the client may do (of enum wire_access, but nothing), and whether it has said hello. */
void fuzz_peer_open(struct fuzz_peer *f, uint8_t how);

/* A message of the client's. 0, or -1: the agent would close the connection, or end. Aborts on what must not happen. */
int fuzz_peer_say(struct fuzz_peer *f, const void *data, size_t len);

void fuzz_peer_close(struct fuzz_peer *f);

#endif
