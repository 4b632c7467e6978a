/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_places: see verdict_places.h. Functions: CPython's Lib, torch, safetensors, numpy,
 * transformers, lightning, of the versions that the tests run with and those before. */
#include "client/verdict/verdict_places.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/strbuf.h"
#include "client/session/call.h"
#include "store/sql/sql.h"

#define PLACES_TIMEOUT_S 10.0
#define PLACES_TEXT 16384
/* of all targets: a stack that is asked for again is looked at again */
#define PLACES_MOST "50000"

/*
 * A function that is known: the end of its file, and its name without its class, both as patterns
 * of LIKE. Of several rows of one class that match the first counts.
 */
static const struct {
    const char *class, *name, *func, *file;
} places[] = {
    /* parts of a training step */
    {"phase", "loader", "%", "%/torch/utils/data/%"},
    {"phase", "backward", "backward", "%/torch/_tensor.py"},
    {"phase", "backward", "%", "%/torch/autograd/__init__.py"},
    {"phase", "backward", "%", "%/torch/autograd/graph.py"},
    {"phase", "optimizer", "%", "%/torch/optim/%"},
    {"phase", "optimizer", "%", "%/torch/amp/grad_scaler.py"},
    {"phase", "optimizer", "%", "%/torch/nn/utils/clip_grad.py"},
    {"phase", "comm", "%", "%/torch/distributed/distributed\\_c10d.py"},
    {"phase", "comm", "%", "%/torch/distributed/fsdp/%"},
    {"phase", "forward", "%", "%/torch/nn/%"},
    {"phase", "forward", "%", "%/torch/functional.py"},
    {"phase", "forward", "apply", "%/torch/autograd/function.py"},
    /* what a job does when no step ends */
    {"doing", "SAVING", "save", "%/torch/serialization.py"},
    {"doing", "SAVING", "%save%", "%/torch/distributed/checkpoint/%"},
    {"doing", "SAVING", "save_file", "%/safetensors/%"},
    {"doing", "SAVING", "sav%", "%/numpy/%"},
    {"doing", "SAVING", "dump", "%/joblib/%"},
    {"doing", "SAVING", "save", "own"},
    {"doing", "SAVING", "save\\_%", "own"},
    {"doing", "SAVING", "write\\_checkpoint%", "own"},
    {"doing", "SAVING", "write\\_ckpt%", "own"},
    {"doing", "LOADING", "load", "%/torch/serialization.py"},
    {"doing", "LOADING", "%load%", "%/torch/distributed/checkpoint/%"},
    {"doing", "LOADING", "load_file", "%/safetensors/%"},
    {"doing", "LOADING", "load", "%/numpy/%"},
    {"doing", "LOADING", "from_pretrained", "%/transformers/%"},
    {"doing", "LOADING", "load_dataset", "%/datasets/load.py"},
    {"doing", "COMPILING", "%", "%/torch/_dynamo/convert_frame.py"},
    {"doing", "COMPILING", "%compile%", "%/torch/_inductor/compile_fx.py"},
    {"doing", "COMPILING", "%", "%/torch/_inductor/async_compile.py"},
    {"doing", "COMPILING", "compile", "%/torch/_inductor/graph.py"},
    {"doing", "EVALUATING", "evaluat%", "own"},
    {"doing", "EVALUATING", "eval", "own"},
    {"doing", "EVALUATING", "eval\\_%", "own"},
    {"doing", "EVALUATING", "%\\_eval", "own"},
    {"doing", "EVALUATING", "validat%", "own"},
    {"doing", "EVALUATING", "val\\_%", "own"},
    {"doing", "EVALUATING", "evaluat%", "%/transformers/trainer.py"},
    {"doing", "EVALUATING", "%", "%/lightning/pytorch/loops/evaluation_loop.py"},
    {"doing", "EVALUATING", "%", "%/pytorch_lightning/loops/evaluation_loop.py"},
    {"doing", "LOGGING", "%", "%/logging/__init__.py"},
    {"doing", "LOGGING", "%", "%/logging/handlers.py"},
    {"doing", "LOGGING", "%", "%/loguru/%"},
    /* a GPU's driver, and torch's functions, in which a thread waits until the GPU is through */
    {"gpu", "synchronize", "synchronize", "%/torch/cuda/\\_\\_init\\_\\_.py"},
    {"gpu", "synchronize", "synchronize", "%/torch/cuda/streams.py"},
    {"gpu", "synchronize", "cu%Synchronize%", "%/libcuda.so%"},
    {"gpu", "a copy from the GPU", "cuMemcpyDtoH%", "%/libcuda.so%"},
    {"gpu", "synchronize", "hip%Synchronize%", "%/libamdhip64.so%"},
    {"gpu", "a copy from the GPU", "hipMemcpyDtoH%", "%/libamdhip64.so%"},
    {"import", "", "%", "<frozen importlib.\\_bootstrap%"},
    {"import", "", "%", "%/importlib/\\_bootstrap%"},
    /* what innermost functions wait for, the more telling first */
    {"wait", "1 process", "wait%", "%/subprocess.py"},
    {"wait", "1 process", "\\_wait%", "%/subprocess.py"},
    {"wait", "1 process", "\\_try\\_wait", "%/subprocess.py"},
    {"wait", "1 process", "\\_communicate", "%/subprocess.py"},
    {"wait", "1 process", "%", "%/multiprocessing/popen\\_%"},
    {"wait", "1 ranks", "%", "%/torch/distributed/%"},
    {"wait", "2 request", "accept", "%/multiprocessing/connection.py"},
    {"wait", "3 pipe", "%", "%/multiprocessing/connection.py"},
    {"wait", "3 pipe", "%", "%/multiprocessing/queues.py"},
    {"wait", "4 request", "%", "%/asyncio/%"},
    {"wait", "4 request", "%", "%/selectors.py"},
    {"wait", "4 request", "%", "%/socketserver.py"},
    {"wait", "4 request", "accept", "%/socket.py"},
    {"wait", "4 request", "accept", "%/ssl.py"},
    {"wait", "4 request", "%", "%/gevent/hub.py"},
    {"wait", "4 request", "%", "%/tornado/ioloop.py"},
    {"wait", "4 request", "%", "%/uvicorn/server.py"},
    {"wait", "5 thread", "%", "%/threading.py"},
    {"wait", "5 thread", "%", "%/queue.py"},
    {"wait", "5 thread", "%", "%/concurrent/futures/%"},
    {"wait", "5 thread", "%", "%/multiprocessing/pool.py"},
    {"wait", "5 thread", "%", "%/multiprocessing/synchronize.py"},
    /* whatever is not the job's own code */
    {"library", "", "%", "%/site-packages/%"},
    {"library", "", "%", "%/dist-packages/%"},
    {"library", "", "%", "%/lib/python_.%"},
    {"library", "", "%", "%/lib64/python_.%"},
    {"library", "", "%", "<frozen %"},
    {"library", "", "%", "<probing>"},
    {"library", "", "%", "<attrs %"},
    {"library", "", "%", "%/torch/%"},
};

