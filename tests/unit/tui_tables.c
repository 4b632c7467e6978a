/* SPDX-License-Identifier: Apache-2.0 */
/* tui_tables: see tui_tables.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/tui_fixture.h"
#include "unit/tui_tables.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"

#define MAX_COLUMNS 32
#define HUGE_ROWS 10000

/* The next part of a text up to a '|', into `buf`; where it goes on, NULL at the end. */
static const char *next_part(const char *from, char *buf, size_t cap) {
    size_t len = strcspn(from, "|");
    (void)snprintf(buf, cap, "%.*s", (int)len, from);
    return from[len] ? from + len + 1 : NULL;
}

static void put_value(struct result *r, size_t column, const char *text) {
    char *end;
    if (!*text)
        return;
    if (*text == '\'') {
        assert_int_equal(result_put_text(r, column, SQL_TEXT, text + 1, strlen(text + 1)), 0);
        return;
    }
    long long whole = strtoll(text, &end, 10);
    if (!*end) {
        result_put_int(r, column, whole);
        return;
    }
    double real = strtod(text, &end);
    if (!*end)
        result_put_real(r, column, real);
    else
        assert_int_equal(result_put_text(r, column, SQL_TEXT, text, strlen(text)), 0);
}

static void put_line(struct result *r, const char *line) {
    char text[512];
    assert_int_equal(result_add_row(r), 0);
    for (size_t i = 0; line && i < r->n_columns; i++) {
        line = next_part(line, text, sizeof text);
        put_value(r, i, text);
    }
}

struct result *tables_rows(const char *columns, const char *const *lines) {
    char names[MAX_COLUMNS][64];
    size_t n = 0;
    for (const char *p = columns; p && n < MAX_COLUMNS; n++)
        p = next_part(p, names[n], sizeof names[n]);
    struct result *r = result_new(n, 200000, (size_t)64 << 20);
    assert_non_null(r);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(result_name_column(r, i, names[i], ""), 0);
    for (; lines && *lines; lines++)
        put_line(r, *lines);
    return r;
}

/* ---- tensors ---- */

static const char tensor_columns[] =
    "name|kind|type|shape|dtype|device|bytes|module|storage_id|storage_bytes|shared|"
    "requires_grad|grad|first_step|age_s|id";

static const char *const tensors[] = {
    "model.embed.weight|parameter|Parameter|[32000, "
    "256]|torch.float32|cpu|32768000|model.embed|101|32768000|1|1|1|0|612.5|1001",
    "model.head.weight|parameter|Parameter|[32000, "
    "256]|torch.float32|cpu|32768000|model.head|101|32768000|1|1|1|0|612.5|1002",
    "model.layers.0.attn.qkv.weight|parameter|Parameter|[768, "
    "256]|torch.float32|cpu|786432|model.layers.0|102|786432|0|1|1|0|612.5|1003",
    "model.layers.0.attn.qkv.weight.grad|gradient|Tensor|[768, "
    "256]|torch.float32|cpu|786432|model.layers.0|103|786432|0|0|0|1|612.1|1004",
    "model.layers.1.attn.qkv.weight|parameter|Parameter|[768, "
    "256]|torch.float32|cpu|786432|model.layers.1|104|786432|0|1|1|0|612.5|1005",
    "model.layers.1.attn.mask|buffer|Tensor|[1, 128, "
    "128]|torch.bool|cpu|16384|model.layers.1|105|16384|0|0|0|0|612.5|1006",
    "optimizer.state[model.head.weight].exp_avg|optimizer|Tensor|[32000, "
    "256]|torch.float32|cpu|32768000|model.head|106|32768000|0|0|0|1|611.9|1007",
    "optimizer.state[model.head.weight].exp_avg_sq|optimizer|Tensor|[32000, "
    "256]|torch.float32|cpu|32768000|model.head|107|32768000|0|0|0|1|611.9|1008",
    "train_step.loss|local|Tensor|[]|torch.float32|cpu|4||108|4|0|1|0|4711|0.2|1009",
    "train_step.batch|local|Tensor|[8, 128]|torch.int64|cpu|8192||109|8192|0|0|0|4711|0.2|1010",
    "__main__.history[0]|global|Tensor|[8, 256]|torch.float32|cpu|8192||110|8192|0|1|0|12|598|1011",
    "__main__.view|global|Tensor|[4, 64]|torch.float32|cpu|1024|||||0|||3.5|1012",
    NULL};

