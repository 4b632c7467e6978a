/* SPDX-License-Identifier: Apache-2.0 */
/* tour: see tour.h. */
#include "tui/core/tour.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/keys/input.h"
#include "tui/view/layout.h"

#define TOUR_ROWS 3
#define TOUR_SMALL_ROWS 16 /* below this a page is a line of keys and a line of text */

const struct tour_page tour_pages[] = {
    {ACTION_SHOW_OVERVIEW, "What is wrong, and where? The verdict names the cause and the line of code.",
     "{down} and {up} select a line; {help} shows the keys of the screen that is open.", NULL},
    {ACTION_SHOW_THREADS, "What is each thread doing now? State, GIL, CPU, and the stack of one of them.",
     "{down} selects the next thread, {locals} toggles the variables of its frames.", NULL},
    {ACTION_SHOW_FLAME, "Where does the time go? A frame is as wide as its share of it.",
     "{search} finds a function, {on-cpu} counts waiting, too, {details} shows the source.", NULL},
    {ACTION_SHOW_TOP, "Which functions cost most? OWN is without what they call, TOTAL is with it.",
     "{by-line} counts lines, not functions; {sort-next} sorts by the next column.", NULL},
    {ACTION_SHOW_TIMELINE, "What ran when? A lane for each thread, a column for each slice of time.",
     "{shorter} and {longer} change the slice; {select} selects a span, also for other screens.", NULL},
    {ACTION_SHOW_STEPS, "How long does a training step take, and on what? WHY is what slow ones share.",
     "{down} selects a step; {sort-next} sorts by the next column.", NULL},
    {ACTION_SHOW_TENSORS, "What takes the memory? Tensors in groups; storage that is shared counts once.",
     "{unfold} opens a group; {mark} sets a mark, and {growth} shows what grew since then.", NULL},
    {ACTION_SHOW_MODULES, "What is the model made of? Its modules with parameters, bytes and device.",
     "{unfold} opens a module; {trace} times the modules of some steps, and asks first.", NULL},
    {ACTION_SHOW_SQL, "Anything else? The past and the present of the job are tables.",
     "{run} runs the query that is typed there; {saved} has more of them.",
     "SELECT name, state, cpu_pct, func, lineno FROM python.threads;"},
    {ACTION_SHOW_OVERVIEW, "That was the tour. 'probing-top PID' shows your own job, 'probing-top' a list.",
     "'probing PID verdict' prints what is wrong. Enter ends the tour and its job.", NULL},
    {.opens = ACTION_NONE},
};

/* ---- pages ---- */

/* Is it one of this job's? */
static bool tour_has_page(const struct app *a, const struct tour_page *p) {
    const struct screen_def *def = screen_of_action(p->opens);
    bool lacks_torch = a->data.has_target && !a->data.target.torch;
    return def && app_screen_is_offered(a, def) && !(def->needs_torch && lacks_torch);
}

/* The page after (1) or before (-1) the current one; -1: there is none. */
static int tour_find(const struct app *a, int step) {
    for (int i = a->tour.page + step; i >= 0 && tour_pages[i].opens; i += step)
        if (tour_has_page(a, &tour_pages[i]))
            return i;
    return -1;
}

static void tour_show(struct app *a, int page) {
    const struct tour_page *p = &tour_pages[page];
    a->tour.page = page;
    a->tour.is_typing = false;
    a->message[0] = '\0';
    while (a->n_screens > 1 && !app_screen_top(a)->def->is_tab)
        app_screen_pop(a);
    if (!app_screen_open(a, p->opens) || !p->typed || a->tour.typed & 1U << page)
        return;
    struct app_screen *s = app_screen_top(a);
    a->tour.typed |= 1U << page;
    s->def->paste(s->state, a, p->typed);
}

void tour_begin(struct app *a) {
    a->tour = (struct app_tour){.on = true};
    tour_show(a, 0);
}

/* ---- keys ---- */

/* Letters are typed where text is edited, and then the other keys edit it, too, until Esc. */
static bool tour_leaves_to_editor(struct app *a, uint32_t key) {
    const struct app_screen *s = app_screen_top(a);
    bool edits = (ACTION_IN(screen_context(s->def, s->state)) & ACTION_TYPED) != 0;
    if (!edits)
        a->tour.is_typing = false;
    else if (!a->tour.is_typing && key > ' ' && key < INPUT_SPECIAL && key != 'q')
        a->tour.is_typing = true;
    return a->tour.is_typing;
}

