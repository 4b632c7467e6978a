/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts: what is expanded, and what is refused, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "client/hosts/host_list.h"

static void expect(struct host_list *l, const char *names) {
    struct strbuf out;
    strbuf_init(&out, 0);
    for (size_t i = 0; i < l->n; i++)
        strbuf_addf(&out, "%s%s", i ? " " : "", l->names[i]);
    assert_string_equal(out.len ? strbuf_str(&out) : "", names);
    strbuf_fini(&out);
    host_list_fini(l);
}

static void expands(const char *text, const char *names) {
    struct host_list l = {.n = 0};
    struct err e = {0};
    if (host_list_expand(&l, text, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    expect(&l, names);
}

static void refuses(const char *text, const char *part) {
    struct host_list l = {.n = 0};
    struct err e = {0};
    assert_int_equal(host_list_expand(&l, text, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    if (!strstr(e.text, part))
        fail_msg("'%s' lacks '%s'", e.text, part);
    assert_true(l.n <= HOST_LIST_MAX);
    host_list_fini(&l);
}

static void test_expansion(void **state) {
    (void)state;
    expands("a", "a");
    expands("a,b[1-4],c[01-03,7]", "a b1 b2 b3 b4 c01 c02 c03 c7");
    expands("gpu[08-11]", "gpu08 gpu09 gpu10 gpu11");
    expands("r[1-2]n[1-2].x", "r1n1.x r1n2.x r2n1.x r2n2.x");
    expands(" a, b\tc\n", "a b c");
    expands("a,a,a[1,1],a1", "a a1");
    expands("me@node-1,10.0.0.1,fe80::1,ns/pod-0", "me@node-1 10.0.0.1 fe80::1 ns/pod-0");
    expands("", "");
    expands(",,", "");
    expands(
        "a[0-63]", /* as many as there may be */
        "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 "
        "a27 a28 a29 a30 a31 a32 a33 a34 a35 a36 a37 a38 a39 a40 a41 a42 a43 a44 a45 a46 a47 a48 a49 a50 "
        "a51 a52 a53 a54 a55 a56 a57 a58 a59 a60 a61 a62 a63");
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"a[1-", "a ']' is missing"},
        {"a[]", "numbers and ranges"},
        {"a[1,]", "numbers and ranges"},
        {"a[x]", "numbers and ranges"},
        {"a[3-1]", "numbers and ranges"},
        {"a[1-2-3]", "numbers and ranges"},
        {"a[1234567890]", "numbers and ranges"},
        {"a[0-999999999]", "more than 64 hosts"},
        {"a[0-64]", "more than 64 hosts"},
        {"-oProxyCommand=x", "begins with a letter"},
        {"[1-2]-", NULL},
        {"a;reboot", "letters, digits"},
        {"$(id)", "letters, digits"},
        {"a'b", "letters, digits"},
        {"a]b", "letters, digits"},
        {"a\x1b[1]", "letters, digits"},
        {"@gpus", "begins with a letter"},
        {"a[1,1,1,1,1,1][1,1,1,1,1,1][1,1,1,1,1,1][1,1,1,1,1,1][1,1,1,1,1,1][1,1,1,1,1,1]", "more than"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "a",
         "too long"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (wrong[i][1])
            refuses(wrong[i][0], wrong[i][1]);
        else
            expands(wrong[i][0], "1- 2-");
}

static void test_files(void **state) {
    (void)state;
    static const char text[] =
        "# hosts\nnode1 slots=8\r\nnode2:4\n\n  fe80::1  max_slots=2 # two\nr[1-2]\nnode1\n";
    char path[] = "/tmp/probing-hosts-XXXXXX";
    int fd = mkstemp(path);
    struct host_list l = {.n = 0};
    struct err e = {0};
    assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    assert_int_equal(host_list_add_file(&l, path, &e), 0);
    expect(&l, "node1 node2 fe80::1 r1 r2");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(host_list_add_file(&l, path, &e), -1);
    assert_non_null(strstr(e.text, "names no hosts"));
    close(fd);
    unlink(path);
    assert_int_equal(host_list_add_file(&l, path, &e), -1);
    assert_non_null(strstr(e.text, "cannot read the hosts"));
    host_list_fini(&l);
}

/* Within a job of Slurm nobody is asked. */
static void test_slurm(void **state) {
    (void)state;
    struct host_list l = {.n = 0};
    struct err e = {0};
    setenv("SLURM_JOB_ID", "77", 1);
    setenv("SLURM_JOB_NODELIST", "a[1-3]", 1);
    assert_int_equal(host_list_add_slurm(&l, "77", &e), 0);
    expect(&l, "a1 a2 a3");
    setenv("SLURM_STEP_NODELIST", "a2", 1);
    assert_int_equal(host_list_add_slurm(&l, "77", &e), 0);
    expect(&l, "a2");
    assert_int_equal(host_list_add_slurm(&l, "7x", &e), -1);
    assert_non_null(strstr(e.text, "the number of a job"));
    host_list_fini(&l);
}

/* Programs that know hosts: what they print is read as a list; one that is not there is named. */
static void test_programs(void **state) {
    (void)state;
    char folder[] = "/tmp/probing-hosts-XXXXXX", path[64];
    struct host_list l = {.n = 0};
    struct err e = {0};
    assert_non_null(mkdtemp(folder));
    setenv("PATH", folder, 1);
    assert_int_equal(host_list_add(&l, "a,@gpus", &e), -1);
    assert_non_null(strstr(e.text, "nodeset, which is not installed"));
    host_list_fini(&l);
    snprintf(path, sizeof path, "%s/nodeset", folder);
    FILE *f = fopen(path, "w");
    fputs("#!/bin/sh\n[ $2 = @gpus ] && echo g1 g2\n", f);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(host_list_add(&l, "a,@gpus,b", &e), 0);
    expect(&l, "a g1 g2 b");
    assert_int_equal(host_list_add(&l, "@none", &e), -1);
    assert_non_null(strstr(e.text, "'nodeset' has failed"));
    host_list_fini(&l);
    unlink(path);
    host_list_fini(&l);
    assert_int_equal(host_list_add_pods(&l, "app=llama", &e), -1);
    assert_non_null(strstr(e.text, "kubectl is not installed here"));
    snprintf(path, sizeof path, "%s/kubectl", folder);
    f = fopen(path, "w");
    fputs("#!/bin/sh\n[ \"$1 $2 $3\" = 'get pods --selector' ] || exit 1\n"
          "case $4 in 'app=llama,role in (a,b)') echo llama-0 llama-1 ;; app=none) ;; *) exit 1 ;; esac\n",
          f);
    fclose(f);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(host_list_add_pods(&l, "app=llama,role in (a,b)", &e), 0);
    expect(&l, "llama-0 llama-1");
    assert_int_equal(host_list_add_pods(&l, "app=none", &e), -1);
    assert_non_null(strstr(e.text, "app=none has no hosts, as 'kubectl' knows it"));
    assert_int_equal(host_list_add_pods(&l, "app", &e), -1);
    assert_non_null(strstr(e.text, "'kubectl' has failed"));
    assert_int_equal(host_list_add_pods(&l, " ", &e), -1);
    assert_non_null(strstr(e.text, "--k8s takes the labels"));
    unlink(path);
    rmdir(folder);
    host_list_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expansion), cmocka_unit_test(test_refusals), cmocka_unit_test(test_files),
        cmocka_unit_test(test_slurm),     cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
