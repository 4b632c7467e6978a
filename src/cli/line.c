/* SPDX-License-Identifier: Apache-2.0 */
/* line: see line.h. Sources: editline(3). */
#include "cli/line.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/text.h"
#include "client/output.h"

#define LINE_IDLE_MS 1000
#define LINE_INDENT "    "
#define LINE_WORDS_MAX ((size_t)256 * 1024)
#define LINE_SHOWN_MAX 200 /* words in one list */
#define LINE_MORE_MAX 1024 /* bytes added to a word by completion */

struct line {
    struct line_hooks hooks;
    EditLine *el;
    History *history;
    const char *prompt;
    bool cleared;
};

static char *line_prompt(EditLine *el) {
    struct line *l = NULL;
    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt;
}

/* The next byte: 1; 0 at the end; -1 on ^C or an error. */
static int line_byte(struct line *l, char *c) {
    for (;;) {
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        int n = poll(&p, 1, LINE_IDLE_MS);
        if (l->hooks.interrupted(l->hooks.arg)) {
            l->cleared = true;
            return -1;
        }
        if (n == 0)
            l->hooks.idle(l->hooks.arg);
        if (n < 0 && errno == EINTR)
            el_resize(l->el);
        if (n <= 0)
            continue;
        ssize_t got = read(STDIN_FILENO, c, 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        return got > 0 ? 1 : 0;
    }
}

static int line_char(EditLine *el, wchar_t *out) {
    struct line *l = NULL;
    mbstate_t state;
    el_get(el, EL_CLIENTDATA, &l);
    memset(&state, 0, sizeof state);
    for (;;) {
        char c;
        int n = line_byte(l, &c);
        if (n <= 0)
            return n;
        size_t used = mbrtowc(out, &c, 1, &state);
        if (used == (size_t)-2)
            continue;
        if (used == (size_t)-1) {
            *out = L'?';
            errno = 0;
        }
        return 1;
    }
}

/* ---- completion ---- */

/* Length in bytes of the common prefix of all words. */
static size_t line_common(const char *words) {
    const char *end = strchr(words, '\n');
    size_t common = end ? (size_t)(end - words) : strlen(words);
    for (const char *w = end; w; w = strchr(w, '\n')) {
        w++;
        size_t n = 0;
        while (n < common && w[n] == words[n])
            n++;
        common = n;
    }
    while (common > 0 && (words[common] & 0xc0) == 0x80)
        common--;
    return common;
}

/* Copy the next word into `out` in printable form. Returns where the word after it begins. */
static const char *line_word(const char *words, char *out, size_t cap) {
    char word[256];
    size_t n = strcspn(words, "\n");
    snprintf(word, sizeof word, "%.*s", (int)n, words);
    text_sanitize(out, cap, word);
    return words + n + (words[n] == '\n');
}

/* Print the words below the line, in columns. */
static void line_list(const char *words) {
    struct winsize size = {0};
    char word[1024];
    int widest = 1, i = 0;
    for (const char *w = words; *w && i < LINE_SHOWN_MAX; i++) {
        w = line_word(w, word, sizeof word);
        widest = text_width(word) > widest ? text_width(word) : widest;
    }
    int screen = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    int columns = screen / (widest + 2) > 0 ? screen / (widest + 2) : 1;
    struct strbuf out;
    struct err e;
    strbuf_init(&out, 0);
    i = 0;
    for (const char *w = words; *w && i < LINE_SHOWN_MAX; i++) {
        w = line_word(w, word, sizeof word);
        strbuf_addf(&out, "%s%s%*s", i % columns == 0 ? "\n" : "", word, widest + 2 - text_width(word), "");
    }
    strbuf_adds(&out, i == LINE_SHOWN_MAX ? "\n...\n" : "\n");
    fflush(stdout); /* the output of libedit comes first */
    output_write(NULL, &out, &e);
    strbuf_fini(&out);
}

/* True if the text has no control characters. The line editor prints it unchanged. */
static bool line_is_clean(const char *text) {
    char clean[3 * LINE_MORE_MAX];
    text_sanitize(clean, sizeof clean, text);
    return strcmp(clean, text) == 0;
}

static unsigned char line_tab(EditLine *el, int key) {
    struct line *l = NULL;
    const LineInfo *now = el_line(el);
    struct strbuf words;
    char before[4096];
    size_t typed = 0, len = (size_t)(now->cursor - now->buffer);
    unsigned char then = CC_REFRESH_BEEP;
    (void)key;
    el_get(el, EL_CLIENTDATA, &l);
    snprintf(before, sizeof before, "%.*s", (int)len, now->buffer);
    if (len >= sizeof before)
        return CC_ERROR;
    if (before[strspn(before, " \t")] == '\0')
        return el_insertstr(el, LINE_INDENT) == 0 ? CC_REFRESH : CC_ERROR;
    strbuf_init(&words, LINE_WORDS_MAX);
    if (l->hooks.complete(l->hooks.arg, before, &words, &typed) && words.len > 0) {
        const char *text = strbuf_str(&words);
        size_t common = line_common(text);
        char more[LINE_MORE_MAX];
        if (common > typed && common - typed < sizeof more) {
            snprintf(more, sizeof more, "%.*s", (int)(common - typed), text + typed);
            then = line_is_clean(more) && el_insertstr(el, more) == 0 ? CC_REFRESH : CC_ERROR;
        } else if (strchr(text, '\n')) {
            line_list(text);
            then = CC_REDISPLAY;
        }
    }
    strbuf_fini(&words);
    return then;
}

/* ---- life ---- */

struct line *line_new(const struct line_hooks *hooks, struct err *e) {
    struct line *l = calloc(1, sizeof *l);
    HistEvent ev;
    if (!l) {
        err_set(e, ERR_FAILED, "out of memory for the line editor");
        return NULL;
    }
    l->hooks = *hooks;
    l->prompt = "";
    l->history = history_init();
    l->el = el_init("probing", stdin, stdout, stderr);
    if (!l->el || !l->history) {
        err_set(e, ERR_FAILED, "the terminal cannot be used for typing");
        line_free(l);
        return NULL;
    }
    history(l->history, &ev, H_SETSIZE, LINE_HISTORY);
    history(l->history, &ev, H_SETUNIQUE, 1);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, line_prompt);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_ADDFN, "probing-complete", "names of the job", line_tab);
    el_set(l->el, EL_BIND, "^I", "probing-complete", NULL);
    el_set(l->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(l->el, NULL);
    el_set(l->el, EL_GETCFN, line_char);
    return l;
}

void line_free(struct line *l) {
    if (!l)
        return;
    if (l->el)
        el_end(l->el);
    if (l->history)
        history_end(l->history);
    free(l);
}

enum line_end line_read(struct line *l, const char *prompt, struct strbuf *out) {
    int n = 0;
    l->prompt = prompt;
    l->cleared = false;
    /* before the prompt: keys typed at the prompt are for the editor */
    el_set(l->el, EL_PREP_TERM, 1);
    const char *text = el_gets(l->el, &n);
    strbuf_clear(out);
    if (!text || n <= 0) {
        fputs(l->cleared ? "^C\n" : "\n", stdout);
        fflush(stdout);
        return l->cleared ? LINE_CLEARED : LINE_CLOSED;
    }
    size_t len = (size_t)n;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    strbuf_add(out, text, len);
    return LINE_READ;
}

void line_remember(struct line *l, const char *text) {
    HistEvent ev;
    history(l->history, &ev, H_ENTER, text);
}
