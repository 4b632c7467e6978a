# SPDX-License-Identifier: Apache-2.0
"""A list of interpreters that leads in circles, to hundreds with modules and threads of their own, and to none."""

import os

import forged
from forged import HUGE, INTERPRETER, O, begun_never, chain, dictionary, keys, linking, mapped, put, text, thread_state, word

END = INTERPRETER + O["interp_next"]
SIZE = 1 << 19


def interpreters(n, fill, back=0):
    """So many, in a row."""
    made = [mapped(SIZE) for _ in range(n)]
    for i, at in enumerate(made):
        put(at, "interp_id", i + 1)
        put(at, "interp_next", made[i + 1] if i + 1 < n else back)
        if O["gil_place"] == 1:
            put(at, "gil", word(INTERPRETER + O["gil"]).value)
        fill(at)
    return made[0]


def with_modules(modules):
    def fill(at):
        put(at, "interp_modules", modules)
        put(at, "interp_sysdict", modules)
    return fill


def with_threads(first, n):
    """Those of one list for all, so only one interpreter's are right."""
    def fill(at):
        state, _ = forged.in_a_row(n, lambda i: thread_state(interp=at, tid=os.getpid(), first=first))
        put(at, "interp_threads_head", state)
    return fill


def with_names(active):
    """An interpreter whose threading._active is that."""
    module = forged.made(dict, 256)
    put(module, "module_dict", dictionary(keys(1, (text("_active"), active))))
    return with_modules(dictionary(keys(1, (text("threading"), module))))


def main():
    name = text("x" * 2000, length=1 << 29)
    number = id(10 ** 6)
    thread = forged.made(dict, 512)
    many = dictionary(keys(65536, (name, thread)))
    nothing = chain(5000, make=begun_never)[0]
    forms = {
        "itself": linking(END, INTERPRETER),
        "circle": linking(END, interpreters(7, lambda at: None, back=INTERPRETER)),
        "thousands": linking(END, interpreters(2000, lambda at: None)),
        "modules": linking(END, interpreters(256, with_modules(many))),
        "names": linking(END, interpreters(256, with_names(dictionary(keys(65536, (number, thread)))))),
        "threads": linking(END, interpreters(256, with_threads(nothing, 16))),
    }
    for i, n in enumerate(HUGE):
        forms[f"said-{i}"] = linking(END, interpreters(256, with_modules(dictionary(keys(1000, (name, thread), said=n)))))
    for log2 in (0, 40, 41, 255):
        forms[f"log-{log2}"] = linking(END, interpreters(1, with_modules(dictionary(keys(8, (name, thread), log2=log2)))))
    for i, place in enumerate(forged.places()):
        forms[f"place-{i}"] = linking(END, place)
        forms[f"modules-{i}"] = linking(END, interpreters(1, with_modules(place)))
        forms[f"keys-{i}"] = linking(END, interpreters(1, with_modules(dictionary(place))))
        forms[f"values-{i}"] = linking(END, interpreters(1, with_modules(dictionary(keys(8, (name, thread)), values=place))))
        forms[f"key-{i}"] = linking(END, interpreters(1, with_modules(dictionary(keys(8, (place, place))))))
    forged.lie(forms)


main()
