/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_rules: all verdicts, a row each; see verdict.h.
 *
 * Thresholds are chosen so that a healthy job is not accused: a tenth of a step waiting for
 * batches, a garbage collection now and then, a step twice as long as the median are normal.
 * docs/dev/design/client.md has the reasons.
 */
#include "client/verdict/verdict.h"

/* The target, and its newest steps; the same for its training thread and the last seconds. */
#define OF_PID "pid = CAST(:pid AS INTEGER)"
#define OF_STEPS OF_PID " AND timestamp > now() - :window"
#define OF_THREAD OF_PID " AND tid = CAST(:tid AS INTEGER)"
#define LAST(n) " ORDER BY timestamp DESC LIMIT " #n

#define SAMPLES_S "20"      /* seconds of samples */
#define SAMPLES_NEEDED "60" /* needed to speak of shares */
/* not while it was being loaded */
#define LATELY "timestamp > max(now() - " SAMPLES_S ", coalesce(:first, 0))"
#define STAND_S "10"

/* The share of a part in the newest steps that have it: 40, or, if they are short, those of five
 * seconds, because a moment says little. */
#define SHARE_OF(part)                                                                                       \
    "WITH a AS (SELECT " part " AS p, duration_ms AS d, timestamp AS t, row_number() OVER (ORDER BY "        \
    "timestamp DESC) AS i, max(timestamp) OVER () AS z FROM python.steps WHERE " OF_STEPS                    \
    " AND duration_ms IS NOT NULL AND " part " IS NOT NULL) SELECT CASE WHEN count(*) >= 10 THEN sum(p) / "  \
    "sum(d) END AS share, avg(p) AS " part ", avg(d) AS step_ms, max(p) AS longest_ms, count(*) AS n FROM "  \
    "a WHERE i <= 40 OR t > z - 5"

/* The time since the last step ended, against earlier ones: up to three times the longest, five
 * times the median and ten seconds are normal. */
#define AGE                                                                                                  \
    "WITH s AS (SELECT now() - max(timestamp) AS age, max(timestamp) AS since, max(duration_ms) / 1000 AS "  \
    "longest, median(duration_ms) / 1000 AS usual, count(duration_ms) AS n FROM python.steps "               \
    "WHERE " OF_STEPS                                                                                        \
    ") SELECT CASE WHEN n >= 3 THEN age / max(10, 3 * longest, 5 * usual) END AS excess, age, longest, n, "  \
    "since FROM s"

/* Where the training thread was in the last seconds: its most frequent function, and the share
 * of the time. */
#define STANDS                                                                                               \
    "WITH c AS (SELECT stack_id, count(*) AS n, sum(gil = 'waiting') AS w FROM python.samples "              \
    "WHERE " OF_THREAD " AND timestamp > now() - " STAND_S                                                   \
    " GROUP BY stack_id), f AS (SELECT func, file, lineno, "                                                 \
    "sum(n) OVER (PARTITION BY func, file) AS same, sum(w) OVER (PARTITION BY func, file) AS waits, n FROM " \
    "c JOIN python.stacks k ON k.stack_id = c.stack_id JOIN python.frames ON python.frames.frame_id = "      \
    "k.frame_id) SELECT func, file, coalesce(':' || lineno, '') AS line, CASE WHEN waits > 0.9 * same "      \
    "THEN 'waiting for the GIL' END AS waiting, "                                                            \
    "CASE WHEN CAST(:tid AS INTEGER) = CAST(:pid AS INTEGER) THEN 'the main thread' ELSE 'the training "     \
    "thread' END AS who, (SELECT sum(n) FROM c) >= 10 AND same "
#define STANDS_MOST " FROM f ORDER BY same DESC, n DESC LIMIT 1"
#define STANDS_OF " 0.9 * (SELECT sum(n) FROM c) AS holds" STANDS_MOST
/* The same in the agent's own code, which has no file. */
#define STANDS_IN_AGENT " 0.9 * (SELECT sum(n) FROM c) AND file = '<probing>' AS holds" STANDS_MOST

/* Memory that has grown steadily since the first steps: in each third of the time, and along a
 * line. */