const char *verdict_places_find(const char *class, const struct model_frame *f) {
    const char *func = f->func ? f->func : "", *file = f->file ? f->file : "";
    const char *dot = strrchr(func, '.');
    if (strcmp(func, "<module>") == 0)
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strcmp(places[i].class, class) == 0 &&
            (strcmp(places[i].file, "own") == 0 ? *file && !path_is_library(file)
                                                : sql_is_like(file, places[i].file)) &&
            (sql_is_like(func, places[i].func) || (dot && sql_is_like(dot + 1, places[i].func))))
            return strcmp(class, "wait") == 0 ? places[i].name + 2 : places[i].name;
    return NULL;
}

#define PLACES_PID "pid = CAST(:pid AS INTEGER)"
#define PLACES_S "60" /* seconds of samples */

/* Files that are new, and the rows that know each: there are far fewer files than functions. */
static const char *const places_files[] = {
    "DELETE FROM temp.verdict_unseen",
    "INSERT OR IGNORE INTO temp.verdict_unseen SELECT file FROM python.frames WHERE " PLACES_PID
    " AND file IS NOT NULL AND file NOT IN (SELECT file FROM temp.verdict_files)",
    "INSERT INTO temp.verdict_files SELECT file, NOT EXISTS (SELECT 1 FROM temp.verdict_places p WHERE "
    "p.class = 'library' AND u.file LIKE p.file ESCAPE '\\') FROM temp.verdict_unseen u",
    "INSERT INTO temp.verdict_matches SELECT u.file, p.rowid FROM temp.verdict_unseen u, "
    "temp.verdict_places p WHERE p.class <> 'library' AND iif(p.file = 'own', (SELECT own FROM "
    "temp.verdict_files f WHERE f.file = u.file), u.file LIKE p.file ESCAPE '\\')",
};

