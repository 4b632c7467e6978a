/* SPDX-License-Identifier: Apache-2.0 */
/* eval_json: the result of code as JSON, for `eval --json` and the agent's answers by HTTP. */
#ifndef WIRE_EVAL_JSON_H
#define WIRE_EVAL_JSON_H

#include "base/json.h"
#include "wire/wire.h"

void wire_put_evaluated_json(struct json *j, const struct wire_evaluated *v);

#endif