static const char *const tensors_later[] = {
    "model.embed.weight|parameter|Parameter|[32000, "
    "256]|torch.float32|cpu|32768000|model.embed|101|32768000|1|1|1|0|622.5|1001",
    "model.head.weight|parameter|Parameter|[32000, "
    "256]|torch.float32|cpu|32768000|model.head|101|32768000|1|1|1|0|622.5|1002",
    "model.layers.0.attn.qkv.weight|parameter|Parameter|[768, "
    "256]|torch.float32|cpu|786432|model.layers.0|102|786432|0|1|1|0|622.5|1003",
    "__main__.history[0]|global|Tensor|[8, 256]|torch.float32|cpu|8192||110|8192|0|1|0|12|608|1011",
    "__main__.history[1]|global|Tensor|[8, 256]|torch.float32|cpu|8192||111|8192|0|1|0|4720|9|1013",
    "__main__.history[2]|global|Tensor|[8, 256]|torch.float32|cpu|8192||112|8192|0|1|0|4721|8|1014",
    NULL};

static const char *const tensors_hostile[] = {
    "evil\033[2J\033]0;x\007name|para\033[31mmeter|\xff\xfe|[\xe8\xa8\x93, 4]|torch.\xcc\x81"
    "float32|c\npu|9223372036854775807|mo\rdule|1|9223372036854775807|7|2|-3|-1|-5|1",
    "\xe8\xa8\x93\xe7\xb7\xb4\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab.\xe9\x87\x8d\xe3\x81\xbf.weight|local|"
    "Tensor|[1]|torch.float32|cpu|4|"
    "\xe8\xa8\x93\xe7\xb7\xb4|2|4|0|1|1|1|1e300|2",
    "|||||||||||||||", "a\xcc\x81\xcc\x82\xcc\x83\xcc\x84 b|global|T||||-5|\xe2\x80\xae|2|1e300||||||3",
    NULL};

static struct result *tensors_huge(void) {
    struct result *r = tables_rows(tensor_columns, NULL);
    char line[256];
    for (int i = 0; i < HUGE_ROWS; i++) {
        (void)snprintf(
            line, sizeof line,
            "model.layers.%d.mlp.experts.%d.weight|parameter|Parameter|[%d, 4096]|torch.bfloat16|cuda:%d|"
            "%d|model.layers.%d|%d|%d|0|1|1|0|86400.5|%d",
            i / 100, i % 100, 1024 + i % 7, i % 8, (1024 + i % 7) * 8192, i / 100, 5000 + i,
            (1024 + i % 7) * 8192, 90000 + i);
        put_line(r, line);
    }
    return r;
}

struct result *tables_tensors(enum tables_kind kind) {
    if (kind == TABLES_HUGE)
        return tensors_huge();
    return tables_rows(tensor_columns, kind == TABLES_NONE    ? NULL
                                       : kind == TABLES_NAMES ? tensors_hostile
                                       : kind == TABLES_LATER ? tensors_later
                                                              : tensors);
}

struct result *tables_growth(enum tables_kind kind) {
    static const char *const lines[] = {
        "Tensor|[8, 256]|torch.float32|cpu|global|__main__.history|212|1736704|12|98304|1638400|8192|4511",
        "Tensor|[8, 128]|torch.int64|cpu|local|train_step|2|16384|1|8192|8192|41|4511",
        "Tensor|[768, 256]|torch.float32|cpu|gradient|model.layers.0|4|3145728|4|3145728|0|0|4511",
        "Tensor|[1]|torch.float32|cpu||\xe8\xa8\x93\xe7\xb7\xb4\033[2J||||||||", NULL};
    return tables_rows(
        "type|shape|dtype|device|kind|owner|count|bytes|count_then|bytes_then|growth_bytes|growth_per_step|"
        "since_step",
        kind == TABLES_NONE ? NULL : lines);
}

/* ---- modules ---- */

