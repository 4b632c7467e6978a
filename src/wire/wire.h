/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the messages between agent and client; MessagePack-RPC, one array a WebSocket message.
 *
 * request [0, id, method, params], response [1, id, error, result], notification [2, method, params]. Params and results
 * are maps; unknown keys are ignored, missing ones are unknown. Messages are capped; longer ones travel as chunks.
 * This header is the only door to msgpack. Both ends use the same tables (fields.c); every parse is bounded: nothing is
 * allocated for a count that the bytes received cannot hold. No state: any thread may call anything.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"

#define WIRE_PROTOCOL "probing.v1" /* WebSocket subprotocol */
#define WIRE_VERSION 1
#define WIRE_MAX_MESSAGE ((size_t)1024 * 1024)        /* one WebSocket message */
#define WIRE_MAX_ASSEMBLED ((size_t)16 * 1024 * 1024) /* all chunks of one message */

/* Rates a stream can be asked for; others are moved to the nearest. */
#define WIRE_MIN_HZ 0.1
#define WIRE_MAX_SNAPSHOT_HZ 30.0
#define WIRE_MAX_SAMPLE_HZ 1000.0

/* Methods: name, what it does. One row to add one; handlers are found by this number on both ends. */
#define WIRE_METHODS(X)                                                                                      \
    X(WIRE_HELLO, "hello", "versions, limits and facts of the target; the first request of a session")       \
    X(WIRE_THREADS, "threads", "all threads with their stacks, once")                                        \
    X(WIRE_SUBSCRIBE, "subscribe", "start a stream at a rate: 'threads' or 'samples'")                       \
    X(WIRE_UNSUBSCRIBE, "unsubscribe", "end a stream")                                                       \
    X(WIRE_STATUS, "status", "the agent about itself: cost, counters, clients")                              \
    X(WIRE_EJECT, "eject", "end the agent: threads, socket and hooks go, the code stays parked")             \
    X(WIRE_CONFIG, "config", "set 'key' to 'value', at once; what is set now is part of status")             \
    X(WIRE_TABLES, "tables", "the tables that are kept: what the file of each begins with")                  \
    X(WIRE_PULL, "pull", "rows of a table that a copy of it does not have yet")

/* Notifications. */
#define WIRE_NOTIFICATIONS(X)                                                                                \
    X(WIRE_N_THREADS, "threads", "a snapshot of a 'threads' stream")                                         \
    X(WIRE_N_SAMPLES, "samples", "a batch of a 'samples' stream")                                            \
    X(WIRE_N_BYE, "bye", "the agent is about to close, and why")                                             \
    X(WIRE_N_CHUNK, "chunk", "a piece of a message that is longer than the limit")

#define WIRE_ENUM(id, name, help) id,
enum wire_method { WIRE_METHODS(WIRE_ENUM) WIRE_METHOD_COUNT, WIRE_METHOD_UNKNOWN = WIRE_METHOD_COUNT };
enum wire_notification {
    WIRE_NOTIFICATIONS(WIRE_ENUM) WIRE_NOTIFICATION_COUNT,
    WIRE_NOTIFICATION_UNKNOWN = WIRE_NOTIFICATION_COUNT
};
#undef WIRE_ENUM

enum wire_type { WIRE_REQUEST = 0, WIRE_RESPONSE = 1, WIRE_NOTIFY = 2 };

enum wire_stream {
    WIRE_STREAM_THREADS = 0,
    WIRE_STREAM_SAMPLES = 1,
    WIRE_STREAM_COUNT,
    WIRE_STREAM_UNKNOWN = WIRE_STREAM_COUNT
};

/* Error codes of responses. */
enum wire_error {
    WIRE_E_UNKNOWN_METHOD = 1,
    WIRE_E_BAD_PARAMS = 2,
    WIRE_E_UNAVAILABLE = 3, /* the feature turned itself off, or cannot now */
    WIRE_E_VERSION = 4,
};

