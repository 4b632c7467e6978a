/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_poller: see gpu_poller.h. */
#include "client/gpu/gpu_poller.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/guard.h"

#define POLLER_ROWS 32768 /* kept: an hour of eight devices */
#define POLLER_MARGIN 256 /* of those, the oldest, which may be replaced while they are read */
#define POLLER_RARE 10    /* one reading in so many reads what is expensive, too */
#define POLLER_CHILD_MS (600 * 1000U)
#define POLLER_CHILD_NS ((POLLER_CHILD_MS - 10 * 1000) * CLOCK_NS_PER_MS)
#define POLLER_PATIENCE_NS (3 * CLOCK_NS_PER_S)
#define POLLER_FIRST_NS (4 * CLOCK_NS_PER_S)  /* for the first reading */
#define POLLER_RETRY_NS (30 * CLOCK_NS_PER_S) /* before a device that was lost or silent is tried again */
#define POLLER_NONE_NS (60 * CLOCK_NS_PER_S)  /* before a driver is searched for again */
#define POLLER_CRASHED_NS (5 * CLOCK_NS_PER_S)
#define POLLER_NICE 10

static const struct gpu_source *const poller_sources[] = {&gpu_source_nvml, &gpu_source_amd};
#define POLLER_SOURCES (sizeof poller_sources / sizeof poller_sources[0])

struct poller_row {
    uint32_t device; /* its place */
    struct gpu_values values;
};

/* What the child writes and this process reads; it believes none of it. */
struct poller_board {
    atomic_uint_fast64_t busy_since_ns; /* 0: it is in no call */
    atomic_int busy_source, busy_device;
    atomic_uint n_devices;
    atomic_uint_fast64_t readings; /* of all devices, that are complete */
    atomic_uint_fast64_t n_rows;   /* ever written */
    char why[POLLER_SOURCES][GPU_WHY];
    struct gpu_facts facts[GPU_MAX];
    int sources[GPU_MAX]; /* of each device */
    struct poller_row rows[POLLER_ROWS];
};

/* A device that has blocked a child. */
struct poller_silent {
    uint64_t since_ns; /* of its last answer, about; 0: it answers */
    uint64_t tried_ns; /* when it blocked the last child */
};

static struct {
    pthread_mutex_t lock;
    atomic_int owner;           /* this process; of a fork's child all else is its parent's */
    struct poller_board *board; /* NULL: it was not begun */
    struct guard guard;
    uint64_t started_ns, next_ns; /* when the child began, and when another one may */
    uint64_t first_ns;            /* when the first one began */
    struct gpu_skipped skipped[POLLER_SOURCES];
    struct poller_silent silent[POLLER_SOURCES][GPU_MAX]; /* by the device's number */
    bool is_driver_silent[POLLER_SOURCES];
    char note[GPU_WHY]; /* the child cannot be started */
} poller = {.lock = PTHREAD_MUTEX_INITIALIZER, .guard = {.fd = -1}};

void gpu_values_clear(struct gpu_values *v) {
    *v = (struct gpu_values){.timestamp = NAN,
                             .util_pct = NAN,
                             .sm_active_pct = NAN,
                             .tensor_active_pct = NAN,
                             .dram_active_pct = NAN,
                             .mem_used_mb = NAN,
                             .mem_total_mb = NAN,
                             .power_w = NAN,
                             .power_limit_w = NAN,
                             .temperature_c = NAN,
                             .sm_clock_mhz = NAN,
                             .throttle = GPU_NO_NUMBER,
                             .ecc = GPU_NO_NUMBER,
                             .xid = GPU_NO_NUMBER,
                             .silent_s = NAN};
}

/* ---- the child ---- */

static void poller_enter(void *arg, int32_t device) {
    struct poller_board *b = poller.board;
    atomic_store(&b->busy_source, *(const int *)arg);
    atomic_store(&b->busy_device, device);
    atomic_store(&b->busy_since_ns, clock_mono_ns());
}

