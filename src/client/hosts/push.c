/* SPDX-License-Identifier: Apache-2.0 */
/* push: see push.h. */
#include "client/hosts/push.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/hosts/relay_child.h"
#include "client/target/target.h"

#define PUSH_FILE "probing-relay"
#define PUSH_FILE_MAX ((size_t)16 * 1024 * 1024)
#define PUSH_MARK "probing-push "           /* begins the lines of the script */
#define PUSH_SAID_MAX ((size_t)64 * 1024)   /* of a host */
#define PUSH_STILL_NS (20 * CLOCK_NS_PER_S) /* without a byte in either direction */
#define PUSH_POLL_MS 50

/* A host that is worked on. */
struct push_slot {
    struct push_host *host; /* NULL: free */
    struct relay_child child;
    struct strbuf said;
    size_t read_to;  /* of what it said */
    const char *out; /* what is sent: the script, then the file */
    size_t out_len, out_from;
    uint64_t moved_ns;
    bool is_ending;
};

struct push_work {
    const struct push_file *file;
    struct relay_via via;
    struct strbuf script;
    struct utsname here;
    struct push_slot slots[PUSH_TOGETHER];
};

/* ---- the file ---- */

int push_file_read(struct push_file *f, struct err *e) {
    char path[PATH_MAX];
    strbuf_init(&f->bytes, PUSH_FILE_MAX);
    if (target_find_ours(PUSH_FILE, path, sizeof path) != 0)
        return err_set(e, ERR_FAILED,
                       "the file " PUSH_FILE
                       " is missing: it belongs beside this program; build it (make), or "
                       "install probing on each host");
    if (strbuf_read_file(&f->bytes, path) != 0 || f->bytes.failed || f->bytes.len == 0)
        return err_set(e, ERR_FAILED, "cannot read %s", path);
    sha256_text(f->bytes.data, f->bytes.len, f->sum);
    snprintf(f->id, sizeof f->id, "%.*s", PUSH_ID, f->sum);
    return 0;
}

void push_file_fini(struct push_file *f) { strbuf_fini(&f->bytes); }

/* ---- what the host runs ---- */

void push_put_start(const struct push_file *f, struct strbuf *script) {
    strbuf_addf(script, "f=$HOME/.cache/probing/%s/" PUSH_FILE "; [ ! -x \"$f\" ] || exec \"$f\" --stdio; ",
                f->id);
}

/* One line: a shell may have read ahead of what it runs. It is over before the file comes, which is sent
 * only when it was asked for. */
static void push_put_script(const struct push_file *f, struct strbuf *script) {
    strbuf_addf(
        script,
        "umask 077; d=\"$HOME/.cache/probing/%s\"; f=\"$d/" PUSH_FILE "\"; t=\"$d/new.$$\"; "
        "say() { echo; echo \"" PUSH_MARK "$*\"; }; "
        "sum() { sha256sum <\"$1\" | cut -c 1-64; }; "
        "if [ -z \"$HOME\" ]; then say failed 'HOME is not set'; "
        "elif ! command -v sha256sum >/dev/null; then say failed 'there is no sha256sum'; "
        "elif [ -x \"$f\" ] && [ \"$(sum \"$f\")\" = %s ]; then say there; "
        "elif ! e=$(mkdir -p \"$d\" 2>&1 && chmod 700 \"$HOME/.cache/probing\" \"$d\" 2>&1); then say failed "
        "\"$e\"; "
        "else say ready \"$(uname -s -m)\"; r=; "
        "if ! head -c %zu >\"$t\"; then r='the file cannot be written'; "
        "elif [ \"$(sum \"$t\")\" != %s ]; then r='what has arrived is not what was sent'; "
        "elif ! e=$(chmod 700 \"$t\" 2>&1 && \"$t\" --version 2>&1 >/dev/null && mv -f \"$t\" \"$f\" 2>&1); "
        "then "
        "r=\"it cannot run there: $e\"; fi; "
        "rm -f \"$t\"; if [ -n \"$r\" ]; then say failed \"$r\"; else say done \"$(sum \"$f\")\"; fi; fi\n",
        f->id, f->sum, f->bytes.len, f->sum);
}

/* ---- one host ---- */

static void push_end(struct push_slot *s, bool hard) {
    s->is_ending = true;
    relay_child_end(&s->child, hard);
}

static void push_fail(struct push_slot *s, const char *why) {
    char name[128], clean[384];
    text_sanitize(name, sizeof name, s->host->name);
    text_sanitize(clean, sizeof clean, why);
    s->host->rc = err_set(&s->host->error, ERR_FAILED, "%s: %s", name, clean);
    push_end(s, true);
}

static void push_begin(struct push_work *w, struct push_host *host) {
    struct push_slot *s = w->slots;
    struct relay_words words;
    while (s->host)
        s++;
    *s = (struct push_slot){.host = host, .moved_ns = clock_mono_ns()};
    strbuf_init(&s->said, PUSH_SAID_MAX);
    s->out = w->script.data;
    s->out_len = w->script.len;
    host->rc = relay_via_words(&w->via, host->name, &words, &host->error);
    if (host->rc == 0 && words.n == 0)
        host->rc = err_set(&host->error, ERR_USAGE, "--push is for other hosts: this one has the file");
    if (host->rc == 0 && !words.script)
        host->rc =
            err_set(&host->error, ERR_USAGE, "%s: --push needs a shell there: {relay} in --via", host->name);
    if (host->rc == 0)
        host->rc = relay_child_start(&s->child, words.words, NULL, &host->error);
    if (host->rc != 0) {
        strbuf_fini(&s->said);
        s->host = NULL;
    }
}