static const char *const places_tables[] = {
    "CREATE TEMP TABLE IF NOT EXISTS verdict_places(class TEXT, name TEXT, func TEXT, file TEXT)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_steps(pid INTEGER, last REAL, age REAL, longest REAL, usual "
    "REAL, steps INTEGER, n INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_recent(pid INTEGER, timestamp REAL, step INTEGER, duration_ms "
    "REAL, data_ms REAL, forward_ms REAL, backward_ms REAL, optimizer_ms REAL, gc_ms REAL, loss REAL, "
    "grad_norm REAL, nonfinite TEXT)",
    "CREATE INDEX IF NOT EXISTS temp.verdict_recent_time ON verdict_recent(pid, timestamp)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_looks(pid INTEGER, tid INTEGER, timestamp REAL, on_cpu "
    "INTEGER, gil TEXT, gc INTEGER, stack_id INTEGER)",
    "CREATE INDEX IF NOT EXISTS temp.verdict_looks_time ON verdict_looks(pid, tid, timestamp)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_workers(pid INTEGER, worker INTEGER, worker_pid INTEGER, "
    "cpu_pct REAL, cpu_wait_pct REAL, state TEXT, func TEXT, file TEXT, lineno INTEGER, own TEXT)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_threads(pid INTEGER, tid INTEGER, name TEXT, func TEXT, file "
    "TEXT, lineno INTEGER, waits_for TEXT, waits_kind TEXT, waits_tid INTEGER, waits_s REAL, deadlock "
    "INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_native(pid INTEGER, tid INTEGER, timestamp REAL, op TEXT, "
    "own_func TEXT, own_file TEXT, own_line INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_unseen(file TEXT PRIMARY KEY)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_files(file TEXT PRIMARY KEY, own INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_matches(file TEXT, place INTEGER)",
    "CREATE INDEX IF NOT EXISTS temp.verdict_matches_file ON verdict_matches(file)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_new(stack_id INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_frames(pid INTEGER, frame_id INTEGER, func TEXT, file TEXT, "
    "lineno INTEGER, doing TEXT, phase TEXT, wait TEXT, gpu TEXT, is_import INTEGER, is_own INTEGER, "
    "PRIMARY KEY(pid, frame_id)) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_stacks(pid INTEGER, stack_id INTEGER, doing TEXT, phase TEXT, "
    "wait TEXT, gpu TEXT, own_func TEXT, own_file TEXT, own_line INTEGER, at_func TEXT, at_file TEXT, "
    "at_line "
    "INTEGER, leaf_func TEXT, leaf_file TEXT, leaf_line INTEGER, PRIMARY KEY(pid, stack_id)) WITHOUT ROWID",
    "CREATE TEMP VIEW IF NOT EXISTS verdict_seen AS SELECT p.pid, p.tid, p.timestamp, p.on_cpu, p.gil, "
    "p.gc, v.doing, v.phase, v.wait, v.gpu, v.own_func, v.own_file, v.own_line, v.at_func, v.at_file, "
    "v.at_line, "
    "v.leaf_func, v.leaf_file, v.leaf_line FROM temp.verdict_looks p CROSS JOIN temp.verdict_stacks v ON "
    "v.pid = p.pid AND v.stack_id = p.stack_id",
};