static const char module_columns[] =
    "path|parent|depth|name|class|parameters|own_parameters|bytes|dtype|device|training|compiled|"
    "hooks|forward_ms|backward_ms|calls|activation_bytes|grad_norm|nan|root";

static const char *const modules[] = {
    "model||0|model|Transformer|17188864|0|68755456|float32|cpu|1|0|0|41.2|80.5|1|1048576|3.25|0|__main__",
    "model.embed|model|1|embed|Embedding|8192000|8192000|32768000|float32|cpu|1|0|0|0.41|1.2|1|262144|0.5|0|_"
    "_main__",
    "model.layers|model|1|layers|ModuleList|393216|0|1589248|float32|cpu|1|0|0||||||0|__main__",
    "model.layers.0|model.layers|2|'0|Block|196608|0|786432|float32|cpu|1|0|0|18.04|36.1|1|262144|0.77|0|__"
    "main__",
    "model.layers.0.attn|model.layers.0|3|attn|Attention|196608|0|786432|float32|cpu|1|1|2|12.5|25|1|262144|"
    "0.31|0|__main__",
    "model.layers.0.attn.qkv|model.layers.0.attn|4|qkv|Linear|196608|196608|786432|float32|cpu|1|0|0|6.2|12."
    "9|1|786432|0.31|0|"
    "__main__",
    "model.layers.1|model.layers|2|'1|Block|196608|0|802816|float32|cpu|1|0|0|19|37.2|1|262144||1|__main__",
    "model.layers.1.attn|model.layers.1|3|attn|Attention|196608|0|802816|float32|cpu|1|0|0|12.9|25.6|1|"
    "262144||1|__main__",
    "model.layers.1.drop|model.layers.1|3|drop|Dropout|0|0|0|||0|0|0|0.02|0.03|1|262144||0|__main__",
    "model.head|model|1|head|Linear|8192000|8192000|32768000|float32|cpu|1|0|0|3.1|5.9|1|32768000|1.5|0|__"
    "main__",
    "teacher||0|teacher|OptimizedModule|1000|0|4000|bfloat16|cuda:0|0|1||||||||train",
    NULL};

static const char *const modules_later[] = {
    "model||0|model|Transformer|17188864|0|68755456|float32|cpu|1|0|0|||||||__main__",
    "model.head|model|1|head|Linear|8192000|8192000|32768000|float32|cpu|1|0|0|||||||__main__", NULL};

static const char *const modules_hostile[] = {
    "a||0|a\033[2J|\xe8\xa8\x93\xe7\xb7\xb4|-5|1e300|9223372036854775807|f\xff|c\npu|7|-3|1e300|1e300|-2|"
    "1e18|-1|1e300|\033[31m|r",
    "a.b|a|99|\xe2\x80\xae"
    "b|C|||||||||||||||",
    "|||||||||||||||||||",
    "a.b|a.b|1|||||||||||||||||",
    "a|a|0|||||||||||||||||",
    "x.y|gone|-7|\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab|T|5||||||||inf|inf|||||",
    NULL};

/* A chain that is deep, then as many as there may be. */
static void put_huge_modules(struct result *r) {
    char line[512], path[256] = "deep";
    put_line(r, "deep||0|deep|Deep|123456789012|0|246913578024|bfloat16|cuda:7|1|1|0|12345.6|99999.9|100|1|0."
                "001|0|__main__");
    for (int i = 1; i < HUGE_ROWS; i++) {
        (void)snprintf(line, sizeof line,
                       "%s.m%d|%s|%d|m%d|Linear|4096|4096|8192|bfloat16|cuda:7|1|0|0|%d.5|1|1|1|1|0|__main__",
                       path, i, path, i, i, i % 977);
        put_line(r, line);
        if (strlen(path) < 120)
            (void)snprintf(path + strlen(path), sizeof path - strlen(path), ".m%d", i);
    }
}

struct result *tables_modules(enum tables_kind kind) {
    bool is_empty = kind == TABLES_NONE || kind == TABLES_HUGE;
    struct result *r = tables_rows(module_columns, is_empty               ? NULL
                                                   : kind == TABLES_NAMES ? modules_hostile
                                                   : kind == TABLES_LATER ? modules_later
                                                                          : modules);
    if (kind == TABLES_HUGE)
        put_huge_modules(r);
    return r;
}

