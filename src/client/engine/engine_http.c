/* SPDX-License-Identifier: Apache-2.0 */
/* engine_http: see engine_http.h. */
#include "client/engine/engine_http.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/gzip.h"
#include "version.h"

#define ENGINE_URL_MAX ((size_t)12 * 1024) /* a server takes 16 KiB */
#define ENGINE_ERROR_MAX ((size_t)8 * 1024)
#define ENGINE_LINE 300 /* of a server's text in an error */

/* ---- libcurl ---- */

/* The functions and numbers of curl/curl.h that are used here; its ABI has not changed since 2006 (libcurl.so.4). */

enum engine_curl_option {
    CURL_WRITEDATA = 10001,
    CURL_URL = 10002,
    CURL_ERRORBUFFER = 10010,
    CURL_POSTFIELDS = 10015,
    CURL_HTTPHEADER = 10023,
    CURL_NOPROGRESS = 43,
    CURL_POST = 47,
    CURL_XFERINFODATA = 10057,
    CURL_SSL_VERIFYPEER = 64,
    CURL_CAINFO = 10065,
    CURL_SSL_VERIFYHOST = 81,
    CURL_HTTP_VERSION = 84,
    CURL_NOSIGNAL = 99,
    CURL_TIMEOUT_MS = 155,
    CURL_CONNECTTIMEOUT_MS = 156,
    CURL_PROTOCOLS = 181,
    CURL_WRITEFUNCTION = 20011,
    CURL_XFERINFOFUNCTION = 20219,
    CURL_POSTFIELDSIZE_LARGE = 30120,
};

enum { CURL_RESPONSE_CODE = 0x200002, CURL_HTTP_1_1 = 2, CURL_PROTO_HTTP = 1, CURL_PROTO_HTTPS = 2 };

enum engine_curl_code {
    CURL_OK = 0,
    CURL_COULDNT_RESOLVE_PROXY = 5,
    CURL_COULDNT_RESOLVE_HOST = 6,
    CURL_COULDNT_CONNECT = 7,
    CURL_PARTIAL_FILE = 18,
    CURL_WRITE_ERROR = 23,
    CURL_TIMEDOUT = 28,
    CURL_SSL_CONNECT_ERROR = 35,
    CURL_ABORTED = 42,
    CURL_GOT_NOTHING = 52,
    CURL_SEND_ERROR = 55,
    CURL_RECV_ERROR = 56,
    CURL_PEER_FAILED_VERIFICATION = 60,
    CURL_SSL_CACERT_BADFILE = 77,
};

#define CURL_ERROR_SIZE 256
#define CURL_GLOBAL_DEFAULT 3L

struct engine_curl {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *h, int option, ...);
    int (*easy_perform)(void *h);
    void (*easy_reset)(void *h);
    int (*easy_getinfo)(void *h, int what, ...);
    void (*easy_cleanup)(void *h);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *line);
    void (*slist_free_all)(void *list);
};

static struct engine_curl engine_curl;
static bool engine_curl_is_loaded;
static pthread_once_t engine_curl_once = PTHREAD_ONCE_INIT;

static void engine_curl_load(void) {
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"curl_global_init", offsetof(struct engine_curl, global_init)},
        {"curl_easy_init", offsetof(struct engine_curl, easy_init)},
        {"curl_easy_setopt", offsetof(struct engine_curl, easy_setopt)},
        {"curl_easy_perform", offsetof(struct engine_curl, easy_perform)},
        {"curl_easy_reset", offsetof(struct engine_curl, easy_reset)},
        {"curl_easy_getinfo", offsetof(struct engine_curl, easy_getinfo)},
        {"curl_easy_cleanup", offsetof(struct engine_curl, easy_cleanup)},
        {"curl_easy_strerror", offsetof(struct engine_curl, easy_strerror)},
        {"curl_slist_append", offsetof(struct engine_curl, slist_append)},
        {"curl_slist_free_all", offsetof(struct engine_curl, slist_free_all)},
    };
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    bool is_whole = library != NULL;
    for (size_t i = 0; is_whole && i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(library, functions[i].name);
        memcpy((char *)&engine_curl + functions[i].offset, &function, sizeof function);
        is_whole = function != NULL;
    }
    engine_curl_is_loaded = is_whole && engine_curl.global_init(CURL_GLOBAL_DEFAULT) == CURL_OK;
}

/* ---- a connection ---- */

