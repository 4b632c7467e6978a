#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may be said first to pdb of `pause` and `catch`: the product's own functions (src/agent/python/units/pdb_server.py) get N connections, of which
most say anything but the token: what other protocols begin with, the token with something added, taken away or changed, bytes of every
kind, megabytes, nothing; in pieces of every size, with pauses and ends between.

usage: first_line.py [N [SEED]]

Exactly the line that is the token (spaces and a carriage return around it are let pass) opens, whatever the pieces; a closed connection is not
read any further, what is kept of anybody is bounded, only what may be a token is judged, nobody learns it, and nothing is raised.
"""

import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "agent", "python", "units")
DIGITS = b"0123456789abcdef"
LINE_MAX, KEPT_MAX, READ_MAX = 128, 512, 4096
KNOWN = [
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"POST / HTTP/1.0\r\n\r\n__import__('os').system('x')\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"OPTIONS * HTTP/1.1\n\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)), b"SSH-2.0-OpenSSH_9.2\r\n", b"EHLO x\r\n",
    b"*1\r\n$4\r\nPING\r\n", b"\x00\x00\x00\x08\x04\xd2\x16\x2f", b"help\n", b"c\n", b"import os\n", b"\n", b"\r\n", b"\n\n\n", b" \n", b"\x04", b"\xff\xfb\x01\n",
    b"\xef\xbb\xbf", b"-\n", b"0\n", b"None\n", b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n", b"\x80\x01\x03\x01", b"%s%n\n", b"\x1b[2J\n", b"Content-Length: 10\r\n\r\n{}",
]
ADDED = [b" ", b"\t", b"\r", b"\r\r", b"  \t", b"\x00", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xc2\xa0", b"\xe2\x80\x8b", b"\xef\xbb\xbf", b"a", b"0", b";", b"'", b" c", b"\x1a", b"/",
         b" " * 60, b" " * 79, b" " * 80, b" " * 81, b" " * 200, b"\t" * 300]


def load():
    """The units as the worker has them: one dict, each piece by itself."""
    names = {"modules": sys.modules, "__builtins__": __builtins__.__dict__ if hasattr(__builtins__, "__dict__") else __builtins__}
    for unit in ("types.py", "pdb_server.py"):
        with open(os.path.join(PYTHON, unit), encoding="utf-8") as file:
            for piece in file.read().split("\n\n\n"):
                exec(compile(piece, "<probing>", "exec"), names)  # pylint: disable=exec-used
    return names


class Wrong(Exception):
    pass


class Connection:
    """The other end says these pieces; None: nothing has come yet; b"": its end; an error is raised."""

    def __init__(self, pieces):
        self.pieces, self.at, self.closed, self.sent, self.given = pieces, 0, False, b"", b""

    def fileno(self):
        return 3

    def recv(self, n):
        if self.closed:
            raise Wrong("who was closed is read")
        if self.at == len(self.pieces):
            raise BlockingIOError(11, "nothing has come")
        piece = self.pieces[self.at]
        if piece is None or isinstance(piece, OSError):
            self.at += 1
            raise piece or BlockingIOError(11, "nothing has come")
        if len(piece) > n:
            self.pieces[self.at] = piece[n:]
        else:
            self.at += 1
        self.given += piece[:n]
        return piece[:n]

    def settimeout(self, seconds):
        pass

    def send(self, data):
        if self.closed:
            raise OSError(9, "closed")
        self.sent += data
        return len(data)

    def close(self):
        self.closed = True


def opens(said, token):
    """What has to be, of all that is said before the end of the first line: whether it opens, and whether that line has an end."""
    line, end, _ = said.partition(b"\n")
    return bool(end) and len(line) <= LINE_MAX and line.strip(b" \t\r") == token


def saying(rng, token):
    """Bytes that somebody begins with."""
    kind = rng.randrange(12)
    if kind == 0:
        said = token
    elif kind == 1:
        said = rng.choice(KNOWN)
    elif kind == 2:  # something before it or behind
        said = rng.choice(ADDED + [b""]) + token + rng.choice(ADDED + [b""])
    elif kind == 3:  # not all of it
        said = token[rng.randrange(3):rng.randrange(len(token) - 3, len(token) + 1)]
    elif kind == 4:  # one byte is another
        at = rng.randrange(len(token))
        said = token[:at] + bytes([rng.randrange(256)]) + token[at + rng.randrange(2):]
    elif kind == 5:
        said = token.upper() if rng.randrange(2) else token.decode().translate({48 + i: 0x660 + i for i in range(10)}).encode("utf-8")
    elif kind == 6:
        said = bytes(rng.choice(DIGITS) for _ in range(rng.choice((0, 1, 47, 48, 49, 63, 64, 65, 127, 128, 129, 300))))
    elif kind == 7:
        said = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    elif kind == 8:  # the token is not the first line
        said = rng.choice(KNOWN + ADDED) + b"\n" + token
    elif kind == 9:
        said = token + token
    elif kind == 10:
        said = bytes([rng.randrange(256)]) * rng.choice((1, 100, 129, 1000, 100000))
    else:
        said = rng.choice(KNOWN) + token
    return said + rng.choice((b"\n", b"\n", b"\r\n", b"\n\n", b"\nc\n", b"\n" + token + b"\n", b"\n" + bytes(300), b""))


def in_pieces(rng, said):
    how = rng.randrange(5)
    if how == 0 or len(said) > 2000:
        pieces = [said]
    elif how == 1:
        pieces = [said[i:i + 1] for i in range(len(said))]
    elif how == 2:
        at = rng.randrange(len(said) + 1)
        pieces = [said[:at], said[at:]]
    else:
        pieces, at = [], 0
        while at < len(said):
            size = rng.choice((1, 2, 7, 48, 49, 255, 256, 257))
            pieces.append(said[at:at + size])
            at += size
    pieces = [piece for piece in pieces if piece]
    for _ in range(rng.randrange(3)):
        pieces.insert(rng.randrange(len(pieces) + 1), None)
    if rng.randrange(4) == 0:  # it ends, or breaks, wherever
        pieces.insert(rng.randrange(len(pieces) + 1), rng.choice((b"", OSError(104, "reset"), ConnectionResetError(104, "reset"))))
    return pieces


class Talk:
    """Of a debugger that listens, what hearing uses."""

    def __init__(self, token):
        self.pending, self.client, self.token = {}, None, token


def one(names, token, pieces, state):
    """One connection. True: it opened."""
    talk, connection = Talk(token.decode()), Connection(list(pieces))
    state.update(opened=None, judged=[])
    talk.pending[connection] = [b"", 0.0, 0]
    for _ in range(sum(2 + len(piece) // 200 for piece in pieces if isinstance(piece, bytes)) + len(pieces) + 1):
        if connection not in talk.pending:
            break
        names["pdb_server_hear"](talk, connection)
        if connection in talk.pending and len(talk.pending[connection][0]) > KEPT_MAX:
            raise Wrong("of one that has said nothing yet %d bytes are kept" % len(talk.pending[connection][0]))
    is_open = state["opened"] is not None
    # What it has said is what was read, up to its end.
    if is_open != opens(connection.given, token):
        raise Wrong("it was %s" % ("let in" if is_open else "not let in"))
    if is_open and (connection.closed or state["opened"] != connection.given.partition(b"\n")[2]):
        raise Wrong("what it said after the token is lost")
    if not is_open and not connection.closed and (b"\n" in connection.given or len(connection.given) > LINE_MAX or
                                                  any(isinstance(p, OSError) or p == b"" for p in pieces[:connection.at])):
        raise Wrong("it is not closed")
    if len(connection.given) > READ_MAX or token in connection.sent or (b"HTTP/" in connection.given.partition(b"\n")[0] and connection.sent):
        raise Wrong("%d bytes of it were read, and it was told %r" % (len(connection.given), connection.sent[:100]))
    for said in state["judged"]:
        if len(said) > 64 or said.strip("0123456789abcdef") not in ("", "-"):
            raise Wrong("it is judged by %r" % said[:100])
    if len(state["judged"]) > 1:
        raise Wrong("it was judged twice")
    return is_open


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    rng, names, state, opened = random.Random(seed), load(), {}, 0
    token = b""

    def judge(fd, right, said):
        state["judged"].append(said)
        return 1 if right.encode() == said.encode("latin-1") else -1

    names["pdb_server_functions"]["judge"] = judge
    names["pdb_server_enter"] = lambda talk, connection, rest: state.update(opened=rest)
    for i in range(n):
        if i % 1000 == 0:
            token = bytes(rng.choice(DIGITS) for _ in range(48))
        pieces = in_pieces(rng, b"x" * 10 ** 7 if i == 7 else b"0" * 10 ** 7 if i == 8 else saying(rng, token))
        kept = list(pieces)
        try:
            opened += one(names, token, pieces, state)
        except Exception as error:  # pylint: disable=broad-except
            print("first_line: seed %d, number %d, token %s: %s: %s: %r" % (seed, i, token.decode(), type(error).__name__, error, kept[:20]), file=sys.stderr)
            return 1
    print('{"first_lines": %d, "opened": %d, "seed": %d}' % (n, opened, seed))
    return 0 if n < 1000 or 0 < opened < n // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
