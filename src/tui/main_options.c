/* SPDX-License-Identifier: Apache-2.0 */
/* main_options: see main_options.h. */
#include "tui/main_options.h"

#include <stddef.h>

#include "tui/screen_picture.h"

#define AT(field) offsetof(struct main_options, field)

const struct option_def main_table[] = {
    {"no-inject", 0, OPTION_FLAG, AT(no_inject), NULL, "put no agent into the target: read it from outside",
     0, 0},
    {"block", 0, OPTION_FLAG, AT(block), NULL,
     "the same, stopping running threads while they are read: exact stacks", 0, 0},
    {"readonly", 0, OPTION_FLAG, AT(readonly), NULL,
     "change nothing there: use an agent that is in it, or read from outside", 0, 0},
    {"token", 0, OPTION_STRING, AT(token), "TOKEN",
     "for HOST:PORT: what 'probing listen' has printed; better in PROBING_TOKEN", 0, 0},
    {"delay", 'd', OPTION_STRING, AT(delay), "DELAY",
     "time between two snapshots: 5 (tenths of a second), 250ms, 2s", 0, 0},
    {"filter", 'F', OPTION_STRING, AT(filter), "TEXT",
     "show only rows that match; !TEXT hides them, A|B either", 0, 0},
    {"diff", 0, OPTION_STRING, AT(diff), "TARGET",
     "compare with a recording, or what an ended process has left (key d)", 0, 0},
    {"theme", 0, OPTION_STRING, AT(theme), "NAME|FILE", "colours: one of those below, or a theme file", 0, 0},
    {"color", 0, OPTION_STRING, AT(color), "WHEN", "auto, always, never, 16 or 256", 0, 0},
    {"no-color", 'C', OPTION_FLAG, AT(no_color), NULL, "no colours (as NO_COLOR in the environment)", 0, 0},
    {"ascii", 0, OPTION_FLAG, AT(ascii), NULL, "draw with ASCII characters only", 0, 0},
    {"no-unicode", 0, OPTION_FLAG, AT(ascii), NULL, "the same", 0, 0},
    {"no-mouse", 'M', OPTION_FLAG, AT(no_mouse), NULL, "leave the mouse to the terminal", 0, 0},
    {"export", 0, OPTION_STRING, AT(export), "FORMAT", "write this instead of opening screens", 0, 0},
    {"output", 'o', OPTION_STRING, AT(output), "FILE", "with --export: write there; - is standard output", 0,
     0},
    {"sql", 0, OPTION_STRING, AT(sql), "QUERY", "with --export json, ndjson or csv: the rows of this query",
     0, 0},
    {"once", 0, OPTION_FLAG, AT(once), NULL, "with --export: one look", 0, 0},
    {"duration", 0, OPTION_SECONDS, AT(duration_s), "TIME", "with --export: look for so long", 0.001, 86400},
    {"threads", 0, OPTION_FLAG, AT(threads), NULL, "with --export: a frame for the thread", 0, 0},
    {"process", 0, OPTION_FLAG, AT(process), NULL, "with --export: a frame for the process", 0, 0},
    {"by-function", 0, OPTION_FLAG, AT(by_function), NULL, "with --export: functions, not lines", 0, 0},
    {"locals", 0, OPTION_FLAG, AT(locals), NULL, "with --export: variables of every frame", 0, 0},
    {"native", 'n', OPTION_FLAG, AT(native), NULL, "with --export: C and C++ frames too, as they were called",
     0, 0},
    {"unit", 0, OPTION_STRING, AT(unit), "UNIT", "with --export: samples, or us", 0, 0},
    {"screen", 0, OPTION_STRING, AT(screen), "NAME",
     "with --export txt: this screen, as a terminal would show it", 0, 0},
    {"rows", 0, OPTION_INT, AT(rows), "N", "with --screen: of so many rows ($LINES, the terminal's, 40)", 1,
     SCREEN_PICTURE_MAX},
    {"cols", 0, OPTION_INT, AT(cols), "N", "with --export txt: columns ($COLUMNS, the terminal's, 80)", 1,
     SCREEN_PICTURE_MAX},
    {"gentle", 0, OPTION_FLAG, AT(gentle), NULL,
     "send no signals: stacks of threads that run may be torn, and are marked", 0, 0},
    {"budget", 0, OPTION_STRING, AT(budget), "PCT",
     "what looking may cost the machine, in percent of a core (an agent: 1)", 0, 0},
    {"list-keys", 0, OPTION_FLAG, AT(list_keys), NULL, "print every key and what it does", 0, 0},
    {"print-config", 0, OPTION_FLAG, AT(print_config), NULL,
     "print all settings and keys as a settings file, and where each is from", 0, 0},
    {"info", 0, OPTION_FLAG, AT(info), NULL, "print where files are, what the terminal can, what is built in",
     0, 0},
    {"version", 'V', OPTION_FLAG, AT(version), NULL, "print the version", 0, 0},
    {"help", 'h', OPTION_FLAG, AT(help), NULL, "print this", 0, 0},
    {NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0},
};
