/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire: the messages between agent and client; MessagePack-RPC, one array a WebSocket message.
 *
 * request [0, id, method, params], response [1, id, error, result], notification [2, method,
 * params]. Params and results are maps; unknown keys are ignored, missing ones are unknown.
 * Messages are capped; longer ones travel as chunks. Only src/wire uses msgpack.
 * Both ends use the same tables (field_tables.c); every parse is bounded: nothing is allocated
 * for a count that the bytes received cannot hold. No state: any thread may call anything.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "wire/access.h"

#define WIRE_PROTOCOL "probing.v1" /* WebSocket subprotocol */
#define WIRE_VERSION 2
#define WIRE_MAX_MESSAGE ((size_t)1024 * 1024)        /* one WebSocket message */
#define WIRE_MAX_ASSEMBLED ((size_t)16 * 1024 * 1024) /* all chunks of one message */

/* Range of a stream's rate; other values are moved to the nearest. */
#define WIRE_MIN_HZ 0.1
#define WIRE_MAX_SNAPSHOT_HZ 30.0
#define WIRE_MAX_SAMPLE_HZ 1000.0

/* Methods: name, access level, purpose. Add a row to add one; both ends find handlers by this
 * number. A request may need more than its method does (locals of frames):
 * src/agent/server/peer.c. */
#define WIRE_METHODS(X)                                                                                      \
    X(WIRE_HELLO, "hello", WIRE_READ_ONLY,                                                                   \
      "versions, limits and facts of the target; the first request of a session")                            \
    X(WIRE_THREADS, "threads", WIRE_READ_ONLY, "all threads with their stacks, once")                        \
    X(WIRE_SUBSCRIBE, "subscribe", WIRE_READ_ONLY, "start a stream at a rate: 'threads' or 'samples'")       \
    X(WIRE_UNSUBSCRIBE, "unsubscribe", WIRE_READ_ONLY, "end a stream")                                       \
    X(WIRE_STATUS, "status", WIRE_READ_ONLY, "agent status: overhead, counters, clients")                    \
    X(WIRE_EJECT, "eject", WIRE_CHANGES,                                                                     \
      "end the agent: threads, socket and hooks go, the code stays parked")                                  \
    X(WIRE_CONFIG, "config", WIRE_CHANGES, "set 'key' to 'value' immediately; status has all settings")      \
    X(WIRE_TABLES, "tables", WIRE_READ_ONLY, "the tables that are kept: the head of each one's file")        \
    X(WIRE_PULL, "pull", WIRE_READ_ONLY, "rows of a table that its copy does not have yet")                  \
    X(WIRE_ROWS, "rows", WIRE_VALUES, "rows of a table that Python makes in the job when it is asked")       \
    X(WIRE_ARM, "arm", WIRE_CHANGES,                                                                         \
      "start 'what' in the job, until this client leaves, ends it, or the time is over")                     \
    X(WIRE_DISARM, "disarm", WIRE_CHANGES, "end 'what' for this client")                                     \
    X(WIRE_EVAL, "eval", WIRE_CHANGES, "run code in the job: its output, its value or its exception")        \
    X(WIRE_COMPLETE, "complete", WIRE_CHANGES,                                                               \
      "completions of the end of code; or ('whole') whether the code is complete")                           \
    X(WIRE_INTERRUPT, "interrupt", WIRE_CHANGES, "end the code that this client has run, or cancel it")      \
    X(WIRE_LISTEN, "listen", WIRE_OWNS,                                                                      \
      "open or close the agent's TCP listener; gives its address and tokens")                                \
    X(WIRE_DEBUG, "debug", WIRE_CHANGES, "start or stop debugpy in the job; or only show its state")         \
    X(WIRE_PAUSE, "pause", WIRE_CHANGES,                                                                     \
      "pause the job's threads, with pdb at an address, or resume them; or only show their state")           \
    X(WIRE_CATCH, "catch", WIRE_CHANGES,                                                                     \
      "hold a thread on an uncaught exception, with pdb at an address, or stop doing so; or only show "      \
      "what is held")

/* Notifications. */
#define WIRE_NOTIFICATIONS(X)                                                                                \
    X(WIRE_N_THREADS, "threads", "a snapshot of a 'threads' stream")                                         \
    X(WIRE_N_SAMPLES, "samples", "a batch of a 'samples' stream")                                            \
    X(WIRE_N_BYE, "bye", "the agent is about to close, and why")                                             \
    X(WIRE_N_CHUNK, "chunk", "a piece of a message that is longer than the limit")

