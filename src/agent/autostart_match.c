/* SPDX-License-Identifier: Apache-2.0 */
/* autostart_match: see autostart_match.h. Python's own options: Python/getopt.c, SHORT_OPTS and
 * longopts. */
#include "agent/autostart_match.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTOSTART_MATCH_REGEX "regex:"
#define AUTOSTART_MATCH_PATTERN_MAX 1024

/* The word after `w`, or NULL after the last. */
static const char *autostart_match_next(const char *w, const char *words, size_t len) {
    const char *end = words + len, *nul = memchr(w, '\0', (size_t)(end - w));
    return nul && nul + 1 < end ? nul + 1 : NULL;
}

static const char *autostart_match_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Parse a word of options. Returns the option that ends them: 'c' or 'm', with the rest of the
 * word in `*rest` ("": the next word); 'v': the next word is an option's value; or 0. */
static char autostart_match_read_options(const char *w, const char **rest) {
    for (const char *p = w + 1; *p; p++) {
        *rest = p + 1;
        if (*p == 'c' || *p == 'm')
            return *p;
        if (*p == 'W' || *p == 'X')
            return p[1] ? 0 : 'v';
    }
    return 0;
}

void autostart_match_find_script(const char *words, size_t len, char *buf, size_t cap) {
    const char *w = len ? autostart_match_next(words, words, len) : NULL, *rest = "";
    buf[0] = '\0';
    for (; w && w[0] == '-' && w[1]; w = autostart_match_next(w, words, len)) {
        if (strcmp(w, "--") == 0) {
            w = autostart_match_next(w, words, len);
            break;
        }
        if (w[1] == '-') { /* the only long option with a separate value */
            if (strcmp(w, "--check-hash-based-pycs") == 0 && !(w = autostart_match_next(w, words, len)))
                return;
            continue;
        }
        char found = autostart_match_read_options(w, &rest);
        if (found == 'c') {
            snprintf(buf, cap, "-c");
            return;
        }
        if (found == 'm' && *rest) {
            snprintf(buf, cap, "%s", rest);
            return;
        }
        if ((found == 'v' || found == 'm') && !(w = autostart_match_next(w, words, len)))
            return;
        if (found == 'm')
            break;
    }
    if (w && strcmp(w, "-") != 0)
        snprintf(buf, cap, "%s", w);
}

/* True if `name` is the program, the script, or a module's file. */
static bool autostart_match_is_named(const char *name, const char *words, size_t len) {
    char script[AUTOSTART_MATCH_NAME_MAX], file[AUTOSTART_MATCH_NAME_MAX];
    if (strcmp(autostart_match_base_name(words), name) == 0)
        return true;
    autostart_match_find_script(words, len, script, sizeof script);
    if (!script[0])
        return false;
    if (strcmp(script, name) == 0 || strcmp(autostart_match_base_name(script), name) == 0)
        return true;
    const char *dot = strrchr(script, '.');
    int n = snprintf(file, sizeof file, "%s.py", dot ? dot + 1 : script);
    return !strchr(script, '/') && n > 0 && (size_t)n < sizeof file && strcmp(file, name) == 0;
}

/* 1 or 0; -1 if `pattern` is invalid or memory is short. */
static int autostart_match_matches(const char *pattern, const char *words, size_t len) {
    regex_t re;
    char *line = malloc(len + 1);
    if (!line || strlen(pattern) > AUTOSTART_MATCH_PATTERN_MAX ||
        regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
        free(line);
        return -1;
    }
    memcpy(line, words, len);
    while (len > 0 && line[len - 1] == '\0')
        len--;
    line[len] = '\0';
    for (size_t i = 0; i < len; i++)
        line[i] = line[i] ? line[i] : ' ';
    int matches = regexec(&re, line, 0, NULL, 0) == 0;
    regfree(&re);
    free(line);
    return matches;
}

int autostart_match_judge(const char *value, const char *words, size_t len, struct err *e) {
    if (!value || !value[0] || strcmp(value, "0") == 0)
        return AUTOSTART_MATCH_NONE;
    if (strcmp(value, "1") == 0)
        return AUTOSTART_MATCH_ONCE;
    if (strcmp(value, "2") == 0)
        return AUTOSTART_MATCH_NESTED;
    if (!words || len == 0 || words[len - 1] != '\0')
        return AUTOSTART_MATCH_NONE;
    if (strncmp(value, AUTOSTART_MATCH_REGEX, sizeof AUTOSTART_MATCH_REGEX - 1) != 0)
        return autostart_match_is_named(value, words, len) ? AUTOSTART_MATCH_MATCH : AUTOSTART_MATCH_NONE;
    int matches = autostart_match_matches(value + sizeof AUTOSTART_MATCH_REGEX - 1, words, len);
    if (matches < 0)
        return err_set(e, ERR_FAILED,
                       "PROBING=%s is not a valid POSIX extended regular expression: correct it", value);
    return matches ? AUTOSTART_MATCH_MATCH : AUTOSTART_MATCH_NONE;
}
