/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits_internal: shared by the files of waits.
 */
#ifndef PYSTACK_WAITS_INTERNAL_H
#define PYSTACK_WAITS_INTERNAL_H

#include "base/clock.h"
#include "base/procfs.h"
#include "base/table.h"
#include "pystack/values_internal.h"
#include "pystack/pystack_internal.h"

#define WAITS_WHAT 128
#define WAITS_DETAIL 192
#define WAITS_LABEL 80
#define WAITS_LOCKS 16                      /* locks whose holders are searched for in one snapshot */
#define WAITS_CLAIMS 8                      /* of one thread, to them */
#define WAITS_NAMES_USED 96                 /* of a function */
#define WAITS_LABELS 64                     /* names of objects that are remembered; a power of two */
#define WAITS_FRAMES 128                    /* of one thread, innermost first, that are looked at */
#define WAITS_ASKED_NS (2 * CLOCK_NS_PER_S) /* what others may change is believed for so long */

enum waits_how {
    WAITS_INSIDE,   /* it is in a block of `with` */
    WAITS_ACQUIRES, /* one of its functions refers to the lock and has a name "acquire" */
    WAITS_RELEASED, /* in Condition.wait: blocks around that one do not hold it */
};

/* What a thread has to do with a wanted lock. */
struct waits_claim {
    uint64_t lock;
    enum waits_how how;
};

/* A Python thread of the snapshot. */
struct waits_entry {
    pid_t tid; /* in our numbering */
    char state;
    bool known;  /* what follows */
    bool looked; /* its frames, for locks that others wait for */
    enum model_gil gil;
    uint64_t started, cpu_ns, tstate;
    size_t index; /* among the threads of the snapshot */
    enum model_wait_kind kind;
    uint32_t flags;
    uint64_t pid;
    uint64_t inode;    /* of the socket; 0: it waits for none */
    uint64_t asked_ns; /* when the kernel was asked about it, or about what changes */
    bool changes;      /* the answer may, though the thread does not move */
    uint64_t cost_ns;  /* CPU time that it took */
    uint64_t ident;    /* of the thread whose end it waits for; 0 none */
    uint64_t lock;     /* the Lock or RLock; 0: it waits for none */
    uint64_t guard;    /* and the word in it by which it was recognised */
    uint64_t released; /* a lock that it has let go of as long as it waits: of a Condition */
    uint64_t deadline_ns;
    uint64_t since_ns;
    char what[WAITS_WHAT], detail[WAITS_DETAIL];
    /* what it seems to hold, of the locks that were wanted when `set` was */
    uint64_t set;
    size_t n_claims;
    struct waits_claim claims[WAITS_CLAIMS];
};

/* How a function refers to an object. */
enum waits_place { WAITS_NOWHERE = 0, WAITS_LOCAL, WAITS_ATTRIBUTE, WAITS_GLOBAL };

struct waits_label {
    uint64_t code, object, locals; /* the last a hash of the variables' words; 0: whatever they are */
    enum waits_place place;
    char text[WAITS_LABEL];
};

/* Names that a function uses. */
struct waits_names {
    uint64_t code;
    size_t n;
    uint64_t hashes[WAITS_NAMES_USED];
};

/* Whether a function has the name "acquire". */
struct waits_acquirer {
    uint64_t code;
    bool acquires;
};

struct waits {
    struct waits_entry *now, *before; /* by tid of ours */
    size_t n, n_before, cap;
    uint64_t now_ns;
    /* CPU time of this snapshot for waits: spent, its limit, and since when it is being spent again */
    uint64_t spent_ns, most_ns, entered_ns;
    uint64_t again_ns; /* answers that change are believed for so long */
    size_t left_out;   /* threads for which there was no time */
    /* functions of Python of the thread being looked at, and their places */
    struct model_frame frames[WAITS_FRAMES];
    uint64_t places[WAITS_FRAMES];
    struct values values;
    struct waits_label labels[WAITS_LABELS];
    struct waits_acquirer acquirers[WAITS_LABELS];
    struct waits_names names;
    /* locks whose holders are wanted, and a number for this set of them */
    uint64_t wanted[WAITS_LOCKS], wanted_set;
    size_t n_wanted;
    /* places of the snapshot's threads by number, of the interpreter's by identifier */
    struct table tids, idents;
};

/* A thread being looked at. */
struct waits_case {
    struct pystack *ps;
    struct waits *w;
    struct waits_entry *e;
    const struct model_thread *t;
    const struct model_frame *frames; /* of Python, innermost first */
    const uint64_t *places;           /* their addresses */
    size_t n;
    struct procfs_syscall call;
};

/* True if the time of this snapshot for waits is used up. */
bool waits_is_late(const struct waits *w);

/* The last part of the function's name is `func` and the file's path ends with `file`; NULL: any. */
bool waits_is_in(const struct model_frame *f, const char *file, const char *func);

/* ---- waits_locks.c: objects ---- */

/* The words of a frame: its variables, then its value stack. */
#define WAITS_WORDS 64

struct waits_words {
    uint64_t code;
    size_t n_locals, n_stack;
    uint64_t locals[WAITS_WORDS], stack[WAITS_WORDS];
};

/* Read the words of the frame at `addr`. 0 or -1. */
int waits_read_words(struct pystack *ps, uint64_t addr, struct waits_words *out);

/* `self` of a frame: the object of its first variable; 0 none. */
uint64_t waits_self(const struct waits_case *l, size_t frame);

/* True if the object is of a class of that name, or of one derived from it. */
bool waits_is_a(struct waits *w, uint64_t object, const char *name);

/* How the function of a frame calls the object ("self.lock"); "" if it does not show. */
enum waits_place waits_find_label(struct waits_case *l, size_t frame, uint64_t object, char *buf, size_t cap);

/* How many ranks the process group has that the function of a frame of torch.distributed has in its
 * variable `group`; 0 unknown. */
uint64_t waits_find_group_size(struct waits_case *l, size_t frame);

/* What a thread that sleeps in futex(2) waits for. */
void waits_find_futex(struct waits_case *l);

/* Who holds what, and cycles. */
void waits_find_holders(struct pystack *ps, const struct pystack_thread *threads, size_t n,
                        struct model_snapshot *out);

/* ---- waits_files.c: descriptors and processes ---- */

/* What a thread that waits for descriptor `fd`, to read or to write, waits for. */
void waits_find_fd(struct waits_case *l, int fd, bool writes);

/* What is known of the sockets that threads wait for, from the lists of them. */
void waits_find_sockets(struct pystack *ps);

/* What a thread in another system call than futex waits for. */
void waits_find_call(struct waits_case *l);

/* It waits for process `pid`, in the target's numbering (0: unknown which). */
void waits_put_child(struct waits_case *l, int64_t pid, const char *what);

#endif
