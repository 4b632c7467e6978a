/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liar: a job that lies to its injector. A seccomp filter of its own tells a thread of it of every call by which an agent is brought
 * in, whoever makes it (seccomp_unotify(2)), and that thread answers: a memory file is something else, or at the Nth call
 * the process ends, begins another program, forks or stops. No permission is needed for any of that.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum liar_kind { LIAR_EMPTY, LIAR_FULL, LIAR_SEALED, LIAR_READ_ONLY };
enum liar_act { LIAR_NOTHING, LIAR_EXEC, LIAR_EXIT, LIAR_FORK, LIAR_STOP };

static struct {
    volatile int listener;
    int answer;   /* a descriptor, of which a copy is what memfd_create returns; -1: as it is */
    int number;   /* or this number itself; -1 */
    int exchange; /* a descriptor that takes the place of the memory file again and again; -1 */
    int kind;     /* enum liar_kind: or a memory file of this kind */
    volatile int armed;
    int nth, seen;
    enum liar_act act;
    const char *program;
    char *const *args;
} liar = {.listener = -1, .answer = -1, .number = -1, .exchange = -1};

static const int liar_watched[] = {SYS_mmap, SYS_mprotect, SYS_clone, SYS_clone3, SYS_memfd_create};

#define LIAR_WATCHED (sizeof liar_watched / sizeof liar_watched[0])

/* All of the process's threads, and those that they make. */
static int liar_filter(void) {
    struct sock_filter code[LIAR_WATCHED + 8];
    size_t n = 0;
    /* Memory files that may be sealed are the liar's own. */
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MFD_ALLOW_SEALING, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < LIAR_WATCHED; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)liar_watched[i],
                                                 (unsigned char)(LIAR_WATCHED - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
                            SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

void liar_serve(void);

static void liar_do(void) {
    if (liar.act == LIAR_NOTHING || !liar.armed || ++liar.seen != liar.nth)
        return;
    switch (liar.act) {
    case LIAR_EXEC:
        /* The filter stays, and whoever answers for the next program must not be one of its threads. */
        if (syscall(SYS_fork) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int fd = 0; fd < 3; fd++)
                (void)close(fd);
            liar.act = LIAR_NOTHING;
            liar.answer = liar.number = liar.exchange = -1;
            liar.kind = LIAR_EMPTY;
            liar_serve();
            _exit(0);
        }
        sigset_t none;
        (void)sigemptyset(&none);
        (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
        (void)execv(liar.program, liar.args);
        break;
    case LIAR_EXIT:
        _exit(0);
    case LIAR_FORK:
        if (syscall(SYS_fork) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                (void)pause();
        }
        break;
    case LIAR_STOP:
        (void)kill(getpid(), SIGSTOP);
        break;
    case LIAR_NOTHING:
        break;
    }
}

static atomic_int liar_file = -1; /* what the last memory file is called */

/* The memory file and the other one, by turns, as fast as it goes. */
static void *liar_exchange(void *arg) {
    (void)arg;
    for (int number;;) {
        while ((number = atomic_load(&liar_file)) < 0)
            (void)usleep(100);
        int file = memfd_create("libprobing.so", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        (void)dup2(file, number);
        (void)close(file);
        (void)usleep(50);
        (void)dup2(liar.exchange, number);
    }
    return NULL;
}

/* A memory file as an agent's should be, but for one thing. Its number, the only one. */
static int liar_make(void) {
    char path[32];
    int fd = memfd_create("libprobing.so", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (liar.kind == LIAR_FULL)
        (void)!write(fd, "mine", 4);
    if (liar.kind == LIAR_SEALED)
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW);
    if (liar.kind != LIAR_READ_ONLY)
        return fd;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    (void)close(fd);
    return reading;
}

static void liar_reply(struct seccomp_notif_resp *r, const struct seccomp_notif *q) {
    *r = (struct seccomp_notif_resp){.id = q->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    bool own = liar.kind != LIAR_EMPTY || liar.exchange >= 0;
    if (q->data.nr != SYS_memfd_create || (liar.answer < 0 && liar.number < 0 && !own))
        return;
    r->flags = 0;
    r->val = liar.number >= 0 ? liar.number : own ? liar_make() : dup(liar.answer);
    atomic_store(&liar_file, (int)r->val);
}

/* Answer for ever. It makes none of the watched calls itself: it would wait for its own answer. */
void liar_serve(void) {
    for (;;) {
        struct seccomp_notif q;
        struct seccomp_notif_resp r;
        memset(&q, 0, sizeof q);
        if (ioctl(liar.listener, SECCOMP_IOCTL_NOTIF_RECV, &q) != 0) {
            if (errno == EINTR || errno == ENOENT)
                continue;
            return;
        }
        liar_do();
        liar_reply(&r, &q);
        (void)ioctl(liar.listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
    }
}

static void *liar_thread(void *arg) {
    (void)arg;
    while (liar.listener < 0)
        (void)usleep(1000);
    liar_serve();
    return NULL;
}

void liar_answer(int fd, int number, int exchange, int kind);
void liar_answer(int fd, int number, int exchange, int kind) {
    liar.kind = kind;
    liar.answer = fd;
    liar.number = number;
    liar.exchange = exchange;
}

void liar_act(int act, int nth, const char *program, char *const *args);
void liar_act(int act, int nth, const char *program, char *const *args) {
    liar.act = (enum liar_act)act;
    liar.nth = nth;
    liar.program = program;
    liar.args = args;
}

/* From now on calls are counted. */
void liar_arm(void);
void liar_arm(void) { liar.armed = 1; }

/* Begin to lie; with `thread` 0 whoever calls this has to call liar_serve. 0, or an errno. */
int liar_begin(int thread);
int liar_begin(int thread) {
    pthread_t id;
    int rc = thread ? pthread_create(&id, NULL, liar_thread, NULL) : 0;
    if (rc == 0 && liar.exchange >= 0)
        rc = pthread_create(&id, NULL, liar_exchange, NULL);
    if (rc != 0)
        return rc;
    int listener = liar_filter();
    if (listener < 0)
        return errno;
    liar.listener = listener;
    return 0;
}
