/* SPDX-License-Identifier: Apache-2.0 */
/* gen_reference: see gen_reference.h. */
#include "gen_reference.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "client/export/export.h"
#include "client/sql/catalog.h"
#include "client/sql/saved.h"
#include "store/ring/ring_words.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/command.h"
#include "tui/core/settings.h"
#include "tui/main_options.h"

#define REFERENCE_WIDTH 98
/* An action that so many contexts have with the same keys is listed once. */
#define REFERENCE_COMMON 6

const struct reference_variable reference_variables[] = {
    {"PROBING_TOKEN", REFERENCE_BOTH, "the token for HOST:PORT, as 'listen' printed it"},
    {"PROBING_CLICKHOUSE_PASSWORD", REFERENCE_BOTH,
     "the password for clickhouse://, instead of the file clickhouse-password beside the settings"},
    {"PROBING_CLICKHOUSE_CA", REFERENCE_BOTH,
     "a file of certificates that clickhouses:// trusts, instead of the system's"},
    {"PROBING_AGENT", REFERENCE_BOTH, "path of libprobing.so, instead of the one beside the program"},
    {"PROBING_TOP_CONFIG", REFERENCE_TOP, "the settings file, instead of the one in XDG_CONFIG_HOME"},
    {"XDG_CONFIG_HOME", REFERENCE_TOP, "folder of settings, themes and queries (default: ~/.config)"},
    {"XDG_STATE_HOME", REFERENCE_BOTH, "folder of the histories (default: ~/.local/state)"},
    {"VISUAL, EDITOR", REFERENCE_TOP, "the editor that opens the file of a frame"},
    {"PYTHON", REFERENCE_TOP,
     "the Python that runs the job of --tour (default: python3 with torch, or without)"},
    {"NO_COLOR", REFERENCE_BOTH, "no colours, unless --color asks for them"},
    {"VIRTUAL_ENV, PATH", REFERENCE_PROBING, "where 'debug' looks for debugpy if the job has none"},
    {"PROBING", REFERENCE_JOB,
     "where the wheel is installed: 1 loads the agent when Python starts, 2 also in the processes that it "
     "starts, regex:PATTERN in command lines that match, NAME in the script of that name"},
    {NULL, REFERENCE_BOTH, NULL},
};

/* ---- Markdown ---- */

