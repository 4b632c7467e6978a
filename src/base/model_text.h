/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_text: threads and their stacks as plain text.
 *
 * The output of `probing backtrace`, and the agent's text answers. Names come from the job and
 * are cleaned.
 */
#ifndef BASE_MODEL_TEXT_H
#define BASE_MODEL_TEXT_H

#include <stdbool.h>

#include "base/model.h"
#include "base/strbuf.h"

/* The process, and every thread with its stack and, with `locals`, its variables. */
void model_text_put_backtrace(struct strbuf *out, const struct model_target *t,
                              const struct model_snapshot *s, bool locals);

/* The same for a terminal of `width` columns, without variables and tasks: threads with equal stacks are
 * joined, the state is a word, paths are cut to fit. With `colour`, frames of libraries are dim. */
void model_text_put_summary(struct strbuf *out, const struct model_target *t, const struct model_snapshot *s,
                            int width, bool colour);

/* What a thread waits for, and who holds it: "RLock cache, held by loader (12) in read (data.py:7)".
 * `brief` for a list: "RLock cache (loader)". Nothing if it is not known. */
void model_text_put_wait(struct strbuf *out, const struct model_snapshot *s, const struct model_thread *t,
                         bool brief);

/* A line for each thread. */
void model_text_put_threads(struct strbuf *out, const struct model_snapshot *s);

#endif
