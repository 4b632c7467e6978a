/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_net_agent: something that listens where an agent would, for tests of the client; well-behaved or not.
 *
 * A thread with plain sockets; messages are written with src/wire. Nothing of the agent's own code is used, so the
 * client is held to the protocol and not to its peer.
 */
#ifndef SUPPORT_FAKE_NET_AGENT_H
#define SUPPORT_FAKE_NET_AGENT_H

#include <stdbool.h>

#include "base/model.h"
#include "wire/wire.h"

enum fake_manner {
    FAKE_GOOD = 0,
    FAKE_SILENT,         /* accepts and says nothing */
    FAKE_CLOSES,         /* accepts and closes */
    FAKE_GARBAGE,        /* answers no HTTP */
    FAKE_HTTP,           /* answers HTTP, but a web page */
    FAKE_REDIRECT,       /* sends the client elsewhere */
    FAKE_NO_PROTOCOL,    /* a WebSocket that names no subprotocol */
    FAKE_HUGE_LENGTH,    /* announces a message of 100 MB and begins to send it */
    FAKE_HUGE_STALLED,   /* announces it and sends nothing */
    FAKE_MANY_FRAGMENTS, /* a message in fragments that never ends */
    FAKE_JUNK_MESSAGE,   /* answers hello with bytes that are no MessagePack */
    FAKE_TEXT_MESSAGE,   /* answers hello with a text message */
    FAKE_MUTE,           /* upgrades, then never answers */
    FAKE_OLD,            /* refuses the hello for its version */
    FAKE_MANNERS,
};

struct fake_agent;

struct fake_options {
    enum fake_manner manner;
    unsigned drop_after;   /* close the first connection after that many requests; 0 never */
    bool mute_after_hello; /* answer nothing but hello */
    const struct model_snapshot
        *snapshot; /* answered to threads, and notified after subscribe; NULL a small one */
    bool (*answer)(void *arg, const struct wire_message *m,
                   struct strbuf *out); /* NULL none; false: as always */
    void *arg;
    const struct model_sample_batch *batch; /* notified after a subscribe to samples; NULL none */
};

/* Starts listening at a fresh path under /tmp. NULL on failure. */
struct fake_agent *fake_agent_start(const struct fake_options *options);
void fake_agent_stop(struct fake_agent *a); /* ends the thread, removes the socket */

const char *fake_agent_path(const struct fake_agent *a);

/* How often was each asked for, so far. */
unsigned fake_agent_count(struct fake_agent *a, enum wire_method m);
unsigned fake_agent_connections(struct fake_agent *a);

#endif
