/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document: the JSON that scripts rely on, one place for each.
 *
 * Units are in the keys, numbers are numbers, unknown values are null. Every document has
 * schema_version.
 */
#ifndef CLIENT_EXPORT_DOCUMENT_H
#define CLIENT_EXPORT_DOCUMENT_H

#include "base/json.h"
#include "base/model.h"
#include "base/model_json.h"
#include "flame/stack_counts.h"
#include "client/target/target.h"
#include "client/verdict/verdict.h"
#include "wire/wire.h"

#define DOCUMENT_SCHEMA_VERSION MODEL_JSON_SCHEMA_VERSION

/* Threads with their stacks: `backtrace --json` and `--export json`. `want`: what was asked for
 * beside (locals, tasks), as far as the snapshot has it; NULL nothing. `counts` adds "samples";
 * NULL without. */
void document_put_backtrace(struct json *j, const struct model_target *target,
                            const struct model_snapshot *snapshot, const struct wire_threads *want,
                            const struct stack_counts *counts, double elapsed_s);

/* Verdicts with their evidence, and all rules that were looked at: the members "verdicts" and
 * "checks" of `verdict --json` and of a report. */
void document_put_verdicts(struct json *j, const struct verdicts *v);

/* `list --json`. */
void document_put_processes(struct json *j, const struct target_process *list, size_t n, const char *hidden);

/* `inject --json`. */
void document_put_injection(struct json *j, pid_t pid, const struct inject_result *r,
                            const struct wire_listening *door);

/* The member "tcp" of an open map: the listener of an agent, and its tokens; NULL none. */
void document_put_listening(struct json *j, const struct wire_listening *door);

#endif
