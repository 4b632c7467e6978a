/* SPDX-License-Identifier: Apache-2.0 */
/* sha256: SHA-256 (FIPS 180-4) of bytes in memory. Pure; any thread. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

#define SHA256_TEXT 65 /* its digits, and a NUL */

/* Write the hash as hexadecimal digits in lower case, as sha256sum(1) prints it. */
void sha256_text(const void *data, size_t len, char text[SHA256_TEXT]);

#endif
