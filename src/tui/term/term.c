/* SPDX-License-Identifier: Apache-2.0 */
/* term: see term.h. */
#include "tui/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "tui/term/term_guard.h"
#include "tui/term/term_key.h"
#include "tui/term/term_type.h"

#define TERM_SYNC_BEGIN "\033[?2026h"
#define TERM_SYNC_END "\033[?2026l"
#define TERM_PASTE_ON "\033[?2004h"
#define TERM_PASTE_OFF "\033[?2004l"
#define TERM_ESC_DELAY_MS 25
#define TERM_CLOSE_MS 300 /* then a terminal that does not read is left as it is */
#define TERM_MAX_PENDING ((size_t)16 * 1024 * 1024)

struct term {
    SCREEN *screen;
    char type[64];     /* terminfo's name */
    FILE *in, *out;    /* ncurses' ends: the terminal's input, the memory file */
    int in_fd, out_fd; /* the terminal; out_fd does not block */
    int frame_fd;      /* the memory file that ncurses writes to */
    int size_fd;       /* the descriptor to ask for the size; -1: it is fixed */
    int rows, cols;
    enum theme_depth depth;
    struct theme theme;
    attr_t attrs[ROLE_COUNT]; /* of each role at that depth, because every cell needs them */
    int colors;               /* the number that terminfo offers */
    const char *no_color;     /* as in struct term_config */
    bool mouse;
    bool cursor_shown;
    bool hung_up;
    bool given;            /* another program has it */
    struct strbuf pending; /* bytes for the terminal, from pending_at on */
    size_t pending_at;
    struct grid last; /* the content of curses' window */
    bool last_valid;
    cchar_t *line; /* one row, in curses' form */
    struct term_keys keys;
};

bool term_is_utf8(void) { return strcmp(nl_langinfo(CODESET), "UTF-8") == 0; }

bool term_draws_unicode(const char *type) {
    return term_is_utf8() && !(type && strncmp(type, "linux", 5) == 0);
}

enum theme_depth term_depth(const struct term *t) { return t->depth; }

void term_size(const struct term *t, int *rows, int *cols) {
    *rows = t->rows;
    *cols = t->cols;
}

/* ---- bytes to the terminal ---- */

/* Move what ncurses has written from the memory file to the queue. */
static void term_collect(struct term *t) {
    off_t size = lseek(t->frame_fd, 0, SEEK_CUR);
    char buf[16384];
    for (off_t at = 0; at < size;) {
        ssize_t n = pread(t->frame_fd, buf, sizeof buf, at);
        if (n <= 0)
            break;
        strbuf_add(&t->pending, buf, (size_t)n);
        at += n;
    }
    lseek(t->frame_fd, 0, SEEK_SET);
    ftruncate(t->frame_fd, 0);
}

bool term_flush(struct term *t) {
    while (t->pending_at < t->pending.len) {
        struct pollfd p = {.fd = t->out_fd, .events = POLLOUT};
        if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLOUT | POLLERR | POLLHUP)))
            return false;
        ssize_t n = write(t->out_fd, t->pending.data + t->pending_at, t->pending.len - t->pending_at);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            if (errno == EAGAIN)
                return false;
            continue;
        }
        if (n <= 0) {
            t->hung_up = true;
            break;
        }
        t->pending_at += (size_t)n;
    }
    strbuf_clear(&t->pending);
    t->pending_at = 0;
    return true;
}

/* Send everything, but do not wait without end. */
static void term_flush_or_leave(struct term *t) {
    uint64_t end = clock_mono_ns() + TERM_CLOSE_MS * CLOCK_NS_PER_MS;
    while (!term_flush(t) && clock_mono_ns() < end) {
        struct pollfd p = {.fd = t->out_fd, .events = POLLOUT};
        poll(&p, 1, 20);
    }
}

/* ---- opening and closing ---- */

