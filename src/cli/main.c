/* SPDX-License-Identifier: Apache-2.0 */
/* main: `probing`, one verb a run. Prints the verb's output, or one line on stderr. */
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/cli.h"
#include "client/about.h"
#include "client/complete.h"
#include "client/fleet/fleet_open.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/ranks_there.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/symbols/symbols.h"
#include "client/target/target.h"
#include "client/target/tcp.h"
#include "relay/relay.h"
#include "commit.h"

#define MAIN_OUTPUT_MAX ((size_t)144 * 1024 * 1024)

/* The targets with the ranks of a job in place of its name. */
struct main_targets {
    struct option_list list;
    char pids[OPTION_LIST_MAX][16];
    struct rank_there there[RANKS_THERE_MAX]; /* ranks on other hosts */
    size_t n_there;
    /* the address of a target of the list that has one already; NULL */
    const struct target_address *addrs[OPTION_LIST_MAX];
};

static int main_add_pid(struct main_targets *t, pid_t pid, struct err *e) {
    if (t->list.n == OPTION_LIST_MAX)
        return err_set(e, ERR_USAGE, "more than %d targets: job:NAME/0-7 is a part of a job",
                       OPTION_LIST_MAX);
    snprintf(t->pids[t->list.n], sizeof t->pids[0], "%d", (int)pid);
    t->list.items[t->list.n] = t->pids[t->list.n];
    t->list.n++;
    return 0;
}

static int main_add_job(struct main_targets *t, const char *text, bool one, struct err *e) {
    pid_t *pids, pid;
    if (one)
        return jobs_here_resolve_one(text, &pid, e) == 0 ? main_add_pid(t, pid, e) : -1;
    ssize_t n = jobs_here_resolve(text, &pids, e);
    int rc = n < 0 ? -1 : 0;
    for (ssize_t i = 0; rc == 0 && i < n; i++)
        rc = main_add_pid(t, pids[i], e);
    free(pids);
    return rc;
}

/* The ranks of a job on other hosts: sockets that lead there as long as this program runs. */
static int main_add_there(struct main_targets *t, const char *text, const struct cli_line *line,
                          const struct fleet_reach *reach, struct err *e) {
    size_t left = RANKS_THERE_MAX - t->n_there;
    left = left < OPTION_LIST_MAX - t->list.n ? left : OPTION_LIST_MAX - t->list.n;
    ssize_t n = cli_open_there(text, reach, !line->options->readonly, t->there + t->n_there,
                               line->verb->many_targets ? left : 1, e);
    for (ssize_t i = 0; i < n; i++) {
        const struct rank_there *there = &t->there[t->n_there++];
        t->addrs[t->list.n] = &there->addr;
        t->list.items[t->list.n++] = there->target;
    }
    return n < 0 ? -1 : 0;
}

static int main_expand(struct main_targets *t, const struct cli_line *line, struct err *e) {
    struct fleet_reach reach;
    int rc = fleet_reach_init(&reach, &line->options->reach, relay_serve, e);
    for (size_t i = 0; rc == 0 && i < line->targets.n; i++) {
        const char *text = line->targets.items[i];
        if (jobs_is_target(text))
            rc = reach.hosts.n ? main_add_there(t, text, line, &reach, e)
                               : main_add_job(t, text, !line->verb->many_targets, e);
        else if (t->list.n == OPTION_LIST_MAX)
            rc = err_set(e, ERR_USAGE, "more than %d targets", OPTION_LIST_MAX);
        else
            t->list.items[t->list.n++] = text;
    }
    fleet_reach_fini(&reach);
    return rc;
}

/* True if the verb reads the tables of a job on other hosts by itself. */
static bool main_reads_there(const struct cli_line *line) {
    const struct fleet_reach_options *reach = &line->options->reach;
    if (line->verb->reads_there && line->targets.n == 1 && fleet_open_is_database(line->targets.items[0]))
        return true;
    return line->verb->reads_there && line->targets.n == 1 && jobs_is_target(line->targets.items[0]) &&
           fleet_reach_has_hosts(reach);
}