/* What the first row of a class that knows the frame `r` says: of those that know its file. A module
 * that is imported does nothing of what its functions do. */
/* clang-format off */
#define PLACES_FIND(class)                                                                        \
    "(SELECT p.name FROM temp.verdict_matches m CROSS JOIN temp.verdict_places p "                \
    "ON p.rowid = m.place WHERE m.file = r.file AND p.class = '" class "' "                       \
    "AND (p.file <> 'own' OR r.own) AND r.func <> '<module>' AND (r.func LIKE p.func ESCAPE '\\' OR r.func LIKE '%.' || p.func ESCAPE '\\') "             \
    "ORDER BY p.rowid LIMIT 1)"
/* clang-format on */

/* Frames that are new. The body of a comprehension is not a function of the job's: its caller is. */
static const char places_frames[] =
    "INSERT OR IGNORE INTO temp.verdict_frames SELECT CAST(:pid AS INTEGER), frame_id, func, file, lineno, "
    /* the class of each column */
    PLACES_FIND("doing") "," PLACES_FIND("phase") "," PLACES_FIND("wait") "," PLACES_FIND(
        "gpu") "," PLACES_FIND("import")
    /* is there one? */
    " IS NOT NULL, own AND func NOT LIKE '%<%comp>' AND func NOT LIKE '%<genexpr>' "
    "FROM (SELECT frame_id, func, file, lineno, kind = 'python' AND (SELECT own FROM temp.verdict_files k "
    "WHERE k.file = f.file) AS own FROM python.frames f WHERE " PLACES_PID
    " AND frame_id NOT IN (SELECT frame_id FROM temp.verdict_frames WHERE " PLACES_PID ")) r";

/* Stacks that are new, `up`: with all their frames, the innermost has level 0. Of each, `b`: the
 * level of its outermost frame that does something and of the outermost that is a part of a step,
 * of the innermost of the job's own code, of that in a function, and of an import; and what its
 * innermost frames wait for. Whatever is imported may run a whole program: then it does not start
 * any more. */
static const char places_stacks[] =
    "INSERT OR IGNORE INTO temp.verdict_stacks "
    "WITH RECURSIVE "
    "up(top, frame, parent, level) AS (SELECT n.stack_id, k.frame_id, k.parent_id, 0 "
    "FROM temp.verdict_new n CROSS JOIN python.stacks k ON k.stack_id = n.stack_id AND k." PLACES_PID " "
    "UNION ALL SELECT top, k.frame_id, k.parent_id, level + 1 "
    "FROM up CROSS JOIN python.stacks k ON k.stack_id = up.parent AND k." PLACES_PID " WHERE level < 300), "
    "f AS MATERIALIZED (SELECT top, level, r.* "
    "FROM up CROSS JOIN temp.verdict_frames r ON r." PLACES_PID " AND r.frame_id = up.frame), "
    "q AS MATERIALIZED (SELECT top, max(iif(phase IS NULL, NULL, level)) AS p, min(iif(is_own, level, NULL)) "
    "AS o, "
    "min(iif(is_own AND func <> '<module>', level, NULL)) AS called, "
    "min(iif(is_import, level, NULL)) AS i, min(iif(level <= 4, wait, NULL)) AS w, max(gpu) AS gpu FROM f "
    "GROUP BY top), "
    /* what a part of a step calls belongs to the step */
    "b AS MATERIALIZED (SELECT q.*, (SELECT max(level) FROM f WHERE f.top = q.top AND doing IS NOT NULL "
    "AND (doing = 'COMPILING' OR level > coalesce(q.p, -1))) AS d FROM q), "
    "c AS (SELECT f.top, min(level) AS at FROM f JOIN b ON b.top = f.top "
    "WHERE is_own AND level >= coalesce(b.d, b.o) GROUP BY f.top) "
    "SELECT CAST(:pid AS INTEGER), b.top, coalesce(d.doing, "
    "iif(i IS NOT NULL AND (called IS NULL OR called > i), 'STARTING', NULL)), p.phase, "
    "substr(b.w, 3), b.gpu, o.func, o.file, o.lineno, coalesce(a.func, o.func, l.func), "
    "coalesce(a.file, o.file, l.file), coalesce(a.lineno, o.lineno, l.lineno), l.func, l.file, l.lineno "
    "FROM b LEFT JOIN f d ON d.top = b.top AND d.level = b.d "
    "LEFT JOIN f p ON p.top = b.top AND p.level = b.p "
    "LEFT JOIN f o ON o.top = b.top AND o.level = b.o "
    "LEFT JOIN c ON c.top = b.top LEFT JOIN f a ON a.top = b.top AND a.level = c.at "
    "LEFT JOIN f l ON l.top = b.top AND l.level = 0";

