# SPDX-License-Identifier: Apache-2.0
"""Functions of names and tables that are as long as memory, of no form, nowhere, or made to be obeyed by a terminal."""

import forged
from forged import ESCAPES, HUGE, O, code, frame, put, set_first, sleeper, table, text

FIELDS = ("code_name", "code_qualname", "code_filename")


def texts():
    yield text(ESCAPES)
    yield text((ESCAPES * 1000)[:9000])
    yield text(b"\x1b]0;evil\x07" * 400)
    yield text("\ud800\udfff" * 50)
    yield text(b"\xff\xff\xff\xff" * 50, kind=4, ascii_only=False)
    yield text("")
    yield text(b"\x00" * 100)
    yield text(b"x" * 3 * 10 ** 6)
    for n in HUGE:
        yield text("lies", length=n)
    for kind in range(8):
        yield text(b"lies" * 10, kind=kind)
        yield text(b"lies" * 10, kind=kind, compact=False, ascii_only=False, extra=forged.unmapped())
    yield text("/victims/../etc/passwd")
    yield from forged.places()


def tables():
    yield table(b"")
    yield table(b"\xff" * 100000)
    yield table(b"\x80\x00" * 50000)
    yield table(bytes(range(256)) * 100)
    for n in HUGE + (1 << 20, (1 << 20) + 1):
        yield table(b"\x80", length=n)
    yield from forged.places()


def sleeps_in(first):
    set_first(sleeper(), first)


def costly():
    """Two thousand frames, each at another place at the end of a table as long as is read."""
    units = 1 << 19
    of = code(var_size=units, code_linetable=table(b"\x80\x00" * (units - 1)))
    first = 0
    for i in range(2048):
        first = frame(of, first, instr=of + O["code_bytes"] + 2 * (units - 5000 + i))
    return first


def main():
    for of in texts():
        fields = dict.fromkeys(FIELDS, of)
        sleeps_in(frame(code(**fields)))
    for of in tables():
        sleeps_in(frame(code(code_linetable=of)))
    for n in HUGE:
        sleeps_in(frame(code(var_size=n)))
        sleeps_in(frame(code(code_firsttraceable=n)))
    for place in forged.places():
        sleeps_in(frame(place))
        sleeps_in(frame(code(object_type=place)))
        of = code()
        sleeps_in(frame(of, instr=place))
    for _ in range(20):
        sleeps_in(costly())
    dead = code()
    forged.word(dead).value = 0
    put(dead, "code_firstlineno", 1 << 31)
    sleeps_in(frame(dead))
    forged.lie({"all": lambda: lambda: None})


main()
