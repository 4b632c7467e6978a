/* SPDX-License-Identifier: Apache-2.0 */
/* relay_marks: see relay_marks.h. */
#include "relay/relay_marks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "client/history.h"
#include "client/output.h"

#define RELAY_MARKS_FIRST "probing relay marks 1"
#define RELAY_MARKS_BYTES ((size_t)4 << 20) /* of a file */

int relay_marks_where(const struct engine_address *a, const char *suffix, char *buf, struct err *e) {
    char host[128] = "", name[192];
    struct strbuf url;
    strbuf_init(&url, 0);
    engine_address_put(a, &url);
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        snprintf(host, sizeof host, "localhost");
    for (char *p = host; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.' && *p != '-')
            *p = '_';
    snprintf(name, sizeof name, "relay/%s-%016" PRIx64 "%s", host,
             hash_fnv_text(HASH_FNV_START, strbuf_str(&url)), suffix);
    strbuf_fini(&url);
    history_path(name, buf, RELAY_MARKS_PATH);
    return buf[0] ? 0
                  : err_set(e, ERR_FAILED,
                            "there is no folder for the state of a relay: set HOME or XDG_STATE_HOME");
}

int relay_marks_lock(const struct engine_address *a, struct err *e) {
    char path[RELAY_MARKS_PATH];
    if (relay_marks_where(a, ".lock", path, e) != 0)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    /* Unlike that of flock(2) it is not inherited: a child that reads ranks may live a moment longer than a relay that
     * was killed, and the next one need not wait for it. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) == 0)
        return fd;
    int why = errno;
    close(fd);
    if (why == EACCES || why == EAGAIN)
        return err_set(
            e, ERR_FAILED,
            "another relay of this user already writes to that server from this host (%s is locked)", path);
    return err_set_errno(e, ERR_FAILED, why, "cannot lock %s", path);
}

struct relay_mark *relay_marks_add(struct relay_marks *m) {
    if (grow_array(&m->list, sizeof *m->list, m->n + 1, &m->cap) != 0)
        return NULL;
    m->list[m->n] = (struct relay_mark){.pid = 0};
    return &m->list[m->n++];
}

void relay_marks_fini(struct relay_marks *m) {
    free(m->list);
    *m = (struct relay_marks){.n = 0};
}

/* ---- the file ---- */

/* The name of a job is written as hexadecimal digits: it may be anything. */
static int relay_marks_get_job(const char *hex, char *job, size_t cap) {
    size_t n = strlen(hex) / 2;
    if (strlen(hex) % 2 || n == 0 || n >= cap)
        return -1;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1 || byte == 0)
            return -1;
        job[i] = (char)byte;
    }
    job[n] = '\0';
    return engine_address_name_ok(job, cap) ? 0 : -1;
}

int relay_marks_parse(struct relay_marks *m, const char *text) {
    size_t first = strlen(RELAY_MARKS_FIRST);
    if (strncmp(text, RELAY_MARKS_FIRST, first) != 0 || text[first] != '\n')
        return 0;
    for (const char *at = text; (at = strchr(at, '\n')) && *++at;) {
        struct relay_mark mark = {.pid = 0}, *to;
        if (sscanf(at, "lost %" SCNu64, &m->lost) == 1)
            continue;
        char hex[2 * ENGINE_ADDRESS_JOB];
        if (sscanf(at, "%" SCNd64 " %" SCNu64 " %" SCNd32 " %63s %" SCNu64 " %" SCNu64 " %511s", &mark.pid,
                   &mark.start_ticks, &mark.rank, mark.table, &mark.created_us, &mark.next, hex) != 7 ||
            mark.pid <= 0 || mark.pid > INT32_MAX || relay_marks_get_job(hex, mark.job, sizeof mark.job) != 0)
            continue;
        if (!(to = relay_marks_add(m)))
            return -1;
        *to = mark;
    }
    return 0;
}

int relay_marks_read(struct relay_marks *m, const char *path, struct err *e) {
    struct strbuf text;
    strbuf_init(&text, RELAY_MARKS_BYTES);
    int rc = 0;
    if (strbuf_read_file(&text, path) != 0 && errno != ENOENT)
        rc = err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    else if (relay_marks_parse(m, strbuf_str(&text)) != 0)
        rc = err_set(e, ERR_FAILED, "out of memory for the marks of the relay");
    strbuf_fini(&text);
    return rc;
}

int relay_marks_write(const struct relay_marks *m, const char *path, struct err *e) {
    struct strbuf text;
    strbuf_init(&text, 0);
    strbuf_addf(&text, RELAY_MARKS_FIRST "\nlost %" PRIu64 "\n", m->lost);
    for (size_t i = 0; i < m->n; i++) {
        const struct relay_mark *k = &m->list[i];
        strbuf_addf(&text, "%" PRId64 " %" PRIu64 " %" PRId32 " %s %" PRIu64 " %" PRIu64 " ", k->pid,
                    k->start_ticks, k->rank, k->table, k->created_us, k->next);
        for (const char *p = k->job; *p; p++)
            strbuf_addf(&text, "%02x", (unsigned)(unsigned char)*p);
        strbuf_addc(&text, '\n');
    }
    int rc = output_write(path, &text, e);
    strbuf_fini(&text);
    return rc;
}
