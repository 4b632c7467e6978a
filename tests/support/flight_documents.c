/* SPDX-License-Identifier: Apache-2.0 */
/* flight_documents: see flight_documents.h. */
#include "support/flight_documents.h"

const struct flight_form flight_forms[FLIGHT_FORMS] = {
    {"2.5", true, true, true, true, true},     {"2.6", true, true, true, true, false},
    {"2.7", true, false, true, true, true},    {"2.8", true, true, true, false, true},
    {"2.9", true, true, true, false, false},   {"2.10", true, true, true, false, true},
    {"2.4", false, false, true, true, true},   {"2.1", false, false, false, true, false},
    {"2.10", false, false, true, false, true},
};

int flight_made_completed(const struct flight_made *g) {
    int i = 1;
    while (i <= g->enqueued && g->over[i])
        i++;
    return i - 1;
}

/* The last that ended, as gloo notes it: not the last of those before which all have. */
static int noted(const struct flight_made *g) {
    int last = -1;
    for (int i = 1; i <= g->enqueued; i++)
        if (g->over[i])
            last = i;
    return last;
}

static void put_status(const struct flight_made *g, const struct flight_form *form, struct strbuf *out) {
    const char *quote = form->texts ? "\"" : "";
    strbuf_addf(out,
                "\"%d\": {\"last_completed_collective\":%s%d%s,\"last_enqueued_collective\":%s%d%s, "
                "\"last_started_collective\" : %s-1%s}",
                g->number, quote, noted(g), quote, quote, g->enqueued ? g->enqueued : -1, quote, quote,
                quote);
}

static void put_entry(const struct flight_made *g, const struct flight_form *form, int seq, bool p2p,
                      struct strbuf *out) {
    const char *state = form->nccl && g->over[seq] ? "completed" : "scheduled";
    strbuf_addf(out, "%s{\"collective_seq_id\":%d,\"duration_ms\":0.25,",
                out->data[out->len - 1] == '[' ? "" : ",\n", form->nccl ? seq : 1000 + seq);
    strbuf_addf(out, "\"input_dtypes\":[\"Float\",\"BFloat16\"],\"input_sizes\":[[%d,2],[4]],", seq);
    strbuf_addf(out, "\"is_p2p\":%s,\"op_id\":%d,\"pg_id\":%d,", p2p ? "true" : "false", form->nccl ? 7 : seq,
                g->number);
    if (form->pairs)
        strbuf_addf(out, "\"process_group\":[\"%s\",\"%s\"],", g->name, g->desc);
    else
        strbuf_addf(out, "\"process_group\":\"%s\",", g->name);
    strbuf_addf(out, "\"profiling_name\":\"%s:%s\",\"record_id\":9,\"retired\":%s,\"state\":\"%s\",",
                form->nccl ? "nccl" : "gloo",
                p2p       ? "send"
                : seq % 2 ? "all_reduce"
                          : "broadcast",
                g->over[seq] ? "true" : "false", state);
    strbuf_addf(
        out,
        "\"frames\":[{\"name\":\"f\",\"line\":3}],\"time_discovered_completed_ns\":null,\"timeout_ms\":%d}",
        600000);
}

void flight_made_put(const struct flight_made *groups, size_t n, const struct flight_form *form, bool entries,
                     struct strbuf *out) {
    strbuf_init(out, 0);
    strbuf_adds(out, form->sorted ? "{\"comm_lib_version\":\"\"," : " {\n");
    if (form->status) {
        strbuf_adds(out, "\"pg_status\":{");
        for (size_t i = 0, put = 0; i < n; i++)
            if (groups[i].enqueued) {
                strbuf_adds(out, put++ ? "," : "");
                put_status(&groups[i], form, out);
            }
        strbuf_adds(out, "},");
    }
    if (entries) {
        strbuf_adds(out, "\"entries\":[");
        for (int seq = 1; seq <= FLIGHT_MADE_MOST; seq++)
            for (size_t i = 0; i < n; i++)
                if (seq >= groups[i].first && seq <= groups[i].enqueued) {
                    put_entry(&groups[i], form, seq, false, out);
                    if (groups[i].p2p)
                        put_entry(&groups[i], form, seq, true, out);
                }
        strbuf_adds(out, "],");
    }
    strbuf_addf(out, "\"pg_config\":{\"0\":{\"name\":\"0\",\"ranks\":\"[0, 1]\"}},\"version\":\"%s\"}",
                form->version);
}
