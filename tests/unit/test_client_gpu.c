/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: which of them a process uses, the files of AMD's driver, and the poller in front of a driver that is tests/targets/fake_nvml.c. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/gpu/amdgpu.h"
#include "client/gpu/gpu_holders.h"
#include "client/gpu/gpu_poller.h"
#include "client/gpu/gpu_process.h"
#include "client/gpu/gpu_visible.h"

#define LONG_S 60.0 /* on a busy machine */

static char work[64] = "/tmp/test_client_gpu.XXXXXX";

/* ---- which of them a process uses ---- */

static struct gpu_device some(const char *vendor, int device, int slice, const char *uuid, const char *name) {
    struct gpu_device d = {.facts = {.device = device, .slice = slice}};
    snprintf(d.facts.vendor, sizeof d.facts.vendor, "%s", vendor);
    snprintf(d.facts.uuid, sizeof d.facts.uuid, "%s", uuid);
    snprintf(d.facts.name, sizeof d.facts.name, "%s", name);
    return d;
}

struct choice {
    struct gpu_visible_env env;
    const char *used; /* digits of those */
    bool is_assumed;
};

static void check(const struct gpu_device *list, size_t n, const struct choice *c) {
    bool used[GPU_MAX];
    char got[GPU_MAX + 1] = "";
    bool assumed = gpu_visible_choose(&c->env, list, n, used);
    for (size_t i = 0, at = 0; i < n; i++)
        if (used[i])
            at += (size_t)snprintf(got + at, sizeof got - at, "%zu", i);
    assert_string_equal(got, c->used);
    assert_int_equal(assumed, c->is_assumed);
}

