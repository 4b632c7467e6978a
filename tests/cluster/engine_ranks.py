# SPDX-License-Identifier: Apache-2.0
"""Rows of a job of many ranks in a ClickHouse database, as the relays of its hosts would write them.

    job = Job(ask, "llama-71c0", ranks=10000, per_host=8)    ask(sql): runs a statement on the server
    job.second(ts)                                           what the relays write in that second
    job.hang(rank, at)                                       from then on all ranks wait for that one
    job.silent = {3, 4}                                      hosts that write nothing
    job.run(until)                                           each second in time, until until() is true

The server makes the rows itself, INSERT ... SELECT FROM numbers(): 10,000 ranks a second cost the test nothing.
"""

import datetime
import json
import time

TRAIN, STEP, REDUCE, FETCH = "/job/train.py", "/job/step.py", "/venv/site-packages/torch/distributed.py", "/job/loader.py"
# innermost first
STACKS = {
    101: [("attention", "/job/model.py", 210), ("forward", STEP, 40), ("step", STEP, 88), ("main", TRAIN, 12)],
    102: [("backward", STEP, 91), ("step", STEP, 88), ("main", TRAIN, 12)],
    103: [("all_reduce", REDUCE, 2810), ("backward", STEP, 91), ("step", STEP, 88), ("main", TRAIN, 12)],
    104: [("get", "/usr/lib/python3.11/queue.py", 171), ("fetch", FETCH, 31), ("step", STEP, 88), ("main", TRAIN, 12)],
}
AGE_S = 600  # of the job when its first rows are written


def day_of(ts):
    return datetime.datetime.fromtimestamp(ts, datetime.timezone.utc).strftime("%Y-%m-%d")


