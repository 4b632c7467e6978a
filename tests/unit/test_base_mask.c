/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line for others to read: no secret in it, and the rest as it is; text within a page of XML or HTML.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <locale.h>

#include "base/mask.h"
#include "base/xml.h"

static const char *masked(const char *command, size_t max) {
    static struct strbuf out;
    strbuf_fini(&out);
    strbuf_init(&out, 0);
    mask_put_command(&out, command, max);
    return strbuf_str(&out);
}

static void test_secrets_are_hidden(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"train.py --token abc", "train.py --token ***"},
        {"train.py --token=abc --lr 0.1", "train.py --token=*** --lr 0.1"},
        {"train.py --api-key abc --lr 0.1", "train.py --api-key *** --lr 0.1"},
        {"train.py --wandb_api_key=abc", "train.py --wandb_api_key=***"},
        {"train.py --PASSWORD two words --lr 0.1", "train.py --PASSWORD *** --lr 0.1"},
        {"train.py hub.token=abc lr=0.1", "train.py hub.token=*** lr=0.1"},
        {"env AWS_SECRET_ACCESS_KEY=a/b+c train.py", "env AWS_SECRET_ACCESS_KEY=*** train.py"},
        {"python -c login(token=\"a b\", user=1)", "python -c login(token=***, user=1)"},
        {"x {\"password\": \"a b\", \"lr\": 1}", "x {\"password\": ***, \"lr\": 1}"},
        {"curl -H Authorization: Bearer abc url", "curl -H Authorization: *** url"},
        {"x https://ada:pw@host/p?token=abc&n=1", "x https://***@host/p?token=***&n=1"},
        {"x s3://bucket/path", "x s3://bucket/path"},
        {"x hf_abcdefghijklmnopqrst", "x ***"},
        {"x data-0123456789abcdef0123456789abcdef", "x data-0123456789abcdef0123456789abcdef"},
        {"x 0123456789abcdef0123456789abcdef01234567", "x ***"},
        {"x --token", "x --token"},
        {"x --token --lr 1", "x --token --lr 1"},
        {"x --token=", "x --token="},
        {"x token=\"abc", "x token=***"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(masked(cases[i][0], 512), cases[i][1]);
    assert_string_equal(masked(NULL, 512), "");
}

/* What training jobs are given every day. */
static void test_the_rest_stays(void **state) {
    (void)state;
    static const char *const plain[] = {
        "python -m torch.distributed.run --nproc-per-node 8 train.py --batch-size 32",
        "train.py --tokenizer gpt2 --max-tokens 4096 --num-keys=8 --pass 2 --author ada --monkey business",
        "train.py --data /data/keys/part-0 --lr 3e-4 --name=run_17 model.layers.0.weight=1",
        "python -c import time; time.sleep(9)",
        "x host:8080 http://host:80/path",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_string_equal(masked(plain[i], 512), plain[i]);
}

static void test_it_is_bounded(void **state) {
    (void)state;
    char command[4096];
    memset(command, 'x', sizeof command - 1);
    command[sizeof command - 1] = '\0';
    assert_int_equal(strlen(masked(command, 100)), 102);
    memset(command, ' ', sizeof command - 1);
    assert_int_equal(strlen(masked(command, 100)), 102);
    memset(command, 'x', sizeof command - 1);
    memcpy(command, "--token=", 8);
    assert_string_equal(masked(command, 100), "--token=***");
}

static void test_text_within_a_page(void **state) {
    (void)state;
    struct strbuf out;
    strbuf_init(&out, 0);
    xml_put_text(&out, "<a href=\"x\">&'\x1b[2J\n\xef\xbf\xbf", 0);
    assert_string_equal(strbuf_str(&out),
                        "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\xef\xbf\xbd[2J \xef\xbf\xbd");
    strbuf_clear(&out);
    xml_put_text(&out, "abcdef", 3);
    assert_string_equal(strbuf_str(&out), "abc..");
    strbuf_clear(&out);
    xml_put_text(&out, NULL, 0);
    assert_string_equal(strbuf_str(&out), "?");
    strbuf_fini(&out);
}

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_are_hidden),
        cmocka_unit_test(test_the_rest_stays),
        cmocka_unit_test(test_it_is_bounded),
        cmocka_unit_test(test_text_within_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
