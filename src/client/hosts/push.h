/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push: puts our probing-relay onto hosts that have none, or one of another build.
 *
 * It goes the way that a relay goes (relay_via.h), with `sh` in the place of the relay: the script comes
 * through its input, so no shell on the way needs quotes, and the file follows once the script asks for
 * it. It is written to ~/.cache/probing/ID/probing-relay there and nowhere else, for that user alone,
 * and takes its name only if its SHA-256 is that of ours. ID are the first digits of it: a file of that
 * name is never changed, and one of another build lies elsewhere.
 */
#ifndef CLIENT_HOSTS_PUSH_H
#define CLIENT_HOSTS_PUSH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "client/hosts/relay_via.h"

#define PUSH_TOGETHER 8
#define PUSH_ID 16 /* digits */

/* Our relay. */
struct push_file {
    struct strbuf bytes;
    char sum[SHA256_TEXT], id[PUSH_ID + 1];
};

/* Read it. 0, or -1 with the error: this build has none. push_file_fini in any case. */
int push_file_read(struct push_file *f, struct err *e);
void push_file_fini(struct push_file *f);

struct push_host {
    const char *name;
    /* what came of it */
    int rc; /* below 0 with the error */
    struct err error;
    bool was_there; /* nothing was sent */
};

/* Push it onto hosts, PUSH_TOGETHER at a time; returns when all are done. */
void push_run(const struct push_file *f, const struct relay_via *via, struct push_host *hosts, size_t n);

/* Append what a shell on a host does to run it, if it is there. */
void push_put_start(const struct push_file *f, struct strbuf *script);

#endif
