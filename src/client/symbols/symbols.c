/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: see symbols.h. Cached results; files are read and names demangled in a helper
 * (symbols_helper.h). */
#include "client/symbols/symbols.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "client/symbols/symbols_helper.h"

#define SYMBOLS_SLOTS ((size_t)65536)           /* a power of two */
#define SYMBOLS_TEXT ((size_t)64 * 1024 * 1024) /* for names */
#define SYMBOLS_NAMES ((size_t)4096)            /* demangled ones in the cache; a power of two */
#define SYMBOLS_ONE_TEXT ((size_t)1024 * 1024)

struct symbols_module {
    struct symbols_module *next;
    struct symbols_files files;
    uint32_t number;
    unsigned opened_in; /* the helper that has it open; 0 none */
    bool is_bad;        /* it cannot be opened, or a helper has ended over it */
};

struct symbols_slot {
    const struct symbols_module *module; /* NULL free */
    uint64_t address;
    struct symbols_place place;
};

struct symbols {
    pid_t pid;
    struct symbols_helper *helper;
    struct symbols_module *modules; /* a list */
    uint32_t n_modules;
    struct symbols_slot *slots;
    size_t n_slots; /* used */
    struct arena text;
};

static const struct symbol symbols_unknown = {.func = NULL};
static const struct symbols_place symbols_nothing = {.list = &symbols_unknown, .n = 1};

/* ---- life ---- */

void symbols_begin(int argc, char **argv) { symbols_helper_begin(argc, argv); }

struct symbols *symbols_new(pid_t pid) {
    struct symbols *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->pid = pid;
    s->helper = symbols_helper_new(pid);
    s->slots = calloc(SYMBOLS_SLOTS, sizeof *s->slots);
    arena_init(&s->text, SYMBOLS_TEXT);
    if (!s->slots || !s->helper) {
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
        free((char *)(uintptr_t)m->files.path);
        free(m->files.given);
        free(m);
        m = next;
    }
    symbols_helper_free(s->helper);
    free(s->slots);
    arena_fini(&s->text);
    free(s);
}

const char *symbols_take_note(struct symbols *s) { return symbols_helper_take_note(s->helper); }

/* ---- names of addresses ---- */

static struct symbols_module *symbols_module_of(struct symbols *s, const char *path) {
    for (struct symbols_module **at = &s->modules; *at; at = &(*at)->next)
        if (strcmp((*at)->files.path, path) == 0) {
            /* to the front: the next address is often of the same */
            struct symbols_module *found = *at;
            *at = found->next;
            found->next = s->modules;
            return s->modules = found;
        }
    struct symbols_module *m = s->n_modules < SYMBOLS_MAX_MODULES ? calloc(1, sizeof *m) : NULL;
    char *copy = m ? strdup(path) : NULL;
    if (!copy) {
        free(m);
        return NULL;
    }
    *m = (struct symbols_module){
        .next = s->modules, .files = {.pid = s->pid, .path = copy}, .number = s->n_modules++};
    return s->modules = m;
}

/* Let the helper read the file. False if there is no helper, or it cannot. */
static bool symbols_module_open(struct symbols *s, struct symbols_module *m) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    enum native_role role;
    if (m->is_bad)
        return false;
    if (m->opened_in && m->opened_in == symbols_helper_running(s->helper))
        return true;
    int fd = symbols_files_open(&m->files);
    unsigned helper = fd >= 0 ? symbols_helper_start(s->helper) : 0;
    const struct symbols_question q = {.what = SYMBOLS_OPEN, .module = m->number};
    m->is_bad = fd < 0 || symbols_helper_ask(s->helper, &q, fd, &m->files, &s->text, list, &role) < 0;
    if (fd >= 0)
        close(fd);
    m->opened_in = helper;
    return !m->is_bad;
}

static const struct symbols_place *symbols_resolve(struct symbols *s, struct symbols_slot *slot,
                                                   struct symbols_module *m, uint64_t address) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    struct symbols_place place = {.n = 0};
    const struct symbols_question q = {.what = SYMBOLS_FIND, .module = m->number, .address = address};
    if (!symbols_module_open(s, m))
        return &symbols_nothing;
    int n = symbols_helper_ask(s->helper, &q, -1, &m->files, &s->text, list, &place.role);
    m->is_bad = n < 0 && !s->text.failed;
    struct symbol *kept = n > 0 ? arena_calloc(&s->text, (size_t)n, sizeof *kept) : NULL;
    if (s->text.failed || m->is_bad)
        return &symbols_nothing;
    place.list = &symbols_unknown;
    place.n = 1;
    if (kept) {
        memcpy(kept, list, (size_t)n * sizeof *kept);
        place.list = kept;
        place.n = (size_t)n;
    }
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
    return symbols_resolve(s, &s->slots[at], m, address);
}

/* ---- names of tables ---- */

struct symbols_name {
    char *symbol; /* NULL free */
    char *plain;  /* NULL: not mangled */
};

/* One helper for all readers of tables, on any thread: it runs as user nobody. */
static struct {
    pthread_mutex_t lock;
    struct symbols_helper *helper;
    struct symbols_name kept[SYMBOLS_NAMES];
} symbols_names = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Look up an uncached name, and cache the answer. */
static void symbols_name_ask(struct symbols_name *slot, const char *symbol) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    struct symbols_question q = {.what = SYMBOLS_PLAIN};
    struct arena text;
    enum native_role role;
    if (!symbols_names.helper)
        symbols_names.helper = symbols_helper_new(0);
    if (!symbols_names.helper || symbols_helper_start(symbols_names.helper) == 0)
        return;
    arena_init(&text, SYMBOLS_ONE_TEXT);
    memcpy(q.name, symbol, strlen(symbol));
    bool has_one = symbols_helper_ask(symbols_names.helper, &q, -1, NULL, &text, list, &role) == 1;
    free(slot->symbol);
    free(slot->plain);
    slot->symbol = strdup(symbol);
    slot->plain = has_one && list[0].func ? strdup(list[0].func) : NULL;
    arena_fini(&text);
}

void symbols_demangle(const char *symbol, char *out, size_t cap) {
    if (!symbols_strip_version(symbol, out, cap) || strlen(out) >= SYMBOLS_MANGLED_MAX)
        return;
    pthread_mutex_lock(&symbols_names.lock);
    struct symbols_name *slot = &symbols_names.kept[hash_bytes(out, strlen(out)) & (SYMBOLS_NAMES - 1)];
    if (!slot->symbol || strcmp(slot->symbol, out) != 0)
        symbols_name_ask(slot, out);
    if (slot->symbol && slot->plain && strcmp(slot->symbol, out) == 0) {
        size_t len = strnlen(slot->plain, cap - 1);
        memcpy(out, slot->plain, len);
        out[len] = '\0';
    }
    pthread_mutex_unlock(&symbols_names.lock);
}
