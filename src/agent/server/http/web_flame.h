/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web_flame: samples added up to a flame graph, for who asks for one by HTTP.
 *
 * The client's own (client/samples/sample_store.h, export_svg.h) can do much more; this one is small and bounded, for it runs in the job: so many
 * functions, then what comes is counted and left out, and the picture says so. The server's thread.
 */
#ifndef AGENT_SERVER_HTTP_WEB_FLAME_H
#define AGENT_SERVER_HTTP_WEB_FLAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/strbuf.h"

struct web_flame;

/* Of one thread, or of all (0). NULL without memory. */
struct web_flame *web_flame_new(int64_t tid);
void web_flame_free(struct web_flame *f); /* NULL is nothing to do */
size_t web_flame_bytes(const struct web_flame *f);

/* Add a batch. 0, or -1 without memory: then it is to be given up. */
int web_flame_add(struct web_flame *f, const struct model_sample_batch *b);

/* One line a stack, root first, weight in samples. */
void web_flame_put_folded(const struct web_flame *f, struct strbuf *out);
/* Stacks with their samples and time, and what was left out. */
void web_flame_put_json(const struct web_flame *f, const struct model_target *t, double elapsed_s,
                        struct strbuf *out);
/* A picture, the root at the top; widths are time. */
void web_flame_put_svg(const struct web_flame *f, const struct model_target *t, double elapsed_s,
                       struct strbuf *out);

#endif
