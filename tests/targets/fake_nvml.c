/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml: what libnvidia-ml.so.1 has of what we call, for machines without a GPU. It is put under that name into a folder of
 * LD_LIBRARY_PATH, and does what the file $FAKE_NVML says, read again with each call, in lines of words:
 *
 *   devices N               there are so many (2)
 *   init N                  nvmlInit returns that error
 *   name D TEXT, uuid D TEXT
 *   mig D N                 device D is divided into N slices
 *   util D N..., used D N... (MiB), total D N... (MiB), power D N... (mW), limit D N... (mW), temperature D N..., clock D N...,
 *   reasons D N..., ecc D N...   one value a second, since the file was written; the last one stays
 *   sm D N..., tensor D N..., dram D N...   the same, fractions, inf and nan, too: what GPM has between the last two samples, which
 *                           is what the script has at the time of the second one; GPM is supported by devices that have sm
 *   xid D N                 that error is reported, once to each process
 *   process D KIND PID MIB  a process has so much memory of it, - unknown; D.N: of that slice; KIND is Compute, Graphics or MPSCompute
 *   crowd D N               as many processes more, from 1000 on, of kind Compute
 *   row N                   what the driver has of a process takes so many bytes (24; of an old one 16)
 *   count N                 it reports so many processes, whatever there are
 *   error D FUNCTION N      that function (or all, *) fails so for device D (or all, *)
 *   hang D FUNCTION         it does not return; init and count have the device -
 *   log FILE                a line for each call
 *
 * FUNCTION is the name without "nvml" and "nvmlDeviceGet": Init, Count, HandleByIndex, UtilizationRates. With FAKE_NVML_OLD it has
 * the names of a driver of 2012: no _v2, no events, no reasons.
 */
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FAKE_DEVICES 64
#define FAKE_MISSING 6
#define FAKE_MIB 1048576ULL

/* A device is a pointer into this; a slice follows the devices. */
static char fake_handles[FAKE_DEVICES][16];

typedef char *fake_device;

static int fake_number(fake_device d) { return (int)((d - fake_handles[0]) / 16); }
static int fake_slice(fake_device d) { return (int)((d - fake_handles[0]) % 16) - 1; }

/* The words of the first line of the script that begins with `key` and, if there is one, `device`. The rest of it in `rest`. */
static int fake_find(const char *key, int device, char *rest, size_t cap) {
    char line[512], word[64], of[400], mine[16];
    const char *path = getenv("FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;
    int found = 0;
    snprintf(mine, sizeof mine, "%d", device);
    while (f && !found && fgets(line, sizeof line, f)) {
        int at = 0;
        if (sscanf(line, "%63s %399s %n", word, of, &at) < 1 || strcmp(word, key) != 0)
            continue;
        if (device >= 0 && strcmp(of, mine) != 0 && strcmp(of, "*") != 0)
            continue;
        snprintf(rest, cap, "%s", device >= 0 ? line + at : of);
        rest[strcspn(rest, "\n")] = '\0';
        found = 1;
    }
    if (f)
        fclose(f);
    return found;
}

static void fake_log(const char *function, int device) {
    char path[512];
    if (!fake_find("log", -1, path, sizeof path))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dprintf(fd, "%d %s %d\n", (int)getpid(), function, device);
        close(fd);
    }
}