/* ---- loaders ---- */

/* Two that are iterated over, of which one runs dry, and one of before. */
struct result *tables_loaders(enum tables_kind kind) {
    static const char columns[] =
        "timestamp|loader|workers|prefetch|outstanding|ready|sent|received|wait_ms|batches|dataset";
    struct result *r = tables_rows(columns, NULL);
    char line[256];
    if (kind == TABLES_NAMES) {
        put_line(r, "1700000000.5|1|-3|1e300|-1|9223372036854775807|||1e300|-7|\xe8\xa8\x93\033[2J\xff");
        put_line(r, "|||||||||||");
        return r;
    }
    for (int i = 0; i < 60 && kind != TABLES_NONE; i++) {
        int ready = i < 40 ? 4 - i % 3 : i < 50 ? 1 : 0;
        (void)snprintf(line, sizeof line, "%d.25|9001|2|2|4|%d|%d|%d|%.1f|%d|TextDataset", 1700000000 + i,
                       ready, 100 + i, 96 + i, i < 40 ? 0.2 : i * 1.5, i < 40 ? 9 : 3);
        put_line(r, line);
        (void)snprintf(line, sizeof line, "%d.25|9002|0|||||%d|12.5|1|ValidationSet", 1700000000 + i, 3 * i);
        put_line(r, line);
        if (i < 20)
            put_line(r, "1700000019.25|8000|2|2|4|4|50|46|0.1|9|Before");
    }
    return r;
}

struct result *tables_workers(enum tables_kind kind) {
    static const char *const lines[] = {"9001|0|5151|1|R|97.5|734003200|2|tokenize|/home/ada/data/text.py|88",
                                        "9001|1|5152|0|Z|0|0|2|||", NULL};
    static const char *const hostile[] = {
        "1|-1|-5|7|\033|1e300|-9|1e300|\xe9\x87\x8d\xe3\x81\xbf\033[2J|\xff/\xe2\x80\xae|-1", "77||||||||||",
        NULL};
    struct result *r =
        tables_rows("loader|worker|worker_pid|alive|state|cpu_pct|rss_bytes|outstanding|func|file|lineno",
                    kind == TABLES_NAMES                         ? hostile
                    : kind == TABLES_NONE || kind == TABLES_HUGE ? NULL
                                                                 : lines);
    char line[128];
    for (int i = 0; i < 512 && kind == TABLES_HUGE; i++) {
        (void)snprintf(line, sizeof line, "9001|%d|%d|1|S|%d|%d|1|collate|/data/collate.py|%d", i, 100000 + i,
                       i % 100, i << 20, i);
        put_line(r, line);
    }
    return r;
}

/* ---- GPUs ---- */

static const char gpu_columns[] =
    "timestamp|device|uuid|name|slice|gpu_util|mem_used_mb|mem_total_mb|power_w|power_limit_w|temperature_c|"
    "sm_clock_mhz|throttle|ecc|xid|state|silent_s|assumed|sm_active|tensor_active|dram_active";