static void poller_leave(void) { atomic_store(&poller.board->busy_since_ns, 0); }

static void poller_put(size_t device, const struct gpu_values *v) {
    struct poller_board *b = poller.board;
    uint64_t n = atomic_load(&b->n_rows);
    b->rows[n % POLLER_ROWS] = (struct poller_row){.device = (uint32_t)device, .values = *v};
    atomic_store_explicit(&b->n_rows, n + 1, memory_order_release);
}

/* The devices of all sources. Returns how many. */
static size_t poller_open(struct gpu_facts *list, int *sources) {
    struct poller_board *b = poller.board;
    size_t n = 0;
    for (int i = 0; i < (int)POLLER_SOURCES; i++) {
        char why[GPU_WHY] = "";
        if (poller.is_driver_silent[i])
            continue;
        int found = poller_sources[i]->open(&poller.skipped[i], poller_enter, &i, list + n, GPU_MAX - n, why);
        poller_leave();
        memcpy(b->why[i], why, sizeof why);
        for (int k = 0; k < found; k++)
            sources[n++] = i;
    }
    return n;
}

/* One that is silent keeps the facts that are known of it. Readings of other devices than these, as before
 * one was divided, are forgotten. */
static void poller_publish(const struct gpu_facts *list, const int *sources, size_t n) {
    struct poller_board *b = poller.board;
    for (size_t i = 0; i < n; i++)
        if (b->facts[i].uuid[0] && list[i].uuid[0] && strcmp(b->facts[i].uuid, list[i].uuid) != 0)
            atomic_store(&b->n_rows, 0);
    for (size_t i = 0; i < n; i++)
        if (!poller.skipped[sources[i]].is_skipped[list[i].device] || !b->facts[i].uuid[0])
            b->facts[i] = list[i];
    memcpy(b->sources, sources, n * sizeof *sources);
    atomic_store(&b->n_devices, (unsigned)n);
}

/* The reading of a device that is not asked. */
static void poller_put_silent(size_t place, uint64_t since_ns) {
    struct gpu_values v;
    gpu_values_clear(&v);
    v.timestamp = clock_epoch_s();
    v.state = GPU_SILENT;
    v.silent_s = (double)(clock_mono_ns() - since_ns) / (double)CLOCK_NS_PER_S;
    poller_put(place, &v);
}

static void poller_read_all(const struct gpu_facts *list, const int *sources, size_t n, bool rare) {
    size_t first = 0; /* of the source */
    for (size_t i = 0; i < n; i++) {
        struct gpu_values v;
        int source = sources[i];
        first = i > 0 && sources[i - 1] == source ? first : i;
        if (poller.skipped[source].is_skipped[list[i].device]) {
            poller_put_silent(i, poller.silent[source][list[i].device].since_ns);
            continue;
        }
        gpu_values_clear(&v);
        v.timestamp = clock_epoch_s();
        poller_enter(&source, list[i].device);
        poller_sources[source]->read(i - first, rare, &v);
        poller_leave();
        poller_put(i, &v);
    }
    atomic_fetch_add(&poller.board->readings, 1);
}

/* Work until this child is killed, which happens when its parent ends. Whoever is stuck in the kernel can
 * die, but does nothing again: so nobody writes beside its successor. */
static void poller_work(void *arg, int fd) {
    struct gpu_facts list[GPU_MAX];
    int sources[GPU_MAX];
    (void)arg;
    setpriority(PRIO_PROCESS, 0, POLLER_NICE);
    size_t n = poller_open(list, sources);
    poller_publish(list, sources, n);
    for (unsigned at = 0; n > 0; at++) {
        uint64_t began = clock_mono_ns();
        poller_read_all(list, sources, n, at % POLLER_RARE == 0);
        uint64_t took = clock_mono_ns() - began;
        struct pollfd end = {.fd = fd, .events = POLLIN};
        int left_ms = took < CLOCK_NS_PER_S ? (int)((CLOCK_NS_PER_S - took) / CLOCK_NS_PER_MS) : 1;
        if (poll(&end, 1, left_ms) > 0)
            return;
    }
    atomic_fetch_add(&poller.board->readings, 1); /* that there is nothing is known now */
}

