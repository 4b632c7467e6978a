/* SPDX-License-Identifier: Apache-2.0 */
/* config_file: see config_file.h. */
#include "tui/core/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tui/core/action_keys.h"

/* ---- lines ---- */

#define CONFIG_LINE_MAX 512

enum config_line_kind {
    CONFIG_LINE_BLANK,   /* blank, or a comment */
    CONFIG_LINE_SECTION, /* "[keys]" */
    CONFIG_LINE_PAIR,    /* "key = value" */
    CONFIG_LINE_BAD,     /* none of these: key says what is wrong */
};

enum config_section { CONFIG_SECTION_SETTINGS, CONFIG_SECTION_KEYS, CONFIG_SECTION_OTHER };

struct config_line {
    enum config_line_kind kind;
    enum config_section section; /* the section it is in */
    int number;                  /* from 1 */
    size_t begin, end;           /* bytes of the text, including the newline */
    char key[CONFIG_LINE_MAX], value[CONFIG_LINE_MAX];
};

struct config_cursor {
    const char *text;
    size_t len, at;
    int number;
    enum config_section section;
};

static char *config_line_trim(char *s) {
    s += strspn(s, " \t\r");
    size_t len = strlen(s);
    while (len && strchr(" \t\r", s[len - 1]))
        s[--len] = '\0';
    return s;
}

static void config_line_bad(struct config_line *out, const char *what) {
    out->kind = CONFIG_LINE_BAD;
    snprintf(out->key, sizeof out->key, "%s", what);
}

static void config_line_section(struct config_cursor *c, struct config_line *out, const char *name) {
    bool is_settings = strcmp(name, "[settings]") == 0, is_keys = strcmp(name, "[keys]") == 0;
    c->section = is_settings ? CONFIG_SECTION_SETTINGS : is_keys ? CONFIG_SECTION_KEYS : CONFIG_SECTION_OTHER;
    out->section = c->section;
    out->kind = CONFIG_LINE_SECTION;
    if (c->section == CONFIG_SECTION_OTHER) {
        out->kind = CONFIG_LINE_BAD;
        snprintf(out->key, sizeof out->key, "there is no section %.80s: [settings] and [keys] are", name);
    }
}

/* The next line; false at the end. Any bytes may come. */
static bool config_line_next(struct config_cursor *c, struct config_line *out) {
    char copy[CONFIG_LINE_MAX];
    if (c->at >= c->len)
        return false;
    const char *begin = c->text + c->at, *newline = memchr(begin, '\n', c->len - c->at);
    size_t n = newline ? (size_t)(newline - begin) : c->len - c->at;
    *out = (struct config_line){.number = ++c->number, .section = c->section, .begin = c->at};
    c->at += n + (newline ? 1 : 0);
    out->end = c->at;
    if (n >= sizeof copy || memchr(begin, '\0', n)) {
        config_line_bad(out, "not a line of text, or too long");
        return true;
    }
    memcpy(copy, begin, n);
    copy[n] = '\0';
    char *line = config_line_trim(copy);
    if (!*line || *line == '#')
        return true;
    char *equals = strchr(line, '=');
    if (*line == '[') {
        config_line_section(c, out, line);
    } else if (!equals) {
        config_line_bad(out, "no '=': lines are 'setting = value'");
    } else {
        *equals = '\0';
        out->kind = CONFIG_LINE_PAIR;
        snprintf(out->key, sizeof out->key, "%s", config_line_trim(line));
        snprintf(out->value, sizeof out->value, "%s", config_line_trim(equals + 1));
    }
    return true;
}

/* ---- where it is ---- */

bool config_file_folder(char *path, size_t cap) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    if (config && *config == '/')
        n = snprintf(path, cap, "%s/probing-top", config);
    else if (home && *home == '/')
        n = snprintf(path, cap, "%s/.config/probing-top", home);
    if (n > 0 && (size_t)n < cap)
        return true;
    path[0] = '\0';
    return false;
}

bool config_file_path(char *path, size_t cap) {
    const char *named = getenv("PROBING_TOP_CONFIG");
    char folder[CONFIG_FILE_PATH];
    int n = 0;
    if (named && *named)
        n = snprintf(path, cap, "%s", named);
    else if (config_file_folder(folder, sizeof folder))
        n = snprintf(path, cap, "%s/config", folder);
    if (n > 0 && (size_t)n < cap)
        return true;
    path[0] = '\0';
    return false;
}