struct engine_http {
    struct engine_address address;
    void *curl;
    int version;   /* 0: not asked yet */
    int last_code; /* of the last request: ClickHouse's, */
    int last_curl; /* libcurl's */
    long last_status;
    atomic_bool is_cancelled;
    bool (*stop)(void *arg); /* NULL: none */
    void *stop_arg;
};

struct engine_http *engine_http_open(const struct engine_address *a, struct err *e) {
    pthread_once(&engine_curl_once, engine_curl_load);
    if (!engine_curl_is_loaded) {
        err_set(e, ERR_FAILED,
                "clickhouse:// needs libcurl, which is not installed here. Try: apt-get install libcurl4");
        return NULL;
    }
    struct engine_http *h = calloc(1, sizeof *h);
    void *curl = h ? engine_curl.easy_init() : NULL;
    if (!curl) {
        free(h);
        err_set(e, ERR_FAILED, "out of memory for a connection to the server");
        return NULL;
    }
    h->address = *a;
    h->curl = curl;
    return h;
}

void engine_http_close(struct engine_http *h) {
    if (!h)
        return;
    engine_curl.easy_cleanup(h->curl);
    explicit_bzero(h->address.password, sizeof h->address.password);
    free(h);
}

const struct engine_address *engine_http_address(const struct engine_http *h) { return &h->address; }

void engine_http_cancel(struct engine_http *h) { atomic_store(&h->is_cancelled, true); }

void engine_http_set_stop(struct engine_http *h, bool (*stop)(void *arg), void *arg) {
    h->stop = stop;
    h->stop_arg = arg;
}

int engine_http_last_code(const struct engine_http *h) { return h->last_code; }

bool engine_http_may_recover(const struct engine_http *h) {
    static const int passing[] = {CURL_COULDNT_RESOLVE_PROXY,
                                  CURL_COULDNT_RESOLVE_HOST,
                                  CURL_COULDNT_CONNECT,
                                  CURL_PARTIAL_FILE,
                                  CURL_TIMEDOUT,
                                  CURL_GOT_NOTHING,
                                  CURL_SEND_ERROR,
                                  CURL_RECV_ERROR};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (h->last_curl == passing[i])
            return true;
    return h->last_curl == CURL_OK && h->last_status >= 500 && !engine_http_is_lasting(h->last_code);
}

/* ---- errors of a server ---- */

/* Numbers of dbms/src/Common/ErrorCodes.cpp. */
enum {
    ENGINE_NO_SUCH_COLUMN = 16,
    ENGINE_UNKNOWN_IDENTIFIER = 47,
    ENGINE_TIMEOUT = 159,
    ENGINE_READONLY = 164,
    ENGINE_UNKNOWN_USER = 192,
    ENGINE_WRONG_PASSWORD = 193,
    ENGINE_REQUIRED_PASSWORD = 194,
    ENGINE_NETWORK_REFUSED = 195,
    ENGINE_TOO_MANY_QUERIES = 202,
    ENGINE_NO_SPACE = 243,
    ENGINE_MEMORY_LIMIT = 241,
    ENGINE_TABLE_IS_READ_ONLY = 242,
    ENGINE_TOO_MANY_PARTS = 252,
    ENGINE_DATABASE_DENIED = 291,
    ENGINE_AUTHENTICATION_FAILED = 516,
};

bool engine_http_is_lasting(int code) {
    static const int lasting[] = {
        ENGINE_NO_SUCH_COLUMN,    ENGINE_UNKNOWN_IDENTIFIER, ENGINE_HTTP_UNKNOWN_TABLE,
        ENGINE_READONLY,          ENGINE_UNKNOWN_USER,       ENGINE_WRONG_PASSWORD,
        ENGINE_REQUIRED_PASSWORD, ENGINE_NETWORK_REFUSED,    ENGINE_HTTP_UNKNOWN_DATABASE,
        ENGINE_DATABASE_DENIED,   ENGINE_HTTP_ACCESS_DENIED, ENGINE_AUTHENTICATION_FAILED};
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++)
        if (lasting[i] == code)
            return true;
    return false;
}

/* "Code: 60, e.displayText() = ..." of 18.16, "Code: 60. DB::Exception: ..." of today. 0: it is not one. */
static int engine_error_code(const char *text, size_t len) {
    static const char mark[] = "Code: ";
    size_t at = sizeof mark - 1;
    int code = 0;
    if (len <= at || memcmp(text, mark, at) != 0)
        return 0;
    for (; at < len && at < sizeof mark + 5 && isdigit((unsigned char)text[at]); at++)
        code = code * 10 + (text[at] - '0');
    return at < len && (text[at] == ',' || text[at] == '.') ? code : 0;
}

