/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml: GPUs of NVIDIA, by the driver's library libnvidia-ml.so.1, as the loader of this program finds it.
 *
 * Prototypes, structs and numbers are those of nvml.h (CUDA 11.8 and 13), of GPM those of NVIDIA's own
 * bindings, too (nvidia-ml-py 11.525, 12.575 and 13.580); nothing of them is needed to build. A function is
 * a row with the names that it has had, the newest first. Which one a driver has is seen when it is loaded:
 * without any the value is unknown. Of the calls that block others, lists of processes are made only for
 * who asks for them, and PCIe throughput never.
 */
#include "client/gpu/gpu_source.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_MIB (1024.0 * 1024.0)
#define NVML_MIG_MAX 8 /* slices of a device */

/* nvmlReturn_t, as far as something follows from it. */
enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
};

typedef struct nvml_device_opaque *nvml_device;
typedef struct nvml_set_opaque *nvml_set;
typedef struct nvml_sample_opaque *nvml_sample;

struct nvml_utilization {
    unsigned gpu, memory;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

/* `version` holds the struct's size and number. */
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

/* nvmlGpmSupport_t. */
struct nvml_gpm_support {
    unsigned version, is_supported;
};

/* nvmlGpmMetric_t. */
struct nvml_gpm_metric {
    unsigned id;
    int rc; /* of this one; else its value is not valid */
    double value;
    const char *short_name, *long_name, *unit;
};

/* nvmlGpmMetricsGet_t. Its array has grown, from 98 metrics (R525) to 210 (R575) and 333, and its version
 * is 1 in all of them, without a size as in nvml_memory_v2: a driver can only go by `n`. It has the
 * largest size that is known, should one clear more than that. */
struct nvml_gpm_metrics {
    unsigned version, n;
    nvml_sample before, now;
    struct nvml_gpm_metric list[333];
};

#define NVML_GPM_VERSION 1
#define NVML_GPM_SM_UTIL 2
#define NVML_GPM_ANY_TENSOR_UTIL 5
#define NVML_GPM_DRAM_BW_UTIL 10
/* Counters of a sample are not read at one instant: a share may be a little above 100 %. */
#define NVML_GPM_MOST_PCT 105

/* How nvmlProcessInfo_t begins. Its size is 16 bytes at first and 24 in _v2; but drivers have had another
 * than their function's name promises (go-nvml #21 and #75, nvitop #89 and #226), of up to 32. */
struct nvml_process {
    unsigned pid;
    unsigned long long used; /* bytes; NVML_UNKNOWN_BYTES: unknown */
};

#define NVML_PROCESSES 256      /* of a device and kind, that are listed */
#define NVML_PROCESS_LONGEST 64 /* for each: more than any size that is known */
#define NVML_PID_MOST 4194304   /* PID_MAX_LIMIT of Linux */
#define NVML_USED_MOST (1ULL << 50)
#define NVML_UNTOUCHED 0xa5
#define NVML_UNKNOWN_BYTES (~0ULL)

#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2U << 24)
#define NVML_SENSOR_GPU 0
#define NVML_CLOCK_SM 1
#define NVML_ERROR_UNCORRECTED 1
#define NVML_SINCE_LOADED 0
#define NVML_EVENT_XID 0x8ULL

/* nvmlClocksEventReasons. */
#define NVML_REASON_APPLICATIONS 0x2ULL
#define NVML_REASON_SW_POWER 0x4ULL
#define NVML_REASON_HW_SLOWDOWN 0x8ULL
#define NVML_REASON_SYNC_BOOST 0x10ULL
#define NVML_REASON_SW_HEAT 0x20ULL
#define NVML_REASON_HW_HEAT 0x40ULL
#define NVML_REASON_POWER_BRAKE 0x80ULL

/* The functions, each with its names. */
#define NVML_FUNCTIONS(X)                                                                                    \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                               \
    X(count, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                                    \
    X(handle, (unsigned, nvml_device *), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")      \
    X(name, (nvml_device, char *, unsigned), "nvmlDeviceGetName", NULL)                                      \
    X(uuid, (nvml_device, char *, unsigned), "nvmlDeviceGetUUID", NULL)                                      \
    X(utilization, (nvml_device, struct nvml_utilization *), "nvmlDeviceGetUtilizationRates", NULL)          \
    X(memory_v2, (nvml_device, struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2", NULL)                 \
    X(memory, (nvml_device, struct nvml_memory *), "nvmlDeviceGetMemoryInfo", NULL)                          \
    X(power, (nvml_device, unsigned *), "nvmlDeviceGetPowerUsage", NULL)                                     \
    X(power_limit, (nvml_device, unsigned *), "nvmlDeviceGetEnforcedPowerLimit",                             \
      "nvmlDeviceGetPowerManagementLimit")                                                                   \
    X(temperature, (nvml_device, int, unsigned *), "nvmlDeviceGetTemperature", NULL)                         \
    X(clock, (nvml_device, int, unsigned *), "nvmlDeviceGetClockInfo", NULL)                                 \
    X(reasons, (nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons",                \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                           \
    X(ecc, (nvml_device, int, int, unsigned long long *), "nvmlDeviceGetTotalEccErrors", NULL)               \
    X(mig_mode, (nvml_device, unsigned *, unsigned *), "nvmlDeviceGetMigMode", NULL)                         \
    X(mig_count, (nvml_device, unsigned *), "nvmlDeviceGetMaxMigDeviceCount", NULL)                          \
    X(mig_handle, (nvml_device, unsigned, nvml_device *), "nvmlDeviceGetMigDeviceHandleByIndex", NULL)       \
    X(gpm_support, (nvml_device, struct nvml_gpm_support *), "nvmlGpmQueryDeviceSupport", NULL)              \
    X(gpm_alloc, (nvml_sample *), "nvmlGpmSampleAlloc", NULL)                                                \
    X(gpm_free, (nvml_sample), "nvmlGpmSampleFree", NULL)                                                    \
    X(gpm_sample, (nvml_device, nvml_sample), "nvmlGpmSampleGet", NULL)                                      \
    X(gpm_metrics, (struct nvml_gpm_metrics *), "nvmlGpmMetricsGet", NULL)                                   \
    X(compute, (nvml_device, unsigned *, void *), "nvmlDeviceGetComputeRunningProcesses_v2",                 \
      "nvmlDeviceGetComputeRunningProcesses")                                                                \
    X(graphics, (nvml_device, unsigned *, void *), "nvmlDeviceGetGraphicsRunningProcesses_v2",               \
      "nvmlDeviceGetGraphicsRunningProcesses")                                                               \
    X(mps, (nvml_device, unsigned *, void *), "nvmlDeviceGetMPSComputeRunningProcesses_v2",                  \
      "nvmlDeviceGetMPSComputeRunningProcesses")                                                             \
    X(set_new, (nvml_set *), "nvmlEventSetCreate", NULL)                                                     \
    X(set_add, (nvml_device, unsigned long long, nvml_set), "nvmlDeviceRegisterEvents", NULL)                \
    X(set_wait, (nvml_set, struct nvml_event *, unsigned), "nvmlEventSetWait_v2", "nvmlEventSetWait")

#define NVML_POINTER(id, arguments, name, older) int(*id) arguments;

/* NULL: this driver does not have it. */
struct nvml_functions {
    NVML_FUNCTIONS(NVML_POINTER)
};

static struct {
    struct nvml_functions call;
    nvml_device devices[GPU_MAX]; /* NULL: it could not be found; `states` has the reason */
    int64_t states[GPU_MAX];
    int64_t xids[GPU_MAX]; /* reported and not yet read */
    bool is_slice[GPU_MAX];
    bool is_begun[GPU_MAX]; /* what only a reader needs is there */
    size_t n;
    nvml_set events;
    bool has_events;
    /* of the last rare reading */
    double power_limit_w[GPU_MAX];
    int64_t ecc[GPU_MAX];
    /* GPM: the last sample and room for the next one; NULL: the device or its driver does not have it */
    nvml_sample before[GPU_MAX], next[GPU_MAX];
    bool has_before[GPU_MAX];
} nvml;

/* ---- opening ---- */

static void *nvml_find(void *library, const char *name, const char *older) {
    void *f = dlsym(library, name);
    return f || !older ? f : dlsym(library, older);
}

/* 0, or -1 with the reason. */
static int nvml_load(char *why) {
    if (getauxval(AT_BASE) == 0) {
        /* without a loader, the C library that it needs would be a second one */
        snprintf(why, GPU_WHY,
                 "this program is one static file, which cannot load the NVIDIA driver's library");
        return -1;
    }
    void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, GPU_WHY, "no NVIDIA driver: %s is not installed", NVML_LIBRARY);
        return -1;
    }
#define NVML_FIND(id, arguments, name, older)                                                                \
    {                                                                                                        \
        void *f = nvml_find(library, name, older);                                                           \
        memcpy(&nvml.call.id, &f, sizeof f);                                                                 \
    }
    NVML_FUNCTIONS(NVML_FIND)
    if (nvml.call.init && nvml.call.count && nvml.call.handle)
        return 0;
    snprintf(why, GPU_WHY, "%s has none of the functions that list devices", NVML_LIBRARY);
    return -1;
}

static void nvml_explain(int rc, char *why) {
    if (rc == NVML_DRIVER_NOT_LOADED)
        snprintf(why, GPU_WHY, "the NVIDIA driver is not loaded");
    else if (rc == NVML_LIB_RM_VERSION_MISMATCH)
        snprintf(why, GPU_WHY,
                 "%s and the loaded NVIDIA driver have different versions: the driver was updated",
                 NVML_LIBRARY);
    else if (rc == NVML_NO_PERMISSION)
        snprintf(why, GPU_WHY, "the NVIDIA driver refuses this user");
    else
        snprintf(why, GPU_WHY, "the NVIDIA driver does not start (error %d)", rc);
}

static int64_t nvml_state(int rc) {
    switch (rc) {
    case NVML_GPU_IS_LOST:
        return GPU_LOST;
    case NVML_RESET_REQUIRED:
        return GPU_NEEDS_RESET;
    case NVML_NO_PERMISSION:
        return GPU_NO_ACCESS;
    default:
        return GPU_OK;
    }
}

static void nvml_describe(nvml_device d, struct gpu_facts *f) {
    if (!nvml.call.name || nvml.call.name(d, f->name, sizeof f->name) != NVML_SUCCESS)
        f->name[0] = '\0';
    if (!nvml.call.uuid || nvml.call.uuid(d, f->uuid, sizeof f->uuid) != NVML_SUCCESS)
        f->uuid[0] = '\0';
    f->name[sizeof f->name - 1] = f->uuid[sizeof f->uuid - 1] = '\0';
}

/* NULL without room. */
static struct gpu_facts *nvml_add(struct gpu_facts *list, size_t cap, int32_t device, int32_t slice,
                                  nvml_device handle) {
    if (nvml.n >= cap || nvml.n >= GPU_MAX)
        return NULL;
    struct gpu_facts *f = &list[nvml.n];
    *f = (struct gpu_facts){.vendor = "nvidia", .device = device, .slice = slice};
    nvml.devices[nvml.n] = handle;
    nvml.states[nvml.n] = GPU_OK;
    nvml.xids[nvml.n] = nvml.ecc[nvml.n] = GPU_NO_NUMBER;
    nvml.power_limit_w[nvml.n] = NAN;
    nvml.is_slice[nvml.n] = slice >= 0;
    nvml.n++;
    if (handle)
        nvml_describe(handle, f);
    return f;
}

/* Slices are named by the driver's numbers, which have gaps. */
static void nvml_add_slices(struct gpu_facts *whole, struct gpu_facts *list, size_t cap) {
    unsigned mode = 0, pending = 0, n = 0;
    nvml_device of = nvml.devices[nvml.n - 1], handle;
    if (!nvml.call.mig_mode || !nvml.call.mig_count || !nvml.call.mig_handle ||
        nvml.call.mig_mode(of, &mode, &pending) != NVML_SUCCESS || mode == 0 ||
        nvml.call.mig_count(of, &n) != NVML_SUCCESS)
        return;
    whole->is_divided = true;
    for (unsigned i = 0; i < n && i < NVML_MIG_MAX; i++)
        if (nvml.call.mig_handle(of, i, &handle) == NVML_SUCCESS)
            nvml_add(list, cap, whole->device, (int32_t)i, handle);
}

static void nvml_watch(nvml_device d) {
    if (!nvml.call.set_new || !nvml.call.set_add || !nvml.call.set_wait)
        return;
    if (!nvml.has_events && nvml.call.set_new(&nvml.events) != NVML_SUCCESS)
        return;
    nvml.has_events = true;
    nvml.call.set_add(d, NVML_EVENT_XID, nvml.events);
}

/* Samples are memory of this process, which ends by being killed: nobody frees those that are used. GPM is
 * read without nvmlGpmSetStreamingEnabled, which changes the device for all who use it. */
static void nvml_begin_gpm(size_t i) {
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    if (!nvml.call.gpm_support || !nvml.call.gpm_alloc || !nvml.call.gpm_free || !nvml.call.gpm_sample ||
        !nvml.call.gpm_metrics || nvml.call.gpm_support(nvml.devices[i], &support) != NVML_SUCCESS ||
        !support.is_supported || nvml.call.gpm_alloc(&nvml.before[i]) != NVML_SUCCESS)
        return;
    if (nvml.call.gpm_alloc(&nvml.next[i]) == NVML_SUCCESS)
        return;
    nvml.call.gpm_free(nvml.before[i]);
    nvml.before[i] = nvml.next[i] = NULL;
}

static int nvml_open(const struct gpu_skipped *skipped, gpu_enter_fn *enter, void *arg,
                     struct gpu_facts *list, size_t cap, char *why) {
    unsigned n = 0;
    enter(arg, GPU_NO_NUMBER);
    memset(&nvml, 0, sizeof nvml);
    if (nvml_load(why) != 0)
        return -1;
    int rc = nvml.call.init();
    if (rc == NVML_SUCCESS)
        rc = nvml.call.count(&n);
    if (rc != NVML_SUCCESS) {
        nvml_explain(rc, why);
        return -1;
    }
    if (n == 0)
        snprintf(why, GPU_WHY, "the NVIDIA driver has no device that this user may see");
    for (unsigned i = 0; i < n && i < GPU_MAX; i++) {
        nvml_device handle = NULL;
        bool is_skipped = skipped->is_skipped[i];
        rc = NVML_SUCCESS;
        enter(arg, (int32_t)i);
        if (!is_skipped)
            rc = nvml.call.handle(i, &handle);
        struct gpu_facts *f =
            nvml_add(list, cap, (int32_t)i, GPU_NO_NUMBER, rc == NVML_SUCCESS ? handle : NULL);
        if (!f)
            break;
        nvml.states[nvml.n - 1] = is_skipped ? GPU_SILENT : nvml_state(rc);
        if (rc == NVML_SUCCESS && handle)
            nvml_add_slices(f, list, cap);
    }
    return (int)nvml.n;
}

/* ---- reading ---- */

/* Take the errors that were reported meanwhile. */
static void nvml_read_events(void) {
    struct nvml_event e;
    for (int taken = 0; nvml.has_events && taken < GPU_MAX; taken++) {
        memset(&e, 0, sizeof e);
        if (nvml.call.set_wait(nvml.events, &e, 0) != NVML_SUCCESS)
            return;
        for (size_t i = 0; i < nvml.n; i++)
            if (nvml.devices[i] == e.device && !nvml.is_slice[i] && (e.type & NVML_EVENT_XID))
                nvml.xids[i] = (int64_t)(e.data & 0xffffffff);
    }
}

static int64_t nvml_throttle(unsigned long long reasons) {
    int64_t out = 0;
    if (reasons & NVML_REASON_SW_POWER)
        out |= GPU_THROTTLE_POWER;
    if (reasons & (NVML_REASON_SW_HEAT | NVML_REASON_HW_HEAT))
        out |= GPU_THROTTLE_HEAT;
    if (reasons & (NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_HEAT | NVML_REASON_POWER_BRAKE))
        out |= GPU_THROTTLE_HARDWARE;
    if (reasons & (NVML_REASON_APPLICATIONS | NVML_REASON_SYNC_BOOST))
        out |= GPU_THROTTLE_CLOCK;
    return out;
}

/* The newer call leaves out what the driver keeps for itself, as nvidia-smi does. */
static int nvml_read_memory(nvml_device d, struct gpu_values *v) {
    struct nvml_memory_v2 newer = {.version = NVML_MEMORY_V2};
    struct nvml_memory older;
    int rc = nvml.call.memory_v2 ? nvml.call.memory_v2(d, &newer) : -1;
    if (rc == NVML_SUCCESS) {
        v->mem_used_mb = (double)newer.used / NVML_MIB;
        v->mem_total_mb = (double)newer.total / NVML_MIB;
    } else if (nvml.call.memory && (rc = nvml.call.memory(d, &older)) == NVML_SUCCESS) {
        v->mem_used_mb = (double)older.used / NVML_MIB;
        v->mem_total_mb = (double)older.total / NVML_MIB;
    }
    return rc;
}

/* What a slice does not have is that of its device, and unknown here. */
static void nvml_read_load(nvml_device d, struct gpu_values *v) {
    struct nvml_utilization u;
    unsigned n;
    unsigned long long reasons;
    if (nvml.call.utilization && nvml.call.utilization(d, &u) == NVML_SUCCESS && u.gpu <= 100)
        v->util_pct = u.gpu;
    if (nvml.call.power && nvml.call.power(d, &n) == NVML_SUCCESS)
        v->power_w = n / 1e3;
    if (nvml.call.temperature && nvml.call.temperature(d, NVML_SENSOR_GPU, &n) == NVML_SUCCESS)
        v->temperature_c = n;
    if (nvml.call.clock && nvml.call.clock(d, NVML_CLOCK_SM, &n) == NVML_SUCCESS)
        v->sm_clock_mhz = n;
    if (nvml.call.reasons && nvml.call.reasons(d, &reasons) == NVML_SUCCESS)
        v->throttle = nvml_throttle(reasons);
}

static double nvml_gpm_share(const struct nvml_gpm_metric *m) {
    if (m->rc != NVML_SUCCESS || !(m->value >= 0 && m->value <= NVML_GPM_MOST_PCT))
        return NAN;
    return m->value < 100 ? m->value : 100;
}

/* The counters of all metrics are in a sample; two of them make the shares of the time between. After a
 * sample that failed, the next one is tried with a rare reading: the kernel may log what it refuses. */
static void nvml_read_gpm(size_t i, bool rare, struct gpu_values *v) {
    if (!nvml.next[i] || !(nvml.has_before[i] || rare))
        return;
    struct nvml_gpm_metrics m = {.version = NVML_GPM_VERSION,
                                 .n = 3,
                                 .before = nvml.before[i],
                                 .now = nvml.next[i],
                                 .list = {{.id = NVML_GPM_SM_UTIL, .value = NAN},
                                          {.id = NVML_GPM_ANY_TENSOR_UTIL, .value = NAN},
                                          {.id = NVML_GPM_DRAM_BW_UTIL, .value = NAN}}};
    bool had_before = nvml.has_before[i];
    nvml.has_before[i] = nvml.call.gpm_sample(nvml.devices[i], m.now) == NVML_SUCCESS;
    if (!nvml.has_before[i])
        return;
    nvml.next[i] = m.before;
    nvml.before[i] = m.now;
    if (!had_before || nvml.call.gpm_metrics(&m) != NVML_SUCCESS)
        return;
    v->sm_active_pct = nvml_gpm_share(&m.list[0]);
    v->tensor_active_pct = nvml_gpm_share(&m.list[1]);
    v->dram_active_pct = nvml_gpm_share(&m.list[2]);
}

static void nvml_read_rare(size_t i, nvml_device d) {
    unsigned n;
    unsigned long long errors;
    nvml.power_limit_w[i] = NAN;
    nvml.ecc[i] = GPU_NO_NUMBER;
    if (nvml.call.power_limit && nvml.call.power_limit(d, &n) == NVML_SUCCESS)
        nvml.power_limit_w[i] = n / 1e3;
    if (nvml.call.ecc &&
        nvml.call.ecc(d, NVML_ERROR_UNCORRECTED, NVML_SINCE_LOADED, &errors) == NVML_SUCCESS &&
        errors <= INT64_MAX)
        nvml.ecc[i] = (int64_t)errors;
}

static void nvml_read(size_t i, bool rare, struct gpu_values *out) {
    nvml_device d = nvml.devices[i];
    out->state = nvml.states[i];
    if (!d)
        return;
    if (!nvml.is_begun[i] && !nvml.is_slice[i]) {
        nvml_watch(d);
        nvml_begin_gpm(i);
    }
    nvml.is_begun[i] = true;
    int rc = nvml_read_memory(d, out);
    out->state = nvml_state(rc);
    if (out->state == GPU_OK && !nvml.is_slice[i]) {
        nvml_read_load(d, out);
        nvml_read_gpm(i, rare, out);
        if (rare)
            nvml_read_rare(i, d);
        out->power_limit_w = nvml.power_limit_w[i];
        out->ecc = nvml.ecc[i];
    }
    nvml_read_events();
    out->xid = nvml.xids[i];
    nvml.xids[i] = GPU_NO_NUMBER;
}

/* ---- processes ---- */

/* Size of a row of the list that the driver has written into `bytes`, all of which had NVML_UNTOUCHED: as far
 * as it has written. 0: that is none of the sizes. */
static size_t nvml_row_size(const unsigned char *bytes, size_t cap, size_t n) {
    while (cap > 0 && bytes[cap - 1] == NVML_UNTOUCHED)
        cap--;
    size_t size = n ? cap / n : 0;
    return cap == size * n && (size == 16 || size == 24 || size == 32) ? size : 0;
}

/* Whether a row can be one. In a list that is read with a wrong size some are not: halves of a number of
 * bytes in place of a pid. */
static bool nvml_is_process(const struct nvml_process *p) {
    return p->pid > 0 && p->pid <= NVML_PID_MOST &&
           (p->used <= NVML_USED_MOST || p->used == NVML_UNKNOWN_BYTES);
}

/* A process that uses a device in several ways has all that it uses in each list. */
static size_t nvml_add_holding(struct gpu_holding *list, size_t n, size_t cap, size_t place,
                               const struct nvml_process *p, char *why) {
    double mb = p->used == NVML_UNKNOWN_BYTES ? NAN : (double)p->used / NVML_MIB;
    for (size_t i = 0; i < n; i++)
        if (list[i].place == (int32_t)place && list[i].pid == (int32_t)p->pid) {
            list[i].mem_used_mb = fmax(list[i].mem_used_mb, mb);
            return n;
        }
    if (n < cap)
        list[n++] = (struct gpu_holding){.place = (int32_t)place, .pid = (int32_t)p->pid, .mem_used_mb = mb};
    else
        snprintf(why, GPU_WHY, "there are more of them than are listed");
    return n;
}

/* Ask for a list of a kind; `is_extra`: a driver need not have it. */
static size_t nvml_list_of(size_t place, int (*list_kind)(nvml_device, unsigned *, void *), bool is_extra,
                           struct gpu_holding *list, size_t n, size_t cap, char *why) {
    static _Alignas(8) unsigned char bytes[NVML_PROCESSES * NVML_PROCESS_LONGEST];
    struct nvml_process p;
    unsigned found = NVML_PROCESSES;
    memset(bytes, NVML_UNTOUCHED, sizeof bytes);
    int rc = list_kind(nvml.devices[place], &found, bytes);
    if (is_extra && (rc == NVML_NOT_SUPPORTED || rc == NVML_FUNCTION_NOT_FOUND))
        return n;
    if (rc == NVML_INSUFFICIENT_SIZE)
        snprintf(why, GPU_WHY, "a GPU has more than %d processes", NVML_PROCESSES);
    else if (rc != NVML_SUCCESS)
        snprintf(why, GPU_WHY, "the NVIDIA driver does not list a GPU's processes (error %d)", rc);
    if (rc != NVML_SUCCESS || found == 0)
        return n;
    size_t size = found <= NVML_PROCESSES ? nvml_row_size(bytes, sizeof bytes, found) : 0;
    for (size_t i = 0; size && i < found; i++) {
        memcpy(&p, bytes + i * size, sizeof p);
        if (!nvml_is_process(&p))
            size = 0;
    }
    if (!size)
        snprintf(why, GPU_WHY, "the NVIDIA driver's list of processes has a form that is not known");
    for (size_t i = 0; size && i < found; i++) {
        memcpy(&p, bytes + i * size, sizeof p);
        n = nvml_add_holding(list, n, cap, place, &p, why);
    }
    return n;
}

/* Of a divided device its slices are asked: whoever asks the whole needs more rights. */
static size_t nvml_list_holdings(struct gpu_holding *list, size_t cap, char *why) {
    size_t n = 0;
    if (!nvml.call.compute)
        snprintf(why, GPU_WHY, "the NVIDIA driver does not list processes");
    for (size_t i = 0; nvml.call.compute && i < nvml.n; i++) {
        bool is_divided = !nvml.is_slice[i] && i + 1 < nvml.n && nvml.is_slice[i + 1];
        if (is_divided || nvml.states[i] == GPU_SILENT)
            continue;
        if (!nvml.devices[i]) {
            snprintf(why, GPU_WHY, "a GPU is lost, or refuses this user");
            continue;
        }
        n = nvml_list_of(i, nvml.call.compute, false, list, n, cap, why);
        if (nvml.call.graphics)
            n = nvml_list_of(i, nvml.call.graphics, true, list, n, cap, why);
        if (nvml.call.mps)
            n = nvml_list_of(i, nvml.call.mps, true, list, n, cap, why);
    }
    return n;
}

const struct gpu_source gpu_source_nvml = {.vendor = "nvidia",
                                           .open = nvml_open,
                                           .read = nvml_read,
                                           .list_holdings = nvml_list_holdings,
                                           .counts_as_host = true};
