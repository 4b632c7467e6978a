/* SPDX-License-Identifier: Apache-2.0 */
/* mem: see mem.h. */
#include "base/mem.h"

#include <string.h>
#include <sys/uio.h>

#define MEM_PAGE 4096ULL

static int mem_read_process(struct mem *m, uint64_t addr, void *buf, size_t len) {
    struct iovec local = {.iov_base = buf, .iov_len = len};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
    ssize_t n = process_vm_readv(m->pid, &local, 1, &remote, 1, 0);
    return n >= 0 && (size_t)n == len ? 0 : -1;
}

static int mem_read_buffer(struct mem *m, uint64_t addr, void *buf, size_t len) {
    if (addr < m->base || addr - m->base > m->size || len > m->size - (addr - m->base))
        return -1;
    memcpy(buf, m->bytes + (addr - m->base), len);
    return 0;
}

void mem_init_process(struct mem *m, pid_t pid) { *m = (struct mem){.read = mem_read_process, .pid = pid}; }

void mem_init_buffer(struct mem *m, const void *bytes, size_t size, uint64_t base) {
    *m = (struct mem){.read = mem_read_buffer, .bytes = bytes, .size = size, .base = base};
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