/* The part of the text that says something, as one line. */
static void engine_error_line(const char *text, size_t len, char *line, size_t cap) {
    static const char *const prefixes[] = {"e.displayText() = ", "DB::Exception: "};
    char raw[ENGINE_LINE + 1];
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const char *found = memmem(text, len, prefixes[i], strlen(prefixes[i]));
        if (found && found - text < 64) {
            found += strlen(prefixes[i]);
            len -= (size_t)(found - text);
            text = found;
        }
    }
    size_t n = 0;
    while (n < len && n < ENGINE_LINE && text[n] != '\n' && text[n] != '\0')
        n++;
    const char *version = memmem(text, n, " (version ", 10), *stack = memmem(text, n, ", e.what()", 10);
    n = stack ? (size_t)(stack - text) : version ? (size_t)(version - text) : n;
    memcpy(raw, text, n);
    raw[n] = '\0';
    text_sanitize(line, cap, raw);
}

int engine_http_explain(const struct engine_address *a, long status, const char *text, size_t len,
                        struct err *e) {
    char line[ENGINE_LINE + 1], where[64], file[160];
    struct strbuf url;
    int code = engine_error_code(text, len);
    snprintf(where, sizeof where, "the server at %.40s:%d", a->host, a->port);
    engine_error_line(text, len, line, sizeof line);
    switch (code) {
    case ENGINE_UNKNOWN_USER:
    case ENGINE_WRONG_PASSWORD:
    case ENGINE_REQUIRED_PASSWORD:
    case ENGINE_AUTHENTICATION_FAILED:
        engine_address_password_file(file, sizeof file);
        err_set(e, ERR_ATTACH,
                "%s refuses user '%.40s': the password is wrong, or there is no such user. Set "
                "PROBING_CLICKHOUSE_PASSWORD, or write it to %s (mode 0600)",
                where, a->user, file[0] ? file : "a file in $XDG_CONFIG_HOME");
        break;
    case ENGINE_NETWORK_REFUSED:
        err_set(e, ERR_ATTACH,
                "%s does not accept user '%.40s' from this host: see <networks> of that user there", where,
                a->user);
        break;
    case ENGINE_READONLY:
    case ENGINE_DATABASE_DENIED:
    case ENGINE_HTTP_ACCESS_DENIED:
    case ENGINE_TABLE_IS_READ_ONLY:
        err_set(e, ERR_FAILED, "%s does not let user '%.40s' do that in database '%.40s': %.200s", where,
                a->user, a->database, line);
        break;
    case ENGINE_HTTP_UNKNOWN_DATABASE:
    case ENGINE_HTTP_UNKNOWN_TABLE:
    case ENGINE_NO_SUCH_COLUMN:
    case ENGINE_UNKNOWN_IDENTIFIER:
        strbuf_init(&url, 256);
        engine_address_put(a, &url);
        err_set(e, ERR_FAILED,
                "%s lacks tables or columns of this version (%.120s). Try: probing cluster init %s", where,
                line, strbuf_str(&url));
        strbuf_fini(&url);
        break;
    case ENGINE_MEMORY_LIMIT:
        err_set(e, ERR_FAILED, "%s had not enough memory for the statement: ask for less time or fewer ranks",
                where);
        break;
    case ENGINE_NO_SPACE:
        err_set(e, ERR_FAILED, "the disk of %s is full", where);
        break;
    case ENGINE_TOO_MANY_PARTS:
    case ENGINE_TOO_MANY_QUERIES:
        err_set(e, ERR_FAILED, "%s is overloaded: %.200s", where, line);
        break;
    case ENGINE_TIMEOUT:
        err_set(e, ERR_FAILED, "%s has ended the statement because it took too long", where);
        break;
    default:
        if (code)
            err_set(e, ERR_FAILED, "%s: error %d: %s", where, code, line);
        else /* 502 to 504: a proxy that cannot reach it */
            err_set(e, status >= 502 && status <= 504 ? ERR_ATTACH : ERR_FAILED,
                    "%s answered with HTTP status %ld%s%s", where, status, line[0] ? ": " : "", line);
    }
    return code;
}