/* A descriptor of our own for the same file: making it non-blocking does not affect the shell's. */
static int term_reopen(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void term_ask_size(struct term *t) {
    struct winsize w;
    if (t->size_fd < 0)
        return;
    if (ioctl(t->size_fd, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0) {
        t->rows = w.ws_row;
        t->cols = w.ws_col;
    } else if (t->rows <= 0 || t->cols <= 0) {
        t->rows = 24;
        t->cols = 80;
    }
}

static attr_t term_attrs_of(unsigned a) {
    return ((a & THEME_BOLD) ? A_BOLD : 0) | ((a & THEME_DIM) ? A_DIM : 0) |
           ((a & THEME_REVERSE) ? A_REVERSE : 0) | ((a & THEME_UNDERLINE) ? A_UNDERLINE : 0) |
           ((a & THEME_ITALIC) ? A_ITALIC : 0);
}

static void term_init_roles(struct term *t) {
    bool has_default = false;
    if (t->depth != THEME_MONO) {
        start_color();
        has_default = use_default_colors() == OK;
    }
    for (int i = 0; i < ROLE_COUNT; i++) {
        struct theme_attrs look = theme_resolve(&t->theme, (enum theme_role)i, t->depth);
        t->attrs[i] = term_attrs_of(look.attrs);
        if (t->depth == THEME_MONO)
            continue;
        if (!has_default) {
            look.fg = look.fg < 0 ? COLOR_WHITE : look.fg;
            look.bg = look.bg < 0 ? COLOR_BLACK : look.bg;
        }
        init_pair((short)(i + 1), (short)look.fg, (short)look.bg);
    }
}

void term_set_theme(struct term *t, const struct theme *theme, const char *color) {
    t->theme = *theme;
    theme_choose_depth(color, t->no_color, t->colors, &t->depth, NULL);
    term_init_roles(t);
    term_repaint(t);
}

static int term_open_files(struct term *t, const struct term_config *config, struct err *e) {
    t->frame_fd = memfd_create("frame", MFD_CLOEXEC);
    t->out_fd = term_reopen(config->out_fd);
    t->in_fd = config->in_fd;
    int in = fcntl(config->in_fd, F_DUPFD_CLOEXEC, 3),
        out = t->frame_fd < 0 ? -1 : fcntl(t->frame_fd, F_DUPFD_CLOEXEC, 3);
    t->in = in < 0 ? NULL : fdopen(in, "r");
    t->out = out < 0 ? NULL : fdopen(out, "w");
    if (t->out_fd >= 0 && t->in && t->out)
        return 0;
    int error = errno;
    if (!t->in && in >= 0)
        close(in);
    if (!t->out && out >= 0)
        close(out);
    return err_set_errno(e, ERR_FAILED, error, "cannot open the terminal");
}

/* Start ncurses and set it up. */
static int term_start_curses(struct term *t, const struct term_config *config, struct err *e) {
    const char *type = config->type ? config->type : getenv("TERM");
    if (term_type_check(type, t->frame_fd, e) != 0)
        return -1;
    t->screen = newterm(type, t->out, t->in);
    if (!t->screen)
        return err_set(e, ERR_FAILED, "the terminal type '%s' cannot be used: try TERM=xterm-256color", type);
    snprintf(t->type, sizeof t->type, "%s", type);
    set_term(t->screen);
    t->colors = tigetnum("colors");
    t->no_color = config->no_color;
    if (theme_choose_depth(config->color, t->no_color, t->colors, &t->depth, e) != 0)
        return -1;
    term_init_roles(t);
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(TERM_ESC_DELAY_MS);
    leaveok(stdscr, FALSE);
    curs_set(0);
    mouseinterval(0);
    term_key_init();
    resizeterm(t->rows, t->cols);
    term_set_mouse(t, config->mouse);
    return 0;
}

static int term_alloc_size(struct term *t) {
    cchar_t *line = calloc((size_t)t->cols + 1, sizeof *line);
    if (!line)
        return -1;
    free(t->line);
    t->line = line;
    t->last_valid = false;
    if (t->last.cells)
        return grid_resize(&t->last, t->rows, t->cols);
    return grid_init(&t->last, t->rows, t->cols);
}

static void term_free(struct term *t) {
    if (t->screen) {
        endwin();
        delscreen(t->screen);
    }
    if (t->in)
        fclose(t->in);
    if (t->out)
        fclose(t->out);
    if (t->out_fd >= 0)
        close(t->out_fd);
    if (t->frame_fd >= 0)
        close(t->frame_fd);
    strbuf_fini(&t->pending);
    grid_fini(&t->last);
    free(t->line);
    free(t);
}

struct term *term_open(const struct term_config *config, struct err *e) {
    struct term *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(e, ERR_FAILED, "out of memory");
        return NULL;
    }
    t->frame_fd = t->out_fd = -1;
    t->theme = *config->theme;
    t->rows = config->rows;
    t->cols = config->cols;
    t->size_fd = config->rows > 0 ? -1 : config->out_fd;
    strbuf_init(&t->pending, TERM_MAX_PENDING);
    term_ask_size(t);
    if (term_open_files(t, config, e) != 0 || term_start_curses(t, config, e) != 0) {
        term_free(t);
        return NULL;
    }
    if (term_alloc_size(t) != 0) {
        err_set(e, ERR_FAILED, "out of memory");
        term_free(t);
        return NULL;
    }
    term_guard_arm(t->in_fd, t->out_fd);
    term_guard_set_raw();
    term_guard_keep_stderr();
    strbuf_adds(&t->pending, TERM_PASTE_ON);
    return t;
}

/* Has the terminal a second screen, so that the first is restored afterwards? A console and a vt100
 * have none. */
static bool term_has_second_screen(void) {
    const char *leave = tigetstr("rmcup");
    return leave && leave != (const char *)-1;
}

/* Switch everything off and restore the settings. */
static void term_leave(struct term *t) {
    mousemask(0, NULL);
    curs_set(1);
    /* After a resize tmux wraps long lines of the second screen into the history of the first, if they are
     * still there. */
    if (term_has_second_screen()) {
        erase();
        refresh();
    }
    endwin();
    term_collect(t);
    if (!term_has_second_screen()) /* the cursor is in the last line, which shows our keys */
        strbuf_adds(&t->pending, "\r\n");
    strbuf_adds(&t->pending, TERM_PASTE_OFF);
    term_flush_or_leave(t);
    term_guard_set_saved();
}

void term_close(struct term *t) {
    if (!t)
        return;
    if (!t->given)
        term_leave(t);
    term_guard_disarm();
    term_guard_release_stderr();
    term_free(t);
}

void term_stop(void) {
    sigset_t stop, before;
    struct sigaction dfl = {.sa_handler = SIG_DFL}, old;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigaction(SIGTSTP, &dfl, &old);
    sigprocmask(SIG_UNBLOCK, &stop, &before);
    raise(SIGTSTP);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGTSTP, &old, NULL);
}