static const char *const places_takes[] = {
    /* The newest second is read again: rows of several threads need not come in the order of time. */
    "DELETE FROM temp.verdict_recent WHERE " PLACES_PID " AND (:fresh OR timestamp <= now() - :window OR "
    "timestamp > (SELECT max(timestamp) FROM temp.verdict_recent WHERE " PLACES_PID ") - 1)",
    "INSERT INTO temp.verdict_recent SELECT CAST(:pid AS INTEGER), timestamp, step, duration_ms, data_ms, "
    "forward_ms, backward_ms, optimizer_ms, gc_ms, loss, grad_norm, nonfinite FROM python.steps "
    "WHERE " PLACES_PID " AND timestamp > max(now() - :window, coalesce((SELECT max(timestamp) FROM "
    "temp.verdict_recent WHERE " PLACES_PID "), 0))",
    "DELETE FROM temp.verdict_looks WHERE " PLACES_PID " AND (tid <> CAST(:tid AS INTEGER) OR timestamp <= "
    "now() - " PLACES_S " OR timestamp > (SELECT max(timestamp) FROM temp.verdict_looks WHERE " PLACES_PID
    ") - 1)",
    "INSERT INTO temp.verdict_looks SELECT CAST(:pid AS INTEGER), tid, timestamp, on_cpu, gil, gc, stack_id "
    "FROM python.samples WHERE " PLACES_PID
    " AND tid = CAST(:tid AS INTEGER) AND timestamp > max(now() - " PLACES_S
    ", coalesce((SELECT max(timestamp) FROM temp.verdict_looks WHERE " PLACES_PID "), 0))",
    "DELETE FROM temp.verdict_steps WHERE " PLACES_PID,
    "INSERT INTO temp.verdict_steps SELECT CAST(:pid AS INTEGER), max(timestamp), now() - max(timestamp), "
    "coalesce(max(duration_ms), 0) / 1000, coalesce(median(duration_ms), 0) / 1000, count(*), "
    "count(duration_ms) FROM temp.verdict_recent WHERE " PLACES_PID,
    "DELETE FROM temp.verdict_stacks WHERE (SELECT count(*) FROM temp.verdict_stacks) > " PLACES_MOST,
    "DELETE FROM temp.verdict_frames WHERE (SELECT count(*) FROM temp.verdict_frames) > " PLACES_MOST,
    "DELETE FROM temp.verdict_matches WHERE (SELECT count(*) FROM temp.verdict_files) > " PLACES_MOST,
    "DELETE FROM temp.verdict_files WHERE (SELECT count(*) FROM temp.verdict_files) > " PLACES_MOST,
    "DELETE FROM temp.verdict_new",
};

/* Stacks that have not been looked at; their number. */
static const char *const places_new[] = {
    "INSERT INTO temp.verdict_new SELECT DISTINCT stack_id FROM temp.verdict_looks WHERE " PLACES_PID
    " AND timestamp >= :seen - 2 AND stack_id NOT IN (SELECT stack_id FROM temp.verdict_stacks "
    "WHERE " PLACES_PID ") LIMIT 4000",
    "SELECT count(*) FROM temp.verdict_new",
};

static const char *const places_looks[] = {places_frames, places_stacks};