/* One that is busy, one that is slowed by heat, one that is divided, one that does not answer. */
struct result *tables_gpus(enum tables_kind kind) {
    static const char *const hostile[] = {
        "1700000000|-1|evil\033[2J|\xe8\xa8\x93\033]0;x\007|-9|1e300|-5|"
        "9223372036854775807|1e300|-1|1e300||\xff,heat|"
        "9223372036854775807|1e300|no\033answer|1e300|7|1e300|-5|nan",
        "||||||||||||||||||||", "1700000001|9223372036854775807|||2|||||||||||lost||||101|100", NULL};
    struct result *r = tables_rows(gpu_columns, kind == TABLES_NAMES ? hostile : NULL);
    char line[512];
    for (int i = 0; i < 60 && (kind == TABLES_NORMAL || kind == TABLES_LATER); i++) {
        const int at = 1700000000 + i;
        (void)snprintf(line, sizeof line,
                       "%d.25|0|GPU-6a1f|NVIDIA H100 80GB "
                       "HBM3||%d|61234.5|81559|652.5|700|61|1755|power|0||ok||0|71.4|52|38",
                       at, 90 + i % 9);
        put_line(r, line);
        (void)snprintf(line, sizeof line,
                       "%d.25|1|GPU-77c0|NVIDIA H100 80GB "
                       "HBM3||%d|3012|81559|412|700|89|1200|power,heat|0||ok||0|6.2|0|3",
                       at, 40 + i % 7);
        put_line(r, line);
        (void)snprintf(line, sizeof line,
                       "%d.25|2|GPU-9be2|NVIDIA H100 80GB HBM3|||20000|81559|120|700|35|1980||0||ok||1|||",
                       at);
        put_line(r, line);
        (void)snprintf(line, sizeof line,
                       "%d.25|2|MIG-11aa|NVIDIA H100 80GB HBM3 MIG 1g.10gb|0||8000|9984||||||||ok||1|||", at);
        put_line(r, line);
    }
    if (kind == TABLES_NORMAL || kind == TABLES_LATER)
        put_line(r, "1700000060|3|GPU-0d13|NVIDIA H100 80GB HBM3||||||||||||no answer|12.5|1|||");
    for (int i = 0; i < 100 && kind == TABLES_HUGE; i++) {
        (void)snprintf(line, sizeof line, "1700000060|%d|GPU-%d|Model %d||%d|1|2|3|4|5|6||0||ok||0|||", i, i,
                       i, i);
        put_line(r, line);
    }
    return r;
}

/* The target and others on two of them. */
struct result *tables_gpu_processes(enum tables_kind kind) {
    static const char *const normal[] = {"0||4242|3|python|ada|61000|74.8|1|0",
                                         "1||5151||nobody knows||3000|3.7|0|0",
                                         "0||5150||Xorg|root|60|0.1|0|0", "2|0|9999|||||||", NULL};
    static const char *const hostile[] = {
        "-1|-9|9223372036854775807|-3|evil\033[2J|\xe8\xa8\x93\007|1e300|-5|7|5",
        "9223372036854775807|1|2||||||1|", "||||||||||", "0||-7|1e300|x|y|-1|1e300|0|", NULL};
    const char *const *lines = kind == TABLES_NAMES ? hostile : NULL;
    if (kind == TABLES_NORMAL || kind == TABLES_LATER)
        lines = normal;
    return tables_rows("device|slice|process_pid|process_rank|command|user|mem_used_mb|mem_share|own|assumed",
                       lines);
}

/* ---- memory ---- */

struct result *tables_memory(enum tables_kind kind) {
    struct result *r = tables_rows("timestamp|memory_mb|rss_mb|gpu_allocated_mb|gc_objects", NULL);
    char line[128];
    if (kind == TABLES_NAMES) {
        put_line(r, "1700000000|-5|1e300||9223372036854775807");
        put_line(r, "||||");
    }
    for (int i = 0; i < 120 && kind != TABLES_NONE && kind != TABLES_NAMES; i++) {
        (void)snprintf(line, sizeof line, "%d.25|%d|%d|%s|%d", 1700000000 + i, 1000 + 4 * i, 990 + 4 * i,
                       kind == TABLES_HUGE ? "80000" : "", 120000 + 50 * i);
        put_line(r, line);
    }
    return r;
}

struct result *tables_memory_process(enum tables_kind kind) {
    struct result *r = tables_rows("timestamp|pss_bytes|cgroup_memory_bytes|cgroup_limit_bytes", NULL);
    char line[128];
    for (int i = 0; i < 120 && kind != TABLES_NONE && kind != TABLES_NAMES; i++) {
        (void)snprintf(line, sizeof line, "%d.25|%s|%lld|4294967296", 1700000000 + i,
                       i % 10 ? "" : "943718400", (1100LL + 4 * i) << 20);
        put_line(r, line);
    }
    return r;
}

