/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json: is a text JSON (RFC 8259), and fit for a terminal? For fuzz targets that look at what we write of foreign names. */
#ifndef SUPPORT_FUZZ_JSON_H
#define SUPPORT_FUZZ_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* One value, with nothing but blanks around it; control characters stand escaped in texts. */
bool fuzz_json_is(const char *text, size_t len);

/* Nothing but text: UTF-8 without control characters, but ends of lines and tabs. */
bool fuzz_text_is_plain(const char *text, size_t len);

#endif
