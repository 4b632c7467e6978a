/* SPDX-License-Identifier: Apache-2.0 */
/* agent: see agent.h. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libwebsockets.h>

#include "lies.h"

#define LIAR_STREAM_MS 20
#define LIAR_SLOW_S 8 /* longer than any client waits for an answer */

struct liar {
    const struct liar_options *o;
    struct lies lies;
    int fd;
    bool streams[WIRE_STREAM_COUNT];
    unsigned sent; /* notifications of streams */
    bool sound;    /* this connection only lies in what it says, not in how */
};

static int liar_read(int fd, void *buf, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = read(fd, (char *)buf + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

/* -1: the client is gone, or does not read for longer than it lives. */
static int liar_write(int fd, const void *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, (const char *)data + at, len - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

static int liar_greet(struct liar *a) {
    char text[4096], key[128], joined[256], accept[64], answer[512];
    unsigned char hash[20];
    size_t n = 0;
    while (n + 1 < sizeof text) {
        if (liar_read(a->fd, text + n, 1) != 0)
            return -1;
        text[++n] = '\0';
        if (n >= 4 && strcmp(text + n - 4, "\r\n\r\n") == 0)
            break;
    }
    const char *at = strcasestr(text, "sec-websocket-key:");
    if (!at)
        return -1;
    at += strlen("sec-websocket-key:");
    at += strspn(at, " ");
    (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(at, "\r"), at);
    int joined_len = snprintf(joined, sizeof joined, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    lws_SHA1((const unsigned char *)joined, (size_t)joined_len, hash);
    lws_b64_encode_string((const char *)hash, 20, accept, sizeof accept);
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: " WIRE_PROTOCOL "\r\n\r\n",
                   accept);
    size_t len = strlen(answer);
    if (!a->sound && lies_chance(&a->lies, 20)) /* another protocol's answer, or half of one */
        answer[lies_below(&a->lies, len)] = (char)lies_below(&a->lies, 256);
    return liar_write(a->fd, answer, len);
}

static int liar_frame(struct liar *a, unsigned char first, const void *data, uint64_t said, size_t len) {
    unsigned char head[10] = {first, (unsigned char)said};
    size_t n = 2;
    if (said > 125) {
        head[1] = 127;
        for (int i = 0; i < 8; i++)
            head[n++] = (unsigned char)(said >> (56 - 8 * i));
    }
    return liar_write(a->fd, head, n) == 0 ? liar_write(a->fd, data, len) : -1;
}

/* A message as it ought to be sent. */
static int liar_message(struct liar *a, const struct strbuf *b) {
    static _Atomic unsigned number;
    if (b->failed || !b->len)
        return 0;
    if (b->len <= WIRE_MAX_MESSAGE)
        return liar_frame(a, 0x82, b->data, b->len, b->len);
    unsigned id = atomic_fetch_add(&number, 1);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < wire_chunk_count(b->len); i++) {
        struct strbuf piece;
        strbuf_init(&piece, 0);
        rc = wire_put_chunk(&piece, id, b->data, b->len, i);
        if (rc == 0)
            rc = liar_frame(a, 0x82, piece.data, piece.len, piece.len);
        strbuf_fini(&piece);
    }
    return rc;
}

/* Chunks of a message that is never whole: out of order, too many, of two messages, longer than they may be. */
static int liar_chunks(struct liar *a, const struct strbuf *b) {
    static const char *const keys[] = {"message", "total", "index", "data"};
    struct lies *l = &a->lies;
    int rc = 0;
    for (uint64_t n = 1 + lies_below(l, 6), i = 0; rc == 0 && i < n; i++) {
        const uint64_t totals[] = {
            b->len, b->len * 4, WIRE_MAX_ASSEMBLED, WIRE_MAX_ASSEMBLED + 1, UINT32_MAX, UINT64_MAX, 0};
        char head[64];
        struct strbuf piece;
        size_t len = b->len < 4096 ? b->len : 4096;
        uint64_t numbers[] = {1 + lies_below(l, 2), totals[lies_below(l, 7)],
                              lies_chance(l, 700) ? i : lies_below(l, 1000)};
        strbuf_init(&piece, 0);
        (void)strbuf_add(&piece,
                         "\x93\x02\xa5"
                         "chunk\x84",
                         9);
        for (size_t k = 0; k < 3; k++) {
            (void)snprintf(head, sizeof head, "%c%s", (char)(0xa0 | strlen(keys[k])), keys[k]);
            (void)strbuf_add(&piece, head, strlen(head));
            (void)strbuf_addc(&piece, (char)0xcf);
            for (int shift = 56; shift >= 0; shift -= 8)
                (void)strbuf_addc(&piece, (char)(numbers[k] >> shift));
        }
        (void)strbuf_add(&piece,
                         "\xa4"
                         "data\xc6\0\0",
                         8);
        (void)strbuf_addc(&piece, (char)(len >> 8));
        (void)strbuf_addc(&piece, (char)len);
        (void)strbuf_add(&piece, b->data, len);
        rc = liar_frame(a, 0x82, piece.data, piece.len, piece.len);
        strbuf_fini(&piece);
    }
    return rc;
}

static int liar_slowly(struct liar *a, const struct strbuf *b) {
    struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    unsigned char head[4] = {0x82, 126, (unsigned char)(b->len >> 8), (unsigned char)b->len};
    if (liar_write(a->fd, head, sizeof head) != 0)
        return -1;
    for (size_t i = 0; i < b->len && i < LIAR_SLOW_S * 100; i++) {
        (void)nanosleep(&pause, NULL);
        if (liar_write(a->fd, b->data + i, 1) != 0)
            return -1;
    }
    return -1;
}

/* An answer, by a way that is none. 0, or -1: the connection is over. */
static int liar_badly(struct liar *a, struct strbuf *b) {
    struct lies *l = &a->lies;
    char junk[200];
    int rc;
    switch (lies_below(l, 13)) {
    case 0: /* half, and the end */
        (void)liar_frame(a, 0x82, b->data, b->len, (size_t)lies_below(l, b->len + 1));
        return -1;
    case 1: /* the end */
        return -1;
    case 2: /* twice */
        return liar_message(a, b) == 0 ? liar_message(a, b) : -1;
    case 3: /* for somebody else, then for us */
        b->data[2 < b->len ? 2 : 0] ^= 0x40;
        return liar_message(a, b);
    case 4:
        return liar_chunks(a, b);
    case 5: /* any bytes, as a frame or for one */
        for (size_t i = 0; i < sizeof junk; i++)
            junk[i] = (char)lies_below(l, 256);
        return lies_chance(l, 500) ? liar_frame(a, 0x82, junk, sizeof junk, sizeof junk)
                                   : liar_write(a->fd, junk, sizeof junk);
    case 6: /* longer than anything may be */
        return liar_frame(a, 0x82, b->data, lies_chance(l, 500) ? UINT64_MAX : WIRE_MAX_MESSAGE + 1,
                          b->len < 100 ? b->len : 100);
    case 7: /* a text, a continuation of nothing, a reserved opcode, reserved bits */
        return liar_frame(a, (const unsigned char[]){0x81, 0x80, 0x83, 0xf2, 0x8f}[lies_below(l, 5)], b->data,
                          b->len, b->len);
    case 8: /* in fragments, with a ping between */
        rc = liar_frame(a, 0x02, b->data, b->len / 2, b->len / 2);
        rc = rc == 0 ? liar_frame(a, 0x89, "ping", 4, 4) : -1;
        return rc == 0 ? liar_frame(a, 0x80, b->data + b->len / 2, b->len - b->len / 2, b->len - b->len / 2)
                       : -1;
    case 9: /* many pings, then the answer */
        for (rc = 0; rc == 0 && lies_chance(l, 980);)
            rc = liar_frame(a, 0x89, "ping", 4, 4);
        return rc == 0 ? liar_message(a, b) : -1;
    case 10: /* notifications that nobody asked for */
        for (rc = 0; rc == 0 && lies_chance(l, 800);) {
            struct strbuf n;
            strbuf_init(&n, 0);
            lies_notify(l, (enum wire_stream)lies_below(l, WIRE_STREAM_COUNT), &n);
            rc = liar_message(a, &n);
            strbuf_fini(&n);
        }
        return rc == 0 ? liar_message(a, b) : -1;
    case 11: /* masked, which only a client does */
        return liar_write(a->fd, "\x82\x85\1\2\3\4junkk", 11);
    default: /* a close frame with a reason that is none */
        (void)liar_frame(a, 0x88, "\xff\xff\x1b[2J", 6, 6);
        return lies_chance(l, 500) ? 0 : -1;
    }
}

static int liar_answer(struct liar *a, const struct wire_message *m) {
    struct wire_subscribe sub;
    struct strbuf b;
    uint64_t before = a->lies.said;
    enum wire_method method = wire_message_method(m);
    strbuf_init(&b, 0);
    lies_answer(&a->lies, m, &b);
    int rc = 0;
    if (a->o->slow_ppm && lies_below(&a->lies, 1000000) < a->o->slow_ppm) {
        rc = b.len < 60000 && lies_chance(&a->lies, 500) ? liar_slowly(a, &b) : 0; /* or never */
    } else if (!b.failed && b.len && !a->sound && lies_chance(&a->lies, method == WIRE_HELLO ? 20 : 100)) {
        rc = liar_badly(a, &b);
    } else {
        rc = liar_message(a, &b);
    }
    strbuf_fini(&b);
    if (method == WIRE_SUBSCRIBE && wire_get_subscribe(m, &sub, NULL) == 0)
        a->streams[sub.stream] = true;
    if (method == WIRE_UNSUBSCRIBE)
        memset(a->streams, 0, sizeof a->streams);
    if (a->o->said)
        atomic_fetch_add(a->o->said, a->lies.said - before);
    return rc;
}

static int liar_stream(struct liar *a) {
    int rc = 0;
    for (int s = 0; s < WIRE_STREAM_COUNT && rc == 0; s++) {
        if (!a->streams[s])
            continue;
        struct strbuf b;
        uint64_t before = a->lies.said;
        strbuf_init(&b, 0);
        lies_notify(&a->lies, (enum wire_stream)s, &b);
        rc = liar_message(a, &b);
        strbuf_fini(&b);
        if (a->o->said)
            atomic_fetch_add(a->o->said, a->lies.said - before);
    }
    return rc;
}

/* The next frame of the client: its opcode, -1: it has gone. */
static int liar_frame_read(int fd, struct strbuf *b) {
    unsigned char head[2], ext[8], mask[4];
    if (liar_read(fd, head, 2) != 0)
        return -1;
    uint64_t len = head[1] & 0x7f;
    size_t n_ext = len == 126 ? 2 : len == 127 ? 8 : 0;
    if (liar_read(fd, ext, n_ext) != 0 || liar_read(fd, mask, 4) != 0)
        return -1;
    if (n_ext)
        len = 0;
    for (size_t i = 0; i < n_ext; i++)
        len = len << 8 | ext[i];
    char *data = len <= WIRE_MAX_MESSAGE ? malloc((size_t)len + 1) : NULL;
    int rc = data && liar_read(fd, data, (size_t)len) == 0 ? head[0] & 15 : -1;
    for (size_t i = 0; rc >= 0 && i < len; i++)
        data[i] = (char)(data[i] ^ mask[i & 3]);
    if (rc >= 0)
        (void)strbuf_add(b, data, (size_t)len);
    free(data);
    return rc;
}

static int liar_turn(struct liar *a) {
    struct strbuf in;
    bool streaming = a->streams[0] || a->streams[1];
    struct pollfd p = {.fd = a->fd, .events = POLLIN};
    if (streaming && poll(&p, 1, a->o->stream_ms ? (int)a->o->stream_ms : LIAR_STREAM_MS) == 0)
        return liar_stream(a);
    if (!streaming && a->o->hangup_ms && poll(&p, 1, (int)a->o->hangup_ms) == 0)
        return -1;
    strbuf_init(&in, 0);
    int rc = 0, opcode = liar_frame_read(a->fd, &in);
    if (opcode < 0 || opcode == 8) {
        rc = -1;
    } else if (opcode == 9) {
        rc = liar_frame(a, 0x8a, in.data ? in.data : "", in.len, in.len);
    } else if (opcode == 2) {
        struct wire_message *m = wire_parse(in.data, in.len, NULL);
        rc = m && wire_message_type(m) == WIRE_REQUEST ? liar_answer(a, m) : -1;
        wire_message_free(m);
    }
    strbuf_fini(&in);
    return rc;
}

void liar_talk(const struct liar_options *o, uint64_t number, int fd) {
    struct liar a = {.o = o, .fd = fd};
    struct timeval patience = {.tv_sec = LIAR_SLOW_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    lies_init(&a.lies, o->seed ^ number << 32, o->pid, o->uid, o->paths);
    a.sound = lies_chance(&a.lies, 800);
    a.lies.plausible = a.sound && lies_chance(&a.lies, 850);
    if (liar_greet(&a) == 0)
        while (liar_turn(&a) == 0)
            continue;
    lies_fini(&a.lies);
    (void)close(fd);
}

struct liar_task {
    const struct liar_options *o;
    uint64_t number;
    int fd;
};

static void *liar_task_run(void *arg) {
    struct liar_task task = *(struct liar_task *)arg;
    free(arg);
    liar_talk(task.o, task.number, task.fd);
    return NULL;
}

void liar_serve(const struct liar_options *o, int fd) {
    uint64_t number = 0;
    for (int client; (client = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        struct liar_task *task = malloc(sizeof *task);
        pthread_attr_t attr;
        pthread_t thread;
        if (!task) {
            (void)close(client);
            continue;
        }
        *task = (struct liar_task){o, number++, client};
        (void)pthread_attr_init(&attr);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        (void)pthread_attr_setstacksize(&attr, (size_t)512 * 1024);
        if (pthread_create(&thread, &attr, liar_task_run, task) != 0) {
            (void)close(client);
            free(task);
        }
        (void)pthread_attr_destroy(&attr);
    }
}

/* ---- for Python ---- */

static struct liar_options liar_own;
static int liar_listener;

static void *liar_run(void *arg) {
    liar_serve(arg, liar_listener);
    return NULL;
}

int liar_start(int fd, uint64_t seed, int64_t pid, int64_t uid, const char *paths, unsigned slow_ppm,
               const char *counter) {
    const char **list = calloc(256, sizeof *list);
    char *rest = strdup(paths);
    int file = open(counter, O_RDWR | O_CLOEXEC);
    void *said =
        file >= 0 ? mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    pthread_t thread;
    size_t n = 0;
    if (!list || !rest)
        return -1;
    for (char *line; n < 255 && (line = strsep(&rest, "\n"));)
        if (line[0])
            list[n++] = line;
    liar_own =
        (struct liar_options){.seed = seed, .pid = pid, .uid = uid, .paths = list, .slow_ppm = slow_ppm};
    liar_own.said = said == MAP_FAILED ? NULL : (_Atomic uint64_t *)said;
    liar_listener = fd;
    return pthread_create(&thread, NULL, liar_run, &liar_own) == 0 ? 0 : -1;
}
