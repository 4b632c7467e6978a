/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the selected row: the menu, copying, the editor, showing it elsewhere, exports; and what --readonly refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "flame/stack_counts.h"
#include "client/symbols/frame_file.h"
#include "client/samples/sample_store.h"
#include "client/samples/sample_filter.h"
#include "tui/core/app_export.h"
#include "tui/host/editor_process.h"
#include "tui/workers/exporter.h"
#include "tui/view/pick.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/term/term.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 24, 80, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 24, 80, what); }

static struct app *with_samples(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_samples(a, 40);
    return a;
}

/* ---- texts ---- */

static void test_texts_are_harmless(void **state) {
    struct strbuf out;
    struct model_frame f = {.func = "f\x1b[31m\n", .file = "/a/b\r.py", .line = 7};
    (void)state;
    strbuf_init(&out, PICK_MAX);
    pick_put_frame(&out, &f);
    for (size_t i = 0; i < out.len; i++)
        assert_true((unsigned char)out.data[i] >= ' ' && out.data[i] != 0x7f);
    assert_non_null(strstr(strbuf_str(&out), ".py:7 f"));
    strbuf_clear(&out);
    f = (struct model_frame){.kind = MODEL_FRAME_NATIVE, .module = "/lib/libc.so.6", .address = 0x12ab};
    pick_put_frame(&out, &f);
    assert_string_equal(strbuf_str(&out), "/lib/libc.so.6+0x12ab");
    strbuf_clear(&out);
    f = (struct model_frame){.func = "only"};
    pick_put_frame(&out, &f);
    assert_string_equal(strbuf_str(&out), "only");
    strbuf_fini(&out);
}

static void test_copy(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "Enter j j j j j y");
    assert_true(fake_host_take().copy);
    assert_string_equal(fake_host.text, "/home/ada/jobs/train.py:203 train_step");
    assert_string_equal(fake_host.what, "the frame");
    fixture_press(a, "Y");
    assert_true(fake_host_take().copy);
    assert_int_equal(strncmp(fake_host.text, "4242 MainThread R\n  /usr/lib", 28), 0);
    assert_non_null(strstr(fake_host.text, "\n  /home/ada/jobs/train.py:203 train_step\n"));
    assert_int_equal(fake_host.len, strlen(fake_host.text));
    fixture_press(a, "4 y");
    assert_true(fake_host_take().copy);
    assert_non_null(strstr(fake_host.text, "py"));
    fixture_press(a, "3 j j Y");
    assert_true(fake_host_take().copy);
    assert_string_equal(fake_host.what, "the stack");
    app_message(a, true, "what went wrong\033[2J");
    fixture_press(a, "L y");
    assert_true(fake_host_take().copy);
    assert_int_equal(strncmp(fake_host.text, "what went wrong", 15), 0);
    assert_null(strchr(fake_host.text, '\033'));
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 0, false);
    fixture_press(a, "y");
    assert_false(fake_host_take().copy);
    assert_shows(a, "select a row first");
    app_free(a);
}

/* What RFC 4648 says of "foobar" and its beginnings. */
static void test_clipboard_sequence(void **state) {
    static const struct {
        const char *text, *sequence;
    } cases[] = {{"", "\033]52;c;\007"},
                 {"f", "\033]52;c;Zg==\007"},
                 {"fo", "\033]52;c;Zm8=\007"},
                 {"foo", "\033]52;c;Zm9v\007"},
                 {"foob", "\033]52;c;Zm9vYg==\007"},
                 {"fooba", "\033]52;c;Zm9vYmE=\007"},
                 {"foobar", "\033]52;c;Zm9vYmFy\007"},
                 {"\xff\xfe\xfd", "\033]52;c;//79\007"}};
    struct strbuf out;
    (void)state;
    strbuf_init(&out, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        strbuf_clear(&out);
        assert_int_equal(term_clipboard_put(&out, cases[i].text, strlen(cases[i].text)), 0);
        assert_string_equal(strbuf_str(&out), cases[i].sequence);
    }
    strbuf_fini(&out);
    assert_null(term_clipboard_why_not("xterm-256color", NULL));
    assert_null(term_clipboard_why_not(NULL, ""));
    assert_non_null(term_clipboard_why_not("linux", NULL));
    assert_non_null(term_clipboard_why_not("vt100", NULL));
    assert_non_null(term_clipboard_why_not("screen", "1234.tty"));
}

