/* SPDX-License-Identifier: Apache-2.0 */
/* info: see info.h. */
#include "tui/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/export/export.h"
#include "client/history.h"
#include "client/sql/saved.h"
#include "client/target/target.h"
#include "pystack/offsets.h"
#include "tui/term/term.h"
#include "tui/term/term_type.h"
#include "version.h"

#define INFO_MAX_THEMES 64

static void info_path(struct strbuf *out, const char *name, const char *path) {
    const char *state = !path || !*path ? "" : access(path, R_OK) == 0 ? "" : "  (not there)";
    strbuf_addf(out, "%-14s %s%s\n", name, path && *path ? path : "none: HOME is not set", state);
}

static void info_put_paths(const struct startup *s, struct strbuf *out) {
    char path[4096];
    struct err e;
    int lines = 0;
    for (const char *p = strbuf_str(&s->warnings); *p; p++)
        lines += *p == '\n';
    info_path(out, "settings", s->config_path);
    if (lines > 0)
        strbuf_addf(out, "%-14s %d warning%s, see --print-config\n", "", lines, lines == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof s->theme_path.dirs / sizeof s->theme_path.dirs[0] && s->theme_path.dirs[i];
         i++)
        info_path(out, i == 0 ? "themes" : "", s->theme_path.dirs[i]);
    history_where("history", path, sizeof path);
    info_path(out, "query history", path);
    saved_default_dir(path, sizeof path);
    info_path(out, "queries", path);
    strbuf_addf(out, "%-14s in the Log screen while it runs; no file is written\n", "log");
    if (target_find_agent(path, sizeof path, &e) == 0)
        info_path(out, "agent", path);
    else
        strbuf_addf(out, "%-14s %s\n", "agent", e.text);
}

/* Synchronized output (mode 2026) is not queried: a terminal that does not know it ignores it. */
static void info_put_terminal(const struct startup *s, struct strbuf *out) {
    const char *type = getenv("TERM"), *no_color = getenv("NO_COLOR");
    static const char *const depths[] = {"none", "8", "16", "256"};
    enum theme_depth depth = THEME_MONO;
    struct winsize w;
    int colors = term_type_colors(type, STDOUT_FILENO);
    theme_choose_depth(s->settings.values[SETTINGS_COLOR], no_color, colors, &depth, NULL);
    strbuf_addf(out, "\n%-14s TERM=%s%s\n", "terminal", type && *type ? type : "(not set)",
                colors == -2 ? "  (not known here)" : "");
    strbuf_addf(out, "%-14s %s of %d that terminfo names; color = %s%s\n", "colours", depths[depth],
                colors < 0 ? 0 : colors, s->settings.values[SETTINGS_COLOR],
                no_color && *no_color ? ", NO_COLOR is set" : "");
    strbuf_addf(out, "%-14s %s\n", "characters",
                term_draws_unicode(type) ? "UTF-8"
                : term_is_utf8()         ? "ASCII: the Linux console's font has few others"
                                         : "ASCII: the locale is not UTF-8");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0)
        strbuf_addf(out, "%-14s %d columns, %d rows\n", "size", w.ws_col, w.ws_row);
    else
        strbuf_addf(out, "%-14s standard output is not a terminal\n", "size");
    strbuf_addf(out, "%-14s synchronized output, bracketed paste: sent, and ignored where not known\n",
                "modes");
}

static void info_put_built_in(const struct startup *s, struct strbuf *out) {
    char names[INFO_MAX_THEMES][THEME_MAX_NAME];
    size_t n;
    const struct pystack_version *v = pystack_version_all(&n);
    strbuf_addf(out, "\n%-14s", "Python");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, " %d.%d%s", v[i].major, v[i].minor, v[i].free_threaded ? "t" : "");
    strbuf_addf(out, "\n%-14s", "exports");
    for (const struct export_format *f = export_formats; f->name; f++)
        strbuf_addf(out, " %s", f->name);
    n = theme_list(&s->theme_path, names, INFO_MAX_THEMES);
    strbuf_addf(out, "\n%-14s", "themes");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, " %s", names[i]);
    strbuf_addc(out, '\n');
}

void info_put(const struct startup *s, struct strbuf *out) {
    strbuf_addf(out, "probing-top    %s\n", PROBING_VERSION);
    info_put_paths(s, out);
    info_put_terminal(s, out);
    info_put_built_in(s, out);
}
