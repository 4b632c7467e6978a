/* SPDX-License-Identifier: Apache-2.0 */
/* editor_process: see editor_process.h. */
#include "tui/host/editor_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EDITOR_MAX_FD 4096
#define EDITOR_NOT_RUN 126 /* sh(1): from here on the command could not run */

const char *editor_process_command(void) {
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    return visual && *visual ? visual : editor && *editor ? editor : "vi";
}

/* Is the program of a command one of these? */
static int editor_is(const char *command, const char *const *names) {
    size_t len = strcspn(command, " ");
    for (size_t i = len; i > 0; i--)
        if (command[i - 1] == '/') {
            command += i;
            len -= i;
            break;
        }
    for (; *names; names++)
        if (strlen(*names) == len && strncmp(*names, command, len) == 0)
            return 1;
    return 0;
}

void editor_process_arguments(const char *command, const char *path, int line,
                              struct editor_process_arguments *out) {
    static const char *const with_option[] = {"code",   "code-insiders", "codium", "vscodium",
                                              "cursor", "windsurf",      NULL};
    static const char *const with_colon[] = {"hx", "helix", "zed", "subl", NULL};
    size_t cap = sizeof out->text[0];
    out->n = 0;
    command += strspn(command, " ");
    bool option = editor_is(command, with_option);
    if (line > 0 && option)
        snprintf(out->text[out->n++], cap, "-g");
    if (line > 0 && (option || editor_is(command, with_colon))) {
        snprintf(out->text[out->n++], cap, "%s:%d", path, line);
        return;
    }
    if (line > 0)
        snprintf(out->text[out->n++], cap, "+%d", line);
    snprintf(out->text[out->n++], cap, "%s", path);
}

/* The child until it becomes the editor. */
static void editor_run(const char *command, const struct editor_process_arguments *a) {
    static const int own[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGTERM, SIGHUP, SIGWINCH};
    char script[512], *argv[4 + EDITOR_PROCESS_ARGUMENTS + 1];
    sigset_t none;
    size_t n = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        signal(own[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = STDERR_FILENO + 1; fd < EDITOR_MAX_FD; fd++)
        close(fd);
    snprintf(script, sizeof script, "exec %s \"$@\"", command);
    argv[n++] = (char *)"sh";
    argv[n++] = (char *)"-c";
    argv[n++] = script;
    argv[n++] = (char *)"sh";
    for (size_t i = 0; i < a->n; i++)
        argv[n++] = (char *)a->text[i];
    argv[n] = NULL;
    execv("/bin/sh", argv);
    _exit(EDITOR_NOT_RUN);
}

int editor_process_start(struct editor_process *p, const char *command, const char *path, int line,
                         struct err *e) {
    struct editor_process_arguments *a = malloc(sizeof *a);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (!a)
        return err_set(e, ERR_FAILED, "out of memory");
    editor_process_arguments(command, path, line, a);
    snprintf(p->command, sizeof p->command, "%s", command);
    pid_t pid = fork();
    if (pid == 0)
        editor_run(p->command, a);
    int error = errno;
    free(a);
    if (pid < 0)
        return err_set_errno(e, ERR_FAILED, error, "cannot start %s", p->command);
    sigaction(SIGQUIT, &ignore, &p->quit);
    p->pid = pid;
    p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return 0;
}

static void editor_forget(struct editor_process *p) {
    sigaction(SIGQUIT, &p->quit, NULL);
    if (p->pidfd >= 0)
        close(p->pidfd);
    p->pid = 0;
    p->pidfd = -1;
}

int editor_process_finish(struct editor_process *p, struct err *e) {
    int status = 0;
    pid_t pid;
    do
        pid = waitpid(p->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    editor_forget(p);
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) >= EDITOR_NOT_RUN && WEXITSTATUS(status) < 128)
        return err_set(e, ERR_FAILED, "cannot run the editor '%s': set VISUAL or EDITOR to one that exists",
                       p->command);
    return 0;
}

void editor_process_leave(struct editor_process *p) {
    if (p->pid > 0)
        editor_forget(p);
}
