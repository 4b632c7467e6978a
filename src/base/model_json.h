/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_json: the structs of model.h as JSON, one place for each; unknown values are null.
 *
 * For the client's documents (client/export/document.h) and the agent's answers by HTTP.
 */
#ifndef BASE_MODEL_JSON_H
#define BASE_MODEL_JSON_H

#include "base/json.h"
#include "base/model.h"

#define MODEL_JSON_SCHEMA_VERSION 1

/* Members of an open object: schema, time, target, process and all threads, with locals of
 * frames and tasks if requested. */
void model_json_put_backtrace(struct json *j, const struct model_target *target,
                              const struct model_snapshot *snapshot, bool locals, bool tasks);

/* The agent's status, an object. */
void model_json_put_status(struct json *j, const struct model_target *target, const struct model_status *s);

/* Variables of a frame by name, each with type, repr and kind: an object. */
void model_json_put_variables(struct json *j, const struct model_locals *l);

/* A frame, with the member "locals" if requested: null if unknown. */
void model_json_put_frame(struct json *j, const struct model_frame *f, size_t depth, bool with_locals,
                          const struct model_locals *locals);

/* A member that may be MODEL_UNKNOWN. */
void model_json_put_known(struct json *j, const char *key, int64_t v);
void model_json_put_flag(struct json *j, const char *key, int8_t v);

#endif
