/* SPDX-License-Identifier: Apache-2.0 */
/* action_table: the default keys of every action, a row each; see action_table.h. A row is one
 * line, or two: the words of the help. */
#include "tui/core/action_table.h"

#include <string.h>

#include "tui/core/screen.h"

#define THREADS (ACTION_IN(CONTEXT_THREADS) | ACTION_IN(CONTEXT_STACK))
#define TOP ACTION_IN(CONTEXT_TOP)
#define FLAME ACTION_IN(CONTEXT_FLAME)
#define OVERVIEW ACTION_IN(CONTEXT_OVERVIEW)
#define LOG ACTION_IN(CONTEXT_LOG)
#define UNSEARCHED (OVERVIEW | ACTION_IN(CONTEXT_TARGETS)) /* nothing to search, no long lines */
#define TIMELINE ACTION_IN(CONTEXT_TIMELINE)
#define TENSORS ACTION_IN(CONTEXT_TENSORS)
#define MODULES ACTION_IN(CONTEXT_MODULES)
#define LOADER ACTION_IN(CONTEXT_LOADER)
#define MEMORY ACTION_IN(CONTEXT_MEMORY)
#define GPU ACTION_IN(CONTEXT_GPU)
#define RANKS ACTION_IN(CONTEXT_RANKS)
#define STACKS ACTION_IN(CONTEXT_STACKS)
#define TREES (TENSORS | MODULES | LOADER | MEMORY | GPU) /* rows within rows */
#define STEPS ACTION_IN(CONTEXT_STEPS)
#define SHEETS (TREES | STEPS) /* tables from queries of the job's tables */
#define TRAINING (MODULES | STEPS | OVERVIEW)
#define PANES (THREADS | TOP)
#define VIEWS ACTION_VIEWS
#define JOBS ACTION_IN(CONTEXT_JOB_PICKER)
#define TABLES (THREADS | ACTION_IN(CONTEXT_PICKER))
#define EDIT ACTION_IN(CONTEXT_SQL)
#define COMPLETE ACTION_IN(CONTEXT_SQL_COMPLETE)
#define CODE ACTION_IN(CONTEXT_REPL)
#define NAMES ACTION_IN(CONTEXT_REPL_COMPLETE)
#define OUTPUT ACTION_IN(CONTEXT_REPL_OUTPUT)
#define EDITS (EDIT | CODE)
#define CHOICES (COMPLETE | NAMES)
#define TYPING ACTION_TYPED
#define SHEET ACTION_IN(CONTEXT_SQL_SHEET)
#define SQL (EDIT | SHEET)
#define TABS ACTION_TABS
#define FRAMES (PANES | FLAME)                /* where a row belongs to a stack */
#define PICKED (FRAMES | OVERVIEW | TIMELINE) /* where a row belongs to a thread or a function */
#define MENU ACTION_IN(CONTEXT_MENU)
#define EXPORT ACTION_IN(CONTEXT_EXPORT)
#define OVER ACTION_OVERLAYS
#define ROW ACTION_FOR_ROW
/* Where Space tags a row. */
#define TAGGED                                                                                               \
    (ACTION_IN(CONTEXT_THREADS) | TOP | TIMELINE | LOG | SHEETS | FLAME | PROCESSES | RANKS | STACKS)
#define SETUP ACTION_IN(CONTEXT_SETUP)
#define THEMES ACTION_IN(CONTEXT_THEMES)
#define PROCESSES (ACTION_IN(CONTEXT_PICKER) | ACTION_IN(CONTEXT_TARGETS))
#define ALL ACTION_LETTERS

/* Placeholders for the rows that open a screen, which are in its file; and for those of all
 * remaining screens. */
