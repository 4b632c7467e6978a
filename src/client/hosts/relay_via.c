/* SPDX-License-Identifier: Apache-2.0 */
/* relay_via: see relay_via.h. */
#include "client/hosts/relay_via.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ssh asks for nothing, and packs what is sent (-C), to a quarter. srun starts one task, in a step of its own beside
 * the job's. */
const struct relay_preset relay_presets[] = {
    {"ssh", "ssh -C -oBatchMode=yes -oConnectTimeout=5 {host} {relay}"},
    {"srun", "srun --jobid={slurm} --overlap -N1 -n1 -w {host} {relay}"},
    {"kubectl", "kubectl exec -i {host} -- {relay}"},
    {"docker", "docker exec -i {host} {relay}"},
    {"podman", "podman exec -i {host} {relay}"},
    {"local", NULL},
    {"kubectl", "kubectl exec -i {host} -c {container} -- {relay}"},
    {NULL, NULL},
};

#define RELAY_PRESET_NAMES 6

const char *relay_preset_name(int i) { return i < RELAY_PRESET_NAMES ? relay_presets[i].name : NULL; }

/* What stands for {name}; NULL: it is not known. */
static const char *relay_via_value(const struct relay_via *v, const char *host, const char *name, size_t n) {
    const struct {
        const char *name, *value;
    } values[] = {{"host", host},
                  {"relay", v->relay ? v->relay : "sh"},
                  {"slurm", v->slurm},
                  {"container", v->container}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strlen(values[i].name) == n && memcmp(values[i].name, name, n) == 0)
            return values[i].value;
    return NULL;
}

static int relay_via_add(struct relay_words *out, const char *bytes, size_t n, struct err *e) {
    if (n >= sizeof out->bytes - out->used)
        return err_set(e, ERR_USAGE, "--via: the command is longer than %d bytes", RELAY_WORDS_BYTES);
    memcpy(out->bytes + out->used, bytes, n);
    out->used += n;
    return 0;
}

static int relay_via_begin_word(struct relay_words *out, struct err *e) {
    if (out->n == RELAY_WORDS_MAX)
        return err_set(e, ERR_USAGE, "--via: the command has more than %d words", RELAY_WORDS_MAX);
    out->words[out->n++] = out->bytes + out->used;
    out->words[out->n] = NULL;
    return 0;
}

static int relay_via_refuse(const char *text, size_t n, const char *why, struct err *e) {
    char part[64], clean[3 * sizeof part];
    snprintf(part, sizeof part, "%.*s", (int)n, text);
    text_sanitize(clean, sizeof clean, part);
    return err_set(e, ERR_USAGE, "--via: '%s' %s", clean, why);
}

/* Put the value of the placeholder that begins at `at`. Its length in the template, 0: it is none; or -1
 * with the error. */
static int relay_via_put_value(const struct relay_via *v, const char *host, const char *at,
                               struct relay_words *out, struct err *e) {
    size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
    if (n == 0 || at[n + 1] != '}')
        return 0;
    const char *value = relay_via_value(v, host, at + 1, n);
    if (!value && n == 5 && memcmp(at + 1, "slurm", n) == 0)
        return relay_via_refuse(at, n + 2, "is the number of a job of Slurm: give --slurm JOB", e);
    if (!value && n == 9 && memcmp(at + 1, "container", n) == 0)
        return relay_via_refuse(at, n + 2, "needs --container NAME", e);
    if (!value)
        return relay_via_refuse(at, n + 2, "is not known: {host}, {relay}, {slurm} and {container} are", e);
    return relay_via_add(out, value, strlen(value), e) == 0 ? (int)n + 2 : -1;
}

/* The words of a text. Without `v` its placeholders stay. 0, or -1 with the error. */
static int relay_via_split(const struct relay_via *v, const char *host, const char *text,
                           struct relay_words *out, struct err *e) {
    static const char relay[] = "{relay}";
    const char *at = text + strspn(text, " \t");
    while (*at) {
        size_t n = strlen(relay);
        /* as a word of its own it is several */
        if (v && strncmp(at, relay, n) == 0 && strchr(" \t", at[n])) {
            if (relay_via_split(NULL, host, relay_via_value(v, host, "relay", 5), out, e) != 0)
                return -1;
            at += n + strspn(at + n, " \t");
            continue;
        }
        char quote = '\0';
        if (relay_via_begin_word(out, e) != 0)
            return -1;
        for (; *at && (quote || !strchr(" \t", *at)); at++) {
            int value = v && *at == '{' ? relay_via_put_value(v, host, at, out, e) : 0;
            if (value < 0)
                return -1;
            if (value > 0)
                at += value - 1;
            else if (*at == quote)
                quote = '\0';
            else if (!quote && (*at == '\'' || *at == '"'))
                quote = *at;
            else {
                at += *at == '\\' && quote != '\'' && at[1];
                if (relay_via_add(out, at, 1, e) != 0)
                    return -1;
            }
        }
        if (quote)
            return relay_via_refuse(text, strlen(text), "lacks a quote at its end", e);
        if (relay_via_add(out, "", 1, e) != 0)
            return -1;
        at += strspn(at, " \t");
    }
    return 0;
}

static const char *relay_via_text(const struct relay_via *v) {
    return v->via ? v->via : v->slurm ? "srun" : "ssh";
}

/* The template; NULL: the relay is a child. */
static const char *relay_via_template(const struct relay_via *v) {
    const char *text = relay_via_text(v), *found = text;
    for (const struct relay_preset *p = relay_presets; p->name; p++) {
        if (strcmp(p->name, text) != 0)
            continue;
        bool has = p->template && strstr(p->template, "{container}");
        if (found == text || (has && v->container))
            found = p->template;
    }
    return found;
}

int relay_via_words(const struct relay_via *v, const char *host, struct relay_words *out, struct err *e) {
    const char *template = relay_via_template(v);
    out->n = out->used = 0;
    out->script = NULL;
    out->words[0] = NULL;
    if (!template)
        return 0;
    if (!strstr(template, "{host}"))
        return relay_via_refuse(template, strlen(template),
                                "has no {host}; presets are ssh, srun, kubectl, docker, podman and local", e);
    if (strstr(template, "{relay}") && !v->relay)
        out->script = v->script ? v->script : RELAY_SCRIPT;
    return relay_via_split(v, host, template, out, e);
}

void relay_via_name(const struct relay_via *v, char *buf, size_t cap) {
    const char *text = relay_via_text(v);
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " \t"), text);
    text_sanitize(buf, cap, word);
}
