/* SPDX-License-Identifier: Apache-2.0 */
/* reread: see reread.h. */
#include "base/reread.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ssize_t reread_file(struct reread *f, const char *path, bool keep, char *buf, size_t cap) {
    if (!f->number)
        f->number = open(path, O_RDONLY | O_CLOEXEC) + 1;
    if (!f->number)
        return -1;
    ssize_t n;
    do
        n = pread(f->number - 1, buf, cap - 1, 0);
    while (n < 0 && errno == EINTR);
    int saved = errno;
    if (!keep || n < 0)
        reread_close(f);
    errno = saved;
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

void reread_close(struct reread *f) {
    if (f->number)
        close(f->number - 1);
    f->number = 0;
}
