/* SPDX-License-Identifier: Apache-2.0 */
/* fake_net_agent: see fake_net_agent.h. WebSocket framing by RFC 6455. */
#include "support/fake_net_agent.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <libwebsockets.h>

struct fake_agent {
    struct fake_options options;
    char dir[64];
    char path[96];
    int listener;
    int connection; /* the one served now; -1 none */
    pthread_t thread;
    pthread_mutex_t lock;
    atomic_bool stop;
    atomic_uint counts[WIRE_METHOD_COUNT];
    atomic_uint connections;
};

static int fake_read_all(int fd, void *buf, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = read(fd, (char *)buf + at, len - at);
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

static int fake_write_all(int fd, const void *buf, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = send(fd, (const char *)buf + at, len - at, MSG_NOSIGNAL);
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

static int fake_write_text(int fd, const char *text) { return fake_write_all(fd, text, strlen(text)); }

/* Reads the request's headers; the WebSocket key into `key`. */
static int fake_read_request(int fd, char *key, size_t cap) {
    char text[4096];
    size_t n = 0;
    while (n + 1 < sizeof text) {
        if (fake_read_all(fd, text + n, 1) != 0)
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
    (void)snprintf(key, cap, "%.*s", (int)strcspn(at, "\r"), at);
    return 0;
}

static int fake_upgrade(int fd, bool with_protocol) {
    char key[128], joined[256], accept[64], answer[512];
    unsigned char hash[20];
    if (fake_read_request(fd, key, sizeof key) != 0)
        return -1;
    int n = snprintf(joined, sizeof joined, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    lws_SHA1((const unsigned char *)joined, (size_t)n, hash);
    lws_b64_encode_string((const char *)hash, 20, accept, sizeof accept);
    (void)snprintf(answer, sizeof answer,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\n%s\r\n",
                   accept, with_protocol ? "Sec-WebSocket-Protocol: " WIRE_PROTOCOL "\r\n" : "");
    return fake_write_text(fd, answer);
}

/* `first` is the first byte of the header: FIN and opcode. */
static int fake_write_frame(int fd, unsigned char first, const void *data, uint64_t announced, size_t len) {
    unsigned char head[10] = {first, 127};
    for (int i = 0; i < 8; i++)
        head[2 + i] = (unsigned char)(announced >> (56 - 8 * i));
    return fake_write_all(fd, head, sizeof head) != 0 ? -1 : fake_write_all(fd, data, len);
}

/* Sends a message, in chunks if it is long. Frees the buffer. */
static int fake_send(int fd, struct strbuf *b) {
    static atomic_uint number;
    int rc = b->failed ? -1 : 0;
    if (rc == 0 && b->len <= WIRE_MAX_MESSAGE) {
        rc = fake_write_frame(fd, 0x82, b->data, b->len, b->len);
    } else if (rc == 0) {
        unsigned id = atomic_fetch_add(&number, 1);
        for (size_t i = 0; rc == 0 && i < wire_chunk_count(b->len); i++) {
            struct strbuf piece;
            strbuf_init(&piece, 0);
            rc = wire_put_chunk(&piece, id, b->data, b->len, i);
            if (rc == 0)
                rc = fake_write_frame(fd, 0x82, piece.data, piece.len, piece.len);
            strbuf_fini(&piece);
        }
    }
    strbuf_fini(b);
    return rc;
}

/* A masked frame of the client. Opcode, or -1; the payload into `b`. */
static int fake_read_frame(int fd, struct strbuf *b) {
    unsigned char head[2], ext[8], mask[4];
    if (fake_read_all(fd, head, 2) != 0)
        return -1;
    uint64_t len = head[1] & 0x7f;
    size_t n_ext = len == 126 ? 2 : len == 127 ? 8 : 0;
    if (fake_read_all(fd, ext, n_ext) != 0 || fake_read_all(fd, mask, 4) != 0)
        return -1;
    if (n_ext)
        len = 0;
    for (size_t i = 0; i < n_ext; i++)
        len = len << 8 | ext[i];
    if (len > WIRE_MAX_MESSAGE)
        return -1;
    for (uint64_t i = 0; i < len; i++) {
        unsigned char c;
        if (fake_read_all(fd, &c, 1) != 0)
            return -1;
        (void)strbuf_addc(b, (char)(c ^ mask[i & 3]));
    }
    return head[0] & 0x0f;
}

static void fake_put_snapshot(const struct fake_agent *a, struct strbuf *b, uint32_t id, bool notify) {
    struct model_frame frames[] = {{MODEL_FRAME_PYTHON, "train_step", "train.py", 10},
                                   {MODEL_FRAME_PYTHON, "<module>", "train.py", 20}};
    struct model_thread thread = {
        .tid = 41, .ident = 1, .name = "MainThread", .native_name = "python", .state = 'R'};
    thread.on_cpu = 1;
    thread.gil = MODEL_GIL_HOLDING;
    thread.cpu_pct = 99.5;
    thread.has_python = true;
    thread.frames = frames;
    thread.n_frames = 2;
    struct model_snapshot small = {
        .timestamp = 1.5, .gil_tid = 41, .cost_us = 12, .threads = &thread, .n_threads = 1};
    small.process = (struct model_process){NAN, 5, 1000, 3, NAN, MODEL_UNKNOWN};
    const struct model_snapshot *s = a->options.snapshot ? a->options.snapshot : &small;
    if (notify)
        (void)wire_put_threads_notify(b, s);
    else
        (void)wire_put_snapshot(b, id, s);
}

static int fake_notify(struct fake_agent *a, int fd, enum wire_stream stream) {
    struct strbuf b;
    strbuf_init(&b, 0);
    if (stream == WIRE_STREAM_THREADS)
        fake_put_snapshot(a, &b, 0, true);
    else if (a->options.batch)
        (void)wire_put_samples_notify(&b, a->options.batch);
    else
        return 0;
    return fake_send(fd, &b);
}

static int fake_answer(struct fake_agent *a, int fd, const struct wire_message *m) {
    struct model_target target = {
        .pid = 41, .uid = 7, .python = "3.11.7", .cmdline = "python train.py", .rank = MODEL_UNKNOWN};
    struct model_status status = {.agent_version = "1", .uptime_s = 3, .clients = 1, .us_per_sample = NAN};
    struct wire_subscribe sub = {.stream = WIRE_STREAM_UNKNOWN};
    uint32_t id = wire_message_id(m);
    enum wire_method method = wire_message_method(m);
    struct strbuf b;
    strbuf_init(&b, 0);
    if (a->options.answer && a->options.answer(a->options.arg, m, &b))
        return fake_send(fd, &b);
    switch (method) {
    case WIRE_HELLO:
        if (a->options.manner == FAKE_OLD)
            (void)wire_put_error(&b, id, WIRE_E_VERSION, "this agent speaks another version");
        else
            (void)wire_put_target(&b, id, &target);
        break;
    case WIRE_THREADS:
        fake_put_snapshot(a, &b, id, false);
        break;
    case WIRE_STATUS:
        (void)wire_put_status(&b, id, &status);
        break;
    case WIRE_SUBSCRIBE:
        (void)wire_get_subscribe(m, &sub, NULL);
        (void)wire_put_ok(&b, id);
        break;
    default:
        (void)wire_put_ok(&b, id);
        break;
    }
    if (fake_send(fd, &b) != 0)
        return -1;
    return sub.stream < WIRE_STREAM_COUNT ? fake_notify(a, fd, sub.stream) : 0;
}

/* 0 to go on, -1 to close. */
static int fake_serve_message(struct fake_agent *a, int fd, const struct strbuf *in) {
    struct wire_message *m = wire_parse(in->data, in->len, NULL);
    if (!m)
        return -1;
    enum wire_method method = wire_message_method(m);
    if (method < WIRE_METHOD_COUNT)
        atomic_fetch_add(&a->counts[method], 1);
    int rc = 0;
    if (a->options.manner == FAKE_JUNK_MESSAGE)
        rc = fake_write_frame(fd, 0x82, "\xc1junk", 5, 5);
    else if (a->options.manner == FAKE_TEXT_MESSAGE)
        rc = fake_write_frame(fd, 0x81, "hello", 5, 5);
    else if (a->options.manner != FAKE_MUTE && (method == WIRE_HELLO || !a->options.mute_after_hello))
        rc = fake_answer(a, fd, m);
    wire_message_free(m);
    return rc;
}

static void fake_serve_websocket(struct fake_agent *a, int fd) {
    unsigned served = 0;
    bool first = atomic_load(&a->connections) == 1;
    for (;;) {
        struct strbuf in;
        strbuf_init(&in, 0);
        int opcode = fake_read_frame(fd, &in);
        int rc = opcode < 0 || opcode == 8 ? -1 : 0;
        if (rc == 0 && opcode == 2)
            rc = fake_serve_message(a, fd, &in);
        strbuf_fini(&in);
        if (rc != 0 || (opcode == 2 && first && ++served == a->options.drop_after))
            return;
    }
}

static void fake_wait_hangup(int fd) {
    char c;
    while (read(fd, &c, 1) > 0)
        ;
}

static void fake_send_fragments(int fd) {
    static char block[64 * 1024];
    int rc = fake_write_frame(fd, 0x02, block, sizeof block, sizeof block);
    while (rc == 0)
        rc = fake_write_frame(fd, 0x00, block, sizeof block, sizeof block);
}

static void fake_serve(struct fake_agent *a, int fd) {
    char key[128];
    switch (a->options.manner) {
    case FAKE_CLOSES:
        return;
    case FAKE_SILENT:
        fake_wait_hangup(fd);
        return;
    case FAKE_GARBAGE:
        (void)fake_write_text(fd, "\x01\x02 what do you want?\r\n\r\n");
        fake_wait_hangup(fd);
        return;
    case FAKE_HTTP:
        (void)fake_read_request(fd, key, sizeof key);
        (void)fake_write_text(fd,
                              "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nhi");
        fake_wait_hangup(fd);
        return;
    case FAKE_REDIRECT:
        (void)fake_read_request(fd, key, sizeof key);
        (void)fake_write_text(
            fd, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n");
        fake_wait_hangup(fd);
        return;
    default:
        break;
    }
    if (fake_upgrade(fd, a->options.manner != FAKE_NO_PROTOCOL) != 0)
        return;
    if (a->options.manner == FAKE_HUGE_LENGTH || a->options.manner == FAKE_HUGE_STALLED) {
        static const char block[256 * 1024];
        (void)fake_write_frame(fd, 0x82, block, 100000000,
                               a->options.manner == FAKE_HUGE_LENGTH ? sizeof block : 1);
        fake_wait_hangup(fd);
    } else if (a->options.manner == FAKE_MANY_FRAGMENTS) {
        fake_send_fragments(fd);
    } else {
        fake_serve_websocket(a, fd);
    }
}

static void *fake_run(void *arg) {
    struct fake_agent *a = arg;
    while (!atomic_load(&a->stop)) {
        int fd = accept(a->listener, NULL, NULL);
        if (fd < 0)
            break;
        (void)pthread_mutex_lock(&a->lock);
        a->connection = fd;
        (void)pthread_mutex_unlock(&a->lock);
        atomic_fetch_add(&a->connections, 1);
        fake_serve(a, fd);
        (void)pthread_mutex_lock(&a->lock);
        a->connection = -1;
        (void)close(fd);
        (void)pthread_mutex_unlock(&a->lock);
    }
    return NULL;
}

struct fake_agent *fake_agent_start(const struct fake_options *options) {
    struct fake_agent *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->options = *options;
    a->connection = -1;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)snprintf(a->dir, sizeof a->dir, "/tmp/fake-agent-XXXXXX");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    a->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!mkdtemp(a->dir) || a->listener < 0)
        abort();
    (void)snprintf(a->path, sizeof a->path, "%s/agent.sock", a->dir);
    (void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s", a->path);
    if (bind(a->listener, (const struct sockaddr *)&sa, sizeof sa) != 0 || listen(a->listener, 8) != 0 ||
        pthread_create(&a->thread, NULL, fake_run, a) != 0)
        abort();
    return a;
}

void fake_agent_stop(struct fake_agent *a) {
    atomic_store(&a->stop, true);
    (void)shutdown(a->listener, SHUT_RDWR);
    (void)pthread_mutex_lock(&a->lock);
    if (a->connection >= 0)
        (void)shutdown(a->connection, SHUT_RDWR);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    (void)close(a->listener);
    (void)unlink(a->path);
    (void)rmdir(a->dir);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

const char *fake_agent_path(const struct fake_agent *a) { return a->path; }

unsigned fake_agent_count(struct fake_agent *a, enum wire_method m) { return atomic_load(&a->counts[m]); }

unsigned fake_agent_connections(struct fake_agent *a) { return atomic_load(&a->connections); }
