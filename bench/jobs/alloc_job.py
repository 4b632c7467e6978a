# SPDX-License-Identifier: Apache-2.0
"""A job that allocates: bench/alloc.py. Its argument is what it does; it writes how often to the file that is its second one.

  objects   small Python objects, as fast as it can
  blocks    blocks of 1 to 100 KiB
  sites     ROUNDS times the same mixture by six functions, of which some is kept; then it writes READY and waits
"""

import os
import sys
import time

kept = []


def objects():
    return [object() for _ in range(1000)]


def blocks(n):
    return [bytearray(1024 * (1 + (7 * i + n) % 100)) for i in range(20)]


def keep_large(n):
    kept.append(bytearray(200_000 + n % 7))


def keep_text(n):
    kept.append("x" * (40_000 + n % 50))


def keep_list(n):
    kept.append(list(range(2000, 4000 + n % 10)))


def drop_large(n):
    return len(bytearray(300_000 + n % 11))


def drop_dict(n):
    return len({i: None for i in range(1500 + n % 3)})


def keep_half(n):
    kept.append(bytes(100_000))
    if n % 2:
        kept.pop()


SITES = (keep_large, keep_text, keep_list, drop_large, drop_dict, keep_half)


def sites(rounds):
    for n in range(rounds):
        for site in SITES:
            site(n)


def count(path, n):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(n))
    os.replace(path + ".new", path)


def repeat(work, path):
    n, due = 0, 0.0
    while True:
        work(n)
        n += 1
        if time.monotonic() >= due:
            count(path, n)
            due = time.monotonic() + 0.02


def main():
    what, path = sys.argv[1:3]
    if what == "objects":
        repeat(lambda n: objects(), path)
    elif what == "blocks":
        repeat(blocks, path)
    else:
        rounds = int(sys.argv[3])
        if len(sys.argv) > 4:  # whoever measures says when to begin
            count(path, 0)
            while not os.path.exists(sys.argv[4]):
                time.sleep(0.01)
        sites(rounds)
        count(path, rounds)
        if len(sys.argv) > 4:
            time.sleep(1000)


if __name__ == "__main__":
    main()