#define CREEP(column)                                                                                        \
    "WITH m AS (SELECT timestamp AS t, " column " AS mb FROM python.memory WHERE " OF_PID " AND " column     \
    " IS NOT NULL AND timestamp > max(coalesce(:first, 0) + 15, now() - 600)), b AS (SELECT min(t) AS a, "   \
    "max(t) AS z, max(t) - min(t) AS span, count(*) AS n, avg(mb) AS mean, corr(mb, t) AS straight, "        \
    "regr_slope(mb, t) AS slope, regr_intercept(mb, t) AS base FROM m), q AS (SELECT avg(iif(t < a + span "  \
    "/ 3, mb, NULL)) AS q1, avg(iif(t >= a + span / 3 AND t < z - span / 3, mb, NULL)) AS q2, avg(iif(t >= " \
    "z - span / 3, mb, NULL)) AS q3 FROM m, b) SELECT CASE WHEN n >= 30 AND span >= iif(:first IS NULL, "    \
    "300, 30) AND straight > 0.95 AND slope * span >= 20 AND q2 - q1 > (q3 - q1) / 4 AND q3 - q2 > (q3 - "   \
    "q1) / 4 THEN slope * span / mean END AS growth, slope * 60 AS a_minute, base + slope * a AS was, base " \
    "+ slope * z AS is_now, span, slope * (SELECT avg(duration_ms) / 1000 FROM python.steps WHERE " OF_STEPS \
    ") AS a_step, slope FROM b, q"

/*
 * Non-finite numbers in the newest steps: `n` of them, among `read` steps with a value. NULL: it
 * was not read in that step, as in most steps if they are short. One non-finite gradient now and
 * then is how a GradScaler finds its scale.
 */
#define STEPS_NAN(column)                                                                                    \
    "WITH s AS (SELECT step, CASE WHEN nonfinite IN ('" column "', 'both') THEN 1 ELSE abs(" column          \
    ") > 1.7e308 END AS is_bad FROM python.steps WHERE " OF_STEPS LAST(                                      \
        200) "), c AS (SELECT coalesce(sum(is_bad), 0) AS bad, count(is_bad) AS read, count(*) AS n, "       \
             "min(iif(is_bad, step, NULL)) AS first, max(iif(is_bad, step, NULL)) AS last FROM s)"
/* How many of them, in words. */
#define STEPS_NAN_OF                                                                                         \
    "CASE WHEN read = n THEN bad || ' of the last ' || n || ' steps' WHEN read = 1 THEN 'the only one that " \
    "was read, of the last ' || n || ' steps' WHEN bad = read THEN 'all ' || read || ' that were read, of "  \
    "the last ' || n || ' steps' ELSE bad || ' of ' || read || ' that were read, of the last ' || n || ' "   \
    "steps' END AS which"

/* The first find of the search for non-finite values, since the last search without one. */
#define HUNTED(stages)                                                                                       \
    "SELECT 1 AS found, step, what, CASE module WHEN '' THEN 'the model' ELSE module END AS module, class, " \
    "CASE WHEN nan > 0 AND inf > 0 THEN nan || ' NaN, ' || inf || ' infinite' WHEN nan > 0 THEN nan || ' "   \
    "NaN' ELSE inf || ' infinite' END AS bad, elements, CASE WHEN what LIKE 'output %' AND input_nonfinite " \
    "= 0 THEN input_min END AS input_min, input_max, parameter FROM python.nonfinite WHERE " OF_PID          \
    " AND timestamp > max(now() - 600, coalesce((SELECT max(timestamp) FROM python.nonfinite WHERE " OF_PID  \
    " AND stage = 'none'), 0)) AND " stages " ORDER BY timestamp LIMIT 1"
#define NONFINITE_WORDS                                                                                      \
    "[step {step}: ]the first number that is not finite is in {what}[ of {module} ({class})]: {bad} of "     \
    "{elements:n}[; it was called with numbers from {input_min} to {input_max}][; its {parameter} is not "   \
    "finite either]"

