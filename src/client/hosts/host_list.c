/* SPDX-License-Identifier: Apache-2.0 */
/* host_list: see host_list.h. */
#include "client/hosts/host_list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define HOST_LIST_TEXT ((size_t)64 * 1024) /* bytes of a text, a file or an answer */
#define HOST_LIST_DIGITS 9
#define HOST_LIST_READ 4096                    /* names, with those that come again */
#define HOST_LIST_ASK_NS (10 * CLOCK_NS_PER_S) /* for nodeset, squeue or kubectl */

void host_list_fini(struct host_list *l) {
    free(l->names);
    *l = (struct host_list){.n = 0};
}

/* ---- expansion ---- */

static int host_list_refuse(const char *text, size_t len, const char *why, struct err *e) {
    char part[64], clean[3 * sizeof part];
    snprintf(part, sizeof part, "%.*s", (int)(len < sizeof part ? len : sizeof part - 1), text);
    text_sanitize(clean, sizeof clean, part);
    return err_set(e, ERR_USAGE, "'%s' is not a list of hosts: %s", clean, why);
}

static int host_list_put(struct host_list *l, const char *name, struct err *e) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/+-";
    size_t len = strlen(name);
    if (len == 0 || name[0] == '-' || name[0] == '@')
        return host_list_refuse(name, len, "a name of a host begins with a letter or a digit", e);
    if (name[strspn(name, allowed)])
        return host_list_refuse(name, len, "a name has letters, digits and ._:@/+- alone", e);
    bool known = false;
    for (size_t i = 0; i < l->n && !known; i++)
        known = strcmp(l->names[i], name) == 0;
    if ((!known && l->n == HOST_LIST_MAX) || l->read++ == HOST_LIST_READ)
        return err_set(e, ERR_USAGE, "more than %d hosts: name some of them", HOST_LIST_MAX);
    if (known)
        return 0;
    if (!l->names && !(l->names = calloc(HOST_LIST_MAX, sizeof *l->names)))
        return err_set(e, ERR_FAILED, "out of memory for the names of hosts");
    memcpy(l->names[l->n++], name, len + 1);
    return 0;
}

/* A number of a range. Its digits; 0: there is none. */
static size_t host_list_read_number(const char *text, const char *end, unsigned long *out) {
    size_t n = 0;
    for (*out = 0; text + n < end && text[n] >= '0' && text[n] <= '9'; n++)
        if (n <= HOST_LIST_DIGITS)
            *out = *out * 10 + (unsigned long)(text[n] - '0');
    return n <= HOST_LIST_DIGITS ? n : 0;
}

static int host_list_branch(struct host_list *l, char *name, size_t len, const char *text, const char *end,
                            struct err *e);

/* All numbers in the brackets from `text` to `close`; what follows them up to `end`. */
static int host_list_count(struct host_list *l, char *name, size_t len, const char *text, const char *close,
                           const char *end, struct err *e) {
    const char *at = text;
    for (;;) {
        unsigned long first, last;
        size_t width = host_list_read_number(at, close, &first), n = width;
        at += width;
        last = first;
        if (width && at < close && *at == '-') {
            n = host_list_read_number(at + 1, close, &last);
            at += 1 + n;
        }
        if (!width || !n || last < first || (at < close && *at != ','))
            return host_list_refuse(text, (size_t)(close - text), "in [] are numbers and ranges: [1-4,7]", e);
        for (unsigned long i = first; i <= last; i++) {
            int digits = snprintf(name + len, HOST_NAME_SIZE - len, "%0*lu", (int)width, i);
            if (digits < 0 || (size_t)digits >= HOST_NAME_SIZE - len)
                return host_list_refuse(text, (size_t)(close - text), "a name is too long", e);
            if (host_list_branch(l, name, len + (size_t)digits, close + 1, end, e) != 0)
                return -1;
        }
        if (at == close)
            return 0;
        at++;
    }
}

/* Add the names that begin with `len` bytes of `name` and go on with the text up to `end`. It nests as deep
 * as a name is long, and ends with HOST_LIST_READ names. */
static int host_list_branch(struct host_list *l, char *name, size_t len, const char *text, const char *end,
                            struct err *e) {
    const char *open = memchr(text, '[', (size_t)(end - text));
    size_t n = (size_t)((open ? open : end) - text);
    if (n >= HOST_NAME_SIZE - len)
        return host_list_refuse(text, (size_t)(end - text), "a name is too long", e);
    memcpy(name + len, text, n);
    len += n;
    name[len] = '\0';
    if (!open)
        return host_list_put(l, name, e);
    const char *close = memchr(open, ']', (size_t)(end - open));
    if (!close)
        return host_list_refuse(text, (size_t)(end - text), "a ']' is missing", e);
    return host_list_count(l, name, len, open + 1, close, end, e);
}

/* The end of the name that begins here: a comma or a space outside of brackets. */
static const char *host_list_end(const char *at) {
    bool inside = false;
    for (; *at && (inside || !strchr(", \t\n", *at)); at++)
        inside = *at == '[' || (inside && *at != ']');
    return at;
}

/* `ask` expands a group. */
static int host_list_read(struct host_list *l, const char *text,
                          int (*ask)(struct host_list *l, const char *group, struct err *e), struct err *e) {
    char name[HOST_NAME_SIZE];
    if (strlen(text) > HOST_LIST_TEXT)
        return err_set(e, ERR_USAGE, "a list of hosts has %zu bytes at most", HOST_LIST_TEXT);
    for (const char *at = text, *end; *at; at = end) {
        end = host_list_end(at);
        if (end == at) {
            end++;
            continue;
        }
        if (*at == '@' && ask && (size_t)(end - at) < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
            if (ask(l, name, e) != 0)
                return -1;
        } else if (host_list_branch(l, name, 0, at, end, e) != 0)
            return -1;
    }
    return 0;
}

