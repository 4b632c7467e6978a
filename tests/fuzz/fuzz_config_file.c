/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a settings file: values stay such as the rows take, no key means two things, and what is written back is read
 * the same. The length of the input says which of it is looked at, for each takes as long as what it looks at. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/keys/action.h"
#include "tui/core/config_file.h"
#include "tui/core/settings.h"

#define KEYS_MAX 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds)
        abort();
}

/* Keys of a context, found by their hash. */
struct key_set {
    uint32_t keys[KEYS_MAX]; /* 0 none */
    size_t n;
};

/* Is it a new one? */
static bool add_key(struct key_set *set, uint32_t key) {
    size_t at = hash_bytes(&key, sizeof key) % KEYS_MAX;
    for (; set->keys[at]; at = (at + 1) % KEYS_MAX)
        if (set->keys[at] == key)
            return false;
    set->keys[at] = key;
    return ++set->n < KEYS_MAX;
}

static void check_keys(void) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        struct key_set set = {.n = 0};
        uint32_t key;
        for (const struct action_def *a = action_table(); a->action; a++)
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && (key = action_key(a, c, i)); i++)
                check(add_key(&set, key));
    }
}

static void check_edited(const struct settings *s, const uint8_t *data, size_t size) {
    struct settings again;
    struct strbuf edited;
    strbuf_init(&edited, 4 * CONFIG_FILE_MAX);
    config_file_edit(s, (const char *)data, size, &edited);
    settings_init(&again);
    action_reset_keys();
    config_file_parse(&again, strbuf_str(&edited), edited.len, "edited", NULL);
    for (int i = 0; i < SETTINGS_COUNT && !edited.failed; i++)
        check(strcmp(s->values[i], again.values[i]) == 0);
    strbuf_fini(&edited);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct settings s;
    struct strbuf warnings;
    struct err e;
    strbuf_init(&warnings, 65536);
    settings_init(&s);
    action_reset_keys();
    config_file_parse(&s, (const char *)data, size, "fuzz", &warnings);
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        check(settings_put(&s, (enum settings_key)i, "it", s.values[i], SETTINGS_BY_KEY, &e) == 0);
    }
    if (size % 2)
        check_keys();
    else
        check_edited(&s, data, size);
    strbuf_fini(&warnings);
    return 0;
}
