/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the tokeniser and rewriter of SQL. Tokens must cover the text without a gap, before and after it is rewritten
 * in place; an error's place must be within it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql/sql_rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_tokens(const char *text, size_t size) {
    size_t at = 0;
    struct sql_token t;
    while ((t = sql_token_next(text, size, at)).kind != SQL_TOKEN_END) {
        if (t.at != at || t.len == 0 || t.len > size - at)
            __builtin_trap();
        at += t.len;
    }
    if (at != size)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    double seconds;
    size_t where = 0;
    struct err e;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)sql_interval_parse(text, size, &seconds);
    fuzz_tokens(text, size);
    if (sql_rewrite(text, size, &where, &e) != 0 && where >= size)
        __builtin_trap();
    if (text[size] != '\0')
        __builtin_trap();
    fuzz_tokens(text, size);
    free(text);
    return 0;
}
