/* SPDX-License-Identifier: Apache-2.0 */
/* config_file_save: writes the settings file; see config_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tui/core/config_file.h"
#include "tui/core/config_line.h"

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
        return err_set(e, ERR_FAILED, "settings are not saved: %s is no regular file", path);
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