/* ---- the editor ---- */

static void test_editor_arguments(void **state) {
    static const struct {
        const char *command;
        int line;
        const char *arguments;
    } cases[] = {{"vi", 12, "+12|/a b.py|"},        {"/usr/bin/vim -n", 12, "+12|/a b.py|"},
                 {"emacs -nw", 12, "+12|/a b.py|"}, {"nano", 0, "/a b.py|"},
                 {"hx", 12, "/a b.py:12|"},         {"code --wait", 12, "-g|/a b.py:12|"},
                 {"/opt/x/code", 0, "/a b.py|"},    {"myeditor", 3, "+3|/a b.py|"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct editor_process_arguments a;
        char got[200] = "";
        editor_process_arguments(cases[i].command, "/a b.py", cases[i].line, &a);
        for (size_t k = 0; k < a.n; k++)
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s|", a.text[k]);
        assert_string_equal(got, cases[i].arguments);
    }
    (void)unsetenv("VISUAL");
    (void)setenv("EDITOR", "ed", 1);
    assert_string_equal(editor_process_command(), "ed");
    (void)setenv("VISUAL", "vim", 1);
    assert_string_equal(editor_process_command(), "vim");
    (void)unsetenv("VISUAL");
    (void)unsetenv("EDITOR");
    assert_string_equal(editor_process_command(), "vi");
}

static void test_editor_runs(void **state) {
    struct editor_process p = {.pidfd = -1};
    char file[] = "/tmp/probing-editor-XXXXXX", command[128], line[64] = "";
    struct err e;
    (void)state;
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)snprintf(command, sizeof command, "printf '%%s,' > %s", file); /* the arguments go there */
    assert_int_equal(editor_process_start(&p, command, "/no/such $HOME'x", 7, &e), 0);
    assert_int_equal(editor_process_finish(&p, &e), 0);
    assert_int_equal(p.pid, 0);
    ssize_t n = read(fd, line, sizeof line - 1);
    assert_true(n > 0);
    assert_string_equal(line, "+7,/no/such $HOME'x,");
    assert_int_equal(editor_process_start(&p, "/no/such/editor", "x", 0, &e), 0);
    assert_int_equal(editor_process_finish(&p, &e), -1);
    assert_non_null(strstr(e.text, "cannot run the editor '/no/such/editor'"));
    (void)close(fd);
    (void)unlink(file);
}

static void test_edit_wish(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "Enter j j j e");
    assert_true(fake_host_take().edit);
    assert_string_equal(fake_host.file, "/home/ada/jobs/train.py");
    assert_int_equal(fake_host.line, 88);
    app_free(a);
}

static void test_frame_file(void **state) {
    char path[4096], cwd[2048], file[] = "/tmp/probing-frame-XXXXXX", expected[2200];
    struct err e;
    (void)state;
    int fd = mkstemp(file);
    assert_true(fd >= 0 && getcwd(cwd, sizeof cwd));
    assert_int_equal(frame_file_find(getpid(), file, path, sizeof path, &e), 0);
    assert_string_equal(path, file);
    assert_int_equal(frame_file_find(0, file, path, sizeof path, &e), 0);
    assert_int_equal(chdir("/tmp"), 0);
    (void)snprintf(expected, sizeof expected, "/proc/%d/cwd/%s", (int)getpid(), file + 5);
    assert_int_equal(frame_file_find(getpid(), file + 5, path, sizeof path, &e), 0);
    assert_string_equal(path, expected);
    assert_int_equal(chdir(cwd), 0);
    static const char *const bad[] = {"<string>", "<frozen importlib._bootstrap>", "", "/no/such/file.py",
                                      "/tmp"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(frame_file_find(getpid(), bad[i], path, sizeof path, &e), -1);
    assert_int_equal(frame_file_find(0, "relative.py", path, sizeof path, &e), -1);
    assert_int_equal(frame_file_find(0, NULL, path, sizeof path, &e), -1);
    (void)close(fd);
    (void)unlink(file);
}

/* ---- the menu ---- */

static void test_menu(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "m");
    assert_ptr_equal(app_screen_top(a)->def, &screen_menu);
    assert_shows(a, "Actions");
    assert_shows(a, "toggle the variables of the selected frame");
    assert_shows(a, "4242 MainThread");        /* the screen below is there still */
    assert_hides(a, "open the child process"); /* it is of none */
    fixture_press(a, "/ \"variables Space \"of Enter");
    assert_hides(a, "copy the whole stack");
    fixture_press(a, "Enter");
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_shows(a, "Locals");
    fixture_press(a, "m y"); /* by its key */
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_true(fake_host_take().copy);
    fixture_press(a, "m Esc");
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    fixture_press(a, "F9 q");
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_false(fake_host_take().quit);
    static const char *const others[] = {"4 m", "3 j m"};
    for (size_t i = 0; i < 2; i++) {
        fixture_press(a, others[i]);
        assert_ptr_equal(app_screen_top(a)->def, &screen_menu);
        assert_shows(a, "open the frame's file at its line");
        (void)fixture_draw(a, 12, 40);
        fixture_press(a, "Esc");
    }
    app_free(a);
}

