/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: a hostile agent behind a unix socket: WebSocket by RFC 6455, answers by lies.h, and lies of the transport too: answers that come
 * twice, in pieces out of order, one byte at a time, half, for somebody else, or not at all.
 */
#ifndef LIARS_AGENT_H
#define LIARS_AGENT_H

#include <stdatomic.h>
#include <stdint.h>

struct liar_options {
    uint64_t seed;
    int64_t pid, uid;         /* of the process that it is in */
    const char *const *paths; /* of victims; ends with NULL */
    unsigned stream_ms;       /* between two notifications of a stream; 0: 20 */
    unsigned
        hangup_ms; /* a client that asks nothing for so long waits in vain: the connection ends; 0: it may wait */
    unsigned slow_ppm;      /* of a million answers so many take as long as the client's patience */
    _Atomic uint64_t *said; /* lies so far are added here; NULL nobody counts */
};

/* Serve one connection until it ends: number `number` of the seed. */
void liar_talk(const struct liar_options *o, uint64_t number, int fd);

/* Serve all who come to the listening socket `fd`, each by a thread, until that is shut. Returns then. */
void liar_serve(const struct liar_options *o, int fd);

/* The same by a thread, for Python: `paths` is a line each, `counter` a file of 8 bytes. 0 or -1. */
__attribute__((visibility("default"))) int liar_start(int fd, uint64_t seed, int64_t pid, int64_t uid,
                                                      const char *paths, unsigned slow_ppm,
                                                      const char *counter);

#endif
