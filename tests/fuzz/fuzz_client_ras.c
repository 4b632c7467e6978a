/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of NCCL's RAS service that are any bytes. The first byte says whether it is read as JSON; the answer before it is the
 * same, so that each rank that is behind is named.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/ras.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_text(const char *text, size_t cap) {
    check(memchr(text, 0, cap) != NULL, "a text has no end");
    for (; *text; text++)
        check((unsigned char)*text >= 0x20 && *text != 0x7f, "a text is not safe for a terminal");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct ras_process here[] = {{0, 100}, {1, 101}, {3, 103}};
    static const char addresses[1][RAS_HOST] = {"10.0.0.1"};
    struct ras_job job = {.here = here, .n_here = 3, .addresses = addresses, .n_addresses = 1, .world = 8};
    struct ras_answer a;
    struct ras_fact facts[RAS_FACTS];
    struct err e;
    char words[256];
    if (size == 0)
        return 0;
    bool ok = ras_parse(&a, (const char *)data + 1, size - 1, data[0] & 1, &e) == 0;
    check(ok || (a.n == 0 && a.n_comms == 0 && !a.members && !a.comms),
          "an answer with an error has members");
    for (size_t i = 0; i < a.n; i++) {
        const struct ras_member *m = &a.members[i];
        check(m->comm == RAS_NO_COMM || m->comm < a.n_comms, "a member is in no communicator");
        check(m->rank >= -1 && m->behind >= 0 && (m->pid == -1 || m->pid > 0), "a number is out of bounds");
        check_text(m->host, sizeof m->host);
        check_text(m->op, sizeof m->op);
    }
    size_t n = ras_find(&a, &a, &job, facts);
    check(n <= RAS_FACTS, "there are more facts than room");
    for (size_t i = 0; i < n; i++) {
        check(facts[i].rank >= 0 && facts[i].rank < 8 && (i == 0 || facts[i].rank > facts[i - 1].rank),
              "ranks are not those of the job, each once and in order");
        check(facts[i].state != RAS_ANSWERS && (facts[i].state != RAS_BEHIND || facts[i].behind > 0),
              "a rank of which nothing is known is named");
        ras_fact_put(&facts[i], words, sizeof words);
        check_text(words, sizeof words);
    }
    ras_answer_fini(&a);
    return 0;
}
