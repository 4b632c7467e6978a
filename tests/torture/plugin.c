/* SPDX-License-Identifier: Apache-2.0 */
/* plugin: a library that torture loads and unloads. It has a constructor, thread-local storage and work for both. */
#include <stdlib.h>

int plugin_answer(int n);

static int plugin_made;
static char *plugin_memory;
static __thread int plugin_calls = 40;

__attribute__((constructor)) static void plugin_begin(void) {
    plugin_memory = malloc(1000);
    plugin_made++;
}

__attribute__((destructor)) static void plugin_end(void) {
    free(plugin_memory);
    plugin_made--;
}

/* 42 + n on the first call of a thread after it was loaded, one more on each that follows. */
int plugin_answer(int n) { return plugin_memory ? ++plugin_calls + plugin_made + n : -1; }