const struct verdict_rule verdict_rules[] = {
    /* ---- how it gets on: the first that holds ---- */
    {.code = "NO STEPS",
     .level = VERDICT_NOTE,
     .is_state = true,
     .help = "no optimizer step was seen yet: it loads, compiles or evaluates, or it does not train with "
             "torch.optim",
     .sql = "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM python.steps WHERE " OF_PID
            ") THEN max(uptime_s) END AS looked_s, (SELECT value FROM probing.facts WHERE " OF_PID
            " AND key = 'torch'" LAST(1) ") AS torch FROM probing.status WHERE " OF_PID
                                         " AND timestamp > now() - 10",
     .threshold = 3,
     .words = "no optimizer step seen in {looked_s:s}[ (torch {torch})]",
     .screen = "steps"},
    {.code = "HELD",
     .level = VERDICT_NOTE,
     .is_state = true,
     .help =
         "by 'pause' or 'catch': it goes on by continue at their pdb, by --off, or when their time is over",
     .sql = AGE,
     .threshold = 1,
     .more = STANDS ">=" STANDS_IN_AGENT,
     .words = "no step for {age:s}: {who} is held by a debugger, in {func}",
     .screen = "threads"},
    {.code = "STUCK",
     .level = VERDICT_BAD,
     .is_state = true,
     .help = "steps have stopped, and the thread that trains does not move: the Threads screen has its whole "
             "stack",
     .sql = AGE,
     .threshold = 1,
     .more = STANDS ">=" STANDS_OF,
     .words = "no step for {age:s}, the longest of the {n} before took {longest:s}[; {who} stands in {func} "
              "({file:file}{line})][, {waiting}]",
     .brief = "STUCK[ in {func}][, {waiting}]",
     .screen = "threads"},
    {.code = "MOVING",
     .level = VERDICT_NOTE,
     .is_state = true,
     .help = "no step ends, but the thread that trains works: evaluation, a checkpoint, or the end of the "
             "training",
     .sql = AGE,
     .threshold = 1,
     .more = STANDS "<" STANDS_OF,
     .words = "no step for {age:s}, the longest of the {n} before took {longest:s}, but {who} works: lately "
              "mostly in {func} ({file:file}{line})",
     .screen = "flame"},
    {.code = "SLOW",
     .level = VERDICT_WARN,
     .is_state = true,
     .moves = true,
     .help = "the newest tenth of the steps takes longer than those before: the Steps screen says what "
             "explains it",
     .sql =
         "WITH s AS (SELECT duration_ms AS d, row_number() OVER (ORDER BY timestamp DESC) AS i, count(*) "
         "OVER () AS n FROM python.steps WHERE " OF_STEPS
         " AND duration_ms IS NOT NULL), r AS (SELECT iif(10 * i "
         "<= n, d, NULL) AS new, iif(10 * i <= n, NULL, d) AS old, n FROM s) SELECT CASE WHEN max(n) >= 60 "
         "AND quantile(new, 0.25) > quantile(old, 0.75) THEN median(new) / median(old) END AS ratio, "
         "median(new) AS new_ms, median(old) AS old_ms, count(new) AS newest, count(old) AS before FROM r",
     .threshold = 1.5,
     .words = "the last {newest:steps} took {new_ms:ms} each, the {before} before them {old_ms:ms} (medians)",
     .screen = "steps"},
    {.code = "MOVING",
     .level = VERDICT_FINE,
     .is_state = true,
     .moves = true,
     .help = "steps end as they did before",
     .sql = "WITH s AS (SELECT timestamp, step, duration_ms FROM python.steps WHERE " OF_STEPS
            " AND duration_ms IS NOT NULL" LAST(100) ") SELECT 1000 * count(*) / sum(duration_ms) AS rate, "
                                                     "median(duration_ms) AS p50, quantile(duration_ms, "
                                                     "0.99) AS p99, count(*) AS n, max(step) AS step, "
                                                     "max(0, now() - max(timestamp)) AS age FROM s",
     .threshold = 0,
     .words = "{rate:rate}, {p50:ms} a step (median; 99 % within {p99:ms}; last {n:steps})",
     .screen = "steps"},
    /* ---- what is the matter ---- */
    {.code = "NAN",
     .level = VERDICT_BAD,
     .help = "the first place, of those that were looked at: what comes after it follows from it; "
             "python.nonfinite has its stack",
     .needs = "python.nonfinite",
     .sql = HUNTED("stage IN ('forward', 'gradient')"),
     .threshold = 1,
     .words = NONFINITE_WORDS,
     .brief = "NAN[ in {module}]",
     .screen = "modules"},
    {.code = "NAN",
     .level = VERDICT_WARN,
     .help = "what a module gave was finite, its gradient was not; with a GradScaler that is how it finds "
             "its scale, now and then",
     .needs = "python.nonfinite",
     .sql = HUNTED("stage = 'backward'"),
     .threshold = 1,
     .words = NONFINITE_WORDS,
     .brief = "NAN[ in {module}]",
     .screen = "modules"},
    {.code = "NAN",
     .level = VERDICT_BAD,
     .help = "training on is for nothing: go back to a checkpoint from before that step",
     .sql = STEPS_NAN("loss") "SELECT bad AS losses, first, last, read, n, " STEPS_NAN_OF " FROM c",
     .threshold = 1,
     .words = "the loss was not a finite number in {which}, first in step {first}, last in step {last}",
     .brief = "NAN in the loss",
     .screen = "steps"},
    {.code = "NAN",
     .level = VERDICT_BAD,
     .help = "gradients overflow again and again: no step like this is of use",
     .sql = STEPS_NAN("grad_norm") "SELECT CASE WHEN read >= 10 THEN 1.0 * bad / read END AS share, bad, "
                                   "first, read, n, " STEPS_NAN_OF " FROM c",
     .threshold = 0.2,
     .words = "the gradients were not finite in {which}, first in step {first}",
     .brief = "NAN in the gradients",
     .screen = "steps"},
    {.code = "INPUT-BOUND",
     .level = VERDICT_WARN,
     .moves = true,
     .help = "more workers, less work in Dataset.__getitem__, or data that is nearer",
     /* A thread that waits for the GIL in the loader's code would wait for it elsewhere too:
      * that is not the loader's fault. */
     .sql =
         "WITH l AS (SELECT avg(gil = 'waiting') AS waits FROM python.samples WHERE " OF_THREAD " AND " LATELY
         " AND stack_id IN (SELECT stack_id FROM python.stacks k JOIN python.frames ON "
         "python.frames.frame_id = k.frame_id WHERE file LIKE '%/torch/utils/data/%')) SELECT CASE WHEN "
         "coalesce((SELECT waits FROM l), 0) < 0.5 THEN share END AS share, data_ms, step_ms, longest_ms, n "
         "FROM (" SHARE_OF("data_ms") ")",
     .threshold = 0.3,
     /* An idle worker waits for its queue. Unreadable ones do not count. */
     .more = "WITH w AS (SELECT worker, worker_pid, func, file LIKE '%/multiprocessing/%' OR file LIKE "
             "'%/selectors.py' "
             "OR file LIKE '%/queue.py' AS idle FROM python.loader_workers WHERE " OF_PID
             "), n AS (SELECT count(*) AS "
             "n, sum(NOT idle) AS busy, count(idle) AS known FROM w) SELECT iif(busy = 1 AND known = n AND n "
             "> 1, (SELECT "
             "worker FROM w WHERE NOT idle), NULL) AS worker, (SELECT worker_pid FROM w WHERE NOT idle) AS "
             "worker_pid, "
             "(SELECT func FROM w WHERE NOT idle) AS func, iif(busy = n AND n > 1, n, NULL) AS busy, (SELECT "
             "'the "
             "training makes its batches itself: num_workers is 0' FROM python.loaders WHERE " OF_PID
             " AND timestamp > "
             "now() - 5 AND workers = 0 LIMIT 1) AS itself FROM n",
     .more_needs = "python.loader_workers",
     .words =
         "{share:%} of a step waits for the loader ({data_ms:ms} of {step_ms:ms}, last {n:steps})[; worker "
         "{worker:n} (pid {worker_pid:n}) is the slowest, in {func}][; all {busy:n} workers are busy][; "
         "{itself}]",
     .brief = "INPUT-BOUND[, worker {worker:n}][, all {busy:n} workers]",
     .screen = "loader"},
    {.code = "GC PAUSES",
     .level = VERDICT_WARN,
     .moves = true,
     .help = "gc.freeze() once the model is there, gc.disable() and a gc.collect() now and then, or fewer "
             "objects",
     .sql = SHARE_OF("gc_ms"),
     .threshold = 0.05,
     .words = "{share:%} of a step goes into collecting garbage ({gc_ms:ms} of {step_ms:ms}, at most "
              "{longest_ms:ms}, "
              "last {n:steps})",
     .screen = "steps"},
    {.code = "GC PAUSES",
     .level = VERDICT_WARN,
     .help = "gc.freeze() once the model is there, gc.disable() and a gc.collect() now and then, or fewer "
             "objects",
     .sql = "SELECT CASE WHEN count(gc) >= " SAMPLES_NEEDED
            " AND NOT EXISTS (SELECT 1 FROM python.steps WHERE " OF_STEPS
            " AND gc_ms IS NOT NULL) THEN 1.0 * sum(gc) / count(gc) END AS share, count(gc) AS looks FROM "
            "python.samples WHERE " OF_THREAD " AND " LATELY,
     .threshold = 0.07,
     .words =
         "{share:%} of the time the training thread collects garbage (last " SAMPLES_S " s, {looks} looks)",
     .screen = "steps"},
    {.code = "GIL CONTENTION",
     .level = VERDICT_WARN,
     .help = "another thread of the process runs Python when the training would: give that work to a process "
             "of its own",
     .sql = "SELECT CASE WHEN count(gil) >= " SAMPLES_NEEDED
            " THEN 1.0 * sum(gil = 'waiting') / count(gil) END AS share, "
            "count(gil) AS looks FROM python.samples WHERE " OF_THREAD " AND " LATELY,
     .threshold = 0.2,
     .more = "SELECT thread AS holder, tid AS holder_tid, 1.0 * sum(gil = 'held') / count(gil) AS held FROM "
             "python.samples WHERE " OF_PID " AND tid <> CAST(:tid AS INTEGER) AND " LATELY
             " GROUP BY tid ORDER BY held DESC LIMIT 1",
     .words = "the training thread waits for the GIL {share:%} of the time (last " SAMPLES_S
              " s)[; {holder} ({holder_tid:n}) holds it {held:%}]",
     .brief = "GIL CONTENTION[ by {holder}]",
     .screen = "threads"},
    {.code = "MEMORY CREEP",
     .level = VERDICT_WARN,
     .help = "something is kept that should go: a list of losses with their graphs, a cache without an end",
     .sql = CREEP("memory_mb"),
     .threshold = 0.02,
     .more =
         "SELECT (cgroup_limit_bytes - cgroup_memory_bytes) / 1048576.0 AS room FROM system.process_history "
         "WHERE " OF_PID " AND timestamp > now() - 10" LAST(1),
     .words = "memory grows by {a_minute:MiB} a minute[, {a_step:MiB} a step] (from {was:MiB} to "
              "{is_now:MiB} in {span:s})"
              "[; there is room for {room:MiB} more]",
     .brief = "MEMORY CREEP {a_minute:MiB}/min",
     .screen = "tensors"},
    {.code = "MEMORY CREEP",
     .level = VERDICT_WARN,
     .help = "tensors are kept that should go: losses with their graphs, outputs in a list",
     .sql = CREEP("gpu_allocated_mb"),
     .threshold = 0.02,
     .words = "memory on GPUs grows by {a_minute:MiB} a minute[, {a_step:MiB} a step] (from {was:MiB} to "
              "{is_now:MiB} in {span:s})",
     .brief = "GPU MEMORY CREEP {a_minute:MiB}/min",
     .screen = "tensors"},
    {.code = "COMPUTE-BOUND",
     .level = VERDICT_FINE,
     .moves = true,
     .is_alone = true,
     .help = "the time goes where it should: what is left is to make the model itself faster",
     /* Waiting for the GIL is not computing: a tenth of the samples, however few, is enough to
      * say nothing. */
     .sql = "WITH s AS (SELECT forward_ms AS f, backward_ms AS b, optimizer_ms AS o, duration_ms AS d FROM "
            "python.steps WHERE " OF_STEPS " AND forward_ms IS NOT NULL AND backward_ms IS NOT NULL AND "
            "optimizer_ms IS NOT NULL AND duration_ms IS NOT NULL" LAST(
                40) "), g AS (SELECT avg(gil = 'waiting') AS waits FROM python.samples WHERE " OF_THREAD
                    " AND " LATELY ") SELECT CASE WHEN count(*) >= 3 AND coalesce((SELECT waits FROM g), 0) "
                    "< 0.1 THEN sum(f + b + o) / sum(d) END AS share, avg(f) AS forward_ms, avg(b) AS "
                    "backward_ms, avg(o) AS optimizer_ms, avg(d) AS step_ms, count(*) AS n FROM s",
     .threshold = 0.7,
     .words = "{share:%} of a step is forward ({forward_ms:ms}), backward ({backward_ms:ms}) and optimizer "
              "({optimizer_ms:ms}), of {n:steps} that were looked into",
     .screen = "steps"},
    {.code = NULL},
};
