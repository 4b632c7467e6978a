# SPDX-License-Identifier: Apache-2.0
"""The tables of all ranks of a job in Python's own SQLite, read from the ranks' files by ring_file: the reference for SQL over a job.

    pids = [...]; stop them
    with PlainSqlite([(folder_of(pid), host, pid), ...]) as plain:
        differ = plain.differ(statements(source), ask)
"""

import datetime
import glob
import os
import re
import sqlite3
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "functional"))
import ring_file  # noqa: E402

IDS = ("stack_id", "parent_id", "frame_id")  # mean something within a process only
COMMON = ("rank", "host", "pid")
ALIASES = {"memory_usage": "python.memory"}
ENDS_S = 1  # the ends of one collective differ by less

# What a rank's files do not have on a machine without a GPU, and what is made when it is read.
EMPTY = {"gpu_metrics": ("timestamp", "gpu_util")}

UNITS = {"min": 60, "minutes": 60, "minute": 60, "hour": 3600, "hours": 3600}


JOINS = """
SELECT a.rank, b.rank AS other, count(*) FROM python.steps a JOIN python.steps b ON a.step = b.step GROUP BY 1, 2;
SELECT a.rank, sum(b.duration_ms) FROM python.steps a JOIN python.steps b ON a.step = b.step AND b.rank = 3 GROUP BY 1;
SELECT a.step, max(a.timestamp) - min(a.timestamp) FROM python.steps a GROUP BY 1 ORDER BY 2 DESC LIMIT 5;
SELECT s.rank, f.func, count(*) FROM python.samples s JOIN python.stacks k USING (stack_id) JOIN python.frames f USING (frame_id) GROUP BY 1, 2;
SELECT f.func, count(DISTINCT s.rank) FROM python.samples s JOIN python.stacks k USING (stack_id) JOIN python.frames f USING (frame_id) WHERE s.rank > 0 GROUP BY 1;
SELECT s.rank, count(*) FROM python.steps s WHERE EXISTS (SELECT 1 FROM python.collectives c WHERE c.rank = s.rank AND c.step = s.step) GROUP BY 1;
SELECT c.rank, c.op, count(*), sum(c.duration_ms) FROM python.collectives c JOIN python.steps s ON s.rank = c.rank AND s.step = c.step GROUP BY 1, 2;
SELECT a.rank, count(*) FROM python.steps a LEFT JOIN python.steps b ON b.rank = a.rank AND b.step = a.step + 1 WHERE b.step IS NULL GROUP BY 1;
SELECT m.rank, max(m.memory_mb) > 0, (SELECT count(*) FROM python.steps s WHERE s.rank = m.rank) FROM python.memory m GROUP BY 1;
SELECT rank, step, duration_ms FROM python.steps WHERE step BETWEEN 3 AND 5 ORDER BY 1, 2;
SELECT rank, step FROM python.steps WHERE rank IN (0, 2) AND step = 4 ORDER BY 1;
SELECT host, count(*) FROM python.steps WHERE host = 'n1' GROUP BY 1;
SELECT a.host, b.host AS other, count(*) FROM python.steps a JOIN python.steps b ON a.step = b.step WHERE a.rank < b.rank GROUP BY 1, 2;
SELECT rank, count(*) FROM (SELECT rank, step FROM python.steps UNION SELECT rank, step FROM python.collectives) GROUP BY 1;
SELECT rank, step FROM python.steps WHERE rank = 1 INTERSECT SELECT rank, step FROM python.collectives WHERE rank = 1 ORDER BY 2 LIMIT 3;
SELECT rank, sum(n) OVER (ORDER BY rank) FROM (SELECT rank, count(*) AS n FROM python.steps GROUP BY 1);
SELECT s.rank, s.step, d.op, count(*) FROM python.steps s JOIN python.collectives d ON d.timestamp BETWEEN s.timestamp - 0.01 AND s.timestamp + 0.01 AND d.rank = s.rank WHERE s.step < 6 GROUP BY 1, 2, 3;
SELECT max(step), min(step) FROM python.steps WHERE timestamp <= (SELECT max(timestamp) FROM python.steps WHERE rank = 0);
SELECT rank, key, value FROM probing.facts WHERE key IN ('python', 'agent') ORDER BY 1, 2;
SELECT c.rank, count(*) FROM comm_metrics c JOIN python.steps s ON s.rank = c.rank AND s.step = c.step GROUP BY 1;
"""


def statements(source):
    """Those that people type (tests/unit/seed_queries.sql), and the joins."""
    with open(os.path.join(source, "tests", "unit", "seed_queries.sql"), encoding="ascii") as file:
        text = "\n".join(line.partition("--")[0] for line in file)
    return [one.strip() for one in (text + JOINS).split(";") if one.strip()]


def folder_of(pid):
    """The folder of its tables: a thread of the agent has their files, and a list of its own of open files."""
    for path in glob.glob(f"/proc/{pid}/task/*/fd/*"):
        try:
            link = os.readlink(path)
        except OSError:
            continue
        if os.path.basename(link).startswith("python.steps"):
            return os.path.dirname(link)
    raise AssertionError(f"process {pid} has no tables")


def key_of(found):
    """Rows in any order, where the order of sums does not count; numbers of processes mean something in each alone."""
    def plain(value):
        return round(value, 6) if isinstance(value, float) else value
    return sorted(repr([(key, plain(value)) for key, value in row.items() if key not in (*IDS, "pid")]) for row in found)


def hour(timestamp):
    return datetime.datetime.fromtimestamp(timestamp, datetime.timezone.utc).hour


