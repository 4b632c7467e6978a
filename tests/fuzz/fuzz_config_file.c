/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a settings file: values stay such as the rows take, no key means two things, and what is written back is read
 * the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "tui/action.h"
#include "tui/config_file.h"
#include "tui/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds)
        abort();
}

static void check_keys(void) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        const char *keys[1024], *key;
        size_t n = 0;
        for (const struct action_def *a = action_table; a->action; a++)
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && (key = action_key(a, c, i)); i++) {
                for (size_t k = 0; k < n; k++)
                    check(strcmp(keys[k], key) != 0);
                check(n < sizeof keys / sizeof keys[0]);
                keys[n++] = key;
            }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct settings s, again;
    struct strbuf warnings, edited;
    struct err e;
    strbuf_init(&warnings, 65536);
    strbuf_init(&edited, 4 * CONFIG_FILE_MAX);
    settings_init(&s);
    action_reset_keys();
    config_file_parse(&s, (const char *)data, size, "fuzz", &warnings);
    check_keys();
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        check(settings_put(&s, (enum settings_key)i, "it", s.values[i], SETTINGS_BY_HAND, &e) == 0);
    }
    config_file_edit(&s, (const char *)data, size, &edited);
    settings_init(&again);
    action_reset_keys();
    config_file_parse(&again, strbuf_str(&edited), edited.len, "edited", NULL);
    for (int i = 0; i < SETTINGS_COUNT && !edited.failed; i++)
        check(strcmp(s.values[i], again.values[i]) == 0);
    strbuf_fini(&warnings);
    strbuf_fini(&edited);
    return 0;
}
