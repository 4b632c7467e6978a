# SPDX-License-Identifier: Apache-2.0
"""A list of threads that leads in circles, to thousands that are not there, to none, and to another one every few microseconds."""

import os
import threading

import forged
from forged import INTERPRETER, O, OLDEST, begun_never, chain, in_a_row, linking, put, quick_chain, thread_state, word

END = OLDEST + O["tstate_next"]


def states(n, back=None, **how):
    """So many behind the last one."""
    first, _ = in_a_row(n, lambda i: thread_state(tid=os.getpid(), serial=(1 << 40) + i, **how), back)
    put(first, "tstate_prev", OLDEST)
    return first


def flipping(lists):
    """Another one after the other, until it is taken back."""
    flips, over = [True], threading.Lock()

    def flip():
        with over:
            while flips:
                for value in lists:
                    word(END).value = value
            word(END).value = 0

    def form():
        flips[:] = [True]
        threading.Thread(target=flip, daemon=True).start()

        def back():
            flips.clear()
            with over:
                pass
        return back
    return form


def main():
    nothing = chain(5000, make=begun_never)[0]
    forms = {
        "itself": linking(END, OLDEST),
        "head": linking(END, forged.thread_states()[0]),
        "circle": linking(END, states(100, back=OLDEST)),
        "many": linking(END, states(20000)),
        "empty": linking(END, states(5000, first=nothing)),
        "deep": linking(END, states(5000, first=quick_chain(10 ** 5))),
        "idents": linking(END, in_a_row(64, lambda i: thread_state(ident=(forged.places() + list(forged.HUGE))[i % 19], previous=OLDEST if i == 0 else 0))[0]),
        "stranger": linking(END, thread_state(interp=INTERPRETER + 8, previous=OLDEST)),
    }
    for i, place in enumerate(forged.places()):
        forms[f"place-{i}"] = linking(END, place)
    forms["flipping"] = flipping([0, OLDEST, states(10), states(4000), states(50, back=OLDEST), 8])
    forged.lie(forms)


main()
