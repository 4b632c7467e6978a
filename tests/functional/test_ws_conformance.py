# SPDX-License-Identifier: Apache-2.0
"""WebSocket (RFC 6455) as the agent must speak it, written down from the document, at both its listeners: bytes sent, and what must happen.

The cases are those of the public test suites (framing, pings, reserved bits, opcodes, fragments, UTF-8, closing, limits, masks), as far as
they mean something to a protocol of binary messages that are requests. Whatever is sent, others go on being served, and the job goes on.
"""

import struct

import pytest

from agent_job import job
from agent_wire import BINARY, CLOSE, PING, PONG, Client, Closed, Connection, pack, unpack, wait_closed
from tcp_client import TcpConnection, owner

__all__ = ["job"]

CONTINUATION, TEXT = 0, 1
MAX_MESSAGE = 1 << 20
KEY = bytes([0x37, 0xFA, 0x21, 0x3D])


def frame(opcode, payload=b"", final=True, rsv=0, mask=KEY, length=None, width=None):
    """A frame of RFC 6455 §5.2. `mask` None: without one; `length`: what it says of itself; `width`: bytes that the length takes (1, 2, 8)."""
    n = len(payload) if length is None else length
    width = width or (1 if n < 126 else 2 if n < 1 << 16 else 8)
    masked = 0x80 if mask is not None else 0
    head = bytes([(0x80 if final else 0) | rsv << 4 | opcode])
    head += bytes([masked | (n if width == 1 else 126 if width == 2 else 127)]) + (b"" if width == 1 else n.to_bytes(width, "big"))
    if mask is None:
        return head + payload
    key = (mask * (len(payload) // 4 + 1))[:len(payload)]
    return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(len(payload), "big")


def request(number, size=0, method="unsubscribe"):
    """A request that is answered at once and changes nothing, of that many bytes (0: as it comes)."""
    params = {"stream": "threads"}
    message = pack([0, number, method, params])
    if size:
        params["pad"] = b""
        params["pad"] = bytes(size - len(pack([0, number, method, params])))
        message = pack([0, number, method, params])
        assert len(message) == size
    return message


def binary(number, size=0, **how):
    return frame(BINARY, request(number, size), **how)


def pieces(message, cuts, between=b""):
    """A message in fragments, cut at those places, with something between each two."""
    places = [0, *cuts, len(message)]
    frames = [frame(BINARY if i == 0 else CONTINUATION, message[a:b], final=b == len(message) and i == len(places) - 2)
              for i, (a, b) in enumerate(zip(places, places[1:]))]
    return between.join(frames)


def close(code=None, reason=b""):
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


# What must happen, in this order. Every case ends with GOES_ON or an end of the connection.
GOES_ON = ("goes on", None)


def pong(payload=b""):
    return (PONG, payload)


def answered(number):
    return ("answer", number)


def closed(*codes):
    """The agent closes, with one of these codes."""
    return ("closed", codes)


PROTOCOL_ERROR = closed(1002)
# The connection fails without a word, which §7.1.7 allows: whoever says that keeps to no protocol.
FAILS = ("fails", None)


def perhaps(number):
    """The answer to a request before what ends the connection: it may be lost with it."""
    return ("perhaps", number)


FIRST, SECOND = request(5), request(6)

CASES = {
    # 5.2, 5.3: framing; sizes about those at which the length takes more bytes.
    **{f"framing: a message of {n} bytes": (binary(5, n), answered(5), GOES_ON)
       for n in (100, 125, 126, 127, 128, 4095, 4096, 4097, 65535, 65536, 65537, 131072, MAX_MESSAGE)},
    "framing: two messages in one piece": (binary(5) + binary(6), answered(5), answered(6), GOES_ON),
    "framing: a mask of zeros": (binary(5, mask=bytes(4)), answered(5), GOES_ON),
    "framing: a message of no bytes": (frame(BINARY), closed(1008)),
    "framing: a message that is no message": (frame(BINARY, b"\xc1"), closed(1008)),
    "framing: bytes after a message": (frame(BINARY, FIRST + b"\xc0"), closed(1008)),
    # 5.5.2, 5.5.3: pings and pongs.
    "ping: empty": (frame(PING), pong(), GOES_ON),
    "ping: a text": (frame(PING, b"Hello, world!"), pong(b"Hello, world!"), GOES_ON),
    "ping: bytes that are no text": (frame(PING, b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"), pong(b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"), GOES_ON),
    "ping: 125 bytes": (frame(PING, b"\xfe" * 125), pong(b"\xfe" * 125), GOES_ON),
    "ping: 126 bytes": (frame(PING, b"\xfe" * 126), FAILS),
    "ping: a length of two bytes": (frame(PING, b"x", width=2), FAILS),
    "ping: before a message": (frame(PING, b"x") + binary(5), pong(b"x"), answered(5), GOES_ON),
    "ping: reserved bits": (frame(PING, b"x", rsv=1), PROTOCOL_ERROR),
    "ping: a fragment": (frame(PING, b"x", final=False), PROTOCOL_ERROR),
    "pong: nobody has asked": (frame(PONG, b"x"), GOES_ON),
    "pong: nobody has asked, empty": (frame(PONG), GOES_ON),
    "pong: then a ping": (frame(PONG, b"x") + frame(PING, b"y"), pong(b"y"), GOES_ON),
    "pong: 126 bytes": (frame(PONG, bytes(126)), FAILS),
    "pong: a fragment": (frame(PONG, b"x", final=False), PROTOCOL_ERROR),
    # 5.2: bits that no extension has given a meaning.
    **{f"reserved: bits {rsv} of a message": (binary(5, rsv=rsv), PROTOCOL_ERROR) for rsv in range(1, 8)},
    "reserved: bits of an empty message": (frame(BINARY, rsv=4), PROTOCOL_ERROR),
    "reserved: bits of a close": (frame(CLOSE, struct.pack(">H", 1000), rsv=2), PROTOCOL_ERROR),
    "reserved: after a good message": (binary(5) + binary(6, rsv=4), perhaps(5), PROTOCOL_ERROR),
    # 5.2: opcodes that mean nothing.
    **{f"opcode {opcode:#x}": (frame(opcode, FIRST), PROTOCOL_ERROR) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    **{f"opcode {opcode:#x}: empty": (frame(opcode), PROTOCOL_ERROR) for opcode in (3, 11)},
    # 5.4: fragments.
    "fragments: two": (pieces(FIRST, [10]), answered(5), GOES_ON),
    "fragments: of one byte": (pieces(FIRST, range(1, len(FIRST))), answered(5), GOES_ON),
    "fragments: the first empty": (pieces(FIRST, [0]), answered(5), GOES_ON),
    "fragments: the last empty": (frame(BINARY, FIRST, final=False) + frame(CONTINUATION), answered(5), GOES_ON),
    "fragments: one in the middle empty": (pieces(FIRST, [10, 10]), answered(5), GOES_ON),
    "fragments: a ping between": (pieces(FIRST, [10], frame(PING, b"x")), pong(b"x"), answered(5), GOES_ON),
    "fragments: a pong between": (pieces(FIRST, [10], frame(PONG, b"x")), answered(5), GOES_ON),
    "fragments: then a whole message": (pieces(FIRST, [10]) + binary(6), answered(5), answered(6), GOES_ON),
    "fragments: a message between": (pieces(FIRST, [10], binary(6)), PROTOCOL_ERROR),
    "fragments: begun anew": (frame(BINARY, FIRST[:10], final=False) + frame(BINARY, FIRST[10:], final=False), PROTOCOL_ERROR),
    "fragments: the last without a first": (frame(CONTINUATION, FIRST), PROTOCOL_ERROR),
    "fragments: one without a first": (frame(CONTINUATION, FIRST, final=False), PROTOCOL_ERROR),
    "fragments: one too many": (pieces(FIRST, [10]) + frame(CONTINUATION, SECOND), perhaps(5), PROTOCOL_ERROR),
    "fragments: a close between": (frame(BINARY, FIRST[:10], final=False) + close(1000), closed(1000)),
    "fragments: reserved bits of the second": (frame(BINARY, FIRST[:10], final=False) + frame(CONTINUATION, FIRST[10:], rsv=4), PROTOCOL_ERROR),
    "fragments: a text between": (frame(BINARY, FIRST[:10], final=False) + frame(TEXT, b"x"), PROTOCOL_ERROR),
    # 5.6, 8.1: texts. There are none in this protocol, whether they are UTF-8 or not.
    **{f"text: {name}": (frame(TEXT, data), closed(1003, 1007))
       for name, data in {"empty": b"", "ascii": b"hello", "a request": FIRST, "UTF-8": "κόσμε".encode(), "a surrogate": b"\xed\xa0\x80",
                          "too long": b"\xf0\x80\x80\xaf", "no code point": b"\xf4\x90\x80\x80", "cut": b"\xce\xba\xe1"}.items()},
    "text: in fragments": (frame(TEXT, b"he", final=False) + frame(CONTINUATION, b"llo"), closed(1003)),
    # 5.5.1, 7.4: closing.
    "close: without a code": (close(), ("closed", (None, 1000))),
    "close: half a code": (frame(CLOSE, b"\x03"), PROTOCOL_ERROR),
    **{f"close: {code}": (close(code), closed(code)) for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)},
    **{f"close: {code}, which nobody may send": (close(code), PROTOCOL_ERROR)
       for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535)},
    "close: a reason": (close(1000, b"I go"), closed(1000)),
    "close: a reason of 123 bytes": (close(1000, b"x" * 123), closed(1000)),
    "close: a reason of 124 bytes": (close(1000, b"x" * 124), FAILS),
    "close: a reason that is no UTF-8": (close(1000, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"), FAILS),
    "close: a fragment": (frame(CLOSE, struct.pack(">H", 1000), final=False), PROTOCOL_ERROR),
    "close: twice": (close(1000) + close(1000), closed(1000)),
    "close: then a ping": (close(1000) + frame(PING, b"x"), closed(1000)),
    "close: then a message": (close(1000) + binary(5), closed(1000)),
    "close: after a message": (binary(5) + close(1000), perhaps(5), closed(1000)),
    # Limits: of a message, and of what a frame says of itself.
    "limits: a message of a byte too many": (binary(5, MAX_MESSAGE + 1), closed(1008, 1009)),
    "limits: fragments that are a byte too many": (pieces(request(5, MAX_MESSAGE + 1), range(65536, MAX_MESSAGE, 65536)), closed(1008, 1009)),
    "limits: a length of 2^63": (frame(BINARY, FIRST, length=1 << 63, width=8), FAILS),
    "limits: a length of 2^64 - 1": (frame(BINARY, FIRST, length=(1 << 64) - 1, width=8), FAILS),
    "limits: a ping that says it is long": (frame(PING, b"", length=1 << 40, width=8), FAILS),
    # 5.1: whoever sends no mask is turned away, before a byte of what it says is looked at.
    "mask: none": (binary(5, mask=None), PROTOCOL_ERROR),
    "mask: none of an empty message": (frame(BINARY, mask=None), PROTOCOL_ERROR),
    "mask: none of a long message": (frame(BINARY, FIRST, mask=None, width=8), PROTOCOL_ERROR),
    "mask: none of the second fragment": (frame(BINARY, FIRST[:10], final=False) + frame(CONTINUATION, FIRST[10:], mask=None), PROTOCOL_ERROR),
    "mask: none of the second message": (binary(5) + binary(6, mask=None), perhaps(5), PROTOCOL_ERROR),
    "mask: none of a ping": (frame(PING, b"x", mask=None), PROTOCOL_ERROR),
    "mask: none of a close": (frame(CLOSE, struct.pack(">H", 1000), mask=None), PROTOCOL_ERROR),
}


def receive(connection):
    """(opcode, payload), which are what §5.1 and §5.5 demand of a server's; what is chunked does not come here."""
    opcode, payload = connection.receive_frame()
    assert opcode in (BINARY, CLOSE, PING, PONG) and (opcode == BINARY or len(payload) <= 125)
    return opcode, payload


def assert_answer(connection, number):
    opcode, payload = receive(connection)
    assert opcode == BINARY and unpack(payload) == [1, number, None, {}], (opcode, payload[:100])


def end_of_stream(connection):
    with pytest.raises(Closed):
        connection.receive(1)


def assert_closed(connection, codes):
    """A close frame with one of the codes."""
    opcode, payload = receive(connection)
    assert opcode == CLOSE, (opcode, payload[:100])
    assert len(payload) != 1
    code = struct.unpack(">H", payload[:2])[0] if payload else None
    assert code in codes, code
    payload[2:].decode()


def receive_ahead(connection):
    """The opcode of the frame that comes next, which is still to be received."""
    first = connection.receive(1)
    connection.buffer = first + connection.buffer
    return first[0] & 15


def happens(connection, what):
    kind, value = what
    if kind == PONG:
        assert receive(connection) == (PONG, value)
    elif kind == "answer":
        assert_answer(connection, value)
    elif kind == "perhaps":
        if receive_ahead(connection) == BINARY:
            assert_answer(connection, value)
    elif kind == "closed":
        assert_closed(connection, value)
    elif kind == "fails":
        end_of_stream(connection)
    else:
        connection.send(binary(99))
        assert_answer(connection, 99)


def open_unix(endpoint, _):
    connection = Connection(endpoint)
    assert " 101 " in connection.handshake()
    return connection


def open_tcp(_, address):
    connection = TcpConnection(address)
    assert connection.ask() == 101
    return connection


def greet(connection):
    connection.send(frame(BINARY, pack([0, 1, "hello", {"version": 2, "client": "test"}])))
    opcode, payload = receive(connection)
    assert opcode == BINARY and unpack(payload)[:3] == [1, 1, None]


def try_case(connection, sent, *wanted):
    """What went otherwise than it must; None: nothing."""
    try:
        greet(connection)
        try:
            connection.send(sent)
        except Closed:
            pass  # it may be closed before all was sent: what was said last is read all the same
        for what in wanted:
            happens(connection, what)
    except (AssertionError, Closed, OSError, UnicodeDecodeError, pytest.fail.Exception) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return None


def section_of(case):
    return case.split(":")[0].split(" ")[0]


def test_who_does_not_answer_a_close_is_put_out(job):
    """However the end came about: nobody stays connected by never saying goodbye."""
    endpoint = job().start()
    with Client(endpoint) as other:
        address = owner(other.call("listen", {"address": "127.0.0.1:0"}))
        left = []
        for sent in (close(1000), binary(5, rsv=2), frame(3), frame(TEXT, b"x"), frame(BINARY), frame(CLOSE, b"\x03")):
            for door in (open_unix, open_tcp):
                left.append(door(endpoint, address))
                greet(left[-1])
                left[-1].send(sent)
        assert all(wait_closed(connection, 60) for connection in left)
        assert other.call("threads")["threads"]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("section", sorted({section_of(case) for case in CASES}))
@pytest.mark.parametrize("door", [open_unix, open_tcp], ids=["unix", "tcp"])
def test_cases(job, door, section):
    j = job()
    endpoint = j.start()
    with Client(endpoint) as other:
        address = owner(other.call("listen", {"address": "127.0.0.1:0"}))
        wrong = {}
        for case, (sent, *wanted) in CASES.items():
            if section_of(case) != section:
                continue
            why = try_case(door(endpoint, address), sent, *wanted)
            if why:
                wrong[case] = why
            assert other.call("threads")["threads"], case
        assert not wrong, "\n".join(f"{case}: {why}" for case, why in wrong.items())
    assert j.do("1 + 1") == 2
