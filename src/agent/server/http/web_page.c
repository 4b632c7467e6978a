/* SPDX-License-Identifier: Apache-2.0 */
/* web_page: the table of routes as a page and as an OpenAPI 3.0 description; see web_show.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/http/web_show.h"
#include "base/json.h"
#include "version.h"

#define PAGE_ID_MAX 64

/* The available forms, after the path's dot or for format=. */
static void page_put_forms(const struct web_route *r, const char *before, const char *between,
                           struct strbuf *out) {
    for (unsigned f = 0, n = 0; f < WEB_FORMS; f++)
        if (r->forms >> f & 1)
            strbuf_addf(out, "%s%s", n++ ? between : before, web_forms[f].name);
}

static void page_put_param(const struct web_param_def *d, struct strbuf *out) {
    strbuf_addf(out, "    %s=  %s", d->name, d->help);
    if (d->type == WEB_INTEGER || d->type == WEB_NUMBER)
        strbuf_addf(out, " (%.15g to %.15g", d->least, d->most);
    if ((d->type == WEB_INTEGER || d->type == WEB_NUMBER) && !isnan(d->default_value) && d->default_value > 0)
        strbuf_addf(out, "; %.15g", d->default_value);
    strbuf_adds(out, d->type == WEB_INTEGER || d->type == WEB_NUMBER ? ")\n" : "\n");
}

static void page_put_route(const struct web_route *r, bool html, struct strbuf *out) {
    bool link = html && r->verb == WEB_GET && !strchr(r->path, '{');
    strbuf_addf(out, "%s ", web_verb_name(r->verb));
    strbuf_addf(out, link ? "<a href=\"%s\">%s</a>" : "%s", r->path, r->path);
    if (r->dotted)
        page_put_forms(r, "[.", "|.", out);
    strbuf_addf(out, "%s\n    %s\n", r->dotted ? "]" : "", r->summary);
    for (size_t i = 0; i < WEB_PARAMS && r->params[i].name; i++) {
        page_put_param(&r->params[i], out);
        if (r->params[i].type == WEB_FORMAT) {
            out->len--; /* without its newline */
            page_put_forms(r, ": ", ", ", out);
            strbuf_addc(out, '\n');
        }
    }
}

void web_page_begin(struct web *w) {
    bool html = w->form == WEB_HTML;
    if (html)
        strbuf_adds(&w->out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                             "<title>probing</title></head><body>\n<pre>\n");
    strbuf_adds(&w->out,
                "probing " PROBING_VERSION
                ": an agent in a running Python process. It also speaks " WIRE_PROTOCOL " by WebSocket.\n\n");
    for (size_t i = 0; i < web_n_routes; i++)
        page_put_route(&web_routes[i], html, &w->out);
    if (html)
        strbuf_adds(&w->out, "</pre>\n</body></html>\n");
    web_done(w);
}

/* ---- OpenAPI ---- */

static void openapi_put_text(struct json *j, const char *description) {
    json_object_begin(j);
    json_kv_string(j, "description", description);
    json_object_end(j);
}

static void openapi_put_schema(struct json *j, const struct web_route *r, const struct web_param_def *d) {
    json_key(j, "schema");
    json_object_begin(j);
    json_kv_string(j, "type",
                   d->type == WEB_INTEGER  ? "integer"
                   : d->type == WEB_NUMBER ? "number"
                                           : "string");
    if (d->type == WEB_FORMAT) {
        json_key(j, "enum");
        json_array_begin(j);
        for (unsigned f = 0; f < WEB_FORMS; f++)
            if (r->forms >> f & 1)
                json_string(j, web_forms[f].name);
        json_array_end(j);
        json_kv_string(j, "default", web_forms[r->default_value].name);
    } else {
        json_kv_number(j, "minimum", d->least, d->type == WEB_INTEGER ? 0 : 3);
        json_kv_number(j, "maximum", d->most, d->type == WEB_INTEGER ? 0 : 3);
        if (!isnan(d->default_value) && d->default_value >= d->least)
            json_kv_number(j, "default", d->default_value, d->type == WEB_INTEGER ? 0 : 3);
    }
    json_object_end(j);
}

static void openapi_put_param(struct json *j, const struct web_route *r, const struct web_param_def *d) {
    json_object_begin(j);
    json_kv_string(j, "name", d->name);
    json_kv_string(j, "in", "query");
    json_kv_string(j, "description", d->help);
    json_kv_bool(j, "required", false);
    openapi_put_schema(j, r, d);
    json_object_end(j);
}

static void openapi_put_params(struct json *j, const struct web_route *r) {
    const char *brace = strchr(r->path, '{');
    json_key(j, "parameters");
    json_array_begin(j);
    if (brace) {
        char name[PAGE_ID_MAX];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(brace + 1, "}"), brace + 1);
        json_object_begin(j);
        json_kv_string(j, "name", name);
        json_kv_string(j, "in", "path");
        json_kv_bool(j, "required", true);
        json_key(j, "schema");
        json_object_begin(j);
        json_kv_string(j, "type", "string");
        json_object_end(j);
        json_object_end(j);
    }
    for (size_t i = 0; i < WEB_PARAMS && r->params[i].name; i++)
        openapi_put_param(j, r, &r->params[i]);
    json_array_end(j);
}

