/* SPDX-License-Identifier: Apache-2.0 */
/* screens: which action opens which screen; see screens.h. */
#include "tui/screens/screens.h"

/* clang-format off */
const struct screen_opening screen_openings[] = {
    {ACTION_HELP, &screen_help},
    {ACTION_SHOW_OVERVIEW, &screen_overview},
    {ACTION_SHOW_THREADS, &screen_threads},
    {ACTION_SHOW_FLAME, &screen_flame},
    {ACTION_SHOW_TOP, &screen_top},
    {ACTION_SHOW_SQL, &screen_sql},
    {ACTION_SHOW_REPL, &screen_repl},
    {ACTION_SHOW_LOG, &screen_log},
    {ACTION_SHOW_TIMELINE, &screen_timeline},
    {ACTION_SHOW_TENSORS, &screen_tensors},
    {ACTION_SHOW_MODULES, &screen_modules},
    {ACTION_SHOW_STEPS, &screen_steps},
    {ACTION_SHOW_LOADER, &screen_loader},
    {ACTION_MENU, &screen_menu},
    {ACTION_EXPORT, &screen_export},
    {ACTION_SHOW_TARGETS, &screen_targets},
    {ACTION_SETUP, &screen_setup},
    {ACTION_THEMES, &screen_themes},
    {ACTION_NONE, NULL},
};
/* clang-format on */

enum action_context screen_context(const struct screen_def *def, const void *state) {
    return def->context ? def->context(state) : def->keys;
}
