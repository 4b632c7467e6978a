/* SPDX-License-Identifier: Apache-2.0 */
/* main_complete: see main_complete.h. */
#include "tui/main_complete.h"

#include <string.h>

#include "client/complete.h"
#include "tui/core/settings.h"
#include "tui/main_options.h"
#include "tui/startup.h"

/* Values of an option that sets one of the settings are those of the setting. */
static void main_complete_value(struct complete *c, const struct option_def *d) {
    char themes[STARTUP_MAX_THEMES][THEME_MAX_NAME];
    struct option_def row = *d;
    struct err e;
    int key = d->setting ? settings_find(d->setting, &e) : -1;
    if (key >= 0 && !row.choice)
        row.choice = settings_table[key].choice;
    size_t n = key == SETTINGS_THEME ? startup_list_themes(themes, STARTUP_MAX_THEMES) : 0;
    for (size_t i = 0; i < n; i++)
        complete_put(c, themes[i], NULL);
    complete_put_value(c, &row);
}

void main_complete(int n, char *const *words, struct strbuf *out) {
    const struct option_def *value = NULL;
    struct complete c;
    bool only_targets = false;
    for (int i = 0; i + 1 < n; i++) {
        bool is_option;
        value = value || only_targets ? NULL : complete_expects(main_table, words[i], &is_option);
        only_targets |= strcmp(words[i], "--") == 0;
    }
    complete_init(&c, out, n > 0 ? words[n - 1] : "");
    if (!value && !only_targets)
        value = complete_find_value(&c, main_table);
    if (value)
        main_complete_value(&c, value);
    else if (only_targets || c.word[0] != '-')
        complete_put_targets(&c);
    else
        complete_put_options(&c, main_table);
}
