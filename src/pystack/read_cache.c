/* SPDX-License-Identifier: Apache-2.0 */
/* read_cache: see read_cache.h. */
#include "pystack/read_cache.h"

#include <string.h>
#include <unistd.h>

#define READ_CACHE_PAGE 4096ULL
#define READ_CACHE_LINE 64ULL
#define READ_CACHE_TRIES 4 /* at most so many vanished places are left out */

static const uint8_t *read_cache_in(struct read_cache *r, size_t i, uint64_t addr, size_t len) {
    struct read_cache_piece *p = &r->pieces[i];
    if (addr < p->addr || len > p->len || addr - p->addr > p->len - len)
        return NULL;
    p->used = true;
    r->last = i;
    return r->bytes + p->at + (addr - p->addr);
}

/* Read a piece that is not cached yet. False if it cannot be read, or there is no room. */
static bool read_cache_add(struct read_cache *r, uint64_t addr, size_t len) {
    if (r->n == READ_CACHE_PIECES || len > READ_CACHE_BYTES - r->n_bytes ||
        mem_read(r->below, addr, r->bytes + r->n_bytes, len) != 0)
        return false;
    r->last = r->n++;
    r->pieces[r->last] = (struct read_cache_piece){
        .addr = addr, .len = (uint32_t)len, .at = (uint32_t)r->n_bytes, .used = true};
    r->n_bytes += len;
    return true;
}

/* The surroundings are usually the next request. */
static bool read_cache_add_around(struct read_cache *r, uint64_t addr, size_t len) {
    uint64_t from = addr & ~(READ_CACHE_LINE - 1),
             page_end = (addr & ~(READ_CACHE_PAGE - 1)) + READ_CACHE_PAGE;
    uint64_t end = from + READ_CACHE_PIECE < page_end ? from + READ_CACHE_PIECE : page_end;
    return addr + len <= end && read_cache_add(r, from, (size_t)(end - from));
}

static int read_cache_read(struct mem *m, uint64_t addr, void *buf, size_t len) {
    struct read_cache *r = m->recall;
    const uint8_t *found = NULL;
    for (size_t k = 0; !found && k < r->n; k++)
        found = read_cache_in(r, (r->last + k) % r->n, addr, len);
    if (!found && (read_cache_add_around(r, addr, len) || read_cache_add(r, addr, len)))
        found = read_cache_in(r, r->last, addr, len);
    if (!found)
        return mem_read(r->below, addr, buf, len);
    memcpy(buf, found, len);
    return 0;
}

static ssize_t read_cache_read_many(struct mem *m, const struct iovec *pieces, size_t n, void *buf,
                                    size_t len) {
    size_t done = 0;
    for (size_t i = 0; i < n && pieces[i].iov_len <= len - done; i++) {
        if (read_cache_read(m, (uint64_t)(uintptr_t)pieces[i].iov_base, (char *)buf + done,
                            pieces[i].iov_len) != 0)
            break;
        done += pieces[i].iov_len;
    }
    return (ssize_t)done;
}

void read_cache_init(struct read_cache *r, struct mem *m, struct mem *below) {
    *r = (struct read_cache){.below = below};
    *m = (struct mem){.read = read_cache_read, .read_many = read_cache_read_many, .recall = r};
}

/* Extend one of the first `n` pieces to contain `p` too, if it lies in the same page: for the
 * kernel another place costs as much as another page. */
static bool read_cache_join(struct read_cache *r, size_t n, const struct read_cache_piece *p) {
    for (size_t i = 0; i < n; i++) {
        struct read_cache_piece *q = &r->pieces[i];
        uint64_t from = p->addr < q->addr ? p->addr : q->addr;
        uint64_t end = p->addr + p->len > q->addr + q->len ? p->addr + p->len : q->addr + q->len;
        if (from / READ_CACHE_PAGE != (end - 1) / READ_CACHE_PAGE ||
            end - from - q->len > READ_CACHE_BYTES - r->n_bytes)
            continue;
        r->n_bytes += (size_t)(end - from) - q->len;
        q->addr = from;
        q->len = (uint32_t)(end - from);
        return true;
    }
    return false;
}

/* Keep the used places in their order, and lay them out again. */
static void read_cache_sort_out(struct read_cache *r, size_t without) {
    size_t n = 0, at = 0;
    r->n_bytes = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct read_cache_piece p = r->pieces[i];
        if (!p.used || i == without || read_cache_join(r, n, &p) || p.len > READ_CACHE_BYTES - r->n_bytes)
            continue;
        r->n_bytes += p.len;
        r->pieces[n++] = p;
    }
    for (size_t i = 0; i < n; i++) {
        struct read_cache_piece *p = &r->pieces[i];
        p->at = (uint32_t)at;
        at += p->len;
        r->remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)p->addr, .iov_len = p->len};
    }
    r->n = n;
}

void read_cache_begin(struct read_cache *r) {
    size_t without = READ_CACHE_PIECES, whole = 0;
    for (int i = 0; i < READ_CACHE_TRIES; i++) {
        read_cache_sort_out(r, without);
        whole = r->n ? mem_read_many(r->below, r->remote, r->n, r->bytes) : 0;
        if (whole == r->n)
            break;
        without = whole;
    }
    r->n = whole;
    r->n_bytes = whole ? r->pieces[whole - 1].at + r->pieces[whole - 1].len : 0;
    r->last = 0;
    for (size_t i = 0; i < r->n; i++)
        r->pieces[i].used = false;
}
