/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_loaders: prints the DataLoader iterators of a process as JSON, a line for each look. A tool of the functional tests.
 *
 * usage: pystack_loaders PID [COUNT [INTERVAL_MS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "pystack/loaders.h"

static void put_loader(struct json *j, const struct pystack_loader *l) {
    json_object_begin(j);
    json_kv_bool(j, "processes", l->processes);
    json_kv_string(j, "dataset", l->dataset);
    json_kv_int(j, "workers", l->workers);
    json_kv_int(j, "prefetch", l->prefetch);
    json_kv_int(j, "persistent", l->persistent);
    json_kv_int(j, "sent", l->sent);
    json_kv_int(j, "received", l->received);
    json_kv_int(j, "outstanding", l->outstanding);
    json_kv_int(j, "ready", l->ready);
    json_kv_int(j, "yielded", l->yielded);
    json_key(j, "worker");
    json_array_begin(j);
    for (size_t i = 0; i < l->n; i++) {
        json_object_begin(j);
        json_kv_int(j, "pid", l->worker[i].pid);
        json_kv_int(j, "active", l->worker[i].active);
        json_kv_int(j, "outstanding", l->worker[i].outstanding);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void put_look(struct json *j, struct pystack *ps) {
    static struct pystack_loader loader;
    uint64_t addrs[PYSTACK_LOADERS], began = clock_mono_ns();
    ssize_t n = pystack_find_loaders(ps, addrs);
    json_object_begin(j);
    json_kv_int(j, "found", n);
    json_kv_int(j, "find_us", (int64_t)((clock_mono_ns() - began) / 1000));
    json_key(j, "loaders");
    json_array_begin(j);
    for (ssize_t i = 0; i < n; i++)
        if (pystack_read_loader(ps, addrs[i], &loader) == 0)
            put_loader(j, &loader);
    json_array_end(j);
    json_kv_int(j, "all_us", (int64_t)((clock_mono_ns() - began) / 1000));
    json_object_end(j);
}

int main(int argc, char **argv) {
    struct err e = {0};
    if (argc < 2)
        return 2;
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 1,
         interval = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    struct pystack *ps = pystack_open((pid_t)strtol(argv[1], NULL, 10), &e);
    if (!ps) {
        (void)fprintf(stderr, "pystack_loaders: %s\n", e.text);
        return 1;
    }
    for (long i = 0; i < count; i++) {
        struct strbuf text;
        struct json j;
        if (i)
            (void)usleep((useconds_t)interval * 1000);
        strbuf_init(&text, 0);
        json_init(&j, &text, 0);
        put_look(&j, ps);
        if (json_finish(&j) == 0)
            (void)printf("%s\n", strbuf_str(&text));
        (void)fflush(stdout);
        strbuf_fini(&text);
    }
    pystack_close(ps);
    return 0;
}