struct result *tables_sites(enum tables_kind kind) {
    static const char columns[] =
        "function_name|file|lineno|domain|live_bytes|allocated_bytes|calls|stack_id";
    static const char *const normal[] = {
        "train_step|/home/ada/train.py|88|torch|209715200|524288000|1200|17",
        "Linear.forward|/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py|134|torch|62914560|"
        "9663676416|88000|",
        "tokenize|/home/ada/data/text.py|41|python|8388608|1073741824|410000|23",
        "cv::imdecode|libopencv_core.so|0|native|0|262144000|300|",
        "|||native|1048576|1048576|3|",
        NULL};
    static const char *const later[] = {"train_step|/home/ada/train.py|88|torch|241172480|555745280|1260|17",
                                        "collate|/home/ada/data/text.py|77|python|1048576|2097152|20|29",
                                        NULL};
    static const char *const hostile[] = {
        "evil\033[2J\xe8\xa8\x93|\xff/\xe2\x80\xae.py|-5|c\npu|9223372036854775807|1e300|-1|-3", "|||||||",
        NULL};
    struct result *r = tables_rows(columns, kind == TABLES_NAMES                         ? hostile
                                            : kind == TABLES_LATER                       ? later
                                            : kind == TABLES_NONE || kind == TABLES_HUGE ? NULL
                                                                                         : normal);
    char line[256];
    for (int i = 0; i < 1000 && kind == TABLES_HUGE; i++) {
        (void)snprintf(line, sizeof line, "function_%d|/job/part_%d.py|%d|python|%d|%d|%d|%d", i, i % 10, i,
                       (1000 - i) << 16, (1000 - i) << 18, i, i);
        put_line(r, line);
    }
    return r;
}

struct result *tables_alloc_stacks(enum tables_kind kind) {
    static const char *const normal[] = {
        "<module> (train.py);main (train.py);train_step (train.py)|209715200",
        "<module> (train.py);main (train.py);train_step (train.py);Linear.forward (linear.py)|62914560",
        "worker (text.py);tokenize (text.py)|8388608", NULL};
    static const char *const hostile[] = {"evil\033[2J;\xe8\xa8\x93\xff;;a|9223372036854775807", ";;;|1",
                                          "|5", "x|", NULL};
    return tables_rows("stack|bytes", kind == TABLES_NONE ? NULL : kind == TABLES_NAMES ? hostile : normal);
}

struct result *tables_holders(enum tables_kind kind) {
    static const char *const lines[] = {
        "|all|||||||62.5||||54321",
        "losses@train|list|Tensor []|4120|33512|940|7520|1|62.4|1||||",
        "cache|lru_cache|Tensor [256, 1024]|512|536870912|40|41943040|0.5|62.4|0||0|",
        "replay@main|list|tuple|9000|94371840|1200|12582912||62.4|0|1000||",
        "history@train|tensor|Tensor [4096, 4096]|1|67108864|||||0|||",
        NULL};
    static const char *const hostile[] = {
        "evil\033[2J\xe8\xa8\x93|\xff|c\npu|-1|9223372036854775807|-5|1e300|1e300|-2|7|-3|-9|",
        "||||||||||||", NULL};
    return tables_rows(
        "holder|kind|of|count|bytes|growth|growth_bytes|growth_per_step|since_s|graphs|room|hits|looked",
        kind == TABLES_NONE    ? NULL
        : kind == TABLES_NAMES ? hostile
                               : lines);
}

/* ---- answers ---- */

/* Rules are as long-lived as verdict_rules. */
static struct verdict_rule *new_rule(const char *code, const char *level, const char *screen,
                                     const char *is_state) {
    static struct {
        struct verdict_rule rule;
        char code[32], screen[32];
    } rules[64];
    static size_t next;
    size_t i = next++ % (sizeof rules / sizeof rules[0]);
    snprintf(rules[i].code, sizeof rules[i].code, "%s", code);
    snprintf(rules[i].screen, sizeof rules[i].screen, "%s", screen);
    rules[i].rule = (struct verdict_rule){.code = rules[i].code,
                                          .level = (enum verdict_level)atoi(level),
                                          .is_state = atoi(is_state) != 0,
                                          .screen = rules[i].screen};
    return &rules[i].rule;
}

