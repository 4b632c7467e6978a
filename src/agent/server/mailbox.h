/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox: requests of the server's thread to the sampler's thread, and the results.
 *
 * Requests are a table with one slot per client, so a repeated request is the same as one
 * request, and nothing can pile up. The results are a bounded list. One mutex, locked only to
 * copy. The sampler sleeps until something changes, and wakes the server. What a python worker
 * answers does not pass through here: see calls.h.
 */
#ifndef AGENT_SERVER_MAILBOX_H
#define AGENT_SERVER_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/lease.h"
#include "agent/server/queue.h"
#include "agent/server/refusals.h"
#include "base/config.h"
#include "base/model.h"
#include "pystack/gate.h"
#include "wire/wire.h"

#define MAILBOX_SLOTS 16     /* clients */
#define MAILBOX_MAX_ASKS 8   /* pending requests of one client */
#define MAILBOX_MAX_NOTES 64 /* notifications that the server has not taken yet */
#define MAILBOX_NEXT_SAMPLE SIZE_MAX
#define MAILBOX_TABLES 24
#define MAILBOX_MAX_NOTE_BYTES ((size_t)8 * 1024 * 1024)
/* Bytes waiting for all clients together, without the one answer being made. Read-only clients
 * may be anybody, so their part is one that a job does not notice. */
#define MAILBOX_MOST ((size_t)32 * 1024 * 1024)
#define MAILBOX_LOOKERS_MOST ((size_t)2 * 1024 * 1024)
#define MAILBOX_LOOKER_ANSWER WIRE_MAX_MESSAGE /* maximum of their answers */

struct call;
struct calls;
struct record;
struct worker;

/* A request that the sampler answers. */
struct mailbox_ask {
    enum wire_method method; /* WIRE_UNSUBSCRIBE: the end of samples */
    uint32_t id;
    union { /* the arguments, by method */
        struct wire_threads threads;
        struct wire_pull pull;
        struct wire_arm arm; /* for disarm too */
    };
};

enum mailbox_reading_kind {
    MAILBOX_READ_FRAMES, /* the stacks of all threads, and the variables of frames */
    MAILBOX_READ_GIL,    /* who holds the GIL */
};

/* What the sampler reads for a request that a python worker answers: call.h. */
struct mailbox_reading {
    struct mailbox_reading *next;
    enum mailbox_reading_kind kind;
    int64_t tid;                  /* the thread whose variables are read; 0: all */
    struct call *call;            /* the request, for the server's thread; NULL if nobody waits any longer */
    bool is_read;                 /* false: there is no interpreter, or it cannot be read */
    struct model_snapshot frames; /* owned */
    struct pystack_gate gate;
};

struct mailbox_slot {
    uint32_t peer; /* 0 if free */
    bool looker;   /* read-only */
    /* the answer to its last request for threads or tables is not being sent yet: the next one
     * waits */
    bool looking;
    struct mailbox_ask asks[MAILBOX_MAX_ASKS];
    size_t n_asks;
    int64_t uid, pid;                  /* of the client; -1 if unknown */
    double rate_hz[WIRE_STREAM_COUNT]; /* 0 if it has no such stream */
    enum model_sampling mode[WIRE_STREAM_COUNT];
    bool native; /* samples: with native frames */
    /* samples: time between two batches; 0 if it has no preference */
    double batch_s;
    /* it has unsubscribed from samples; the sampler has not seen it yet */
    bool leaving;
    /* generation of `sent` at the start of the subscription */
    uint32_t began;
    double budget_pct[WIRE_STREAM_COUNT]; /* 0 if it has no preference */
    uint64_t due_ns;                      /* time of its next snapshot */
    /* definitions already sent; its generation is that of the subscription */
    struct queue_mark sent;
    /* index of its first sample in the batch being collected; MAILBOX_NEXT_SAMPLE: not set yet */
    size_t first_sample;
};

