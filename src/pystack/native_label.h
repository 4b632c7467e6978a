/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_label: names of native frames from modules' exports, and which of them are the
 * interpreter's loop.
 *
 * For the agent, whose tables must be readable after the process is gone. Everything is read
 * from memory, where the loader has put it: no file is opened. What a module does not export has
 * no name. Answers are cached, within a bound. One thread at a time.
 */
#ifndef PYSTACK_NATIVE_LABEL_H
#define PYSTACK_NATIVE_LABEL_H

#include <stddef.h>

#include "base/model.h"
#include "pystack/native_maps.h"
#include "pystack/native_merge.h"

struct native_labels;

/* NULL without memory. */
struct native_labels *native_labels_new(void);
void native_labels_free(struct native_labels *l);

/* Forget all labels: the list of modules has changed. */
void native_labels_forget(struct native_labels *l);
size_t native_labels_bytes(const struct native_labels *l);

/* Give the `n` native frames of native_unwind the linker's names (valid until the next call) and
 * their roles. A frame with an unknown name gets none. */
void native_label(struct native_labels *l, struct native_maps *maps, struct model_frame *frames, size_t n,
                  enum native_role *roles);

#endif
