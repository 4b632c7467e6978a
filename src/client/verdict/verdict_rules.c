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

/* Shares need so many steps, which took so long in all, because a moment shows little; or very many.
 * Few are enough where nearly each of them is mostly that part. */
#define STEPS_NEEDED "10"
#define STEPS_NEEDED_S "2"
#define STEPS_ENOUGH                                                                                         \
    "(count(*) >= 400 OR (count(*) >= " STEPS_NEEDED " AND sum(duration_ms) >= 1000 * " STEPS_NEEDED_S "))"
#define STEPS_FEW "3"
#define STEPS_ARE_MOSTLY(part)                                                                               \
    "(count(*) >= " STEPS_FEW " AND sum(duration_ms) >= 1000 AND sum(" part ") > 0.5 * sum(duration_ms) "    \
    "AND sum(" part " > 0.5 * duration_ms) >= 0.8 * count(*))"

/* The share of a part in the newest steps that have it: 40, or, if they are short, those of five
 * seconds, because a moment says little. */
#define SHARE_IF(enough, part)                                                                               \
    "WITH z AS (SELECT min(timestamp) AS oldest, max(timestamp) AS newest FROM (SELECT timestamp FROM "      \
    "temp.verdict_recent WHERE " OF_STEPS " AND duration_ms IS NOT NULL AND " part                           \
    " IS NOT NULL" LAST(40) ")) SELECT CASE WHEN " enough " THEN sum(" part                                  \
                            ") / sum(duration_ms) END AS share, avg(" part ") AS " part                      \
                            ", avg(duration_ms) AS step_ms, max(" part                                       \
                            ") AS longest_ms, count(*) AS n FROM temp.verdict_recent WHERE " OF_PID          \
                            " AND timestamp >= (SELECT min(oldest, newest - 5) FROM z) AND duration_ms IS "  \
                            "NOT NULL AND " part " IS NOT NULL"
#define SHARE_OF(part) SHARE_IF(STEPS_ENOUGH, part)
/* The same, also of few steps if it is plain. */
#define SHARE_SOON(part) SHARE_IF(STEPS_ENOUGH " OR " STEPS_ARE_MOSTLY(part), part)

/* Where steps are too few to know what they wait for: how long it takes until there are enough,
 * unless that is plain already. The rule is read again if it is worth it: for the first steps, or
 * where the rest is a moment. A job that has ended does not make other steps: `few_steps`. */
#define LOADER_IS_PLAIN STEPS_ARE_MOSTLY("data_ms")
#define FEW_STEPS                                                                                            \
    "WITH s AS (SELECT count(*) AS n, max((" STEPS_NEEDED " - count(*)) * max(avg(duration_ms) / 1000, "     \
    "now() - max(timestamp)), " STEPS_NEEDED_S " - sum(duration_ms) / 1000) AS rest, NOT " STEPS_ENOUGH      \
    " AS few, coalesce(" LOADER_IS_PLAIN ", 0) AS plain, CAST(:ended AS INTEGER) AS ended FROM "             \
    "temp.verdict_recent WHERE " OF_STEPS " AND duration_ms IS NOT NULL) SELECT few AND NOT ended AND (n "   \
    "< " STEPS_FEW " OR rest < 3) AS again, iif(few AND NOT plain AND NOT ended, iif(rest < 120, "           \
    "printf('%d s', 1 + CAST(rest AS INTEGER)), printf('%d min', 1 + CAST(rest / 60 AS INTEGER))), NULL) "   \
    "AS ask_in, iif(few AND NOT plain AND ended, 'too few to say what they wait for', NULL) AS few_steps "   \
    "FROM s"

/* Where one step was seen, a second one shows more than the place where it is now. */
#define ONE_STEP                                                                                             \
    "SELECT steps = 1 AND age < 20 AND NOT CAST(:ended AS INTEGER) AS again FROM temp.verdict_steps "        \
    "WHERE " OF_PID

/* The time since the last step ended, against earlier ones: up to three times the longest, five
 * times the median and six seconds are normal. The first steps say little of those that follow. */
#define AGE                                                                                                  \
    "SELECT CASE WHEN steps > 0 THEN age / max(CASE WHEN n < 2 THEN 60 WHEN n < 10 THEN 20 ELSE 6 END, "     \
    "3 * longest, 5 * usual) END AS excess, age, iif(n > 0, longest, NULL) AS longest, nullif(n, 0) AS n, "  \
    "last AS since FROM temp.verdict_steps WHERE " OF_PID

#define WHO                                                                                                  \
    "CASE WHEN CAST(:tid AS INTEGER) = CAST(:pid AS INTEGER) THEN 'the main thread' ELSE 'the training "     \
    "thread' END AS who"

/* What a thread that computes may leave behind it: memory that comes or goes, or data. */
#define PROGRESSES                                                                                           \
    "(SELECT max(rss_bytes) - min(rss_bytes) > 8e6 OR max(minor_faults) - min(minor_faults) > 2000 OR "      \
    "max(coalesce(read_bytes, 0) + coalesce(written_bytes, 0)) - min(coalesce(read_bytes, 0) + "             \
    "coalesce(written_bytes, 0)) > 1e6 FROM system.process_history WHERE " OF_PID                            \
    " AND timestamp > now() - " STAND_S ")"
/* For how long it may compute in one function, or wait for workers or other ranks, before it has
 * stopped: the first steps and the first batch of a loader take long. */
#define PATIENCE                                                                                             \
    "iif((SELECT steps FROM e) < 10 OR (others > 0 AND (SELECT received FROM python.loaders WHERE " OF_PID   \
    " ORDER BY timestamp DESC LIMIT 1) = 0), 60, 10)"

/* Where the training thread was in the last seconds, since the last step: its most frequent
 * function, and the share of the time. What computes for some seconds in one function has not
 * stopped yet, and workers or other ranks may be busy: that takes longer to say. */
#define STANDS                                                                                               \
    "WITH e AS (SELECT last, steps FROM temp.verdict_steps WHERE " OF_PID                                    \
    "), c AS MATERIALIZED (SELECT * FROM temp.verdict_seen WHERE " OF_THREAD                                 \
    " AND timestamp > max(now() - " STAND_S                                                                  \
    ", (SELECT last FROM e))), f AS (SELECT leaf_file, coalesce(own_func, leaf_func) AS func, "              \
    "coalesce(own_file, leaf_file) AS file, iif(own_func IS NULL, leaf_line, own_line) AS lineno, "          \
    "nullif(leaf_func, own_func) AS leaf, count(*) AS same, max(timestamp) AS newest, sum(gil = 'waiting') " \
    "AS waits, sum(on_cpu) AS ran, count(on_cpu) FILTER (WHERE timestamp > now() - 3) AS lately, "           \
    "sum(on_cpu) FILTER (WHERE timestamp > now() - 3) AS ran_lately, sum(coalesce(phase, '') IN ('loader', " \
    "'comm')) AS others FROM c GROUP BY leaf_func, leaf_file) SELECT func, file, coalesce(':' || lineno, "   \
    "'') AS line, leaf, CASE WHEN waits > 0.9 * same THEN 'waiting for the GIL' END AS waiting, " WHO        \
    ", (SELECT count(*) >= 10 OR (count(*) >= 4 AND max(timestamp) - min(timestamp) >= 3) FROM c) AND "
#define STANDS_STILL                                                                                         \
    "(same >= 0.9 * (SELECT count(*) FROM c) AND CASE WHEN others = 0 AND (coalesce(ran, same) < 0.1 * "     \
    "same OR (ran < 0.3 * same AND lately >= 2 AND ran_lately = 0)) THEN 1 WHEN (SELECT now() - last FROM "  \
    "e) < " PATIENCE " THEN 0 ELSE coalesce(ran, same) < 0.1 * same OR NOT coalesce(" PROGRESSES ", 0) END)"
/* It computes, or it is in one function after the other. */
#define STANDS_NOT                                                                                           \
    "NOT " STANDS_STILL " AND (same < 0.9 * (SELECT count(*) FROM c) OR coalesce(ran, same) >= 0.1 * same)"
#define STANDS_MOST " AS holds FROM f ORDER BY same DESC LIMIT 1"

/* The last seconds of the training thread, `s`, and what the kernel says of all threads, `h`. */
#define LAST_S "5"
/* Where a DataLoader worker is: in the job's own code, if it is there. */
#define WORKER_PLACE                                                                                         \
    "coalesce(own, func || ' (' || replace(file, rtrim(file, replace(file, '/', '')), '') || coalesce(':' "  \
    "|| lineno, '') || ')')"
#define NOW                                                                                                  \
    "WITH e AS (SELECT last, age, longest, usual, steps FROM temp.verdict_steps WHERE " OF_PID               \
    "), s AS MATERIALIZED (SELECT * FROM temp.verdict_seen WHERE " OF_THREAD                                 \
    " AND timestamp > max(now() - " LAST_S                                                                   \
    ", coalesce((SELECT last FROM e), 0))), h AS MATERIALIZED (SELECT tid, cpu_pct, state, wchan, "          \
    "coalesce(name, native_name) AS name, timestamp AS at FROM system.threads_history WHERE " OF_PID         \
    " AND timestamp > now() - 30), m AS (SELECT count(*) AS known, max(cpu_pct) / 100 AS cpu, avg(state = "  \
    "'D') AS disk, avg(wchan LIKE '%nanosleep%') AS asleep, avg(wchan LIKE 'futex%') AS locked, avg(wchan "  \
    "LIKE 'n_tty%') AS input, avg(wchan LIKE '%accept%') AS connection, avg(wchan LIKE '%poll%' OR wchan "   \
    "LIKE '%select%') AS events, avg(wchan = 'do_wait') AS child, avg(wchan LIKE '%sigtimedwait%' OR wchan " \
    "LIKE '%pause' OR wchan LIKE '%sigsuspend') AS signals FROM h WHERE tid = CAST(:tid AS INTEGER) AND at " \
    "> now() - " LAST_S "), c AS (SELECT avg(cpu) AS cpu FROM (SELECT sum(cpu_pct) / 100 AS cpu FROM h "     \
    "WHERE at > now() - " LAST_S " GROUP BY at)) "

/* One thing that it does, when no step ends or none was ever seen: in half of the last samples,
 * where its clock moves, or (a save, a load) data does. */
#define DOING(kind, alive)                                                                                   \
    NOW ", w AS (SELECT at_func AS func, at_file AS file, coalesce(':' || at_line, '') AS line, count(*) "   \
        "AS n, max(timestamp) AS newest FROM s WHERE doing = '" kind                                         \
        "' GROUP BY at_func, at_file ORDER BY n DESC LIMIT 1) SELECT CASE WHEN steps > 0 AND age <= "        \
        "max(1.5, 3 * longest, 5 * usual) THEN 0 WHEN (SELECT count(*) FROM s) < 10 THEN NULL WHEN m.known " \
        "< 3 OR m.cpu >= 0.01 OR " alive " THEN coalesce(1.0 * w.n / (SELECT count(*) FROM s), 0) ELSE 0 "   \
        "END AS share, func, file, line, age, " WHO " FROM e, m LEFT JOIN w"
