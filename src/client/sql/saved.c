/* SPDX-License-Identifier: Apache-2.0 */
/* saved: see saved.h. */
#include "client/sql/saved.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "client/output.h"

#define SAVED_BYTES ((size_t)16 * 1024 * 1024)

const struct saved_query saved_queries[] = {
    {"hot functions", "Which functions did most of the work in the last minute?",
     "SELECT f.func, f.file, count(*) AS samples,\n"
     "       round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent\n"
     "FROM python.samples s\n"
     "JOIN python.stacks k ON k.stack_id = s.stack_id\n"
     "JOIN python.frames f ON f.frame_id = k.frame_id\n"
     "WHERE s.on_cpu AND s.timestamp > now() - interval '1 minute'\n"
     "GROUP BY f.func, f.file ORDER BY samples DESC LIMIT 50;"},
    {"hot lines", "Which lines?",
     "SELECT f.func, f.file, f.lineno, count(*) AS samples\n"
     "FROM python.samples s\n"
     "JOIN python.stacks k ON k.stack_id = s.stack_id\n"
     "JOIN python.frames f ON f.frame_id = k.frame_id\n"
     "WHERE s.on_cpu AND s.timestamp > now() - interval '1 minute'\n"
     "GROUP BY f.func, f.file, f.lineno ORDER BY samples DESC LIMIT 50;"},
    {"stacks", "Which whole stacks were seen most in the last minute?",
     "SELECT count(*) AS samples, thread, fold(stack_id) AS stack\n"
     "FROM python.samples\n"
     "WHERE timestamp > now() - interval '1 minute'\n"
     "GROUP BY thread, stack_id ORDER BY samples DESC LIMIT 50;"},
    {"busy threads", "Which threads run, and which wait for the GIL?",
     "SELECT thread, tid, count(*) AS samples,\n"
     "       round(100.0 * sum(on_cpu) / count(*), 1) AS on_cpu_percent,\n"
     "       round(100.0 * sum(gil = 'held') / count(*), 1) AS gil_percent,\n"
     "       round(100.0 * sum(gil = 'waiting') / count(*), 1) AS gil_wait_percent\n"
     "FROM python.samples\n"
     "WHERE timestamp > now() - interval '1 minute'\n"
     "GROUP BY tid, thread ORDER BY on_cpu_percent DESC;"},
    {"now", "What is every thread doing this moment?",
     "SELECT thread, tid, depth, func, file, lineno\n"
     "FROM python.backtrace ORDER BY tid, depth;"},
    {"threads", "Which threads are there, and in which state?",
     "SELECT name, native_name, tid, state, on_cpu, gil, cpu_pct, func, file, lineno\n"
     "FROM python.threads ORDER BY cpu_pct DESC;"},
    {"native threads", "What do the threads without Python do?",
     "SELECT native_name, tid, state, cpu_pct, wchan\n"
     "FROM system.threads ORDER BY cpu_pct DESC;"},
    {"memory", "How did its memory grow in the last hour, minute by minute?",
     "SELECT datetime(date_trunc('minute', timestamp), 'unixepoch') AS minute, round(avg(rss_mb), 1) AS "
     "rss_mb,\n"
     "       round(max(memory_mb), 1) AS most_mb, max(gc_objects) AS gc_objects\n"
     "FROM memory_usage\n"
     "WHERE timestamp > now() - interval '1 hour'\n"
     "GROUP BY minute ORDER BY minute;"},
    {"leak", "By how many MB an hour does its memory grow?",
     "SELECT round(regr_slope(rss_mb, timestamp) * 3600, 2) AS mb_an_hour,\n"
     "       round(min(rss_mb), 1) AS least_mb, round(max(rss_mb), 1) AS most_mb,\n"
     "       human_time(max(timestamp) - min(timestamp)) AS seen_for\n"
     "FROM memory_usage WHERE timestamp > now() - interval '30 minutes';"},
    {"process", "What did it use, second by second, in the last five minutes?",
     "SELECT timestamp, cpu_pct, human_bytes(rss_bytes) AS rss, threads, fds,\n"
     "       read_bytes, written_bytes, throttled_s\n"
     "FROM system.process_history\n"
     "WHERE timestamp > now() - interval '5 minutes' ORDER BY timestamp DESC;"},
    {"throttling", "Was it throttled, or short of memory, because of its cgroup?",
     "SELECT max(throttled_s) - min(throttled_s) AS throttled_s,\n"
     "       human_bytes(max(cgroup_memory_bytes)) AS used, human_bytes(max(cgroup_limit_bytes)) AS "
     "may_use,\n"
     "       human_bytes(max(swap_bytes)) AS swapped, max(major_faults) - min(major_faults) AS major_faults\n"
     "FROM system.process_history WHERE timestamp > now() - interval '1 hour';"},
    {"switches", "Which threads lost their CPU to others in the last minute?",
     "SELECT coalesce(max(name), max(native_name)) AS thread, tid,\n"
     "       max(involuntary_switches) - min(involuntary_switches) AS taken_away,\n"
     "       max(voluntary_switches) - min(voluntary_switches) AS given_up,\n"
     "       round(avg(cpu_pct), 1) AS cpu_pct\n"
     "FROM system.threads_history\n"
     "WHERE timestamp > now() - interval '1 minute'\n"
     "GROUP BY tid ORDER BY taken_away DESC;"},
    {"slow steps", "Where are slow training steps more often than others are?",
     "WITH m AS (SELECT 1.2 * median(duration_ms) AS ms FROM python.steps\n"
     "           WHERE timestamp > now() - interval '2 minutes'),\n"
     "s AS (SELECT timestamp AS until, timestamp - duration_ms / 1000 AS since, duration_ms > ms AS slow\n"
     "      FROM python.steps, m WHERE timestamp > now() - interval '2 minutes' AND duration_ms IS NOT "
     "NULL),\n"
     "x AS (SELECT slow, func, file, lineno FROM s\n"
     "      JOIN python.samples p ON p.timestamp > since AND p.timestamp <= until AND tid = p.pid AND torn "
     "IS NOT 1\n"
     "      JOIN python.stacks k ON k.stack_id = p.stack_id JOIN python.frames f ON f.frame_id = "
     "k.frame_id)\n"
     "SELECT func, file, lineno, round(100.0 * sum(slow) / (SELECT sum(slow) FROM x), 1) AS slow_pct,\n"
     "       round(100.0 * sum(NOT slow) / (SELECT sum(NOT slow) FROM x), 1) AS usual_pct\n"
     "FROM x GROUP BY 1, 2, 3 HAVING slow_pct > usual_pct ORDER BY slow_pct - usual_pct DESC LIMIT 20;"},
    {"garbage", "Who collects garbage, and for what share of the time?",
     "SELECT thread, tid, round(100.0 * avg(gc), 2) AS gc_pct, sum(gc) AS collecting, count(*) AS samples\n"
     "FROM python.samples WHERE timestamp > now() - interval '10 minutes'\n"
     "GROUP BY tid ORDER BY gc_pct DESC;"},
    {"agent", "What does sampling cost the job?",
     "SELECT timestamp, round(overhead_pct, 3) AS overhead_pct, rate_hz, samples, torn, dropped,\n"
     "       us_per_sample, human_bytes(rss_bytes) AS memory, clients\n"
     "FROM probing.status ORDER BY timestamp DESC LIMIT 60;"},
    {"window", "Which samples are in the screens' window (a span of the Timeline, the last 10 s, ...)?",
     "SELECT thread, f.func, f.file, count(*) AS samples,\n"
     "       round(100.0 * sum(s.on_cpu) / count(*), 1) AS on_cpu_percent,\n"
     "       round(100.0 * sum(s.gil = 'held') / count(*), 1) AS gil_percent\n"
     "FROM python.samples s\n"
     "JOIN python.stacks k ON k.stack_id = s.stack_id\n"
     "JOIN python.frames f ON f.frame_id = k.frame_id\n"
     "WHERE s.timestamp >= :from AND s.timestamp < :to\n"
     "GROUP BY thread, f.func, f.file ORDER BY samples DESC LIMIT 50;"},
    {"gpu time", "How long was a GPU at work in the steps that were profiled?",
     "SELECT s.step, g.operation_name AS gpu, round(s.duration_ms, 2) AS duration_ms,\n"
     "       round(g.duration_ms, 2) AS gpu_ms,\n"
     "       round(100 - 100 * g.duration_ms / s.duration_ms, 1) AS idle_percent\n"
     "FROM profiling_data g\n"
     "JOIN python.steps s ON s.step = g.step AND s.pid = g.pid\n"
     "WHERE g.kind = 'gpu' ORDER BY s.step, gpu;"},
    {"gpu processes", "Who has memory on the GPUs that the target uses?",
     "SELECT device, process_pid, process_rank, user, command, own, mem_used_mb, mem_share\n"
     "FROM gpu_processes ORDER BY device, mem_used_mb DESC;"},
    {.name = NULL},
};

