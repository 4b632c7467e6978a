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

#include "base/procfs.h"
#include "client/gpu/gpu_source.h"

#define AMD_VENDOR 0x1002
#define AMD_CARDS 128 /* numbers of cards that are tried; others have some of them */
#define AMD_HWMON 64  /* the same, of sensors */
#define AMD_PATH 256
#define AMD_MIB (1024.0 * 1024.0)

static const char *amd_root = "/sys", *amd_proc = "/proc";

static struct {
    int cards[GPU_MAX];
    int sensors[GPU_MAX]; /* -1 none */
    size_t n;
} amd;

void amdgpu_set_root(const char *sys, const char *proc) {
    amd_root = sys;
    amd_proc = proc;
}

/* 0 or -1. */
static int amd_read_file(const char *path, char *buf, size_t cap) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return -1;
    buf[n] = '\0';
    return 0;
}

/* A line of a file of a card, or with `sensor` of its sensors. 0 or -1. */
static int amd_read_text(int card, int sensor, const char *name, char *buf, size_t cap) {
    char path[AMD_PATH];
    if (sensor < 0)
        snprintf(path, sizeof path, "%s/class/drm/card%d/device/%s", amd_root, card, name);
    else
        snprintf(path, sizeof path, "%s/class/drm/card%d/device/hwmon/hwmon%d/%s", amd_root, card, sensor,
                 name);
    if (amd_read_file(path, buf, cap) != 0)
        return -1;
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

/* ---- processes ---- */

#define AMD_PIDS 65536
#define AMD_FDS 4096     /* of a process that are looked at */
#define AMD_CLIENTS 4096 /* of all processes together */
#define AMD_KEYS 8192    /* bytes of one that are read */

/* What has memory on a device: an open file of it, with all copies of that file. */
struct amd_client {
    char slot[32]; /* of its device, as PCI names it; "" unknown */
    uint64_t id;   /* one of that device */
    double bytes;  /* NAN unknown */
};

/* The value of a key at the begin of a line, without blanks before it; NULL: there is none. */
static const char *amd_find_key(const char *text, const char *key) {
    size_t len = strlen(key);
    for (const char *at = text, *end; at; at = end ? end + 1 : NULL) {
        if (strncmp(at, key, len) == 0 && at[len] == ':')
            return at + len + 1 + strspn(at + len + 1, " \t");
        end = strchr(at, '\n');
    }
    return NULL;
}

/* A number with its unit; without one these are bytes. */
static double amd_read_bytes(const char *value) {
    char *end;
    double v = value ? strtod(value, &end) : NAN;
    if (!value || end == value || !isfinite(v) || v < 0)
        return NAN;
    end += strspn(end, " ");
    return strncmp(end, "KiB", 3) == 0 ? v * 1024 : strncmp(end, "MiB", 3) == 0 ? v * AMD_MIB : v;
}

static bool amd_copy_word(const char *value, char *buf, size_t cap) {
    size_t len = value ? strcspn(value, " \t\n") : 0;
    if (len == 0 || len >= cap)
        return false;
    memcpy(buf, value, len);
    buf[len] = '\0';
    return true;
}

/* The client of an open file. False: it is none of AMD's driver. Newer kernels have what is resident under
 * another key. */
static bool amd_read_client(const char *text, struct amd_client *out) {
    char driver[16];
    const char *id = amd_find_key(text, "drm-client-id"), *bytes = amd_find_key(text, "drm-resident-vram");
    if (!amd_copy_word(amd_find_key(text, "drm-driver"), driver, sizeof driver) ||
        strcmp(driver, "amdgpu") != 0 || !id ||
        !amd_copy_word(amd_find_key(text, "drm-pdev"), out->slot, sizeof out->slot))
        return false;
    out->id = strtoull(id, NULL, 10);
    out->bytes = amd_read_bytes(bytes ? bytes : amd_find_key(text, "drm-memory-vram"));
    return true;
}

/* True if the file of that number is one of a graphics card: what else is open is not looked at. */
static bool amd_is_card(pid_t pid, pid_t fd) {
    static const char card[] = "/dev/dri/";
    char path[AMD_PATH], to[sizeof card];
    snprintf(path, sizeof path, "%s/%d/fd/%d", amd_proc, (int)pid, (int)fd);
    ssize_t n = readlink(path, to, sizeof to - 1);
    return n == (ssize_t)sizeof card - 1 && memcmp(to, card, (size_t)n) == 0;
}

/* Its place in the list; -1: none of the devices. */
static int amd_find_slot(const char *slot) {
    for (size_t i = 0; i < amd.n; i++) {
        char path[AMD_PATH], text[1024], mine[32];
        snprintf(path, sizeof path, "%s/class/drm/card%d/device/uevent", amd_root, amd.cards[i]);
        const char *value =
            amd_read_file(path, text, sizeof text) == 0 ? strstr(text, "PCI_SLOT_NAME=") : NULL;
        if (value && amd_copy_word(strchr(value, '=') + 1, mine, sizeof mine) && strcmp(mine, slot) == 0)
            return (int)i;
    }
    return -1;
}

struct amd_search {
    struct amd_client seen[AMD_CLIENTS];
    size_t n_seen;
    struct gpu_holding *list;
    size_t n, cap;
    bool is_cut, is_old; /* there was more than room; a kernel without these keys */
};

/* Processes that share a file share its memory: the first one has it. */
static bool amd_is_seen(struct amd_search *s, const struct amd_client *c) {
    for (size_t i = 0; i < s->n_seen; i++)
        if (s->seen[i].id == c->id && strcmp(s->seen[i].slot, c->slot) == 0)
            return true;
    if (s->n_seen == AMD_CLIENTS) {
        s->is_cut = true;
        return true;
    }
    s->seen[s->n_seen++] = *c;
    return false;
}

static void amd_add_client(struct amd_search *s, pid_t pid, const struct amd_client *c) {
    int place = amd_find_slot(c->slot);
    double mb = c->bytes / AMD_MIB;
    if (place < 0)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].place == place && s->list[i].pid == pid) {
            s->list[i].mem_used_mb += mb;
            return;
        }
    if (s->n < s->cap)
        s->list[s->n++] = (struct gpu_holding){.place = place, .pid = pid, .mem_used_mb = mb};
    else
        s->is_cut = true;
}