static void test_visible(void **state) {
    (void)state;
    struct gpu_device list[4];
    for (int i = 0; i < 4; i++) {
        char uuid[64];
        snprintf(uuid, sizeof uuid, "GPU-%d111-2222", i);
        list[i] = some("nvidia", i, -1, uuid, "H100");
    }
    const struct choice choices[] = {
        {{.local = -1}, "0123", true},
        {{.local = 2}, "2", true},
        {{.cuda = "3", .local = -1}, "3", false}, /* all are alike: numbers are the driver's */
        {{.cuda = "3,1", .local = 1}, "1", true},
        {{.cuda = "GPU-1", .local = 0}, "1", false},
        {{.cuda = "GPU-1111-2222, GPU-3", .local = -1}, "13", true},
        {{.cuda = "GPU-", .local = -1}, "", false}, /* of several */
        {{.cuda = "", .local = -1}, "", false},
        {{.cuda = "-1", .local = -1}, "", false},
        {{.cuda = "1,9,2", .local = -1}, "1", false}, /* it ends where it is not valid */
        {{.cuda = "1,x", .local = -1}, "1", false},
        {{.cuda = "0", .container = "2,3", .local = -1}, "2", false},
        {{.cuda = "1", .container = "GPU-0111-2222,GPU-3111-2222", .local = -1}, "3", false},
        {{.container = "all", .local = 3}, "3", true},
        {{.cuda = "0,1", .local = 5}, "01", true}, /* more ranks than devices */
        {{.cuda = "99999999999999999999999", .local = -1}, "", false},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        check(list, 4, &choices[i]);
    /* CUDA has the fastest first, the driver the order of the bus */
    snprintf(list[1].facts.name, sizeof list[1].facts.name, "T400");
    check(list, 4, &(struct choice){{.cuda = "0", .local = -1}, "0", true});
    check(list, 4, &(struct choice){{.cuda = "0", .order = "PCI_BUS_ID", .local = -1}, "0", false});
    check(list, 4, &(struct choice){{.cuda = "GPU-0", .local = -1}, "0", false});
}

static void test_visible_slices(void **state) {
    (void)state;
    struct gpu_device list[] = {
        some("nvidia", 0, -1, "GPU-0", "H100"), some("nvidia", 0, 0, "MIG-aa", "H100 MIG"),
        some("nvidia", 0, 1, "MIG-bb", "H100 MIG"), some("amd", 0, -1, "GPU-amd", "MI300")};
    list[0].facts.is_divided = true;
    check(list, 4, &(struct choice){{.cuda = "MIG-bb", .hip = "", .local = -1}, "2", false});
    check(list, 4, &(struct choice){{.cuda = "", .hip = "0", .local = -1}, "3", false});
    check(list, 4, &(struct choice){{.cuda = "", .local = -1}, "", false}); /* ROCm heeds CUDA's name, too */
}

/* ---- files of AMD's driver ---- */

static void put(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", work, name);
    for (char *at = path + strlen(work) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0700);
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

#define CARD "class/drm/card"

static void nobody(void *arg, int32_t device) { (void)arg, (void)device; }

static void test_amd(void **state) {
    (void)state;
    const struct gpu_skipped none = {.is_skipped = {false}};
    struct gpu_facts list[GPU_MAX];
    struct gpu_values v;
    char why[GPU_WHY] = "";
    amdgpu_set_root(work, "/nowhere");
    assert_int_equal(gpu_source_amd.open(&none, nobody, NULL, list, GPU_MAX, why), -1);
    assert_string_equal(why, "no AMD GPU");
    put(CARD "0/device/vendor", "0x8086\n"); /* another maker's */
    put(CARD "1/device/vendor", "0x1002\n"); /* one without memory of its own */
    put(CARD "2/device/vendor", "0x1002\n");
    put(CARD "2/device/mem_info_vram_total", "206141652992\n");
    put(CARD "2/device/mem_info_vram_used", "1073741824\n");
    put(CARD "2/device/gpu_busy_percent", "37\n");
    put(CARD "2/device/unique_id", "a1b2\n");
    put(CARD "2/device/hwmon/hwmon7/name", "amdgpu\n");
    put(CARD "2/device/hwmon/hwmon7/power1_average", "141000000\n");
    put(CARD "2/device/hwmon/hwmon7/power1_cap", "750000000\n");
    put(CARD "2/device/hwmon/hwmon7/temp1_input", "41000\n");
    put(CARD "2/device/hwmon/hwmon7/freq1_input", "132000000\n");
    put(CARD "5/device/vendor", "0x1002\n");
    put(CARD "5/device/mem_info_vram_total", "1048576\n");
    put(CARD "5/device/mem_info_vram_used", "-3\n");
    put(CARD "5/device/gpu_busy_percent", "not a number\n");
    assert_int_equal(gpu_source_amd.open(&none, nobody, NULL, list, GPU_MAX, why), 2);
    assert_string_equal(list[0].uuid, "GPU-a1b2");
    assert_int_equal(list[1].device, 1);
    gpu_values_clear(&v);
    gpu_source_amd.read(0, true, &v);
    assert_float_equal(v.util_pct, 37, 0);
    assert_float_equal(v.mem_used_mb, 1024, 0);
    assert_float_equal(v.mem_total_mb, 196592, 1);
    assert_float_equal(v.power_w, 141, 1e-9);
    assert_float_equal(v.power_limit_w, 750, 1e-9);
    assert_float_equal(v.temperature_c, 41, 1e-9);
    assert_float_equal(v.sm_clock_mhz, 132, 1e-9);
    gpu_values_clear(&v);
    gpu_source_amd.read(1, true, &v);
    assert_true(isnan(v.util_pct) && isnan(v.mem_used_mb) && isnan(v.power_w));
    assert_int_equal(v.state, GPU_OK);
    amdgpu_set_root("/nowhere", "/nowhere");
}

static void put_client(int pid, int fd, const char *to, const char *fdinfo) {
    char name[128], path[PATH_MAX];
    snprintf(name, sizeof name, "proc/%d/fdinfo/%d", pid, fd);
    put(name, fdinfo);
    snprintf(name, sizeof name, "proc/%d/fd/none", pid);
    put(name, "");
    snprintf(path, sizeof path, "%s/proc/%d/fd/%d", work, pid, fd);
    assert_int_equal(symlink(to, path), 0);
}

#define RENDER "/dev/dri/renderD128"
#define AMD_FILE(id, slot) "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t" slot "\ndrm-client-id:\t" id "\n"

/* Files of a graphics card, each once, however many processes and descriptors have it. */
static void test_amd_processes(void **state) {
    (void)state;
    const struct gpu_skipped none = {.is_skipped = {false}};
    struct gpu_facts list[GPU_MAX];
    struct gpu_holding found[8];
    char why[GPU_WHY] = "", proc[PATH_MAX];
    snprintf(proc, sizeof proc, "%s/proc", work);
    amdgpu_set_root(work, proc);
    put(CARD "7/device/vendor", "0x1002\n");
    put(CARD "7/device/mem_info_vram_total", "1048576\n");
    put(CARD "7/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:x\n");
    int n = gpu_source_amd.open(&none, nobody, NULL, list, GPU_MAX, why);
    assert_true(n > 0);
    put_client(300, 9, RENDER, AMD_FILE("5", "0000:03:00.0") "drm-memory-vram:\t2097152 KiB\n");
    put_client(300, 10, RENDER, AMD_FILE("5", "0000:03:00.0") "drm-memory-vram:\t2097152 KiB\n");
    put_client(300, 11, RENDER,
               AMD_FILE("6", "0000:03:00.0") "drm-memory-vram: 7 KiB\ndrm-resident-vram: 3 MiB\n");
    put_client(41, 3, RENDER, AMD_FILE("9", "0000:03:00.0") "drm-memory-vram:\t1048576\n");
    put_client(300, 12, RENDER, AMD_FILE("9", "0000:03:00.0") "drm-memory-vram:\t1048576\n"); /* of 41 */
    put_client(42, 3, RENDER, AMD_FILE("1", "0000:03:00.0") "drm-memory-vram:\tmuch\n");
    put_client(43, 3, RENDER, AMD_FILE("5", "0000:99:00.0") "drm-memory-vram:\t4 KiB\n"); /* another card */
    put_client(44, 3, "/dev/null", AMD_FILE("2", "0000:03:00.0") "drm-memory-vram:\t4 KiB\n");
    put_client(45, 3, RENDER, "drm-driver:\ti915\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t3\n");
    put_client(46, 3, RENDER, "drm-driver:\tamdgpu\ndrm-client-id:\n\ndrm-pdev:");
    assert_int_equal(gpu_source_amd.list_holdings(found, 8, why), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(found[i].place, n - 1);
    assert_int_equal(found[0].pid, 41);
    assert_float_equal(found[0].mem_used_mb, 1, 0);
    assert_int_equal(found[1].pid, 42);
    assert_true(isnan(found[1].mem_used_mb));
    assert_int_equal(found[2].pid, 300);
    assert_float_equal(found[2].mem_used_mb, 2051, 0);
    assert_int_equal(gpu_source_amd.list_holdings(found, 2, why), 2);
    assert_string_equal(why, "there are more of them than are listed");
    put_client(47, 3, RENDER, "pdev:\t0000:03:00.0\nvram mem:\t4 kB\n");
    assert_int_equal(gpu_source_amd.list_holdings(found, 8, why), 3);
    assert_string_equal(why, "this kernel does not have what processes have on AMD's GPUs");
    amdgpu_set_root("/nowhere", "/nowhere");
}

/* ---- the poller ---- */

static void script(const char *text) {
    put("script", text);
    gpu_poller_end();
}

static bool never(void *arg) {
    (void)arg;
    return false;
}

/* Wait until there is a device for which `is_so`; which it is. */
static struct gpu_device wait_for(size_t device, bool (*is_so)(const struct gpu_device *d)) {
    struct gpu_device list[GPU_MAX];
    uint64_t until = clock_mono_ns() + (uint64_t)(LONG_S * 1e9);
    for (;;) {
        gpu_poller_wait(never, NULL);
        size_t n = gpu_poller_devices(list, GPU_MAX);
        if (device < n && is_so(&list[device]))
            return list[device];
        assert_true(clock_mono_ns() < until);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static bool is_read(const struct gpu_device *d) { return !isnan(d->newest.timestamp); }
static bool is_silent(const struct gpu_device *d) { return d->silent_s > 0; }
static bool has_xid(const struct gpu_device *d) { return d->newest.xid > 0; }

static void test_values(void **state) {
    (void)state;
    script("devices 16\nutil * 93\nused 3 2000\ntotal * 80000\npower * 650500\nlimit * 700000\ntemperature * "
           "71\n"
           "clock * 1755\nreasons * 0x44\necc 3 2\nname 3 NVIDIA H100 80GB HBM3\n");
    struct gpu_device d = wait_for(3, is_read);
    assert_string_equal(d.facts.vendor, "nvidia");
    assert_string_equal(d.facts.name, "NVIDIA H100 80GB HBM3");
    assert_string_equal(d.facts.uuid, "GPU-00000003-0000-0000-0000-000000000000");
    assert_float_equal(d.newest.util_pct, 93, 0);
    assert_float_equal(d.newest.power_w, 650.5, 1e-9);
    assert_float_equal(d.newest.temperature_c, 71, 0);
    assert_float_equal(d.newest.sm_clock_mhz, 1755, 0);
    assert_float_equal(d.newest.mem_total_mb, 80000, 0);
    assert_int_equal(d.newest.state, GPU_OK);
    assert_int_equal(d.newest.xid, GPU_NO_NUMBER);
    if (getenv("FAKE_NVML_OLD")) { /* what its driver does not have is unknown */
        assert_float_equal(d.newest.mem_used_mb, 2500, 0);
        assert_true(isnan(d.newest.power_limit_w));
        assert_int_equal(d.newest.throttle, GPU_NO_NUMBER);
        assert_int_equal(d.newest.ecc, GPU_NO_NUMBER);
    } else {
        assert_float_equal(d.newest.mem_used_mb, 2000, 0);
        assert_float_equal(d.newest.power_limit_w, 700, 1e-9);
        assert_int_equal(d.newest.throttle, GPU_THROTTLE_POWER | GPU_THROTTLE_HEAT | GPU_THROTTLE_HARDWARE);
        assert_int_equal(d.newest.ecc, 2);
    }
    struct gpu_device list[GPU_MAX];
    assert_int_equal(gpu_poller_devices(list, GPU_MAX), 16);
}

static int count(size_t device, const struct gpu_values *v, void *arg) {
    int *n = arg;
    assert_int_equal(device, 1);
    assert_false(isnan(v->timestamp));
    return ++*n == 3;
}

static void test_past(void **state) {
    (void)state;
    const bool wanted[GPU_MAX] = {[1] = true};
    uint64_t until = clock_mono_ns() + (uint64_t)(LONG_S * 1e9);
    int n = 0;
    script("devices 2\n");
    while (n < 3) {
        n = 0;
        gpu_poller_wait(never, NULL);
        gpu_poller_each(wanted, count, &n);
        assert_true(clock_mono_ns() < until);
    }
}

static void test_errors(void **state) {
    (void)state;
    struct gpu_device list[GPU_MAX];
    char why[512];
    script("devices 4\nerror 0 MemoryInfo* 15\nerror 1 HandleByIndex 4\nerror 2 UtilizationRates 3\nerror 2 "
           "PowerUsage 999\n"
           "error 3 MemoryInfo* 16\n");
    assert_int_equal(wait_for(0, is_read).newest.state, GPU_LOST);
    assert_int_equal(wait_for(1, is_read).newest.state, GPU_NO_ACCESS);
    assert_int_equal(wait_for(3, is_read).newest.state, GPU_NEEDS_RESET);
    struct gpu_device d = wait_for(2, is_read);
    assert_int_equal(d.newest.state, GPU_OK);
    assert_true(isnan(d.newest.util_pct) && isnan(d.newest.power_w));
    assert_false(isnan(d.newest.temperature_c));
    script("init 9\n");
    gpu_poller_wait(never, NULL);
    assert_int_equal(gpu_poller_devices(list, GPU_MAX), 0);
    gpu_poller_why(why, sizeof why);
    assert_string_equal(why, "the NVIDIA driver is not loaded; no AMD GPU");
    script("devices 0\n");
    gpu_poller_wait(never, NULL);
    gpu_poller_why(why, sizeof why);
    assert_string_equal(why, "the NVIDIA driver has no device that this user may see; no AMD GPU");
    script("devices 1000000\nused * 99999999999999\n"); /* a broken driver's */
    assert_false(isnan(wait_for(GPU_MAX - 1, is_read).newest.mem_used_mb));
    assert_int_equal(gpu_poller_devices(list, GPU_MAX), GPU_MAX);
}

static void test_slices(void **state) {
    (void)state;
    if (getenv("FAKE_NVML_OLD"))
        return;
    script("devices 2\nmig 0 2\nused * 3000\n");
    struct gpu_device d = wait_for(2, is_read);
    assert_int_equal(d.facts.device, 0);
    assert_int_equal(d.facts.slice, 1);
    assert_string_equal(d.facts.uuid, "MIG-00000000-0000-0000-0000-000000000001");
    assert_float_equal(d.newest.mem_used_mb, 3000, 0);
    assert_true(isnan(d.newest.util_pct) && isnan(d.newest.power_w));
    d = wait_for(3, is_read);
    assert_int_equal(d.facts.device, 1);
    assert_int_equal(d.facts.slice, GPU_NO_NUMBER);
    assert_true(wait_for(0, is_read).facts.is_divided);
}

static void test_xid(void **state) {
    (void)state;
    if (getenv("FAKE_NVML_OLD"))
        return;
    script("devices 2\nxid 1 79\n");
    assert_int_equal(wait_for(1, has_xid).newest.xid, 79);
}

static bool has_sm(const struct gpu_device *d) { return !isnan(d->newest.sm_active_pct); }
static bool has_tensor(const struct gpu_device *d) { return !isnan(d->newest.tensor_active_pct); }

/* The readings with GPM of a device. */
static int count_sm(size_t device, const struct gpu_values *v, void *arg) {
    int *n = arg;
    n[device] += !isnan(v->sm_active_pct) || !isnan(v->tensor_active_pct) || !isnan(v->dram_active_pct);
    return 0;
}

/* Shares between two samples: unknown at first, of slices, and where the driver or the device does not have
 * them, refuses them, or lies. */
static void test_gpm(void **state) {
    (void)state;
    const bool wanted[GPU_MAX] = {true, true, true, true, true, true, true, true, true};
    int n[GPU_MAX] = {0};
    script(
        "devices 7\nmig 6 2\nsm 0 71.5\ntensor 0 55\ndram 0 100.2\n"
        "error 1 GpmQueryDeviceSupport 3\nsm 1 5\nerror 2 GpmSampleGet 4\nsm 2 5\nsm 4 1e300\ntensor 4 12\n"
        "dram 4 -1\nsm 5 nan\ntensor 5 inf\ndram 5 0\nsm 6 31\n");
    if (getenv("FAKE_NVML_OLD")) {
        wait_for(0, is_read);
        return;
    }
    assert_true(isnan(wait_for(0, is_read).newest.sm_active_pct));
    struct gpu_device d = wait_for(0, has_sm);
    assert_float_equal(d.newest.sm_active_pct, 71.5, 0);
    assert_float_equal(d.newest.tensor_active_pct, 55, 0);
    assert_float_equal(d.newest.dram_active_pct, 100, 0);
    d = wait_for(4, has_tensor);
    assert_float_equal(d.newest.tensor_active_pct, 12, 0);
    assert_true(isnan(d.newest.sm_active_pct) && isnan(d.newest.dram_active_pct));
    assert_float_equal(wait_for(6, has_sm).newest.sm_active_pct, 31, 0);
    gpu_poller_each(wanted, count_sm, n);
    assert_true(n[0] > 0 && n[5] > 0 && n[6] > 0);
    /* 1: not supported, 2: refused, 3: nothing of it; 7, 8: slices */
    assert_int_equal(n[1] + n[2] + n[3] + n[7] + n[8], 0);
    script("devices 1\nsm 0 5\nerror 0 GpmMetricsGet 999\n");
    wait_for(0, is_read);
    struct timespec pause = {.tv_sec = 2, .tv_nsec = 500000000};
    nanosleep(&pause, NULL);
    d = wait_for(0, is_read);
    assert_true(isnan(d.newest.sm_active_pct) && !isnan(d.newest.util_pct));
    script("devices 2\nhang 1 GpmSampleGet\nsm * 5\n");
    assert_int_equal(wait_for(1, is_silent).newest.state, GPU_SILENT);
    assert_float_equal(wait_for(0, has_sm).newest.sm_active_pct, 5, 0);
}

/* One that does not answer is left out after three seconds; the others continue. */
static void test_hang(void **state) {
    (void)state;
    script("devices 3\nhang 1 UtilizationRates\nutil * 5\n");
    double began = clock_epoch_s();
    struct gpu_device d = wait_for(1, is_silent);
    double took = clock_epoch_s() - began;
    assert_true(took >= GPU_POLLER_PATIENCE_S);
    assert_int_equal(d.newest.state, GPU_SILENT);
    assert_float_equal(wait_for(2, is_read).newest.util_pct, 5, 0);
    assert_float_equal(wait_for(0, is_read).newest.util_pct, 5, 0);
    assert_string_equal(wait_for(1, is_silent).facts.uuid, "GPU-00000001-0000-0000-0000-000000000000");
}

static void test_driver_hangs(void **state) {
    (void)state;
    struct gpu_device list[GPU_MAX];
    char why[512];
    script("hang - Init\n");
    gpu_poller_wait(never, NULL);
    assert_int_equal(gpu_poller_devices(list, GPU_MAX), 0);
    gpu_poller_why(why, sizeof why);
    assert_memory_equal(why, "the nvidia driver has not answered for ", 39);
}

/* ---- who has memory ---- */

/* The processes on the first two devices, once the poller knows all. */
static int read_again(struct gpu_holder *list, char *why) {
    struct gpu_device devices[GPU_MAX];
    const bool used[GPU_MAX] = {true, true, true};
    return gpu_holders_read(devices, used, gpu_poller_devices(devices, GPU_MAX), list, 8, why);
}

static int read_holders(const char *text, struct gpu_holder *list, char *why) {
    script(text);
    wait_for(1, is_read);
    return read_again(list, why);
}

/* What is missing, but for what a container does not have. */
static void assert_missing(const char *why, const char *want) {
    static const char container[] = "in a container, processes outside of it may be missing";
    struct stat st;
    char all[GPU_WHY];
    bool is_host = stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC;
    (void)snprintf(all, sizeof all, "%s%s%s", want, !is_host && *want ? "; " : "", is_host ? "" : container);
    assert_string_equal(why, all);
}

static const struct gpu_holder *holder_of(const struct gpu_holder *list, int n, int place, int pid) {
    for (int i = 0; i < n; i++)
        if (list[i].holding.place == place && list[i].holding.pid == pid)
            return &list[i];
    return NULL;
}

/* Each process once for each device, whatever the size of the driver's rows is. */
static void test_holders(void **state) {
    (void)state;
    struct gpu_holder list[8];
    struct stat st;
    char text[512], why[GPU_WHY];
    bool is_host = stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC;
    const int sizes[] = {16, 24, 32};
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
                 "devices 2\nrow %d\nprocess 0 Compute %d 1000\nprocess 1 Compute %d 7\nprocess 1 Compute "
                 "4000000 -\n",
                 sizes[i], (int)getpid(), (int)getpid());
        assert_int_equal(read_holders(text, list, why), 3);
        assert_missing(why, "");
        const struct gpu_holder *mine = holder_of(list, 3, 0, getpid());
        assert_non_null(mine);
        assert_float_equal(mine->holding.mem_used_mb, 1000, 0);
        assert_int_equal(mine->is_ours, is_host);
        assert_string_equal(mine->command, is_host ? "test_client_gpu" : "");
        assert_int_equal(mine->uid, is_host ? (int64_t)geteuid() : -1);
        assert_int_equal(mine->rank, -1);
        assert_float_equal(holder_of(list, 3, 1, getpid())->holding.mem_used_mb, 7, 0);
        const struct gpu_holder *gone = holder_of(list, 3, 1, 4000000);
        assert_true(isnan(gone->holding.mem_used_mb) && gone->uid == -1);
        assert_string_equal(gone->command, "");
    }
    /* one that uses it in several ways, one that only draws, one of a server of CUDA's */
    bool is_old = getenv("FAKE_NVML_OLD") != NULL;
    int n =
        read_holders("process 0 Compute 5 100\nprocess 0 Graphics 5 90\nprocess 0 Graphics 6 3\nprocess 1 "
                     "MPSCompute 7 8\n",
                     list, why);
    assert_int_equal(n, is_old ? 1 : 3);
    assert_float_equal(holder_of(list, n, 0, 5)->holding.mem_used_mb, 100, 0);
    assert_true(is_old || holder_of(list, n, 1, 7)->holding.mem_used_mb == 8);
    assert_int_equal(read_holders("util 0 1\n", list, why), 0);
    assert_missing(why, "");
    if (is_old)
        return;
    /* of a divided device its slices, and not the whole; of devices that are not used, nothing */
    n = read_holders(
        "devices 4\nmig 1 2\nprocess 1 Compute 5 100\nprocess 1.0 Compute 5 60\nprocess 1.1 Compute 6 "
        "40\nprocess 3 Compute 9 9\nerror 3 ComputeRunningProcesses 4\n",
        list, why);
    assert_int_equal(n, 1); /* places 0, 1, 2: the second device, and its first slice */
    assert_float_equal(holder_of(list, n, 2, 5)->holding.mem_used_mb, 60, 0);
    assert_missing(why, "");
}

/* A driver that lies, refuses, has too many, or does not answer. */
static void test_holders_unknown(void **state) {
    (void)state;
    struct gpu_holder list[8];
    char why[GPU_WHY];
    const char *const form = "the NVIDIA driver's list of processes has a form that is not known";
    const char *const odd[] = {"row 20\nprocess 0 Compute 5 100\n",   "row 40\nprocess 0 Compute 5 100\n",
                               "count 3\nprocess 0 Compute 5 100\n",  "count 4000000000\n",
                               "process 0 Compute 0 100\n",           "process 0 Compute 4294967295 100\n",
                               "process 0 Compute 5 99999999999999\n"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_int_equal(read_holders(odd[i], list, why), 0);
        assert_missing(why, form);
    }
    /* more was written than is reported: three rows of 16 bytes are as long as two of 24 */
    assert_int_equal(
        read_holders("row 16\ncount 2\nprocess 0 Compute 5 1000\nprocess 0 Compute 6 1000\nprocess 0 "
                     "Compute 7 1000\n",
                     list, why),
        0);
    assert_missing(why, form);
    assert_int_equal(read_holders("crowd 0 300\nprocess 1 Compute 5 1\n", list, why), 1);
    assert_missing(why, "a GPU has more than 256 processes");
    assert_int_equal(read_holders("error 1 ComputeRunningProcesses 4\nprocess 0 Compute 5 1\n", list, why),
                     1);
    assert_missing(why, "the NVIDIA driver does not list a GPU's processes (error 4)");
    /* the driver was updated since the poller began */
    script("devices 2\nprocess 0 Compute 5 1\n");
    wait_for(1, is_read);
    put("script", "init 18\n");
    assert_int_equal(read_again(list, why), 0);
    assert_non_null(strstr(why, "have different versions: the driver was updated"));
    if (!getenv("FAKE_NVML_OLD")) {
        script("devices 3\nhang 1 MemoryInfo_v2\n");
        wait_for(1, is_silent);
        assert_int_equal(read_again(list, why), -1);
        assert_string_equal(why, "GPU 1 does not answer, and a list of processes waits for all");
    }
    assert_int_equal(read_holders("hang 1 ComputeRunningProcesses\n", list, why), -1);
    assert_string_equal(why, "the driver has not answered for 3 s");
    assert_int_equal(read_holders("process 0 Compute 5 1\n", list, why),
                     -1); /* it is left alone for a while */
    assert_memory_equal(why, "the driver did not answer ", 26);
}

/* ---- of a rank ---- */

/* Which devices a rank uses could not be found: that is tried again. */
static void test_rank(void **state) {
    (void)state;
    struct rlimit usual, none;
    uint64_t until = clock_mono_ns() + (uint64_t)(LONG_S * 1e9);
    struct gpu_use use;
    script("devices 1\nutil 0 42\npower 0 300000\n");
    wait_for(0, is_read);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    gpu_process_read(getpid(), &use);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(isnan(use.util_pct));
    while (isnan(use.util_pct)) {
        assert_true(clock_mono_ns() < until);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        gpu_process_read(getpid(), &use);
    }
    assert_float_equal(use.util_pct, 42, 0);
}

/* ---- the loader's search is settled when a program starts ---- */

static void begin_again(const char *self, const char *library) {
    char path[PATH_MAX], link[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/targets/%s.so", (int)(strrchr(self, '/') - self), self, library);
    snprintf(link, sizeof link, "%s/libnvidia-ml.so.1", work);
    if (symlink(path, link) != 0)
        _exit(1);
    snprintf(path, sizeof path, "%s/script", work);
    setenv("LD_LIBRARY_PATH", work, 1);
    setenv("FAKE_NVML", path, 1);
    setenv("FAKE_NVML_WORK", work, 1);
    execl(self, self, NULL);
    _exit(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible),       cmocka_unit_test(test_visible_slices),
        cmocka_unit_test(test_amd),           cmocka_unit_test(test_values),
        cmocka_unit_test(test_past),          cmocka_unit_test(test_errors),
        cmocka_unit_test(test_slices),        cmocka_unit_test(test_xid),
        cmocka_unit_test(test_hang),          cmocka_unit_test(test_driver_hangs),
        cmocka_unit_test(test_rank),          cmocka_unit_test(test_gpm),
        cmocka_unit_test(test_holders),       cmocka_unit_test(test_holders_unknown),
        cmocka_unit_test(test_amd_processes),
    };
    char self[PATH_MAX] = "", command[PATH_MAX];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 1;
    if (!getenv("FAKE_NVML_WORK")) {
        if (!mkdtemp(work))
            return 1;
        begin_again(self, "fake_nvml");
    }
    snprintf(work, sizeof work, "%s", getenv("FAKE_NVML_WORK"));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    gpu_poller_end();
    snprintf(command, sizeof command, "rm -rf '%s'", work);
    if (system(command) != 0 || rc != 0 || getenv("FAKE_NVML_OLD"))
        return rc;
    if (mkdir(work, 0700) != 0)
        return 1;
    setenv("FAKE_NVML_OLD", "1", 1);
    begin_again(self, "fake_nvml_old");
}
