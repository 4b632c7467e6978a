/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the parsers of base. The first byte chooses: ELF image in memory, /proc files, text and JSON, option words.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/mem.h"
#include "base/option.h"
#include "base/procfs.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_elf(const uint8_t *data, size_t size) {
    struct mem m;
    struct elf_image img;
    uint64_t addr, len;
    mem_init_buffer(&m, data, size, 0x400000);
    if (elf_open_memory(&img, &m, 0x400000) == 0)
        (void)elf_find_symbol(&img, "pthread_create", &addr, &len);
}

static void fuzz_procfs(const char *text) {
    struct procfs_stat stat;
    struct procfs_status status;
    struct procfs_map map;
    struct procfs_syscall sc;
    (void)procfs_parse_stat(text, &stat);
    (void)procfs_parse_status(text, &status);
    (void)procfs_parse_map(text, &map);
    bool is_it;
    (void)procfs_parse_lock(text, 1, 1, &is_it);
    (void)procfs_parse_syscall(text, &sc);
    static const gid_t group = 5;
    (void)procfs_parse_hiding(text, 1000, &group, 1);
}

static void fuzz_text(const char *text) {
    char out[64];
    struct strbuf b;
    struct json j;
    size_t n = text_sanitize(out, sizeof out, text);
    if (n >= sizeof out || strlen(out) != n || text_fit(out, 10) > n || text_width(out) < 0)
        __builtin_trap();
    strbuf_init(&b, 4096);
    json_init(&j, &b, 0);
    json_string(&j, text);
    strbuf_fini(&b);
}

static void fuzz_json(const char *text, size_t len) {
    struct json_field fields[] = {{.name = "t", .most = 64},
                                  {.name = "n", .type = JSON_FIELD_NUMBER, .least = -1, .most = 1},
                                  {.name = "i", .type = JSON_FIELD_INTEGER, .least = 0, .most = 1e9},
                                  {.name = "f", .type = JSON_FIELD_FLAG}};
    struct err e = {.text = ""};
    int rc = json_read_object(text, len, fields, sizeof fields / sizeof fields[0], &e);
    bool wrong = fields[0].text.len > 64 ||
                 (rc == 0 && fields[1].given && !(fields[1].number >= -1 && fields[1].number <= 1));
    if (wrong || (rc != 0 && !e.text[0]))
        __builtin_trap();
    strbuf_fini(&fields[0].text);
}

static void fuzz_words(const char *text) {
    static const char *const words[] = {"list", "inject", "eject", "backtrace", "status", NULL};
    (void)option_suggest(text, words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 4 == 0)
        fuzz_elf(data + 1, size - 1);
    else if (data[0] % 4 == 1)
        fuzz_procfs(text);
    else if (data[0] % 4 == 3)
        fuzz_words(text);
    else {
        fuzz_text(text);
        fuzz_json(text, size - 1);
    }
    free(text);
    return 0;
}
