/* SPDX-License-Identifier: Apache-2.0 */
/*
 * theme: reads theme files; see theme.h.
 *
 * Lines are "key = value"; sections are [palette], [roles] and [mono]; a line that starts with # is
 * a comment. A role's value is "fg [bg] [attribute...]", "-" keeps what is inherited; "role@16" is
 * the same for 16 colours, and "inherit16" names a theme to take those from that are not given.
 * Bounded: a file is at most THEME_MAX_FILE bytes, a palette THEME_MAX_PALETTE names, inheritance
 * THEME_MAX_DEPTH steps.
 */
#include "tui/theme/theme.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define THEME_MAX_FILE ((size_t)64 * 1024)
#define THEME_MAX_PALETTE 64
#define THEME_MAX_DEPTH 8
#define THEME_MAX_NAMED 32 /* in a message */
#define THEME_MAX_LINE 512
#define THEME_MAX_WORDS 8

enum theme_section {
    THEME_TOP,
    THEME_PALETTE,
    THEME_ROLES_SECTION,
    THEME_MONO_SECTION,
    THEME_UNKNOWN_SECTION
};

struct theme_entry {
    char name[32];
    struct theme_color color;
};

struct theme_reader {
    struct theme *theme;
    const char *source;
    int line;
    int depth; /* depth of inheritance */
    const struct theme_path *path;
    struct strbuf *warnings;
    enum theme_section section;
    struct theme_entry palette[THEME_MAX_PALETTE];
    size_t n_palette;
    bool inherits, inherits16;
    bool own16[ROLE_COUNT];  /* given by this file for 16 colours */
    struct theme *inherit16; /* or from this theme; NULL: none is named */
};

static const struct {
    const char *name, *help;
} theme_roles[ROLE_COUNT] = {
#define THEME_ROW(id, name, help) [id] = {name, help},
    THEME_ROLES(THEME_ROW)
#undef THEME_ROW
};

static const char *const theme_names16[16] = {
    "black",        "red",           "green",       "yellow",         "blue",
    "magenta",      "cyan",          "white",       "gray",           "bright-red",
    "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
    "bright-white",
};

static const struct {
    const char *name;
    unsigned attr;
} theme_attrs[] = {
    {"bold", THEME_BOLD},           {"dim", THEME_DIM},       {"reverse", THEME_REVERSE},
    {"underline", THEME_UNDERLINE}, {"italic", THEME_ITALIC}, {"plain", 0},
};

const char *theme_role_name(enum theme_role role) { return theme_roles[role].name; }

const char *theme_role_help(enum theme_role role) { return theme_roles[role].help; }

static void theme_warn(struct theme_reader *r, const char *what, const char *value) {
    if (r->warnings)
        strbuf_addf(r->warnings, "%s:%d: %s '%s'\n", r->source, r->line, what, value);
}

static int theme_parse_into(struct theme *t, const char *text, size_t len, const char *source,
                            const struct theme_path *path, struct strbuf *warnings, int depth);