/* What all calls do first. 0, or the error. */
static int fake_call(const char *function, int device) {
    char line[512], word[64], of[16], what[64], mine[16] = "-";
    int code, rc = 0, hang = 0;
    const char *path = getenv("FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;
    fake_log(function, device);
    if (device >= 0)
        snprintf(mine, sizeof mine, "%d", device);
    while (f && fgets(line, sizeof line, f)) {
        int n = sscanf(line, "%63s %15s %63s %d", word, of, what, &code);
        if (n < 3 || fnmatch(of, mine, 0) != 0 || fnmatch(what, function, 0) != 0)
            continue;
        if (strcmp(word, "hang") == 0)
            hang = 1;
        else if (n == 4 && strcmp(word, "error") == 0)
            rc = code;
    }
    if (f)
        fclose(f);
    while (hang)
        pause();
    return rc;
}

/* The word of its value now; "" if the script has none. */
static void fake_now(const char *key, int device, char word[64]) {
    char rest[512], *at = rest;
    struct stat st;
    const char *path = getenv("FAKE_NVML");
    struct timespec now;
    word[0] = '\0';
    if (!path || stat(path, &st) != 0 || !fake_find(key, device, rest, sizeof rest))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    for (long s = now.tv_sec - st.st_mtim.tv_sec; s >= 0; s--) {
        int n = 0;
        if (sscanf(at, "%63s%n", word, &n) != 1)
            break;
        at += n;
    }
}

/* Its value now; `missing` if the script has none. */
static unsigned long long fake_value(const char *key, int device, unsigned long long missing) {
    char word[64];
    fake_now(key, device, word);
    return word[0] ? strtoull(word, NULL, 0) : missing;
}

static int fake_copy(const char *key, int device, const char *missing, char *buf, unsigned cap) {
    char text[512];
    if (!fake_find(key, device, text, sizeof text))
        snprintf(text, sizeof text, "%s", missing);
    if (strlen(text) >= cap)
        return 7;
    memcpy(buf, text, strlen(text) + 1);
    return 0;
}

/* The list of its processes of a kind; rows in it have `size` bytes, and numbers of slices behind what matters. */
static int fake_processes(const char *kind, fake_device d, unsigned *n, unsigned char *out, size_t size) {
    char line[512], of[64], mb[64], function[64], where[64], mine[64];
    unsigned cap = *n, pid, found = 0;
    int at = snprintf(mine, sizeof mine, "%d", fake_number(d));
    if (fake_slice(d) >= 0)
        snprintf(mine + at, sizeof mine - (size_t)at, ".%d", fake_slice(d));
    const char *path = getenv("FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;
    snprintf(function, sizeof function, "%sRunningProcesses", kind);
    if (fake_find("row", -1, of, sizeof of))
        size = strtoul(of, NULL, 0);
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "process %63s %63s %u %63s", where, of, &pid, mb) != 4 || strcmp(of, kind) != 0 ||
            strcmp(where, mine) != 0)
            continue;
        if (found < cap) {
            unsigned char *row = out + found * size;
            unsigned long long used = mb[0] == '-' ? ~0ULL : strtoull(mb, NULL, 0) * FAKE_MIB;
            memset(row, 0xff, size);
            memcpy(row, &pid, sizeof pid);
            memcpy(row + 8, &used, sizeof used);
        }
        found++;
    }
    if (f)
        fclose(f);
    if (strcmp(kind, "Compute") == 0)
        found += (unsigned)fake_value("crowd", fake_number(d), 0);
    *n = fake_find("count", -1, of, sizeof of) ? (unsigned)strtoul(of, NULL, 0) : found;
    int rc = fake_call(function, fake_number(d));
    return rc ? rc : found > cap ? 7 : 0;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit(void);
EXPORT int nvmlDeviceGetCount(unsigned *n);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned i, fake_device *d);
EXPORT int nvmlDeviceGetName(fake_device d, char *buf, unsigned cap);
EXPORT int nvmlDeviceGetUUID(fake_device d, char *buf, unsigned cap);
EXPORT int nvmlDeviceGetUtilizationRates(fake_device d, unsigned out[2]);
EXPORT int nvmlDeviceGetMemoryInfo(fake_device d, unsigned long long out[3]);
EXPORT int nvmlDeviceGetPowerUsage(fake_device d, unsigned *mw);
EXPORT int nvmlDeviceGetTemperature(fake_device d, int sensor, unsigned *c);
EXPORT int nvmlDeviceGetClockInfo(fake_device d, int clock, unsigned *mhz);
EXPORT int nvmlDeviceGetComputeRunningProcesses(fake_device d, unsigned *n, void *out);

int nvmlInit(void) {
    int rc = fake_call("Init", -1);
    char text[64];
    return rc ? rc : fake_find("init", -1, text, sizeof text) ? atoi(text) : 0;
}

int nvmlDeviceGetCount(unsigned *n) {
    char text[64];
    *n = fake_find("devices", -1, text, sizeof text) ? (unsigned)atoi(text) : 2;
    return fake_call("Count", -1);
}

int nvmlDeviceGetHandleByIndex(unsigned i, fake_device *d) {
    *d = fake_handles[i];
    return fake_call("HandleByIndex", (int)i);
}

int nvmlDeviceGetName(fake_device d, char *buf, unsigned cap) {
    int rc = fake_call("Name", fake_number(d));
    return rc ? rc : fake_copy("name", fake_number(d), "Fake H100", buf, cap);
}

int nvmlDeviceGetUUID(fake_device d, char *buf, unsigned cap) {
    char text[96];
    int rc = fake_call("UUID", fake_number(d));
    if (fake_slice(d) >= 0)
        snprintf(text, sizeof text, "MIG-%08d-0000-0000-0000-%012d", fake_number(d), fake_slice(d));
    else
        snprintf(text, sizeof text, "GPU-%08d-0000-0000-0000-000000000000", fake_number(d));
    return rc ? rc : fake_copy(fake_slice(d) >= 0 ? "-" : "uuid", fake_number(d), text, buf, cap);
}

int nvmlDeviceGetUtilizationRates(fake_device d, unsigned out[2]) {
    int rc = fake_call("UtilizationRates", fake_number(d));
    out[0] = (unsigned)fake_value("util", fake_number(d), 0);
    out[1] = 0;
    return rc ? rc : fake_slice(d) >= 0 ? 3 : 0;
}

