/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: the examples of FIPS 180-4, and each length around a block's as another program hashes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void expect(const void *data, size_t len, const char *wanted) {
    char got[SHA256_TEXT];
    sha256_text(data, len, got);
    assert_string_equal(got, wanted);
}

static void check_examples(void **state) {
    (void)state;
    expect(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    size_t million = 1000000;
    char *many = malloc(million);
    assert_non_null(many);
    memset(many, 'a', million);
    expect(many, million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

/* Of 0 to 200 times 'a', one after the other, hashed again: by Python's hashlib. */
static void check_lengths(void **state) {
    (void)state;
    char text[200], all[201 * (SHA256_TEXT - 1) + 1];
    memset(text, 'a', sizeof text);
    for (size_t n = 0; n <= sizeof text; n++)
        sha256_text(text, n, all + n * (SHA256_TEXT - 1));
    expect(all, strlen(all), "eb555248bd20c7831e511d4461b42c9b084e3a64b44d57b00051172f8afe03ff");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_examples), cmocka_unit_test(check_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
