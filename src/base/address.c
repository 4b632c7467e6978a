/* SPDX-License-Identifier: Apache-2.0 */
/* address: see address.h. */
#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_LOCAL "127.0.0.1"

static bool address_is_v6(const struct address *a) { return a->at.any.sa_family == AF_INET6; }

int address_parse_host(struct address *a, const char *host) {
    char bare[ADDRESS_MAX];
    size_t n = strlen(host);
    *a = (struct address){.len = 0};
    if (strcmp(host, "localhost") == 0)
        host = ADDRESS_LOCAL;
    if (strcmp(host, "*") == 0)
        host = "0.0.0.0";
    if (inet_pton(AF_INET, host, &a->at.v4.sin_addr) == 1) {
        a->at.v4.sin_family = AF_INET;
        a->len = sizeof a->at.v4;
        return 0;
    }
    if (n < 3 || n >= sizeof bare || host[0] != '[' || host[n - 1] != ']')
        return -1;
    snprintf(bare, sizeof bare, "%.*s", (int)(n - 2), host + 1);
    if (inet_pton(AF_INET6, bare, &a->at.v6.sin6_addr) != 1)
        return -1;
    a->at.v6.sin6_family = AF_INET6;
    a->len = sizeof a->at.v6;
    return 0;
}

static int address_parse_port(const char *text, unsigned *out) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 5 || text[n])
        return -1;
    *out = (unsigned)strtoul(text, NULL, 10);
    return *out <= 65535 ? 0 : -1;
}

int address_parse(struct address *a, const char *text, struct err *e) {
    char host[ADDRESS_MAX] = ADDRESS_LOCAL;
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    unsigned number = 0;
    bool bad = strlen(text) >= sizeof host;
    if (!bad && colon && colon > text)
        snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (bad || (text[0] && address_parse_port(port, &number) != 0) || address_parse_host(a, host) != 0)
        return err_set(e, ERR_USAGE,
                       "'%.60s' is not an address: use HOST:PORT, e.g. 127.0.0.1:3344 or [::1]:3344 (port 0: "
                       "any free port)",
                       text);
    if (address_is_v6(a))
        a->at.v6.sin6_port = htons((uint16_t)number);
    else
        a->at.v4.sin_port = htons((uint16_t)number);
    return 0;
}

unsigned address_port(const struct address *a) {
    return ntohs(address_is_v6(a) ? a->at.v6.sin6_port : a->at.v4.sin_port);
}

void address_format(const struct address *a, char *buf, size_t cap) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->at.any.sa_family == AF_INET && inet_ntop(AF_INET, &a->at.v4.sin_addr, host, sizeof host))
        snprintf(buf, cap, "%s:%u", host, address_port(a));
    else if (address_is_v6(a) && inet_ntop(AF_INET6, &a->at.v6.sin6_addr, host, sizeof host))
        snprintf(buf, cap, "[%s]:%u", host, address_port(a));
    else
        snprintf(buf, cap, "?");
}

/* The IPv4 address in `a`, also when it is mapped into IPv6 (::ffff:127.0.0.1). False if there
 * is none. */
static bool address_v4(const struct address *a, uint32_t *host) {
    if (a->at.any.sa_family == AF_INET) {
        *host = ntohl(a->at.v4.sin_addr.s_addr);
        return true;
    }
    if (!address_is_v6(a) || !IN6_IS_ADDR_V4MAPPED(&a->at.v6.sin6_addr))
        return false;
    memcpy(host, a->at.v6.sin6_addr.s6_addr + 12, sizeof *host);
    *host = ntohl(*host);
    return true;
}

bool address_is_loopback(const struct address *a) {
    uint32_t host;
    if (address_v4(a, &host))
        return host >> 24 == 127;
    return address_is_v6(a) && IN6_IS_ADDR_LOOPBACK(&a->at.v6.sin6_addr);
}

bool address_is_any(const struct address *a) {
    uint32_t host;
    if (address_v4(a, &host))
        return host == 0;
    return address_is_v6(a) && IN6_IS_ADDR_UNSPECIFIED(&a->at.v6.sin6_addr);
}

bool address_same_host(const struct address *a, const struct address *b) {
    uint32_t x, y;
    bool v4 = address_v4(a, &x);
    if (v4 != address_v4(b, &y))
        return false;
    if (v4)
        return x == y;
    return address_is_v6(a) && address_is_v6(b) &&
           memcmp(&a->at.v6.sin6_addr, &b->at.v6.sin6_addr, sizeof a->at.v6.sin6_addr) == 0;
}