#define WIRE_ENUM_METHOD(id, name, access, help) id,
#define WIRE_ENUM(id, name, help) id,
enum wire_method {
    WIRE_METHODS(WIRE_ENUM_METHOD) WIRE_METHOD_COUNT,
    WIRE_METHOD_UNKNOWN = WIRE_METHOD_COUNT
};
enum wire_notification {
    WIRE_NOTIFICATIONS(WIRE_ENUM) WIRE_NOTIFICATION_COUNT,
    WIRE_NOTIFICATION_UNKNOWN = WIRE_NOTIFICATION_COUNT
};
#undef WIRE_ENUM
#undef WIRE_ENUM_METHOD

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
    WIRE_E_UNAVAILABLE = 3, /* the feature turned itself off, or cannot work now */
    WIRE_E_VERSION = 4,
    WIRE_E_NOT_ALLOWED = 5, /* this connection may not do that */
};

const char *wire_method_name(enum wire_method m);
const char *wire_method_help(enum wire_method m);
enum wire_access wire_method_access(enum wire_method m); /* WIRE_OWNS for an unknown method */
const char *wire_notification_name(enum wire_notification n);
const char *wire_stream_name(enum wire_stream s);

/* ---- writing: each appends one whole message to `out`; 0, or -1 when memory or the limit failed ---- */

/* Options of `threads`. All zero: every thread, without locals. */
struct wire_threads {
    bool locals; /* locals of the frames too */
    bool repr;   /* by their own repr() where the job defines one: runs code of the job */
    bool tasks;  /* tasks of asyncio too */
    /* native frames too, before the Python frames and entries; see struct model_thread */
    bool native;
    int64_t tid;              /* only this thread; 0: all */
    enum model_sampling mode; /* how running threads are read; exact if unknown */
    /* limit of the answer; 0: as many as a message may have. Not sent: set by the agent */
    size_t most_bytes;
};

struct wire_subscribe {
    enum wire_stream stream;
    double rate_hz;
    bool native;              /* samples: stacks with native frames too */
    enum model_sampling mode; /* how running threads are read; exact if unknown */
    double budget_pct;        /* cost limit, of one core; 0: the agent's default */
    double batch_s;           /* samples: seconds between two batches; 0: the agent's default */
};

/* Parameters of `config`: text as a person writes it (base/config.h). */
struct wire_config {
    char key[64], value[256];
};

/* Parameters of `arm` and `disarm`. */
struct wire_arm {
    char what[32];
    double limit_s; /* duration; 0: until the client disconnects */
    int64_t steps;  /* end after so many traced training steps; 0: no limit */
    bool compiled;  /* even under torch.compile, which then recompiles the model */
    bool dry;       /* estimate the cost only, where it is high */
    int64_t every;  /* bytes between two sampled allocations; 0: as configured */
};

/* Parameters of `listen`. */
struct wire_listen {
    char address[64]; /* base/address.h; "": the agent chooses; "off": close the listener */
    bool looking;     /* all clients of this listener are read-only */
};

/* The answer; all empty after the listener was closed. */
struct wire_listening {
    char address[64];
    char token[72], looking_token[72]; /* for full access, and for read-only access */
    char file[128];                    /* the file with the tokens, as the target names it */
};

#define WIRE_MAX_TABLES 64

/* A table, with its own description (store/ring/ring_reader.h). */
struct wire_table {
    char name[64];
    /* borrowed; in a message that was read it lives as long as the message. NULL: the table
     * exists but is withheld from this client */
    const void *head;
    size_t head_len;
};

/* Parameters of `pull`: the mark of a copy (struct ring_mark of store/ring/ring_sync.h). */
struct wire_pull {
    char table[64];
    uint32_t making; /* generation of the table of that name: ring_sync_making */
    uint64_t first_seq;
    uint32_t rows, heap_used;
};

/* The answer. `anew`: the table was made again since its description was requested, so there are
 * no pieces. */
struct wire_pulled {
    const void *pieces; /* borrowed, as in struct wire_table */
    size_t len;
    bool more; /* more rows follow */
    bool anew;
};

#define WIRE_ROWS_ARGS 6
#define WIRE_ROWS_ARG_TEXT 128

/* Arguments of `rows`: the table, and its parameters; for a relay also a longer text. */
struct wire_rows_arg {
    char key[32];
    bool is_text;
    int64_t number; /* unless it is a text */
    char text[WIRE_ROWS_ARG_TEXT];
};

struct wire_rows_ask {
    char table[64];
    struct wire_rows_arg args[WIRE_ROWS_ARGS];
    size_t n_args;
    /* borrowed; in a message that was read it lives as long as the message, and has no NUL at its end. NULL
     * none */
    const char *text;
    size_t text_len;
};

