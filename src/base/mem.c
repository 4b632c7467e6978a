/* SPDX-License-Identifier: Apache-2.0 */
/* mem: see mem.h. process_vm_readv(2); proc(5) for /proc/PID/mem; getauxval(3) for what auxv
 * holds. */
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"

#define MEM_PAGE 4096ULL

static ssize_t mem_bytes(const struct iovec *pieces, size_t n) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += pieces[i].iov_len;
    return total <= SSIZE_MAX ? (ssize_t)total : -1;
}

/* ---- process_vm_readv ---- */

/* Bytes read, or -1 with m->error. */
static ssize_t mem_call(struct mem *m, const struct iovec *remote, size_t n, void *buf, size_t len) {
    struct iovec local = {.iov_base = buf, .iov_len = len};
    ssize_t got = process_vm_readv(m->pid, &local, 1, remote, n, 0);
    m->error = got < 0 ? errno : EFAULT;
    return got;
}

static int mem_read_handler(struct mem *m, uint64_t addr, void *buf, size_t len) {
    struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
    return mem_call(m, &remote, 1, buf, len) == (ssize_t)len ? 0 : -1;
}

/* ---- /proc/PID/mem, where that call is refused ---- */

static void mem_open_file(struct mem *m) {
    char path[32] = "/proc/self/mem";
    if (m->pid != getpid())
        snprintf(path, sizeof path, "/proc/%d/mem", (int)m->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    m->file = fd < 0 ? -1 : fd + 1;
}

static ssize_t mem_read_file(const struct mem *m, const struct iovec *pieces, size_t n, void *buf) {
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = pieces[i].iov_len;
        ssize_t got = pread(m->file - 1, (char *)buf + done, len, (off_t)(uintptr_t)pieces[i].iov_base);
        if (got > 0)
            done += (size_t)got;
        if (got < 0 || (size_t)got < len)
            break;
    }
    return (ssize_t)done;
}

static ssize_t mem_read_process_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf,
                                     size_t len) {
    if (m->file <= 0) {
        ssize_t got = mem_call(m, pieces, n, buf, len);
        if (got >= 0 || !mem_is_refused(m) || m->file < 0)
            return got;
        int refused = errno;
        mem_open_file(m);
        if (m->file < 0) {
            errno = refused; /* the better reason */
            return -1;
        }
    }
    m->error = EFAULT; /* the reason of all later failures */
    return mem_read_file(m, pieces, n, buf);
}

static int mem_read_process(struct mem *m, uint64_t addr, void *buf, size_t len) {
    struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
    return mem_read_process_many(m, &remote, 1, buf, len) == (ssize_t)len ? 0 : -1;
}

/* ---- an image that was opened ---- */

/* Nothing can be read any more, at any address: only then does the kernel report end of file. */
static ssize_t mem_image_failed(struct mem *m, ssize_t got) {
    m->error = got < 0 ? errno : ESRCH;
    errno = m->error;
    return -1;
}

static ssize_t mem_read_image_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf,
                                   size_t len) {
    size_t done = 0;
    (void)len;
    if (m->file <= 0) {
        errno = m->error;
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        size_t want = pieces[i].iov_len;
        ssize_t got = pread(m->file - 1, (char *)buf + done, want, (off_t)(uintptr_t)pieces[i].iov_base);
        if (got <= 0 && want) {
            mem_image_failed(m, got);
            return done ? (ssize_t)done : -1;
        }
        done += (size_t)got;
        if ((size_t)got < want)
            break;
    }
    m->error = EFAULT;
    return (ssize_t)done;
}

static int mem_read_image(struct mem *m, uint64_t addr, void *buf, size_t len) {
    struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
    return mem_read_image_many(m, &remote, 1, buf, len) == (ssize_t)len ? 0 : -1;
}

void mem_open_image(struct mem *m, pid_t pid) {
    char path[32];
    *m = (struct mem){.read = mem_read_image, .read_many = mem_read_image_many, .pid = pid, .file = -1};
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    m->writable = fd >= 0;
    if (fd < 0)
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        m->file = fd + 1;
    else
        m->error = errno;
}

void mem_share_image(struct mem *m, const struct mem *from) {
    *m = *from;
    m->shared = true;
}