/* ---- this process, with the lock ---- */

static bool poller_begin(void) {
    if (poller.board)
        return true;
    void *shared =
        mmap(NULL, sizeof *poller.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        snprintf(poller.note, sizeof poller.note, "no memory for their values");
        return false;
    }
    poller.board = shared;
    return true;
}

static bool poller_is_gone(void) {
    char byte;
    struct pollfd p = {.fd = poller.guard.fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0 && read(poller.guard.fd, &byte, 1) <= 0;
}

static void poller_start(uint64_t now) {
    atomic_store(&poller.board->busy_since_ns, 0);
    if (guard_start(&poller.guard, poller_work, NULL, 0, POLLER_CHILD_MS) != 0) {
        snprintf(poller.note, sizeof poller.note, "the process that reads them cannot be started: %s",
                 strerror(errno));
        poller.next_ns = now + POLLER_NONE_NS;
        return;
    }
    poller.note[0] = '\0';
    poller.started_ns = now;
    poller.first_ns = poller.first_ns ? poller.first_ns : now;
}

/* End the child, which may be stuck: as long as it is, nothing that was silent is tried again. */
static void poller_stop(void) { guard_stop(&poller.guard, getpid()); }

/* The child does not come back from a call: continue without that device. */
static void poller_give_up(uint64_t now, uint64_t since_ns) {
    int source = atomic_load(&poller.board->busy_source), device = atomic_load(&poller.board->busy_device);
    poller_stop();
    poller.next_ns = now;
    if (source < 0 || source >= (int)POLLER_SOURCES)
        return;
    if (device < 0 || device >= GPU_MAX) {
        poller.is_driver_silent[source] = true;
        device = 0;
    } else
        poller.skipped[source].is_skipped[device] = true;
    struct poller_silent *s = &poller.silent[source][device];
    s->since_ns = s->since_ns ? s->since_ns : since_ns;
    s->tried_ns = now;
}

/* Try again what was silent, once the driver has let go of all children. */
static bool poller_forgive(uint64_t now) {
    bool any = false;
    if (guard_is_blocked(getpid()))
        return false;
    for (size_t s = 0; s < POLLER_SOURCES; s++)
        for (size_t i = 0; i < GPU_MAX; i++) {
            bool *is_off = i == 0 && poller.is_driver_silent[s] ? &poller.is_driver_silent[s]
                                                                : &poller.skipped[s].is_skipped[i];
            if (!*is_off || now - poller.silent[s][i].tried_ns < POLLER_RETRY_NS)
                continue;
            *is_off = false;
            any = true;
        }
    return any;
}

static bool poller_any_lost(void);

static void poller_check(void) {
    uint64_t now = clock_mono_ns();
    if (!poller_begin())
        return;
    if (poller.guard.child > 0) {
        uint64_t since = atomic_load(&poller.board->busy_since_ns), age = now - poller.started_ns;
        if (since && now > since && now - since > POLLER_PATIENCE_NS)
            poller_give_up(now, since);
        else if (poller_is_gone()) {
            bool nothing = atomic_load(&poller.board->n_devices) == 0;
            poller_stop(); /* the thread that began it has ended, or it has crashed */
            poller.next_ns = nothing ? now + POLLER_NONE_NS : poller.started_ns + POLLER_CRASHED_NS;
        } else if (age > POLLER_CHILD_NS ||
                   (age > POLLER_RETRY_NS && (poller_any_lost() || poller_forgive(now)))) {
            poller_stop(); /* its successor finds the devices again */
            poller.next_ns = now;
        }
    } else if (poller_forgive(now))
        poller.next_ns = now; /* nothing was left to be read */
    if (poller.guard.child <= 0 && now >= poller.next_ns)
        poller_start(now);
}

/* ---- what is known ---- */

/* Copy the row number `at`, counted from the first ever written. False: its place has another one by now,
 * or it is not valid. */
static bool poller_get(uint64_t at, struct poller_row *out) {
    const struct poller_board *b = poller.board;
    *out = b->rows[at % POLLER_ROWS];
    atomic_thread_fence(memory_order_acquire);
    uint64_t n = atomic_load(&b->n_rows);
    return n - at < POLLER_ROWS && out->device < GPU_MAX && isfinite(out->values.timestamp) &&
           out->values.state >= GPU_OK && out->values.state <= GPU_NO_ACCESS;
}

static uint64_t poller_oldest(uint64_t n) {
    return n > POLLER_ROWS - POLLER_MARGIN ? n - (POLLER_ROWS - POLLER_MARGIN) : 0;
}

/* How many devices; their newest answers in `newest`, which has room for GPU_MAX. */
static size_t poller_newest(struct gpu_values *newest) {
    const struct poller_board *b = poller.board;
    size_t n = atomic_load(&b->n_devices), left;
    uint64_t rows = atomic_load_explicit(&b->n_rows, memory_order_acquire);
    bool seen[GPU_MAX] = {false};
    n = n < GPU_MAX ? n : GPU_MAX;
    left = n;
    for (size_t i = 0; i < n; i++)
        gpu_values_clear(&newest[i]);
    for (uint64_t at = rows; at > poller_oldest(rows) && left > 0 && rows - at < (uint64_t)16 * GPU_MAX;
         at--) {
        struct poller_row row;
        if (!poller_get(at - 1, &row) || row.device >= n || seen[row.device] ||
            row.values.state == GPU_SILENT)
            continue;
        newest[row.device] = row.values;
        seen[row.device] = true;
        left--;
    }
    return n;
}

static bool poller_any_lost(void) {
    struct gpu_values newest[GPU_MAX];
    size_t n = poller_newest(newest);
    for (size_t i = 0; i < n; i++)
        if (newest[i].state == GPU_LOST || newest[i].state == GPU_NEEDS_RESET)
            return true;
    return false;
}

/* For how long a device has not answered; 0: it does. One that is tried again has answered with its next
 * reading. */
static double poller_silence(size_t place, const struct gpu_facts *f, const struct gpu_values *newest) {
    int source = poller.board->sources[place];
    uint64_t now = clock_mono_ns();
    if (source < 0 || source >= (int)POLLER_SOURCES || f->device < 0 || f->device >= GPU_MAX)
        return 0;
    bool is_all = poller.is_driver_silent[source];
    struct poller_silent *s = &poller.silent[source][is_all ? 0 : f->device];
    double age_s = clock_epoch_s() - newest->timestamp;
    if (s->since_ns && !is_all && !poller.skipped[source].is_skipped[f->device] &&
        age_s < (double)(now - s->tried_ns) / (double)CLOCK_NS_PER_S - 1)
        s->since_ns = 0;
    return s->since_ns && now > s->since_ns ? (double)(now - s->since_ns) / (double)CLOCK_NS_PER_S : 0;
}

static void poller_copy_text(char *to, const char *from, size_t cap) {
    char raw[256];
    memcpy(raw, from, cap);
    raw[cap - 1] = '\0';
    text_sanitize(to, cap, raw);
}

static void poller_describe(size_t i, struct gpu_device *d) {
    struct gpu_facts f = poller.board->facts[i];
    poller_copy_text(d->facts.vendor, f.vendor, sizeof f.vendor);
    poller_copy_text(d->facts.uuid, f.uuid, sizeof f.uuid);
    poller_copy_text(d->facts.name, f.name, sizeof f.name);
    d->facts.device = f.device;
    d->facts.slice = f.slice;
    d->facts.is_divided = f.is_divided;
    d->silent_s = poller_silence(i, &f, &d->newest);
    if (d->silent_s > 0) {
        d->newest.state = GPU_SILENT;
        d->newest.silent_s = d->silent_s;
    }
}

/* ---- for all ---- */

/* A relay is a fork of its client, and begins with nothing. */
static void poller_lock(void) {
    int owner = atomic_load(&poller.owner);
    if (owner != 0 && owner != getpid()) {
        if (poller.board)
            munmap(poller.board, sizeof *poller.board);
        memset(&poller, 0, sizeof poller);
        pthread_mutex_init(&poller.lock, NULL);
        poller.guard.fd = -1;
    }
    atomic_store(&poller.owner, getpid());
    pthread_mutex_lock(&poller.lock);
}

static void poller_unlock(void) { pthread_mutex_unlock(&poller.lock); }

void gpu_poller_keep(void) {
    poller_lock();
    poller_check();
    poller_unlock();
}

/* With the first reading everything is known, or with the reason why there is none. */
static bool poller_is_known(void) {
    poller_lock();
    poller_check();
    bool is_known = !poller.board || poller.note[0] || atomic_load(&poller.board->readings) > 0 ||
                    clock_mono_ns() - poller.first_ns > POLLER_FIRST_NS;
    poller_unlock();
    return is_known;
}

void gpu_poller_wait(bool (*stop)(void *arg), void *arg) {
    while (!poller_is_known() && !stop(arg))
        nanosleep(&(struct timespec){.tv_nsec = 5 * (long)CLOCK_NS_PER_MS}, NULL);
}

size_t gpu_poller_devices(struct gpu_device *list, size_t cap) {
    struct gpu_values newest[GPU_MAX];
    size_t n = 0;
    poller_lock();
    if (poller.board)
        n = poller_newest(newest);
    n = n < cap ? n : cap;
    for (size_t i = 0; i < n; i++) {
        list[i].newest = newest[i];
        poller_describe(i, &list[i]);
    }
    poller_unlock();
    return n;
}

void gpu_poller_why(char *buf, size_t cap) {
    char text[POLLER_SOURCES][GPU_WHY];
    buf[0] = '\0';
    poller_lock();
    if (poller.note[0])
        snprintf(buf, cap, "%s", poller.note);
    else if (poller.board && atomic_load(&poller.board->n_devices) == 0)
        for (size_t i = 0; i < POLLER_SOURCES; i++) {
            size_t at = strlen(buf);
            poller_copy_text(text[i], poller.board->why[i], GPU_WHY);
            if (poller.is_driver_silent[i])
                snprintf(text[i], GPU_WHY, "the %s driver has not answered for %.0f s",
                         poller_sources[i]->vendor,
                         (double)(clock_mono_ns() - poller.silent[i][0].since_ns) / (double)CLOCK_NS_PER_S);
            if (text[i][0])
                snprintf(buf + at, cap - at, "%s%s", at ? "; " : "", text[i]);
        }
    poller_unlock();
}

void gpu_poller_each(const bool *wanted, int (*put)(size_t device, const struct gpu_values *v, void *arg),
                     void *arg) {
    poller_lock();
    uint64_t n = poller.board ? atomic_load_explicit(&poller.board->n_rows, memory_order_acquire) : 0;
    for (uint64_t at = poller_oldest(n); at < n; at++) {
        struct poller_row row;
        if (poller_get(at, &row) && wanted[row.device] && put(row.device, &row.values, arg) != 0)
            break;
    }
    poller_unlock();
}

void gpu_poller_end(void) {
    poller_lock();
    poller_stop();
    if (poller.board)
        munmap(poller.board, sizeof *poller.board);
    poller.board = NULL;
    poller.next_ns = poller.first_ns = 0;
    poller.note[0] = '\0';
    memset(poller.skipped, 0, sizeof poller.skipped);
    memset(poller.silent, 0, sizeof poller.silent);
    memset(poller.is_driver_silent, 0, sizeof poller.is_driver_silent);
    poller_unlock();
}
