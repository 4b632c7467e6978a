/* SPDX-License-Identifier: Apache-2.0 */
/* launch: see launch.h. How a script names its interpreter: execve(2). */
#include "client/target/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/target/target.h"
#include "inject/agentfile.h"

#define LAUNCH_MAX_HEADERS 64
#define LAUNCH_HEAD 256

/* Path of the loader that an ELF file asks for. 1; 0 if it asks for none; -1 if it is not valid. */
static int launch_read_loader(int fd, const Elf64_Ehdr *eh, char *buf, size_t cap) {
    for (unsigned i = 0; i < eh->e_phnum && i < LAUNCH_MAX_HEADERS; i++) {
        Elf64_Phdr ph;
        if (pread(fd, &ph, sizeof ph, (off_t)(eh->e_phoff + i * sizeof ph)) != (ssize_t)sizeof ph)
            return -1;
        if (ph.p_type != PT_INTERP)
            continue;
        size_t n = ph.p_filesz < cap ? (size_t)ph.p_filesz : cap - 1;
        ssize_t got = pread(fd, buf, n, (off_t)ph.p_offset);
        buf[got > 0 ? got : 0] = '\0';
        return got > 0 ? 1 : -1;
    }
    return 0;
}

static int launch_check_elf(int fd, const Elf64_Ehdr *eh, const char *path, struct err *e) {
    char loader[PATH_MAX];
    if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64)
        return err_set(e, ERR_ATTACH, "%s is a %s program, this agent is for 64-bit x86: use one made for it",
                       path, eh->e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "foreign");
    int rc = eh->e_phentsize == sizeof(Elf64_Phdr) ? launch_read_loader(fd, eh, loader, sizeof loader) : -1;
    if (rc == 0)
        return err_set(e, ERR_ATTACH,
                       "%s is statically linked and cannot load the agent: start it without, then 'probing "
                       "PID backtrace --no-inject'",
                       path);
    if (rc > 0 && strstr(loader, "ld-musl-"))
        return err_set(e, ERR_ATTACH,
                       "%s runs on musl libc, the agent needs glibc: start it without, then 'probing PID "
                       "backtrace --no-inject'",
                       path);
    return 0;
}

/* The interpreter in the first line of a script; "" none. */
static void launch_read_shebang(const char *head, char *buf, size_t cap) {
    size_t skip = 2 + strspn(head + 2, " \t");
    snprintf(buf, cap, "%.*s", (int)strcspn(head + skip, " \t\n"), head + skip);
}

static int launch_check_file(const char *path, bool is_script, struct err *e) {
    union {
        Elf64_Ehdr elf;
        char text[LAUNCH_HEAD];
    } head;
    char interpreter[LAUNCH_HEAD] = "";
    int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) /* executable but not readable: not for us to refuse */
        return access(path, X_OK) == 0 ? 0 : err_set_errno(e, ERR_FAILED, errno, "cannot start %s", path);
    ssize_t n = read(fd, &head, sizeof head - 1);
    head.text[n > 0 ? n : 0] = '\0';
    if (n >= (ssize_t)sizeof head.elf && memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0)
        rc = launch_check_elf(fd, &head.elf, path, e);
    else if (n > 2 && head.text[0] == '#' && head.text[1] == '!' && !is_script)
        launch_read_shebang(head.text, interpreter, sizeof interpreter);
    close(fd);
    return interpreter[0] == '/' ? launch_check_file(interpreter, true, e) : rc;
}

int launch_check_program(const char *path, struct err *e) { return launch_check_file(path, false, e); }

/* Find the command's program as execvp(3) does. */
static int launch_find(const char *name, char *buf, size_t cap, struct err *e) {
    const char *path = getenv("PATH");
    struct stat st;
    if (strchr(name, '/')) {
        snprintf(buf, cap, "%s", name);
        return 0;
    }
    for (const char *dir = path ? path : "/bin:/usr/bin"; name[0];) {
        size_t len = strcspn(dir, ":");
        int n = snprintf(buf, cap, "%.*s%s%s", (int)len, dir, len ? "/" : "", name);
        if (n > 0 && (size_t)n < cap && access(buf, X_OK) == 0 && stat(buf, &st) == 0 && S_ISREG(st.st_mode))
            return 0;
        if (!dir[len])
            break;
        dir += len + 1;
    }
    return err_set(e, ERR_FAILED, "cannot start '%s': there is no such program along PATH", name);
}

/* The agent's file as ld.so takes it: an absolute path, checked to be of this version. */
static int launch_find_agent(char *buf, struct err *e) {
    char found[PATH_MAX];
    uint8_t *bytes;
    size_t size;
    if (target_find_agent(found, sizeof found, e) != 0 || agentfile_read(found, &bytes, &size, e) != 0)
        return -1;
    free(bytes);
    if (!realpath(found, buf))
        return err_set_errno(e, ERR_FAILED, errno, "cannot follow the path of the agent %s", found);
    if (strpbrk(buf, " :"))
        return err_set(e, ERR_FAILED,
                       "the agent %s cannot be preloaded: its path has a space or a colon; name another copy "
                       "with PROBING_AGENT",
                       buf);
    return 0;
}

static int launch_set_environment(const char *agent, bool nested, struct err *e) {
    const char *others = getenv("LD_PRELOAD");
    size_t cap = strlen(agent) + (others ? strlen(others) : 0) + 2;
    char *list = malloc(cap);
    if (!list)
        return err_set(e, ERR_FAILED, "out of memory for the environment");
    snprintf(list, cap, "%s%s%s", agent, others && others[0] ? ":" : "", others ? others : "");
    int rc = setenv("LD_PRELOAD", list, 1) == 0 && setenv("PROBING", nested ? "2" : "1", 1) == 0 ? 0 : -1;
    free(list);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the environment");
}

int launch_command(char *const *command, bool nested, struct err *e) {
    char program[PATH_MAX], agent[PATH_MAX];
    if (launch_find(command[0], program, sizeof program, e) != 0 || launch_check_program(program, e) != 0 ||
        launch_find_agent(agent, e) != 0 || launch_set_environment(agent, nested, e) != 0)
        return -1;
    execv(program, command);
    return err_set_errno(e, ERR_FAILED, errno, "cannot start %s", program);
}