bool engine_http_find_error(const struct engine_address *a, const char *text, size_t len, struct err *e) {
    for (size_t at = len; at-- > 0;)
        if (text[at] == 'C' && engine_error_code(text + at, len - at) != 0 &&
            memmem(text + at, len - at, "DB::Exception", strlen("DB::Exception"))) {
            engine_http_explain(a, 200, text + at, len - at, e);
            return true;
        }
    return false;
}

/* ---- SQL ---- */

static void engine_put_quoted(struct strbuf *out, char quote, const char *text) {
    strbuf_addc(out, quote);
    for (; *text; text++) {
        if (*text == quote || *text == '\\')
            strbuf_addc(out, '\\');
        if (*text == '\n')
            strbuf_adds(out, "\\n");
        else
            strbuf_addc(out, *text);
    }
    strbuf_addc(out, quote);
}

void engine_http_put_text(struct strbuf *out, const char *text) { engine_put_quoted(out, '\'', text); }
void engine_http_put_name(struct strbuf *out, const char *name) { engine_put_quoted(out, '`', name); }

/* ---- requests ---- */

struct engine_request {
    struct engine_http *http;
    const char *sql;
    const struct strbuf *body; /* NULL: it is a GET, without one */
    bool is_packed;
    const char *parameters; /* beside the statement: "&a=b" */
    double limit_s, took_s;
    engine_http_fn take;
    void *arg;
    /* while it runs */
    struct strbuf error;
    bool is_enough;
};

static size_t engine_on_bytes(char *data, size_t size, size_t n, void *arg) {
    struct engine_request *r = arg;
    long status = 0;
    n *= size;
    engine_curl.easy_getinfo(r->http->curl, CURL_RESPONSE_CODE, &status);
    if (status != 200) {
        size_t left = ENGINE_ERROR_MAX - r->error.len;
        strbuf_add(&r->error, data, n < left ? n : left);
        return n;
    }
    r->is_enough = r->take && r->take(r->arg, data, n) != 0;
    return r->is_enough ? 0 : n;
}

static int engine_on_progress(void *arg, long long down_total, long long down, long long up_total,
                              long long up) {
    const struct engine_request *r = arg;
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    const struct engine_http *h = r->http;
    return atomic_load(&h->is_cancelled) || (h->stop && h->stop(h->stop_arg));
}

static void engine_put_encoded(struct strbuf *out, const char *text) {
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text))
            strbuf_addc(out, *text);
        else
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*text);
}

static void *engine_headers(const struct engine_http *h, bool is_packed) {
    char line[ENGINE_ADDRESS_PASSWORD + 64];
    void *list = NULL;
    snprintf(line, sizeof line, "X-ClickHouse-User: %s", h->address.user);
    list = engine_curl.slist_append(list, line);
    if (h->address.password[0]) {
        snprintf(line, sizeof line, "X-ClickHouse-Key: %s", h->address.password);
        list = engine_curl.slist_append(list, line);
        explicit_bzero(line, sizeof line);
    }
    if (is_packed)
        list = engine_curl.slist_append(list, "Content-Encoding: gzip");
    list = engine_curl.slist_append(list, "Content-Type: application/octet-stream");
    list = engine_curl.slist_append(list, "User-Agent: probing/" PROBING_VERSION);
    /* a body is not announced, which would wait for an answer */
    return engine_curl.slist_append(list, "Expect:");
}

/* Why nothing came, or not all. */
static int engine_explain_curl(const struct engine_request *r, int code, const char *detail, struct err *e) {
    const struct engine_address *a = &r->http->address;
    char line[CURL_ERROR_SIZE + 1];
    text_sanitize(line, sizeof line, detail[0] ? detail : engine_curl.easy_strerror(code));
    switch (code) {
    case CURL_ABORTED:
        return err_set(e, ERR_FAILED, "the request to the server at %s:%d was cancelled", a->host, a->port);
    case CURL_COULDNT_RESOLVE_HOST:
        return err_set(e, ERR_ATTACH, "there is no host '%s', where the server should be", a->host);
    case CURL_COULDNT_CONNECT:
        return err_set(e, ERR_ATTACH,
                       "no server answers at %s:%d. Is ClickHouse running, with its HTTP%s port there?",
                       a->host, a->port, a->tls ? "S" : "");
    case CURL_TIMEDOUT:
        return err_set(e, ERR_ATTACH, "the server at %s:%d did not answer within %.*f s", a->host, a->port,
                       r->took_s < 10 ? 1 : 0, r->took_s);
    case CURL_PEER_FAILED_VERIFICATION:
    case CURL_SSL_CACERT_BADFILE:
        return err_set(
            e, ERR_ATTACH,
            "the certificate of %s:%d cannot be verified: %.160s. PROBING_CLICKHOUSE_CA names the file of "
            "its authority",
            a->host, a->port, line);
    case CURL_SSL_CONNECT_ERROR:
        return err_set(e, ERR_ATTACH, "%s:%d does not speak TLS: %.160s. For HTTP: clickhouse://", a->host,
                       a->port, line);
    case CURL_PARTIAL_FILE:
    case CURL_GOT_NOTHING:
        return err_set(e, ERR_FAILED, "the server at %s:%d ended the connection in the middle of its answer",
                       a->host, a->port);
    default:
        return err_set(e, ERR_FAILED, "the server at %s:%d: %.200s", a->host, a->port, line);
    }
}

