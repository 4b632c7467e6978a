/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: see gzip.h. */
#include "client/gzip.h"

#include <string.h>

#include <zlib.h>

#define GZIP_WINDOW                                                                                          \
    (15 + 16) /* the largest window, in gzip's frame and not zlib's own (zlib.h, deflateInit2) */
#define GZIP_MEMORY 8
#define GZIP_PART ((size_t)1 << 20) /* passed to zlib in one call: it counts in unsigned int */
#define GZIP_OUT 65536

int gzip_pack(const struct strbuf *in, struct strbuf *out, struct err *e) {
    z_stream z;
    unsigned char part[GZIP_OUT];
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return err_set(e, ERR_FAILED, "out of memory for packing the output");
    int rc = Z_OK;
    for (size_t at = 0; rc == Z_OK && !out->failed;) {
        size_t n = in->len - at < GZIP_PART ? in->len - at : GZIP_PART;
        if (z.avail_in == 0) {
            z.next_in = (unsigned char *)(in->len ? in->data + at : NULL);
            z.avail_in = (unsigned)n;
            at += n;
        }
        z.next_out = part;
        z.avail_out = sizeof part;
        rc = deflate(&z, at == in->len ? Z_FINISH : Z_NO_FLUSH);
        strbuf_add(out, part, sizeof part - z.avail_out);
    }
    deflateEnd(&z);
    if (rc != Z_STREAM_END || out->failed)
        return err_set(e, ERR_FAILED, "out of memory for packing the output");
    return 0;
}
