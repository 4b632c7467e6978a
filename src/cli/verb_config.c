/* SPDX-License-Identifier: Apache-2.0 */
/* verb_config: show an agent's settings, and set one while it runs. Needs an existing agent;
 * injects none. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/json.h"
#include "base/text.h"
#include "client/session/call.h"

#define CONFIG_KEY_WIDTH 24
#define CONFIG_VALUE_WIDTH 12

/* Parse "KEY" or "KEY=VALUE" and check both, so that a mistake is reported without a request. 0
 * or -1. */
static int config_read_operand(const char *operand, struct wire_config *c, bool *set, struct err *e) {
    struct config scratch;
    size_t n = strcspn(operand, "=");
    *set = operand[n] == '=';
    if (n >= sizeof c->key || (*set && strlen(operand + n + 1) >= sizeof c->value))
        return err_set(e, ERR_USAGE, "'%.40s...' is too long for a setting", operand);
    snprintf(c->key, sizeof c->key, "%.*s", (int)n, operand);
    snprintf(c->value, sizeof c->value, "%s", *set ? operand + n + 1 : "");
    int key = config_find(c->key, e);
    if (key < 0)
        return -1;
    snprintf(c->key, sizeof c->key, "%s", config_defs[key].name);
    if (*set && config_defs[key].at_start)
        return err_set(e, ERR_USAGE, "%s is read when an agent starts: set %s in the job's environment",
                       c->key, config_defs[key].env);
    config_init(&scratch);
    return *set ? config_set(&scratch, (enum config_key)key, c->key, c->value, e) : 0;
}

static void config_put_text(struct strbuf *out, const struct model_setting *s, bool only) {
    char value[CONFIG_TEXT_MAX], help[256];
    text_sanitize(value, sizeof value, s->value ? s->value : "?");
    text_sanitize(help, sizeof help, s->help ? s->help : "");
    if (only)
        strbuf_addf(out, "%s\n", value);
    else
        strbuf_addf(out, "%-*s %-*s %s%s\n", CONFIG_KEY_WIDTH, s->key, CONFIG_VALUE_WIDTH, value, help,
                    s->given ? " (set)" : "");
}

static void config_put_json(struct json *j, const struct model_setting *s) {
    json_object_begin(j);
    json_kv_string(j, "key", s->key);
    json_kv_string(j, "value", s->value);
    json_kv_string(j, "default", s->default_value);
    json_kv_string(j, "unit", s->unit);
    json_kv_bool(j, "set", s->given);
    json_kv_string(j, "help", s->help);
    json_object_end(j);
}

/* Append the wanted settings: all, or the one named `key`. Returns their number. */
static size_t config_put(struct strbuf *out, const struct model_status *status, const char *key, bool json) {
    struct json j;
    size_t n = 0;
    if (json) {
        json_init(&j, out, 2);
        json_object_begin(&j);
        json_kv_int(&j, "schema_version", 1);
        json_key(&j, "config");
        json_array_begin(&j);
    }
    for (size_t i = 0; i < status->n_settings; i++) {
        const struct model_setting *s = &status->settings[i];
        if (!s->key || (key[0] && strcmp(s->key, key) != 0))
            continue;
        if (json)
            config_put_json(&j, s);
        else
            config_put_text(out, s, key[0] != '\0');
        n++;
    }
    if (json) {
        json_array_end(&j);
        json_object_end(&j);
        strbuf_addc(out, '\n');
    }
    return n;
}

static int config_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    struct wire_config wanted = {.key = ""};
    struct model_status status;
    bool set = false;
    if (o->operand && config_read_operand(o->operand, &wanted, &set, e) != 0)
        return -1;
    if (set && o->readonly)
        return err_set(e, ERR_USAGE, "--readonly: setting %s would change the job's agent", wanted.key);
    if (cli_find_agent(addr, e) != 0)
        return -1;
    struct call *c = call_open(addr, e);
    if (!c)
        return -1;
    int rc = set ? call_configure(c, &wanted, e) : 0;
    if (rc == 0) {
        rc = call_status(c, &status, e);
        if (rc == 0 && config_put(out, &status, wanted.key, o->json) == 0)
            rc = err_set(e, ERR_FAILED, "the agent does not report its settings: it is an older release");
        model_status_fini(&status);
    }
    call_close(c);
    return rc;
}

const struct cli_verb verb_config = {
    .name = "config",
    .group = "Agent",
    .help = "show or change agent settings",
    .example = "probing 4242 config probing.sample_rate=20",
    .needs_target = true,
    .operand = "[KEY[=VALUE]]",
    .exec = config_exec,
};