/* Text in lines of REFERENCE_WIDTH columns, behind `first` on the first and blanks on the others. */
static void reference_wrap(const char *first, const char *text) {
    size_t indent = strncmp(first, "- ", 2) == 0 ? 2 : 0, column = strlen(first);
    printf("%s", first);
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > indent && column + 1 + word > REFERENCE_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        for (size_t i = 0; i < word; i++) {
            if (strchr("*<_", text[i]) && !(text[i] == '_' && i > 0 && i + 1 < word))
                putchar('\\');
            putchar(text[i]);
        }
        column += word;
        text += word;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

static void reference_item(const char *name, const char *more, const char *text) {
    char first[256];
    snprintf(first, sizeof first, "- `%s`%s:", name, more);
    reference_wrap(first, text);
}

static void reference_title(const char *title, const char *about) {
    printf("# %s\n\n", title);
    reference_wrap("", about);
    printf("\n<!-- Made by `make docs` from the programs' own tables. -->\n");
}

/* ---- commands ---- */

static void reference_cli(void) {
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    reference_title("Commands",
                    "`probing` is for the shell and for scripts, `probing-top` is the screens. Each "
                    "command prints this help with `--help`; `man probing` and `man probing-top` have "
                    "it, too.");
    cli_put_help(&out, NULL);
    printf("\n## probing\n\n```text\n%s```\n", strbuf_str(&out));
    for (const struct cli_verb *const *v = cli_verbs; *v; v++) {
        strbuf_clear(&out);
        cli_put_help(&out, *v);
        printf("\n### %s\n\n```text\n%s```\n", (*v)->name, strbuf_str(&out));
    }
    strbuf_clear(&out);
    option_format_help(main_table, &out);
    printf("\n## probing-top\n\n```text\nusage: probing-top [OPTION...] [TARGET...]\n\n%s```\n",
           strbuf_str(&out));
    printf("\n## Commands behind `:`\n\nIn `probing-top`; `Tab` completes. The names of actions "
           "([keys](keys.md)) "
           "are commands, too.\n\n");
    for (const struct command_def *d = command_rows(); d->name; d++) {
        char name[128];
        snprintf(name, sizeof name, ":%s%s%s", d->name, d->arguments && *d->arguments ? " " : "",
                 d->arguments ? d->arguments : "");
        reference_item(name, "", d->help);
    }
    strbuf_fini(&out);
}

/* ---- keys ---- */

/* Contexts that have the row with the keys that it has in `c`. */
static int reference_alike(const struct action_def *d, enum action_context c) {
    char keys[64], other[64];
    int n = 0;
    action_keys_text(d, c, keys, sizeof keys);
    for (int i = 0; i < CONTEXT_COUNT; i++)
        if (d->contexts & ACTION_IN(i)) {
            action_keys_text(d, (enum action_context)i, other, sizeof other);
            n += strcmp(keys, other) == 0;
        }
    return n;
}

int reference_common_context(const struct action_def *d) {
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if ((d->contexts & ACTION_IN(c)) && reference_alike(d, (enum action_context)c) >= REFERENCE_COMMON)
            return c;
    return -1;
}

static void reference_key(const struct action_def *d, enum action_context c) {
    char keys[64], first[256] = "-";
    action_keys_text(d, c, keys, sizeof keys);
    if (!keys[0])
        return;
    for (char *key = strtok(keys, " "); key; key = strtok(NULL, " ")) {
        size_t at = strlen(first);
        snprintf(first + at, sizeof first - at, strchr(key, '`') ? " `` %s ``" : " `%s`", key);
    }
    size_t at = strlen(first);
    snprintf(first + at, sizeof first - at, " (%s):", d->name);
    reference_wrap(first, d->help);
}

bool reference_differs(const struct action_def *d, enum action_context c) {
    char keys[64], common[64];
    int at = reference_common_context(d);
    if (at < 0)
        return true;
    action_keys_text(d, c, keys, sizeof keys);
    action_keys_text(d, (enum action_context)at, common, sizeof common);
    return strcmp(keys, common) != 0;
}

static void reference_keys(void) {
    reference_title(
        "Keys", "`?` in `probing-top` shows the keys of the screen that is open. `[keys]` in the settings "
                "file gives any action other keys, by the names in brackets: `flame.zoom-in = Enter X`, or "
                "`all.quit-now = ctrl-q`. `S-` stands for Shift.");
    printf("\n## On most screens\n\n");
    for (const struct action_def *d = action_table(); d->action; d++) {
        int at = reference_common_context(d);
        if (at >= 0)
            reference_key(d, (enum action_context)at);
    }
    for (int c = 0; c < CONTEXT_COUNT; c++) {
        bool any = false;
        for (const struct action_def *d = action_table(); d->action; d++) {
            if (!(d->contexts & ACTION_IN(c)) || !reference_differs(d, (enum action_context)c))
                continue;
            if (!any)
                printf("\n## %s\n\n", action_context_title((enum action_context)c));
            any = true;
            reference_key(d, (enum action_context)c);
        }
    }
}

/* ---- tables ---- */

static void reference_tables(void) {
    struct catalog *all = catalog_of_definitions();
    reference_title(
        "Tables and SQL",
        "`probing 4242 query \"SELECT ...\"` and the SQL screen read these tables: of a running job, of one "
        "that has ended, of a recording. The SQL is SQLite's, with functions of our own: `now()`, "
        "`fold(stack_id)`, "
        "`interval '5 minutes'`, `date_trunc`, `median`, `regr_slope`, `human_bytes`, `human_time`. Queries "
        "only "
        "read, and run in the client. Each table begins with `rank`, `host` and `pid`. Unknown values are "
        "NULL. "
        "`probing 4242 tables` shows how many rows there are, `probing 4242 tables NAME` one table.");
    printf("\n## Queries to begin with\n\nThe SQL screen has them behind `F2`.\n");
    for (const struct saved_query *q = saved_queries; q->name; q++) {
        putchar('\n');
        reference_wrap("", q->answers);
        printf("\n```sql\n%s\n```\n", q->sql);
    }
    for (size_t i = 0; all && i < all->n_tables; i++) {
        const struct catalog_table *t = &all->tables[i];
        printf("\n## %s\n\n", t->name);
        reference_wrap("One row is", t->help);
        printf("\n");
        char about[256];
        snprintf(about, sizeof about, "It is %s%s%s%s.", ring_cost_words(t->cost)->text,
                 *t->alias ? "; also called `" : "", t->alias, *t->alias ? "`" : "");
        reference_wrap("", about);
        printf("\n");
        for (size_t k = 0; k < t->n_columns; k++) {
            const struct catalog_column *col = &t->columns[k];
            char more[64];
            if (k < 3 && (strcmp(col->name, "rank") == 0 || strcmp(col->name, "host") == 0 ||
                          strcmp(col->name, "pid") == 0))
                continue;
            snprintf(more, sizeof more, " (%s%s%s)", ring_type_name(col->type), *col->unit ? ", " : "",
                     col->unit);
            reference_item(col->name, more, *col->help ? col->help : "see the table's description");
        }
    }
    catalog_free(all);
}

/* ---- settings ---- */

static void reference_variables_of(enum reference_reader reader) {
    for (const struct reference_variable *v = reference_variables; v->name; v++)
        if (v->reader == reader)
            reference_item(v->name, "", v->help);
}

static void reference_settings(void) {
    struct config defaults;
    config_init(&defaults);
    reference_title("Settings and environment",
                    "The agent's settings are of the job, those of `probing-top` are yours.");
    printf("\n## The agent\n\n");
    reference_wrap(
        "",
        "`probing 4242 config` lists them; `probing 4242 config KEY=VALUE` changes one at once. The variable "
        "in brackets sets it for a job that starts, or that the agent is loaded into later. The `probing.` "
        "may "
        "be left out.");
    printf("\n");
    for (int i = 0; i < CONFIG_KEYS; i++) {
        char value[CONFIG_TEXT_MAX], more[CONFIG_TEXT_MAX + 64];
        config_format(&defaults, (enum config_key)i, true, value, sizeof value);
        snprintf(more, sizeof more, " (`%s`; default %s%s%s)", config_defs[i].env, *value ? "`" : "none",
                 value, *value ? "`" : "");
        reference_item(config_defs[i].name, more, config_defs[i].help);
    }
    printf("\n## probing-top\n\n");
    reference_wrap(
        "", "In `~/.config/probing-top/config`, by `F2` and `F12`, or for one session by `:set KEY=VALUE`. "
            "`probing-top --print-config` prints what is in effect, and where each line comes from.");
    printf("\n```ini\ndelay = 500ms\ntheme = nord\nscreen = flame\n[keys]\nall.quit-now = ctrl-q "
           "ctrl-c\nflame.zoom-in = Enter "
           "X\n```\n\n");
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        char more[256];
        snprintf(more, sizeof more, " (%s)", settings_table[i].takes ? settings_table[i].takes : "text");
        reference_item(settings_table[i].name, more, settings_table[i].help);
    }
    printf("\n## The environment of the programs\n\n");
    reference_variables_of(REFERENCE_BOTH);
    reference_variables_of(REFERENCE_TOP);
    reference_variables_of(REFERENCE_PROBING);
    printf("\n## The environment of the job\n\nBeside the variables of the agent's settings:\n\n");
    reference_variables_of(REFERENCE_JOB);
}