/* Older drivers count what they keep for themselves as used. */
int nvmlDeviceGetMemoryInfo(fake_device d, unsigned long long out[3]) {
    int rc = fake_call("MemoryInfo", fake_number(d));
    unsigned long long total = fake_value("total", fake_number(d), 81559) * FAKE_MIB;
    out[0] = total;
    out[2] = (fake_value("used", fake_number(d), 1024) + 500) * FAKE_MIB;
    out[1] = total - out[2];
    return rc;
}

int nvmlDeviceGetPowerUsage(fake_device d, unsigned *mw) {
    int rc = fake_call("PowerUsage", fake_number(d));
    *mw = (unsigned)fake_value("power", fake_number(d), 70000);
    return rc;
}

int nvmlDeviceGetTemperature(fake_device d, int sensor, unsigned *c) {
    int rc = fake_call("Temperature", fake_number(d));
    *c = (unsigned)fake_value("temperature", fake_number(d), 40);
    return rc ? rc : sensor ? 2 : 0;
}

int nvmlDeviceGetClockInfo(fake_device d, int clock, unsigned *mhz) {
    int rc = fake_call("ClockInfo", fake_number(d));
    *mhz = (unsigned)fake_value("clock", fake_number(d), 1980);
    return rc ? rc : clock != 1 ? 2 : 0;
}

int nvmlDeviceGetComputeRunningProcesses(fake_device d, unsigned *n, void *out) {
    return fake_processes("Compute", d, n, out, 16);
}

#ifndef FAKE_NVML_OLD

static unsigned char fake_reported[FAKE_DEVICES], fake_watched[FAKE_DEVICES];

struct fake_memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct fake_event {
    fake_device device;
    unsigned long long type, data;
    unsigned gpu, compute;
};

/* A sample has been taken of a device, with what the script had then. */
struct fake_sample {
    fake_device device;
    struct timespec at;
    char words[3][64];
};

struct fake_support {
    unsigned version, is_supported;
};

struct fake_metric {
    unsigned id;
    int rc;
    double value;
    const char *info[3];
};

/* As a driver of R525, which knows 98 metrics. */
struct fake_metrics {
    unsigned version, n;
    struct fake_sample *first, *second;
    struct fake_metric list[98];
};

EXPORT int nvmlGpmQueryDeviceSupport(fake_device d, struct fake_support *out);
EXPORT int nvmlGpmSampleAlloc(struct fake_sample **out);
EXPORT int nvmlGpmSampleFree(struct fake_sample *s);
EXPORT int nvmlGpmSampleGet(fake_device d, struct fake_sample *out);
EXPORT int nvmlGpmMetricsGet(struct fake_metrics *m);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(fake_device d, unsigned *n, void *out);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(fake_device d, unsigned *n, void *out);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(fake_device d, unsigned *n, void *out);
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, fake_device *d);
EXPORT int nvmlDeviceGetMemoryInfo_v2(fake_device d, struct fake_memory *out);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(fake_device d, unsigned *mw);
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(fake_device d, unsigned long long *out);
EXPORT int nvmlDeviceGetTotalEccErrors(fake_device d, int type, int since, unsigned long long *n);
EXPORT int nvmlDeviceGetMigMode(fake_device d, unsigned *now, unsigned *next);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(fake_device d, unsigned *n);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(fake_device d, unsigned i, fake_device *out);
EXPORT int nvmlEventSetCreate(void **set);
EXPORT int nvmlDeviceRegisterEvents(fake_device d, unsigned long long types, void *set);
EXPORT int nvmlEventSetWait_v2(void *set, struct fake_event *out, unsigned ms);

int nvmlInit_v2(void) { return nvmlInit(); }
int nvmlDeviceGetCount_v2(unsigned *n) { return nvmlDeviceGetCount(n); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, fake_device *d) { return nvmlDeviceGetHandleByIndex(i, d); }

int nvmlDeviceGetMemoryInfo_v2(fake_device d, struct fake_memory *out) {
    int rc = fake_call("MemoryInfo_v2", fake_number(d));
    unsigned long long total = fake_value("total", fake_number(d), 81559) * FAKE_MIB;
    if (out->version != (sizeof *out | 2U << 24))
        return 25;
    out->total = total;
    out->reserved = 500 * FAKE_MIB;
    out->used = fake_value("used", fake_number(d), 1024) * FAKE_MIB;
    out->free = total - out->used - out->reserved;
    return rc;
}

int nvmlDeviceGetEnforcedPowerLimit(fake_device d, unsigned *mw) {
    int rc = fake_call("EnforcedPowerLimit", fake_number(d));
    *mw = (unsigned)fake_value("limit", fake_number(d), 700000);
    return rc;
}

