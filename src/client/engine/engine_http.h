/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_http: statements for a ClickHouse server and their answers, over HTTP by libcurl.
 *
 * libcurl is loaded when the first connection is made, so a program that needs none starts as fast as before, and
 * runs where there is none. A server's certificate is always verified (PROBING_CLICKHOUSE_CA names a file of
 * other authorities than the system's). What a server answers is bounded in bytes and in time; an error of it
 * becomes one line that is safe for a terminal and has the remedy.
 *
 * A connection belongs to one thread, except for engine_http_cancel.
 */
#ifndef CLIENT_ENGINE_ENGINE_HTTP_H
#define CLIENT_ENGINE_ENGINE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/engine/engine_address.h"

#define ENGINE_HTTP_CONNECT_S 5.0
#define ENGINE_HTTP_ANSWER_MAX ((size_t)64 << 20) /* bytes of an answer in memory, unless others are named */

struct engine_http;

/* A connection to a server, which is not contacted yet. The address is copied. NULL with the error: there is no
 * libcurl. */
struct engine_http *engine_http_open(const struct engine_address *a, struct err *e);
void engine_http_close(struct engine_http *h);

const struct engine_address *engine_http_address(const struct engine_http *h);

/* Takes the next bytes of an answer; other than 0: the rest is not wanted. */
typedef int (*engine_http_fn)(void *arg, const void *data, size_t len);

/* Run a statement that has rows, in the format that it names, as "... FORMAT RowBinary"; all within `limit_s`. The
 * answer goes to `take` as it comes, and need not be whole if this fails. 0, or -1 with the error; `*e` is empty
 * (ERR_OK) if `take` did not want the rest. The server checks that nothing is changed (it is a GET of HTTP, which it
 * treats as read-only). */
int engine_http_stream(struct engine_http *h, const char *sql, double limit_s, engine_http_fn take, void *arg,
                       struct err *e);

/* The same with an answer in memory, of at most out->limit bytes (0: ENGINE_HTTP_ANSWER_MAX). */
int engine_http_query(struct engine_http *h, const char *sql, double limit_s, struct strbuf *out,
                      struct err *e);

/* Run a statement that changes something and has no rows. */
int engine_http_command(struct engine_http *h, const char *sql, double limit_s, struct err *e);

/* Insert rows: `sql` is "INSERT INTO ... FORMAT RowBinary"; `rows` are packed here. 0 when the server has
 * written them, or -1 with the error; then it may have written some, all or none of them. */
int engine_http_insert(struct engine_http *h, const char *sql, const struct strbuf *rows, double limit_s,
                       struct err *e);

/* The version of the server as 1000 * major + minor (18016); it is asked once. 0 with the error. */
int engine_http_version(struct engine_http *h, struct err *e);
#define ENGINE_HTTP_VERSION(major, minor) ((major)*1000 + (minor))

/* Let a request that another thread has under way fail within a second, and each later one, too. */
void engine_http_cancel(struct engine_http *h);

/* Let requests fail within a second of when `stop` returns true, from here on; NULL: none. */
void engine_http_set_stop(struct engine_http *h, bool (*stop)(void *arg), void *arg);

/* ClickHouse's number of the error that the last request failed with; 0: it was none of the server's, as where it
 * cannot be reached. */
int engine_http_last_code(const struct engine_http *h);

/* Is that an error which another attempt does not mend: of the user, the password, the rights, the schema? */
bool engine_http_is_lasting(int code);

/* May the last request succeed later as it is: the server could not be reached, or had too much to do? */
bool engine_http_may_recover(const struct engine_http *h);

#define ENGINE_HTTP_UNKNOWN_TABLE 60
#define ENGINE_HTTP_UNKNOWN_DATABASE 81
#define ENGINE_HTTP_ACCESS_DENIED 497

/* Make a line of a server's text. `status`: of HTTP. The result is ClickHouse's number of the error, 0 if there is
 * none in the text. */
int engine_http_explain(const struct engine_address *a, long status, const char *text, size_t len,
                        struct err *e);

/* Is there an error of the server in the last bytes of an answer that began well, as where a statement fails
 * in the middle? True with the error. For answers that were found not to be whole: a row may have such a text. */
bool engine_http_find_error(const struct engine_address *a, const char *text, size_t len, struct err *e);

/* Append a text as a literal of ClickHouse's SQL, or a name between backquotes. */
void engine_http_put_text(struct strbuf *out, const char *text);
void engine_http_put_name(struct strbuf *out, const char *name);

#endif