#define MOVES_DATA                                                                                           \
    "(SELECT max(read_bytes + written_bytes) > min(read_bytes + written_bytes) FROM system.process_history " \
    "WHERE " OF_PID " AND timestamp > now() - " LAST_S ")"
#define DOING_WORDS(what)                                                                                    \
    "[no step for {age:s}; ]" what " in {func} ({file:file}{line}), {share:%} of the last " LAST_S " s"

/* Where the training thread was most of the last seconds: its line, and what it waits for. */
#define PLACE                                                                                                \
    ", p AS (SELECT at_func AS func, at_file AS file, coalesce(':' || at_line, '') AS line, phase, wait, "   \
    "own_func = leaf_func AND own_line = leaf_line AS is_own, leaf_func AS leaf, count(*) AS n, "            \
    "max(timestamp) AS newest, 1.0 * count(*) / (SELECT count(*) FROM s) AS share, avg(on_cpu) AS ran FROM " \
    "s GROUP BY leaf_func, leaf_file ORDER BY n DESC LIMIT 1)"
/* It waits on purpose, as servers do; NULL: not known. */
#define PURPOSE                                                                                              \
    "CASE WHEN phase IS NOT NULL THEN NULL WHEN wait = 'request' THEN 'for requests' WHEN connection > 0.8 " \
    "THEN 'for connections' WHEN wait = 'process' OR child > 0.8 THEN 'for a child process' WHEN input > "   \
    "0.8 THEN 'for input' WHEN asleep > 0.8 THEN 'asleep' WHEN signals > 0.8 THEN 'for a signal' WHEN wait " \
    "IS NULL AND events > 0.8 THEN 'for events' END"
#define IDLE_WORDS "{who} waits on purpose, {purpose}, in {func} ({file:file}{line})[, {cpu:%} of a core]"

/* Runs of samples in which the training thread does one thing, within seconds that began so long
 * after the first step: their share, their number, and where. */
#define RUNS(kind, seconds, after)                                                                           \
    "WITH s AS MATERIALIZED (SELECT timestamp AS t, coalesce(doing = '" kind                                 \
    "', 0) AS is_it, at_func, at_file, at_line FROM temp.verdict_seen WHERE EXISTS (SELECT 1 FROM "          \
    "temp.verdict_stacks WHERE " OF_PID " AND doing = '" kind "') AND " OF_THREAD " AND " RUNS_TIME(         \
        seconds,                                                                                             \
        after) "), w AS (SELECT at_func AS func, at_file AS file, coalesce(':' || at_line, '') AS line, "    \
               "count(*) AS n FROM s WHERE is_it GROUP BY at_func, at_file ORDER BY n DESC LIMIT 1), l AS "  \
               "(SELECT t, is_it, lag(is_it, 1, 0) OVER (ORDER BY t) AS was FROM s WHERE EXISTS (SELECT 1 "  \
               "FROM w)), b AS (SELECT count(*) AS runs, min(t) AS a, max(t) AS z FROM l WHERE is_it AND "   \
               "NOT was), n AS (SELECT count(*) AS taken, min(timestamp) AS a, max(timestamp) AS z FROM "    \
               "temp.verdict_looks WHERE " OF_THREAD " AND " RUNS_TIME(                                      \
                   seconds,                                                                                  \
                   after) "), a AS (SELECT coalesce(avg(is_it), 0) AS share, (SELECT runs FROM b) AS runs "  \
                          "FROM s) SELECT CASE WHEN taken >= " SAMPLES_NEEDED                                \
                          " THEN iif(runs >= 2 OR share > 0.5, share, 0) END AS share, share * (n.z - n.a) " \
                          "/ runs AS each_s, iif(share < 0.05 OR runs < 2, NULL, (SELECT nullif(round(1.0 "  \
                          "* count(*) / (runs - 1)), 0) FROM python.steps, b WHERE " OF_PID                  \
                          " AND timestamp BETWEEN b.a AND b.z)) AS every, runs, n.z - n.a AS span, func, "   \
                          "file, line, taken FROM n, a LEFT JOIN w"
#define RUNS_TIME(seconds, after) "timestamp > max(now() - " seconds ", coalesce(:first, 0) + " after ")"

/* Over the last seconds: what each thread ran and what it waited for a CPU, both in CPUs, `d`;
 * all of them, `a`; and what the process may use, `u`. */
#define HOST_S "15"
#define CPUS                                                                                                 \
    "WITH h AS MATERIALIZED (SELECT tid, cpu_wait_s AS w, cpu_pct / 100 AS ran, timestamp AS at FROM "       \
    "system.threads_history WHERE " OF_PID " AND timestamp > now() - " HOST_S                                \
    "), d AS (SELECT tid, (max(w) - min(w)) / (max(at) - min(at)) AS waits, avg(ran) AS ran FROM h WHERE w " \
    "IS NOT NULL GROUP BY tid HAVING count(ran) >= 5), a AS (SELECT sum(waits + ran) AS wanted, sum(ran) "   \
    "AS ran, sum(waits + ran > 0.2) AS threads FROM d), u AS (SELECT cpus FROM system.process_history "      \
    "WHERE " OF_PID " AND timestamp > now() - 60 AND cpus IS NOT NULL ORDER BY timestamp DESC LIMIT 1), t "  \
    "AS (SELECT waits FROM d WHERE tid = CAST(:tid AS INTEGER)) "

/* The share of a time that threads waited for a CPU, of those that want one: a row for each that was
 * read so many times. */
#define WAITED(time, least)                                                                                  \
    "SELECT (max(cpu_wait_s) - min(cpu_wait_s)) / (max(timestamp) - min(timestamp)) AS waits FROM "          \
    "system.threads_history WHERE " OF_PID                                                                   \
    " AND timestamp > max(now() - 120, (SELECT min(timestamp) FROM temp.verdict_recent WHERE " OF_STEPS      \
    ")) AND " time " AND tid IN (SELECT tid FROM d WHERE ran > 0.1 OR tid = CAST(:tid AS INTEGER)) AND "     \
    "cpu_wait_s IS NOT NULL GROUP BY tid HAVING count(*) >= " least

/* How much of the last seconds a counter of the process has grown by. */
#define GROWS(column)                                                                                        \
    "WITH g AS (SELECT timestamp AS t, " column " AS v FROM system.process_history WHERE " OF_PID            \
    " AND timestamp > now() - 20 AND " column                                                                \
    " IS NOT NULL), r AS (SELECT (max(v) - min(v)) / (max(t) - min(t)) AS share, max(t) - min(t) AS span "   \
    "FROM g), b AS (SELECT max(swap_bytes) / 1048576.0 AS swapped, 1.0 * (max(major_faults) - "              \
    "min(major_faults)) / (max(timestamp) - min(timestamp)) AS faults, (max(read_bytes) - min(read_bytes)) " \
    "/ 1048576.0 / (max(timestamp) - min(timestamp)) AS reads, (max(written_bytes) - min(written_bytes)) / " \
    "1048576.0 / (max(timestamp) - min(timestamp)) AS writes FROM system.process_history WHERE " OF_PID      \
    " AND timestamp > now() - 20), u AS (SELECT cpus FROM system.process_history WHERE " OF_PID              \
    " AND timestamp > now() - 60 AND cpus IS NOT NULL ORDER BY timestamp DESC LIMIT 1) "

/* What it waits for now, who holds the GIL if it waits for that, what the thread waits for that holds
 * what it wants. One look at all threads. */
#define WAITS_FOR                                                                                            \
    "WITH t AS MATERIALIZED (SELECT tid, name, waits_kind, waits_for, waits_tid FROM temp.verdict_threads "  \
    "WHERE " OF_PID "), m AS (SELECT * FROM t WHERE tid = CAST(:tid AS INTEGER)) SELECT CASE m.waits_kind "  \
    "WHEN 'gil' THEN iif(m.waits_tid IS NULL, NULL, replace(m.waits_for, 'the GIL, ', '')) "                 \
    "ELSE 'waiting for ' || m.waits_for END AS waits, h.name AS holder, h.waits_for AS "                     \
    "holder_waits FROM m LEFT JOIN t h ON h.tid = m.waits_tid"
#define WAITS_FOR_WORDS "[, {waits}][; {holder} waits for {holder_waits}]"

/* A job with torch in which the agent is new: its first step may still end. */
#define YOUNG                                                                                                \
    "(coalesce((SELECT max(uptime_s) FROM probing.status WHERE " OF_PID                                      \
    " AND timestamp > now() - 10), 9) < 3 AND EXISTS (SELECT 1 FROM probing.facts WHERE " OF_PID             \
    " AND key = 'torch'))"
/* The same where it works meanwhile, a little at least (`c`). */
#define FIRST_STEP "(coalesce(c.cpu, 0) >= 0.02 AND " YOUNG ")"

/* Memory that has grown steadily: in each third of the time since `from`, and along a line. */
#define CREEP(column, from, enough)                                                                          \
    "WITH m AS (SELECT timestamp AS t, " column " AS mb FROM python.memory WHERE " OF_PID " AND " column     \
    " IS NOT NULL AND timestamp > " from "), b AS (SELECT min(t) AS a, "                                     \
    "max(t) AS z, max(t) - min(t) AS span, count(*) AS n, avg(mb) AS mean, corr(mb, t) AS straight, "        \
    "regr_slope(mb, t) AS slope, regr_intercept(mb, t) AS base FROM m), q AS (SELECT avg(iif(t < a + span "  \
    "/ 3, mb, NULL)) AS q1, avg(iif(t >= a + span / 3 AND t < z - span / 3, mb, NULL)) AS q2, avg(iif(t >= " \
    "z - span / 3, mb, NULL)) AS q3 FROM m, b) SELECT CASE WHEN " enough                                     \
    " AND straight > 0.95 AND q2 - q1 > (q3 - q1) / 4 AND q3 - q2 > (q3 - "                                  \
    "q1) / 4 THEN slope * span / mean END AS growth, slope * 60 AS a_minute, base + slope * a AS was, base " \
    "+ slope * z AS is_now, span, slope * (SELECT avg(duration_ms) / 1000 FROM python.steps WHERE " OF_STEPS \
    ") AS a_step, slope FROM b, q"
/* Since the first steps. */
#define CREEP_LONG(column)                                                                                   \
    CREEP(column, "max(coalesce(:first, 0) + 15, now() - 600)",                                              \
          "n >= 30 AND span >= iif(:first IS NULL, 300, 30) AND slope * span >= 20")
/* In the last seconds, of a job that trains: nothing is said by that alone, since caches that fill
 * look the same. */
#define CREEP_S "12"
#define CREEP_FAST                                                                                           \
    CREEP("memory_mb", "max(:first + 2, now() - " CREEP_S ")",                                               \
          ":first IS NOT NULL AND n >= 8 AND span >= 7 AND slope * span >= 64")

/* What grows meanwhile: `k`, how quickly memory does, in bytes a second; `g`, what variables hold
 * (a look at the job's objects, which the agent takes seldom); `h`, the holder that grows most,
 * and `s`, the line whose allocations do, where they are traced. What has a bound, and room left,
 * is not a leak yet. */
#define GROWTH_RATE                                                                                          \
    "k AS (SELECT regr_slope(memory_mb, timestamp) * 1048576 AS rate FROM python.memory WHERE " OF_PID       \
    " AND timestamp > now() - " CREEP_S ")"
