/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach: what attaching to a training job costs the job and the person who waits.
 *
 * Attaches many times, ejecting in between, so that each is an injection; now and then the job is started anew, so that
 * the agent is also loaded and not only woken. Measured are how long the borrowed thread was stopped, the time from
 * nothing to the first snapshot, and from the start of probing-top on a terminal to a painted training function. With
 * --attaches nothing but the program `probing inject` is started, N times, and the time runs from its start to the first
 * snapshot. Prints JSON, with the distributions; with --check the exit status tells whether the budgets were kept.
 *
 * usage: attach [--count N | --attaches N] [--restart N] [--check]     environment: PYTHON, PROBING_BUILD
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/option.h"
#include "base/text.h"
#include "client/session/call.h"
#include "client/output.h"
#include "client/target/target.h"

#define ATTACH_START_TIMEOUT_NS (180 * CLOCK_NS_PER_S)
#define ATTACH_SCREEN_TIMEOUT_NS (10 * CLOCK_NS_PER_S)
#define ATTACH_LEAVE_TIMEOUT_NS (5 * CLOCK_NS_PER_S)
#define ATTACH_BUDGET_STOPPED_MS 10.0
#define ATTACH_BUDGET_SCREEN_MS 400.0
#define ATTACH_BUDGET_STOPPED_P99_MS 5.0
#define ATTACH_BUDGET_SNAPSHOT_MEDIAN_MS 50.0
#define ATTACH_RESTART 2       /* attaches to one job */
#define ATTACH_RESTART_MANY 25 /* of those with --attaches */
#define ATTACH_TAIL_MAX 200
#define ATTACH_TEXT_MAX ((size_t)4 * 1024 * 1024)

struct attach_options {
    long count, attaches, restart;
    bool check, help;
};

static const struct option_def attach_rows[] = {
    {"count", 'n', OPTION_INT, offsetof(struct attach_options, count), "N", "attaches of each kind (50)", 1,
     100000},
    {"attaches", 0, OPTION_INT, offsetof(struct attach_options, attaches), "N",
     "instead: start `probing inject` N times", 1, 100000},
    {"restart", 0, OPTION_INT, offsetof(struct attach_options, restart), "N",
     "start the job anew every N attaches (2; with --attaches 25)", 1, 100000},
    {"check", 0, OPTION_FLAG, offsetof(struct attach_options, check), NULL, "fail when a budget is exceeded",
     0, 0},
    {"help", 'h', OPTION_FLAG, offsetof(struct attach_options, help), NULL, "this help", 0, 0},
    {.name = NULL},
};

/* Figures of one kind, in milliseconds. */
struct attach_series {
    double *ms;
    size_t n;
};

struct attach_bench {
    char build[PATH_MAX];
    char source[PATH_MAX];
    char python[PATH_MAX];
    bool torch;
    pid_t job;
    int job_out;
    struct attach_series stopped, injected, snapshot, screen;
    size_t loaded, reused;
    double load; /* runnable in the last minute, when we began */
};

/* ---- the job ---- */

static int attach_run_quiet(const char *python, const char *code) {
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execlp(python, python, "-c", code, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* The last words of a program, fit to be printed. */
static void attach_keep_tail(char *tail, const struct strbuf *text) {
    size_t n = text->len < ATTACH_TAIL_MAX - 1 ? text->len : ATTACH_TAIL_MAX - 1;
    char raw[ATTACH_TAIL_MAX];
    memcpy(raw, strbuf_str(text) + text->len - n, n);
    raw[n] = '\0';
    (void)text_sanitize(tail, ATTACH_TAIL_MAX, raw);
}

/* Reads what comes until one of `needles` is in it. Milliseconds since `began_ns`, or -1 at the end or the deadline, with
 * the last of what came in `tail`. */
static double attach_read_until(int fd, const char *const *needles, uint64_t began_ns, uint64_t timeout_ns,
                                char *tail) {
    struct strbuf text;
    double ms = -1;
    strbuf_init(&text, ATTACH_TEXT_MAX);
    while (ms < 0 && clock_mono_ns() < began_ns + timeout_ns) {
        char buf[65536];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 100) <= 0)
            continue;
        ssize_t n = read(fd, buf, sizeof buf);
        if (n <= 0 || strbuf_add(&text, buf, (size_t)n) != 0)
            break;
        for (size_t i = 0; needles[i] && ms < 0; i++)
            if (memmem(text.data, text.len, needles[i], strlen(needles[i])))
                ms = (double)(clock_mono_ns() - began_ns) / 1e6;
    }
    attach_keep_tail(tail, &text);
    strbuf_fini(&text);
    return ms;
}

