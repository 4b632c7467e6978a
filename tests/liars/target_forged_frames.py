# SPDX-License-Identifier: Apache-2.0
"""Threads whose frames lead in circles, to a million others, to memory that is not there, and to frames that say nothing."""

import forged
from forged import begun_never, chain, frame, put, quick_chain, set_first, sleeper, take, word


def circle(n, make=frame):
    first, end = chain(n, make=make)
    put(end, "frame_previous", first)
    return first


def main():
    itself = frame()
    put(itself, "frame_previous", itself)
    firsts = [itself, circle(3), circle(1000), circle(5000), circle(5000, begun_never), chain(5000, make=begun_never)[0], quick_chain(10 ** 6)]
    for place in forged.places():
        firsts += [place, chain(100, place)[0]]
    firsts += [frame(owner=owner) for owner in (1, 2, 4, 255)]
    for first in firsts:
        set_first(sleeper(), first)
    # The piece of memory that the newest frames are in says that it is of another size, or is another one.
    for size in forged.HUGE + (0, 24, 65536):
        state, piece = sleeper(), take(65536)
        put(piece, "chunk_size", size)
        word(piece).value = piece
        put(state, "tstate_datastack_chunk", piece)
        set_first(state, frame(at=piece + 1024))
    for place in forged.places():
        put(sleeper(), "tstate_datastack_chunk", place)
    forged.lie({"all": lambda: lambda: None})


main()