/* List the names that exist. */
static int theme_fail_name(const char *name, const struct theme_path *path, struct err *e) {
    char names[THEME_MAX_NAMED][THEME_MAX_NAME], list[384] = "";
    size_t n = path ? theme_list(path, names, THEME_MAX_NAMED) : 0, used = 0;
    for (size_t i = 0; i < n && used + strlen(names[i]) + 3 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    return err_set(e, ERR_USAGE, "no theme '%.64s': give one of %s, or a file with a '/' in its name", name,
                   n ? list : "default");
}

static int theme_load_depth(struct theme *t, const char *name, const struct theme_path *path,
                            struct strbuf *warnings, int depth, struct err *e);

/* A colour by "#RRGGBB", number, palette name, terminal name or "default": 0, or -1. */
static int theme_parse_color(const struct theme_reader *r, const char *word, struct theme_color *out) {
    char *end;
    if (word[0] == '#') {
        if (strlen(word) != 7 || strspn(word + 1, "0123456789abcdefABCDEF") != 6)
            return -1;
        *out = (struct theme_color){THEME_COLOR_RGB, (uint32_t)strtoul(word + 1, &end, 16)};
        return 0;
    }
    for (size_t i = 0; i < r->n_palette; i++)
        if (strcmp(r->palette[i].name, word) == 0) {
            *out = r->palette[i].color;
            return 0;
        }
    if (strcmp(word, "default") == 0) {
        *out = (struct theme_color){THEME_COLOR_DEFAULT, 0};
        return 0;
    }
    for (uint32_t i = 0; i < 16; i++)
        if (strcmp(theme_names16[i], word) == 0) {
            *out = (struct theme_color){THEME_COLOR_INDEX, i};
            return 0;
        }
    if (word[0] < '0' || word[0] > '9' || strlen(word) > 3)
        return -1;
    unsigned long n = strtoul(word, &end, 10);
    if (*end || n > 255)
        return -1;
    *out = (struct theme_color){THEME_COLOR_INDEX, (uint32_t)n};
    return 0;
}

static bool theme_parse_attr(const char *word, unsigned *attrs) {
    for (size_t i = 0; i < sizeof theme_attrs / sizeof theme_attrs[0]; i++)
        if (strcmp(theme_attrs[i].name, word) == 0) {
            *attrs |= theme_attrs[i].attr;
            return true;
        }
    return false;
}

/* "fg [bg] [attribute...]" over `style`; any attribute replaces the inherited ones, and so does a
 * colour. 0, or -1 with a warning: `style` is unchanged. */
static int theme_read_style(struct theme_reader *r, char *value, struct theme_style *style) {
    struct theme_style s = *style;
    unsigned attrs = 0;
    bool keep_attrs = true;
    int colors = 0;
    char *save = NULL;
    for (char *word = strtok_r(value, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        if (theme_parse_attr(word, &attrs)) {
            keep_attrs = false;
        } else if (colors >= 2) {
            theme_warn(r, "unknown attribute", word);
            return -1;
        } else {
            struct theme_color *c = colors++ == 0 ? &s.fg : &s.bg;
            if (strcmp(word, "-") == 0)
                continue;
            keep_attrs = false;
            if (theme_parse_color(r, word, c) != 0) {
                theme_warn(r, "bad colour", word);
                return -1;
            }
        }
    }
    if (!keep_attrs)
        s.attrs = attrs;
    *style = s;
    return 0;
}

static void theme_read_role(struct theme_reader *r, const char *key, char *value) {
    size_t len = strlen(key);
    bool is16 = len > 3 && strcmp(key + len - 3, "@16") == 0;
    if (is16)
        len -= 3;
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (strncmp(theme_roles[i].name, key, len) != 0 || theme_roles[i].name[len])
            continue;
        struct theme *t = r->theme;
        struct theme_style style = is16 && t->has16[i] ? t->color16[i] : t->color[i];
        if (theme_read_style(r, value, &style) != 0)
            return;
        *(is16 ? &t->color16[i] : &t->color[i]) = style;
        /* Colours of its own make the inherited choice for 16 colours meaningless. */
        t->has16[i] = is16;
        r->own16[i] |= is16;
        return;
    }
    theme_warn(r, "unknown role", key);
}

static void theme_read_mono(struct theme_reader *r, const char *key, char *value) {
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (strcmp(theme_roles[i].name, key) != 0)
            continue;
        unsigned attrs = 0;
        char *save = NULL;
        for (char *word = strtok_r(value, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
            if (!theme_parse_attr(word, &attrs)) {
                theme_warn(r, "unknown attribute", word);
                return;
            }
        r->theme->mono[i] = attrs;
        return;
    }
    theme_warn(r, "unknown role", key);
}

static void theme_read_palette(struct theme_reader *r, const char *key, const char *value) {
    struct theme_color color;
    unsigned attrs;
    if (theme_parse_color(r, value, &color) != 0) {
        theme_warn(r, "bad colour", value);
        return;
    }
    if (theme_parse_attr(key, &attrs) || strcmp(key, "-") == 0) {
        theme_warn(r, "this name is reserved in a role:", key);
        return;
    }
    size_t i = 0;
    while (i < r->n_palette && strcmp(r->palette[i].name, key) != 0)
        i++;
    if (i == THEME_MAX_PALETTE || strlen(key) >= sizeof r->palette[0].name) {
        theme_warn(r, "too many or too long names in the palette", key);
        return;
    }
    snprintf(r->palette[i].name, sizeof r->palette[i].name, "%s", key);
    r->palette[i].color = color;
    if (i == r->n_palette)
        r->n_palette++;
}

static void theme_read_inherit(struct theme_reader *r, const char *value) {
    struct theme parent;
    struct err e;
    char name[sizeof r->theme->name];
    r->inherits = true;
    snprintf(name, sizeof name, "%s", r->theme->name);
    if (theme_load_depth(&parent, value, r->path, r->warnings, r->depth + 1, &e) != 0) {
        theme_warn(r, "cannot inherit", value);
        return;
    }
    *r->theme = parent;
    snprintf(r->theme->name, sizeof r->theme->name, "%s", name);
}

static void theme_read_inherit16(struct theme_reader *r, const char *value) {
    struct err e;
    struct theme *t = malloc(sizeof *t);
    r->inherits16 = true;
    r->inherit16 = t;
    if (!t || theme_load_depth(t, value, r->path, r->warnings, r->depth + 1, &e) == 0)
        return;
    theme_warn(r, "cannot inherit", value);
    free(t);
    r->inherit16 = NULL;
}

/* Roles without colours for 16 get those of the theme that was named for it. */
static void theme_take_inherit16(struct theme_reader *r) {
    for (int i = 0; i < ROLE_COUNT && r->inherit16; i++) {
        if (r->own16[i])
            continue;
        const struct theme *from = r->inherit16;
        r->theme->color16[i] = from->has16[i] ? from->color16[i] : from->color[i];
        r->theme->has16[i] = true;
    }
    free(r->inherit16);
    r->inherit16 = NULL;
}

static void theme_read_top(struct theme_reader *r, const char *key, const char *value) {
    if (strcmp(key, "name") == 0)
        snprintf(r->theme->name, sizeof r->theme->name, "%s", value);
    else if (strcmp(key, "inherit") == 0 && !r->inherits)
        theme_read_inherit(r, value);
    else if (strcmp(key, "inherit16") == 0 && !r->inherits16)
        theme_read_inherit16(r, value);
    else if (strncmp(key, "inherit", strlen("inherit")) == 0)
        theme_warn(r, "inherits more than once:", value);
    else
        theme_warn(r, "unknown setting", key);
}

static void theme_read_section(struct theme_reader *r, const char *line) {
    static const char *const names[] = {
        [THEME_PALETTE] = "[palette]", [THEME_ROLES_SECTION] = "[roles]", [THEME_MONO_SECTION] = "[mono]"};
    r->section = THEME_UNKNOWN_SECTION;
    for (int i = THEME_PALETTE; i <= THEME_MONO_SECTION; i++)
        if (strcmp(line, names[i]) == 0)
            r->section = (enum theme_section)i;
    if (r->section == THEME_UNKNOWN_SECTION)
        theme_warn(r, "unknown section", line);
}

static char *theme_trim(char *s) {
    s += strspn(s, " \t\r");
    size_t len = strlen(s);
    while (len && strchr(" \t\r", s[len - 1]))
        s[--len] = '\0';
    return s;
}

static void theme_read_line(struct theme_reader *r, char *line) {
    line = theme_trim(line);
    if (!*line || *line == '#')
        return;
    if (*line == '[') {
        theme_read_section(r, line);
        return;
    }
    char *equals = strchr(line, '=');
    if (!equals) {
        theme_warn(r, "no '=' in", line);
        return;
    }
    *equals = '\0';
    char *key = theme_trim(line), *value = theme_trim(equals + 1);
    switch (r->section) {
    case THEME_TOP:
        theme_read_top(r, key, value);
        break;
    case THEME_PALETTE:
        theme_read_palette(r, key, value);
        break;
    case THEME_ROLES_SECTION:
        theme_read_role(r, key, value);
        break;
    case THEME_MONO_SECTION:
        theme_read_mono(r, key, value);
        break;
    case THEME_UNKNOWN_SECTION:
        break;
    }
}

static int theme_parse_into(struct theme *t, const char *text, size_t len, const char *source,
                            const struct theme_path *path, struct strbuf *warnings, int depth) {
    struct theme_reader *r = calloc(1, sizeof *r);
    if (!r)
        return -1;
    r->theme = t;
    r->source = source;
    r->path = path;
    r->warnings = warnings;
    r->depth = depth;
    for (size_t at = 0; at < len;) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t n = newline ? (size_t)(newline - (text + at)) : len - at;
        char line[THEME_MAX_LINE];
        r->line++;
        if (n >= sizeof line || memchr(text + at, '\0', n)) {
            theme_warn(r, "not a line of text, or too long:", "");
        } else {
            memcpy(line, text + at, n);
            line[n] = '\0';
            theme_read_line(r, line);
        }
        at += n + 1;
    }
    theme_take_inherit16(r);
    free(r);
    return 0;
}

void theme_parse(struct theme *t, const char *text, size_t len, const char *source,
                 const struct theme_path *path, struct strbuf *warnings) {
    theme_parse_into(t, text, len, source, path, warnings, 0);
}

void theme_init_default(struct theme *t) {
    memset(t, 0, sizeof *t);
    theme_parse_into(t, theme_default_text, strlen(theme_default_text), "built-in default theme", NULL, NULL,
                     0);
}

/* Note that this file was read. */
static void theme_add_file(const struct theme_path *path, const char *file) {
    struct theme_files *f = path ? path->files : NULL;
    if (!f || f->n == THEME_MAX_FILES || strlen(file) >= sizeof f->paths[0])
        return;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->paths[i], file) == 0)
            return;
    memcpy(f->paths[f->n++], file, strlen(file) + 1);
}