const char *wire_method_name(enum wire_method m);
const char *wire_method_help(enum wire_method m);
const char *wire_notification_name(enum wire_notification n);
const char *wire_stream_name(enum wire_stream s);

/* ---- writing: each appends one whole message to `out`; 0, or -1 when memory or the limit failed ---- */

/* What is wanted of `threads`. All zero: every thread, without locals. */
struct wire_threads {
    bool locals; /* locals of the frames too */
    bool repr;   /* the same, by their own repr() where the job has made one: runs code of the job */
    bool tasks;  /* tasks of asyncio too */
    bool native; /* native frames too, before the Python frames and entries; see struct model_thread */
    int64_t tid; /* only this thread; 0: all */
    enum model_sampling mode; /* how threads that run are looked at; what is not known is exact */
};

struct wire_subscribe {
    enum wire_stream stream;
    double rate_hz;
    bool native;              /* samples: stacks with native frames too */
    enum model_sampling mode; /* how threads that run are looked at; what is not known is exact */
    double budget_pct;        /* what it may cost at most, of one core; 0: as the agent has it */
    double batch_s;           /* samples: seconds between two batches; 0: as the agent has it */
};

/* What `config` sets: text, as a person writes it (base/config.h). */
struct wire_config {
    char key[64], value[256];
};

#define WIRE_MAX_TABLES 64

/* A table, as it describes itself (store/ring_reader.h). */
struct wire_table {
    char name[64];
    const void *head; /* borrowed; of a message that was read: lives as long as it */
    size_t head_len;
};

/* What `pull` asks for: what comes after the mark of a copy (struct ring_mark of store/ring_sync.h). */
struct wire_pull {
    char table[64];
    uint32_t making; /* which table of that name: ring_sync_making */
    uint64_t first_seq;
    uint32_t rows, heap_used;
};

/* The answer. `anew`: the table was made anew since its description was asked for, so there are no pieces. */
struct wire_pulled {
    const void *pieces; /* borrowed, as in struct wire_table */
    size_t len;
    bool more; /* there are rows after those */
    bool anew;
};

int wire_put_config(struct strbuf *out, uint32_t id, const struct wire_config *c);
int wire_put_pull(struct strbuf *out, uint32_t id, const struct wire_pull *p);
int wire_put_hello(struct strbuf *out, uint32_t id, const char *client_version);
int wire_put_request(struct strbuf *out, uint32_t id, enum wire_method m); /* a method without params */
int wire_put_threads(struct strbuf *out, uint32_t id, const struct wire_threads *t);
int wire_put_subscribe(struct strbuf *out, uint32_t id, const struct wire_subscribe *s);
int wire_put_unsubscribe(struct strbuf *out, uint32_t id, enum wire_stream s);

int wire_put_error(struct strbuf *out, uint32_t id, enum wire_error code, const char *text);
int wire_put_ok(struct strbuf *out, uint32_t id);                                   /* an empty result */
int wire_put_target(struct strbuf *out, uint32_t id, const struct model_target *t); /* answer to hello */
/* Answer to threads; locals go with the frames that have them, tasks and a note if there are some. A snapshot that would not fit into WIRE_MAX_ASSEMBLED loses the outermost frames of the deepest
 * stacks (its thread is then `truncated`, the snapshot `incomplete`). */
int wire_put_snapshot(struct strbuf *out, uint32_t id, const struct model_snapshot *s);
int wire_put_status(struct strbuf *out, uint32_t id, const struct model_status *s);
int wire_put_tables(struct strbuf *out, uint32_t id, const struct wire_table *tables, size_t n);
int wire_put_pulled(struct strbuf *out, uint32_t id, const struct wire_pulled *p);
/* A notification never carries locals, tasks or a note. */
int wire_put_threads_notify(struct strbuf *out, const struct model_snapshot *s);
int wire_put_samples_notify(struct strbuf *out, const struct model_sample_batch *b);
int wire_put_bye(struct strbuf *out, const char *reason);