static void test_menu_by_mouse(void **state) {
    struct app *a = with_samples();
    (void)state;
    (void)fixture_draw(a, 24, 80);
    struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_MENU, .row = 8, .col = 10};
    app_input(a, &e);
    assert_ptr_equal(app_screen_top(a)->def, &screen_menu);
    assert_shows(a, "Actions");
    e = (struct input_event){.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK, .row = 23, .col = 79};
    e.row = 5; /* beside it */
    e.col = 0;
    app_input(a, &e);
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    assert_hides(a, "Stack of MainThread"); /* the right button has selected the row */
    e = (struct input_event){.kind = INPUT_EVENT_MOUSE, .button = INPUT_MENU, .row = 6, .col = 2};
    app_input(a, &e);
    (void)fixture_draw(a, 24, 80);
    e.button = INPUT_CLICK;
    e.row = 7; /* the first entry: into the stack */
    app_input(a, &e);
    assert_int_equal(screen_context(app_screen_top(a)->def, app_screen_top(a)->state), CONTEXT_STACK);
    app_free(a);
}

static void test_show_elsewhere(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "f"); /* the thread that is selected */
    assert_ptr_equal(app_screen_top(a)->def, &screen_flame);
    assert_int_equal(((struct flame_state *)app_screen_top(a)->state)->query.tid, 4242);
    fixture_press(a, "T");
    assert_ptr_equal(app_screen_top(a)->def, &screen_top);
    assert_null(strstr(a->message, "select a row first"));
    fixture_press(a, "f");
    assert_ptr_equal(app_screen_top(a)->def, &screen_flame);
    app_free(a);
}

/* ---- exports ---- */

static char *read_file(const char *path) {
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    return text;
}

static void finish_export(struct app *a) {
    assert_true(fake_host_take().write);
    struct export_job *job = fake_host.job;
    fake_host.job = NULL;
    export_job_do(job);
    app_export_done(a, job);
}

static void test_export_window_agrees(void **state) {
    struct app *a = with_samples();
    const struct sample_store *t = a->data.tally;
    (void)state;
    for (int w = 0; w < SAMPLE_STORE_WINDOWS; w++) {
        struct sample_filter_query q = {
            .samples = {.window = (enum sample_store_window)w, .by = FLAME_BY_LINE, .time = FLAME_ALL_TIME}};
        struct sample_filter cut;
        uint64_t samples = 0, copied = 0;
        double us = 0, copied_us = 0;
        assert_int_equal(sample_filter_make(&cut, t, &q), 0);
        struct stack_counts *f = cut.counts;
        for (size_t i = 0; i < sample_store_count_entries(t); i++) {
            struct stack_counts_sums c = sample_store_get_count(t, (enum sample_store_window)w, i);
            samples += c.samples;
            us += c.us;
        }
        for (size_t i = 0; i < stack_counts_count(f); i++) {
            const struct stack_counts_entry *e = stack_counts_get(f, i);
            assert_true(e->sums.samples > 0);
            copied += e->sums.samples;
            copied_us += e->sums.us;
        }
        assert_int_equal(samples, copied);
        assert_true(us == copied_us || (us > 0 && copied_us / us > 0.999999 && copied_us / us < 1.000001));
        sample_filter_fini(&cut);
    }
    app_free(a);
}