void term_give(struct term *t) {
    term_leave(t);
    term_guard_release_stderr();
    t->given = true;
}

void term_take(struct term *t) {
    t->given = false;
    term_guard_set_raw();
    term_guard_keep_stderr();
    strbuf_adds(&t->pending, TERM_PASTE_ON);
    term_set_mouse(t, t->mouse);
    curs_set(0);
    t->cursor_shown = false;
    term_resized(t);
    term_repaint(t);
}

void term_suspend(struct term *t) {
    term_give(t);
    term_stop();
    term_take(t);
}

/* Kinds that answer, or at least do not print the question: emulators of xterm. Within GNU screen
 * nobody answers. */
static bool term_may_ask(const char *type) {
    static const char *const kinds[] = {"xterm",   "tmux", "screen", "rxvt", "foot",    "alacritty", "kitty",
                                        "konsole", "vte",  "gnome",  "st-",  "wezterm", "mintty",    "iterm"};
    const char *in_screen = getenv("STY");
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(type, kinds[i], strlen(kinds[i])) == 0)
            return !(in_screen && *in_screen);
    return false;
}

void term_ask_background(struct term *t) {
    if (!term_may_ask(t->type))
        return;
    strbuf_adds(&t->pending, "\033]11;?\033\\");
    term_flush(t);
}

void term_copy(struct term *t, const char *text, size_t len) {
    term_clipboard_put(&t->pending, text, len);
    term_flush(t);
}

/* ---- painting ---- */

void term_set_mouse(struct term *t, bool on) {
    t->mouse = on;
    mmask_t wanted = BUTTON1_PRESSED | BUTTON1_RELEASED | BUTTON3_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED;
    mousemask(on ? wanted : 0, NULL);
}

