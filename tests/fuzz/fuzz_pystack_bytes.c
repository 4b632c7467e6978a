/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the readers of pystack over bytes that mean nothing. The first byte chooses the reader, the second the version.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/debug_offsets.h"
#include "pystack/discover.h"
#include "pystack/remote_exec.h"
#include "pystack/codes.h"

#define FUZZ_BASE 0x10000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_lines(const uint8_t *data, size_t size) {
    int32_t first = 1;
    if (size < 4)
        return;
    memcpy(&first, data, sizeof first);
    for (int style = PYSTACK_LINE_LNOTAB; style <= PYSTACK_LINE_FORWARD; style++)
        for (int64_t at = -2; at < 512; at += 2)
            if (pystack_find_line((enum pystack_line_style)style, data + 4, size - 4, first, at) < 0)
                abort();
}

static int fuzz_count(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value, void *arg) {
    char text[32];
    uint64_t number;
    (void)value;
    (void)pystack_read_str(r, key, text, sizeof text);
    (void)pystack_read_int(r, key, &number);
    *(uint32_t *)arg = index;
    return index > 4096;
}

static bool fuzz_is_ascii(const char *text) {
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return !*text;
}

static void fuzz_objects(struct pystack_reader *r, size_t size) {
    for (uint64_t at = FUZZ_BASE; at < FUZZ_BASE + size && at < FUZZ_BASE + 64; at += 8) {
        char text[200];
        uint64_t value;
        uint32_t hint = 3, last = 0;
        ssize_t n = pystack_read_str(r, at, text, sizeof text);
        if (n >= (ssize_t)sizeof text || (n >= 0 && strlen(text) != (size_t)n))
            abort();
        if (n >= 0 && n + 4 < (ssize_t)sizeof text && fuzz_is_ascii(text) && !pystack_str_is(r, at, text))
            abort();
        (void)pystack_read_int(r, at, &value);
        (void)pystack_dict_find(r, at, "threading", &hint, &value);
        (void)pystack_dict_each(r, at, fuzz_count, &last);
        (void)pystack_attr_find(r, at, "_name", &hint, &value);
    }
}

static void fuzz_debug_offsets(const uint8_t *data, size_t size) {
    uint8_t bytes[PYSTACK_DEBUG_BYTES] = PYSTACK_DEBUG_COOKIE;
    uint64_t free_threaded = size && data[0] & 1, minor = 13 + (size ? (data[0] >> 1) % 3 : 0);
    uint64_t version = 0x030000f0 | minor << 16;
    struct pystack_offsets off = *pystack_offsets_find(3, (int)minor, free_threaded);
    if (size)
        data++, size--;
    memcpy(bytes + 8, &version, sizeof version);
    memcpy(bytes + 16, &free_threaded, sizeof free_threaded);
    memcpy(bytes + 24, data, size < sizeof bytes - 24 ? size : sizeof bytes - 24);
    struct pystack_remote_exec_offsets door;
    if (pystack_remote_exec_parse(bytes, sizeof bytes, &off, &door) == 0 &&
        (door.path + door.path_size > PYSTACK_STRUCT_MAX || door.pending + 4 > PYSTACK_STRUCT_MAX ||
         door.breaker + 8 > PYSTACK_STRUCT_MAX || door.enabled > 1U << 20 || door.threads_main > 1U << 20))
        abort();
    if (pystack_debug_offsets_apply(bytes, sizeof bytes, &off) != 0)
        return;
    /* Whatever was accepted must stay within the buffers of the readers. */
    if (off.code_size > PYSTACK_STRUCT_MAX || off.frame_size > PYSTACK_STRUCT_MAX ||
        off.tstate_size > PYSTACK_STRUCT_MAX || off.tstate_id + 8 > off.tstate_size ||
        off.code_firsttraceable + 4 > PYSTACK_STRUCT_MAX || off.str_legacy_data + 8 > PYSTACK_STRUCT_MAX)
        abort();
}

static void fuzz_text(const uint8_t *data, size_t size) {
    char buf[32], *text = malloc(size + 1);
    int major, minor;
    if (!text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)pystack_parse_torch_version(text, buf, sizeof buf);
    (void)pystack_version_of_name(text, &major, &minor);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n_rows;
    const struct pystack_offsets *rows = pystack_offsets_all(&n_rows);
    struct pystack_reader r;
    if (size < 2)
        return 0;
    r.off = rows[data[1] % n_rows];
    mem_init_buffer(&r.mem, data + 2, size - 2, FUZZ_BASE);
    switch (data[0] % 4) {
    case 0:
        fuzz_lines(data + 2, size - 2);
        break;
    case 1:
        fuzz_objects(&r, size - 2);
        break;
    case 2:
        fuzz_debug_offsets(data + 2, size - 2);
        break;
    default:
        fuzz_text(data + 2, size - 2);
        break;
    }
    return 0;
}