int mem_write(struct mem *m, uint64_t addr, const void *bytes, size_t len) {
    if (m->read != mem_read_image || m->file <= 0 || !m->writable) {
        errno = m->read != mem_read_image ? EINVAL : m->file <= 0 ? m->error : EROFS;
        return -1;
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(m->file - 1, (const char *)bytes + done, len - done, (off_t)(addr + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)mem_image_failed(m, n);
        done += (size_t)n;
    }
    return 0;
}

bool mem_is_gone(const struct mem *m) {
    uint8_t byte;
    if (m->read != mem_read_image || m->file <= 0)
        return m->error == ESRCH;
    return pread(m->file - 1, &byte, 1, 0) == 0;
}

/* ---- which program ---- */

int mem_identify(pid_t pid, struct mem_identity *out) {
    struct procfs_stat st;
    *out = (struct mem_identity){.n = 0};
    if (procfs_read_stat(pid, 0, &st) != 0)
        return -1;
    out->start_ticks = st.start_ticks;
    ssize_t n = procfs_read_file(pid, 0, "auxv", (char *)out->auxv, sizeof out->auxv);
    if (n < 0)
        return -1;
    out->n = (size_t)n;
    return 0;
}

bool mem_is_same(pid_t pid, const struct mem_identity *of) {
    struct mem_identity now;
    return mem_identify(pid, &now) == 0 && now.start_ticks == of->start_ticks && now.n == of->n &&
           now.n > 0 && memcmp(now.auxv, of->auxv, now.n) == 0;
}

/* ---- a buffer ---- */

static int mem_read_buffer(struct mem *m, uint64_t addr, void *buf, size_t len) {
    if (addr < m->base || addr - m->base > m->size || len > m->size - (addr - m->base))
        return -1;
    memcpy(buf, m->bytes + (addr - m->base), len);
    return 0;
}

static ssize_t mem_read_buffer_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf,
                                    size_t len) {
    size_t done = 0;
    for (size_t i = 0; i < n && pieces[i].iov_len <= len - done; i++) {
        if (mem_read_buffer(m, (uint64_t)(uintptr_t)pieces[i].iov_base, (char *)buf + done,
                            pieces[i].iov_len) != 0)
            break;
        done += pieces[i].iov_len;
    }
    return (ssize_t)done;
}

/* ---- the seam ---- */

void mem_init_process(struct mem *m, pid_t pid) {
    *m = (struct mem){.read = mem_read_process, .read_many = mem_read_process_many, .pid = pid};
}

void mem_init_handler(struct mem *m, const struct mem *from) {
    *m = *from;
    if (from->read != mem_read_process)
        return;
    m->read = mem_read_handler;
    m->read_many = mem_call;
    m->file = 0;
}

void mem_init_buffer(struct mem *m, const void *bytes, size_t size, uint64_t base) {
    *m = (struct mem){.read = mem_read_buffer,
                      .read_many = mem_read_buffer_many,
                      .bytes = bytes,
                      .size = size,
                      .base = base};
}

void mem_fini(struct mem *m) {
    if ((mem_is_file(m) || m->read == mem_read_image) && m->file > 0 && !m->shared)
        close(m->file - 1);
    *m = (struct mem){.pid = 0};
}

bool mem_is_file(const struct mem *m) { return m->read == mem_read_process && m->file > 0; }

bool mem_is_refused(const struct mem *m) {
    return m->error == EPERM || m->error == ENOSYS || m->error == EACCES;
}

size_t mem_read_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf) {
    ssize_t len = mem_bytes(pieces, n), got = len > 0 ? m->read_many(m, pieces, n, buf, (size_t)len) : -1;
    size_t whole = 0, end = 0;
    for (; whole < n && got > 0; whole++) {
        end += pieces[whole].iov_len;
        if (end > (size_t)got)
            break;
    }
    m->reads += got > 0;
    return whole;
}

int mem_read(struct mem *m, uint64_t addr, void *buf, size_t len) {
    if (len == 0)
        return 0;
    if (addr + len < addr || m->read(m, addr, buf, len) != 0)
        return -1;
    m->reads++;
    return 0;
}

int mem_read_u64(struct mem *m, uint64_t addr, uint64_t *out) {
    uint64_t v;
    if (mem_read(m, addr, &v, sizeof v) != 0)
        return -1;
    *out = v;
    return 0;
}

int mem_read_u32(struct mem *m, uint64_t addr, uint32_t *out) {
    uint32_t v;
    if (mem_read(m, addr, &v, sizeof v) != 0)
        return -1;
    *out = v;
    return 0;
}

ssize_t mem_read_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap) {
    size_t n = 0;
    while (n + 1 < cap) {
        size_t to_page_end = (size_t)(MEM_PAGE - (addr + n) % MEM_PAGE);
        size_t want = cap - 1 - n < to_page_end ? cap - 1 - n : to_page_end;
        if (mem_read(m, addr + n, buf + n, want) != 0)
            return -1;
        char *nul = memchr(buf + n, '\0', want);
        if (nul)
            return nul - buf;
        n += want;
    }
    buf[n] = '\0';
    return (ssize_t)n;
}