void term_resized(struct term *t) {
    term_ask_size(t);
    resizeterm(t->rows, t->cols);
    if (term_alloc_size(t) != 0) {
        t->rows = t->last.rows;
        t->cols = t->last.cols;
        resizeterm(t->rows, t->cols);
    }
}

void term_repaint(struct term *t) {
    t->last_valid = false;
    clearok(curscr, TRUE);
}

static void term_put_row(struct term *t, const struct grid_cell *cells, int row) {
    int n = 0;
    for (int x = 0; x < t->cols; x++) {
        if (cells[x].width == 0)
            continue;
        wchar_t text[2 + GRID_MAX_MARKS] = {(wchar_t)cells[x].cp, (wchar_t)cells[x].marks[0],
                                            (wchar_t)cells[x].marks[1], 0};
        enum theme_role role = (enum theme_role)cells[x].role;
        short pair = t->depth == THEME_MONO ? 0 : (short)(role + 1);
        if (setcchar(&t->line[n], text, t->attrs[role], pair, NULL) == OK)
            n++;
    }
    mvadd_wchnstr(row, 0, t->line, n);
}

bool term_paint(struct term *t, const struct grid *g, int cursor_row, int cursor_col) {
    if (!term_flush(t))
        return false;
    size_t row_size = (size_t)t->cols * sizeof *g->cells;
    if (g->rows != t->rows || g->cols != t->cols)
        return true; /* a resize is under way */
    if (!t->last_valid)
        erase();
    for (int y = 0; y < t->rows; y++) {
        const struct grid_cell *row = g->cells + (size_t)y * (size_t)t->cols;
        struct grid_cell *old = t->last.cells + (size_t)y * (size_t)t->cols;
        if (t->last_valid && memcmp(row, old, row_size) == 0)
            continue;
        term_put_row(t, row, y);
        memcpy(old, row, row_size);
    }
    t->last_valid = true;
    bool shown = cursor_row >= 0;
    if (shown)
        move(cursor_row, cursor_col);
    if (shown != t->cursor_shown)
        curs_set(shown ? 1 : 0);
    t->cursor_shown = shown;
    wnoutrefresh(stdscr);
    strbuf_adds(&t->pending, TERM_SYNC_BEGIN);
    size_t before = t->pending.len;
    doupdate();
    term_collect(t);
    if (t->pending.len == before)
        strbuf_clear(&t->pending);
    else
        strbuf_adds(&t->pending, TERM_SYNC_END);
    term_flush(t);
    return true;
}

/* ---- input ---- */

bool term_read(struct term *t, struct input_event *e) { return term_key_read(&t->keys, e); }

bool term_is_gone(const struct term *t) {
    int waiting = 0;
    struct pollfd p = {.fd = t->in_fd, .events = POLLIN};
    if (t->hung_up)
        return true;
    if (poll(&p, 1, 0) <= 0)
        return false;
    if (p.revents & (POLLERR | POLLNVAL))
        return true;
    return (p.revents & (POLLHUP | POLLIN)) && (ioctl(t->in_fd, FIONREAD, &waiting) != 0 || waiting == 0);
}

/* ---- clipboard ---- */

const char *term_clipboard_why_not(const char *type, const char *screen) {
    if (screen && *screen)
        return "GNU screen does not pass a clipboard on";
    if (type && strcmp(type, "linux") == 0)
        return "the Linux console has no clipboard";
    if (type && (strncmp(type, "vt1", 3) == 0 || strncmp(type, "vt2", 3) == 0 || strcmp(type, "dumb") == 0))
        return "this kind of terminal has no clipboard";
    return NULL;
}

/* Base64 of RFC 4648, with padding. */
static void term_clipboard_base64(struct strbuf *out, const unsigned char *p, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (have > 2 ? (uint32_t)p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], have > 1 ? digits[v >> 6 & 63] : '=',
                        have > 2 ? digits[v & 63] : '='};
        strbuf_add(out, four, sizeof four);
    }
}

int term_clipboard_put(struct strbuf *out, const char *text, size_t len) {
    strbuf_adds(out, "\033]52;c;");
    term_clipboard_base64(out, (const unsigned char *)text, len);
    return strbuf_adds(out, "\007");
}
