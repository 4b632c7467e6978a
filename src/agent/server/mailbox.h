/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox: what the server's thread wants from the sampler's, and what it gets back.
 *
 * Wishes are a table, one slot a client: so asking twice is no more than asking once, and nothing can pile up. What comes
 * back is a bounded list. One mutex, held only to copy; the sampler sleeps until something changes, the server is woken by
 * `wake`, which only the sampler's thread calls.
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
#include "wire/wire.h"

#define MAILBOX_SLOTS 16     /* clients */
#define MAILBOX_MAX_ASKS 8   /* requests of one client that are not answered yet */
#define MAILBOX_MAX_NOTES 64 /* notifications that the server has not taken yet */
#define MAILBOX_NEXT_SAMPLE SIZE_MAX
#define MAILBOX_TABLES 16
#define MAILBOX_MAX_NOTE_BYTES ((size_t)8 * 1024 * 1024)
/* Bytes that clients let wait, all together; the one answer in the making is not in it. Who may only look is not known, and has a
 * part that a job does not notice. */
#define MAILBOX_MOST ((size_t)32 * 1024 * 1024)
#define MAILBOX_LOOKERS_MOST ((size_t)2 * 1024 * 1024)
#define MAILBOX_LOOKER_ANSWER WIRE_MAX_MESSAGE /* one of theirs, at most */

struct worker;

struct mailbox_ask {
    enum wire_method method;  /* those of the sampler; WIRE_UNSUBSCRIBE: the end of samples */
    uint32_t id;              /* of the request */
    struct wire_threads want; /* of threads */
    struct wire_arm arm;      /* of arm and disarm */
};

/* Code that is to be run, or a debugger that is to begin or end, or to say how it stands. */
struct mailbox_eval {
    enum wire_method method; /* WIRE_EVAL, of complete too; WIRE_DEBUG, WIRE_PAUSE, WIRE_CATCH */
    struct wire_eval code;   /* of the first; its text is behind this struct */
    struct wire_debug debug; /* of the others; owned */
};

struct mailbox_slot {
    uint32_t peer; /* 0 free */
    bool looker;   /* it may only look */
    bool
        looking; /* the answer to its last threads, or tables, has not been begun to be sent: the next waits */
    struct mailbox_ask asks[MAILBOX_MAX_ASKS];
    size_t n_asks;
    struct wire_pull pull;             /* what the ask for rows wants: a client has one at a time */
    struct wire_rows_ask rows;         /* the same for rows that Python makes */
    struct mailbox_eval *eval;         /* and for code to be run, or a debugger, owned; NULL there is none */
    bool interrupt;                    /* the code that it asked for last is to end */
    int64_t uid, pid;                  /* of the client; -1 not known */
    double rate_hz[WIRE_STREAM_COUNT]; /* 0: no such stream */
    enum model_sampling mode[WIRE_STREAM_COUNT];
    bool native;                          /* samples: with native frames */
    double batch_s;                       /* samples: between two batches; 0: no wish */
    bool leaving;                         /* it wants no more samples; the sampler has not heard yet */
    uint32_t began;                       /* generation of `sent` with which the subscription began */
    double budget_pct[WIRE_STREAM_COUNT]; /* 0: no wish */
    uint64_t due_ns;                      /* of its next snapshot */
    struct queue_mark sent; /* definitions that were sent; its generation is that of the subscription */
    size_t
        first_sample; /* where its own begin in the batch being collected; MAILBOX_NEXT_SAMPLE: not set yet */
};

/* What the sampler knows of a status. */
struct mailbox_status {
    struct model_status of; /* without texts that are below, lists and arena */
    uint64_t signals_ns;    /* what signals have cost threads of the job */
    size_t bytes;           /* of memory, of the sampler */
    char discovery[64];
    char note[256]; /* these are "" where there is none */
    char data_dir[256], collect_note[256];
    char hooks[96], steps_note[160], hooks_note[160];
    struct model_table tables[MAILBOX_TABLES]; /* names are static */
    size_t n_tables;
    struct mailbox_lease {
        struct model_lease lease; /* its texts are static, or `note` and `file` */
        char note[400], file[512];
    } leases[LEASE_KIND_COUNT];
    size_t n_leases;
};

