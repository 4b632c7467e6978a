/* SPDX-License-Identifier: Apache-2.0 */
/* export_tables: exports made of a target's tables: the rows of a query, or everything as a
 * recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/sql/database.h"
#include "client/export/export_formats.h"
#include "client/output.h"
#include "client/sql/result.h"
#include "store/recording/archive.h"

static struct database *export_open(struct target_address *addr, struct err *e) {
    struct database *d = database_open(e);
    if (d && database_add(d, addr, e) != 0) {
        database_close(d);
        d = NULL;
    }
    return d;
}

static int export_rows(const struct export_request *r, struct database *d, struct strbuf *out,
                       struct err *e) {
    struct sql_query q = {.timeout_s = DATABASE_TIMEOUT_S};
    const struct result_format *f = result_find_format(r->format, e);
    struct result *rows = f ? database_take(d, r->sql, &q, RESULT_BYTES_ALL, e) : NULL;
    if (!rows)
        return !f || e->code != ERR_OK ? -1 : err_set(e, ERR_USAGE, "--sql: there is no statement in it");
    result_write(rows, f, output_is_stdout(r->output) && isatty(STDOUT_FILENO), out);
    result_unref(rows);
    return 0;
}

/* Record the present rows, and after a while once more. */
static int export_record(struct database *d, const char *path, double duration_s, struct strbuf *note,
                         struct err *e) {
    struct timespec t = {.tv_sec = (time_t)duration_s,
                         .tv_nsec = (long)((duration_s - (double)(time_t)duration_s) * 1e9)};
    struct archive_writer *w = archive_create(path, e);
    if (!w)
        return -1;
    int rc = archive_append(w, database_sql(d), false, e);
    while (rc == 0 && duration_s > 0 && nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    if (rc == 0)
        rc = database_refresh(d, e) == 0 ? archive_append(w, database_sql(d), true, e) : -1;
    const char *lacks = archive_missing(w)[0] ? archive_missing(w) : archive_unread(w);
    if (note && lacks[0])
        strbuf_adds(note, lacks);
    struct err late;
    int closed = archive_finish(w, rc == 0 ? e : &late);
    return rc == 0 ? closed : rc;
}

int export_run_tables(const struct export_request *r, double duration_s, struct target_address *addr,
                      struct strbuf *out, struct err *e) {
    char dir[] = "/tmp/probing-export-XXXXXX", path[sizeof dir + 16];
    struct database *d = export_open(addr, e);
    if (!d)
        return -1;
    int rc;
    if (r->sql) {
        rc = export_rows(r, d, out, e);
    } else if (!mkdtemp(dir)) {
        rc = err_set_errno(e, ERR_FAILED, errno, "no folder for the export can be made in /tmp");
    } else {
        snprintf(path, sizeof path, "%s/export.db", dir);
        rc = export_record(d, path, duration_s, r->note, e);
        if (rc == 0 && strbuf_read_file(out, path) != 0)
            rc = err_set_errno(e, ERR_FAILED, errno, "%s cannot be read", path);
        unlink(path);
        rmdir(dir);
    }
    if (rc == 0 && r->note && database_note(d)[0])
        strbuf_addf(r->note, "%s%s", r->note->len ? "; " : "", database_note(d));
    database_close(d);
    return rc;
}
