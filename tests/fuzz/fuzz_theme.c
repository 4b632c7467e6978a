/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a theme file: nothing breaks, and every role has a look that a terminal can show.
 *
 * The length of the input says on which kind of terminal, and which of the roles: colours are looked for among those that the terminal has,
 * which takes as long as all the rest for a few of them.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "tui/theme/theme.h"

#define FUZZ_EACH 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct theme default_value;
    static bool made;
    if (!made)
        theme_init_default(&default_value);
    made = true;
    struct theme t = default_value;
    struct strbuf warnings;
    strbuf_init(&warnings, 65536);
    theme_parse(&t, (const char *)data, size, "fuzz.theme", NULL, &warnings);
    int depth = THEME_MONO + (int)(size % (THEME_256 - THEME_MONO + 1));
    for (int role = (int)(size / 4 % FUZZ_EACH); role < ROLE_COUNT; role += FUZZ_EACH) {
        struct theme_attrs look = theme_resolve(&t, (enum theme_role)role, (enum theme_depth)depth);
        int most = depth == THEME_256 ? 255 : depth == THEME_16 ? 15 : depth == THEME_8 ? 7 : -1;
        if (look.fg < -1 || look.bg < -1 || look.fg > most || look.bg > most)
            abort();
    }
    strbuf_fini(&warnings);
    return 0;
}