/* ---- formats ---- */

static void reference_formats(void) {
    struct strbuf takes;
    strbuf_init(&takes, 1 << 12);
    reference_title(
        "Export formats",
        "`probing-top --export FORMAT -o FILE 4242` writes one, of running jobs, of recordings and of "
        "jobs that have ended. In the screens it is `x`. `probing 4242 flamegraph` is `svg`, "
        "`probing 4242 pprof` is `pprof`, and `probing 4242 record` is `sqlite`.");
    for (const struct export_format *f = export_formats; f->name; f++) {
        char text[512];
        strbuf_clear(&takes);
        export_put_options(f, &takes);
        snprintf(text, sizeof text, "%s.%s%s%s", f->help, strbuf_str(&takes)[0] ? " It takes `" : "",
                 strbuf_str(&takes), strbuf_str(&takes)[0] ? "`." : "");
        printf("\n");
        reference_item(f->name, "", text);
    }
    strbuf_fini(&takes);
    printf("\n## Ranks and stacks of a job as JSON\n\n");
    reference_wrap("",
                   "`--export json --screen ranks job:` writes the rows of Ranks, `--screen stacks` those of "
                   "Stacks, in an array of that name. Beside it are `schema_version`, `job`, `world`, "
                   "`timestamp`, `judged`, `verdicts` and `silent_hosts`. `null` is unknown.");
    printf("\n");
    reference_item("judged", "",
                   "whether it was judged for whom ranks wait. An export does not judge: it is "
                   "`false`, and no `sign` is `!`. `probing cluster verdict job: --json` judges. "
                   "`verdicts` has what the steps of the ranks show, such as a straggler.");
    printf("\n");
    reference_item("ranks", "",
                   "`rank`, `host`, `pid`, `sign`, `state`, `operation`, `since_s`, `late`, "
                   "`where`, `class`, `step`, `step_ms`, `own_ms`, `lag_ms`, `cpu_pct`, "
                   "`rss_bytes`, `gpu_util_pct`, `gpu_mem_bytes`, `agent`, `note`.");
    printf("\n");
    reference_item("stacks", "",
                   "`class`, `n`, `ranks`, `since_s`, `majority`, `state`, `host`, `note`, "
                   "`frames` (innermost first). Of ranks without a stack `class` is `null`, "
                   "`frames` is empty, and `state` and `note` have the reason; `host` is the "
                   "one that gives no news. Of ranks with a stack these three are `null`.");
}

static const struct {
    const char *name;
    void (*put)(void);
} reference_pages[] = {{"cli", reference_cli},
                       {"keys", reference_keys},
                       {"tables", reference_tables},
                       {"settings", reference_settings},
                       {"formats", reference_formats}};

int reference_put(const char *name) {
    for (size_t i = 0; i < sizeof reference_pages / sizeof reference_pages[0]; i++)
        if (strcmp(reference_pages[i].name, name) == 0) {
            reference_pages[i].put();
            return 0;
        }
    return -1;
}
