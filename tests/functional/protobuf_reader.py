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


class Trace:
    """A trace of Perfetto: .tracks are {name: [(begin, end, depth, name)]} of its slices, in nanoseconds; .processes {pid: command line}.

    What the trace processor asks for is checked: one sequence whose first packet clears its state, events that say they need that state,
    names that were interned before, tracks that were described before, and on each of them time that does not go back, ends that have
    a beginning, and beginnings that have an end.
    """

    CLEARED, NEEDED, REALTIME, BEGIN, END = 1, 2, 1, 1, 2

    def __init__(self, data):
        self.names, self.files, self.tracks, self.processes, self.threads, self.clocks = {}, {}, {}, {}, {}, {}
        self.parents, self.by_uuid, self.open, self.newest = {}, {}, {}, {}
        self.n_events = 0
        for index, (number, value) in enumerate(fields(data)):
            assert number == 1
            self.packet(Message(value), index == 0)
        assert not any(self.open.values()), "a slice has no end"
        assert all(parent in self.processes.values() for parent in self.parents.values())

    def packet(self, packet, is_first):
        assert packet[10], "a packet is of no sequence"
        assert (packet.number(13) & self.CLEARED != 0) == is_first
        if is_first:
            assert packet[87] == 1 and packet.message(59)[58] == self.REALTIME
        if packet[12]:
            self.intern(packet.message(12))
        if packet[6]:
            snapshot = packet.message(6)
            self.clocks = {clock[1]: clock[2] for clock in snapshot.messages(1)}
            assert snapshot[2] == self.REALTIME and self.REALTIME in self.clocks
        if packet[60]:
            self.track(packet.message(60))
        if packet[11]:
            assert packet.number(13) & self.NEEDED
            self.event(packet.message(11), packet[8])

    def intern(self, interned):
        for message in interned.messages(2):
            assert message[1] and message[1] not in self.names
            self.names[message[1]] = message.text(2)
        for message in interned.messages(4):
            self.files[message[1]] = message.text(2)

    def track(self, track):
        uuid, process, thread = track[1], track.message(3), track.message(4)
        assert uuid and uuid not in self.by_uuid
        if process:
            self.processes[process[1]] = uuid
            self.by_uuid[uuid] = None
            return
        self.parents[uuid] = track[5]
        name = track.text(2)
        if thread:
            assert thread[1] in self.processes
            name = thread[2]
            self.threads[name] = thread.text(5)
        assert name not in self.tracks
        self.by_uuid[uuid] = name
        self.tracks[name], self.open[uuid], self.newest[uuid] = [], [], 0

    def event(self, event, at):
        uuid = event[11]
        self.n_events += 1
        assert at >= self.newest[uuid], "time goes back"
        self.newest[uuid] = at
        if event[9] == self.BEGIN:
            assert event[3], "a slice has no category"
            name = event.text(23) if event[23] else self.names[event[10]]
            if event[10]:
                assert event[34] in self.files
            self.open[uuid].append((at, name))
        else:
            assert event[9] == self.END and self.open[uuid], "an end without a beginning"
            begin, name = self.open[uuid].pop()
            assert at > begin
            self.tracks[self.by_uuid[uuid]].append((begin, at, len(self.open[uuid]), name))

    def self_ns(self, track):
        """Time of each function as the innermost one."""
        spent = {}
        children = {}  # of slices that end later, by depth: slices come in the order of their ends
        for begin, end, depth, name in self.tracks[track]:
            inner = children.pop(depth + 1, 0)
            spent[name] = spent.get(name, 0) + end - begin - inner
            children[depth] = children.get(depth, 0) + end - begin
        return spent