int host_list_expand(struct host_list *l, const char *text, struct err *e) {
    return host_list_read(l, text, NULL, e);
}

/* ---- programs that know hosts ---- */

/* In the child. */
static _Noreturn void host_list_exec(const char *const *argv, int out) {
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 2) < 0 || dup2(out, 1) < 0)
        _exit(126);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

/* Wait for it until the time is over. Its status, or -1: it was killed. */
static int host_list_wait(pid_t child, uint64_t until) {
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (clock_mono_ns() > until) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What a program prints, in `out`, cut where that ends. Its exit status; 127: there is no such program;
 * -1: it did not end well, or in time. */
static int host_list_run(const char *const *argv, char *out, size_t size) {
    int fds[2];
    size_t n = 0;
    ssize_t got = 1;
    uint64_t until = clock_mono_ns() + HOST_LIST_ASK_NS, now;
    out[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0)
        host_list_exec(argv, fds[1]);
    close(fds[1]);
    while (child > 0 && got > 0 && n + 1 < size && (now = clock_mono_ns()) < until) {
        struct pollfd p = {.fd = fds[0], .events = POLLIN};
        if (poll(&p, 1, (int)((until - now) / CLOCK_NS_PER_MS) + 1) > 0 &&
            (got = read(fds[0], out + n, size - n - 1)) > 0)
            n += (size_t)got;
    }
    close(fds[0]);
    out[n] = '\0';
    return child < 0 ? -1 : host_list_wait(child, until);
}

/* Add what it prints. `about` is what it was asked for. */
static int host_list_ask(struct host_list *l, const char *const *argv, const char *about, const char *missing,
                         struct err *e) {
    char *text = malloc(HOST_LIST_TEXT);
    char clean[3 * HOST_NAME_SIZE];
    if (!text)
        return err_set(e, ERR_FAILED, "out of memory for the names of hosts");
    text_sanitize(clean, sizeof clean, about);
    int rc = host_list_run(argv, text, HOST_LIST_TEXT);
    size_t before = l->n;
    if (rc == 127)
        rc = err_set(e, ERR_USAGE, "%s: %s: name the hosts by --hosts", clean, missing);
    else if (rc != 0)
        rc = err_set(e, ERR_USAGE, "%s: '%s' has failed: try it in a shell, or name the hosts by --hosts",
                     clean, argv[0]);
    else
        rc = host_list_expand(l, text, e);
    if (rc == 0 && l->n == before)
        rc = err_set(e, ERR_USAGE, "%s has no hosts, as '%s' knows it", clean, argv[0]);
    free(text);
    return rc;
}

static int host_list_ask_nodeset(struct host_list *l, const char *group, struct err *e) {
    const char *const argv[] = {"nodeset", "-e", group, NULL};
    return host_list_ask(l, argv, group, "groups need ClusterShell's nodeset, which is not installed", e);
}

int host_list_add(struct host_list *l, const char *text, struct err *e) {
    return host_list_read(l, text, host_list_ask_nodeset, e);
}

int host_list_add_slurm(struct host_list *l, const char *job, struct err *e) {
    const char *const argv[] = {"squeue", "-h", "-o", "%N", "-j", job, NULL};
    const char *mine = getenv("SLURM_JOB_ID");
    const char *nodes = getenv("SLURM_STEP_NODELIST");
    nodes = nodes ? nodes : getenv("SLURM_JOB_NODELIST");
    if (!job[0] || job[strspn(job, "0123456789_")])
        return err_set(e, ERR_USAGE, "--slurm takes the number of a job, not '%.64s'", job);
    if (nodes && mine && strcmp(mine, job) == 0)
        return host_list_expand(l, nodes, e);
    return host_list_ask(l, argv, job, "squeue is not installed here", e);
}

int host_list_add_pods(struct host_list *l, const char *selector, struct err *e) {
    const char *const argv[] = {"kubectl",
                                "get",
                                "pods",
                                "--selector",
                                selector,
                                "--field-selector",
                                "status.phase=Running",
                                "--output",
                                "jsonpath={.items[*].metadata.name}",
                                NULL};
    /* an empty one is every pod */
    if (!selector[strspn(selector, " \t")])
        return err_set(e, ERR_USAGE, "--k8s takes the labels of the job's pods, such as app=llama");
    return host_list_ask(l, argv, selector, "kubectl is not installed here", e);
}

/* ---- files ---- */

int host_list_add_file(struct host_list *l, const char *path, struct err *e) {
    char *text = calloc(1, HOST_LIST_TEXT + 1), *rest;
    FILE *f = text ? fopen(path, "re") : NULL;
    size_t len = f ? fread(text, 1, HOST_LIST_TEXT, f) : 0, before = l->n;
    int rc = !text             ? err_set(e, ERR_FAILED, "out of memory for the names of hosts")
             : !f || ferror(f) ? err_set_errno(e, ERR_USAGE, errno, "cannot read the hosts of %.200s", path)
             : len == HOST_LIST_TEXT
                 ? err_set(e, ERR_USAGE, "%.200s has more than %zu bytes", path, HOST_LIST_TEXT)
                 : 0;
    if (f)
        fclose(f);
    char *line = rc == 0 ? strtok_r(text, "\n", &rest) : NULL;
    for (; rc == 0 && line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r#")] = '\0';
        /* MPICH: the number of processes; an IPv6 address has more colons */
        char *colon = strchr(line, ':');
        if (colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0')
            *colon = '\0';
        if (line[0])
            rc = host_list_add(l, line, e);
    }
    free(text);
    if (rc == 0 && l->n == before)
        rc = err_set(e, ERR_USAGE, "%.200s names no hosts: it has one a line", path);
    return rc;
}