/* Read the file at `path` over the default. 0, or -1 with errno. */
static int theme_read_file(struct theme *t, const char *file, const struct theme_path *path,
                           struct strbuf *warnings, int depth) {
    struct strbuf text;
    strbuf_init(&text, THEME_MAX_FILE);
    int rc = strbuf_read_file(&text, file);
    int error = errno;
    if (rc == 0) {
        theme_init_default(t);
        theme_add_file(path, file);
        rc = theme_parse_into(t, strbuf_str(&text), text.len, file, path, warnings, depth);
    }
    strbuf_fini(&text);
    errno = error;
    return rc;
}

static int theme_load_depth(struct theme *t, const char *name, const struct theme_path *path,
                            struct strbuf *warnings, int depth, struct err *e) {
    theme_init_default(t);
    if (depth > THEME_MAX_DEPTH)
        return err_set(e, ERR_USAGE, "theme %s inherits itself or more than %d others", name,
                       THEME_MAX_DEPTH);
    if (strchr(name, '/')) {
        if (theme_read_file(t, name, path, warnings, depth) == 0)
            return 0;
        return err_set_errno(e, ERR_USAGE, errno, "cannot read theme file %s", name);
    }
    for (size_t i = 0; path && i < sizeof path->dirs / sizeof path->dirs[0] && path->dirs[i]; i++) {
        char file[1024];
        int n = snprintf(file, sizeof file, "%s/%s.theme", path->dirs[i], name);
        if (n > 0 && (size_t)n < sizeof file && theme_read_file(t, file, path, warnings, depth) == 0)
            return 0;
    }
    theme_init_default(t);
    if (strcmp(name, "default") == 0)
        return 0;
    if (depth == 0 && access(name, R_OK) == 0 && theme_read_file(t, name, path, warnings, depth) == 0)
        return 0;
    return theme_fail_name(name, path, e);
}

int theme_load(struct theme *t, const char *name_or_file, const struct theme_path *path,
               struct strbuf *warnings, struct err *e) {
    const char *name = strcmp(name_or_file, THEME_AUTO) == 0 ? "default" : name_or_file;
    return theme_load_depth(t, name, path, warnings, 0, e);
}
