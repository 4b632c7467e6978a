/* SPDX-License-Identifier: Apache-2.0 */
/* engine_address: see engine_address.h. */
#include "client/engine/engine_address.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/time_parse.h"
#include "base/text.h"

#define ENGINE_SCHEME "clickhouse://"
#define ENGINE_SCHEME_TLS "clickhouses://"
#define ENGINE_PORT 8123
#define ENGINE_PORT_TLS 8443
#define ENGINE_FORM "clickhouse://[USER@]HOST[:PORT]/DATABASE"
#define ENGINE_PASSWORD_ENV "PROBING_CLICKHOUSE_PASSWORD"

bool engine_address_is(const char *text) {
    return strncmp(text, ENGINE_SCHEME, strlen(ENGINE_SCHEME)) == 0 ||
           strncmp(text, ENGINE_SCHEME_TLS, strlen(ENGINE_SCHEME_TLS)) == 0;
}

bool engine_address_name_ok(const char *name, size_t cap) {
    size_t len = strlen(name);
    uint32_t cp;
    for (size_t at = 0; at < len;) {
        size_t n = text_utf8_next(name + at, len - at, &cp);
        if (cp == TEXT_REPLACEMENT || text_is_control(cp) || cp == '\t' || cp == '\n')
            return false;
        at += n;
    }
    return len > 0 && len < cap;
}

static int engine_hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copy a part of the address, with %XX decoded. False: it is empty, too long, or not a name. */
static bool engine_address_decode(const char *from, size_t len, char *to, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)from[i];
        if (c == '%') {
            int high = i + 2 < len ? engine_hex(from[i + 1]) : -1;
            int low = high >= 0 ? engine_hex(from[i + 2]) : -1;
            if (low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        if (n + 1 >= cap || c == 0)
            return false;
        to[n++] = (char)c;
    }
    to[n] = '\0';
    return engine_address_name_ok(to, cap);
}

/* HOST[:PORT], or [ADDRESS][:PORT]. */
static bool engine_address_parse_host(struct engine_address *a, const char *s, size_t len) {
    const char *end = s + len, *host = s, *host_end, *port = NULL;
    bool is_v6 = len > 0 && s[0] == '[';
    if (is_v6) {
        host = s + 1;
        host_end = memchr(s, ']', len);
        if (!host_end || (host_end + 1 < end && host_end[1] != ':'))
            return false;
        port = host_end + 1 < end ? host_end + 2 : NULL;
    } else {
        host_end = memchr(s, ':', len);
        port = host_end ? host_end + 1 : NULL;
        host_end = host_end ? host_end : end;
    }
    size_t n = (size_t)(host_end - host);
    const char *allowed = is_v6 ? "0123456789abcdefABCDEF:."
                                : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._";
    if (n == 0 || n >= sizeof a->host || host[0] == '-')
        return false;
    memcpy(a->host, host, n);
    a->host[n] = '\0';
    if (strspn(a->host, allowed) != n)
        return false;
    if (!port)
        return true;
    long number = 0;
    if (port == end || end - port > 5)
        return false;
    for (const char *p = port; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        number = number * 10 + (*p - '0');
    }
    a->port = (int)number;
    return number >= 1 && number <= 65535;
}

/* "?job=NAME&at=TIME", each once. */
static int engine_address_parse_query(struct engine_address *a, const char *at, struct err *e) {
    char time[64], mark = '?';
    for (; *at; mark = '&') {
        size_t name = strncmp(at + 1, "job=", 4) == 0 ? 5 : strncmp(at + 1, "at=", 3) == 0 ? 4 : 0;
        size_t len = name ? strcspn(at + name, "&") : 0;
        bool is_job = name == 5;
        if (!name || at[0] != mark || (is_job ? a->job[0] != '\0' : !isnan(a->at)))
            return err_set(
                e, ERR_USAGE,
                "'%.80s' is not part of the address of a server. Only ?job=NAME and &at=TIME may follow", at);
        if (is_job && !engine_address_decode(at + name, len, a->job, sizeof a->job))
            return err_set(e, ERR_USAGE,
                           "the name of the job in the address is empty, too long, or not valid");
        if (!is_job && (!engine_address_decode(at + name, len, time, sizeof time) ||
                        !time_parse(time, strlen(time), clock_epoch_s(), &a->at)))
            return err_set(e, ERR_USAGE, "'%.*s' is not a time (use one " TIME_PARSE_FORMS ")", (int)len,
                           at + name);
        at += name + len;
    }
    return 0;
}

