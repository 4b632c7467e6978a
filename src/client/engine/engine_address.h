/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_address: where a ClickHouse server is, as a user writes it:
 *
 *   clickhouse[s]://[USER@]HOST[:PORT]/DATABASE[?job=NAME][&at=TIME]
 *
 * The password is not part of it: it comes from PROBING_CLICKHOUSE_PASSWORD, or from a file that only its owner
 * may read, $XDG_CONFIG_HOME/probing-top/clickhouse-password. USER, DATABASE, NAME and TIME may be written with %XX.
 * TIME is a moment of the past (base/time_parse.h).
 */
#ifndef CLIENT_ENGINE_ENGINE_ADDRESS_H
#define CLIENT_ENGINE_ENGINE_ADDRESS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

#define ENGINE_ADDRESS_NAME 128 /* bytes of a user or a database, with the NUL */
#define ENGINE_ADDRESS_HOST 256
#define ENGINE_ADDRESS_JOB 256 /* of the name of a job */
#define ENGINE_ADDRESS_PASSWORD 256

struct engine_address {
    bool tls;
    int port; /* 8123, with TLS 8443, unless given */
    char user[ENGINE_ADDRESS_NAME];
    char host[ENGINE_ADDRESS_HOST]; /* an IPv6 address without its brackets */
    char database[ENGINE_ADDRESS_NAME];
    char job[ENGINE_ADDRESS_JOB]; /* "": none was named */
    double at;                    /* seconds since the epoch; NAN: none was named */
    char password[ENGINE_ADDRESS_PASSWORD];
};

/* Does a text begin like such an address? */
bool engine_address_is(const char *text);

/* Parse it; the password is empty then. 0, or -1 with ERR_USAGE. */
int engine_address_parse(struct engine_address *a, const char *text, struct err *e);

/* Read the password, which may be empty. 0, or -1 with the error: its file may be read by others, or cannot be
 * read. */
int engine_address_read_password(struct engine_address *a, struct err *e);

/* The file of the password, "" if no folder is known; `buf` has room for `cap` bytes. */
void engine_address_password_file(char *buf, size_t cap);

/* Append the address as text, without password, job and time; as it was written, but for defaults. */
void engine_address_put(const struct engine_address *a, struct strbuf *out);

/* The same, of a job ("": none), at a moment (NAN: none). */
void engine_address_put_job(const struct engine_address *a, const char *job, double at, struct strbuf *out);

/* Write the address that `text` is, with that job, to `out`. 0, or -1 with ERR_USAGE. */
int engine_address_name_job(const char *text, const char *job, char *out, size_t cap, struct err *e);

/* Is `name` free of control characters and valid UTF-8, not empty, and shorter than `cap`? */
bool engine_address_name_ok(const char *name, size_t cap);

#endif