#define GROWTH_HOLDERS                                                                                       \
    "g AS MATERIALIZED (SELECT * FROM python.memory_growth WHERE " OF_PID "), l AS (SELECT max(looked) AS "  \
    "looked, max(iif(kind = 'all', since_s, NULL)) IS NULL AS again FROM g), h AS (SELECT *, replace("       \
    "holder, '@', ' in ') || ', a ' || kind || ': ' || growth || ' more ' || coalesce(of, 'elements') || "   \
    "iif(graphs, ' with its graph', '') || iif(graphs, '', ' (' || human_bytes(growth_bytes) || ')') || "    \
    "printf(' in %.1f s', since_s) AS says, growth_bytes / since_s AS rate FROM g WHERE growth > 0 AND "     \
    "since_s > 0 AND holder IS NOT NULL)"
#define GROWTH_LINES                                                                                         \
    "s AS (SELECT coalesce(function_name, 'native code') || coalesce(' (' || replace(file, "                 \
    "rtrim(file, replace(file, '/', '')), '') || coalesce(':' || lineno, '') || ')', '') || ', ' || "        \
    "human_bytes(sum(allocated_bytes - freed_bytes)) || ' in " CREEP_S " s' AS says, sum(allocated_bytes - " \
    "freed_bytes) / max(1, max(timestamp) - min(timestamp)) AS rate FROM memory_allocations WHERE " OF_PID   \
    " AND timestamp > now() - " CREEP_S " GROUP BY function_name, file, lineno ORDER BY "                    \
    "sum(allocated_bytes - freed_bytes) DESC LIMIT 1)"
/* The line: only if it is a part of the growth that is worth a word. */
#define GROWTH_SITE "(SELECT s.says FROM s, k WHERE s.rate > 0.2 * k.rate)"
#define GROWTH_TAKES                                                                                         \
    "memory grows by {a_minute:MiB} a minute[, {a_step:MiB} a step] (from {was:MiB} to {is_now:MiB} in "     \
    "{span:s})[; held by {holder}][; allocated in {site}]"

/*
 * Non-finite numbers in the newest steps: `n` of them, among `read` steps with a value. NULL: it
 * was not read in that step, as in most steps if they are short. One non-finite gradient now and
 * then is how a GradScaler finds its scale.
 */
