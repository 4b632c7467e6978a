/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_places: see verdict_places.h. Functions: CPython's Lib, torch, safetensors, numpy,
 * transformers, lightning, of the versions that the tests run with and those before. */
#include "client/verdict/verdict_places.h"

#include <stddef.h>

#include "base/strbuf.h"

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

static const char *const places_tables[] = {
    "CREATE TEMP TABLE IF NOT EXISTS verdict_places(class TEXT, name TEXT, func TEXT, file TEXT)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_steps(pid INTEGER, last REAL, age REAL, longest REAL, usual "
    "REAL, steps INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_frames(frame_id INTEGER PRIMARY KEY, func TEXT, file TEXT, "
    "lineno INTEGER, doing TEXT, phase TEXT, wait TEXT, is_import INTEGER, is_own INTEGER)",
    "CREATE TEMP TABLE IF NOT EXISTS verdict_stacks(stack_id INTEGER PRIMARY KEY, doing TEXT, phase TEXT, "
    "wait TEXT, own_func TEXT, own_file TEXT, own_line INTEGER, at_func TEXT, at_file TEXT, at_line "
    "INTEGER, leaf_func TEXT, leaf_file TEXT, leaf_line INTEGER)",
};

/* What the first row of a class that knows the frame `r` says. */
/* clang-format off */
#define PLACES_FIND(class)                                                                        \
    "(SELECT p.name FROM temp.verdict_places p WHERE p.class = '" class "' "                      \
    "AND ((r.own AND p.file = 'own') OR r.file LIKE p.file ESCAPE '\\') "                         \
    "AND (r.func LIKE p.func ESCAPE '\\' OR r.func LIKE '%.' || p.func ESCAPE '\\') "            \
    "ORDER BY p.rowid LIMIT 1)"
/* clang-format on */

#define PLACES_OWN                                                                                           \
    "kind = 'python' AND NOT EXISTS (SELECT 1 FROM temp.verdict_places p "                                   \
    "WHERE p.class = 'library' AND f.file LIKE p.file ESCAPE '\\')"

/* Frames that are new. The body of a comprehension is not a function of the job's: its caller is. */
static const char places_frames[] = "INSERT OR IGNORE INTO temp.verdict_frames "
                                    "SELECT frame_id, func, file, lineno, "
    /* the class of each column */
    PLACES_FIND("doing") "," PLACES_FIND("phase") "," PLACES_FIND("wait") "," PLACES_FIND("import")
    /* is there one? */
    " IS NOT NULL, own AND func NOT LIKE '%<%comp>' AND func NOT LIKE '%<genexpr>' "
    "FROM (SELECT frame_id, func, file, lineno, " PLACES_OWN " AS own "
    "FROM python.frames f WHERE pid = CAST(:pid AS INTEGER) "
    "AND frame_id NOT IN (SELECT frame_id FROM temp.verdict_frames)) r";

/* Stacks that are new, `up`: with all their frames, the innermost has level 0. Of each, `b`: the
 * level of its outermost frame that does something and of the outermost that is a part of a step,
 * of the innermost of the job's own code, of that in a function, and of an import; and what its
 * innermost frames wait for. Whatever is imported may run a whole program: then it does not start
 * any more. */
