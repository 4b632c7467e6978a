# SPDX-License-Identifier: Apache-2.0
"""What others have published about the files that exports write, as tools/readers.sh has fetched it: speedscope's JSON schema, and the
descriptions of Perfetto's and pprof's messages, of which google.protobuf makes classes.

Read strictly: a field or a value of an enumeration that is not described is a failure. What is made of the messages has the form of
protobuf_reader.py, which knows the formats by numbers that were typed in; so the two can be held against each other.
"""

import ast
import gzip
import json
import os
import sys

import pytest

DESCRIPTIONS = {"perfetto": "perfetto/protos/perfetto/trace/perfetto_trace_pb2.py", "pprof": "austin/format/pprof/profile_pb2.py"}


def folder():
    path = os.environ.get("PROBING_TEST_READERS")
    if not path:
        pytest.skip("needs readers: $PROBING_TEST_READERS is not set (tools/readers.sh)")
    return path


def packages():
    """The folder of Python's packages, which can be imported from then on."""
    path = os.path.join(folder(), "python")
    if not os.path.isdir(path):
        pytest.skip(f"needs readers: {path} is not there; see pip.log beside it")
    if path not in sys.path:
        sys.path.append(path)
    return path


def speedscope_validator():
    path = os.path.join(folder(), "speedscope.json")
    if not os.path.exists(path):
        pytest.skip(f"needs readers: {path} is not there; npm fetches it")
    packages()
    import jsonschema
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return validator(schema)


def description(path):
    """The serialized FileDescriptorProto in a file that protoc has generated, whichever version of it."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, bytes)]
    return max(found, key=len)


def message_class(name, message):
    """The class of a message, "perfetto.protos.Trace"."""
    path = os.path.join(packages(), DESCRIPTIONS[name])
    if not os.path.exists(path):
        pytest.skip(f"needs readers: {path} is not there")
    from google.protobuf import descriptor_pool, message_factory
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(description(path))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))


def is_repeated(field):
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def check_known(message):
    """Everything in it and below is described."""
    from google.protobuf import unknown_fields
    unknown = [field.field_number for field in unknown_fields.UnknownFieldSet(message)]
    assert not unknown, f"{message.DESCRIPTOR.full_name} has no fields {unknown}"
    for field, value in message.ListFields():
        values = value if is_repeated(field) else [value]
        for one in values if field.message_type else []:
            check_known(one)
        for one in values if field.enum_type else []:
            assert one in field.enum_type.values_by_number, f"{field.full_name} has no value {one}"


def parse(name, message, data):
    found = message_class(name, message)()
    found.ParseFromString(data)
    check_known(found)
    assert found.IsInitialized()
    return found


class Profile:
    """See protobuf_reader.Profile; of the messages of google/pprof's profile.proto."""

    def __init__(self, data):
        profile = parse("pprof", "perftools.profiles.Profile", gzip.decompress(data))
        self.message = profile
        self.strings = list(profile.string_table)
        self.types = [(self.strings[t.type], self.strings[t.unit]) for t in profile.sample_type]
        self.period_type = (self.strings[profile.period_type.type], self.strings[profile.period_type.unit])
        self.period, self.default = profile.period, self.strings[profile.default_sample_type]
        self.time_nanos, self.duration_nanos = profile.time_nanos, profile.duration_nanos
        self.comments = [self.strings[n] for n in profile.comment]
        self.functions = {f.id: f for f in profile.function}
        self.locations = {location.id: location for location in profile.location}
        self.files = [self.strings[m.filename] for m in profile.mapping]
        self.samples = [self.sample(s) for s in profile.sample]

    def frame(self, location):
        line, = location.line
        function = self.functions[line.function_id]
        return self.strings[function.name], self.strings[function.filename], line.line

    def sample(self, sample):
        labels = {self.strings[label.key]: self.strings[label.str] if label.str else label.num for label in sample.label}
        values = {name: value for (name, _), value in zip(self.types, sample.value)}
        return dict(values, labels=labels, frames=[self.frame(self.locations[n]) for n in sample.location_id])


class Trace:
    """See protobuf_reader.Trace; of the messages of google/perfetto's trace.proto."""

    def __init__(self, data):
        self.message = parse("perfetto", "perfetto.protos.Trace", data)
        self.names, self.tracks, self.processes, self.threads, self.clocks = {}, {}, {}, {}, {}
        self.by_uuid, self.open, self.categories, self.used = {}, {}, {}, {}
        self.n_events = 0
        for packet in self.message.packet:
            kind = packet.WhichOneof("data")
            self.intern(packet.interned_data)
            if kind == "clock_snapshot":
                self.clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
            elif kind == "track_descriptor":
                self.track(packet.track_descriptor)
            elif kind == "track_event":
                self.event(packet.track_event, packet.timestamp)
            else:
                assert kind is None, f"a packet of {kind}"

    def intern(self, data):
        self.names.update((name.iid, name.name) for name in data.event_names)
        self.categories.update((category.iid, category.name) for category in data.event_categories)

    def track(self, track):
        if track.HasField("process"):
            self.processes[track.process.pid] = track.uuid
            return
        if track.HasField("thread"):
            assert track.thread.pid in self.processes
            self.threads[track.thread.tid] = track.thread.thread_name
        name = track.thread.tid if track.HasField("thread") else track.name
        assert track.parent_uuid in self.processes.values()
        self.by_uuid[track.uuid], self.tracks[name], self.used[name] = name, [], set()

    def event(self, event, at):
        name = self.by_uuid[event.track_uuid]
        stack = self.open.setdefault(name, [])
        kind = event.DESCRIPTOR.enum_types_by_name["Type"].values_by_number[event.type].name
        self.n_events += 1
        if kind == "TYPE_SLICE_BEGIN":
            self.used[name].update(self.categories[iid] for iid in event.category_iids)
            stack.append((at, self.names[event.name_iid] if event.HasField("name_iid") else event.name))
        else:
            assert kind == "TYPE_SLICE_END"
            begin, what = stack.pop()
            self.tracks[name].append((begin, at, len(stack), what))
