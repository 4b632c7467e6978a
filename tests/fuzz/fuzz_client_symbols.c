/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a helper for symbols could answer that a hostile file has taken over, as the client hears it. Whatever comes,
 * the client has names that are texts within their bounds, or none, and says once that the helper is gone.
 *
 * The input is a sequence of packets. Of each the first byte says what it is (as it is; an answer; a wish for a file), the second and
 * third its length, and for an answer the texts are made: of lengths that the packet says, or nearly.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/symbols/symbols_helper.h"

#define FUZZ_PACKETS 8
#define FUZZ_FILE "/nonexistent/lib/libfuzz.so"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer with names of lengths that `data` says; the last two bytes may spoil one. */
static size_t fuzz_answer(const uint8_t *data, size_t size, char *out) {
    struct symbols_answer a = {.what = SYMBOLS_ANSWER};
    char *at = out + sizeof a;
    a.n = size > 0 ? data[0] % 18 : 0;
    a.role = size > 1 ? data[1] % 6 : 0;
    for (size_t i = 0; i < a.n && i < SYMBOLS_MAX_INLINED; i++) {
        size_t k = 2 + 3 * i;
        size_t func = k < size ? data[k] * 17U % 4300 : 0, file = k + 1 < size ? data[k + 1] * 17U % 4300 : 0;
        a.list[i].line = k + 2 < size ? (int8_t)data[k + 2] + 8 : 0;
        a.list[i].func = (uint16_t)func;
        a.list[i].file = (uint16_t)file;
        memset(at, 'f', func + file);
        if (func)
            at[func - 1] = '\0';
        if (file)
            at[func + file - 1] = '\0';
        at += func + file;
    }
    if (size > 8 && data[size - 1] % 4 == 0)
        out[(data[size - 2] * 257U + data[size - 3]) % (size_t)(at - out)] = (char)data[size - 4];
    memcpy(out, &a, size > 8 && data[size - 1] % 4 == 1 ? sizeof a.what : sizeof a);
    return (size_t)(at - out) - (size > 8 && data[size - 1] % 8 == 2);
}

static size_t fuzz_want(const uint8_t *data, size_t size, char *out) {
    struct symbols_want w = {.what = size && data[0] & 1 ? SYMBOLS_WANT_ALT : SYMBOLS_WANT_DEBUG};
    w.number = size > 1 ? data[1] % 26 : 0;
    w.id_len = size > 2 ? data[2] % 66 : 0;
    for (size_t i = 0; i < sizeof w.id; i++)
        w.id[i] = (uint8_t)i;
    if (size > 3)
        memcpy(w.name, data + 3, size - 3 < sizeof w.name ? size - 3 : sizeof w.name);
    memcpy(out, &w, sizeof w);
    return sizeof w;
}

/* One packet to the client; bytes of the input that were used. */
static size_t fuzz_send(int fd, const uint8_t *data, size_t size) {
    static char packet[SYMBOLS_ANSWER_MAX + 16384];
    size_t len = data[1] | (size_t)(data[2] & 3) << 8, n;
    data += 3;
    size -= 3;
    len = len < size ? len : size;
    switch (data[-3] % 3) {
    case 0:
        memcpy(packet, data, len);
        n = len;
        break;
    case 1:
        n = fuzz_answer(data, len, packet);
        break;
    default:
        n = fuzz_want(data, len, packet);
    }
    if (n > 0) /* an empty one is as if it had gone */
        (void)!send(fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return 3 + len;
}

static void fuzz_check_text(const char *s, size_t max) {
    if (s && strlen(s) >= max)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct symbol list[SYMBOLS_MAX_INLINED];
    struct symbols_files files = {.pid = getpid(), .path = FUZZ_FILE};
    struct symbols_question q = {.what = SYMBOLS_FIND};
    struct symbols_helper *h = symbols_helper_new(getpid());
    struct arena text;
    int ends[2], big = 1 << 20;
    if (!h || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof big);
    symbols_helper_adopt(h, ends[0]);
    for (int i = 0; i < FUZZ_PACKETS && size > 3; i++) {
        size_t used = fuzz_send(ends[1], data, size);
        data += used;
        size -= used;
    }
    (void)shutdown(ends[1], SHUT_WR);
    arena_init(&text, 1 << 20);
    for (int i = 0; i < 3; i++) {
        enum native_role role = NATIVE_ROLE_PLAIN;
        int n = symbols_helper_ask(h, &q, -1, i ? &files : NULL, &text, list, &role);
        if (n > SYMBOLS_MAX_INLINED || (n < 0) != (symbols_helper_running(h) == 0) || role > NATIVE_ROLE_EDGE)
            __builtin_trap();
        for (int k = 0; k < n; k++) {
            fuzz_check_text(list[k].func, SYMBOLS_PLAIN_MAX);
            fuzz_check_text(list[k].file, SYMBOLS_PATH_MAX);
            if (list[k].line < 0)
                __builtin_trap();
        }
        const char *note = symbols_helper_take_note(h);
        if (n >= 0 && note)
            __builtin_trap();
        if (n < 0)
            break;
    }
    if (symbols_helper_take_note(h))
        __builtin_trap();
    arena_fini(&text);
    symbols_helper_free(h);
    free(files.given);
    (void)close(ends[1]);
    return 0;
}