#define SCREEN(NAME)                                                                                         \
    { ACTION_SHOW_##NAME, NULL, 0, {NULL}, NULL, 0, NULL }
#define OTHER_SCREENS                                                                                        \
    { ACTION_COUNT, NULL, 0, {NULL}, NULL, 0, NULL }

/* clang-format off */
/* In the order of the footer and of the help. */
static const struct action_def action_fixed[] = {
    {ACTION_SQL_TO_SHEET, "to-output", CODE, {"Esc"}, "Back", 0, "go to the output, where letters are keys"},
    {ACTION_SQL_TO_SHEET, "to-result", EDIT, {"Esc"}, "Back", 0,
     "go to the result, where letters are keys"},
    {ACTION_BACK, "back", CHOICES, {"Esc"}, "Back", 0, "close the list"},
    SCREEN(HELP),
    {ACTION_SQL_RUN, "run", CODE | NAMES | ACTION_CHANGES, {"F5"}, "Run", 0, "run what is typed, as it is"},
    {ACTION_SQL_RUN, "run", EDIT | COMPLETE, {"F5"}, "Run", 0, "run the query; Enter does too after a ;"},
    {ACTION_SQL_RUN, "run", SHEET, {"F5"}, "Run", 1, "run the query again"},
    {ACTION_SQL_ACCEPT, "accept", CHOICES, {"Tab", "Enter"}, "Accept", 0, "put in what is selected"},
    {ACTION_SQL_COMPLETE, "complete", CODE, {"Tab"}, "Complete", 2, "complete the name, as the job has it; or indent"},
    {ACTION_SQL_COMPLETE, "complete", EDIT, {"Tab"}, "Complete", 2,
     "complete the word: tables, columns, functions, keywords"},
    {ACTION_SQL_SAVED, "saved", SQL, {"F2"}, "Saved", 2, "queries that are often of use; Enter takes one"},
    {ACTION_SQL_TABLES, "tables", SQL, {"F4"}, "Tables", 2,
     "all tables and what they hold; Enter: the columns of one"},
    {ACTION_SQL_TO_EDITOR, "to-code", OUTPUT, {"o"}, "Pane", 1, "go to the code"},
    {ACTION_SQL_TO_EDITOR, "to-query", SHEET, {"o"}, "Pane", 1, "go to the query"},
    {ACTION_SQL_WATCH, "watch", SQL, {"F9"}, "Watch", 6,
     "toggle running the query every 2 s; :watch 10: every 10 s"},
    {ACTION_RUN_ENTRY, "run-entry", MENU, {"Enter"}, "Do", 0, "do what is selected"},
    {ACTION_RUN_ENTRY, "run-entry", EXPORT, {"Enter"}, "Write", 0, "take the format, and ask for a name"},
    {ACTION_RUN_ENTRY, "run-entry", ACTION_IN(CONTEXT_HELP), {"Enter"}, "Run", 1,
     "close the help and do the selected entry"},
    {ACTION_ATTACH, "attach", ACTION_IN(CONTEXT_PICKER), {"Enter"}, "Attach", 0,
     "attach to the selected process, or to all that are tagged"},
    {ACTION_OPEN_JOB, "open-job", JOBS | ROW, {"Enter"}, "Open", 0, "show the ranks of the job"},
    {ACTION_SEARCH, "search", ALL & ~UNSEARCHED & ~EXPORT, {"/", "F3"}, "Search", 2, "search; a|b finds either, capitals are exact"},
    {ACTION_SEARCH_NEXT, "search-next", ALL & ~UNSEARCHED & ~EXPORT, {"n"}, NULL, 0, "next match"},
    {ACTION_SEARCH_PREV, "search-previous", ALL & ~UNSEARCHED & ~EXPORT, {"N", "S-F3"}, NULL, 0, "previous match"},
    {ACTION_FILTER, "filter", JOBS, {"\\", "F4"}, "Filter", 3, "jobs that match by name, user or state; !x hides them"},
    {ACTION_FILTER, "filter", TABLES, {"\\", "F4"}, "Filter", 3,
     "show rows that match by name, id or stack; !x hides them"},
    {ACTION_FILTER, "filter", TOP, {"\\", "F4"}, "Filter", 3,
     "show rows that match by function or file; !x hides them"},
    {ACTION_FILTER, "filter", FLAME, {"\\", "F4"}, "Filter", 3,
     "show stacks with a frame that matches; !x hides them"},
    {ACTION_FILTER, "filter", LOG, {"\\", "F4"}, "Filter", 3, "show entries that match; !x hides them"},
    {ACTION_FILTER, "filter", TIMELINE, {"\\", "F4"}, "Filter", 3,
     "show threads that match by name or function; !x hides"},
    {ACTION_FILTER, "filter", TENSORS, {"\\", "F4"}, "Filter", 3,
     "show tensors that match by name, shape, ...; !x hides"},
    {ACTION_FILTER, "filter", MODULES, {"\\", "F4"}, "Filter", 3,
     "show modules that match by path, class, ...; !x hides"},
    {ACTION_FILTER, "filter", STEPS, {"\\", "F4"}, "Filter", 3,
     "steps that match: slow, nan, gc, data, 4711; !x hides"},
    {ACTION_FILTER, "filter", LOADER, {"\\", "F4"}, "Filter", 3,
     "show what matches by dataset or function; !x hides"},
    {ACTION_FILTER, "filter", MEMORY, {"\\", "F4"}, "Filter", 3,
     "show what matches by function, file, type; !x hides"},
    {ACTION_FILTER, "filter", GPU, {"\\", "F4"}, "Filter", 3,
     "GPUs that match by name, state; processes; !x hides"},
    {ACTION_FILTER, "filter", RANKS, {"\\", "F4"}, "Filter", 3,
     "rank:0-63, host:gpu1, class:3fa2, late, or text; !x hides"},
    {ACTION_FILTER, "filter", STACKS, {"\\", "F4"}, "Filter", 3,
     "rows with a call that matches, or with rank:5; !x hides"},
    {ACTION_REFRESH, "refresh", TABLES | JOBS, {"r"}, "Refresh", 9, "read everything again now"},
    {ACTION_REFRESH, "refresh", TREES, {"r"}, "Refresh", 8, "read the table again now; its cost is shown above"},
    {ACTION_SORT_NEXT, "sort-next", TABLES | JOBS | TOP | SHEETS | RANKS, {"F6", ">"}, "Sort", 4, "sort by the next column"},
    {ACTION_SORT_PREV, "sort-previous", TABLES | JOBS | TOP | SHEETS | RANKS, {"<"}, NULL, 0, "sort by the previous column"},
    {ACTION_SORT_INVERT, "sort-invert", TABLES | JOBS | TOP | SHEETS | RANKS, {"I"}, NULL, 0, "reverse the order"},
    {ACTION_SORT_CPU, "sort-cpu", TABLES, {"P"}, NULL, 0, "sort by CPU%, busiest first"},
    {ACTION_SLOWER, "slower", VIEWS, {"F7", "{"}, "Slower", 13, "ask for fewer snapshots a second"},
    {ACTION_FASTER, "faster", VIEWS, {"F8", "}"}, "Faster", 12, "ask for more snapshots a second"},
    {ACTION_PAUSE, "freeze", VIEWS, {"Z"}, "Freeze", 5,
     "freeze the view, recording continues; again: the latest"},
    {ACTION_HISTORY_OLDER, "older", FRAMES, {","}, NULL, 0, "freeze the view and step back: the snapshot before"},
    {ACTION_HISTORY_OLDER, "older", RANKS | STACKS, {","}, NULL, 0, "freeze the view and step back; :at TIME goes to one"},
    {ACTION_HISTORY_OLDER, "older", STEPS, {","}, NULL, 0, "the moment before, for a job in a database; :at TIME"},
    {ACTION_HISTORY_OLDER, "older", OVERVIEW, {","}, NULL, 0, "the moment before, when it shows all ranks; :at TIME"},
    {ACTION_HISTORY_NEWER, "newer", STEPS | OVERVIEW, {"."}, NULL, 0, "the moment after; Z: the latest"},
    {ACTION_HISTORY_NEWER, "newer", RANKS | STACKS, {"."}, NULL, 0, "the moment after; End or Z: the latest"},
    {ACTION_HISTORY_NEWER, "newer", FRAMES, {"."}, NULL, 0, "the snapshot after; End or Z: the latest"},
    {ACTION_FOCUS, "focus", PANES | TREES, {"o"}, "Pane", 6, "go to the other pane"},
    {ACTION_FOCUS, "focus", RANKS, {"o"}, "Pane", 6, "go to the cells, or back to the table"},
    {ACTION_GROUP, "group", TENSORS, {"b"}, "Group", 2, "group by module, kind, shape, dtype, device, storage"},
    {ACTION_GROUP, "group", RANKS, {"b"}, "Group", 2, "cells of all ranks: by host, by class of stacks, by rank"},
    {ACTION_GROUP, "view", GPU, {"b"}, "View", 2, "processes that have memory on these GPUs; or the GPUs"},
    {ACTION_GROUP, "view", MEMORY, {"b"}, "View", 1, "lines that allocate; as a flame graph; holders; GPUs"},
    {ACTION_TENSOR_GROWTH, "growth", TENSORS, {"d"}, "Diff", 2, "toggle what grew from step to step, by shape and owner"},
    {ACTION_TENSOR_STATISTICS, "statistics", TENSORS | ROW, {"v"}, "Values", 3, "read its values: range, histogram; and what holds it"},
    {ACTION_OPEN_TENSOR, "open-tensor", TENSORS | ROW, {"Enter"}, "Details", 1, "details; again: go to that pane"},
    {ACTION_OPEN_MODULE, "open-module", MODULES | ROW, {"Enter"}, "Details", 1, "details; again: go to that pane"},
    {ACTION_OPEN_MEMORY, "open-memory", MEMORY | ROW, {"Enter"}, "Details", 2, "details; again: go to that pane"},
    {ACTION_OPEN_LOADER, "open-loader", LOADER | ROW, {"Enter"}, "Details", 1, "details; again: go to that pane"},
    {ACTION_OPEN_GPU, "open-gpu", GPU | ROW, {"Enter"}, "Details", 1, "details; again: go to that pane"},
    {ACTION_MARK, "mark", MEMORY, {"'"}, "Mark", 5, "set the mark: GROWTH counts from here"},
    {ACTION_MARK, "mark", TENSORS, {"'"}, "Mark", 5, "set the mark: GROWTH counts from here"},
    {ACTION_FOLD, "fold", TREES, {"-"}, NULL, 0, "fold the row: hide what it holds"},
    {ACTION_UNFOLD, "unfold", TREES, {"+", "="}, NULL, 0, "unfold it"},
    {ACTION_FOLD_ALL, "fold-all", TREES, {"*"}, NULL, 0, "unfold all rows, or fold them"},
    {ACTION_TRACE, "trace", MODULES | ACTION_CHANGES, {"X"}, "Trace", 3,
     "start or stop timing the modules of some steps"},
    {ACTION_TRACE_MEMORY, "trace-memory", MEMORY | ACTION_CHANGES, {"X"}, "Trace", 0,
     "start or stop tracing allocations; costs about 1 %"},
    {ACTION_NAN_SEARCH, "nan-hunt", TRAINING | ACTION_CHANGES, {"V"}, "NaN", 6,
     "start or stop the search for the first NaN or infinity"},
    {ACTION_PROFILER, "profiler", TRAINING | ACTION_CHANGES, {"K"}, "Profile", 7,
     "run torch.profiler for 3 steps; asks first"},
    {ACTION_TREE, "tree", TREES, {"F5", "t"}, "Tree", 7, "toggle tree and flat list"},
    SCREEN(OVERVIEW),
    SCREEN(THREADS),
    SCREEN(FLAME),
    SCREEN(TOP),
    SCREEN(TIMELINE),
    SCREEN(STEPS),
    SCREEN(TENSORS),
    SCREEN(MODULES),
    SCREEN(LOADER),
    SCREEN(SQL),
    SCREEN(REPL),
    SCREEN(LOG),
    SCREEN(MEMORY),
    SCREEN(GPU),
    {ACTION_SCREEN_NEXT, "next-screen", TABS, {"Tab"}, "Next", 8, "next screen"},
    {ACTION_SCREEN_PREV, "previous-screen", TABS, {"S-Tab"}, NULL, 0, "previous screen"},
    {ACTION_DEBUG, "debug", TABS | ACTION_CHANGES, {"B"}, NULL, 0,
     "start or stop debugpy in the job (VS Code)"},
    SCREEN(RANKS),
    SCREEN(STACKS),
    {ACTION_RANK_PREV, "rank-previous", VIEWS | LOG, {"["}, NULL, 0, "open the previous rank of the job"},
    {ACTION_RANK_NEXT, "rank-next", VIEWS | LOG, {"]"}, NULL, 0, "open the next rank of the job"},
    SCREEN(TARGETS),
    OTHER_SCREENS,
    {ACTION_OPEN_RANK, "open-rank", RANKS | ROW, {"Enter"}, "Open", 0, "open the rank in all screens; of a cell: show its ranks"},
    {ACTION_OPEN_CLASS, "open-class", STACKS | ROW, {"Enter"}, "Ranks", 0, "show the ranks of the row"},
    {ACTION_SWITCH_TARGET, "switch-target", ACTION_IN(CONTEXT_TARGETS), {"Enter"}, "Show", 0, "show the selected target"},
    {ACTION_OPEN_LINE, "open-line", OVERVIEW | ROW, {"Enter"}, "Open", 1,
     "open the screen that the line is of; a function in Flame"},
    {ACTION_OPEN_CALLS, "open-calls", TOP | ROW, {"Enter"}, "Calls", 2,
     "who calls it and whom it calls; there: go to that one"},
    {ACTION_FLAME_ZOOM, "zoom-in", FLAME | ROW, {"Enter"}, "Zoom", 1, "zoom in: give the selected frame the whole width"},
    {ACTION_FLAME_OUT, "zoom-out", FLAME, {"u", "Backspace"}, "Out", 4,
     "zoom out to the nearest wider caller; Esc: all the way"},
    {ACTION_TIME_ENTER, "enter", TIMELINE | ROW, {"Enter"}, "Calls", 1,
     "the thread's calls, or all; a selection: it is the window"},
    {ACTION_TIME_SELECT, "select", TIMELINE, {"s"}, "Select", 2,
     "begin a span here; move to its end, Enter: the window"},
    {ACTION_TIME_SHORTER, "shorter", TIMELINE, {"+", "="}, "In", 4, "shorter slices; the wheel does too"},
    {ACTION_TIME_LONGER, "longer", TIMELINE, {"-"}, "Out", 4, "longer slices"},
    {ACTION_ALL_RANKS, "all-ranks", STEPS, {"&"}, NULL, 0, "least, median and most of all ranks of the job"},
    {ACTION_TIME_SHORTER, "finer", STEPS, {"+", "="}, "In", 4, "fewer steps a column; the wheel does too"},
    {ACTION_TIME_LONGER, "coarser", STEPS, {"-"}, "Out", 4, "more steps a column: further back in time"},
    {ACTION_TIME_BACK, "back-in-time", TIMELINE, {"S-Left"}, NULL, 0, "half a screen back in time"},
    {ACTION_TIME_FORTH, "on-in-time", TIMELINE, {"S-Right"}, NULL, 0, "half a screen on in time"},
    {ACTION_BY_LINE, "by-line", TOP, {"l"}, "Lines", 6, "toggle lines and functions"},
    {ACTION_BY_LINE, "by-line", FLAME, {"l"}, "Lines", 6, "cells are functions, lines, or modules"},
    {ACTION_ON_CPU, "on-cpu", TOP, {"a"}, "OnCPU", 2, "toggle CPU time and all time (includes waiting)"},
    {ACTION_ON_CPU, "on-cpu", FLAME, {"a"}, "OnCPU", 2,
     "CPU time, all time (includes waiting), or GIL time"},
    {ACTION_ON_CPU, "on-cpu", TIMELINE, {"a"}, "OnCPU", 6,
     "colour CPU time, all time, or GIL time"},
    {ACTION_ON_CPU, "cells", RANKS, {"a"}, "Cells", 5, "a cell shows the state, the step time, or the CPU"},
    {ACTION_WINDOW, "window", TOP | FLAME | TIMELINE | OVERVIEW, {"W"}, "Window", 6, "last 10 s, 60 s, all, since the mark, the span, if any"},
    {ACTION_MARK, "mark", TOP | FLAME | TIMELINE, {"'"}, NULL, 0, "set the mark: W shows the time since then"},
    {ACTION_DIFF, "diff", TOP | FLAME, {"d"}, "Diff", 6, "toggle comparing with the time before, or a recording"},
    {ACTION_DIFF, "diff", TIMELINE, {"d"}, "Diff", 6, "compare with the selected span; no span: begin, or end"},
    {ACTION_COMPARE, "compare", RANKS, {"d"}, "Diff", 6, "its stack beside that of a tagged rank, or of the most"},
    {ACTION_COMPARE, "compare", STACKS, {"d"}, "Diff", 6, "this stack beside the one that most other ranks have"},
    {ACTION_DIFF_BEFORE, "diff-before", TOP | FLAME | TIMELINE, {"D"}, NULL, 0, "compare with the time before: no span, no recording"},
    {ACTION_ZERO, "zero", TOP | FLAME, {"z"}, "Zero", 6, "count from zero"},
    {ACTION_FLAME_FLIP, "flip", FLAME, {"F"}, "Flip", 6, "flip: callers at the bottom or at the top"},
    {ACTION_DETAILS, "details", FLAME, {"o"}, "Pane", 5,
     "toggle callers, callees and source of the selected frame"},
    {ACTION_FLAME_MODULE, "module", FLAME, {"|"}, NULL, 0, "toggle only what the module of the frame does"},
    {ACTION_NATIVE, "native", TOP | FLAME | TIMELINE, {"c"}, NULL, 0, "toggle C and C++ frames"},
    {ACTION_THRESHOLD_UP, "threshold-up", TOP, {"+"}, NULL, 0, "hide more of the small ones (by %TOTAL)"},
    {ACTION_THRESHOLD_UP, "threshold-up", FLAME, {"+"}, NULL, 0, "put more of the small ones into one cell"},
    {ACTION_THRESHOLD_DOWN, "threshold-down", TOP, {"-"}, NULL, 0, "hide fewer of them"},
    {ACTION_THRESHOLD_DOWN, "threshold-down", FLAME, {"-"}, NULL, 0, "put fewer of them there"},
    {ACTION_THREAD_PREV, "thread-previous", TOP | FLAME, {"("}, NULL, 0,
     "samples of the previous thread, or of all"},
    {ACTION_THREAD_NEXT, "thread-next", TOP | FLAME, {")"}, NULL, 0, "samples of the next thread, or of all"},
    {ACTION_OPEN_STACK, "open-stack", ACTION_IN(CONTEXT_THREADS) | ROW, {"Enter"}, NULL, 0,
     "go into the stack of the selected thread"},
    {ACTION_OPEN_CHILD, "open-child", THREADS | ROW, {"C"}, NULL, 0,
     "open the child process a thread is of; from there: back"},
    {ACTION_LOCALS, "locals", THREADS | ROW, {"v"}, "Values", 5,
     "toggle the variables of the selected frame"},
    {ACTION_WATCH_LOCAL, "watch", THREADS | ROW | ACTION_CHANGES, {"w"}, NULL, 0,
     "toggle recording the selected variable (training_logs)"},
    {ACTION_NATIVE, "native", THREADS | ROW, {"c"}, NULL, 0,
     "toggle C and C++ frames of the thread"},
    {ACTION_REPR, "repr", THREADS | ROW | ACTION_CHANGES, {"E"}, NULL, 0,
     "toggle values by the job's repr(), which runs its code"},
    {ACTION_TASKS, "tasks", THREADS | ROW, {"F5", "t"}, "Tree", 11,
     "toggle the tree of asyncio tasks of the thread"},
    {ACTION_ZOOM, "zoom", PANES | TREES, {"alt-o"}, NULL, 0, "toggle the pane at full size"},
    {ACTION_THREAD_PREV, "thread-previous", TIMELINE, {"("}, NULL, 0, "previous thread, of its calls too"},
    {ACTION_THREAD_NEXT, "thread-next", TIMELINE, {")"}, NULL, 0, "next thread, of its calls too"},
    {ACTION_THREAD_PREV, "thread-previous", THREADS, {"("}, NULL, 0, "previous thread, from either pane"},
    {ACTION_THREAD_NEXT, "thread-next", THREADS, {")"}, NULL, 0, "next thread, from either pane"},
    {ACTION_HIDE_IDLE, "hide-idle", THREADS, {"i"}, NULL, 0,
     "toggle idle threads: those that did not run lately"},
    {ACTION_HIDE_IDLE, "hide-idle", TIMELINE, {"i"}, "Idle", 5,
     "toggle threads that did not run in the time shown"},
    {ACTION_HIDE_NATIVE, "hide-native", THREADS, {"H"}, NULL, 0, "toggle threads without Python"},
    {ACTION_SHOW_ALL, "show-all", TABLES | JOBS | TOP | LOG | SHEETS | RANKS | STACKS | ACTION_IN(CONTEXT_TARGETS), {"A"}, NULL, 0, "show all rows: no filter, nothing hidden"},
    {ACTION_SHOW_ALL, "show-all", FLAME, {"A"}, NULL, 0, "show all: no filter, zoom or thread, all time"},
    {ACTION_SHOW_ALL, "show-all", TIMELINE, {"A"}, NULL, 0, "show all: no filter, nothing hidden, all time"},
    {ACTION_UP, "up", ALL & ~FLAME, {"Up", "k", "ctrl-p"}, NULL, 0, "up"},
    {ACTION_UP, "up", FLAME, {"Up", "k", "ctrl-p"}, NULL, 0,
     "to the frame above: the caller, or what it calls"},
    {ACTION_DOWN, "down", ALL & ~FLAME, {"Down", "j", "ctrl-n"}, NULL, 0, "down"},
    {ACTION_DOWN, "down", FLAME, {"Down", "j", "ctrl-n"}, NULL, 0, "to the frame below"},
    {ACTION_LEFT, "left", ALL & ~(FLAME | UNSEARCHED | TIMELINE | SHEETS), {"Left", "S-Left"}, NULL, 0, "scroll long lines to the left"},
    {ACTION_LEFT, "left", FLAME, {"Left"}, NULL, 0, "to the frame on the left"},
    {ACTION_RIGHT, "right", ALL & ~(FLAME | UNSEARCHED | TIMELINE | SHEETS), {"Right", "S-Right"}, NULL, 0,
     "scroll long lines to the right"},
    {ACTION_RIGHT, "right", FLAME, {"Right"}, NULL, 0, "to the frame on the right"},
    {ACTION_LEFT, "left", TREES, {"Left"}, NULL, 0, "fold the row, or go to the one that holds it"},
    {ACTION_RIGHT, "right", TREES, {"Right"}, NULL, 0, "unfold the row, or go into it"},
    {ACTION_LEFT, "left", STEPS, {"Left"}, NULL, 0, "back in time: the step before"},
    {ACTION_RIGHT, "right", STEPS, {"Right"}, NULL, 0, "on in time: the step after"},
    {ACTION_SCROLL_LEFT, "scroll-left", TREES, {"S-Left"}, NULL, 0, "scroll long lines to the left"},
    {ACTION_SCROLL_RIGHT, "scroll-right", TREES, {"S-Right"}, NULL, 0, "scroll long lines to the right"},
    {ACTION_LEFT, "left", TIMELINE, {"Left"}, NULL, 0, "a slice back in time"},
    {ACTION_RIGHT, "right", TIMELINE, {"Right"}, NULL, 0, "a slice on; at the latest it follows"},
    {ACTION_FIRST, "first", TIMELINE, {"Home", "g"}, NULL, 0, "the oldest slice that is known"},
    {ACTION_LAST, "last", TIMELINE, {"End", "G"}, NULL, 0, "now: follow the latest slice"},
    {ACTION_HALF_UP, "half-page-up", ALL, {"ctrl-u"}, NULL, 0, "half a page up"},
    {ACTION_HALF_DOWN, "half-page-down", ALL, {"ctrl-d"}, NULL, 0, "half a page down"},
    {ACTION_PAGE_UP, "page-up", ALL, {"PgUp", "ctrl-b"}, NULL, 0, "a page up"},
    {ACTION_PAGE_DOWN, "page-down", ALL, {"PgDn", "ctrl-f"}, NULL, 0, "a page down"},
    {ACTION_FIRST, "first", ALL & ~(FLAME | TIMELINE), {"Home", "g"}, NULL, 0, "first line"},
    {ACTION_FIRST, "first", FLAME, {"Home", "g"}, NULL, 0, "the outermost frame"},
    {ACTION_LAST, "last", ALL & ~(FRAMES | TIMELINE | RANKS | STACKS), {"End", "G"}, NULL, 0, "last line"},
    {ACTION_LAST, "last", PANES | RANKS | STACKS, {"G"}, NULL, 0, "last line"},
    {ACTION_LAST, "last", FLAME, {"G"}, NULL, 0, "the innermost, along those with the most time"},
    {ACTION_END, "end", PANES | RANKS | STACKS, {"End"}, NULL, 0, "in the past: the latest; else the last line"},
    {ACTION_END, "end", FLAME, {"End"}, NULL, 0, "in the past: the latest; else as G"},
    {ACTION_SHEET_SORT, "sort", SHEET, {"F6"}, "Sort", 3,
     "sort by the column; again: reverse"},
    {ACTION_SHEET_ASCEND, "sort-ascending", SHEET, {"["}, NULL, 0, "sort by the column, smallest first"},
    {ACTION_SHEET_DESCEND, "sort-descending", SHEET, {"]"}, NULL, 0, "sort by the column, largest first"},
    {ACTION_SORT_INVERT, "sort-invert", SHEET, {"I"}, NULL, 0, "reverse the order"},
    {ACTION_SHEET_OPEN, "open", SHEET | ROW, {"Enter"}, NULL, 0,
     "the whole value; in a list: take what is selected"},
    {ACTION_SHEET_VERTICAL, "vertical", SHEET, {"v"}, "Values", 5,
     "toggle one value a line, for rows that are too wide"},
    {ACTION_SHEET_DESCRIBE, "describe", SHEET | ROW, {"="}, "Describe", 5,
     "statistics of the column: nulls, min, mean, quantiles"},
    {ACTION_SHEET_FREQUENCY, "frequency", SHEET | ROW, {"%"}, "Freq", 5,
     "how often each value of the column is there"},
    {ACTION_SHEET_BAR, "bar", SHEET, {"!"}, "Bar", 6, "toggle bars beside the numbers of the column"},
    {ACTION_SHEET_NARROW, "narrower", SHEET, {"<"}, NULL, 0, "make the column narrower"},
    {ACTION_SHEET_WIDEN, "wider", SHEET, {">"}, NULL, 0, "make the column wider"},
    {ACTION_SHEET_FIT, "fit", SHEET, {"_"}, NULL, 0, "as wide as what it shows, or as it was"},
    {ACTION_SHEET_HIDE, "hide", SHEET, {"-"}, NULL, 0, "hide the column"},
    {ACTION_SHOW_ALL, "show-all", SHEET, {"A", "+"}, NULL, 0, "show all columns"},
    {ACTION_SHEET_FIRST_COLUMN, "first-column", SHEET, {"^", "ctrl-a"}, NULL, 0, "first column"},
    {ACTION_SHEET_LAST_COLUMN, "last-column", SHEET, {"$", "ctrl-e"}, NULL, 0, "last column"},
    {ACTION_ZOOM, "zoom", SHEET, {"alt-o"}, NULL, 0, "toggle the result at full size"},
    {ACTION_COMMAND_LINE, "command-line", SHEET, {":"}, "Cmd", 4,
     "type a command: export, watch, save, ...; Tab completes"},
    {ACTION_COMMAND_LINE, "command-line", CODE, {"alt-x"}, NULL, 0, "type a command; Tab completes"},
    {ACTION_COMMAND_LINE, "command-line", EDIT, {"alt-x"}, "Cmd", 4,
     "type a command: export, watch, save, ...; Tab completes"},
    {ACTION_SQL_ENTER, "enter", CODE | ACTION_CHANGES, {"Enter"}, NULL, 0, "run it; an empty line ends a block; %help has commands"},
    {ACTION_SQL_ENTER, "enter", EDIT, {"Enter"}, NULL, 0,
     "run the query if it ends with ; else begin a new line"},
    {ACTION_EDIT_NEWLINE, "new-line", EDITS, {"alt-Enter"}, NULL, 0, "begin a new line"},
    {ACTION_SQL_HISTORY, "history-search", CODE, {"ctrl-r"}, "History", 3, "search earlier code; again: an older match"},
    {ACTION_SQL_HISTORY, "history-search", EDIT, {"ctrl-r"}, "History", 3,
     "search earlier queries; again: an older match"},
    {ACTION_SQL_PREVIOUS, "history-previous", CODE, {"alt-p"}, NULL, 0, "the previous code; or Up in the first line"},
    {ACTION_SQL_PREVIOUS, "history-previous", EDIT, {"alt-p"}, NULL, 0,
     "the previous query; or Up in the first line"},
    {ACTION_SQL_NEXT, "history-next", CODE, {"alt-n"}, NULL, 0, "the next code; or Down in the last line"},
    {ACTION_SQL_NEXT, "history-next", EDIT, {"alt-n"}, NULL, 0,
     "the next query; or Down in the last line"},
    {ACTION_EDIT_LEFT, "left", TYPING, {"Left", "ctrl-b"}, NULL, 0, "a character to the left"},
    {ACTION_EDIT_RIGHT, "right", TYPING, {"Right", "ctrl-f"}, NULL, 0, "a character to the right"},
    {ACTION_EDIT_UP, "up", EDITS, {"Up", "ctrl-p"}, NULL, 0, "a line up"},
    {ACTION_EDIT_DOWN, "down", EDITS, {"Down", "ctrl-n"}, NULL, 0, "a line down"},
    {ACTION_UP, "up", CHOICES, {"Up", "ctrl-p", "S-Tab"}, NULL, 0, "up"},
    {ACTION_DOWN, "down", CHOICES, {"Down", "ctrl-n"}, NULL, 0, "down"},
    {ACTION_EDIT_WORD_LEFT, "word-left", TYPING, {"alt-b", "S-Left"}, NULL, 0, "a word to the left"},
    {ACTION_EDIT_WORD_RIGHT, "word-right", TYPING, {"alt-f", "S-Right"}, NULL, 0, "a word to the right"},
    {ACTION_EDIT_LINE_BEGIN, "line-begin", TYPING, {"Home", "ctrl-a"}, NULL, 0, "beginning of the line"},
    {ACTION_EDIT_LINE_END, "line-end", TYPING, {"End", "ctrl-e"}, NULL, 0, "end of the line"},
    {ACTION_EDIT_TEXT_BEGIN, "text-begin", TYPING, {"alt-<"}, NULL, 0, "beginning of the text"},
    {ACTION_EDIT_TEXT_END, "text-end", TYPING, {"alt->"}, NULL, 0, "end of the text"},
    {ACTION_EDIT_ERASE, "erase", TYPING, {"Backspace"}, NULL, 0, "delete the character before"},
    {ACTION_EDIT_DELETE, "delete", TYPING, {"Del", "ctrl-d"}, NULL, 0, "delete the character"},
    {ACTION_EDIT_KILL_LINE, "kill-line", TYPING, {"ctrl-k"}, NULL, 0, "cut to the end of the line"},
    {ACTION_EDIT_KILL_TO_BEGIN, "kill-to-begin", TYPING, {"ctrl-u"}, NULL, 0,
     "cut to the beginning of the line"},
    {ACTION_EDIT_KILL_BLANK, "kill-to-blank", TYPING, {"ctrl-w"}, NULL, 0, "cut back to a blank"},
    {ACTION_EDIT_KILL_WORD_LEFT, "kill-word-left", TYPING, {"alt-Backspace"}, NULL, 0, "cut the word before"},
    {ACTION_EDIT_KILL_WORD_RIGHT, "kill-word-right", TYPING, {"alt-d"}, NULL, 0, "cut the word after"},
    {ACTION_EDIT_YANK, "yank", TYPING, {"ctrl-y"}, NULL, 0, "paste the last cut"},
    {ACTION_EDIT_UNDO, "undo", TYPING, {"ctrl-_"}, NULL, 0, "undo (ctrl-/ on most terminals)"},
    {ACTION_EDIT_REDO, "redo", TYPING, {"alt-_"}, NULL, 0, "redo"},
    {ACTION_PAGE_UP, "page-up", CODE, {"PgUp"}, NULL, 0, "a page of the output up"},
    {ACTION_PAGE_UP, "page-up", EDIT, {"PgUp"}, NULL, 0, "a page of the result up"},
    {ACTION_PAGE_DOWN, "page-down", CODE, {"PgDn"}, NULL, 0, "a page of the output down"},
    {ACTION_PAGE_DOWN, "page-down", EDIT, {"PgDn"}, NULL, 0, "a page of the result down"},
    {ACTION_COMMAND_LINE, "command-line", ALL & ~SHEET, {":"}, NULL, 0,
     "type a command, or the name of an action; Tab completes"},
    SCREEN(MENU),
    SCREEN(EXPORT),
    {ACTION_TAG, "tag", TAGGED | ROW, {"Space", "Ins"}, NULL, 0, "tag the row, or untag it; y Y and x take tagged rows"},
    {ACTION_TAG, "tag", SHEET | ROW, {"Space", "Ins"}, NULL, 0, "tag the row, or untag it; y Y :export take tagged rows"},
    {ACTION_UNTAG, "untag-all", TAGGED | SHEET | ROW, {"U"}, NULL, 0, "remove all tags"},
    {ACTION_TAGGED, "tagged-only", TAGGED | SHEET | ROW, {"\""}, NULL, 0, "toggle showing only tagged rows"},
    {ACTION_COPY, "copy", PICKED | ROW, {"y"}, NULL, 0,
     "copy FILE:LINE FUNCTION; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", SHEET | ROW, {"y"}, NULL, 0, "copy the value; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", PROCESSES | ROW, {"y"}, NULL, 0, "copy its pid; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", JOBS | ROW, {"y"}, NULL, 0, "copy its name; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", TREES | ROW, {"y"}, NULL, 0, "copy its name; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", STEPS | ROW, {"y"}, NULL, 0, "copy its number; within tmux: set-clipboard on"},
    {ACTION_COPY, "copy", RANKS | STACKS | ROW, {"y"}, NULL, 0, "copy the numbers of its ranks"},
    {ACTION_COPY_ROW, "copy-row", SHEETS | PROCESSES | JOBS | RANKS | STACKS | ROW, {"Y"}, NULL, 0, "copy the row as text"},
    {ACTION_COPY, "copy", OUTPUT, {"y"}, NULL, 0, "copy the last result"},
    {ACTION_COPY_ROW, "copy-all", OUTPUT, {"Y"}, NULL, 0, "copy all messages"},
    {ACTION_COPY, "copy", LOG | ROW, {"y"}, NULL, 0, "copy the entry; within tmux: set-clipboard on"},
    {ACTION_COPY_ROW, "copy-row", PICKED | ROW, {"Y"}, NULL, 0, "copy the whole stack, or row, as text"},
    {ACTION_COPY_ROW, "copy-row", SHEET | ROW, {"Y"}, NULL, 0, "copy the row; tabs between the values"},
    {ACTION_EDIT_FILE, "edit", PICKED | ROW, {"e"}, NULL, 0,
     "open the frame's file at its line in $VISUAL or $EDITOR"},
    {ACTION_ROW_IN_FLAME, "row-in-flame", PANES | OVERVIEW | TIMELINE | ROW, {"f"}, NULL, 0,
     "show it in Flame: the thread's samples, the function"},
    {ACTION_ROW_IN_TOP, "row-in-top", THREADS | FLAME | OVERVIEW | TIMELINE | ROW, {"T"}, NULL, 0,
     "show it in Top: the thread's samples, the function"},
    {ACTION_ROW_IN_THREADS, "row-in-threads", OVERVIEW | TIMELINE | ROW, {"J"}, NULL, 0, "show its thread in Threads"},
    {ACTION_SETUP_CHANGE, "change", SETUP, {"Enter"}, "Change", 0,
     "the next value (Left: the one before), or type it"},
    {ACTION_THEME_KEEP, "keep", THEMES, {"Enter"}, "Keep", 0, "keep the theme that is shown; Esc: as it was"},
    SCREEN(SETUP),
    SCREEN(THEMES),
    {ACTION_SAVE_SETTINGS, "save-settings", SETUP, {"F12"}, "Save", 1, "write the settings to the file"},
    {ACTION_SAVE_SETTINGS, "save-settings", ALL & ~SETUP, {"F12"}, NULL, 0,
     "write the settings to the file, as they are now"},
    {ACTION_METERS, "meters", TABS, {"#"}, NULL, 0, "fold the header to one line, or unfold it"},
    {ACTION_MOUSE, "mouse", ALL, {"ctrl-t"}, NULL, 0,
     "mouse on or off; off, or Shift: the terminal selects text"},
    {ACTION_REDRAW, "redraw", ALL, {"ctrl-l"}, NULL, 0, "paint the whole screen again"},
    {ACTION_SUSPEND, "suspend", ALL, {"ctrl-z"}, NULL, 0, "stop and give the terminal back; fg returns"},
    {ACTION_BACK, "back", FLAME, {"Esc"}, NULL, 0, "one step back: search, zoom, filter; never quits"},
    {ACTION_BACK, "back", ALL & ~FLAME, {"Esc", "Backspace"}, NULL, 0,
     "one step back: search, zoom, pane, filter; never quits"},
    {ACTION_MOUSE, "mouse", TYPING, {"ctrl-t"}, NULL, 0,
     "mouse on or off; off, or Shift: the terminal selects text"},
    {ACTION_REDRAW, "redraw", TYPING, {"ctrl-l"}, NULL, 0, "paint the whole screen again"},
    {ACTION_SUSPEND, "suspend", TYPING, {"ctrl-z"}, NULL, 0, "stop and give the terminal back; fg returns"},
    {ACTION_SQL_CANCEL, "cancel", CODE, {"ctrl-c"}, NULL, 0, "interrupt the code that runs; else empty the editor"},
    {ACTION_SQL_CANCEL, "cancel", OUTPUT, {"ctrl-c"}, NULL, 0, "interrupt the code that runs; else quit"},
    {ACTION_SQL_CANCEL, "cancel", EDIT, {"ctrl-c"}, NULL, 0,
     "end the query that runs; else empty the editor"},
    {ACTION_SQL_CANCEL, "cancel", CHOICES, {"ctrl-c"}, NULL, 0, "close the list"},
    {ACTION_SQL_CANCEL, "cancel", SHEET, {"ctrl-c"}, NULL, 0, "end the query that runs; else quit"},
    {ACTION_QUIT, "quit", TYPING, {"F10"}, "Quit", 1, "quit; the job runs on"},
    {ACTION_QUIT, "close", ACTION_IN(CONTEXT_HELP), {"q", "F10"}, "Close", 0, "close the help"},
    {ACTION_QUIT, "close", MENU, {"q", "F10", "m", "F9"}, "Close", 0, "close the menu"},
    {ACTION_QUIT, "close", EXPORT, {"q", "F10", "x"}, "Close", 0, "close it, and write nothing"},
    {ACTION_QUIT, "quit", ALL & ~OVER & ~SHEET & ~OUTPUT, {"q", "F10"}, "Quit", 1,
     "quit; the job runs on"},
    {ACTION_QUIT, "close", OUTPUT, {"q"}, NULL, 0, "quit; the job runs on"},
    {ACTION_QUIT, "close", SHEET, {"q"}, NULL, 0, "close what lies over the result; else quit"},
    {ACTION_QUIT_NOW, "quit", SHEET | OUTPUT, {"F10", "Q"}, "Quit", 1, "quit; the job runs on"},
    {ACTION_QUIT_NOW, "quit-now", ALL & ~SHEET & ~OUTPUT, {"Q", "ctrl-c"}, NULL, 0,
     "quit from anywhere; the job runs on"},
    {ACTION_NONE, NULL, 0, {NULL}, NULL, 0, NULL},
};
/* clang-format on */

#define ACTION_N_FIXED (sizeof action_fixed / sizeof action_fixed[0])

static struct action_def action_rows[ACTION_MAX_ROWS];

/* Contexts of the tabs, where letters are keys; those of them that show the job. */
static void action_find_tabs(uint64_t *tabs, uint64_t *views) {
    *tabs = *views = 0;
    for (const struct screen_def *const *s = screen_list; *s; s++) {
        uint64_t contexts = (*s)->is_tab ? screen_contexts(*s) & ~ACTION_TYPED : 0;
        *tabs |= contexts;
        *views |= (*s)->of_session ? 0 : contexts;
    }
}

/* Append a row; the last one is left free, because it ends the table. Returns their number. */
static size_t action_add(size_t n, const struct action_def *row) {
    if (n + 1 == ACTION_MAX_ROWS)
        return n;
    action_rows[n] = *row;
    return n + 1;
}

static size_t action_add_screen(size_t n, const struct screen_def *def) {
    for (int i = 0; i < SCREEN_MAX_OPENS && def->opens[i].action; i++)
        n = action_add(n, &def->opens[i]);
    return n;
}

static bool action_is_fixed(enum action action) {
    for (size_t i = 0; i < ACTION_N_FIXED; i++)
        if (action_fixed[i].action == action)
            return true;
    return false;
}

const struct action_def *action_table(void) {
    uint64_t tabs, views;
    size_t n = 0;
    if (action_rows[0].action)
        return action_rows;
    for (size_t i = 0; i < ACTION_N_FIXED; i++) {
        const struct action_def *row = &action_fixed[i];
        const struct screen_def *screen = row->name ? NULL : screen_of_action(row->action);
        if (row->name)
            n = action_add(n, row);
        else if (screen)
            n = action_add_screen(n, screen);
        for (const struct screen_def *const *s = screen_list; row->action == ACTION_COUNT && *s; s++)
            if (!action_is_fixed((*s)->opens[0].action))
                n = action_add_screen(n, *s);
    }
    action_find_tabs(&tabs, &views);
    for (size_t i = 0; i < n; i++) {
        uint64_t *contexts = &action_rows[i].contexts;
        *contexts |= (*contexts & ACTION_TABS ? tabs : 0) | (*contexts & ACTION_VIEWS ? views : 0);
        *contexts &= ~(ACTION_TABS | ACTION_VIEWS);
    }
    return action_rows;
}

const struct action_def *action_row(enum action action, enum action_context context) {
    for (const struct action_def *a = action_table(); a->action; a++)
        if (a->action == action && (a->contexts & ACTION_IN(context)))
            return a;
    return NULL;
}

const struct action_def *action_named(const char *name, enum action_context context) {
    for (const struct action_def *a = action_table(); a->action; a++)
        if ((a->contexts & ACTION_IN(context)) && strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

/* The names of a context, from the screen that has it. */
static struct screen_context action_context_of(enum action_context context) {
    for (const struct screen_def *const *s = screen_list; *s; s++) {
        const struct screen_def *def = *s;
        for (int i = 0; i < SCREEN_MAX_CONTEXTS && def->contexts[i].name; i++)
            if (def->contexts[i].context == context)
                return def->contexts[i];
        if (!def->contexts[0].name && def->keys == context)
            return (struct screen_context){context, def->name, def->title};
    }
    return (struct screen_context){context, "?", "?"};
}

const char *action_context_name(enum action_context context) { return action_context_of(context).name; }

const char *action_context_title(enum action_context context) { return action_context_of(context).title; }