/* A line of the script. */
static void push_on_line(struct push_work *w, struct push_slot *s, char *line) {
    char wanted[sizeof w->here.sysname + sizeof w->here.machine + 2], why[256];
    if (strcmp(line, "there") == 0) {
        s->host->was_there = true;
        push_end(s, false);
    } else if (strncmp(line, "failed ", 7) == 0) {
        push_fail(s, line + 7);
    } else if (strncmp(line, "ready ", 6) == 0) {
        snprintf(wanted, sizeof wanted, "%s %s", w->here.sysname, w->here.machine);
        if (strcmp(line + 6, wanted) != 0) {
            snprintf(why, sizeof why, "it is %.80s, and our file is for %.80s: install probing there",
                     line + 6, wanted);
            push_fail(s, why);
            return;
        }
        s->out = w->file->bytes.data;
        s->out_len = w->file->bytes.len;
        s->out_from = 0;
    } else if (strncmp(line, "done ", 5) == 0 && strcmp(line + 5, w->file->sum) == 0) {
        push_end(s, false);
    } else {
        push_fail(s, "its file is another than what was sent");
    }
}

/* Lines of the script among what else there is to read: a login shell may greet. */
static void push_read(struct push_work *w, struct push_slot *s) {
    char data[4096];
    ssize_t n = read(s->child.out, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0 && strbuf_add(&s->said, data, (size_t)n) == 0) {
        s->moved_ns = clock_mono_ns();
        for (char *end;
             !s->is_ending && (end = memchr(s->said.data + s->read_to, '\n', s->said.len - s->read_to));) {
            char *line = s->said.data + s->read_to;
            *end = '\0';
            s->read_to = (size_t)(end + 1 - s->said.data);
            if (strncmp(line, PUSH_MARK, strlen(PUSH_MARK)) == 0)
                push_on_line(w, s, line + strlen(PUSH_MARK));
        }
        return;
    }
    char why[256];
    relay_child_read_errors(&s->child);
    relay_child_put_errors(&s->child, why, sizeof why);
    push_fail(s, n > 0 ? "it says too much" : why[0] ? why : "the connection has ended");
}

static void push_write(struct push_slot *s) {
    ssize_t n = write(s->child.in, s->out + s->out_from, s->out_len - s->out_from);
    if (n > 0) {
        s->out_from += (size_t)n;
        s->moved_ns = clock_mono_ns();
    } else if (n < 0 && errno == EPIPE) {
        s->out_from = s->out_len; /* its output says why */
    }
}

static void push_step(struct push_work *w, struct push_slot *s, const struct pollfd *fds) {
    if (!s->is_ending && fds[1].revents && relay_child_read_errors(&s->child) != 0)
        push_fail(s, "it prints too many errors");
    if (!s->is_ending && fds[2].revents)
        push_write(s);
    if (!s->is_ending && fds[0].revents)
        push_read(w, s);
    if (!s->is_ending && clock_mono_ns() - s->moved_ns > PUSH_STILL_NS)
        push_fail(s, "it does not answer");
    if (s->is_ending && relay_child_is_over(&s->child)) {
        strbuf_fini(&s->said);
        s->host = NULL;
    }
}

/* ---- all of them ---- */

static size_t push_wait(struct push_work *w) {
    struct pollfd fds[3 * PUSH_TOGETHER];
    size_t busy = 0;
    for (size_t i = 0; i < PUSH_TOGETHER; i++) {
        const struct push_slot *s = &w->slots[i];
        bool is_open = s->host && !s->is_ending;
        fds[3 * i] = (struct pollfd){.fd = is_open ? s->child.out : -1, .events = POLLIN};
        fds[3 * i + 1] = (struct pollfd){.fd = is_open ? s->child.errors : -1, .events = POLLIN};
        fds[3 * i + 2] =
            (struct pollfd){.fd = is_open && s->out_from < s->out_len ? s->child.in : -1, .events = POLLOUT};
    }
    if (poll(fds, sizeof fds / sizeof fds[0], PUSH_POLL_MS) < 0)
        memset(fds, 0, sizeof fds);
    for (size_t i = 0; i < PUSH_TOGETHER; i++) {
        if (w->slots[i].host)
            push_step(w, &w->slots[i], &fds[3 * i]);
        busy += w->slots[i].host != NULL;
    }
    return busy;
}

void push_run(const struct push_file *f, const struct relay_via *via, struct push_host *hosts, size_t n) {
    struct push_work w = {.file = f, .via = *via};
    w.via.relay = NULL;
    strbuf_init(&w.script, 0);
    push_put_script(f, &w.script);
    uname(&w.here);
    for (size_t next = 0, busy = 0; next < n || busy > 0; busy = push_wait(&w))
        for (; next < n && busy < PUSH_TOGETHER; next++, busy++)
            push_begin(&w, &hosts[next]);
    strbuf_fini(&w.script);
}