/* ---- reading ---- */

struct config_reader {
    struct settings *settings;
    const char *source;
    struct strbuf *warnings;
};

static void config_file_warn(const struct config_reader *r, int line, const char *what) {
    char clean[sizeof((struct err *)NULL)->text];
    text_sanitize(clean, sizeof clean, what);
    if (r->warnings)
        strbuf_addf(r->warnings, "%s:%d: %s\n", r->source, line, clean);
}

static void config_file_take(const struct config_reader *r, const struct config_line *l) {
    struct err e = {0};
    int key;
    switch (l->kind) {
    case CONFIG_LINE_BLANK:
    case CONFIG_LINE_SECTION:
        return;
    case CONFIG_LINE_BAD:
        err_set(&e, ERR_USAGE, "%s", l->key);
        break;
    case CONFIG_LINE_PAIR:
        if (l->section == CONFIG_SECTION_OTHER)
            return;
        if (l->section == CONFIG_SECTION_KEYS)
            action_bind_keys(l->key, l->value, l->number, &e);
        else if ((key = settings_find(l->key, &e)) >= 0)
            settings_put(r->settings, (enum settings_key)key, l->key, l->value, SETTINGS_BY_FILE, &e);
        break;
    }
    if (e.code)
        config_file_warn(r, l->number, e.text);
}

void config_file_parse(struct settings *s, const char *text, size_t len, const char *source,
                       struct strbuf *warnings) {
    struct config_reader r = {s, source, warnings};
    struct config_cursor c = {.text = text, .len = len};
    struct config_line line;
    while (config_line_next(&c, &line))
        config_file_take(&r, &line);
    action_settle_keys(source, warnings);
}

/* All of a regular file. 0, or -1 with errno. */
int config_file_load(const char *path, struct strbuf *text) {
    struct stat st;
    char buf[4096];
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        int error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        close(fd);
        errno = error;
        return -1;
    }
    while ((n = read(fd, buf, sizeof buf)) > 0)
        strbuf_add(text, buf, (size_t)n);
    int error = n < 0 ? errno : EFBIG;
    close(fd);
    errno = error;
    return n < 0 || text->failed ? -1 : 0;
}

void config_file_read(struct settings *s, const char *path, struct strbuf *warnings) {
    struct strbuf text;
    strbuf_init(&text, CONFIG_FILE_MAX);
    if (config_file_load(path, &text) == 0)
        config_file_parse(s, strbuf_str(&text), text.len, path, warnings);
    else if (errno != ENOENT && errno != ENOTDIR && warnings)
        strbuf_addf(warnings, "%s: the settings cannot be read: %s\n", path, strerror(errno));
    strbuf_fini(&text);
}

void config_file_print(const struct settings *s, const char *path, struct strbuf *out) {
    strbuf_addf(out, "# Settings in effect; the file is %s\n", *path ? path : "nowhere: HOME is not set");
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        const struct option_def *d = &settings_table[i];
        strbuf_addf(out, "\n# %s\n# takes %s; by default %s; from: %s\n%s = %s\n", d->help, d->takes,
                    *d->default_value ? d->default_value : "nothing", settings_origin_name(s->origins[i]),
                    d->name, s->values[i]);
    }
    strbuf_adds(out, "\n[keys]\n");
    action_print_keys(*path ? path : "file", out);
}

/* ---- writing ---- */

static void config_save_put(struct strbuf *out, const struct settings *s, int key) {
    strbuf_addf(out, "%s = %s\n", settings_table[key].name, s->values[key]);
}

/* Append the settings that have no line yet. */
static void config_save_rest(struct strbuf *out, const struct settings *s, bool *written) {
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        if (s->origins[i] != SETTINGS_BY_KEY || written[i])
            continue;
        if (out->len && out->data[out->len - 1] != '\n')
            strbuf_addc(out, '\n');
        config_save_put(out, s, i);
        written[i] = true;
    }
}

