/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: bytes packed in gzip format (RFC 1952), with zlib. The same bytes give the same file: it
 * has no name and no time. */
#ifndef CLIENT_GZIP_H
#define CLIENT_GZIP_H

#include "base/err.h"
#include "base/strbuf.h"

/* Append `in`, packed, to `out`. 0, or -1 with ERR_FAILED: no memory. */
int gzip_pack(const struct strbuf *in, struct strbuf *out, struct err *e);

#endif