struct mailbox {
    pthread_mutex_t lock;
    uint32_t changes; /* counts; the sampler sleeps on it, see mailbox_sleep */
    bool asleep;
    bool made;
    bool stop, poke;
    bool evaluating;          /* atomic: code that a client has asked for is run, or is to be */
    bool nudge;               /* the python worker has something for the sampler */
    struct worker *worker;    /* of this run; NULL before there is one */
    struct worker *evaluator; /* the one that runs what clients want run */
    /* Before the agent goes; see server.h. NULL: there is nothing to be taken out. */
    int (*leave)(struct worker *w, struct err *e);
    struct mailbox_slot slots[MAILBOX_SLOTS];
    struct queue_item *head, *tail;           /* for the server */
    size_t n_notes, note_bytes, looker_bytes; /* looker_bytes: all for who may only look */
    uint32_t looked_for; /* who may only look and is being answered, one at a time of all such; 0 nobody */
    bool held;           /* the sampler has left a request where it is until the server has taken all */
    struct queue_budget
        rooms[2]; /* what clients let wait at the server: of those who may do more, and who may only look */
    struct mailbox_status status;
    size_t server_bytes; /* held by the server's thread, as it last said */
    struct config config;
    uint32_t config_changes; /* counts */
    struct refusals refusals;
    bool spoken;                     /* a client has chosen a sampling mode */
    enum model_sampling spoken_mode; /* the last that did */
};

int mailbox_init(struct mailbox *m); /* 0 or -1 */
void mailbox_fini(struct mailbox *m);

/* ---- the server's side ---- */

int mailbox_attach(struct mailbox *m, uint32_t peer, bool looker); /* 0, or -1: no slot is free */
struct queue_budget *mailbox_budget(struct mailbox *m, bool looker);
/* The answer to threads, or tables, goes out, or will not come: the next may be made. */
void mailbox_end_snapshot(struct mailbox *m, uint32_t peer);
void mailbox_end_pull(struct mailbox *m,
                      uint32_t peer); /* the same of an answer to pull that will not come */
void mailbox_detach(struct mailbox *m, uint32_t peer);
/* Record the client's uid and pid (-1: unknown). */
void mailbox_introduce(struct mailbox *m, uint32_t peer, int64_t uid, int64_t pid);
bool mailbox_has(struct mailbox *m, uint32_t peer); /* is it still there? From any thread. */
/* Somebody was turned away, or a client refused what it wanted (`peer`; 0: none): for the table of events. */
void mailbox_note_refusal(struct mailbox *m, uint32_t peer, int64_t uid, const char *text);
int mailbox_ask(struct mailbox *m, uint32_t peer, enum wire_method method,
                uint32_t id); /* 0, or -1: too many */
/* The same for threads. */
int mailbox_ask_threads(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_threads *want);
/* The same for what is to be armed, or no longer. */
int mailbox_ask_arm(struct mailbox *m, uint32_t peer, enum wire_method method, uint32_t id,
                    const struct wire_arm *want);
/* The same for rows of a table; -1 too when the client has asked for some already. */
int mailbox_ask_pull(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_pull *want);
/* The same for rows that Python makes. */
int mailbox_ask_rows(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_rows_ask *want);
/* The same for code to be run; copied. */
int mailbox_ask_eval(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_eval *want);
/* The same for debug, pause or catch; `*want` is moved when it is taken. */
int mailbox_ask_debug(struct mailbox *m, uint32_t peer, uint32_t id, enum wire_method method,
                      struct wire_debug *want);
void mailbox_eval_free(struct mailbox_eval *e); /* NULL is nothing to do */