static void test_export_dialog(void **state) {
    struct app *a = with_samples();
    char dir[] = "/tmp/probing-export-XXXXXX", path[256], keys[400];
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/out.folded", dir);
    fixture_press(a, "4 x");
    assert_ptr_equal(app_screen_top(a)->def, &screen_export);
    assert_shows(a, "folded");
    assert_shows(a, "svg");
    assert_hides(a, "sqlite");
    for (int i = 0; i < 20 && !strstr(fixture_draw(a, 24, 80), "File: "); i++) {
        (void)fixture_draw(a, 24, 80);
        fixture_press(a, "Enter"); /* json: the first */
    }
    assert_non_null(strstr(a->prompt.text, ".json"));
    fixture_press(a, "Esc Esc");
    assert_ptr_equal(app_screen_top(a)->def, &screen_top);
    (void)snprintf(keys, sizeof keys, ": \"export Space \"folded Space \"%s Enter", path);
    fixture_press(a, keys);
    finish_export(a);
    assert_shows(a, "wrote ");
    assert_non_null(strstr(read_file(path), "train_step (train.py"));
    fixture_press(a, keys); /* it is there now */
    assert_false(fake_host_take().write);
    assert_shows(a, "already exists");
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/screen.txt", dir);
    (void)snprintf(keys, sizeof keys, "2 : \"save-screen Space \"%s Enter", path);
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, keys);
    finish_export(a);
    assert_non_null(strstr(read_file(path), "Stack of MainThread (4242)"));
    /* A file that is there: the dialog asks, Esc keeps it, Enter replaces it. */
    (void)snprintf(keys, sizeof keys, "x End Enter ctrl-u \"%s Enter", path);
    fixture_press(a, keys);
    assert_false(fake_host_take().write);
    assert_shows(a, "already exists: Enter replaces it");
    fixture_press(a, "Esc");
    assert_ptr_equal(app_screen_top(a)->def, &screen_export);
    (void)snprintf(keys, sizeof keys, "Enter ctrl-u \"%s Enter", path);
    fixture_press(a, keys);
    assert_shows(a, "already exists: Enter replaces it");
    app_input(
        a, &(struct input_event){.kind = INPUT_EVENT_MOUSE, .button = INPUT_WHEEL_UP, .row = 12, .col = 40});
    assert_hides(a, "already exists"); /* another format may be selected now: it asks for a name */
    fixture_press(a, "Enter");
    assert_shows(a, "File: ");
    assert_false(fake_host_take().write);
    (void)snprintf(keys, sizeof keys, "Esc End Enter ctrl-u \"%s Enter Enter", path);
    fixture_press(a, keys);
    finish_export(a);
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    (void)unlink(path);
    (void)rmdir(dir);
    app_free(a);
}

/* What was chosen on the screen is what is written, and the message says so. */
static const char *export_of(struct app *a, const char *format) {
    char dir[] = "/tmp/probing-export-XXXXXX", path[256], keys[400];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/out", dir);
    (void)snprintf(keys, sizeof keys, ": \"export Space \"%s Space \"%s Enter", format, path);
    fixture_press(a, keys);
    finish_export(a);
    const char *text = read_file(path);
    (void)unlink(path);
    (void)rmdir(dir);
    return text;
}

static void assert_says(struct app *a, const char *text) {
    if (!strstr(a->message, text))
        fail_msg("'%s' is not in the message: %s", text, a->message);
}

static void test_export_of_what_was_chosen(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "2");
    assert_non_null(strstr(export_of(a, "folded"), "train_step (train.py:"));
    assert_says(a, "all threads, waiting too; over ");
    fixture_press(a, "3");
    const char *text = export_of(a, "folded");
    assert_non_null(strstr(text, "train_step (train.py) "));
    assert_says(a, "all threads, on the CPU; ");
    assert_null(strstr(text, "train.py:"));
    fixture_press(a, "l");
    assert_non_null(strstr(export_of(a, "folded"), "train_step (train.py:"));
    fixture_press(a, "l");
    assert_null(strstr(export_of(a, "folded"), "train_step"));
    fixture_press(a, "l a \\ \"train_step Enter )");
    text = export_of(a, "svg");
    assert_says(a, "MainThread (4242), waiting too, stacks with 'train_step'; ");
    assert_non_null(strstr(text, "widths are the time of MainThread (4242), waiting too, stacks with "
                                 "&#39;train_step&#39;"));
    for (text = export_of(a, "folded"); *text; text = strchr(text, '\n') + 1)
        if (!strstr(text, "train_step") || strstr(text, "train_step") > strchr(text, '\n'))
            fail_msg("not filtered: %s", text);
    text = export_of(a, "speedscope");
    assert_says(a, "speedscope of ");
    assert_says(a, "MainThread (4242), waiting too, stacks with 'train_step'; ");
    assert_non_null(strstr(text, "\"name\":\"MainThread (4242)\""));
    assert_null(strstr(text, "worker"));
    assert_int_not_equal(*export_of(a, "perfetto"), '\0');
    assert_int_not_equal(*export_of(a, "pprof"), '\0');
    app_free(a);
}

