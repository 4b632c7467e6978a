/* SPDX-License-Identifier: Apache-2.0 */
/* action: see action.h. */
#include "tui/action.h"

#include <stdio.h>
#include <string.h>

#include "tui/input.h"

#define THREADS (ACTION_IN(CONTEXT_THREADS) | ACTION_IN(CONTEXT_STACK))
#define TOP ACTION_IN(CONTEXT_TOP)
#define VIEWS (THREADS | TOP)
#define TABLES (THREADS | ACTION_IN(CONTEXT_PICKER))
#define ALL ACTION_EVERYWHERE

/* In the order of the footer and of the help. */
const struct action_def action_table[] = {
    {ACTION_HELP,
     "help",
     ALL & ~ACTION_IN(CONTEXT_HELP),
     {"F1", "?"},
     "Help",
     0,
     "show all keys and what they do"},
    {ACTION_RUN_ENTRY,
     "run-entry",
     ACTION_IN(CONTEXT_HELP),
     {"Enter"},
     "Run",
     1,
     "close the help and do the selected entry"},
    {ACTION_ATTACH,
     "attach",
     ACTION_IN(CONTEXT_PICKER),
     {"Enter"},
     "Attach",
     0,
     "attach to the selected process"},
    {ACTION_SEARCH, "search", ALL, {"F3", "/"}, "Search", 2, "search; a|b finds either, capitals are exact"},
    {ACTION_SEARCH_NEXT, "search-next", ALL, {"n"}, NULL, 0, "next match"},
    {ACTION_SEARCH_PREV, "search-previous", ALL, {"N", "S-F3"}, NULL, 0, "previous match"},
    {ACTION_FILTER,
     "filter",
     TABLES,
     {"F4", "\\"},
     "Filter",
     3,
     "show rows that match by name, id or stack; !x hides them"},
    {ACTION_FILTER,
     "filter",
     TOP,
     {"F4", "\\"},
     "Filter",
     3,
     "show rows that match by function or file; !x hides them"},
    {ACTION_REFRESH, "refresh", TABLES, {"F5", "R"}, "Refresh", 8, "look again now"},
    {ACTION_SORT_NEXT, "sort-next", TABLES | TOP, {"F6", ">"}, "Sort", 4, "sort by the next column"},
    {ACTION_SORT_PREV, "sort-previous", TABLES | TOP, {"<"}, NULL, 0, "sort by the previous column"},
    {ACTION_SORT_INVERT, "sort-invert", TABLES | TOP, {"I"}, NULL, 0, "turn the order round"},
    {ACTION_SORT_CPU, "sort-cpu", TABLES, {"P"}, NULL, 0, "sort by CPU%, busiest first"},
    {ACTION_SLOWER, "slower", VIEWS, {"F7", "{"}, "Slower", 10, "ask for fewer snapshots a second"},
    {ACTION_FASTER, "faster", VIEWS, {"F8", "}"}, "Faster", 9, "ask for more snapshots a second"},
    {ACTION_PAUSE,
     "pause",
     VIEWS,
     {"Space", "z", "Z"},
     "Pause",
     5,
     "freeze the view; data go on, Space shows the newest"},
    {ACTION_FOCUS, "focus", VIEWS, {"Tab", "o", "S-Tab"}, "Pane", 6, "go to the other pane"},
    {ACTION_SHOW_TOP,
     "top",
     THREADS,
     {"4"},
     "Top",
     7,
     "the Top screen: functions by their share of the time"},
    {ACTION_SHOW_TOP, "top", TOP, {"4"}, NULL, 0, "this screen"},
    {ACTION_SHOW_THREADS, "threads", TOP, {"2"}, "Threads", 2, "the Threads screen"},
    {ACTION_SHOW_THREADS, "threads", THREADS, {"2"}, NULL, 0, "this screen"},
    {ACTION_OPEN_CALLS,
     "open-calls",
     TOP,
     {"Enter"},
     "Calls",
     2,
     "who calls it and whom it calls; there: go to that one"},
    {ACTION_BY_LINE, "by-line", TOP, {"L"}, "Lines", 6, "add up lines, or functions"},
    {ACTION_ON_CPU, "on-cpu", TOP, {"a"}, "OnCPU", 2, "time on the CPU only, or all time, waits too"},
    {ACTION_WINDOW, "window", TOP, {"W"}, "Window", 6, "the last 10 s, the last 60 s, or all"},
    {ACTION_ZERO, "zero", TOP, {"0"}, "Zero", 6, "count from zero"},
    {ACTION_THRESHOLD_UP, "threshold-up", TOP, {"+"}, NULL, 0, "hide more of the small ones (by %TOTAL)"},
    {ACTION_THRESHOLD_DOWN, "threshold-down", TOP, {"-"}, NULL, 0, "hide fewer of them"},
    {ACTION_THREAD_PREV, "thread-previous", TOP, {"["}, NULL, 0, "samples of the previous thread, or of all"},
    {ACTION_THREAD_NEXT, "thread-next", TOP, {"]"}, NULL, 0, "samples of the next thread, or of all"},
    {ACTION_OPEN_STACK,
     "open-stack",
     ACTION_IN(CONTEXT_THREADS),
     {"Enter"},
     NULL,
     0,
     "go into the stack of the selected thread"},
    {ACTION_OPEN_CHILD,
     "open-child",
     THREADS,
     {"C"},
     NULL,
     0,
     "open the child process a thread is of; from there: back"},
    {ACTION_LOCALS,
     "locals",
     THREADS,
     {"v"},
     NULL,
     0,
     "show the variables of the selected frame, or hide them"},
    {ACTION_NATIVE,
     "native",
     THREADS,
     {"c"},
     NULL,
     0,
     "show C and C++ frames of the thread too, or hide them"},
    {ACTION_REPR,
     "repr",
     THREADS,
     {"r"},
     NULL,
     0,
     "variables by the job's own repr(): runs its code; or not"},
    {ACTION_TASKS,
     "tasks",
     THREADS,
     {"t"},
     NULL,
     0,
     "show the tasks of asyncio that the thread runs, or hide"},
    {ACTION_ZOOM, "zoom", VIEWS, {"w"}, NULL, 0, "give the pane the whole body, or back"},
    {ACTION_THREAD_PREV, "thread-previous", THREADS, {"["}, NULL, 0, "previous thread, from either pane"},
    {ACTION_THREAD_NEXT, "thread-next", THREADS, {"]"}, NULL, 0, "next thread, from either pane"},
    {ACTION_HIDE_IDLE,
     "hide-idle",
     THREADS,
     {"a"},
     NULL,
     0,
     "hide threads that did not run lately, or show them"},
    {ACTION_HIDE_NATIVE, "hide-native", THREADS, {"p"}, NULL, 0, "hide threads without Python, or show them"},
    {ACTION_SHOW_ALL, "show-all", TABLES | TOP, {"A"}, NULL, 0, "show all rows: no filter, nothing hidden"},
    {ACTION_UP, "up", ALL, {"Up", "k", "ctrl-p"}, NULL, 0, "up"},
    {ACTION_DOWN, "down", ALL, {"Down", "j", "ctrl-n"}, NULL, 0, "down"},
    {ACTION_LEFT, "left", ALL, {"Left", "h", "S-Left"}, NULL, 0, "scroll long lines to the left"},
    {ACTION_RIGHT, "right", ALL, {"Right", "l", "S-Right"}, NULL, 0, "scroll long lines to the right"},
    {ACTION_HALF_UP, "half-page-up", ALL, {"ctrl-u"}, NULL, 0, "half a page up"},
    {ACTION_HALF_DOWN, "half-page-down", ALL, {"ctrl-d"}, NULL, 0, "half a page down"},
    {ACTION_PAGE_UP, "page-up", ALL, {"PgUp", "ctrl-b"}, NULL, 0, "a page up"},
    {ACTION_PAGE_DOWN, "page-down", ALL, {"PgDn", "ctrl-f"}, NULL, 0, "a page down"},
    {ACTION_FIRST, "first", ALL, {"Home", "g"}, NULL, 0, "first line"},
    {ACTION_LAST, "last", ALL, {"End", "G"}, NULL, 0, "last line"},
    {ACTION_METERS, "meters", VIEWS, {"#"}, NULL, 0, "fold the header to one line, or unfold it"},
    {ACTION_MOUSE,
     "mouse",
     ALL,
     {"ctrl-t"},
     NULL,
     0,
     "mouse on or off; off, or Shift: the terminal selects text"},
    {ACTION_REDRAW, "redraw", ALL, {"ctrl-l"}, NULL, 0, "paint the whole screen again"},
    {ACTION_SUSPEND, "suspend", ALL, {"ctrl-z"}, NULL, 0, "stop and give the terminal back; fg returns"},
    {ACTION_BACK,
     "back",
     ALL,
     {"Esc", "Backspace"},
     NULL,
     0,
     "one step back: search, zoom, pane, filter; never quits"},
    {ACTION_QUIT, "close", ACTION_IN(CONTEXT_HELP), {"F10", "q", "?", "F1"}, "Close", 0, "close the help"},
    {ACTION_QUIT, "quit", ALL & ~ACTION_IN(CONTEXT_HELP), {"F10", "q"}, "Quit", 1, "quit; the job runs on"},
    {ACTION_QUIT_NOW, "quit-now", ALL, {"Q", "ctrl-c"}, NULL, 0, "quit from anywhere; the job runs on"},
    {ACTION_NONE, NULL, 0, {NULL}, NULL, 0, NULL},
};

