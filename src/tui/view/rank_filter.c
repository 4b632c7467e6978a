/* SPDX-License-Identifier: Apache-2.0 */
/* rank_filter: see rank_filter.h. */
#include "tui/view/rank_filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tui/view/rank_text.h"

#define RANK_FILTER_RANK "rank:"
#define RANK_FILTER_HOST "host:"
#define RANK_FILTER_OF_CLASS "class:"
#define RANK_FILTER_LATE "late"
#define RANK_FILTER_ROW 512

void rank_filter_fini(struct rank_filter *f) {
    for (int i = 0; i < MATCH_MAX_ALTERNATIVES; i++)
        rank_set_fini(&f->sets[i]);
    memset(f, 0, sizeof *f);
}

/* The part behind a word; NULL: the text does not begin with it. */
static const char *rank_filter_behind(const char *text, const char *word) {
    size_t len = strlen(word);
    return strncasecmp(text, word, len) == 0 ? text + len : NULL;
}

/* Half a text ("rank:0-") has no ranks yet. */
static void rank_filter_read(struct rank_filter *f, const struct match *m) {
    struct err e;
    rank_filter_fini(f);
    snprintf(f->text, sizeof f->text, "%s", m->text);
    f->is_read = true;
    for (size_t i = 0; i < m->n; i++) {
        const char *ranks = rank_filter_behind(m->alternatives[i].text, RANK_FILTER_RANK);
        if (ranks)
            rank_set_parse(&f->sets[i], ranks, &e);
    }
}

void rank_filter_name_class(const struct job_shot *f, int32_t class_number, char buf[RANK_FILTER_CLASS]) {
    snprintf(buf, RANK_FILTER_CLASS, "?");
    if (class_number >= 0 && (size_t)class_number < f->stacks.n_classes)
        snprintf(buf, RANK_FILTER_CLASS, "%04x",
                 (unsigned)(f->stacks.nodes[f->stacks.classes[class_number]].id >> 48));
}

static bool rank_filter_has_class(const struct job_shot *f, const struct job_shot_rank *r, const char *name) {
    char of[RANK_FILTER_CLASS];
    rank_filter_name_class(f, r->class_number, of);
    return strcasecmp(of, name) == 0;
}

static const char *rank_filter_host(const struct job_shot *f, const struct job_shot_rank *r) {
    const char *name = job_shot_host_name(f, r);
    return name ? name : "";
}

/* Its host by its name, or without its domain, as the screen may show it; the end of an address is not one. */
static bool rank_filter_has_host(const struct job_shot *f, const struct job_shot_rank *r, const char *name) {
    const char *behind = rank_filter_behind(rank_filter_host(f, r), name);
    return behind &&
           (!*behind || (*name && !strchr(name, '.') && *behind == '.' && !strchr("0123456789", behind[1])));
}

/* What its row shows, in one text. */
static bool rank_filter_has_text(const struct match *m, const struct job_shot *shot,
                                 const struct job_shot_rank *r) {
    struct strbuf row;
    strbuf_init(&row, RANK_FILTER_ROW);
    strbuf_addf(&row, "%" PRId32 " %s %s ", r->rank, rank_filter_host(shot, r), rank_text_state(r));
    strbuf_adds(&row, rank_text_signs[r->state].word);
    strbuf_addc(&row, ' ');
    rank_text_put_where(shot, r, &row);
    strbuf_addf(&row, " %s", r->note ? r->note : "");
    bool has = match_text(m, strbuf_str(&row));
    strbuf_fini(&row);
    return has;
}

bool rank_filter_matches(struct rank_filter *f, const struct match *m, const struct job_shot *shot,
                         const struct job_shot_rank *r) {
    if (!f->is_read || strcmp(f->text, m->text) != 0)
        rank_filter_read(f, m);
    for (size_t i = 0; i < m->n; i++) {
        const char *text = m->alternatives[i].text, *name;
        if (rank_filter_behind(text, RANK_FILTER_RANK)) {
            if (rank_set_has(&f->sets[i], r->rank))
                return true;
        } else if ((name = rank_filter_behind(text, RANK_FILTER_HOST))) {
            if (rank_filter_has_host(shot, r, name))
                return true;
        } else if ((name = rank_filter_behind(text, RANK_FILTER_OF_CLASS))) {
            if (rank_filter_has_class(shot, r, name))
                return true;
        } else if (strcasecmp(text, RANK_FILTER_LATE) == 0) {
            if (r->is_late)
                return true;
        } else {
            struct match one = {.active = true, .exact_case = m->exact_case, .n = 1};
            one.alternatives[0] = m->alternatives[i];
            if (rank_filter_has_text(&one, shot, r))
                return true;
        }
    }
    return false;
}

void rank_filter_put(const struct rank_set *ranks, const struct job_shot *f, int32_t class_number, char *buf,
                     size_t cap) {
    struct strbuf text;
    size_t most = 0;
    strbuf_init(&text, RANK_SET_TEXT_MAX);
    do {
        strbuf_clear(&text);
        strbuf_adds(&text, RANK_FILTER_RANK);
        rank_set_put(ranks, most, &text);
        most = most ? most / 2 : 32;
    } while (text.len >= cap && most);
    if (text.len >= cap || (most != 32 && class_number >= 0)) {
        char name[RANK_FILTER_CLASS];
        rank_filter_name_class(f, class_number, name);
        snprintf(buf, cap, RANK_FILTER_OF_CLASS "%s", name);
    } else /* without the "..." of those that are left out */
        snprintf(buf, cap, "%.*s", (int)strcspn(strbuf_str(&text), "."), strbuf_str(&text));
    for (size_t len = strlen(buf); len > 0 && buf[len - 1] == ','; len--)
        buf[len - 1] = '\0';
    strbuf_fini(&text);
}