/* How many samples the last message says were written. */
static int samples_written(const struct app *a) {
    const char *of = strstr(a->message, " of ");
    return of ? atoi(of + 4) : -1;
}

/* Samples that came with the first answer were taken before it: formats in the order of time have them too. */
static void test_export_of_the_first_samples(void **state) {
    struct app *a = with_samples();
    (void)state;
    fixture_press(a, "3 a");
    (void)export_of(a, "folded");
    int all = samples_written(a);
    assert_true(all > 1);
    (void)export_of(a, "speedscope");
    assert_int_equal(samples_written(a), all);
    (void)export_of(a, "perfetto");
    assert_int_equal(samples_written(a), all);
    app_free(a);
}

static void test_export_refuses(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, ": \"export Space \"folded Space \"/tmp/x Enter");
    assert_shows(a, "no folded: there are no samples");
    fixture_press(a, ": \"export Space \"fold Space \"/tmp/x Enter");
    assert_shows(a, "did you mean 'folded'");
    fixture_press(a, ": \"export Space \"txt Space \"- Enter");
    assert_shows(a, "'-' is not a file name");
    fixture_press(a, ": \"export Space \"txt Space \"/no/such/folder/x Enter");
    assert_shows(a, "cannot write /no/such/folder/x");
    fixture_press(a, ": \"export Space \"csv Space \"/tmp/x Enter");
    assert_shows(a, "no csv: it is made of tables");
    assert_false(fake_host_take().write);
    app_free(a);
}

static void test_settings_by_command(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, ": \"set Space \"delay=2s Enter");
    assert_true(a->config.delay_s == 2);
    fixture_press(a, ": \"set Space \"delay Enter");
    assert_shows(a, "delay=2s");
    fixture_press(a, ": \"set Space \"dely=1 Enter");
    assert_true(a->message_is_bad);
    fixture_press(a, ": \"set Space \"delay=9h Enter");
    assert_true(a->message_is_bad);
    assert_true(a->config.delay_s == 2);
    fixture_press(a, ": \"set Enter");
    assert_shows(a, "which setting? :set NAME=VALUE");
    fixture_press(a, ": \"set Space \"mou Tab");
    assert_string_equal(a->prompt.text, "set mouse=");
    fixture_press(a, "\"of Tab");
    assert_string_equal(a->prompt.text, "set mouse=off ");
    fixture_press(a, "Enter");
    assert_false(a->mouse);
    app_free(a);
}

static void test_readonly(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    a->row_actions.readonly = true;
    fixture_press(a, "E");
    assert_shows(a, "--readonly: repr would run code in the job");
    fixture_press(a, ": \"repr Enter");
    assert_shows(a, "--readonly: repr");
    fixture_press(a, "v"); /* that only reads */
    assert_hides(a, "--readonly");
    a->row_actions.readonly = false;
    fixture_press(a, "E y");
    assert_shows(a, "which runs its code");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_are_harmless),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_clipboard_sequence),
        cmocka_unit_test(test_editor_arguments),
        cmocka_unit_test(test_editor_runs),
        cmocka_unit_test(test_edit_wish),
        cmocka_unit_test(test_frame_file),
        cmocka_unit_test(test_menu),
        cmocka_unit_test(test_menu_by_mouse),
        cmocka_unit_test(test_show_elsewhere),
        cmocka_unit_test(test_export_window_agrees),
        cmocka_unit_test(test_export_dialog),
        cmocka_unit_test(test_export_of_what_was_chosen),
        cmocka_unit_test(test_export_of_the_first_samples),
        cmocka_unit_test(test_export_refuses),
        cmocka_unit_test(test_settings_by_command),
        cmocka_unit_test(test_readonly),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