/* A client wants its code ended; what it asks for later is not meant. Whether that is so, once. */
void mailbox_interrupt(struct mailbox *m, uint32_t peer);
bool mailbox_take_interrupt(struct mailbox *m, uint32_t peer);
void mailbox_subscribe(struct mailbox *m, uint32_t peer, enum wire_stream stream, double rate_hz,
                       enum model_sampling mode); /* 0 Hz ends it */
/* The client wants no more samples: the sampler ends the stream, sends what there is and answers then. 0, or -1: too many. */
int mailbox_leave(struct mailbox *m, uint32_t peer, uint32_t id);
/* Set something of the configuration. 0, or -1 with the error: there is no such key, or it does not take that. */
int mailbox_configure(struct mailbox *m, const char *key, const char *value, struct err *e);
/* True if this change would re-enable probing.eval. */
bool mailbox_would_allow_eval(struct mailbox *m, const char *key, const char *value);
/* How often samples are sent, in seconds between two batches; 0: the client does not mind. */
void mailbox_set_batch(struct mailbox *m, uint32_t peer, double batch_s);
/* From now on samples with native frames, or without; until the stream ends. */
void mailbox_set_native(struct mailbox *m, uint32_t peer, bool native);
/* What a stream may cost at most, in percent of a core, while it runs; 0: the client does not mind. */
void mailbox_set_budget(struct mailbox *m, uint32_t peer, enum wire_stream stream, double budget_pct);
/* Batches of samples were lost: begin again at `mark`. */
void mailbox_rollback(struct mailbox *m, uint32_t peer, const struct queue_mark *mark);
enum mailbox_batch {
    MAILBOX_CURRENT = 0,
    MAILBOX_LOST, /* it builds on definitions that were lost */
    MAILBOX_OVER, /* it is of a subscription that the client has ended since: nothing is lost with it */
};

/* What a batch of samples is worth that was made when the client's marks were of `generation`. */
enum mailbox_batch mailbox_judge(struct mailbox *m, uint32_t peer, uint32_t generation);
/* Everything for the server so far, oldest first; the caller owns the items. */
struct queue_item *mailbox_take(struct mailbox *m);
void mailbox_count_dropped(struct mailbox *m, uint64_t samples);
void mailbox_get_status(struct mailbox *m, struct mailbox_status *out);
void mailbox_set_server_bytes(struct mailbox *m, size_t bytes);
void mailbox_stop(struct mailbox *m); /* the sampler's thread is to end */
void mailbox_poke(struct mailbox *m); /* have the sampler wake the server; from any thread */

/* Have the sampler look whether there is something for it that is not in here. Async-signal-safe. */
void mailbox_wake(struct mailbox *m);

void mailbox_nudge(
    struct mailbox *m); /* have the sampler look after what waits for the worker; from any thread */

/* ---- the sampler's side ---- */

#define MAILBOX_FOREVER UINT64_MAX

/* The row that tells of somebody who was refused; whether there is one. */
bool mailbox_take_refusal(struct mailbox *m, struct refusals *out);

/* With the lock held, which is given up meanwhile: until something is wanted, or the monotonic time. May return early. */
void mailbox_sleep(struct mailbox *m, uint64_t until_ns);

/* The client that wanted to leave has been sent its last samples. Nothing when it has come back meanwhile. */
void mailbox_end_samples(struct mailbox *m, uint32_t peer);

/* With the lock held: may that request be answered now? Those whose answers are large are answered one at a time: of each client, and
 * of all who may only look. It is then under way; until an answer was posted, or mailbox_end_snapshot. */
bool mailbox_begin_snapshot(struct mailbox *m, struct mailbox_slot *slot, enum wire_method method);

/* With the lock held: samples of clients that have just subscribed begin at number `n` of the batch. */
void mailbox_set_first(struct mailbox *m, size_t n);

/* Hand an item to the server, or free it: when its client is gone, or too many notifications wait. 0 handed over, -1 not. */
int mailbox_post(struct mailbox *m, struct queue_item *item);

#endif