/* Resolve the targets and run the verb. */
static int main_run_verb(const struct cli_line *line, struct strbuf *out, struct err *e) {
    tcp_set_token(line->options->token);
    if (line->targets.n == 0 || line->verb->takes_job || main_reads_there(line))
        return line->verb->exec(line->options, NULL, out, e);
    struct main_targets *t = calloc(1, sizeof *t);
    int rc = t ? main_expand(t, line, e) : err_set(e, ERR_FAILED, "out of memory for the targets");
    size_t n = t ? t->list.n : 0;
    struct target_address *addr = calloc(n + 1, sizeof *addr);
    if (rc == 0 && !addr)
        rc = err_set(e, ERR_FAILED, "out of memory for %zu targets", n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (t->addrs[i])
            addr[i] = *t->addrs[i];
        else
            rc = target_resolve(t->list.items[i], &addr[i], e);
    }
    if (rc == 0) {
        line->options->targets = t->list;
        rc = line->verb->exec(line->options, addr, out, e);
    }
    free(addr);
    free(t);
    return rc;
}

/* As of an export (client/export/export.c). */
static void main_say_written(const char *path) {
    struct stat st;
    char size[32], clean[PATH_MAX];
    text_sanitize(clean, sizeof clean, path);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    text_human_bytes(size, sizeof size, (double)st.st_size);
    output_say("probing: wrote %s (%s)\n", clean, size);
}

/* What the line asks for, to standard output or the file of --output. The exit status, or -1. */
static int main_run_line(const struct cli_line *line, struct strbuf *out, struct err *e) {
    struct err dropped;
    const char *path = line->options && !line->help ? line->options->written : NULL;
    if (path && output_redirect(path, e) != 0)
        return -1;
    int rc = 0;
    if (line->version)
        about_put(out, "probing", PROBING_COMMIT);
    else if (line->help && line->noun && !line->verb)
        cli_put_noun_help(out, line->noun);
    else if (line->help)
        cli_put_help(out, line->verb);
    else
        rc = main_run_verb(line, out, e);
    progress_end();
    if (rc >= 0 && output_write(NULL, out, e) == 0 && output_redirect_end(true, e) == 0) {
        if (path && !output_is_stdout(path))
            main_say_written(path);
        return rc;
    }
    output_redirect_end(false, &dropped);
    return -1;
}

/* Exit status; or -1 with the error. */
static int main_run(int argc, char **argv, struct strbuf *out, struct err *e) {
    struct cli_line line;
    if (argc > 1 && strcmp(argv[1], COMPLETE_COMMAND) == 0) {
        cli_complete(argc - 2, argv + 2, out);
        return output_write(NULL, out, e);
    }
    int rc = cli_parse(argc, argv, &line, e);
    /* a command would inherit the ignored signal */
    if (rc != 0 || !line.options || !line.options->command)
        signal(SIGPIPE, SIG_IGN); /* a closed pipe is seen as EPIPE */
    if (rc == 0 && line.nothing) {
        cli_put_examples(out);
        output_say_text(out);
        cli_line_fini(&line);
        return ERR_USAGE;
    }
    if (rc == 0)
        rc = main_run_line(&line, out, e);
    cli_line_fini(&line);
    return rc >= 0 ? rc : -1;
}

int main(int argc, char **argv) {
    struct err e = {0};
    symbols_begin(argc, argv);
    struct strbuf out;
    setlocale(LC_ALL, "");
    strbuf_init(&out, MAIN_OUTPUT_MAX);
    int rc = main_run(argc, argv, &out, &e);
    strbuf_fini(&out);
    if (rc >= 0)
        return rc;
    char text[2 * sizeof e.text];
    text_sanitize(text, sizeof text, err_text(&e));
    output_say("probing: %s\n", text);
    return err_exit_status(&e);
}