static void attach_end_job(struct attach_bench *b) {
    if (b->job <= 0)
        return;
    (void)kill(-b->job, SIGKILL);
    (void)waitpid(b->job, NULL, 0);
    (void)close(b->job_out);
    b->job = 0;
}

static int attach_start_job(struct attach_bench *b, struct err *e) {
    static const char *const running[] = {"step ", NULL};
    char script[PATH_MAX + 32], tail[ATTACH_TAIL_MAX];
    int out[2];
    attach_end_job(b);
    (void)snprintf(script, sizeof script, "%s/examples/%s", b->source,
                   b->torch ? "train.py" : "train_plain.py");
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    b->job = fork();
    if (b->job == 0) {
        (void)setpgid(0, 0);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execlp(b->python, b->python, script, "--print-every", "1000000", (char *)NULL);
        _exit(127);
    }
    (void)setpgid(b->job, b->job);
    (void)close(out[1]);
    b->job_out = out[0];
    if (attach_read_until(b->job_out, running, clock_mono_ns(), ATTACH_START_TIMEOUT_NS, tail) < 0)
        return err_set(e, ERR_FAILED, "%s %s did not start to train: %s", b->python, script, tail);
    return 0;
}

/* ---- one attach of each kind ---- */

static void attach_note(struct attach_series *s, double ms) { s->ms[s->n++] = ms; }

/* Ejects the job's agent and waits until its socket is gone. */
static int attach_eject(struct attach_bench *b, struct err *e) {
    struct target_address addr = {.pid = b->job};
    int there = target_find_endpoint(&addr, e);
    if (there <= 0)
        return there;
    struct call *c = call_open(&addr, e);
    int rc = c ? call_eject(c, e) : -1;
    call_close(c);
    uint64_t deadline = clock_mono_ns() + ATTACH_LEAVE_TIMEOUT_NS;
    while (rc == 0 && target_find_endpoint(&addr, e) == 1) {
        if (clock_mono_ns() > deadline)
            return err_set(e, ERR_FAILED, "the agent does not leave");
        (void)poll(NULL, 0, 1);
    }
    return rc;
}

static int attach_once(struct attach_bench *b, struct err *e) {
    struct target_address addr = {.pid = b->job};
    struct inject_result result;
    struct model_snapshot snapshot;
    uint64_t began = clock_mono_ns();
    if (target_attach(&addr, 0, &result, e) != 0)
        return -1;
    if (result.already)
        return err_set(e, ERR_FAILED, "an agent was there before: this attach would measure nothing");
    struct call *c = call_open(&addr, e);
    int rc = c ? call_snapshot(c, &snapshot, e) : -1;
    if (rc == 0) {
        attach_note(&b->snapshot, (double)(clock_mono_ns() - began) / 1e6);
        attach_note(&b->stopped, (double)result.stopped_us / 1e3);
        attach_note(&b->injected, (double)result.total_us / 1e3);
        b->reused += result.reused;
        b->loaded += !result.reused;
        model_snapshot_fini(&snapshot);
    }
    call_close(c);
    return rc == 0 ? attach_eject(b, e) : -1;
}

