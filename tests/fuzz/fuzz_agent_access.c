/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what somebody says who comes by TCP: the headers of a request, an address, a token; as lines of /proc/net/tcp; and
 * as tries in vain, with their times. What is let in must be what the headers say.
 *
 * Input: which of these; then the texts, an end of line after each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/access/access.h"
#include "agent/access/token.h"
#include "base/address.h"
#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Bytes as a text of its own, to be freed: up to the first NUL, if there is one. */
static char *text_of(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text && size)
        memcpy(text, data, size);
    if (text)
        text[size] = '\0';
    return text;
}

/* The next line of `*rest` as a text of its own, to be freed; NULL there is none. */
static char *next_line(const uint8_t **rest, const uint8_t *end) {
    if (*rest >= end)
        return NULL;
    const uint8_t *stop = memchr(*rest, '\n', (size_t)(end - *rest));
    size_t len = (size_t)((stop ? stop : end) - *rest);
    char *line = text_of(*rest, len);
    *rest = stop ? stop + 1 : end;
    return line;
}

/* An address that was understood is written, and is the same again. */
static void check_address(const char *text) {
    struct address a, again;
    struct err e = {0};
    char first[ADDRESS_MAX], second[ADDRESS_MAX];
    if (address_parse(&a, text, &e) != 0)
        return;
    address_format(&a, first, sizeof first);
    if (address_parse(&again, first, &e) != 0)
        fail("an address of our own is refused");
    address_format(&again, second, sizeof second);
    if (strcmp(first, second) != 0 || !address_same_host(&a, &again) ||
        address_port(&a) != address_port(&again))
        fail("an address is another one after it was written");
}

/* A Host that is believed has the number of this end, or is a name or number of this machine alone. */
static void check_page(const char *host, const char *origin) {
    static const char *const ends[] = {"127.0.0.1:3344", "[::1]:3344", "10.1.2.3:3344",
                                       "[::ffff:10.1.2.3]:80"};
    struct err e = {0};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct address near;
        if (address_parse(&near, ends[i], &e) != 0)
            fail("an address is refused");
        bool believed = access_is_host(host, &near);
        bool local = strncasecmp(host, "localhost", 9) == 0 && (!host[9] || host[9] == ':');
        if (believed && !local && strspn(host, "0123456789abcdefABCDEF.:[]") != strlen(host))
            fail("a name is believed");
    }
    if (origin && origin[0] && access_is_origin(origin, host) &&
        (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, host) != 0))
        fail("a page of another server is believed");
}

static void check_token(const char *said) {
    static const struct token none = {.text = ""};
    static const struct token one = {.text = "0123456789abcdef0123456789abcdef0123456789abcdef"};
    if (token_is(&none, said, strlen(said)))
        fail("a token that is none is taken");
    if (token_is(&one, said, strlen(said)) != (strcmp(one.text, said) == 0))
        fail("a wrong token is taken, or the right one is not");
}

/* Lines of /proc/net/tcp: a user is found in a line that has both ends in it, or not at all. */
static void check_users(const uint8_t *data, size_t size) {
    static const char local[] = "0100007F:8E00", remote[] = "0100007F:0D10";
    char *text = text_of(data, size);
    if (!text)
        return;
    bool there = strstr(text, local) && strstr(text, remote);
    if (access_uid_in(text, local, remote, NULL) >= 0 && !there)
        fail("a user was found in a line of somebody else's");
    free(text);
}

/* Tries of many, some a long time later: who has just failed waits, and never for longer than a while. */
static void check_waits(const uint8_t *data, size_t size) {
    static struct access a;
    uint64_t now = CLOCK_NS_PER_S;
    struct err e = {0};
    memset(&a, 0, sizeof a);
    for (size_t i = 0; i + 4 <= size; i += 4) {
        struct address far;
        char text[64];
        now += (uint64_t)data[i] * data[i] * 10 * CLOCK_NS_PER_MS;
        (void)snprintf(text, sizeof text, data[i + 1] & 1 ? "[2001:db8:%x::%x]:9" : "10.%d.0.%d:9",
                       data[i + 2], data[i + 3]);
        if (address_parse(&far, text, &e) != 0)
            fail("an address is refused");
        int64_t uid = (int64_t)(data[i + 1] >> 1) - 1;
        if (access_must_wait(&a, &far, uid, now))
            continue;
        access_note_failure(&a, &far, uid, now);
        if (!access_must_wait(&a, &far, uid, now) ||
            access_must_wait(&a, &far, uid, now + 13 * CLOCK_NS_PER_S))
            fail("who has failed does not wait, or for too long");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    const uint8_t *at = data + 1, *end = data + size;
    if (data[0] % 3 == 1) {
        check_users(at, (size_t)(end - at));
        return 0;
    }
    if (data[0] % 3 == 2) {
        check_waits(at, (size_t)(end - at));
        return 0;
    }
    char *host = next_line(&at, end), *origin = next_line(&at, end), *rest = next_line(&at, end);
    if (host) {
        check_address(host);
        check_page(host, origin);
        check_token(host);
    }
    if (rest) {
        check_address(rest);
        check_token(rest);
    }
    free(host);
    free(origin);
    free(rest);
    return 0;
}