/* The same without the last pair of the map, "dropped" (the struct's own is not looked at), which wire_put_dropped then
 * adds: so one encoding serves sessions that lost different numbers of notifications or samples. */
int wire_put_snapshot_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s);
int wire_put_threads_notify_open(struct strbuf *out, const struct model_snapshot *s);
int wire_put_samples_notify_open(struct strbuf *out, const struct model_sample_batch *b);
int wire_put_dropped(struct strbuf *out, uint64_t dropped);

/* The answer to one who wants no more than `want` says, open: only that thread (none when it is not there), and its locals
 * only if they were asked for. */
int wire_put_snapshot_wanted_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s,
                                  const struct wire_threads *want);

/* Piece `index` (from 0) of a message of `total` bytes as a chunk notification. */
size_t wire_chunk_count(size_t total);
int wire_put_chunk(struct strbuf *out, uint32_t message, const void *data, size_t total, size_t index);

/* ---- reading ---- */

struct wire_message; /* a parsed message; owns its memory */

/* Parse one message. NULL with ERR_FAILED when it is no valid message. Freed by wire_message_free. */
struct wire_message *wire_parse(const void *data, size_t len, struct err *e);
void wire_message_free(struct wire_message *m);

enum wire_type wire_message_type(const struct wire_message *m);
uint32_t wire_message_id(const struct wire_message *m);
enum wire_method wire_message_method(const struct wire_message *m);             /* of a request */
enum wire_notification wire_message_notification(const struct wire_message *m); /* of a notification */
/* Of a response: NULL when it succeeded, else the text of its error; `*code` is set then. */
const char *wire_message_error(const struct wire_message *m, enum wire_error *code);

/* Get the body; `out` is initialised by the call and owned by the caller (…_fini), on failure too. 0, or -1 with the error. */
int wire_get_target(const struct wire_message *m, struct model_target *out, struct err *e);
int wire_get_hello(const struct wire_message *m, int *version,
                   struct err *e); /* protocol version of a hello request */
int wire_get_snapshot(const struct wire_message *m, struct model_snapshot *out, struct err *e);
int wire_get_samples(const struct wire_message *m, struct model_sample_batch *out, struct err *e);
int wire_get_status(const struct wire_message *m, struct model_status *out, struct err *e);
int wire_get_threads(const struct wire_message *m, struct wire_threads *out, struct err *e);
int wire_get_subscribe(const struct wire_message *m, struct wire_subscribe *out, struct err *e);
int wire_get_unsubscribe(const struct wire_message *m, enum wire_stream *out, struct err *e);
int wire_get_config(const struct wire_message *m, struct wire_config *out, struct err *e);
int wire_get_bye(const struct wire_message *m, char *reason, size_t cap);
/* At most `cap` tables into `out`; `*n` how many. */
int wire_get_tables(const struct wire_message *m, struct wire_table *out, size_t cap, size_t *n,
                    struct err *e);
int wire_get_pull(const struct wire_message *m, struct wire_pull *out, struct err *e);
int wire_get_pulled(const struct wire_message *m, struct wire_pulled *out, struct err *e);

/* Puts chunks together; other messages may come in between, a second chunked one may not. */
struct wire_assembler {
    struct strbuf data; /* what has come so far */
    uint32_t message;   /* the message under way */
    size_t total, next; /* its length and the index of the next chunk; total 0: none under way */
};
void wire_assembler_init(struct wire_assembler *a);
void wire_assembler_fini(struct wire_assembler *a);
/* Feed a chunk notification: 1 the message is complete (a->data), 0 more is needed, -1 with the error (out of order, too
 * long); what was under way is then given up. */
int wire_assembler_feed(struct wire_assembler *a, const struct wire_message *m, struct err *e);

#endif