static void openapi_put_answers(struct json *j, const struct web_route *r, unsigned forms) {
    static const struct {
        const char *status, *what;
    } others[] = {{"400", "a parameter is not as it must be"},
                  {"401", "a token is needed"},
                  {"403", "this client may not do that"},
                  {"404", "there is no such page"},
                  {"406", "it is not available in that format"},
                  {"429", "too many requests or attempts: try again later"},
                  {"b411", "the body must come with its length"}, /* those with a body */
                  {"b413", "the body is too long"},
                  {"b415", "the body has the wrong content type"},
                  {"b504", "the code timed out"},
                  {"503", "not available now"}};
    json_key(j, "responses");
    json_object_begin(j);
    json_key(j, "200");
    json_object_begin(j);
    json_kv_string(j, "description", r->summary);
    json_key(j, "content");
    json_object_begin(j);
    for (unsigned f = 0; f < WEB_FORMS; f++)
        if (forms >> f & 1) {
            json_key(j, web_forms[f].type);
            json_object_begin(j);
            json_object_end(j);
        }
    json_object_end(j);
    json_object_end(j);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (r->takes || others[i].status[0] != 'b') {
            json_key(j, others[i].status + (others[i].status[0] == 'b'));
            openapi_put_text(j, others[i].what);
        }
    json_object_end(j);
}

static void openapi_put_body(struct json *j, const struct web_route *r) {
    json_key(j, "requestBody");
    json_object_begin(j);
    json_kv_bool(j, "required", true);
    json_key(j, "content");
    json_object_begin(j);
    json_key(j, r->takes[0] ? r->takes : "text/plain");
    json_object_begin(j);
    json_object_end(j);
    if (r->takes_json) {
        json_key(j, web_forms[WEB_JSON].type);
        json_object_begin(j);
        json_key(j, "schema");
        r->put_schema(j);
        json_object_end(j);
    }
    json_object_end(j);
    json_object_end(j);
}

/* Describe the operation of a path, with all its forms or with the one after the dot. */
static void openapi_put_route(struct json *j, const struct web_route *r, unsigned forms) {
    static const char *const verbs[WEB_VERBS] = {"get", "post", "put"};
    json_key(j, verbs[r->verb]);
    json_object_begin(j);
    json_kv_string(j, "summary", r->summary);
    json_kv_string(j, "x-method", wire_method_name(r->asks));
    openapi_put_params(j, r);
    if (r->takes)
        openapi_put_body(j, r);
    openapi_put_answers(j, r, forms);
    json_object_end(j);
}

/* Routes of the same path are adjacent in the table. */
static void openapi_put_paths(struct json *j) {
    for (size_t i = 0; i < web_n_routes;) {
        size_t first = i;
        json_key(j, web_routes[i].path);
        json_object_begin(j);
        for (; i < web_n_routes && strcmp(web_routes[i].path, web_routes[first].path) == 0; i++)
            openapi_put_route(j, &web_routes[i], web_routes[i].forms);
        json_object_end(j);
        for (unsigned f = 0; web_routes[first].dotted && f < WEB_FORMS; f++)
            if (web_routes[first].forms >> f & 1) {
                char path[PAGE_ID_MAX];
                snprintf(path, sizeof path, "%s.%s", web_routes[first].path, web_forms[f].name);
                json_key(j, path);
                json_object_begin(j);
                openapi_put_route(j, &web_routes[first], 1U << f);
                json_object_end(j);
            }
    }
}

static void openapi_put_security(struct json *j) {
    json_key(j, "components");
    json_object_begin(j);
    json_key(j, "securitySchemes");
    json_object_begin(j);
    json_key(j, "token");
    json_object_begin(j);
    json_kv_string(j, "type", "http");
    json_kv_string(j, "scheme", "bearer");
    json_object_end(j);
    json_object_end(j);
    json_object_end(j);
    json_key(j, "security"); /* or none: processes of the job's user, with read-only access */
    json_array_begin(j);
    json_object_begin(j);
    json_key(j, "token");
    json_array_begin(j);
    json_array_end(j);
    json_object_end(j);
    json_object_begin(j);
    json_object_end(j);
    json_array_end(j);
}

void web_openapi_begin(struct web *w) {
    struct json j;
    json_init(&j, &w->out, 1);
    json_object_begin(&j);
    json_kv_string(&j, "openapi", "3.0.3");
    json_key(&j, "info");
    json_object_begin(&j);
    json_kv_string(&j, "title", "probing: an agent in a running Python process");
    json_kv_string(&j, "version", PROBING_VERSION);
    json_object_end(&j);
    openapi_put_security(&j);
    json_key(&j, "paths");
    json_object_begin(&j);
    openapi_put_paths(&j);
    json_object_end(&j);
    json_object_end(&j);
    strbuf_addc(&w->out, '\n');
    web_done(w);
}