void saved_default_dir(char *buf, size_t cap) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool has_config = config && config[0] == '/', has_home = home && home[0] == '/';
    int n = has_config ? snprintf(buf, cap, "%s/probing-top/queries", config)
            : has_home ? snprintf(buf, cap, "%s/.config/probing-top/queries", home)
                       : -1;
    if (n < 0 || (size_t)n >= cap)
        buf[0] = '\0';
}

static int saved_add(struct result *r, const char *name, const char *answers, const char *sql) {
    const char *texts[] = {name, answers, sql};
    if (result_add_row(r) != 0)
        return -1;
    for (size_t i = 0; i < 3; i++)
        if (result_put_text(r, i, SQL_TEXT, texts[i], strlen(texts[i])) != 0)
            return -1;
    return 0;
}

static int saved_is_query(const struct dirent *d) {
    size_t len = strlen(d->d_name);
    return d->d_name[0] != '.' && len > 4 && strcmp(d->d_name + len - 4, ".sql") == 0;
}

/* Read the text of a file, if it can be a query. 0 or -1. */
static int saved_read(const char *path, struct strbuf *out) {
    struct stat st;
    char buf[8192];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)SAVED_MAX_BYTES;
    while (ok && (n = read(fd, buf, sizeof buf)) > 0)
        ok = strbuf_add(out, buf, (size_t)n) == 0;
    close(fd);
    return ok && out->len > 0 && !memchr(out->data, '\0', out->len) ? 0 : -1;
}

