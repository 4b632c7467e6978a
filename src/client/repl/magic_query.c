/* SPDX-License-Identifier: Apache-2.0 */
/* magic_query: see magic_query.h. */
#include "client/repl/magic_query.h"

#include "base/model_text.h"
#include "client/session/call.h"
#include "client/sql/result.h"
#include "client/session/status_text.h"

#define MAGIC_QUERY_S 60
#define MAGIC_QUERY_INTERVAL_MS 100 /* two snapshots show which threads are on the CPU */

bool magic_is_query(const struct magic *m) {
    return m->kind == MAGIC_QUERY || m->kind == MAGIC_STACKS || m->kind == MAGIC_STATUS;
}

static int magic_query(const char *sql, const struct magic_way *way, struct strbuf *out, struct err *e) {
    const struct sql_query q = {.max_rows = MAGIC_ROWS, .timeout_s = MAGIC_QUERY_S, .whole = sql};
    struct result *rows = database_take(way->database, sql, &q, RESULT_BYTES, e);
    if (!rows)
        return e->code == ERR_OK ? err_set(e, ERR_FAILED, "there is no statement in it") : -1;
    if (rows->n_columns > 0)
        result_put_fitted(rows, way->cols, out);
    result_unref(rows);
    return 0;
}

static int magic_put_stacks(struct call *c, struct strbuf *out, struct err *e) {
    struct model_snapshot snapshot;
    int rc = call_snapshot_measured(c, MAGIC_QUERY_INTERVAL_MS, &snapshot, e);
    if (rc == 0)
        model_text_put_backtrace(out, call_get_target(c), &snapshot, false);
    model_snapshot_fini(&snapshot);
    return rc;
}

static int magic_put_status(struct call *c, struct strbuf *out, struct err *e) {
    struct model_status status;
    int rc = call_status(c, &status, e);
    if (rc == 0)
        status_text_put(out, call_get_target(c), &status);
    model_status_fini(&status);
    return rc;
}

int magic_ask(const struct magic *m, const struct magic_way *way, struct strbuf *out, struct err *e) {
    if (m->kind == MAGIC_QUERY)
        return magic_query(strbuf_str(&m->text), way, out, e);
    struct call *c = call_open_stoppable(way->addr, way->stop, way->stop_arg, e);
    if (!c)
        return -1;
    int rc = m->kind == MAGIC_STACKS ? magic_put_stacks(c, out, e) : magic_put_status(c, out, e);
    call_close(c);
    return rc;
}
