/* SPDX-License-Identifier: Apache-2.0 */
/* flame_color: the role of a cell for a function, the same on every screen. Pure. */
#ifndef TUI_SCREENS_FLAME_FLAME_COLOR_H
#define TUI_SCREENS_FLAME_FLAME_COLOR_H

#include <stdbool.h>

#include "base/model.h"
#include "tui/theme/theme.h"

/* The same role for a function, or (by_module) a module, wherever it is drawn. */
enum theme_role flame_color_of(const struct model_frame *f, bool by_module);

#endif
