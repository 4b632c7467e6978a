/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_snapshot: what a snapshot does for native frames, thread by thread. Private to pystack.
 */
#ifndef PYSTACK_NATIVE_SNAPSHOT_H
#define PYSTACK_NATIVE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/model.h"
#include "pystack/pystack_internal.h"

/* After pystack_native_begin and the thread's Python frames: put the native frames before them. `copied` is what that said,
 * `moved`: it has run since. */
void pystack_native_attach(struct pystack *ps, pid_t outer_tid, bool copied, bool moved,
                           struct model_thread *t, struct arena *arena);

void pystack_native_fini(struct pystack *ps);

#endif
