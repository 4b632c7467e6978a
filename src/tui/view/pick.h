/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick: texts of what is selected, for copying: a frame, a stack. They are sanitised, because a
 * clipboard is pasted into shells. Pure.
 */
#ifndef TUI_VIEW_PICK_H
#define TUI_VIEW_PICK_H

#include "base/model.h"
#include "base/strbuf.h"
#include "client/samples/sample_flame.h"

#define PICK_MAX ((size_t)1024 * 1024) /* bytes of a text */

/* "train.py:203 train_step"; for a native frame "libtorch.so at::native::add", or as much of that
 * as is known. */
void pick_put_frame(struct strbuf *out, const struct model_frame *f);

/* A thread in one line, then its frames, innermost first, one a line. */
void pick_put_stack(struct strbuf *out, const struct model_thread *t);

/* Identifies a function, a line of it, or its module, in every tally; a module's key differs from
 * those of its functions. */
uint64_t pick_frame_key(const struct model_frame *f, enum flame_by by);

/* Text without controls, on one line. */
void pick_put_text(struct strbuf *out, const char *text);

#endif