def last_to_arrive(rows, ranks):
    """Of the rows of python.collectives, by their place: the place of the row whose rank entered the same collective last.

    Nobody ends a collective before everybody has begun it: in the order of their ends, each row joins the oldest of its operation that
    lacks its rank and of which nobody had ended when it began."""
    last, still = {}, []
    times = [(row["timestamp"] + row["duration_ms"] / 1e3, i) for i, row in enumerate(rows)
             if row["state"] == "done" and not row["p2p"] and row["duration_ms"] is not None and row["op"] is not None]
    for end, i in sorted(times):
        row = rows[i]
        still = [one for one in still if one["end"] + ENDS_S >= end]
        of = (row["op"], row["pg"])
        one = next((one for one in still if one["of"] == of and row["rank"] not in one["rows"] and row["timestamp"] <= one["end"]), None)
        if not one:
            one = {"of": of, "end": end, "rows": {}}
            still.append(one)
        one["rows"][row["rank"]] = i
        if len(one["rows"]) == ranks:
            latest = max(one["rows"].values(), key=lambda k: rows[k]["timestamp"])
            last.update(dict.fromkeys(one["rows"].values(), latest))
            still.remove(one)
    return last


class PlainSqlite:
    def __init__(self, ranks, backtraces=()):
        """`ranks`: (folder of its tables, host, pid) of each; `backtraces`: rows of python.backtrace. now() is when the last step ended."""
        self.n_rows = {}
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.create_function("hour", 1, hour)
        for schema in ("python", "probing", "system"):
            self.db.execute(f"ATTACH ':memory:' AS {schema}")
        tables = {}
        for folder, host, pid in ranks:
            for name in os.listdir(folder):
                if name.endswith(".ring"):
                    ring = ring_file.Ring(os.path.join(folder, name))
                    names, rows = tables.setdefault(ring.name, ([column[0] for column in ring.columns], []))
                    rows += [{**self.of_rank(row, ring.rank), "rank": ring.rank, "host": host, "pid": pid} for row in ring.rows]
        for name, (names, rows) in tables.items():
            self.create(name, (*COMMON, *names), rows)
        for name, names in EMPTY.items():
            self.create(name, names, [])
        if backtraces:
            self.create("python.backtrace", list(backtraces[0]), backtraces)
        self.create_comm(tables["python.collectives"][1], len(ranks))
        self.create_logs(tables["python.variables"][1])
        self.now = max(row["timestamp"] for row in tables["python.steps"][1])
        for alias, name in ALIASES.items():
            self.db.execute(f"CREATE TEMP VIEW {alias} AS SELECT * FROM {name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.db.close()

    @staticmethod
    def of_rank(row, rank):
        return {key: value + (rank << 40) if key in IDS and value is not None else value for key, value in row.items()}

    def create(self, name, names, rows):
        self.n_rows[name] = len(rows)
        columns = ", ".join(f'"{column}"' for column in names)
        self.db.execute(f"CREATE TABLE {name} ({columns})")
        self.db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(names))})", [[row[column] for column in names] for row in rows])

    def create_comm(self, rows, ranks):
        last, found = last_to_arrive(rows, ranks), []
        for i, row in enumerate(rows):
            to = rows[last[i]] if i in last else None
            wait_ms = (to["timestamp"] - row["timestamp"]) * 1e3 if to else row["duration_ms"]
            found.append({**{key: row[key] for key in (*COMMON, "timestamp", "op", "bytes", "step", "pg")}, "src_rank": row["rank"],
                          "dst_rank": row["peer"] if row["peer"] is not None else to and to["rank"], "latency_ms": wait_ms, "state": row["state"]})
        names = (*COMMON, "timestamp", "src_rank", "dst_rank", "op", "bytes", "latency_ms", "step", "pg")
        self.create("comm_metrics", names, [row for row in found if row["state"] == "done"])

    def create_logs(self, variables):
        """Steps with the last value of what is watched in each."""
        names = sorted({row["name"] for row in variables if row["step"] is not None} - {"loss"})
        columns = "".join(f", (SELECT max(coalesce(value, text)) FROM python.variables v WHERE v.pid = s.pid AND v.step = s.step AND name = '{name}') "
                          f'AS "{name}"' for name in names)
        self.db.execute("CREATE TEMP VIEW training_logs AS SELECT s.rank, s.host, s.pid, s.timestamp, s.step, s.epoch, coalesce(s.loss, (SELECT max(value) "
                        f"FROM python.variables v WHERE v.pid = s.pid AND v.step = s.step AND name = 'loss')) AS loss{columns} FROM python.steps s")

    def rows(self, statement):
        text = statement.replace("now()", repr(self.now))
        text = re.sub(r"interval '(\d+) (\w+)'", lambda found: str(int(found[1]) * UNITS[found[2]]), text)
        return [dict(row) for row in self.db.execute(text)]

    def count(self):
        """Rows of each table that has some."""
        return {name: rows for name, rows in self.n_rows.items() if rows}

    def differ(self, asked, ask):
        """The statements for which ask(text) has other rows than this, with some of both. Without an order, or one by depth, any rows are right."""
        found = []
        for statement in asked:
            here, there = self.rows(statement), ask(statement.replace("now()", repr(self.now)))
            if "LIMIT" in statement and ("ORDER BY" not in statement or "backtrace" in statement):
                is_same = len(here) == len(there) and set(key_of(there)) <= set(key_of(self.rows(statement.partition("LIMIT")[0])))
            else:
                is_same = key_of(here) == key_of(there)
            if not is_same:
                found.append((statement, here[:3], there[:3]))
        return found
