# SPDX-License-Identifier: Apache-2.0
"""Messages of Protocol Buffers, read without a compiler for them: fields by number, and what our exports' formats make of them."""

import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        assert shift <= 70, "a number of more than 64 bits"
        if byte < 0x80:
            return value, at


def fields(data):
    """[(number, value)]: value is an int, or bytes."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, f"a field of the wire type {key & 7}"
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "a field reaches beyond its message"
        found.append((key >> 3, value))
    return found


class Message:
    """m[3] is the last value of field 3 (None: it is not there), m.all(3) are all; m.message(3) is a message, m.text(3) a string."""

    def __init__(self, data):
        self.values = {}
        for number, value in fields(data):
            self.values.setdefault(number, []).append(value)

    def __getitem__(self, number):
        return self.values[number][-1] if number in self.values else None

    def all(self, number):
        return self.values.get(number, [])

    def number(self, number):
        return self[number] or 0

    def signed(self, number):
        value = self.number(number)
        return value - (1 << 64) if value >> 63 else value

    def text(self, number):
        return None if self[number] is None else self[number].decode("utf-8")

    def message(self, number):
        return None if self[number] is None else Message(self[number])

    def messages(self, number):
        return [Message(value) for value in self.all(number)]


def packed(data):
    at, numbers = 0, []
    while at < len(data):
        value, at = varint(data, at)
        numbers.append(value)
    return numbers


class Profile:
    """A profile of pprof: .samples are {"frames": [(function, file, line)] leaf first, "samples", "wall", ..., "labels": {...}}.

    Everything that proto/profile.proto of google/pprof asks for is checked.
    """

    def __init__(self, data):
        message = Message(gzip.decompress(data))
        self.strings = [value.decode("utf-8") for value in message.all(6)]
        assert self.strings[0] == ""
        self.types = [(self.strings[m.number(1)], self.strings[m.number(2)]) for m in message.messages(1)]
        self.mappings = self.by_id(message.messages(3))
        self.functions = self.by_id(message.messages(5))
        self.locations = self.by_id(message.messages(4))
        self.files = [self.strings[m.number(5)] for m in self.mappings.values()]
        self.time_nanos, self.duration_nanos = message.signed(9), message.signed(10)
        self.period_type = tuple(self.strings[message.message(11).number(n)] for n in (1, 2))
        self.period = message.signed(12)
        self.comments = [self.strings[n] for n in message.all(13)]
        self.default = self.strings[message.number(14)]
        assert self.default in [name for name, _ in self.types]
        self.samples = [self.sample(m) for m in message.messages(2)]

    @staticmethod
    def by_id(messages):
        found = {m.number(1): m for m in messages}
        assert 0 not in found and len(found) == len(messages), "an id is 0, or there twice"
        return found

    def frame(self, location):
        assert location.number(2) in self.mappings
        line, = location.messages(4)
        function = self.functions[line.number(1)]
        return self.strings[function.number(2)], self.strings[function.number(4)], line.number(2)

    def sample(self, message):
        values = packed(message[2])
        assert len(values) == len(self.types)
        labels = {}
        for label in message.messages(3):
            key = self.strings[label.number(1)]
            assert key not in labels and (label[2] is None) != (label[3] is None)
            labels[key] = label.signed(3) if label[2] is None else self.strings[label.number(2)]
        sample = {name: value for (name, _), value in zip(self.types, values)}
        return dict(sample, labels=labels, frames=[self.frame(self.locations[n]) for n in packed(message[1])])
