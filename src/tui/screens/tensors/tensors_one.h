/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors_one: what is asked of one tensor of the Tensors screen, when the user says so: figures of its values, and what holds it. Pure.
 */
#ifndef TUI_SCREENS_TENSORS_TENSORS_ONE_H
#define TUI_SCREENS_TENSORS_TENSORS_ONE_H

#include "tui/core/app.h"
#include "tui/view/facts.h"
#include "tui/screens/tensors/tensors_rows.h"

/* Ask for both. */
void tensor_one_ask(struct app *app, const struct tensor_row *t);

/* What is known of them, or what asking would take. */
void tensor_one_add(struct facts *f, const struct app *app, const struct tensor_row *t, const struct grid *g);

#endif
