/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs out of environments that are any bytes: whoever starts a process may write anything there.
 *
 * The input is a list of processes. Each begins with a byte for its parent, one for its user and two for the length of its environment,
 * which follows; the command line is the environment's first text. The rest of the input is a set of ranks.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/jobs/job_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MANY 32

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_env(const struct rank_env *r) {
    check(!r->source || (r->rank >= 0 && r->rank < RANK_ENV_LIMIT), "a rank is out of bounds");
    check(r->world >= 0 && r->world <= RANK_ENV_LIMIT && r->locals >= 0 && r->locals <= RANK_ENV_LIMIT,
          "a number of ranks is");
    check(!r->world || r->rank < r->world, "a rank is beyond the last");
    check(memchr(r->title, 0, sizeof r->title) != NULL && !strchr(r->title, 0x1b),
          "a name is not safe for a terminal");
}

static void check_sets(const struct job *job) {
    int32_t n = rank_set_count(&job->here) + rank_set_count(&job->missing) + rank_set_count(&job->elsewhere);
    check(job->world == 0 || n == job->world, "the ranks do not add up");
    check(job->n_ranks > 0 && job->n_ranks <= job->n_members, "a job has no ranks");
}

static void check_jobs(const struct job_process *list, size_t n) {
    struct jobs jobs;
    struct err e;
    size_t members = 0;
    check(jobs_find(list, n, &jobs) == 0, "no memory");
    for (size_t i = 0; i < jobs.n; i++) {
        check_sets(&jobs.items[i]);
        members += jobs.items[i].n_members;
        check(jobs_choose(&jobs, jobs.items[i].name, &e) == &jobs.items[i], "a job is not found by its name");
    }
    check(members <= n, "a process is in two jobs");
    jobs_fini(&jobs);
}

static void check_set(const uint8_t *data, size_t size) {
    struct rank_set set = {.n = 0}, again = {.n = 0};
    struct strbuf text;
    struct err e;
    char *copy = malloc(size + 1);
    check(copy != NULL, "no memory");
    memcpy(copy, data, size);
    copy[size] = '\0';
    strbuf_init(&text, 0);
    if (rank_set_parse(&set, copy, &e) == 0) {
        rank_set_put(&set, 0, &text);
        check(rank_set_parse(&again, strbuf_str(&text), &e) == 0, "what is written cannot be read");
        check(rank_set_count(&again) == rank_set_count(&set) && again.n == set.n, "it is another set");
        strbuf_clear(&text);
        rank_set_put_steps(&set, &text);
        check(rank_set_parse(&again, strbuf_str(&text), &e) == 0,
              "what is written with steps cannot be read");
        check(rank_set_count(&again) == rank_set_count(&set) && again.n == set.n,
              "with steps it is another set");
    }
    strbuf_fini(&text);
    rank_set_fini(&set);
    rank_set_fini(&again);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct job_process list[MANY];
    static char lines[MANY][64];
    size_t n = 0;
    while (n < MANY && size >= 4) {
        size_t len = ((size_t)data[2] << 8 | data[3]) % 1024;
        const uint8_t *head = data;
        len = len < size - 4 ? len : size - 4;
        (void)snprintf(lines[n], sizeof lines[n], "python %.*s", (int)len, (const char *)data + 4);
        list[n] = (struct job_process){
            .pid = (pid_t)n + 1, .ppid = head[0] % MANY, .parent = head[0] % MANY, .uid = head[1] % 3};
        list[n].network = head[1] >> 6;
        list[n].is_adopted = head[1] & 0x20;
        list[n].cmdline = lines[n];
        rank_env_parse(&list[n].env, (const char *)data + 4, len);
        check_env(&list[n].env);
        n++;
        data += 4 + len;
        size -= 4 + len;
    }
    check_jobs(list, n);
    check_set(data, size);
    return 0;
}
