/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_picture: what a screen looks like on every kind of terminal, as a text that can be read and compared.
 *
 * A picture is drawn at three sizes, in UTF-8 and in ASCII, and painted in 256 colours, 16 colours and without colour. Its text says
 * what stands where and in which role, once for each size; of the ASCII one only the rows that differ. How a role looks in each depth
 * is collected over all pictures: it must be the same wherever the role is drawn.
 */
#ifndef TESTS_TUI_PICTURE_H
#define TESTS_TUI_PICTURE_H

#include "base/strbuf.h"
#include "tui/core/app.h"

/* Draw what `make` makes (for each size and alphabet anew) and append its text. False, with a line on stderr, when a terminal shows
 * something else than what was drawn, or a role in two ways. */
bool picture_draw(struct app *(*make)(const void *arg, bool ascii), const void *arg, struct strbuf *out);

/* How the roles that were drawn so far look: a line each, depth by depth. */
void picture_put_styles(struct strbuf *out);

/* 0 when `got` is what the file tests/screens/NAME.txt says, or it was written because UPDATE_GOLDEN is set; else 1, and a line on
 * stderr says where the difference is. */
int picture_compare(const char *name, const struct strbuf *got);

#endif