/* Runs `probing PID inject --json`; its figures. */
static int attach_inject_program(struct attach_bench *b, double *stopped_ms, double *total_ms,
                                 struct err *e) {
    char program[PATH_MAX + 32], pid_text[16], text[4096] = "";
    int out[2], status = -1;
    size_t used = 0;
    (void)snprintf(program, sizeof program, "%s/probing", b->build);
    (void)snprintf(pid_text, sizeof pid_text, "%d", (int)b->job);
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl(program, program, pid_text, "inject", "--json", (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    for (ssize_t n; used < sizeof text - 1 && (n = read(out[0], text + used, sizeof text - 1 - used)) != 0;)
        used += n > 0 ? (size_t)n : 0;
    (void)close(out[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    const char *stopped = strstr(text, "\"stopped_us\":"), *total = strstr(text, "\"total_us\":");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !stopped || !total ||
        strstr(text, "\"already\":true"))
        return err_set(e, ERR_FAILED, "%s %s inject did not inject: %s", program, pid_text, text);
    *stopped_ms = strtod(strchr(stopped, ':') + 1, NULL) / 1e3;
    *total_ms = strtod(strchr(total, ':') + 1, NULL) / 1e3;
    return 0;
}

static int attach_program_once(struct attach_bench *b, struct err *e) {
    struct target_address addr = {.pid = b->job};
    struct model_snapshot snapshot;
    double stopped_ms = 0, total_ms = 0;
    uint64_t began = clock_mono_ns();
    if (attach_inject_program(b, &stopped_ms, &total_ms, e) != 0 || target_find_endpoint(&addr, e) != 1)
        return e->text[0] ? -1 : err_set(e, ERR_FAILED, "the agent does not answer");
    struct call *c = call_open(&addr, e);
    int rc = c ? call_snapshot(c, &snapshot, e) : -1;
    if (rc == 0) {
        attach_note(&b->snapshot, (double)(clock_mono_ns() - began) / 1e6);
        attach_note(&b->stopped, stopped_ms);
        attach_note(&b->injected, total_ms);
        model_snapshot_fini(&snapshot);
    }
    call_close(c);
    return rc == 0 ? attach_eject(b, e) : -1;
}

/* The screen program's end: q, then patience, then force. */
static int attach_quit_screen(pid_t pid, int tty) {
    uint64_t deadline = clock_mono_ns() + ATTACH_LEAVE_TIMEOUT_NS;
    int status = 0;
    bool asked = write(tty, "q", 1) == 1;
    while (asked && clock_mono_ns() < deadline) {
        char buf[65536];
        struct pollfd p = {.fd = tty, .events = POLLIN};
        if (poll(&p, 1, 5) > 0 && read(tty, buf, sizeof buf) < 0 && errno != EINTR)
            (void)poll(NULL, 0, 1); /* hung up: it is ending */
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return -1;
}

static int attach_screen_once(struct attach_bench *b, struct err *e) {
    /* Whatever the job does, its main thread is in one of these functions of its script. */
    static const char *const painted[] = {"train_step", "endless", "evaluate", "next_batch", NULL};
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    char program[PATH_MAX + 32], pid_text[16], tail[ATTACH_TAIL_MAX];
    int tty;
    (void)snprintf(program, sizeof program, "%s/probing-top", b->build);
    (void)snprintf(pid_text, sizeof pid_text, "%d", (int)b->job);
    uint64_t began = clock_mono_ns();
    pid_t pid = forkpty(&tty, NULL, NULL, &size);
    if (pid == 0) {
        (void)setenv("TERM", "xterm-256color", 1);
        (void)unsetenv("NO_COLOR");
        (void)execl(program, program, pid_text, (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot start %s on a terminal", program);
    double ms = attach_read_until(tty, painted, began, ATTACH_SCREEN_TIMEOUT_NS, tail);
    int quit = attach_quit_screen(pid, tty);
    (void)close(tty);
    if (ms < 0)
        return err_set(e, ERR_FAILED, "%s %s painted no training function: %s", program, pid_text, tail);
    if (quit != 0)
        return err_set(e, ERR_FAILED, "%s %s did not quit on q", program, pid_text);
    attach_note(&b->screen, ms);
    return attach_eject(b, e);
}

/* ---- figures ---- */

static int attach_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nearest rank; the series is sorted. */
static double attach_quantile(const struct attach_series *s, double q) {
    size_t rank = (size_t)(q * (double)s->n + 0.999999);
    return s->ms[rank == 0 ? 0 : rank > s->n ? s->n - 1 : rank - 1];
}

static void attach_put_series(struct json *j, const char *key, struct attach_series *s) {
    static const double bounds[] = {0.5, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 400, HUGE_VAL};
    size_t seen = 0;
    qsort(s->ms, s->n, sizeof *s->ms, attach_compare);
    json_key(j, key);
    json_object_begin(j);
    json_kv_uint(j, "n", s->n);
    json_kv_number(j, "min", attach_quantile(s, 0), 3);
    json_kv_number(j, "median", attach_quantile(s, 0.5), 3);
    json_kv_number(j, "p90", attach_quantile(s, 0.9), 3);
    json_kv_number(j, "p95", attach_quantile(s, 0.95), 3);
    json_kv_number(j, "p99", attach_quantile(s, 0.99), 3);
    json_kv_number(j, "max", attach_quantile(s, 1), 3);
    json_key(j, "counts"); /* of figures up to le_ms and above the one before */
    json_array_begin(j);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0] && seen < s->n; i++) {
        size_t before = seen;
        while (seen < s->n && s->ms[seen] <= bounds[i])
            seen++;
        if (seen == before)
            continue;
        json_object_begin(j);
        json_kv_number(j, "le_ms", bounds[i] < HUGE_VAL ? bounds[i] : s->ms[s->n - 1], 1);
        json_kv_uint(j, "n", seen - before);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

struct attach_budget {
    const char *name;
    const struct attach_series *series;
    double quantile, most_ms;
};

static bool attach_put_budgets(struct json *j, const struct attach_budget *budgets, size_t n) {
    bool all = true;
    json_key(j, "budgets");
    json_array_begin(j);
    for (size_t i = 0; i < n; i++) {
        double is = attach_quantile(budgets[i].series, budgets[i].quantile);
        json_object_begin(j);
        json_kv_string(j, "of", budgets[i].name);
        json_kv_number(j, "quantile", budgets[i].quantile, 2);
        json_kv_number(j, "at_most_ms", budgets[i].most_ms, 0);
        json_kv_number(j, "is_ms", is, 3);
        json_kv_bool(j, "ok", is <= budgets[i].most_ms);
        json_object_end(j);
        all = all && is <= budgets[i].most_ms;
    }
    json_array_end(j);
    return all;
}

/* Prints the document; whether the budgets were kept. */
static bool attach_report(struct attach_bench *b, bool many) {
    const struct attach_budget usual[] = {
        {"target_stopped_ms", &b->stopped, 0.95, ATTACH_BUDGET_STOPPED_MS},
        {"first_screen_ms", &b->screen, 0.95, ATTACH_BUDGET_SCREEN_MS},
    };
    const struct attach_budget of_many[] = {
        {"target_stopped_ms", &b->stopped, 0.99, ATTACH_BUDGET_STOPPED_P99_MS},
        {"first_snapshot_ms", &b->snapshot, 0.5, ATTACH_BUDGET_SNAPSHOT_MEDIAN_MS},
    };
    struct strbuf out;
    struct json j;
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", 1);
    json_kv_string(&j, "bench", "attach");
    json_kv_string(&j, "job", b->torch ? "examples/train.py" : "examples/train_plain.py");
    json_kv_string(&j, "job_reason", b->torch ? NULL : "no Python with torch: set PYTHON to one");
    json_kv_int(&j, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    json_kv_number(&j, "load_before", b->load,
                   2); /* of others: stopped times are waiting times where it is high */
    if (!many) {
        json_kv_uint(&j, "agent_loaded", b->loaded);
        json_kv_uint(&j, "agent_reused", b->reused);
    }
    attach_put_series(&j, "target_stopped_ms", &b->stopped);
    attach_put_series(&j, "inject_ms", &b->injected);
    attach_put_series(&j, "first_snapshot_ms", &b->snapshot);
    if (!many)
        attach_put_series(&j, "first_screen_ms", &b->screen);
    bool kept = attach_put_budgets(&j, many ? of_many : usual, 2);
    json_object_end(&j);
    (void)strbuf_addc(&out, '\n');
    (void)output_write(NULL, &out, NULL);
    strbuf_fini(&out);
    return kept;
}

/* ---- the run ---- */

static int attach_set_up(struct attach_bench *b, long count, struct err *e) {
    char self[PATH_MAX];
    if (getloadavg(&b->load, 1) != 1)
        b->load = NAN;
    const char *build = getenv("PROBING_BUILD"), *python = getenv("PYTHON");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0 && !build) { /* BUILD/bench/attach */
        self[n] = '\0';
        for (int i = 0; i < 2 && strrchr(self, '/'); i++)
            *strrchr(self, '/') = '\0';
        build = self;
    }
    (void)snprintf(b->build, sizeof b->build, "%s", build ? build : "build");
    (void)snprintf(b->source, sizeof b->source, "%s", PROBING_SOURCE_DIR);
    (void)snprintf(b->python, sizeof b->python, "%s", python && python[0] ? python : "python3");
    b->torch = attach_run_quiet(b->python, "import torch") == 0;
    if (!b->torch && attach_run_quiet(b->python, "pass") != 0)
        return err_set(e, ERR_FAILED, "%s cannot be run: set PYTHON to a Python", b->python);
    struct attach_series *all[] = {&b->stopped, &b->injected, &b->snapshot, &b->screen};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->ms = calloc((size_t)count, sizeof(double));
        if (!all[i]->ms)
            return err_set(e, ERR_FAILED, "out of memory for %ld figures", count);
    }
    char agent[PATH_MAX + 32];
    (void)snprintf(agent, sizeof agent, "%s/libprobing.so", b->build);
    return setenv("PROBING_AGENT", agent, 1) == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory");
}

static int attach_run(struct attach_bench *b, const struct attach_options *o, struct err *e) {
    long count = o->attaches ? o->attaches : o->count;
    long restart = o->restart ? o->restart : o->attaches ? ATTACH_RESTART_MANY : ATTACH_RESTART;
    if (attach_set_up(b, count, e) != 0)
        return -1;
    for (long i = 0; i < count; i++) {
        if (i % restart == 0 && attach_start_job(b, e) != 0)
            return -1;
        if (o->attaches) {
            if (attach_program_once(b, e) != 0)
                return -1;
            continue;
        }
        /* By turns, so that either meets the freshly started job. */
        bool screen_first = i / restart % 2 == 1;
        if ((screen_first && attach_screen_once(b, e) != 0) || attach_once(b, e) != 0 ||
            (!screen_first && attach_screen_once(b, e) != 0))
            return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct attach_options o = {.count = 50};
    struct attach_bench b = {.job = 0};
    struct err e = {0};
    const char *operands[64];
    (void)signal(SIGPIPE, SIG_IGN);
    int n = argc > 64 ? -1 : option_parse(attach_rows, &o, argc, argv, operands, false, &e);
    if (n != 0) {
        (void)fprintf(stderr, "attach: %s\n", e.text[0] ? e.text : "takes no operands");
        return 2;
    }
    if (o.help) {
        struct strbuf out;
        strbuf_init(&out, 0);
        option_format_help(attach_rows, &out);
        (void)output_write(NULL, &out, NULL);
        strbuf_fini(&out);
        return 0;
    }
    int rc = attach_run(&b, &o, &e);
    attach_end_job(&b);
    bool kept = rc == 0 && attach_report(&b, o.attaches > 0);
    if (rc != 0)
        (void)fprintf(stderr, "attach: %s\n", e.text);
    free(b.stopped.ms);
    free(b.injected.ms);
    free(b.snapshot.ms);
    free(b.screen.ms);
    return rc != 0 ? 1 : o.check && !kept ? 1 : 0;
}