static const char *const places_workers[] = {
    "DELETE FROM temp.verdict_workers WHERE " PLACES_PID,
    "INSERT INTO temp.verdict_workers SELECT CAST(:pid AS INTEGER), worker, worker_pid, cpu_pct, "
    "cpu_wait_pct, state, "
    "func, file, lineno, own FROM python.loader_workers WHERE " PLACES_PID,
};

/* clang-format off */
#define PLACES_NO_THREADS "DELETE FROM temp.verdict_threads WHERE " PLACES_PID
#define PLACES_PUT_THREADS "INSERT INTO temp.verdict_threads "
#define PLACES_COUNT_THREADS "SELECT count(*) FROM temp.verdict_threads WHERE " PLACES_PID

static const char *const places_threads[] = {
    PLACES_NO_THREADS,
    PLACES_PUT_THREADS "SELECT CAST(:pid AS INTEGER), tid, name, func, file, lineno, waits_for, waits_kind, "
    "waits_tid, waits_s, deadlock FROM python.threads WHERE " PLACES_PID,
    PLACES_COUNT_THREADS,
};

/* The last seconds of a job that has ended: what a thread waits for that has not run since that was
 * written, which is repeated every minute; where it is, its last sample says. In the words of
 * model_text_put_wait. */
static const char *const places_last_threads[] = {
    PLACES_NO_THREADS,
    PLACES_PUT_THREADS
    "WITH w AS MATERIALIZED (SELECT *, max(timestamp) AS at FROM python.waits WHERE " PLACES_PID
    " AND timestamp > now() - 120 GROUP BY tid), "
    "r AS MATERIALIZED (SELECT tid, max(timestamp) AS at FROM python.samples WHERE " PLACES_PID
    " AND timestamp > now() - 120 AND on_cpu GROUP BY tid), "
    "s AS MATERIALIZED (SELECT tid, thread, stack_id, max(timestamp) FROM python.samples WHERE " PLACES_PID
    " AND timestamp > now() - 3 GROUP BY tid), "
    "t AS MATERIALIZED (SELECT w.*, coalesce(s.thread, w.thread) AS name, f.func, f.file, f.lineno, "
    "replace(f.file, rtrim(f.file, replace(f.file, '/', '')), '') AS base, "
    "w.waits_s + now() - w.at AS so_far FROM s JOIN w ON w.tid = s.tid "
    "LEFT JOIN r ON r.tid = s.tid LEFT JOIN python.stacks k ON k.stack_id = s.stack_id AND k." PLACES_PID
    " LEFT JOIN python.frames f ON f.frame_id = k.frame_id AND f." PLACES_PID " WHERE coalesce(r.at < w.at, 1)) "
    "SELECT CAST(:pid AS INTEGER), t.tid, t.name, t.func, t.file, t.lineno, t.what || coalesce(': ' || t.detail, "
    "'') || coalesce(iif(t.kind = 'thread', ', which is ' || h.tid, iif(t.holder = 'sure', ', ', ', ' || t.holder "
    "|| ' ') || 'held by ' || h.name || ' (' || h.tid || ')') || ' in ' || h.func || ' (' || h.base || ':' || "
    "h.lineno || ')', '') || ', for at least ' || round(t.so_far, 1) || ' s', t.kind, t.waits_tid, t.so_far, "
    "t.deadlock FROM t LEFT JOIN t h ON h.tid = t.waits_tid",
    PLACES_COUNT_THREADS,
};
/* clang-format on */

static const char *const places_newest[] = {
    "SELECT max(timestamp) FROM temp.verdict_looks WHERE " PLACES_PID,
};

/* The looks of the last minute. */
static const char *const places_native[] = {
    "DELETE FROM temp.verdict_native WHERE " PLACES_PID " AND (tid <> CAST(:tid AS INTEGER) OR timestamp < "
    "now() - 60)",
    "SELECT count(*) FROM temp.verdict_native WHERE " PLACES_PID,
};

#define PLACES_RUN(d, texts, s, e) places_run(d, texts, sizeof texts / sizeof texts[0], s, e)