static const struct {
    const char *name, *title;
} action_contexts[CONTEXT_COUNT] = {
    [CONTEXT_THREADS] = {"threads", "Threads"},
    [CONTEXT_STACK] = {"stack", "Stack of a thread"},
    [CONTEXT_TOP] = {"top", "Top"},
    [CONTEXT_PICKER] = {"picker", "Choice of a process"},
    [CONTEXT_HELP] = {"help", "Help"},
};

enum action action_find(enum action_context context, uint32_t key) {
    char name[32];
    input_key_name(key, name, sizeof name);
    for (const struct action_def *a = action_table; a->action; a++) {
        if (!(a->contexts & ACTION_IN(context)))
            continue;
        for (size_t i = 0; i < ACTION_MAX_KEYS && a->keys[i]; i++)
            if (strcmp(a->keys[i], name) == 0)
                return a->action;
    }
    return ACTION_NONE;
}

const struct action_def *action_row(enum action action, enum action_context context) {
    for (const struct action_def *a = action_table; a->action; a++)
        if (a->action == action && (a->contexts & ACTION_IN(context)))
            return a;
    return NULL;
}

const char *action_context_name(enum action_context context) { return action_contexts[context].name; }

const char *action_context_title(enum action_context context) { return action_contexts[context].title; }

void action_keys_text(const struct action_def *row, char *buf, size_t cap) {
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < ACTION_MAX_KEYS && row->keys[i] && used < cap; i++) {
        int n = snprintf(buf + used, cap - used, "%s%s", used ? " " : "", row->keys[i]);
        if (n < 0)
            return;
        used += (size_t)n;
    }
}

void action_list_keys(struct strbuf *out) {
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table; a->action; a++)
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && i < ACTION_MAX_KEYS && a->keys[i]; i++)
                (void)strbuf_addf(out, "%-8s %-10s %-16s %s\n", action_context_name((enum action_context)c),
                                  a->keys[i], a->name, a->help);
}
