/* SPDX-License-Identifier: Apache-2.0 */
/* web_show: routes that show stacks, flame graphs, tables and the agent itself. Rows of
 * web_routes.c. */
#ifndef AGENT_SERVER_HTTP_WEB_SHOW_H
#define AGENT_SERVER_HTTP_WEB_SHOW_H

#include "agent/server/http/web.h"

/* /backtrace and /threads: the route decides which. */
void web_backtrace_begin(struct web *w);
void web_backtrace_take(struct web *w, const struct wire_message *m);

void web_flamegraph_begin(struct web *w);
void web_flamegraph_take(struct web *w, const struct wire_message *m);
void web_flamegraph_over(struct web *w);

/* /status, /metrics, /tables, /config: the route decides how a status is shown. */
void web_status_begin(struct web *w);
void web_status_take(struct web *w, const struct wire_message *m);

/* /tables/{name}. */
void web_table_begin(struct web *w);
void web_table_take(struct web *w, const struct wire_message *m);

/* The table of routes, for people and for programs. */
void web_page_begin(struct web *w);
void web_openapi_begin(struct web *w);

/* A status in the format of Prometheus. */
void web_metrics_put(const struct model_target *t, const struct model_status *s, struct strbuf *out);

#endif