/* The number in the first row of the last of these statements, 0 without one; -1 with the error. */
static double places_run(struct database *d, const char *const *texts, size_t n,
                         const struct verdict_scope *s, struct err *e) {
    static const struct verdict_scope none;
    s = s ? s : &none;
    const struct sql_named named[] = {{":pid", (double)s->pid},
                                      {":tid", s->tid},
                                      {":window", s->window_s},
                                      {":fresh", s->window_s != s->taken_s},
                                      {":seen", s->seen_s}};
    struct sql_query q = {
        .timeout_s = PLACES_TIMEOUT_S, .named = named, .n_named = 5, .max_rows = 1, .again = true};
    double number = 0;
    for (size_t i = 0; i < n; i++) {
        struct result *rows = database_take(d, texts[i], &q, RESULT_BYTES, e);
        if (!rows)
            return -1;
        number = rows->n_rows ? result_number(rows, 0, 0) : 0;
        result_unref(rows);
    }
    return isnan(number) ? 0 : number;
}

/* The rows above, as rows of a table. */
static int places_fill(struct database *d, struct err *e) {
    struct strbuf text;
    strbuf_init(&text, PLACES_TEXT);
    strbuf_adds(&text, "INSERT INTO temp.verdict_places SELECT * FROM (VALUES ");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        strbuf_addf(&text, "%s('%s','%s','%s','%s')", i ? "," : "", places[i].class, places[i].name,
                    places[i].func, places[i].file);
    strbuf_adds(&text, ") WHERE NOT EXISTS (SELECT 1 FROM temp.verdict_places)");
    double rc = text.failed ? err_set(e, ERR_FAILED, "out of memory for verdicts")
                            : places_run(d, (const char *const[]){strbuf_str(&text)}, 1, NULL, e);
    strbuf_fini(&text);
    return rc < 0 ? -1 : 0;
}

int verdict_places_open(struct database *d, struct err *e) {
    if (PLACES_RUN(d, places_tables, NULL, e) < 0)
        return -1;
    return places_fill(d, e);
}

int verdict_places_take(struct database *d, struct verdict_scope *s, struct err *e) {
    if (PLACES_RUN(d, places_takes, s, e) < 0)
        return -1;
    s->taken_s = s->window_s;
    double n = PLACES_RUN(d, places_new, s, e);
    if (n < 0 || (n > 0 && (PLACES_RUN(d, places_files, s, e) < 0 || PLACES_RUN(d, places_looks, s, e) < 0)))
        return -1;
    s->seen_s = PLACES_RUN(d, places_newest, s, e);
    return s->seen_s < 0 ? -1 : 0;
}

int verdict_places_take_threads(struct database *d, int64_t pid, bool live, struct err *e) {
    const struct verdict_scope scope = {.pid = pid};
    double n =
        live ? PLACES_RUN(d, places_threads, &scope, e) : PLACES_RUN(d, places_last_threads, &scope, e);
    if (n == 0)
        return err_set(e, ERR_FAILED,
                       live ? "no thread could be read" : "what the threads waited for was not recorded");
    return n < 0 ? -1 : 0;
}

int verdict_places_take_workers(struct database *d, int64_t pid, struct err *e) {
    const struct verdict_scope scope = {.pid = pid};
    return PLACES_RUN(d, places_workers, &scope, e) < 0 ? -1 : 0;
}

/* ---- looks with native frames ---- */

#define PLACES_SNAPSHOTS 8
#define PLACES_SNAPSHOT_S 0.013      /* between two of them: not the time of a step */
#define PLACES_SNAPSHOTS_ENOUGH 24.0 /* of the last minute */

/* The operator of torch that a native frame is: at::_ops::NAME::call(...). False: none. */
static bool places_operator(const char *func, char *buf, size_t cap) {
    static const char prefix[] = "at::_ops::";
    if (strncmp(func, prefix, sizeof prefix - 1) != 0)
        return false;
    size_t n = strcspn(func + sizeof prefix - 1, ":(");
    snprintf(buf, cap, "%.*s", (int)(n < cap ? n : cap - 1), func + sizeof prefix - 1);
    return n > 0;
}