struct verdicts tables_read_verdicts(const char *const *lines) {
    enum { CODE, LEVEL, TEXT, SCREEN, ADVICE, BRIEF, STATE, PARTS };
    struct verdicts out = {.n = 0};
    while (lines && lines[out.n])
        out.n++;
    out.items = calloc(out.n + 1, sizeof *out.items);
    assert_non_null(out.items);
    for (size_t i = 0; i < out.n; i++) {
        char parts[PARTS][VERDICT_TEXT];
        const char *at = lines[i];
        for (size_t k = 0; k < PARTS; k++) {
            assert_non_null(at);
            at = next_part(at, parts[k], sizeof parts[k]);
        }
        struct verdict *v = &out.items[i];
        v->rule = new_rule(parts[CODE], parts[LEVEL], parts[SCREEN], parts[STATE]);
        snprintf(v->text, sizeof v->text, "%s", parts[TEXT]);
        assert_true(strlen(parts[BRIEF]) < sizeof v->brief);
        snprintf(v->brief, sizeof v->brief, "%.*s", VERDICT_BRIEF - 1, parts[BRIEF]);
    }
    return out;
}

struct verdicts tables_verdicts(enum tables_kind kind) {
    static const char *const normal[] = {
        "STUCK|3|no step for 3m12s, the longest of the 200 before took 1.2 "
        "s; the main thread stands in all_reduce "
        "(distributed_c10d.py:2203)|threads|look there|STUCK in all_reduce|1",
        "GIL CONTENTION|2|the training thread waits for the GIL 34 % of the "
        "time (last 20 s); hog (4712) holds it 71 "
        "%|threads|give it a process|GIL CONTENTION by hog|0",
        NULL};
    static const char *const fine[] = {
        "MOVING|0|5 steps/s, 200 ms a step (median; 99 % within 210 ms; last 100 "
        "steps)|overview|nothing|MOVING|1",
        "COMPUTE-BOUND|0|91 % of a step is forward (40.7 ms), backward (73 ms) and optimizer (7.18 ms), of 6 "
        "steps "
        "that were looked into|overview|nothing|COMPUTE-BOUND|0",
        NULL};
    static const char *const names[] = {
        "NAN|3|\xe8\xa8\x93\xe7\xb7\xb4\xe3\x81\xae\xe6\x90\x8d\xe5\xa4\xb1 "
        "was no number in evil\033[2Jname a\xcc\x81\xcc\x80\xcc\x82 "
        "wordthatisverylongandhasnoblankinitatallsothatitcannotbebrokenanywhe"
        "rebutinitsmiddlewhichisallright|none|no|NAN in "
        "\xe8\xa8\x93\xe7\xb7\xb4\xe3\x81\xae\xe6\x90\x8d\xe5\xa4\xb1 evil\033[2Jname|0",
        NULL};
    const char *const *lines = kind == TABLES_NORMAL ? normal : kind == TABLES_NAMES ? names : fine;
    return tables_read_verdicts(kind == TABLES_NONE ? NULL : lines);
}

/* A step every 0.2 s or so, the newest first: one in eleven waits for the loader, one in seventeen collects garbage, one in twenty is
 * looked into; losses are known but of the last three in a row, which are none. */
struct result *tables_steps(enum tables_kind kind) {
    static const char columns[] = "timestamp|step|duration_ms|data_ms|forward_ms|backward_ms|optimizer_ms|"
                                  "comm_ms|gc_ms|other_ms|loss|lr|grad_norm|nonfinite";
    struct result *r = tables_rows(columns, NULL);
    int n = kind == TABLES_NONE ? 0 : kind == TABLES_HUGE ? 2000 : 150;
    double at_s = FIXTURE_EPOCH_S - (kind == TABLES_LATER ? 0 : 0.15), big = kind == TABLES_HUGE ? 1e6 : 1;
    for (int i = 0; i < n; i++) {
        int step = (kind == TABLES_HUGE ? 123456789 : kind == TABLES_LATER ? 4712 : 4711) - i;
        double data = step % 11 == 0 ? 150 : 12, gc = step % 17 == 0 ? 60 : 2;
        double ms = 180 + data - 12 + gc - 2 + step % 7;
        bool is_first = i == n - 1, looked = step % 20 == 0, bad = step >= 4708 && step <= 4710;
        assert_int_equal(result_add_row(r), 0);
        result_put_real(r, 0, at_s);
        result_put_int(r, 1, step);
        result_put_real(r, 2, is_first ? NAN : ms * big);
        result_put_real(r, 3, kind == TABLES_NAMES ? NAN : data * big);
        result_put_real(r, 4, looked ? 55 * big : NAN);
        result_put_real(r, 5, looked ? 95 * big : NAN);
        result_put_real(r, 6, 9.5 * big);
        result_put_real(r, 8, kind == TABLES_NAMES ? NAN : gc * big);
        result_put_real(r, 9, looked ? 8.5 * big : NAN);
        result_put_real(r, 10, bad || kind == TABLES_NAMES ? NAN : 2.5 - 0.01 * (150 - i));
        result_put_real(r, 11, kind == TABLES_NAMES ? NAN : 0.0003 * (i < 75 ? 1 : 2));
        result_put_real(r, 12, kind == TABLES_NAMES ? NAN : 1 + 0.3 * (step % 5));
        if (bad && kind != TABLES_NAMES)
            assert_int_equal(result_put_text(r, 13, SQL_TEXT, "loss", 4), 0);
        at_s -= ms / 1000;
    }
    return r;
}

