/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras: what NCCL's RAS service answers about the communicators of a job. Pure: bytes in, facts out.
 *
 * Since NCCL 2.24 a thread of each process answers for all of them, as text; since 2.28.7 as JSON, too.
 * It knows which processes it does not reach, and how many collectives each rank has launched. Sends
 * and receives are not counted, and all may be well while a collective does not end (NCCL #1730): an
 * answer without findings shows nothing.
 *
 * Whoever listens there may answer anything. So everything is bounded and made safe to show, half of
 * an answer is none, what contradicts itself is left out, and a fact is about a rank of the job only
 * if its process is one of the ranks here, or if the communicator is as large as the job, numbers a
 * rank here as the job does, and none otherwise.
 */
#ifndef CLIENT_FLEET_RAS_H
#define CLIENT_FLEET_RAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RAS_BYTES ((size_t)1 << 20) /* of an answer */
#define RAS_COMMS 2048
#define RAS_MEMBERS 16384 /* of all communicators together */
#define RAS_FACTS 64
#define RAS_HOST 48 /* an address */
#define RAS_OP 24
#define RAS_NO_COMM UINT32_MAX

/* What is known of a process; a later one is worse. */
enum ras_state {
    RAS_ANSWERS,
    RAS_BEHIND, /* it has launched fewer collectives than others */
    RAS_SILENT, /* the others do not reach it */
    RAS_DEAD,   /* they have not for a minute */
    RAS_STATES
};

struct ras_comm {
    uint64_t id;
    int32_t size;    /* 0 unknown */
    uint64_t counts; /* a hash of what its ranks have launched */
};

/* A process in a communicator. The text has only those that differ from the others. */
struct ras_member {
    uint32_t comm; /* index, or RAS_NO_COMM */
    int32_t rank;  /* in it; -1 unknown */
    int64_t pid;   /* as it is in its own namespace; -1 unknown */
    char host[RAS_HOST];
    enum ras_state state;
    int64_t behind; /* collectives of that kind */
    char op[RAS_OP];
};

struct ras_answer {
    bool is_json;
    struct ras_comm *comms; /* owned */
    size_t n_comms, cap_comms;
    struct ras_member *members; /* owned */
    size_t n, cap;
};

/* Read an answer. 0; -1 with the error: then there is nothing in it. ras_answer_fini in either case. */
int ras_parse(struct ras_answer *a, const char *text, size_t len, bool is_json, struct err *e);
void ras_answer_fini(struct ras_answer *a);

/* Whether a rank is behind. */
bool ras_is_behind(const struct ras_answer *a);

/* What is known of a rank of the job. */
struct ras_fact {
    int32_t rank; /* -1: `note` is why there is no answer */
    enum ras_state state;
    int64_t pid; /* -1 unknown */
    char host[RAS_HOST];
    int64_t behind;
    char op[RAS_OP];
    char note[96];
};

/* Whose answer it should be. */
struct ras_job {
    const struct ras_process {
        int32_t rank;
        int64_t pid; /* in its own namespace */
    } * here;        /* ranks of this host */
    size_t n_here;
    const char (*addresses)[RAS_HOST]; /* of this host */
    size_t n_addresses;
    int32_t world; /* 0 unknown */
};

/* The facts of an answer, RAS_FACTS at most, by rank; their number. A rank is behind only in a communicator
 * that had launched the same in `before`, an answer of some seconds ago (NULL: there is none). */
size_t ras_find(const struct ras_answer *a, const struct ras_answer *before, const struct ras_job *job,
                struct ras_fact *out);

/* Add a fact to `*n` others; of one rank the worst stays. */
void ras_fact_add(struct ras_fact *facts, size_t *n, const struct ras_fact *fact);

/* A fact in words, without its rank. */
void ras_fact_put(const struct ras_fact *f, char *buf, size_t cap);

#endif
