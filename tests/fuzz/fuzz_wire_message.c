/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message: parsed, asked for every body it might hold, fed to an assembler. What was understood is written
 * again and must be understood again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we wrote ourselves must parse. */
static void check_again(struct strbuf *b, int rc) {
    struct err e;
    struct wire_message *m = rc == 0 ? wire_parse(b->data, b->len, &e) : NULL;
    if (rc == 0 && !m) {
        fprintf(stderr, "own message refused: %s\n", e.text);
        abort();
    }
    wire_message_free(m);
    strbuf_fini(b);
}

static void get_snapshot(const struct wire_message *m) {
    struct model_snapshot s;
    struct strbuf b;
    struct err e;
    if (wire_get_snapshot(m, &s, &e) == 0) {
        strbuf_init(&b, 0);
        check_again(&b, wire_put_threads_notify(&b, &s));
        check_again(&b, wire_put_snapshot(&b, 1, &s)); /* with locals */
    }
    model_snapshot_fini(&s);
}

static void get_samples(const struct wire_message *m) {
    struct model_sample_batch s;
    struct strbuf b;
    struct err e;
    if (wire_get_samples(m, &s, &e) == 0) {
        strbuf_init(&b, 0);
        check_again(&b, wire_put_samples_notify(&b, &s));
    }
    model_sample_batch_fini(&s);
}

static void get_tables(const struct wire_message *m) {
    struct wire_table tables[WIRE_MAX_TABLES];
    struct wire_config config;
    struct wire_pull pull;
    struct wire_arm arm;
    struct wire_pulled pulled;
    struct strbuf b;
    struct err e;
    size_t n;
    strbuf_init(&b, 0);
    if (wire_get_tables(m, tables, WIRE_MAX_TABLES, &n, &e) == 0)
        check_again(&b, wire_put_tables(&b, 1, tables, n));
    if (wire_get_config(m, &config, &e) == 0)
        check_again(&b, wire_put_config(&b, 1, &config));
    if (wire_get_arm(m, &arm, &e) == 0)
        check_again(&b, wire_put_arm(&b, 1, &arm));
    if (wire_get_pull(m, &pull, &e) == 0)
        check_again(&b, wire_put_pull(&b, 1, &pull));
    if (wire_get_pulled(m, &pulled, &e) == 0)
        check_again(&b, wire_put_pulled(&b, 1, &pulled));
}

static void get_rows(const struct wire_message *m) {
    struct wire_value values[4];
    struct wire_rows_ask ask;
    struct wire_rows rows;
    struct strbuf b, columns, made;
    struct err e;
    strbuf_init(&b, 0);
    strbuf_init(&columns, 0);
    strbuf_init(&made, 0);
    if (wire_get_rows_ask(m, &ask, &e) == 0)
        check_again(&b, wire_put_rows_ask(&b, 1, &ask));
    if (wire_get_rows(m, &rows, &e) == 0) {
        struct wire_rows again = {.more = rows.more, .note = ""};
        while (wire_next_column(&rows, values) > 0)
            ;
        while (wire_next_row(&rows, values, 4) > 0) {
            (void)wire_add_row(&made, values, 4);
            again.n_rows++;
        }
        again.rows = made.data;
        again.rows_len = made.len;
        strbuf_init(&b, 0);
        check_again(&b, wire_put_rows(&b, 1, &again));
    }
    strbuf_fini(&columns);
    strbuf_fini(&made);
}

static void get_listen(const struct wire_message *m) {
    struct wire_listen want;
    struct wire_listening what;
    struct err e;
    struct strbuf b;
    strbuf_init(&b, 0);
    if (wire_get_listen(m, &want, &e) == 0)
        check_again(&b, wire_put_listen(&b, 1, &want));
    strbuf_clear(&b);
    if (wire_get_listening(m, &what, &e) == 0)
        check_again(&b, wire_put_listening(&b, 1, &what));
    strbuf_fini(&b);
}

static void get_debug(const struct wire_message *m) {
    static const enum wire_method methods[] = {WIRE_DEBUG, WIRE_PAUSE, WIRE_CATCH};
    struct wire_debug want;
    struct wire_debugger how;
    struct strbuf b;
    struct err e;
    strbuf_init(&b, 0);
    if (wire_get_debug(m, &want, &e) == 0)
        check_again(&b, wire_put_debug(&b, 1, wire_message_method(m), &want));
    wire_debug_fini(&want);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        strbuf_init(&b, 0);
        if (wire_get_debugger(m, methods[i], &how, &e) == 0)
            check_again(&b, wire_put_debugger(&b, 1, methods[i], &how));
        wire_debugger_fini(&how);
    }
}

static void get_eval(const struct wire_message *m) {
    struct wire_eval want;
    struct wire_evaluated what;
    struct strbuf b;
    struct err e;
    strbuf_init(&b, 0);
    if (wire_get_eval(m, &want, &e) == 0)
        check_again(&b, wire_put_eval(&b, 1, &want));
    strbuf_init(&b, 0);
    if (wire_get_evaluated(m, &what, &e) == 0)
        check_again(&b, wire_put_evaluated(&b, 1, &what));
}

static void get_small(const struct wire_message *m) {
    struct model_target target;
    struct model_status status;
    struct wire_subscribe subscribe;
    struct wire_threads threads;
    enum wire_stream stream;
    enum wire_error code;
    struct strbuf b;
    struct err e;
    char reason[16];
    int version;
    strbuf_init(&b, 0);
    if (wire_get_target(m, &target, &e) == 0)
        check_again(&b, wire_put_target(&b, 1, &target));
    model_target_fini(&target);
    if (wire_get_status(m, &status, &e) == 0)
        check_again(&b, wire_put_status(&b, 1, &status));
    model_status_fini(&status);
    (void)wire_get_hello(m, &version, &e);
    (void)wire_get_subscribe(m, &subscribe, &e);
    (void)wire_get_threads(m, &threads, &e);
    (void)wire_get_unsubscribe(m, &stream, &e);
    (void)wire_get_bye(m, reason, sizeof reason);
    (void)wire_message_error(m, &code);
    (void)wire_message_method(m);
    (void)wire_message_notification(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_assembler a;
    struct err e;
    struct wire_message *m = wire_parse(data, size, &e);
    if (!m)
        return 0;
    get_snapshot(m);
    get_samples(m);
    get_small(m);
    get_tables(m);
    get_rows(m);
    get_eval(m);
    get_debug(m);
    get_listen(m);
    wire_assembler_init(&a);
    for (int i = 0; i < 3; i++)
        (void)wire_assembler_feed(&a, m, &e);
    wire_assembler_fini(&a);
    wire_message_free(m);
    return 0;
}