struct result *tables_step_looks(enum tables_kind kind) {
    struct result *r = tables_rows("timestamp|waits|gc", NULL);
    for (int i = 0; kind != TABLES_NONE && kind != TABLES_NAMES && i < 200; i++) {
        assert_int_equal(result_add_row(r), 0);
        result_put_real(r, 0, FIXTURE_EPOCH_S - 0.05 - i * 0.1);
        result_put_int(r, 1, i % 40 < 12);
        result_put_int(r, 2, 0);
    }
    return r;
}

static void take(struct app *a, enum app_feed_id id, struct querier_answer *answer) {
    struct app_feed *f = &a->feeds.feeds[id];
    assert_true(f->wanted);
    f->wanted = false;
    f->running = true;
    app_take_feed(a, id, answer);
}

void tables_answer(struct app *a, enum app_feed_id id, struct result *rows) {
    take(a, id,
         &(struct querier_answer){
             .kind = QUERIER_RUN, .rows = rows, .error_at = -1, .elapsed_s = 0.012, .statements = 1});
}

void tables_answer_verdicts(struct app *a, struct verdicts verdicts) {
    take(a, FEED_VERDICTS,
         &(struct querier_answer){
             .kind = QUERIER_JUDGE, .verdicts = verdicts, .error_at = -1, .elapsed_s = 0.012});
}

void tables_fail(struct app *a, enum app_feed_id id, const char *why) {
    struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1, .elapsed_s = 0.5};
    (void)err_set(&answer.error, ERR_FAILED, "%s", why);
    assert_true(a->feeds.feeds[id].wanted);
    app_take_feed(a, id, &answer);
}

/* Rows for a feed. */
static struct result *rows_for(enum app_feed_id id, enum tables_kind kind) {
    switch ((int)id) {
    case FEED_TENSORS:
        return tables_tensors(kind);
    case FEED_TENSOR_GROWTH:
        return tables_growth(kind);
    case FEED_MODULES:
        return tables_modules(kind);
    case FEED_LOADERS:
        return tables_loaders(kind);
    case FEED_LOADER_WORKERS:
        return tables_workers(kind);
    case FEED_STEPS:
        return tables_steps(kind);
    case FEED_STEP_SAMPLES:
        return tables_step_looks(kind);
    case FEED_MEMORY:
        return tables_memory(kind);
    case FEED_MEMORY_PROCESS:
        return tables_memory_process(kind);
    case FEED_MEMORY_SITES:
        return tables_sites(kind);
    case FEED_MEMORY_STACKS:
        return tables_alloc_stacks(kind);
    case FEED_MEMORY_HOLDERS:
        return tables_holders(kind);
    case FEED_GPU_PROCESSES:
        return tables_gpu_processes(kind);
    default:
        return tables_rows("", NULL);
    }
}

void tables_answer_all(struct app *a, enum tables_kind kind) {
    for (enum app_feed_id id; (id = app_feed_next(a, FEED_COUNT - 1)) != FEED_COUNT;)
        if (id == FEED_VERDICTS)
            tables_answer_verdicts(a, tables_verdicts(kind));
        else if (id == FEED_GPU) /* a machine has one where that is what is tested */
            tables_answer(a, id,
                          app_screen_top(a)->def == &screen_gpu ? tables_gpus(kind) : tables_rows("", NULL));
        else
            tables_answer(a, id, rows_for(id, kind));
}
