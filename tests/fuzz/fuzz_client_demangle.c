/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: names as a hostile file or recording could have them, through the demangler as the helper calls it. Whatever it is,
 * there is an answer, soon, and no longer than may be.
 *
 * The input is the name; what stands before "_Z" or "_R" is put there by the first byte.
 */
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "client/symbols/symbols_name.h"

#define FUZZ_STACK ((rlim_t)100 * 1024 * 1024)
#define FUZZ_TIME_US 1000 /* less than the helper gives, for the sake of many */
#define FUZZ_MOST_S 1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __lsan_is_turned_off(void);

/* libiberty's piece of memory for a Rust name with other letters than ASCII's is lost when the name is left in the middle: see
 * name_add in symbols_name.c. */
int __lsan_is_turned_off(void) { return 1; }

/* As much stack as the helper has. */
static void fuzz_begin(void) {
    struct rlimit now;
    if (getrlimit(RLIMIT_STACK, &now) == 0 && now.rlim_cur < FUZZ_STACK) {
        now.rlim_cur = now.rlim_max < FUZZ_STACK ? now.rlim_max : FUZZ_STACK;
        (void)setrlimit(RLIMIT_STACK, &now);
    }
}

static double fuzz_cpu_s(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const begin[] = {"_Z", "_R", "_ZN", "_Z1fI", ""};
    static char text[3 * SYMBOLS_MANGLED_MAX], name[SYMBOLS_MANGLED_MAX + 16], out[SYMBOLS_PLAIN_MAX];
    if (size < 1 || size > 2 * SYMBOLS_MANGLED_MAX || symbols_name_begin(FUZZ_TIME_US) != 0)
        return 0;
    fuzz_begin();
    const char *first = begin[data[0] % (sizeof begin / sizeof begin[0])];
    size_t len = strlen(first);
    memcpy(text, first, len);
    memcpy(text + len, data + 1, size - 1);
    text[len + size - 1] = '\0';
    bool is_mangled = symbols_strip_version(text, name, 1 + size % SYMBOLS_MANGLED_MAX);
    if (is_mangled && name[0] != '_')
        __builtin_trap();
    (void)symbols_strip_version(text, name, sizeof name);
    memset(out, 1, sizeof out);
    double began = fuzz_cpu_s();
    size_t n = symbols_name_plain(name, out);
    if (n >= sizeof out || out[n] != '\0' || strlen(out) != n || fuzz_cpu_s() - began > FUZZ_MOST_S)
        __builtin_trap();
    return 0;
}