#define STEPS_NAN(column)                                                                                    \
    "WITH s AS (SELECT step, CASE WHEN nonfinite IN ('" column "', 'both') THEN 1 ELSE abs(" column          \
    ") > 1.7e308 END AS is_bad FROM temp.verdict_recent WHERE " OF_STEPS LAST(                               \
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

/* The GPUs of the process in the last seconds; the busiest, whatever it uses; does torch have memory of one:
 * reading that takes the GIL for a moment, and so it is asked only if it matters. */
#define GPUS_S "20"
#define GPUS                                                                                                 \
    "g AS MATERIALIZED (SELECT device, avg(gpu_util) AS busy, count(gpu_util) AS n, max(timestamp) - "       \
    "min(timestamp) AS span FROM gpu_metrics WHERE " OF_PID " AND timestamp > now() - " GPUS_S               \
    " GROUP BY device, slice), b AS (SELECT * FROM g WHERE n > 0 ORDER BY busy DESC LIMIT 1)"
/* The one that is slowed most, of several the one with the most rows. */
#define GPU_SLOWED                                                                                           \
    " FROM (SELECT avg(throttle LIKE '%heat%' OR throttle LIKE '%hardware%') AS share, device, "             \
    "avg(temperature_c) AS celsius, avg(sm_clock_mhz) AS mhz, max(timestamp) - min(timestamp) AS span, "     \
    "count(*) AS n FROM gpu_metrics WHERE " OF_PID " AND timestamp > now() - " GPUS_S                        \
    " AND throttle IS NOT NULL GROUP BY device ORDER BY share DESC, n DESC LIMIT 1)"
/* Others may have filled it: what torch has on a device that is known to be another one does not count. */
#define GPU_FULLEST                                                                                          \
    " FROM (SELECT max(mem_used_mb / mem_total_mb) AS share, device, uuid, mem_used_mb AS used, "            \
    "mem_total_mb AS total FROM gpu_metrics WHERE " OF_PID                                                   \
    " AND timestamp > now() - 5 AND mem_total_mb > 0 GROUP BY device ORDER BY share DESC LIMIT 1)"
#define GPU_IS_USED                                                                                          \
    "b.n < 5 AND NOT CAST(:ended AS INTEGER) AS again, b.n >= 5 AND coalesce((SELECT sum(reserved_mb) FROM " \
    "python.gpu_memory WHERE " OF_PID "), 0) > 0"
#define GPU_DATA                                                                                             \
    "d AS (SELECT sum(data_ms) / sum(duration_ms) AS data FROM temp.verdict_recent WHERE " OF_STEPS          \
    " AND duration_ms IS NOT NULL)"
#define GPU_LAUNCHES                                                                                         \
    "l AS (SELECT count(*) >= " SAMPLES_NEEDED                                                               \
    " AND avg(on_cpu) >= 0.85 AND coalesce((SELECT data FROM d), "                                           \
    "0) < 0.1 AND (SELECT busy FROM b) >= 1 AS launches FROM temp.verdict_seen WHERE " OF_THREAD             \
    " AND " LATELY ")"

#define GPU_FULL "90" /* percent of the time: it cannot do more */

/* Lines of the job that wait for its GPU are `w`, the longest first: op, func, file, at, and which part of
 * the time. */
#define SYNC_LINES                                                                                           \
    "(SELECT sum(part) FROM w) * (SELECT avg(duration_ms) FROM temp.verdict_recent WHERE " OF_STEPS          \
    ") AS lost_ms, (SELECT avg(duration_ms) FROM temp.verdict_recent WHERE " OF_STEPS ") AS step_ms, "       \
    "(SELECT op FROM w LIMIT 1) AS op, (SELECT func FROM w LIMIT 1) AS func, (SELECT file FROM w LIMIT 1) "  \
    "AS file, (SELECT coalesce(':' || at, '') FROM w LIMIT 1) AS line, (SELECT op || ', called by ' || "     \
    "func || ' (' || replace(file, rtrim(file, replace(file, '/', '')), '') || coalesce(':' || at, '') || "  \
    "')' FROM w WHERE part >= 0.05 LIMIT 1 OFFSET 1) AS other"
#define SYNC_WORDS(share)                                                                                    \
    "{" share ":%} of the time the training waits for the GPU[, {lost_ms:ms} of a step of {step_ms:ms}], "   \
    "in {op}[, called by {func} ({file:file}{line})][, and in {other}], while GPU {device} is busy "         \
    "{busy:%} of the time"
#define SYNC_HELP                                                                                            \
    "not every step: .item(), .cpu(), bool(tensor) and nonzero wait for the GPU. Read the loss each 100 "    \
    "steps; measure with CUDA events"

const struct verdict_rule verdict_rules[] = {
    {.code = "ENDED",
     .level = VERDICT_NOTE,
     .checks = "a process that has ended, or a recording",
     .kind = "yes",
     .help = "the process has ended, or this is a recording: everything below describes its last seconds",
     .sql = "SELECT CAST(:ended AS INTEGER) AS ended, (julianday('now') - 2440587.5) * 86400 - now() AS ago",
     .threshold = 1,
     .words = "the newest rows are {ago:s} old: nothing came after them",
     .screen = "overview"},
    /* ---- how it gets on: the first that holds ---- */
    {.code = "HELD",
     .level = VERDICT_NOTE,
     .checks = "time since the last step against what is usual, in a debugger",
     .kind = "x",
     .is_state = true,
     .help = "by 'pause' or 'catch': it resumes by continue in pdb, by --off, or at the time limit",
     .sql = AGE,
     .threshold = 1,
     .more = STANDS STANDS_STILL " AND leaf_file = '<probing>'" STANDS_MOST,
     .words = "no step for {age:s}: {who} is held by a debugger, in {func}",
     .screen = "threads"},
    {.code = "DEADLOCK",
     .level = VERDICT_BAD,
     .checks =
         "threads that wait for each other, if the training thread is off the CPU: its share of the last 4 s",
     .kind = "%",
     .is_state = true,
     .help = "threads wait for each other: take the locks in the same order everywhere, or never wait with a "
             "lock held",
     /* A look at all threads costs more than samples: only if the one that trains stands. */
     .sql = "SELECT CASE WHEN count(*) >= 2 THEN 1 - avg(on_cpu) END AS off_cpu FROM temp.verdict_looks "
            "WHERE " OF_THREAD " AND timestamp > now() - 4",
     .threshold = 0.8,
     .more = "WITH d AS (SELECT * FROM temp.verdict_threads WHERE " OF_PID
             " AND deadlock AND waits_s >= 0.1), a AS (SELECT * FROM d ORDER BY tid LIMIT 1), b AS (SELECT "
             "d.* FROM d JOIN a ON d.tid = a.waits_tid AND d.tid <> a.tid) SELECT (SELECT count(*) FROM d) > "
             "0 AS holds, (SELECT name || ' (' || tid || ') in ' || func FROM a) AS one, (SELECT file FROM "
             "a) AS file, (SELECT lineno FROM a) AS line, (SELECT waits_for FROM a) AS waits, (SELECT name "
             "|| ' (' || tid || ') in ' || func FROM b) AS other, (SELECT file FROM b) AS other_file, "
             "(SELECT lineno FROM b) AS other_line, (SELECT waits_for FROM b) AS other_waits",
     .words = "{one} ({file:file}:{line:n}) waits for {waits}[; {other} ({other_file:file}:{other_line:n}) "
              "waits for {other_waits}]",
     .screen = "threads"},
    /* A training job that has become a server. */
    {.code = "IDLE",
     .level = VERDICT_NOTE,
     .checks = "no steps, and the training thread waits for requests, share of the last " LAST_S " s",
     .kind = "%",
     .is_state = true,
     .help = "it waits as a server does: nothing is wrong with that",
     .sql = NOW PLACE
     ", a AS (" AGE
     ") SELECT CASE WHEN excess < 1 THEN 0 WHEN p.n >= 10 THEN iif(phase IS NULL AND wait = 'request', "
     "share, 0) END AS share, func, file, line, a.age, 'for requests' AS purpose, c.cpu, " WHO
     " FROM c, a LEFT JOIN p",
     .sure = "inferred",
     .threshold = 0.9,
     .words = "no step for {age:s}: " IDLE_WORDS,
     .screen = "threads"},
    {.code = "COMPILING",
     .level = VERDICT_NOTE,
     .checks = "torch's compiler, share of the last " LAST_S " s without a step",
     .kind = "%",
     .is_state = true,
     .help = "torch.compile: the first steps, and each new shape or type, take long; the steps after that "
             "gain by it",
     .sql = DOING("COMPILING", "1"),
     .sure = "sampled",
     .threshold = 0.5,
     .words = DOING_WORDS("torch compiles"),
     .screen = "flame"},
    {.code = "SAVING",
     .level = VERDICT_NOTE,
     .checks = "saving, share of the last " LAST_S " s without a step",
     .kind = "%",
     .is_state = true,
     .help = "a checkpoint is written: steps go on after that",
     .sql = DOING("SAVING", MOVES_DATA),
     .sure = "sampled",
     .threshold = 0.5,
     .words = DOING_WORDS("{who} saves"),
     .screen = "flame"},
    {.code = "LOADING",
     .level = VERDICT_NOTE,
     .checks = "loading, share of the last " LAST_S " s without a step",
     .kind = "%",
     .is_state = true,
     .help = "a checkpoint, a model or data is read",
     .sql = DOING("LOADING", MOVES_DATA),
     .sure = "sampled",
     .threshold = 0.5,
     .words = DOING_WORDS("{who} loads"),
     .screen = "flame"},
    {.code = "EVALUATING",
     .level = VERDICT_NOTE,
     .checks = "evaluation, share of the last " LAST_S " s without a step",
     .kind = "%",
     .is_state = true,
     .help = "the model is evaluated: steps go on after that",
     .sql = DOING("EVALUATING", MOVES_DATA),
     .sure = "sampled",
     .threshold = 0.5,
     .words = DOING_WORDS("{who} evaluates"),
     .screen = "flame"},
    {.code = "BUSY",
     .level = VERDICT_NOTE,
     .checks = "time since the last step against what is usual, with a DataLoader worker at work",
     .kind = "x",
     .is_state = true,
     .help = "a batch takes long: the Loader screen shows what each worker does",
     .needs = "python.loader_workers",
     .sql = AGE,
     .sure = "sampled",
     .threshold = 1,
     .more = "WITH c AS (SELECT avg(coalesce(phase, '') = 'loader') AS waits, count(*) AS n FROM "
             "temp.verdict_seen WHERE " OF_THREAD " AND timestamp > now() - " LAST_S
             "), w AS (SELECT worker, worker_pid, " WORKER_PLACE
             " AS place, cpu_pct, state FROM temp.verdict_workers WHERE " OF_PID
             ") SELECT worker, worker_pid, place, " WHO
             ", c.n >= 10 AND c.waits >= 0.9 AND (coalesce(cpu_pct, 0) > 20 OR state IN ('R', 'D')) AS holds "
             "FROM w, c ORDER BY cpu_pct DESC LIMIT 1",
     .more_needs = "python.loader_workers",
     .words =
         "no step for {age:s}[, the longest of the {n} before took {longest:s}]: {who} waits for a batch, "
         "and worker {worker:n} (pid {worker_pid:n}) works[, in {place}]",
     .screen = "loader"},
    {.code = "STUCK",
     .level = VERDICT_BAD,
     .checks = "time since the last step against what is usual, in one place",
     .kind = "x",
     .is_state = true,
     .help = "steps have stopped, and the thread that trains does not move: the Threads screen has its whole "
             "stack",
     .sql = AGE,
     .sure = "sampled",
     .threshold = 1,
     .more = STANDS STANDS_STILL STANDS_MOST,
     .also = WAITS_FOR,
     .words =
         "no step for {age:s}[, the longest of the {n} before took {longest:s}][; {who} stands in {func} "
         "({file:file}{line})][, in {leaf}][, {waiting}]" WAITS_FOR_WORDS,
     .brief = "STUCK[ in {func}][, {waiting}]",
     .screen = "threads"},
    {.code = "BUSY",
     .level = VERDICT_NOTE,
     .checks = "time since the last step against what is usual, in several places",
     .kind = "x",
     .is_state = true,
     .help = "no step ends, but the thread that trains works: the Flame screen shows on what",
     .sql = AGE,
     .sure = "sampled",
     .threshold = 1,
     .more = STANDS STANDS_NOT STANDS_MOST,
     .words =
         "no step for {age:s}[, the longest of the {n} before took {longest:s}], but {who} works: lately "
         "mostly in {func} ({file:file}{line})",
     .screen = "flame"},
    /* It waits, and may do so for a while. */
    {.code = "WAITS",
     .level = VERDICT_NOTE,
     .checks = "time since the last step against what is usual, waiting",
     .kind = "x",
     .is_state = true,
     .help = "what it waits for may come: a first batch, a slow worker, another rank; the Threads screen "
             "shows it",
     .sql = AGE,
     .sure = "sampled",
     .threshold = 1,
     .more = STANDS "NOT " STANDS_STILL STANDS_MOST,
     .also = WAITS_FOR,
     .words = "no step for {age:s}[, the longest of the {n} before took {longest:s}]; {who} waits in {func} "
              "({file:file}{line})[, in {leaf}]" WAITS_FOR_WORDS,
     .screen = "threads"},
    /* Time in which its threads wait for CPUs that others have is taken off, then and now. */
    {.code = "SLOW",
     .level = VERDICT_WARN,
     .checks = "the newest tenth of the steps against those before (medians)",
     .kind = "x",
     .is_state = true,
     .moves = true,
     .help = "the newest tenth of the steps takes longer than those before: the Steps screen says what "
             "explains it",
     .sql = CPUS ", c AS (SELECT timestamp AS at FROM temp.verdict_recent WHERE " OF_STEPS
                 " AND duration_ms IS NOT NULL ORDER BY timestamp DESC LIMIT 1 OFFSET coalesce((SELECT n / "
                 "10 FROM temp.verdict_steps WHERE " OF_PID
                 "), 0)), r AS (SELECT iif(timestamp > at, duration_ms, NULL) AS new, iif(timestamp > at, "
                 "NULL, duration_ms) AS old FROM c, temp.verdict_recent WHERE " OF_STEPS
                 "), w AS (" WAITED("timestamp >= (SELECT at FROM c) - 1", "2") "), o AS (" WAITED(
                     "timestamp < (SELECT at FROM c)",
                     "3") "), q AS (SELECT count(*) AS n, median(new) / median(old) AS ratio, quantile(new, "
                          "0.25) > quantile(old, 0.75) AS apart, median(new) AS new_ms, median(old) AS "
                          "old_ms, count(new) AS newest, count(old) AS before FROM r) SELECT CASE WHEN n >= "
                          "60 THEN iif(apart AND ratio >= 1.5, ratio * (1 - coalesce((SELECT min(max(waits), "
                          "0.95) FROM w), 0)) / (1 - coalesce((SELECT min(max(waits), 0.95) FROM o), 0)), "
                          "min(ratio, 1)) END AS ratio, new_ms, old_ms, newest, before FROM q",
     .threshold = 1.5,
     .words = "the last {newest:steps} took {new_ms:ms} each, the {before} before them {old_ms:ms} (medians)",
     .screen = "steps"},
    {.code = "MOVING",
     .level = VERDICT_FINE,
     .checks = "steps that end",
     .kind = "rate",
     .is_state = true,
     .moves = true,
     .help = "steps end as they did before",
     .sql =
         "WITH s AS (SELECT timestamp, step, duration_ms FROM temp.verdict_recent WHERE " OF_STEPS
         " AND duration_ms IS NOT NULL" LAST(
             100) ") SELECT 1000 * count(*) / sum(duration_ms) AS rate, median(duration_ms) AS p50, "
                  "iif(count(*) >= " STEPS_NEEDED ", quantile(duration_ms, 0.99), NULL) AS p99, count(*) AS "
                  "n, max(step) AS step, max(0, now() - max(timestamp)) AS age, iif(now() - max(timestamp) > "
                  "max(3, 3 * max(duration_ms) / 1000), now() - max(timestamp), NULL) AS quiet FROM s",
     .threshold = 0,
     .more = FEW_STEPS,
     .words = "{rate:rate}, {p50:ms} a step (median[; 99 % within {p99:ms}]; last {n:steps})[; none for "
              "{quiet:s}][; too early to say what steps wait for: ask again in {ask_in}][; {few_steps}]",
     .screen = "steps"},
    /* ---- no step was seen, or too few ---- */
    {.code = "STARTING",
     .level = VERDICT_NOTE,
     .checks = "imports, share of the last " LAST_S " s without a step",
     .kind = "%",
     .is_state = true,
     .help = "modules are imported: the job has not begun yet",
     .sql = DOING("STARTING", MOVES_DATA),
     .sure = "sampled",
     .threshold = 0.5,
     .words = DOING_WORDS("{who} imports modules"),
     .screen = "flame"},
    /* A lock, in the job's own code or within a step, and every other thread waits for a thread of
     * the process: nothing comes from outside. Or a device. */
    {.code = "HUNG",
     .level = VERDICT_BAD,
     .checks = "time in which no thread has run, waiting for a lock or a device",
     .kind = "s",
     .is_state = true,
     .help = "nothing in the process runs: the Threads screen has all stacks, and whom each waits for",
     .sql = NOW PLACE
     ", q AS (SELECT now() - coalesce(max(iif(cpu_pct > 0.2, at, NULL)), min(at)) AS quiet, sum(tid <> "
     "CAST(:tid AS INTEGER) AND at > now() - 3 AND coalesce(wchan, '') NOT LIKE 'futex%') AS others, "
     "count(DISTINCT tid) AS threads FROM h) SELECT CASE WHEN p.n >= 10 THEN iif(share >= 0.9 AND ((locked > "
     "0.9 AND others = 0 AND iif(phase IN ('forward', 'backward', 'optimizer'), coalesce(wait, 'thread') = "
     "'thread', is_own AND wait IS NULL AND phase IS NULL)) OR (disk > 0.9 AND quiet >= 15 AND NOT "
     "coalesce(" MOVES_DATA ", 0))), quiet, 0) END AS quiet, func, file, line, threads, iif(disk > 0.9, 'for "
     "a device', 'for a lock') AS lock, phase, " WHO " FROM p, q, m",
     .sure = "inferred",
     .threshold = 5,
     .more = "SELECT now() - coalesce(max(iif(cpu_pct > 0.2, timestamp, NULL)), min(timestamp)) AS since_s "
             "FROM system.threads_history WHERE " OF_PID " AND timestamp > now() - 3600",
     .also = WAITS_FOR,
     .words = "no thread of {threads} has run for {since_s:s}; {who} waits[ {lock}] at {func} "
              "({file:file}{line})[, in the {phase} of a step]" WAITS_FOR_WORDS,
     .brief = "HUNG in {func}",
     .screen = "threads"},
    {.code = "IDLE",
     .level = VERDICT_NOTE,
     .checks = "a wait as servers have it: requests, a sleep, a child; share of the last " LAST_S " s",
     .kind = "%",
     .is_state = true,
     .help = "it waits as a server does: nothing is wrong with that",
     .sql = NOW PLACE " SELECT CASE WHEN p.n >= 10 AND " PURPOSE
                      " IS NOT NULL AND coalesce(c.cpu, 0) < 0.2 AND NOT " FIRST_STEP
                      " THEN share END AS share, func, file, line, " PURPOSE " AS purpose, c.cpu, " WHO
                      " FROM p, m, c",
     .sure = "inferred",
     .threshold = 0.8,
     .more = ONE_STEP,
     .words = IDLE_WORDS,
     .screen = "threads"},
    {.code = "BUSY",
     .level = VERDICT_NOTE,
     .checks = "CPU used without any step, of a core",
     .kind = "%",
     .is_state = true,
     .help = "no step of torch.optim was seen, but it works: the Flame screen shows on what",
     .sql = NOW PLACE
     ", w AS (SELECT own_func AS func, own_file AS file, coalesce(':' || own_line, '') AS "
     "line, count(*) AS n FROM s WHERE on_cpu AND own_func IS NOT NULL GROUP BY own_func, "
     "own_file ORDER BY n DESC LIMIT 1), o AS (SELECT name, sum(cpu_pct) AS busy FROM h "
     "WHERE tid <> CAST(:tid AS INTEGER) AND at > now() - " LAST_S
     " GROUP BY tid ORDER BY busy DESC LIMIT 1) SELECT CASE WHEN (SELECT count(*) FROM s) "
     ">= 10 AND NOT " YOUNG " THEN max(coalesce(c.cpu, 0), (SELECT avg(on_cpu) FROM s)) END AS cpu, "
     "coalesce(w.func, p.func) AS func, coalesce(w.file, p.file) AS file, coalesce(w.line, "
     "p.line) AS line, iif(m.cpu < 0.1 AND o.busy > 50, o.name, NULL) AS thread, (SELECT age "
     "FROM e) AS age, " WHO " FROM p, m, c LEFT JOIN w LEFT JOIN o",
     .sure = "sampled",
     .threshold = 0.2,
     .more = ONE_STEP,
     .words = "no optimizer step was seen[ in the last {age:s}]; it works, {cpu:%} of a core[, most of it "
              "thread {thread}]: {who} "
              "is mostly in {func} ({file:file}{line})",
     .screen = "flame"},
    /* It waits, and whether on purpose is not known. */
    {.code = "WAITS",
     .level = VERDICT_NOTE,
     .checks = "one place, share of the last " LAST_S " s",
     .kind = "%",
     .is_state = true,
     .help = "whether that is intended is unknown: the Threads screen has the stacks of all threads",
     .sql = NOW PLACE
     " SELECT CASE WHEN p.n >= 10 AND coalesce(c.cpu, 0) < 0.2 AND NOT " FIRST_STEP
     " THEN share END AS share, func, file, line, iif(wait = 'thread', 'for "
     "another thread', iif(wait = 'pipe', 'for another process', NULL)) AS what, c.cpu, (SELECT age FROM e) "
     "AS age, " WHO " FROM p, m, c",
     .sure = "inferred",
     .threshold = 0,
     .more = ONE_STEP,
     .also = WAITS_FOR,
     .words = "no optimizer step was seen[ in the last {age:s}]; {who} waits[ {what}] in {func} "
              "({file:file}{line}), {share:%} of "
              "the last " LAST_S " s[, {cpu:%} of a core]" WAITS_FOR_WORDS,
     .screen = "threads"},
    {.code = "NO STEPS",
     .level = VERDICT_NOTE,
     .checks = "time that the agent has seen no optimizer step",
     .kind = "s",
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
    /* ---- what is the matter ---- */
    {.code = "NAN",
     .level = VERDICT_BAD,
     .checks = "search for the first value that is not finite: outputs and gradients",
     .kind = "yes",
     .help = "the first place that was found: later ones follow from it; python.nonfinite has its stack",
     .needs = "python.nonfinite",
     .sql = HUNTED("stage IN ('forward', 'gradient')"),
     .threshold = 1,
     .words = NONFINITE_WORDS,
     .brief = "NAN[ in {module}]",
     .screen = "modules"},
    {.code = "NAN",
     .level = VERDICT_WARN,
     .checks = "search for the first value that is not finite: backward hooks",
     .kind = "yes",
     .help = "what a module gave was finite, its gradient was not; with a GradScaler that is normal now and "
             "then, while it finds its scale",
     .needs = "python.nonfinite",
     .sql = HUNTED("stage = 'backward'"),
     .threshold = 1,
     .words = NONFINITE_WORDS,
     .brief = "NAN[ in {module}]",
     .screen = "modules"},
    {.code = "NAN",
     .level = VERDICT_BAD,
     .checks = "losses that are not finite, of the last 200 steps",
     .kind = "n",
     .help = "further training is useless: go back to a checkpoint from before that step",
     .sql = STEPS_NAN("loss") "SELECT bad AS losses, first, last, read, n, " STEPS_NAN_OF " FROM c",
     .threshold = 1,
     .words = "the loss was not a finite number in {which}, first in step {first}, last in step {last}",
     .brief = "NAN in the loss",
     .screen = "steps"},
    {.code = "NAN",
     .level = VERDICT_BAD,
     .checks = "gradients that are not finite, share of the steps that were read",
     .kind = "%",
     .help = "gradients overflow repeatedly: such steps have no effect",
     .sql = STEPS_NAN("grad_norm") "SELECT CASE WHEN read >= 10 THEN 1.0 * bad / read END AS share, bad, "
                                   "first, read, n, " STEPS_NAN_OF " FROM c",
     .threshold = 0.2,
     .words = "the gradients were not finite in {which}, first in step {first}",
     .brief = "NAN in the gradients",
     .screen = "steps"},
    {.code = "INPUT-BOUND",
     .level = VERDICT_WARN,
     .checks = "waiting for a batch, share of a step",
     .kind = "%",
     .moves = true,
     .help = "more workers, less work in Dataset.__getitem__, or data that is nearer",
     /* A thread that waits for the GIL in the loader's code would wait for it elsewhere too:
      * that is not the loader's fault. */
     .sql = "WITH l AS (SELECT avg(gil = 'waiting') AS waits FROM temp.verdict_seen WHERE " OF_THREAD
            " AND " LATELY
            " AND phase = 'loader') SELECT CASE WHEN coalesce((SELECT waits FROM l), 0) < 0.5 THEN share "
            "ELSE 0 END AS share, data_ms, step_ms, longest_ms, n FROM (" SHARE_SOON("data_ms") ")",
     .threshold = 0.3,
     /* An idle worker waits for its queue. Unreadable ones do not count. */
     .more = "WITH w AS (SELECT worker, worker_pid, " WORKER_PLACE
             " AS place, file LIKE '%/multiprocessing/%' OR file LIKE '%/selectors.py' OR file LIKE "
             "'%/queue.py' AS idle FROM temp.verdict_workers WHERE " OF_PID
             "), n AS (SELECT count(*) AS n, sum(NOT idle) AS busy, count(idle) AS known FROM w) SELECT "
             "iif(busy = 1 AND known = n AND n > 1, (SELECT worker FROM w WHERE NOT idle), NULL) AS worker, "
             "(SELECT worker_pid FROM w WHERE NOT idle) AS worker_pid, iif(busy > 1 OR (n = 1 AND busy = 1), "
             "busy, NULL) AS busy, n AS workers, (SELECT place FROM w WHERE NOT idle GROUP BY place ORDER BY "
             "count(*) DESC LIMIT 1) AS place FROM n",
     .more_needs = "python.loader_workers",
     .also =
         "WITH l AS (SELECT workers FROM python.loaders WHERE " OF_PID
         " AND timestamp > now() - 5 AND workers = 0 LIMIT 1) SELECT 'num_workers is 0' AS itself, own_func "
         "AS func, own_file AS file, coalesce(':' || own_line, '') AS line FROM l, temp.verdict_seen "
         "WHERE " OF_THREAD " AND " LATELY " AND phase = 'loader' AND own_func IS NOT NULL GROUP BY "
         "own_func, own_file ORDER BY count(*) DESC LIMIT 1",
     .words = "{share:%} of a step waits for the loader ({data_ms:ms} of {step_ms:ms}, last {n:steps})[; "
              "worker {worker:n} (pid {worker_pid:n}) is the slowest, in {place}][; {busy:n} of {workers:n} "
              "workers busy, mostly in {place}][; the training thread makes its batches itself ({itself}), "
              "mostly in {func} ({file:file}{line})]",
     .brief = "INPUT-BOUND[, worker {worker:n}][, {busy:n} workers busy]",
     .screen = "loader"},
    {.code = "GC PAUSES",
     .level = VERDICT_WARN,
     .checks = "collecting garbage, share of a step",
     .kind = "%",
     .moves = true,
     .help = "gc.freeze() once the model is there, gc.disable() and a gc.collect() now and then, or fewer "
             "objects",
     .sql = SHARE_OF("gc_ms"),
     .threshold = 0.05,
     .words = "{share:%} of a step goes into collecting garbage ({gc_ms:ms} of {step_ms:ms}, at most "
              "{longest_ms:ms}, last {n:steps})",
     .screen = "steps"},
    {.code = "GC PAUSES",
     .level = VERDICT_WARN,
     .checks = "collecting garbage, share of the last " SAMPLES_S " s (where steps do not know it)",
     .kind = "%",
     .help = "gc.freeze() once the model is there, gc.disable() and a gc.collect() now and then, or fewer "
             "objects",
     .sql = "SELECT CASE WHEN count(gc) >= " SAMPLES_NEEDED
            " AND NOT EXISTS (SELECT 1 FROM temp.verdict_recent WHERE " OF_STEPS
            " AND gc_ms IS NOT NULL) THEN 1.0 * sum(gc) / count(gc) END AS share, count(gc) AS taken FROM "
            "temp.verdict_looks WHERE " OF_THREAD " AND " LATELY,
     .threshold = 0.07,
     .words =
         "{share:%} of the time the training thread collects garbage (last " SAMPLES_S " s, {taken} samples)",
     .screen = "steps"},
    {.code = "GIL CONTENTION",
     .level = VERDICT_WARN,
     .checks = "waiting for the GIL, share of the last " SAMPLES_S " s",
     .kind = "%",
     .help = "another thread of the process runs Python when the training would: give that work to a process "
             "of its own",
     .sql = "SELECT CASE WHEN count(gil) >= " SAMPLES_NEEDED
            " THEN 1.0 * sum(gil = 'waiting') / count(gil) END AS share, count(gil) AS taken FROM "
            "temp.verdict_looks WHERE " OF_THREAD " AND " LATELY,
     .sure = "sampled",
     .threshold = 0.2,
     .more = "SELECT thread AS holder, tid AS holder_tid, 1.0 * sum(gil = 'held') / count(gil) AS held FROM "
             "python.samples WHERE " OF_PID " AND tid <> CAST(:tid AS INTEGER) AND " LATELY
             " GROUP BY tid ORDER BY held DESC LIMIT 1",
     .words = "the training thread waits for the GIL {share:%} of the time (last " SAMPLES_S
              " s)[; {holder} ({holder_tid:n}) holds it {held:%}]",
     .brief = "GIL CONTENTION[ by {holder}]",
     .screen = "threads"},
    {.code = "CHECKPOINT",
     .level = VERDICT_WARN,
     .checks = "saving, share of the last minute",
     .kind = "%",
     .moves = true,
     .help = "save less often, fewer tensors, or on a thread or process of its own (async_save)",
     .sql = RUNS("SAVING", "60", "0"),
     .sure = "sampled",
     .threshold = 0.1,
     .words = "{share:%} of the time goes into saving, {each_s:s} each[, about every {every:steps}], in "
              "{func} ({file:file}{line})",
     .brief = "CHECKPOINT {share:%}",
     .screen = "flame"},
    {.code = "RECOMPILING",
     .level = VERDICT_WARN,
     .checks = "torch's compiler after the first 10 s of steps, share of the last minute",
     .kind = "%",
     .moves = true,
     .help = "shapes or types change from step to step: pad to few sizes, mark_dynamic, or "
             "TORCH_LOGS=recompiles says why",
     .sql = RUNS("COMPILING", "60", "10"),
     .sure = "sampled",
     .threshold = 0.1,
     .more =
         "SELECT count(*) AS steps_since, count(*) > 20 AS holds FROM temp.verdict_recent WHERE " OF_STEPS,
     .words = "{share:%} of the time goes into compiling, {runs:n} times in {span:s}, in {func} "
              "({file:file}{line})",
     .screen = "flame"},
    {.code = "LOGGING",
     .level = VERDICT_WARN,
     .checks = "logging, share of the last 20 s",
     .kind = "%",
     .help = "write less, in larger pieces, or from another thread; who reads the pipe may be slow",
     .sql = RUNS("LOGGING", "20", "0"),
     .sure = "sampled",
     .threshold = 0.15,
     .words = "{share:%} of the time goes into logging, in {func} ({file:file}{line})",
     .screen = "flame"},
    {.code = "LOGGING",
     .level = VERDICT_WARN,
     .checks = "writes that block, share of the last " SAMPLES_S " s",
     .kind = "%",
     .help = "write less, in larger pieces, or from another thread; who reads the pipe may be slow",
     .sql = "WITH h AS (SELECT wchan LIKE '%pipe_write%' OR wchan LIKE 'n_tty_write' OR wchan LIKE "
            "'%sock_alloc_send%' OR wchan LIKE 'balance_dirty%' AS blocks FROM system.threads_history "
            "WHERE " OF_THREAD " AND " LATELY
            "), s AS (SELECT own_func AS func, own_file AS file, coalesce(':' || own_line, '') AS line, "
            "count(*) AS n FROM temp.verdict_seen WHERE " OF_THREAD " AND " LATELY
            " AND NOT on_cpu AND phase IS NULL GROUP BY own_func, own_line ORDER BY n DESC LIMIT 1) SELECT "
            "CASE WHEN count(blocks) >= 5 THEN avg(blocks) END AS share, func, file, line FROM h LEFT JOIN s",
     .sure = "sampled",
     .threshold = 0.2,
     .words = "{share:%} of the time a write blocks, in {func} ({file:file}{line})",
     .screen = "threads"},
    /* What a job computes with tensors in its own functions looks like this, too: so nothing is
     * said of a GPU, for which every .item() waits, and a function that itself calls the model
     * needs more. */
    {.code = "OWN CODE",
     .level = VERDICT_WARN,
     .checks =
         "one function outside loader, forward, backward and optimizer, share of the last " SAMPLES_S " s",
     .kind = "%",
     .moves = true,
     .help =
         "not every step, less of it, or on another thread or process: the Flame screen shows what it calls",
     .sql = "WITH s AS MATERIALIZED (SELECT own_func, own_file, own_line, phase, doing IS NULL AND phase IS "
            "NULL AND coalesce(gil, '') <> 'waiting' AND NOT coalesce(gc, 0) AS is_own FROM "
            "temp.verdict_seen WHERE " OF_THREAD " AND " LATELY
            "), w AS (SELECT own_func, own_file, coalesce(':' || own_line, '') AS line, 1.0 * count(*) / "
            "(SELECT count(*) FROM s) AS share, EXISTS (SELECT 1 FROM s o WHERE o.own_func = s.own_func AND "
            "o.own_file = s.own_file AND o.phase IN ('forward', 'backward', 'optimizer')) AS trains FROM s "
            "WHERE is_own AND own_func IS NOT NULL GROUP BY own_func, own_file ORDER BY share DESC LIMIT 1) "
            "SELECT CASE WHEN (SELECT count(*) FROM s) >= " SAMPLES_NEEDED
            " AND (SELECT avg(phase IN ('forward', 'backward')) FROM s) > 0.02 AND NOT EXISTS (SELECT 1 FROM "
            "python.memory WHERE " OF_PID
            " AND timestamp > now() - 10 AND gpu_allocated_mb > 0) THEN iif(NOT trains OR share >= 0.5, "
            "share, 0) END AS share, own_func AS func, own_file AS file, line, (SELECT avg(is_own) FROM s) "
            "AS outside FROM (SELECT 1) LEFT JOIN w",
     .sure = "sampled",
     .threshold = 0.25,
     .words = "{share:%} of the time goes into {func} ({file:file}{line}): {outside:%} of a step is outside "
              "loader, forward, backward and optimizer (last " SAMPLES_S " s)",
     .brief = "OWN CODE in {func}",
     .screen = "flame"},
    /* A device that a process sees may be one that it does not use: load counts only if torch has memory of
     * one, or waits for one, and of several devices the busiest counts. What is wrong with a device is said
     * of each. */
    {.code = "GPU ERROR",
     .level = VERDICT_BAD,
     .checks = "a GPU that its driver has lost",
     .kind = "n",
     .help =
         "what the job does there does not continue: dmesg of its host has the reason; take the host out of "
         "the job",
     .sql = "SELECT max(state IN ('lost', 'needs reset')) AS lost, device, state, name FROM gpu_metrics "
            "WHERE " OF_PID " AND timestamp > now() - 10 GROUP BY pid",
     .threshold = 1,
     .needs = "gpu_metrics",
     .words = "GPU {device} ({name}) is gone for its driver: {state}",
     .brief = "GPU ERROR: {device} is {state}",
     .screen = "gpu"},
    {.code = "GPU ERROR",
     .level = VERDICT_WARN,
     .checks = "a GPU that does not answer, seconds",
     .kind = "s",
     .help = "calls to the driver do not return: the device or its driver hangs, and so may the job",
     .sql = "SELECT max(coalesce(silent_s, 0)) AS silent_s, device FROM gpu_metrics WHERE " OF_PID
            " AND timestamp > now() - 10 GROUP BY pid",
     .threshold = 3,
     .needs = "gpu_metrics",
     .words = "GPU {device} does not answer, for {silent_s:s}",
     .brief = "GPU ERROR: {device} does not answer",
     .screen = "gpu"},
    {.code = "GPU ERROR",
     .level = VERDICT_WARN,
     .checks = "errors that the driver of a GPU reports (Xid), the last one's number",
     .kind = "n",
     .help = "the driver has reported an error; NVIDIA's list of Xid errors has what to do about its number",
     .sql =
         "SELECT xid, device, CASE xid WHEN 13 THEN 'an error in a kernel' WHEN 31 THEN 'a kernel used "
         "memory that it does not have' WHEN 48 THEN 'a memory error that could not be corrected' WHEN 63 "
         "THEN 'a row of memory was replaced' WHEN 64 THEN 'a row of memory could not be replaced' WHEN 74 "
         "THEN 'an error of NVLink' WHEN 79 THEN 'it has fallen off the bus' WHEN 94 THEN 'a memory error "
         "that ended a process' WHEN 95 THEN 'a memory error that may have harmed every process' WHEN 119 "
         "THEN 'its own processor does not answer' END AS what, now() - timestamp AS age FROM gpu_metrics "
         "WHERE " OF_PID " ORDER BY coalesce(xid, 0) > 0 DESC, timestamp DESC LIMIT 1",
     .threshold = 1,
     .needs = "gpu_metrics",
     .words = "GPU {device} reported Xid {xid:n} {age:s} ago[: {what}]",
     .brief = "GPU ERROR: {device}, Xid {xid:n}",
     .screen = "gpu"},
    {.code = "GPU ERROR",
     .level = VERDICT_WARN,
     .checks = "memory errors of a GPU that could not be corrected, since it is watched",
     .kind = "n",
     .help = "its memory fails: what was computed on it may be wrong. Drain the host, and reset the device",
     /* a counter that falls was reset: it counts from there */
     .sql = "WITH e AS (SELECT device, timestamp, ecc, max(ecc - lag(ecc, 1, ecc) OVER (PARTITION BY device, "
            "slice ORDER BY timestamp), 0) AS more FROM gpu_metrics WHERE " OF_PID
            " AND ecc IS NOT NULL) SELECT sum(more) AS more, device, ecc AS errors, max(timestamp) AS at "
            "FROM e GROUP BY device ORDER BY more DESC LIMIT 1",
     .threshold = 1,
     .needs = "gpu_metrics",
     .words = "GPU {device} had {more:n} memory errors that could not be corrected while it was watched "
              "({errors:n} since its driver was loaded)",
     .brief = "GPU ERROR: memory of {device}",
     .screen = "gpu"},
    {.code = "GPU THROTTLED",
     .level = VERDICT_WARN,
     .checks = "a GPU slowed by heat or by its board, share of the last " GPUS_S " s",
     .kind = "%",
     .help =
         "cooling, or the power that reaches the board. The power limit, which slows most GPUs under load, "
         "does not count",
     .sql = "SELECT share, device, celsius, mhz, span" GPU_SLOWED,
     .threshold = 0.5,
     .needs = "gpu_metrics",
     .more = "SELECT n < 5 AND NOT CAST(:ended AS INTEGER) AS again, n >= 5 AS holds" GPU_SLOWED,
     .more_needs = "gpu_metrics",
     .words = "GPU {device} is slowed by heat or by its board {share:%} of the time ({celsius:n} C, {mhz:n} "
              "MHz, last {span:s})",
     .brief = "GPU THROTTLED: {device}",
     .screen = "gpu"},
    {.code = "GPU MEMORY",
     .level = VERDICT_WARN,
     .checks = "memory of a GPU in use, where torch had to give back what was free",
     .kind = "%",
     .help = "smaller batches, activation checkpointing, or "
             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against pieces that do not fit",
     .sql = "SELECT share, device, used, total" GPU_FULLEST,
     .threshold = 0.9,
     .needs = "gpu_metrics",
     .more = "SELECT max(retries) AS retries, nullif(max(ooms), 0) AS ooms, iif(sum(inactive_mb) > 0.1 * "
             "sum(reserved_mb), "
             "sum(inactive_mb), NULL) AS pieces, max(retries) > 0 OR max(ooms) > 0 AS holds FROM "
             "python.gpu_memory WHERE " OF_PID " AND coalesce(uuid, '') NOT IN (SELECT uuid FROM gpu_metrics "
             "WHERE " OF_PID " AND timestamp > now() - 5 AND uuid <> (SELECT uuid" GPU_FULLEST "))",
     .more_needs = "python.gpu_memory",
     .words = "GPU {device} is full ({used:MiB} of {total:MiB}): torch had to give back memory {retries:n} "
              "times[, and {ooms:n} times there was not enough][; {pieces:MiB} are pieces between others]",
     .screen = "gpu"},
    {.code = "GPU MEMORY",
     .level = VERDICT_NOTE,
     .checks = "memory of a GPU in use, where torch's tensors have needed nearly all of it",
     .kind = "%",
     .help = "there is room for little more: a longer input, a larger batch or an evaluation may end the job",
     .sql = "SELECT share, device, used, total" GPU_FULLEST,
     .threshold = 0.9,
     .needs = "gpu_metrics",
     .more = "SELECT max(peak_mb) AS peak, max(peak_mb) >= 0.9 * (SELECT total" GPU_FULLEST
             ") AS holds FROM python.gpu_memory WHERE " OF_PID
             " AND coalesce(uuid, '') NOT IN (SELECT uuid FROM gpu_metrics WHERE " OF_PID
             " AND timestamp > now() - 5 AND uuid <> (SELECT uuid" GPU_FULLEST "))",
     .more_needs = "python.gpu_memory",
     .words = "tensors have needed up to {peak:MiB} of the {total:MiB} of GPU {device}",
     .screen = "gpu"},
    {.code = "SYNC",
     .level = VERDICT_WARN,
     .checks = "waiting until the GPU is through, while it has time, share of the last " SAMPLES_S " s",
     .kind = "%",
     .moves = true,
     .help = SYNC_HELP,
     .sql =
         "WITH " GPUS ", s AS MATERIALIZED (SELECT gpu, own_func, own_file, own_line FROM temp.verdict_seen "
         "WHERE " OF_THREAD " AND " LATELY "), t AS (SELECT count(*) AS n FROM s), w AS MATERIALIZED (SELECT "
         "max(gpu) AS op, own_func AS func, own_file AS file, own_line AS at, 1.0 * count(*) / t.n AS part "
         "FROM s, t WHERE gpu IS NOT NULL GROUP BY 2, 3, 4 ORDER BY part DESC) SELECT CASE WHEN t.n "
         ">= " SAMPLES_NEEDED " AND b.n >= 5 THEN iif(b.busy < " GPU_FULL
         ", coalesce((SELECT sum(part) FROM w), "
         "0), 0) END AS share, " SYNC_LINES ", b.busy / 100 AS busy, device FROM b, t",
     .threshold = 0.1,
     .needs = "gpu_metrics",
     .sure = "sampled",
     .words = SYNC_WORDS("share"),
     .brief = "SYNC[ in {func}]",
     .screen = "flame"},
    /* Of .item() and the like Python's frames show only the line that calls it. A line that takes long
     * without the GIL is looked at with native frames. */
    {.code = "SYNC",
     .level = VERDICT_WARN,
     .checks = "in one line without the GIL, while the GPU has time, share of the last " SAMPLES_S
               " s: is it in the driver?",
     .kind = "%",
     .moves = true,
     .help = SYNC_HELP,
     .sql =
         "WITH " GPUS
         ", s AS MATERIALIZED (SELECT own_func, own_file, own_line, coalesce(gil, 'none') = 'none' AS free "
         "FROM temp.verdict_seen WHERE " OF_THREAD " AND " LATELY "), t AS (SELECT count(*) AS n FROM s) "
         "SELECT CASE WHEN t.n >= " SAMPLES_NEEDED " AND b.n >= 5 THEN iif(b.busy < " GPU_FULL
         ", coalesce((SELECT 1.0 * sum(free) / t.n AS part FROM s WHERE own_func IS NOT NULL GROUP BY "
         "own_func, own_file, own_line ORDER BY part DESC LIMIT 1), 0), 0) END AS in_line, b.busy / 100 AS "
         "busy, device FROM b, t",
     .threshold = 0.1,
     .needs = "gpu_metrics",
     .more =
         "WITH s AS MATERIALIZED (SELECT own_func, own_file, own_line FROM temp.verdict_seen "
         "WHERE " OF_THREAD " AND " LATELY "), k AS MATERIALIZED (SELECT own_func AS func, own_file AS "
         "file, own_line AS at, count(*) AS looks, count(op) AS waits, max(op) AS op FROM "
         "temp.verdict_native WHERE " OF_THREAD " GROUP BY 1, 2, 3), w AS MATERIALIZED (SELECT op, func, "
         "file, at, 1.0 * waits / looks * (SELECT count(*) FROM s WHERE own_func = func AND own_file = "
         "file AND own_line IS at) / (SELECT count(*) FROM s) AS part FROM k WHERE waits >= 3 AND 2 * "
         "waits >= looks ORDER BY part DESC), a AS (SELECT coalesce(sum(part), 0) AS share FROM w) SELECT "
         "coalesce((SELECT sum(looks) FROM k), 0) < 16 AND NOT CAST(:ended AS INTEGER) AS again, "
         "(SELECT sum(looks) FROM k) >= 16 AND share >= 0.1 AS holds, share, " SYNC_LINES " FROM a",
     .sure = "sampled",
     .words = SYNC_WORDS("share"),
     .brief = "SYNC[ in {func}]",
     .screen = "flame"},
    {.code = "LAUNCH-BOUND",
     .level = VERDICT_WARN,
     .checks = "a GPU with time while the training thread never rests, share of the last " GPUS_S " s",
     .kind = "%",
     .moves = true,
     .help =
         "larger batches, fewer and larger operations, torch.compile or CUDA graphs; or less Python between "
         "them",
     .sql = "WITH " GPUS ", " GPU_DATA ", " GPU_LAUNCHES
            ", w AS (SELECT own_func AS func, own_file AS file, coalesce(':' || own_line, '') AS line FROM "
            "temp.verdict_seen WHERE " OF_THREAD " AND " LATELY
            " AND on_cpu AND own_func IS NOT NULL GROUP BY 1, 2, 3 ORDER BY count(*) DESC LIMIT 1) SELECT "
            "iif(launches, 1 - b.busy / 100, 0) AS idle, b.busy / 100 AS busy, device, b.span AS span, func, "
            "file, line FROM b, l LEFT JOIN w",
     .threshold = 0.4,
     .needs = "gpu_metrics",
     .more = "WITH " GPUS " SELECT " GPU_IS_USED " AS holds FROM b",
     .more_needs = "python.gpu_memory",
     /* A thread that waits for its GPU computes meanwhile, as CUDA has it by default. */
     .also =
         "WITH n AS (SELECT avg(op IS NOT NULL) AS waits FROM temp.verdict_native WHERE " OF_THREAD
         "), s AS (SELECT avg(gpu IS NOT NULL) AS waits FROM temp.verdict_seen WHERE " OF_THREAD
         " AND " LATELY ") SELECT max(coalesce(n.waits, 0), coalesce(s.waits, 0)) < 0.2 AS holds FROM n, s",
     .sure = "sampled",
     .words = "GPU {device} is busy {busy:%} of the time (last {span:s}), and the training thread always: it "
              "cannot launch fast enough[, mostly in {func} ({file:file}{line})]",
     .screen = "flame"},
    {.code = "GPU IDLE",
     .level = VERDICT_WARN,
     .checks = "a GPU that runs nothing, share of the last " GPUS_S " s",
     .kind = "%",
     .moves = true,
     .help = "the job waits for something else: its batches, its own Python code, a disk, other ranks. The "
             "Steps and Flame screens show it",
     .sql = "WITH " GPUS " SELECT 1 - busy / 100 AS idle, busy / 100 AS busy, device, span FROM b",
     .threshold = 0.5,
     .needs = "gpu_metrics",
     .more = "WITH " GPUS ", " GPU_DATA ", " GPU_LAUNCHES " SELECT " GPU_IS_USED
             " AND NOT coalesce(launches, 0) AS holds, iif(data >= 0.1, data, NULL) AS data FROM b, d, l",
     .more_needs = "python.gpu_memory",
     /* where it is meanwhile */
     .also =
         "WITH s AS MATERIALIZED (SELECT own_func, own_file, own_line, wait FROM temp.verdict_seen "
         "WHERE " OF_THREAD " AND " LATELY "), w AS (SELECT own_func AS func, own_file AS file, "
         "coalesce(':' || own_line, '') AS line, max(wait) AS wait, 1.0 * count(*) / (SELECT count(*) FROM "
         "s) AS part FROM s WHERE own_func IS NOT NULL GROUP BY own_func, own_file, own_line ORDER BY part "
         "DESC LIMIT 1) SELECT func, file, line, part, CASE wait WHEN 'ranks' THEN 'other ranks' WHEN "
         "'process' THEN 'a child process' WHEN 'pipe' THEN 'a pipe' WHEN 'thread' THEN 'another thread' "
         "WHEN 'request' THEN 'requests' END AS waits FROM w WHERE part >= 0.3",
     .words = "GPU {device} is busy {busy:%} of the time (last {span:s})[; {data:%} of a step is waiting for "
              "batches][; the job is in {func} ({file:file}{line}) {part:%} of the time][, waiting for "
              "{waits}]",
     .screen = "gpu"},
    {.code = "OVERSUBSCRIBED",
     .level = VERDICT_WARN,
     .checks = "threads that want to run against CPUs, last " HOST_S " s",
     .kind = "x",
     .help = "torch.set_num_threads or OMP_NUM_THREADS: as many threads as CPUs, workers counted",
     .sql = CPUS "SELECT CASE WHEN threads > cpus AND (a.ran > 0.6 * cpus OR (threads > 2 * cpus AND a.ran > "
                 "0.15 * cpus)) THEN wanted / cpus END AS times, threads, cpus, wanted, a.ran FROM a, u",
     .threshold = 1.5,
     .words = "{threads} threads want {cpus} CPUs: they run on {ran:cpus} of them and want {wanted:cpus} at "
              "a time (last " HOST_S " s)",
     .screen = "threads"},
    {.code = "OVERSUBSCRIBED",
     .level = VERDICT_WARN,
     .checks = "DataLoader workers against CPUs: waiting for a CPU or for their batches, share of the time",
     .kind = "%",
     .help = "fewer DataLoader workers: they take the CPUs that the training needs",
     .sql = CPUS
     ", l AS (SELECT sum(workers) AS workers FROM (SELECT loader, max(workers) AS workers FROM "
     "python.loaders WHERE " OF_PID
     " AND timestamp > now() - 5 GROUP BY loader)) SELECT CASE WHEN workers IS NULL THEN NULL WHEN workers < "
     "cpus THEN 0 ELSE max(coalesce((SELECT waits FROM t), 0), coalesce((SELECT share FROM (" SHARE_OF(
         "data_ms") ")), 0)) END AS share, workers, cpus, coalesce((SELECT waits FROM t) >= 0.3, 0) AS waits "
                    "FROM u, l",
     .threshold = 0.3,
     .needs = "python.loader_workers",
     /* Others may have the CPUs: what the workers run counts. */
     .more =
         CPUS ", w AS (SELECT sum(cpu_pct) / 100 AS run, sum(coalesce(cpu_pct, 0) + "
              "coalesce(cpu_wait_pct, 0)) / 100 AS wanted, sum(coalesce(cpu_pct, 0) + "
              "coalesce(cpu_wait_pct, 0) > 50) AS busy FROM temp.verdict_workers WHERE " OF_PID
              ") SELECT w.run, busy, w.wanted + coalesce((SELECT waits FROM t), 0) + coalesce(a.ran, 0) > "
              "1.5 * cpus AND busy >= cpus AND (w.run + coalesce(a.ran, 0) > 0.6 * cpus OR (busy >= 2 * "
              "cpus AND w.run > 0.15 * cpus)) AS holds FROM w, a, u",
     .more_needs = "python.loader_workers",
     .words = "{busy} busy DataLoader workers want {cpus} CPUs, and run on {run:cpus} of them: the training "
              "waits {share:%} of the time for a CPU or for its batches",
     .screen = "threads"},
    {.code = "HOST BUSY",
     .level = VERDICT_NOTE,
     .checks = "the training thread waits for a CPU that others have, share of the last " HOST_S " s",
     .kind = "%",
     .help = "other processes of this machine use the CPUs: check with top, give the job CPUs of its own",
     .sql = CPUS "SELECT CASE WHEN threads <= cpus OR (a.ran <= 0.6 * cpus AND threads <= 2 * cpus) THEN "
                 "waits END AS share, cpus, a.ran FROM t, u, a",
     .threshold = 0.3,
     .words = "the training thread is ready to run and waits for a CPU {share:%} of the time (last " HOST_S
              " s), though the process uses {ran:cpus} of {cpus} CPUs",
     .screen = "threads"},
    {.code = "THROTTLED",
     .level = VERDICT_WARN,
     .checks = "kept from running by its control group, share of the last 20 s",
     .kind = "%",
     .help = "its control group has used up its CPU time: raise the limit (cpu.max), or use fewer threads",
     .sql = GROWS("throttled_s") "SELECT CASE WHEN span >= 4 THEN share / max(1, coalesce(cpus, 1)) END AS "
                                 "share, span, cpus FROM r, u",
     .threshold = 0.1,
     .words =
         "its control group was kept from running {share:%} of the last {span:s}[: it may use {cpus} CPUs]",
     .screen = "overview"},
    {.code = "STEAL",
     .level = VERDICT_WARN,
     .checks = "CPU time taken by the machine under this one",
     .kind = "%",
     .help = "the machine under this virtual one gives the time to others: another host, or reserved CPUs",
     .sql = "SELECT CASE WHEN count(steal_pct) >= 1 THEN avg(steal_pct) / 100 END AS share FROM "
            "system.process_history WHERE " OF_PID " AND timestamp > now() - 30",
     .threshold = 0.2,
     .words = "{share:%} of the CPUs' time is taken by the machine under this one",
     .screen = "overview"},
    {.code = "SWAPPING",
     .level = VERDICT_WARN,
     .checks = "waiting for memory, share of the last 20 s, with pages that come from a disk",
     .kind = "%",
     .help = "memory is too small for what runs here: fewer workers, smaller caches, or a larger limit",
     .sql = GROWS("memory_pressure_s") "SELECT CASE WHEN span >= 9 AND faults >= 20 THEN share END AS share, "
                                       "span, faults, iif(swapped >= 1, swapped, NULL) AS swapped FROM r, b",
     .threshold = 0.1,
     .words = "memory is waited for {share:%} of the last {span:s}: {faults:n} pages a second come back from "
              "a disk[; {swapped:MiB} of the process is swapped out]",
     .screen = "overview"},
    {.code = "PRESSURE",
     .level = VERDICT_NOTE,
     .checks = "waiting for memory, share of the last 20 s, without such pages",
     .kind = "%",
     .help = "tasks beside this one wait for memory: it may be the next that does",
     .sql = GROWS("memory_pressure_s") "SELECT CASE WHEN span >= 9 AND faults < 20 THEN share END AS share, "
                                       "span FROM r, b",
     .threshold = 0.2,
     .words =
         "some task of its control group, or of the machine, waits for memory {share:%} of the last {span:s}",
     .screen = "overview"},
    {.code = "DISK",
     .level = VERDICT_WARN,
     .checks = "the training thread waits for a device, share of the last " SAMPLES_S " s",
     .kind = "%",
     .help = "nearer or faster storage, larger reads, fewer fsync; a loader's workers can wait instead",
     .sql = GROWS("read_bytes") ", h AS (SELECT avg(state = 'D') AS share, count(*) AS n FROM "
                                "system.threads_history WHERE " OF_THREAD " AND " LATELY
                                "), w AS (SELECT own_func AS func, own_file AS file, coalesce(':' || "
                                "own_line, '') AS line, count(*) AS n FROM temp.verdict_seen WHERE " OF_THREAD
                                " AND " LATELY
                                " AND NOT on_cpu AND own_func IS NOT NULL GROUP BY own_func, own_line ORDER "
                                "BY n DESC LIMIT 1) SELECT CASE WHEN h.n >= 5 THEN h.share END AS share, "
                                "reads, writes, func, file, line FROM h, b LEFT JOIN w",
     .sure = "sampled",
     .threshold = 0.3,
     .words = "the training thread waits for a device {share:%} of the time[, in {func} "
              "({file:file}{line})][; the process reads {reads:MiB} and writes {writes:MiB} a second]",
     .brief = "DISK[ in {func}]",
     .screen = "threads"},
    /* What no job wants to keep, whatever else it keeps: the graphs of many steps. A cache is another
     * matter: in the first epoch it never has what it is asked for. */
    {.code = "MEMORY CREEP",
     .level = VERDICT_WARN,
     .checks = "memory of the last 12 s, the growth along a line; graphs of many steps that are kept",
     .kind = "%",
     .help = "graphs are kept step after step: keep loss.item() or loss.detach() instead of the loss, use "
             "torch.no_grad() where nothing is trained",
     .sql = CREEP_FAST,
     .threshold = 0.01,
     .more =
         "WITH " GROWTH_HOLDERS ", " GROWTH_RATE ", " GROWTH_LINES
         ", w AS (SELECT says FROM h WHERE graphs AND room IS NULL AND growth >= 20 AND growth_per_step >= "
         "0.5 ORDER BY growth DESC LIMIT 1) SELECT w.says IS NOT NULL AS holds, again, w.says AS "
         "holder, " GROWTH_SITE " AS site FROM l LEFT JOIN w",
     .needs = "python.memory_growth",
     .more_needs = "python.memory_growth",
     .words = GROWTH_TAKES,
     .brief = "MEMORY CREEP {a_minute:MiB}/min",
     .screen = "memory"},
    {.code = "MEMORY CREEP",
     .level = VERDICT_WARN,
     .checks = "memory since the first steps, the growth along a line",
     .kind = "%",
     .help = "something is kept that should be freed: losses with their graphs, an unbounded cache; 'probing "
             "PID memory --trace' names the line",
     .sql = CREEP_LONG("memory_mb"),
     .threshold = 0.02,
     .more = "WITH " GROWTH_RATE ", " GROWTH_LINES
             " SELECT (SELECT (cgroup_limit_bytes - cgroup_memory_bytes) / 1048576.0 FROM "
             "system.process_history WHERE " OF_PID
             " AND timestamp > now() - 10" LAST(1) ") AS room, " GROWTH_SITE " AS site",
     /* A cache or a queue that has room left fills. */
     .also =
         "WITH " GROWTH_HOLDERS ", " GROWTH_RATE
         ", w AS (SELECT * FROM h WHERE graphs OR rate > 0.2 * (SELECT rate FROM k) ORDER BY graphs DESC, "
         "growth_bytes DESC LIMIT 1) SELECT coalesce(w.room, 0) <= 0 AS holds, again, w.says AS holder, "
         "iif(w.says IS NULL AND NOT again, 'none of ' || looked || ' objects that variables reach, which "
         "are not those that only C or C++ knows', NULL) AS blind FROM l LEFT JOIN w",
     .also_needs = "python.memory_growth",
     .words = GROWTH_TAKES "[; held by {blind}][; there is room for {room:MiB} more]",
     .brief = "MEMORY CREEP {a_minute:MiB}/min",
     .screen = "memory"},
    /* Not yet known to be a leak: a cache that fills looks the same for a while. But what it is. */
    {.code = "MEMORY CREEP",
     .level = VERDICT_NOTE,
     .checks = "memory of the last 12 s, the growth along a line; who holds it",
     .kind = "%",
     .help = "a leak, or a buffer or cache that is filling: check again in half a minute; 'probing PID "
             "memory --trace' names the line that allocates it",
     .sql = CREEP_FAST,
     .threshold = 0.01,
     .more =
         "WITH " GROWTH_HOLDERS ", " GROWTH_RATE ", " GROWTH_LINES
         ", w AS (SELECT * FROM h WHERE rate > 0.3 * (SELECT rate FROM k) ORDER BY growth_bytes DESC LIMIT "
         "1) SELECT (w.says IS NOT NULL AND coalesce(w.room, 0) <= 0) OR (w.says IS NULL AND " GROWTH_SITE
         " IS NOT NULL) AS holds, again, w.says AS holder, " GROWTH_SITE " AS site FROM l LEFT JOIN w",
     .needs = "python.memory_growth",
     .more_needs = "python.memory_growth",
     .words = GROWTH_TAKES,
     .brief = "MEMORY CREEP {a_minute:MiB}/min",
     .screen = "memory"},
    {.code = "MEMORY CREEP",
     .level = VERDICT_WARN,
     .checks = "memory on GPUs since the first steps, the growth along a line",
     .kind = "%",
     .help = "tensors are kept that should be freed: losses with their graphs, outputs in a list",
     .sql = CREEP_LONG("gpu_allocated_mb"),
     .threshold = 0.02,
     .also = "WITH " GROWTH_HOLDERS ", w AS (SELECT says FROM h WHERE of LIKE '%cuda%' OR graphs ORDER BY "
             "growth_bytes DESC LIMIT 1) SELECT again, w.says AS holder FROM l LEFT JOIN w",
     .also_needs = "python.memory_growth",
     .words = "memory on GPUs grows by {a_minute:MiB} a minute[, {a_step:MiB} a step] (from {was:MiB} to "
              "{is_now:MiB} in {span:s})[; held by {holder}]",
     .brief = "GPU MEMORY CREEP {a_minute:MiB}/min",
     .screen = "tensors"},
    {.code = "COMPUTE-BOUND",
     .level = VERDICT_FINE,
     .checks = "forward, backward and optimizer, share of a step",
     .kind = "%",
     .moves = true,
     .is_alone = true,
     .help = "the time goes where it should: what is left is to make the model itself faster",
     /* Waiting for the GIL is not computing: a tenth of the samples, however few, is enough to
      * say nothing. */
     .sql = "WITH s AS (SELECT forward_ms AS f, backward_ms AS b, optimizer_ms AS o, duration_ms AS d FROM "
            "temp.verdict_recent WHERE " OF_STEPS
            " AND forward_ms IS NOT NULL AND backward_ms IS NOT NULL AND optimizer_ms IS NOT NULL AND "
            "duration_ms IS NOT NULL" LAST(
                40) "), g AS (SELECT avg(gil = 'waiting') AS waits FROM temp.verdict_looks WHERE " OF_THREAD
                    " AND " LATELY
                    ") SELECT CASE WHEN count(*) >= 3 AND coalesce((SELECT waits FROM g), 0) < 0.1 THEN "
                    "sum(f + b + o) / sum(d) END AS share, avg(f) AS forward_ms, avg(b) AS backward_ms, "
                    "avg(o) AS optimizer_ms, avg(d) AS step_ms, count(*) AS n FROM s",
     .threshold = 0.7,
     .words = "{share:%} of a step is forward ({forward_ms:ms}), backward ({backward_ms:ms}) and optimizer "
              "({optimizer_ms:ms}), of {n:steps} that were traced",
     .screen = "steps"},
    {.code = NULL},
};