static void saved_add_file(struct result *r, const char *dir, const char *file) {
    char path[1024], name[256], answers[256] = "yours";
    struct strbuf text;
    strbuf_init(&text, SAVED_MAX_BYTES + 1);
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(name, sizeof name, "%.*s", (int)strlen(file) - 4, file);
    if (n > 0 && (size_t)n < sizeof path && saved_read(path, &text) == 0) {
        const char *first = strbuf_str(&text);
        if (strncmp(first, "-- ", 3) == 0)
            snprintf(answers, sizeof answers, "%.*s", (int)strcspn(first + 3, "\n"), first + 3);
        saved_add(r, name, answers, first);
    }
    strbuf_fini(&text);
}

struct result *saved_list(const char *dir) {
    static const char *const names[] = {"name", "answers", "query"};
    struct dirent **files = NULL;
    struct result *r = result_new(3, 1000, SAVED_BYTES);
    for (size_t i = 0; r && i < 3; i++)
        if (result_name_column(r, i, names[i], "text") != 0) {
            result_unref(r);
            return NULL;
        }
    int n = r && *dir ? scandir(dir, &files, saved_is_query, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        if (i < SAVED_MAX_FILES)
            saved_add_file(r, dir, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    for (const struct saved_query *q = saved_queries; r && q->name; q++)
        saved_add(r, q->name, q->answers, q->sql);
    return r;
}

/* True for a name that is valid as a file name everywhere. */
static bool saved_is_name(const char *name) {
    size_t len = strlen(name);
    for (const char *p = name; *p; p++)
        if (*p == '/' || (unsigned char)*p < ' ' || (unsigned char)*p == 0x7f)
            return false;
    return len > 0 && len <= 60 && name[0] != '.' && name[0] != '-';
}

int saved_write(const char *dir, const char *name, const char *sql, struct err *e) {
    char path[1024];
    struct strbuf text;
    if (!saved_is_name(name))
        return err_set(e, ERR_USAGE, "a name has 1 to 60 characters, no /, and does not begin with . or -");
    if (!*dir)
        return err_set(e, ERR_FAILED, "there is no folder for queries: set HOME or XDG_CONFIG_HOME");
    int n = snprintf(path, sizeof path, "%s/", dir);
    for (char *p = path + 1; n > 0 && (size_t)n < sizeof path && *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    n = snprintf(path, sizeof path, "%s/%s.sql", dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(e, ERR_FAILED, "the name of the folder is too long: %.200s", dir);
    strbuf_init(&text, SAVED_MAX_BYTES);
    strbuf_adds(&text, sql);
    if (text.len && text.data[text.len - 1] != '\n')
        strbuf_addc(&text, '\n');
    int rc = text.failed ? err_set(e, ERR_FAILED, "the query is too long to be saved: the limit is 64 KiB")
                         : output_write(path, &text, e);
    strbuf_fini(&text);
    return rc;
}