static void amd_list_of(struct amd_search *s, pid_t pid) {
    static pid_t fds[AMD_FDS];
    char path[AMD_PATH], text[AMD_KEYS];
    struct amd_client c;
    snprintf(path, sizeof path, "%s/%d/fd", amd_proc, (int)pid);
    ssize_t n = procfs_list_numbers(path, fds, AMD_FDS);
    for (ssize_t i = 0; i < n && i < AMD_FDS; i++) {
        if (!amd_is_card(pid, fds[i]))
            continue;
        snprintf(path, sizeof path, "%s/%d/fdinfo/%d", amd_proc, (int)pid, (int)fds[i]);
        if (amd_read_file(path, text, sizeof text) != 0)
            continue;
        s->is_old = s->is_old || !amd_find_key(text, "drm-driver");
        if (amd_read_client(text, &c) && !amd_is_seen(s, &c))
            amd_add_client(s, pid, &c);
    }
    s->is_cut = s->is_cut || n > AMD_FDS;
}

static size_t amd_list_holdings(struct gpu_holding *list, size_t cap, char *why) {
    static pid_t pids[AMD_PIDS];
    static struct amd_search s;
    ssize_t n = procfs_list_numbers(amd_proc, pids, AMD_PIDS);
    s = (struct amd_search){.list = list, .cap = cap};
    for (ssize_t i = 0; i < n && i < AMD_PIDS; i++)
        amd_list_of(&s, pids[i]);
    if (n < 0)
        snprintf(why, GPU_WHY, "/proc cannot be read");
    else if (s.is_cut || n > AMD_PIDS)
        snprintf(why, GPU_WHY, "there are more of them than are listed");
    else if (s.is_old)
        snprintf(why, GPU_WHY, "this kernel does not have what processes have on AMD's GPUs");
    else if (geteuid() != 0)
        snprintf(why, GPU_WHY, "what other users have on AMD's GPUs is known to root only");
    return s.n;
}

const struct gpu_source gpu_source_amd = {
    .vendor = "amd", .open = amd_open, .read = amd_read, .list_holdings = amd_list_holdings};
