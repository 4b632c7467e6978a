/* SPDX-License-Identifier: Apache-2.0 */
/* term_type: see term_type.h. In a file of its own because <term.h> takes many short names,
 * including struct term. */
#include "tui/term/term_type.h"

#include <ncurses.h>
#include <term.h>

int term_type_check(const char *type, int fd, struct err *e) {
    int found = 0;
    if (!type || !*type)
        return err_set(e, ERR_FAILED,
                       "TERM is not set: set it to the terminal's type, such as TERM=xterm-256color");
    if (setupterm(type, fd, &found) != OK)
        return err_set(e, ERR_FAILED, "the terminal type '%s' is not known here: try TERM=xterm-256color",
                       type);
    int rc = 0;
    if (!cursor_address)
        rc = err_set(
            e, ERR_FAILED,
            "the terminal type '%s' cannot place the cursor: try TERM=xterm-256color, or --export txt --once",
            type);
    del_curterm(cur_term);
    return rc;
}

int term_type_colors(const char *type, int fd) {
    int found = 0;
    if (!type || !*type || setupterm(type, fd, &found) != OK)
        return -2;
    int colors = tigetnum("colors");
    del_curterm(cur_term);
    return colors;
}