int nvmlDeviceGetCurrentClocksEventReasons(fake_device d, unsigned long long *out) {
    int rc = fake_call("CurrentClocksEventReasons", fake_number(d));
    *out = fake_value("reasons", fake_number(d), 0);
    return rc;
}

int nvmlDeviceGetTotalEccErrors(fake_device d, int type, int since, unsigned long long *n) {
    int rc = fake_call("TotalEccErrors", fake_number(d));
    *n = fake_value("ecc", fake_number(d), 0);
    return rc ? rc : type != 1 || since != 0 ? 2 : 0;
}

int nvmlDeviceGetMigMode(fake_device d, unsigned *now, unsigned *next) {
    int rc = fake_call("MigMode", fake_number(d));
    *now = *next = fake_value("mig", fake_number(d), 0) > 0;
    return rc;
}

int nvmlDeviceGetMaxMigDeviceCount(fake_device d, unsigned *n) {
    *n = 7;
    return fake_call("MaxMigDeviceCount", fake_number(d));
}

int nvmlDeviceGetMigDeviceHandleByIndex(fake_device d, unsigned i, fake_device *out) {
    *out = d + 1 + i;
    return i < fake_value("mig", fake_number(d), 0) ? 0 : FAKE_MISSING;
}

int nvmlEventSetCreate(void **set) {
    *set = fake_reported;
    return fake_call("EventSetCreate", -1);
}

int nvmlDeviceRegisterEvents(fake_device d, unsigned long long types, void *set) {
    fake_watched[fake_number(d)] = types == 8 && set == fake_reported;
    return fake_call("RegisterEvents", fake_number(d));
}

int nvmlEventSetWait_v2(void *set, struct fake_event *out, unsigned ms) {
    (void)set;
    (void)ms;
    for (int i = 0; i < FAKE_DEVICES; i++) {
        unsigned long long xid = fake_watched[i] && !fake_reported[i] ? fake_value("xid", i, 0) : 0;
        if (!xid)
            continue;
        fake_reported[i] = 1;
        *out = (struct fake_event){
            .device = fake_handles[i], .type = 8, .data = xid, .gpu = ~0U, .compute = ~0U};
        return 0;
    }
    return 10;
}

int nvmlDeviceGetComputeRunningProcesses_v2(fake_device d, unsigned *n, void *out) {
    return fake_processes("Compute", d, n, out, 24);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(fake_device d, unsigned *n, void *out) {
    return fake_processes("Graphics", d, n, out, 24);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v2(fake_device d, unsigned *n, void *out) {
    return fake_processes("MPSCompute", d, n, out, 24);
}

int nvmlGpmQueryDeviceSupport(fake_device d, struct fake_support *out) {
    int rc = fake_call("GpmQueryDeviceSupport", fake_number(d));
    char word[64];
    if (out->version != 1)
        return 25;
    fake_now("sm", fake_number(d), word);
    out->is_supported = word[0] != '\0';
    return rc;
}

int nvmlGpmSampleAlloc(struct fake_sample **out) {
    *out = calloc(1, sizeof **out);
    return fake_call("GpmSampleAlloc", -1);
}

int nvmlGpmSampleFree(struct fake_sample *s) {
    free(s);
    return fake_call("GpmSampleFree", -1);
}

int nvmlGpmSampleGet(fake_device d, struct fake_sample *out) {
    static const char *const keys[] = {"sm", "tensor", "dram"};
    int rc = fake_call("GpmSampleGet", fake_number(d));
    *out = (struct fake_sample){.device = rc ? NULL : d};
    clock_gettime(CLOCK_MONOTONIC, &out->at);
    for (int i = 0; i < 3; i++)
        fake_now(keys[i], fake_number(d), out->words[i]);
    return rc ? rc : fake_slice(d) >= 0 ? 3 : 0;
}

/* Two samples of one device, the older one first, and at least 100 ms between them, as it says. */
int nvmlGpmMetricsGet(struct fake_metrics *m) {
    static const unsigned ids[] = {2, 5, 10};
    if (m->version != 1)
        return 25;
    if (m->n == 0 || m->n > 98 || !m->first->device || m->first->device != m->second->device)
        return 2;
    int rc = fake_call("GpmMetricsGet", fake_number(m->first->device));
    double took = (double)(m->second->at.tv_sec - m->first->at.tv_sec) +
                  (double)(m->second->at.tv_nsec - m->first->at.tv_nsec) / 1e9;
    for (unsigned i = 0; i < m->n; i++) {
        m->list[i].rc = took >= 0.1 ? 3 : 2;
        for (int k = 0; k < 3 && took >= 0.1; k++)
            if (m->list[i].id == ids[k] && m->second->words[k][0]) {
                m->list[i].rc = 0;
                m->list[i].value = strtod(m->second->words[k], NULL);
            }
    }
    return rc;
}

#endif