enum wire_value_kind {
    WIRE_VALUE_NULL = 0,
    WIRE_VALUE_BOOL,
    WIRE_VALUE_INT,
    WIRE_VALUE_DOUBLE,
    WIRE_VALUE_TEXT
};

struct wire_value {
    enum wire_value_kind kind;
    size_t len; /* of a text, in bytes, without a NUL */
    union {
        int64_t i;
        double f;
        const char *s; /* borrowed */
    };
};

/* The answer. To write: names and rows as wire_add_row made them. As read: the part that
 * wire_next_column and wire_next_row have not consumed yet; lives as long as the message. */
struct wire_rows {
    const void *columns, *rows;
    size_t columns_len, rows_len;
    size_t n_columns, n_rows;
    bool more;      /* more rows exist */
    char note[512]; /* what is missing, and why; "" nothing */
};

#define WIRE_EVAL_CODE_MAX (WIRE_MAX_MESSAGE - 1024)    /* bytes of code */
#define WIRE_EVAL_OUTPUT_MAX ((int64_t)3 * 1024 * 1024) /* limit of a request's output, */
#define WIRE_EVAL_TIMEOUT_MAX_S 86400.0                 /* and of its time */

/* Completeness of code typed line by line: the result of "complete" with `whole`. */
#define WIRE_CODE_MORE "more" /* incomplete */
/* may be complete; more lines may belong to it, as to an if or a def */
#define WIRE_CODE_BLOCK "block"
#define WIRE_CODE_DONE "done" /* complete, or not code */

/* Code to run in the job, or to complete, which runs none of it. */
struct wire_eval {
    const char *code; /* borrowed; in a message that was read it lives as long as the message */
    size_t code_len;
    char name[128];       /* its name in tracebacks */
    double timeout_s;     /* from the request to its end */
    int64_t output_bytes; /* limit of its output, and of each text of the answer */
    bool main;            /* on the main thread, otherwise on the agent's own */
    int64_t tid, depth;   /* with the names of this frame, read-only; tid 0: of __main__ */
    /* keep the last value while the client is connected: its code sees it as `_` */
    bool keep;
    /* method "complete": the result is the names that begin with the end of the code, one a line */
    bool complete;
    bool whole; /* the same, but the result is WIRE_CODE_... */
};

/* A text of an answer, without a NUL at its end. */
struct wire_text {
    const char *s; /* NULL: none; borrowed, as in struct wire_eval */
    size_t len;
};

/* The result of the code. */
struct wire_evaluated {
    struct wire_text result; /* repr of the last expression unless that is None */
    struct wire_text output;
    struct wire_text type, message, traceback; /* of the exception; type.s NULL: none */
    double duration_ms;
    bool truncated; /* one of the texts is longer than the limit */
    bool timed_out; /* interrupted at the end of its time */
    bool unended;   /* and has not ended yet: nothing else is known */
};

#define WIRE_DEBUG_LIMIT_MAX_S 86400.0 /* how long threads may be held */
#define WIRE_DEBUG_PLACES 32

enum wire_debug_action {
    WIRE_DEBUG_UNKNOWN = 0,
    WIRE_DEBUG_BEGIN,
    WIRE_DEBUG_STATUS, /* only say how it stands */
    WIRE_DEBUG_END,
};

/* What is wanted of a debugger in the job: the params of debug, pause and catch. */
struct wire_debug {
    struct arena arena; /* of its texts, where the message was read */
    enum wire_debug_action action;
    double timeout_s; /* from when it is asked until it has begun */
    bool leased;      /* it ends when this client goes, unless somebody uses it then */
    const char *host; /* where it listens */
    int port;         /* 0: one that is free */
    double limit_s;   /* pause, catch: how long a thread is held at most */
    /* debug: the folder that holds debugpy; NULL: the job's own, else one of places */
    const char *path;
    const char *places[WIRE_DEBUG_PLACES]; /* debug: folders of the client's that hold one */
    size_t n_places;
    bool exposed; /* debug: others may reach the address */
};

/* A thread of a job that is paused. */
struct wire_paused_thread {
    int64_t tid; /* 0: not known */
    bool held;   /* else it is in C, and is held when it comes back */
    const char *name, *where;
};

