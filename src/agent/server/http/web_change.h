/* SPDX-License-Identifier: Apache-2.0 */
/* web_change: routes that run code in the job or change a setting. Rows of web_routes.c. */
#ifndef AGENT_SERVER_HTTP_WEB_CHANGE_H
#define AGENT_SERVER_HTTP_WEB_CHANGE_H

#include "agent/server/http/web.h"

#define CHANGE_TIMEOUT_LEAST 0.1 /* minimum time for code, in seconds */
#define CHANGE_TIMEOUT_MOST 60

/* POST /eval. */
void web_eval_begin(struct web *w);
void web_eval_put_schema(struct json *j);
void web_eval_take(struct web *w, const struct wire_message *m);

/* PUT /config. */
void web_config_begin(struct web *w);
void web_config_put_schema(struct json *j);
void web_config_take(struct web *w, const struct wire_message *m);

#endif
