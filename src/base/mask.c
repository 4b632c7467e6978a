/* SPDX-License-Identifier: Apache-2.0 */
/* mask: see mask.h. */
#include "base/mask.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MASK_NAME 64 /* the end of a name that is compared */
#define MASK_COUNT 7 /* a number of so many characters counts things: --max-tokens 4096 */
#define MASK_HEX 32  /* so many hexadecimal digits are a key or a digest */
#define MASK_KEY 12  /* characters behind the prefix of a key */

/* Within a name: it is of a secret. */
static const char *const mask_parts[] = {"secret",  "passw",   "passphrase",    "credential", "apikey",
                                         "api_key", "api-key", "authorization", "cookie",     "bearer"};
/* The same if the name ends so. */
static const char *const mask_ends[] = {"token", "tokens"};
/* Its last word. */
static const char *const mask_words[] = {"key", "keys", "pwd",       "pass", "auth", "pat",
                                         "sas", "jwt",  "signature", "sig",  "dsn"};
/* How keys of well-known services begin. */
static const char *const mask_prefixes[] = {
    "hf_",  "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "sk-",  "sk_",    "xoxb-",    "xoxp-",
    "AKIA", "ASIA", "AIza", "eyJ",  "npm_", "pypi-",       "lsv2_",  "dapi", "nvapi-", "wandb_v1_"};

#define MASK_N(list) (sizeof(list) / sizeof *(list))

static bool mask_is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.'; }

static size_t mask_name(const char *s) {
    size_t n = 0;
    while (mask_is_name(s[n]))
        n++;
    return n;
}

/* What follows this name is a secret; `*counts`: unless it is a short number. */
static bool mask_names_secret(const char *name, size_t n, bool *counts) {
    char low[MASK_NAME + 1];
    size_t from = n > MASK_NAME ? n - MASK_NAME : 0, len = n - from, word;
    for (size_t i = 0; i < len; i++)
        low[i] = (char)tolower((unsigned char)name[from + i]);
    low[len] = '\0';
    *counts = false;
    for (size_t i = 0; i < MASK_N(mask_parts); i++)
        if (strstr(low, mask_parts[i]))
            return true;
    *counts = true;
    for (size_t i = 0; i < MASK_N(mask_ends); i++) {
        size_t end = strlen(mask_ends[i]);
        if (len >= end && strcmp(low + len - end, mask_ends[i]) == 0)
            return true;
    }
    for (word = len; word > 0 && isalnum((unsigned char)low[word - 1]); word--)
        ;
    for (size_t i = 0; i < MASK_N(mask_words); i++)
        if (strcmp(low + word, mask_words[i]) == 0)
            return true;
    return false;
}

/* Length of a value in quotes, with them; up to the end if they are not closed. */
static size_t mask_quoted(const char *s) {
    const char *end = strchr(s + 1, s[0]);
    return end ? (size_t)(end - s) + 1 : strlen(s);
}

/* Length of an option's value. Spaces within an argument are not distinguished from those between
 * arguments: it goes on to the next option. */
static size_t mask_argument(const char *s) {
    const char *next = strstr(s, " -");
    return next ? (size_t)(next - s) : strlen(s);
}

/* Length of a value within a text: a word; after "Bearer" or "Basic" the next one, too. */
static size_t mask_word(const char *s) {
    size_t n = strcspn(s, " &,;)}]\"'");
    bool scheme = (n == 6 && strncasecmp(s, "bearer", 6) == 0) ||
                  (n == 5 && strncasecmp(s, "basic", 5) == 0) || (n == 5 && strncasecmp(s, "token", 5) == 0);
    return scheme && s[n] == ' ' ? n + 1 + strcspn(s + n + 1, " &,;)}]\"'") : n;
}

static bool mask_is_count(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (isdigit((unsigned char)s[i]) || strchr(".,eE+-kKmM", s[i])))
        i++;
    return n > 0 && n <= MASK_COUNT && i == n && isdigit((unsigned char)s[0]);
}

/* Characters between the name at `s` and its value, 0 if it has none: "=", ": ", "\": \"". */
static size_t mask_separator(const char *s, size_t n, bool option) {
    size_t at = n;
    if (s[at] == '"' || s[at] == '\'')
        at++;
    if (s[at] == '=' || s[at] == ':') {
        return at + 1 + (s[at + 1] == ' ') - n;
    }
    return option && s[n] == ' ' && s[n + 1] && s[n + 1] != '-' ? 1 : 0;
}

/* Length of a word with the form of a key; 0: it has not. */
static size_t mask_key(const char *s, size_t n) {
    size_t hex = 0;
    while (hex < n && isxdigit((unsigned char)s[hex]))
        hex++;
    if (hex >= MASK_HEX)
        return n;
    for (size_t i = 0; i < MASK_N(mask_prefixes); i++) {
        size_t p = strlen(mask_prefixes[i]);
        if (n >= p + MASK_KEY && strncmp(s, mask_prefixes[i], p) == 0)
            return n;
    }
    return 0;
}

/* Length of "user:password" before the '@' of a URL whose host begins at `s`; 0: none. */
static size_t mask_user(const char *s) {
    size_t n = strcspn(s, "@/ ?#\"'");
    return s[n] == '@' ? n : 0;
}

/* The name at `s`, and its value if that is a secret. Returns how many characters were read. */
static size_t mask_put_name(struct strbuf *out, const char *s) {
    size_t n = mask_name(s), sep;
    bool option = s[0] == '-', counts;
    if (mask_key(s, n)) {
        strbuf_adds(out, "***");
        return n;
    }
    sep = mask_names_secret(s, n, &counts) ? mask_separator(s, n, option) : 0;
    strbuf_add(out, s, n + sep);
    if (sep == 0)
        return n;
    const char *value = s + n + sep;
    size_t word = strcspn(value, " "), len;
    if (counts && mask_is_count(value, word))
        return n + sep;
    len = value[0] == '"' || value[0] == '\'' ? mask_quoted(value)
          : option                            ? mask_argument(value)
                                              : mask_word(value);
    strbuf_adds(out, len ? "***" : "");
    return n + sep + len;
}

void mask_put_command(struct strbuf *out, const char *command, size_t max) {
    size_t start = out->len;
    if (!command)
        return;
    for (const char *s = command; *s && !out->failed && out->len - start <= max;) {
        if (strncmp(s, "://", 3) == 0) {
            size_t user = mask_user(s + 3);
            strbuf_adds(out, user ? "://***" : "://");
            s += 3 + user;
        } else if (mask_is_name(*s)) {
            s += mask_put_name(out, s);
        } else {
            strbuf_addc(out, *s++);
        }
    }
    if (out->len - start <= max || out->failed)
        return;
    /* a cut character becomes a replacement where this is sanitised */
    out->len = start + max;
    out->data[out->len] = '\0';
    strbuf_adds(out, "..");
}