/* How it stands: the answer. What a method has no word for is unknown. */
struct wire_debugger {
    struct arena arena;  /* of its texts and threads, where the message was read */
    const char *refused; /* why nothing was done; NULL: it was */
    const char *raised;  /* the class of what it has raised; NULL: nothing */
    bool timed_out;      /* interrupted at the end of its time */
    bool unended;        /* and has not ended by that yet */
    bool on;             /* debugpy listens; the job is paused; exceptions are caught */
    bool was;            /* it was, until it was ended */
    bool client;         /* a client is connected to it */
    /* pause, catch */
    const char *address, *token; /* of pdb; NULL: there is none */
    double left_s;               /* until the threads are let go */
    /* debug */
    const char *missing; /* there is no debugpy: "debugpy", or none in this folder */
    const char *other;   /* who debugs the job instead; NULL nobody */
    const char *host;
    int port;
    const char *module, *version; /* of debugpy: its file */
    const char *user, *cwd;       /* of the job */
    bool compiles;                /* torch.compile may be used, whose code meets no breakpoints */
    /* pause */
    struct wire_paused_thread *threads;
    size_t n_threads;
    /* catch */
    const char *exception, *thread, *traceback; /* that is kept; NULL: none is */
    /* fatal ones that are noted; those that are not, and why */
    const char *signals, *left_alone;
    double limit_s;   /* how long a thread would be kept */
    bool all_threads; /* not only the main thread */
};

/* `method` is debug, pause or catch; of an answer: that of the request. _fini frees what _get
 * has read, on failure too. */
int wire_put_debug(struct strbuf *out, uint32_t id, enum wire_method method, const struct wire_debug *d);
int wire_put_debugger(struct strbuf *out, uint32_t id, enum wire_method method,
                      const struct wire_debugger *d);
void wire_debug_fini(struct wire_debug *d);
void wire_debugger_fini(struct wire_debugger *d);

int wire_put_eval(struct strbuf *out, uint32_t id, const struct wire_eval *w);
int wire_put_evaluated(struct strbuf *out, uint32_t id, const struct wire_evaluated *v);

int wire_put_rows_ask(struct strbuf *out, uint32_t id, const struct wire_rows_ask *a);
/* Append a row (or the names of all columns) to `rows`, for struct wire_rows. */
int wire_add_row(struct strbuf *rows, const struct wire_value *values, size_t n);
int wire_put_rows(struct strbuf *out, uint32_t id, const struct wire_rows *r);

int wire_put_config(struct strbuf *out, uint32_t id, const struct wire_config *c);
int wire_put_pull(struct strbuf *out, uint32_t id, const struct wire_pull *p);
int wire_put_arm(struct strbuf *out, uint32_t id, const struct wire_arm *a);
int wire_put_disarm(struct strbuf *out, uint32_t id, const struct wire_arm *a);
int wire_put_listen(struct strbuf *out, uint32_t id, const struct wire_listen *l);
int wire_put_listening(struct strbuf *out, uint32_t id, const struct wire_listening *l);
int wire_put_hello(struct strbuf *out, uint32_t id, const char *client_version);
/* for a method without params */
int wire_put_request(struct strbuf *out, uint32_t id, enum wire_method m);
int wire_put_threads(struct strbuf *out, uint32_t id, const struct wire_threads *t);
int wire_put_subscribe(struct strbuf *out, uint32_t id, const struct wire_subscribe *s);
int wire_put_unsubscribe(struct strbuf *out, uint32_t id, enum wire_stream s);

/* Make unknown what access level `may` does not include, before writing. */
void wire_hide_target(struct model_target *t, enum wire_access may);
void wire_hide_status(struct model_status *s, enum wire_access may);

int wire_put_error(struct strbuf *out, uint32_t id, enum wire_error code, const char *text);
/* an empty result */
int wire_put_ok(struct strbuf *out, uint32_t id);
/* answer to hello */
int wire_put_target(struct strbuf *out, uint32_t id, const struct model_target *t);
/* Answer to threads. Locals go with their frames, tasks and a note if there are any. A snapshot
 * that would not fit into WIRE_MAX_ASSEMBLED loses the outermost frames of the deepest stacks
 * (its thread is then `truncated`, the snapshot `incomplete`). */
int wire_put_snapshot(struct strbuf *out, uint32_t id, const struct model_snapshot *s);
int wire_put_status(struct strbuf *out, uint32_t id, const struct model_status *s);
int wire_put_tables(struct strbuf *out, uint32_t id, const struct wire_table *tables, size_t n);
int wire_put_pulled(struct strbuf *out, uint32_t id, const struct wire_pulled *p);
/* A notification never carries locals, tasks or a note. */
int wire_put_threads_notify(struct strbuf *out, const struct model_snapshot *s);
int wire_put_samples_notify(struct strbuf *out, const struct model_sample_batch *b);
int wire_put_bye(struct strbuf *out, const char *reason);

