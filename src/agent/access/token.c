/* SPDX-License-Identifier: Apache-2.0 */
/* token: see token.h. getrandom(2): called directly, because its wrapper is newer than the
 * oldest supported C library. */
#include "agent/access/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"

#define TOKEN_NONBLOCK 1U /* GRND_NONBLOCK of linux/random.h */

int token_make(struct token *t, struct err *e) {
    uint8_t random[TOKEN_BYTES];
    t->text[0] = '\0';
    if (syscall(SYS_getrandom, random, sizeof random, TOKEN_NONBLOCK) != (long)sizeof random)
        return err_set_errno(e, ERR_FAILED, errno,
                             "no token can be made: the kernel gives no random numbers");
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(t->text + 2 * i, 3, "%02x", random[i]);
    return 0;
}

bool token_is(const struct token *t, const char *given, size_t len) {
    unsigned char differs = t->text[0] ? 0 : 1;
    differs |= len != TOKEN_LEN;
    for (size_t i = 0; i < TOKEN_LEN; i++)
        differs |= (unsigned char)((unsigned char)t->text[i] ^ (unsigned char)(i < len ? given[i] : 0));
    return differs == 0;
}

/* A file that nobody else can read. Its folder is the user's alone, so nobody else can put a
 * file in its place meanwhile. */
static int token_write_text(const char *path, const char *text, size_t n, struct err *e) {
    if (unlink(path) != 0 && errno != ENOENT)
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be replaced", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be made", path);
    bool done = fchmod(fd, 0600) == 0 && write(fd, text, n) == (ssize_t)n;
    int saved = errno;
    close(fd);
    if (done)
        return 0;
    unlink(path);
    return err_set_errno(e, ERR_FAILED, saved, "%s cannot be written", path);
}

int token_write(const char *path, const char *address, const struct token *all, const struct token *looking,
                struct err *e) {
    char text[ADDRESS_MAX + 2 * (TOKEN_LEN + 1) + 8];
    int n = snprintf(text, sizeof text, "%s\n%s\n%s\n", address, all ? all->text : "", looking->text);
    return token_write_text(path, text, (size_t)n, e);
}

int token_write_header(const char *path, const struct token *t, struct err *e) {
    char text[TOKEN_LEN + 32];
    int n = snprintf(text, sizeof text, "Authorization: Bearer %s\n", t->text);
    return token_write_text(path, text, (size_t)n, e);
}
