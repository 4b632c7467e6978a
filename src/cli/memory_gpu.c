/* SPDX-License-Identifier: Apache-2.0 */
/* memory_gpu: see memory_gpu.h. */
#include "cli/memory_gpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/memory_trace.h"

#define MEMORY_GPU_SCHEMA_VERSION 1
#define MEMORY_GPU_FREE "inactive" /* as torch calls the state of a free block */

const char memory_gpu_query[] =
    "SELECT rank, host, pid, device, state, function_name, file, lineno, sum(bytes) AS bytes,"
    " sum(requested_bytes) AS requested_bytes, sum(blocks) AS blocks FROM python.gpu_blocks"
    " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY bytes DESC";

enum memory_gpu_column {
    MEMORY_GPU_RANK = 0,
    MEMORY_GPU_HOST,
    MEMORY_GPU_PID,
    MEMORY_GPU_DEVICE,
    MEMORY_GPU_STATE,
    MEMORY_GPU_FUNCTION,
    MEMORY_GPU_FILE,
    MEMORY_GPU_LINENO,
    MEMORY_GPU_BYTES,
    MEMORY_GPU_REQUESTED,
    MEMORY_GPU_BLOCKS
};

void memory_gpu_put_json(const struct result *rows, struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MEMORY_GPU_SCHEMA_VERSION);
    json_key(&j, "places");
    json_array_begin(&j);
    for (size_t row = 0; row < rows->n_rows; row++) {
        json_object_begin(&j);
        for (size_t i = 0; i < rows->n_columns; i++) {
            struct result_cell c = result_at(rows, row, i);
            json_key(&j, rows->columns[i].name);
            if (c.kind == SQL_INTEGER)
                json_int(&j, c.i);
            else
                json_string(&j, result_string(rows, row, i));
        }
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static bool memory_gpu_is_free(const struct result *rows, size_t row) {
    const char *state = result_string(rows, row, MEMORY_GPU_STATE);
    return state && strcmp(state, MEMORY_GPU_FREE) == 0;
}

/* The same device of the same process. */
static bool memory_gpu_is_same(const struct result *rows, size_t a, size_t b) {
    const char *x = result_string(rows, a, MEMORY_GPU_HOST), *y = result_string(rows, b, MEMORY_GPU_HOST);
    return result_at(rows, a, MEMORY_GPU_PID).i == result_at(rows, b, MEMORY_GPU_PID).i &&
           result_kind(rows, a, MEMORY_GPU_DEVICE) == result_kind(rows, b, MEMORY_GPU_DEVICE) &&
           result_at(rows, a, MEMORY_GPU_DEVICE).i == result_at(rows, b, MEMORY_GPU_DEVICE).i &&
           strcmp(x ? x : "", y ? y : "") == 0;
}

/* Of the device; "?": torch named none that there can be. */
static void memory_gpu_put_number(const struct result *rows, size_t row, char *buf, size_t cap) {
    struct result_cell device = result_at(rows, row, MEMORY_GPU_DEVICE);
    snprintf(buf, cap, "?");
    if (device.kind == SQL_INTEGER)
        snprintf(buf, cap, "%" PRId64, device.i);
}

/* "GPU 0: 14.2 GiB in torch's allocator: 12.0 GiB in use, 2.2 GiB free; 1204 blocks" */
static void memory_gpu_put_device(const struct result *rows, size_t first, struct strbuf *out) {
    double used = 0, free = 0, blocks = 0;
    char text[32];
    for (size_t i = first; i < rows->n_rows; i++) {
        if (!memory_gpu_is_same(rows, first, i))
            continue;
        *(memory_gpu_is_free(rows, i) ? &free : &used) += result_number(rows, i, MEMORY_GPU_BYTES);
        blocks += result_number(rows, i, MEMORY_GPU_BLOCKS);
    }
    struct result_cell rank = result_at(rows, first, MEMORY_GPU_RANK);
    memory_gpu_put_number(rows, first, text, sizeof text);
    strbuf_addf(out, "GPU %s", text);
    if (rank.kind == SQL_INTEGER)
        strbuf_addf(out, " of rank %" PRId64, rank.i);
    text_human_bytes(text, sizeof text, used + free);
    strbuf_addf(out, ": %s in torch's allocator: ", text);
    text_human_bytes(text, sizeof text, used);
    strbuf_addf(out, "%s in use, ", text);
    text_human_bytes(text, sizeof text, free);
    strbuf_addf(out, "%s free; %.0f block%s\n", text, blocks, blocks == 1 ? "" : "s");
}

void memory_gpu_put_text(const struct result *rows, long top, struct strbuf *out) {
    char text[32], device[32];
    double all = 0;
    size_t places = 0, shown = 0;
    for (size_t i = 0; i < rows->n_rows; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = !memory_gpu_is_same(rows, i, k);
        if (first)
            memory_gpu_put_device(rows, i, out);
        if (memory_gpu_is_free(rows, i))
            continue;
        all += result_number(rows, i, MEMORY_GPU_BYTES);
        places++;
    }
    if (!places)
        return;
    strbuf_addf(out, "\n%12s %8s %8s %4s  %s\n", "BYTES", "SHARE", "BLOCKS", "GPU", "FUNCTION (FILE:LINE)");
    for (size_t i = 0; i < rows->n_rows && shown < (size_t)top; i++) {
        double bytes = result_number(rows, i, MEMORY_GPU_BYTES);
        if (memory_gpu_is_free(rows, i))
            continue;
        shown++;
        text_human_bytes(text, sizeof text, bytes);
        memory_gpu_put_number(rows, i, device, sizeof device);
        strbuf_addf(out, "%12s %6.1f %% %8.0f %4s  ", text, all > 0 ? 100 * bytes / all : 0,
                    result_number(rows, i, MEMORY_GPU_BLOCKS), device);
        memory_put_place(out, result_string(rows, i, MEMORY_GPU_FUNCTION),
                         result_string(rows, i, MEMORY_GPU_FILE), result_number(rows, i, MEMORY_GPU_LINENO));
    }
    if (shown < places)
        strbuf_addf(out, "and %zu more: --top %zu shows them\n", places - shown, places);
}