bool tour_key(struct app *a, uint32_t key) {
    if (!a->tour.on || a->too_small || !app_screen_top(a)->def->is_tab)
        return false;
    if (tour_leaves_to_editor(a, key)) {
        a->tour.is_typing = key != INPUT_ESC;
        return !a->tour.is_typing;
    }
    int step = key == INPUT_ENTER || key == INPUT_RIGHT ? 1 : key == INPUT_LEFT ? -1 : 0;
    bool ends = key == INPUT_ESC || key == 'q';
    if (!step && !ends)
        return false;
    int page = ends ? -1 : tour_find(a, step);
    if (page >= 0)
        tour_show(a, page);
    else if (step >= 0)
        app_quit(a);
    return true;
}

/* ---- the hint ---- */

void tour_put_text(const char *text, enum action_context context, char *buf, size_t cap) {
    size_t n = 0;
    buf[0] = '\0';
    while (*text && n + 1 < cap) {
        size_t plain = strcspn(text, "{"), name = plain + 1;
        snprintf(buf + n, cap - n, "%.*s", (int)plain, text);
        n += strlen(buf + n);
        if (!text[plain])
            break;
        char word[32], key[ACTION_KEY_NAME] = "?";
        size_t len = strcspn(text + name, "}");
        snprintf(word, sizeof word, "%.*s", (int)len, text + name);
        const struct action_def *d = action_named(word, context);
        if (d)
            input_key_name(action_key(d, context, 0), key, sizeof key);
        snprintf(buf + n, cap - n, "%s", key);
        n += strlen(buf + n);
        text += name + len + (text[name + len] == '}');
    }
}

int tour_rows(const struct app *a, int screen_rows) {
    return !a->tour.on ? 0 : screen_rows < TOUR_SMALL_ROWS ? TOUR_ROWS - 1 : TOUR_ROWS;
}

/* The first line: which page it is, and the keys of the tour. */
static void tour_draw_head(const struct app *a, struct grid *g, struct rect area) {
    const struct screen_def *def = screen_of_action(tour_pages[a->tour.page].opens);
    const char *keys = a->tour.is_typing         ? "Esc: stop typing"
                       : !layout_has_panes(area) ? "Enter: next"
                       : tour_find(a, 1) < 0     ? "Enter: end  Left: back"
                       : a->tour.page == 0       ? "Enter: next  q: end"
                                                 : "Enter: next  Left: back  q: end";
    int n = 0, at = 0;
    for (int i = 0; tour_pages[i].opens; i++)
        if (tour_has_page(a, &tour_pages[i])) {
            n++;
            at += i <= a->tour.page;
        }
    grid_fill(g, area, ROLE_STATUS_ON);
    grid_printf(g, area, 0, 1, ROLE_STATUS_ON, "Tour %d of %d: %s", at, n, def->title);
    int width = (int)strlen(keys);
    grid_text_fit(g, area, 0, area.cols - width - 1, width, ROLE_STATUS_ON, GRID_LEFT, keys);
}

/* The open screen of the page; NULL: the user went elsewhere. */
static const struct app_screen *tour_find_screen(const struct app *a) {
    const struct screen_def *def = screen_of_action(tour_pages[a->tour.page].opens);
    for (int i = 0; i < a->n_screens && app_screen_tab(a) == def; i++)
        if (a->screens[i].def == def)
            return &a->screens[i];
    return NULL;
}

void tour_draw(struct app *a, struct grid *g, struct rect area) {
    const struct tour_page *p = &tour_pages[a->tour.page];
    const struct app_screen *s = tour_find_screen(a);
    char text[TOUR_HINT_MAX];
    tour_draw_head(a, g, area);
    for (int row = 1; row < area.rows; row++) {
        if (s)
            tour_put_text(row == 1 ? p->answers : p->keys, screen_context(s->def, s->state), text,
                          sizeof text);
        else
            snprintf(text, sizeof text, "%s",
                     row == 1 ? "Another screen is open. Enter continues the tour." : "");
        grid_text_fit(g, area, row, 1, area.cols - 2, ROLE_TEXT, GRID_LEFT, text);
    }
}
