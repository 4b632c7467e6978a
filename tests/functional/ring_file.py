# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of an agent from their files, by src/store/ring/ring_format.h, independently of the readers under test."""

import glob
import os
import struct

HEAD = struct.Struct("<8sIHHIIIIIIIIIIIIQQqQqdddIIIIII")
COLUMN = struct.Struct("<IIIIIBBH")
ENTRY = struct.Struct("<QQqqqII12xI")
TIMESTAMP, DOUBLE, INT64, INT32, UINT32, ID, TEXT, ENUM, BOOL, FEW, FLAG = range(1, 12)
NO_COLUMN = 0xFFFFFFFF


def checksum(data):
    h = 0x811C9DC5
    for (word,) in struct.iter_unpack("<I", data):
        h = ((h ^ word) * 0x01000193) & 0xFFFFFFFF
        h ^= h >> 15
    return h


def text_at(data, at):
    return data[at:data.index(b"\0", at)].decode() if at else None


class Ring:
    """A table as its file has it now: .name, .rows (a dict each, oldest first), .first (the number of the first of them)."""

    def __init__(self, path):
        with open(path, "rb") as self.file:
            self.read()

    def at(self, offset, size):
        self.file.seek(offset)
        return self.file.read(size)

    def read(self):
        self.data = self.at(0, 65536)
        self.name, self.rows, self.columns, self.first = None, [], [], 0
        if not self.data[:8].strip(b"\0"):
            return  # it is being made
        head = HEAD.unpack_from(self.data)
        assert head[0] == b"PRBRING\n" and head[1] == 0x01020304 and head[2] == 1
        (self.column_at, self.column_stride, self.n_columns, self.entry_stride, self.n_chunks, self.chunk_rows, self.chunk_bytes,
         self.heap_at, self.heap_bytes, self.time_column, self.entry_at, self.chunk_at, self.pid, self.start_ticks, self.rank) = head[6:21]
        self.name = text_at(self.data, head[24])
        for i in range(self.n_columns):
            name, _, _, labels, at, kind, bits, _ = COLUMN.unpack_from(self.data, self.column_at + i * self.column_stride)
            self.columns.append((text_at(self.data, name), kind, bits, at, (text_at(self.data, labels) or "").split("\n")))
        chunks = []
        directory = self.at(self.entry_at, self.n_chunks * self.entry_stride)
        for i in range(self.n_chunks):
            raw = directory[i * self.entry_stride:][:ENTRY.size]
            entry = ENTRY.unpack(raw)
            if checksum(raw[:-4]) == entry[-1] and entry[0] and entry[0] % 2 == 0 and entry[5]:
                chunks.append((entry[1], i, entry))
        self.first = min(chunks)[0] if chunks else 0
        for first_seq, i, entry in sorted(chunks):
            self.rows += self.read_chunk(self.at(self.chunk_at + i * self.chunk_bytes, self.chunk_bytes), entry)

    def read_chunk(self, chunk, entry):
        heap = chunk[self.heap_at:][:entry[6]]
        values = [self.read_column(chunk[at:], kind, bits, entry, heap, labels) for _, kind, bits, at, labels in self.columns]
        return [dict(zip((c[0] for c in self.columns), row)) for row in zip(*values)]

    @staticmethod
    def read_column(data, kind, bits, entry, heap, labels):
        n, base_us = entry[5], entry[2]
        def wide(code, unknown):
            return [None if v == unknown else v for v in struct.unpack_from(f"<{n}{code}", data)]
        if kind == TIMESTAMP:
            return [(base_us + v) / 1e6 for v in struct.unpack_from(f"<{n}i", data)]
        if kind == DOUBLE:
            return [None if v != v else v for v in struct.unpack_from(f"<{n}d", data)]
        if kind == INT64:
            return wide("q", -2 ** 63)
        if kind == INT32:
            return wide("i", -2 ** 31)
        if kind in (UINT32, ID):
            return wide("I", 2 ** 32 - 1)
        if kind == TEXT:
            out = []
            for v in struct.unpack_from(f"<{n}H", data):
                size = struct.unpack_from("<H", heap, 2 * v)[0] if v else 0
                out.append(heap[2 * v + 2:2 * v + 2 + size].decode() if v else None)
            return out
        assert bits == {ENUM: 4, BOOL: 4, FEW: 2, FLAG: 2}[kind]
        unknown = (1 << bits) - 1
        narrow = [data[i * bits // 8] >> i * bits % 8 & unknown for i in range(n)]
        if kind in (BOOL, FLAG):
            return [None if v == unknown else v for v in narrow]
        return [None if v == unknown else labels[v] for v in narrow]


def folders(data_dir, pid):
    return sorted(glob.glob(os.path.join(data_dir, f"{pid}-*")), key=lambda path: int(path.rpartition("-")[2]))


def read(folder, table):
    return Ring(os.path.join(folder, table + ".ring")).rows


def read_all(folder):
    return {os.path.basename(p)[:-5]: Ring(p).rows for p in glob.glob(os.path.join(folder, "*.ring"))}


def stacks(folder):
    """{stack_id: "root;...;innermost"} with function names."""
    frames = {f["frame_id"]: f for f in read(folder, "python.frames")}
    out = {}
    for s in read(folder, "python.stacks"):
        above = out[s["parent_id"]] + ";" if s["parent_id"] is not None else ""
        out[s["stack_id"]] = above + frames[s["frame_id"]]["func"]
    return out
