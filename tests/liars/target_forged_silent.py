# SPDX-License-Identifier: Apache-2.0
"""Frames, functions, threads and interpreters on pages that nobody answers for: whoever reads them waits without end. (Begun as root: the kernel lets
nobody else make such pages.)"""

import sys

import forged
from forged import INTERPRETER, O, OLDEST, code, frame, linking, put, set_first, sleeper, text


def main():
    page = forged.silent()
    if not page:
        sys.exit("needs userfaultfd: the kernel does not let us")
    state = sleeper()

    def first(value):
        def form():
            set_first(state, value)
            return lambda: set_first(state, 0)
        return form

    outer = frame()
    put(outer, "frame_previous", page)
    forged.lie({
        "frame": first(page),
        "caller": first(outer),
        "function": first(frame(page)),
        "name": first(frame(code(code_qualname=page, code_name=page))),
        "table": first(frame(code(code_linetable=page))),
        "letters": first(frame(code(code_filename=text("", length=4000, compact=False, ascii_only=False, extra=page)))),
        "thread": linking(OLDEST + O["tstate_next"], page),
        "interpreter": linking(INTERPRETER + O["interp_next"], page),
    })


main()