def text(s):
    return "'" + s.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Job:
    def __init__(self, ask, name, ranks=16, per_host=8, database="probing"):
        self.ask, self.name, self.ranks, self.per_host, self.database = ask, name, ranks, per_host, database
        self.hosts = (ranks + per_host - 1) // per_host
        self.started, self.seconds, self.silent = None, 0, set()
        self.victim, self.hung_at = None, None

    def hang(self, rank, at):
        self.victim, self.hung_at = rank, at

    def hangs(self, ts):
        return self.hung_at is not None and ts >= self.hung_at

    def step_at(self, ts):
        return int((self.hung_at if self.hangs(ts) else ts) - self.started)

    def put(self, table, count, ts, rank, host, row, **columns):
        """Insert `count` rows; a value is an expression of ClickHouse, which may use rank and hostno."""
        front = {"day": f"toDate(toDateTime(toUInt32(ts), 'UTC'))", "job": text(self.name), "rank": "rank", "host": "concat('gpu', toString(hostno))",
                 "pid": f"1000 + modulo(rank, {self.per_host})" if rank != "-1" else "900", "created_us": str(int(self.started * 1e6)), "row": row, "ts": "ts"}
        front.update(columns)
        names, values = ", ".join(front), ", ".join(f"{value} AS c{i}" for i, value in enumerate(front.values()))
        silent = f" WHERE hostno NOT IN ({', '.join(map(str, sorted(self.silent)))})" if self.silent else ""
        self.ask(f"INSERT INTO `{self.database}`.`{table}` ({names}) SELECT {values} FROM (SELECT number, toInt32({rank}) AS rank, toInt32({host}) AS hostno, "
                 f"toFloat64({ts}) AS ts FROM numbers({count})){silent}")

    def put_stacks(self, ts):
        rows = [json.dumps({"day": day_of(ts), "job": self.name, "stack": number, "func": [f[0] for f in frames], "file": [f[1] for f in frames],
                            "line": [f[2] for f in frames]}) for number, frames in STACKS.items()]
        self.ask(f"INSERT INTO `{self.database}`.stacks FORMAT JSONEachRow\n" + "\n".join(rows))

    def put_hosts(self, ts):
        high = f"least(hostno * {self.per_host} + {self.per_host - 1}, {self.ranks - 1})"
        self.put("hosts", self.hosts, ts, "-1", "number", str(self.seconds), found="1", name=text(self.name),
                 ranks=f"concat(toString(hostno * {self.per_host}), '-', toString({high}))", world=str(self.ranks), launcher="800", restarts="0",
                 found_by="'RANK'", user="'ada'", via="'local'", cost_pct="0.4", written="0", lost="0", lag_s="0.5", clock_s="0")

    def of_hang(self, ts, others, victim, otherwise):
        """An expression: what the others have, and the victim, while the job hangs."""
        return f"if(rank = {self.victim}, {victim}, {others})" if self.hangs(ts) else otherwise

    def put_ranks(self, ts):
        step, since = self.step_at(ts), str(self.hung_at)
        self.put("ranks", self.ranks, ts, "number", f"intDiv(number, {self.per_host})", f"{self.seconds} * {self.per_host} + modulo(rank, {self.per_host})",
                 found="1", local_rank=f"modulo(rank, {self.per_host})", state="'S'" if self.hangs(ts) else "'R'",
                 cpu_pct="0" if self.hangs(ts) else "99", thread_cpu_pct="0" if self.hangs(ts) else "99", rss_bytes="1500000000 + rank", gc="0",
                 wait_kind=self.of_hang(ts, "'collective'", "NULL", "NULL"),
                 wait_what=self.of_hang(ts, f"'all_reduce of torch.distributed, group of {self.ranks}'", "NULL", "NULL"),
                 stack=self.of_hang(ts, "103", "104", str(101 + int(ts) % 2)), since=since if self.hangs(ts) else str(ts - 0.4), agent="1", step=str(step),
                 step_at=str(self.started + step), step_ms="1000", data_ms="10", cost_pct="0.4")

    def put_steps(self, ts, seconds):
        first, last = max(0, self.step_at(ts - seconds)), self.step_at(ts)
        if last > first:
            # they end a little after each other, and not always in the same order
            end = f"{self.started} + {first} + 1 + intDiv(number, {self.ranks}) + modulo(number * 7919, 1000) / 1e6"
            self.put("python_steps", (last - first) * self.ranks, end, f"modulo(number, {self.ranks})", f"intDiv(modulo(number, {self.ranks}), {self.per_host})",
                     f"toUInt64(floor(ts - {self.started})) - 1", step=f"toInt64(floor(ts - {self.started})) - 1", duration_ms="1000 + modulo(rank, 7)",
                     data_ms="10", forward_ms="300", backward_ms="600", optimizer_ms="50", gc_ms="1", other_ms="39")

    def put_states(self, ts):
        """What relays add while a rank may be stuck."""
        still, row = ts - self.hung_at, f"{self.seconds} * {self.per_host} + modulo(rank, {self.per_host})"

        def of_stack(column):
            value = {name: {"func": text(f[0]), "file": text(f[1]), "line": str(f[2])}[column] for name, f in
                     (("leaf", STACKS[103][0]), ("leaf_victim", STACKS[104][0]), ("own", STACKS[103][1]), ("own_victim", STACKS[104][1]))}
            return {f"{place}_{column}": self.of_hang(ts, value["own" if place != "leaf" else "leaf"], value["own_victim" if place != "leaf" else "leaf_victim"], "")
                    for place in ("leaf", "own", "at")}

        self.put("states", self.ranks, ts, "number", f"intDiv(number, {self.per_host})", row, uptime_s=str(AGE_S + self.seconds), age_s="0.1", gone="0",
                 state="'S'", traced="0", still_s=str(still), cpu_ns="100000000000", thread_ns="100000000000", bytes="0", wchan="'futex_wait'",
                 has_stack="1", stack=self.of_hang(ts, "103", "104", ""), **of_stack("func"), **of_stack("file"), **of_stack("line"), doing="''",
                 phase=self.of_hang(ts, "'backward'", "'loader'", ""), in_backward="0", collective=self.of_hang(ts, "'all_reduce'", "''", ""), wait="0", gc="0",
                 has_gil="0", needs_gil="0", blocked="0", answer="3", asked_age_s="0.1")
        self.put("groups", self.ranks, ts, "number", f"intDiv(number, {self.per_host})", row, pg="'0'", desc="'default_pg'", backend="'gloo'",
                 ranks=text(f"0-{self.ranks - 1}"), size=str(self.ranks), my_rank="rank", enqueued=self.of_hang(ts, "4711", "4710", ""), completed="4710",
                 p2p="0", op="'all_reduce'", dtype="'Float'", bytes="4200000", since_s=self.of_hang(ts, str(still), "0", ""))

    def second(self, ts, steps_each=10):
        if self.started is None:
            self.started = ts - AGE_S
            self.put_stacks(ts)
            self.put_steps(ts, 60)
        if self.seconds % 10 == 0:
            self.put_hosts(ts)
        self.put_ranks(ts)
        if self.seconds and self.seconds % steps_each == 0:
            self.put_steps(ts, steps_each)
        if self.hangs(ts - 3):
            self.put_states(ts)
        self.seconds += 1

    def run(self, until):
        while not until():
            began = time.time()
            self.second(began)
            time.sleep(max(0, 1 - (time.time() - began)))