void config_file_edit(const struct settings *s, const char *text, size_t len, struct strbuf *out) {
    struct config_cursor c = {.text = text, .len = len};
    struct config_line l;
    bool written[SETTINGS_COUNT] = {false};
    enum config_section section = CONFIG_SECTION_SETTINGS;
    if (len == 0)
        strbuf_adds(out, "# Settings of probing-top; --print-config shows all there are, and the keys.\n");
    while (config_line_next(&c, &l)) {
        int key = -1;
        if (section == CONFIG_SECTION_SETTINGS && l.section != CONFIG_SECTION_SETTINGS)
            config_save_rest(out, s, written);
        section = l.section;
        if (l.kind == CONFIG_LINE_PAIR && section == CONFIG_SECTION_SETTINGS)
            key = settings_find(l.key, NULL);
        if (key >= 0 && s->origins[key] == SETTINGS_BY_KEY) {
            config_save_put(out, s, key);
            written[key] = true;
        } else
            strbuf_add(out, text + l.begin, l.end - l.begin);
    }
    if (section == CONFIG_SECTION_SETTINGS) {
        config_save_rest(out, s, written);
        return;
    }
    bool missing = false;
    for (int i = 0; i < SETTINGS_COUNT; i++)
        missing |= s->origins[i] == SETTINGS_BY_KEY && !written[i];
    if (missing) {
        strbuf_adds(out, out->data[out->len - 1] == '\n' ? "\n[settings]\n" : "\n\n[settings]\n");
        config_save_rest(out, s, written);
    }
}

/* May we replace the existing file? A missing one is fine. */
static int config_save_check(const char *path, struct err *e) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0
                               : err_set_errno(e, ERR_FAILED, errno, "cannot save the settings to %s", path);
    if (S_ISLNK(st.st_mode))
        return err_set(e, ERR_FAILED,
                       "settings are not saved: %s is a link; write them into the file it leads to", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED, "settings are not saved: %s is not a regular file", path);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_FAILED, "settings are not saved: %s belongs to another user", path);
    return 0;
}

/* Create the missing folders of a file, for this user alone. */
static int config_save_folders(const char *path) {
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return -1;
        *slash = '/';
    }
    return 0;
}

/* Write a file beside it, then rename that. 0, or -1 with errno. */
static int config_save_replace(const char *path, const struct strbuf *text) {
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return -1;
    size_t at = 0;
    ssize_t n = 0;
    while (at < text->len && (n = write(fd, text->data + at, text->len - at)) > 0)
        at += (size_t)n;
    bool well = at == text->len && fsync(fd) == 0;
    int error = errno;
    if (close(fd) != 0 && well) {
        well = false;
        error = errno;
    }
    if (well && rename(beside, path) == 0)
        return 0;
    error = well ? errno : error;
    unlink(beside);
    errno = error;
    return -1;
}

int config_file_save(struct settings *s, const char *path, struct err *e) {
    struct strbuf before, after;
    int rc = -1;
    if (!*path)
        return err_set(e, ERR_FAILED, "settings are not saved: neither HOME nor PROBING_TOP_CONFIG is set");
    if (config_save_check(path, e) != 0)
        return -1;
    strbuf_init(&before, CONFIG_FILE_MAX);
    strbuf_init(&after, CONFIG_FILE_MAX);
    if (config_file_load(path, &before) != 0 && errno != ENOENT && errno != ENOTDIR) {
        err_set_errno(e, ERR_FAILED, errno, "settings are not saved: %s cannot be read", path);
        goto out;
    }
    config_file_edit(s, strbuf_str(&before), before.len, &after);
    if (before.failed || after.failed) {
        err_set(e, ERR_FAILED, "settings are not saved: %s is too large", path);
        goto out;
    }
    if (config_save_folders(path) != 0 || config_save_replace(path, &after) != 0) {
        err_set_errno(e, ERR_FAILED, errno, "settings are not saved to %s", path);
        goto out;
    }
    for (int i = 0; i < SETTINGS_COUNT; i++)
        if (s->origins[i] == SETTINGS_BY_KEY)
            s->origins[i] = SETTINGS_BY_FILE;
    rc = 0;
out:
    strbuf_fini(&before);
    strbuf_fini(&after);
    return rc;
}
