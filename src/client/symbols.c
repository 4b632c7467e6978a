/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: see symbols.h. What was found before; the files are read by symbols_module.c. */
#include "client/symbols.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/arena.h"
#include "base/hash.h"
#include "client/symbols_module.h"

#define SYMBOLS_SLOTS ((size_t)65536)           /* a power of two */
#define SYMBOLS_TEXT ((size_t)64 * 1024 * 1024) /* for names */

struct symbols_slot {
    const struct symbols_module *module; /* NULL free */
    uint64_t address;
    struct symbols_place place;
};

struct symbols {
    pid_t pid;
    struct symbols_module *modules; /* a list */
    struct symbols_slot *slots;
    size_t n_slots; /* used */
    struct arena text;
};

static const struct symbol symbols_unknown = {.func = NULL};
static const struct symbols_place symbols_nothing = {.list = &symbols_unknown, .n = 1};

struct symbols *symbols_new(pid_t pid) {
    struct symbols *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->pid = pid;
    s->slots = calloc(SYMBOLS_SLOTS, sizeof *s->slots);
    arena_init(&s->text, SYMBOLS_TEXT);
    if (!s->slots) {
        symbols_free(s);
        return NULL;
    }
    return s;
}

void symbols_free(struct symbols *s) {
    if (!s)
        return;
    for (struct symbols_module *m = s->modules; m;) {
        struct symbols_module *next = m->next;
        symbols_module_free(m);
        m = next;
    }
    free(s->slots);
    arena_fini(&s->text);
    free(s);
}

void symbols_demangle(const char *symbol, char *out, size_t cap) {
    size_t len = strcspn(symbol, "@"); /* "name@@VERSION" */
    len = len && len < cap ? len : strlen(symbol) < cap ? strlen(symbol) : cap - 1;
    memcpy(out, symbol, len);
    out[len] = '\0';
    if (strncmp(out, "_Z", 2) != 0 && strncmp(out, "_R", 2) != 0)
        return;
    char *plain = cplus_demangle(out, DMGL_AUTO);
    if (!plain)
        return;
    len = strlen(plain) < cap ? strlen(plain) : cap - 1;
    memcpy(out, plain, len);
    out[len] = '\0';
    free(plain);
}

static struct symbols_module *symbols_module_of(struct symbols *s, const char *path) {
    for (struct symbols_module **at = &s->modules; *at; at = &(*at)->next)
        if (strcmp((*at)->path, path) == 0) {
            struct symbols_module *found = *at; /* to the front: the next address is often of the same */
            *at = found->next;
            found->next = s->modules;
            return s->modules = found;
        }
    struct symbols_module *m = symbols_module_open(s->pid, path);
    if (m) {
        m->next = s->modules;
        s->modules = m;
    }
    return m;
}

static const struct symbols_place *symbols_look_up(struct symbols *s, struct symbols_slot *slot,
                                                   struct symbols_module *m, uint64_t address) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    struct symbols_place place = {.list = list};
    place.n = symbols_module_find(m, address, list, &s->text, &place.role);
    struct symbol *kept = arena_calloc(&s->text, place.n, sizeof *kept);
    if (!kept || s->text.failed)
        return &symbols_nothing;
    memcpy(kept, list, place.n * sizeof *kept);
    place.list = kept;
    *slot = (struct symbols_slot){.module = m, .address = address, .place = place};
    s->n_slots++;
    return &slot->place;
}

const struct symbols_place *symbols_find(struct symbols *s, const char *module, uint64_t address) {
    struct symbols_module *m = module ? symbols_module_of(s, module) : NULL;
    if (!m)
        return &symbols_nothing;
    if (s->n_slots > SYMBOLS_SLOTS / 2 || s->text.failed || s->text.used > SYMBOLS_TEXT / 2) {
        arena_fini(&s->text);
        memset(s->slots, 0, SYMBOLS_SLOTS * sizeof *s->slots);
        s->n_slots = 0;
    }
    size_t at = (size_t)hash_mix(address ^ hash_mix((uint64_t)(uintptr_t)m)) & (SYMBOLS_SLOTS - 1);
    for (; s->slots[at].module; at = (at + 1) & (SYMBOLS_SLOTS - 1))
        if (s->slots[at].module == m && s->slots[at].address == address)
            return &s->slots[at].place;
    return symbols_look_up(s, &s->slots[at], m, address);
}