/* The part of a status that comes from the sampler. */
struct mailbox_status {
    struct model_status of; /* without the texts below, lists and arena */
    uint64_t signals_ns;    /* cost of signals in threads of the job */
    size_t bytes;           /* memory of the sampler */
    char discovery[64];
    char note[256]; /* each is "" if there is none */
    char data_dir[256], collect_note[256];
    char hooks[96], steps_note[160], hooks_note[160];
    struct model_table tables[MAILBOX_TABLES]; /* names are static */
    size_t n_tables;
    struct mailbox_lease {
        struct model_lease lease; /* its texts are static, or in `note` and `file` */
        char note[400], file[512];
    } leases[LEASE_KIND_COUNT];
    size_t n_leases;
};

struct mailbox {
    pthread_mutex_t lock;
    uint32_t changes; /* a counter; the sampler sleeps on it, see mailbox_sleep */
    bool asleep;
    bool made;
    bool stop, poke;
    bool nudge;                             /* the python worker has something for the sampler */
    struct worker *worker;                  /* of this run; NULL before it exists */
    struct worker *evaluator;               /* the worker that runs code of clients */
    struct calls *calls;                    /* what these are asked by clients; for the server's thread */
    struct record *record;                  /* writes the tables; NULL before it exists */
    int64_t last_step;                      /* atomic: the job's last step; -1 if unknown */
    struct mailbox_reading *to_read, *read; /* for the sampler, and back for the server */
    /* Called before the agent leaves; see server.h. NULL if there is nothing to remove. */
    int (*leave)(struct worker *w, struct err *e);
    void (*stay)(void); /* after `leave`: the agent does not leave; NULL if there is no `leave` */
    struct mailbox_slot slots[MAILBOX_SLOTS];
    struct queue_item *head, *tail;           /* for the server */
    size_t n_notes, note_bytes, looker_bytes; /* looker_bytes: all for read-only clients */
    /* the read-only client being answered, one of them at a time; 0 if none is */
    uint32_t looked_for;
    /* the sampler has postponed a request until the server has taken everything */
    bool held;
    /* bytes waiting for clients at the server: with more access, and read-only */
    struct queue_budget rooms[2];
    struct mailbox_status status;
    size_t server_bytes; /* of the server's thread, as last reported */
    struct config config;
    uint32_t config_changes;         /* a counter */
    struct refusals refusals;        /* for the server's thread */
    bool spoken;                     /* a client has set a sampling mode */
    enum model_sampling spoken_mode; /* the last one that was set */
};

int mailbox_init(struct mailbox *m); /* 0 or -1 */
void mailbox_fini(struct mailbox *m);

/* ---- for the server ---- */

int mailbox_attach(struct mailbox *m, uint32_t peer, bool looker); /* 0, or -1 if no slot is free */
struct queue_budget *mailbox_budget(struct mailbox *m, bool looker);
/* The answer to threads or tables is being sent, or will not arrive: the next one may be made. */
void mailbox_end_snapshot(struct mailbox *m, uint32_t peer);
/* The same for an answer to pull that will not arrive. */
void mailbox_end_pull(struct mailbox *m, uint32_t peer);
void mailbox_detach(struct mailbox *m, uint32_t peer);
/* Record the client's uid and pid (-1: unknown). */
void mailbox_introduce(struct mailbox *m, uint32_t peer, int64_t uid, int64_t pid);
/* What mailbox_introduce has recorded; -1 and -1 for no such client. */
void mailbox_get_client(struct mailbox *m, uint32_t peer, int64_t *uid, int64_t *pid);
bool mailbox_has(struct mailbox *m, uint32_t peer); /* True if it is still connected. Any thread. */
/* Write into the table of events that a connection was refused, or a request of client `peer` (0:
 * none), but not for each one. */
void mailbox_note_refusal(struct mailbox *m, uint32_t peer, int64_t uid, const char *text);
/* Ask the sampler. After WIRE_UNSUBSCRIBE it ends the stream of samples, sends those that it has,
 * and then answers. 0, or -1 if there are too many, or another WIRE_PULL. */
