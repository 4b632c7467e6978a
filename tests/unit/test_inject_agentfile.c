/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no agent, and this program's own, cut and flipped. The good case stands in the functional tests. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/agentfile.h"

static uint8_t *read_self(size_t *size) {
    FILE *f = fopen("/proc/self/exe", "re");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    assert_int_equal(fclose(f), 0);
    return bytes;
}

static void test_a_program_is_no_agent(void **state) {
    char version[AGENTFILE_VERSION_MAX];
    size_t size;
    (void)state;
    uint8_t *bytes = read_self(&size);
    assert_int_equal(agentfile_version(bytes, size, version), -2);
    for (size_t cut = 0; cut < size; cut += cut < 4096 ? 7 : 4099)
        assert_true(agentfile_version(bytes, cut, version) < 0);
    free(bytes);
}

static void test_flipped_headers(void **state) {
    char version[AGENTFILE_VERSION_MAX];
    size_t size;
    (void)state;
    uint8_t *bytes = read_self(&size);
    for (size_t i = 0; i < 1024 && i < size; i++) {
        uint8_t kept = bytes[i];
        bytes[i] ^= 0xff;
        assert_true(agentfile_version(bytes, size, version) < 0);
        bytes[i] = kept;
    }
    free(bytes);
}

static void refused(const char *path, const char *why) {
    struct err e = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    assert_int_equal(agentfile_read(path, &bytes, &size, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, why));
    assert_null(bytes);
}

static void test_files(void **state) {
    (void)state;
    refused("/nonexistent/libprobing.so", "cannot open");
    refused("/dev/null", "not the agent");
    refused("/tmp", "not the agent");
    refused("/proc/self/exe", "probing_start");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_is_no_agent),
        cmocka_unit_test(test_flipped_headers),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