static const char places_stacks[] =
    "INSERT OR IGNORE INTO temp.verdict_stacks "
    "WITH RECURSIVE new(top) AS (SELECT DISTINCT stack_id FROM python.samples "
    "WHERE pid = CAST(:pid AS INTEGER) AND timestamp > now() - 60 "
    "AND stack_id NOT IN (SELECT stack_id FROM temp.verdict_stacks) LIMIT 4000), "
    "up(top, frame, parent, level) AS (SELECT top, k.frame_id, k.parent_id, 0 "
    "FROM new CROSS JOIN python.stacks k ON k.stack_id = top "
    "UNION ALL SELECT top, k.frame_id, k.parent_id, level + 1 "
    "FROM up CROSS JOIN python.stacks k ON k.stack_id = up.parent WHERE level < 300), "
    "f AS MATERIALIZED (SELECT top, level, r.* "
    "FROM up CROSS JOIN temp.verdict_frames r ON r.frame_id = up.frame), "
    "q AS MATERIALIZED (SELECT top, max(iif(phase IS NULL, NULL, level)) AS p, min(iif(is_own, level, NULL)) "
    "AS o, "
    "min(iif(is_own AND func <> '<module>', level, NULL)) AS called, "
    "min(iif(is_import, level, NULL)) AS i, min(iif(level <= 4, wait, NULL)) AS w FROM f GROUP BY top), "
    /* what a part of a step calls belongs to the step */
    "b AS MATERIALIZED (SELECT q.*, (SELECT max(level) FROM f WHERE f.top = q.top AND doing IS NOT NULL "
    "AND (doing = 'COMPILING' OR level > coalesce(q.p, -1))) AS d FROM q), "
    "c AS (SELECT f.top, min(level) AS at FROM f JOIN b ON b.top = f.top "
    "WHERE is_own AND level >= coalesce(b.d, b.o) GROUP BY f.top) "
    "SELECT b.top, coalesce(d.doing, "
    "iif(i IS NOT NULL AND (called IS NULL OR called > i), 'STARTING', NULL)), p.phase, "
    "substr(b.w, 3), o.func, o.file, o.lineno, coalesce(a.func, o.func, l.func), "
    "coalesce(a.file, o.file, l.file), coalesce(a.lineno, o.lineno, l.lineno), l.func, l.file, l.lineno "
    "FROM b LEFT JOIN f d ON d.top = b.top AND d.level = b.d "
    "LEFT JOIN f p ON p.top = b.top AND p.level = b.p "
    "LEFT JOIN f o ON o.top = b.top AND o.level = b.o "
    "LEFT JOIN c ON c.top = b.top LEFT JOIN f a ON a.top = b.top AND a.level = c.at "
    "LEFT JOIN f l ON l.top = b.top AND l.level = 0";

/* The newest steps, once for all rules. */
static const char places_steps[] =
    "INSERT INTO temp.verdict_steps SELECT CAST(:pid AS INTEGER), max(timestamp), now() - max(timestamp), "
    "coalesce(max(duration_ms), 0) / 1000, coalesce(median(duration_ms), 0) / 1000, count(*) "
    "FROM python.steps WHERE pid = CAST(:pid AS INTEGER) AND timestamp > now() - :window";

static const char *const places_takes[] = {
    "DELETE FROM temp.verdict_steps WHERE pid = CAST(:pid AS INTEGER)",
    places_steps,
    "DELETE FROM temp.verdict_stacks WHERE (SELECT count(*) FROM temp.verdict_stacks) > " PLACES_MOST,
    "DELETE FROM temp.verdict_frames WHERE (SELECT count(*) FROM temp.verdict_frames) > " PLACES_MOST,
    places_frames,
    places_stacks,
};

static int places_run(struct database *d, const char *text, int64_t pid, double window_s, struct err *e) {
    const struct sql_named named[] = {{":pid", (double)pid}, {":window", window_s}};
    struct sql_query q = {.timeout_s = PLACES_TIMEOUT_S, .named = named, .n_named = 2, .max_rows = 1};
    struct result *rows = database_take(d, text, &q, RESULT_BYTES, e);
    if (!rows)
        return -1;
    result_unref(rows);
    return 0;
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
    int rc = text.failed ? err_set(e, ERR_FAILED, "out of memory for verdicts")
                         : places_run(d, strbuf_str(&text), 0, 0, e);
    strbuf_fini(&text);
    return rc;
}

int verdict_places_open(struct database *d, struct err *e) {
    for (size_t i = 0; i < sizeof places_tables / sizeof places_tables[0]; i++)
        if (places_run(d, places_tables[i], 0, 0, e) != 0)
            return -1;
    return places_fill(d, e);
}

int verdict_places_take(struct database *d, int64_t pid, double window_s, struct err *e) {
    for (size_t i = 0; i < sizeof places_takes / sizeof places_takes[0]; i++)
        if (places_run(d, places_takes[i], pid, window_s, e) != 0)
            return -1;
    return 0;
}
