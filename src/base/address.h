/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address: the address of a TCP listener, "HOST:PORT" with numeric hosts, parsed and formatted.
 * No name is ever resolved.
 *
 * HOST is an IPv4 address, an IPv6 one in brackets, "localhost" (127.0.0.1) or "*" (every IPv4
 * address). Without HOST it is 127.0.0.1.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"

#define ADDRESS_MAX 64 /* of an address as text, with its NUL */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t len;
};

/* Parse "HOST:PORT", ":PORT" or "PORT"; "" is 127.0.0.1:0, a free port. 0, or -1 with ERR_USAGE. */
int address_parse(struct address *a, const char *text, struct err *e);

/* Parse a host without a port. 0 or -1. */
int address_parse_host(struct address *a, const char *host);

/* "127.0.0.1:3344", "[::1]:3344"; "?" for an unknown family. */
void address_format(const struct address *a, char *buf, size_t cap);

unsigned address_port(const struct address *a);

/* True for an address of the loopback interface. An IPv4 address within IPv6 counts as the IPv4
 * address. */
bool address_is_loopback(const struct address *a);

/* True for the address that stands for all addresses of this machine. */
bool address_is_any(const struct address *a);

/* True if both hosts are equal, whatever the ports. */
bool address_same_host(const struct address *a, const struct address *b);

#endif