/* The same without the last pair of the map, "dropped" (the struct's own is ignored), which
 * wire_put_dropped then adds: so one encoding serves sessions that lost different numbers of
 * notifications or samples. */
int wire_put_snapshot_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s);
int wire_put_threads_notify_open(struct strbuf *out, const struct model_snapshot *s);
/* The same with a size limit in bytes (0: as above). */
int wire_put_threads_notify_most(struct strbuf *out, const struct model_snapshot *s, size_t most_bytes);
int wire_put_samples_notify_open(struct strbuf *out, const struct model_sample_batch *b);
int wire_put_dropped(struct strbuf *out, uint64_t dropped);

/* The answer for a client that asked for less, as `want` says, open: only that thread (none if
 * it does not exist), and its locals only if requested. */
int wire_put_snapshot_wanted_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s,
                                  const struct wire_threads *want);

/* Piece `index` (from 0) of a message of `total` bytes as a chunk notification. */
size_t wire_chunk_count(size_t total);
int wire_put_chunk(struct strbuf *out, uint32_t message, const void *data, size_t total, size_t index);
/* The same without its bytes, which follow: `*len` of them from `*from` on. */
int wire_put_chunk_head(struct strbuf *out, uint32_t message, size_t total, size_t index, size_t *from,
                        size_t *len);

/* ---- reading ---- */

struct wire_message; /* a parsed message; owns its memory */

/* Parse one message. NULL with ERR_FAILED if it is not valid. Freed by wire_message_free. */
struct wire_message *wire_parse(const void *data, size_t len, struct err *e);
void wire_message_free(struct wire_message *m);

enum wire_type wire_message_type(const struct wire_message *m);
uint32_t wire_message_id(const struct wire_message *m);
enum wire_method wire_message_method(const struct wire_message *m); /* of a request */
/* of a notification */
enum wire_notification wire_message_notification(const struct wire_message *m);
/* For a response: NULL if it succeeded, otherwise the text of its error; `*code` is set then. */
const char *wire_message_error(const struct wire_message *m, enum wire_error *code);

/* Read the body. The call initialises `out`, which the caller owns (…_fini), on failure too. 0,
 * or -1 with the error. */
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
/* At most `cap` tables into `out`, the withheld ones last; `*n` is their number. */
int wire_get_tables(const struct wire_message *m, struct wire_table *out, size_t cap, size_t *n,
                    struct err *e);
int wire_get_pull(const struct wire_message *m, struct wire_pull *out, struct err *e);
int wire_get_arm(const struct wire_message *m, struct wire_arm *out, struct err *e); /* or disarm */
int wire_get_pulled(const struct wire_message *m, struct wire_pulled *out, struct err *e);
int wire_get_rows_ask(const struct wire_message *m, struct wire_rows_ask *out, struct err *e);
int wire_get_rows(const struct wire_message *m, struct wire_rows *out, struct err *e);
int wire_get_eval(const struct wire_message *m, struct wire_eval *out, struct err *e);
int wire_get_debug(const struct wire_message *m, struct wire_debug *out, struct err *e);
int wire_get_debugger(const struct wire_message *m, enum wire_method method, struct wire_debugger *out,
                      struct err *e);
int wire_get_listen(const struct wire_message *m, struct wire_listen *out, struct err *e);
int wire_get_listening(const struct wire_message *m, struct wire_listening *out, struct err *e);
int wire_get_evaluated(const struct wire_message *m, struct wire_evaluated *out, struct err *e);
/* Take the name of the next column, or the first `cap` values of the next row; missing ones are
 * NULL. 1, 0 at the end, -1 if it is not valid. */
int wire_next_column(struct wire_rows *r, struct wire_value *name);
int wire_next_row(struct wire_rows *r, struct wire_value *values, size_t cap);

/* Puts chunks together. Other messages may come between them; a second chunked one may not. */
struct wire_assembler {
    struct strbuf data; /* the bytes so far */
    uint32_t message;   /* the message under way */
    size_t total, next; /* its length and the index of the next chunk; total 0: none under way */
};
void wire_assembler_init(struct wire_assembler *a);
void wire_assembler_fini(struct wire_assembler *a);
/* Feed a chunk notification: 1 the message is complete (a->data), 0 more is needed, -1 with the
 * error (out of order, too long); the message under way is then discarded. */
int wire_assembler_feed(struct wire_assembler *a, const struct wire_message *m, struct err *e);

#endif
