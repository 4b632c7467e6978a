/* SPDX-License-Identifier: Apache-2.0 */
/* config_file: see config_file.h. Writing is in config_file_save.c. */
#include "tui/core/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/core/config_line.h"

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