static int engine_run(struct engine_request *r, struct err *e) {
    struct engine_http *h = r->http;
    const struct engine_address *a = &h->address;
    const char *authorities = getenv("PROBING_CLICKHOUSE_CA");
    char detail[CURL_ERROR_SIZE] = "";
    struct strbuf url;
    bool is_v6 = strchr(a->host, ':') != NULL;
    long status = 0;
    err_set(e, ERR_OK, "%s", "");
    strbuf_init(&url, 0);
    strbuf_init(&r->error, ENGINE_ERROR_MAX);
    strbuf_addf(&url, is_v6 ? "%s://[%s]:%d/?query=" : "%s://%s:%d/?query=", a->tls ? "https" : "http",
                a->host, a->port);
    engine_put_encoded(&url, r->sql);
    /* an error comes with its status, and not within an answer that has begun */
    strbuf_addf(&url, "&wait_end_of_query=1%s", r->parameters ? r->parameters : "");
    h->last_code = 0;
    void *headers = engine_headers(h, r->is_packed);
    if (url.failed || !headers || url.len > ENGINE_URL_MAX) {
        err_set(e, ERR_FAILED,
                url.failed || !headers ? "out of memory for a request to the server"
                                       : "the statement is too long for the server");
        strbuf_fini(&url);
        engine_curl.slist_free_all(headers);
        return -1;
    }
    engine_curl.easy_reset(h->curl);
    engine_curl.easy_setopt(h->curl, CURL_URL, strbuf_str(&url));
    engine_curl.easy_setopt(h->curl, CURL_HTTPHEADER, headers);
    engine_curl.easy_setopt(h->curl, CURL_ERRORBUFFER, detail);
    engine_curl.easy_setopt(h->curl, CURL_NOSIGNAL, 1L);
    engine_curl.easy_setopt(h->curl, CURL_PROTOCOLS, (long)(a->tls ? CURL_PROTO_HTTPS : CURL_PROTO_HTTP));
    engine_curl.easy_setopt(h->curl, CURL_HTTP_VERSION, (long)CURL_HTTP_1_1);
    engine_curl.easy_setopt(h->curl, CURL_SSL_VERIFYPEER, 1L);
    engine_curl.easy_setopt(h->curl, CURL_SSL_VERIFYHOST, 2L);
    if (authorities && authorities[0])
        engine_curl.easy_setopt(h->curl, CURL_CAINFO, authorities);
    engine_curl.easy_setopt(h->curl, CURL_CONNECTTIMEOUT_MS, (long)(ENGINE_HTTP_CONNECT_S * 1000));
    engine_curl.easy_setopt(h->curl, CURL_TIMEOUT_MS, (long)(r->limit_s * 1000) + 1);
    engine_curl.easy_setopt(h->curl, CURL_NOPROGRESS, 0L);
    engine_curl.easy_setopt(h->curl, CURL_XFERINFOFUNCTION, engine_on_progress);
    engine_curl.easy_setopt(h->curl, CURL_XFERINFODATA, r);
    engine_curl.easy_setopt(h->curl, CURL_WRITEFUNCTION, engine_on_bytes);
    engine_curl.easy_setopt(h->curl, CURL_WRITEDATA, r);
    if (r->body) {
        engine_curl.easy_setopt(h->curl, CURL_POST, 1L);
        engine_curl.easy_setopt(h->curl, CURL_POSTFIELDSIZE_LARGE, (long long)r->body->len);
        engine_curl.easy_setopt(h->curl, CURL_POSTFIELDS, strbuf_str(r->body));
    }
    uint64_t began = clock_mono_ns();
    int code = engine_curl.easy_perform(h->curl), rc = 0;
    r->took_s = (double)(clock_mono_ns() - began) /
                (double)CLOCK_NS_PER_S; /* a connection has less time than an answer */
    engine_curl.easy_getinfo(h->curl, CURL_RESPONSE_CODE, &status);
    h->last_curl = code;
    h->last_status = status;
    if (code == CURL_WRITE_ERROR && r->is_enough)
        rc = -1;
    else if (code != CURL_OK)
        rc = engine_explain_curl(r, code, detail, e);
    else if (status != 200) {
        h->last_code = engine_http_explain(a, status, strbuf_str(&r->error), r->error.len, e);
        rc = -1;
    }
    /* what it points to ends here */
    engine_curl.easy_setopt(h->curl, CURL_ERRORBUFFER, NULL);
    engine_curl.slist_free_all(headers);
    strbuf_fini(&url);
    strbuf_fini(&r->error);
    return rc;
}