int engine_address_parse(struct engine_address *a, const char *text, struct err *e) {
    bool tls = strncmp(text, ENGINE_SCHEME_TLS, strlen(ENGINE_SCHEME_TLS)) == 0;
    *a = (struct engine_address){.tls = tls,
                                 .port = tls ? ENGINE_PORT_TLS : ENGINE_PORT,
                                 .user = "default",
                                 .database = "probing",
                                 .at = NAN};
    if (!engine_address_is(text))
        return err_set(e, ERR_USAGE, "'%.80s' is not the address of a server. Write: %s", text, ENGINE_FORM);
    const char *at = text + strlen(tls ? ENGINE_SCHEME_TLS : ENGINE_SCHEME);
    const char *slash = at + strcspn(at, "/?#"), *sign = memchr(at, '@', (size_t)(slash - at));
    if (sign) {
        if (memchr(at, ':', (size_t)(sign - at)))
            return err_set(
                e, ERR_USAGE,
                "a password in an address is seen by all users of this machine: leave it out and set %s",
                ENGINE_PASSWORD_ENV);
        if (!engine_address_decode(at, (size_t)(sign - at), a->user, sizeof a->user))
            return err_set(e, ERR_USAGE, "the user in the address of the server is not valid. Write: %s",
                           ENGINE_FORM);
        at = sign + 1;
    }
    if (!engine_address_parse_host(a, at, (size_t)(slash - at)))
        return err_set(e, ERR_USAGE,
                       "the host or the port in the address of the server is not valid. Write: %s",
                       ENGINE_FORM);
    at = slash;
    if (*at == '/') {
        size_t len = strcspn(++at, "?#");
        if (len > 0 && at[len - 1] == '/') /* as people end a URL */
            len--;
        if (len > 0 && !engine_address_decode(at, len, a->database, sizeof a->database))
            return err_set(e, ERR_USAGE, "the database in the address of the server is not valid. Write: %s",
                           ENGINE_FORM);
        at += strcspn(at, "?#");
    }
    return engine_address_parse_query(a, at, e);
}

static void engine_address_encode(struct strbuf *out, const char *name) {
    for (; *name; name++)
        if (isalnum((unsigned char)*name) || strchr("-_.~", *name))
            strbuf_addc(out, *name);
        else
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*name);
}

void engine_address_put(const struct engine_address *a, struct strbuf *out) {
    bool is_v6 = strchr(a->host, ':') != NULL;
    strbuf_adds(out, a->tls ? ENGINE_SCHEME_TLS : ENGINE_SCHEME);
    if (strcmp(a->user, "default") != 0) {
        engine_address_encode(out, a->user);
        strbuf_addc(out, '@');
    }
    strbuf_addf(out, is_v6 ? "[%s]" : "%s", a->host);
    if (a->port != (a->tls ? ENGINE_PORT_TLS : ENGINE_PORT))
        strbuf_addf(out, ":%d", a->port);
    strbuf_addc(out, '/');
    engine_address_encode(out, a->database);
}

void engine_address_put_job(const struct engine_address *a, const char *job, double at, struct strbuf *out) {
    engine_address_put(a, out);
    if (job[0]) {
        strbuf_adds(out, "?job=");
        engine_address_encode(out, job);
    }
    if (!isnan(at))
        strbuf_addf(out, "%sat=@%.3f", job[0] ? "&" : "?", at);
}

int engine_address_name_job(const char *text, const char *job, char *out, size_t cap, struct err *e) {
    struct engine_address a;
    struct strbuf whole;
    if (engine_address_parse(&a, text, e) != 0)
        return -1;
    strbuf_init(&whole, 0);
    engine_address_put_job(&a, job, a.at, &whole);
    int rc =
        whole.failed || whole.len >= cap ? err_set(e, ERR_USAGE, "the address of the job is too long") : 0;
    if (rc == 0)
        memcpy(out, strbuf_str(&whole), whole.len + 1);
    strbuf_fini(&whole);
    return rc;
}

/* ---- the password ---- */

void engine_address_password_file(char *buf, size_t cap) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    buf[0] = '\0';
    if (config && config[0] == '/')
        snprintf(buf, cap, "%s/probing-top/clickhouse-password", config);
    else if (home && home[0] == '/')
        snprintf(buf, cap, "%s/.config/probing-top/clickhouse-password", home);
}

/* Copy it without the newline at its end. */
static int engine_address_take_password(struct engine_address *a, const char *text, const char *from,
                                        struct err *e) {
    size_t len = strcspn(text, "\r\n");
    if (text[len + strspn(text + len, "\r\n")] != '\0' || len >= sizeof a->password)
        return err_set(e, ERR_FAILED, "%s is not one line of at most %zu characters", from,
                       sizeof a->password - 1);
    memcpy(a->password, text, len);
    a->password[len] = '\0';
    return 0;
}

int engine_address_read_password(struct engine_address *a, struct err *e) {
    char path[4096], text[ENGINE_ADDRESS_PASSWORD + 8];
    struct stat st;
    const char *env = getenv(ENGINE_PASSWORD_ENV);
    a->password[0] = '\0';
    if (env)
        return engine_address_take_password(a, env, ENGINE_PASSWORD_ENV, e);
    engine_address_password_file(path, sizeof path);
    int fd =
        path[0] ? file_open_regular(AT_FDCWD, path, FILE_LINKS_FOLLOWED, O_RDONLY | O_CLOEXEC, FILE_ANY_OWNER)
                : -1;
    if (fd < 0)
        return !path[0] || errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : err_set_errno(e, ERR_FAILED, errno, "cannot read the password of the server in %s",
                                   path);
    int rc = 0;
    if (fstat(fd, &st) != 0 || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 077) != 0)
        rc = err_set(e, ERR_FAILED, "%s can be read by others: it has a password. Try: chmod 600 %s", path,
                     path);
    ssize_t n = rc == 0 ? read(fd, text, sizeof text - 1) : 0;
    if (n < 0)
        rc = err_set_errno(e, ERR_FAILED, errno, "cannot read the password of the server in %s", path);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return rc == 0 ? engine_address_take_password(a, text, path, e) : rc;
}
