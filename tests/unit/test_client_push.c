/* SPDX-License-Identifier: Apache-2.0 */
/* Our relay onto hosts that lack it: here they are shells with a home of their own, and programs that lie. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/hosts/push.h"

#define FOLDERS 12

static char folder[64];

/* A file that runs, and is longer than a pipe holds. */
static void make_file(struct push_file *f, const char *program) {
    strbuf_init(&f->bytes, 0);
    strbuf_adds(&f->bytes, program);
    for (int i = 0; i < 20000; i++)
        strbuf_adds(&f->bytes, "# not run\n");
    sha256_text(f->bytes.data, f->bytes.len, f->sum);
    snprintf(f->id, sizeof f->id, "%.*s", PUSH_ID, f->sum);
}

static void write_program(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/bin", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/bin/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

/* @ in the template is the folder of the test. */
static void push_to(const struct push_file *f, const char *template, struct push_host *hosts, size_t n) {
    struct strbuf via;
    strbuf_init(&via, 0);
    for (; *template; template ++)
        if (*template == '@')
            strbuf_adds(&via, folder);
        else
            strbuf_addc(&via, *template);
    const struct relay_via how = {.via = strbuf_str(&via)};
    push_run(f, &how, hosts, n);
    strbuf_fini(&via);
}

static mode_t mode_of(const char *host, const char *below) {
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/.cache/probing%s", folder, host, below);
    return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

/* Names in a folder below that of a host. */
static int count_files(const char *host, const char *below) {
    char path[256];
    int n = 0;
    snprintf(path, sizeof path, "%s/%s%s", folder, host, below);
    DIR *dir = opendir(path);
    for (struct dirent *d; dir && (d = readdir(dir));)
        n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}

static void make_homes(const char *const *names) {
    char path[128];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", folder, *names);
        mkdir(path, 0755);
    }
}

#define SHELL "env HOME=@/{host} {relay}"

static void check_onto_many(void **state) {
    (void)state;
    struct push_file f;
    struct push_host hosts[FOLDERS];
    char names[FOLDERS][16], below[64];
    make_file(&f, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"$1\"\nexit 0\n");
    for (size_t i = 0; i < FOLDERS; i++) {
        snprintf(names[i], sizeof names[i], "many%zu", i);
        make_homes((const char *const[]){names[i], NULL});
        hosts[i] = (struct push_host){.name = names[i]};
    }
    push_to(&f, SHELL, hosts, FOLDERS);
    snprintf(below, sizeof below, "/%s/probing-relay", f.id);
    for (size_t i = 0; i < FOLDERS; i++) {
        assert_string_equal(hosts[i].error.text, "");
        assert_int_equal(hosts[i].rc, 0);
        assert_false(hosts[i].was_there);
        assert_int_equal(mode_of(names[i], below), 0700);
        assert_int_equal(mode_of(names[i], ""), 0700);
        assert_int_equal(count_files(names[i], ""), 1);
        assert_int_equal(count_files(names[i], "/.cache/probing"), 1);
    }
    push_to(&f, SHELL, hosts, FOLDERS);
    assert_true(hosts[0].was_there && hosts[FOLDERS - 1].was_there && hosts[0].rc == 0);

    /* the line that runs it */
    char command[256], said[32] = "";
    struct strbuf line;
    strbuf_init(&line, 0);
    push_put_start(&f, &line);
    snprintf(command, sizeof command, "HOME=%s/many0 sh -c '%s'", folder, strbuf_str(&line));
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(said, sizeof said, out));
    pclose(out);
    assert_string_equal(said, "--stdio\n");
    strbuf_fini(&line);
    push_file_fini(&f);
}

/* What was there under the name with other bytes gives way. */
static void check_other_bytes(void **state) {
    (void)state;
    struct push_file f;
    char command[512];
    make_file(&f, "#!/bin/sh\nexit 0\n");
    snprintf(
        command, sizeof command,
        "mkdir -p %s/other/.cache/probing/%s && cd %s/other/.cache/probing/%s && echo no >probing-relay && "
        "chmod 755 probing-relay",
        folder, f.id, folder, f.id);
    assert_int_equal(system(command), 0);
    struct push_host host = {.name = "other"};
    push_to(&f, SHELL, &host, 1);
    assert_int_equal(host.rc, 0);
    assert_false(host.was_there);
    push_to(&f, SHELL, &host, 1);
    assert_true(host.was_there);
    push_file_fini(&f);
}

static void refuse(const struct push_file *f, const char *template, const char *why) {
    struct push_host host = {.name = "bad"};
    char below[64];
    push_to(f, template, &host, 1);
    assert_int_equal(host.rc, -1);
    if (!strstr(host.error.text, why))
        fail_msg("'%s' lacks '%s'", host.error.text, why);
    assert_int_equal(strncmp(host.error.text, "bad: ", 5), 0);
    snprintf(below, sizeof below, "/.cache/probing/%s", f->id);
    assert_int_equal(count_files("bad", below), 0);
}

static void check_refusals(void **state) {
    (void)state;
    struct push_file f, no;
    make_file(&f, "#!/bin/sh\nexit 0\n");
    make_homes((const char *const[]){"bad", NULL});
    refuse(&f, "sh -c 'exec cat' {host}", "needs a shell there");
    refuse(&f, "env HOME= sh -c '{relay}' {host}", "HOME is not set");
    refuse(&f, "no-such-program-as-this {host} {relay}", "there is no such program");
    refuse(&f, "sh -c 'echo Permission denied >&2; exit 255' {host} {relay}", "Permission denied");
    refuse(&f, "sh -c 'exit 0' {host} {relay}", "the connection has ended");
    refuse(&f, "env HOME=/proc/{host} {relay}", "mkdir");
    refuse(&f, "sh -c 'while :; do echo too much is said here; done' {host} {relay}", "it says too much");
    refuse(&f, "sh -c 'read line; echo probing-push done 0123; cat' {host} {relay}", "its file is another");
    refuse(&f, "sh -c 'read line; echo probing-push ready Linux pdp11; cat' {host} {relay}",
           "it is Linux pdp11, and our file");
    write_program("head", "cat >/dev/null & echo other bytes");
    refuse(&f, "env HOME=@/{host} PATH=@/bin:/usr/bin:/bin {relay}", "what has arrived is not what was sent");
    write_program("head", "exit 1");
    refuse(&f, "env HOME=@/{host} PATH=@/bin:/usr/bin:/bin {relay}", "cannot be written");
    make_file(&no, "#!/bin/sh\necho no such loader >&2\nexit 1\n");
    refuse(&no, SHELL, "it cannot run there: no such loader");
    push_file_fini(&no);
    push_file_fini(&f);
}

/* A login shell that greets, and reads ahead. */
static void check_greeting(void **state) {
    (void)state;
    struct push_file f;
    struct push_host host = {.name = "greets"};
    make_file(&f, "#!/bin/sh\nexit 0\n");
    make_homes((const char *const[]){"greets", NULL});
    push_to(&f, "env HOME=@/{host} sh -c 'printf \"Welcome\\n* probing-push done\"; exec {relay}'", &host, 1);
    assert_string_equal(host.error.text, "");
    assert_int_equal(host.rc, 0);
    push_file_fini(&f);
}

static int make_folder(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    snprintf(folder, sizeof folder, "/tmp/probing-push-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_onto_many),
        cmocka_unit_test(check_other_bytes),
        cmocka_unit_test(check_refusals),
        cmocka_unit_test(check_greeting),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