int engine_http_stream(struct engine_http *h, const char *sql, double limit_s, engine_http_fn take, void *arg,
                       struct err *e) {
    struct engine_request r = {.http = h, .sql = sql, .limit_s = limit_s, .take = take, .arg = arg};
    return engine_run(&r, e);
}

static int engine_keep(void *arg, const void *data, size_t len) { return strbuf_add(arg, data, len); }

int engine_http_query(struct engine_http *h, const char *sql, double limit_s, struct strbuf *out,
                      struct err *e) {
    if (!out->limit)
        out->limit = ENGINE_HTTP_ANSWER_MAX;
    int rc = engine_http_stream(h, sql, limit_s, engine_keep, out, e);
    if (rc != 0 && out->failed)
        err_set(e, ERR_FAILED, "the answer of the server is longer than %zu KiB: ask for less",
                out->limit / 1024);
    return rc;
}

/* What a statement without rows answers is not wanted, as long as it ends. */
static int engine_ignore(void *arg, const void *data, size_t len) {
    (void)data;
    size_t *n = arg;
    *n += len;
    return *n > ENGINE_ERROR_MAX;
}

/* Run a request whose answer is of no interest. */
static int engine_run_silent(struct engine_request *r, struct err *e) {
    size_t n = 0;
    r->take = engine_ignore;
    r->arg = &n;
    int rc = engine_run(r, e);
    if (r->is_enough)
        err_set(e, ERR_FAILED, "the server at %s:%d answers with what was not asked for",
                r->http->address.host, r->http->address.port);
    return rc;
}

int engine_http_command(struct engine_http *h, const char *sql, double limit_s, struct err *e) {
    struct strbuf body;
    strbuf_init(&body, 0);
    strbuf_adds(&body, sql);
    struct engine_request r = {.http = h, .sql = "", .body = &body, .limit_s = limit_s};
    int rc = body.failed ? err_set(e, ERR_FAILED, "out of memory for a request to the server")
                         : engine_run_silent(&r, e);
    strbuf_fini(&body);
    return rc;
}

int engine_http_insert(struct engine_http *h, const char *sql, const struct strbuf *rows, double limit_s,
                       struct err *e) {
    struct strbuf body;
    int version = engine_http_version(h, e);
    if (!version)
        return -1;
    strbuf_init(&body, 0);
    struct engine_request r = {.http = h,
                               .sql = sql,
                               .body = &body,
                               .is_packed = true,
                               .parameters = version >= ENGINE_HTTP_VERSION(21, 11)
                                                 ? "&async_insert=1&wait_for_async_insert=1"
                                                 : NULL,
                               .limit_s = limit_s};
    int rc = gzip_pack(rows, &body, e) == 0 ? engine_run_silent(&r, e) : -1;
    strbuf_fini(&body);
    return rc;
}

int engine_http_version(struct engine_http *h, struct err *e) {
    struct strbuf text;
    int major = 0, minor = 0;
    if (h->version)
        return h->version;
    strbuf_init(&text, 256);
    if (engine_http_query(h, "SELECT version() FORMAT TabSeparated", ENGINE_HTTP_CONNECT_S * 2, &text, e) ==
        0) {
        if (sscanf(strbuf_str(&text), "%4d.%4d", &major, &minor) == 2 && major > 0 && minor >= 0 &&
            minor < 1000)
            h->version = ENGINE_HTTP_VERSION(major, minor);
        else
            err_set(e, ERR_ATTACH, "what answers at %s:%d is not ClickHouse", h->address.host,
                    h->address.port);
    }
    strbuf_fini(&text);
    return h->version;
}
