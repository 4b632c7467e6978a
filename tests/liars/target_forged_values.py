# SPDX-License-Identifier: Apache-2.0
"""Variables that are as large as memory, hold themselves, are of no type or of types without end, and whose names are made to be obeyed."""

import ctypes
import struct

import forged
from forged import ESCAPES, HUGE, O, code, dictionary, frame, keys, made, put, set_first, sleeper, table, take, text, word


def tuple_of(items, said=None, kind=tuple):
    at = made(kind, O["tuple_items"] + 8 * len(items))
    put(at, "var_size", len(items) if said is None else said)
    for i, item in enumerate(items):
        word(at + O["tuple_items"] + 8 * i).value = item
    return at


def list_of(items, said=None):
    at = made(list, 64)
    place = take(8 * len(items) + 8)
    for i, item in enumerate(items):
        word(place + 8 * i).value = item
    put(at, "var_size", len(items) if said is None else said)
    put(at, "list_items", place)
    return at


def number(said):
    at = made(int, 64)
    put(at, "long_tag", said)
    return at


def of_type(name, bases=3, itself=False, flags=None):
    """An object of a type that is made up."""
    kinds = [take(2048) for _ in range(bases)]
    for i, kind in enumerate(kinds):
        ctypes.memmove(kind, id(forged.Room), 1000)
        put(kind, "type_name", name)
        put(kind, "type_base", kinds[(i + 1) % bases] if itself else 0)
        if flags is not None:
            put(kind, "type_flags", flags)
    at = made(int, 512)
    put(at, "object_type", kinds[0])
    return at


def string(data):
    at = take(len(data) + 1)
    ctypes.memmove(at, data, len(data))
    return at


def values():
    some = text(ESCAPES)
    yield some
    itself = tuple_of([some] * 3)
    word(itself + O["tuple_items"] + 8).value = itself
    yield itself
    inner = list_of([itself] * 100)
    word(word(inner + O["list_items"]).value).value = inner
    yield inner
    for n in HUGE:
        yield text("x", length=n)
        yield table(b"\x1b]52;c;\x07", length=n)
        yield tuple_of([some], said=n)
        yield list_of([some], said=n)
        yield number(n)
        yield dictionary(keys(8, (some, inner), said=n))
    for name in (ESCAPES.encode("utf-8", "surrogatepass"), b"numpy.ndarray", b"numpy.float64", b"torch.Tensor", b"tensor" * 1000):
        yield of_type(string(name))
        yield of_type(string(name), itself=True)
        yield of_type(string(name), flags=(1 << 64) - 1)
    for place in forged.places():
        yield place
        yield of_type(place)
        yield tuple_of([place] * 3)
        at = made(list, 64)
        put(at, "var_size", 5)
        put(at, "list_items", place)
        yield at
        at = made(int, 64)
        put(at, "object_type", place)
        yield at


def main():
    found = list(values())
    for begin in range(0, len(found), 40):
        some = found[begin:begin + 40]
        names = tuple_of([text(ESCAPES) if i % 2 else text(f"v{i}") for i in range(len(some))])
        kinds = table(b"\x20" * len(some))
        of = code(code_names=names, code_kinds=kinds, code_nlocalsplus=len(some))
        at = frame(of, at=take(4096))
        ctypes.memmove(at + O["frame_localsplus"], struct.pack(f"{len(some)}Q", *some), 8 * len(some))
        set_first(sleeper(), at)
    for n in (1000, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1):
        set_first(sleeper(), frame(code(code_nlocalsplus=n)))
        set_first(sleeper(), frame(code(code_names=tuple_of([found[0]], said=n), code_kinds=table(b"\x20", length=n), code_nlocalsplus=n)))
    for place in forged.places():
        set_first(sleeper(), frame(code(code_names=place, code_nlocalsplus=10)))
        set_first(sleeper(), frame(code(code_kinds=place, code_nlocalsplus=10)))
    forged.lie({"all": lambda: lambda: None})


main()
