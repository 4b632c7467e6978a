/* SPDX-License-Identifier: Apache-2.0 */
/* amdgpu: see amdgpu.h. */
#include "client/gpu/amdgpu.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gpu/gpu_source.h"

#define AMD_VENDOR 0x1002
#define AMD_CARDS 128 /* numbers of cards that are tried; others have some of them */
#define AMD_HWMON 64  /* the same, of sensors */
#define AMD_PATH 256
#define AMD_MIB (1024.0 * 1024.0)

static const char *amd_root = "/sys";

static struct {
    int cards[GPU_MAX];
    int sensors[GPU_MAX]; /* -1 none */
    size_t n;
} amd;

void amdgpu_set_root(const char *path) { amd_root = path; }

/* A line of a file of a card, or with `sensor` of its sensors. 0 or -1. */
static int amd_read_text(int card, int sensor, const char *name, char *buf, size_t cap) {
    char path[AMD_PATH];
    if (sensor < 0)
        snprintf(path, sizeof path, "%s/class/drm/card%d/device/%s", amd_root, card, name);
    else
        snprintf(path, sizeof path, "%s/class/drm/card%d/device/hwmon/hwmon%d/%s", amd_root, card, sensor,
                 name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    buf[n] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    return 0;
}

/* A number there; NAN: there is none. */
static double amd_read_number(int card, int sensor, const char *name) {
    char text[64], *end;
    if (amd_read_text(card, sensor, name, text, sizeof text) != 0)
        return NAN;
    double v = strtod(text, &end);
    return end == text || !isfinite(v) || v < 0 ? NAN : v;
}

static int amd_find_sensors(int card) {
    char text[64];
    for (int i = 0; i < AMD_HWMON; i++)
        if (amd_read_text(card, i, "name", text, sizeof text) == 0)
            return i;
    return -1;
}

static int amd_open(const struct gpu_skipped *skipped, gpu_enter_fn *enter, void *arg, struct gpu_facts *list,
                    size_t cap, char *why) {
    char text[64], *end;
    int32_t device = 0;
    amd.n = 0;
    for (int card = 0; card < AMD_CARDS && amd.n < cap && amd.n < GPU_MAX; card++) {
        enter(arg, device);
        if (amd_read_text(card, -1, "vendor", text, sizeof text) != 0 ||
            strtol(text, &end, 16) != AMD_VENDOR || end == text ||
            isnan(amd_read_number(card, -1, "mem_info_vram_total")))
            continue;
        struct gpu_facts *f = &list[amd.n];
        *f = (struct gpu_facts){.vendor = "amd", .device = device, .slice = GPU_NO_NUMBER};
        amd.cards[amd.n] = skipped->is_skipped[device] ? -1 : card;
        amd.sensors[amd.n] = amd_find_sensors(card);
        if (amd_read_text(card, -1, "product_name", f->name, sizeof f->name) != 0)
            snprintf(f->name, sizeof f->name, "AMD GPU");
        if (amd_read_text(card, -1, "unique_id", text, sizeof text) == 0)
            snprintf(f->uuid, sizeof f->uuid, "GPU-%s", text);
        amd.n++;
        device++;
    }
    if (amd.n == 0)
        snprintf(why, GPU_WHY, "no AMD GPU");
    return amd.n ? (int)amd.n : -1;
}

static void amd_read(size_t i, bool rare, struct gpu_values *out) {
    (void)rare; /* files of the kernel are cheap */
    int card = amd.cards[i], sensors = amd.sensors[i];
    if (card < 0) {
        out->state = GPU_SILENT;
        return;
    }
    out->mem_total_mb = amd_read_number(card, -1, "mem_info_vram_total") / AMD_MIB;
    out->mem_used_mb = amd_read_number(card, -1, "mem_info_vram_used") / AMD_MIB;
    out->util_pct = amd_read_number(card, -1, "gpu_busy_percent");
    if (isnan(out->mem_total_mb))
        out->state = GPU_LOST;
    if (sensors < 0)
        return;
    double uw = amd_read_number(card, sensors, "power1_average");
    if (isnan(uw))
        uw = amd_read_number(card, sensors, "power1_input");
    out->power_w = uw / 1e6;
    out->power_limit_w = amd_read_number(card, sensors, "power1_cap") / 1e6;
    out->temperature_c = amd_read_number(card, sensors, "temp1_input") / 1e3;
    out->sm_clock_mhz = amd_read_number(card, sensors, "freq1_input") / 1e6;
}

const struct gpu_source gpu_source_amd = {.vendor = "amd", .open = amd_open, .read = amd_read};