int mailbox_ask(struct mailbox *m, uint32_t peer, const struct mailbox_ask *ask);
/* Ask the sampler to read something; the mailbox takes it over. */
void mailbox_ask_reading(struct mailbox *m, struct mailbox_reading *r);
/* All that were read so far; the caller owns them. */
struct mailbox_reading *mailbox_take_readings(struct mailbox *m);
void mailbox_reading_free(struct mailbox_reading *r);

/* 0 Hz ends it. */
void mailbox_subscribe(struct mailbox *m, uint32_t peer, enum wire_stream stream, double rate_hz,
                       enum model_sampling mode);
/* Change a setting. 0, or -1 with the error if there is no such key or the value is invalid. */
int mailbox_configure(struct mailbox *m, const char *key, const char *value, struct err *e);
/* True if this change would re-enable probing.eval. */
bool mailbox_would_allow_eval(struct mailbox *m, const char *key, const char *value);
/* The time between two batches of samples, in seconds; 0 if the client has no preference. */
void mailbox_set_batch(struct mailbox *m, uint32_t peer, double batch_s);
/* From now on send samples with native frames or without them, until the stream ends. */
void mailbox_set_native(struct mailbox *m, uint32_t peer, bool native);
/* The maximum cost of a stream while it runs, in percent of a core; 0 if the client has no
 * preference. */
void mailbox_set_budget(struct mailbox *m, uint32_t peer, enum wire_stream stream, double budget_pct);
/* Batches of samples were dropped: start again at `mark`. */
void mailbox_rollback(struct mailbox *m, uint32_t peer, const struct queue_mark *mark);
enum mailbox_batch {
    MAILBOX_CURRENT = 0,
    MAILBOX_LOST, /* it needs definitions that were dropped */
    MAILBOX_OVER, /* it is of a subscription that the client has ended since: nothing is lost */
};

/* Judge a batch of samples that was made when the client's marks had this `generation`. */
enum mailbox_batch mailbox_judge(struct mailbox *m, uint32_t peer, uint32_t generation);
/* All items for the server so far, oldest first; the caller owns them. */
struct queue_item *mailbox_take(struct mailbox *m);
void mailbox_count_dropped(struct mailbox *m, uint64_t samples);
void mailbox_get_status(struct mailbox *m, struct mailbox_status *out);
void mailbox_set_server_bytes(struct mailbox *m, size_t bytes);
void mailbox_stop(struct mailbox *m); /* end the sampler's thread */
void mailbox_poke(struct mailbox *m); /* make the sampler wake the server; any thread */

/* Make the sampler check for work from outside the mailbox. Async-signal-safe. */
void mailbox_wake(struct mailbox *m);

/* Make the sampler check the results of the worker; any thread. */
void mailbox_nudge(struct mailbox *m);

/* ---- for the sampler ---- */

#define MAILBOX_FOREVER UINT64_MAX

/* With the lock, which is released meanwhile: sleep until there is a request, or until the
 * monotonic time. May return early. */
void mailbox_sleep(struct mailbox *m, uint64_t until_ns);

/* Hand over something that was read; the server is to be woken. */
void mailbox_post_reading(struct mailbox *m, struct mailbox_reading *r);

/* The last samples were sent to the client that unsubscribed. No effect if it has subscribed
 * again meanwhile. */
void mailbox_end_samples(struct mailbox *m, uint32_t peer);

/* With the lock: true if that request may be answered now. Large answers are made one at a time:
 * per client, and for all read-only clients together. Then the answer is in progress until it is
 * posted, or until mailbox_end_snapshot. */
bool mailbox_begin_snapshot(struct mailbox *m, struct mailbox_slot *slot, enum wire_method method);

/* With the lock: samples of clients that have just subscribed start at index `n` of the batch. */
void mailbox_set_first(struct mailbox *m, size_t n);

/* Pass an item to the server, or free it if its client is gone or too many notifications wait. 0
 * if passed, otherwise -1. */
int mailbox_post(struct mailbox *m, struct queue_item *item);

#endif
