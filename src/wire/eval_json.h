/* SPDX-License-Identifier: Apache-2.0 */
/* eval_json: what became of code, as JSON: `eval --json`, and what the agent answers by HTTP. */
#ifndef WIRE_EVAL_JSON_H
#define WIRE_EVAL_JSON_H

#include "base/json.h"
#include "wire/wire.h"

void wire_put_evaluated_json(struct json *j, const struct wire_evaluated *v);

#endif