/* What of a GPU the thread waits for: the outermost operator that its innermost Python function has called,
 * or what the driver does. False: it is not in the driver's waits. */
static bool places_find_op(const struct model_thread *t, char *buf, size_t cap) {
    char name[64] = "";
    const char *wait = NULL;
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        /* Python frames have the file of their code, native ones that of their library */
        bool is_native = f->kind == MODEL_FRAME_NATIVE;
        const struct model_frame place = {.func = f->func, .file = is_native ? f->module : f->file};
        const char *found = verdict_places_find("gpu", &place);
        wait = wait ? wait : found;
        if (!is_native && f->kind == MODEL_FRAME_PYTHON)
            break;
        if (f->func)
            places_operator(f->func, name, sizeof name);
    }
    if (!wait)
        return false;
    snprintf(buf, cap, "%s", name[0] ? name : wait);
    return true;
}

static void places_put_text(struct strbuf *out, const char *s) {
    if (!s) {
        strbuf_adds(out, "NULL");
        return;
    }
    strbuf_addc(out, '\'');
    for (; *s; s++)
        strbuf_addf(out, *s == '\'' ? "''" : "%c", *s);
    strbuf_addc(out, '\'');
}

static int places_put_snapshot(struct database *d, const struct verdict_scope *s,
                               const struct model_thread *t, struct err *e) {
    struct strbuf text;
    const struct model_frame *own = NULL;
    char op[64];
    bool waits = places_find_op(t, op, sizeof op);
    for (size_t i = 0; i < t->n_frames && !own; i++) {
        const struct model_frame *f = &t->frames[i];
        if (f->kind == MODEL_FRAME_PYTHON && f->file && f->func && !path_is_library(f->file))
            own = f;
    }
    strbuf_init(&text, PLACES_TEXT);
    strbuf_addf(&text,
                "INSERT INTO temp.verdict_native VALUES (CAST(:pid AS INTEGER), CAST(:tid AS INTEGER), "
                "now(), ");
    places_put_text(&text, waits ? op : NULL);
    strbuf_addc(&text, ',');
    places_put_text(&text, own ? own->func : NULL);
    strbuf_addc(&text, ',');
    places_put_text(&text, own ? own->file : NULL);
    strbuf_addf(&text, own && own->line > 0 ? ", %d)" : ", NULL)", own ? own->line : 0);
    double rc = text.failed ? err_set(e, ERR_FAILED, "a stack has too long names")
                            : places_run(d, (const char *const[]){strbuf_str(&text)}, 1, s, e);
    strbuf_fini(&text);
    return rc < 0 ? -1 : 0;
}

static bool places_stop(void *arg) { return database_cancelled(arg); }

int verdict_places_take_native(struct database *d, size_t number, const struct verdict_scope *s,
                               struct err *e) {
    const struct target_address *addr = database_agent(d, number);
    const struct wire_threads want = {.native = true, .tid = (int64_t)s->tid};
    if (database_is_recorded(d))
        return 0;
    if (!addr)
        return err_set(e, ERR_FAILED, "there is no agent in the process to look through");
    double n = PLACES_RUN(d, places_native, s, e);
    if (n < 0 || n >= PLACES_SNAPSHOTS_ENOUGH)
        return n < 0 ? -1 : 0;
    struct call *c = call_open_stoppable(addr, places_stop, d, e);
    int rc = c ? 0 : -1;
    for (int i = 0; rc == 0 && i < PLACES_SNAPSHOTS; i++) {
        struct model_snapshot snapshot;
        rc = i ? call_rest(c, PLACES_SNAPSHOT_S, e) : 0;
        if (rc != 0)
            break;
        rc = call_details(c, &want, &snapshot, e);
        for (size_t k = 0; rc == 0 && k < snapshot.n_threads; k++)
            if (snapshot.threads[k].tid == want.tid)
                rc = places_put_snapshot(d, s, &snapshot.threads[k], e);
        model_snapshot_fini(&snapshot);
    }
    call_close(c);
    return rc;
}
