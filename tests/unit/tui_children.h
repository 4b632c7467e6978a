/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_children: children of the target of tui_fixture.h, made by hand.
 */
#ifndef TESTS_TUI_CHILDREN_H
#define TESTS_TUI_CHILDREN_H

#include "client/session/children.h"
#include "client/target/target.h"

/* Two DataLoader workers, one of which has a child of its own, and one process that cannot be read. */
void fixture_children(struct children_list *l, int step);

/* The job of the picker's fixture, its workers and a strange service with a child; owned by the caller (target_list_free). */
struct target_process *fixture_family(size_t *n);

#endif
